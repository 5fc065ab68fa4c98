//! Tail loss probes (RFC 8985 section 7).

use fullpipe_cc::{AckEvent, CongestionKind, Controller, Phase};
use fullpipe_units::Time;

use crate::config::Detector;
use crate::segment::Segment;
use crate::sender::Sender;

/// A tail loss probe under way (RFC 8985 section 7).
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Probe {
    end: u64,
    retransmission: bool,
}

impl<C: Controller> Sender<C> {
    /// RFC 8985 section 7.2.
    #[inline(always)]
    pub(in crate::sender) fn arm_probe(&mut self, now: Time) {
        if !self.cfg.recovery.tlp {
            return;
        }
        if self.phase != Phase::Open
            || self.board.sacked_out() > 0
            || self.cfg.recovery.detector != Detector::Rack
        {
            self.probe_at = Time::MAX;
            return;
        }
        let mut wait = if self.rtt.has_sample() {
            self.rtt.srtt() * 2
        } else {
            self.cfg.rto.initial
        };
        wait += if self.board.flight() == 1 {
            self.cfg.timers.max_ack_delay
        } else {
            self.cfg.timers.probe_margin
        };
        self.probe_at = self.timer(now, wait).min(self.rto_at);
    }

    /// RFC 8985 section 7.4.2: did the probe repair a loss?
    pub(super) fn check_probe(
        &mut self,
        now: Time,
        advanced: bool,
        dsack: Option<u64>,
        event: &mut AckEvent,
    ) {
        let Some(probe) = self.probe else { return };
        let updated = self.persist.take_update();
        let una = self.board.una();
        if dsack.is_some_and(|s| s + 1 == probe.end) {
            self.probe = None;
        } else if una >= probe.end {
            if !probe.retransmission {
                self.probe = None;
            } else if una > probe.end {
                self.probe = None;
                self.reduce(now, CongestionKind::Loss, 0, event);
            } else if !advanced && !updated && self.board.sacked_out() == 0 {
                self.probe = None;
            }
        }
    }

    /// RFC 8985 section 7.3: the probe's timer is due; true if a probe is to be sent. The RTO then starts anew.
    pub(in crate::sender) fn on_probe_timer(&mut self, now: Time) -> bool {
        self.probe_at = Time::MAX;
        let idle = self.probe.is_none() && self.probe_allowed;
        let due = idle && self.phase == Phase::Open && self.board.flight() > 0;
        if due {
            self.probe_due = true;
            self.probe_allowed = false;
            self.rto_at = self.timer(now, self.rtt.rto());
        }
        due
    }

    /// One segment beyond the window: new data if there is some, the newest sent otherwise.
    pub(in crate::sender) fn send_probe(&mut self, now: Time) -> Option<Segment> {
        if self.board.flight() == 0 || self.phase != Phase::Open {
            return None;
        }
        self.counts.probes += 1;
        // That of an earlier ACK.
        self.persist.take_update();
        let nxt = self.board.nxt();
        let pipe = self.board.pipe();
        let segment = if nxt < self.send_limit {
            self.probe = Some(Probe {
                end: nxt + 1,
                retransmission: false,
            });
            self.send_new(now, pipe)
        } else {
            self.probe = Some(Probe {
                end: nxt,
                retransmission: true,
            });
            self.retransmit(now, nxt - 1)
        };
        self.probe_at = Time::MAX;
        Some(segment)
    }
}
