//! Timers are armed, and go off: retransmission (RFC 6298 section 5), tail loss probe (RFC 8985
//! section 7), reordering (RFC 8985 section 6), a closed window (RFC 9293 section 3.8.6.1), the
//! handshake, the pacer.

use fullpipe_cc::{CongestionKind, Controller, RtoEvent};
use fullpipe_units::{Span, Time};

use super::Sender;
use super::congestion::Sign;
use crate::episode::EpisodeKind;

impl<C: Controller> Sender<C> {
    /// When to call [`Sender::handle_timeout`]; [`Time::MAX`] for never.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.timers
            .next()
            .min(self.persist.at())
            .min(self.pacer.wake_at())
    }

    /// A timer is due. Poll for segments afterwards.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(syn) = self.connection.syn() {
            let wait = self.syn_timeout(syn.tries);
            if now >= self.timers.after(syn.at, wait) {
                self.connection.repeat_syn(syn, syn.tries + 1);
                self.timers.stop_rto();
            }
            return;
        }
        if self.timers.take_reorder(now) {
            self.on_reordering_timer(now);
            if self.timers.is_exclusive() && !self.timers.waits_for_reordering() {
                self.start_rto_of_head(now);
            }
        }
        // The probe goes first where both are due: it is there to spare the timeout.
        // Either way the timeout starts anew (RFC 8985 section 7.3), in Linux after a probe alone
        // (`tcp_send_loss_probe`).
        if self.timers.take_probe(now) {
            let sent = self.recovery.on_probe_timer(&self.board);
            match sent || !self.timers.is_exclusive() {
                true => self.timers.start_rto(now, self.rtt.rto()),
                false => self.start_rto_of_head(now),
            }
        } else if self.timers.rto_is_due(now) {
            self.on_rto(now);
        }
        self.persist.check(now);
        self.refresh_budget();
    }

    /// The wait for the answer to a SYN before which `tries` went unanswered.
    pub(super) fn syn_timeout(&self, tries: u32) -> Span {
        (self.cfg.rto.initial * (1 << tries.min(16))).min(self.cfg.rto.max)
    }

    /// After an ACK; `restarts`: it moved `una`, or shows a life sign of what was sent before the
    /// first outstanding segment was resent, and may restart the retransmission timer.
    #[inline(always)]
    pub(super) fn rearm(&mut self, now: Time, restarts: bool) {
        if self.board.flight() == 0 {
            self.timers.stop();
            self.arm_persist(now);
        } else if restarts {
            if !self.timers.is_taken() {
                self.restart_timers(now);
            }
        } else if self.board.sacked_out() > 0 && !self.timers.is_exclusive() {
            self.timers.stop_probe();
        }
    }

    #[inline(always)]
    fn restart_timers(&mut self, now: Time) {
        let probes = self.recovery.has_probes() && self.recovery.may_arm_probe(&self.board);
        if !probes && self.timers.hides_rto() {
            self.start_rto_of_head(now);
            self.timers.stop_probe();
        } else {
            self.timers.start_rto(now, self.rtt.rto());
            self.arm_probe(now, false);
        }
        if self.timers.is_exclusive() {
            self.timers.stop_reorder();
        }
    }

    /// Timeout of the first outstanding segment, counted from its last transmission (Linux
    /// `tcp_rto_delta_us`).
    fn start_rto_of_head(&mut self, now: Time) {
        if self.board.flight() > 0 {
            let due = self.board.get(self.board.una()).xmit + self.rtt.rto();
            let left = due.saturating_since(now).max(Span::from_micros(1));
            self.timers.start_rto(now, left);
        }
    }

    /// RFC 8985 section 7.2. When new data leaves (`sending`) Linux lets the probe go no later than
    /// a timeout of the first outstanding segment, counted from its last transmission, would
    /// (`tcp_schedule_loss_probe`).
    #[inline(always)]
    pub(super) fn arm_probe(&mut self, now: Time, sending: bool) {
        if self.timers.holds_probe(now) || !self.recovery.has_probes() {
            return;
        }
        if !self.recovery.may_arm_probe(&self.board) {
            // The one timer of a kernel stays what it is.
            if !self.timers.is_exclusive() {
                self.timers.stop_probe();
            }
            return;
        }
        let alone = self.board.flight() == 1;
        let measured = self.rtt.has_sample();
        let mut wait = if !measured {
            self.cfg.rto.initial
        } else if alone {
            self.rtt.srtt() * 2 + self.cfg.timers.max_ack_delay
        } else {
            self.rtt.srtt() * 2 + self.cfg.timers.probe_margin
        };
        // The first outstanding segment left a probe's wait ago at most: beyond two of them its
        // timeout is later in any case.
        let mut bounded = false;
        if self.timers.is_exclusive() && measured && wait * 2 > self.rtt.rto() {
            let head = self.board.get(self.board.una()).xmit + self.rtt.rto();
            bounded = head < now + wait;
            if sending && head > now {
                wait = wait.min(head - now);
            }
        }
        if self.timers.waits_for_reordering() {
            // New data leaves in an open window: the one timer is the probe's from now on, with the
            // timeout behind it (`tcp_write_xmit`, `tcp_schedule_loss_probe`).
            self.timers.stop_reorder();
            self.start_rto_of_head(now);
        }
        self.timers.start_probe(now, wait);
        if measured && !alone && (sending || !bounded) {
            self.timers.hold_probe(now);
        }
    }

    /// With nothing in flight: waits for an open window if there is data and the window is closed.
    pub(super) fn arm_persist(&mut self, now: Time) {
        if !self.limits.is_closed(self.board.nxt()) {
            self.persist.stop();
        } else if !self.persist.is_armed() {
            let pause = self.persist.pause(self.rtt.rto(), self.cfg.rto.max);
            self.persist.start(self.timers.after(now, pause));
        }
    }

    /// The retransmission timer expired (RFC 6298 section 5).
    fn on_rto(&mut self, now: Time) {
        self.timers.stop();
        if self.board.flight() == 0 {
            return;
        }
        let reduces = self.recovery.timeout_reduces(self.board.una());
        let before = self.cc.window();
        let event = self.congestion(
            now,
            Sign {
                kind: CongestionKind::Loss,
                first_in_window: reduces,
                lost: 0,
                acked: 0,
                sacked: 0,
            },
        );
        let retransmissions = self.board.retrans_out();
        self.recovery.lose_all(now, &self.rtt, &mut self.board);
        self.report_losses(now);
        let mut expiry = RtoEvent::new(now, event.flight);
        expiry.first = reduces;
        expiry.nested = !self.recovery.timeout_is_fresh(reduces);
        if !expiry.nested {
            self.rtt.remember();
        }
        expiry.pipe = self.board.pipe();
        expiry.srtt = event.srtt;
        expiry.min_rtt = event.min_rtt;
        self.cc.on_rto(&expiry);
        self.log(now, EpisodeKind::Timeout, before);
        self.recovery.enter_loss(
            now,
            reduces,
            retransmissions,
            self.record.counts().sent,
            &self.board,
        );
        self.ecn.note_reduction();
        self.pacer.end_spreading();
        self.rtt.back_off();
        // Armed here, not by the retransmission: the pacer or the local queue may hold that back.
        self.timers.start_rto_again(now, self.rtt.rto());
    }

    /// RACK's reordering timer: some suspects have waited long enough.
    fn on_reordering_timer(&mut self, now: Time) {
        let losses =
            self.recovery
                .detect_by_time(now, &mut self.board, &self.rtt, &mut self.timers);
        self.report_losses(now);
        self.answer_without_ack(now, losses);
    }
}
