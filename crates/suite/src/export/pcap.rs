//! Packets as tcpdump would have seen them: classic pcap with nanoseconds, raw IPv4, headers only.
//!
//! Format: libpcap's `pcap-savefile`, magic `a1b23c4d`, link type 101 (`LINKTYPE_RAW`). Headers: IPv4 (RFC 791), TCP
//! (RFC 9293), options MSS, window scale and time stamps (RFC 7323), SACK and D-SACK (RFC 2018, RFC 2883), ECN (RFC 3168).
//!
//! The simulator numbers segments and knows no bytes, so some fields follow from a rule:
//! - Segment `n` begins at `ISN + 1 + n mss`, modulo 2^32. The payload is all zero and is cut off; the TCP checksum counts it.
//! - The time stamps' clock ticks in milliseconds of virtual time. Packets too small for the option have none.
//! - The window is `window_end` in bytes, rounded up to the scale. A receiver that never limits shows the largest window TCP
//!   has, 1 GiB.
//! - The sender's own window is constant. A connection without a handshake has no SYN; one with a handshake has no separate
//!   third packet, its first data stands for it. There is no FIN.
//! - An ACK with SACK blocks is as long as its options make it; on the simulated link every ACK has the same size.
//! - The IP identification is a hash of the packet, the same in both files and another one for another copy of a segment.

use std::io::{self, Write};
use std::net::SocketAddrV4;

use fullpipe_flow::{Ack, Segment};
use fullpipe_sim::{CaptureEvent, CaptureRow, FlowSpec};
use fullpipe_units::Time;

use super::{Echoes, IP_AND_TCP, endpoints, has_stamps, millis};

/// Where the capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// At every flow's sender.
    Sender,
    /// At every flow's receiver.
    Receiver,
}

/// Writes the packets that the hosts of `flows` sent and received on this side.
///
/// # Errors
/// If `out` refuses.
pub fn write(
    out: &mut dyn Write,
    flows: &[FlowSpec],
    rows: &[CaptureRow],
    host: Host,
) -> io::Result<()> {
    let connections: Vec<Connection> = flows
        .iter()
        .enumerate()
        .map(|(i, flow)| Connection::new(i, flow, rows))
        .collect();
    out.write_all(&file_header())?;
    for row in rows {
        let connection = &connections[row.flow as usize];
        let (headers, payload) = match (host, row.event) {
            (Host::Sender, CaptureEvent::SegmentSent(s))
            | (Host::Receiver, CaptureEvent::SegmentReceived(s)) => connection.segment(&s),
            (Host::Sender, CaptureEvent::AckReceived(a))
            | (Host::Receiver, CaptureEvent::AckSent(a)) => (connection.ack(&a), 0),
            _ => continue,
        };
        let whole = headers.len() as u32 + payload;
        out.write_all(&record_header(row.at, headers.len() as u32, whole))?;
        out.write_all(&headers)?;
    }
    Ok(())
}

/// Bytes of the file's header.
pub(super) const FILE_HEADER: usize = 24;
/// Bytes of a record's header.
pub(super) const RECORD_HEADER: usize = 16;

fn file_header() -> [u8; FILE_HEADER] {
    let mut h = [0; FILE_HEADER];
    h[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    h[4..6].copy_from_slice(&2u16.to_le_bytes());
    h[6..8].copy_from_slice(&4u16.to_le_bytes());
    h[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    h[20..24].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    h
}

fn record_header(at: Time, captured: u32, whole: u32) -> [u8; RECORD_HEADER] {
    let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    let mut h = [0; RECORD_HEADER];
    h[0..4].copy_from_slice(&(seconds as u32).to_le_bytes());
    h[4..8].copy_from_slice(&(nanos as u32).to_le_bytes());
    h[8..12].copy_from_slice(&captured.to_le_bytes());
    h[12..16].copy_from_slice(&whole.to_le_bytes());
    h
}

/// What the headers of a flow have in common.
struct Connection {
    sender: SocketAddrV4,
    receiver: SocketAddrV4,
    mss: u32,
    /// Value of the MSS option: without any options (RFC 6691).
    mss_option: u16,
    stamps: bool,
    sack: bool,
    sender_ecn: bool,
    receiver_ecn: bool,
    scale: u8,
    echoes: Echoes,
}

/// The fields of a TCP header that differ from packet to packet.
struct Tcp {
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    options: Vec<u8>,
    payload: u32,
    /// ECN field of the IP header.
    ecn: u8,
    id: u16,
}

impl Connection {
    fn new(index: usize, flow: &FlowSpec, rows: &[CaptureRow]) -> Self {
        let (sender, receiver) = endpoints(index);
        let (s, r) = (&flow.sender, &flow.receiver);
        let stamps = has_stamps(flow);
        Self {
            sender,
            receiver,
            mss: s.mss,
            mss_option: (s.mss + s.header - IP_AND_TCP.min(s.header)).min(0xffff) as u16,
            stamps,
            sack: r.sack,
            sender_ecn: s.ecn,
            receiver_ecn: s.ecn && r.ecn,
            scale: scale_for(r.window.map(|w| w.saturating_mul(u64::from(s.mss)))),
            echoes: if stamps {
                Echoes::of(index, rows)
            } else {
                Echoes::default()
            },
        }
    }

    /// Headers of a segment and the length of its payload.
    fn segment(&self, s: &Segment) -> (Vec<u8>, u32) {
        let stamps = (millis(s.stamp), self.echoes.at(s.stamp));
        let id = hash(&[s.seq, s.stamp.as_nanos()]);
        let tcp = if s.syn {
            Tcp {
                seq: SENDER_ISN,
                ack: 0,
                flags: SYN | if self.sender_ecn { ECE | CWR } else { 0 },
                window: u16::MAX,
                options: self.opening_options((stamps.0, 0), SENDER_SCALE),
                payload: 0,
                ecn: 0,
                id,
            }
        } else {
            Tcp {
                seq: self.byte(s.seq),
                ack: RECEIVER_ISN.wrapping_add(1),
                flags: ACK | flag(s.push, PSH) | flag(s.cwr, CWR),
                window: SENDER_WINDOW,
                options: self.stamp_option(stamps),
                payload: self.mss,
                ecn: match (s.ce, s.ect) {
                    (true, _) => CE,
                    (false, true) => ECT_0,
                    (false, false) => 0,
                },
                id,
            }
        };
        (packet(self.sender, self.receiver, &tcp), tcp.payload)
    }

    /// Headers of an ACK.
    fn ack(&self, a: &Ack) -> Vec<u8> {
        let stamps = (a.stamp_ms, millis(a.echo));
        let room = a.window_end.saturating_sub(a.cum);
        let window = room.saturating_mul(u64::from(self.mss));
        let id = hash(&[!a.cum, u64::from(a.stamp_ms), a.echo.as_nanos()]);
        let tcp = if a.syn {
            Tcp {
                seq: RECEIVER_ISN,
                ack: self.byte(a.cum),
                flags: SYN | ACK | flag(self.receiver_ecn, ECE),
                window: window.min(0xffff) as u16,
                options: self.opening_options(stamps, self.scale),
                payload: 0,
                ecn: 0,
                id,
            }
        } else {
            let mut options = self.stamp_option(stamps);
            self.sack_option(a, &mut options);
            Tcp {
                seq: RECEIVER_ISN.wrapping_add(1),
                ack: self.byte(a.cum),
                flags: ACK | flag(a.ece, ECE),
                window: window.div_ceil(1 << self.scale).min(0xffff) as u16,
                options,
                payload: 0,
                ecn: 0,
                id,
            }
        };
        packet(self.receiver, self.sender, &tcp)
    }

    /// Sequence number of a segment's first byte.
    fn byte(&self, segment: u64) -> u32 {
        let offset = segment.wrapping_mul(u64::from(self.mss)) as u32;
        SENDER_ISN.wrapping_add(1).wrapping_add(offset)
    }

    fn opening_options(&self, stamps: (u32, u32), scale: u8) -> Vec<u8> {
        let [high, low] = self.mss_option.to_be_bytes();
        let mut o = vec![2, 4, high, low];
        match (self.sack, self.stamps) {
            (true, true) => o.extend([4, 2]),
            (true, false) => o.extend([NOP, NOP, 4, 2]),
            (false, true) => o.extend([NOP, NOP]),
            (false, false) => {}
        }
        if self.stamps {
            stamp_into(stamps, &mut o);
        }
        o.extend([NOP, 3, 3, scale]);
        o
    }

    fn stamp_option(&self, stamps: (u32, u32)) -> Vec<u8> {
        let mut o = Vec::new();
        if self.stamps {
            o.extend([NOP, NOP]);
            stamp_into(stamps, &mut o);
        }
        o
    }

    /// As many blocks as the header has room for: three beside time stamps, otherwise four.
    fn sack_option(&self, a: &Ack, options: &mut Vec<u8>) {
        let blocks = a.sacks.len().min(if self.stamps { 3 } else { 4 });
        if blocks == 0 {
            return;
        }
        options.extend([NOP, NOP, 5, 2 + 8 * blocks as u8]);
        for block in a.sacks.iter().take(blocks) {
            options.extend(self.byte(block.start).to_be_bytes());
            options.extend(self.byte(block.end).to_be_bytes());
        }
    }
}

fn stamp_into((value, echo): (u32, u32), options: &mut Vec<u8>) {
    options.extend([8, 10]);
    options.extend(value.to_be_bytes());
    options.extend(echo.to_be_bytes());
}

/// IPv4 and TCP headers of a packet.
fn packet(from: SocketAddrV4, to: SocketAddrV4, t: &Tcp) -> Vec<u8> {
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

/// Smallest shift with which the window fits 16 bits, at most 14 (RFC 7323 section 2.3).
fn scale_for(window: Option<u64>) -> u8 {
    let fits = |s: &u8| window.is_some_and(|w| w <= 0xffff << *s);
    (0..MOST_SCALE).find(fits).unwrap_or(MOST_SCALE)
}

fn flag(set: bool, bit: u16) -> u16 {
    if set { bit } else { 0 }
}

/// FNV-1a of the words, folded.
fn hash(words: &[u64]) -> u16 {
    let bytes = words.iter().flat_map(|w| w.to_le_bytes());
    let h = bytes.fold(0x811c_9dc5_u32, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    (h ^ (h >> 16)) as u16
}

pub(super) const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Longest headers: 20 bytes of IP, 60 of TCP.
const SNAP_LENGTH: u32 = 80;
const LINKTYPE_RAW: u32 = 101;

pub(super) const SENDER_ISN: u32 = 1_000_000;
const RECEIVER_ISN: u32 = 2_000_000;
const SENDER_WINDOW: u16 = 512;
const SENDER_SCALE: u8 = 7;
const MOST_SCALE: u8 = 14;

const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const TCP: u8 = 6;
const NOP: u8 = 1;
const SYN: u16 = 0x002;
const PSH: u16 = 0x008;
const ACK: u16 = 0x010;
const ECE: u16 = 0x040;
const CWR: u16 = 0x080;
const ECT_0: u8 = 2;
const CE: u8 = 3;

#[cfg(test)]
mod tests {
    use fullpipe_flow::{Range, SackBlocks};
    use fullpipe_units::Span;

    use super::*;
    use crate::export::testing::{ack, ack_row, flow, received, segment, sent};

    /// A record taken apart, by the RFCs' drawings and not by the writer's code.
    struct Seen {
        at_ns: u64,
        whole: u32,
        ip: Vec<u8>,
    }

    impl Seen {
        fn u16(&self, at: usize) -> u16 {
            u16::from_be_bytes(self.ip[at..at + 2].try_into().unwrap())
        }

        fn u32(&self, at: usize) -> u32 {
            u32::from_be_bytes(self.ip[at..at + 4].try_into().unwrap())
        }

        fn flags(&self) -> u16 {
            self.u16(32) & 0xfff
        }

        /// Options by kind, without NOPs.
        fn options(&self) -> Vec<(u8, Vec<u8>)> {
            let end = 20 + usize::from(self.ip[32] >> 4) * 4;
            assert_eq!(end, self.ip.len(), "headers, whole, and nothing else");
            let (mut at, mut found) = (40, Vec::new());
            while at < end {
                if self.ip[at] == 1 {
                    at += 1;
                    continue;
                }
                let length = usize::from(self.ip[at + 1]);
                found.push((self.ip[at], self.ip[at + 2..at + length].to_vec()));
                at += length;
            }
            assert_eq!(at, end, "options end with the header");
            found
        }

        fn option(&self, kind: u8) -> Option<Vec<u8>> {
            self.options()
                .into_iter()
                .find(|(k, _)| *k == kind)
                .map(|(_, v)| v)
        }

        /// Both checksums over the packet as it would have been, with its zeros.
        fn assert_checksums(&self) {
            assert_eq!(ones_complement(&self.ip[..20]), 0xffff, "IP checksum");
            assert_eq!(u32::from(self.u16(2)), self.whole, "IP length");
            let mut tcp = self.ip[12..20].to_vec();
            let length = (self.whole - 20) as u16;
            tcp.extend([0, 6]);
            tcp.extend(length.to_be_bytes());
            tcp.extend(&self.ip[20..]);
            tcp.resize(tcp.len() + self.whole as usize - self.ip.len(), 0);
            assert_eq!(ones_complement(&tcp), 0xffff, "TCP checksum");
        }
    }

    /// RFC 1071 the slow way: a carry is added at once, an odd byte is followed by zero.
    fn ones_complement(bytes: &[u8]) -> u16 {
        let mut total = 0u16;
        for pair in bytes.chunks(2) {
            let word = u16::from(pair[0]) << 8 | u16::from(*pair.get(1).unwrap_or(&0));
            let (sum, carry) = total.overflowing_add(word);
            total = sum + u16::from(carry);
        }
        total
    }

    fn parse(bytes: &[u8]) -> Vec<Seen> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(&bytes[..8], &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(word(20), 101, "raw IP");
        let (mut at, mut seen) = (24, Vec::new());
        while at < bytes.len() {
            let captured = word(at + 8) as usize;
            seen.push(Seen {
                at_ns: u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)),
                whole: word(at + 12),
                ip: bytes[at + 16..at + 16 + captured].to_vec(),
            });
            at += 16 + captured;
        }
        assert_eq!(at, bytes.len());
        seen
    }

    fn captured(flows: &[FlowSpec], rows: &[CaptureRow], host: Host) -> Vec<Seen> {
        let mut bytes = Vec::new();
        write(&mut bytes, flows, rows, host).unwrap();
        let seen = parse(&bytes);
        seen.iter().for_each(Seen::assert_checksums);
        seen
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_opening_negotiates_what_the_flow_uses() {
        let mut f = flow(1500, true);
        f.sender.ecn = true;
        f.receiver.window = Some(1000);
        let syn = Segment {
            syn: true,
            ..segment(0, ms(5))
        };
        let answer = Ack {
            syn: true,
            window_end: 1000,
            ..ack(0, ms(5), 25)
        };
        let rows = [sent(0, ms(5), syn), ack_row(0, ms(45), answer)];
        let seen = captured(&[f], &rows, Host::Sender);
        let [syn, answer] = seen.as_slice() else {
            panic!("two packets")
        };
        assert_eq!(syn.at_ns, 5_000_000);
        assert_eq!((syn.u16(20), syn.u16(22)), (49_152, 5001));
        assert_eq!(&syn.ip[12..20], &[10, 0, 0, 1, 10, 1, 0, 1]);
        assert_eq!(syn.flags(), SYN | ECE | CWR);
        assert_eq!(syn.option(2).unwrap(), 1460u16.to_be_bytes());
        assert!(syn.option(4).unwrap().is_empty());
        assert_eq!(syn.option(8).unwrap(), [0, 0, 0, 5, 0, 0, 0, 0]);
        assert_eq!(syn.ip.len(), 60);

        assert_eq!(answer.flags(), SYN | ACK | ECE);
        assert_eq!(answer.u32(28), SENDER_ISN + 1);
        assert_eq!(answer.option(8).unwrap(), [0, 0, 0, 25, 0, 0, 0, 5]);
        // 1000 segments of 1448 bytes are 22.1 times 65535: five bits.
        assert_eq!(answer.option(3).unwrap(), [5]);
        assert_eq!(answer.u16(34), 0xffff, "the first window is not scaled");
    }

    #[test]
    fn data_counts_in_bytes_and_echoes_the_last_ack() {
        let f = flow(1500, true);
        let data = Segment {
            push: true,
            ect: true,
            cwr: true,
            ..segment(7, ms(100))
        };
        let again = Segment {
            retransmission: true,
            ..segment(7, ms(300))
        };
        let marked = Segment { ce: true, ..data };
        let rows = [
            ack_row(0, ms(90), ack(3, ms(40), 70)),
            sent(0, ms(100), data),
            received(0, ms(120), marked),
            sent(0, ms(300), again),
        ];
        let at_sender = captured(std::slice::from_ref(&f), &rows, Host::Sender);
        let at_receiver = captured(&[f], &rows, Host::Receiver);
        let (data, again) = (&at_sender[1], &at_sender[2]);
        assert_eq!(data.u32(24), SENDER_ISN + 1 + 7 * 1448);
        assert_eq!(data.u32(28), RECEIVER_ISN + 1);
        assert_eq!(data.flags(), ACK | PSH | CWR);
        assert_eq!(data.whole, 1500);
        assert_eq!(data.ip.len(), 52);
        assert_eq!(data.ip[1], ECT_0);
        assert_eq!(data.option(8).unwrap(), [0, 0, 0, 100, 0, 0, 0, 70]);

        let [there] = at_receiver.as_slice() else {
            panic!("one packet")
        };
        assert_eq!(there.at_ns, 120_000_000);
        assert_eq!(there.ip[1], CE);
        assert_eq!(there.ip[4..8], data.ip[4..8], "same identification");
        assert_eq!(there.ip[20..], data.ip[20..], "same TCP header");
        assert_ne!(again.ip[4..6], data.ip[4..6], "another copy");
        assert_eq!(again.u32(24), data.u32(24));
    }

    #[test]
    fn acks_carry_blocks_in_bytes_duplicates_first_and_the_scaled_window() {
        let mut f = flow(1500, true);
        f.receiver.window = Some(1000);
        let mut sacks = SackBlocks::default();
        for (start, end) in [(2, 3), (10, 12), (20, 21), (30, 40)] {
            sacks.push(Range { start, end });
        }
        let a = Ack {
            sacks,
            dsack: true,
            ece: true,
            window_end: 1005,
            ..ack(5, ms(40), 70)
        };
        let small = flow(1500, false);
        let rows = [ack_row(0, ms(90), a), ack_row(1, ms(90), a)];
        let seen = captured(&[f, small], &rows, Host::Sender);
        let bytes = |n: u32| SENDER_ISN + 1 + n * 1448;
        let blocks = |o: Vec<u8>| {
            o.chunks(4)
                .map(|w| u32::from_be_bytes(w.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            blocks(seen[0].option(5).unwrap()),
            [2, 3, 10, 12, 20, 21].map(bytes),
            "beside time stamps there is room for three"
        );
        assert_eq!(seen[0].whole, 80);
        assert_eq!(seen[0].u32(28), bytes(5));
        assert_eq!(seen[0].flags(), ACK | ECE);
        assert_eq!(seen[0].u16(34), 45_250, "1448000 / 32");
        let without = blocks(seen[1].option(5).unwrap());
        assert_eq!(without.len(), 8);
        assert_eq!(without[0], SENDER_ISN + 1 + 2 * 1460);
        assert_eq!(seen[1].option(8), None);
        assert_eq!(&seen[1].ip[12..20], &[10, 1, 0, 2, 10, 0, 0, 2]);
    }

    #[test]
    fn numbers_turn_over_and_large_packets_keep_their_length() {
        let f = flow(9000, true);
        let far = 3_000_000u64;
        let rows = [sent(0, ms(1), segment(far, ms(1)))];
        let seen = captured(&[f], &rows, Host::Sender);
        let expected = (1_000_001 + far * 8948) % (1 << 32);
        assert_eq!(u64::from(seen[0].u32(24)), expected);
        assert_eq!(seen[0].whole, 9000);
    }

    #[test]
    fn scales_are_the_smallest_that_fit() {
        assert_eq!(scale_for(Some(65_535)), 0);
        assert_eq!(scale_for(Some(65_536)), 1);
        assert_eq!(scale_for(Some(33 << 20)), 10);
        assert_eq!(scale_for(Some(u64::MAX)), 14);
        assert_eq!(scale_for(None), 14);
    }
}
