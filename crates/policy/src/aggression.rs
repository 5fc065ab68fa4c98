//! How much more than others a law takes, as a number of Reno flows.

use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, Cycle, cycle};
use fullpipe_units::Span;

/// A law at one loss rate beside CUBIC there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggression {
    /// One loss whenever the window reaches this, segments.
    pub window: f64,
    /// Losses per segment that hold it there.
    pub loss_rate: f64,
    /// Reno flows that together have the law's mean window at that loss rate.
    pub reno_flows: f64,
    /// The same of one CUBIC flow.
    pub cubic: f64,
}

impl Aggression {
    /// Of a stack that loses a segment at `window`; `None` if it has no such cycle.
    pub fn of(stack: &StackSpec, window: f64, rtt: Span, mss: u32) -> Option<Self> {
        let conditions = Conditions {
            rtt,
            mss,
            ..Conditions::default()
        };
        let cycle = cycle(stack, window, &conditions).ok()?;
        Some(Self::at(&cycle, rtt))
    }

    /// Of a cycle that is known.
    pub fn at(cycle: &Cycle, rtt: Span) -> Self {
        let p = cycle.loss_rate();
        let reno = libm::sqrt(1.5 / p);
        Self {
            window: cycle.window,
            loss_rate: p,
            reno_flows: cycle.reno_flows(),
            cubic: cubic_mean(p, rtt).max(reno) / reno,
        }
    }

    /// Whether it takes more than CUBIC does; a twentieth is within the models' own error.
    pub fn exceeds_cubic(&self) -> bool {
        self.reno_flows > 1.05 * self.cubic
    }
}

/// Mean window of CUBIC at loss rate `p`, segments: `(C (3 + beta)/(4 (1 - beta)))^(1/4)
/// (RTT/p)^(3/4)`, C = 0.4, beta = 0.7 (RFC 9438 section 5, figure 5).
fn cubic_mean(p: f64, rtt: Span) -> f64 {
    let (c, beta) = (0.4, 0.7);
    let factor = libm::pow(c * (3.0 + beta) / (4.0 * (1.0 - beta)), 0.25);
    factor * libm::pow(rtt.as_secs_f64() / p, 0.75)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stack: &str, window: f64) -> Aggression {
        let stack = StackSpec::parse(stack).unwrap();
        Aggression::of(&stack, window, Span::from_millis(100), 1448).unwrap()
    }

    /// RFC 9438, Table 1: RTT 0.1 s.
    #[test]
    fn cubics_mean_window_is_the_rfcs() {
        for (p, window) in [(1e-4, 187.0), (1e-5, 1054.0), (1e-6, 5926.0)] {
            let mean = cubic_mean(p, Span::from_millis(100));
            assert!((mean / window - 1.0).abs() < 0.005, "{p}: {mean}");
        }
    }

    #[test]
    fn reno_is_one_flow_and_n_streams_are_n() {
        assert!((of("reno", 1000.0).reno_flows - 1.0).abs() < 0.02);
        assert!(!of("reno", 1000.0).exceeds_cubic());
        let sixteen = of("multcp(n=16)", 1000.0);
        // sqrt(a (2 - b)/(2 b) / (3/2)) of a = 16, b = 1/32.
        assert!(
            (sixteen.reno_flows / 18.33 - 1.0).abs() < 0.02,
            "{sixteen:?}"
        );
        assert!(sixteen.exceeds_cubic());
    }

    #[test]
    fn cubic_does_not_exceed_itself() {
        for window in [50.0, 1000.0, 20_000.0] {
            let cubic = of("cubic", window);
            assert!(!cubic.exceeds_cubic(), "{cubic:?}");
        }
    }
}
