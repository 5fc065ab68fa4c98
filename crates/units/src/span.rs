//! [`Span`]: a length of time, in nanoseconds, never negative.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;
use core::time::Duration;

use crate::ParseQuantityError;
use crate::quantity::{self, Dim, Expected, Finest};

/// A length of time in whole nanoseconds; reaches 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// For ever: adding to it or multiplying it changes nothing.
    pub const MAX: Span = Span(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// `micros` microseconds, at most [`Span::MAX`].
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds, at most [`Span::MAX`].
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds, at most [`Span::MAX`].
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// `secs` seconds to the nearest nanosecond. Negative values and NaN give [`Span::ZERO`],
    /// values beyond the range [`Span::MAX`].
    pub fn from_secs_f64(secs: f64) -> Span {
        Span(round(secs * 1e9))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self` times `factor`, to the nearest nanosecond. A negative or NaN factor gives
    /// [`Span::ZERO`], a product beyond the range [`Span::MAX`].
    pub fn mul_f64(self, factor: f64) -> Span {
        Span(round(self.0 as f64 * factor))
    }

    /// How many times `other` fits into `self`; infinite or NaN if `other` is zero.
    pub fn ratio(self, other: Span) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

/// Nearest integer, halves up, clamped to the range. Without `f64::round`, which is a library call
/// on processors built without SSE 4.1.
fn round(x: f64) -> u64 {
    let floor = x as u64;
    floor.saturating_add(u64::from(x - floor as f64 >= 0.5))
}

/// As the standard library measures time; what is beyond 584 years becomes [`Span::MAX`].
impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// [`Span::MAX`] stands for ever, and becomes [`Duration::MAX`].
impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        if span == Span::MAX {
            Duration::MAX
        } else {
            Duration::from_nanos(span.0)
        }
    }
}

impl Add for Span {
    type Output = Span;
    /// Saturates at [`Span::MAX`].
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// A longer `other` is a bug of the caller: it overflows like `u64` does (a panic with debug
    /// assertions). See [`Span::saturating_sub`].
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    /// Saturates at [`Span::MAX`].
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    /// Rounds down; panics if `divisor` is zero.
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl FromStr for Span {
    type Err = ParseQuantityError;
    /// Reads `80ms`; digits below a nanosecond are rounded.
    fn from_str(text: &str) -> Result<Span, ParseQuantityError> {
        let found = quantity::parse(text, &SPAN)?;
        found.whole(Finest::Rounded).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0s"),
            nanos => f.pad(&quantity::exact(nanos, quantity::TIMES).unwrap_or_default()),
        }
    }
}

static SPAN: Expected = Expected {
    noun: "a time",
    dims: &[Dim::Time],
    accepted: &["ns", "us", "ms", "s", "min", "h"],
    bare: ["ms", "ms"],
    bare_is_plain: false,
    example: "80ms",
    reads: |text| text.parse::<Span>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn the_standard_library_s_durations_come_and_go() {
        let ms80 = Duration::from_millis(80);
        assert_eq!(Span::from(ms80), Span::from_millis(80));
        assert_eq!(Duration::from(Span::from_millis(80)), ms80);
        assert_eq!(Span::from(Duration::MAX), Span::MAX);
        assert_eq!(Duration::from(Span::MAX), Duration::MAX);
        let most = Span::from_nanos(u64::MAX - 1);
        assert_eq!(Span::from(Duration::from(most)), most);
    }

    #[test]
    fn prints_the_largest_fitting_unit() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (19_293, "19.293us"),
            (80_000_000, "80ms"),
            (12_345_678, "12345.678us"),
            (100_000_000, "100ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "90s"),
            (60_000_000_000, "1min"),
            (7_200_000_000_000, "2h"),
            (u64::MAX, "18446744073709551.615us"),
        ] {
            assert_eq!(Span(nanos).to_string(), text);
            assert_eq!(text.parse(), Ok(Span(nanos)));
        }
        assert_eq!(format!("{:>6}|", Span::from_millis(80)), "  80ms|");
    }

    #[test]
    fn reads_every_spelling() {
        let ms = Span::from_millis;
        for (text, span) in [
            ("80ms", ms(80)),
            (" 80 \t ms ", ms(80)),
            ("+8e1ms", ms(80)),
            ("80_000us", ms(80)),
            ("80000µs", ms(80)),
            ("80000\u{3bc}s", ms(80)),
            (".08s", ms(80)),
            ("1E-3s", ms(1)),
            ("0.5min", ms(30_000)),
            ("1h", ms(3_600_000)),
            ("0.30000000000000004s", ms(300)),
            ("1.6ns", Span(2)),
            ("0e999999999999999999999s", Span::ZERO),
        ] {
            assert_eq!(text.parse(), Ok(span), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_right_kind() {
        let unknown = |unit: &str, nearest| Kind::UnknownUnit {
            unit: unit.into(),
            nearest,
        };
        for (text, kind, hint) in [
            ("", Kind::Empty, "write for example `80ms`"),
            ("80", Kind::NoUnit, "write `80ms`"),
            ("80 sec", unknown("sec", Some("s")), "write `80s`"),
            ("80MS", unknown("MS", Some("ms")), "write `80ms`"),
            ("5m", unknown("m", Some("min")), "write `5min`"),
            (
                "5 parsecs",
                unknown("parsecs", None),
                "write for example `80ms`",
            ),
            (
                "8MB",
                Kind::WrongKind { found: "a size" },
                "write for example `80ms`",
            ),
            ("fast", Kind::BadNumber, "write for example `80ms`"),
            (
                "1,5s",
                Kind::BadNumber,
                "write `.` before decimals and `_` between thousands",
            ),
            ("1.s", Kind::BadNumber, "write for example `80ms`"),
            ("1 000ms", Kind::BadNumber, "write for example `80ms`"),
            ("-80ms", Kind::Negative, "write for example `80ms`"),
            ("inf s", Kind::NotFinite, "write for example `80ms`"),
            ("NaN", Kind::NotFinite, "write for example `80ms`"),
            ("1e400s", Kind::TooLarge, "write for example `80ms`"),
            (
                "18446744073709551616ns",
                Kind::TooLarge,
                "write for example `80ms`",
            ),
            ("1e-400s", Kind::Fractional, "write for example `80ms`"),
            ("0.4ns", Kind::Fractional, "write for example `80ms`"),
        ] {
            let error = text.parse::<Span>().unwrap_err();
            assert_eq!(
                (&error.kind, error.hint().as_deref()),
                (&kind, Some(hint)),
                "{text}"
            );
        }
    }

    #[test]
    fn arithmetic() {
        let ms = Span::from_millis;
        assert_eq!(ms(3) + ms(4) - ms(2), ms(5));
        assert_eq!(
            (ms(3) * 4 / 2, ms(3).saturating_sub(ms(4))),
            (ms(6), Span::ZERO)
        );
        assert_eq!(
            (ms(3).mul_f64(1.5), ms(3).mul_f64(-1.0)),
            (Span::from_micros(4500), Span::ZERO)
        );
        assert_eq!(
            (Span(3).mul_f64(0.5), Span(1).mul_f64(0.49)),
            (Span(2), Span::ZERO)
        );
        assert_eq!(
            (Span::MAX + ms(1), Span::MAX * 2, Span::MAX.mul_f64(2.0)),
            (Span::MAX, Span::MAX, Span::MAX)
        );
        assert_eq!(
            (
                ms(3).ratio(ms(2)),
                ms(3).as_millis_f64(),
                ms(3).as_secs_f64()
            ),
            (1.5, 3.0, 0.003)
        );
        assert_eq!(ms(3).min(ms(2)).max(Span::ZERO), ms(2));
    }
}
