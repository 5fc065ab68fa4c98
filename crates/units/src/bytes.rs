//! [`Bytes`]: an amount of data.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::ParseQuantityError;
use crate::quantity::{self, Dim, Expected, Finest};

/// An amount of data in bytes. Arithmetic overflows like `u64` does (a panic with debug
/// assertions).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// The most that can be counted.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, or zero if `other` is more.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, factor: u64) -> Bytes {
        Bytes(self.0 * factor)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// Reads `8MB` or `2MiB`; a fraction of a byte is an error.
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        quantity::parse(text, &BYTES)?
            .whole(Finest::Exact)
            .map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// Decimal or binary units, whichever is shorter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = quantity::exact(self.0, quantity::DECIMAL_SIZES).unwrap_or_default();
        let binary = quantity::exact(self.0, quantity::BINARY_SIZES);
        f.pad(
            &binary
                .filter(|b| b.len() < decimal.len())
                .unwrap_or(decimal),
        )
    }
}

static BYTES: Expected = Expected {
    noun: "a size",
    dims: &[Dim::Size],
    accepted: &["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"],
    bare: ["MB", "B"],
    bare_is_plain: false,
    example: "8MB",
    reads: |text| text.parse::<Bytes>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn prints_and_reads_decimal_and_binary() {
        for (bytes, text) in [
            (0, "0B"),
            (999, "999B"),
            (1500, "1.5kB"),
            (1024, "1KiB"),
            (2 << 20, "2MiB"),
            (2_000_000, "2MB"),
            (3 << 29, "1.5GiB"),
            (6_220_000, "6.22MB"),
            (3 << 39, "1.5TiB"),
            (u64::MAX, "18446744073709551.615kB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        assert_eq!("0.001 MB".parse(), Ok(Bytes(1000)));
        assert_eq!("9.31322574615478515625e-10GiB".parse(), Ok(Bytes(1)));
    }

    #[test]
    fn refuses_with_a_remedy() {
        for (text, kind, hint) in [
            ("8", Kind::NoUnit, "write `8MB`"),
            ("1500", Kind::NoUnit, "write `1500B`"),
            ("1.5B", Kind::Fractional, "write for example `8MB`"),
            ("0.1KiB", Kind::Fractional, "write for example `8MB`"),
            (
                "1.5000000000000000000000000000001kB",
                Kind::Fractional,
                "write for example `8MB`",
            ),
            (
                "80ms",
                Kind::WrongKind { found: "a time" },
                "write for example `8MB`",
            ),
            (
                "8MBytes",
                Kind::UnknownUnit {
                    unit: "MBytes".into(),
                    nearest: Some("MB"),
                },
                "write `8MB`",
            ),
            (
                "8KB",
                Kind::UnknownUnit {
                    unit: "KB".into(),
                    nearest: Some("kB"),
                },
                "write `8kB`",
            ),
            (
                "8Gi",
                Kind::UnknownUnit {
                    unit: "Gi".into(),
                    nearest: Some("GiB"),
                },
                "write `8GiB`",
            ),
        ] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert_eq!(
                (&error.kind, error.hint().as_deref()),
                (&kind, Some(hint)),
                "{text}"
            );
        }
    }

    #[test]
    fn arithmetic() {
        let mut sum = Bytes(1500) * 3 + Bytes(1) - Bytes(2);
        sum += Bytes(10);
        sum -= Bytes(9);
        assert_eq!(sum.get(), 4500);
        assert_eq!(
            (sum, Bytes::new(1).saturating_sub(sum)),
            (Bytes(4500), Bytes::ZERO)
        );
    }
}
