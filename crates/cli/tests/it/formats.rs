//! The forms of a result.

use serde_json::Value;

use crate::process::{SMALL, command, finished, fullpipe, write};
use crate::schema::holds;

const TWO_CASES: &str = r#"
[matrix]
"flow.main.stack" = ["reno", "highspeed(low_window=31)"]

[[expect]]
metric = "goodput_mbps"
within = [5, 10]
source = "the path carries 10 Mbit/s"
"#;

fn stdout(args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", &format!("{SMALL}{TWO_CASES}"));
    let ended = fullpipe(dir.path(), args);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn json_has_the_names_of_the_contract_and_fits_its_schema() {
    for repeat in ["1", "3"] {
        let text = stdout(&["run", "small.toml", "--format", "json", "--repeat", repeat]);
        let result: Value = serde_json::from_str(&text).unwrap();
        holds("result", &result);
        assert_eq!(result["fullpipe"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            (&result["scenario"], &result["ground"]),
            (&"small".into(), &"sim".into())
        );
        let case = &result["cases"][1];
        assert_eq!(
            case["params"]["flow.main.stack"],
            "highspeed(low_window=31)"
        );
        assert_eq!(case["seeds"].as_array().unwrap().len().to_string(), repeat);
        let flow = &case["flows"][0];
        assert_eq!(
            (&flow["name"], &flow["stack"]),
            (&"main".into(), &"highspeed(low_window=31)".into())
        );
        for (path, sort) in [
            ("/goodput_mbps", "number"),
            ("/throughput_mbps", "number"),
            ("/rtt_ms/min", "number"),
            ("/rtt_ms/mean", "number"),
            ("/rtt_ms/p50", "number"),
            ("/rtt_ms/p95", "number"),
            ("/rtt_ms/p99", "number"),
            ("/cwnd_segments/mean", "number"),
            ("/cwnd_segments/max", "number"),
            ("/retransmits", "number"),
            ("/loss_events", "number"),
            ("/timeouts", "number"),
            ("/stability", "number or null"),
            ("/recovery_time_s", "number or null"),
            ("/completion_time_s", "number or null"),
        ] {
            let value = flow.pointer(path).unwrap_or_else(|| panic!("no {path}"));
            assert!(
                value.is_number() || value.is_null() && sort != "number",
                "{path}: {value}"
            );
        }
        assert_eq!(flow.get("goodput_mbps_ci95").is_some(), repeat != "1");
        let link = &case["links"][0];
        assert_eq!(link["name"], "bottleneck");
        for path in [
            "/utilization",
            "/drops",
            "/delivered_packets",
            "/queue_packets/mean",
            "/queue_packets/max",
        ] {
            assert!(link.pointer(path).is_some_and(Value::is_number), "{path}");
        }
        for name in [
            "jain",
            "asymmetry",
            "aggregate_goodput_mbps",
            "convergence_time_s",
        ] {
            assert!(case["metrics"].get(name).is_some(), "{name}");
        }
        for name in ["simulated_s", "wall_s", "packets_per_s"] {
            assert!(
                case[name].as_f64().is_some_and(|x| x > 0.0),
                "{name}: {}",
                case[name]
            );
        }
        let judged = &result["expectations"][0];
        assert_eq!(judged["pass"], true);
        assert_eq!(judged["bound"], serde_json::json!([5.0, 10.0]));
        assert!(
            judged["name"].is_string()
                && judged["observed"].is_number()
                && judged["params"].is_object()
        );
    }
}

#[test]
fn ndjson_has_one_case_per_line() {
    let text = stdout(&["run", "small.toml", "--format", "ndjson"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["scenario"], "small");
        assert_eq!(line["expectations"].as_array().unwrap().len(), 1);
        assert!(line["flows"][0]["goodput_mbps"].is_number());
    }
}

#[test]
fn csv_has_a_header_and_one_row_per_flow() {
    let text = stdout(&["run", "small.toml", "--format", "csv"]);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(
        rows[0].starts_with(
            "scenario,ground,case,flow.main.stack,seeds,flow,kind,stack,goodput_mbps,"
        ),
        "{}",
        rows[0]
    );
    assert!(
        rows[1].starts_with("small,sim,0,reno,1,main,flow,reno,"),
        "{}",
        rows[1]
    );
    assert!(
        rows[2].starts_with(
            "small,sim,1,highspeed(low_window=31),1,main,flow,highspeed(low_window=31),"
        ),
        "{}",
        rows[2]
    );
}

#[test]
fn several_scenarios_make_one_array() {
    let text = stdout(&["run", "small.toml", "small.toml", "--format", "json"]);
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results.as_array().unwrap().len(), 2);
    let text = stdout(&["run", "small.toml", "small.toml", "--format", "csv"]);
    assert_eq!(
        text.lines().filter(|l| l.starts_with("scenario,")).count(),
        1
    );
}

#[test]
fn the_table_names_the_stacks_and_the_verdict() {
    let text = stdout(&["run", "small.toml"]);
    for words in [
        "stack",
        "goodput",
        "Mbit/s",
        "reno",
        "highspeed(low_window=31)",
        "all 2 expectations passed",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
}

const FAILING: &str = r#"
[matrix]
"path.rtt" = ["20ms", "40ms"]

[[expect]]
metric = "utilization"
link = "bottleneck"
at_least = 0.9999
source = "nobody's"
"#;

/// Whatever the format, a log shows which case failed, what was seen and what was asked for.
#[test]
fn what_failed_is_said_once_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "gate.toml", &format!("{SMALL}{FAILING}"));
    for format in ["json", "ndjson", "csv"] {
        let args = ["run", "gate.toml", "-q", "--format", format];
        let ended = fullpipe(dir.path(), &args);
        assert_eq!(ended.code, 1);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ended.stderr);
        for (line, case) in lines.iter().zip(["rtt 20ms", "rtt 40ms"]) {
            let head = format!("FAIL small, {case}: utilization of bottleneck is 0.9");
            assert!(line.starts_with(&head), "{line}");
            assert!(
                line.ends_with("accepted: at least 0.9999 (nobody's)"),
                "{line}"
            );
        }
    }
    let ended = fullpipe(dir.path(), &["run", "gate.toml", "-q"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
}

#[test]
fn summaries_for_continuous_integration() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "gate.toml", &format!("{SMALL}{FAILING}"));
    write(dir.path(), "plain.toml", SMALL);
    let files = ["--junit", "report.xml", "--markdown", "summary.md"];
    let ended = fullpipe(
        dir.path(),
        &[&["run", "gate.toml", "plain.toml", "-q"], &files[..]].concat(),
    );
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let xml = read("report.xml");
    assert!(
        xml.contains("tests=\"2\" failures=\"2\" errors=\"0\""),
        "{xml}"
    );
    assert!(
        xml.contains("tests=\"1\" failures=\"0\" errors=\"0\""),
        "{xml}"
    );
    assert!(read("summary.md").starts_with("### small (sim)\n\n2 of 2 expectations FAILED\n"));
    // Steps of one job share the file.
    let again = [&["run", "plain.toml", "-q"], &files[2..]].concat();
    assert_eq!(fullpipe(dir.path(), &again).code, 0);
    assert_eq!(read("summary.md").matches("### small (sim)").count(), 3);
    // It is seen before the runs, which may take hours.
    let nowhere = ["run", "plain.toml", "-q", "--junit", "no/such/place.xml"];
    let ended = fullpipe(dir.path(), &nowhere);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (3, ""),
        "{}",
        ended.stderr
    );
    let wrong = [
        "run",
        "plain.toml",
        "-q",
        "--junit",
        "new.xml",
        "--prometheus",
        "127.0.0.1:1",
    ];
    assert_eq!(fullpipe(dir.path(), &wrong).code, 2);
    assert!(!dir.path().join("new.xml").exists());
    let ended = fullpipe(dir.path(), &nowhere);
    assert!(
        ended.stderr.contains("no/such/place.xml"),
        "{}",
        ended.stderr
    );
}

/// What cannot be written is not lost quietly: of a stdout that is closed, and of one that is full.
#[test]
fn output_that_goes_nowhere_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "s.toml", SMALL);
    let ended = |line: &str| {
        let program = command(dir.path(), &[]).get_program().to_owned();
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(dir.path()).env("FULLPIPE_CONFIG", "");
        finished(shell.arg("-c").arg(line).arg(program).output().unwrap())
    };
    for what in [
        "list stacks",
        "--help",
        "run s.toml -q",
        "run s.toml -q --format ndjson",
    ] {
        for (to, why) in [
            (">&-", "Bad file descriptor"),
            (">/dev/full", "No space left"),
        ] {
            let ended = ended(&format!("\"$0\" {what} {to}"));
            assert_eq!(ended.code, 3, "{what} {to}: {}", ended.stderr);
            let said = format!("error: cannot write to stdout: {why}");
            assert!(
                ended.stderr.contains(&said),
                "{what} {to}: {}",
                ended.stderr
            );
        }
        let ended = ended(&format!("\"$0\" {what} >/dev/null"));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{what}");
    }
    // Nothing to be written, nothing lost.
    let kept = ended("\"$0\" export s.toml --to nothing >&-");
    assert_eq!(kept.code, 2, "{}", kept.stderr);
}

/// Digits that only tell how a number was computed are not printed; the store has the doubles.
#[test]
fn numbers_have_fifteen_digits() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "s.toml", SMALL);
    for format in ["json", "ndjson", "csv"] {
        let run = ["run", "s.toml", "-q", "--format", format, "--repeat", "3"];
        let printed = fullpipe(dir.path(), &run).stdout;
        let words = printed.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        for word in words.filter(|w| w.contains('.') && w.parse::<f64>().is_ok()) {
            let digits = word.replace('.', "");
            assert!(
                digits.trim_start_matches('0').len() <= 15,
                "{format}: {word}"
            );
        }
    }
}
