//! JSON Schema of the members of a result that come from the table of metrics.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::Params;
use super::json::{Members, Scoped, path};
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
        estimate(at, last, m.name, &about);
    }
}

/// A mean with what stands beside it.
fn estimate(at: &mut serde_json::Map<String, Value>, member: &str, name: &str, about: &str) {
    let number = serde_json::json!({ "type": ["number", "null"], "description": about });
    at.insert(member.to_owned(), number);
    at.insert(
        format!("{member}_ci95"),
        serde_json::json!({
            "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2,
            "description": format!("95 % Student interval of `{name}` over the seeds")
        }),
    );
    at.insert(
        format!("{member}_undefined"),
        serde_json::json!({ "type": "integer", "description": format!("seeds in which `{name}` is undefined") }),
    );
}

impl<S: Scoped> JsonSchema for Members<S> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{:?}Metrics", S::SCOPE).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        metric_properties(S::SCOPE, &mut properties);
        // A kind of traffic has only some of the metrics of its scope.
        let always = metrics::names_of(S::SCOPE).filter(|_| S::SCOPE != Scope::Traffic);
        let mut required: Vec<&str> = always.map(|name| path(name)[0]).collect();
        required.dedup();
        if S::SCOPE == Scope::Flow {
            let mut variable = serde_json::Map::new();
            for (member, about) in [("last", "at the end"), ("max", "largest")] {
                estimate(&mut variable, member, member, about);
            }
            properties.insert(
                "var".to_owned(),
                serde_json::json!({
                    "type": "object",
                    "description": "variables of the controller",
                    "additionalProperties": { "type": "object", "properties": variable }
                }),
            );
        }
        json_schema!({ "type": "object", "properties": properties, "required": required })
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
