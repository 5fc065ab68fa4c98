//! What slow start lost where the sender's host has no interface: its bursts leave at once, and
//! meet the path's queue whole.

use fullpipe_cc::Kind;
use fullpipe_results::result::{CaseResult, FlowResult, RunResult};
use fullpipe_run::FlowSpec;
use fullpipe_scenario::Scenario;

use crate::table::number;

/// A flow all of whose losses are those that ended its slow start.
struct Burst<'a> {
    case: &'a CaseResult,
    flow: &'a FlowResult,
    lost: f64,
    window: f64,
    capacity: String,
}

/// A sentence about the flow that lost the largest part of its window so, over a path as fast as
/// interfaces are; `None` where no flow lost much or missed it for long, or the hosts are others.
pub fn bursts(scenario: &Scenario, result: &RunResult) -> Option<String> {
    if result.peer.is_some() || !["sim", "udp"].contains(&result.ground.as_str()) {
        return None;
    }
    let mut found: Vec<Burst<'_>> = Vec::new();
    for (case, measured) in scenario.cases.iter().zip(&result.cases) {
        let spec = case.run_spec(0);
        for (group, flow) in case.flows.iter().zip(&measured.flows) {
            let sender = spec.flows.get(group.members.start);
            let is_exposed = group.members.len() == 1
                && group.capacity.as_mbps() >= FAST
                && sender.is_some_and(leaves_at_once);
            if let Some((lost, window)) = in_slow_start(flow)
                && is_exposed
                && lasts(flow, measured.simulated_s)
            {
                found.push(Burst {
                    case: measured,
                    flow,
                    lost,
                    window,
                    capacity: group.capacity.to_string(),
                });
            }
        }
    }
    let cases = result.cases.len();
    let worst = found.iter().max_by(|a, b| {
        let part = |burst: &Burst<'_>| burst.lost / burst.window;
        part(a).total_cmp(&part(b))
    })?;
    let which = match (cases, found.len()) {
        (1, 1) => String::new(),
        (1, n) => format!(" (of {n} flows like it)"),
        (_, n) => format!(
            " ({}; of {n} flows like it in {cases} cases)",
            worst.case.params
        ),
    };
    let (name, capacity) = (&worst.flow.name, &worst.capacity);
    let (lost, window) = (number(worst.lost, 1), number(worst.window, 1));
    Some(format!(
        "{name}{which}: slow start ended at a window of {window} segments with {lost} lost, all that the flow \
         lost; its host has no interface, so bursts left at once: `nic_rate = \"{capacity}\"` gives it one \
         as fast as the path, `pacing = true` spaces segments (docs/host.md)"
    ))
}

/// Nothing of the host spaces what the window lets out.
fn leaves_at_once(flow: &FlowSpec) -> bool {
    let pacing = &flow.sender.pacing;
    let paced = pacing.gains.is_some() || pacing.max.is_some() || flow.stack.kind() == Kind::Model;
    !flow.local_queue && !paced
}

/// What was lost when slow start ended, and the window then, where every retransmission is of that
/// one event and they are a tenth of the window or more.
fn in_slow_start(flow: &FlowResult) -> Option<(f64, f64)> {
    let value = |metric: &str| flow.metrics.get(metric)?.mean;
    let (lost, window) = (value("retransmits")?, value("startup_exit_cwnd")?);
    let by_loss = value("startup_exit_s")? == value("first_loss_s")?;
    let only = value("loss_events")? == 1.0 && value("timeouts")? == 0.0;
    (by_loss && only && lost >= MATERIAL * window).then_some((lost, window))
}

/// The flow had its rate back in a part of the run that matters, or not at all.
fn lasts(flow: &FlowResult, run: f64) -> bool {
    let recovery = flow.metrics.get("recovery_time_s").and_then(|e| e.mean);
    recovery.is_none_or(|recovery| recovery >= MATERIAL * run)
}

/// Rate of a path, Mbit/s, that a host's interface may not exceed by much: those of servers begin
/// at 1 Gbit/s, and over a slower path their bursts do leave at once.
const FAST: f64 = 1000.0;
/// Part of a window, or of a run, that is worth a word.
const MATERIAL: f64 = 0.1;
