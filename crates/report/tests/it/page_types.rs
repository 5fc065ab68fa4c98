//! The page's types in TypeScript are made of those in Rust.

use std::fmt::Write as _;

use fullpipe_report::page::data::{VERSION, json_schema};
use serde_json::{Map, Value};

/// `UPDATE_DOCS=1 cargo test -p fullpipe-report` writes the file.
#[test]
fn the_types_of_the_page_are_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../web/src/generated/data.ts"
    );
    let types = typescript();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &types).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == types,
        "web/src/generated/data.ts is out of date: UPDATE_DOCS=1 cargo test -p fullpipe-report"
    );
}

fn typescript() -> String {
    let schema = json_schema();
    let schema = schema.as_value();
    let mut out = format!(
        "// Made from crates/report/src/page/data.rs; a test compares. UPDATE_DOCS=1 writes it anew.\n\n\
         export const VERSION = {VERSION};\n"
    );
    interface(&mut out, "Page", schema);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        interface(&mut out, name, definition);
    }
    out
}

fn interface(out: &mut String, name: &str, schema: &Value) {
    out.push('\n');
    comment(out, "", schema);
    let _ = writeln!(out, "export interface {name} {{");
    let required = schema["required"].as_array().unwrap();
    for (key, property) in schema["properties"].as_object().unwrap() {
        comment(out, "  ", property);
        let optional = if required.iter().any(|r| r == key) {
            ""
        } else {
            "?"
        };
        let of = type_of(property);
        // What is left out is never written as `null`.
        let of = match optional {
            "?" => of.strip_suffix(" | null").unwrap_or(&of).to_owned(),
            _ => of,
        };
        let _ = writeln!(out, "  {key}{optional}: {of};");
    }
    out.push_str("}\n");
}

/// The description without the links of rustdoc.
fn comment(out: &mut String, indent: &str, schema: &Value) {
    if let Some(text) = schema["description"].as_str() {
        let text = text
            .replace("[`", "`")
            .replace("`]", "`")
            .replace('\n', " ");
        let _ = writeln!(out, "{indent}/** {text} */");
    }
}

fn type_of(schema: &Value) -> String {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => return "unknown".to_owned(),
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return joined(values.iter().map(Value::to_string));
    }
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        return path.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(parts) = schema.get("anyOf").and_then(Value::as_array) {
        return joined(parts.iter().map(type_of));
    }
    match &schema["type"] {
        Value::String(kind) => plain(kind, schema),
        Value::Array(kinds) => joined(kinds.iter().map(|k| plain(k.as_str().unwrap(), schema))),
        other => panic!("no type: {other}"),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" | ")
}

fn plain(kind: &str, schema: &Map<String, Value>) -> String {
    match kind {
        "integer" => "number".to_owned(),
        "array" => {
            if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
                let items: Vec<String> = items.iter().map(type_of).collect();
                return format!("[{}]", items.join(", "));
            }
            let item = type_of(&schema["items"]);
            let count = |key: &str| schema.get(key).and_then(Value::as_u64);
            match (count("minItems"), count("maxItems")) {
                (Some(n), Some(most)) if n == most => {
                    format!("[{}]", vec![item; n as usize].join(", "))
                }
                _ if item.contains(' ') && !item.starts_with('[') => format!("({item})[]"),
                _ => format!("{item}[]"),
            }
        }
        other => other.to_owned(),
    }
}
