//! Vegas: keep one to three segments queued (after ns-2's `tcp-vegas.cc` and Linux `tcp_vegas.c`;
//! the paper was not read).
//!
//! Once per round `diff = w (rtt - base)/rtt` estimates this flow's backlog: below `alpha` the
//! window gains one segment, above `beta` it loses one. With fewer than three samples in a round,
//! and outside the open state, it is Reno. The start-up doubles every other round and leaves when
//! `diff` exceeds `gamma` ([`Gamma`]). `vegas` has the paper's 1/3/1;
//! `diff_over=base,growth=every,exit=linux` is Linux's form in real numbers, `vegas-linux` its
//! module. `law=highspeed` is what the Net100 pages ran: a round adds HighSpeed TCP's a(w) in
//! place of one segment, and a loss removes its b(w); alpha and beta decide as before.
//!
//! Loss (in start-up or a lost retransmission too), timeout and mark halve (a timeout with either
//! law); the delay rule rests until the open state. Idle time: base and round are learnt anew.
//! Undo: the measured round is dropped, base kept.

use fullpipe_units::Time;

use alloc::string::String;

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, Phase, RestartEvent, RtoEvent};
use crate::entry::Entry;
use crate::law::highspeed::{Form, HighSpeed};
use crate::params::{ParamSpec, Params};
use crate::round::{Over, RoundMin};
use crate::startup::gamma::{Gamma, GammaParams, Growth, Then};

/// What a Vegas flow is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasParams {
    /// Grow below this backlog, segments.
    pub alpha: f64,
    /// Shrink above this backlog, segments.
    pub beta: f64,
    /// Fraction removed on loss.
    pub decrease: f64,
    /// Which RTT divides in the backlog estimate.
    pub over: Over,
    /// What a round adds and a loss removes.
    pub pair: Pair,
}

/// Increase and decrease between which the delay rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// One segment a round; a loss removes [`VegasParams::decrease`].
    Standard,
    /// HighSpeed TCP's a(w) and b(w) with the constants of RFC 3649 (Net100 2003).
    HighSpeed,
}

/// Vegas' congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vegas {
    params: VegasParams,
    round: RoundMin,
    /// The last round had too few samples or was not in the open state: grow as Reno.
    reno: bool,
    diff: f64,
}

impl Vegas {
    /// A flow that has measured nothing.
    pub fn new(params: VegasParams) -> Self {
        Self {
            params,
            round: RoundMin::EMPTY,
            reno: true,
            diff: 0.0,
        }
    }

    /// Segments that a round with backlog `diff` adds to a window `w`: a(w), 0 or -1.
    pub fn step(&self, diff: f64, w: f64) -> f64 {
        if diff < self.params.alpha {
            self.a(w)
        } else if diff > self.params.beta {
            -1.0
        } else {
            0.0
        }
    }

    /// Increase per RTT at window `w`, segments.
    fn a(&self, w: f64) -> f64 {
        match self.params.pair {
            Pair::Standard => 1.0,
            Pair::HighSpeed => HighSpeed::rfc(Form::Exact).a(w),
        }
    }

    /// Fraction that a loss at window `w` removes.
    fn b(&self, w: f64) -> f64 {
        match self.params.pair {
            Pair::Standard => self.params.decrease,
            Pair::HighSpeed => HighSpeed::rfc(Form::Exact).b(w),
        }
    }

    /// After a pause.
    fn relearn(&mut self) {
        self.round.relearn();
        self.reno = true;
    }
}

impl WindowLaw for Vegas {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        let end = self.round.on_ack(ev);
        if ev.phase != Phase::Open {
            self.round.forget_round();
            self.reno = true;
            return;
        }
        let Some(end) = end else { return };
        self.reno = !end.enough();
        if self.reno {
            return;
        }
        self.diff = self.params.over.diff(win.w, &end);
        if win.w >= win.ssth {
            let step = self.step(self.diff, win.w);
            if step < 0.0 {
                win.w = (win.w + step).max(FLOOR).min(win.w);
                win.ssth = win.ssth.min(win.w);
            } else if ev.may_grow() {
                win.w += step;
            }
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        if self.reno {
            win.w += self.a(win.w) * n / win.w;
        }
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        self.round.forget_round();
        (1.0 - self.b(w)) * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.round.forget_round();
        self.reno = true;
        (1.0 - RENO_DECREASE) * base
    }

    fn on_undo(&mut self, _win: &mut Window, _now: Time) {
        self.round.forget_round();
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        self.relearn();
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        if ev.ends_a_pause() {
            self.relearn();
        }
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("diff", self.diff);
        visit("reno", f64::from(u8::from(self.reno)));
    }
}

/// Smallest window that the delay rule leaves, segments (Linux `tcp_vegas.c`).
const FLOOR: f64 = 2.0;
/// Fraction removed on a timeout: Reno's (RFC 5681 section 3.1).
const RENO_DECREASE: f64 = 0.5;

const DECREASE: ParamSpec = param!(decrease: number = 0.5, 1e-6..=0.999, "fraction",
    "fraction removed on loss; ns-2 removes 0.25 on a retransmit that its fine timer caused",
    "RFC 5681 3.1; ns-2 tcp-vegas.cc")
.removed();

/// `vegas`.
pub const VEGAS: Entry<Vegas> = Entry {
    name: "vegas",
    aliases: &[],
    about: "Vegas as in the paper and ns-2: 1 to 3 segments queued, doubling every other round",
    source: "ns-2 tcp-vegas.cc defaults; Net100 2003 (alpha 1, beta 3, gamma 1)",
    params: &[
        param!(alpha: number = 1.0, 0.0..=1e6, "segments",
            "grow below this backlog", "Net100 2003"),
        param!(beta: number = 3.0, 0.0..=1e6, "segments",
            "shrink above this backlog", "Net100 2003"),
        param!(gamma: number = 1.0, 0.0..=1e6, "segments",
            "leave start-up above this backlog", "Net100 2003"),
        DECREASE,
        param!(diff_over: choice = &["rtt", "base"],
            "divisor of the backlog estimate", "paper and ns-2: rtt"),
        param!(growth: choice = &["every-other", "every"],
            "rounds in which start-up doubles", "ns-2; the paper's text is unverified"),
        param!(exit: choice = &["vegas", "linux", "ca"],
            "start-up's end: w -= w/8, w = min(w, floor(w base/rtt) + 1), or w kept", "ns-2"),
        param!(law: choice = &["standard", "highspeed"],
            "what a round adds and a loss removes: 1 and `decrease`, or HighSpeed TCP's a(w), b(w)",
            "Net100 2003: standard Vegas, actually using the Floyd AIMD mods"),
    ],
    build,
};

fn build(p: &Params) -> Result<Vegas, String> {
    let params = VegasParams {
        alpha: p.number("alpha"),
        beta: p.number("beta"),
        decrease: p.number("decrease"),
        over: Over::from_word(p.word("diff_over")),
        pair: match p.word("law") {
            "highspeed" => Pair::HighSpeed,
            _ => Pair::Standard,
        },
    };
    if params.alpha > params.beta {
        return Err(format!(
            "alpha {} is above beta {}",
            params.alpha, params.beta
        ));
    }
    Ok(Vegas::new(params))
}

/// Vegas' own slow start, from the parameters of [`VEGAS`].
pub fn start_up(p: &Params) -> Gamma {
    Gamma::new(GammaParams {
        threshold: p.number("gamma"),
        then: Then::from_word(p.word("exit")),
        growth: Growth::from_word(p.word("growth")),
        over: Over::from_word(p.word("diff_over")),
        ..GammaParams::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;
    use crate::round::{queued, queued_over_base};
    use fullpipe_units::Span;

    fn paper() -> Vegas {
        Vegas::new(VegasParams {
            alpha: 1.0,
            beta: 3.0,
            decrease: 0.5,
            over: Over::Rtt,
            pair: Pair::Standard,
        })
    }

    /// One round of `acks` samples at `rtt`; the closing ACK comes with the next round.
    fn round(law: &mut Vegas, win: &mut Window, acks: u64, rtt: Span) {
        for i in 0..acks {
            let ev = if i == 0 {
                round_start(at_ms(0), 1, rtt)
            } else {
                ack(at_ms(0), 1, rtt)
            };
            law.observe(win, &ev);
            if win.w >= win.ssth {
                law.increase(win, 1.0, &ev);
            }
        }
    }

    #[test]
    fn the_published_backlogs() {
        let cases = [
            (100.0, 100.0, 101.0, 0.990099, 1.0),
            (100.0, 100.0, 102.0, 1.960784, 2.0),
            (100.0, 100.0, 105.0, 4.761905, 5.0),
            (20.0, 100.0, 110.0, 1.818182, 2.0),
            (2000.0, 77.0, 80.0, 75.0, 77.922078),
        ];
        for (w, base, rtt, paper, linux) in cases {
            near(queued(w, base, rtt), paper, 5e-7);
            near(queued_over_base(w, base, rtt), linux, 5e-7);
        }
    }

    #[test]
    fn one_segment_up_hold_or_down() {
        let law = paper();
        assert_eq!(law.step(0.999, 1000.0), 1.0);
        assert_eq!(law.step(1.0, 1000.0), 0.0);
        assert_eq!(law.step(3.0, 1000.0), 0.0);
        assert_eq!(law.step(3.001, 1000.0), -1.0);
    }

    #[test]
    fn with_highspeed_tcps_law_alpha_and_beta_still_decide() {
        let mut law = VEGAS.make(&[("law", "highspeed")]).unwrap();
        // RFC 3649 section 5: a(1000) = 7.86, b(1000) = 0.329878.
        near(law.step(0.999, 1000.0), 7.859922, 1e-6);
        assert_eq!(law.step(1.0, 1000.0), 0.0);
        assert_eq!(law.step(3.001, 1000.0), -1.0);
        near(law.decrease(1000.0, 1000.0, &loss(1000)), 670.121731, 1e-5);
        near(law.step(0.0, 38.0), 1.0, 1e-9);

        let mut win = avoidance(1000.0);
        round(&mut law, &mut win, 10, ms(100.0));
        let first = win.w;
        round(&mut law, &mut win, 10, ms(100.05)); // half a segment queued
        near(win.w, first + law.a(first), 1e-9);
        round(&mut law, &mut win, 10, ms(100.2)); // two at most: hold
        let second = win.w;
        round(&mut law, &mut win, 10, ms(100.2));
        assert_eq!(win.w, second);
    }

    #[test]
    fn a_round_moves_the_window_once() {
        let mut law = paper();
        let mut win = avoidance(100.0);
        round(&mut law, &mut win, 10, ms(100.0));
        // The first round has no predecessor and grows as Reno.
        let after_first = win.w;
        round(&mut law, &mut win, 10, ms(100.5));
        assert_eq!(win.w, after_first + 1.0);
        round(&mut law, &mut win, 10, ms(102.0)); // 0.5 ms of queue at 101: half a segment, +1
        assert_eq!(win.w, after_first + 2.0);
        round(&mut law, &mut win, 10, ms(104.0)); // 2 segments: hold
        assert_eq!(win.w, after_first + 2.0);
        round(&mut law, &mut win, 10, ms(100.0)); // 4 segments: -1
        assert_eq!(win.w, after_first + 1.0);
    }

    #[test]
    fn too_few_samples_are_reno() {
        let mut law = paper();
        let mut win = avoidance(10.0);
        round(&mut law, &mut win, 2, ms(100.0));
        let w = win.w;
        round(&mut law, &mut win, 2, ms(100.0));
        near(win.w, w + 1.0 / w + 1.0 / (w + 1.0 / w), 1e-12);
    }

    #[test]
    fn recovery_switches_the_delay_rule_off_until_open() {
        let mut law = paper();
        let mut win = avoidance(100.0);
        round(&mut law, &mut win, 10, ms(100.0));
        round(&mut law, &mut win, 10, ms(150.0));
        let w = win.w;
        let ev = AckEvent {
            phase: Phase::Recovery,
            ..round_start(at_ms(0), 1, ms(150.0))
        };
        law.observe(&mut win, &ev);
        assert_eq!(win.w, w);
        let end = AckEvent {
            ..round_start(at_ms(0), 1, ms(150.0))
        };
        law.observe(&mut win, &end); // no sample of the open state yet
        assert_eq!(win.w, w);
        assert!(law.reno);
    }

    #[test]
    fn a_shrinking_window_stops_at_two() {
        let mut law = paper();
        let mut win = avoidance(100.0);
        round(&mut law, &mut win, 5, ms(10.0));
        for _ in 0..200 {
            round(&mut law, &mut win, 5, ms(1000.0));
        }
        near(win.w, 3.0, 1.0); // 2 x 0.99 segments are below beta
        assert!(win.w >= 2.0);
    }

    #[test]
    fn idle_relearns_the_base() {
        let mut law = paper();
        let mut win = avoidance(100.0);
        round(&mut law, &mut win, 5, ms(100.0));
        law.on_idle(&restart(at_ms(500), Span::from_secs(1), win));
        assert_eq!(law.round.base(), Span::MAX);
    }

    #[test]
    fn losses_and_timeouts_halve() {
        let mut law = paper();
        assert_eq!(law.decrease(100.0, 100.0, &loss(100)), 50.0);
        assert_eq!(law.on_rto(100.0, 80.0, &rto(80)), 40.0);
    }

    #[test]
    fn not_window_limited_holds() {
        let mut law = paper();
        let mut win = avoidance(100.0);
        round(&mut law, &mut win, 5, ms(100.0));
        let w = win.w;
        let ev = AckEvent {
            cwnd_limited: false,
            ..round_start(at_ms(0), 1, ms(100.0))
        };
        law.observe(&mut win, &ev);
        assert_eq!(win.w, w);
    }
}
