//! [`ParseQuantityError`]: which unit was expected, and what to write instead.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use core::fmt;

use super::{self as quantity, Expected};

/// Why a text could not be read as a quantity.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", Message(self))]
#[non_exhaustive]
pub struct ParseQuantityError {
    /// What was due, with its article: `a rate`.
    pub expected: &'static str,
    /// The text that was read.
    pub text: String,
    /// Kind of mistake.
    pub kind: QuantityErrorKind,
    /// The units that are accepted here.
    pub accepted: &'static [&'static str],
    pub(crate) spec: &'static Expected,
}

/// What is wrong with the text of a [`ParseQuantityError`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QuantityErrorKind {
    /// There is nothing but blanks.
    Empty,
    /// A bare number.
    NoUnit,
    /// No quantity has this unit.
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The accepted unit most likely meant.
        nearest: Option<&'static str>,
    },
    /// The unit belongs to another kind of quantity, such as a size where a time is due.
    WrongKind {
        /// What the text is, with its article.
        found: &'static str,
    },
    /// The number cannot be read.
    BadNumber,
    /// Less than zero.
    Negative,
    /// Infinite or not a number.
    NotFinite,
    /// Beyond the range of the quantity.
    TooLarge,
    /// A fraction of something indivisible, such as 1.5 packets, or too small to be told from zero.
    Fractional,
}

impl ParseQuantityError {
    /// The remedy in one line without a full stop: ``write `80ms` ``.
    pub fn hint(&self) -> Option<String> {
        use QuantityErrorKind as Kind;
        let number = quantity::number_text(&self.text);
        let better = match &self.kind {
            Kind::BadNumber if self.text.contains(',') => {
                return Some("write `.` before decimals and `_` between thousands".to_owned());
            }
            Kind::NoUnit => number.map(|n| quantity::join(n, self.spec.bare_unit(n))),
            Kind::UnknownUnit {
                nearest: Some(unit),
                ..
            } if *unit == quantity::UNLIMITED => Some(unit.to_string()),
            Kind::UnknownUnit {
                nearest: Some(unit),
                ..
            } => number.map(|n| quantity::join(n, unit)),
            Kind::UnknownUnit {
                unit,
                nearest: None,
            } => {
                let bits = number.and_then(|n| quantity::byte_rate_in_bits(n, unit));
                if let Some(rate) = bits.filter(|rate| (self.spec.reads)(rate)) {
                    return Some(format!("a rate counts bits: write `{rate}`"));
                }
                None
            }
            Kind::NotFinite if self.accepted.contains(&quantity::UNLIMITED) => {
                Some(quantity::UNLIMITED.to_owned())
            }
            Kind::TooLarge if self.spec.bare_is_plain => Some(format!("{}%", self.text.trim())),
            _ => None,
        };
        Some(match better.filter(|text| (self.spec.reads)(text)) {
            Some(text) => format!("write `{text}`"),
            None => format!("write for example `{}`", self.spec.example),
        })
    }
}

impl PartialEq for ParseQuantityError {
    fn eq(&self, other: &Self) -> bool {
        (self.expected, &self.text, &self.kind) == (other.expected, &other.text, &other.kind)
    }
}

impl Eq for ParseQuantityError {}

struct Message<'a>(&'a ParseQuantityError);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use QuantityErrorKind as Kind;
        let ParseQuantityError {
            expected,
            text,
            kind,
            accepted,
            ..
        } = self.0;
        if *kind == Kind::Empty {
            write!(f, "expected {expected}, got nothing")?;
        } else {
            write!(f, "`{}` is not {expected}: ", Quoted(text))?;
        }
        match kind {
            Kind::Empty => {}
            Kind::NoUnit => write!(f, "the unit is missing")?,
            Kind::UnknownUnit { unit, .. } => write!(f, "unknown unit `{}`", Quoted(unit))?,
            Kind::WrongKind { found } => write!(f, "it is {found}")?,
            Kind::BadNumber => write!(f, "the number cannot be read")?,
            Kind::Negative => write!(f, "it is negative")?,
            Kind::NotFinite => write!(f, "it is not finite")?,
            Kind::TooLarge => write!(f, "it is too large")?,
            Kind::Fractional => write!(f, "it is finer than the smallest step")?,
        }
        write!(f, " (accepted units: {})", accepted.join(", "))
    }
}

/// Text of unknown origin, kept to one line of reasonable length.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_CHARS) {
            Some((end, _)) => write!(f, "{}...", self.0[..end].escape_debug()),
            None => write!(f, "{}", self.0.escape_debug()),
        }
    }
}

const QUOTED_CHARS: usize = 48;

#[cfg(test)]
mod tests {
    use crate::{Rate, Span};

    #[test]
    fn messages_are_one_line_and_name_the_units() {
        for (text, message) in [
            ("10", "`10` is not a rate: the unit is missing"),
            ("10 Mbps", "`10 Mbps` is not a rate: unknown unit `Mbps`"),
            ("2MB", "`2MB` is not a rate: it is a size"),
            ("", "expected a rate, got nothing"),
            ("a\nb", "`a\\nb` is not a rate: the number cannot be read"),
        ] {
            let units = " (accepted units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)";
            assert_eq!(
                text.parse::<Rate>().unwrap_err().to_string(),
                format!("{message}{units}")
            );
        }
        let long = "x".repeat(1000).parse::<Span>().unwrap_err().to_string();
        assert!(long.len() < 150, "{long}");
    }
}
