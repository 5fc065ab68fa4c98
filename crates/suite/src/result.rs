//! The result of a scenario: what `--format json` prints and `result.json` keeps. The names are a contract; more may be
//! added.
//!
//! Values over several seeds are means, with the 95 % Student interval `<name>_ci95` beside them. A value that is undefined
//! in any of the seeds has no mean: it is `null`, and `<name>_undefined` says in how many seeds, if not in all.
//!
//! Wall times are not part of a stored result, which must be the same bytes whenever it is computed again; they are filled in
//! for what the command prints and kept in `timing.json`.

mod json;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::metrics::{self, Fidelity, RunMetrics, Scope, Values};
use crate::scenario::{Against, Case, Expectation, Scenario};

/// Result of one scenario on one ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Ground it ran on.
    pub ground: String,
    /// Run with what the scenario's `[quick]` sets; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// One entry per point of the matrix, in order.
    pub cases: Vec<CaseResult>,
    /// One entry per expectation and case it applies to.
    pub expectations: Vec<ExpectationResult>,
}

/// Result of one case, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Matrix key and value.
    pub params: Params,
    /// Seeds it ran with.
    pub seeds: Vec<u64>,
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
    pub precision: Option<Reached>,
    /// How true a real path was to its specification, the worst of all seeds; absent where time is virtual and where the path is
    /// not the program's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// Virtual time of one run, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver, all seeds together.
    pub delivered_packets: u64,
    /// Wall time of all its runs, seconds; absent in stored results and where every run was taken over from an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Delivered data packets per second of wall time; absent like `wall_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_s: Option<f64>,
}

/// Matrix keys and values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Vec<(String, Value)>);

/// Result of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Name in the scenario.
    pub name: String,
    /// Canonical spelling of the stack.
    pub stack: String,
    /// By metric name (`rtt_ms.p95`, `var.w_max.last`).
    pub metrics: Estimates,
}

/// Result of short flows, datagrams or probes.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficResult {
    /// Name in the scenario.
    pub name: String,
    /// `short-flows`, `ping`, or `udp` with what its rate does (`udp-sine`).
    pub kind: String,
    /// Canonical spelling of the stack of short flows; empty for the others.
    pub stack: String,
    /// By metric name; only those of its kind.
    pub metrics: Estimates,
}

/// Result of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkResult {
    /// Name in the scenario.
    pub name: String,
    /// By metric name.
    pub metrics: Estimates,
}

/// Metrics of a case, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseMetrics(pub Estimates);

/// Estimates by metric name.
pub type Estimates = BTreeMap<String, Estimate>;

/// Mean over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean; the value itself with one seed. `None` if undefined in any seed.
    pub mean: Option<f64>,
    /// 95 % interval of the mean; with two seeds or more.
    pub ci95: Option<[f64; 2]>,
    /// Seeds in which it is undefined, if not in all.
    pub undefined: u32,
}

/// An expectation held against one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationResult {
    /// Name of the expectation.
    pub name: String,
    /// The case.
    pub params: Params,
    /// Mean over seeds; `null` if undefined, which fails.
    pub observed: Option<f64>,
    /// 95 % interval of the mean; with two seeds or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ci95: Option<[f64; 2]>,
    /// Smallest and largest accepted value; `null` where open.
    #[serde(
        serialize_with = "json::open_bound",
        deserialize_with = "json::closed_bound"
    )]
    #[schemars(with = "[Option<f64>; 2]")]
    pub bound: [f64; 2],
    /// Whether the observed value lies in the bound.
    pub pass: bool,
    /// Metric.
    pub metric: String,
    /// Flow it is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link it is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Where the bound comes from.
    pub source: String,
}

/// One run's part of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedRun {
    /// Seed.
    pub seed: u64,
    /// What was measured.
    pub metrics: RunMetrics,
}

impl RunResult {
    /// Puts the runs of every case together and holds the expectations against them. `runs[i]` are the runs of
    /// `scenario.cases[i]`, in the order of the seeds.
    pub fn new(scenario: &Scenario, ground: &str, runs: &[Vec<SeedRun>]) -> RunResult {
        let cases: Vec<CaseResult> = scenario
            .cases
            .iter()
            .zip(runs)
            .map(|(case, runs)| CaseResult::new(case, runs))
            .collect();
        let expectations = evaluate(&scenario.expectations, &cases);
        RunResult {
            fullpipe: VERSION.to_owned(),
            scenario: scenario.name.clone(),
            ground: ground.to_owned(),
            quick: scenario.quick,
            cases,
            expectations,
        }
    }

    /// True if every expectation passed.
    pub fn passed(&self) -> bool {
        self.expectations.iter().all(|e| e.pass)
    }

    /// What is to be said about means that are less sure than was asked for; `None` if all are sure.
    pub fn unsure(&self) -> Option<String> {
        let judged = || {
            self.cases
                .iter()
                .filter_map(|c| Some((c, c.precision.as_ref()?)))
        };
        let missed: Vec<_> = judged().filter(|(_, p)| !p.reached).collect();
        let width = |p: &Reached| p.achieved.unwrap_or(f64::INFINITY);
        let worst = |a: &&(&CaseResult, &Reached), b: &&(&CaseResult, &Reached)| {
            width(a.1).total_cmp(&width(b.1))
        };
        let (case, p) = missed.iter().max_by(worst)?;
        let percent = |x: f64| format!("{} %", (x * 1e3).round() / 10.0);
        let of =
            p.of.as_ref()
                .map_or(String::new(), |of| format!(" of {of}"));
        let achieved = match p.achieved {
            Some(width) => format!("±{}", percent(width)),
            None => "undefined, or zero with a spread".to_owned(),
        };
        let params = match case.params.0.is_empty() {
            true => String::new(),
            false => format!(" ({})", case.params),
        };
        let n = case.seeds.len();
        let seeds = format!("{n} seed{}", if n == 1 { "" } else { "s" });
        Some(format!(
            "the precision of ±{} is not reached in {} of {} cases; worst: {}{of} is {achieved} after {seeds}{params}",
            percent(p.target),
            missed.len(),
            judged().count(),
            p.metric,
        ))
    }

    /// What is to be said about cases whose path was not what it claims; `None` if there is none.
    pub fn untrue(&self) -> Option<String> {
        let judged = || {
            self.cases
                .iter()
                .filter_map(|c| Some((c, c.fidelity.as_ref()?)))
        };
        let untrue: Vec<_> = judged().filter(|(_, f)| !f.valid).collect();
        let beyond = |f: &Fidelity| (f.unplanned_drops > 0, f.late_p99_ms / f.late_bound_ms);
        let (case, worst) = untrue.iter().max_by(|a, b| {
            let ((drops, late), (others, later)) = (beyond(a.1), beyond(b.1));
            drops.cmp(&others).then(late.total_cmp(&later))
        })?;
        let params = match case.params.0.is_empty() {
            true => String::new(),
            false => format!(" ({})", case.params),
        };
        Some(format!(
            "the path was not true to its specification in {} of {} cases: their numbers are those of another path; worst: {}{params}",
            untrue.len(),
            judged().count(),
            worst.sentence(),
        ))
    }

    /// The JSON text, one object over several lines, with a line break at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("maps with string keys and finite numbers only");
        text.push('\n');
        text
    }

    /// JSON Schema of the object, for `fullpipe schema result`.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(RunResult)
    }

    /// The same without wall times: what a store keeps.
    pub fn without_times(&self) -> RunResult {
        let mut stored = self.clone();
        for case in &mut stored.cases {
            (case.wall_s, case.packets_per_s) = (None, None);
        }
        stored
    }
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
            params: Params(
                case.json_params()
                    .map(|(k, v)| (k.to_owned(), v.clone()))
                    .collect(),
            ),
            seeds: runs.iter().map(|r| r.seed).collect(),
            flows: case
                .flows
                .iter()
                .enumerate()
                .map(|(i, g)| FlowResult {
                    name: g.name.clone(),
                    stack: g.stack.clone(),
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
            fidelity: Fidelity::worst(runs.iter().filter_map(|r| r.metrics.fidelity.as_ref())),
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

    /// A metric of the case, of a flow, of traffic (by the name `flow`) or of a link. Without a name the only one is meant that
    /// has the metric.
    pub fn estimate(
        &self,
        metric: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Estimate> {
        let from = match metrics::scope_of(metric)? {
            Scope::Case => &self.metrics.0,
            Scope::Flow | Scope::Traffic => match flow {
                Some(name) => match self.flow(name) {
                    Some(f) => &f.metrics,
                    None => &self.traffic(name)?.metrics,
                },
                None => {
                    let flows = self.flows.iter().map(|f| &f.metrics);
                    let all = flows.chain(self.traffic.iter().map(|t| &t.metrics));
                    let mut having = all.filter(|m| m.contains_key(metric));
                    let first = having.next()?;
                    let others = having.next().is_some();
                    match self.flows.as_slice() {
                        // The only flow comes before traffic with a metric of the same name.
                        [only] if only.metrics.contains_key(metric) => &only.metrics,
                        _ if others => return None,
                        _ => first,
                    }
                }
            },
            Scope::Link => match (link, self.links.as_slice()) {
                (Some(name), _) => &self.link(name)?.metrics,
                (None, [only]) => &only.metrics,
                (None, _) => return None,
            },
        };
        from.get(metric).copied()
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

impl Params {
    /// Value of a key as text: strings without quotes.
    pub fn text(&self, key: &str) -> Option<String> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| scalar_text(v))
    }
}

/// `key=value` pairs, blanks between.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            write!(f, "{blank}{key}={}", scalar_text(value))?;
        }
        Ok(())
    }
}

/// A parameter's value as people write it: strings without quotes, the rest as JSON.
pub fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// Holds the expectations against the cases they apply to, in the order of the file.
pub fn evaluate(expectations: &[Expectation], cases: &[CaseResult]) -> Vec<ExpectationResult> {
    let bounded = |e: &Expectation, case: &CaseResult| {
        let estimate = e.estimate(case);
        e.judge(case, estimate.mean, estimate.ci95, e.bound)
    };
    let mut results = Vec::new();
    for e in expectations {
        if e.pairs.is_empty() {
            results.extend(
                e.cases
                    .iter()
                    .filter_map(|&i| Some(bounded(e, cases.get(i)?))),
            );
        }
        results.extend(
            e.pairs
                .iter()
                .filter_map(|&(i, j)| e.held_against(cases.get(i)?, cases.get(j)?)),
        );
    }
    results
}

impl Expectation {
    fn estimate(&self, case: &CaseResult) -> Estimate {
        case.estimate(&self.metric, self.flow.as_deref(), self.link.as_deref())
            .unwrap_or_default()
    }

    fn judge(
        &self,
        case: &CaseResult,
        observed: Option<f64>,
        ci95: Option<[f64; 2]>,
        bound: (f64, f64),
    ) -> ExpectationResult {
        ExpectationResult {
            name: self.name.clone(),
            params: case.params.clone(),
            observed,
            observed_ci95: ci95,
            bound: [bound.0, bound.1],
            pass: observed.is_some_and(|v| bound.0 <= v && v <= bound.1),
            metric: self.metric.clone(),
            flow: self.flow.clone(),
            link: self.link.clone(),
            source: self.source.clone(),
        }
    }

    fn held_against(&self, case: &CaseResult, peer: &CaseResult) -> Option<ExpectationResult> {
        match self.against {
            Against::Ratio => Some(self.ratio(case, peer)),
            _ => self.agreement(case, peer),
        }
    }

    /// The quotient of two means; its interval by the delta method, the two taken as independent.
    fn ratio(&self, case: &CaseResult, peer: &CaseResult) -> ExpectationResult {
        let (a, b) = (self.estimate(case), self.estimate(peer));
        let quotient = a
            .mean
            .zip(b.mean)
            .filter(|(_, b)| *b != 0.0)
            .map(|(a, b)| a / b);
        let relative = |e: &Estimate| Some((e.ci95?[1] - e.ci95?[0]) / 2.0 / e.mean?);
        let interval = quotient
            .zip(relative(&a))
            .zip(relative(&b))
            .map(|((q, a), b)| {
                let half = (q * a.hypot(b)).abs();
                [q - half, q + half]
            });
        self.judge(
            case,
            quotient,
            interval.filter(|i| i[0].is_finite()),
            self.bound,
        )
    }

    /// Two cases agree if their 95 % intervals overlap: the difference of the means is at most the sum of the half widths.
    /// Without intervals (one seed) there is nothing to judge.
    fn agreement(&self, case: &CaseResult, peer: &CaseResult) -> Option<ExpectationResult> {
        let (a, b) = (self.estimate(case), self.estimate(peer));
        let half = |ci: [f64; 2]| (ci[1] - ci[0]) / 2.0;
        let room = half(a.ci95?) + half(b.ci95?);
        Some(self.judge(case, Some(a.mean? - b.mean?), None, (-room, room)))
    }
}

/// Means and intervals of every name that any run has.
fn aggregate(runs: &[&Values]) -> Estimates {
    let names: BTreeSet<&String> = runs.iter().flat_map(|v| v.keys()).collect();
    // What a run leaves out (a gain without a partner) says nothing; what a controller does not report is undefined.
    let samples = |name: &str| {
        runs.iter()
            .filter(|v| metrics::is_variable(name) || v.contains_key(name))
            .map(|v| metrics::value(v, name))
            .collect::<Vec<_>>()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), Estimate::of(&samples(name))))
        .collect()
}

/// What came of `[measure] precision` in a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
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

impl Estimate {
    /// Mean and interval of the values of the seeds.
    pub fn of(samples: &[Option<f64>]) -> Estimate {
        let defined: Vec<f64> = samples.iter().flatten().copied().collect();
        if defined.is_empty() {
            return Estimate::default();
        }
        let undefined = (samples.len() - defined.len()) as u32;
        if undefined > 0 {
            return Estimate {
                mean: None,
                ci95: None,
                undefined,
            };
        }
        let n = defined.len() as f64;
        let mean = defined.iter().sum::<f64>() / n;
        let ci95 = (defined.len() >= 2).then(|| {
            let squares: f64 = defined.iter().map(|x| (x - mean) * (x - mean)).sum();
            let half = student_t(n - 1.0) * (squares / (n - 1.0) / n).sqrt();
            [mean - half, mean + half]
        });
        Estimate {
            mean: Some(mean),
            ci95,
            undefined,
        }
    }
}

/// Two-sided 95 % quantile of Student's t. Rounded to nine digits, so that its last bits do not depend on how a platform
/// rounds a logarithm.
pub(crate) fn student_t(degrees: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees)
        .expect("degrees of freedom are positive")
        .inverse_cdf(0.975);
    let scale = 1e9;
    (t * scale).round() / scale
}

/// The version that is written into results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(samples: &[f64]) -> Estimate {
        Estimate::of(&samples.iter().map(|&v| Some(v)).collect::<Vec<_>>())
    }

    #[test]
    fn student_quantiles() {
        for (n, t) in [
            (1.0, 12.706204736),
            (2.0, 4.302652730),
            (9.0, 2.262157163),
            (29.0, 2.045229642),
        ] {
            assert!((student_t(n) - t).abs() < 2e-9, "{n}: {}", student_t(n));
        }
    }

    #[test]
    fn interval_of_a_mean() {
        // Mean 3, sample deviation sqrt(2.5), t(4) = 2.776445.
        let e = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let half = 2.776_445_105 * (2.5f64 / 5.0).sqrt();
        assert_eq!(e.mean, Some(3.0));
        assert!(
            (e.ci95.unwrap()[0] - (3.0 - half)).abs() < 1e-8
                && (e.ci95.unwrap()[1] - (3.0 + half)).abs() < 1e-8
        );
        assert_eq!(
            estimate(&[7.5]),
            Estimate {
                mean: Some(7.5),
                ci95: None,
                undefined: 0
            }
        );
        assert_eq!(
            Estimate::of(&[Some(1.0), None]),
            Estimate {
                mean: None,
                ci95: None,
                undefined: 1
            }
        );
    }

    fn sample_flow() -> FlowResult {
        let metrics = [
            ("goodput_mbps", estimate(&[10.0, 11.0])),
            ("rtt_ms.min", estimate(&[80.0, 80.0])),
            ("rtt_ms.p99", estimate(&[90.5, 91.5])),
            ("retransmits", estimate(&[3.0, 5.0])),
            ("recovery_time_s", Estimate::of(&[None, Some(3.0)])),
            ("completion_time_s", Estimate::of(&[None, None])),
            ("var.w_max.last", estimate(&[4.25, 4.25])),
        ];
        FlowResult {
            name: "main".into(),
            stack: "reno".into(),
            metrics: metrics
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect(),
        }
    }

    #[test]
    fn json_of_a_flow_has_the_contract_s_shape() {
        let text = serde_json::to_string(&sample_flow()).unwrap();
        assert!(
            text.starts_with(
                r#"{"name":"main","stack":"reno","goodput_mbps":10.5,"goodput_mbps_ci95":["#
            ),
            "{text}"
        );
        assert!(
            text.contains(r#""rtt_ms":{"min":80.0,"min_ci95":[80.0,80.0],"p99":91.0,"p99_ci95":["#),
            "{text}"
        );
        assert!(text.contains(r#""retransmits":4,"#), "{text}");
        assert!(
            text.contains(r#""recovery_time_s":null,"recovery_time_s_undefined":1,"#),
            "{text}"
        );
        assert!(
            text.ends_with(r#""var":{"w_max":{"last":4.25,"last_ci95":[4.25,4.25]}}}"#),
            "{text}"
        );
    }

    #[test]
    fn json_reads_back() {
        let flow = sample_flow();
        let back: FlowResult =
            serde_json::from_str(&serde_json::to_string(&flow).unwrap()).unwrap();
        assert_eq!(back, flow);
        assert!(serde_json::from_str::<FlowResult>(r#"{"name":"a"}"#).is_err());
        assert!(
            serde_json::from_str::<FlowResult>(r#"{"name":"a","stack":"b","goodput_mbps":"x"}"#)
                .is_err()
        );
        assert!(
            serde_json::from_str::<FlowResult>(r#"{"name":"a","stack":"b","g_ci95":[1]}"#).is_err()
        );
    }

    #[test]
    fn params_keep_their_order_and_types() {
        let text = r#"{"path.mtu":1500,"flow.main.stack":"reno","b":true}"#;
        let p: Params = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&p).unwrap(), text);
        assert_eq!(p.to_string(), "path.mtu=1500 flow.main.stack=reno b=true");
        assert_eq!(p.text("path.mtu").as_deref(), Some("1500"));
    }

    #[test]
    fn open_bounds_are_null() {
        let e = ExpectationResult {
            name: "n".into(),
            params: Params::default(),
            observed: None,
            observed_ci95: None,
            bound: [0.5, f64::INFINITY],
            pass: false,
            metric: "jain".into(),
            flow: None,
            link: None,
            source: String::new(),
        };
        let text = serde_json::to_string(&e).unwrap();
        assert!(
            text.contains(r#""observed":null,"bound":[0.5,null],"pass":false"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ExpectationResult>(&text).unwrap(), e);
    }

    #[test]
    fn the_schema_names_every_metric() {
        let text = serde_json::to_string(&RunResult::json_schema()).unwrap();
        for name in metrics::names() {
            let last = name.rsplit('.').next().unwrap();
            assert!(text.contains(&format!("\"{last}\"")), "{name}");
        }
        for key in [
            "fullpipe",
            "scenario",
            "ground",
            "cases",
            "params",
            "seeds",
            "flows",
            "links",
            "metrics",
            "simulated_s",
            "wall_s",
            "packets_per_s",
            "expectations",
            "observed",
            "bound",
            "pass",
        ] {
            assert!(text.contains(&format!("\"{key}\"")), "{key}");
        }
    }
}
