//! What a run is judged by. Each metric is defined once, in [`METRICS`]; [`measure`] turns the [`Outcome`] of one run into
//! numbers.
//!
//! Sources: the metrics of SLAC 2003 and Net100 2003 as spelled out in the algorithm reference, section 5.1; names and the
//! choice of metrics after RFC 5166. Metrics that need two cases (gain, loss, harm) are filled in when all runs are there. What the documents leave open is fixed here and said in the table: population
//! deviation, where a convergence time begins, what a group of streams reports.

mod fidelity;
mod flow;
mod group;
mod harm;
mod reopening;
mod sharing;
mod synchronization;
mod table;
mod traffic;
mod trajectory;

use std::collections::BTreeMap;

use fullpipe_run::{LinkOutcome, Outcome, RunSpec};
use fullpipe_units::Span;
use serde::{Deserialize, Serialize};

pub use fidelity::{Fidelity, HostFidelity};
pub use group::{FlowGroup, RecoveredAt, TrafficGroup, TrafficKind, bdp_packets};
pub use harm::{against, against_baselines, needs_baseline};
pub use sharing::{asymmetry, jain, rtt_unfairness};
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
    /// Short flows, datagrams and probes, in this order.
    #[serde(default)]
    pub traffic: Vec<TrafficMetrics>,
    /// Links, in the order of the specification.
    pub links: Vec<LinkMetrics>,
    /// Metrics of the case.
    pub metrics: Values,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver.
    pub delivered_packets: u64,
    /// How true a real path was; absent where time is virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Box<Fidelity>>,
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

/// Metrics of short flows, datagrams or probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficMetrics {
    /// Name in the scenario.
    pub name: String,
    /// `short-flows`, `ping`, or `udp` with what its rate does (`udp-sine`).
    pub kind: String,
    /// Canonical spelling of the stack of short flows; empty for the others.
    pub stack: String,
    /// By name; only those of its kind.
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

/// One run's part of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedRun {
    /// Seed.
    pub seed: u64,
    /// What was measured.
    pub metrics: RunMetrics,
}

/// The metrics of one run. `groups` are the flows of its case, their members index the outcome's flows; `spec` is what was run.
///
/// # Panics
/// If a group's members are not in the outcome.
pub fn measure(groups: &[FlowGroup], spec: &RunSpec, outcome: &Outcome) -> RunMetrics {
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
        traffic: traffic::measure(spec, outcome),
        links: outcome.links.iter().map(link).collect(),
        metrics: sharing::measure(groups, outcome, &goodput),
        simulated_s: outcome.duration.as_secs_f64(),
        delivered_packets: outcome.delivered_packets,
        fidelity: Fidelity::of(outcome).map(Box::new),
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
    let drops = l.buffer_drops + l.random_drops + l.policer_drops + l.early_drops;
    put("drops", drops as f64);
    put("buffer_drops", l.buffer_drops as f64);
    put("random_drops", l.random_drops as f64);
    put("policer_drops", l.policer_drops as f64);
    put("early_drops", l.early_drops as f64);
    put("marks", l.marks as f64);
    put("delivered_packets", l.delivered as f64);
    put("queue_packets.mean", l.queue_mean);
    put("queue_packets.max", l.queue_max as f64);
    values.insert("drop_rate".into(), ratio(drops as f64, l.offered as f64));
    traffic::distribution(&mut values, "queueing_delay_ms", &l.queueing_delay);
    let longest = l.queueing_delay.max().map(Span::as_millis_f64);
    values.insert("queueing_delay_ms.max".into(), longest);
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

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[allow(missing_docs)]
pub mod testing;

#[cfg(test)]
mod tests {
    use super::testing::{flow, group, link, outcome};
    use super::*;
    use fullpipe_run::Outcome;

    #[test]
    fn links_tell_who_dropped_what_and_how_long_packets_waited() {
        let mut l = link("bottleneck");
        (l.offered, l.buffer_drops, l.random_drops) = (1000, 10, 20);
        (l.policer_drops, l.early_drops, l.marks) = (30, 40, 50);
        for ms in 1..=100 {
            l.queueing_delay.record(Span::from_millis(ms));
        }
        let o = Outcome {
            links: vec![l, link("idle")],
            ..outcome(vec![flow("a")], 10, 0, 1)
        };
        let m = measure(&[group("a", 0..1)], &RunSpec::default(), &o);
        let v = |name| value(&m.links[0].values, name).unwrap();
        assert_eq!((v("drops"), v("drop_rate")), (100.0, 0.1));
        assert_eq!(
            (v("early_drops"), v("policer_drops"), v("marks")),
            (40.0, 30.0, 50.0)
        );
        assert!((v("queueing_delay_ms.mean") - 50.5).abs() < 1e-9);
        assert!((v("queueing_delay_ms.p95") - 95.0).abs() < 0.2);
        assert_eq!(v("queueing_delay_ms.max"), 100.0);
        assert_eq!(m.links[1].values["drop_rate"], None);
        assert_eq!(m.links[1].values["queueing_delay_ms.mean"], None);
    }

    #[test]
    fn every_link_and_case_metric_of_the_table_is_measured_and_no_other() {
        let o = Outcome {
            links: vec![link("l")],
            ..outcome(vec![flow("a")], 10, 0, 1)
        };
        let m = measure(&[group("a", 0..1)], &RunSpec::default(), &o);
        for (scope, values) in [(Scope::Link, &m.links[0].values), (Scope::Case, &m.metrics)] {
            let mut expected: Vec<_> = names_of(scope).collect();
            expected.sort_unstable();
            assert_eq!(
                values.keys().map(String::as_str).collect::<Vec<_>>(),
                expected
            );
        }
    }
}
