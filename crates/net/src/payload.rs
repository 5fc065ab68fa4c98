//! Payload of a flow: sources that fill segments, sinks that consume them.
//!
//! The endpoint moves whole segments by number; byte `n * mss` of the data is the first of segment
//! `n`, and only the last segment may be shorter. [`Source`] and [`Sink`] are what it asks;
//! [`Pattern`] and [`Tally`] are data that prove themselves: every byte follows from its place, and
//! a sum over the segments does not depend on their order.

use std::io;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// Where the data of a flow comes from.
pub trait Source: Send {
    /// Writes the bytes of segment `seq` to the front of `out`, which is as long as a full segment,
    /// and returns how many there are. The same segment may be asked for again, and must then be
    /// the same.
    ///
    /// # Errors
    /// The data cannot be had: the flow cannot go on.
    fn fill(&mut self, seq: u64, out: &mut [u8]) -> io::Result<usize>;
}

/// Where the data of a flow goes.
pub trait Sink: Send {
    /// Bytes that it has room for beyond those it took; `None`: it keeps up with any network. The
    /// sender is held to the room by the receiver's window. What there was room for once must be
    /// taken, in whatever order it comes. `wanted` is what the path can bring within two round
    /// trips of slow start: a buffer larger than that is of no use, a smaller one slows the flow
    /// down.
    ///
    /// # Errors
    /// It will never take anything again: the flow cannot go on.
    fn room(&mut self, wanted: u64) -> io::Result<Option<u64>> {
        let _ = wanted;
        Ok(None)
    }

    /// Bytes of segment `seq`, where that is known before it comes: a datagram that brings another
    /// number of them was damaged on the way, and is dropped whole.
    fn length(&self, seq: u64) -> Option<usize> {
        let _ = seq;
        None
    }

    /// Takes a segment that arrived for the first time.
    ///
    /// # Errors
    /// It cannot be kept: the flow cannot go on.
    fn take(&mut self, seq: u64, payload: &[u8]) -> io::Result<()>;
}

/// Data of which every byte follows from a key, the segment and its place there.
#[derive(Clone, Debug)]
pub struct Pattern {
    key: u64,
    /// Bytes in all; `None`: no end.
    size: Option<u64>,
    mss: u32,
    tally: Tally,
    scratch: Vec<u8>,
}

/// Segments and a sum of their hashes that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Segments added.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of XXH3 of (number, bytes), modulo 2^64.
    pub sum: u64,
}

impl Tally {
    /// Adds a segment.
    #[inline]
    pub fn add(&mut self, seq: u64, payload: &[u8]) {
        self.segments += 1;
        self.bytes += payload.len() as u64;
        let hash = XxHash3_64::oneshot_with_seed(seq, payload);
        self.sum = self.sum.wrapping_add(hash);
    }
}

impl Pattern {
    /// Segments of `mss` bytes, `size` bytes in all.
    pub fn new(key: u64, mss: u32, size: Option<u64>) -> Self {
        Self {
            key,
            size,
            mss,
            tally: Tally::default(),
            scratch: vec![0; mss as usize],
        }
    }

    /// All segments up to the highest that was asked for, each once.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Bytes of segment `seq`.
    fn length(&self, seq: u64) -> usize {
        let mss = u64::from(self.mss);
        let rest = match (self.size, seq.checked_mul(mss)) {
            (None, _) => mss,
            (Some(size), Some(start)) => size.saturating_sub(start),
            (Some(_), None) => 0,
        };
        rest.min(mss) as usize
    }

    /// Writes the bytes of segment `seq` over all of `out`.
    #[inline]
    fn write(&self, seq: u64, out: &mut [u8]) {
        let mut word = mixed(self.key ^ mixed(seq));
        let step = word | 1;
        let mut words = out.chunks_exact_mut(8);
        for bytes in &mut words {
            bytes.copy_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(step);
        }
        let rest = words.into_remainder();
        let last = word.to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

impl Source for Pattern {
    fn fill(&mut self, seq: u64, out: &mut [u8]) -> io::Result<usize> {
        let length = self.length(seq);
        let Some(out) = out.get_mut(..length) else {
            return Err(io::Error::other("a segment longer than its buffer"));
        };
        self.write(seq, out);
        // First transmissions are in order, but some are lost before they get here.
        while self.tally.segments < seq && length > 0 {
            let skipped = self.tally.segments;
            let mut bytes = std::mem::take(&mut self.scratch);
            self.write(skipped, &mut bytes);
            self.tally.add(skipped, &bytes);
            self.scratch = bytes;
        }
        if seq == self.tally.segments && length > 0 {
            self.tally.add(seq, out);
        }
        Ok(length)
    }
}

/// Takes a [`Pattern`] and holds every byte against what it should be.
#[derive(Clone, Debug)]
pub struct Verifier {
    pattern: Pattern,
    tally: Tally,
    damaged: u64,
    scratch: Vec<u8>,
}

impl Verifier {
    /// Of the same pattern as the sender's.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            scratch: vec![0; pattern.mss as usize],
            pattern,
            tally: Tally::default(),
            damaged: 0,
        }
    }

    /// Count and checksum of the payload that arrived.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Segments of which a byte, or the length, is not what was sent.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

impl Sink for Verifier {
    fn take(&mut self, seq: u64, payload: &[u8]) -> io::Result<()> {
        self.tally.add(seq, payload);
        let length = self.pattern.length(seq);
        let expected = &mut self.scratch[..length];
        self.pattern.write(seq, expected);
        self.damaged += u64::from(expected != payload);
        Ok(())
    }
}

/// Mixes the bits of a word (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
#[inline]
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn segment(pattern: &mut Pattern, seq: u64) -> Vec<u8> {
        let mut out = vec![0; MSS as usize];
        let n = pattern.fill(seq, &mut out).unwrap();
        out.truncate(n);
        out
    }

    #[test]
    fn the_sum_does_not_depend_on_order_or_on_retransmissions() {
        let size = 10 * u64::from(MSS) + 100;
        let mut source = Pattern::new(7, MSS, Some(size));
        let mut sink = Verifier::new(source.clone());
        let segments: Vec<Vec<u8>> = (0..11).map(|n| segment(&mut source, n)).collect();
        assert_eq!(segments[10].len(), 100);
        assert_eq!(segment(&mut source, 3), segments[3]);
        for n in [4, 1, 10, 0, 2, 3, 9, 8, 7, 5, 6] {
            sink.take(n, &segments[n as usize]).unwrap();
        }
        assert_eq!(sink.tally(), source.tally());
        assert_eq!((sink.tally().bytes, sink.damaged()), (size, 0));
    }

    #[test]
    fn a_changed_byte_a_swap_and_a_short_segment_are_seen() {
        let mut source = Pattern::new(7, MSS, None);
        let (a, b) = (segment(&mut source, 0), segment(&mut source, 1));
        assert_ne!(a, b);
        let mut swapped = Verifier::new(source.clone());
        swapped.take(0, &b).unwrap();
        swapped.take(1, &a).unwrap();
        assert_eq!(swapped.damaged(), 2);
        assert_ne!(swapped.tally().sum, source.tally().sum);
        let mut changed = a.clone();
        changed[700] ^= 1;
        let mut sink = Verifier::new(source);
        sink.take(0, &changed).unwrap();
        sink.take(1, &b[..1447]).unwrap();
        assert_eq!(sink.damaged(), 2);
    }

    #[test]
    fn nothing_lies_beyond_the_end() {
        let mut source = Pattern::new(0, MSS, Some(1));
        assert_eq!(segment(&mut source, 0).len(), 1);
        assert_eq!(segment(&mut source, 1).len(), 0);
        assert_eq!(segment(&mut source, u64::MAX).len(), 0);
    }
}
