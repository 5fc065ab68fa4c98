//! Duplicate ACKs of a peer without SACK (RFC 6582): each stands for one delivered segment of
//! unknown number.

use crate::sender::scoreboard::{Delivered, Scoreboard};

/// Duplicate ACKs of the present window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewReno {
    duplicates: u64,
    /// A partial ACK of this recovery has restarted the retransmission timer.
    partial_ack_seen: bool,
}

impl NewReno {
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    pub(super) fn partial_ack_seen(&self) -> bool {
        self.partial_ack_seen
    }

    pub(super) fn begin_recovery(&mut self) {
        self.partial_ack_seen = false;
    }

    /// Notes a partial ACK; true if there was one before.
    pub(super) fn has_seen_partial_ack(&mut self) -> bool {
        std::mem::replace(&mut self.partial_ack_seen, true)
    }

    pub(super) fn forget(&mut self, board: &mut Scoreboard) {
        board.remove_duplicates(u64::MAX);
        self.duplicates = 0;
    }

    /// Duplicates beyond what is outstanding were the network's own.
    pub(super) fn bound(&mut self, board: &mut Scoreboard) {
        self.duplicates = board.bound_duplicates();
    }

    /// In a recovery duplicates outlive a partial ACK, less those that it turns out to cover.
    pub(super) fn on_advance(
        &mut self,
        cum: u64,
        recovering: bool,
        board: &mut Scoreboard,
        d: &mut Delivered,
    ) {
        let known = self.duplicates.min(cum - board.una() - 1);
        board.remove_duplicates(if recovering { known } else { u64::MAX });
        self.duplicates = if recovering {
            self.duplicates - known
        } else {
            0
        };
        board.ack_to(cum, d);
        self.bound(board);
        d.acked -= known.min(d.acked);
    }

    pub(super) fn on_duplicate(&mut self, cum: u64, board: &mut Scoreboard, d: &mut Delivered) {
        if board.flight() > 0 && cum == board.una() && board.add_duplicate() {
            self.duplicates += 1;
            d.sacked = 1;
        }
    }
}
