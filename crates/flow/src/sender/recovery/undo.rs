//! Reductions that turn out to be spurious: Eifel (RFC 3522) and DSACK (RFC 3708).

use fullpipe_cc::Phase;
use fullpipe_units::Time;

use super::frto::Frto;
use super::{Irregular, Recovery};
use crate::sender::scoreboard::Scoreboard;

/// What is needed to recognise a reduction as spurious.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct UndoMark {
    /// First unacknowledged segment when it began.
    una: u64,
    /// Time of the first retransmission, for Eifel.
    first_retransmission: Option<Time>,
    /// Retransmissions not yet reported as duplicates.
    unexplained: i64,
    retransmissions: u64,
    by_timeout: bool,
    /// The first ACK that advanced has been examined.
    examined: bool,
}

impl UndoMark {
    pub(super) fn new(una: u64, by_timeout: bool) -> Self {
        Self {
            una,
            first_retransmission: None,
            unexplained: 0,
            retransmissions: 0,
            by_timeout,
            examined: false,
        }
    }

    /// The reduction is that of a timeout.
    pub(in crate::sender) fn is_of_timeout(&self) -> bool {
        self.by_timeout
    }

    /// The last retransmission never left the host.
    pub(super) fn on_unsent(&mut self) {
        self.unexplained -= 1;
        self.retransmissions = self.retransmissions.saturating_sub(1);
    }

    pub(super) fn on_retransmit(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.unexplained += 1;
        self.retransmissions += 1;
    }
}

impl Recovery {
    /// True if this ACK shows that the reduction was spurious: it acknowledges an original whose
    /// retransmission left later (Eifel), or reports the last retransmission as a duplicate
    /// (DSACK).
    pub(in crate::sender) fn shows_spurious_reduction(&mut self, ir: &Irregular<'_>) -> bool {
        let Some(mark) = &mut self.undo else {
            return false;
        };
        let mut spurious = false;
        if ir.advanced && !mark.examined && ir.ack.cum > mark.una {
            mark.examined = true;
            spurious = mark.first_retransmission.is_some_and(|t| ir.ack.echo < t)
                && matches!(self.phase, Phase::Recovery | Phase::Loss);
        }
        if let Some(seq) = ir.dsack
            && seq >= mark.una
            && seq < self.point
        {
            mark.unexplained -= 1;
            spurious |= mark.unexplained == 0 && mark.retransmissions > 0;
        }
        spurious
    }

    /// Takes the mark of the reduction to be undone, if it can be.
    pub(in crate::sender) fn take_undo(&mut self) -> Option<UndoMark> {
        self.undo.take()
    }

    /// The controller has undone the reduction: what is marked lost and was not resent is in the
    /// network after all.
    pub(in crate::sender) fn undone(&mut self, board: &mut Scoreboard) {
        board.forget_losses();
        self.rack.saw_reordering();
        self.prr = None;
        self.frto = Frto::Off;
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.rest(board);
        }
    }
}
