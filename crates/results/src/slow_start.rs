//! What slow start lost where the sender's host has no interface: its bursts leave at once, and
//! meet the path's queue whole.

use fullpipe_cc::Kind;
use fullpipe_metrics::Metric;
use fullpipe_run::FlowSpec;
use fullpipe_scenario::Scenario;
use fullpipe_units::Rate;

use crate::result::{CaseResult, FlowResult, RunResult};

/// A flow all of whose losses are those that ended its slow start.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    /// The case in which it was.
    pub case: &'a CaseResult,
    /// The flow.
    pub flow: &'a FlowResult,
    /// Segments retransmitted.
    pub lost: f64,
    /// Window when slow start ended, segments.
    pub window: f64,
    /// Rate of its path.
    pub capacity: Rate,
}

/// The flows of a run that lost much of a window so and missed it for long, over paths as fast as
/// interfaces are; the one that lost the largest part of its window is last. Empty on grounds
/// whose hosts run another TCP.
pub fn bursts<'a>(scenario: &Scenario, result: &'a RunResult) -> Vec<Burst<'a>> {
    let mut found: Vec<Burst<'a>> = Vec::new();
    if result.peer.is_some() || !["sim", "udp"].contains(&result.ground.as_str()) {
        return found;
    }
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
                    capacity: group.capacity,
                });
            }
        }
    }
    let part = |burst: &Burst<'_>| burst.lost / burst.window;
    found.sort_by(|a, b| part(a).total_cmp(&part(b)));
    found
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
    let value = |metric: &Metric| flow.value(metric.name);
    let (lost, window) = (value(RETRANSMITS)?, value(EXIT_WINDOW)?);
    let by_loss = value(EXIT)? == value(FIRST_LOSS)?;
    let only = value(LOSS_EVENTS)? == 1.0 && value(TIMEOUTS)? == 0.0;
    (by_loss && only && lost >= MATERIAL * window).then_some((lost, window))
}

/// The flow had its rate back in a part of the run that matters, or not at all.
fn lasts(flow: &FlowResult, run_s: f64) -> bool {
    let recovery = flow.value(RECOVERY.name);
    recovery.is_none_or(|recovery| recovery >= MATERIAL * run_s)
}

/// Rate of a path, Mbit/s, that a host's interface may not exceed by much: those of servers begin
/// at 1 Gbit/s, and over a slower path their bursts do leave at once.
const FAST: f64 = 1000.0;
/// Part of a window, or of a run, that is worth a word.
const MATERIAL: f64 = 0.1;

const RETRANSMITS: &Metric = Metric::flow("retransmits");
const EXIT: &Metric = Metric::flow("startup_exit_s");
const EXIT_WINDOW: &Metric = Metric::flow("startup_exit_cwnd");
const FIRST_LOSS: &Metric = Metric::flow("first_loss_s");
const LOSS_EVENTS: &Metric = Metric::flow("loss_events");
const TIMEOUTS: &Metric = Metric::flow("timeouts");
const RECOVERY: &Metric = Metric::flow("recovery_time_s");
