//! Wall times: they are reported, and nothing else depends on them.

use super::kept::Kept;
use crate::result::RunResult;

/// Wall times of the runs made now; a case with a run that was taken over has none.
pub(super) fn add_times(result: &mut RunResult, kept: &Kept<'_>) {
    for (i, case) in result.cases.iter_mut().enumerate() {
        if let Some(wall) = kept.wall_s(i) {
            case.took(wall);
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
