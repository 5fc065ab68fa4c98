//! `fullpipe falsify`: tables, JSON, exit codes, what is kept.

use serde_json::Value;

use crate::process::{Finished, SMALL, command, finished, write};
use crate::schema::holds;

/// The first holds for any law and any path that carries something.
const TWO: &str = r#"
[[expect]]
name = "something arrives"
metric = "goodput_mbps"
at_least = 0.1

[[expect]]
name = "the path is full"
metric = "goodput_mbps"
at_least = 8
"#;

/// Runs it with a cache of its own.
fn falsify(dir: &std::path::Path, args: &[&str]) -> Finished {
    let mut command = command(dir, &[&["falsify"], args].concat());
    command.env("XDG_CACHE_HOME", dir.join("cache"));
    finished(command.output().unwrap())
}

#[test]
fn a_toothless_expectation_is_exit_code_1_and_its_remedy_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "two.toml", &format!("{SMALL}{TWO}"));
    let ended = falsify(dir.path(), &["two.toml", "--quiet"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn what_one_odd_world_alone_fails_is_shown_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let text = TWO.replace("at_least = 0.1", "at_least = 3");
    write(dir.path(), "two.toml", &format!("{SMALL}{text}"));
    let ended = falsify(dir.path(), &["two.toml", "--quiet"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let only = "fails only in: main: a fixed window of ten segments";
    assert_eq!(ended.stdout.matches(only).count(), 2, "{}", ended.stdout);
    let last = "every expectation can fail, 1 only where one thing is wrong\n";
    assert!(ended.stdout.ends_with(last), "{}", ended.stdout);
    let json = falsify(dir.path(), &["two.toml", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let weak = |i: usize| json["expectations"][i].get("weak").cloned();
    assert_eq!((weak(0), weak(1)), (Some(Value::from(true)), None));
}

#[test]
fn every_number_is_in_the_json_and_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    let why = "toothless = \"the path is up\"";
    let text = TWO.replace("at_least = 0.1", &format!("at_least = 0.1\n{why}"));
    write(dir.path(), "two.toml", &format!("{SMALL}{text}"));
    let json = |args: &[&str]| -> Value {
        let ended = falsify(dir.path(), args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let args = ["two.toml", "--format", "json"];
    let first = json(&args);
    holds("falsification", &first);
    assert_eq!(first["expectations"][0]["toothless"], true);
    assert_eq!(first["expectations"][0]["excuse"], "the path is up");
    assert_eq!(first["expectations"][1]["toothless"], false);

    // The second time nothing is run.
    let again = json(&args);
    assert_eq!(
        (&again["made"], &again["reused"]),
        (&Value::from(0), &first["made"])
    );
    // Nor where only a bound has changed.
    let tighter = text.replace("at_least = 8", "at_least = 8.1");
    write(dir.path(), "two.toml", &format!("{SMALL}{tighter}"));
    assert_eq!(json(&args)["made"], 0);
    let fresh = json(&["two.toml", "--format", "json", "--fresh"]);
    assert_eq!(fresh["made"], first["made"]);
}

#[test]
fn the_page_lies_beside_the_json() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "two.toml", &format!("{SMALL}{TWO}"));
    let ended = falsify(dir.path(), &["two.toml", "--quiet", "--out", "teeth"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    let read = |name: &str| std::fs::read_to_string(dir.path().join("teeth").join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("falsification.json")).unwrap();
    assert_eq!(json["expectations"][0]["toothless"], true);
    let page = read("falsification.html");
    assert!(
        page.contains("something arrives") && page.contains("toothless"),
        "{page}"
    );
}
