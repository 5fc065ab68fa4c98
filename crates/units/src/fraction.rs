//! [`Fraction`]: a fraction of a whole, such as a loss probability.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, Dim, Expected};
use crate::{ParseQuantityError, QuantityErrorKind};

/// A part of a whole, from 0 to 1 inclusive.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Fraction(f64);

impl Fraction {
    /// Nothing of it.
    pub const ZERO: Fraction = Fraction(0.0);
    /// The whole.
    pub const ONE: Fraction = Fraction(1.0);

    /// A fraction of `value`, or `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Fraction> {
        // Adding zero turns -0 into 0, which prints without a sign.
        (0.0..=1.0)
            .contains(&value)
            .then_some(Fraction(value + 0.0))
    }

    /// The value, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Fraction {
    type Err = ParseQuantityError;
    /// Reads `2%`, or `0.02`: a fraction has no unit.
    fn from_str(text: &str) -> Result<Fraction, ParseQuantityError> {
        let found = quantity::parse(text, &FRACTION)?;
        let value = found.real()?;
        Fraction::new(value).ok_or_else(|| found.error(QuantityErrorKind::TooLarge))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", percent(self.0)))
    }
}

/// The shortest decimal of `value` with its point two places to the right. A product with 100 would
/// be rounded and might not read back as the same value.
fn percent(value: f64) -> String {
    let text = value.to_string();
    let (int, frac) = text.split_once('.').unwrap_or((&text, ""));
    let (moved, left) = frac.split_at(frac.len().min(2));
    let whole = format!("{int}{moved:0<2}");
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    if left.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{left}")
    }
}

static FRACTION: Expected = Expected {
    noun: "a fraction",
    dims: &[Dim::Percent],
    accepted: &["%"],
    bare: ["%", "%"],
    bare_is_plain: true,
    example: "2%",
    reads: |text| text.parse::<Fraction>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn prints_reads_refuses() {
        for (value, text) in [
            (0.0, "0%"),
            (0.02, "2%"),
            (0.07, "7%"),
            (0.5, "50%"),
            (1.0, "100%"),
            (0.125, "12.5%"),
            (1e-7, "0.00001%"),
        ] {
            assert_eq!(Fraction(value).to_string(), text);
            assert_eq!(text.parse(), Ok(Fraction(value)));
        }
        assert_eq!("0.02".parse(), Ok(Fraction(0.02)));
        assert_eq!("1e-4 %".parse(), Ok(Fraction(1e-6)));
        assert_eq!(Fraction::new(-0.0).unwrap().to_string(), "0%");
        assert_eq!((Fraction::new(1.1), Fraction::new(f64::NAN)), (None, None));
        let error = "2".parse::<Fraction>().unwrap_err();
        assert_eq!(
            (&error.kind, error.hint().as_deref()),
            (&Kind::TooLarge, Some("write `2%`"))
        );
        assert_eq!(
            "101%".parse::<Fraction>().unwrap_err().hint().as_deref(),
            Some("write for example `2%`")
        );
        assert_eq!("-1%".parse::<Fraction>().unwrap_err().kind, Kind::Negative);
    }
}
