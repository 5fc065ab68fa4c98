//! BBR version 1 as Linux has it (`net/ipv4/tcp_bbr.c`, Linux 6.1; the algorithm is the same in
//! 6.12, which only hands the hook two more arguments): Cardwell, Cheng, Gunn, Yeganeh and
//! Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016. Its steps are the
//! kernel's, after a file that may be used under a BSD licence (NOTICE, part 5).
//!
//! A model of the path, the largest delivery rate of ten rounds and the smallest RTT of ten
//! seconds, sets a pacing rate and a window. The kernel says more than the paper:
//!
//! - Rates are kept in 2^-24 segments per microsecond, gains in 1/256: 2/ln 2 is 739/256.
//! - The pacing rate is 1 % below the estimate (`bbr_pacing_margin_percent`).
//! - In the first round of a recovery the window is what is in flight and what was just
//!   acknowledged; the window before the recovery comes back at its end (`bbr_save_cwnd`).
//! - The window covers three bursts of segmentation offload and what ACKs bring in bulk
//!   (`bbr_quantization_budget`, `aggregation.rs`); a policer's rate is obeyed for 48 rounds
//!   (`policer.rs`).
//!
//! One thing differs from the kernel: a sample whose last segment was a runt that the receiver may
//! have delayed (`is_ack_delayed`) does not exist here, as all segments are full. That the first
//! ten segments are not paced (`tcp_update_skb_after_send`) is a matter of the pacer
//! (`PacerRule::Linux`).

mod aggregation;
mod policer;

use fullpipe_units::Time;

use crate::controller::{AckEvent, Phase};
use crate::entry::Entry;
use crate::linux::module::{Event, Module};
use crate::linux::socket::Socket;
use crate::max_filter::MaxFilter;
use aggregation::Aggregation;
use policer::{Look, Policer, Verdict};

/// State of `struct bbr`.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// 1/256.
    pacing_gain: u32,
    cwnd_gain: u32,
    /// Phase of ProbeBW, and when it began.
    cycle: usize,
    cycle_began: Time,
    /// Largest delivery rate, 2^-24 segments per microsecond.
    bw: MaxFilter<u32>,
    /// Smallest RTT, microseconds, and when it was measured, ticks.
    min_rtt_us: u32,
    min_rtt_stamp: u32,
    /// When ProbeRTT ends, ticks; `None`: the flight has not come down to [`MIN_WINDOW`] yet.
    probe_rtt_done: Option<u32>,
    probe_rtt_round_done: bool,
    /// The last ACK came in ProbeRTT, the one that ended it included: rates up to here say nothing.
    limits: bool,
    rounds: u32,
    /// Deliveries at the end of the round.
    round_end: u64,
    round_start: bool,
    full: FullPipe,
    idle_restart: bool,
    /// State at the ACK before.
    prior_state: Phase,
    packet_conservation: bool,
    prior_cwnd: u32,
    policer: Policer,
    aggregation: Aggregation,
    /// `sk_pacing_rate`, bytes/s; 0 before the connection is open.
    pacing_rate: u64,
    has_seen_rtt: bool,
    /// Time of the last delivery (`delivered_mstamp`).
    delivered_at: Time,
}

/// `enum bbr_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Whether the pipe is full: three rounds without a quarter more.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    reached: bool,
    bw: u32,
    rounds: u32,
}

impl Bbr {
    fn new() -> Self {
        Self {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cycle: 0,
            cycle_began: Time::ZERO,
            bw: MaxFilter::default(),
            min_rtt_us: u32::MAX,
            min_rtt_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            limits: false,
            rounds: 0,
            round_end: 0,
            round_start: false,
            full: FullPipe::default(),
            idle_restart: false,
            prior_state: Phase::Open,
            packet_conservation: false,
            prior_cwnd: 0,
            policer: Policer::default(),
            aggregation: Aggregation::new(Time::ZERO),
            pacing_rate: 0,
            has_seen_rtt: false,
            delivered_at: Time::ZERO,
        }
    }

    fn delivered_ms(&self) -> u64 {
        self.delivered_at.as_nanos() / 1_000_000
    }

    /// `bbr_bw`: a policer's rate goes before the path's.
    #[inline]
    fn estimate(&self) -> u32 {
        self.policer.rate().unwrap_or(self.bw.get())
    }

    /// `bbr_bdp`: `bw * min_rtt * gain`, rounded up, segments.
    #[inline]
    fn bdp(&self, bw: u32, gain: u32) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return INITIAL_WINDOW;
        }
        let w = u64::from(bw) * u64::from(self.min_rtt_us);
        let scaled = (u128::from(w) * u128::from(gain)) >> SCALE;
        let segments = (scaled as u64).div_ceil(1 << BW_SCALE);
        segments.min(u64::from(u32::MAX)) as u32
    }

    /// `bbr_quantization_budget`.
    #[inline]
    fn quantized(&self, sk: &Socket, segments: u32) -> u32 {
        let w = segments
            .saturating_add(BURSTS * self.burst(sk))
            .min(u32::MAX - 3);
        let even = (w + 1) & !1; // fewer ACKs are delayed
        even + 2 * u32::from(self.mode == Mode::ProbeBw && self.cycle == 0)
    }

    /// Segments that leave in one burst (`bbr_tso_segs_goal`).
    #[inline]
    fn burst(&self, sk: &Socket) -> u32 {
        let bytes = (self.pacing_rate >> PACING_SHIFT).min(LARGEST_BURST);
        let least = 1 + u64::from(self.pacing_rate >= MIN_TSO_RATE / 8);
        (bytes / u64::from(sk.mss)).max(least).min(0x7f) as u32
    }

    /// `bbr_inflight`.
    #[inline]
    fn inflight(&self, sk: &Socket, bw: u32, gain: u32) -> u32 {
        self.quantized(sk, self.bdp(bw, gain))
    }

    /// `bbr_packets_in_net_at_edt`: what is left of `flight` when the pacer lets the next segment
    /// go.
    fn at_next_departure(&self, sk: &Socket, ev: &AckEvent, flight: u64) -> u32 {
        let wait_us = ev.next_send.saturating_since(ev.now).as_nanos() / 1000;
        let gone = (u64::from(self.estimate()) * wait_us) >> BW_SCALE;
        let rising = self.pacing_gain > UNIT;
        let then = flight + u64::from(if rising { self.burst(sk) } else { 0 });
        then.saturating_sub(gone) as u32
    }

    /// `bbr_save_cwnd`: the window that a recovery or ProbeRTT will give back.
    fn save_cwnd(&mut self, sk: &Socket) {
        let cut = matches!(self.prior_state, Phase::Recovery | Phase::Loss)
            || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = match cut {
            true => self.prior_cwnd.max(sk.cwnd),
            false => sk.cwnd,
        };
    }

    // The model.

    /// `bbr_update_bw`: rounds and the largest delivery rate.
    #[inline]
    fn update_bw(&mut self, sk: &mut Socket, ev: &AckEvent) {
        self.round_start = false;
        let Some(rate) = &ev.rate else { return };
        let interval_us = rate.interval.as_nanos() / 1000;
        if interval_us == 0 {
            return;
        }
        if rate.prior_delivered >= self.round_end {
            self.round_end = sk.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.look_for_policer(sk, ev.lost > 0, rate.app_limited);
        let bw = (rate.delivered << BW_SCALE) / interval_us;
        let bw = bw.min(u64::from(u32::MAX)) as u32;
        if !rate.app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rounds, bw);
        }
    }

    fn look_for_policer(&mut self, sk: &mut Socket, losses: bool, app_limited: bool) {
        let look = Look {
            round_start: self.round_start,
            losses,
            app_limited,
            probing: self.mode == Mode::ProbeBw,
            delivered_ms: self.delivered_ms(),
        };
        match self.policer.look(sk, &look) {
            Verdict::Nothing => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::Released => self.probe_bw(sk),
        }
    }

    /// `bbr_update_ack_aggregation`.
    #[inline]
    fn update_aggregation(&mut self, sk: &Socket, ev: &AckEvent) {
        let acked = ev.delivered_now() as u32;
        if acked > 0 && ev.rate.is_some() {
            let bw = self.estimate();
            self.aggregation
                .update(self.delivered_at, self.round_start, acked, bw, sk.cwnd);
        }
    }

    /// `bbr_update_cycle_phase`.
    #[inline]
    fn update_cycle(&mut self, sk: &Socket, ev: &AckEvent) {
        if self.mode == Mode::ProbeBw && self.phase_ends(sk, ev) {
            self.advance_cycle();
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn phase_ends(&self, sk: &Socket, ev: &AckEvent) -> bool {
        let us = |t: Time| t.as_nanos() / 1000;
        let elapsed = us(self.delivered_at).saturating_sub(us(self.cycle_began));
        let is_full_length = elapsed > u64::from(self.min_rtt_us);
        if self.pacing_gain == UNIT {
            return is_full_length;
        }
        let flight = self.at_next_departure(sk, ev, ev.prior_flight);
        let bw = self.bw.get();
        if self.pacing_gain > UNIT {
            // A small buffer may never hold what the gain asks for.
            return is_full_length
                && (ev.lost > 0 || flight >= self.inflight(sk, bw, self.pacing_gain));
        }
        is_full_length || flight <= self.inflight(sk, bw, UNIT)
    }

    /// `bbr_advance_cycle_phase`.
    fn advance_cycle(&mut self) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = self.delivered_at;
    }

    /// `bbr_check_full_bw_reached`.
    #[inline]
    fn check_full_pipe(&mut self, ev: &AckEvent) {
        let app_limited = ev.rate.is_some_and(|rate| rate.app_limited);
        if self.full.reached || !self.round_start || app_limited {
            return;
        }
        let bw = self.bw.get();
        let threshold = (u64::from(self.full.bw) * u64::from(FULL_GROWTH)) >> SCALE;
        if u64::from(bw) >= threshold {
            (self.full.bw, self.full.rounds) = (bw, 0);
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    /// `bbr_check_drain`.
    #[inline]
    fn check_drain(&mut self, sk: &mut Socket, ev: &AckEvent) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            sk.ssthresh = self.inflight(sk, self.bw.get(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.at_next_departure(sk, ev, ev.flight) <= self.inflight(sk, self.bw.get(), UNIT)
        {
            self.probe_bw(sk);
        }
    }

    /// `bbr_reset_probe_bw_mode`: any phase but the one that drains may be the first.
    fn probe_bw(&mut self, sk: &mut Socket) {
        self.mode = Mode::ProbeBw;
        self.cycle = CYCLE.len() - 1 - sk.draw(CYCLE_RAND) as usize;
        self.advance_cycle();
    }

    /// `bbr_update_min_rtt`, and the way into and out of ProbeRTT.
    #[inline]
    fn update_min_rtt(&mut self, sk: &mut Socket, ev: &AckEvent) {
        let expired = sk.is_after(self.min_rtt_stamp.wrapping_add(MIN_RTT_SECONDS * sk.hz));
        if let Some(rtt) = ev.rtt {
            let us = (rtt.as_nanos() / 1000) as u32;
            if us < self.min_rtt_us || expired {
                self.min_rtt_us = us;
                self.min_rtt_stamp = sk.jiffies();
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(sk);
            self.probe_rtt_done = None;
        }
        self.limits = self.mode == Mode::ProbeRtt;
        if self.limits {
            self.probe_rtt(sk, ev);
        }
        if ev.delivered_now() > 0 {
            self.idle_restart = false;
        }
    }

    /// The smallest flight for 200 ms and a round.
    fn probe_rtt(&mut self, sk: &mut Socket, ev: &AckEvent) {
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(sk);
            }
        } else if ev.flight <= u64::from(MIN_WINDOW) {
            let lasts = sk.msecs_to_jiffies(PROBE_RTT_MS);
            self.probe_rtt_done = Some(sk.jiffies().wrapping_add(lasts));
            self.probe_rtt_round_done = false;
            self.round_end = sk.delivered;
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn check_probe_rtt_done(&mut self, sk: &mut Socket) {
        if !self.probe_rtt_done.is_some_and(|done| sk.is_after(done)) {
            return;
        }
        self.min_rtt_stamp = sk.jiffies();
        sk.cwnd = sk.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.probe_bw(sk);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_update_gains`.
    #[inline]
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // Pacing rate and window, from the model's bandwidth and least RTT.

    /// `bbr_init_pacing_rate_from_rtt`.
    fn init_pacing_rate(&mut self, sk: &Socket) {
        let rtt_us = if sk.srtt_us > 0 {
            self.has_seen_rtt = true;
            u64::from((sk.srtt_us >> 3).max(1))
        } else {
            NOMINAL_RTT_US
        };
        let bw = (u64::from(sk.cwnd) << BW_SCALE) / rtt_us;
        self.pacing_rate = bytes_per_second(sk.mss, bw as u32, HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: never down before the pipe is full.
    #[inline]
    fn set_pacing_rate(&mut self, sk: &Socket, gain: u32) {
        let rate = bytes_per_second(sk.mss, self.estimate(), gain);
        if !self.has_seen_rtt && sk.srtt_us > 0 {
            self.init_pacing_rate(sk);
        }
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_set_cwnd`.
    #[inline]
    fn set_cwnd(&mut self, sk: &mut Socket, ev: &AckEvent) {
        let acked = ev.delivered_now() as u32;
        let mut cwnd = sk.cwnd;
        if acked > 0 && !self.recover_or_restore(sk, ev, acked, &mut cwnd) {
            let bdp = self.bdp(self.estimate(), self.cwnd_gain);
            let target = self.quantized(sk, bdp.saturating_add(self.aggregated()));
            if self.full.reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || sk.delivered < u64::from(INITIAL_WINDOW) {
                cwnd += acked;
            }
            cwnd = cwnd.max(MIN_WINDOW);
        }
        sk.cwnd = cwnd.min(sk.clamp);
        if self.mode == Mode::ProbeRtt {
            sk.cwnd = sk.cwnd.min(MIN_WINDOW);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`; true where packet conservation sets the window.
    fn recover_or_restore(
        &mut self,
        sk: &Socket,
        ev: &AckEvent,
        acked: u32,
        cwnd: &mut u32,
    ) -> bool {
        let (prior, state) = (self.prior_state, sk.state);
        let repairing = |state| matches!(state, Phase::Recovery | Phase::Loss);
        let conserved = ev.flight as u32 + acked;
        if ev.lost > 0 {
            *cwnd = cwnd.saturating_sub(ev.lost as u32).max(1);
        }
        if state == Phase::Recovery && prior != Phase::Recovery {
            self.packet_conservation = true;
            self.round_end = sk.delivered;
            *cwnd = conserved;
        } else if repairing(prior) && !repairing(state) {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prior_state = state;
        if self.packet_conservation {
            *cwnd = (*cwnd).max(conserved);
        }
        self.packet_conservation
    }

    /// `bbr_ack_aggregation_cwnd`: at most 100 ms of the bandwidth.
    #[inline]
    fn aggregated(&self) -> u32 {
        if !self.full.reached {
            return 0;
        }
        let most = (u64::from(self.estimate()) * AGGREGATION_US) >> BW_SCALE;
        self.aggregation.extra().min(most as u32)
    }
}

impl Module for Bbr {
    fn takes_control(&self) -> bool {
        true
    }

    /// `bbr_init`.
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new();
        sk.ssthresh = Socket::INFINITE;
        self.round_end = sk.delivered;
        if sk.srtt_us > 0 {
            self.min_rtt_us = sk.srtt_us >> 3; // the handshake's sample is the first
        }
        self.min_rtt_stamp = sk.jiffies();
        self.delivered_at = sk.now;
        self.init_pacing_rate(sk);
        self.policer.reset(sk, self.delivered_ms());
        self.aggregation = Aggregation::new(sk.now);
    }

    /// `bbr_main`.
    #[inline]
    fn cong_control(&mut self, sk: &mut Socket, ev: &AckEvent) {
        if ev.delivered_now() > 0 {
            self.delivered_at = ev.now;
        }
        self.update_bw(sk, ev);
        self.update_aggregation(sk, ev);
        self.update_cycle(sk, ev);
        self.check_full_pipe(ev);
        self.check_drain(sk, ev);
        self.update_min_rtt(sk, ev);
        self.update_gains();
        self.set_pacing_rate(sk, self.pacing_gain);
        self.set_cwnd(sk, ev);
    }

    fn pacing_rate(&self) -> Option<u64> {
        (self.pacing_rate > 0).then_some(self.pacing_rate)
    }

    fn limits_itself(&self) -> bool {
        self.limits
    }

    fn is_starting(&self) -> bool {
        self.mode == Mode::Startup
    }

    /// 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT, as `enum bbr_mode` has them.
    fn state(&self) -> Option<u8> {
        Some(self.mode as u8)
    }

    /// `bbr_ssthresh`: no reduction, only the window to come back to.
    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        self.save_cwnd(sk);
        sk.ssthresh
    }

    /// `bbr_undo_cwnd`.
    fn undo_cwnd(&mut self, sk: &mut Socket) -> u32 {
        (self.full.bw, self.full.rounds) = (0, 0);
        self.policer.reset(sk, self.delivered_ms());
        sk.cwnd
    }

    /// `bbr_set_state`: a timeout ends a round.
    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.prior_state = Phase::Loss;
            self.full.bw = 0;
            self.round_start = true;
            self.look_for_policer(sk, true, false);
        }
    }

    /// `bbr_cwnd_event`.
    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        if event != Event::TxStart {
            return;
        }
        if sk.snd_una == sk.snd_nxt {
            self.delivered_at = sk.now; // `tcp_rate_skb_sent`
        }
        if sk.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sk.now);
            match self.mode {
                Mode::ProbeBw => self.set_pacing_rate(sk, UNIT),
                Mode::ProbeRtt => self.check_probe_rtt_done(sk),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        let per_second = |bw: u32| f64::from(bw) * 1e6 / f64::from(1 << BW_SCALE);
        let has_rtt = self.min_rtt_us < u32::MAX;
        visit("state", f64::from(self.mode as u8));
        visit("bw", per_second(self.estimate()));
        let min_rtt = f64::from(self.min_rtt_us) * 1e-6;
        visit("min_rtt", if has_rtt { min_rtt } else { 0.0 });
        visit("pacing_gain", f64::from(self.pacing_gain) / f64::from(UNIT));
        visit("cwnd_gain", f64::from(self.cwnd_gain) / f64::from(UNIT));
        visit("full_bw", per_second(self.full.bw));
        visit("rounds", f64::from(self.rounds));
        visit("extra_acked", f64::from(self.aggregation.extra()));
        let policed = self.policer.rate().map_or(0.0, per_second);
        visit("policed_bw", policed);
    }
}

/// Bytes per second of `bw`, less the margin (`bbr_rate_bytes_per_sec`).
#[inline]
fn bytes_per_second(mss: u32, bw: u32, gain: u32) -> u64 {
    let rate = (u64::from(bw) * u64::from(mss) * u64::from(gain)) >> SCALE;
    let per_second = 1_000_000 / 100 * (100 - MARGIN_PERCENT);
    ((u128::from(rate) * u128::from(per_second)) >> BW_SCALE) as u64
}

/// Rates are 2^-24 segments per microsecond (`BW_SCALE`).
const BW_SCALE: u32 = 24;
/// Gains are 1/256 (`BBR_SCALE`, `BBR_UNIT`).
const SCALE: u32 = 8;
const UNIT: u32 = 1 << SCALE;
/// Startup: 2/ln 2, the smallest gain that doubles the rate per round (`bbr_high_gain`).
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Drain: its inverse empties the queue in about a round (`bbr_drain_gain`).
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
/// Window in ProbeBW, for delayed and stretched ACKs (`bbr_cwnd_gain`).
const CWND_GAIN: u32 = UNIT * 2;
/// Pacing in ProbeBW, a smallest RTT each (`bbr_pacing_gain`).
const CYCLE: [u32; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
/// Phases that may be the first (`bbr_cycle_rand`).
const CYCLE_RAND: u32 = 7;
/// Window of the bandwidth filter, rounds (`bbr_bw_rtts`).
const BW_ROUNDS: u32 = CYCLE.len() as u32 + 2;
/// Window of the RTT filter, seconds (`bbr_min_rtt_win_sec`).
const MIN_RTT_SECONDS: u32 = 10;
/// ProbeRTT holds the smallest window for this long (`bbr_probe_rtt_mode_ms`).
const PROBE_RTT_MS: u32 = 200;
/// Smallest window, segments (`bbr_cwnd_min_target`).
const MIN_WINDOW: u32 = 4;
/// Growth per round that shows more bandwidth, 1/256, and rounds without it (`bbr_full_bw_thresh`,
/// `bbr_full_bw_cnt`).
const FULL_GROWTH: u32 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// The pacing rate is this much below the estimate (`bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;
/// Below this rate a burst is a single segment, bit/s (`bbr_min_tso_rate`).
const MIN_TSO_RATE: u64 = 1_200_000;
/// A burst is 2^-10 s of the rate (`sk_pacing_shift`, `net/core/sock.c`).
const PACING_SHIFT: u32 = 10;
/// Largest burst, bytes: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`, which is 320 on x86-64.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
/// Bursts that the window covers: in the queue, in the offload engine, at the receiver.
const BURSTS: u32 = 3;
/// `TCP_INIT_CWND`.
const INITIAL_WINDOW: u32 = 10;
/// RTT before the first sample (`USEC_PER_MSEC`).
const NOMINAL_RTT_US: u64 = 1000;
/// ACK aggregation counts up to this much of the bandwidth (`bbr_extra_acked_max_us`).
const AGGREGATION_US: u64 = 100_000;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_bbr.c";

/// `bbr-linux`.
pub const BBR_LINUX: Entry<Bbr> = Entry {
    name: "bbr-linux",
    aliases: &["bbr1", "bbrv1", "bbr1-linux"],
    about: "BBR version 1 to the integer: paces at the largest delivery rate of ten rounds, with a \
        window of two bandwidth-delay products",
    source: SOURCE,
    params: &[],
    build: |_| Ok(Bbr::new()),
};

#[cfg(test)]
mod tests;
