//! The result of one case: its runs put together, by flow, traffic and link.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::RowSums;
use super::json::{self, Members};
use super::{Estimate, Estimates, Params, SIMULATOR};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Fidelity, Metric, RunMetrics, Scope, SeedRun, Values};
use fullpipe_scenario::{Case, FlowGroup};

/// Result of one case, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Matrix key and value.
    pub params: Params,
    /// Seeds it ran with.
    pub seeds: Vec<u64>,
    /// Values of single seeds, of the metrics of which an expectation asks for them.
    #[serde(skip)]
    pub by_seed: SeedValues,
    /// Every seed gave these numbers; of a single seed: nothing in it is drawn from the seed.
    /// Absent if not.
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
    /// Length of one run, seconds: of virtual time, or of real time where the path is real.
    pub simulated_s: f64,
    /// Time at the start of each run that rates, RTTs and windows do not count, seconds
    /// (`[measure] warmup`); absent where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warmup_s: f64,
    /// Segments of data that reached a receiver, duplicates among them, datagrams and probes not;
    /// all seeds together.
    pub delivered_packets: u64,
    /// Wall time of all its runs, seconds; absent in stored results and where every run was taken
    /// over from an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Delivered data packets per second of wall time; absent like `wall_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<f64>,
}

// By reference, as serde calls it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Result of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Flow")]
pub struct FlowResult {
    /// Name in the scenario.
    pub name: String,
    /// Canonical spelling of the stack; of one that changes, `reno, from 4.0 s cubic`.
    pub stack: String,
    /// Payload that arrived since the flow's start, each byte once, of a run over a network; absent
    /// in stored results, which have `delivered_segments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_bytes: Option<u64>,
    /// Where it sends, and from where: of a run over a network, like all that follows here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Payload per second at most that was asked for of each stream, Mbit/s; absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_asked_mbps: Option<f64>,
    /// Its streams, one by one; empty in stored results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamResult>,
    /// By metric name (`rtt_ms.p95`, `var.w_max.last`).
    #[serde(flatten, with = "Members::<json::Flow>")]
    pub metrics: Estimates,
}

/// Host that sends a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// This one.
    Forward,
    /// The other one.
    Reverse,
}

/// One stream of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Stream")]
pub struct StreamResult {
    /// Name in series and traces.
    pub name: String,
    /// Its stack; of one that was changed all of them: `cubic, from 1.9 s reno`. Absent in results
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
    /// Its part of the flow's goodput, Mbit/s.
    pub goodput_mbps: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Mean window, segments.
    pub cwnd_mean_segments: Option<f64>,
    /// Largest window, segments.
    pub cwnd_max_segments: Option<f64>,
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

/// The runs of a case, in the order of their seeds, as often as they are asked for.
pub trait Runs {
    /// Error of a read.
    type Error;

    /// Shows every run.
    ///
    /// # Errors
    /// If one cannot be read.
    fn each(&self, see: &mut dyn FnMut(&SeedRun)) -> Result<(), Self::Error>;
}

impl Runs for [SeedRun] {
    type Error = Infallible;

    fn each(&self, see: &mut dyn FnMut(&SeedRun)) -> Result<(), Infallible> {
        self.iter().for_each(see);
        Ok(())
    }
}

/// Values of single seeds, of some metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeedValues {
    seeds: usize,
    columns: BTreeMap<(Row, String), Vec<Option<f64>>>,
}

impl SeedValues {
    fn push(&mut self, run: &RunMetrics, wanted: &BTreeSet<String>) {
        let flows = run.flows.iter().map(|f| &f.values).enumerate();
        let traffic = run.traffic.iter().map(|t| &t.values).enumerate();
        let links = run.links.iter().map(|l| &l.values).enumerate();
        let rows = (flows.map(|(i, values)| (Row::Flow(i), values)))
            .chain(traffic.map(|(i, values)| (Row::Traffic(i), values)))
            .chain(links.map(|(i, values)| (Row::Link(i), values)))
            .chain([(Row::Case, &run.metrics)]);
        for (row, values) in rows {
            for name in wanted {
                if let Some(value) = values.get(name) {
                    let column = self.columns.entry((row, name.clone())).or_default();
                    column.resize(self.seeds, None);
                    column.push(*value);
                }
            }
        }
        self.seeds += 1;
    }

    fn of(&self, row: Row, metric: &str) -> Vec<Option<f64>> {
        let column = self.columns.get(&(row, metric.to_owned()));
        let mut column = column.cloned().unwrap_or_default();
        column.resize(self.seeds, None);
        column
    }
}

/// A row of a case, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Case,
    Flow(usize),
    Traffic(usize),
    Link(usize),
}

/// Sums over the rows of the runs of a case.
struct CaseSums {
    flows: Vec<RowSums>,
    traffic: Vec<RowSums>,
    links: Vec<RowSums>,
    metrics: RowSums,
}

impl CaseSums {
    /// Shows every row with its sums.
    fn over(&mut self, run: &RunMetrics, add: fn(&mut RowSums, &Values)) {
        let flows = self.flows.iter_mut();
        flows.zip(&run.flows).for_each(|(s, f)| add(s, &f.values));
        let traffic = self.traffic.iter_mut();
        traffic
            .zip(&run.traffic)
            .for_each(|(s, t)| add(s, &t.values));
        let links = self.links.iter_mut();
        links.zip(&run.links).for_each(|(s, l)| add(s, &l.values));
        add(&mut self.metrics, &run.metrics);
    }

    /// True if every run had the same values.
    fn repeat(&self) -> bool {
        let rows = self.flows.iter().chain(&self.traffic).chain(&self.links);
        rows.chain([&self.metrics]).all(RowSums::repeat)
    }
}

impl CaseResult {
    /// True if one of its runs was not what the scenario says.
    pub fn is_flagged(&self) -> bool {
        self.fidelity.as_ref().is_some_and(|f| !f.valid)
    }

    /// Aggregates the runs of a case. Of the metrics `by_seed` it keeps the values of single seeds.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub fn new<R: Runs + ?Sized>(
        case: &Case,
        runs: &R,
        by_seed: &BTreeSet<String>,
    ) -> Result<CaseResult, R::Error> {
        let sums = |n: usize| (0..n).map(|_| RowSums::default()).collect::<Vec<_>>();
        let mut all = CaseSums {
            flows: sums(case.flows.len()),
            traffic: Vec::new(),
            links: Vec::new(),
            metrics: RowSums::default(),
        };
        let flow = |g: &FlowGroup| FlowResult {
            name: g.name.clone(),
            stack: g.stack.clone(),
            delivered_bytes: None,
            direction: None,
            rate_asked_mbps: None,
            streams: Vec::new(),
            metrics: Estimates::new(),
        };
        let mut result = CaseResult {
            params: Params::of(case),
            seeds: Vec::new(),
            by_seed: SeedValues::default(),
            seeds_repeat: !case.run_spec(0).is_random(),
            in_phase: case.run_spec(0).starts_in_phase(),
            flows: case.flows.iter().map(flow).collect(),
            traffic: Vec::new(),
            links: Vec::new(),
            metrics: CaseMetrics::default(),
            precision: None,
            fidelity: None,
            partial: None,
            simulated_s: 0.0,
            warmup_s: case.warmup.as_secs_f64(),
            delivered_packets: 0,
            wall_s: None,
            packets_per_s: None,
        };
        runs.each(&mut |run| {
            let m = &run.metrics;
            if result.seeds.is_empty() {
                result.describe(m);
                (all.traffic, all.links) = (sums(m.traffic.len()), sums(m.links.len()));
            }
            result.seeds.push(run.seed);
            result.delivered_packets += m.delivered_packets;
            let fidelity = result.fidelity.iter().chain(m.fidelity.as_deref());
            result.fidelity = Fidelity::worst(fidelity);
            if result.partial.is_none() {
                result.partial.clone_from(&m.partial);
            }
            if !by_seed.is_empty() {
                result.by_seed.push(m, by_seed);
            }
            all.over(m, RowSums::add);
        })?;
        if result.seeds.len() > 1 {
            result.seeds_repeat = all.repeat();
            runs.each(&mut |run| all.over(&run.metrics, RowSums::add_squares))?;
        }
        let flows = result.flows.iter_mut().map(|f| &mut f.metrics);
        let traffic = result.traffic.iter_mut().map(|t| &mut t.metrics);
        let links = result.links.iter_mut().map(|l| &mut l.metrics);
        let rows = flows
            .chain(traffic)
            .chain(links)
            .chain([&mut result.metrics.0]);
        let sums = all.flows.into_iter().chain(all.traffic).chain(all.links);
        for (estimates, sums) in rows.zip(sums.chain([all.metrics])) {
            *estimates = sums.estimates();
        }
        Ok(result)
    }

    /// Chance is what the seed draws on the simulator alone: elsewhere no seed repeats a run.
    pub(crate) fn made_on(&mut self, ground: &str) {
        let simulated = ground == SIMULATOR;
        self.seeds_repeat &= simulated;
        self.in_phase &= simulated;
    }

    /// Puts down the wall time of its runs, seconds.
    pub(crate) fn took(&mut self, wall_s: f64) {
        self.wall_s = Some(wall_s);
        self.packets_per_s = Some(self.delivered_packets as f64 / wall_s.max(1e-9));
    }

    /// What is to be said about it, and no number that was measured. Of flows, whose names matter
    /// where there are several, a single one is left out.
    pub(crate) fn without_metrics(self) -> CaseResult {
        let named = |flow: FlowResult| FlowResult {
            metrics: Estimates::new(),
            ..flow
        };
        let flows = match self.flows.len() {
            1 => Vec::new(),
            _ => self.flows.into_iter().map(named).collect(),
        };
        CaseResult {
            by_seed: SeedValues::default(),
            flows,
            traffic: Vec::new(),
            links: Vec::new(),
            metrics: CaseMetrics::default(),
            ..self
        }
    }

    /// What a case takes from its first run.
    fn describe(&mut self, run: &RunMetrics) {
        for (flow, made) in self.flows.iter_mut().zip(&run.flows) {
            flow.stack.clone_from(&made.stack);
        }
        let traffic = run.traffic.iter().map(|t| TrafficResult {
            name: t.name.clone(),
            kind: t.kind.clone(),
            stack: t.stack.clone(),
            metrics: Estimates::new(),
        });
        self.traffic = traffic.collect();
        let links = run.links.iter().map(|l| LinkResult {
            name: l.name.clone(),
            metrics: Estimates::new(),
        });
        self.links = links.collect();
        self.simulated_s = run.simulated_s;
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

    /// The same metric of each seed; none if they are not kept.
    pub fn of_seeds(
        &self,
        metric: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Vec<Option<f64>>> {
        if metrics::scope_of(metric).is_none() {
            return self.computed(metric, flow, link);
        }
        Some(self.by_seed.of(self.row(metric, flow, link)?, metric))
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
        Some((0..self.by_seed.seeds).map(value).collect())
    }

    /// The row that has the metric; `None` where none does.
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
    /// Leaves out what only whoever has made the run is shown.
    pub(super) fn forget_the_network(&mut self) {
        (self.delivered_bytes, self.direction) = (None, None);
        self.rate_asked_mbps = None;
        self.streams.clear();
    }

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
    /// True of a link at which nothing waited, was lost or was marked, and whose rate nothing used:
    /// one without a rate.
    pub fn only_delays(&self) -> bool {
        const IDLE: [&Metric; 4] = [
            Metric::link("utilization"),
            Metric::link("drops"),
            Metric::link("marks"),
            Metric::link("queue_packets.max"),
        ];
        IDLE.iter()
            .all(|metric| self.value(metric.name) == Some(0.0))
    }

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
