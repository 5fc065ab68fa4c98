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
    kind: Kind,
    /// Data: retransmission, ECT, CE, CWR. ACK: ECE, DSACK.
    bits: [bool; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Data,
    Syn,
    Ack,
    SynAck,
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
        kind: Kind::Data,
        bits: [false; 4],
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
            kind: if s.syn { Kind::Syn } else { Kind::Data },
            bits: [s.retransmission, s.ect, s.ce, s.cwr],
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
            kind: if a.syn { Kind::SynAck } else { Kind::Ack },
            bits: [a.ece, a.dsack, false, false],
        }
    }

    /// True for an ACK.
    #[inline]
    pub fn is_ack(&self) -> bool {
        matches!(self.kind, Kind::Ack | Kind::SynAck)
    }

    /// True for a segment of data, not a SYN.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.kind == Kind::Data
    }

    /// As the receiver sees it.
    #[inline]
    pub fn to_segment(self) -> Segment {
        let [retransmission, ect, ce, cwr] = self.bits;
        let syn = self.kind == Kind::Syn;
        Segment {
            seq: self.seq,
            syn,
            retransmission,
            stamp: self.stamp,
            ect,
            ce,
            cwr,
        }
    }

    /// As the sender sees it; frees its options.
    #[inline]
    pub fn to_ack(self, store: &mut OptionStore) -> Ack {
        let (sacks, window_end) = match self.options {
            0 => (SackBlocks::default(), u64::MAX),
            i => store.take(i),
        };
        let [ece, dsack, ..] = self.bits;
        let syn = self.kind == Kind::SynAck;
        Ack {
            cum: self.seq,
            syn,
            echo: self.stamp,
            sacks,
            dsack,
            ece,
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
