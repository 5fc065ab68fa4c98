//! [`Rate`]: bits per second, with conversions between bytes and time.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, Dim, Expected, Finest};
use crate::{Bytes, ParseQuantityError, Span};

/// A rate in whole bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate(u64);

impl Rate {
    /// `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Rate {
        Rate(bits)
    }

    /// Bits per second.
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0
    }

    /// Megabits (10^6 bits) per second.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Time to put `bytes` on the wire, to the nearest nanosecond (halves up). At rate zero
    /// anything takes [`Span::MAX`], nothing takes no time.
    pub fn transmit(self, bytes: Bytes) -> Span {
        if bytes.0 == 0 {
            return Span::ZERO;
        }
        if self.0 == 0 {
            return Span::MAX;
        }
        // Per-packet path: below 2.3 GB one 64-bit division does, several times faster than 128
        // bits.
        if let Some(bit_nanos) = bytes.0.checked_mul(BIT_NANOS_PER_BYTE_SECOND) {
            let rest = bit_nanos % self.0;
            return Span::from_nanos(bit_nanos / self.0 + u64::from(rest >= self.0 - rest));
        }
        Span::from_nanos(clamp(transmit_wide(self.0, bytes.0)))
    }

    /// Whole bytes that pass within `span`, at most [`Bytes::MAX`].
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bit_nanos = u128::from(self.0) * u128::from(span.as_nanos());
        Bytes(clamp(bit_nanos / u128::from(BIT_NANOS_PER_BYTE_SECOND)))
    }

    /// Bandwidth-delay product: the whole bytes that fill a path of this capacity and base `rtt`.
    pub fn bdp(self, rtt: Span) -> Bytes {
        self.bytes_in(rtt)
    }
}

fn transmit_wide(rate: u64, bytes: u64) -> u128 {
    let bit_nanos = u128::from(bytes) * u128::from(BIT_NANOS_PER_BYTE_SECOND);
    (bit_nanos + u128::from(rate / 2)) / u128::from(rate)
}

fn clamp(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    /// Reads `622Mbit/s`; digits below 1 bit/s are rounded. `Mb/s` and `Mbps` are refused with a
    /// hint, because `b` and `B` are too often confused.
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        quantity::parse(text, &RATE)?
            .whole(Finest::Rounded)
            .map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&quantity::exact(self.0, quantity::RATES).unwrap_or_default())
    }
}

/// 8 bits per byte times 10^9 nanoseconds per second.
const BIT_NANOS_PER_BYTE_SECOND: u64 = 8_000_000_000;

static RATE: Expected = Expected {
    noun: "a rate",
    dims: &[Dim::Rate],
    accepted: &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    bare: ["Mbit/s", "bit/s"],
    bare_is_plain: false,
    example: "10Mbit/s",
    reads: |text| text.parse::<Rate>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityErrorKind as Kind;
    use proptest::prelude::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn transmit_times_are_exact() {
        let packet = Bytes(1500);
        assert_eq!(rate("1Gbit/s").transmit(packet), Span::from_nanos(12_000));
        assert_eq!(rate("622Mbit/s").transmit(packet), Span::from_nanos(19_293)); // 19292.6
        assert_eq!(rate("10Gbit/s").transmit(packet), Span::from_nanos(1_200));
        assert_eq!(rate("400Gbit/s").transmit(packet), Span::from_nanos(30));
        assert_eq!(rate("16Gbit/s").transmit(Bytes(1)), Span::from_nanos(1)); // a half rounds up
        assert_eq!(rate("16000000001bit/s").transmit(Bytes(1)), Span::ZERO);
        assert_eq!(
            rate("1Gbit/s").transmit(Bytes(10_000_000_000)),
            Span::from_secs(80)
        );
        assert_eq!(rate("1bit/s").transmit(Bytes::MAX), Span::MAX);
        assert_eq!(
            rate("3bit/s").transmit(Bytes(2)),
            Span::from_nanos(5_333_333_333)
        );
        assert_eq!(rate("0bit/s").transmit(packet), Span::MAX);
        assert_eq!(rate("0bit/s").transmit(Bytes::ZERO), Span::ZERO);
    }

    #[test]
    fn bytes_in_a_span() {
        assert_eq!(
            rate("1Gbit/s").bytes_in(Span::from_nanos(12_000)),
            Bytes(1500)
        );
        assert_eq!(
            rate("1Gbit/s").bytes_in(Span::from_nanos(11_999)),
            Bytes(1499)
        );
        assert_eq!(
            rate("622Mbit/s").bdp(Span::from_millis(80)),
            Bytes(6_220_000)
        );
        assert_eq!(
            rate("400Gbit/s").bdp(Span::from_millis(100)),
            Bytes(5_000_000_000)
        );
        assert_eq!(Rate(u64::MAX).bytes_in(Span::MAX), Bytes::MAX);
    }

    #[test]
    fn prints_and_reads() {
        for text in [
            "0bit/s",
            "9.6kbit/s",
            "622Mbit/s",
            "2.5Gbit/s",
            "1Tbit/s",
            "622.08Mbit/s",
        ] {
            assert_eq!(rate(text).to_string(), text);
        }
        assert_eq!(rate("1e4 Mbit/s").to_string(), "10Gbit/s");
        assert_eq!(rate("622Mbit/s").as_mbps(), 622.0);
    }

    #[test]
    fn refuses_with_a_remedy() {
        let unknown = |unit: &str, nearest| Kind::UnknownUnit {
            unit: unit.into(),
            nearest,
        };
        for (text, kind, hint) in [
            ("10", Kind::NoUnit, "write `10Mbit/s`"),
            ("622000000", Kind::NoUnit, "write `622000000bit/s`"),
            (
                "10Mbps",
                unknown("Mbps", Some("Mbit/s")),
                "write `10Mbit/s`",
            ),
            (
                "10 Mb/s",
                unknown("Mb/s", Some("Mbit/s")),
                "write `10Mbit/s`",
            ),
            (
                "10gbit",
                unknown("gbit", Some("Gbit/s")),
                "write `10Gbit/s`",
            ),
            (
                "10Gbti/s",
                unknown("Gbti/s", Some("Gbit/s")),
                "write `10Gbit/s`",
            ),
            (
                "10MB/s",
                unknown("MB/s", None),
                "a rate counts bits: write `80Mbit/s`",
            ),
            (
                "10GBps",
                unknown("GBps", None),
                "a rate counts bits: write `80Gbit/s`",
            ),
            (
                "10MB",
                Kind::WrongKind { found: "a size" },
                "write for example `10Mbit/s`",
            ),
        ] {
            let error = text.parse::<Rate>().unwrap_err();
            assert_eq!(
                (&error.kind, error.hint().as_deref()),
                (&kind, Some(hint)),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn narrow_and_wide_divisions_agree(rate in prop_oneof![1u64..100, 1u64..], bytes in 1u64..2_300_000_000) {
            prop_assert_eq!(u128::from(Rate(rate).transmit(Bytes(bytes)).as_nanos()), transmit_wide(rate, bytes));
        }

        #[test]
        fn what_was_sent_fits_the_time_it_took(mbps in 1u64..400_000, bytes in 1u64..1_000_000_000) {
            let rate = Rate(mbps * 1_000_000);
            let back = rate.bytes_in(rate.transmit(Bytes(bytes))).0;
            // Half a nanosecond of rounding is at most 25 bytes at 400 Gbit/s, plus the cut byte.
            prop_assert!(back.abs_diff(bytes) <= 26);
        }
    }
}
