//! Networks, ranges of ports, windows and rates of the path, as a policy spells them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use fullpipe_scenario::value::{Parsed, Typed, Value, Written, parsed};
use fullpipe_units::{ParseQuantityError, Rate, WindowSize};

use crate::compiled::Prefix;

/// A port or a range of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub RangeInclusive<u16>);

/// A window or a buffer, absolute or in products of the path's rate and RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size(pub WindowSize);

/// A ceiling of the rate: absolute, or a part of the path's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ceiling {
    /// `50Mbit/s`
    Rate(Rate),
    /// `path.rate*0.9`
    OfPath(f64),
}

impl Prefix {
    /// Whether it holds an address. IPv4 addresses are looked up as `::ffff:a.b.c.d`, so an IPv6
    /// network that contains `::ffff:0:0/96` holds all of them.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (own, bits) = self.mapped();
        bits == 0 || (own ^ mapped(address)) >> (128 - bits) == 0
    }

    /// Whether it holds every address of another network.
    pub fn contains(&self, other: &Prefix) -> bool {
        self.mapped().1 <= other.mapped().1 && self.holds(other.address)
    }

    /// Address and length with IPv4 as `::ffff:a.b.c.d`, as the kernel side has them.
    pub fn mapped(&self) -> (u128, u32) {
        let added = if self.address.is_ipv4() { 96 } else { 0 };
        (mapped(self.address), u32::from(self.bits) + added)
    }
}

/// An address as one of IPv6.
pub fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Parsed for Prefix {
    const WHAT: &'static str = "a network";

    fn parse(text: &str) -> Result<Self, (String, String)> {
        let example = "write for example \"192.0.2.0/24\" or \"2001:db8::/48\"";
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            let message = format!("`{address}` is not an IP address");
            let name =
                address.contains(|c: char| c.is_ascii_alphabetic()) && !address.contains(':');
            let hint = match name {
                true => "names are not looked up, because they change: write the address",
                false => example,
            };
            (message, hint.to_owned())
        })?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => longest,
            Some(bits) => match bits.parse::<u8>() {
                Ok(n) if n <= longest && !bits.starts_with('+') => n,
                _ => {
                    let message = format!("`/{bits}` is no length of a network");
                    return Err((message, format!("write /0 to /{longest}")));
                }
            },
        };
        let prefix = Prefix { address, bits };
        let network = prefix.network();
        if network != prefix {
            let message = format!("{prefix} has bits beyond its length");
            let hint = format!("write \"{network}\" for the network, \"{address}\" for the host");
            return Err((message, hint));
        }
        if let IpAddr::V6(v6) = address
            && let (Some(v4), true) = (v6.to_ipv4_mapped(), bits >= 96)
        {
            let (address, bits) = (IpAddr::V4(v4), bits - 96);
            return Ok(Prefix { address, bits });
        }
        Ok(prefix)
    }
}

impl Prefix {
    /// The same without bits beyond its length.
    fn network(&self) -> Self {
        let cleared = |value: u128, width: u32| {
            let gone = width - u32::from(self.bits);
            value
                .checked_shr(gone)
                .unwrap_or(0)
                .checked_shl(gone)
                .unwrap_or(0)
        };
        let address = match self.address {
            IpAddr::V4(v4) => {
                let bits = cleared(u128::from(v4.to_bits()), 32);
                IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(cleared(v6.to_bits(), 128))),
        };
        Self { address, ..*self }
    }
}

impl Parsed for Ports {
    const WHAT: &'static str = "a port or a range of ports";

    fn parse(text: &str) -> Result<Self, (String, String)> {
        let number = |text: &str| match text.trim().parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err((
                format!("`{}` is no port", text.trim()),
                "write for example \"443\" or \"5000-5100\"; ports are 1 to 65535".to_owned(),
            )),
        };
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            let message = "the range ends before it begins".to_owned();
            return Err((message, format!("write \"{high}-{low}\"")));
        }
        Ok(Self(low..=high))
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) => write!(f, "{low}-{high}"),
        }
    }
}

impl Parsed for Size {
    const WHAT: &'static str = "a size";

    fn parse(text: &str) -> Result<Self, (String, String)> {
        match multiple(text, "bdp")? {
            Some(factor) => Ok(Self(WindowSize::Bdp(factor))),
            None => text
                .parse()
                .map(Size)
                .map_err(|error| refused(&error, "\"8MB\", \"3500 segments\" or \"bdp*2\"")),
        }
    }
}

impl Parsed for Ceiling {
    const WHAT: &'static str = "a rate";

    fn parse(text: &str) -> Result<Self, (String, String)> {
        match multiple(text, "path.rate")? {
            Some(factor) => Ok(Self::OfPath(factor)),
            None => text
                .parse()
                .map(Self::Rate)
                .map_err(|error| refused(&error, "\"900Mbit/s\" or \"path.rate*0.9\"")),
        }
    }
}

/// The factor of `unit`, `unit*2` or `2*unit`; `None` for anything else.
fn multiple(text: &str, unit: &str) -> Result<Option<f64>, (String, String)> {
    let lower = text.to_ascii_lowercase();
    if lower.trim() == unit {
        return Ok(Some(1.0));
    }
    let factor = match lower.split_once('*').map(|(a, b)| (a.trim(), b.trim())) {
        Some((word, factor)) if word == unit => factor,
        Some((factor, word)) if word == unit => factor,
        _ => return Ok(None),
    };
    match factor.parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 && x <= 1000.0 => Ok(Some(x)),
        _ => Err((
            format!("`{factor}` is no factor"),
            format!("write for example \"{unit}*2\": above 0, at most 1000"),
        )),
    }
}

fn refused(error: &ParseQuantityError, examples: &str) -> (String, String) {
    let hint = error.hint().map(|hint| hint.replace('`', "\""));
    let hint = hint.unwrap_or_else(|| format!("write for example {examples}"));
    (error.to_string(), hint)
}

macro_rules! spelled {
    ($($type:ty)*) => {$(
        impl Typed for $type {
            fn of(value: &Value) -> Option<Self> {
                parsed(value)
            }
        }
    )*};
}

spelled!(Prefix Ports Size Ceiling);

impl Written for Ports {
    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"))
    }

    #[test]
    fn networks_are_read_and_printed() {
        for (text, printed) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8:1::/48", "2001:db8:1::/48"),
            ("::1", "::1/128"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ] {
            assert_eq!(prefix(text).to_string(), printed);
        }
    }

    #[test]
    fn a_v6_network_around_the_mapped_ones_holds_ipv4() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        for (network, holds) in [
            ("::/0", true),
            ("::/64", true),
            ("::/80", true),
            ("2000::/3", false),
            ("192.0.2.0/29", true),
            ("192.0.2.8/29", false),
            ("::ffff:192.0.2.0/120", true),
        ] {
            assert_eq!(prefix(network).holds(v4), holds, "{network}");
        }
        assert!(prefix("::/0").contains(&prefix("0.0.0.0/0")));
        assert!(!prefix("0.0.0.0/0").contains(&prefix("::/0")));
    }

    #[test]
    fn multiples_are_read_from_either_side() {
        for (text, factor) in [
            ("bdp", 1.0),
            ("bdp*2", 2.0),
            ("0.5 * BDP", 0.5),
            ("2BDP", 2.0),
        ] {
            assert_eq!(
                Size::parse(text),
                Ok(Size(WindowSize::Bdp(factor))),
                "{text}"
            );
        }
        assert_eq!(Ceiling::parse("path.rate*0.9"), Ok(Ceiling::OfPath(0.9)));
        for text in [
            "bdp*0",
            "bdp*",
            "bdp*-1",
            "bdp*inf",
            "rtt*2",
            "8",
            "path.rate",
        ] {
            assert!(Size::parse(text).is_err(), "{text}");
        }
    }
}
