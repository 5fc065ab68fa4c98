//! The retransmission timer (RFC 6298 section 5), and whether it went off for nothing (F-RTO, RFC 5682).

use fullpipe_cc::{CongestionKind, Controller, Phase, RtoEvent};
use fullpipe_units::{Span, Time};

use super::undo::UndoMark;
use crate::config::{Detector, LossWindow};
use crate::episode::EpisodeKind;
use crate::segment::Ack;
use crate::sender::Sender;
use crate::sender::scoreboard::Delivered;

/// Forward RTO recovery, SACK version in Linux' form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Frto {
    Off,
    /// The timed-out segment was resent; the next ACK decides what to send.
    AwaitFirst,
    /// Two new segments were sent instead of retransmissions; the next ACK is the verdict.
    AwaitSecond,
}

impl Frto {
    pub(in crate::sender) fn holds_retransmissions(self) -> bool {
        self == Frto::AwaitSecond
    }
}

impl<C: Controller> Sender<C> {
    /// The retransmission timer (RFC 6298 section 5).
    pub(in crate::sender) fn on_rto(&mut self, now: Time) {
        self.rto_at = Time::MAX;
        self.probe_at = Time::MAX;
        self.reorder_at = Time::MAX;
        if self.board.flight() == 0 {
            return;
        }
        let first = self.timeout_reduces();
        self.expiries += 1;
        let was_loss = self.phase == Phase::Loss;
        let before = self.cc.window();
        let event = self.congestion(now, CongestionKind::Loss, first, 0, (0, 0));
        if self.cfg.recovery.detector == Detector::NewReno {
            self.board.remove_duplicates(u64::MAX);
            self.duplicates = 0;
        }
        let rack = &self.rack;
        let keeps_recent = self.cfg.recovery.loss_window == LossWindow::FlightPlusOne
            && self.cfg.recovery.detector == Detector::Rack;
        self.board
            .lose_all(|sent| keeps_recent && rack.verdict_at(sent.xmit, Span::ZERO) > now);
        self.cc.on_rto(&RtoEvent {
            now,
            first,
            flight: event.flight,
            pipe: self.board.pipe(),
            srtt: event.srtt,
            min_rtt: event.min_rtt,
        });
        self.note(now, EpisodeKind::Timeout, before);
        self.counts.timeouts += 1;
        if first && !was_loss {
            self.undo = self
                .cfg
                .recovery
                .undo
                .then(|| UndoMark::new(self.board.una(), true));
        }
        self.frto = if self.cfg.recovery.frto && first && !was_loss {
            Frto::AwaitFirst
        } else {
            Frto::Off
        };
        self.phase = Phase::Loss;
        self.recovery_point = self.board.nxt();
        self.reduced_at = now;
        self.limited_sent = 0;
        self.prr = None;
        self.probe = None;
        self.probe_due = false;
        self.cwr_pending = self.cfg.ecn;
        self.pacer.end_spreading();
        self.rtt.back_off();
        // Armed here, not by the retransmission: the pacer or the local queue may hold that back.
        self.rto_at = self.timer(now, self.rtt.rto());
    }

    /// Does this expiry lower `ssthresh`? Not twice for the same data.
    fn timeout_reduces(&self) -> bool {
        let answered = self.board.una() >= self.recovery_point;
        match self.phase {
            Phase::Open | Phase::Disorder => true,
            Phase::Cwr | Phase::Recovery => {
                answered || self.cfg.recovery.timeout_reduces_in_recovery
            }
            Phase::Loss if self.cfg.recovery.timeout_reduces_in_recovery => answered,
            Phase::Loss => answered || self.expiries == 0,
        }
    }

    /// RFC 5682 section 3.1 (SACK version).
    pub(super) fn check_frto(&mut self, now: Time, ack: &Ack, advanced: bool, d: &Delivered) {
        if self.frto == Frto::Off || self.phase != Phase::Loss {
            return;
        }
        // Without SACK an ACK that covers a retransmission says nothing about the originals behind it.
        let ambiguous = self.cfg.recovery.detector == Detector::NewReno
            && d.newest.is_some_and(|(_, sent)| sent.retransmitted());
        let original = !ambiguous && d.original.is_some_and(|seq| seq < self.recovery_point);
        if original {
            // Data sent before the timeout arrived without being resent: the timeout was spurious.
            self.frto = Frto::Off;
            if self.undo.as_ref().is_some_and(|m| m.by_timeout) {
                self.undo_reduction(now, advanced.then_some(ack.echo));
            }
            return;
        }
        let undecided = advanced && self.board.una() < self.recovery_point;
        let new_data = self.board.nxt() < self.send_limit;
        self.frto = match self.frto {
            Frto::AwaitFirst if undecided && new_data => Frto::AwaitSecond,
            _ => Frto::Off,
        };
    }
}
