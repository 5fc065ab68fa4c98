//! [`Packets`]: a whole number of packets.

use core::fmt;
use core::str::FromStr;

use crate::ParseQuantityError;
use crate::quantity::{self, Dim, Expected, Finest};

/// A whole number of packets, as queues count them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Packets(pub u64);

impl FromStr for Packets {
    type Err = ParseQuantityError;
    /// Reads `200 packets` or `1 packet`; a fraction of a packet is an error.
    fn from_str(text: &str) -> Result<Packets, ParseQuantityError> {
        quantity::parse(text, &PACKETS)?
            .whole(Finest::Exact)
            .map(Packets)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{} packet{}",
            self.0,
            if self.0 == 1 { "" } else { "s" }
        ))
    }
}

static PACKETS: Expected = Expected {
    noun: "a number of packets",
    dims: &[Dim::Packets],
    accepted: &["packets"],
    bare: ["packets", "packets"],
    bare_is_plain: false,
    example: "200 packets",
    reads: |text| text.parse::<Packets>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;

    #[test]
    fn prints_reads_refuses() {
        for (count, text) in [
            (0, "0 packets"),
            (1, "1 packet"),
            (u64::MAX, "18446744073709551615 packets"),
        ] {
            assert_eq!(Packets(count).to_string(), text);
            assert_eq!(text.parse(), Ok(Packets(count)));
        }
        assert_eq!("2e2packets".parse(), Ok(Packets(200)));
        assert_eq!(
            "1.5 packets".parse::<Packets>().unwrap_err().kind,
            Kind::Fractional
        );
        let error = "200 pkts".parse::<Packets>().unwrap_err();
        assert_eq!(error.hint().as_deref(), Some("write `200 packets`"));
    }
}
