//! Sizes of IP and UDP headers, of the longest datagram, and the room that IPv6 needs in packets.

use std::net::{IpAddr, SocketAddr};

use fullpipe_run::RunSpec;

use crate::wire::{AckDatagram, DataDatagram};

/// Bytes of IPv4 and UDP. What a specification calls the size of a packet includes them.
pub const IPV4: usize = 28;

/// Bytes that IPv6 and UDP have more.
pub const IPV6_MORE: usize = 20;

/// Whether a datagram to there has a header of IPv6; one to a mapped address has not.
pub fn is_ipv6(to: SocketAddr) -> bool {
    match to.ip() {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.to_ipv4_mapped().is_none(),
    }
}

/// Bytes in front of a datagram to there.
pub fn bytes(to: SocketAddr) -> usize {
    match is_ipv6(to) {
        true => IPV4 + IPV6_MORE,
        false => IPV4,
    }
}

/// UDP payload of the longest datagram of a run, bytes.
pub fn longest(spec: &RunSpec) -> usize {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let segments = spec
        .flows
        .iter()
        .chain(templates)
        .map(|f| f.sender.mss as usize + DataDatagram::LEN);
    let foreign = spec.cross.iter().map(|c| usize::from(c.packet));
    let least = AckDatagram::MOST;
    segments.chain(foreign).fold(least, usize::max)
}

/// Makes `room` bytes of room in the segments of a run, so that packets are as long as before
/// although their headers are that much longer. A transfer stays as long in bytes, and so has more
/// segments.
pub fn make_room(spec: &mut RunSpec, room: usize) {
    let room = room as u32;
    let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
    for f in spec.flows.iter_mut().chain(templates) {
        let before = f.sender.mss;
        f.sender.mss = before.saturating_sub(room).max(LEAST);
        f.sender.header += room;
        let bytes = |segments: u64| segments.saturating_mul(u64::from(before));
        let transfer = f.sender.transfer.map(bytes);
        f.sender.transfer = transfer.map(|b| b.div_ceil(u64::from(f.sender.mss)));
    }
}

/// Smallest segment that a server takes.
const LEAST: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_is_one_of_ipv4() {
        for (to, expected) in [
            ("192.0.2.1:9", 28),
            ("[::ffff:192.0.2.1]:9", 28),
            ("[::1]:9", 48),
            ("[2001:db8::1]:9", 48),
        ] {
            assert_eq!(bytes(to.parse().unwrap()), expected, "{to}");
        }
    }
}
