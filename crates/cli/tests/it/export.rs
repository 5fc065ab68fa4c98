//! `fullpipe export`: each form from a result, from a trace file and from a capture, and what is
//! refused.

use std::fs;

use crate::process::{fullpipe, write};

/// Two flows with losses, a row per ACK.
const LOSSY: &str = r#"name = "lossy"
duration = "4s"

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1BDP"
loss = 0.003

[[flow]]
name = "main"
stack = "cubic"
preset = "2026"

[[flow]]
name = "second"
stack = "reno"
preset = "2026"
start = "1s"

[measure]
trace = "full"
"#;

#[test]
fn a_run_leaves_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let run = fullpipe(
        dir.path(),
        &["run", "lossy.toml", "--out", "r", "--pcap", "--quiet"],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let export = |args: &[&str]| fullpipe(dir.path(), &[&["export"], args].concat());

    let csv = export(&["r", "--to", "csv"]);
    assert_eq!(csv.code, 0, "{}", csv.stderr);
    let header = csv.stdout.lines().next().unwrap();
    assert!(header.starts_with("flow,time_s,cwnd,cwnd_min,cwnd_max,ssthresh,rtt_ms,"));
    assert!(
        header.ends_with(",phase,event,var_a,var_b,var_k,var_w_est,var_w_max"),
        "{header}"
    );
    let width = header.split(',').count();
    assert!(csv.stdout.lines().all(|l| l.split(',').count() == width));
    let of = |name: &str| csv.stdout.lines().filter(|l| l.starts_with(name)).count();
    assert!(of("main,") > 1000 && of("second,") > 500);
    assert!(csv.stdout.lines().any(|l| l.contains(",loss+")));

    // The file alone says the same.
    let file = "r/series/case-0000-seed1.full.parquet";
    assert_eq!(export(&[file, "--to", "csv"]).stdout, csv.stdout);
    let thin = export(&[file, "--to", "csv", "--flow", "second", "--every", "100ms"]);
    let rows = thin.stdout.lines().count();
    assert!((20..200).contains(&rows), "{rows}");

    let done = export(&["r", "--to", "qlog", "--flow", "main", "--out", "main.sqlog"]);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, ""),
        "{}",
        done.stderr
    );
    let log = fs::read_to_string(dir.path().join("main.sqlog")).unwrap();
    assert!(log.starts_with('\u{1e}') && log.contains("\"qlog_version\":\"0.3\""));
    assert!(log.contains("recovery:metrics_updated") && log.contains("fullpipe:loss_event"));

    // With a capture the segments are there, and one line for each of them.
    let plot = export(&["r", "--to", "xplot", "--flow", "main"]);
    assert!(
        plot.stdout
            .starts_with("timeval unsigned\ntitle\nmain of lossy\n")
    );
    assert!(plot.stdout.ends_with("go\n"));
    let count = |what: &str| plot.stdout.lines().filter(|l| l.starts_with(what)).count();
    assert!(count("darrow") > 1000 && count("darrow") == count("uarrow"));
    assert!(plot.stdout.contains("\nR\n") && plot.stdout.contains("\nS\n"));
    let lines = export(&[file, "--to", "xplot", "--flow", "main"]);
    assert!(!lines.stdout.contains("darrow") && lines.stdout.contains("\nyellow\n"));
}

#[test]
fn what_is_not_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let run = fullpipe(dir.path(), &["run", "lossy.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let refused = |args: &[&str], words: &str| {
        let done = fullpipe(dir.path(), &[&["export"], args].concat());
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    };
    refused(&["r", "--to", "qlog"], "--flow: main, second");
    refused(
        &["r", "--to", "csv", "--flow", "third"],
        "there are: main, second",
    );
    refused(&["r", "--to", "csv", "--case", "7"], "case 0 seed 1");
    refused(&["lossy.toml", "--to", "csv"], "not a whole Parquet file");
    refused(&["r/runs.parquet", "--to", "csv"], "no trace");
    refused(&["nowhere", "--to", "csv"], "nowhere");
}
