//! A sentence about bursts of slow start that met the path's queue whole.

use fullpipe_results::result::RunResult;
use fullpipe_results::slow_start;
use fullpipe_scenario::Scenario;

use crate::table::number;

/// About the flow that lost the largest part of its window so; `None` where none lost much.
pub fn bursts(scenario: &Scenario, result: &RunResult) -> Option<String> {
    let found = slow_start::bursts(scenario, result);
    let worst = found.last()?;
    let cases = result.cases.len();
    let which = match (cases, found.len()) {
        (1, 1) => String::new(),
        (1, n) => format!(" (of {n} flows like it)"),
        (_, n) => format!(
            " ({}; of {n} flows like it in {cases} cases)",
            worst.case.params
        ),
    };
    let (name, capacity) = (&worst.flow.name, worst.capacity);
    let (lost, window) = (number(worst.lost, 1), number(worst.window, 1));
    Some(format!(
        "{name}{which}: slow start ended at a window of {window} segments with {lost} lost, all that the flow \
         lost; its host has no interface, so bursts left at once: `nic_rate = \"{capacity}\"` gives it one \
         as fast as the path, `pacing = true` spaces segments (docs/host.md)"
    ))
}
