//! Everything that is printed as JSON is what `fullpipe schema` says, member by member.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::process::{SMALL, fullpipe, write};
use crate::server::Server;

/// Holds what a command printed against a schema: it fits, and no member of it could have another
/// name.
pub fn holds(name: &str, printed: &Value) {
    let ended = fullpipe(Path::new("."), &["schema", name]);
    let schema: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors = schema.iter_errors(printed);
    let errors: Vec<String> = errors
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{printed:#}");
    let mut passed = Vec::new();
    rename_each(&mut printed.clone(), &[], &schema, &mut passed, printed);
    assert!(passed.is_empty(), "{name}: another name passes: {passed:?}");
}

/// Objects whose members are data: keys of a scenario, variables of a controller, the kernel's
/// names.
const MAPS: [&str; 6] = [
    "params", "left_out", "var", "tcp_info", "rfc4898", "counters",
];

fn rename_each(
    part: &mut Value,
    at: &[String],
    schema: &Validator,
    passed: &mut Vec<String>,
    whole: &Value,
) {
    let inner = |name: &str| [at, &[name.to_owned()]].concat();
    // Of the object, or of the list that it is in.
    let mut names = at.iter().rev().take(2);
    match part {
        Value::Object(_) if names.any(|name| MAPS.contains(&name.as_str())) => {}
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let mut other = whole.clone();
                let parent = other.pointer_mut(&pointer(at)).unwrap();
                let parent: &mut Map<String, Value> = parent.as_object_mut().unwrap();
                let moved = parent.remove(name).unwrap();
                parent.insert(format!("{name}_"), moved);
                if schema.is_valid(&other) {
                    passed.push(pointer(&inner(name)));
                }
                rename_each(value, &inner(name), schema, passed, whole);
            }
        }
        // The first and the last are enough.
        Value::Array(items) => {
            let last = items.len().saturating_sub(1);
            for (i, item) in items.iter_mut().enumerate() {
                if i == 0 || i == last {
                    rename_each(item, &inner(&i.to_string()), schema, passed, whole);
                }
            }
        }
        _ => {}
    }
}

fn pointer(at: &[String]) -> String {
    at.iter().map(|name| format!("/{name}")).collect()
}

const TWO_CASES: &str = r#"
[[traffic]]
name = "ping"
kind = "ping"
interval = "100ms"

[[flow]]
name = "other"
stack = "cubic"

[matrix]
"flow.main.stack" = ["reno", "highspeed(low_window=31)"]

[[expect]]
metric = "goodput_mbps"
flow = "main"
within = [0.1, 10]
source = "the path carries 10 Mbit/s"
"#;

fn printed(dir: &Path, args: &[&str]) -> Vec<Value> {
    let ended = fullpipe(dir, args);
    let whole: Result<Value, _> = serde_json::from_str(&ended.stdout);
    match whole {
        Ok(Value::Array(all)) => all,
        Ok(one) => vec![one],
        Err(_) => {
            let lines = ended.stdout.lines();
            let lines = lines.map(|l| serde_json::from_str(l).expect(&ended.stderr));
            lines.collect()
        }
    }
}

#[test]
fn results_and_what_is_made_of_them_are_what_their_schemas_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "small.toml", &format!("{SMALL}{TWO_CASES}"));
    let run = ["run", "small.toml", "--quiet", "--repeat", "3"];
    let with = |more: &[&str]| printed(dir, &[&run[..], more].concat());
    for result in with(&["--format", "json", "--out", "a"]) {
        holds("result", &result);
    }
    let several = printed(
        dir,
        &["run", "small.toml", "small.toml", "--format", "json"],
    );
    assert_eq!(several.len(), 2);
    holds("result", &several[1]);
    let lines = with(&["--format", "ndjson"]);
    assert_eq!(lines.len(), 2);
    lines.iter().for_each(|line| holds("case", line));
    with(&["--format", "json", "--set", "path.loss=1%", "--out", "b"]);
    let compared = &printed(dir, &["compare", "a", "b", "--format", "json"])[0];
    assert_eq!(compared["agree"], false, "both kinds of verdicts are there");
    holds("comparison", compared);
    let agree = [
        "agree",
        "small.toml",
        "--grounds",
        "sim,udp",
        "--format",
        "json",
    ];
    let short = ["--set", "duration=1s", "--out", "agreement"];
    holds(
        "agreement",
        &printed(dir, &[&agree[..], &short].concat())[0],
    );
}

#[test]
fn what_two_hosts_print_is_what_their_schemas_say() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = here.path();
    let server = Server::start(dir, &["--files", there.path().to_str().unwrap()]);
    let to = server.address.as_str();
    let send = ["send", to, "--time", "1s", "--bitrate", "20Mbit/s"];
    for reverse in [&[][..], &["-R"]] {
        let args = [&send[..], reverse, &["--format", "ndjson", "-i", "200ms"]].concat();
        let lines = printed(dir, &args);
        let (last, intervals) = lines.split_last().unwrap();
        assert!(intervals.len() > 2, "{intervals:?}");
        intervals.iter().for_each(|line| holds("interval", line));
        holds("case", last);
    }
    holds(
        "result",
        &printed(dir, &[&send[..], &["--json"]].concat())[0],
    );
    std::fs::create_dir(dir.join("d")).unwrap();
    for name in ["d/one", "d/two"] {
        write(dir, name, "data");
    }
    let place = format!("{to}:");
    for (from, more) in [("d/one", &[][..]), ("d", &["--dry-run"]), ("d", &[])] {
        let args = [&["send", from, &place, "--format", "json"], more].concat();
        holds("copy", &printed(dir, &args)[0]);
    }
    let ping = ["ping", to, "-c", "3", "-i", "10ms", "--format", "json"];
    holds("ping", &printed(dir, &ping)[0]);
}

#[test]
fn lists_and_laws_are_what_their_schemas_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for name in ["stacks", "scenarios", "metrics"] {
        holds(name, &printed(dir, &["list", name, "--format", "json"])[0]);
    }
    let law = ["law", "reno", "cubic-linux", "cubic", "--format", "json"];
    let path = ["--window", "20,100", "--rate=50Mbit/s", "--rtt=50ms"];
    for more in [&path[..2], &path] {
        holds("law", &printed(dir, &[&law[..], more].concat())[0]);
    }
}

/// A name for everything that is printed as JSON, and each with a line.
#[test]
fn the_names_are_listed() {
    let ended = fullpipe(Path::new("."), &["schema"]);
    let names: Vec<&str> = ended
        .stdout
        .lines()
        .skip(2)
        .filter_map(|l| l.split_once("  "))
        .map(|(name, of)| {
            assert!(of.contains('`') || name == "scenario", "{name}: {of}");
            name
        })
        .collect();
    assert_eq!(names.len(), 25, "{}", ended.stdout);
    for name in names {
        let text = fullpipe(Path::new("."), &["schema", name]).stdout;
        let schema: Value = serde_json::from_str(&text).expect(name);
        jsonschema::meta::validate(&schema).unwrap();
    }
}

#[test]
fn a_renamed_member_is_found() {
    let wrong = |what: Value| std::panic::catch_unwind(|| holds("doctor", &what)).is_err();
    let finding = |name: &str| {
        json!({ "fullpipe": "1", "findings": [
            { "area": "a", name: "n", "state": "yes", "found": "f", "remedy": null }
        ]})
    };
    assert!(!wrong(finding("name")));
    assert!(wrong(finding("title")));
}
