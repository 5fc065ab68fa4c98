//! What a run is judged by. Each metric is defined once, in [`METRICS`]; [`measure`] turns the [`Outcome`] of one run into
//! numbers.
//!
//! Sources: the metrics of SLAC 2003 and Net100 2003 as spelled out in the algorithm reference, section 5.1; names and the
//! choice of metrics after RFC 5166. What the documents leave open is fixed here and said in the table: population
//! deviation, where a convergence time begins, what a group of streams reports.

mod flow;
mod reopening;
mod sharing;
mod table;

use std::collections::BTreeMap;

use fullpipe_sim::{LinkOutcome, Outcome};
use serde::{Deserialize, Serialize};

use crate::scenario::FlowGroup;

pub use sharing::{asymmetry, jain};
pub use table::{
    Better, METRICS, Metric, Scope, find, is_variable, markdown, names, names_of, scope_of,
};

/// Values of one row by metric name; `None` where the metric is undefined.
pub type Values = BTreeMap<String, Option<f64>>;

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Flows of the scenario, in its order.
    pub flows: Vec<FlowMetrics>,
    /// Links, in the order of the specification.
    pub links: Vec<LinkMetrics>,
    /// Metrics of the case.
    pub metrics: Values,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver.
    pub delivered_packets: u64,
}

/// Metrics of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Name in the scenario.
    pub name: String,
    /// Canonical spelling of the stack.
    pub stack: String,
    /// By name.
    pub values: Values,
}

/// Metrics of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMetrics {
    /// Name in the scenario.
    pub name: String,
    /// By name.
    pub values: Values,
}

/// The metrics of one run. `groups` are the flows of its case; their members index the outcome's flows.
///
/// # Panics
/// If a group's members are not in the outcome.
pub fn measure(groups: &[FlowGroup], outcome: &Outcome) -> RunMetrics {
    let mut flows: Vec<FlowMetrics> = groups
        .iter()
        .map(|g| FlowMetrics {
            name: g.name.clone(),
            stack: g.stack.clone(),
            values: flow::measure(g, &outcome.flows[g.members.clone()], outcome),
        })
        .collect();
    let goodput: Vec<f64> = flows
        .iter()
        .map(|f| value(&f.values, "goodput_mbps").unwrap_or(0.0))
        .collect();
    let total: f64 = goodput.iter().sum();
    for (f, x) in flows.iter_mut().zip(&goodput) {
        f.values.insert("share".into(), ratio(*x, total));
    }
    RunMetrics {
        links: outcome.links.iter().map(link).collect(),
        metrics: sharing::measure(groups, outcome, &goodput),
        simulated_s: outcome.duration.as_secs_f64(),
        delivered_packets: outcome.delivered_packets,
        flows,
    }
}

/// A value by name; `None` when undefined or absent.
pub fn value(values: &Values, name: &str) -> Option<f64> {
    values.get(name).copied().flatten()
}

fn link(l: &LinkOutcome) -> LinkMetrics {
    let mut values = Values::new();
    let mut put = |name: &str, v: f64| values.insert(name.to_owned(), finite(v));
    put("utilization", l.utilization);
    put("drops", (l.buffer_drops + l.random_drops) as f64);
    put("buffer_drops", l.buffer_drops as f64);
    put("random_drops", l.random_drops as f64);
    put("delivered_packets", l.delivered as f64);
    put("queue_packets.mean", l.queue_mean);
    put("queue_packets.max", l.queue_max as f64);
    LinkMetrics {
        name: l.name.clone(),
        values,
    }
}

/// `None` instead of a NaN or an infinity.
fn finite(v: f64) -> Option<f64> {
    v.is_finite().then_some(v)
}

/// `None` where the denominator is not positive.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b).and_then(finite)
}

fn mean(values: &[f64]) -> Option<f64> {
    ratio(values.iter().sum(), values.len() as f64)
}

#[cfg(test)]
pub(crate) mod testing;
