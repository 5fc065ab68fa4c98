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
//! - "As soon as C.inflight reaches" `inflight_longterm` (section 5.3.3.6) is told by what was in
//!   flight before the ACK and the quantum that leaves next, as in the authors' kernel: after an
//!   ACK a window that `inflight_longterm` bounds is never full, and no probe would be
//!   precautionary; one that waits until it is full before an ACK has filled the buffer already.
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

mod control;
mod loss;
mod path;
mod probe_bw;
mod probe_rtt;
mod rules;
mod sample;
mod settings;
mod signals;
mod startup;
#[cfg(test)]
mod tests;

use fullpipe_units::{Rate, Span, Time};

use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, LostSegment, RestartEvent,
    RtoEvent, TakeOver, assert_ratio,
};
use crate::draws::Draws;
use crate::entry::Entry;
use loss::{Repair, Undo};
use path::{Expected, ExtraAcked, MaxBw, MinRtt, Rounds};
use probe_bw::Probe;
use probe_rtt::ProbeRtt;
use rules::Rules;
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

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr {
    set: Settings,
    rules: Rules,
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
    /// The gain in it: that of the state after the last ACK.
    gain_in_force: f64,
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

impl Bbr {
    fn new(set: Settings, rules: Rules) -> Self {
        let setup = Setup::default();
        Self {
            set,
            rules,
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
            probe: Probe::NEW,
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            idle_restart: false,
            bw: 0.0,
            pacing_rate: 0.0,
            gain_in_force: set.startup_pacing_gain,
            has_seen_rtt: false,
            send_quantum: 2.0,
            cwnd: setup.initial_window,
            prior_cwnd: 0.0,
            repair: Repair::None,
            undo: Undo::NOTHING,
        }
    }
}

impl Bbr {
    /// BoundBWForModel() (section 5.5.3).
    fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.short.bw);
    }
}

impl Controller for Bbr {
    fn set_up(&mut self, setup: &Setup) {
        setup.assert_valid();
        self.setup = Endpoint::new(setup);
        self.draws = Draws::new(setup.seed);
        self.cwnd = self.setup.initial_cwnd.min(self.setup.max_cwnd);
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
        self.latest.count_lossy(ev.lost);
        self.rounds.update(rs);
        if self.rounds.start {
            self.probe.rounds_since_up += 1;
        }
        self.max_bw.update(rs);
        if self.latest.round_start {
            self.adapt_lower_bounds();
            self.latest.loss_in_round = false;
        }
        if self.rules.bw_at_once {
            self.bound_bw();
        }
        self.extra_acked.update(
            rs,
            Expected {
                bw: self.bw,
                cwnd: self.cwnd,
                round: self.rounds.count,
                filter_len: match self.full.reached {
                    true => self.set.extra_acked_filter_len as u32,
                    false => 1,
                },
            },
            &self.rules,
        );
        self.full
            .check(rs, self.rounds.start, self.rules.growth_at_every_ack);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw(rs);
        self.min_rtt.update(rs, &self.set);
        self.check_probe_rtt(rs);
        self.latest.advance(rs);
        self.bound_bw();
        self.gain_in_force = self.pacing_gain();
        self.set_pacing_rate(self.gain_in_force);
        self.set_send_quantum();
        self.set_cwnd(rs);
    }

    fn on_lost(&mut self, ev: &LostSegment) {
        self.handle_lost(ev);
    }

    /// OnEnterFastRecovery() (section 5.6.4.4), or a mark.
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        match ev.kind {
            CongestionKind::Loss => {
                let follows = self.repair == Repair::Timeout && !self.rules.restores_at_the_end;
                if self.repair == Repair::None || follows {
                    self.save_state_upon_loss();
                }
                self.repair = Repair::FastRecovery;
                if follows {
                    self.restore_cwnd();
                }
            }
            CongestionKind::Ecn if self.rules.heeds_marks => self.on_mark(ev),
            CongestionKind::Ecn | CongestionKind::LocalDrop => {}
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
        if self.rules.timeout_bounds {
            self.full.reset(0.0);
            if !self.is_probing_bw() && self.short.inflight == f64::INFINITY {
                self.short.inflight = self.cwnd.max(self.prior_cwnd);
            }
        }
        self.cwnd = (ev.pipe as f64 + 1.0).min(self.setup.max_cwnd);
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        let restores = match self.repair {
            Repair::FastRecovery => self.rules.restores_at_the_end,
            Repair::Timeout => true,
            Repair::None | Repair::Noted => false,
        };
        if restores {
            self.restore_cwnd();
        }
        self.repair = Repair::None;
    }

    fn on_undo(&mut self, _now: Time) {
        self.handle_spurious_loss();
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
            self.cwnd = ev.window.clamp(1.0, self.setup.max_cwnd);
        }
    }

    fn exit_start_up(&mut self, _now: Time) {
        if self.state == State::Startup {
            self.full.reached = true;
            self.enter_drain();
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        assert_ratio(ratio);
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
        self.cwnd = self.cwnd.clamp(1.0, self.setup.max_cwnd);
    }

    fn cap_window(&mut self, most: f64) {
        self.setup.max_cwnd = most.max(1.0);
        self.cwnd = self.cwnd.min(self.setup.max_cwnd);
    }

    /// OnInit() of a connection that has a window: its rate follows from that one.
    fn take_over(&mut self, ev: &TakeOver) {
        self.cwnd = ev.window.min(self.setup.max_cwnd).max(1.0);
        self.on_established(&ev.restart);
        self.pacing_rate *= self.cwnd / self.setup.initial_cwnd;
        self.set_send_quantum();
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
        self.probe_rtt.limits
    }

    fn state(&self) -> Option<u8> {
        Some(self.state as u8)
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

/// `bbr`.
pub const BBR: Entry<Bbr> = Entry {
    name: "bbr",
    aliases: &["bbr3", "bbrv3"],
    about: "BBR version 3: paces at the bandwidth that two probing cycles found, bounded by what \
        losses showed",
    source: "draft-ietf-ccwg-bbr of 2026-08-03",
    params: PARAMS,
    build: |p| Ok(Bbr::new(Settings::new(p), Rules::DRAFT)),
};

/// `bbr3-linux`.
pub const BBR3_LINUX: Entry<Bbr> = Entry {
    name: "bbr3-linux",
    aliases: &["bbrv3-linux"],
    about: "BBR version 3 as its authors' kernel has it, which is older than the draft: other \
        constants and rules, whole segments",
    source: "github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c",
    params: &[],
    build: |_| Ok(Bbr::new(Settings::LINUX, Rules::LINUX)),
};
