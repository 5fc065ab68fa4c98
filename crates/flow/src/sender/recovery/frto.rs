//! Forward RTO recovery (RFC 5682, SACK version in Linux' form): whether the retransmission timer
//! went off for nothing.

use fullpipe_cc::Phase;

use super::{Irregular, Recovery};
use crate::config::Detector;
use crate::sender::scoreboard::Scoreboard;

/// Step of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    Off,
    /// The timed-out segment was resent; the next ACK decides what to send.
    AwaitFirst,
    /// Two new segments were sent instead of retransmissions; the next ACK decides.
    AwaitSecond,
}

impl Frto {
    pub(super) fn holds_retransmissions(self) -> bool {
        self == Frto::AwaitSecond
    }
}

impl Recovery {
    /// RFC 5682 section 3.1; true if this ACK shows that the timeout was spurious and its reduction
    /// can be undone. `new_data`: there is some to send.
    pub(in crate::sender) fn shows_spurious_timeout(
        &mut self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
        new_data: bool,
    ) -> bool {
        if self.frto == Frto::Off || self.phase != Phase::Loss {
            return false;
        }
        let d = ir.delivered;
        // Without SACK an ACK that covers a retransmission says nothing about the originals behind
        // it.
        let ambiguous = self.cfg.detector == Detector::NewReno
            && d.newest.is_some_and(|(_, sent)| sent.retransmitted());
        if !ambiguous && d.original.is_some_and(|seq| seq < self.point) {
            // Data sent before the timeout arrived without being resent.
            self.frto = Frto::Off;
            return self.undo.as_ref().is_some_and(|mark| mark.is_of_timeout());
        }
        let undecided = ir.advanced && board.una() < self.point;
        self.frto = match self.frto {
            Frto::AwaitFirst if undecided && new_data => Frto::AwaitSecond,
            _ => Frto::Off,
        };
        false
    }
}
