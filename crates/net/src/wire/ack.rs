//! An acknowledgement.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | next segment expected, 8 bytes                                |
//! | window, 4 bytes: segments from there; 2^32 - 1: no limit      |
//! | echoed time stamp, 4 bytes: microseconds, modulo 2^32         |
//! | hold, 4 bytes: microseconds from the latest arrival of a      |
//! |   segment to this ACK, so that delay of the ACK is not RTT    |
//! | receiver's time stamp, 4 bytes: milliseconds, modulo 2^32     |
//! | data segments that arrived marked CE, 4 bytes, modulo 2^32    |
//! | data segments that arrived ECN-capable, 4 bytes, modulo 2^32  |
//! | proof of reception, 4 bytes                                   |
//! | SACK blocks, 16 bytes each: first, and one after the last     |
//! ```
//! Flags: 1 SYN, 2 DSACK (the first block is a duplicate), 4 ECE; bits 4 to 6 the number of blocks,
//! at most four. The answer to a SYN has no block; a block that is no duplicate lies above the next
//! segment expected.

use fullpipe_flow::{Ack, Range, SackBlocks};
use fullpipe_units::{Span, Time};

use super::numbered;
use super::{HEADER, Header, Kind, MOST_NUMBER, SessionId, WireError};

/// A datagram of kind [`Kind::Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckDatagram {
    /// Session that the ACK belongs to.
    pub session: SessionId,
    /// Number of the flow in the run specification.
    pub flow: u16,
    /// The ACK; the echoed stamp is known modulo 2^32 microseconds ([`AckDatagram::unwrap_echo`]).
    pub ack: Ack,
    /// From the arrival of the newest segment until the ACK left, to the microsecond.
    pub hold: Span,
    /// Segments of the flow that arrived marked, modulo 2^32.
    pub ce: u32,
    /// Segments of the flow that arrived ECN-capable, marked ones included, modulo 2^32.
    pub ect: u32,
    /// What only who has received these segments knows ([`super::reception`]).
    pub proof: u32,
}

impl AckDatagram {
    /// Bytes without SACK blocks.
    pub const PLAIN: usize = HEADER + 36;
    /// Most bytes.
    pub const MOST: usize = Self::PLAIN + Self::MOST_BLOCKS * 16;
    /// Most SACK blocks.
    pub const MOST_BLOCKS: usize = 4;

    /// Bytes on the wire.
    pub fn bytes(&self) -> usize {
        Self::PLAIN + 16 * self.ack.sacks.len()
    }

    /// Writes it to the front of `out`, which is at least [`AckDatagram::bytes`] bytes long, and
    /// returns that.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let a = &self.ack;
        let blocks = a.sacks.len();
        Header {
            kind: Kind::Ack,
            flags: super::header::bits([a.syn, a.dsack, a.ece, false]) | (blocks as u8) << 4,
            flow: self.flow,
            session: self.session,
        }
        .encode(out);
        let window = match a.window_end {
            u64::MAX => u32::MAX,
            end => u32::try_from(end.saturating_sub(a.cum)).unwrap_or(u32::MAX - 1),
        };
        out[12..20].copy_from_slice(&a.cum.to_be_bytes());
        let words = [
            window,
            numbered::stamp(a.echo),
            u32::try_from(self.hold.as_nanos() / 1000).unwrap_or(u32::MAX),
            a.stamp_ms,
            self.ce,
            self.ect,
            self.proof,
        ];
        for (word, place) in words.iter().zip(out[20..48].chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        let room = out[Self::PLAIN..].chunks_exact_mut(16);
        for (block, place) in a.sacks.iter().zip(room) {
            place[..8].copy_from_slice(&block.start.to_be_bytes());
            place[8..].copy_from_slice(&block.end.to_be_bytes());
        }
        Self::PLAIN + 16 * blocks
    }

    /// Reads it. The echoed stamp is still modulo 2^32 microseconds.
    ///
    /// # Errors
    /// [`WireError`] if its length is not that of its blocks, flags are unknown or contradict the
    /// blocks, a block is empty or below what is acknowledged already, or a number is one that no
    /// segment has.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Some((head, mut rest)) = datagram.split_first_chunk::<{ Self::PLAIN }>() else {
            return Err(WireError::Truncated);
        };
        let blocks = usize::from(header.flags >> 4);
        let [syn, dsack, ece, reserved] = super::header::flags(header.flags & 15)?;
        let fits = blocks <= Self::MOST_BLOCKS && rest.len() == 16 * blocks;
        if reserved || !fits || (dsack && blocks == 0) || (syn && blocks > 0) {
            return Err(WireError::Malformed);
        }
        let word = |i: usize| {
            let at = HEADER + 4 * i;
            u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
        };
        let cum = (u64::from(word(0)) << 32) | u64::from(word(1));
        let window_end = match word(2) {
            u32::MAX => u64::MAX,
            window => cum.saturating_add(u64::from(window)),
        };
        if cum > MOST_NUMBER || (window_end > MOST_NUMBER && window_end != u64::MAX) {
            return Err(WireError::Malformed);
        }
        let mut sacks = SackBlocks::default();
        while let Some((block, more)) = rest.split_first_chunk::<16>() {
            let (start, end) = halves(block);
            let duplicate = dsack && sacks.is_empty();
            if start >= end || end > MOST_NUMBER || (start <= cum && !duplicate) {
                return Err(WireError::Malformed);
            }
            sacks.push(Range { start, end });
            rest = more;
        }
        Ok(Self {
            session: header.session,
            flow: header.flow,
            ack: Ack {
                cum,
                syn,
                echo: numbered::time(word(3)),
                stamp_ms: word(5),
                one_way: None,
                sacks,
                dsack,
                ece,
                window_end,
            },
            hold: Span::from_micros(u64::from(word(4))),
            ce: word(6),
            ect: word(7),
            proof: word(8),
        })
    }

    /// The latest time not after `now` (whole microseconds) that has this echo.
    #[inline]
    pub fn unwrap_echo(now: Time, echo: Time) -> Time {
        let now_us = now.as_nanos() / 1000;
        let age = (now_us as u32).wrapping_sub(numbered::stamp(echo));
        Time::from_nanos(now_us.saturating_sub(u64::from(age)) * 1000)
    }
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*block);
    ((both >> 64) as u64, both as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The echo is older than the last wrap of the stamp: 2^32 microseconds are 71 min 34.967296 s.
    #[test]
    fn an_echo_from_before_the_wrap_is_found() {
        let sent = Time::from_nanos((u64::from(u32::MAX) - 9) * 1000);
        let now = Time::from_nanos((u64::from(u32::MAX) + 91) * 1000);
        let echo = numbered::time(numbered::stamp(sent));
        assert_eq!(AckDatagram::unwrap_echo(now, echo), sent);
        // Ten wraps later the stamp alone no longer tells which.
        let later = Time::from_nanos(now.as_nanos() + 10 * (1 << 32) * 1000);
        let apparent = AckDatagram::unwrap_echo(later, echo);
        assert_eq!(later.saturating_since(apparent), Span::from_micros(100));
    }
}
