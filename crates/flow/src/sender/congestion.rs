//! The window comes down, once per window of data whatever the sign was, and back if the reduction
//! was spurious.

use fullpipe_cc::{AckEvent, CongestionEvent, CongestionKind, Controller, Stamps};
use fullpipe_units::Time;

use super::Sender;
use super::recovery::{Losses, PrrStart};
use super::scoreboard::Delivered;
use crate::config::SpuriousRule;
use crate::episode::{EpisodeKind, Proof};

/// A sign of congestion, and the ACK that brought it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign {
    pub(super) kind: CongestionKind,
    pub(super) first_in_window: bool,
    /// Segments lost.
    pub(super) lost: u64,
    /// Segments that the ACK newly acknowledged, and newly SACKed.
    pub(super) acked: u64,
    pub(super) sacked: u64,
}

impl<C: Controller> Sender<C> {
    /// The answer to what the detector found after an ACK; `ended`: the ACK ended a reduction, by
    /// acknowledging its window.
    pub(super) fn answer(&mut self, now: Time, losses: Losses, ended: bool, event: &mut AckEvent) {
        // What is missing of the data sent since the last reduction is the next window's loss. In
        // an open window a lost retransmission, such as a probe's, is a loss like any other. What
        // an undone reduction has resent is none: it was late (RFC 4015 section 3.2).
        let lost = match ended {
            true => self.board.lost_out(),
            false => losses.all(),
        };
        if lost > 0 && self.recovery.may_begin() {
            self.reduce(now, CongestionKind::Loss, lost, event);
        } else if losses.retransmissions > 0 && self.recovery.is_recovering() {
            self.reduce_for_lost_retransmission(now, losses.all(), event);
        } else if losses.retransmissions > 0 && self.recovery.recovers_from_loss() {
            self.reduce(now, CongestionKind::Loss, losses.retransmissions, event);
        }
    }

    /// The same after the reordering timer. No ACK brings a quota: the fast retransmit leaves all
    /// the same.
    pub(super) fn answer_without_ack(&mut self, now: Time, losses: Losses) {
        if losses.all() > 0 && self.recovery.may_begin() {
            let mut event = self.event_without_ack(now);
            event.lost = losses.all();
            let begins = !self.recovery.is_reducing();
            self.reduce(now, CongestionKind::Loss, losses.all(), &mut event);
            self.release_fast_retransmit(begins);
        } else if losses.retransmissions > 0 && self.recovery.is_recovering() {
            let event = self.event_without_ack(now);
            if self.reduce_for_lost_retransmission(now, losses.all(), &event) {
                self.release_fast_retransmit(true);
            }
        } else if let lost @ 1.. = self.recovery.recovers_by_time(losses) {
            let mut event = self.event_without_ack(now);
            event.lost = lost;
            self.reduce(now, CongestionKind::Loss, lost, &mut event);
            self.release_fast_retransmit(true);
        }
    }

    /// PRR's quota after the reordering timer; `begins`: of a reduction that has just begun.
    fn release_fast_retransmit(&mut self, begins: bool) {
        let flight = self.board.flight();
        let start = PrrStart {
            ssthresh: self.cc.ssthresh() as u64,
            outstanding: flight - self.board.sacked_out().min(flight),
            window: self.board.pipe() + 1,
        };
        self.recovery.release_without_ack(begins, start);
    }

    /// One reduction per window of data: on loss into recovery, on a mark, a local drop or an
    /// artificial loss into CWR.
    pub(super) fn reduce(
        &mut self,
        now: Time,
        kind: CongestionKind,
        lost: u64,
        event: &mut AckEvent,
    ) {
        let loss = lost > 0;
        if !self.recovery.admits_reduction(loss) {
            return;
        }
        let before = self.cc.window();
        let sign = Sign {
            kind,
            first_in_window: true,
            lost,
            acked: event.acked,
            sacked: event.sacked,
        };
        if self.recovery.repair_only(&self.board) {
            let in_force = self.cwnd();
            let event = self.congestion(now, sign);
            self.cc.on_loss_in_reduction(&event, in_force);
            return self.recovery.aim_at(self.cc.ssthresh() as u64);
        }
        self.cc.on_congestion(&self.congestion(now, sign));
        self.log(now, EpisodeKind::Congestion(kind), before);
        self.pacer.end_spreading();
        if !self.timers.is_exclusive() {
            // The one timer stays what it is until the head is resent (`tcp_enter_recovery`).
            self.timers.stop_probe();
        }
        self.recovery.begin(now, loss, &self.board);
        self.ecn.note_reduction();
        if !self.cc.owns_window() {
            let start = self.prr_start(before, event);
            self.recovery.start_prr(start);
        }
    }

    /// An episode of PRR begins with this ACK (RFC 9937 section 6.1); the window was `before`.
    fn prr_start(&self, before: f64, event: &AckEvent) -> PrrStart {
        let flight = self.board.flight();
        PrrStart {
            ssthresh: self.cc.ssthresh() as u64,
            outstanding: flight - self.board.sacked_out().min(flight) + event.acked + event.sacked,
            window: before as u64,
        }
    }

    /// A retransmission was lost: a second sign of congestion (RFC 5681 section 4.3), and a new
    /// episode of PRR (RFC 9937 section 6.1). True if it counts as one.
    fn reduce_for_lost_retransmission(&mut self, now: Time, lost: u64, event: &AckEvent) -> bool {
        if !self.recovery.reduces_again() {
            return false;
        }
        let (before, in_force) = (self.cc.window(), self.cwnd());
        let sign = Sign {
            kind: CongestionKind::Loss,
            first_in_window: false,
            lost,
            acked: 0,
            sacked: 0,
        };
        self.cc.on_congestion(&self.congestion(now, sign));
        self.log(now, EpisodeKind::LostRetransmission, before);
        let start = self.prr_start(in_force, event);
        self.recovery.reduced_again(now, start);
        true
    }

    /// The local queue refused a segment and the sender reacts.
    pub(super) fn reduce_for_local_drop(&mut self, now: Time) {
        if self.recovery.is_reducing() {
            return self.recovery.justify();
        }
        let mut event = self.event_without_ack(now);
        self.reduce(now, CongestionKind::LocalDrop, 0, &mut event);
        let pipe = self.board.pipe();
        self.recovery.replace_prr(PrrStart {
            ssthresh: self.cc.ssthresh() as u64,
            outstanding: pipe,
            window: pipe.max(1),
        });
        // With nothing outstanding no ACK will come to end the reduction.
        self.leave_phase_if_done(now);
    }

    /// RFC 3168 section 6.1.2: one answer per window of data.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, now: Time, event: &mut AckEvent) {
        if self.recovery.is_reducing() {
            // The reduction under way is justified by the mark as well.
            self.recovery.justify();
        } else if self.recovery.answers_mark(self.board.una()) {
            self.reduce(now, CongestionKind::Ecn, 0, event);
        }
    }

    /// Ends disorder that healed, and a reduction whose data is acknowledged; true for the latter.
    #[inline]
    pub(super) fn leave_phase_if_done(&mut self, now: Time) -> bool {
        let ended = self.recovery.leave_if_done(&mut self.board);
        if ended {
            self.cc.on_recovery_exit(now);
        }
        ended
    }

    /// The last reduction was spurious, by this proof; `unmark`: nothing is lost after all.
    pub(super) fn undo_reduction(&mut self, now: Time, unmark: bool, by: Proof) {
        let mark = self.recovery.take_undo();
        if mark.is_none() && !self.recovery.is_undone_in_loss() {
            return;
        }
        let (gives_back, in_force) = (self.recovery.gives_back(), self.cwnd());
        let was_reducing = self.recovery.is_reducing();
        let at_end = self.recovery.is_recovered(self.board.una());
        if gives_back {
            let before = self.cc.window();
            self.cc.on_undo(now);
            self.log(now, EpisodeKind::Undo(Some(by)), before);
        }
        self.recovery.undone(unmark, by, &mut self.board);
        if !gives_back && was_reducing && !self.recovery.is_reducing() {
            self.cc.on_cut_short(now, in_force);
        }
        if at_end {
            self.cc.on_undone_at_end(now);
        }
        let of_timeout = mark.is_some_and(|m| m.is_of_timeout());
        if of_timeout && self.cfg.recovery.undo_by == SpuriousRule::Rfc {
            self.rtt.adapt_from(self.board.nxt());
        }
    }

    /// What the controller hears of a sign of congestion.
    pub(super) fn congestion(&self, now: Time, sign: Sign) -> CongestionEvent {
        // As it was when the ACK came. Each segment of Limited Transmit answers one that was SACKed
        // before.
        let before = self.board.sacked_out().saturating_sub(sign.sacked);
        let limited = self.recovery.limited_sent().min(before);
        let flight = (self.board.flight() + sign.acked).saturating_sub(limited);
        // RFC 7661 section 4.3: a window that was not used counts as far as it was.
        let flight = self
            .validation
            .pipe_ack()
            .map_or(flight, |used| flight.max(used));
        let mut event = CongestionEvent::new(now, sign.kind, flight);
        event.first_in_window = sign.first_in_window;
        event.lost = sign.lost;
        event.srtt = self.rtt.srtt();
        event.min_rtt = self.rtt.min();
        event
    }

    /// Hands the segments that were just marked lost to whoever wants each of them: the controller,
    /// a record.
    #[inline(always)]
    pub(super) fn report_losses(&mut self, now: Time) {
        if self.board.keeps_losses() {
            self.report_each_loss(now);
        }
    }

    fn report_each_loss(&mut self, now: Time) {
        for (seq, sent) in self.board.take_fresh_losses() {
            self.record.verdict(now, seq);
            if let Some(lost) = self.delivery.on_lost(now, seq, &sent) {
                self.cc.on_lost(&lost);
            }
        }
    }

    fn event_without_ack(&self, now: Time) -> AckEvent {
        let none = Delivered::default();
        self.event(now, &none, false, self.board.pipe(), Stamps::default())
    }
}
