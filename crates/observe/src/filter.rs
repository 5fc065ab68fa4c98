//! Which flows count: by network of the remote address and by port.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::socket_diag::Socket;

/// Which flows count; one without a condition takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Networks of the remote address, any of them.
    pub remote: Vec<Network>,
    /// Ports of either side, any of them.
    pub ports: Vec<u16>,
    /// Flows between addresses of this host's loopback count too.
    pub loopback: bool,
}

impl Filter {
    /// Whether it takes this socket.
    pub fn takes(&self, socket: &Socket) -> bool {
        (self.loopback || !is_within_host(socket)) && self.meets(socket)
    }

    /// Whether it would take this socket if flows within this host counted, and they do not.
    pub fn leaves_within_host(&self, socket: &Socket) -> bool {
        !self.loopback && is_within_host(socket) && self.meets(socket)
    }

    fn meets(&self, socket: &Socket) -> bool {
        let has = |at: SocketAddr| self.ports.contains(&at.port());
        let remote = socket.remote.ip();
        (self.ports.is_empty() || has(socket.local) || has(socket.remote))
            && (self.remote.is_empty() || self.remote.iter().any(|n| n.holds(remote)))
    }
}

fn is_within_host(socket: &Socket) -> bool {
    socket.remote.ip().to_canonical().is_loopback()
}

/// Addresses with the same first bits: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Its address and how many bits of it are the network's.
    pub fn prefix(&self) -> (IpAddr, u32) {
        (self.address, self.bits)
    }

    /// Whether this address is one of them.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                differ.leading_zeros() >= self.bits
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                differ.leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("`{address}` is not an IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits.map(str::parse) {
            None => most,
            Some(Ok(bits)) if bits <= most => bits,
            Some(_) => return Err(format!("after `/` stand 0 to {most} bits")),
        };
        // Flows have the IPv4 address that a mapped one stands for.
        Ok(match address.to_canonical() {
            v4 @ IpAddr::V4(_) if bits + 32 >= most => Self {
                address: v4,
                bits: bits + 32 - most,
            },
            _ => Self { address, bits },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.holds(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_addresses_with_its_first_bits() {
        assert!(holds("192.0.2.0/24", "192.0.2.255"));
        assert!(!holds("192.0.2.0/24", "192.0.3.0"));
        assert!(holds("192.0.2.1", "::ffff:192.0.2.1"), "a mapped address");
        assert!(!holds("192.0.2.1", "192.0.2.0"));
        assert!(holds("::ffff:192.0.2.1", "192.0.2.1"), "a mapped network");
        assert!(holds("::ffff:192.0.2.0/120", "::ffff:192.0.2.255"));
        assert!(!holds("::ffff:192.0.2.0/120", "192.0.3.0"));
        assert!(holds("::ffff:0:0/96", "203.0.113.9"));
        assert!(!holds("::ffff:0:0/95", "2001:db8::1"));
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1"));
        for (bad, what) in [
            ("host", "not an IP address"),
            ("10.0.0.0/33", "0 to 32"),
            ("::/x", "128"),
        ] {
            let error = bad.parse::<Network>().unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn conditions_are_all_met() {
        let socket = |local: &str, remote: &str| Socket {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            ..Socket::default()
        };
        let out = socket("192.0.2.1:40000", "198.51.100.7:443");
        let here = socket("127.0.0.1:40000", "127.0.0.1:443");
        let all = Filter::default();
        assert!(all.takes(&out) && !all.takes(&here));
        let loopback = Filter {
            loopback: true,
            ..Filter::default()
        };
        assert!(loopback.takes(&here));
        assert!(all.leaves_within_host(&here) && !all.leaves_within_host(&out));
        assert!(!loopback.leaves_within_host(&here));
        let port = |ports| Filter {
            ports,
            ..Filter::default()
        };
        assert!(port(vec![443]).takes(&out) && port(vec![1, 40_000]).takes(&out));
        assert!(!port(vec![80]).takes(&out));
        assert!(port(vec![443]).leaves_within_host(&here));
        assert!(!port(vec![80]).leaves_within_host(&here));
        let net = Filter {
            remote: vec!["198.51.100.0/24".parse().unwrap()],
            ports: vec![443],
            loopback: false,
        };
        assert!(net.takes(&out));
        assert!(!net.takes(&socket("192.0.2.1:443", "203.0.113.7:443")));
    }
}
