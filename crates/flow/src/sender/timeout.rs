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
                self.connection.repeat_syn(syn.tries + 1);
                self.timers.stop_rto();
            }
            return;
        }
        if self.timers.take_reorder(now) {
            self.on_reordering_timer(now);
        }
        // The probe goes first where both are due: it is there to spare the timeout.
        // Either way the timeout starts anew (RFC 8985 section 7.3).
        if self.timers.take_probe(now) {
            self.recovery.on_probe_timer(&self.board);
            self.timers.start_rto(now, self.rtt.rto());
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

    /// After an ACK; `advanced`: it moved `una`, and may restart the retransmission timer.
    #[inline(always)]
    pub(super) fn rearm(&mut self, now: Time, advanced: bool) {
        if self.board.flight() == 0 {
            self.timers.stop();
            self.arm_persist(now);
        } else if advanced {
            self.timers.start_rto(now, self.rtt.rto());
            self.arm_probe(now);
        } else if self.board.sacked_out() > 0 {
            self.timers.stop_probe();
        }
    }

    /// RFC 8985 section 7.2.
    #[inline(always)]
    pub(super) fn arm_probe(&mut self, now: Time) {
        if self.timers.holds_probe(now) || !self.recovery.has_probes() {
            return;
        }
        if !self.recovery.may_arm_probe(&self.board) {
            return self.timers.stop_probe();
        }
        let alone = self.board.flight() == 1;
        let measured = self.rtt.has_sample();
        let wait = if !measured {
            self.cfg.rto.initial
        } else if alone {
            self.rtt.srtt() * 2 + self.cfg.timers.max_ack_delay
        } else {
            self.rtt.srtt() * 2 + self.cfg.timers.probe_margin
        };
        self.timers.start_probe(now, wait);
        if measured && !alone {
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
        self.recovery.lose_all(now, &mut self.board);
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
        self.recovery
            .enter_loss(now, reduces, retransmissions, &self.board);
        self.ecn.note_reduction();
        self.pacer.end_spreading();
        self.rtt.back_off();
        // Armed here, not by the retransmission: the pacer or the local queue may hold that back.
        self.timers.start_rto(now, self.rtt.rto());
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
