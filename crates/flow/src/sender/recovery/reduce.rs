//! The answer to congestion: one reduction per window of data, whatever the sign was.

use fullpipe_cc::{AckEvent, CongestionEvent, CongestionKind, Controller, Phase};
use fullpipe_units::Time;

use super::prr::Prr;
use super::undo::UndoMark;
use crate::config::Reduction;
use crate::episode::EpisodeKind;
use crate::sender::Sender;
use crate::sender::scoreboard::Delivered;

impl<C: Controller> Sender<C> {
    /// One reduction per window of data: on loss into recovery, on a mark, a local drop or an artificial loss into CWR.
    pub(in crate::sender) fn reduce(
        &mut self,
        now: Time,
        kind: CongestionKind,
        lost: u64,
        event: &mut AckEvent,
    ) {
        let real_loss = lost > 0;
        let reducing = matches!(self.phase, Phase::Cwr | Phase::Recovery | Phase::Loss);
        if reducing && !real_loss {
            return;
        }
        if self.phase == Phase::Cwr {
            // Already answered in this window: only the repair is new.
            self.phase = Phase::Recovery;
            self.recovery_point = self.board.nxt();
            return;
        }
        let before = self.cc.window();
        let delivered = (event.acked, event.sacked);
        self.cc
            .on_congestion(&self.congestion(now, kind, true, lost, delivered));
        self.note(now, EpisodeKind::Congestion(kind), before);
        self.counts.loss_events += 1;
        self.pacer.end_spreading();
        self.phase = if real_loss {
            Phase::Recovery
        } else {
            Phase::Cwr
        };
        self.recovery_point = self.board.nxt();
        self.reduced_at = now;
        self.rescue_after = self.board.una() + 1;
        self.probe_at = Time::MAX;
        self.probe = None;
        self.partial_ack_seen = false;
        self.cwr_pending = self.cfg.ecn;
        self.undo =
            (real_loss && self.cfg.recovery.undo).then(|| UndoMark::new(self.board.una(), false));
        let scale = match self.cfg.recovery.reduction {
            Reduction::Immediate => return,
            Reduction::Prr => {
                let flight = self.board.flight();
                flight - self.board.sacked_out().min(flight) + event.acked + event.sacked
            }
            Reduction::PrrWindow => before as u64,
        };
        let ssthresh = self.cc.ssthresh() as u64;
        self.prr = Some(Prr::new(ssthresh, scale, before as u64));
    }

    /// A retransmission was lost: a second sign of congestion (RFC 5681 section 4.3).
    pub(super) fn reduce_again(&mut self, now: Time, lost: u64) {
        if !self.cfg.recovery.reduce_on_lost_retransmission {
            return;
        }
        let before = self.cc.window();
        self.cc
            .on_congestion(&self.congestion(now, CongestionKind::Loss, false, lost, (0, 0)));
        self.note(now, EpisodeKind::Again, before);
        self.reduced_at = now;
        if let Some(prr) = &mut self.prr {
            prr.lower(self.cc.ssthresh() as u64);
        }
    }

    pub(in crate::sender) fn reduce_for_local_drop(&mut self, now: Time) {
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let none = Delivered::default();
            let mut event = self.event_for(now, &none);
            self.reduce(now, CongestionKind::LocalDrop, 0, &mut event);
            if let Some(prr) = &mut self.prr {
                let pipe = self.board.pipe();
                *prr = Prr::new(self.cc.ssthresh() as u64, pipe, pipe.max(1));
            }
            // With nothing outstanding no ACK will come to end the reduction.
            self.leave_phase_if_done(now);
        } else {
            self.undo = None;
        }
    }

    /// RFC 3168 section 6.1.2: one answer per window of data. Until the segment with CWR can have arrived, the echo is still
    /// that of the last mark.
    #[cold]
    pub(in crate::sender) fn on_ecn_echo(&mut self, now: Time, event: &mut AckEvent) {
        if !matches!(self.phase, Phase::Open | Phase::Disorder) {
            // The reduction under way is justified by the mark as well: it must not be undone.
            self.undo = None;
        } else if self.board.una() > self.recovery_point {
            self.reduce(now, CongestionKind::Ecn, 0, event);
        }
    }

    pub(super) fn congestion(
        &self,
        now: Time,
        kind: CongestionKind,
        first_in_window: bool,
        lost: u64,
        (acked, sacked): (u64, u64),
    ) -> CongestionEvent {
        // As it was when the ACK came. Each segment of Limited Transmit answers one that was SACKed before.
        let before = self.board.sacked_out().saturating_sub(sacked);
        let limited = self.limited_sent.min(before);
        let flight = (self.board.flight() + acked).saturating_sub(limited);
        // RFC 7661 section 4.3: a window that was not used is judged by what was.
        let flight = self
            .validation
            .pipe_ack()
            .map_or(flight, |used| flight.max(used));
        CongestionEvent {
            now,
            kind,
            first_in_window,
            lost,
            flight,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
        }
    }
}
