//! Wall times: they are reported, and nothing else depends on them.

use crate::result::RunResult;
use crate::store::{Timing, Unit};
use fullpipe_metrics::RunMetrics;
use fullpipe_metrics::SeedRun;

pub(super) fn timing(unit: &Unit, metrics: &RunMetrics, wall_s: f64) -> Timing {
    Timing {
        case: unit.case,
        seed: unit.seed,
        wall_s,
        packets_per_s: metrics.delivered_packets as f64 / wall_s.max(1e-9),
    }
}

/// Wall times of the runs made now; a case with a run that was taken over has none.
pub(super) fn add_times(result: &mut RunResult, timings: &[Timing], runs: &[Vec<SeedRun>]) {
    for (i, case) in result.cases.iter_mut().enumerate() {
        let of_case: Vec<f64> = timings
            .iter()
            .filter(|t| t.case == i)
            .map(|t| t.wall_s)
            .collect();
        if of_case.len() == runs[i].len() && !of_case.is_empty() {
            let wall: f64 = of_case.iter().sum();
            case.wall_s = Some(wall);
            case.packets_per_s = Some(case.delivered_packets as f64 / wall.max(1e-9));
        }
    }
}

/// Wall time of a run.
pub(super) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "reported only; results do not depend on it"
    )]
    pub(super) fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
