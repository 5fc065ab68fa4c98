//! The part of an axis that is drawn.

use std::fmt;
use std::str::FromStr;

/// Part of an axis, in the unit that the axis shows; the default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Lower end; `None`: that of the axis.
    pub from: Option<f64>,
    /// Upper end; `None`: that of the axis.
    pub to: Option<f64>,
}

/// The parts of both axes of every panel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranges {
    /// Part of the horizontal axis, time as a rule.
    pub x: Range,
    /// Part of the vertical axis, the same in every panel.
    pub y: Range,
}

impl Range {
    /// True if nobody chose an end.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// True for what lies in it, its ends included.
    pub fn has(&self, x: f64) -> bool {
        self.from.is_none_or(|from| x >= from) && self.to.is_none_or(|to| x <= to)
    }

    /// True if a part of this interval lies in it.
    pub fn meets(&self, low: f64, high: f64) -> bool {
        self.from.is_none_or(|from| high >= from) && self.to.is_none_or(|to| low <= to)
    }

    /// Of what lies in it, what is nearest to `x`.
    pub(super) fn nearest(&self, x: f64) -> f64 {
        let x = self.from.map_or(x, |from| x.max(from));
        self.to.map_or(x, |to| x.min(to))
    }

    /// The same in another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            from: self.from.map(|x| x * factor),
            to: self.to.map(|x| x * factor),
        }
    }

    /// Logarithms of its ends, which are positive.
    pub(super) fn log10(self) -> Self {
        Self {
            from: self.from.map(f64::log10),
            to: self.to.map(f64::log10),
        }
    }

    /// What it says of the ends of an axis, with those that it leaves open.
    pub(super) fn ends(&self, from: f64, to: f64) -> (f64, f64) {
        match (self.from.unwrap_or(from), self.to.unwrap_or(to)) {
            (from, to) if from < to => (from, to),
            // A point, or nothing, is left between an end and the axis'.
            (_, to) if self.to.is_some() => (to - 1.0, to),
            (from, _) if from.is_finite() => (from, from + 1.0),
            _ => (0.0, 1.0),
        }
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "expected `FROM:TO`, `FROM:` or `:TO`, numbers of the axis".to_owned();
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(x) if x.abs() <= LARGEST => Ok(Some(x)),
                _ => Err(form()),
            },
        };
        let (from, to) = text.split_once(':').ok_or_else(form)?;
        let range = Self {
            from: end(from)?,
            to: end(to)?,
        };
        match (range.from, range.to) {
            (None, None) => Err(form()),
            (Some(from), Some(to)) if from >= to => {
                Err("it ends where it begins, or before".into())
            }
            (Some(from), Some(to)) if to - from < NARROWEST * from.abs().max(to.abs()) => {
                Err("it is too narrow for numbers beside it".into())
            }
            _ => Ok(range),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
        write!(f, "{}:{}", end(self.from), end(self.to))
    }
}

/// Beyond it ticks and coordinates lose their digits; no axis shows so much.
const LARGEST: f64 = 1e15;
/// Of its larger end: below it, neighbouring ticks read alike.
const NARROWEST: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_may_be_open() {
        let of = |text: &str| text.parse::<Range>().unwrap();
        assert_eq!((of("2:5").from, of("2:5").to), (Some(2.0), Some(5.0)));
        assert_eq!((of("-1e3:").from, of(":.5").to), (Some(-1e3), Some(0.5)));
        assert!(of("2:").has(2.0) && of("2:").has(1e9) && !of("2:").has(1.9));
        assert!(of("2:5").meets(1.0, 9.0) && !of("2:5").meets(5.1, 9.0));
        assert_eq!(of(" 2 : 5 ").to_string(), "2:5");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            ":",
            "5",
            "5-6",
            "a:b",
            "5:5",
            "6:5",
            "nan:1",
            "0:inf",
            "0:1e300",
            "1:2:3",
            "1000000:1000000.1",
        ] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
