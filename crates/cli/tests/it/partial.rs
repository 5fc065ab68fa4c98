//! What is left of a test that did not come to its end: Ctrl-C at either end, a server that is
//! killed, a matrix that is interrupted.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::process::{Finished, command, finished};
use crate::server::Server;

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

fn begun(dir: &Path, line: &[&str]) -> Child {
    let mut command = command(dir, line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs a test for a moment, then does something to one of the ends.
fn cut(dir: &Path, line: &[&str], mut act: impl FnMut(&mut Child)) -> Finished {
    let mut child = begun(dir, line);
    std::thread::sleep(Duration::from_millis(1500));
    act(&mut child);
    finished(child.wait_with_output().unwrap())
}

/// Seconds measured, and why no more.
fn partial(case: &Value) -> (f64, String) {
    assert!(
        case["flows"][0]["goodput_mbps"].as_f64().unwrap() > 0.1,
        "{case}"
    );
    let why = case["partial"].as_str().unwrap_or_else(|| panic!("{case}"));
    (case["simulated_s"].as_f64().unwrap(), why.to_owned())
}

/// Whether this process ignores hang-ups: the lowest bit of its mask.
fn ignores_hang_ups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & 1 == 1
}

/// Unless it is ignored from the start, as with `nohup`, a hang-up is an interruption.
#[test]
fn a_hang_up_that_is_ignored_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = |time| ["send", &server.address, "-b", "5Mbit/s", "--time", time];
    let hang_up = |client: &Child| signal(client, Signal::SIGHUP);
    // Tests that ignore it themselves, under `nohup`, hand that on.
    if !ignores_hang_ups() {
        let ended = cut(dir.path(), &line("60s"), |client| hang_up(client));
        assert_eq!(ended.code, 130, "{}", ended.stderr);
    }
    let plain = command(dir.path(), &line("3s"));
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    ignoring.arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => ignoring.env(name, value),
            None => ignoring.env_remove(name),
        };
    }
    ignoring.current_dir(dir.path());
    ignoring.stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = ignoring.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    hang_up(&client);
    let ended = finished(client.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains("interrupted"), "{}", ended.stderr);
}

#[test]
fn an_interrupted_client_has_a_result_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let interrupted = |more: &[&str]| {
        let line = [
            "send",
            &server.address,
            "--time",
            "60s",
            "--window",
            "20 segments",
        ];
        let line = [&line[..], more].concat();
        let ended = cut(dir.path(), &line, |client| signal(client, Signal::SIGINT));
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        assert!(
            ended.stderr.contains("error: the result is partial"),
            "{}",
            ended.stderr
        );
        ended.stdout
    };
    let table = interrupted(&["--out", "out"]);
    assert!(table.contains("PARTIAL: measured for 1"), "{table}");
    let stored = fs::read_to_string(dir.path().join("out/result.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let (seconds, why) = partial(&stored["cases"][0]);
    assert!(seconds > 0.5 && seconds < 10.0, "{seconds}");
    assert_eq!(why, "interrupted");
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("PARTIAL: measured for 1"));
    let printed: Value = serde_json::from_str(&interrupted(&["--format", "json", "-R"])).unwrap();
    assert_eq!(partial(&printed["cases"][0]).1, "interrupted");
    let lines = interrupted(&["--format", "ndjson"]);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(partial(&last).1, "interrupted");
    let rows = interrupted(&["--format", "csv"]);
    assert!(rows.lines().next().unwrap().ends_with(",partial"), "{rows}");
    assert!(
        rows.lines().nth(1).unwrap().ends_with(",interrupted"),
        "{rows}"
    );
}

#[test]
fn a_server_that_shuts_down_hands_out_what_it_measured() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--grace", "0s"]);
    let line = ["send", &server.address, "--time", "60s", "--format", "json"];
    let ended = cut(dir.path(), &line, |_| signal(&server.child, Signal::SIGINT));
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let (seconds, why) = partial(&result["cases"][0]);
    assert!(seconds < 20.0, "{seconds}");
    assert_eq!(why, "the server is shutting down");
}

/// Its silence lasts for ten seconds before it counts, or to the end of the run if that is sooner,
/// and is no part of the measurement.
#[test]
fn a_server_that_is_killed_leaves_the_client_its_half() {
    std::thread::scope(|all| {
        for (time, reverse) in [("60s", &[][..]), ("60s", &["--reverse"]), ("9s", &[])] {
            all.spawn(move || {
                let dir = tempfile::tempdir().unwrap();
                let mut server = Server::start(dir.path(), &[]);
                let address = server.address.clone();
                let mut line = vec!["send", &address, "--time", time, "--format", "json"];
                line.extend(["--window", "20 segments"]);
                line.extend(reverse);
                let ended = cut(dir.path(), &line, |_| server.kill());
                assert_eq!(ended.code, 3, "{}", ended.stderr);
                let result: Value = serde_json::from_str(&ended.stdout).unwrap();
                let (seconds, why) = partial(&result["cases"][0]);
                assert!(seconds > 0.3 && seconds < 4.0, "{seconds}");
                assert!(why.contains("the server's half is missing"), "{why}");
            });
        }
    });
}

#[test]
fn the_second_interrupt_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["send", &server.address, "--time", "60s"];
    let ended = cut(dir.path(), &line, |client| {
        // It would wait for the server's half.
        signal(&server.child, Signal::SIGSTOP);
        // Every thread of it has to stop before it is asked.
        std::thread::sleep(Duration::from_millis(200));
        signal(client, Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(700));
        signal(client, Signal::SIGINT);
        // Half the time after which it would give up on its own.
        let until = Instant::now() + Duration::from_secs(5);
        while client.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_eq!((ended.code, ended.stdout.as_str()), (130, ""));
}

#[test]
fn interrupted_pings_are_summed_up() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "ping",
        &server.address,
        "--count",
        "1000",
        "--interval",
        "50ms",
    ];
    let line = [&line[..], &["--format", "json"]].concat();
    let ended = cut(dir.path(), &line, |client| signal(client, Signal::SIGINT));
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let received = result["received"].as_u64().unwrap();
    assert!((2..1000).contains(&received), "{result}");
    assert_eq!(result["partial"], "interrupted");
}

/// One run of a moment, and one that nobody waits for.
const UNEVEN: &str = r#"name = "uneven"

[path]
rate = "10Mbit/s"
rtt = "40ms"

[[flow]]
name = "main"
stack = "reno"

[matrix]
"duration" = ["1s", "2s", "3s", "4s", "5s", "6s", "7s", "8s", "9s", "10s"]
"path.rate" = ["10Mbit/s", "100Mbit/s", "1Gbit/s", "10Gbit/s"]
"#;

#[test]
fn a_matrix_that_is_interrupted_prints_its_finished_rows() {
    let dir = tempfile::tempdir().unwrap();
    let uneven = format!("{UNEVEN}[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 0\n");
    crate::process::write(dir.path(), "uneven.toml", &uneven);
    let later = uneven.replace("\"uneven\"", "\"later\"");
    crate::process::write(dir.path(), "later.toml", &later);
    let line = [
        "run",
        "uneven.toml",
        "later.toml",
        "--junit",
        "r.xml",
        "--markdown",
        "r.md",
        "--jobs",
        "1",
        "--format",
        "json",
        "--repeat",
        "20",
    ];
    let mut child = begun(dir.path(), &line);
    std::thread::sleep(Duration::from_millis(1200));
    signal(&child, Signal::SIGINT);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(
            std::time::Instant::now() < deadline,
            "it ends with its run in flight"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = finished(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("interrupted after "),
        "{}",
        ended.stderr
    );
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let cases = result["cases"].as_array().unwrap();
    let runs: usize = cases
        .iter()
        .map(|c| c["seeds"].as_array().unwrap().len())
        .sum();
    assert!(
        runs > 0 && runs < 800,
        "{runs} runs in {} cases",
        cases.len()
    );
    let said = format!("interrupted after {runs} of 800 runs");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    let interrupted = serde_json::json!({ "done": runs, "total": 800 });
    assert_eq!(result["interrupted"], interrupted);
    // Nothing was judged, neither here nor in the scenario that was not reached.
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let xml = read("r.xml");
    assert_eq!(
        xml.matches("tests=\"1\" failures=\"0\" errors=\"1\"")
            .count(),
        2,
        "{xml}"
    );
    assert!(xml.contains(&format!("<error message=\"{said}: ")), "{xml}");
    let reason = format!("<error message=\"not reached: uneven: {said}\"/>");
    assert!(xml.contains(&reason), "{xml}");
    let md = read("r.md");
    let first = said.replace("interrupted", "### uneven (sim)\n\n**INTERRUPTED");
    assert!(md.starts_with(&first), "{md}");
    assert!(
        md.contains("### later\n\n**NO RESULT: not reached: "),
        "{md}"
    );
}
