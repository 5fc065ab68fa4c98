//! BBR version 3 from the working group's draft (draft-ietf-ccwg-bbr, text of 3 August 2026).
//! Sections below are that draft's, and so are the names.
//!
//! Volumes are segments and rates segments per second, real-valued; the sender uses the whole part
//! of the window. Where the draft is silent or contradicts itself, this is what runs:
//!
//! - The gains of each ProbeBW state are those of section 5.6.1's table; the pseudo-code of section
//!   5.3.3.9 sets none of them, so that ProbeRTT's `cwnd_gain` of 0.5 would outlive it.
//! - `CheckStartupHighLoss()` exists in prose only (section 5.3.1.3). It looks at the end of a loss
//!   round spent in fast recovery, and sets `full_bw_now` too: the second example case expects it.
//! - `SaveStateUponLoss()` runs once per recovery. The pseudo-code runs it at the first loss of
//!   each round and once more when fast recovery begins, which would overwrite the values "saved at
//!   the start of loss recovery" (section 2.15) by reduced ones and forget `undo_state`, set just
//!   before.
//! - ProbeRTT's window is `ProbeRTTCwnd()`, half a BDP (section 5.6.4.5); the prose beside it and
//!   section 2.16.2 still say `MinPipeCwnd`.
//! - Drain's window is not bounded by `inflight_longterm`: the pseudo-code of section 5.6.4.7
//!   leaves it out, the table of section 5.6.1 has it.
//! - `IsTimeToCruise()` compares with `max_bw` as its pseudo-code does; the prose of section
//!   5.3.3.1 says `BBR.bdp`, which follows `bw`.
//! - `MaxBwFilterLen` is two cycles, the previous and the present one (section 2.11); the filter of
//!   Linux with a window of 2 would keep a third.
//! - `OnInit()` gives no value to `probe_rtt_min_delay`, `probe_rtt_min_stamp`,
//!   `loss_round_delivered` and `cycle_count`: the first two begin as `min_rtt` and its stamp, the
//!   others at zero.
//! - A CE mark counts as congestion, which is all that section 3.6 asks for: as a loss in the
//!   round's signals, in Startup as its end, while probing as an inflight that was too high.
//! - The window and the pacing rate do not react to a segment that the host's own queue refused.

mod path;
mod sample;
mod settings;
mod signals;
#[cfg(test)]
mod tests;

use fullpipe_units::{Rate, Span, Time};

use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, LostSegment, RestartEvent,
    RtoEvent,
};
use crate::draws::Draws;
use crate::entry::Entry;
use path::{Expected, ExtraAcked, MaxBw, MinRtt, Rounds};
use sample::Sample;
use settings::{PARAMS, Settings};
use signals::{FullPipe, Latest, ShortTerm};

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// BBR.ack_phase: what the ACKs are feedback to (section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr {
    set: Settings,
    setup: Endpoint,
    draws: Draws,
    state: State,
    rounds: Rounds,
    max_bw: MaxBw,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    full: FullPipe,
    latest: Latest,
    short: ShortTerm,
    /// BBR.inflight_longterm, segments; infinite if not set.
    inflight_longterm: f64,
    probe: Probe,
    probe_rtt: ProbeRtt,
    /// BBR.drain_start_round.
    drain_start_round: u32,
    idle_restart: bool,
    /// BBR.bw: the smaller of `max_bw` and `bw_shortterm`, segments/s.
    bw: f64,
    /// C.pacing_rate, segments/s.
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// C.send_quantum, segments.
    send_quantum: f64,
    /// C.cwnd, segments.
    cwnd: f64,
    prior_cwnd: f64,
    repair: Repair,
    undo: Undo,
}

/// The connection's [`Setup`] in the draft's names and units.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    /// C.InitialCwnd and the upper clamp of the window, segments.
    initial_cwnd: f64,
    max_cwnd: f64,
    /// C.SMSS, bytes.
    smss: f64,
    /// C.has_selective_acks.
    selective_acks: bool,
}

impl Endpoint {
    fn new(setup: &Setup) -> Self {
        Self {
            initial_cwnd: setup.initial_window.min(setup.max_window),
            max_cwnd: setup.max_window,
            smss: f64::from(setup.mss),
            selective_acks: setup.selective_acks,
        }
    }
}

/// State of bandwidth probing (section 2.14).
#[derive(Clone, Copy, Debug)]
struct Probe {
    ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    is_sample: bool,
    /// BBR.bw_probe_up_acked and BBR.probe_up_acked_per_inc, segments.
    up_acked: f64,
    acked_per_inc: f64,
    up_rounds: u32,
    /// BBR.rounds_since_probe_up.
    rounds_since_up: u32,
    /// BBR.bw_probe_wait, from BBR.cycle_stamp on.
    wait: Span,
    cycle_stamp: Time,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    too_high: bool,
    precautionary: bool,
}

/// BBR.probe_rtt_done_stamp and BBR.probe_rtt_round_done.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    done: Option<Time>,
    round_done: bool,
}

/// The loss recovery that the sender is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// A loss is noted, and the recovery follows.
    Noted,
    FastRecovery,
    Timeout,
}

/// What a spurious recovery restores (section 2.15).
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    short: ShortTerm,
    inflight_longterm: f64,
}

impl Bbr {
    fn new(set: Settings) -> Self {
        let setup = Setup::default();
        Self {
            set,
            setup: Endpoint::new(&setup),
            draws: Draws::new(setup.seed),
            state: State::Startup,
            rounds: Rounds::default(),
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::new(Time::ZERO, Span::ZERO),
            extra_acked: ExtraAcked::new(Time::ZERO),
            full: FullPipe::default(),
            latest: Latest::default(),
            short: ShortTerm::UNSET,
            inflight_longterm: f64::INFINITY,
            probe: Probe {
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
            },
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            idle_restart: false,
            bw: 0.0,
            pacing_rate: 0.0,
            has_seen_rtt: false,
            send_quantum: 2.0,
            cwnd: setup.initial_window,
            prior_cwnd: 0.0,
            repair: Repair::None,
            undo: Undo {
                state: None,
                short: ShortTerm::UNSET,
                inflight_longterm: f64::INFINITY,
            },
        }
    }

    // Gains (section 5.6.1).

    #[inline]
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.set.startup_pacing_gain,
            State::Drain => self.set.drain_pacing_gain,
            State::Down => self.set.probe_down_pacing_gain,
            State::Up => self.set.probe_up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    #[inline]
    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.set.probe_up_cwnd_gain,
            State::ProbeRtt => self.set.probe_rtt_cwnd_gain,
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => {
                self.set.default_cwnd_gain
            }
        }
    }

    // Volumes (section 5.6.4.2), segments.

    /// BDPMultiple() of the bandwidth `bw`.
    #[inline]
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt.get() {
            Some(min_rtt) => gain * bw * min_rtt.as_secs_f64(),
            None => self.setup.initial_cwnd,
        }
    }

    /// QuantizationBudget(), with TCP's offload budget of three quanta (section 5.5.8).
    #[inline]
    fn quantized(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap
            .max(OFFLOAD_QUANTA * self.send_quantum)
            .max(self.set.min_pipe_cwnd);
        if self.state == State::Up {
            cap + 2.0
        } else {
            cap
        }
    }

    /// Inflight() of the bandwidth `bw`.
    #[inline]
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// InflightWithHeadroom() (section 5.3.3.9).
    #[inline]
    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = (self.set.headroom * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(self.set.min_pipe_cwnd)
    }

    /// TargetInflight() (section 5.3.3.8).
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw, self.set.probe_rtt_cwnd_gain)
            .max(self.set.min_pipe_cwnd)
    }

    fn is_in_probe_bw(&self) -> bool {
        matches!(
            self.state,
            State::Down | State::Cruise | State::Refill | State::Up
        )
    }

    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    // States (section 5.3).

    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count;
    }

    fn start_down(&mut self, now: Time, c_delivered: u64) {
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

    fn start_refill(&mut self, c_delivered: u64) {
        self.short = ShortTerm::UNSET;
        let probe = &mut self.probe;
        probe.up_rounds = 0;
        probe.up_acked = 0.0;
        probe.precautionary = false;
        probe.ack_phase = AckPhase::Refilling;
        self.rounds.begin(c_delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, rs: &Sample) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.rounds.begin(rs.c_delivered);
        self.full.reset(rs.delivery_rate);
        self.state = State::Up;
        self.raise_longterm_slope();
    }

    // Startup and Drain (sections 5.3.1, 5.3.2).

    fn check_startup_done(&mut self, rs: &Sample) {
        if self.state != State::Startup {
            return;
        }
        if self.startup_loses_too_much(rs) {
            self.undo.state = Some(State::Startup);
            self.leave_startup_full();
        }
        if self.full.reached {
            self.enter_drain();
        }
    }

    /// The pipe counts as full because of losses or marks.
    fn leave_startup_full(&mut self) {
        self.full.reached = true;
        self.full.now = true;
        self.inflight_longterm = self.bdp(self.bw, 1.0).max(self.latest.inflight);
    }

    /// CheckStartupHighLoss()'s conditions (section 5.3.1.3).
    fn startup_loses_too_much(&self, rs: &Sample) -> bool {
        if self.repair != Repair::FastRecovery {
            return false;
        }
        if !self.setup.selective_acks {
            return true;
        }
        let ranges = f64::from(self.latest.ranges());
        self.latest.round_start
            && ranges >= self.set.startup_full_loss_cnt
            && self.is_inflight_too_high(rs.lost, rs.tx_in_flight)
    }

    fn check_drain_done(&mut self, rs: &Sample) {
        if self.state == State::Drain
            && (rs.inflight <= self.inflight(self.bw, 1.0)
                || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(rs.now, rs.c_delivered);
        }
    }

    // ProbeBW (section 5.3.3.9).

    fn update_probe_bw(&mut self, rs: &Sample) {
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
    fn probes_now(&mut self, rs: &Sample) -> bool {
        let elapsed = rs.now > self.probe.cycle_stamp + self.probe.wait;
        let reno_rounds = self.target_inflight().min(RENO_ROUNDS);
        let due = elapsed || f64::from(self.probe.rounds_since_up) >= reno_rounds;
        if due {
            self.start_refill(rs.c_delivered);
        }
        due
    }

    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.inflight <= self.inflight_with_headroom()
            && rs.inflight <= self.inflight(self.max_bw.get(), 1.0)
    }

    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        if self.probe.too_high && rs.inflight >= self.inflight_longterm {
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
    fn adapt_long_term(&mut self, rs: &Sample) -> bool {
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
        let safe = !self.is_inflight_too_high(rs.lost, rs.tx_in_flight);
        if safe && self.inflight_longterm < f64::INFINITY {
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_longterm_upward(rs);
            }
        }
        false
    }

    /// RaiseInflightLongtermSlope(): 1, 2, 4, .. segments per round.
    fn raise_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(LARGEST_SLOPE);
        self.probe.acked_per_inc = (self.cwnd / growth).max(1.0);
    }

    /// ProbeInflightLongtermUpward().
    fn probe_longterm_upward(&mut self, rs: &Sample) {
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

    // Losses (section 5.5.10).

    /// IsInflightTooHigh() of `lost` segments since one left as the last of `tx_in_flight`.
    #[inline]
    fn is_inflight_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * self.set.loss_thresh || (lost > 0.0 && !self.setup.selective_acks)
    }

    /// HandleInflightTooHigh().
    fn too_high(&mut self, now: Time, c_delivered: u64, tx_in_flight: f64, app_limited: bool) {
        self.probe.too_high = true;
        self.probe.is_sample = false;
        if !app_limited {
            let floor = self.target_inflight() * self.set.beta;
            self.inflight_longterm = tx_in_flight.max(floor);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now, c_delivered);
        }
    }

    /// NoteLoss().
    fn note_loss(&mut self, c_delivered: u64) {
        if !self.latest.loss_in_round && self.repair == Repair::None {
            self.save_state_upon_loss();
            self.repair = Repair::Noted;
        }
        self.latest.note_loss(c_delivered);
    }

    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            short: self.short,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// AdaptLowerBoundsFromCongestion(), at the end of a loss round.
    fn adapt_lower_bounds(&mut self) {
        if self.latest.loss_in_round && !self.is_probing_bw() {
            self.short
                .adapt(&self.latest, self.max_bw.get(), self.cwnd, self.set.beta);
        }
    }

    // ProbeRTT (section 5.3.4.3).

    fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.rounds.begin(rs.c_delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, rs: &Sample) {
        if self.probe_rtt.done.is_some() {
            self.probe_rtt.round_done |= self.rounds.start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(rs.now, rs.c_delivered);
            }
        } else if rs.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done = Some(rs.now + self.set.probe_rtt_duration);
            self.probe_rtt.round_done = false;
            self.rounds.begin(rs.c_delivered);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time, c_delivered: u64) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.schedule(now);
        self.restore_cwnd();
        self.short = ShortTerm::UNSET;
        if self.full.reached {
            self.start_down(now, c_delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    // Control parameters (section 5.6).

    /// InitPacingRate().
    fn init_pacing_rate(&mut self, srtt: Span) {
        self.has_seen_rtt = srtt > Span::ZERO;
        let rtt = if self.has_seen_rtt { srtt } else { NOMINAL_RTT };
        let nominal = self.setup.initial_cwnd / rtt.as_secs_f64();
        self.pacing_rate = self.set.startup_pacing_gain * nominal;
    }

    /// SetPacingRateWithGain().
    #[inline]
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (100.0 - self.set.pacing_margin_percent) / 100.0;
        if rate > 0.0 && (self.full.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetSendQuantum().
    #[inline]
    fn set_send_quantum(&mut self) {
        let largest = LARGEST_QUANTUM / self.setup.smss;
        self.send_quantum = (self.pacing_rate * 1e-3).min(largest).max(2.0);
    }

    /// SetCwnd().
    #[inline]
    fn set_cwnd(&mut self, rs: &Sample) {
        let bdp = self.bdp(self.bw, self.cwnd_gain());
        let max_inflight = self.quantized(bdp + self.extra_acked.get());
        if self.full.reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || (rs.c_delivered as f64) < self.setup.initial_cwnd {
            self.cwnd += rs.newly_acked;
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
    fn save_cwnd(&mut self) {
        let cut = matches!(self.repair, Repair::FastRecovery | Repair::Timeout)
            || self.state == State::ProbeRtt;
        self.prior_cwnd = match cut {
            true => self.prior_cwnd.max(self.cwnd),
            false => self.cwnd,
        };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl Controller for Bbr {
    fn set_up(&mut self, setup: &Setup) {
        self.setup = Endpoint::new(setup);
        self.draws = Draws::new(setup.seed);
        self.cwnd = self.setup.initial_cwnd;
    }

    /// OnInit() (section 5.2.1).
    fn on_established(&mut self, ev: &RestartEvent) {
        self.min_rtt = MinRtt::new(ev.now, ev.srtt);
        self.extra_acked = ExtraAcked::new(ev.now);
        self.init_pacing_rate(ev.srtt);
        self.set_send_quantum();
    }

    fn on_delivery(&mut self, ev: &AckEvent) {
        self.latest.c_delivered = ev.delivered;
    }

    /// UpdateOnACK() (section 5.2.3).
    fn on_ack(&mut self, ev: &AckEvent) {
        let rs = &Sample::of(ev);
        if !self.has_seen_rtt && ev.srtt > Span::ZERO {
            self.init_pacing_rate(ev.srtt);
        }
        self.latest.update(rs);
        self.rounds.update(rs);
        if self.rounds.start {
            self.probe.rounds_since_up += 1;
        }
        self.max_bw.update(rs);
        if self.latest.round_start {
            self.adapt_lower_bounds();
            self.latest.loss_in_round = false;
        }
        self.extra_acked.update(
            rs,
            Expected {
                bw: self.bw,
                cwnd: self.cwnd,
                round: self.rounds.count,
                filter_len: match self.full.reached {
                    true => self.set.extra_acked_filter_len,
                    false => 1,
                },
            },
        );
        self.full.check(rs, self.rounds.start);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw(rs);
        self.min_rtt.update(rs, &self.set);
        self.check_probe_rtt(rs);
        self.latest.advance(rs);
        self.bw = self.max_bw.get().min(self.short.bw);
        self.set_pacing_rate(self.pacing_gain());
        self.set_send_quantum();
        self.set_cwnd(rs);
    }

    /// HandleLostPacket() (section 5.5.10.2). A "packet" is a segment here, so that
    /// InflightAtLoss() finds the segment itself or the one before it.
    fn on_lost(&mut self, ev: &LostSegment) {
        self.note_loss(ev.delivered);
        self.latest.count_range(ev.seq);
        if !self.probe.is_sample {
            return;
        }
        let (lost, tx_in_flight) = (ev.lost as f64, ev.tx_in_flight as f64);
        if self.is_inflight_too_high(lost, tx_in_flight) {
            let at_loss = inflight_at_loss(lost, tx_in_flight, self.set.loss_thresh);
            self.too_high(ev.now, ev.delivered, at_loss, ev.app_limited);
        }
    }

    /// OnEnterFastRecovery() (section 5.6.4.4), or a mark.
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        match ev.kind {
            CongestionKind::Loss => {
                if self.repair == Repair::None {
                    self.save_state_upon_loss();
                }
                self.repair = Repair::FastRecovery;
            }
            CongestionKind::Ecn => self.on_mark(ev),
            CongestionKind::LocalDrop => {}
        }
    }

    /// OnEnterRTO() (section 5.6.4.4).
    fn on_rto(&mut self, ev: &RtoEvent) {
        match self.repair {
            Repair::None => self.save_state_upon_loss(),
            Repair::Noted => {}
            Repair::FastRecovery | Repair::Timeout => self.save_cwnd(),
        }
        self.repair = Repair::Timeout;
        self.cwnd = ev.pipe as f64 + 1.0;
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        if matches!(self.repair, Repair::FastRecovery | Repair::Timeout) {
            self.restore_cwnd();
        }
        self.repair = Repair::None;
    }

    /// HandleSpuriousLossDetection() (section 5.5.11.2).
    fn on_undo(&mut self, _now: Time) {
        self.restore_cwnd();
        self.latest.loss_in_round = false;
        self.full.reset(0.0);
        self.short.raise_to(&self.undo.short);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.latest.c_delivered);
            }
            _ => {}
        }
    }

    /// HandleRestartFromIdle() (section 5.4.1).
    fn on_restart(&mut self, ev: &RestartEvent) {
        if !ev.app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(ev.now);
        if self.is_in_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(ev.now, self.latest.c_delivered);
        }
    }

    /// The window stays over a pause (section 5.4.1); a lost SYN lowers the initial one.
    fn on_idle(&mut self, ev: &IdleEvent) {
        if !self.has_seen_rtt && self.rounds.count == 0 {
            self.cwnd = ev.window.max(1.0);
        }
    }

    fn exit_start_up(&mut self, _now: Time) {
        if self.state == State::Startup {
            self.full.reached = true;
            self.enter_drain();
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.setup.smss /= ratio;
        self.max_bw.scale(ratio);
        self.latest.bw *= ratio;
        self.short.bw *= ratio;
        self.full.bw *= ratio;
        self.bw *= ratio;
        self.pacing_rate *= ratio;
        for volume in [
            &mut self.cwnd,
            &mut self.prior_cwnd,
            &mut self.inflight_longterm,
            &mut self.short.inflight,
            &mut self.latest.inflight,
        ] {
            *volume *= ratio;
        }
        self.cwnd = self.cwnd.max(1.0);
    }

    #[inline]
    fn window(&self) -> f64 {
        self.cwnd
    }

    /// There is none: infinite in Startup, the smallest window afterwards.
    #[inline]
    fn ssthresh(&self) -> f64 {
        match self.state {
            State::Startup => f64::INFINITY,
            _ => self.set.min_pipe_cwnd,
        }
    }

    #[inline]
    fn in_start_up(&self) -> bool {
        self.state == State::Startup
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let bits = self.pacing_rate * self.setup.smss * 8.0;
        (bits >= 1.0).then(|| Rate::from_bits_per_sec(bits as u64))
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let finite = |x: f64| if x.is_finite() { x } else { f64::NAN };
        let min_rtt = self.min_rtt.get().map_or(f64::NAN, Span::as_secs_f64);
        visit("state", f64::from(self.state as u8));
        visit("max_bw", self.max_bw.get());
        visit("bw_shortterm", finite(self.short.bw));
        visit("min_rtt", min_rtt);
        visit("inflight_longterm", finite(self.inflight_longterm));
        visit("inflight_shortterm", finite(self.short.inflight));
        visit("extra_acked", self.extra_acked.get());
        visit("full_bw_count", f64::from(self.full.count));
        visit("round_count", f64::from(self.rounds.count));
        visit("cycle_count", f64::from(self.max_bw.cycle_count));
    }
}

impl Bbr {
    /// A mark is a loss to the model (section 3.6). RFC 3168's echo does not count marks: a round
    /// has one.
    fn on_mark(&mut self, ev: &CongestionEvent) {
        self.latest.note_loss(self.latest.c_delivered);
        if self.state == State::Startup {
            self.leave_startup_full();
            self.enter_drain();
        } else if self.probe.is_sample {
            let delivered = self.latest.c_delivered;
            self.too_high(ev.now, delivered, ev.flight as f64, false);
        }
    }
}

/// InflightAtLoss() of one segment (section 5.5.10.2): how much was in flight when losses crossed
/// `thresh`.
fn inflight_at_loss(lost: f64, tx_in_flight: f64, thresh: f64) -> f64 {
    let inflight_prev = tx_in_flight - 1.0;
    let lost_prev = lost - 1.0;
    let lost_prefix = (thresh * inflight_prev - lost_prev) / (1.0 - thresh);
    (inflight_prev + lost_prefix).max(0.0)
}

/// Rounds after which Drain ends anyway (section 5.3.2).
const DRAIN_ROUNDS: u32 = 3;
/// Least wall-clock time between probes; up to a second more (section 5.3.3.8.3).
const PROBE_WAIT: Span = Span::from_secs(2);
/// Most rounds between probes, for Reno's sake (section 5.3.3.8.3).
const RENO_ROUNDS: f64 = 63.0;
/// Largest exponent of the slope (section 5.3.3.9).
const LARGEST_SLOPE: u32 = 30;
/// RTT before the first sample (section 5.6.2).
const NOMINAL_RTT: Span = Span::from_millis(1);
/// Largest quantum, bytes (section 5.6.3).
const LARGEST_QUANTUM: f64 = 65_536.0;
/// Quanta of TCP's offload budget (section 5.5.8.1).
const OFFLOAD_QUANTA: f64 = 3.0;

/// `bbr`.
pub const BBR: Entry<Bbr> = Entry {
    name: "bbr",
    aliases: &["bbr3"],
    about: "BBR version 3: paces at the bandwidth that two probing cycles found, bounded by what \
        losses showed",
    source: "draft-ietf-ccwg-bbr of 2026-08-03",
    params: PARAMS,
    build: |p| Ok(Bbr::new(Settings::new(p))),
};
