//! A packet inside the simulator: 32 bytes, `Copy`. What does not fit a plain ACK waits in a side store.

use fullpipe_flow::{Ack, SackBlocks, Segment};
use fullpipe_units::Time;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Segment number, or cumulative acknowledgement.
    pub seq: u64,
    /// Time stamp, or its echo.
    pub stamp: Time,
    /// Index of the flow.
    pub flow: u32,
    /// 0, or one plus the index of the ACK's options in the store.
    options: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Links crossed so far.
    pub hop: u8,
    /// Kind and header bits.
    marks: u8,
    /// An ACK's own time stamp, milliseconds.
    stamp_ms: u32,
}

/// An ACK.
const ACK: u8 = 1;
/// A SYN or its answer.
const SYN: u8 = 2;
/// Data: sent before. ACK: reports a duplicate.
const AGAIN: u8 = 4;
/// ECN-capable.
const ECT: u8 = 8;
/// Data: marked by the network. ACK: echo of a mark.
const MARKED: u8 = 16;
/// Congestion window reduced.
const CWR: u8 = 32;
/// Pushed by the application.
const PUSH: u8 = 64;

#[inline]
fn mark(bit: u8, set: bool) -> u8 {
    if set { bit } else { 0 }
}

/// Options of an ACK that is not plain.
#[derive(Clone, Copy, Debug)]
struct Options {
    sacks: SackBlocks,
    window_end: u64,
}

/// Options of the ACKs in flight.
#[derive(Debug, Default)]
pub struct OptionStore {
    slots: Vec<Options>,
    free: Vec<u32>,
}

impl Packet {
    /// Fills free slots.
    pub const NONE: Self = Self {
        seq: 0,
        stamp: Time::ZERO,
        flow: 0,
        options: 0,
        size: 0,
        hop: 0,
        marks: 0,
        stamp_ms: 0,
    };

    /// A data segment or SYN of `size` bytes.
    #[inline]
    pub fn data(flow: u32, size: u16, s: &Segment) -> Self {
        Self {
            seq: s.seq,
            stamp: s.stamp,
            flow,
            options: 0,
            size,
            hop: 0,
            marks: mark(SYN, s.syn)
                | mark(AGAIN, s.retransmission)
                | mark(ECT, s.ect)
                | mark(MARKED, s.ce)
                | mark(CWR, s.cwr)
                | mark(PUSH, s.push),
            stamp_ms: 0,
        }
    }

    /// An ACK of `size` bytes; what is not plain goes to `store`.
    #[inline]
    pub fn ack(flow: u32, size: u16, a: &Ack, store: &mut OptionStore) -> Self {
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX;
        Self {
            seq: a.cum,
            stamp: a.echo,
            flow,
            options: if plain { 0 } else { store.put(a) },
            size,
            hop: 0,
            marks: ACK | mark(SYN, a.syn) | mark(AGAIN, a.dsack) | mark(MARKED, a.ece),
            stamp_ms: a.stamp_ms,
        }
    }

    /// True for an ACK.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.marks & ACK != 0
    }

    /// True for a segment of data, not a SYN.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.marks & (ACK | SYN) == 0
    }

    /// As the receiver sees it.
    #[inline]
    pub fn to_segment(self) -> Segment {
        let has = |bit| self.marks & bit != 0;
        Segment {
            seq: self.seq,
            syn: has(SYN),
            retransmission: has(AGAIN),
            stamp: self.stamp,
            ect: has(ECT),
            ce: has(MARKED),
            cwr: has(CWR),
            push: has(PUSH),
        }
    }

    /// As the sender sees it; frees its options.
    #[inline]
    pub fn to_ack(self, store: &mut OptionStore) -> Ack {
        let (sacks, window_end) = match self.options {
            0 => (SackBlocks::default(), u64::MAX),
            i => store.take(i),
        };
        let has = |bit| self.marks & bit != 0;
        Ack {
            cum: self.seq,
            syn: has(SYN),
            echo: self.stamp,
            stamp_ms: self.stamp_ms,
            sacks,
            dsack: has(AGAIN),
            ece: has(MARKED),
            window_end,
        }
    }

    /// The packet is lost: its options are freed.
    pub fn discard(self, store: &mut OptionStore) {
        if self.options != 0 {
            store.take(self.options);
        }
    }
}

impl OptionStore {
    fn put(&mut self, a: &Ack) -> u32 {
        let options = Options {
            sacks: a.sacks,
            window_end: a.window_end,
        };
        if let Some(i) = self.free.pop() {
            self.slots[i as usize] = options;
            return i + 1;
        }
        self.slots.push(options);
        self.slots.len() as u32
    }

    fn take(&mut self, i: u32) -> (SackBlocks, u64) {
        let options = self.slots[i as usize - 1];
        self.free.push(i - 1);
        (options.sacks, options.window_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
