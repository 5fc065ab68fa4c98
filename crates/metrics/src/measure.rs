//! From the outcome of a run to its numbers.

use std::borrow::Cow;

use fullpipe_run::{FlowOutcome, LinkOutcome, Outcome, RunSpec};

use crate::fidelity::Fidelity;
use crate::group::{FlowGroup, TrafficGroup, TrafficKind};
use crate::metric::{Metric, Value};
use crate::number::mean;
use crate::rows::{CASE, FLOW, LINK, TRAFFIC};
use crate::run_metrics::{FlowMetrics, LinkMetrics, RunMetrics, TrafficMetrics};
use crate::values::Values;
use crate::view::{CaseView, DatagramsView, FlowView, PingView, ShortFlowsView};

/// The metrics of one run. `flows` and `traffic` describe what takes part in its case and where
/// each of it is in the outcome; `run` is what was run.
///
/// # Panics
/// If a flow's members are not in the outcome.
pub fn measure(
    flows: &[FlowGroup],
    traffic: &[TrafficGroup],
    run: &RunSpec,
    outcome: &Outcome,
) -> RunMetrics {
    let case = CaseView::new(flows, run, outcome);
    let flow_metrics = |(i, group): (usize, &FlowGroup)| FlowMetrics {
        name: group.name.clone(),
        stack: stacks(&outcome.flows[group.members.clone()]),
        values: of_flow(&FlowView::new(&case, i)),
    };
    // Short flows, then datagrams, then probes: the order of the outcome.
    let mut traffic: Vec<&TrafficGroup> = traffic.iter().collect();
    traffic.sort_by_key(|group| (group.kind, group.index));
    let traffic_metrics = |group: &&TrafficGroup| {
        Some(TrafficMetrics {
            name: group.name.clone(),
            kind: group.word.clone(),
            stack: group.stack.clone().unwrap_or_default(),
            values: of_traffic(group, run, outcome)?,
        })
    };
    RunMetrics {
        flows: flows.iter().enumerate().map(flow_metrics).collect(),
        traffic: traffic.iter().filter_map(traffic_metrics).collect(),
        links: outcome.links.iter().map(of_link).collect(),
        metrics: of_case(&case),
        simulated_s: outcome.duration.as_secs_f64(),
        delivered_packets: outcome.delivered_packets,
        fidelity: Fidelity::of(outcome).map(Box::new),
        partial: outcome.partial.clone(),
    }
}

/// The stacks of streams, each story once.
fn stacks(members: &[FlowOutcome]) -> String {
    let mut all: Vec<&str> = members.iter().map(|f| f.stack.as_str()).collect();
    all.dedup();
    all.join("; ")
}

/// The rows that have a value here.
fn values(rows: &[Metric], of: impl Fn(&Value) -> Option<Option<f64>>) -> Values {
    named(rows, of).collect()
}

fn named(
    rows: &[Metric],
    of: impl Fn(&Value) -> Option<Option<f64>>,
) -> impl Iterator<Item = (Cow<'static, str>, Option<f64>)> {
    let value = move |m: &Metric| Some((m.name.into(), of(&m.value)?));
    rows.iter().filter_map(value)
}

fn of_flow(flow: &FlowView<'_>) -> Values {
    let values = named(FLOW, |value| match value {
        Value::Flow(of) => Some(of(flow)),
        _ => None,
    });
    values.chain(variables(flow.members)).collect()
}

/// `None` if the outcome has no such traffic.
fn of_traffic(group: &TrafficGroup, run: &RunSpec, outcome: &Outcome) -> Option<Values> {
    let values = |of: &dyn Fn(&Value) -> Option<Option<f64>>| values(TRAFFIC, of);
    Some(match group.kind {
        TrafficKind::ShortFlows => {
            let class = ShortFlowsView::new(run, outcome, group.index)?;
            values(&|value| match value {
                Value::Traffic { short_flows, .. } => Some(short_flows.as_ref()?(&class)),
                _ => None,
            })
        }
        TrafficKind::Datagrams => {
            let source = DatagramsView::new(run, outcome, group.index)?;
            values(&|value| match value {
                Value::Traffic { datagrams, .. } => Some(datagrams.as_ref()?(&source)),
                _ => None,
            })
        }
        TrafficKind::Ping => {
            let ping = PingView::new(run, outcome, group.index)?;
            values(&|value| match value {
                Value::Traffic { probes, .. } => Some(probes.as_ref()?(&ping)),
                _ => None,
            })
        }
    })
}

fn of_link(link: &LinkOutcome) -> LinkMetrics {
    LinkMetrics {
        name: link.name.clone(),
        values: values(LINK, |value| match value {
            Value::Link(of) => Some(of(link)),
            _ => None,
        }),
    }
}

/// Metrics against a baseline stay undefined until [`hold_against`]; without one for good.
fn of_case(case: &CaseView<'_>) -> Values {
    values(CASE, |value| match value {
        Value::Case(of) => Some(of(case)),
        Value::Against(_) => Some(None),
        _ => None,
    })
}

/// Last and largest value of everything that the controllers of the streams reported.
fn variables(members: &[FlowOutcome]) -> Vec<(Cow<'static, str>, Option<f64>)> {
    let mut names: Vec<&'static str> = members
        .iter()
        .flat_map(|f| f.variables.iter().map(|(name, _)| *name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut values = Vec::with_capacity(2 * names.len());
    for name in names {
        let reported = || {
            members
                .iter()
                .flat_map(|f| &f.variables)
                .filter(|(n, extent)| *n == name && extent.last.is_finite())
                .map(|(_, extent)| extent)
        };
        let last: Vec<f64> = reported().map(|extent| extent.last).collect();
        let max = reported().map(|extent| extent.max).reduce(f64::max);
        values.push((format!("var.{name}.last").into(), mean(&last)));
        values.push((format!("var.{name}.max").into(), max));
    }
    values
}

/// Fills in the metrics against a baseline from its run with the same seed. A seed that the
/// baseline did not run (`None`) says nothing: its run loses these metrics.
pub fn hold_against(run: &mut RunMetrics, base: Option<&RunMetrics>) {
    match base {
        Some(base) => {
            let values = against(run, base);
            run.metrics.extend(&values);
        }
        None => run.metrics.retain(|name| !needs_baseline(name)),
    }
}

/// One run against the run of its baseline with the same seed.
pub fn against(run: &RunMetrics, base: &RunMetrics) -> Values {
    values(CASE, |value| match value {
        Value::Against(of) => Some(of(run, base)),
        _ => None,
    })
}

/// True for a metric that needs the same seed of a baseline.
pub fn needs_baseline(name: &str) -> bool {
    let row = CASE.iter().find(|m| m.name == name);
    row.is_some_and(|m| matches!(m.value, Value::Against(_)))
}
