//! JSON Schema of the scenario file, made from the tables of `keys`.

use schemars::Schema;
use serde_json::{Map, Value, json};

use super::keys::Top;
use super::value::{Key, Kind, Table};
use fullpipe_metrics as metrics;

/// JSON Schema of the file.
pub(super) fn json() -> Schema {
    let mut root = table(Top::KEYS);
    let defs = json!({
        "rate": quantity("a bit rate", "(bit|kbit|Mbit|Gbit|Tbit)/s", &["500Mbit/s", "10Gbit/s"]),
        "time": quantity("a time", "(ns|us|µs|μs|ms|s|min|h)", &["80ms", "60s"]),
        "segments": quantity("a number of segments", "segments?", &["2 segments"]),
        "size": quantity("a size", "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)", &["100kB"]),
        "window": quantity(
            "a window: payload bytes, segments, or bandwidth-delay products",
            "(segments?|BDP|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)",
            &["3500 segments", "8MB", "1.05BDP"],
        ),
        "volume": quantity(
            "an amount of data",
            "(segments?|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)",
            &["100MB", "1000 segments"],
        ),
        "buffer": { "anyOf": [
            quantity(
                "a buffer",
                "(packets?|BDP|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB|ns|us|µs|μs|ms|s|min|h)",
                &["1BDP", "200 packets", "2MB", "50ms"],
            ),
            { "const": "unlimited" },
        ] },
        "fraction": { "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            quantity("a percentage", "%", &["0.01%"]),
        ] },
    });
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!("fullpipe scenario"));
    root.insert(
        "description".to_owned(),
        json!("What fullpipe runs, and what is expected of it."),
    );
    root.insert("$defs".to_owned(), defs);
    Schema::from(root)
}

fn table(keys: &[Key]) -> Map<String, Value> {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut schema = kind(&key.kind, key.name);
            if let Value::Object(schema) = &mut schema {
                schema.insert("description".to_owned(), json!(described(key)));
                if let Some(default) = toml_to_json(&key.default()) {
                    schema.insert("default".to_owned(), default);
                }
                if let Some(example) = toml_to_json(key.example) {
                    schema.insert("examples".to_owned(), json!([example]));
                }
            }
            (key.name.to_owned(), schema)
        })
        .collect();
    let mut table = Map::new();
    table.insert("type".to_owned(), json!("object"));
    table.insert("properties".to_owned(), Value::Object(properties));
    table.insert("additionalProperties".to_owned(), json!(false));
    // What `[matrix]` may supply need not stand in the table.
    let required = keys.iter().filter(|key| key.is_required() && !key.varies);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    if !required.is_empty() {
        table.insert("required".to_owned(), json!(required));
    }
    table
}

fn kind(kind_: &Kind, name: &str) -> Value {
    let def = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    match kind_ {
        Kind::Text if name == "metric" => json!({ "type": "string", "anyOf": [
            { "enum": metrics::names().collect::<Vec<_>>() },
            { "pattern": "^var\\..+\\.(last|max)$" },
            { "pattern": EXPRESSION },
        ] }),
        Kind::Text | Kind::Stack => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => {
            let words = words
                .iter()
                .map(|word| json!({ "const": word.word, "description": word.doc }));
            let mut choices: Vec<Value> = words.clone().collect();
            // `preset = 2003` is as good as `preset = "2003"`.
            choices.extend(words.filter_map(|word| {
                let number: u32 = word["const"].as_str()?.parse().ok()?;
                Some(json!({ "const": number, "description": word["description"] }))
            }));
            json!({ "oneOf": choices })
        }
        Kind::Whole { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Real { min, .. } if *min == f64::MIN => json!({ "type": "number" }),
        Kind::Real { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Fraction => def("fraction"),
        Kind::Rate | Kind::ZeroRate => def("rate"),
        Kind::Size => def("size"),
        Kind::Span { .. } => def("time"),
        Kind::Segments { .. } => def("segments"),
        Kind::Window => def("window"),
        Kind::Volume => def("volume"),
        Kind::Buffer => def("buffer"),
        Kind::Seeds => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1, "uniqueItems": true },
        ] }),
        Kind::Bounds => {
            json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 })
        }
        Kind::Tolerance => json!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            quantity("a percentage", "%", &["10%"]),
        ] }),
        Kind::Table(keys) => Value::Object(table(keys)),
        Kind::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
        Kind::OneOrMany(item) => {
            let of_tables = matches!(item, Kind::Table(_));
            let item = kind(item, name);
            let mut list = json!({ "type": "array", "items": item });
            // As the reader: without a table nothing happens, without a number one is missing.
            if !of_tables {
                list["minItems"] = json!(1);
            }
            json!({ "anyOf": [item, list] })
        }
        Kind::Either(first, second) => json!({ "anyOf": [kind(first, name), kind(second, name)] }),
        Kind::OrOff(inner) => json!({ "anyOf": [{ "const": "off" }, kind(inner, name)] }),
        // `where`: values; `matrix`: lists, also as nested tables where the keys are not quoted.
        Kind::Parsed { .. } => json!({ "type": "string" }),
        Kind::Free | Kind::Settings => json!({ "type": "object" }),
    }
}

/// An expression over metrics, as far as a pattern tells one from a misspelt name.
const EXPRESSION: &str = "[A-Za-z_].*[-+*/()]|[-+*/()].*[A-Za-z_]";

fn quantity(what: &str, units: &str, examples: &[&str]) -> Value {
    let number = r"\s*\+?[0-9._]+([eE][+-]?[0-9_]+)?\s*";
    json!({ "type": "string", "description": what, "pattern": format!("^{number}{units}\\s*$"), "examples": examples })
}

fn toml_to_json(text: &str) -> Option<Value> {
    if text.is_empty() || text.starts_with('(') {
        return None;
    }
    // The table's own texts; a test parses every one.
    let parsed: toml::Table = toml::from_str(&format!("x = {text}")).ok()?;
    Some(plain_json(&parsed["x"]))
}

fn plain_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(n) => json!(n),
        toml::Value::Float(x) => json!(x),
        toml::Value::Boolean(on) => json!(on),
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(items) => items.iter().map(plain_json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), plain_json(value)))
            .collect(),
    }
}

/// Description for an editor: what, and the default where it is not a value.
fn described(key: &Key) -> String {
    match key.default().strip_prefix('(') {
        Some(words) if words.contains("required") => {
            format!("{}; {}", key.about(), words.trim_end_matches(')'))
        }
        Some(words) => format!("{}; default: {}", key.about(), words.trim_end_matches(')')),
        None => key.about(),
    }
}
