//! The early congestion test of TCP-LP and HSTCP-LP (section 1.7 of the algorithm reference; Linux `tcp_lp.c` and ns-3 read, paper
//! not).
//!
//! Early congestion when the smoothed delay exceeds `min + delta (max - min)`: the window shrinks; a second indication within the
//! inference time of 3 RTT leaves one segment. The extremes are then re-seeded with the smoothed delay and twice that, so the delay
//! must be a true one, without a clock offset; `signal=rtt` uses the round-trip time, as does an endpoint that offers no one-way
//! delay.
//!
//! Differences from Linux: `ssthresh` follows the window at an early indication (`linux_ssth=on` leaves it, so that growth
//! resumes as slow start), and a delay counts as grown only above one clock tick (`granularity`, Linux' timestamps of
//! 1 ms): with nanosecond delays the second sample of a flow would otherwise always exceed the first.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, Phase};
use crate::params::{ParamSpec, Params};

/// Which delay the early test reads.
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
    /// Which delay is read.
    pub signal: Signal,
    /// Smallest growth of the delay that counts.
    pub granularity: Span,
    /// Leave `ssthresh` alone at an early indication.
    pub linux_ssth: bool,
}

/// The early congestion test and its inference time, shared by TCP-LP and HSTCP-LP. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Early {
    params: EarlyParams,
    min: f64,
    max: f64,
    /// A new maximum waits here until the next one.
    max_reserve: f64,
    smoothed: f64,
    last: Option<Time>,
    inference: Span,
}

impl Early {
    /// A flow that has measured nothing.
    pub fn new(params: EarlyParams) -> Self {
        Self {
            params,
            min: f64::INFINITY,
            max: 0.0,
            max_reserve: 0.0,
            smoothed: 0.0,
            last: None,
            inference: Span::ZERO,
        }
    }

    fn sample(&mut self, delay: f64) {
        self.min = self.min.min(delay);
        if delay > self.max {
            if delay > self.max_reserve {
                self.max = if self.max_reserve == 0.0 {
                    delay
                } else {
                    self.max_reserve
                };
                self.max_reserve = delay;
            } else {
                self.max = delay;
            }
        }
        self.smoothed = if self.smoothed == 0.0 {
            delay
        } else {
            (1.0 - SMOOTHING) * self.smoothed + SMOOTHING * delay
        };
    }

    /// Smoothed delay above which the path is called congested.
    pub fn threshold(&self) -> f64 {
        let range = self.params.delta * (self.max - self.min);
        self.min + range.max(self.params.granularity.as_secs_f64())
    }

    /// Less than 3 RTT since the last indication.
    pub fn inferring(&self, now: Time) -> bool {
        self.last
            .is_some_and(|t| now.saturating_since(t) < self.inference)
    }

    /// Takes the ACK's delay; at an early indication lowers the window to `early_keep` of it, or to one segment within
    /// the inference time.
    pub fn observe(&mut self, win: &mut Window, ev: &AckEvent, early_keep: f64) {
        let Some(rtt) = ev.rtt else { return };
        let delay = match self.params.signal {
            Signal::Owd => ev.owd.unwrap_or(rtt),
            Signal::Rtt => rtt,
        };
        self.sample(delay.max(Span::from_nanos(1)).as_secs_f64());
        self.inference = rtt * INFERENCE_RTTS;
        // The sender owns the window while it recovers; the delay it sees there is the loss's own queue.
        if self.smoothed <= self.threshold() || matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            return;
        }
        let w = if self.inferring(ev.now) {
            1.0
        } else {
            (win.w * early_keep).max(1.0)
        };
        win.w = win.w.min(w);
        if !self.params.linux_ssth {
            win.ssth = win.w.max(2.0);
        }
        self.last = Some(ev.now);
        self.min = self.smoothed;
        self.max = RESEED * self.smoothed;
        self.max_reserve = self.max;
    }

    /// The delays for traces.
    pub fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit(
            "delay_min",
            if self.min.is_finite() { self.min } else { 0.0 },
        );
        visit("delay_max", self.max);
        visit("delay_smoothed", self.smoothed);
    }
}

/// The parameters of the early test from a table that has [`DELTA`], [`GRANULARITY`], [`LINUX_SSTH`] and `signal`.
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

/// Weight of a new sample in the smoothed delay (Linux `tcp_lp.c`, as what follows).
const SMOOTHING: f64 = 0.125;

/// Length of the inference time, RTTs.
const INFERENCE_RTTS: u64 = 3;

/// Fraction kept at an early indication.
pub const EARLY_KEEP: f64 = 0.5;

/// The maximum after an indication, in smoothed delays.
const RESEED: f64 = 2.0;

/// `delta`, for both laws.
pub const DELTA: ParamSpec = ParamSpec::number(
    "delta",
    0.15,
    0.0..=1.0,
    "fraction",
    "part of the delay range above the minimum that counts as congestion",
    "Linux tcp_lp.c; ns-3",
);

/// `granularity`, for both laws.
pub const GRANULARITY: ParamSpec = ParamSpec::time(
    "granularity",
    Span::from_millis(1),
    Span::ZERO..=Span::from_secs(1),
    "smallest growth of the delay that counts",
    "tick of Linux' TCP timestamps",
);

/// `linux_ssth`, for both laws.
pub const LINUX_SSTH: ParamSpec = ParamSpec::flag(
    "linux_ssth",
    false,
    "leave ssthresh alone at an early indication, so that growth resumes as slow start",
    "Linux tcp_lp.c",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::testing::*;

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
            min: 0.04,
            max: 0.06,
            max_reserve: 0.06,
            smoothed,
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
        near(test.max, 0.088, 1e-12);
        near(test.min, 0.044, 1e-12);
        // A second indication within 3 RTT.
        test.smoothed = 0.08;
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
        test.smoothed = 0.08;
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
            e.sample(d);
        }
        assert_eq!((e.max, e.max_reserve), (0.05, 0.09));
        e.sample(0.06); // above max, below the reserve
        assert_eq!((e.max, e.max_reserve), (0.06, 0.09));
    }

    #[test]
    fn the_smoothed_delay_moves_by_an_eighth() {
        let mut e = early();
        e.sample(0.04);
        e.sample(0.048);
        near(e.smoothed, 0.041, 1e-12);
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
        test.min = 0.1;
        test.max = 0.12;
        let mut win = avoidance(100.0);
        test.observe(&mut win, &ack(at_ms(0), 1, ms(140.0)), EARLY_KEEP); // smoothed 105 ms, threshold 103
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
