//! The result of one case: its runs put together, by flow, traffic and link.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::aggregate;
use super::json::{self, Members};
use super::{Estimate, Estimates, Params};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Fidelity, RunMetrics, Scope, SeedRun, Values};
use fullpipe_scenario::Case;

/// Result of one case, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Matrix key and value.
    pub params: Params,
    /// Seeds it ran with.
    pub seeds: Vec<u64>,
    /// The runs themselves, where an expectation asks for the values of single seeds.
    #[serde(skip)]
    pub runs: Vec<SeedRun>,
    /// Nothing in it is drawn from its seed: every seed gives this run; absent where something is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seeds_repeat: bool,
    /// Competing flows start at times that no seed moves, `start_spread` is zero: they meet in the
    /// same phase every time; absent where chance parts them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_phase: bool,
    /// Flows of the scenario, in its order.
    pub flows: Vec<FlowResult>,
    /// Short flows, datagrams and probes, in this order.
    #[serde(default)]
    pub traffic: Vec<TrafficResult>,
    /// Links, in order.
    pub links: Vec<LinkResult>,
    /// Metrics of the whole case.
    pub metrics: CaseMetrics,
    /// How sure the means are that were to be sure; absent without `[measure] precision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<PrecisionResult>,
    /// How true a real run was to its specification, path and hosts, the worst of all seeds; absent
    /// where time is virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// Why a run of the case ended before its time, and what is missing of it: the numbers are what
    /// was measured until then. Absent where all runs are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// Virtual time of one run, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver, all seeds together.
    pub delivered_packets: u64,
    /// Wall time of all its runs, seconds; absent in stored results and where every run was taken
    /// over from an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Delivered data packets per second of wall time; absent like `wall_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<f64>,
}

/// Result of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Flow")]
pub struct FlowResult {
    /// Name in the scenario.
    pub name: String,
    /// Canonical spelling of the stack; of one that changes, `reno, from 4.0 s cubic`.
    pub stack: String,
    /// By metric name (`rtt_ms.p95`, `var.w_max.last`).
    #[serde(flatten, with = "Members::<json::Flow>")]
    pub metrics: Estimates,
}

/// Result of short flows, datagrams or probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Traffic")]
pub struct TrafficResult {
    /// Name in the scenario.
    pub name: String,
    /// `short-flows`, `ping`, or `udp` with what its rate does (`udp-sine`).
    pub kind: String,
    /// Canonical spelling of the stack of short flows; absent for the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
    /// By metric name; only those of its kind.
    #[serde(flatten, with = "Members::<json::Traffic>")]
    pub metrics: Estimates,
}

/// Result of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Link")]
pub struct LinkResult {
    /// Name in the scenario.
    pub name: String,
    /// Means over seeds by metric name (`queue_packets.mean`).
    #[serde(flatten, with = "Members::<json::Link>")]
    pub metrics: Estimates,
}

/// Metrics of a case, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseMetrics(#[serde(with = "Members::<json::Case>")] pub Estimates);

/// What came of `[measure] precision` in a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reached")]
pub struct PrecisionResult {
    /// Asked for: half width of the 95 % interval as a part of the mean.
    pub target: f64,
    /// The widest of the judged ones; `null` if one is undefined in some seeds or its mean is zero.
    pub achieved: Option<f64>,
    /// Metric of the widest.
    pub metric: String,
    /// Flow, traffic or link it is of; absent for a metric of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// False where `max_seeds` came first.
    pub reached: bool,
}

/// A row of a case, by its index.
#[derive(Clone, Copy)]
enum Row {
    Case,
    Flow(usize),
    Traffic(usize),
    Link(usize),
}

impl CaseResult {
    /// Aggregates the runs of a case.
    pub fn new(case: &Case, runs: &[SeedRun]) -> CaseResult {
        let over = |of: &dyn Fn(&RunMetrics) -> Option<&Values>| {
            aggregate(
                &runs
                    .iter()
                    .filter_map(|r| of(&r.metrics))
                    .collect::<Vec<_>>(),
            )
        };
        let first = runs.first().map(|r| &r.metrics);
        CaseResult {
            params: Params::of(case),
            seeds: runs.iter().map(|r| r.seed).collect(),
            runs: Vec::new(),
            seeds_repeat: !case.run_spec(0).is_random(),
            in_phase: case.run_spec(0).starts_in_phase(),
            flows: case
                .flows
                .iter()
                .enumerate()
                .map(|(i, g)| FlowResult {
                    name: g.name.clone(),
                    stack: first
                        .and_then(|m| Some(m.flows.get(i)?.stack.clone()))
                        .unwrap_or_else(|| g.stack.clone()),
                    metrics: over(&|m| m.flows.get(i).map(|f| &f.values)),
                })
                .collect(),
            traffic: first
                .map_or(&[][..], |m| &m.traffic)
                .iter()
                .enumerate()
                .map(|(i, t)| TrafficResult {
                    name: t.name.clone(),
                    kind: t.kind.clone(),
                    stack: t.stack.clone(),
                    metrics: over(&|m| m.traffic.get(i).map(|t| &t.values)),
                })
                .collect(),
            links: first
                .map_or(&[][..], |m| &m.links)
                .iter()
                .enumerate()
                .map(|(i, l)| LinkResult {
                    name: l.name.clone(),
                    metrics: over(&|m| m.links.get(i).map(|l| &l.values)),
                })
                .collect(),
            metrics: CaseMetrics(over(&|m| Some(&m.metrics))),
            precision: None,
            fidelity: Fidelity::worst(runs.iter().filter_map(|r| r.metrics.fidelity.as_deref())),
            partial: runs.iter().find_map(|r| r.metrics.partial.clone()),
            simulated_s: first.map_or(0.0, |m| m.simulated_s),
            delivered_packets: runs.iter().map(|r| r.metrics.delivered_packets).sum(),
            wall_s: None,
            packets_per_s: None,
        }
    }

    /// The flow of this name.
    pub fn flow(&self, name: &str) -> Option<&FlowResult> {
        self.flows.iter().find(|f| f.name == name)
    }

    /// The short flows, datagrams or probes of this name.
    pub fn traffic(&self, name: &str) -> Option<&TrafficResult> {
        self.traffic.iter().find(|t| t.name == name)
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&LinkResult> {
        self.links.iter().find(|l| l.name == name)
    }

    /// A metric of the case, of a flow, of traffic (by the name `flow`) or of a link. Without a
    /// name the only one is meant that has the metric.
    pub fn estimate(
        &self,
        metric: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Estimate> {
        if metrics::scope_of(metric).is_none() {
            return Some(Estimate::of(&self.of_seeds(metric, flow, link)?));
        }
        let from = match self.row(metric, flow, link)? {
            Row::Case => &self.metrics.0,
            Row::Flow(i) => &self.flows[i].metrics,
            Row::Traffic(i) => &self.traffic[i].metrics,
            Row::Link(i) => &self.links[i].metrics,
        };
        from.get(metric).copied()
    }

    /// The same metric of each seed, if the runs are there.
    pub fn of_seeds(
        &self,
        metric: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Vec<Option<f64>>> {
        if metrics::scope_of(metric).is_none() {
            return self.computed(metric, flow, link);
        }
        let row = self.row(metric, flow, link)?;
        let of = |run: &RunMetrics| {
            let values = match row {
                Row::Case => &run.metrics,
                Row::Flow(i) => &run.flows.get(i)?.values,
                Row::Traffic(i) => &run.traffic.get(i)?.values,
                Row::Link(i) => &run.links.get(i)?.values,
            };
            metrics::value(values, metric)
        };
        Some(self.runs.iter().map(|run| of(&run.metrics)).collect())
    }

    /// An expression over metrics, of each seed: those of flows of the flow, those of links of the
    /// link.
    fn computed(
        &self,
        text: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Vec<Option<f64>>> {
        let expression = Expression::parse(text).ok()?;
        let mut columns: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
        for name in expression.metrics() {
            columns.insert(name, self.of_seeds(name, flow, link)?);
        }
        let value =
            |seed: usize| expression.value(&mut |name: &str| *columns.get(name)?.get(seed)?);
        Some((0..self.runs.len()).map(value).collect())
    }

    /// Where a metric is found.
    fn row(&self, metric: &str, flow: Option<&str>, link: Option<&str>) -> Option<Row> {
        Some(match metrics::scope_of(metric)? {
            Scope::Case => Row::Case,
            Scope::Flow | Scope::Traffic => match flow {
                Some(name) => {
                    let flow = self.flows.iter().position(|f| f.name == name);
                    let traffic = || self.traffic.iter().position(|t| t.name == name);
                    match flow {
                        Some(i) => Row::Flow(i),
                        None => Row::Traffic(traffic()?),
                    }
                }
                None => {
                    let flows = self.flows.iter().map(|f| &f.metrics).enumerate();
                    let traffic = self.traffic.iter().map(|t| &t.metrics).enumerate();
                    let flows = flows.map(|(i, m)| (Row::Flow(i), m));
                    let all = flows.chain(traffic.map(|(i, m)| (Row::Traffic(i), m)));
                    let mut having = all.filter(|(_, m)| m.contains_key(metric));
                    let (first, _) = having.next()?;
                    let others = having.next().is_some();
                    match self.flows.as_slice() {
                        // The only flow comes before traffic with a metric of the same name.
                        [only] if only.metrics.contains_key(metric) => Row::Flow(0),
                        _ if others => return None,
                        _ => first,
                    }
                }
            },
            Scope::Link => match (link, self.links.as_slice()) {
                (Some(name), _) => Row::Link(self.links.iter().position(|l| l.name == name)?),
                (None, [_]) => Row::Link(0),
                (None, _) => return None,
            },
        })
    }
}

impl FlowResult {
    /// Mean of a metric; `None` if undefined or unknown.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }
}

impl TrafficResult {
    /// Mean of a metric; `None` if undefined, unknown or of another kind.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }
}

impl LinkResult {
    /// Mean of a metric; `None` if undefined or unknown.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }
}

impl CaseMetrics {
    /// Mean of a metric; `None` if undefined or unknown.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.0.get(metric)?.mean
    }
}
