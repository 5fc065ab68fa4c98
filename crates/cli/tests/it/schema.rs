//! A JSON Schema validator for the keywords that our schemas use; any other keyword is an error, so
//! that nothing passes unchecked.

use serde_json::Value;

/// Every way in which `value` departs from `schema`.
pub fn departures(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        assert_eq!(schema, &Value::Bool(true), "a schema is an object or true");
        return;
    };
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
            "$ref" => {
                let name = rule
                    .as_str()
                    .unwrap()
                    .strip_prefix("#/$defs/")
                    .expect("a reference to $defs");
                check(root, &root["$defs"][name], value, at, found);
            }
            "type" => {
                let allowed = match rule {
                    Value::Array(names) => names.iter().any(|n| is(n, value)),
                    name => is(name, value),
                };
                if !allowed {
                    found.push(format!("{at}: {value} is not of type {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        found.push(format!("{at}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(root, inner, value, &format!("{at}.{name}"), found);
                    }
                }
            }
            "additionalProperties" => {
                let listed = schema.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if listed.is_some_and(|l| l.contains_key(name)) {
                        continue;
                    }
                    if rule == &Value::Bool(false) {
                        found.push(format!("{at}: {name} is not allowed"));
                    } else {
                        check(root, rule, value, &format!("{at}.{name}"), found);
                    }
                }
            }
            "items" => {
                for (i, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, value, &format!("{at}[{i}]"), found);
                }
            }
            "minItems" | "maxItems" => {
                if let Some(items) = value.as_array() {
                    let (n, bound) = (items.len() as u64, rule.as_u64().unwrap());
                    if (keyword == "minItems" && n < bound) || (keyword == "maxItems" && n > bound)
                    {
                        found.push(format!("{at}: {n} items, {keyword} is {bound}"));
                    }
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|v| v < rule.as_f64().unwrap()) {
                    found.push(format!("{at}: {value} is below {rule}"));
                }
            }
            "const" => {
                if value != rule {
                    found.push(format!("{at}: {value} is not {rule}"));
                }
            }
            // The alternatives of our schemas exclude each other.
            "anyOf" | "oneOf" => {
                let fits = |inner: &Value| {
                    let mut inside = Vec::new();
                    check(root, inner, value, at, &mut inside);
                    inside.is_empty()
                };
                if !rule.as_array().unwrap().iter().any(fits) {
                    found.push(format!("{at}: {value} fits none of {rule}"));
                }
            }
            other => panic!("the validator does not know `{other}`"),
        }
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the validator does not know the type {other}"),
    }
}

#[test]
fn the_validator_finds_departures() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "$ref": "#/$defs/pair" }, "b": { "type": ["number", "null"] } },
        "$defs": { "pair": { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 2, "maxItems": 2 } }
    });
    assert_eq!(
        departures(&schema, &serde_json::json!({ "a": [1, 2], "b": null })),
        Vec::<String>::new()
    );
    for wrong in [
        serde_json::json!({}),
        serde_json::json!({ "a": [1] }),
        serde_json::json!({ "a": [1, 2, 3] }),
        serde_json::json!({ "a": [1, "2"] }),
        serde_json::json!({ "a": [1, -2] }),
        serde_json::json!({ "a": [1, 2], "b": "x" }),
        serde_json::json!({ "a": [1, 2], "c": 1 }),
    ] {
        assert_eq!(departures(&schema, &wrong).len(), 1, "{wrong}");
    }
}
