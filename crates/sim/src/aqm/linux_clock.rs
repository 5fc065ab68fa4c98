//! The clock of Linux's queue disciplines: the time they read, and the ticks on which their timers
//! go off.

use fullpipe_flow::TimerClock;
use fullpipe_units::{Span, Time};

/// Time on the kernel's clock. A discipline is set up on a tick before time zero, from which its
/// timers count. How long before is nobody's to know on a real router, but it was long before. On
/// ground `linux` it is this, give or take a tick (`UPTIME` in the guest's `main.c`).
pub fn kernel_time(now: Time) -> Time {
    now + SET_UP
}

/// A timer of the kernel that is set again whenever it goes off.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    clock: TimerClock,
    /// Time on the kernel's clock at which it goes off next.
    next: Time,
    every: Span,
}

impl Ticker {
    /// Set half a second ahead at first (`pie_init`, `__red_change`), in a kernel with `hz` ticks
    /// a second. The first half second is over at time zero, and so are the times until then, which
    /// leave an idle queue as it is.
    pub fn new(every: Span, hz: u32) -> Self {
        let clock = TimerClock::Wheel { hz };
        // The second time is on the grain of its level, so that those after it are equally far
        // apart.
        let second = clock.after(clock.after(Time::ZERO, FIRST), every);
        let period = clock.after(second, every) - second;
        let before = (Time::ZERO + SET_UP).saturating_since(second);
        let next = second + period * before.as_nanos().div_ceil(period.as_nanos());
        Self { clock, next, every }
    }

    /// When it went off, if it did by `now` and nobody asked yet.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        let at = self.next;
        if kernel_time(now) < at {
            return None;
        }
        self.next = self.clock.after(at, self.every);
        Some(Time::ZERO + at.saturating_since(Time::ZERO + SET_UP))
    }
}

/// `UPTIME`, two steps of `TICK` and `WHEEL` in the guest's `main.c`.
const SET_UP: Span = Span::from_millis(105_440);
const FIRST: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// 15 ms are four ticks at 250 a second, and a timer goes off on the tick after its last
    /// (`calc_index` in kernel/time/timer.c). Half a second is 125 ticks, beyond 63 of which timers
    /// go off on every eighth: 128. Set up 105.44 s before time zero, they go off at 512 ms and
    /// from then on every 20 ms, 105.452 s among them; every 512 ms, 105.472 s; every 16 ms from
    /// 504 ms on, 105.448 s.
    #[test]
    fn timers_go_off_on_the_ticks_of_the_kernel() {
        let ms = |t: Time| t.as_nanos() / 1_000_000;
        let times = |every, hz| {
            let mut ticker = Ticker::new(Span::from_millis(every), hz);
            let end = Time::from_nanos(2_000_000_000);
            let all = std::iter::from_fn(|| ticker.due(end)).map(ms);
            all.take(3).collect::<Vec<_>>()
        };
        assert_eq!(times(15, 250), [12, 32, 52]);
        assert_eq!(times(500, 250), [32, 544, 1056]);
        assert_eq!(times(15, 1000), [8, 24, 40]);
        let mut ticker = Ticker::new(Span::from_millis(15), 250);
        assert_eq!(ticker.due(Time::from_nanos(11_999_999)), None);
        assert!(ticker.due(Time::from_nanos(12_000_000)).is_some());
        assert_eq!(ticker.due(Time::from_nanos(12_000_000)), None);
    }

    /// The times before time zero are leapt over, not gone through.
    #[test]
    fn a_timer_is_where_it_would_be_had_it_run_since_the_set_up() {
        for (hz, every) in [
            (100, 15),
            (250, 15),
            (250, 300),
            (300, 30),
            (1000, 700),
            (24, 9_000),
        ] {
            let every = Span::from_millis(every);
            let clock = TimerClock::Wheel { hz };
            let mut at = clock.after(Time::ZERO, FIRST);
            while at < Time::ZERO + SET_UP {
                at = clock.after(at, every);
            }
            let mut ticker = Ticker::new(every, hz);
            for _ in 0..5 {
                let due = ticker.due(Time::from_nanos(u64::MAX / 2)).unwrap();
                assert_eq!(kernel_time(due), at, "{hz} {every:?}");
                at = clock.after(at, every);
            }
        }
    }
}
