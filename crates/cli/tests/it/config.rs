//! Defaults of flags from a file and the environment.

use std::path::Path;

use serde_json::Value;

use crate::process::{Finished, SMALL, command, finished, write};
use crate::schema::holds;

fn with(dir: &Path, variables: &[(&str, &str)], args: &[&str]) -> Finished {
    let mut command = command(dir, args);
    command.env("FULLPIPE_CONFIG", "config.toml");
    command.envs(variables.iter().copied());
    finished(command.output().unwrap())
}

fn folder(config: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "config.toml", config);
    write(dir.path(), "small.toml", SMALL);
    dir
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let dir = folder("[run]\nformat = \"csv\"\nset = [\"duration=2s\", \"path.mtu=9000\"]\n");
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        let ended = with(
            dir.path(),
            variables,
            &[&["run", "small.toml"], more].concat(),
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    assert!(run(&[], &[]).starts_with("scenario,ground,"));
    let object: Value =
        serde_json::from_str(&run(&[("FULLPIPE_RUN_FORMAT", "json")], &[])).unwrap();
    assert_eq!(
        object["cases"][0]["simulated_s"], 2.0,
        "both values of `set` are taken"
    );
    let table = run(&[("FULLPIPE_RUN_FORMAT", "json")], &["--format", "table"]);
    assert!(table.contains("goodput"), "{table}");
    let off = with(
        dir.path(),
        &[("FULLPIPE_CONFIG", "")],
        &["run", "small.toml"],
    );
    assert!(off.stdout.contains("goodput"), "{}", off.stdout);
}

#[test]
fn every_value_is_told_with_its_place() {
    let dir = folder("color = \"never\"\n[send]\nstack = \"bbr\"\n[tune.check]\njson = true\n");
    let variables = [("FULLPIPE_SEND_STACK", "htcp"), ("FULLPIPE_RUN_QUIET", "1")];
    let told = with(dir.path(), &variables, &["config"]).stdout;
    let rows: Vec<Vec<&str>> = told
        .lines()
        .skip(4)
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|c| !c.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        rows,
        [
            ["color", "never", "config.toml:1"],
            ["run.quiet", "true", "FULLPIPE_RUN_QUIET"],
            ["send.stack", "htcp", "FULLPIPE_SEND_STACK"],
            ["tune.check.json", "true", "config.toml:5"],
        ],
        "{told}"
    );
    let json = ["config", "--all", "--format", "json"];
    let all: Value = serde_json::from_str(&with(dir.path(), &variables, &json).stdout).unwrap();
    holds("config", &all);
    let of = |key: &str| {
        let mut settings = all["settings"].as_array().unwrap().iter();
        settings.find(|s| s["key"] == key).expect(key).clone()
    };
    assert_eq!(of("ping.count")["from"], "built in");
    assert_eq!(of("ping.count")["values"], serde_json::json!(["10"]));
    assert_eq!(of("send.stack")["from"], "environment");
    let nothing = with(dir.path(), &[("FULLPIPE_CONFIG", "")], &["config"]).stdout;
    assert_eq!(nothing, "file: none\nevery default is the built-in one\n");
}

#[test]
fn what_cannot_be_a_default_is_an_error_with_place_and_remedy() {
    let text = "\
colour = \"never\"
[send]
stak = \"bbr\"
stack = [1, 2]
[run]
jobs = 0
quiet = \"yes\"
format = \"yaml\"
scenarios = \"x\"
[lst]
format = \"json\"
[check]
quick = { a = 1 }
";
    let dir = folder(text);
    let ended = with(
        dir.path(),
        &[("FULLPIPE_RUN_JOB", "1")],
        &["list", "stacks"],
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ended.stderr);
    let help = with(dir.path(), &[], &["config", "--help"]);
    assert_eq!(help.code, 0, "help is what a wrong file is mended with");
    let gone = [("FULLPIPE_CONFIG", "gone.toml")];
    let ended = with(dir.path(), &gone, &["list", "stacks"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("error: gone.toml: "),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("hint: FULLPIPE_CONFIG names it"),
        "{}",
        ended.stderr
    );
}

#[test]
fn verbose_says_what_is_set_and_every_run() {
    let dir = folder("[run]\nrepeat = 2\n");
    let quiet = with(dir.path(), &[], &["run", "small.toml", "-q"]);
    assert_eq!(quiet.stderr, "");
    let ended = with(
        dir.path(),
        &[],
        &["run", "small.toml", "-q", "-v", "--jobs", "1"],
    );
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ended.stderr);
    assert_eq!(lines[0], "run.repeat = 2 (config.toml:2)");
    assert_eq!(lines[1], "small: 1 case x 2 seeds on ground sim");
    assert!(
        lines[2].starts_with("small: case 0, seed 1: 5.00 s in "),
        "{}",
        lines[2]
    );
    assert!(lines[3].contains("packets (2 of 2 runs, "), "{}", lines[3]);
}

/// A flag goes before defaults that it cannot be used with, the environment before the file; two of
/// one place are a mistake.
#[test]
fn what_excludes_a_default_goes_before_it() {
    let dir = folder("[send]\nreverse = true\n");
    let in_force = |variables: &[(&str, &str)], flags: &[&str]| {
        // There is no such key: what is asked for is told before.
        let line = [&["-v", "send", "127.0.0.1:9", "--key", "none"], flags].concat();
        let told = with(dir.path(), variables, &line).stderr;
        let of = |flag: &str| told.contains(&format!("send.{flag} = true"));
        (of("reverse"), of("bidir"))
    };
    let bidir = ("FULLPIPE_SEND_BIDIR", "1");
    assert_eq!(in_force(&[], &[]), (true, false));
    assert_eq!(in_force(&[], &["--bidir"]), (false, false));
    assert_eq!(in_force(&[], &["--control", "socket"]), (false, false));
    assert_eq!(in_force(&[bidir], &[]), (false, true));
    assert_eq!(in_force(&[bidir], &["--reverse"]), (false, false));
    // What is off excludes nothing.
    let off = ("FULLPIPE_SEND_REVERSE", "0");
    assert!(in_force(&[off, bidir], &[]).1);

    write(
        dir.path(),
        "config.toml",
        "[send]\nreverse = true\nbidir = true\n",
    );
    let both = with(dir.path(), &[], &["send", "127.0.0.1:9"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    assert!(
        both.stderr.contains("config.toml:3: `send.bidir`"),
        "{}",
        both.stderr
    );
}

/// The time of tests would cut a copy short.
#[test]
fn a_default_time_is_of_tests_and_not_of_copies() {
    let dir = folder("[send]\ntime = \"3s\"\n");
    write(dir.path(), "data.txt", "data");
    let told = |variables: &[(&str, &str)], args: &[&str]| {
        // There is no such key: what is in force is told before.
        let line = [&["-v", "send", "--key", "none"], args].concat();
        with(dir.path(), variables, &line).stderr
    };
    let time = ("FULLPIPE_SEND_TIME", "2s");
    let test = told(&[], &["127.0.0.1:9"]);
    assert!(test.contains("send.time = 3s"), "{test}");
    for variables in [&[][..], &[time]] {
        let copy = told(variables, &["data.txt", "127.0.0.1:9:"]);
        assert!(!copy.contains("send.time"), "{copy}");
    }
}

/// What is wrong with a value that the command line does not have is told with its place.
#[test]
fn a_wrong_default_is_told_with_its_place() {
    let dir = folder("[send]\ntime = 5\n");
    let line = ["send", "127.0.0.1:9"];
    let of_file = with(dir.path(), &[], &line);
    assert!(
        of_file.stderr.contains("it is set by config.toml:2"),
        "{}",
        of_file.stderr
    );
    let variables = [
        ("FULLPIPE_SEND_BITRATE", "50M"),
        ("FULLPIPE_SEND_TIME", "5s"),
    ];
    let of_variable = with(dir.path(), &variables, &line);
    let told = "it is set by FULLPIPE_SEND_BITRATE";
    assert!(of_variable.stderr.contains(told), "{}", of_variable.stderr);
    let written = with(dir.path(), &[], &[&line[..], &["--time", "6"]].concat());
    assert!(
        !written.stderr.contains("it is set by"),
        "{}",
        written.stderr
    );
}
