//! What the model makes of its estimates: gains (section 5.6.1), volumes (5.6.4.2), pacing rate
//! (5.6.2), quantum (5.6.3) and window (5.6.4).

use fullpipe_units::Span;

use super::loss::Repair;
use super::sample::Sample;
use super::{Bbr, State};

impl Bbr {
    // Gains.

    #[inline]
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.set.startup_pacing_gain,
            State::Drain => self.set.drain_pacing_gain,
            State::Down => self.set.probe_down_pacing_gain,
            State::Up => self.set.probe_up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    #[inline]
    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.set.probe_up_cwnd_gain,
            State::ProbeRtt => self.set.probe_rtt_cwnd_gain,
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => {
                self.set.default_cwnd_gain
            }
        }
    }

    // Volumes, segments.

    /// BDPMultiple() of the bandwidth `bw`.
    #[inline]
    pub(super) fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt.get() {
            Some(min_rtt) => self.rules.up(gain * bw * min_rtt.as_secs_f64()),
            None => self.setup.initial_cwnd,
        }
    }

    /// QuantizationBudget(), with TCP's offload budget of three quanta (section 5.5.8).
    #[inline]
    fn quantized(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap
            .max(OFFLOAD_QUANTA * self.burst())
            .max(self.set.min_pipe_cwnd);
        if self.state == State::Up {
            cap + 2.0
        } else {
            cap
        }
    }

    /// Inflight() of the bandwidth `bw`.
    #[inline]
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// InflightWithHeadroom() (section 5.3.3.9).
    #[inline]
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        let longterm = self.rules.down(self.inflight_longterm);
        let headroom = self.rules.down(self.set.headroom * longterm).max(1.0);
        (longterm - headroom).max(self.set.min_pipe_cwnd)
    }

    /// TargetInflight() (section 5.3.3.8).
    pub(super) fn target_inflight(&self) -> f64 {
        let target = match self.rules.target_has_budget {
            true => self.inflight(self.bw, 1.0),
            false => self.bdp(self.bw, 1.0),
        };
        target.min(self.cwnd)
    }

    /// What of `inflight` will be in flight when the next segment may leave, that one included
    /// where the pacing of before this ACK raises it.
    pub(super) fn at_departure(&self, rs: &Sample, inflight: f64) -> f64 {
        let next = if self.gain_in_force > 1.0 {
            self.burst()
        } else {
            0.0
        };
        let delivered = libm::floor(self.bw * rs.wait.as_secs_f64());
        (inflight + next - delivered).max(0.0)
    }

    /// What leaves in one go, segments: C.send_quantum, or by the kernel's rule.
    fn burst(&self) -> f64 {
        if !self.rules.bursts_by_rtt {
            return self.send_quantum;
        }
        // 64 KiB, halved for every 512 us of RTT, beside what leaves in 2^-10 s at the rate.
        let halvings = self
            .min_rtt
            .get()
            .map_or(u64::MAX, |rtt| rtt.as_nanos() / 512_000);
        let near = LARGEST_QUANTUM / (1u64 << halvings.min(32)) as f64;
        let bytes = self.pacing_rate * self.setup.smss / 1024.0 + libm::floor(near);
        libm::floor(bytes.min(LARGEST_BURST) / self.setup.smss).max(2.0)
    }

    // Pacing rate and quantum.

    /// InitPacingRate().
    pub(super) fn init_pacing_rate(&mut self, srtt: Span) {
        self.has_seen_rtt = srtt > Span::ZERO;
        let rtt = if self.has_seen_rtt { srtt } else { NOMINAL_RTT };
        let nominal = self.setup.initial_cwnd / rtt.as_secs_f64();
        self.pacing_rate = self.set.startup_pacing_gain * nominal;
    }

    /// SetPacingRateWithGain().
    #[inline]
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (100.0 - self.set.pacing_margin_percent) / 100.0;
        if rate > 0.0 && (self.full.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetSendQuantum().
    #[inline]
    pub(super) fn set_send_quantum(&mut self) {
        let largest = LARGEST_QUANTUM / self.setup.smss;
        self.send_quantum = (self.pacing_rate * 1e-3).min(largest).max(2.0);
    }

    // Window.

    /// SetCwnd().
    #[inline]
    pub(super) fn set_cwnd(&mut self, rs: &Sample) {
        let bdp = self.bdp(self.bw, self.cwnd_gain());
        let most = self.rules.most_aggregation;
        let most = most.map_or(f64::INFINITY, |most| self.bw * most.as_secs_f64());
        let max_inflight = self.quantized(bdp + self.rules.down(self.extra_acked.get().min(most)));
        if self.full.reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else {
            let grows_anyway = match self.rules.least_startup {
                Some(windows) => self.cwnd < windows * self.setup.initial_cwnd,
                None => (rs.c_delivered as f64) < self.setup.initial_cwnd,
            };
            if self.cwnd < max_inflight || grows_anyway {
                self.cwnd += rs.newly_acked;
            }
        }
        self.cwnd = self.cwnd.max(self.set.min_pipe_cwnd);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
        self.cwnd = self.cwnd.min(self.setup.max_cwnd);
    }

    /// BoundCwndForModel().
    #[inline]
    fn bound_cwnd(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let cap = cap.min(self.short.inflight).max(self.set.min_pipe_cwnd);
        self.cwnd = self.cwnd.min(cap);
    }

    /// SaveCwnd() (section 5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let cut = matches!(self.repair, Repair::FastRecovery | Repair::Timeout)
            || self.state == State::ProbeRtt;
        self.prior_cwnd = match cut {
            true => self.prior_cwnd.max(self.cwnd),
            false => self.cwnd,
        };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd).min(self.setup.max_cwnd);
    }
}

/// RTT before the first sample (section 5.6.2).
const NOMINAL_RTT: Span = Span::from_millis(1);
/// Largest quantum, bytes (section 5.6.3).
const LARGEST_QUANTUM: f64 = 65_536.0;
/// Largest burst of the kernel, bytes: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`.
const LARGEST_BURST: f64 = 65_536.0 - 1.0 - 320.0;
/// Quanta of TCP's offload budget (section 5.5.8.1).
const OFFLOAD_QUANTA: f64 = 3.0;
