//! Grammar of numbers, tables of units and the search for the unit that was meant, shared by every
//! type here.
//!
//! Numbers are kept as decimal digits until the unit is known, so integer quantities are exact over
//! the whole range of `u64` and real ones are rounded once.

use alloc::borrow::ToOwned;

mod decimal;
mod error;
mod nearest;
mod units;

pub use error::{ParseQuantityError, QuantityErrorKind};
pub(crate) use nearest::byte_rate_in_bits;
pub(crate) use units::{BINARY_SIZES, DECIMAL_SIZES, RATES, TIMES, exact, join};

use QuantityErrorKind as Kind;
use decimal::{Decimal, sign};
use nearest::nearest;
use units::TABLES;

/// Dimension of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dim {
    Time,
    Rate,
    Size,
    Segments,
    Packets,
    Bdp,
    Percent,
    /// No unit, where a bare number is a value of its own.
    Plain,
}

/// What an integer quantity does with digits below its resolution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finest {
    /// Indivisible things: refuse.
    Exact,
    /// Measured things: round to nearest, but never a non-zero value to zero.
    Rounded,
}

/// What may be read in one place.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) noun: &'static str,
    pub(crate) dims: &'static [Dim],
    pub(crate) accepted: &'static [&'static str],
    /// Likely meant by a bare number below 1000, and by a larger one.
    pub(crate) bare: [&'static str; 2],
    /// A bare number is a value of its own (fractions only).
    pub(crate) bare_is_plain: bool,
    pub(crate) example: &'static str,
    /// Whether a text reads as this quantity, so that no hint proposes what would be refused too.
    pub(crate) reads: fn(&str) -> bool,
}

/// A number with an accepted unit.
pub(crate) struct Found<'a> {
    text: &'a str,
    spec: &'static Expected,
    number: Decimal,
    pub(crate) dim: Dim,
    scale: u64,
}

/// Reads a number and a unit out of `spec.accepted`.
pub(crate) fn parse<'a>(
    text: &'a str,
    spec: &'static Expected,
) -> Result<Found<'a>, ParseQuantityError> {
    let error = |kind| Err(spec.error(text, kind));
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return error(Kind::Empty);
    }
    let (negative, unsigned) = sign(trimmed);
    if NOT_FINITE
        .iter()
        .any(|word| starts_with_ignore_case(unsigned, word))
    {
        return error(Kind::NotFinite);
    }
    let Some((number, unit)) = Decimal::split(unsigned) else {
        // A misspelt word such as `unlimted`; anything with digits is a misspelt number.
        let word = nearest(trimmed, spec).filter(|word| *word == UNLIMITED);
        return error(match word {
            Some(_) => Kind::UnknownUnit {
                unit: trimmed.to_owned(),
                nearest: word,
            },
            None => Kind::BadNumber,
        });
    };
    if negative {
        return error(Kind::Negative);
    }
    if unit.is_empty() && spec.bare_is_plain {
        return Ok(Found {
            text,
            spec,
            number,
            dim: Dim::Plain,
            scale: 1,
        });
    }
    if unit.is_empty() {
        return error(Kind::NoUnit);
    }
    let known = TABLES
        .iter()
        .find_map(|(dim, units)| units.iter().find(|u| u.name == unit).map(|u| (*dim, u)));
    match known {
        Some((dim, unit)) if spec.dims.contains(&dim) => Ok(Found {
            text,
            spec,
            number,
            dim,
            scale: unit.scale,
        }),
        Some((dim, _)) => error(Kind::WrongKind { found: dim.noun() }),
        None => error(Kind::UnknownUnit {
            unit: unit.to_owned(),
            nearest: nearest(unit, spec),
        }),
    }
}

impl Found<'_> {
    /// The value as a whole number of base units.
    pub(crate) fn whole(&self, finest: Finest) -> Result<u64, ParseQuantityError> {
        self.number
            .to_u64(self.scale, finest)
            .map_err(|kind| self.error(kind))
    }

    /// The value as a real number; for units of scale 1 and percent.
    pub(crate) fn real(&self) -> Result<f64, ParseQuantityError> {
        let shift = if self.dim == Dim::Percent { -2 } else { 0 };
        self.number.to_f64(shift).map_err(|kind| self.error(kind))
    }

    pub(crate) fn error(&self, kind: Kind) -> ParseQuantityError {
        self.spec.error(self.text, kind)
    }
}

impl Expected {
    fn error(&'static self, text: &str, kind: Kind) -> ParseQuantityError {
        ParseQuantityError {
            expected: self.noun,
            text: text.to_owned(),
            kind,
            accepted: self.accepted,
            spec: self,
        }
    }

    /// The unit most likely meant by the bare number `number`.
    pub(crate) fn bare_unit(&self, number: &str) -> &'static str {
        let small = Decimal::split(number)
            .and_then(|(n, _)| n.to_f64(0).ok())
            .is_some_and(|n| n < 1000.0);
        self.bare[usize::from(!small)]
    }
}

impl Dim {
    fn noun(self) -> &'static str {
        match self {
            Dim::Time => "a time",
            Dim::Rate => "a rate",
            Dim::Size => "a size",
            Dim::Segments => "a number of segments",
            Dim::Packets => "a number of packets",
            Dim::Bdp => "a multiple of the BDP",
            Dim::Percent => "a percentage",
            Dim::Plain => "a bare number",
        }
    }
}

/// The number at the start of `text`, as written and without its sign.
pub(crate) fn number_text(text: &str) -> Option<&str> {
    let (_, unsigned) = sign(text.trim());
    Decimal::split(unsigned).map(|(_, unit)| unsigned[..unsigned.len() - unit.len()].trim_end())
}

fn starts_with_ignore_case(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

pub(crate) const UNLIMITED: &str = "unlimited";
const NOT_FINITE: &[&str] = &["inf", "nan", "∞"];
