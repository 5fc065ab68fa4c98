//! FAST: an equation that keeps about `alpha` of the flow's segments queued (ns-2's FAST module
//! 1.1.3).
//!
//! Once per round `w <- min(2w, (1-gamma) w + gamma (base/avgRTT w + alpha))`, spread over the ACKs
//! of the next round. Read in the ns-2 module 1.1.3; the paper's wording, its alpha of 200 and its
//! averaging weight are unverified. Start-up is slow start with Vegas' test; with `mi=on` the
//! module's multiplicative increase also runs in congestion avoidance: while the queueing delay is
//! below `mi_threshold` a segment for each one that is counted, so per ACK where ACKs are counted.
//! All other growth is by the segments that are acknowledged. The base is the minimum over the
//! whole flow unless `base_window` is set: FAST never empties its own queue, so a short window
//! would forget the true base and let the queue creep up.
//!
//! Loss (in start-up or a lost retransmission too), timeout and mark halve and stop the running
//! change; the next round after recovery computes anew. Timeout and idle time restart the average
//! RTT and keep the base.

use fullpipe_units::{Span, Time};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, Phase, RestartEvent, RtoEvent};
use crate::entry::Entry;
use crate::params::Params;
use crate::startup::gamma::{Gamma, GammaParams, Then};

/// What a FAST flow is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastParams {
    /// Segments to keep queued.
    pub alpha: f64,
    /// Weight of the new window.
    pub gamma: f64,
    /// Largest weight of a sample in the average RTT.
    pub eta_max: f64,
    /// Multiplicative increase below this queueing delay.
    pub mi_below: Option<Span>,
    /// Window of the minimum filter; zero: the whole flow.
    pub base_window: Span,
}

/// FAST's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fast {
    params: FastParams,
    base: WindowedMin,
    /// Average RTT, s; 0 before the first sample.
    avg: f64,
    target: f64,
    /// Change per delivered segment until `target` is reached.
    step: f64,
}

/// The window update of ns-2's FAST module; times in any common unit.
pub fn next_window(w: f64, base: f64, avg: f64, alpha: f64, gamma: f64) -> f64 {
    (2.0 * w).min((1.0 - gamma) * w + gamma * (base / avg * w + alpha))
}

impl Fast {
    /// A flow that has measured nothing.
    pub fn new(params: FastParams) -> Self {
        Self {
            params,
            base: WindowedMin::EMPTY,
            avg: 0.0,
            target: 0.0,
            step: 0.0,
        }
    }

    /// Weight of one RTT sample, `min(3/w, 1/4)`.
    fn eta(&self, w: f64) -> f64 {
        (ETA_SAMPLES / w).min(self.params.eta_max)
    }

    fn sample(&mut self, w: f64, rtt: Span, now: Time) {
        let rtt = rtt.max(Span::from_nanos(1));
        self.base.add(rtt, now, self.params.base_window);
        let eta = self.eta(w);
        let rtt = rtt.as_secs_f64();
        self.avg = if self.avg > 0.0 {
            (1.0 - eta) * self.avg + eta * rtt
        } else {
            rtt
        };
    }

    fn stop(&mut self) {
        self.step = 0.0;
    }

    fn multiplies(&self) -> bool {
        self.params
            .mi_below
            .is_some_and(|t| self.avg > 0.0 && self.avg - self.base.secs() < t.as_secs_f64())
    }

    /// After a pause.
    fn relearn(&mut self) {
        self.stop();
        self.avg = 0.0;
    }
}

impl WindowLaw for Fast {
    #[inline]
    fn counts_segments(&self, _w: f64) -> bool {
        !self.multiplies()
    }

    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if let Some(rtt) = ev.rtt {
            self.sample(win.w, rtt, ev.now);
        }
        if win.w < win.ssth || matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            self.stop();
            return;
        }
        if ev.round_start && self.avg > 0.0 {
            self.target = next_window(
                win.w,
                self.base.secs().min(self.avg),
                self.avg,
                self.params.alpha,
                self.params.gamma,
            );
            self.step = (self.target - win.w) / win.w;
        }
        if self.step < 0.0 && win.w > self.target {
            let n = ev.delivered_now() as f64;
            win.w = (win.w + self.step * n)
                .max(self.target)
                .max(FLOOR.min(win.w));
            win.ssth = win.ssth.min(win.w);
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        if self.multiplies() {
            win.w += n;
        } else if self.step > 0.0 && win.w < self.target {
            win.w = (win.w + self.step * n).min(self.target);
        }
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        self.stop();
        (1.0 - DECREASE) * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.stop();
        self.avg = 0.0;
        (1.0 - DECREASE) * base
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        self.relearn();
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        if ev.ends_a_pause() {
            self.relearn();
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.target *= ratio;
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit(
            "base_rtt",
            if self.base == WindowedMin::EMPTY {
                0.0
            } else {
                self.base.secs()
            },
        );
        visit("avg_rtt", self.avg);
        visit("target", self.target);
    }
}

/// Minimum over a window of time, in two buckets: between one and two windows are remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WindowedMin {
    old: Span,
    new: Span,
    since: Time,
}

impl WindowedMin {
    const EMPTY: Self = Self {
        old: Span::MAX,
        new: Span::MAX,
        since: Time::ZERO,
    };

    fn add(&mut self, rtt: Span, now: Time, window: Span) {
        if window > Span::ZERO && now.saturating_since(self.since) > window {
            self.old = self.new;
            self.new = Span::MAX;
            self.since = now;
        }
        self.new = self.new.min(rtt);
    }

    fn secs(&self) -> f64 {
        self.old.min(self.new).as_secs_f64()
    }
}

/// Fraction removed on loss, mark and timeout (ns-2 FAST module 1.1.3).
const DECREASE: f64 = 0.5;
/// Numerator of the averaging weight `3/w` (paper, unverified).
const ETA_SAMPLES: f64 = 3.0;
/// Smallest window that the equation leaves, segments; ours.
const FLOOR: f64 = 2.0;

/// `fast`.
pub const FAST: Entry<Fast> = Entry {
    name: "fast",
    aliases: &[],
    about: "equation-based: about alpha segments of the flow stay queued, equal rates at any RTT",
    source: "ns-2 FAST module 1.1.3; paper wording unverified",
    params: &[
        param!(alpha: number = 200.0, 1.0..=1e6, "segments",
            "segments to keep queued", "value for about 1 Gb/s, unverified; ns-2 module: 100"),
        param!(gamma: number = 0.5, 1e-3..=1.0, "fraction",
            "weight of the new window", "ns-2 FAST module 1.1.3"),
        param!(eta_max: number = 0.25, 1e-4..=1.0, "fraction",
            "largest weight of an RTT sample, min(3/w, eta_max); ns-2 module: 1/256",
            "paper, unverified"),
        param!(gamma_ss: number = 1.0, 0.0..=1e6, "segments",
            "backlog that ends start-up", "Vegas' value; the paper's is unverified"),
        param!(mi: flag = false,
            "multiplicative increase while the queue is short", "ns-2 FAST module 1.1.3"),
        param!(mi_threshold: time =
            Span::from_micros(750), Span::from_micros(1)..=Span::from_secs(10),
            "queueing delay below which mi multiplies", "ns-2 FAST module 1.1.3"),
        param!(base_window: time = Span::ZERO, Span::ZERO..=Span::from_secs(86_400),
            "window of the base RTT's minimum filter, 0s: the whole flow", "design choice"),
    ],
    build: |p| {
        let params = FastParams {
            alpha: p.number("alpha"),
            gamma: p.number("gamma"),
            eta_max: p.number("eta_max"),
            mi_below: p.flag("mi").then(|| p.time("mi_threshold")),
            base_window: p.time("base_window"),
        };
        Ok(Fast::new(params))
    },
};

/// FAST's slow start, until `gamma_ss` segments are queued, from the parameters of [`FAST`].
pub fn start_up(p: &Params) -> Gamma {
    Gamma::new(GammaParams {
        threshold: p.number("gamma_ss"),
        then: Then::Avoidance,
        ..GammaParams::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn params() -> FastParams {
        FastParams {
            alpha: 200.0,
            gamma: 0.5,
            eta_max: 0.25,
            mi_below: None,
            base_window: Span::ZERO,
        }
    }

    #[test]
    fn the_published_updates() {
        near(next_window(1000.0, 0.1, 0.1, 200.0, 0.5), 1100.0, 1e-9);
        near(
            next_window(1000.0, 0.1, 0.11, 200.0, 0.5),
            1054.545455,
            5e-7,
        );
        near(next_window(10.0, 0.1, 0.1, 200.0, 0.5), 20.0, 1e-9);
    }

    #[test]
    fn the_change_is_spread_over_the_next_round() {
        let mut law = Fast::new(params());
        let mut win = avoidance(1000.0);
        let first = round_start(at_ms(0), 500, ms(100.0));
        law.observe(&mut win, &first);
        assert_eq!(win.w, 1000.0);
        law.increase(&mut win, 500.0, &first);
        near(win.w, 1050.0, 1e-9);
        let rest = ack(at_ms(50), 500, ms(100.0));
        law.observe(&mut win, &rest);
        law.increase(&mut win, 500.0, &rest);
        near(win.w, 1100.0, 1e-9);
        law.increase(&mut win, 500.0, &rest); // target reached: constant until the next update
        near(win.w, 1100.0, 1e-9);
    }

    #[test]
    fn a_long_queue_shrinks_the_window_without_growth_rights() {
        let mut law = Fast::new(params());
        let mut win = avoidance(1000.0);
        law.observe(&mut win, &ack(at_ms(0), 1, ms(100.0)));
        law.avg = 0.2;
        law.params.eta_max = 0.0;
        let ev = AckEvent {
            cwnd_limited: false,
            ..round_start(at_ms(0), 1000, ms(200.0))
        };
        law.observe(&mut win, &ev);
        near(win.w, 850.0, 1e-9); // 500 + 0.5 (500 + 200)
    }

    #[test]
    fn the_average_weighs_three_samples_of_a_window() {
        let mut law = Fast::new(params());
        near(law.eta(8.0), 0.25, 1e-12);
        near(law.eta(300.0), 0.01, 1e-12);
        law.sample(300.0, ms(100.0), at_ms(0));
        law.sample(300.0, ms(200.0), at_ms(1));
        near(law.avg, 0.101, 1e-12);
        law.on_rto(300.0, 300.0, &rto(300));
        assert_eq!(law.avg, 0.0);
        near(law.base.secs(), 0.1, 1e-12);
    }

    #[test]
    fn multiplicative_increase_below_its_threshold() {
        let mi = FastParams {
            mi_below: Some(Span::from_micros(750)),
            ..params()
        };
        let mut law = Fast::new(mi);
        let mut win = avoidance(100.0);
        let ev = ack(at_ms(0), 100, ms(100.0));
        law.observe(&mut win, &ev);
        law.increase(&mut win, 100.0, &ev);
        near(win.w, 200.0, 1e-9);
        law.avg = 0.10076;
        law.increase(&mut win, 100.0, &ev);
        near(win.w, 200.0, 1e-9);
    }

    #[test]
    fn halves_on_loss_and_timeout_and_stops_the_running_change() {
        let mut law = Fast::new(params());
        law.step = 0.1;
        assert_eq!(law.decrease(1000.0, 1000.0, &loss(1000)), 500.0);
        assert_eq!(law.step, 0.0);
        assert_eq!(law.on_rto(1000.0, 1000.0, &rto(1000)), 500.0);
    }

    #[test]
    fn a_new_segment_size_scales_the_target() {
        let mut law = Fast::new(params());
        law.target = 1100.0;
        law.on_mss_change(2.0);
        assert_eq!(law.target, 2200.0);
    }

    #[test]
    fn nothing_moves_in_recovery() {
        let mut law = Fast::new(params());
        let mut win = avoidance(1000.0);
        let ev = AckEvent {
            phase: Phase::Recovery,
            ..round_start(at_ms(0), 1, ms(100.0))
        };
        law.observe(&mut win, &ev);
        assert_eq!((win.w, law.step), (1000.0, 0.0));
    }

    #[test]
    fn idle_keeps_the_base() {
        let mut law = Fast::new(params());
        law.sample(100.0, ms(100.0), at_ms(0));
        law.on_idle(&restart(at_ms(9000), Span::from_secs(8), avoidance(100.0)));
        assert_eq!(law.avg, 0.0);
        near(law.base.secs(), 0.1, 1e-12);
    }

    #[test]
    fn a_windowed_base_forgets_after_two_windows() {
        let mut law = Fast::new(FastParams {
            base_window: Span::from_secs(10),
            ..params()
        });
        law.sample(100.0, ms(100.0), at_ms(0));
        law.sample(100.0, ms(150.0), at_ms(10_001));
        near(law.base.secs(), 0.1, 1e-12);
        law.sample(100.0, ms(150.0), at_ms(20_002));
        near(law.base.secs(), 0.15, 1e-12);
    }
}
