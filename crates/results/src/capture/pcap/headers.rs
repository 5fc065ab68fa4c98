//! IPv4 and TCP headers as bytes, with their checksums.

use std::net::SocketAddrV4;

/// The fields of a TCP header that differ from packet to packet.
pub(super) struct Tcp {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u16,
    pub(super) window: u16,
    pub(super) options: Vec<u8>,
    pub(super) payload: u32,
    /// ECN field of the IP header.
    pub(super) ecn: u8,
    pub(super) id: u16,
}

/// IPv4 and TCP headers of a packet.
pub(super) fn packet(from: SocketAddrV4, to: SocketAddrV4, t: &Tcp) -> Vec<u8> {
    let tcp_header = 20 + t.options.len() as u32;
    let mut p = Vec::with_capacity(20 + tcp_header as usize);
    // More than fits is 0, as with segments that an interface is to cut.
    let total = u16::try_from(20 + tcp_header + t.payload).unwrap_or(0);
    p.extend([0x45, t.ecn]);
    p.extend(total.to_be_bytes());
    p.extend(t.id.to_be_bytes());
    p.extend(DONT_FRAGMENT.to_be_bytes());
    p.extend([TIME_TO_LIVE, TCP, 0, 0]);
    p.extend(from.ip().octets());
    p.extend(to.ip().octets());
    let check = !folded(sum(&p));
    p[10..12].copy_from_slice(&check.to_be_bytes());

    p.extend(from.port().to_be_bytes());
    p.extend(to.port().to_be_bytes());
    p.extend(t.seq.to_be_bytes());
    p.extend(t.ack.to_be_bytes());
    let offset_and_flags = (tcp_header as u16 / 4) << 12 | t.flags;
    p.extend(offset_and_flags.to_be_bytes());
    p.extend(t.window.to_be_bytes());
    p.extend([0; 4]);
    p.extend(&t.options);
    // Pseudo header: the addresses, the protocol, the length. Zeros of the payload add nothing.
    let length = tcp_header + t.payload;
    let pseudo = sum(&p[12..20]) + u32::from(TCP) + (length >> 16) + (length & 0xffff);
    let check = !folded(pseudo + sum(&p[20..]));
    p[36..38].copy_from_slice(&check.to_be_bytes());
    p
}

/// Sum of 16-bit words (RFC 1071); headers have an even length.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const TCP: u8 = 6;
pub(super) const NOP: u8 = 1;
pub(super) const SYN: u16 = 0x002;
pub(super) const PSH: u16 = 0x008;
pub(super) const ACK: u16 = 0x010;
pub(super) const ECE: u16 = 0x040;
pub(super) const CWR: u16 = 0x080;
pub(super) const ECT_0: u8 = 2;
pub(super) const CE: u8 = 3;
