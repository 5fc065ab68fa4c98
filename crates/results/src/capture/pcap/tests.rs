//! Packets taken apart by the drawings of the RFCs.

use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_units::Span;

use super::connection::{RECEIVER_ISN, SENDER_ISN};
use super::headers::{ACK, CE, CWR, ECE, ECT_0, PSH, SYN};
use super::*;
use crate::capture::testing::{ack, ack_row, flow, received, segment, sent};

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
    f.receiver.window.max = Some(1000);
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
    f.receiver.window.max = Some(1000);
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
