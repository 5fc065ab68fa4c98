//! YeAH: Scalable growth while the queue is short, Reno with precautionary decongestion otherwise (section 1.14 of the
//! algorithm reference; Linux `tcp_yeah.c`).
//!
//! Once per round `Q = w (rtt - base)/rtt`. Fast mode while `Q <= q_max` and the queueing delay is at most `base/8`. In
//! slow mode a queue above `q_max` is drained at once, down to the estimated window of a competing Reno flow. A loss
//! removes the queue, at least an eighth and at most half of the window; after 16 slow rounds (Reno flows compete), half.
//!
//! The rules hold in start-up as well: a long queue ends it. Timeout and mark: as a loss. A lost retransmission cuts
//! again. Idle time: base and queue are learnt anew. A new segment size scales queue and Reno estimate.

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, Phase, RtoEvent};
use crate::delay::round::{RoundEnd, RoundMin};
use crate::law::{Law, WindowLaw};
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

/// YeAH's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yeah {
    /// Segments of own queue that fast mode accepts.
    pub q_max: f64,
    round: RoundMin,
    queue: f64,
    reno_count: f64,
    fast_count: u32,
    doing_reno: u32,
}

impl Yeah {
    /// A flow that has measured nothing.
    pub fn new(q_max: f64) -> Self {
        Self {
            q_max,
            round: RoundMin::EMPTY,
            queue: 0.0,
            reno_count: RENO_MIN,
            fast_count: 0,
            doing_reno: 0,
        }
    }

    fn end_of_round(&mut self, win: &mut Window, end: &RoundEnd) {
        self.queue = end.queued(win.w);
        let long_queue = self.queue > self.q_max;
        if long_queue || end.queue_delay() > end.base / PHY {
            if long_queue && win.w > self.reno_count {
                let cut = (self.queue / GAMMA).min(win.w * MAX_DECONGESTION);
                win.w = (win.w - cut).max(self.reno_count);
                win.ssth = win.w;
            }
            self.reno_count = if self.reno_count <= RENO_MIN {
                (win.w / 2.0).max(RENO_MIN)
            } else {
                self.reno_count + 1.0
            };
            self.doing_reno = self.doing_reno.saturating_add(1);
        } else {
            self.fast_count += 1;
            if self.fast_count > ZETA {
                self.reno_count = RENO_MIN;
                self.fast_count = 0;
            }
            self.doing_reno = 0;
        }
    }

    /// Segments that a loss at window `w` removes.
    fn cut(&self, w: f64) -> f64 {
        let half = (w * HALF).max(2.0);
        if self.doing_reno < RHO {
            self.queue.min(half).max(w * MIN_CUT)
        } else {
            half
        }
    }

    fn reduce(&mut self, w: f64, base: f64) -> f64 {
        let keep = 1.0 - self.cut(w) / w;
        self.fast_count = 0;
        self.reno_count = (self.reno_count / 2.0).max(RENO_MIN);
        self.round.forget_round();
        keep * base
    }
}

impl WindowLaw for Yeah {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        let end = self.round.on_ack(ev);
        if matches!(ev.phase, Phase::Recovery | Phase::Cwr | Phase::Loss) {
            self.round.forget_round();
        } else if let Some(end) = end.filter(|e| e.enough()) {
            self.end_of_round(win, &end);
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        let reno = 1.0 / win.w;
        win.w += n * if self.doing_reno == 0 {
            FAST_STEP.max(reno)
        } else {
            reno
        };
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        self.reduce(w, base)
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.reduce(w, base)
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        self.round.relearn();
        self.queue = 0.0;
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.queue *= ratio;
        self.reno_count = (self.reno_count * ratio).max(RENO_MIN);
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("queue", self.queue);
        visit("reno_count", self.reno_count);
        visit("fast_count", f64::from(self.fast_count));
        visit("doing_reno", f64::from(self.doing_reno));
    }
}

/// Slow mode when the queueing delay exceeds this part of the base RTT (Linux TCP_YEAH_PHY).
const PHY: u64 = 8;
/// Part of the queue drained at once: `Q / GAMMA` (TCP_YEAH_GAMMA).
const GAMMA: f64 = 1.0;
/// Largest part of the window drained at once (TCP_YEAH_EPSILON 1: `w >> 1`).
const MAX_DECONGESTION: f64 = 0.5;
/// Smallest part removed on loss (TCP_YEAH_DELTA 3: `w >> 3`).
const MIN_CUT: f64 = 0.125;
/// Part removed on loss against competing Reno flows (RFC 5681 section 3.1).
const HALF: f64 = 0.5;
/// Slow rounds after which Reno flows are taken to compete (TCP_YEAH_RHO).
const RHO: u32 = 16;
/// Fast rounds after which no Reno flow is taken to compete (TCP_YEAH_ZETA).
const ZETA: u32 = 50;
/// Smallest estimate of a competing Reno flow's window, segments.
const RENO_MIN: f64 = 2.0;
/// Scalable growth per acknowledged segment; below 100 segments Reno's is larger and applies.
const FAST_STEP: f64 = 0.01;

/// `yeah`.
pub const YEAH: Entry = Entry {
    name: "yeah",
    aliases: &[],
    kind: Kind::Law,
    about: "Scalable growth while the queue is short, Reno with early decongestion otherwise",
    source: "Linux tcp_yeah.c",
    params: &[ParamSpec::number(
        "q_max",
        80.0,
        1.0..=1e6,
        "segments",
        "own queue above which the window is drained (ALPHA)",
        "Linux tcp_yeah.c",
    )],
    build: |p: &Params| {
        Ok(Component::Law(
            Law::Yeah(Yeah::new(p.number("q_max"))),
            None,
        ))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::testing::*;
    use fullpipe_units::Span;

    /// A flow at `w` after one round at `rtt` on a base of 100 ms.
    fn after(w: f64, rtt: f64) -> (Yeah, Window) {
        let mut law = Yeah::new(80.0);
        let mut win = avoidance(w);
        law.observe(&mut win, &ack(at_ms(0), 1, ms(100.0)));
        law.round.forget_round();
        for _ in 0..3 {
            law.observe(&mut win, &ack(at_ms(1), 1, ms(rtt)));
        }
        law.observe(&mut win, &round_start(at_ms(2), 1, ms(rtt)));
        (law, win)
    }

    #[test]
    fn queue_and_mode_of_the_published_rounds() {
        for (rtt, queue, mode, w) in [
            (105.0, 47.619, 0, 1000.0),
            (110.0, 90.909, 1, 909.091),
            (120.0, 166.667, 1, 833.333),
        ] {
            let (law, win) = after(1000.0, rtt);
            near(law.queue, queue, 5e-4);
            assert_eq!(law.doing_reno, mode);
            near(win.w, w, 5e-4);
        }
    }

    #[test]
    fn a_long_delay_alone_slows_without_draining() {
        let (law, win) = after(100.0, 130.0);
        assert_eq!((law.doing_reno, win.w), (1, 100.0));
        near(law.queue, 23.077, 5e-4);
    }

    #[test]
    fn a_loss_removes_the_queue_within_bounds() {
        for (queue, ssth) in [(10.0, 875.0), (200.0, 800.0), (700.0, 500.0)] {
            let mut law = Yeah {
                queue,
                ..Yeah::new(80.0)
            };
            near(law.decrease(1000.0, 1000.0, &loss(1000)), ssth, 1e-9);
            let mut law = Yeah {
                queue,
                ..Yeah::new(80.0)
            };
            near(law.on_rto(1000.0, 1000.0, &rto(1000)), ssth, 1e-9);
        }
    }

    #[test]
    fn after_sixteen_slow_rounds_a_loss_halves() {
        let mut law = Yeah {
            doing_reno: 15,
            ..Yeah::new(80.0)
        };
        near(law.decrease(1000.0, 1000.0, &loss(1000)), 875.0, 1e-9);
        let mut law = Yeah {
            doing_reno: 16,
            ..Yeah::new(80.0)
        };
        near(law.decrease(1000.0, 1000.0, &loss(1000)), 500.0, 1e-9);
    }

    #[test]
    fn draining_stops_at_half_and_at_the_reno_estimate() {
        let (_, win) = after(1000.0, 400.0); // 750 queued
        near(win.w, 500.0, 1e-9);
        let mut law = Yeah {
            reno_count: 950.0,
            ..Yeah::new(80.0)
        };
        let mut win = avoidance(1000.0);
        let end = RoundEnd {
            base: ms(100.0),
            rtt: ms(120.0),
            mean: ms(120.0),
            samples: 3,
        };
        law.end_of_round(&mut win, &end);
        assert_eq!((win.w, law.reno_count), (950.0, 951.0));
    }

    #[test]
    fn fast_growth_is_one_percent_and_slow_growth_renos() {
        let ev = ack(at_ms(0), 1, ms(100.0));
        let mut win = avoidance(1000.0);
        Yeah::new(80.0).increase(&mut win, 100.0, &ev);
        near(win.w, 1001.0, 1e-9);
        let mut win = avoidance(1000.0);
        Yeah {
            doing_reno: 1,
            ..Yeah::new(80.0)
        }
        .increase(&mut win, 1000.0, &ev);
        near(win.w, 1001.0, 1e-9);
        let mut win = avoidance(50.0);
        Yeah::new(80.0).increase(&mut win, 50.0, &ev);
        near(win.w, 51.0, 1e-9);
    }

    #[test]
    fn fifty_one_fast_rounds_forget_the_reno_flow() {
        let mut law = Yeah {
            reno_count: 300.0,
            ..Yeah::new(80.0)
        };
        let mut win = avoidance(1000.0);
        let end = RoundEnd {
            base: ms(100.0),
            rtt: ms(100.0),
            mean: ms(100.0),
            samples: 3,
        };
        for _ in 0..50 {
            law.end_of_round(&mut win, &end);
        }
        assert_eq!(law.reno_count, 300.0);
        law.end_of_round(&mut win, &end);
        assert_eq!((law.reno_count, law.fast_count), (2.0, 0));
    }

    #[test]
    fn a_long_queue_ends_start_up() {
        let mut law = Yeah::new(80.0);
        let mut win = start_up(1000.0);
        law.end_of_round(
            &mut win,
            &RoundEnd {
                base: ms(100.0),
                rtt: ms(110.0),
                mean: ms(110.0),
                samples: 3,
            },
        );
        near(win.w, 909.091, 5e-4);
        assert_eq!(win.ssth, win.w);
    }

    #[test]
    fn a_new_segment_size_scales_queue_and_estimate() {
        let mut law = Yeah {
            queue: 50.0,
            reno_count: 300.0,
            ..Yeah::new(80.0)
        };
        law.on_mss_change(2.0);
        assert_eq!((law.queue, law.reno_count), (100.0, 600.0));
    }

    #[test]
    fn idle_relearns_the_delays() {
        let (mut law, win) = after(1000.0, 105.0);
        law.on_idle(&restart(at_ms(0), Span::from_secs(1), win));
        assert_eq!((law.queue, law.round), (0.0, RoundMin::EMPTY));
    }
}
