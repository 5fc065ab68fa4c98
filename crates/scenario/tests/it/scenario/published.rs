//! What is published of the format: the reference page, the schema, the built-in scenarios.

use super::flow::SWITCHES;
use super::matrix::CASES;
use super::{CONTRACT, SMALL, read};
use fullpipe_scenario::{Overrides, Scenario};

/// `UPDATE_DOCS=1 cargo test -p fullpipe-scenario` writes the page anew.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let page = Scenario::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(
        kept == page,
        "docs/scenario.md is out of date: UPDATE_DOCS=1 cargo test -p fullpipe-scenario"
    );
}

#[test]
fn the_example_of_the_reference_page_is_valid() {
    let page = Scenario::reference();
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    assert_eq!(read(example).cases.len(), 4);
}

#[test]
fn built_in_scenarios_are_valid() {
    use fullpipe_scenario::{Loaded, builtin, load};
    for (name, text) in builtin::BUILT_IN {
        assert_eq!(builtin::find(name), Some(*text));
        let quick = Overrides {
            quick: true,
            ..Overrides::default()
        };
        for overrides in [Overrides::default(), quick] {
            let scenario = match load(name, &overrides).unwrap_or_else(|e| panic!("{e}")) {
                Loaded::Scenario(scenario) => scenario,
                Loaded::Study(study) => {
                    assert_eq!(
                        (study.name.as_str(), study.about.is_empty()),
                        (*name, false)
                    );
                    assert!(study.scenarios.len() > 1);
                    continue;
                }
            };
            assert_eq!(scenario.name, *name);
            assert_eq!(scenario.warnings, [], "{name}");
            assert_eq!(scenario.origin, format!("built-in:{name}"));
            assert!(
                !scenario.expectations.is_empty() && !scenario.about.is_empty(),
                "{name}"
            );
            assert!(
                scenario.expectations.iter().all(|e| !e.source.is_empty()),
                "{name}: a bound without a source"
            );
        }
    }
    assert_eq!(builtin::find("early-los"), None);
}

/// The JSON Schema, as an editor would apply it.
fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(Scenario::json_schema().as_value()).unwrap()
}

fn as_json(text: &str) -> serde_json::Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

#[test]
fn the_schema_accepts_what_is_valid() {
    let schema = schema();
    let built_in = fullpipe_scenario::builtin::BUILT_IN
        .iter()
        .map(|(_, text)| *text);
    for text in built_in.chain([CONTRACT, SMALL, CASES, SWITCHES]) {
        let problems: Vec<String> = schema
            .iter_errors(&as_json(text))
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(
            problems.is_empty(),
            "{}: {problems:#?}",
            text.lines().nth(1).unwrap()
        );
    }
}

/// An expression over metrics may stand for a metric, in expectations and in reports.
#[test]
fn the_schema_accepts_expressions() {
    let schema = schema();
    for metric in [
        "utilization - 0.1 * rtt_inflation",
        "2*utilization",
        "max(jain, 0.5)",
        "-asymmetry",
    ] {
        for table in ["expect", "report"] {
            let text = format!("{SMALL}\n[[{table}]]\nmetric = \"{metric}\"\n");
            let text = match table {
                "report" => text + "figure = \"matrix\"\n",
                _ => text + "at_least = 0\n",
            };
            assert!(schema.is_valid(&as_json(&text)), "{table}: {metric}");
        }
    }
}

#[test]
fn the_schema_allows_the_empty_lists_that_the_reader_allows() {
    let schema = schema();
    for (lines, allowed) in [
        ("drop = []", true),
        ("change = []", true),
        ("drop = { segment = [] }", false),
        ("drop = { time = [] }", false),
        ("[measure]\nprecision_of = []", false),
    ] {
        let text = SMALL.replace("stack = \"reno\"", &format!("stack = \"reno\"\n{lines}"));
        let read = Scenario::parse(&text, "f", &Overrides::default());
        assert_eq!(read.is_ok(), allowed, "{lines}: {:?}", read.err());
        assert_eq!(schema.is_valid(&as_json(&text)), allowed, "{lines}");
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema = schema();
    for (good, bad) in [
        ("\"60s\"", "60"),
        ("\"60s\"", "\"60\""),
        ("100Mbit/s", "100Mbps"),
        ("name = \"x\"", "nmae = \"x\""),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nmtu = 9"),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nloss = 2"),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nqueue = \"codell\""),
        ("stack = \"reno\"", "stack = 1"),
        ("stack = \"reno\"", "stack = \"reno\"\npreset = \"1999\""),
        (
            "stack = \"reno\"",
            "stack = \"reno\"\ndrop = { segmnet = 1 }",
        ),
        (
            "stack = \"reno\"",
            "stack = \"reno\"\n[[expect]]\nmetric = \"speed\"",
        ),
        (
            "stack = \"reno\"",
            "stack = \"reno\"\n[[expect]]\nmetric = \"1 + 1\"",
        ),
    ] {
        assert!(SMALL.contains(good));
        let text = SMALL.replace(good, bad);
        assert!(!schema.is_valid(&as_json(&text)), "{bad}");
    }
}
