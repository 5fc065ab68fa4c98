//! How much more than others a law takes, as a number of Reno flows: its window beside those of
//! Reno and CUBIC at the same loss rate, all three from their own cycles.

use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, Cycle, NoCycle, cycle};
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
            most_acks: MOST_ACKS,
            ..Conditions::default()
        };
        let cycle = cycle(stack, window, &conditions).ok()?;
        Self::at(&cycle, &conditions).ok()
    }

    /// Of a cycle that is known, under these conditions.
    ///
    /// # Errors
    /// Reno or CUBIC has none at this loss rate.
    pub fn at(cycle: &Cycle, conditions: &Conditions) -> Result<Self, NoCycle> {
        let conditions = &Conditions {
            most_acks: MOST_ACKS,
            ..*conditions
        };
        let p = cycle.loss_rate();
        let by_formula = libm::sqrt(1.5 / p);
        // Above this the formula is the cycle, and the cycle takes seconds.
        let reno = match by_formula < 1000.0 {
            true => mean_at("reno", p, by_formula, conditions)?,
            false => by_formula,
        };
        let guess = cubic_mean(p, conditions.rtt).max(by_formula);
        let cubic = mean_at("cubic", p, guess, conditions)?;
        Ok(Self {
            window: cycle.window,
            loss_rate: p,
            reno_flows: cycle.mean_window / reno,
            cubic: cubic / reno,
        })
    }

    /// Whether it takes more than CUBIC does; a twentieth is within the models' own error.
    pub fn exceeds_cubic(&self) -> bool {
        self.reno_flows > 1.05 * self.cubic
    }
}

/// Mean window of a law whose cycle has this loss rate, segments; `guess`: about that.
fn mean_at(law: &str, p: f64, guess: f64, conditions: &Conditions) -> Result<f64, NoCycle> {
    let law = StackSpec::parse(law).expect("a law of ours");
    let mut window = guess * 4.0 / 3.0;
    for _ in 0..TRIES {
        let found = cycle(&law, window.max(LEAST), conditions)?;
        // Between Reno's window, which goes with the root of 1/p, and CUBIC's.
        let step = libm::pow(found.loss_rate() / p, 0.6);
        if (step - 1.0).abs() < CLOSE || window * step < LEAST {
            return Ok(found.mean_window * step);
        }
        window *= step;
    }
    Ok(cycle(&law, window, conditions)?.mean_window)
}

const TRIES: u32 = 6;
/// A policy is read in milliseconds for it; what it costs is a part of [`CLOSE`].
const MOST_ACKS: u64 = 1 << 16;
/// A relative difference of windows that makes none of their number.
const CLOSE: f64 = 0.01;
/// Window of the smallest cycle, segments.
const LEAST: f64 = 4.0;

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
        for window in [10.0, 100.0, 1000.0, 5000.0] {
            let reno = of("reno", window);
            assert!((reno.reno_flows - 1.0).abs() < 0.02, "{reno:?}");
            assert!(!reno.exceeds_cubic());
        }
        let sixteen = of("multcp(n=16)", 1000.0);
        // sqrt(a (2 - b)/(2 b) / (3/2)) of a = 16, b = 1/32.
        assert!(
            (sixteen.reno_flows / 18.33 - 1.0).abs() < 0.02,
            "{sixteen:?}"
        );
        assert!(sixteen.exceeds_cubic());
    }

    #[test]
    fn fewer_acks_change_nothing_that_matters() {
        let conditions = Conditions::default();
        for stack in ["reno", "highspeed", "scalable", "htcp", "cubic", "hybla"] {
            let spec = StackSpec::parse(stack).unwrap();
            let exact = cycle(&spec, 3000.0, &conditions).unwrap();
            let few = Conditions {
                most_acks: MOST_ACKS,
                ..conditions
            };
            let few = cycle(&spec, 3000.0, &few).unwrap();
            let apart = few.reno_flows() / exact.reno_flows() - 1.0;
            assert!(apart.abs() < CLOSE, "{stack}: {exact:?} {few:?}");
        }
    }

    #[test]
    fn cubic_does_not_exceed_itself() {
        for window in [10.0, 50.0, 347.0, 1000.0, 4000.0, 20_000.0] {
            let cubic = of("cubic", window);
            let apart = (cubic.reno_flows / cubic.cubic - 1.0).abs();
            assert!(apart < 0.03, "{cubic:?}");
        }
    }
}
