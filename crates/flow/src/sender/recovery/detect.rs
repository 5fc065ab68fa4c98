//! Which segments are lost: by time (RACK, RFC 8985), by SACKed segments above (RFC 6675), by duplicates (RFC 6582).

use fullpipe_cc::{CongestionKind, Controller, Phase};
use fullpipe_units::{Span, Time};

use super::prr::Prr;
use crate::clock::wheel;
use crate::config::{Detector, TimerGrain};
use crate::sender::Sender;
use crate::sender::scoreboard::Delivered;

impl<C: Controller> Sender<C> {
    /// Judges what is lost; returns segments newly lost and retransmissions lost again after the reduction began.
    pub(super) fn detect(&mut self, now: Time, advanced: bool) -> (u64, u64) {
        match self.cfg.recovery.detector {
            Detector::Rack => self.detect_by_time(now),
            Detector::Sack => (self.detect_by_sack(), 0),
            Detector::NewReno => (self.detect_by_duplicates(advanced), 0),
        }
    }

    fn detect_by_time(&mut self, now: Time) -> (u64, u64) {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let window = self.rack.window(
            self.rtt.min(),
            self.rtt.srtt(),
            recovering,
            self.board.sacked_out(),
        );
        let rack = &self.rack;
        let (mut lost, mut again) = (0, 0);
        let limit = self.board.nxt();
        let reduced_at = self.reduced_at;
        let pending = self.board.judge_originals(limit, &mut lost, |seq, s| {
            rack.is_before(seq, s) && rack.verdict_at(s.xmit, window) <= now
        });
        let mut counted = 0;
        let pending_again = self.board.judge_retransmissions(&mut again, |seq, s| {
            let dead = rack.is_before(seq, s) && rack.verdict_at(s.xmit, window) <= now;
            counted += u64::from(dead && s.xmit >= reduced_at);
            dead
        });
        // Only segments sent before the newest delivery are suspects that wait for the timer.
        let newest = rack.xmit();
        let due = [pending, pending_again]
            .into_iter()
            .flatten()
            .filter(|xmit| *xmit <= newest)
            .map(|xmit| rack.verdict_at(xmit, window))
            .filter(|at| *at > now)
            .min();
        self.reorder_at = due.map_or(Time::MAX, |at| self.reordering_timer(now, at));
        (lost, counted)
    }

    fn detect_by_sack(&mut self) -> u64 {
        let limit = self.board.sacked_threshold(DUP_THRESH);
        let mut lost = 0;
        if limit > 0 {
            self.board.judge_originals(limit, &mut lost, |_, _| true);
        }
        lost
    }

    fn detect_by_duplicates(&mut self, advanced: bool) -> u64 {
        let una = self.board.una();
        let head = self.board.flight() > 0
            && match self.phase {
                // A partial ACK names the next hole.
                Phase::Recovery => advanced && una < self.recovery_point,
                // The cumulative number must be beyond the last recovery (RFC 6582 section 3.2 step 1).
                Phase::Open | Phase::Disorder => {
                    self.duplicates >= DUP_THRESH && una >= self.recovery_point
                }
                Phase::Cwr => self.duplicates >= DUP_THRESH,
                Phase::Loss => false,
            };
        let news = head && self.board.mark_lost(una);
        self.duplicates = self.board.bound_duplicates();
        u64::from(news)
    }

    /// RACK's reordering timer: some suspects have waited long enough.
    pub(in crate::sender) fn on_reordering_timer(&mut self, now: Time) {
        let (lost, again) = self.detect_by_time(now);
        let none = Delivered::default();
        let mut event = self.event_for(now, &none);
        event.lost = lost + again;
        if lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr) {
            self.reduce(now, CongestionKind::Loss, lost, &mut event);
            if let Some(prr) = &mut self.prr {
                // No ACK brings a quota: the fast retransmit leaves all the same.
                *prr = Prr::new(
                    self.cc.ssthresh() as u64,
                    self.board.pipe() + lost,
                    self.board.pipe() + 1,
                );
            }
        } else if again > 0 && self.phase == Phase::Recovery {
            self.reduce_again(now, lost + again);
        }
    }

    /// When the verdict over a suspect that is due `at` is passed. Linux adds 2 ms (`TCP_TIMEOUT_MIN_US`).
    fn reordering_timer(&self, now: Time, at: Time) -> Time {
        match self.cfg.timers.grain {
            TimerGrain::Exact => at,
            TimerGrain::Wheel => wheel(now, at - now + Span::from_millis(2), self.cfg.timers.hz),
        }
    }
}

/// RFC 6675, RFC 5681: duplicates that call a hole lost.
const DUP_THRESH: u64 = 3;
