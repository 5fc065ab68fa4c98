//! How true a real path was to its specification, and when a run on it does not count.
//!
//! The bound: packets may leave the path late by 1 % of the smallest round-trip time of the run's flows at the 99th percentile, and
//! always by a tenth of a millisecond; and the path may lose nothing that the specification does not lose. A run beyond it is flagged
//! wherever it is shown: its numbers are those of another path.

use fullpipe_sim::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fidelity of one run, or the worst of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// How much later than computed packets left the path, milliseconds: median.
    pub late_p50_ms: f64,
    /// 99th percentile.
    pub late_p99_ms: f64,
    /// Largest.
    pub late_max_ms: f64,
    /// What `late_p99_ms` may be, milliseconds.
    pub late_bound_ms: f64,
    /// Packets lost that the specification does not lose.
    pub unplanned_drops: u64,
    /// Sends that the operating system refused; they are made up for, and part of a real host.
    pub local_stalls: u64,
    /// False if the path was not what it claims: too late, or with losses of its own.
    pub valid: bool,
}

impl Fidelity {
    /// Of a run; `None` where time is virtual or the path is not ours.
    pub fn of(outcome: &Outcome) -> Option<Fidelity> {
        let f = outcome.fidelity?;
        let rtt = outcome.flows.iter().filter_map(|f| f.rtt.min());
        let smallest = rtt.min().map_or(0.0, |r| r.as_millis_f64());
        let bound = (LATE_OF_RTT * smallest).max(ALWAYS_LATE_MS);
        let p99 = f.late_p99.as_millis_f64();
        Some(Fidelity {
            late_p50_ms: f.late_p50.as_millis_f64(),
            late_p99_ms: p99,
            late_max_ms: f.late_max.as_millis_f64(),
            late_bound_ms: bound,
            unplanned_drops: f.unplanned_drops,
            local_stalls: f.local_stalls,
            valid: p99 <= bound && f.unplanned_drops == 0,
        })
    }

    /// The worst of several runs: latest and tightest, with all losses; `None` if none knows.
    pub fn worst<'a>(runs: impl Iterator<Item = &'a Fidelity>) -> Option<Fidelity> {
        runs.cloned().reduce(|a, b| Fidelity {
            late_p50_ms: a.late_p50_ms.max(b.late_p50_ms),
            late_p99_ms: a.late_p99_ms.max(b.late_p99_ms),
            late_max_ms: a.late_max_ms.max(b.late_max_ms),
            late_bound_ms: a.late_bound_ms.min(b.late_bound_ms),
            unplanned_drops: a.unplanned_drops + b.unplanned_drops,
            local_stalls: a.local_stalls + b.local_stalls,
            valid: a.valid && b.valid,
        })
    }

    /// One clause for people: `packets left 0.12 ms late (p99; bound 0.8 ms), ...`.
    pub fn sentence(&self) -> String {
        let drops = match self.unplanned_drops {
            1 => "1 unplanned drop".to_owned(),
            n => format!("{n} unplanned drops"),
        };
        let stalls = match self.local_stalls {
            0 => String::new(),
            1 => ", 1 local stall".to_owned(),
            n => format!(", {n} local stalls"),
        };
        format!(
            "packets left {} ms late (p99; bound {} ms, largest {} ms), {drops}{stalls}",
            short(self.late_p99_ms),
            short(self.late_bound_ms),
            short(self.late_max_ms)
        )
    }
}

/// Three digits behind the point.
fn short(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

/// Part of the round-trip time by which packets may leave late at the 99th percentile.
const LATE_OF_RTT: f64 = 0.01;
/// What is never too late, milliseconds: the grain of timers on a busy machine.
const ALWAYS_LATE_MS: f64 = 0.1;

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::metrics::testing::{flow, outcome};

    fn run(rtt_ms: u64, late_us: u64, drops: u64) -> Fidelity {
        let mut f = flow("a");
        f.rtt.record(Span::from_millis(rtt_ms));
        let mut o = outcome(vec![f], 1, 0, 1);
        o.fidelity = Some(fullpipe_sim::Fidelity {
            late_p99: Span::from_micros(late_us),
            unplanned_drops: drops,
            ..fullpipe_sim::Fidelity::default()
        });
        Fidelity::of(&o).unwrap()
    }

    #[test]
    fn late_by_more_than_a_hundredth_of_the_rtt_or_a_loss_of_its_own_does_not_count() {
        assert!(run(80, 780, 0).valid);
        assert!(!run(80, 850, 0).valid);
        assert!(!run(80, 10, 1).valid);
        // A short path is not asked for what no timer does.
        assert!(run(1, 90, 0).valid && !run(1, 110, 0).valid);
        assert_eq!(Fidelity::of(&outcome(vec![flow("a")], 1, 0, 1)), None);
    }

    #[test]
    fn of_several_runs_the_worst_counts() {
        let runs = [run(80, 100, 0), run(40, 300, 2)];
        let worst = Fidelity::worst(runs.iter()).unwrap();
        assert_eq!((worst.late_p99_ms, worst.unplanned_drops), (0.3, 2));
        assert!(!worst.valid);
        assert!((worst.late_bound_ms - 0.4).abs() < 0.01);
        assert!(
            worst.sentence().contains("2 unplanned drops"),
            "{}",
            worst.sentence()
        );
        assert_eq!(Fidelity::worst([].iter()), None);
    }
}
