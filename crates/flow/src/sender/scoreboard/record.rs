//! The record of one outstanding segment, 16 bytes, and its marks.

use fullpipe_units::Time;

/// Record of an outstanding segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Last transmission.
    pub xmit: Time,
    /// Low 32 bits of the delivered count when it was sent.
    pub delivered: u32,
    pub(super) flags: u8,
}

impl Sent {
    /// A segment sent once, after `delivered` deliveries.
    #[cfg(test)]
    pub(in crate::sender) fn new(xmit: Time, delivered: u32) -> Self {
        Self {
            xmit,
            delivered,
            flags: 0,
        }
    }

    /// Retransmitted at least once.
    pub fn retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    /// Retransmitted more than once.
    pub fn resent_again(&self) -> bool {
        self.flags & RESENT_AGAIN != 0
    }

    /// Resent, and taken to be in the network.
    pub(super) fn is_out_again(&self) -> bool {
        let waits = self.flags & (LOST | RETRANS_OUT) == LOST;
        self.retransmitted() && self.flags & (SACKED | UNLISTED) == 0 && !waits
    }

    /// In the network as a retransmission of what an undo has taken to be delivered: lost, it is
    /// not resent before a timeout.
    pub fn is_exonerated(&self) -> bool {
        self.flags & (EXONERATED | LOST | RETRANS_OUT) == EXONERATED | RETRANS_OUT
    }

    /// Sent while the application limited the sender.
    pub fn app_limited(&self) -> bool {
        self.flags & APP_LIMITED != 0
    }
}

/// Place of a transmission in the order of sending: by time, then by number. In one word, which is
/// compared in fewer steps than a pair.
#[inline(always)]
pub fn order(xmit: Time, seq: u64) -> u128 {
    u128::from(xmit.as_nanos()) << 64 | u128::from(seq)
}

/// SACKed.
pub(super) const SACKED: u8 = 1;
/// Marked lost and not delivered since.
pub(super) const LOST: u8 = 2;
/// A retransmission is in the network.
pub(super) const RETRANS_OUT: u8 = 4;
/// Retransmitted at least once.
pub(super) const RETRANSMITTED: u8 = 8;
/// Sent while the application limited the sender.
pub(super) const APP_LIMITED: u8 = 16;
/// Retransmitted more than once.
pub(super) const RESENT_AGAIN: u8 = 32;
/// Linux alone: an undo took the mark of a loss from it while its retransmission was in the
/// network.
pub(super) const EXONERATED: u8 = 64;
/// Linux alone: RACK took it for lost and looks at it no more before it is sent again.
pub(super) const UNLISTED: u8 = 128;
/// Any of these makes a cumulative ACK look at every record.
pub(super) const MARKS: u8 = SACKED | LOST | RETRANS_OUT | RETRANSMITTED;
