//! ProbeBW (section 5.3.3): its four states, when to probe, and the long-term bound that probes
//! move.

use fullpipe_units::{Span, Time};

use super::sample::Sample;
use super::signals::ShortTerm;
use super::{Bbr, State};

/// State of bandwidth probing (section 2.14).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_sample: bool,
    /// BBR.bw_probe_up_acked and BBR.probe_up_acked_per_inc, segments.
    pub(super) up_acked: f64,
    pub(super) acked_per_inc: f64,
    pub(super) up_rounds: u32,
    /// BBR.rounds_since_probe_up.
    pub(super) rounds_since_up: u32,
    /// BBR.bw_probe_wait, from BBR.cycle_stamp on.
    pub(super) wait: Span,
    pub(super) cycle_stamp: Time,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    pub(super) too_high: bool,
    pub(super) precautionary: bool,
}

/// BBR.ack_phase: what the ACKs are feedback to (section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Probe {
    /// OnInit() (section 5.2.1).
    pub(super) const NEW: Self = Self {
        ack_phase: AckPhase::Init,
        is_sample: false,
        up_acked: 0.0,
        acked_per_inc: f64::INFINITY,
        up_rounds: 0,
        rounds_since_up: 0,
        wait: Span::ZERO,
        cycle_stamp: Time::ZERO,
        too_high: false,
        precautionary: false,
    };
}

impl Bbr {
    pub(super) fn is_in_probe_bw(&self) -> bool {
        matches!(
            self.state,
            State::Down | State::Cruise | State::Refill | State::Up
        )
    }

    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    pub(super) fn start_down(&mut self, now: Time, c_delivered: u64) {
        self.latest.reset();
        let probe = &mut self.probe;
        probe.acked_per_inc = f64::INFINITY;
        probe.rounds_since_up = self.draws.below(2);
        probe.wait = PROBE_WAIT + Span::from_secs_f64(self.draws.fraction());
        probe.cycle_stamp = now;
        probe.ack_phase = AckPhase::ProbeStopping;
        self.rounds.begin(c_delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, c_delivered: u64) {
        self.short = ShortTerm::UNSET;
        let probe = &mut self.probe;
        probe.up_rounds = 0;
        probe.up_acked = 0.0;
        probe.precautionary = false;
        probe.ack_phase = AckPhase::Refilling;
        self.rounds.begin(c_delivered);
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, rs: &Sample) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.rounds.begin(rs.c_delivered);
        self.full.reset(rs.delivery_rate);
        self.state = State::Up;
        self.raise_longterm_slope();
    }

    pub(super) fn update_probe_bw(&mut self, rs: &Sample) {
        if !self.full.reached || self.adapt_long_term(rs) || !self.is_in_probe_bw() {
            return;
        }
        match self.state {
            State::Down => {
                if !self.probes_now(rs) && self.is_time_to_cruise(rs) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                self.probes_now(rs);
            }
            State::Refill => {
                if self.rounds.start {
                    self.probe.is_sample = true;
                    self.start_up(rs);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(rs) {
                    self.probe.too_high = false;
                    self.start_down(rs.now, rs.c_delivered);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW(): also begins to.
    pub(super) fn probes_now(&mut self, rs: &Sample) -> bool {
        let elapsed = rs.now > self.probe.cycle_stamp + self.probe.wait;
        let reno_rounds = self.target_inflight().min(RENO_ROUNDS);
        let due = elapsed || f64::from(self.probe.rounds_since_up) >= reno_rounds;
        if due {
            self.start_refill(rs.c_delivered);
        }
        due
    }

    pub(super) fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        let inflight = match self.rules.inflight_at_departure {
            true => self.at_departure(rs, rs.prior_inflight),
            false => rs.inflight,
        };
        inflight <= self.inflight_with_headroom()
            && inflight <= self.inflight(self.max_bw.get(), 1.0)
    }

    pub(super) fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        // Whole segments are in flight; a window that this bounds lets so many leave.
        let risky = libm::floor(self.inflight_longterm);
        let reached = match self.rules.inflight_at_departure {
            true => self.at_departure(rs, rs.prior_inflight),
            false => rs.prior_inflight + self.send_quantum,
        };
        if self.probe.too_high && reached >= risky {
            self.probe.precautionary = true;
            return true;
        }
        if rs.cwnd_limited && self.cwnd >= self.inflight_longterm {
            self.full.reset(rs.delivery_rate);
            return false;
        }
        self.full.now
    }

    /// AdaptLongTermModel(): true if it decided a transition.
    pub(super) fn adapt_long_term(&mut self, rs: &Sample) -> bool {
        let probe = &mut self.probe;
        if probe.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if probe.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            probe.is_sample = false;
            probe.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() {
                if !rs.app_limited {
                    self.max_bw.advance();
                }
                if self.probe.precautionary && !self.probe.too_high {
                    self.start_refill(rs.c_delivered);
                    return true;
                }
            }
        }
        if self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            if self.rules.heeds_samples && self.probe.is_sample {
                self.too_high(rs.now, rs.c_delivered, rs.tx_in_flight, rs.app_limited);
            }
        } else if self.inflight_longterm < f64::INFINITY {
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_longterm_upward(rs);
            }
        }
        false
    }

    /// RaiseInflightLongtermSlope(): 1, 2, 4, .. segments per round.
    pub(super) fn raise_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(LARGEST_SLOPE);
        self.probe.acked_per_inc = self.rules.down(self.cwnd / growth).max(1.0);
    }

    /// ProbeInflightLongtermUpward().
    pub(super) fn probe_longterm_upward(&mut self, rs: &Sample) {
        if !rs.cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        let probe = &mut self.probe;
        probe.up_acked += rs.newly_acked;
        let delta = libm::floor(probe.up_acked / probe.acked_per_inc);
        probe.up_acked -= delta * probe.acked_per_inc;
        self.inflight_longterm += delta;
        if self.rounds.start {
            self.raise_longterm_slope();
        }
    }
}

/// Least wall-clock time between probes; up to a second more (section 5.3.3.8.3).
const PROBE_WAIT: Span = Span::from_secs(2);
/// Most rounds between probes, for Reno's sake (section 5.3.3.8.3).
const RENO_ROUNDS: f64 = 63.0;
/// Largest exponent of the slope (section 5.3.3.9).
const LARGEST_SLOPE: u32 = 30;
