//! How results are written as JSON and read back: metrics in the order of the table, dots as
//! objects, intervals beside the means.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Estimate, Estimates, Params};
use fullpipe_metrics as metrics;
use fullpipe_metrics::Scope;

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
pub(super) fn path(name: &str) -> Vec<&str> {
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
    let listed = metrics::names_of(scope).filter_map(|name| Some((name, estimates.get(name)?)));
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
        if e.undefined > 0 {
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
    into: &mut BTreeMap<String, Estimate>,
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

/// Estimates as members of the JSON object that they belong to, for `#[serde(with = ..)]`.
pub(super) struct Members<S>(PhantomData<S>);

impl<S: Scoped> Members<S> {
    pub(super) fn serialize<T: Serializer>(estimates: &Estimates, s: T) -> Result<T::Ok, T::Error> {
        s.collect_map(nodes(S::SCOPE, estimates).iter().map(|(k, v)| (k, v)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Estimates, D::Error> {
        let object = serde_json::Map::deserialize(d)?;
        let mut metrics = BTreeMap::new();
        estimates("", &object, &mut metrics).map_err(D::Error::custom)?;
        Ok(metrics.into_iter().collect())
    }
}

/// Decides the order of the members.
pub(super) trait Scoped {
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident)*) => {$(
        pub(super) struct $name;
        impl Scoped for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )*};
}
scopes! { Flow Traffic Link Case }

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter())
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
                Ok(Params::new(entries))
            }
        }
        d.deserialize_map(InOrder)
    }
}

pub(crate) fn open_bound<S: Serializer>(bound: &[f64; 2], s: S) -> Result<S::Ok, S::Error> {
    bound.map(|b| b.is_finite().then_some(b)).serialize(s)
}

pub(crate) fn closed_bound<'de, D: Deserializer<'de>>(d: D) -> Result<[f64; 2], D::Error> {
    let [low, high] = <[Option<f64>; 2]>::deserialize(d)?;
    Ok([
        low.unwrap_or(f64::NEG_INFINITY),
        high.unwrap_or(f64::INFINITY),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::estimate::tests::estimate;
    use super::super::{CaseMetrics, Estimate, Estimates, FlowResult, TrafficResult};

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
            delivered_bytes: None,
            direction: None,
            rate_asked_mbps: None,
            streams: Vec::new(),
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
    fn only_short_flows_have_a_stack() {
        let mut mice = TrafficResult {
            name: "mice".into(),
            kind: "short-flows".into(),
            stack: "reno".into(),
            metrics: Estimates::from([("completed".to_owned(), estimate(&[7.0, 7.0]))]),
        };
        let text = |t: &TrafficResult| serde_json::to_string(t).unwrap();
        assert_eq!(
            text(&mice),
            r#"{"name":"mice","kind":"short-flows","stack":"reno","completed":7,"completed_ci95":[7.0,7.0]}"#
        );
        assert_eq!(
            serde_json::from_str::<TrafficResult>(&text(&mice)).unwrap(),
            mice
        );
        mice.stack.clear();
        assert!(!text(&mice).contains("stack"));
        assert_eq!(
            serde_json::from_str::<TrafficResult>(&text(&mice)).unwrap(),
            mice
        );
    }

    #[test]
    fn metrics_of_a_case_are_an_object_of_their_own() {
        let case = CaseMetrics(Estimates::from([
            ("jain".to_owned(), estimate(&[1.0])),
            ("harm.rtt".to_owned(), Estimate::default()),
        ]));
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(text, r#"{"jain":1.0,"harm":{"rtt":null}}"#);
        assert_eq!(serde_json::from_str::<CaseMetrics>(&text).unwrap(), case);
    }
}
