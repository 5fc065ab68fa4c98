//! [`BufferSize`]: size of a queue, in bytes, packets, time or BDP.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, Dim, Expected, Finest};
use crate::{Bytes, Packets, ParseQuantityError, Span};

/// The size of a buffer. Numbers are finite and not negative when read from text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BufferSize {
    /// `200 packets`
    Packets(u64),
    /// `2MB`
    Bytes(Bytes),
    /// `50ms` at the rate of the link behind it.
    Time(Span),
    /// `1BDP`, of the link's capacity and the base RTT.
    Bdp(f64),
    /// `unlimited`: never drops.
    Unlimited,
}

impl FromStr for BufferSize {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<BufferSize, ParseQuantityError> {
        if text.trim() == quantity::UNLIMITED {
            return Ok(BufferSize::Unlimited);
        }
        let found = quantity::parse(text, &BUFFER)?;
        match found.dim {
            Dim::Packets => found.whole(Finest::Exact).map(BufferSize::Packets),
            Dim::Time => found
                .whole(Finest::Rounded)
                .map(|nanos| BufferSize::Time(Span::from_nanos(nanos))),
            Dim::Bdp => found.real().map(BufferSize::Bdp),
            _ => found
                .whole(Finest::Exact)
                .map(|bytes| BufferSize::Bytes(Bytes(bytes))),
        }
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BufferSize::Packets(count) => Packets(count).fmt(f),
            BufferSize::Bytes(bytes) => bytes.fmt(f),
            BufferSize::Time(span) => span.fmt(f),
            BufferSize::Bdp(factor) => f.pad(&format!("{factor}BDP")),
            BufferSize::Unlimited => f.pad(quantity::UNLIMITED),
        }
    }
}

static BUFFER: Expected = Expected {
    noun: "a buffer size",
    dims: &[Dim::Packets, Dim::Size, Dim::Time, Dim::Bdp],
    accepted: &[
        "packets",
        "B",
        "kB",
        "MB",
        "GB",
        "TB",
        "KiB",
        "MiB",
        "GiB",
        "TiB",
        "ns",
        "us",
        "ms",
        "s",
        "min",
        "h",
        "BDP",
        quantity::UNLIMITED,
    ],
    bare: ["packets", "packets"],
    bare_is_plain: false,
    example: "200 packets",
    reads: |text| text.parse::<BufferSize>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn prints_reads_refuses() {
        for (buffer, text) in [
            (BufferSize::Packets(200), "200 packets"),
            (BufferSize::Bytes(Bytes(2_000_000)), "2MB"),
            (BufferSize::Time(Span::from_millis(50)), "50ms"),
            (BufferSize::Bdp(0.5), "0.5BDP"),
            (BufferSize::Unlimited, "unlimited"),
        ] {
            assert_eq!(buffer.to_string(), text);
            assert_eq!(text.parse(), Ok(buffer));
        }
        let error = "10Gbit/s".parse::<BufferSize>().unwrap_err();
        assert_eq!(error.kind, Kind::WrongKind { found: "a rate" });
        for (text, hint) in [
            ("200", "write `200 packets`"),
            ("1.5 packets", "write for example `200 packets`"),
            ("200 segments", "write for example `200 packets`"),
            ("infinite", "write `unlimited`"),
            ("Unlimited", "write `unlimited`"),
            ("unlimted", "write `unlimited`"),
        ] {
            assert_eq!(
                text.parse::<BufferSize>().unwrap_err().hint().as_deref(),
                Some(hint),
                "{text}"
            );
        }
    }
}
