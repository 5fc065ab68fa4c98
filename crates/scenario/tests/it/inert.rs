//! Keys that do nothing beside what else is set are warned of, and those alone: simulations tell.

use std::fmt::Write;

use fullpipe_scenario::{Overrides, Scenario};

/// Lines of `[path]`, and of the flow.
const PATHS: [(&str, &str); 13] = [
    (
        "reorder = { probability = 0.1, extra = \"30ms\" }\nreturn_loss = 0.5\nloss_of_acks = true",
        "",
    ),
    (
        "reorder = { probability = 0.05, extra = \"20ms\" }\nreturn_loss = 0.2\nloss_of_acks = true",
        "",
    ),
    (
        "reorder = { probability = 0.05, extra = \"4ms\" }",
        "ack_every = 4",
    ),
    (
        "loss = 0.01\nschedule = [{ at = \"3s\", outage = \"2s\" }]",
        "",
    ),
    (
        "loss = { model = \"gilbert-elliott\", to_bad = 0.004, to_good = 0.2 }",
        "",
    ),
    ("loss = 0.05", "size = \"40 segments\""),
    ("loss = 0.15", ""),
    ("schedule = [{ at = \"3s\", rate = \"300kbit/s\" }]", ""),
    (
        "schedule = [{ at = \"3s\", rtt = \"900ms\" }]",
        "min_rto = \"200ms\"",
    ),
    ("jitter = \"300ms\"", "min_rto = \"200ms\""),
    ("queue = { kind = \"codel\", ecn = true }", ""),
    ("loss = 0.001", "nic_rate = \"10Mbit/s\"\ntxqueuelen = 20"),
    ("loss = 0.002", "window = \"40 segments\""),
];

/// A key, two of its values, and lines beside which it does nothing and something.
struct Row {
    key: &'static str,
    values: [&'static str; 2],
    idle: &'static [&'static str],
    acts: &'static str,
}

const fn row(
    key: &'static str,
    values: [&'static str; 2],
    idle: &'static [&'static str],
    acts: &'static str,
) -> Row {
    Row {
        key,
        values,
        idle,
        acts,
    }
}

const BOTH: [&str; 2] = ["true", "false"];
const RULES: [&str; 2] = ["\"rfc\"", "\"linux\""];
const NO_RACK: &[&str] = &["recovery = \"sack\"", "recovery = \"newreno\""];
const NO_PROBE: &[&str] = &["recovery = \"sack\"\nprr = false", "recovery = \"newreno\""];
const NEWRENO: &[&str] = &["recovery = \"newreno\""];
const AT_ONCE: &[&str] = &["delayed_ack = false"];

const ROWS: [Row; 18] = [
    row("tlp", BOTH, NO_PROBE, "recovery = \"rack\""),
    // Linux asks for SACK, not for RACK.
    row("tlp", BOTH, NO_PROBE, "recovery = \"sack\""),
    row(
        "lost_retransmission",
        ["\"reduce\"", "\"ignore\""],
        NO_RACK,
        "recovery = \"rack\"",
    ),
    row("recover_from_loss", BOTH, NO_RACK, "recovery = \"rack\""),
    row(
        "loss_window",
        ["\"one\"", "\"flight\""],
        NO_RACK,
        "recovery = \"rack\"",
    ),
    row(
        "steady_newreno",
        BOTH,
        &["recovery = \"sack\"", "recovery = \"rack\""],
        NEWRENO[0],
    ),
    row(
        "frto_by",
        RULES,
        &["frto = false\nloss_window = \"one\""],
        "frto = true",
    ),
    row("undo_by", RULES, &["undo = false"], "undo = true"),
    row(
        "ack_delay",
        ["\"10ms\"", "\"200ms\""],
        AT_ONCE,
        "delayed_ack = true",
    ),
    row(
        "receiver",
        ["\"linux-2.2\"", "\"solaris\""],
        AT_ONCE,
        "delayed_ack = true",
    ),
    row("push", BOTH, AT_ONCE, "delayed_ack = true"),
    row(
        "handshake_ack",
        BOTH,
        &["handshake = false"],
        "handshake = true",
    ),
    row(
        "pacer",
        ["\"credit\"", "\"linux\""],
        &["pacing = false"],
        "pacing = true",
    ),
    row(
        "slow_start_limit",
        ["1", "8"],
        &["stack = \"reno-linux\""],
        "stack = \"reno\"",
    ),
    row(
        "decrease_base",
        ["\"cwnd\"", "\"sent\""],
        &[
            "stack = \"reno-linux\"",
            "stack = \"bbr\"",
            "stack = \"udt\"",
        ],
        "stack = \"reno\"",
    ),
    row(
        "hz",
        ["100", "1000"],
        &["timers = \"exact\""],
        "timers = \"wheel\"",
    ),
    row(
        "tso_autosize",
        BOTH,
        &["tso = \"off\""],
        "tso = \"64kB\"\npacing = true",
    ),
    row("ecn", BOTH, &[], ""),
];

/// What happens over a path: the flow's totals, and its largest window; and the warnings.
fn run(preset: &str, lines: &str, (path, flow): (&str, &str)) -> (String, Vec<String>) {
    let mut text =
        String::from("name = \"inert\"\nduration = \"8s\"\n[path]\nrate = \"5Mbit/s\"\n");
    writeln!(
        text,
        "rtt = \"60ms\"\nbuffer = \"20 packets\"\n{path}\n[[flow]]"
    )
    .unwrap();
    writeln!(text, "preset = \"{preset}\"\n{lines}").unwrap();
    let given = |line: &&str| {
        let key = line.split(' ').next().unwrap();
        let contradicts = key == "ack_every" && lines.contains("delayed_ack = false");
        !lines.contains(key) && !contradicts
    };
    for line in flow.lines().chain(["stack = \"reno\""]).filter(given) {
        writeln!(text, "{line}").unwrap();
    }
    text += "[measure]\ntrace = \"off\"\n";
    let scenario = Scenario::parse(&text, "inert.toml", &Overrides::default());
    let scenario = scenario.unwrap_or_else(|e| panic!("{text}\n{e}"));
    let outcome = fullpipe_sim::run(&scenario.cases[0].run_spec(1)).unwrap();
    let flow = &outcome.flows[0];
    let warnings = scenario.warnings.iter().map(ToString::to_string);
    (
        format!("{:?} {}", flow.totals, flow.cwnd_max),
        warnings.collect(),
    )
}

#[test]
fn a_key_that_is_warned_of_changes_nothing() {
    for row in &ROWS {
        for (idle, preset) in row.idle.iter().flat_map(|i| PRESETS.map(|p| (i, p))) {
            for path in PATHS {
                let [a, b] = row
                    .values
                    .map(|value| run(preset, &format!("{idle}\n{} = {value}", row.key), path));
                assert_eq!(a.0, b.0, "{preset} {} beside {idle}, {path:?}", row.key);
                let said = a.1.iter().chain(&b.1).any(|w| names(w, row.key));
                assert!(said, "{preset} {} beside {idle}: no warning", row.key);
            }
        }
    }
}

#[test]
fn a_key_that_changes_something_is_not_warned_of() {
    for row in &ROWS {
        let differs = |preset: &str, path: (&str, &str)| {
            let [a, b] = row.values.map(|value| {
                run(
                    preset,
                    &format!("{}\n{} = {value}", row.acts, row.key),
                    path,
                )
            });
            let differ = a.0 != b.0;
            let said = a.1.iter().chain(&b.1).find(|w| names(w, row.key));
            assert!(!differ || said.is_none(), "{} {path:?} {said:?}", row.key);
            differ
        };
        let mut all = PRESETS
            .iter()
            .flat_map(|preset| PATHS.map(|path| (*preset, path)));
        assert!(
            all.any(|(preset, path)| differs(preset, path)),
            "{} never acts",
            row.key
        );
    }
}

fn names(warning: &str, key: &str) -> bool {
    warning.contains(&format!(".{key}")) && warning.contains("changes nothing")
}

const PRESETS: [&str; 3] = ["2003", "2026", "linux"];

/// What does nothing in one case does something in another: no word about it.
#[test]
fn a_matrix_in_which_a_key_acts_somewhere_needs_no_warning() {
    let warnings = |queues: &str, frto: &str, quick: bool| {
        let text = format!(
            r#"
name = "matrix"
duration = "1s"
[path]
rate = "5Mbit/s"
rtt = "60ms"
buffer = "20 packets"
[[flow]]
name = "a"
stack = "reno"
ecn = true
frto_by = "linux"
[matrix]
"path.queue" = [{queues}]
"flow.a.frto" = [{frto}]
[quick]
"path.queue" = ["droptail"]
"flow.a.frto" = [false]
"#
        );
        let overrides = Overrides {
            quick,
            ..Overrides::default()
        };
        let scenario = Scenario::parse(&text, "matrix.toml", &overrides).unwrap();
        let texts = scenario.warnings.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>()
    };
    let marking = r#""droptail", { kind = "codel", ecn = true }"#;
    for quick in [false, true] {
        assert_eq!(warnings(marking, "true, false", quick), [""; 0]);
        let dull = warnings("\"droptail\", \"codel\"", "false", quick);
        assert!(dull.len() == 2, "{dull:?}");
        assert!(
            names(&dull[0], "ecn") && names(&dull[1], "frto_by"),
            "{dull:?}"
        );
    }
}
