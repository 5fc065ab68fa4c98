//! [`Time`]: an instant of a run, in nanoseconds since its start.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;
use core::time::Duration;

use crate::{ParseQuantityError, Span};

/// An instant, in whole nanoseconds since the start of the run; reaches 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Never: later than anything that happens, and adding to it changes nothing.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `secs` seconds after the start, to the nearest nanosecond. Negative values and
    /// NaN give [`Time::ZERO`], values beyond the range [`Time::MAX`].
    pub fn from_secs_f64(secs: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(secs)
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        Span::from_nanos(self.0).as_secs_f64()
    }

    /// The span from `earlier` to `self`; zero if `earlier` is in fact later.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The instant `since_start` after the start, for an endpoint whose clock is the standard
/// library's: `Time::from(now.duration_since(start))`.
impl From<Duration> for Time {
    fn from(since_start: Duration) -> Time {
        Time::ZERO + Span::from(since_start)
    }
}

impl Sub for Time {
    type Output = Span;
    /// The span from `earlier` to `self`. An `earlier` that is later is a bug of the caller: it
    /// overflows like `u64` does (a panic with debug assertions). See [`Time::saturating_since`].
    fn sub(self, earlier: Time) -> Span {
        Span::from_nanos(self.0 - earlier.0)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates at [`Time::MAX`], so that never stays never.
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.as_nanos()))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    /// Saturates at [`Time::ZERO`].
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.as_nanos()))
    }
}

impl FromStr for Time {
    type Err = ParseQuantityError;
    /// Reads the span since the start: `2.5s`.
    fn from_str(text: &str) -> Result<Time, ParseQuantityError> {
        text.parse().map(|since_start| Time::ZERO + since_start)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span::from_nanos(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_the_ends_only() {
        let t = Time::from_nanos(100);
        assert_eq!(t + Span::from_nanos(5), Time::from_nanos(105));
        assert_eq!(t - Span::from_nanos(5), Time::from_nanos(95));
        assert_eq!(t - Span::from_nanos(101), Time::ZERO);
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
        assert_eq!(Time::from_nanos(105) - t, Span::from_nanos(5));
        assert_eq!(t.saturating_since(Time::from_nanos(105)), Span::ZERO);
        let mut moving = t;
        moving += Span::from_nanos(1);
        assert_eq!(moving.as_nanos(), 101);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "overflow")]
    fn a_later_earlier_is_not_hidden() {
        let _ = Time::ZERO - Time::from_nanos(1);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Time::from_secs_f64(0.08), Time::from_nanos(80_000_000));
        assert_eq!(Time::from_secs_f64(1.6e-9), Time::from_nanos(2));
        assert_eq!(Time::from_secs_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_secs_f64(f64::INFINITY), Time::MAX);
        assert_eq!(Time::from_nanos(2_500_000_000).as_secs_f64(), 2.5);
        assert_eq!("2.5s".parse(), Ok(Time::from_nanos(2_500_000_000)));
    }
}
