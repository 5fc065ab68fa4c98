//! The result of a scenario: what `--format json` prints and `result.json` keeps. The names are a contract; more may be
//! added.
//!
//! Values over several seeds are means, with the 95 % Student interval `<name>_ci95` beside them. A value that is undefined
//! in any of the seeds has no mean: it is `null`, and `<name>_undefined` says in how many seeds, if not in all.
//!
//! Wall times are not part of a stored result, which must be the same bytes whenever it is computed again; they are filled in
//! for what the command prints and kept in `timing.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::metrics::{self, METRICS, RunMetrics, Scope, Values};
use crate::scenario::{Case, Expectation, Scenario};

/// Result of one scenario on one ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Ground it ran on.
    pub ground: String,
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
    /// Links, in order.
    pub links: Vec<LinkResult>,
    /// Metrics of the whole case.
    pub metrics: CaseMetrics,
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
    /// Seeds in which it is undefined.
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
    #[serde(serialize_with = "open_bound", deserialize_with = "closed_bound")]
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
            cases,
            expectations,
        }
    }

    /// True if every expectation passed.
    pub fn passed(&self) -> bool {
        self.expectations.iter().all(|e| e.pass)
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

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&LinkResult> {
        self.links.iter().find(|l| l.name == name)
    }

    /// A metric of the case, of a flow or of a link. Without a name the only flow or the only link is meant.
    pub fn estimate(
        &self,
        metric: &str,
        flow: Option<&str>,
        link: Option<&str>,
    ) -> Option<Estimate> {
        let from = match metrics::scope_of(metric)? {
            Scope::Case => &self.metrics.0,
            Scope::Flow => match (flow, self.flows.as_slice()) {
                (Some(name), _) => &self.flow(name)?.metrics,
                (None, [only]) => &only.metrics,
                (None, _) => return None,
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
    let one = |e: &Expectation, case: &CaseResult| {
        let estimate = case
            .estimate(&e.metric, e.flow.as_deref(), e.link.as_deref())
            .unwrap_or_default();
        ExpectationResult {
            name: e.name.clone(),
            params: case.params.clone(),
            observed: estimate.mean,
            observed_ci95: estimate.ci95,
            bound: [e.bound.0, e.bound.1],
            pass: estimate
                .mean
                .is_some_and(|v| e.bound.0 <= v && v <= e.bound.1),
            metric: e.metric.clone(),
            flow: e.flow.clone(),
            link: e.link.clone(),
            source: e.source.clone(),
        }
    };
    expectations
        .iter()
        .flat_map(|e| e.cases.iter().filter_map(|&i| Some(one(e, cases.get(i)?))))
        .collect()
}

/// Means and intervals of every name that any run has.
fn aggregate(runs: &[&Values]) -> Estimates {
    let names: std::collections::BTreeSet<&String> = runs.iter().flat_map(|v| v.keys()).collect();
    let samples = |name: &str| {
        runs.iter()
            .map(|v| metrics::value(v, name))
            .collect::<Vec<_>>()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), Estimate::of(&samples(name))))
        .collect()
}

impl Estimate {
    /// Mean and interval of the values of the seeds.
    pub fn of(samples: &[Option<f64>]) -> Estimate {
        let defined: Vec<f64> = samples.iter().flatten().copied().collect();
        let undefined = (samples.len() - defined.len()) as u32;
        if undefined > 0 || defined.is_empty() {
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

// ---- JSON ----------------------------------------------------------------------------------------------------------------

/// A JSON object in a chosen order.
enum Node {
    Leaf(Value),
    Object(Vec<(String, Node)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Leaf(v) => v.serialize(s),
            Node::Object(entries) => s.collect_map(entries.iter().map(|(k, v)| (k, v))),
        }
    }
}

impl Node {
    fn insert(entries: &mut Vec<(String, Node)>, path: &[&str], leaf: Value) {
        let (head, rest) = path.split_first().expect("a path has a first part");
        if rest.is_empty() {
            entries.push(((*head).to_owned(), Node::Leaf(leaf)));
            return;
        }
        let at = entries
            .iter()
            .position(|(k, _)| k == head)
            .unwrap_or_else(|| {
                entries.push(((*head).to_owned(), Node::Object(Vec::new())));
                entries.len() - 1
            });
        if let Node::Object(inner) = &mut entries[at].1 {
            Node::insert(inner, rest, leaf);
        }
    }
}

/// Path of a metric in the JSON object: a variable's name may itself hold dots.
fn path(name: &str) -> Vec<&str> {
    match name
        .strip_prefix("var.")
        .and_then(|rest| rest.rsplit_once('.'))
    {
        Some((variable, last)) => vec!["var", variable, last],
        None => name.split('.').collect(),
    }
}

/// Estimates in the order of the table, variables last.
fn nodes(scope: Scope, estimates: &Estimates) -> Vec<(String, Node)> {
    let mut entries = Vec::new();
    let listed = metrics::names_of(scope).filter_map(|name| estimates.get_key_value(name));
    let others = estimates
        .iter()
        .filter(|(name, _)| metrics::find(scope, name).is_none());
    for (name, e) in listed.chain(others) {
        let number = |v: f64| number(v, metrics::find(scope, name).is_some_and(|m| m.count));
        let parts = path(name);
        let (last, head) = parts.split_last().expect("a path has a last part");
        let beside = |suffix: &str| format!("{last}{suffix}");
        Node::insert(&mut entries, &parts, e.mean.map_or(Value::Null, number));
        if let Some([low, high]) = e.ci95 {
            let pair = Value::Array(vec![self::number(low, false), self::number(high, false)]);
            Node::insert(&mut entries, &[head, &[&beside("_ci95")]].concat(), pair);
        }
        if e.undefined > 0 && e.mean.is_none() {
            Node::insert(
                &mut entries,
                &[head, &[&beside("_undefined")]].concat(),
                Value::from(e.undefined),
            );
        }
    }
    entries
}

fn number(v: f64, count: bool) -> Value {
    if count && v.fract() == 0.0 && v.abs() < EXACT {
        Value::from(v as i64)
    } else {
        serde_json::Number::from_f64(v).map_or(Value::Null, Value::Number)
    }
}

/// Integers below this are exact in `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads what [`nodes`] wrote; strings are left to the caller.
fn estimates(
    prefix: &str,
    object: &serde_json::Map<String, Value>,
    into: &mut Estimates,
) -> Result<(), String> {
    for (key, value) in object {
        let name = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        let base = |suffix| name.strip_suffix(suffix).map(str::to_owned);
        match value {
            Value::Object(inner) => estimates(&name, inner, into)?,
            Value::Array(pair) => {
                let base = base("_ci95").ok_or_else(|| format!("`{name}` is a list"))?;
                let [Some(low), Some(high)] =
                    [pair.first(), pair.get(1)].map(|v| v.and_then(Value::as_f64))
                else {
                    return Err(format!("`{name}` is no pair of numbers"));
                };
                into.entry(base).or_default().ci95 = Some([low, high]);
            }
            Value::Number(n) => match base("_undefined") {
                Some(base) => {
                    into.entry(base).or_default().undefined = n.as_u64().unwrap_or(0) as u32
                }
                None => into.entry(name).or_default().mean = n.as_f64(),
            },
            Value::Null => {
                into.entry(name).or_default();
            }
            Value::String(_) | Value::Bool(_) => return Err(format!("`{name}` is not a number")),
        }
    }
    Ok(())
}

impl Serialize for FlowResult {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("stack", &self.stack)?;
        for (key, node) in nodes(Scope::Flow, &self.metrics) {
            map.serialize_entry(&key, &node)?;
        }
        map.end()
    }
}

impl Serialize for LinkResult {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        for (key, node) in nodes(Scope::Link, &self.metrics) {
            map.serialize_entry(&key, &node)?;
        }
        map.end()
    }
}

impl Serialize for CaseMetrics {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Node::Object(nodes(Scope::Case, &self.0)).serialize(s)
    }
}

fn take_string<E: serde::de::Error>(
    object: &mut serde_json::Map<String, Value>,
    key: &'static str,
) -> Result<String, E> {
    match object.remove(key) {
        Some(Value::String(s)) => Ok(s),
        Some(_) => Err(E::custom(format!("`{key}` is not a string"))),
        None => Err(E::missing_field(key)),
    }
}

impl<'de> Deserialize<'de> for FlowResult {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut object = serde_json::Map::deserialize(d)?;
        let (name, stack) = (
            take_string(&mut object, "name")?,
            take_string(&mut object, "stack")?,
        );
        let mut metrics = Estimates::new();
        estimates("", &object, &mut metrics).map_err(D::Error::custom)?;
        Ok(FlowResult {
            name,
            stack,
            metrics,
        })
    }
}

impl<'de> Deserialize<'de> for LinkResult {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut object = serde_json::Map::deserialize(d)?;
        let name = take_string(&mut object, "name")?;
        let mut metrics = Estimates::new();
        estimates("", &object, &mut metrics).map_err(D::Error::custom)?;
        Ok(LinkResult { name, metrics })
    }
}

impl<'de> Deserialize<'de> for CaseMetrics {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = serde_json::Map::deserialize(d)?;
        let mut metrics = Estimates::new();
        estimates("", &object, &mut metrics).map_err(D::Error::custom)?;
        Ok(CaseMetrics(metrics))
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(k, v)| (k, v)))
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Params;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Params(entries))
            }
        }
        d.deserialize_map(InOrder)
    }
}

fn open_bound<S: Serializer>(bound: &[f64; 2], s: S) -> Result<S::Ok, S::Error> {
    bound.map(|b| b.is_finite().then_some(b)).serialize(s)
}

fn closed_bound<'de, D: Deserializer<'de>>(d: D) -> Result<[f64; 2], D::Error> {
    let [low, high] = <[Option<f64>; 2]>::deserialize(d)?;
    Ok([
        low.unwrap_or(f64::NEG_INFINITY),
        high.unwrap_or(f64::INFINITY),
    ])
}

// ---- JSON Schema ---------------------------------------------------------------------------------------------------------

fn metric_properties(scope: Scope, properties: &mut serde_json::Map<String, Value>) {
    for m in METRICS.iter().filter(|m| m.scope == scope) {
        let about = format!("{}. Unit: {}. {}", m.about, m.unit, m.formula);
        let mut at = &mut *properties;
        let parts = path(m.name);
        let (last, heads) = parts.split_last().expect("a path has a last part");
        for head in heads {
            let object = at
                .entry((*head).to_owned())
                .or_insert_with(|| serde_json::json!({ "type": "object", "properties": {} }));
            at = object["properties"]
                .as_object_mut()
                .expect("made an object above");
        }
        at.insert(
            (*last).to_owned(),
            serde_json::json!({ "type": ["number", "null"], "description": about }),
        );
        at.insert(
            format!("{last}_ci95"),
            serde_json::json!({
                "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2,
                "description": format!("95 % Student interval of `{}` over the seeds", m.name)
            }),
        );
        at.insert(
            format!("{last}_undefined"),
            serde_json::json!({ "type": "integer", "description": format!("seeds in which `{}` is undefined", m.name) }),
        );
    }
}

fn metrics_schema(scope: Scope, strings: &[(&str, &str)]) -> Schema {
    let mut properties = serde_json::Map::new();
    for (name, about) in strings {
        properties.insert(
            (*name).to_owned(),
            serde_json::json!({ "type": "string", "description": about }),
        );
    }
    metric_properties(scope, &mut properties);
    let mut required: Vec<&str> = strings.iter().map(|(name, _)| *name).collect();
    for name in metrics::names_of(scope).map(|name| path(name)[0]) {
        if required.last() != Some(&name) {
            required.push(name);
        }
    }
    if scope == Scope::Flow {
        let number = serde_json::json!({ "type": ["number", "null"] });
        properties.insert(
            "var".to_owned(),
            serde_json::json!({
                "type": "object",
                "description": "variables of the controller",
                "additionalProperties": { "type": "object", "properties": { "last": number, "max": number } }
            }),
        );
    }
    json_schema!({ "type": "object", "properties": properties, "required": required })
}

impl JsonSchema for FlowResult {
    fn schema_name() -> Cow<'static, str> {
        "Flow".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        metrics_schema(
            Scope::Flow,
            &[
                ("name", "Name in the scenario"),
                ("stack", "Canonical spelling of the stack"),
            ],
        )
    }
}

impl JsonSchema for LinkResult {
    fn schema_name() -> Cow<'static, str> {
        "Link".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        metrics_schema(Scope::Link, &[("name", "Name in the scenario")])
    }
}

impl JsonSchema for CaseMetrics {
    fn schema_name() -> Cow<'static, str> {
        "CaseMetrics".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        metrics_schema(Scope::Case, &[])
    }
}

impl JsonSchema for Params {
    fn schema_name() -> Cow<'static, str> {
        "Params".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Matrix keys and their values in this case"
        })
    }
}

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
