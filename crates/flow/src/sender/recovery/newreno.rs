//! Duplicate ACKs of a peer without SACK (RFC 6582): each stands for one delivered segment of
//! unknown number.
//!
//! Linux takes more of them than segments that may have caused one for reordering, and asks for as
//! many before it resends from then on, more than three or fewer (`tcp_check_reno_reordering`,
//! `tcp_newreno_mark_lost`). No timeout takes that back: it has forgotten the duplicates before it
//! asks for them (`tcp_enter_loss`).

use super::detect::DUP_THRESH;
use super::rack::MOST_DISTANCE;
use crate::config::SpuriousRule;
use crate::sender::scoreboard::{Delivered, Scoreboard};

/// Duplicate ACKs of the present window.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewReno {
    duplicates: u64,
    /// So many call the first outstanding segment lost (Linux `reordering`).
    threshold: u64,
    by: SpuriousRule,
    /// A partial ACK of this recovery has restarted the retransmission timer.
    partial_ack_seen: bool,
}

impl NewReno {
    pub(super) fn new(by: SpuriousRule) -> Self {
        Self {
            duplicates: 0,
            threshold: DUP_THRESH,
            by,
            partial_ack_seen: false,
        }
    }

    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    pub(super) fn threshold(&self) -> u64 {
        self.threshold
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

    /// Duplicates beyond what is outstanding were the network's own, after an ACK for `acked`
    /// segments (`tcp_limit_reno_sacked`).
    pub(super) fn bound(&mut self, board: &mut Scoreboard, acked: u64) {
        let linux = self.by == SpuriousRule::Linux;
        if board.bound_duplicates(u64::from(linux)) && linux {
            self.threshold = (board.flight() + acked).min(MOST_DISTANCE);
        }
        self.duplicates = board.sacked_out();
    }

    /// In a recovery duplicates outlive a partial ACK, less those that it turns out to cover.
    pub(super) fn on_advance(
        &mut self,
        cum: u64,
        recovering: bool,
        board: &mut Scoreboard,
        d: &mut Delivered,
    ) {
        let acked = cum - board.una();
        let known = self.duplicates.min(acked - 1);
        board.remove_duplicates(known);
        board.ack_to(cum, d);
        self.bound(board, acked);
        d.acked -= known.min(d.acked);
        if !recovering {
            self.forget(board);
        }
    }

    pub(super) fn on_duplicate(&mut self, cum: u64, board: &mut Scoreboard, d: &mut Delivered) {
        if board.flight() > 0 && cum == board.una() {
            let before = self.duplicates;
            board.add_duplicate();
            self.bound(board, 0);
            d.sacked = self.duplicates.saturating_sub(before);
        }
    }
}
