//! Reductions that turn out to be spurious: Eifel and DSACK (RFC 3522, RFC 3708), and the answer (RFC 4015).

use fullpipe_cc::{Controller, Phase};
use fullpipe_units::Time;

use super::timeout::Frto;
use crate::episode::EpisodeKind;
use crate::segment::Ack;
use crate::sender::Sender;

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
    pub(super) by_timeout: bool,
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

    /// The last retransmission never left the host.
    pub(in crate::sender) fn on_unsent(&mut self) {
        self.unexplained -= 1;
        self.retransmissions = self.retransmissions.saturating_sub(1);
    }

    pub(in crate::sender) fn on_retransmit(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.unexplained += 1;
        self.retransmissions += 1;
    }
}

impl<C: Controller> Sender<C> {
    /// Eifel and DSACK (sections 4.7 of the algorithm reference; RFC 4015 for the answer).
    pub(super) fn check_undo(&mut self, now: Time, ack: &Ack, advanced: bool, dsack: Option<u64>) {
        let Some(mark) = &mut self.undo else { return };
        let mut spurious = false;
        if advanced && !mark.examined && ack.cum > mark.una {
            mark.examined = true;
            spurious = mark.first_retransmission.is_some_and(|t| ack.echo < t)
                && matches!(self.phase, Phase::Recovery | Phase::Loss);
        }
        if let Some(seq) = dsack
            && seq >= mark.una
            && seq < self.recovery_point
        {
            mark.unexplained -= 1;
            spurious |= mark.unexplained == 0 && mark.retransmissions > 0;
        }
        if spurious {
            self.undo_reduction(now, advanced.then_some(ack.echo));
        }
    }

    pub(super) fn undo_reduction(&mut self, now: Time, echo: Option<Time>) {
        let Some(mark) = self.undo.take() else { return };
        let before = self.cc.window();
        self.cc.on_undo(now);
        self.note(now, EpisodeKind::Undo, before);
        self.counts.undone += 1;
        self.board.forget_losses();
        self.rack.saw_reordering();
        self.prr = None;
        self.frto = Frto::Off;
        if mark.by_timeout {
            // RFC 4015 section 3.2: the delay that fooled the timer counts.
            let delay = echo.map_or(self.rtt.latest(), |sent| now.saturating_since(sent));
            self.rtt.widen(delay, delay / 2);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.phase = if self.board.sacked_out() > 0 {
                Phase::Disorder
            } else {
                Phase::Open
            };
        }
    }
}
