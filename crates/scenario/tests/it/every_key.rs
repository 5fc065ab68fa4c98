//! What is said of every key when its value or its name is wrong, word by word.

use std::fmt::Write as _;

use fullpipe_scenario::{Overrides, Scenario};
use serde_json::Value;

/// Tables of a file, and where a line of each goes: `%` in [`FILE`]'s words.
const TABLES: &[(&str, &str)] = &[
    ("path", "[path]"),
    ("flow", "[[flow]]"),
    ("traffic", "[[traffic]]"),
    ("link", "[[link]]"),
    ("route", "[[route]]"),
    ("measure", "[measure]"),
    ("expect", "[[expect]]"),
    ("report", "[[report]]"),
];

/// Lines that a table cannot do without.
fn needed(table: &str) -> &'static [&'static str] {
    match table {
        "" => &[r#"name = "x""#, r#"duration = "60s""#],
        "path" => &[r#"rate = "100Mbit/s""#, r#"rtt = "80ms""#],
        "flow" => &[r#"stack = "reno""#],
        "traffic" => &[
            r#"name = "t""#,
            r#"kind = "short-flows""#,
            r#"stack = "reno""#,
            r#"size = "10 segments""#,
            "per_second = 5",
        ],
        "link" => &[r#"name = "l""#, r#"rate = "10Mbit/s""#, r#"delay = "5ms""#],
        "route" => &[r#"flow = "main""#, r#"forward = ["l"]"#],
        "expect" => &[r#"metric = "goodput_mbps""#, "at_least = 1"],
        _ => &[],
    }
}

/// A file with this line in a table, in place of the one that sets the same key.
fn file(table: &str, key: &str, line: &str) -> String {
    let mut text = String::new();
    let tables = [("", "")].iter().chain(TABLES);
    for (name, head) in tables {
        let optional = !matches!(*name, "" | "path" | "flow");
        let routed = table == "route" && *name == "link";
        let routes = table == "link" && *name == "route";
        if optional && *name != table && !routed && !routes {
            continue;
        }
        let own = |needed: &&&str| *name != table || !needed.starts_with(&format!("{key} "));
        let lines = needed(name).iter().filter(own);
        let lines: Vec<&str> = lines
            .copied()
            .chain((*name == table).then_some(line))
            .collect();
        let _ = writeln!(text, "{head}\n{}", lines.join("\n"));
    }
    text
}

/// Keys of the tables that a key may be.
fn inside(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    let own = schema.get("properties").and_then(Value::as_object);
    let items = || inside(schema.get("items")?);
    let any = || schema.get("anyOf")?.as_array()?.iter().find_map(inside);
    own.or_else(items).or_else(any)
}

/// What is said of a key if the line stands in its table.
fn said(out: &mut String, table: &str, key: &str, line: &str) {
    let text = file(table, key, line);
    let _ = writeln!(out, "{line}");
    let Err(wrong) = Scenario::parse(&text, "f", &Overrides::default()) else {
        let _ = writeln!(out, "    fine");
        return;
    };
    for d in wrong.0.iter().take(3) {
        let _ = write!(out, "    {}: {}", d.key, d.message);
        let _ = writeln!(
            out,
            "{}",
            d.hint.as_ref().map_or(String::new(), |h| format!(" | {h}"))
        );
    }
}

/// Lines that make something wrong of a key: no value of any kind, and a slip of its name.
fn slips(key: &str) -> [String; 3] {
    [
        format!("{key} = \"x y\""),
        format!("{key} = 1e300"),
        format!("{key}s = 1"),
    ]
}

#[test]
fn what_is_said_of_every_key() {
    let schema = Scenario::json_schema();
    let top = inside(schema.as_value()).unwrap();
    let mut out = String::new();
    let mut keys = 0;
    for (table, head) in [("", "top")].iter().chain(TABLES) {
        let own = match *table {
            "" => top,
            table => inside(&top[table]).unwrap(),
        };
        let plain = |key: &&String| !TABLES.iter().any(|(table, _)| table == key);
        for key in own.keys().filter(|key| !table.is_empty() || plain(key)) {
            keys += 1;
            let _ = writeln!(out, "\n# {head} {key}");
            for line in slips(key) {
                said(&mut out, table, key, &line);
            }
            for (inner, schema) in inside(&own[key]).into_iter().flatten() {
                keys += 1;
                for line in slips(inner) {
                    said(&mut out, table, key, &format!("{key} = {{ {line} }}"));
                }
                for innermost in inside(schema).into_iter().flat_map(|keys| keys.keys()) {
                    keys += 1;
                    for line in slips(innermost) {
                        let line = format!("{key} = {{ {inner} = {{ {line} }} }}");
                        said(&mut out, table, key, &line);
                    }
                }
            }
        }
    }
    assert!(keys > 200, "{keys} keys");
    insta::assert_snapshot!("every_key", out);
}
