//! `fullpipe figure`: whose numbers are drawn, and where they go.

use std::fs;
use std::path::Path;

use crate::process::{Finished, fullpipe, write};

/// `late` is in one of two cases; datagrams and pings beside.
const SOMETIMES: &str = r#"name = "sometimes"
duration = "3s"

[path]
rate = "10Mbit/s"
rtt = "20ms"

[[flow]]
name = "main"
stack = "reno"

[[flow]]
name = "late"
stack = "cubic"

[[traffic]]
name = "cbr"
kind = "udp-on-off"
rate = "1Mbit/s"
on = "500ms"
off = "500ms"

[[traffic]]
name = "ping"
kind = "ping"
interval = "100ms"

[matrix]
"flow.late.enabled" = [true, false]
"#;

fn result(dir: &Path) {
    write(dir, "sometimes.toml", SOMETIMES);
    let run = fullpipe(dir, &["run", "sometimes.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

fn figure(dir: &Path, args: &[&str]) -> Finished {
    fullpipe(dir, &[&["figure", "r"], args].concat())
}

/// The trace is thinned, and the pings alone are there one by one.
#[test]
fn a_distribution_of_round_trips_says_whose_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    result(dir);
    let ended = figure(dir, &["cdf", "--out", "c.svg"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let svg = fs::read_to_string(dir.join("c.svg")).unwrap();
    assert!(svg.contains(">ping: round-trip time (ms)<"), "{svg}");
}

/// Where a flow does not exist another's number must not stand in its place.
#[test]
fn a_case_without_the_flow_has_no_number_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    result(dir);
    for metric in ["goodput_mbps", "rtt_ms.p95", "goodput_mbps / 50"] {
        for kind in ["matrix", "bars"] {
            let of = ["--metric", metric, "--of", "late", "--out", "f.csv"];
            let ended = figure(dir, &[&[kind][..], &of[..]].concat());
            assert_eq!(ended.code, 0, "{metric} {kind}: {}", ended.stderr);
            let csv = fs::read_to_string(dir.join("f.csv")).unwrap();
            let row = |of: &str| csv.lines().find(|line| line.contains(of)).unwrap();
            assert_eq!(csv.lines().count(), 3, "{metric} {kind}: {csv}");
            assert!(!row("true").ends_with(",,,"), "{csv}");
            assert!(row("false").ends_with("false,,,") || row("false").ends_with("false,,,,"));
        }
        let of = [
            "--metric",
            metric,
            "--of",
            "late",
            "--where",
            "enabled=false",
        ];
        let ended = figure(dir, &[&["bars"][..], &of[..]].concat());
        assert_eq!(ended.code, 2, "{metric}: {}", ended.stderr);
    }
    // Nor that of a flow in the place of a link's, nor the other way round.
    for (metric, of) in [("rtt_ms.p95", "bottleneck"), ("utilization", "main")] {
        let ended = figure(dir, &["matrix", "--metric", metric, "--of", of]);
        assert_eq!(ended.code, 2, "{metric} {of}");
        let said = format!("no case has a value of `{metric}` of `{of}`");
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    }
}

/// Rates of datagrams are there for whoever asks for them; of pings there are none.
#[test]
fn traffic_is_drawn_over_time_where_it_has_a_rate() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    result(dir);
    for kind in ["goodput", "load"] {
        let ended = figure(
            dir,
            &[
                kind,
                "--of",
                "cbr",
                "--where",
                "enabled=true",
                "--out",
                "f.csv",
            ],
        );
        assert_eq!(ended.code, 0, "{kind}: {}", ended.stderr);
        let csv = fs::read_to_string(dir.join("f.csv")).unwrap();
        let value = if kind == "load" { 3 } else { 2 };
        let rate = |line: &str| line.split(',').nth(value).unwrap().parse::<f64>().unwrap();
        let rates: Vec<f64> = csv.lines().skip(1).map(rate).collect();
        assert!(
            rates.iter().any(|r| *r > 0.9) && rates.contains(&0.0),
            "{csv}"
        );
        assert!(!csv.contains("main"), "{csv}");
    }
    // Nobody asked for them.
    assert_eq!(figure(dir, &["goodput", "--out", "f.csv"]).code, 0);
    assert!(
        !fs::read_to_string(dir.join("f.csv"))
            .unwrap()
            .contains("cbr")
    );
    let ended = figure(dir, &["goodput", "--of", "ping"]);
    assert_eq!(ended.code, 2);
    for words in [
        "the result holds no goodput of `ping` over time",
        "there are those of `main`, `late`, `cbr`",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// A rate is of an interval, and stands once, at its end.
#[test]
fn a_table_of_rates_has_a_row_for_each_interval() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    result(dir);
    for (kind, at) in [("goodput", 1), ("load", 2)] {
        let ended = figure(
            dir,
            &[
                kind,
                "--of",
                "main",
                "--where",
                "enabled=false",
                "--out",
                "f.csv",
            ],
        );
        assert_eq!(ended.code, 0, "{kind}: {}", ended.stderr);
        let csv = fs::read_to_string(dir.join("f.csv")).unwrap();
        let time = |line: &str| line.split(',').nth(at).unwrap().parse::<f64>().unwrap();
        let times: Vec<f64> = csv.lines().skip(1).map(time).collect();
        // Of 3 s in twentieths.
        assert_eq!(times.len(), 20, "{kind}: {csv}");
        let is_end = |(i, t): (usize, &f64)| (t - 0.15 * (i + 1) as f64).abs() < 1e-9;
        assert!(times.iter().enumerate().all(is_end), "{kind}: {csv}");
    }
}

/// What did not end is there all the same.
#[test]
fn short_flows_of_which_none_ended_are_told_from_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mice = r#"
[[traffic]]
name = "mice"
kind = "short-flows"
size = "100MB"
every = "1s"
stack = "reno"
"#;
    write(dir, "sometimes.toml", &format!("{SOMETIMES}{mice}"));
    let run = fullpipe(dir, &["run", "sometimes.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for args in [&[][..], &["--of", "mice"], &["--where", "enabled=true"]] {
        let ended = figure(dir, &[&["distribution"], args].concat());
        assert_eq!(ended.code, 2);
        let words = "short flows none was completed";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let ended = figure(dir, &["distribution", "--of", "ping"]);
    let words = "no short flows `ping`\n  hint: there is `mice`\n";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

/// Sixty names would hide the remedy behind them.
#[test]
fn of_many_flows_some_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let flow = |i| format!("[[flow]]\nname = \"f{i}\"\nstack = \"reno\"\n");
    let flows: String = (0..15).map(flow).collect();
    let path = "[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n";
    let head = "name = \"sometimes\"\nduration = \"1s\"\n";
    write(dir, "sometimes.toml", &format!("{head}{path}{flows}"));
    let run = fullpipe(dir, &["run", "sometimes.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let ended = figure(dir, &["bars"]);
    let words = "is of several: f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11 and 3 more\n";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let ended = figure(dir, &["window", "--of", "g"]);
    assert!(
        ended.stderr.contains("`f11` and 3 more\n"),
        "{}",
        ended.stderr
    );
}
