//! When the sender wants to be called again, and what is due then.

use fullpipe_cc::Controller;
use fullpipe_units::{Span, Time};

use super::{Connection, Sender};
use crate::clock::wheel;
use crate::config::TimerGrain;

impl<C: Controller> Sender<C> {
    /// When a timer set now for `span` goes off.
    #[inline]
    pub(super) fn timer(&self, now: Time, span: Span) -> Time {
        match self.cfg.timers.grain {
            TimerGrain::Exact => now + span,
            TimerGrain::Wheel => wheel(now, span, self.cfg.timers.hz),
        }
    }

    /// When to call [`Sender::handle_timeout`]; [`Time::MAX`] for never.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let timers = self.rto_at.min(self.probe_at).min(self.reorder_at);
        let timers = timers.min(self.persist.at());
        if self.gated {
            timers.min(self.pacer.next())
        } else {
            timers
        }
    }

    /// A timer is due: retransmission, reordering, probe or pacing. Poll for segments afterwards.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Connection::SynSent { at, tries } = self.connection {
            if now >= self.timer(at, self.syn_timeout(tries)) {
                self.connection = Connection::Opening { tries: tries + 1 };
                self.rto_at = Time::MAX;
            }
            return;
        }
        if now >= self.reorder_at {
            self.reorder_at = Time::MAX;
            self.on_reordering_timer(now);
        }
        // The probe goes first where both are due: it is there to spare the timeout.
        let probing = now >= self.probe_at && self.on_probe_timer(now);
        if !probing && now >= self.rto_at {
            self.on_rto(now);
        }
        if now >= self.persist.at() {
            self.on_persist_timer();
        }
        self.refresh_budget();
    }
}
