//! YeAH: Scalable growth while the queue is short, Reno with precautionary decongestion otherwise.
//!
//! The law of Baiocchi, Castellani and Vacirca 2007 with the numbers that Linux 6.1 `tcp_yeah.c`
//! gives its constants. Each round measures the own queue `Q = w (rtt - base)/rtt` and the level of
//! congestion `L = (rtt - base)/base`. It is fast while `Q <= q_max` and `L <= 1/phi`. In slow
//! rounds a queue above `q_max` leaves the window at once, down to the estimated window of a
//! competing Reno flow. A loss removes `min(max(w/delta, Q), w/2)`, and `w/2` after `rho` slow
//! rounds in a row, which tell of Reno flows.
//!
//! The rules hold in start-up as well: a long queue ends it. Timeout and mark: as a loss. A lost
//! retransmission cuts again. Idle time: base and queue are learnt anew. A new segment size scales
//! the queue and the Reno flow's window.

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, Phase, RestartEvent, RtoEvent};
use crate::entry::Entry;
use crate::round::{RoundEnd, RoundMin};

/// YeAH's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yeah {
    /// Longest own queue of a fast round, segments.
    pub q_max: f64,
    round: RoundMin,
    /// `Q` of the last measured round, segments.
    q: f64,
    /// Slow rounds in a row; 0 in the fast mode.
    slow_rounds: u32,
    rival: Rival,
}

/// The Reno flow that may share the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rival {
    /// `cwnd_reno`, segments; [`Rival::UNSEEN`] if there is none.
    window: f64,
    /// Fast rounds since the last loss, up to `zeta`.
    fast_rounds: u32,
}

impl Rival {
    const UNSEEN: f64 = 2.0;
    const NONE: Self = Self {
        window: Self::UNSEEN,
        fast_rounds: 0,
    };

    /// A slow round, which ended with `w` segments for this flow: half of that at first, then
    /// Reno's one segment per round.
    fn slow_round(&mut self, w: f64) {
        self.window = if self.window > Self::UNSEEN {
            self.window + 1.0
        } else {
            (w / 2.0).max(Self::UNSEEN)
        };
    }

    fn fast_round(&mut self) {
        self.fast_rounds += 1;
        if self.fast_rounds > ZETA {
            *self = Self::NONE;
        }
    }

    fn loss(&mut self) {
        *self = Self {
            window: (self.window / 2.0).max(Self::UNSEEN),
            fast_rounds: 0,
        };
    }

    fn scale(&mut self, ratio: f64) {
        self.window = (self.window * ratio).max(Self::UNSEEN);
    }
}

impl Yeah {
    /// A flow that has measured nothing.
    pub fn new(q_max: f64) -> Self {
        Self {
            q_max,
            round: RoundMin::EMPTY,
            q: 0.0,
            slow_rounds: 0,
            rival: Rival::NONE,
        }
    }

    fn end_of_round(&mut self, win: &mut Window, end: &RoundEnd) {
        self.q = end.queued(win.w);
        if self.q > self.q_max {
            self.decongest(win);
        }
        if self.q <= self.q_max && end.queue_delay() <= end.base / PHI {
            self.slow_rounds = 0;
            self.rival.fast_round();
        } else {
            self.slow_rounds = self.slow_rounds.saturating_add(1);
            self.rival.slow_round(win.w);
        }
    }

    /// Precautionary decongestion: `Q` leaves the window, unless that falls behind the rival.
    fn decongest(&self, win: &mut Window) {
        let without_queue = win.w - self.q.min(MAX_DECONGESTION * win.w);
        if self.rival.window < win.w {
            win.w = without_queue.max(self.rival.window);
            win.ssth = win.w;
        }
    }

    /// Segments that a loss removes from a window of `w`.
    fn removed(&self, w: f64) -> f64 {
        let half = (HALF * w).max(2.0);
        if self.slow_rounds < RHO {
            half.min(self.q.max(w / DELTA))
        } else {
            half
        }
    }

    fn reduce(&mut self, w: f64, base: f64) -> f64 {
        self.round.forget_round();
        self.rival.loss();
        (1.0 - self.removed(w) / w) * base
    }

    /// After a pause.
    fn relearn(&mut self) {
        self.round.relearn();
        self.q = 0.0;
    }
}

impl WindowLaw for Yeah {
    /// In the fast mode (Linux `pkts_acked`).
    #[inline]
    fn counts_segments(&self, _w: f64) -> bool {
        self.slow_rounds == 0
    }

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
        win.w += n * if self.slow_rounds > 0 {
            reno
        } else {
            reno.max(SCALABLE)
        };
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        self.reduce(w, base)
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.reduce(w, base)
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
        self.q *= ratio;
        self.rival.scale(ratio);
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("queue", self.q);
        visit("reno", self.rival.window);
        visit("fast_rounds", f64::from(self.rival.fast_rounds));
        visit("slow_rounds", f64::from(self.slow_rounds));
    }
}

/// `phi`: a queueing delay above the base over this makes a round slow.
const PHI: u64 = 8;
/// `epsilon`: the largest part of the window that leaves at once.
const MAX_DECONGESTION: f64 = 0.5;
/// `delta`: a loss removes at least the window over this.
const DELTA: f64 = 8.0;
/// Part removed on loss against competing Reno flows (RFC 5681 section 3.1).
const HALF: f64 = 0.5;
/// `rho`: slow rounds after which a loss halves.
const RHO: u32 = 16;
/// `zeta`: fast rounds after which no Reno flow is believed to compete.
const ZETA: u32 = 50;
/// Scalable growth per acknowledged segment (Kelly 2003); below 100 segments Reno's is larger and
/// applies.
const SCALABLE: f64 = 0.01;

/// `yeah`.
pub const YEAH: Entry<Yeah> = Entry {
    name: "yeah",
    aliases: &[],
    about: "Scalable growth while the queue is short, Reno with early decongestion otherwise",
    source: "Linux tcp_yeah.c",
    params: &[param!(q_max: number = 80.0, 1.0..=1e6, "segments",
        "own queue above which the window is drained (ALPHA)", "Linux tcp_yeah.c")],
    build: |p| Ok(Yeah::new(p.number("q_max"))),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;
    use fullpipe_units::Span;

    fn seen(window: f64) -> Rival {
        Rival {
            window,
            ..Rival::NONE
        }
    }

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
            near(law.q, queue, 5e-4);
            assert_eq!(law.slow_rounds, mode);
            near(win.w, w, 5e-4);
        }
    }

    #[test]
    fn a_long_delay_alone_slows_without_draining() {
        let (law, win) = after(100.0, 130.0);
        assert_eq!((law.slow_rounds, win.w), (1, 100.0));
        near(law.q, 23.077, 5e-4);
    }

    #[test]
    fn a_loss_removes_the_queue_within_bounds() {
        for (queue, ssth) in [(10.0, 875.0), (200.0, 800.0), (700.0, 500.0)] {
            let mut law = Yeah {
                q: queue,
                ..Yeah::new(80.0)
            };
            near(law.decrease(1000.0, 1000.0, &loss(1000)), ssth, 1e-9);
            let mut law = Yeah {
                q: queue,
                ..Yeah::new(80.0)
            };
            near(law.on_rto(1000.0, 1000.0, &rto(1000)), ssth, 1e-9);
        }
    }

    #[test]
    fn after_sixteen_slow_rounds_a_loss_halves() {
        let mut law = Yeah {
            slow_rounds: 15,
            ..Yeah::new(80.0)
        };
        near(law.decrease(1000.0, 1000.0, &loss(1000)), 875.0, 1e-9);
        let mut law = Yeah {
            slow_rounds: 16,
            ..Yeah::new(80.0)
        };
        near(law.decrease(1000.0, 1000.0, &loss(1000)), 500.0, 1e-9);
    }

    #[test]
    fn draining_stops_at_half_and_at_the_reno_estimate() {
        let (_, win) = after(1000.0, 400.0); // 750 queued
        near(win.w, 500.0, 1e-9);
        let mut law = Yeah {
            rival: seen(950.0),
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
        assert_eq!((win.w, law.rival.window), (950.0, 951.0));
    }

    #[test]
    fn fast_growth_is_one_percent_and_slow_growth_renos() {
        let ev = ack(at_ms(0), 1, ms(100.0));
        let mut win = avoidance(1000.0);
        Yeah::new(80.0).increase(&mut win, 100.0, &ev);
        near(win.w, 1001.0, 1e-9);
        let mut win = avoidance(1000.0);
        Yeah {
            slow_rounds: 1,
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
            rival: seen(300.0),
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
        assert_eq!(law.rival.window, 300.0);
        law.end_of_round(&mut win, &end);
        assert_eq!((law.rival.window, law.rival.fast_rounds), (2.0, 0));
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
            q: 50.0,
            rival: seen(300.0),
            ..Yeah::new(80.0)
        };
        law.on_mss_change(2.0);
        assert_eq!((law.q, law.rival.window), (100.0, 600.0));
    }

    #[test]
    fn idle_relearns_the_delays() {
        let (mut law, win) = after(1000.0, 105.0);
        law.on_idle(&restart(at_ms(0), Span::from_secs(1), win));
        assert_eq!((law.q, law.round), (0.0, RoundMin::EMPTY));
    }
}
