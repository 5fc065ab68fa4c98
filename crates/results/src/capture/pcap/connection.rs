//! The headers of one flow's packets: numbers, windows and options from segments and ACKs.

use std::net::SocketAddrV4;

use fullpipe_flow::{Ack, Segment};
use fullpipe_run::{CaptureRow, FlowSpec};

use super::headers::{ACK, CE, CWR, ECE, ECT_0, NOP, PSH, SYN, Tcp, packet};
use crate::capture::{Echoes, IP_AND_TCP, endpoints, has_stamps, millis};

/// What the headers of a flow have in common.
pub(super) struct Connection {
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

impl Connection {
    pub(super) fn new(index: usize, flow: &FlowSpec, rows: &[CaptureRow]) -> Self {
        let (sender, receiver) = endpoints(index);
        let (s, r) = (&flow.sender, &flow.receiver);
        let stamps = has_stamps(flow);
        Self {
            sender,
            receiver,
            mss: s.mss,
            mss_option: (s.mss + s.header - IP_AND_TCP.min(s.header)).min(0xffff) as u16,
            stamps,
            sack: r.sack.enabled,
            sender_ecn: s.ecn,
            receiver_ecn: s.ecn && r.ecn,
            scale: scale_for(r.window.max.map(|w| w.saturating_mul(u64::from(s.mss)))),
            echoes: if stamps {
                Echoes::of(index, rows)
            } else {
                Echoes::default()
            },
        }
    }

    /// Headers of a segment and the length of its payload.
    pub(super) fn segment(&self, s: &Segment) -> (Vec<u8>, u32) {
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
    pub(super) fn ack(&self, a: &Ack) -> Vec<u8> {
        let stamps = (a.stamp_ms, millis(a.echo));
        let room = a.window_end.saturating_sub(a.cum);
        let window = room.saturating_mul(u64::from(self.mss));
        // The fields that tell ACKs apart at either host.
        let mut told = vec![
            !a.cum,
            u64::from(a.stamp_ms),
            a.echo.as_nanos(),
            a.window_end,
        ];
        told.extend(a.sacks.iter().flat_map(|block| [block.start, block.end]));
        let id = hash(&told);
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

pub(super) const SENDER_ISN: u32 = 1_000_000;
pub(super) const RECEIVER_ISN: u32 = 2_000_000;
const SENDER_WINDOW: u16 = 512;
const SENDER_SCALE: u8 = 7;
const MOST_SCALE: u8 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_the_smallest_that_fit() {
        assert_eq!(scale_for(Some(65_535)), 0);
        assert_eq!(scale_for(Some(65_536)), 1);
        assert_eq!(scale_for(Some(33 << 20)), 10);
        assert_eq!(scale_for(Some(u64::MAX)), 14);
        assert_eq!(scale_for(None), 14);
    }
}
