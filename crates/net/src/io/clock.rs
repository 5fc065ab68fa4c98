//! [`Clock`]: real time as the time of a run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fullpipe_units::{Span, Time};

/// Time since a start that both ends of a run in one process share.
///
/// Its readings are whole microseconds, rounded down: the wire carries 32-bit stamps of
/// microseconds, and a sender compares what comes back with the times of its transmissions.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    #[expect(clippy::new_without_default, reason = "two clocks are never equal")]
    pub fn new() -> Self {
        Self::since(Instant::now())
    }

    /// A clock that reads zero at `epoch`; before it, it stays at zero.
    pub fn since(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// When this clock read zero.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The time now, a whole number of microseconds.
    #[inline]
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// Reading at `instant`, whole microseconds; zero before the epoch.
    #[inline]
    pub fn at(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.epoch);
        Time::from_nanos(micros(since).saturating_mul(1000))
    }

    /// When this clock first reads `time` or more; [`None`] beyond the range of the machine's
    /// clock.
    pub fn instant(&self, time: Time) -> Option<Instant> {
        if time == Time::MAX {
            return None;
        }
        let micros = time.as_nanos().div_ceil(1000);
        self.epoch.checked_add(Duration::from_micros(micros))
    }

    /// The time of this clock at a time stamp of the kernel, which is of the day
    /// ([`Datagram::stamp`](super::Datagram::stamp)). To the nanosecond, because a stamp never
    /// travels.
    ///
    /// The day's clock may be set: take the difference anew for each batch.
    pub fn of_day(&self) -> Option<DayClock> {
        let day = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let here = self.epoch.elapsed();
        Some(DayClock {
            zero: day.checked_sub(here)?,
        })
    }
}

/// Turns the kernel's receive time stamps into the time of a [`Clock`].
#[derive(Clone, Copy, Debug)]
pub struct DayClock {
    /// What the day's clock read at the start.
    zero: Duration,
}

impl DayClock {
    /// When that was, to the nanosecond.
    pub fn time(&self, stamp: Duration) -> Time {
        let since = stamp.saturating_sub(self.zero);
        Time::ZERO + Span::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

fn micros(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000)
        .saturating_add(u64::from(duration.subsec_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_whole_microseconds() {
        let clock = Clock::new();
        let at = clock.epoch() + Duration::from_nanos(1_234_567_899);
        assert_eq!(clock.at(at), Time::from_nanos(1_234_567_000));
        assert_eq!(clock.at(clock.epoch() - Duration::from_secs(1)), Time::ZERO);
        assert_eq!(clock.now().as_nanos() % 1000, 0);
    }

    #[test]
    fn a_moment_between_two_readings_is_reached_at_the_later() {
        let clock = Clock::new();
        for nanos in [1, 999, 1000, 1001, 5_000_500] {
            let wanted = Time::from_nanos(nanos);
            let reached = clock.instant(wanted).unwrap();
            assert!(clock.at(reached) >= wanted);
            assert!(clock.at(reached - Duration::from_micros(1)) < wanted);
        }
        assert_eq!(clock.instant(Time::MAX), None);
    }

    #[test]
    fn a_stamp_of_the_day_lies_between_two_readings() {
        let clock = Clock::since(Instant::now() - Duration::from_secs(3));
        let before = clock.now();
        let stamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let time = clock.of_day().unwrap().time(stamp);
        // The two clocks are read one after the other.
        let slack = Span::from_millis(50);
        assert!(time + slack >= before && time <= clock.now() + slack);
    }
}
