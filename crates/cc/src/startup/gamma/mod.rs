//! Vegas' slow-start test and what follows it: leave, or go on as Limited Slow-Start (Net100
//! 2003; ns-2 `tcp-vegas.cc`).
//!
//! Once per round with more than two RTT samples: `diff = w (rtt - base)/rtt`. When it first
//! exceeds `threshold`: `limited` continues from the present window with Limited Slow-Start (RFC
//! 3742) growth, `limit = w` at the crossing, `K = floor(w / (0.5 limit))`, `w += n/K`; `ca` keeps
//! the window and enters congestion avoidance; `vegas` removes an eighth first (ns-2); `linux`
//! takes `min(w, floor(w base/rtt) + 1)`. Without a crossing it is standard slow start, or Limited
//! Slow-Start above `max_ssthresh` if that is set.
//!
//! Which RTT of the round enters the test decides where it fires (`sample`): the smallest of a
//! round misses the queue that slow start's own bursts build, the mean (ns-2's Vegas) sees half of
//! it. On OC-12 at 77 ms the mean makes `threshold = 1` fire near `w = 2 sqrt(rtt * capacity)`, 126
//! segments by the closed form, where the Net100 page saw "around 120". `grain` is the clock's
//! tick; `crossing` imposes the window of the crossing instead of measuring it.
//!
//! A congestion event or a timeout forgets the limit, so that the next slow start tests again; the
//! base RTT stays. Idle time drops the running round. Undo brings limit and round back.

mod params;

pub use params::{GAMMA, GammaParams, Growth, Sample, Then};

use crate::classic::{StartUp, Window};
use crate::controller::{AckEvent, IdleEvent, Phase};
use crate::round::{RoundEnd, RoundMin};
use crate::startup::limited::{Limited, Rule};

/// Slow start with Vegas' test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    params: GammaParams,
    round: RoundMin,
    /// The window doubles in this round.
    doubling: bool,
    /// Limit of the growth after the crossing.
    limit: Option<f64>,
    diff: f64,
    w_gamma: f64,
}

impl Gamma {
    /// A start-up that has measured nothing.
    pub fn new(params: GammaParams) -> Self {
        Self {
            params,
            round: RoundMin::EMPTY,
            doubling: true,
            limit: None,
            diff: 0.0,
            w_gamma: 0.0,
        }
    }

    fn cross(&mut self, win: &mut Window, end: &RoundEnd) {
        self.w_gamma = win.w;
        match self.params.then {
            Then::Limited => {
                self.limit = Some(
                    self.params
                        .limit
                        .unwrap_or(win.w)
                        .min(self.params.max_ssthresh),
                );
            }
            Then::Avoidance => win.ssth = win.w,
            Then::Vegas => {
                win.w = (win.w - win.w * VEGAS_CUT).max(FLOOR).min(win.w);
                win.ssth = win.w;
            }
            Then::Linux => {
                win.w = linux_exit(win.w, end).max(FLOOR).min(win.w);
                win.ssth = win.w;
            }
        }
    }
}

/// Linux Vegas' window after start-up: `min(w, floor(w base/rtt) + 1)`.
pub fn linux_exit(w: f64, end: &RoundEnd) -> f64 {
    w.min(libm::floor(w * end.base.as_secs_f64() / end.rtt.as_secs_f64()) + 1.0)
}

impl StartUp for Gamma {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if let Some(at) = self.params.crossing
            && self.limit.is_none()
            && win.w >= at
        {
            let rtt = ev.rtt.unwrap_or(ev.srtt);
            self.cross(
                win,
                &RoundEnd {
                    base: self.round.base(),
                    rtt,
                    mean: rtt,
                    samples: 1,
                },
            );
            return;
        }
        let rtt = ev.rtt.map(|rtt| self.params.coarse(rtt));
        let Some(mut end) = self.round.take(ev.round_start, rtt) else {
            return;
        };
        if self.params.sample == Sample::Mean {
            end.rtt = end.mean;
        }
        self.doubling = self.params.growth == Growth::Every || !self.doubling;
        if !end.enough() || ev.phase != Phase::Open {
            return;
        }
        self.diff = self.params.over.diff(win.w, &end);
        let measured = self.params.crossing.is_none() && self.limit.is_none();
        if measured && self.diff > self.params.threshold {
            self.cross(win, &end);
        }
    }

    fn grow(&mut self, win: &mut Window, n: f64, ev: &AckEvent) -> f64 {
        let limit = self.limit.unwrap_or(self.params.max_ssthresh);
        if self.limit.is_none() && !self.doubling {
            return 0.0;
        }
        Limited::new(limit, Rule::Rfc).grow(win, n, ev)
    }

    fn on_congestion(&mut self) {
        self.round.forget_round();
        self.doubling = true;
        self.limit = None;
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        self.round.forget_round();
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.limit = self.limit.map(|limit| limit * ratio);
        self.w_gamma *= ratio;
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("gamma_diff", self.diff);
        visit("w_gamma", self.w_gamma);
        visit("gamma_limit", self.limit.unwrap_or(0.0));
    }
}

/// Part of the window that ns-2 Vegas removes when it leaves slow start (`tcp-vegas.cc`).
const VEGAS_CUT: f64 = 0.125;
/// Smallest window after the crossing, segments; ours.
const FLOOR: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;
    use fullpipe_units::Span;

    fn gamma(then: Then) -> Gamma {
        Gamma::new(GammaParams {
            then,
            ..GammaParams::default()
        })
    }

    /// One round: every segment of the window acknowledged on its own, all with `rtt`.
    fn round(start: &mut Gamma, win: &mut Window, rtt: Span) {
        for i in 0..win.w as u64 {
            let ev = if i == 0 {
                round_start(at_ms(0), 1, rtt)
            } else {
                ack(at_ms(0), 1, rtt)
            };
            start.observe(win, &ev);
            if win.w < win.ssth {
                start.grow(win, 1.0, &ev);
            }
        }
    }

    #[test]
    fn doubles_every_round_until_the_crossing() {
        let mut start = gamma(Then::Limited);
        let mut win = start_up(2.0);
        for expected in [4.0, 8.0, 16.0, 32.0] {
            round(&mut start, &mut win, ms(100.0));
            assert_eq!(win.w, expected);
        }
    }

    #[test]
    fn or_every_other_round() {
        let mut start = Gamma::new(GammaParams {
            growth: Growth::EveryOther,
            ..GammaParams::default()
        });
        let mut win = start_up(4.0);
        let mut seen = Vec::new();
        for _ in 0..4 {
            round(&mut start, &mut win, ms(100.0));
            seen.push(win.w);
        }
        assert_eq!(seen, [4.0, 8.0, 8.0, 16.0]);
    }

    #[test]
    fn the_crossing_window_is_the_limit() {
        let mut start = gamma(Then::Limited);
        let mut win = start_up(60.0);
        round(&mut start, &mut win, ms(100.0));
        assert_eq!(win.w, 120.0);
        // 1.19 segments queued, seen at the next round's start.
        round(&mut start, &mut win, ms(101.0));
        assert_eq!(win.w, 240.0);
        round(&mut start, &mut win, ms(101.0));
        assert_eq!(start.w_gamma, 240.0);
        assert!(win.w > 355.0 && win.w <= 360.5, "{}", win.w);
        assert_eq!(win.ssth, f64::INFINITY);
    }

    #[test]
    fn a_fixed_limit_and_an_earlier_one_are_kept() {
        let fixed = GammaParams {
            limit: Some(100.0),
            ..GammaParams::default()
        };
        let mut start = Gamma::new(fixed);
        let mut win = start_up(240.0);
        round(&mut start, &mut win, ms(100.0));
        round(&mut start, &mut win, ms(101.0));
        round(&mut start, &mut win, ms(101.0));
        assert_eq!(start.limit, Some(100.0));
        let limited = GammaParams {
            max_ssthresh: 100.0,
            ..GammaParams::default()
        };
        let mut start = Gamma::new(limited);
        let mut win = start_up(100.0);
        round(&mut start, &mut win, ms(100.0));
        assert!((149.0..=150.5).contains(&win.w), "{}", win.w);
    }

    #[test]
    fn responses_of_the_other_kinds() {
        let cross = |then| {
            let mut start = gamma(then);
            let mut win = start_up(50.0);
            round(&mut start, &mut win, ms(100.0));
            assert_eq!(win.w, 100.0);
            win.ssth = 100.5; // holds the next round's growth back
            round(&mut start, &mut win, ms(102.0));
            win.w = 100.0;
            win.ssth = f64::INFINITY;
            start.observe(&mut win, &round_start(at_ms(0), 1, ms(102.0)));
            win
        };
        assert_eq!(
            cross(Then::Avoidance),
            Window {
                w: 100.0,
                ssth: 100.0
            }
        );
        assert_eq!(
            cross(Then::Vegas),
            Window {
                w: 87.5,
                ssth: 87.5
            }
        );
        assert_eq!(
            cross(Then::Linux),
            Window {
                w: 99.0,
                ssth: 99.0
            }
        );
        assert_eq!(
            cross(Then::Limited),
            Window {
                w: 100.0,
                ssth: f64::INFINITY
            }
        );
    }

    #[test]
    fn linux_leaves_with_the_published_windows() {
        let end = |rtt| RoundEnd {
            base: ms(100.0),
            rtt: ms(rtt),
            mean: ms(rtt),
            samples: 10,
        };
        assert_eq!(linux_exit(100.0, &end(101.0)), 100.0);
        assert_eq!(linux_exit(100.0, &end(102.0)), 99.0);
    }

    #[test]
    fn two_samples_do_not_decide() {
        let mut start = gamma(Then::Avoidance);
        let mut win = start_up(100.0);
        start.observe(&mut win, &round_start(at_ms(0), 1, ms(100.0)));
        for _ in 0..5 {
            start.observe(&mut win, &round_start(at_ms(0), 1, ms(200.0)));
            start.observe(&mut win, &ack(at_ms(0), 1, ms(200.0)));
        }
        assert_eq!(win.ssth, f64::INFINITY);
    }

    #[test]
    fn a_congestion_event_forgets_the_limit() {
        let mut start = gamma(Then::Limited);
        start.limit = Some(120.0);
        start.on_congestion();
        assert_eq!(start.limit, None);
    }

    #[test]
    fn a_limit_is_kept_in_bytes_when_the_segments_change() {
        let mut start = gamma(Then::Limited);
        start.limit = Some(120.0);
        start.on_mss_change(0.5);
        assert_eq!(start.limit, Some(60.0));
    }

    #[test]
    fn idle_time_drops_the_running_round() {
        let mut start = gamma(Then::Avoidance);
        let mut win = start_up(100.0);
        round(&mut start, &mut win, ms(100.0));
        start.on_idle(&restart(at_ms(5000), Span::from_secs(4), win));
        start.observe(&mut win, &round_start(at_ms(5000), 1, ms(200.0)));
        assert_eq!(win.ssth, f64::INFINITY);
        assert_eq!(start.round.base(), ms(100.0));
    }

    /// Backlog of a round at 100 segments with RTTs of 100, 100 and 106 ms after one at 100 ms.
    fn measured(params: GammaParams) -> f64 {
        let mut start = Gamma::new(params);
        let mut win = start_up(100.0);
        start.observe(&mut win, &round_start(at_ms(0), 1, ms(100.0)));
        for rtt in [100.0, 106.0] {
            start.observe(&mut win, &ack(at_ms(0), 1, ms(rtt)));
        }
        start.observe(&mut win, &round_start(at_ms(1), 1, ms(100.0)));
        start.diff
    }

    #[test]
    fn the_mean_sees_the_queue_that_the_minimum_misses() {
        let mean = GammaParams {
            sample: Sample::Mean,
            ..GammaParams::default()
        };
        assert_eq!(measured(GammaParams::default()), 0.0);
        near(measured(mean), 100.0 * 2.0 / 102.0, 1e-9);
    }

    #[test]
    fn a_coarse_clock_rounds_down() {
        let coarse = |ms| GammaParams {
            sample: Sample::Mean,
            grain: Span::from_millis(ms),
            ..GammaParams::default()
        };
        assert_eq!(measured(coarse(10)), 0.0);
        near(
            measured(coarse(4)),
            100.0 * (4.0 / 3.0) / (100.0 + 4.0 / 3.0),
            1e-6,
        );
    }

    #[test]
    fn an_imposed_crossing_needs_no_delay() {
        let params = GammaParams {
            crossing: Some(120.0),
            threshold: 0.0,
            ..GammaParams::default()
        };
        let mut start = Gamma::new(params);
        let mut win = start_up(60.0);
        round(&mut start, &mut win, ms(100.0));
        round(&mut start, &mut win, ms(150.0));
        assert_eq!((start.w_gamma, start.limit), (120.0, Some(120.0)));
        assert!(win.w < 181.0, "{}", win.w);
    }
}
