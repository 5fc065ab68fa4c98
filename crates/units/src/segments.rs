//! [`Segments`]: a quantity of segments, with fractions.

use core::fmt;
use core::str::FromStr;

use crate::ParseQuantityError;
use crate::quantity::{self, Dim, Expected};

/// A quantity of segments of one MSS each; window laws need the fractional part. Only finite values
/// from zero upwards are read; others print but do not read back.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Segments(pub f64);

impl FromStr for Segments {
    type Err = ParseQuantityError;
    /// Reads `3500 segments` or `1 segment`.
    fn from_str(text: &str) -> Result<Segments, ParseQuantityError> {
        quantity::parse(text, &SEGMENTS)?.real().map(Segments)
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{} segment{}",
            self.0,
            if self.0 == 1.0 { "" } else { "s" }
        ))
    }
}

static SEGMENTS: Expected = Expected {
    noun: "a number of segments",
    dims: &[Dim::Segments],
    accepted: &["segments"],
    bare: ["segments", "segments"],
    bare_is_plain: false,
    example: "3500 segments",
    reads: |text| text.parse::<Segments>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn prints_reads_refuses() {
        for (count, text) in [
            (0.0, "0 segments"),
            (1.0, "1 segment"),
            (2.5, "2.5 segments"),
            (0.1, "0.1 segments"),
        ] {
            assert_eq!(Segments(count).to_string(), text);
            assert_eq!(text.parse(), Ok(Segments(count)));
        }
        assert_eq!("1e3segments".parse(), Ok(Segments(1000.0)));
        let error = "3500".parse::<Segments>().unwrap_err();
        assert_eq!(
            (&error.kind, error.hint().as_deref()),
            (&Kind::NoUnit, Some("write `3500 segments`"))
        );
        assert_eq!(
            "1e309 segments".parse::<Segments>().unwrap_err().kind,
            Kind::TooLarge
        );
        assert_eq!(
            "1e-400 segments".parse::<Segments>().unwrap_err().kind,
            Kind::Fractional
        );
        let found = "2 packets".parse::<Segments>().unwrap_err().kind;
        assert_eq!(
            found,
            Kind::WrongKind {
                found: "a number of packets"
            }
        );
    }
}
