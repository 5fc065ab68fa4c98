//! Estimates of the path: rounds (section 5.5.1), the largest bandwidth of two probing cycles
//! (5.5.2 to 5.5.6), the smallest RTT (5.3.4.3, 5.5.7), ACK aggregation (5.5.9).

use fullpipe_units::{Span, Time};

use super::rules::Rules;
use super::sample::Sample;
use super::settings::Settings;
use crate::max_filter::MaxFilter;

/// Packet-timed rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// BBR.round_count.
    pub(super) count: u32,
    /// BBR.round_start.
    pub(super) start: bool,
    /// BBR.next_round_delivered.
    next_delivered: u64,
}

impl Rounds {
    /// StartRound().
    pub(super) fn begin(&mut self, c_delivered: u64) {
        self.next_delivered = c_delivered;
    }

    /// UpdateRound().
    pub(super) fn update(&mut self, rs: &Sample) {
        self.start = rs
            .prior_delivered
            .is_some_and(|prior| prior >= self.next_delivered);
        if self.start {
            self.begin(rs.c_delivered);
            self.count += 1;
        }
    }
}

/// BBR.max_bw and its filter: the previous ProbeBW cycle and the present one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    /// BBR.max_bw, segments/s.
    bw: f64,
    cycles: [f64; 2],
    /// BBR.cycle_count.
    pub(super) cycle_count: u32,
}

impl MaxBw {
    #[inline]
    pub(super) fn get(&self) -> f64 {
        self.bw
    }

    /// UpdateMaxBw() without UpdateRound().
    pub(super) fn update(&mut self, rs: &Sample) {
        let rate = rs.delivery_rate;
        if rate > 0.0 && (rate >= self.bw || !rs.app_limited) {
            self.cycles[1] = self.cycles[1].max(rate);
            self.bw = self.cycles[0].max(self.cycles[1]);
        }
    }

    /// AdvanceMaxBwFilter().
    pub(super) fn advance(&mut self) {
        self.cycle_count += 1;
        self.cycles = [self.cycles[1], 0.0];
    }

    pub(super) fn scale(&mut self, ratio: f64) {
        self.bw *= ratio;
        self.cycles = self.cycles.map(|bw| bw * ratio);
    }
}

/// BBR.min_rtt, and when ProbeRTT is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt; [`Span::MAX`] before the first sample.
    min_rtt: Span,
    stamp: Time,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    probe_min_delay: Span,
    probe_min_stamp: Time,
    /// BBR.probe_rtt_expired.
    pub(super) expired: bool,
}

impl MinRtt {
    /// `srtt`: C.srtt, zero before the first sample.
    pub(super) fn new(now: Time, srtt: Span) -> Self {
        let min_rtt = if srtt > Span::ZERO { srtt } else { Span::MAX };
        Self {
            min_rtt,
            stamp: now,
            probe_min_delay: min_rtt,
            probe_min_stamp: now,
            expired: false,
        }
    }

    /// The estimate; `None` before the first sample.
    #[inline]
    pub(super) fn get(&self) -> Option<Span> {
        (self.min_rtt < Span::MAX).then_some(self.min_rtt)
    }

    /// UpdateMinRTT().
    pub(super) fn update(&mut self, rs: &Sample, set: &Settings) {
        self.expired = rs.now > self.probe_min_stamp + set.probe_rtt_interval;
        if let Some(rtt) = rs.rtt
            && (rtt < self.probe_min_delay || self.expired)
        {
            self.probe_min_delay = rtt;
            self.probe_min_stamp = rs.now;
        }
        let min_rtt_expired = rs.now > self.stamp + set.min_rtt_filter_len;
        if self.probe_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_min_delay;
            self.stamp = self.probe_min_stamp;
        }
    }

    /// ProbeRTT is over: the next one is a whole interval away.
    pub(super) fn schedule(&mut self, now: Time) {
        self.probe_min_stamp = now;
    }
}

/// BBR.extra_acked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraAcked {
    filter: MaxFilter<f64>,
    interval_start: Time,
    /// BBR.extra_acked_delivered.
    delivered: f64,
}

/// Estimates of the path that an ACK's delivery is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// BBR.bw, segments/s.
    pub(super) bw: f64,
    /// C.cwnd, segments.
    pub(super) cwnd: f64,
    pub(super) round: u32,
    /// Length of the filter, rounds.
    pub(super) filter_len: u32,
}

impl ExtraAcked {
    pub(super) fn new(now: Time) -> Self {
        Self {
            filter: MaxFilter::default(),
            interval_start: now,
            delivered: 0.0,
        }
    }

    #[inline]
    pub(super) fn get(&self) -> f64 {
        self.filter.get()
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.interval_start = now;
    }

    /// UpdateACKAggregation().
    pub(super) fn update(&mut self, rs: &Sample, at: Expected, rules: &Rules) {
        let interval = rs.now.saturating_since(self.interval_start).as_secs_f64();
        let mut expected = rules.down(at.bw * interval);
        if self.delivered <= expected {
            self.delivered = 0.0;
            self.interval_start = rs.now;
            expected = 0.0;
        }
        self.delivered += rs.newly_acked;
        let extra = (self.delivered - expected).min(at.cwnd);
        self.filter.update(at.filter_len, at.round, extra);
    }
}
