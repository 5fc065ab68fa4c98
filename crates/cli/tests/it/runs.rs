//! Whole runs: exit codes, what is kept, what is not repeated.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fullpipe_results::run::{Options, run_on};
use fullpipe_run::{Fidelity, Ground, RunSpec};
use fullpipe_scenario::{Overrides, Scenario};

use crate::process::{SMALL, command, finished, fullpipe, write};
use crate::schema::holds;

const HOPELESS: &str = r#"
[[expect]]
metric = "goodput_mbps"
within = [11, 12]
source = "more than the path carries"
"#;

/// Many runs of some length: 40 seeds of a minute at 100 Mbit/s.
const LONG: &str = r#"name = "long"
duration = "60s"
seeds = 40

[path]
rate = "100Mbit/s"
rtt = "40ms"
buffer = "1BDP"
loss = 1e-5

[[flow]]
name = "main"
stack = "reno"
"#;

/// Every file of a directory that depends on scenario and seeds alone, with its content.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(at) = left.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                left.push(path);
            } else if name != "timing.json" && name != ".lock" {
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn assert_same_files(a: &Path, b: &Path) {
    let (a, b) = (files(a), files(b));
    let names = |f: &[(String, Vec<u8>)]| f.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    for ((name, x), (_, y)) in a.iter().zip(&b) {
        assert!(x == y, "{name} differs");
    }
}

#[test]
fn a_failed_expectation_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", &format!("{SMALL}{HOPELESS}"));
    let ended = fullpipe(dir.path(), &["run", "small.toml"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("1 of 1 expectations FAILED"),
        "{}",
        ended.stdout
    );
    let ended = fullpipe(dir.path(), &["run", "small.toml", "--format", "csv"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("FAIL small: "), "{}", ended.stderr);
    let ended = fullpipe(
        dir.path(),
        &["run", "small.toml", "--format", "json", "--quiet"],
    );
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("FAIL small: "), "{}", ended.stderr);
}

#[test]
fn check_finds_every_mistake_and_counts_what_would_run() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let ended = fullpipe(dir.path(), &["check", "small.toml", "--set", "seeds=3"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(
        ended.stdout,
        "small.toml: ok: 1 case x 3 seeds = 3 runs, 0 expectations\n"
    );
    write(
        dir.path(),
        "wrong.toml",
        &SMALL.replace("40ms", "40").replace("1BDP", "1BPD"),
    );
    let ended = fullpipe(dir.path(), &["check", "wrong.toml", "small.toml"]);
    assert_eq!(ended.code, 2);
    assert_eq!(
        ended.stderr.matches("error: wrong.toml:").count(),
        2,
        "{}",
        ended.stderr
    );
    assert!(
        ended.stdout.starts_with("small.toml: ok"),
        "{}",
        ended.stdout
    );
}

/// `check` says of a study what `run` says of it.
#[test]
fn a_study_is_checked_as_it_is_run() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let study = "name = \"both\"\nabout = \"Two\"\nstudy = [\"small.toml\", \"nosuch\"]\n";
    write(dir.path(), "study.toml", study);
    let [checked, run] = ["check", "run"].map(|command| {
        let ended = fullpipe(dir.path(), &[command, "study.toml"]);
        assert_eq!(ended.code, 2, "{command}: {}", ended.stderr);
        ended.stderr
    });
    let why = "study.toml:3: `study = [\"small.toml\", \"nosuch\"]`: there is no scenario `nosuch`";
    assert!(checked.contains(why), "{checked}");
    assert_eq!(checked, run);
}

#[test]
fn a_result_does_not_depend_on_the_number_of_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = "[matrix]\n\"flow.main.stack\" = [\"reno\", \"highspeed\", \"scalable\"]\n";
    write(
        dir.path(),
        "small.toml",
        &format!("{SMALL}{matrix}").replace("buffer", "loss = 1e-3\nbuffer"),
    );
    for (jobs, out) in [("1", "a"), ("2", "b"), ("1", "c")] {
        let ended = fullpipe(
            dir.path(),
            &[
                "run",
                "small.toml",
                "--repeat",
                "2",
                "--jobs",
                jobs,
                "--out",
                out,
            ],
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    assert_same_files(&dir.path().join("a"), &dir.path().join("b"));
    assert_same_files(&dir.path().join("a"), &dir.path().join("c"));
    let names: Vec<String> = files(&dir.path().join("a"))
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    for name in [
        "manifest.json",
        "runs.parquet",
        "series/case-0002-seed2.parquet",
        "figures/overview.svg",
        "figures/overview.png",
        "figures/case-0001-highspeed.svg",
        "figures/case-0001-highspeed.png",
    ] {
        assert!(
            names.iter().any(|n| n == name),
            "{name} is not among {names:?}"
        );
    }
}

#[test]
fn several_scenarios_get_one_directory_each() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    write(
        dir.path(),
        "other.toml",
        &SMALL.replace("\"small\"", "\"other\""),
    );
    let ended = fullpipe(
        dir.path(),
        &["run", "small.toml", "other.toml", "--out", "out"],
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for name in ["small", "other"] {
        let figures = dir.path().join("out").join(name).join("figures");
        assert!(figures.join("case-0000.svg").is_file());
        assert!(
            !figures.join("overview.svg").exists(),
            "one case needs no overview"
        );
    }
}

/// A queue that nothing enters has no delay: no threshold has a say in that.
#[test]
fn a_metric_that_one_side_lacks_is_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name = \"u\"\nduration = \"2s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n\
                [[traffic]]\nname = \"u\"\nkind = \"udp\"\nrate = \"8Mbit/s\"\n\
                spacing = \"poisson\"\n";
    write(dir.path(), "u.toml", text);
    let delay = ["--all", "--metric", "queueing_delay_ms.mean"];
    for (seeds, words) in [
        ("2", "undefined on one side, perhaps by chance"),
        ("5", "UNDEFINED on one side"),
    ] {
        for (out, on) in [("a", "true"), ("b", "false")] {
            let out = format!("{out}{seeds}");
            let set = format!("traffic.u.enabled={on}");
            let run = ["run", "u.toml", "--repeat", seeds, "--out", &out, "-q"];
            let ended = fullpipe(dir.path(), &[&run[..], &["--set", &set]].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
        }
        let sides = [format!("a{seeds}"), format!("b{seeds}")];
        let line = ["compare", &sides[0], &sides[1]];
        let compared = fullpipe(dir.path(), &[&line[..], &delay].concat());
        assert!(compared.stdout.contains(words), "{}", compared.stdout);
        assert!(!compared.stdout.contains("so many"), "{}", compared.stdout);
    }
}

#[test]
fn results_compare() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    for (out, rate) in [("a", "10Mbit/s"), ("b", "10Mbit/s"), ("c", "10.2Mbit/s")] {
        let set = format!("path.rate={rate}");
        let ended = fullpipe(
            dir.path(),
            &["run", "small.toml", "--set", &set, "--out", out, "-q"],
        );
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    }
    let same = fullpipe(dir.path(), &["compare", "a", "b"]);
    assert_eq!(same.code, 0, "{}{}", same.stdout, same.stderr);
    assert!(
        same.stdout.contains("agree: no difference in "),
        "{}",
        same.stdout
    );
    let different = fullpipe(
        dir.path(),
        &[
            "compare",
            "a",
            "c",
            "--metric",
            "goodput_mbps",
            "--threshold",
            "1%",
        ],
    );
    assert_eq!(different.code, 1, "{}", different.stdout);
    assert!(
        different
            .stdout
            .contains("DISAGREE: 1 of 1 numbers differ beyond"),
        "{}",
        different.stdout
    );
    let within = fullpipe(
        dir.path(),
        &[
            "compare",
            "a",
            "c",
            "--metric",
            "goodput_mbps",
            "--threshold",
            "1%",
            "--threshold",
            "goodput_mbps=5%",
        ],
    );
    assert_eq!(within.code, 0, "{}", within.stdout);
    let drawn = fullpipe(dir.path(), &["compare", "a", "c", "--figures", "f"]);
    assert!(
        drawn.stderr.contains("page: f/compare.html"),
        "{}",
        drawn.stderr
    );
    let page = std::fs::read_to_string(dir.path().join("f/compare.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("they differ</b>"),
        "{page}"
    );
    assert!(page.contains("<td>goodput_mbps (Mbit/s)</td>"), "{page}");
    // The same words as on the terminal and in the pictures, and which directory is which.
    let told = fullpipe(dir.path(), &["compare", "a", "c"]).stdout;
    // Every number is in one of the counts.
    let (_, counts) = told.split_once("AGREE: ").unwrap();
    let parts = counts.trim().split(", ");
    let first = |part: &str| part.split(' ').next().unwrap().parse::<usize>().unwrap();
    let all = counts.split(' ').nth(2).unwrap().parse::<usize>().unwrap();
    assert!(counts.ends_with(" are the same\n"), "{told}");
    assert_eq!(parts.map(first).sum::<usize>(), all, "{told}");
    let row = told
        .lines()
        .find(|line| line.contains(" goodput_mbps "))
        .unwrap();
    let verdict = row.trim_end().rsplit("  ").next().unwrap();
    assert!(verdict.contains("5 %"), "{row}");
    for words in [
        "<h2>a and c: ",
        "A: a, small on sim<br>B: c, small on sim",
        "<th>A</th><th>B</th>",
        verdict,
        ">A</text>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<td>timeouts"), "{page}");
    // How they are judged, too.
    let judged = told.lines().find(|l| l.starts_with("judged by: ")).unwrap();
    assert!(page.contains(&format!("<p>{judged}</p>")), "{page}");
    // A table that is wider than a window scrolls alone.
    let scrolls = page.matches("<div class=wide><table>").count();
    assert!(
        scrolls > 0 && scrolls == page.matches("<table").count(),
        "{page}"
    );
    assert!(page.contains(".wide{overflow-x:auto}"), "{page}");
    // What differs in the settings, as on the terminal.
    let setting = different.stdout.lines().find(|l| l.contains(" -> "));
    let setting = setting.unwrap().replace("->", "-&gt;");
    assert!(page.contains(&setting), "{setting}: {page}");
    let json = fullpipe(dir.path(), &["compare", "a", "c", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["agree"], false);
    assert!(json["rows"].as_array().unwrap().len() > 20);
}

/// Of the case with the large packets half is told, and that it was not what the scenario says.
#[test]
fn flagged_cases_are_compared_only_if_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{SMALL}\n[matrix]\n\"path.mtu\" = [1500, 9000]\n");
    let scenario = Scenario::parse(&text, "small.toml", &Overrides::default()).unwrap();
    let untrue = |spec: &RunSpec| {
        let mut outcome = fullpipe_grounds::Sim.run(spec).unwrap();
        if spec.flows[0].sender.packet() > 1500 {
            outcome.flows[0].totals.delivered_measured /= 2;
            outcome.fidelity = Some(Fidelity {
                unplanned_drops: 1,
                ..Fidelity::default()
            });
        }
        Ok(outcome)
    };
    let grounds: [(&str, &dyn Ground); 2] = [("a", &fullpipe_grounds::Sim), ("b", &untrue)];
    let keep = |name: &str, scenario: &Scenario, ground: &dyn Ground| {
        let out = dir.path().join(name);
        let options = Options {
            out: Some(&out),
            ..Options::default()
        };
        run_on(scenario, &options, ground).unwrap();
    };
    for (name, ground) in grounds {
        keep(name, &scenario, ground);
    }
    // Where nothing else is there, nobody knows; where another case parts, it does.
    let flagged_alone = text.replace("1500, 9000", "9000");
    let parts_too = text.replace("1500, 9000", "1400, 9000");
    // A case that one side alone has parts them like any other.
    for (name, text, ground) in [
        ("g", &flagged_alone, &fullpipe_grounds::Sim as &dyn Ground),
        ("h", &parts_too, &untrue),
    ] {
        let scenario = Scenario::parse(text, "small.toml", &Overrides::default()).unwrap();
        keep(name, &scenario, ground);
    }
    let ended = fullpipe(dir.path(), &["compare", "g", "h"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    for said in ["only in B: path.mtu = 1400", "DISAGREE: 1 on one side only"] {
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
    let apart = |spec: &RunSpec| {
        let mut outcome = untrue(spec)?;
        outcome.flows[0].totals.delivered_measured /= 2;
        Ok(outcome)
    };
    for (text, ground, names, code) in [
        (flagged_alone, &untrue as &dyn Ground, ["c", "d"], 5),
        (parts_too, &apart, ["e", "f"], 1),
    ] {
        let scenario = Scenario::parse(&text, "small.toml", &Overrides::default()).unwrap();
        keep(names[0], &scenario, &fullpipe_grounds::Sim);
        keep(names[1], &scenario, ground);
        let args = ["compare", names[0], names[1], "--metric", "goodput_mbps"];
        let ended = fullpipe(dir.path(), &args);
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
    }
    let only = ["compare", "a", "b", "--metric", "goodput_mbps"];
    let counted = fullpipe(dir.path(), &only);
    assert_eq!(counted.code, 5, "{}{}", counted.stdout, counted.stderr);
    let left_out = "left out, because a run was not what the scenario says (`--with-flagged` counts \
                    them):\n  path.mtu=9000\n";
    assert!(counted.stdout.contains(left_out), "{}", counted.stdout);
    let summary = "\nagree: no difference in 1 number\n";
    assert!(counted.stdout.contains(summary), "{}", counted.stdout);
    let all = fullpipe(dir.path(), &[&only[..], &["--with-flagged"]].concat());
    assert_eq!(all.code, 1, "{}", all.stdout);
    let summary = "DISAGREE: 1 of 2 numbers differ";
    assert!(all.stdout.contains(summary), "{}", all.stdout);
    assert!(!all.stdout.contains("left out"), "{}", all.stdout);
    let json = [&only[..], &["--format", "json", "--figures", "pictures"]].concat();
    let json = fullpipe(dir.path(), &json);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    holds("comparison", &json);
    let left_out = serde_json::json!([{ "path.mtu": 9000 }]);
    assert_eq!(
        (&json["agree"], &json["left_out"]),
        (&true.into(), &left_out)
    );
    let page = std::fs::read_to_string(dir.path().join("pictures/compare.html")).unwrap();
    assert!(page.contains("Left out, because"), "{page}");
    let marked = |mtu: u32| page.contains(&format!("mtu {mtu}; NOT VALID"));
    assert!(marked(9000) && !marked(1500), "{page}");
}

#[test]
fn a_file_is_no_result() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    for args in [
        &["report", "small.toml"][..],
        &["figure", "small.toml", "window"],
    ] {
        let refused = fullpipe(dir.path(), args);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let words = "`small.toml` holds no result: there is no `manifest.json`\n  hint: ";
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    std::fs::create_dir(dir.path().join("mine")).unwrap();
    write(dir.path(), "mine/thesis.tex", "do not touch");
    let ended = fullpipe(dir.path(), &["run", "small.toml", "--out", "mine"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("holds no result") && ended.stderr.contains("hint:"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        std::fs::read_to_string(dir.path().join("mine/thesis.tex")).unwrap(),
        "do not touch"
    );
}

/// Starts `LONG`, waits until some runs are kept, sends a signal, and returns how it ended.
#[cfg(unix)]
fn stopped_by(signal: &str, dir: &Path) -> (Option<i32>, String) {
    let child = command(
        dir,
        &["run", "long.toml", "--jobs", "1", "--out", "stopped"],
    )
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let kept = dir.join("stopped/runs");
    let patience = Instant::now();
    while std::fs::read_dir(&kept).map_or(0, Iterator::count) < 2 {
        assert!(
            patience.elapsed() < Duration::from_secs(60),
            "no run was kept within a minute"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_is_finished_and_resumes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "long.toml", LONG);
    let (code, stderr) = stopped_by("-INT", dir.path());
    assert_eq!(code, Some(130), "{stderr}");
    assert!(
        stderr.contains("of 40 runs") && stderr.contains("--resume"),
        "{stderr}"
    );
    let kept = std::fs::read_dir(dir.path().join("stopped/runs"))
        .unwrap()
        .count();
    assert!((2..40).contains(&kept), "{kept}");
    let args = ["run", "long.toml", "--out", "stopped", "--resume"];
    let resumed = finished(command(dir.path(), &args).output().unwrap());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let line = format!("long: {} runs and {kept} taken over", 40 - kept);
    assert!(resumed.stderr.contains(&line), "{line}: {}", resumed.stderr);
    assert_eq!(
        fullpipe(dir.path(), &["run", "long.toml", "--out", "whole", "-q"]).code,
        0
    );
    assert_same_files(&dir.path().join("stopped"), &dir.path().join("whole"));
}

#[cfg(unix)]
#[test]
fn a_killed_run_resumes_to_the_same_result() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "long.toml", LONG);
    let (code, _) = stopped_by("-KILL", dir.path());
    assert_eq!(code, None, "a killed process has no exit code");
    let unfinished = fullpipe(dir.path(), &["compare", "stopped", "stopped"]);
    assert_eq!(unfinished.code, 2, "{}", unfinished.stderr);
    assert!(
        unfinished.stderr.contains("--resume"),
        "{}",
        unfinished.stderr
    );
    let resumed = fullpipe(
        dir.path(),
        &["run", "long.toml", "--out", "stopped", "--resume"],
    );
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("taken over"), "{}", resumed.stderr);
    assert_eq!(
        fullpipe(dir.path(), &["run", "long.toml", "--out", "whole", "-q"]).code,
        0
    );
    assert_same_files(&dir.path().join("stopped"), &dir.path().join("whole"));
}

#[cfg(unix)]
#[test]
fn a_full_or_forbidden_disk_is_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    // Nothing can be created below a file, whoever asks.
    let ended = fullpipe(
        dir.path(),
        &["run", "small.toml", "--out", "small.toml/out"],
    );
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("cannot create `small.toml/out`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_scenario_comes_from_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str], text: &str| {
        let mut command = crate::process::command(dir.path(), args);
        let piped = std::process::Stdio::piped;
        let command = command.stdin(piped()).stdout(piped()).stderr(piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
        drop(stdin);
        crate::process::finished(child.wait_with_output().unwrap())
    };
    let ended = run(&["run", "-", "-q"], SMALL);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with("small: one flow"),
        "{}",
        ended.stdout
    );
    // Read twice, once to see whether it is a study.
    assert_eq!(run(&["check", "-"], SMALL).code, 0);
    let broken = SMALL.replace("40ms", "40 apples");
    let ended = run(&["run", "-", "-q"], &broken);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.starts_with("error: standard input:7: "),
        "{}",
        ended.stderr
    );
}

/// Beside the cases stands how many seeds there are, not how many there were at first; what is
/// held against another case is called a difference or a ratio, with four digits.
#[test]
fn seeds_by_precision_and_differences_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name = \"sure\"\nduration = \"4s\"\nseeds = 2\n[path]\nrate = \"10Mbit/s\"\n\
                rtt = \"40ms\"\nloss = 0.003\n[[flow]]\nstack = \"reno\"\n[matrix]\n\
                \"path.buffer\" = [\"0.5BDP\", \"2BDP\"]\n[measure]\nprecision = \"0.01%\"\n\
                max_seeds = 4\n[[expect]]\nmetric = \"goodput_mbps\"\n\
                where = { \"path.buffer\" = \"0.5BDP\" }\n\
                agrees_with = { \"path.buffer\" = \"2BDP\" }\nsource = \"s\"\n";
    write(dir.path(), "sure.toml", text);
    let ended = fullpipe(dir.path(), &["run", "sure.toml", "-q"]);
    assert!(ended.code < 2, "{}", ended.stderr);
    let out = &ended.stdout;
    assert!(out.contains("2 cases, 4 seeds, by precision"), "{out}");
    assert!(
        out.contains("goodput_mbps: difference from path.buffer = 2BDP"),
        "{out}"
    );
    let accepted = out.lines().find(|l| l.contains("difference from")).unwrap();
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).count();
    assert!(
        accepted.split(' ').all(|word| digits(word) <= 5),
        "{accepted}"
    );
}

/// A table that goes into a pipe or a log is read later, when nothing else of the run is left.
#[test]
fn a_table_in_a_pipe_says_that_nothing_else_is_left_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let said = |args: &[&str]| {
        let ended = fullpipe(dir.path(), &[&["run", "small.toml"], args].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let lines = ended.stderr.lines();
        lines
            .filter(|line| line.starts_with("kept nothing: `--out DIR`"))
            .count()
    };
    assert_eq!(said(&[]), 1);
    for args in [&["-q"][..], &["--out", "r"], &["--format", "csv"]] {
        assert_eq!(said(args), 0, "{args:?}");
    }
}

/// Slow start without an interface loses a part of a window that the same host with one does not:
/// the table says so where that is all that was lost.
#[test]
fn a_burst_of_slow_start_is_named_with_what_spaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let fast = SMALL
        .replace("10Mbit/s", "1Gbit/s")
        .replace("1BDP", "0.1BDP");
    write(dir.path(), "fast.toml", &fast);
    let remark = |set: &[&str]| {
        let ended = fullpipe(dir.path(), &[&["run", "fast.toml", "-q"], set].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let lines = ended.stdout.lines();
        let mut lines = lines.filter(|line| line.contains("slow start ended at a window of"));
        let line = lines.next().map(str::to_owned);
        assert_eq!(lines.next(), None);
        line
    };
    let said = remark(&[]).expect("a remark");
    for words in [
        "its host has no interface",
        "`nic_rate = \"1Gbit/s\"`",
        "`pacing = true`",
    ] {
        assert!(said.contains(words), "{said}");
    }
    for spaced in ["flow.main.nic_rate=1Gbit/s", "flow.main.pacing=true"] {
        assert_eq!(remark(&["--set", spaced]), None, "{spaced}");
    }
    assert_eq!(
        remark(&["--set", "path.loss=0.001"]),
        None,
        "other losses are no burst's"
    );
}
