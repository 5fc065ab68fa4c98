//! Lengths of a flow's packets, in bytes.

use crate::segment::{Ack, Segment};

/// Bytes of a flow's packets, network and transport headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLengths {
    pub(super) data: u16,
    pub(super) plain: u16,
    pub(super) syn: u16,
    pub(super) ack: [u16; 5],
}

impl PacketLengths {
    /// Of a SYN, of the ACK that ends the handshake, or of a full segment.
    #[inline(always)]
    pub fn segment(&self, segment: &Segment) -> u16 {
        match segment.syn {
            false => self.data,
            true if segment.ends_handshake() => self.plain,
            true => self.syn,
        }
    }

    /// Of an ACK with its blocks, or of the answer to a SYN.
    #[inline(always)]
    pub fn ack(&self, ack: &Ack) -> u16 {
        match ack.syn {
            false => self.ack[ack.sacks.len()],
            true => self.syn,
        }
    }
}
