//! Which segments are lost: by time (RACK, RFC 8985), by SACKed segments above (RFC 6675), by
//! duplicates (RFC 6582).

use fullpipe_cc::Phase;
use fullpipe_units::{Span, Time};

use super::Recovery;
use crate::config::{Detector, Reduction, SpuriousRule};
use crate::sender::rtt::RttEstimator;
use crate::sender::scoreboard::Scoreboard;
use crate::sender::timers::Timers;

/// What one run of the detector found, segments.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Losses {
    /// Sent once and newly lost.
    pub(in crate::sender) originals: u64,
    /// Retransmissions that left after the reduction began and are lost.
    pub(in crate::sender) retransmissions: u64,
    /// Retransmissions from before it that are lost.
    pub(in crate::sender) older: u64,
}

impl Losses {
    pub(in crate::sender) fn all(self) -> u64 {
        self.originals + self.retransmissions + self.older
    }
}

impl Recovery {
    /// What is lost after an ACK; `advanced`: it moved `una`.
    #[inline]
    pub(in crate::sender) fn detect(
        &mut self,
        now: Time,
        advanced: bool,
        board: &mut Scoreboard,
        rtt: &RttEstimator,
        timers: &mut Timers,
    ) -> Losses {
        let originals = match self.cfg.detector {
            Detector::Rack if !self.rack.take_news() => return Losses::default(),
            Detector::Rack => return self.detect_by_time(now, board, rtt, timers),
            Detector::Sack => self.detect_by_sack(board),
            Detector::NewReno => self.detect_by_duplicates(advanced, board),
        };
        Losses {
            originals,
            ..Losses::default()
        }
    }

    /// RACK's detection, and its timer for segments that are late and not yet lost.
    pub(in crate::sender) fn detect_by_time(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        rtt: &RttEstimator,
        timers: &mut Timers,
    ) -> Losses {
        let window = self.reordering_window(rtt, board);
        let rack = &self.rack;
        let reduced_at = self.reduced_at;
        let mut losses = Losses::default();
        let limit = board.nxt();
        let pending = board.mark_lost_originals(limit, false, &mut losses.originals, |seq, s| {
            rack.is_before(s.xmit, seq) && rack.lost_at(s.xmit, window) <= now
        });
        let pending_retrans = board.mark_lost_retransmissions(|seq, s| {
            let lost = rack.is_before(s.xmit, seq) && rack.lost_at(s.xmit, window) <= now;
            match s.xmit >= reduced_at && !s.is_exonerated() {
                true => losses.retransmissions += u64::from(lost),
                false => losses.older += u64::from(lost),
            }
            lost
        });
        // Segments sent before the newest delivery are suspects; the timer waits for the last.
        let newest = rack.newest();
        let again = pending_retrans.is_some_and(|xmit| xmit <= newest.0);
        let last = match again || pending.is_some_and(|(xmit, seq)| rack.is_before(xmit, seq)) {
            true => board.last_suspect(newest, again),
            false => None,
        };
        // One that is due already stands behind another of the same instant that nothing has
        // overtaken yet; the next ACK judges it.
        let due = last.map(|xmit| rack.lost_at(xmit, window));
        timers.set_reorder(now, due.filter(|at| *at > now));
        losses
    }

    /// Linux asks for as many SACKed segments above a hole as it has seen segments overtaken, and
    /// for none while a timeout is answered, which has marked all (`tcp_update_scoreboard`,
    /// `tcp_fastretrans_alert`).
    fn detect_by_sack(&self, board: &mut Scoreboard) -> u64 {
        let enough = match self.cfg.reordering_by {
            SpuriousRule::Rfc => DUP_THRESH,
            SpuriousRule::Linux if self.phase == Phase::Loss => return 0,
            SpuriousRule::Linux => self.rack.distance(),
        };
        let limit = board.sacked_threshold(enough);
        let mut lost = 0;
        if limit > 0 {
            board.mark_lost_originals(limit, true, &mut lost, |_, _| true);
        }
        lost
    }

    fn detect_by_duplicates(&mut self, advanced: bool, board: &mut Scoreboard) -> u64 {
        let una = board.una();
        let enough = self.newreno.duplicates() >= self.newreno.threshold();
        let head = board.flight() > 0
            && match self.phase {
                // A partial ACK names the next hole.
                Phase::Recovery => advanced && una < self.point,
                // The ACK must cover more than the last recovery, or its duplicates may come from
                // what was resent for nothing (RFC 6582 section 3.2 step 2).
                Phase::Open | Phase::Disorder => enough && (una > self.point || self.point == 0),
                Phase::Cwr => enough,
                Phase::Loss => false,
            };
        let news = head && board.mark_lost(una);
        // RFC 6582 section 3.2 step 3: the hole leaves at once, as the first one did.
        self.fast_retransmit |=
            news && self.phase == Phase::Recovery && self.cfg.reduction == Reduction::Immediate;
        self.newreno.bound(board, 0);
        u64::from(news)
    }

    /// RACK.reo_wnd (RFC 8985 section 6.2 step 4).
    pub(super) fn reordering_window(&self, rtt: &RttEstimator, board: &Scoreboard) -> Span {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        self.rack
            .window(rtt.min(), rtt.srtt(), recovering, board.sacked_out())
    }
}

/// Duplicates or SACKed segments above that call a hole lost (RFC 5681, RFC 6675 DupThresh).
pub(super) const DUP_THRESH: u64 = 3;
