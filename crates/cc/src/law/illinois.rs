//! Illinois: loss decides when, average queueing delay decides by how much (Linux `tcp_illinois.c`,
//! whose constants are the default; the paper's are unverified).
//!
//! At each round's end `da` (mean RTT - base) against `dm` (largest RTT - base) sets the increase
//! `alpha` from 10 down to 0.3 segments per round and the fraction REMOVED `beta` from 1/8 up to
//! 1/2. Below `win_thresh` segments it is Reno.
//!
//! A loss before the first round is over halves; any other removes the present `beta`, a mark and a
//! lost retransmission as well. Timeout: `beta`, then Reno until the next round ends. Idle time and
//! segment sizes: nothing to do.

use fullpipe_units::Span;

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;

/// What an Illinois flow is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IllinoisParams {
    /// Smallest increase, segments per round.
    pub alpha_min: f64,
    /// Largest increase, segments per round.
    pub alpha_max: f64,
    /// Smallest fraction removed.
    pub beta_min: f64,
    /// Largest fraction removed.
    pub beta_max: f64,
    /// Reno below this window, segments.
    pub win_thresh: f64,
    /// Rounds of short queues before `alpha_max` returns.
    pub theta: f64,
}

impl IllinoisParams {
    /// Increase for a mean queueing delay `da` above `d1`, with `dm` the largest seen.
    pub fn alpha(&self, da: f64, dm: f64) -> f64 {
        let d1 = D1 * dm;
        if da <= d1 {
            return self.alpha_max;
        }
        let (da, dm) = (da - d1, dm - d1);
        dm * self.alpha_max / (dm + da * (self.alpha_max - self.alpha_min) / self.alpha_min)
    }

    /// Fraction removed for a mean queueing delay `da`, with `dm` the largest seen.
    pub fn beta(&self, da: f64, dm: f64) -> f64 {
        let (d2, d3) = (D2 * dm, D3 * dm);
        if da <= d2 {
            self.beta_min
        } else if da >= d3 {
            self.beta_max
        } else {
            self.beta_min + (self.beta_max - self.beta_min) * (da - d2) / (d3 - d2)
        }
    }
}

/// Illinois' state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Illinois {
    params: IllinoisParams,
    base: Span,
    max: Span,
    /// Sum of the round's RTTs, whole nanoseconds: a constant RTT must give a mean delay of exactly
    /// nothing.
    sum: u64,
    samples: u32,
    alpha: f64,
    beta: f64,
    /// The delay has been above `d1` since `alpha` was last at its maximum.
    above: bool,
    low_rounds: f64,
}

impl Illinois {
    /// A flow that has measured nothing.
    pub fn new(params: IllinoisParams) -> Self {
        Self {
            params,
            base: Span::MAX,
            max: Span::ZERO,
            sum: 0,
            samples: 0,
            alpha: params.alpha_max,
            beta: RENO_DECREASE,
            above: false,
            low_rounds: 0.0,
        }
    }

    fn forget_round(&mut self) {
        self.sum = 0;
        self.samples = 0;
    }

    fn end_of_round(&mut self, w: f64) {
        if w < self.params.win_thresh {
            self.alpha = RENO_INCREASE;
            self.beta = RENO_DECREASE;
        } else if self.samples > 0 {
            let samples = u64::from(self.samples);
            let excess = self
                .sum
                .saturating_sub(samples.saturating_mul(self.base.as_nanos()));
            let dm = self.max.saturating_sub(self.base).as_nanos() as f64;
            let da = excess as f64 / samples as f64;
            self.alpha = self.next_alpha(da, dm);
            self.beta = self.params.beta(da, dm);
        }
        self.forget_round();
    }

    fn next_alpha(&mut self, da: f64, dm: f64) -> f64 {
        if da > D1 * dm {
            self.above = true;
            return self.params.alpha(da, dm);
        }
        if self.above {
            self.low_rounds += 1.0;
            if self.low_rounds < self.params.theta {
                return self.alpha;
            }
            self.low_rounds = 0.0;
            self.above = false;
        }
        self.params.alpha_max
    }
}

impl WindowLaw for Illinois {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if ev.round_start {
            self.end_of_round(win.w);
        }
        if let Some(rtt) = ev.rtt {
            self.base = self.base.min(rtt);
            self.max = self.max.max(rtt);
            self.sum = self.sum.saturating_add(rtt.as_nanos());
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += self.alpha * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        (1.0 - self.beta) * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        let ssth = (1.0 - self.beta) * base;
        self.alpha = RENO_INCREASE;
        self.beta = RENO_DECREASE;
        self.above = false;
        self.low_rounds = 0.0;
        self.forget_round();
        ssth
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", self.alpha);
        visit("beta", self.beta);
    }
}

/// Mean queueing delay up to this part of the largest: `alpha_max` (Linux `tcp_illinois.c`, as what
/// follows).
const D1: f64 = 0.01;
/// Up to this part: `beta_min`.
const D2: f64 = 0.1;
/// From this part on: `beta_max`.
const D3: f64 = 0.8;
/// Increase of Reno, segments per round (RFC 5681 section 3.1).
const RENO_INCREASE: f64 = 1.0;
/// Fraction Reno removes (RFC 5681 section 3.1).
const RENO_DECREASE: f64 = 0.5;

/// `illinois`.
pub const ILLINOIS: Entry<Illinois> = Entry {
    name: "illinois",
    aliases: &[],
    about: "loss-based; mean queueing delay sets increase and decrease",
    source: "Linux tcp_illinois.c",
    params: &[
        param!(alpha_min: number = 0.3, 1e-3..=1.0, "segments/RTT",
            "increase at the longest queue (paper 0.1, unverified)", "Linux tcp_illinois.c"),
        param!(alpha_max: number = 10.0, 1.0..=1e4, "segments/RTT",
            "increase on a short queue", "Linux tcp_illinois.c"),
        param!(beta_min: number = 0.125, 1e-6..=0.999, "fraction",
            "removed on loss with a short queue", "Linux tcp_illinois.c")
        .removed(),
        param!(beta_max: number = 0.5, 1e-6..=0.999, "fraction",
            "removed on loss with a long queue", "Linux tcp_illinois.c")
        .removed(),
        param!(win_thresh: number = 15.0, 0.0..=1e6, "segments",
            "Reno below this window (paper 10, unverified)", "Linux tcp_illinois.c"),
        param!(theta: number = 5.0, 0.0..=1e6, "rounds",
            "short-queue rounds before alpha_max returns", "Linux tcp_illinois.c"),
    ],
    build: |p| {
        let params = IllinoisParams {
            alpha_min: p.number("alpha_min"),
            alpha_max: p.number("alpha_max"),
            beta_min: p.number("beta_min"),
            beta_max: p.number("beta_max"),
            win_thresh: p.number("win_thresh"),
            theta: p.number("theta"),
        };
        if params.beta_min > params.beta_max {
            return Err(format!(
                "beta_min {} is above beta_max {}",
                params.beta_min, params.beta_max
            ));
        }
        Ok(Illinois::new(params))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn linux() -> IllinoisParams {
        IllinoisParams {
            alpha_min: 0.3,
            alpha_max: 10.0,
            beta_min: 0.125,
            beta_max: 0.5,
            win_thresh: 15.0,
            theta: 5.0,
        }
    }

    #[test]
    fn the_published_tables() {
        let da = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 80.0, 100.0];
        let linux_alpha = [
            10.0, 10.0, 7.538071, 4.335766, 2.538462, 1.387850, 0.588119, 0.373116, 0.3,
        ];
        let paper_alpha = [10.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.125, 0.1];
        let beta = [
            0.125, 0.125, 0.125, 0.125, 0.125, 0.178571, 0.339286, 0.5, 0.5,
        ];
        let paper = IllinoisParams {
            alpha_min: 0.1,
            ..linux()
        };
        for i in 0..da.len() {
            near(linux().alpha(da[i], 100.0), linux_alpha[i], 5e-7);
            near(paper.alpha(da[i], 100.0), paper_alpha[i], 5e-7);
            near(linux().beta(da[i], 100.0), beta[i], 5e-7);
        }
    }

    #[test]
    fn the_maximum_returns_only_after_five_low_rounds() {
        let mut law = Illinois::new(linux());
        assert_eq!(law.next_alpha(0.0, 0.1), 10.0);
        law.alpha = law.next_alpha(0.05, 0.1);
        near(law.alpha, 0.588119, 5e-7);
        for _ in 0..4 {
            law.alpha = law.next_alpha(0.0, 0.1);
            near(law.alpha, 0.588119, 5e-7);
        }
        assert_eq!(law.next_alpha(0.0, 0.1), 10.0);
    }

    #[test]
    fn the_mean_of_the_round_decides() {
        let mut law = Illinois::new(linux());
        let mut win = avoidance(100.0);
        law.observe(&mut win, &ack(at_ms(0), 1, ms(100.0)));
        law.observe(&mut win, &ack(at_ms(0), 1, ms(200.0)));
        law.observe(&mut win, &round_start(at_ms(1), 1, ms(120.0)));
        near(law.beta, 0.339286, 5e-7);
        law.observe(&mut win, &round_start(at_ms(2), 1, ms(120.0)));
        near(law.beta, 0.178571, 5e-7);
        near(law.alpha, 1.387850, 5e-7);
    }

    #[test]
    fn small_windows_are_renos() {
        let mut law = Illinois::new(linux());
        let mut win = avoidance(14.9);
        law.observe(&mut win, &round_start(at_ms(0), 1, ms(100.0)));
        assert_eq!((law.alpha, law.beta), (1.0, 0.5));
    }

    #[test]
    fn a_loss_removes_beta() {
        let mut law = Illinois {
            beta: 0.125,
            ..Illinois::new(linux())
        };
        assert_eq!(law.decrease(1000.0, 1000.0, &loss(1000)), 875.0);
        let mut law = Illinois::new(linux());
        assert_eq!(law.decrease(1000.0, 1000.0, &loss(1000)), 500.0);
    }

    #[test]
    fn a_timeout_uses_beta_and_resets_to_reno() {
        let mut law = Illinois {
            beta: 0.125,
            above: true,
            low_rounds: 3.0,
            ..Illinois::new(linux())
        };
        assert_eq!(law.on_rto(1000.0, 1000.0, &rto(1000)), 875.0);
        assert_eq!(
            (law.alpha, law.beta, law.above, law.low_rounds),
            (1.0, 0.5, false, 0.0)
        );
    }

    #[test]
    fn grows_by_alpha() {
        let mut law = Illinois {
            alpha: 2.5,
            ..Illinois::new(linux())
        };
        let mut win = avoidance(100.0);
        law.increase(&mut win, 100.0, &ack(at_ms(0), 100, ms(100.0)));
        near(win.w, 102.5, 1e-12);
    }
}
