//! What deliveries and losses say of the present round: the full pipe (section 5.3.1.2), losses and
//! the latest delivery (5.5.10.3), and the short-term bounds that follow from them.

use super::sample::Sample;

/// Has the pipe been filled? Three rounds without a quarter more bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: at least once.
    pub(super) reached: bool,
    /// BBR.full_bw_now: since the present probe began.
    pub(super) now: bool,
    /// BBR.full_bw, segments/s.
    pub(super) bw: f64,
    /// BBR.full_bw_count, rounds.
    pub(super) count: u32,
}

impl FullPipe {
    /// ResetFullBW(), with `bw` as the baseline.
    pub(super) fn reset(&mut self, bw: f64) {
        self.bw = bw;
        self.count = 0;
        self.now = false;
    }

    /// CheckFullBWReached().
    pub(super) fn check(&mut self, rs: &Sample, round_start: bool, at_every_ack: bool) {
        if self.now || !(round_start || at_every_ack) || rs.app_limited {
            return;
        }
        if rs.delivery_rate >= self.bw * GROWTH {
            return self.reset(rs.delivery_rate);
        }
        self.count += u32::from(round_start);
        self.now = self.count >= ROUNDS;
        self.reached |= self.now;
    }
}

/// Growth per round that shows more bandwidth, and rounds without it (section 5.3.1.2).
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

/// Deliveries and losses of the present loss round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// BBR.bw_latest, segments/s, and BBR.inflight_latest, segments.
    pub(super) bw: f64,
    pub(super) inflight: f64,
    /// BBR.is_loss_in_round.
    pub(super) loss_in_round: bool,
    /// BBR.loss_round_start.
    pub(super) round_start: bool,
    /// BBR.loss_round_delivered.
    round_delivered: u64,
    /// Discontiguous ranges lost in this round, and the number after the last lost segment.
    ranges: u32,
    range_end: u64,
    /// ACKs in this round that found losses.
    lossy_acks: u32,
    /// C.delivered.
    pub(super) c_delivered: u64,
}

impl Latest {
    /// UpdateLatestDeliverySignals().
    pub(super) fn update(&mut self, rs: &Sample) {
        self.round_start = false;
        self.bw = self.bw.max(rs.delivery_rate);
        self.inflight = self.inflight.max(rs.delivered);
        if rs
            .prior_delivered
            .is_some_and(|prior| prior >= self.round_delivered)
        {
            self.round_delivered = rs.c_delivered;
            self.round_start = true;
        }
    }

    /// AdvanceLatestDeliverySignals(); also the round's lost ranges are over.
    pub(super) fn advance(&mut self, rs: &Sample) {
        if self.round_start {
            self.bw = rs.delivery_rate;
            self.inflight = rs.delivered;
            self.ranges = 0;
            self.lossy_acks = 0;
        }
    }

    /// ResetCongestionSignals().
    pub(super) fn reset(&mut self) {
        self.loss_in_round = false;
        self.bw = 0.0;
        self.inflight = 0.0;
    }

    /// NoteLoss() without SaveStateUponLoss(): the first loss of a round begins the loss round.
    pub(super) fn note_loss(&mut self, c_delivered: u64) {
        if !self.loss_in_round {
            self.round_delivered = c_delivered;
        }
        self.loss_in_round = true;
    }

    /// Segment `seq` is lost.
    pub(super) fn count_range(&mut self, seq: u64) {
        self.ranges += u32::from(seq != self.range_end);
        self.range_end = seq + 1;
    }

    /// An ACK has found so many losses.
    pub(super) fn count_lossy(&mut self, lost: u64) {
        self.lossy_acks += u32::from(lost > 0);
    }

    /// ACKs in this round that found losses.
    pub(super) fn lossy_acks(&self) -> u32 {
        self.lossy_acks
    }

    /// Discontiguous ranges lost in this round.
    pub(super) fn ranges(&self) -> u32 {
        self.ranges
    }
}

/// The short-term model; infinite where nothing bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm, segments/s.
    pub(super) bw: f64,
    /// BBR.inflight_shortterm, segments.
    pub(super) inflight: f64,
}

impl ShortTerm {
    /// ResetShortTermModel().
    pub(super) const UNSET: Self = Self {
        bw: f64::INFINITY,
        inflight: f64::INFINITY,
    };

    /// InitLowerBounds() and LossLowerBounds(): a round with losses, with `max_bw` and `cwnd` where
    /// the cycle had none before.
    pub(super) fn adapt(&mut self, latest: &Latest, max_bw: f64, cwnd: f64, beta: f64) {
        if self.bw == f64::INFINITY {
            self.bw = max_bw;
        }
        if self.inflight == f64::INFINITY {
            self.inflight = cwnd;
        }
        self.bw = latest.bw.max(beta * self.bw);
        self.inflight = latest.inflight.max(beta * self.inflight);
    }

    pub(super) fn raise_to(&mut self, other: &Self) {
        self.bw = self.bw.max(other.bw);
        self.inflight = self.inflight.max(other.inflight);
    }
}
