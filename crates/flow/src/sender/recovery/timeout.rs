//! What the retransmission timer does to a recovery.

use fullpipe_cc::Phase;
use fullpipe_units::{Span, Time};

use super::Recovery;
use super::undo::UndoMark;
use crate::config::{Detector, LossWindow, SpuriousRule};
use crate::sender::rtt::RttEstimator;
use crate::sender::scoreboard::Scoreboard;

impl Recovery {
    /// Does this expiry of the retransmission timer lower `ssthresh`? Not twice for the same data.
    pub(in crate::sender) fn timeout_reduces(&self, una: u64) -> bool {
        let answered = una >= self.point;
        match self.phase {
            Phase::Open | Phase::Disorder => true,
            // Only the first expiry for a segment (RFC 5681 section 3.1).
            Phase::Cwr | Phase::Recovery => {
                answered || (self.expiries == 0 && self.cfg.timeout_reduces_in_recovery)
            }
            Phase::Loss => answered || self.expiries == 0,
        }
    }

    /// The retransmission timer expired: everything outstanding is lost, except what RACK still
    /// gives time where the window stays above it.
    pub(in crate::sender) fn lose_all(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        board: &mut Scoreboard,
    ) {
        self.expiries += 1;
        if !matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.note_retransmissions_out(board);
        }
        if self.cfg.detector == Detector::NewReno {
            self.newreno.forget(board);
        }
        let window = match self.cfg.frto_by {
            SpuriousRule::Rfc => self.reordering_window(rtt, board),
            SpuriousRule::Linux => Span::ZERO,
        };
        let rack = &self.rack;
        let keeps_recent = self.cfg.loss_window == LossWindow::FlightPlusOne
            && self.cfg.detector == Detector::Rack;
        board.lose_all(|sent| keeps_recent && rack.lost_at(sent.xmit, window) > now);
    }

    /// Whether a timeout begins an episode of its own, which can be undone alone; `reduces`: it
    /// lowers `ssthresh`. By RFC 3522 section 3.2 the mark of a recovery under way stays; Linux
    /// (`tcp_enter_loss`) makes one with every reduction.
    pub(in crate::sender) fn timeout_is_fresh(&self, reduces: bool) -> bool {
        match self.cfg.undo_by {
            SpuriousRule::Rfc => !matches!(self.phase, Phase::Recovery | Phase::Loss),
            SpuriousRule::Linux => reduces,
        }
    }

    /// The phase after a timeout; `reduced`: it lowered `ssthresh`; `retransmissions` were in the
    /// network before it, `sent` segments have left so far.
    pub(in crate::sender) fn enter_loss(
        &mut self,
        now: Time,
        reduced: bool,
        retransmissions: u64,
        sent: u64,
        board: &Scoreboard,
    ) {
        if self.timeout_is_fresh(reduced) {
            self.forget_old_retransmissions(board);
            let una = board.una();
            let may_undo = self.cfg.undo;
            self.undo = may_undo.then(|| UndoMark::new(una, true, retransmissions));
            self.gives_back = true;
        }
        self.doubtful = false;
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.rack.forget_distance(board.sacked_out());
        }
        self.start_frto(sent);
        self.undone_in_loss = false;
        self.phase = Phase::Loss;
        self.point = board.nxt();
        self.reduced_at = now;
        self.limited_sent = 0;
        self.fast_retransmit = true;
        self.prr = None;
        self.probe.cancel();
    }
}
