//! JSON Schema of the parts of a result whose members come from the table of metrics.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::json::path;
use super::{CaseMetrics, FlowResult, LinkResult, Params, TrafficResult};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{METRICS, Scope};

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
    if scope == Scope::Traffic {
        let about = "Canonical spelling of the stack of short flows; absent for the others";
        properties.insert(
            "stack".to_owned(),
            serde_json::json!({ "type": "string", "description": about }),
        );
    }
    metric_properties(scope, &mut properties);
    let mut required: Vec<&str> = strings.iter().map(|(name, _)| *name).collect();
    // A kind of traffic has only some of the metrics of its scope.
    let always = metrics::names_of(scope).filter(|_| scope != Scope::Traffic);
    for name in always.map(|name| path(name)[0]) {
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

impl JsonSchema for TrafficResult {
    fn schema_name() -> Cow<'static, str> {
        "Traffic".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        metrics_schema(
            Scope::Traffic,
            &[
                ("name", "Name in the scenario"),
                (
                    "kind",
                    "`short-flows`, `ping`, or `udp` with what its rate does",
                ),
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
