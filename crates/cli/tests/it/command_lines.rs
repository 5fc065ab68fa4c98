//! Wrong command lines: what is said, and the exit code.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::process::{SMALL, command, fullpipe, write};
use crate::server::Server;

const LINES: &[&[&str]] = &[
    &["rnu", "small.toml"],
    &["frobnicate"],
    &["run"],
    &["run", "small.toml", "--sed", "3"],
    &["run", "small.toml", "--seed", "-1"],
    &["run", "small.toml", "--seed", "one"],
    &["run", "small.toml", "--repeat", "0"],
    &["run", "small.toml", "--jobs", "0"],
    &["run", "small.toml", "--format", "xml"],
    &["run", "small.toml", "--format", "jsn"],
    &["run", "small.toml", "--ground", "simulator"],
    &["run", "small.toml", "--ground", "udp", "--encrypt"],
    &["run", "small.toml", "--ground", "linux", "--kernel", "0.1"],
    &["run", "small.toml", "--kernel", "6.1"],
    &["linux", "build", "--hz", "70"],
    &["linux", "build", "--source", "missing-tree"],
    &["run", "small.toml", "--resume"],
    &["run", "small.toml", "--set", "path.rtt"],
    &["run", "small.toml", "--set", "=80ms"],
    &["run", "small.toml", "--set", "path.rtt=80"],
    &["run", "small.toml", "--set", "path.rrt=80ms"],
    &["run", "small.toml", "--set", "flow.main.stack=renno"],
    &["run", "small.toml", "--set", "flow.mian.stack=reno"],
    &["run", "small.toml", "small.toml", "--out", "out"],
    &["run", "small.toml", "--out", "small.toml"],
    &["run", "missing.toml"],
    &["run", "first-rum"],
    &["falsify", "small.toml"],
    &["falsify", "missing.toml"],
    &["check"],
    &["check", "missing.toml"],
    &["check", "small.toml", "--cases=yes"],
    &["list"],
    &["list", "stack"],
    &["list", "stacks", "hihgspeed"],
    &["list", "metrics", "godput_mbps"],
    &["list", "scenarios", "early-los"],
    &["schema", "senario"],
    &["compare", "a"],
    &["compare", "a", "b"],
    &["compare", "a", "b", "--threshold", "-5%"],
    &["compare", "a", "b", "--metric", "godput_mbps"],
    &["send"],
    &["send", "a b"],
    &["send", "localhost:0"],
    &["send", "localhost:notes"],
    &["send", "localhost", "--stack", "renno"],
    &["send", "localhost", "--window", "3 apples"],
    &["send", "localhost", "--time", "soon"],
    &["send", "localhost", "--size", "20"],
    &["send", "localhost", "--set", "delayed_akc=false"],
    &["send", "localhost", "--set", "delayed_ack=perhaps"],
    &["send", "localhost", "--traffic", "upd"],
    &["send", "localhost", "--traffic", "udp"],
    &["send", "localhost", "--traffic", "udp,rate"],
    &["send", "localhost", "--rate", "50Mbit/s"],
    &["send", "localhost", "--interval", "0s"],
    &["send", "localhost", "--request", "10", "--size", "1MB"],
    &["send", "localhost", "--count", "10"],
    &["send", "localhost", "--mode", "fast"],
    &["send", "missing.bin", "localhost:"],
    &["send", "small.toml", "other.toml"],
    &["send", "localhost:a", "localhost:b"],
    &["send", "localhost:", "."],
    &["send", "small.toml", "localhost:", "--reverse"],
    &["send", "localhost", "--overwrite"],
    &["send", "localhost", "--key", "small.toml"],
    &["ping"],
    &["ping", "localhost", "--interval", "0"],
    &["ping", "localhost", "--count", "0"],
    &["ping", "localhost", "--size", "100kB"],
    &["completions", "tcsh"],
    &["man", "dir", "--markdown"],
];

#[test]
fn every_wrong_command_line_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let mut text = String::new();
    for line in LINES {
        let ended = fullpipe(dir.path(), line);
        assert_eq!(ended.stdout, "", "{line:?} wrote to stdout");
        assert!(
            matches!(ended.code, 2 | 3),
            "{line:?}: exit code {}",
            ended.code
        );
        writeln!(
            text,
            "$ fullpipe {}\n{}[{}]\n",
            line.join(" "),
            ended.stderr,
            ended.code
        )
        .unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_at_all_prints_the_help() {
    let dir = tempfile::tempdir().unwrap();
    let ended = fullpipe(dir.path(), &[]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("Usage: fullpipe [OPTIONS] <COMMAND>"),
        "{}",
        ended.stderr
    );
}

#[test]
fn help_and_version_are_data() {
    let dir = tempfile::tempdir().unwrap();
    let version = fullpipe(dir.path(), &["--version"]);
    assert_eq!((version.code, version.stderr.as_str()), (0, ""));
    assert_eq!(
        version.stdout,
        format!("fullpipe {}\n", env!("CARGO_PKG_VERSION"))
    );
    for command in [
        "run",
        "compare",
        "list",
        "schema",
        "check",
        "falsify",
        "send",
        "ping",
        "linux",
        "completions",
        "man",
    ] {
        for flag in ["-h", "--help"] {
            let help = fullpipe(dir.path(), &[command, flag]);
            assert_eq!(
                (help.code, help.stderr.as_str()),
                (0, ""),
                "{command} {flag}"
            );
            assert!(
                help.stdout.contains("Examples:\n  fullpipe "),
                "{command} {flag}: {}",
                help.stdout
            );
        }
    }
}

/// What iperf3's users type is taken, or answered with what to type here.
#[test]
fn the_habits_of_iperf3_are_answered() {
    let answer = |args: &[&str]| {
        let line = [&["send", "127.0.0.1:1"], args].concat();
        let ended = fullpipe(Path::new("."), &line);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        let hints = ended
            .stderr
            .lines()
            .filter_map(|l| l.trim().strip_prefix("hint: "));
        let hints: Vec<&str> = hints.collect();
        assert!(!hints.is_empty(), "{args:?}: {}", ended.stderr);
        hints[0].to_owned()
    };
    for (args, hint) in [
        (&["-t", "5"][..], "write `5s`"),
        (&["-i", "1"], "write `1s`"),
        (&["-b", "100M"], "write `100Mbit/s`"),
        (&["-n", "1G"], "write `1GiB`"),
        (&["-w", "8M"], "write `8MiB`"),
        (
            &["-t", "5", "-i", "1", "-b", "100M", "-w", "8M"],
            "--time: write `5s`",
        ),
        (&["-t", "-5"], "write for example"),
        (&["-n", "0"], "no amount"),
        (&["-l", "128K"], "there is none: programs"),
        (&["--json-stream"], "`--format ndjson`"),
        (&["--fq-rate", "1G"], "`--bitrate RATE`"),
        (&["--cport", "5000"], "there is none: the kernel"),
        (&["--pacing-timer", "1"], "there is none: every packet"),
        (&["--forceflush"], "there is none: every line"),
        // By the name that is in the list.
        (&["-C", "bbr2"], "the closest that is here is `bbr`: BBRv3"),
        (&["-V"], "`-v` says more"),
        (&["-1"], "there is none: `fullpipe serve` serves"),
        (&["-B", "192.0.2.1"], "there is none: the route"),
        (&["-F", "x"], "files are copied"),
        (&["-N"], "there is none to switch off"),
        (&["-S", "8"], "there is none: packets leave with DSCP 0"),
        (&["--dscp", "8"], "there is none: packets leave with DSCP 0"),
        (&["-T", "x"], "there is none: `--history DIR`"),
        (&["--connect-timeout", "5"], "there is none: a host"),
        (&["--rcv-timeout", "3"], "there is none: a host"),
        (&["-p", "5201"], "a port follows the host"),
        (&["-u"], "datagrams are cross traffic"),
        (&["-M", "1400"], "`--set path.mtu=1452`"),
        (&["-O", "2"], "`--set measure.warmup=3s`"),
        (&["-Z"], "`--mode bulk`"),
        (&["-A", "1"], "`--pin CPU`"),
        (&["-d"], "`--bidir`"),
        (&["--server"], "`fullpipe serve` is the server"),
        (
            &["--get-server-output"],
            "the result holds what both ends measured",
        ),
        (&["--congestion", "bbr"], "`--stack NAME`, or `-C NAME`"),
    ] {
        let said = answer(args);
        assert!(said.starts_with(hint), "{args:?}: {said}");
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    for args in [
        &["-P", "2", "-R", "-b", "10Mbit/s", "-i", "100ms", "-J"][..],
        &["--bidir", "-C", "reno"],
    ] {
        let line = [&["send", &server.address, "-t", "300ms"], args].concat();
        let ended = fullpipe(dir.path(), &line);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    }
}

/// What users of scp and ping type, and those of iperf3 at the server.
#[test]
fn the_habits_of_scp_and_ping_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    for (line, hint) in [
        (&["send", "-"][..], "put it into a file first"),
        (&["send", "-", "127.0.0.1:x"], "put it into a file first"),
        (&["send", "127.0.0.1:x", "-"], "put it into a file first"),
        (&["send", "me@127.0.0.1"], "a server has a key and no users"),
        (&["send", "small.toml", "me@127.0.0.1:"], "no users"),
        (&["send", "me@127.0.0.1:x", "."], "no users"),
        (
            &["send", "-r", ".", "127.0.0.1:"],
            "directories need no flag",
        ),
        (
            &["send", "-P", "7000", "small.toml", "127.0.0.1:"],
            "`HOST:PORT:NAME`",
        ),
        (
            &["send", "-P", "4", "small.toml", "127.0.0.1:d2/"],
            "a copy uses one stream: leave out `-P`",
        ),
        (
            &["send", "-n", "1MB", "small.toml", "127.0.0.1:"],
            "a copy sends whole files: leave out `-n`",
        ),
        (&["ping", "127.0.0.1", "-f"], "there is no flood"),
        (&["ping", "127.0.0.1", "-W", "2"], "there is none: a probe"),
        (&["serve", "-1"], "serves until Ctrl-C"),
        (&["-c", "127.0.0.1"], "`fullpipe send HOST`"),
        (&["-s"], "`fullpipe serve --key FILE`"),
        (&["-D"], "`fullpipe serve --key FILE`"),
        (&["serve", "5201"], "`--listen '[::]:5201'`"),
        (&["serve", "--listen", "5201"], "`'[::]:5201'`"),
        (&["serve", "--max-rate", "1G"], "write `1Gbit/s`"),
        (&["serve", "--max-duration", "60"], "write `60s`"),
        (&["observe", "--interval", "0.5"], "write `0.5s`"),
        (&["send", "-4", "127.0.0.1"], "the address decides"),
        (&["ping", "me@127.0.0.1"], "no users"),
        (&["ping", "127.0.0.1", "-6"], "the address decides"),
        (
            &["ping", "127.0.0.1", "-p", "7000"],
            "`fullpipe ping HOST:7000`",
        ),
        (&["serve", "-p", "7000"], "`--listen '[::]:7000'`"),
        (&["serve", "-s"], "`fullpipe serve` needs no flag"),
        (&["serve", "-4"], "`--listen 0.0.0.0`"),
        (&["run", "small.toml", "--seeds", "5"], "`--repeat N`"),
        (
            &["run", "small.toml", "--stack", "cubic"],
            "`--set flow.NAME.stack=cubic`",
        ),
        (
            &["run", "small.toml", "--duration", "5s"],
            "`--set duration=5s`",
        ),
        (&["run", "small.toml", "--dry-run"], "`fullpipe check FILE`"),
        (&["emulate", "--bandwidth", "1Gbit/s"], "`--rate 200Mbit/s`"),
        (
            &["emulate", "--rate", "1Gbit/s", "iperf3", "-c", "x"],
            "the command follows `--`",
        ),
        (&["plot", "results"], "did you mean `figure`?"),
        (&["simulate", "small.toml"], "did you mean `run`?"),
        (&["server"], "did you mean `serve`?"),
        (&["observe", "-t", "1"], "`--duration 10s`"),
        (&["run", "."], "`fullpipe report DIR`"),
        (
            &["run", "small.toml", "--set", "path.bandwidth=1Gbit/s"],
            "did you mean `path.rate`?",
        ),
        (
            &["run", "small.toml", "--set", "rtt=10ms"],
            "did you mean `path.rtt`?",
        ),
        (
            &["run", "small.toml", "--set", "time=3s"],
            "did you mean `duration`?",
        ),
        (
            &["run", "small.toml", "--set", "stack=reno"],
            "did you mean `flow.main.stack`?",
        ),
        (
            &["run", "small.toml", "--set", "path.rtt=[\"10ms\",\"20ms\"]"],
            "several belong in [matrix]: \"path.rtt\" = [...]",
        ),
        (
            &["run", "small.toml", "--set", "path.rtt=10ms,20ms"],
            "several belong in [matrix], as a list",
        ),
        (
            &["run", "small.toml", "--set", "flow.main.stack=CUBIC"],
            "did you mean `cubic`?",
        ),
    ] {
        let ended = fullpipe(dir.path(), line);
        assert_eq!(ended.code, 2, "{line:?}: {}", ended.stderr);
        let hints = ended.stderr.lines().filter(|l| l.starts_with("  hint: "));
        let hints: Vec<&str> = hints.collect();
        assert!(
            hints.len() == 1 && hints[0].contains(hint),
            "{line:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_key_that_is_not_there_is_answered_with_how_to_make_it() {
    let dir = tempfile::tempdir().unwrap();
    let ended = fullpipe(dir.path(), &["serve", "--key", "nofile"]);
    assert_eq!(ended.code, 3);
    assert!(
        ended
            .stderr
            .contains("hint: `fullpipe serve --new-key nofile` makes one"),
        "{}",
        ended.stderr
    );
}

/// A name that the field knows is not taken for a slip of a name that only looks like it.
#[test]
fn an_algorithm_that_there_is_not_is_no_slip() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let line = ["run", "small.toml", "--set", "flow.main.stack=prague"];
    let ended = fullpipe(dir.path(), &line);
    for said in [
        "`prague` is not in this version",
        "hint: the closest that is here is `dctcp+paced`: its window follows the fraction",
    ] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    write(dir.path(), "a", "");
    let ended = fullpipe(dir.path(), &["run", "small.toml", "--out", "a"]);
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("a file has this name"),
        "{}",
        ended.stderr
    );
}

/// Words of a command line are bytes: what is no text is no command.
#[test]
fn a_command_that_is_no_text_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let word = OsStr::from_bytes(&[0xff, 0xfe]);
    let output = command(dir.path(), &[]).arg(word).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// A test in which nothing sends would pass its time in silence, and a copy would have no flow.
#[test]
fn a_test_in_which_nothing_sends_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let cross = ["--traffic", "ping", "--only-traffic"];
    let refused = |args: &[&str], named: &str| {
        let ended = fullpipe(dir.path(), &[&["send"], args].concat());
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        let message = format!("error: `--set {named}=false`: nothing is left that sends");
        assert!(
            ended.stderr.starts_with(&message),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("  hint: leave it out"),
            "{args:?}: {}",
            ended.stderr
        );
    };
    for key in ["enabled", "flow.main.enabled"] {
        let set = format!("{key}=false");
        refused(&["127.0.0.1:1", "--set", &set], key);
        refused(&["small.toml", "127.0.0.1:1:", "--set", &set], key);
    }
    let off = ["--set", "traffic.cross.enabled=false"];
    refused(
        &[&["127.0.0.1:1"], &cross[..], &off].concat(),
        "traffic.cross.enabled",
    );
}

/// What stands twice would be run twice, and agree with itself.
#[test]
fn what_stands_twice_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (args, words) in [
        (
            &["agree", "first-run", "--grounds", "sim,sim", "--out", "o"][..],
            "ground `sim` stands twice",
        ),
        (&["run", "-", "-"], "`-` stands twice"),
    ] {
        let ended = fullpipe(dir.path(), args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert!(!dir.path().join("o").exists());
    }
}

/// Flags of fullpipe's own sockets do nothing where the kernel sends, or nobody.
#[test]
fn flags_of_sockets_are_for_the_ground_that_has_them() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    for (flags, words) in [
        (
            &["--spin"][..],
            "`--spin` is about the datagrams of the ground udp",
        ),
        (&["--mode", "bulk"], "`--mode` is about"),
        (&["--spin", "--pin", "0"], "`--spin`, `--pin` are about"),
    ] {
        for ground in ["sim", "linux", "kernel"] {
            let args = [&["run", "small.toml", "--ground", ground], flags].concat();
            let ended = fullpipe(dir.path(), &args);
            assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
            assert!(
                ended.stderr.contains("hint: write `--ground udp`"),
                "{args:?}"
            );
        }
    }
    for (flag, words) in [
        (
            "--ipv6",
            "is about the sockets of the grounds udp and kernel",
        ),
        ("--no-merge", "are about the hosts of the ground kernel"),
        ("--kernel=6.1", "are about the ground linux"),
    ] {
        let ended = fullpipe(dir.path(), &["run", "small.toml", flag]);
        assert_eq!(ended.code, 2, "{flag}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{flag}: {}", ended.stderr);
    }
    let args = ["run", "small.toml", "--mode", "packet", "--quiet"];
    assert_eq!(fullpipe(dir.path(), &args).code, 0);
}

/// A file's name may be a stranger's, too.
#[test]
fn a_message_shows_control_characters() {
    let dir = tempfile::tempdir().unwrap();
    for colour in ["never", "always"] {
        let args = ["--color", colour, "check", "a\u{1b}[2Jb.toml"];
        let refused = fullpipe(dir.path(), &args);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let is_obeyed = refused.stderr.contains("\u{1b}[2J");
        let is_shown = refused.stderr.contains("a\\u001b[2Jb.toml");
        assert!(is_shown && !is_obeyed, "{:?}", refused.stderr);
    }
}
