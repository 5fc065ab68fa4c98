//! `fullpipe falsify`: tables, JSON, exit codes, what is kept.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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

/// A bound that cannot be exceeded has its other end to be drawn, and no world to be named where a
/// key would make both sides of a comparison alike.
#[test]
fn what_is_advised_can_be_followed() {
    let dir = tempfile::tempdir().unwrap();
    let physics = "\n[[expect]]\nmetric = \"utilization\"\nat_most = 1\n";
    write(dir.path(), "most.toml", &format!("{SMALL}{physics}"));
    let ended = falsify(dir.path(), &["most.toml", "--quiet"]);
    assert_eq!(ended.code, 1);
    let part = "leaves out values of the wrong worlds, `at_least` between 0.";
    assert!(ended.stdout.contains(part), "{}", ended.stdout);
    let matrix = "\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"cubic\"]\n";
    let ratio = "\n[[expect]]\nmetric = \"goodput_mbps\"\nwhere = { \"flow.main.stack\" = \"cubic\" \
                 }\nratio_to = { \"flow.main.stack\" = \"reno\" }\nwithin = [0.1, 10]\n";
    write(dir.path(), "ratio.toml", &format!("{SMALL}{matrix}{ratio}"));
    let ended = falsify(dir.path(), &["ratio.toml", "--quiet"]);
    let (_, advised) = ended.stdout.split_once("[[negative]]").unwrap();
    assert!(!advised.contains("not in the case"), "{advised}");
}

#[test]
fn what_is_left_out_is_said_and_several_are_counted_together() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = "\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"cubic\"]\n\n[quick]\n\
                  \"flow.main.stack\" = [\"reno\"]\n";
    let of_cubic = "\n[[expect]]\nmetric = \"goodput_mbps\"\nwhere = { \"flow.main.stack\" = \
                    \"cubic\" }\nat_least = 8\n";
    write(
        dir.path(),
        "cubic.toml",
        &format!("{SMALL}{matrix}{of_cubic}"),
    );
    let ended = falsify(dir.path(), &["cubic.toml", "--quick", "--quiet"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("leaves out 1 expectation"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("keep a case in [quick]"),
        "{}",
        ended.stderr
    );

    write(
        dir.path(),
        "both.toml",
        &format!("{SMALL}{matrix}{of_cubic}{TWO}"),
    );
    write(dir.path(), "two.toml", &format!("{SMALL}{TWO}"));
    let args = [
        "both.toml",
        "two.toml",
        "--quick",
        "--every-world",
        "--quiet",
    ];
    let ended = falsify(dir.path(), &args);
    assert_eq!(ended.code, 1);
    for part in [
        "1 expectation was not looked at, since --quick or --set leaves it out (line ",
        "2 scenarios: 4 expectations against 14 wrong worlds, 0 of them named by the files\n",
        "     2 toothless\n",
        "     1 left out by --quick or --set\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

/// What was looked at in one of two cases is not called unnoticed.
#[test]
fn a_world_that_is_not_judged_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let rates = "\n[matrix]\n\"path.rate\" = [\"10Mbit/s\", \"20Mbit/s\"]\n";
    let open = "\n[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 3\n";
    write(dir.path(), "two.toml", &format!("{SMALL}{rates}{open}"));
    let args = ["two.toml", "--quick", "--quiet", "--out", "teeth"];
    let ended = falsify(dir.path(), &args);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let of_nonsense = |text: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains("main: a nonsense law"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let line = of_nonsense(&ended.stdout);
    assert!(line.contains("not judged"), "{}", ended.stdout);
    assert!(
        !ended.stdout.contains("No expectation notices"),
        "{}",
        ended.stdout
    );
    let page = std::fs::read_to_string(dir.path().join("teeth/falsification.html")).unwrap();
    assert!(of_nonsense(&page).contains("<td>not judged</td>"), "{page}");
    let every = falsify(dir.path(), &[&args[..], &["--every-world"]].concat());
    assert!(!every.stdout.contains("not judged"), "{}", every.stdout);
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

/// Asymmetry is that of two flows: a world without one of them is held against what is left, and is
/// refused where nothing is.
#[test]
fn a_negative_is_not_dropped_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    let pair = "\n[[flow]]\nname = \"b\"\nstack = \"cubic\"\n\n[[expect]]\nname = \"pair\"\n\
                metric = \"asymmetry\"\nwithin = [0, 0.5]\n";
    let alone = "\n[[expect]]\nname = \"shared\"\nmetric = \"goodput_mbps\"\nflow = \"main\"\nat_most \
                 = 8\n";
    let away = "\n[[negative]]\nabout = \"b away\"\nset = { \"flow.b.enabled\" = false }\n";
    let left_out = "`pair` (line 18) is not held against the world \"b away\" of line 29, in which it \
                    is invalid: asymmetry compares two flows, there are 1\n";
    write(
        dir.path(),
        "both.toml",
        &format!("{SMALL}{pair}{alone}{away}"),
    );
    for more in [&["--dry-run"][..], &[]] {
        let ended = falsify(dir.path(), &[&["both.toml", "--quiet"], more].concat());
        assert!(
            ended.stdout.contains(left_out),
            "{}{}",
            ended.stdout,
            ended.stderr
        );
    }
    let json = falsify(dir.path(), &["both.toml", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    holds("falsification", &json);
    assert_eq!(json["worlds"][0]["about"], "b away");
    assert_eq!(json["worlds"][0]["left_out"][0]["name"], "pair");

    write(dir.path(), "pair.toml", &format!("{SMALL}{pair}{away}"));
    for more in [&["--dry-run"][..], &["--format", "json"], &[]] {
        let ended = falsify(dir.path(), &[&["pair.toml", "--quiet"], more].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
        let why = "pair.toml:23: [[negative]] \"b away\": every expectation is invalid in it: \
                   asymmetry compares two flows, there are 1\n";
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}

/// It has no `--resume`: the same command goes on.
#[test]
fn whoever_interrupts_it_is_told_how_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "two.toml", &format!("{SMALL}{TWO}"));
    // More than a minute of short runs: those that have begun are finished.
    let line = [
        "falsify",
        "two.toml",
        "--repeat",
        "20000",
        "--set",
        "path.loss=0.01",
    ];
    let mut command = command(dir.path(), &line);
    command.env("XDG_CACHE_HOME", dir.path().join("cache"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = finished(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let hint = "hint: finished runs are kept: the same command goes on with them";
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
}
