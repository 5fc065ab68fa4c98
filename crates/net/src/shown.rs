//! What people are shown of others: names, reasons, addresses.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

/// Text from another host, as it may be shown: nothing that steers a terminal or turns the order of
/// what is read, not long.
pub fn shown(text: &str) -> String {
    shortened(&harmless(text), 400)
}

/// The same, however long it is.
pub fn harmless(text: &str) -> String {
    let clean = |c: char| if steers(c) { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// Control characters, line ends of Unicode, and format characters that have no width: those of
/// bidirectional text (UAX #9, table of explicit directional formatting) can make a name read as
/// another.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Text of so many characters at most, one or more: what is too much is left out of its middle, for
/// a sentence about a file begins with the name and ends with the reason.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let end = (2 * most / 3).min(most.saturating_sub(1));
    let begin = text.chars().take(most - end - 1).chain(['\u{2026}']);
    begin.chain(text.chars().skip(length - end)).collect()
}

/// An address of a host: of one that a socket of both families calls `::ffff:192.0.2.1`, that of
/// IPv4, as it is known elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Address(SocketAddr);

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            ip if ip.is_ipv4() => Self(SocketAddr::new(ip, address.port())),
            // With its zone.
            _ => Self(address),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_steer_a_terminal() {
        assert_eq!(shown("a\x1b[2Jb\nc"), "a [2Jb c");
        assert_eq!(shown("gpj.\u{202e}x\u{2066}\u{feff}ä漢"), "gpj. x  ä漢");
        let long = shown(&format!("{}: why", "x".repeat(9000)));
        assert_eq!(long.chars().count(), 400);
        assert!(
            long.starts_with("xxx") && long.ends_with("x: why"),
            "{long}"
        );
        assert_eq!(shown(&long), long);
    }

    #[test]
    fn what_is_too_long_keeps_both_ends() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 7), "ab\u{2026}hijk");
        for most in 1..4 {
            assert!(shortened("äöüß", most).chars().count() <= most);
        }
    }

    #[test]
    fn an_address_of_ipv4_has_one_spelling() {
        for (address, shown) in [
            ("[::ffff:192.0.2.1]:9", "192.0.2.1:9"),
            ("192.0.2.1:9", "192.0.2.1:9"),
            ("[fe80::1%2]:9", "[fe80::1%2]:9"),
            ("[2001:db8::1]:9", "[2001:db8::1]:9"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(Address::from(address).to_string(), shown);
            let json = serde_json::to_value(Address::from(address)).unwrap();
            assert_eq!(json, shown);
        }
    }
}
