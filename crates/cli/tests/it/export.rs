//! `fullpipe export`: each form from a result, from a trace file and from a capture, and what is
//! refused.

use std::fs;

use fullpipe_grounds::Sim;
use fullpipe_results::run::{Options, run_on};
use fullpipe_run::{Ground, LookField, Looks, RunSpec};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::Time;

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

/// Traces of a run cannot be made again from what is exported of them, and no result from a figure.
#[test]
fn what_a_result_keeps_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let run = fullpipe(
        dir.path(),
        &[
            "run",
            "lossy.toml",
            "--out",
            "r",
            "--set",
            "duration=2s",
            "--quiet",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    std::os::unix::fs::symlink("r/manifest.json", dir.path().join("manifest.svg")).unwrap();
    for (args, file) in [
        (
            &["export", "r", "--to", "csv"][..],
            "r/series/case-0000-seed1.parquet",
        ),
        (&["export", "r", "--to", "csv"], "r/runs.parquet"),
        (&["figure", "r", "window"], "manifest.svg"),
    ] {
        let before = fs::read(dir.path().join(file)).unwrap();
        let refused = fullpipe(dir.path(), &[args, &["--out", file]].concat());
        assert_eq!(refused.code, 2, "{file}: {}", refused.stderr);
        let words = format!("{file}` is a file of a result\n  hint: name another");
        assert!(refused.stderr.contains(&words), "{}", refused.stderr);
        assert_eq!(fs::read(dir.path().join(file)).unwrap(), before, "{file}");
    }
    let beside = ["export", "r", "--to", "csv", "--out", "r/series/mine.csv"];
    assert_eq!(fullpipe(dir.path(), &beside).code, 0);
}

/// Packets and states in one file, where a capture of either kind has the packets; elsewhere it is
/// said what stores them.
#[test]
fn a_qlog_has_the_packets_that_were_stored() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    for (out, captures) in [
        ("none", &[][..]),
        ("pcap", &["--pcap"]),
        ("qlog", &["--qlog"]),
    ] {
        let args = [&["run", "lossy.toml", "--out", out, "--quiet"], captures].concat();
        let run = fullpipe(dir.path(), &args);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    let export = |from: &str, more: &[&str]| {
        let args = [&["export", from, "--to", "qlog", "--flow", "second"], more].concat();
        let done = fullpipe(dir.path(), &args);
        assert_eq!(done.code, 0, "{}", done.stderr);
        (done.stdout, done.stderr)
    };
    let of = |log: &str, name: &str| -> Vec<serde_json::Value> {
        let records = log.split('\u{1e}').skip(1);
        let records = records.map(|r| serde_json::from_str::<serde_json::Value>(r).unwrap());
        let named = |r: &serde_json::Value| r["name"].as_str().is_some_and(|n| n.starts_with(name));
        records.filter(named).collect()
    };
    let states = "recovery:congestion_state_updated";

    let (stored, said) = export("qlog", &[]);
    let file = dir
        .path()
        .join("qlog/captures/case-0000-seed1-flow1-second.sqlog");
    assert_eq!(
        (&stored, said.as_str()),
        (&fs::read_to_string(file).unwrap(), "")
    );
    let (made, said) = export("pcap", &[]);
    assert_eq!(said, "");
    let packets = of(&stored, "transport:");
    assert!(packets.len() > 1000 && of(&stored, states).len() > 2);
    assert_eq!(of(&made, "transport:"), packets);
    assert_eq!(of(&made, states), of(&stored, states));

    let (plain, said) = export("none", &[]);
    assert_eq!(of(&plain, "transport:").len(), 0);
    assert_eq!(of(&plain, states), of(&stored, states));
    assert_eq!(
        said,
        "states without packets, which were not stored: `run --qlog` stores them, where the ground \
         has captures\n"
    );
    let (_, said) = export("qlog", &["--every", "100ms"]);
    assert_eq!(said, "states without packets: `--every` leaves them out\n");
    // Of a file alone nobody knows what run it is of, nor whether it is of one.
    let (_, said) = export("qlog/series/case-0000-seed1.parquet", &[]);
    assert_eq!(said, "states without packets: a trace file holds none\n");
}

/// A number of the kernel's and one that it has not, ten times a second.
#[test]
fn what_a_kernel_showed_leaves_as_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(LOSSY, "lossy.toml", &Overrides::default()).unwrap();
    let looked = |spec: &RunSpec| {
        let mut outcome = Sim.run(spec).unwrap();
        for f in &mut outcome.flows {
            let fields = [("rcv_space", "byte"), ("total_rto", "")];
            f.looks = Looks::new(fields.map(|(name, unit)| LookField { name, unit }));
            for i in 0..30 {
                f.looks.push(
                    Time::from_secs_f64(f64::from(i) * 0.1),
                    [Some(14_600), None],
                );
            }
        }
        Ok(outcome)
    };
    let out = dir.path().join("r");
    let options = Options {
        out: Some(&out),
        ..Options::default()
    };
    run_on(&scenario, &options, &looked).unwrap();
    let export = |args: &[&str]| fullpipe(dir.path(), &[&["export"], args].concat());
    let csv = export(&["r", "--to", "csv", "--tcp-info"]);
    assert_eq!(csv.code, 0, "{}", csv.stderr);
    let lines: Vec<&str> = csv.stdout.lines().collect();
    let first = ["flow,time_s,rcv_space,total_rto", "main,0,14600,"];
    assert_eq!((lines.len(), &lines[..2]), (61, &first[..]));
    let file = "r/series/case-0000-seed1.tcp_info.parquet";
    let alone = export(&[file, "--to", "csv", "--tcp-info"]);
    assert_eq!(alone.stdout, csv.stdout, "{}", alone.stderr);
    // The last of each second, and no more than were asked for.
    let args = ["--tcp-info", "--flow", "second", "--every", "1s"];
    let thin = export(&[&["r", "--to", "csv"], &args[..]].concat());
    let times = thin
        .stdout
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(1).unwrap());
    assert_eq!(times.collect::<Vec<_>>(), ["0.9", "1.9", "2.9"]);
    for (args, words) in [
        (&["--to", "qlog"][..], "one form: `--to csv`"),
        (
            &["--to", "csv", "--flow", "third"],
            "there are: main, second",
        ),
    ] {
        let refused = export(&[&["r", "--tcp-info"], args].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
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
    refused(
        &["r", "--to", "csv", "--case", "7"],
        "there are: case 0 seed 1\n",
    );
    refused(
        &["r", "--to", "csv", "--every", "0ms"],
        "hint: leave `--every` out for every row",
    );
    refused(
        &["lossy.toml", "--to", "csv"],
        "qlog, pcap and text are not read\n  hint: a flow of another program is judged while it runs",
    );
    refused(&["r/runs.parquet", "--to", "csv"], "no trace");
    let tcp_info = ["r", "--to", "csv", "--tcp-info"];
    refused(&tcp_info, "runs on ground `kernel` have them");
    refused(&[&["r/runs.parquet"], &tcp_info[1..]].concat(), "times");
    refused(
        &["nowhere", "--to", "csv"],
        "`nowhere`: no such file or directory",
    );
}

/// Of many runs the first are named, and how many more there are.
#[test]
fn runs_that_are_not_named_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let run = [
        "run",
        "lossy.toml",
        "--out",
        "r",
        "--repeat",
        "9",
        "--quiet",
    ];
    assert_eq!(fullpipe(dir.path(), &run).code, 0);
    let refused = fullpipe(dir.path(), &["export", "r", "--to", "csv", "--case", "99"]);
    assert_eq!(refused.code, 2);
    let words = "case 0 seed 8 and 1 more\n";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}

#[test]
fn a_log_that_was_removed_can_be_made_again() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let run = ["run", "lossy.toml", "--out", "r", "--qlog", "--quiet"];
    assert_eq!(fullpipe(dir.path(), &run).code, 0);
    for file in fs::read_dir(dir.path().join("r/captures")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let export = |form: &str| {
        let args = ["export", "r", "--to", form, "--flow", "main"];
        fullpipe(dir.path(), &args)
    };
    let refused = export("qlog");
    assert_eq!(refused.code, 2);
    let hint = "hint: `fullpipe run SCENARIO --out DIR --qlog --resume` makes it again";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    for form in ["csv", "xplot"] {
        let done = export(form);
        assert_eq!(done.code, 0, "{form}: {}", done.stderr);
    }
    let again = [&run[..], &["--resume"]].concat();
    assert_eq!(fullpipe(dir.path(), &again).code, 0);
    assert_eq!(export("qlog").code, 0);
}
