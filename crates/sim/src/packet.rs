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
    flags: u8,
}

const ACK: u8 = 1;
const SYN: u8 = 2;
const AGAIN: u8 = 4;
const ECT: u8 = 8;
const CE: u8 = 16;
const CWR: u8 = 32;
const ECE: u8 = 64;
const DSACK: u8 = 128;

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
    /// A data segment or SYN of `size` bytes.
    #[inline]
    pub fn data(flow: u32, size: u16, s: &Segment) -> Self {
        let bit = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = bit(s.syn, SYN) | bit(s.retransmission, AGAIN) | bit(s.ect, ECT) | bit(s.cwr, CWR);
        Self { seq: s.seq, stamp: s.stamp, flow, options: 0, size, hop: 0, flags }
    }

    /// An ACK of `size` bytes; what is not plain goes to `store`.
    #[inline]
    pub fn ack(flow: u32, size: u16, a: &Ack, store: &mut OptionStore) -> Self {
        let bit = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = ACK | bit(a.syn, SYN) | bit(a.ece, ECE) | bit(a.dsack, DSACK);
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX;
        let options = if plain { 0 } else { store.put(a) };
        Self { seq: a.cum, stamp: a.echo, flow, options, size, hop: 0, flags }
    }

    /// True for an ACK.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// True for a segment of data, not a SYN.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.flags & (ACK | SYN) == 0
    }

    /// True for a retransmission.
    pub fn is_retransmission(&self) -> bool {
        self.flags & AGAIN != 0
    }

    /// As the receiver sees it.
    #[inline]
    pub fn to_segment(self) -> Segment {
        Segment {
            seq: self.seq,
            syn: self.flags & SYN != 0,
            retransmission: self.flags & AGAIN != 0,
            stamp: self.stamp,
            ect: self.flags & ECT != 0,
            ce: self.flags & CE != 0,
            cwr: self.flags & CWR != 0,
        }
    }

    /// As the sender sees it; frees its options.
    #[inline]
    pub fn to_ack(self, store: &mut OptionStore) -> Ack {
        let (sacks, window_end) = match self.options {
            0 => (SackBlocks::default(), u64::MAX),
            i => store.take(i),
        };
        Ack {
            cum: self.seq,
            syn: self.flags & SYN != 0,
            echo: self.stamp,
            sacks,
            dsack: self.flags & DSACK != 0,
            ece: self.flags & ECE != 0,
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
        let options = Options { sacks: a.sacks, window_end: a.window_end };
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

    /// Options in use.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
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
