//! What a key accepts.

use super::super::keys::{Key, Word};

/// What a key accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    /// Text that can be a part of a dotted key.
    Name,
    Flag,
    Word(&'static [Word]),
    Whole {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// 0 to 1, or a percentage.
    Fraction,
    Rate,
    /// A rate, or `"0bit/s"`.
    ZeroRate,
    /// Bytes, at least one.
    Size,
    /// Nanoseconds.
    Span {
        min: u64,
        max: u64,
    },
    /// Whole segments.
    Segments {
        min: u64,
        max: u64,
    },
    Window,
    /// Bytes or segments.
    Volume,
    Buffer,
    Stack,
    Seeds,
    /// `[lowest, highest]`.
    Bounds,
    /// A number, or a percentage.
    Tolerance,
    Table(&'static [Key]),
    /// `[[...]]`.
    Tables(&'static [Key]),
    OneOrMany(&'static Kind),
    /// The second for a table or a plain number, the first otherwise.
    Either(&'static Kind, &'static Kind),
    /// The word `"off"`, or a value.
    OrOff(&'static Kind),
    /// A table whose keys are checked elsewhere.
    Free,
}

/// Keys inside a key.
pub(crate) fn nested(kind: &'static Kind) -> Option<&'static [Key]> {
    match kind {
        Kind::Table(keys) => Some(keys),
        Kind::OneOrMany(inner) | Kind::OrOff(inner) => nested(inner),
        Kind::Either(first, second) => nested(first).or_else(|| nested(second)),
        _ => None,
    }
}
