//! What a gamma start-up can be set to, and what the registry says of it.

use fullpipe_units::Span;

use super::{FLOOR, Gamma};
use crate::entry::Entry;
use crate::round::Over;

/// What a gamma start-up is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GammaParams {
    /// Backlog that ends doubling, segments.
    pub threshold: f64,
    /// Growth after the backlog has crossed the threshold.
    pub then: Then,
    /// Limit of the limited growth; `None`: the window at the crossing.
    pub limit: Option<f64>,
    /// Limited Slow-Start above this window even before a crossing, segments; infinite: off.
    pub max_ssthresh: f64,
    /// Rounds in which the window doubles.
    pub growth: Growth,
    /// Which RTT divides in the backlog estimate.
    pub over: Over,
    /// Which RTT of the round is tested.
    pub sample: Sample,
    /// Tick of the clock that measures RTTs; zero: exact.
    pub grain: Span,
    /// Cross at this window whatever the RTT says.
    pub crossing: Option<f64>,
}

impl Default for GammaParams {
    fn default() -> Self {
        Self {
            threshold: 1.0,
            then: Then::Limited,
            limit: None,
            max_ssthresh: f64::INFINITY,
            growth: Growth::Every,
            over: Over::Rtt,
            sample: Sample::Min,
            grain: Span::ZERO,
            crossing: None,
        }
    }
}

impl GammaParams {
    /// An RTT as a clock of this grain reads it.
    pub(super) fn coarse(&self, rtt: Span) -> Span {
        match self.grain.as_nanos() {
            0 => rtt,
            tick => Span::from_nanos(rtt.as_nanos() / tick * tick),
        }
    }
}

/// Growth after the backlog has crossed the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Limited Slow-Start from the present window (the Net100 hybrid).
    Limited,
    /// Congestion avoidance at the present window.
    Avoidance,
    /// Congestion avoidance after `w -= w/8` (ns-2 Vegas).
    Vegas,
    /// Congestion avoidance at `min(w, floor(w base/rtt) + 1)` (Linux Vegas).
    Linux,
}

impl Then {
    /// From the words of the parameter tables.
    pub fn from_word(word: &str) -> Self {
        match word {
            "ca" => Then::Avoidance,
            "vegas" => Then::Vegas,
            "linux" => Then::Linux,
            _ => Then::Limited,
        }
    }
}

/// Rounds in which the window doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Every round, as slow start.
    Every,
    /// Every other round (Vegas in ns-2).
    EveryOther,
}

impl Growth {
    /// From the words `every` and `every-other`.
    pub fn from_word(word: &str) -> Self {
        if word == "every-other" {
            Growth::EveryOther
        } else {
            Growth::Every
        }
    }
}

/// Which RTT of a round the test uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// The smallest (Vegas' paper, Linux).
    Min,
    /// The mean (ns-2).
    Mean,
}

/// `gamma`.
pub const GAMMA: Entry<Gamma> = Entry {
    name: "gamma",
    aliases: &["vegas-gamma"],
    about: "slow start until the Vegas backlog exceeds a threshold, then limited growth (Net100 \
        hybrid)",
    source: "Net100 2003; ns-2 tcp-vegas.cc; RFC 3742 section 2",
    params: &[
        param!(threshold: number = 1.0, 0.0..=1e6, "segments",
            "backlog that ends doubling", "Net100 2003"),
        param!(then: choice = &["limited", "ca", "vegas", "linux"],
            "after the crossing: limited growth, the law at once, the law after w -= w/8, Linux \
            Vegas' window",
            "Net100 2003"),
        param!(limit: number = 0.0, 0.0..=1e9, "segments",
            "limit of the growth after the crossing; 0: the window at the crossing", "Net100 2003"),
        param!(max_ssthresh: number = 0.0, 0.0..=1e9, "segments",
            "limited growth above this window even before a crossing; 0: off",
            "RFC 3742 section 2"),
        param!(growth: choice = &["every", "every-other"],
            "rounds in which the window doubles", "Net100 2003"),
        param!(diff_over: choice = &["rtt", "base"],
            "divisor of the backlog estimate", "paper and ns-2: rtt"),
        param!(sample: choice = &["min", "mean"],
            "RTT of the round that is tested", "min: Vegas, Linux; mean: ns-2 tcp-vegas.cc"),
        param!(grain: time = Span::ZERO, Span::ZERO..=Span::from_secs(1),
            "tick of the clock that measures RTTs; 0s: exact", "hosts of 2003: 1 ms to 10 ms"),
        param!(crossing: number = 0.0, 0.0..=1e9, "segments",
            "impose the window of the crossing; 0: measure it", "Net100 2003: around 120"),
    ],
    build: |p| {
        let given = |name| Some(p.number(name)).filter(|x| *x > 0.0);
        let then = Then::from_word(p.word("then"));
        if given("limit").is_some_and(|l| l < FLOOR)
            || given("max_ssthresh").is_some_and(|l| l < FLOOR)
        {
            return Err(format!("a limit below {FLOOR} segments cannot be halved"));
        }
        if given("limit").is_some() && then != Then::Limited {
            return Err("limit is read only with then=limited".into());
        }
        Ok(Gamma::new(GammaParams {
            threshold: p.number("threshold"),
            then,
            limit: given("limit"),
            max_ssthresh: given("max_ssthresh").unwrap_or(f64::INFINITY),
            growth: Growth::from_word(p.word("growth")),
            over: Over::from_word(p.word("diff_over")),
            sample: if p.word("sample") == "mean" {
                Sample::Mean
            } else {
                Sample::Min
            },
            grain: p.time("grain"),
            crossing: given("crossing"),
        }))
    },
};

#[cfg(test)]
mod tests {
    #[test]
    fn contradictions_are_refused() {
        let parse = crate::StackSpec::parse;
        assert!(parse("reno+gamma(limit=1)").is_err());
        assert!(parse("reno+gamma(then=ca,limit=100)").is_err());
        assert!(parse("reno+gamma(then=limited,limit=100)").is_ok());
    }
}
