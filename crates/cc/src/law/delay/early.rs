//! The early congestion test of TCP-LP and HSTCP-LP (Kuzmanovic and Knightly 2003, with the numbers
//! of Linux 6.1 `tcp_lp.c`).
//!
//! Early congestion when the smoothed delay `sd` exceeds `d_min + delta (d_max - d_min)`: the
//! window shrinks; a second indication within the inference time of 3 RTT leaves one segment. The
//! extremes then start over from the smoothed delay and twice that, so the delay must be a true
//! one, without a clock offset; `signal=rtt` uses the round-trip time, as does an endpoint that
//! offers no one-way delay.
//!
//! A delay below the smallest starts the smoothed one over: the extremes were taken from a queue,
//! or from the wait of a delayed ACK, that is gone. The paper, which keeps its extremes for good,
//! has no such case; without this a window of one segment, whose every ACK is delayed, would be
//! called congested as soon as a second segment shows the path without that wait.
//!
//! Differences from Linux: that; `ssthresh` follows the window at an early indication
//! (`linux_ssth=on` leaves it, so that growth resumes as slow start); a delay counts as grown only
//! above one clock tick (`granularity`, Linux's timestamps of 1 ms), because with nanosecond delays
//! the second sample of a flow would otherwise always exceed the first.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, Phase};
use crate::params::{ParamSpec, Params};

/// Delay that the test for early congestion compares with its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// One-way delay, or the RTT if there is none.
    Owd,
    /// Round-trip time.
    Rtt,
}

/// What the early congestion test is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyParams {
    /// Part of the delay range that counts as congestion.
    pub delta: f64,
    /// Source of the delay: round-trip or one-way time.
    pub signal: Signal,
    /// Smallest growth of the delay that counts.
    pub granularity: Span,
    /// Leave `ssthresh` alone at an early indication.
    pub linux_ssth: bool,
}

/// The early congestion test and its inference time, shared by TCP-LP and HSTCP-LP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Early {
    params: EarlyParams,
    delays: Delays,
    /// `itt`: how long after an indication nothing grows.
    inference: Span,
    last: Option<Time>,
}

/// What has been seen of the delay, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Delays {
    d_min: f64,
    /// The largest delay but one: a single packet that was held up moves nothing.
    d_max: f64,
    /// The largest, never below `d_max`; 0: none.
    d_top: f64,
    /// The smoothed delay; 0: none.
    sd: f64,
}

impl Delays {
    const NONE: Self = Self {
        d_min: f64::INFINITY,
        d_max: 0.0,
        d_top: 0.0,
        sd: 0.0,
    };

    fn take(&mut self, d: f64) {
        if self.d_top == 0.0 {
            self.d_max = d;
        } else {
            self.d_max = d.clamp(self.d_max, self.d_top);
        }
        self.d_top = self.d_top.max(d);
        self.sd = if self.sd == 0.0 || d < self.d_min {
            d
        } else {
            (1.0 - GAMMA) * self.sd + GAMMA * d
        };
        self.d_min = self.d_min.min(d);
    }

    fn start_over(&mut self) {
        self.d_min = self.sd;
        self.d_max = START_OVER * self.sd;
        self.d_top = self.d_max;
    }
}

impl Early {
    /// A flow that has measured nothing.
    pub fn new(params: EarlyParams) -> Self {
        Self {
            params,
            delays: Delays::NONE,
            inference: Span::ZERO,
            last: None,
        }
    }

    /// The one-way delay is what it asks for.
    pub fn reads_owd(&self) -> bool {
        self.params.signal == Signal::Owd
    }

    fn delay(&self, ev: &AckEvent, rtt: Span) -> f64 {
        let delay = match (self.params.signal, ev.owd) {
            (Signal::Owd, Some(owd)) => owd,
            (Signal::Owd, None) | (Signal::Rtt, _) => rtt,
        };
        delay.max(Span::from_nanos(1)).as_secs_f64()
    }

    /// Smoothed delay above which the path is called congested.
    pub fn threshold(&self) -> f64 {
        let Delays { d_min, d_max, .. } = self.delays;
        let least = self.params.granularity.as_secs_f64();
        d_min + least.max(self.params.delta * (d_max - d_min))
    }

    /// Less than 3 RTT since the last indication.
    pub fn inferring(&self, now: Time) -> bool {
        let since = self.last.map(|last| now.saturating_since(last));
        since.is_some_and(|since| since < self.inference)
    }

    /// Takes the ACK's delay; at an early indication lowers the window to `early_keep` of it, or to
    /// one segment within the inference time.
    pub fn observe(&mut self, win: &mut Window, ev: &AckEvent, early_keep: f64) {
        let Some(rtt) = ev.rtt else { return };
        self.delays.take(self.delay(ev, rtt));
        self.inference = rtt * INFERENCE_RTTS;
        // While the sender recovers the window is its own, and the delay is the loss's queue.
        let recovers = matches!(ev.phase, Phase::Recovery | Phase::Cwr);
        if self.delays.sd > self.threshold() && !recovers {
            self.yield_window(win, ev.now, early_keep);
        }
    }

    fn yield_window(&mut self, win: &mut Window, now: Time, early_keep: f64) {
        let keep = if self.inferring(now) { 0.0 } else { early_keep };
        win.w = win.w.min((keep * win.w).max(1.0));
        if !self.params.linux_ssth {
            win.ssth = win.w.max(2.0);
        }
        self.delays.start_over();
        self.last = Some(now);
    }

    /// The delays for traces.
    pub fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Delays {
            d_min, d_max, sd, ..
        } = self.delays;
        visit("delay_min", if d_min.is_finite() { d_min } else { 0.0 });
        visit("delay_max", d_max);
        visit("delay_smoothed", sd);
    }
}

/// The parameters of the early test from a table that has [`DELTA`], [`GRANULARITY`],
/// [`LINUX_SSTH`] and `signal`.
pub fn early_params(p: &Params) -> EarlyParams {
    EarlyParams {
        delta: p.number("delta"),
        signal: if p.word("signal") == "rtt" {
            Signal::Rtt
        } else {
            Signal::Owd
        },
        granularity: p.time("granularity"),
        linux_ssth: p.flag("linux_ssth"),
    }
}

/// `gamma`: weight of a new sample in the smoothed delay.
const GAMMA: f64 = 0.125;

/// Length of the inference time, RTTs.
const INFERENCE_RTTS: u64 = 3;

/// Fraction kept at an early indication.
pub const EARLY_KEEP: f64 = 0.5;

/// `d_max` after an indication, in smoothed delays (Linux 6.1 `tcp_lp.c`).
const START_OVER: f64 = 2.0;

/// `delta`, for both laws.
pub const DELTA: ParamSpec = param!(delta: number = 0.15, 0.0..=1.0, "fraction",
    "part of the delay range above the minimum that counts as congestion",
    "Linux tcp_lp.c; ns-3");

/// `granularity`, for both laws.
pub const GRANULARITY: ParamSpec = param!(granularity: time =
    Span::from_millis(1), Span::ZERO..=Span::from_secs(1),
    "smallest growth of the delay that counts",
    "tick of Linux's TCP timestamps");

/// `linux_ssth`, for both laws.
pub const LINUX_SSTH: ParamSpec = param!(linux_ssth: flag = false,
    "leave ssthresh alone at an early indication, so that growth resumes as slow start",
    "Linux tcp_lp.c");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn early() -> Early {
        Early::new(EarlyParams {
            delta: 0.15,
            signal: Signal::Owd,
            granularity: Span::from_millis(1),
            linux_ssth: false,
        })
    }

    /// Extremes 40 and 60 ms, smoothed delay as given.
    fn known(smoothed: f64) -> Early {
        Early {
            delays: Delays {
                d_min: 0.04,
                d_max: 0.06,
                d_top: 0.06,
                sd: smoothed,
            },
            ..early()
        }
    }

    fn delay(now_ms: u64, owd_ms: f64) -> AckEvent {
        AckEvent {
            owd: Some(ms(owd_ms)),
            ..ack(at_ms(now_ms), 1, ms(100.0))
        }
    }

    #[test]
    fn the_published_threshold_and_reactions() {
        let mut test = known(0.044);
        near(test.threshold(), 0.043, 1e-12);
        let mut win = avoidance(100.0);
        test.observe(&mut win, &delay(1000, 44.0), EARLY_KEEP);
        assert_eq!(
            win,
            Window {
                w: 50.0,
                ssth: 50.0
            }
        );
        near(test.delays.d_max, 0.088, 1e-12);
        near(test.delays.d_min, 0.044, 1e-12);
        // A second indication within 3 RTT.
        test.delays.sd = 0.08;
        test.observe(&mut win, &delay(1299, 80.0), EARLY_KEEP);
        assert_eq!(win, Window { w: 1.0, ssth: 2.0 });
    }

    #[test]
    fn after_the_inference_time_an_indication_halves_again() {
        let mut test = known(0.044);
        let mut win = avoidance(100.0);
        test.observe(&mut win, &delay(1000, 44.0), EARLY_KEEP);
        assert!(test.inferring(at_ms(1299)));
        assert!(!test.inferring(at_ms(1300)));
        test.delays.sd = 0.08;
        test.observe(&mut win, &delay(1300, 80.0), EARLY_KEEP);
        assert_eq!(win.w, 25.0);
    }

    #[test]
    fn below_the_threshold_nothing_happens() {
        let mut test = known(0.043);
        let mut win = avoidance(100.0);
        test.observe(&mut win, &delay(1000, 43.0), EARLY_KEEP);
        assert_eq!(win.w, 100.0);
        assert!(!test.inferring(at_ms(1000)));
    }

    #[test]
    fn the_maximum_is_the_second_largest() {
        let mut e = early();
        for d in [0.04, 0.05, 0.09] {
            e.delays.take(d);
        }
        assert_eq!((e.delays.d_max, e.delays.d_top), (0.05, 0.09));
        e.delays.take(0.06); // above the largest but one, below the largest
        assert_eq!((e.delays.d_max, e.delays.d_top), (0.06, 0.09));
    }

    #[test]
    fn the_smoothed_delay_moves_by_an_eighth() {
        let mut e = early();
        e.delays.take(0.04);
        e.delays.take(0.048);
        near(e.delays.sd, 0.041, 1e-12);
    }

    #[test]
    fn growth_below_a_clock_tick_is_noise() {
        let mut test = early();
        let mut win = start_up(10.0);
        for d in [40.0, 40.2, 40.4, 40.9, 40.9] {
            test.observe(&mut win, &delay(0, d), EARLY_KEEP);
        }
        assert_eq!(win.w, 10.0);
    }

    #[test]
    fn without_a_one_way_delay_the_rtt_is_read() {
        let mut test = known(0.1);
        (test.delays.d_min, test.delays.d_max) = (0.1, 0.12);
        test.delays.d_top = 0.12;
        let mut win = avoidance(100.0);
        // Smoothed 105 ms, threshold 103.
        test.observe(&mut win, &ack(at_ms(0), 1, ms(140.0)), EARLY_KEEP);
        assert_eq!(win.w, 50.0);
    }

    #[test]
    fn linux_leaves_the_threshold_alone() {
        let mut test = known(0.05);
        test.params.linux_ssth = true;
        let mut win = Window {
            w: 100.0,
            ssth: 90.0,
        };
        test.observe(&mut win, &delay(0, 50.0), EARLY_KEEP);
        assert_eq!(
            win,
            Window {
                w: 50.0,
                ssth: 90.0
            }
        );
    }

    #[test]
    fn recovery_is_left_to_the_sender() {
        let mut test = known(0.05);
        let mut win = avoidance(100.0);
        test.observe(
            &mut win,
            &AckEvent {
                phase: Phase::Recovery,
                ..delay(0, 50.0)
            },
            EARLY_KEEP,
        );
        assert_eq!(win.w, 100.0);
    }
}
