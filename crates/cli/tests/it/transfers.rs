//! What those who keep hosts for transfers meet: limits of a server, copies and tests that do not
//! come to their end, the server's log, numbers for monitoring.

use std::fs::{self, File};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Finished, command, fullpipe};
use crate::schema::holds;
use crate::server::Server;

/// A server whose log is a file.
struct Logged {
    child: Child,
    log: std::path::PathBuf,
    address: String,
}

impl Logged {
    fn start(dir: &Path, args: &[&str]) -> Self {
        let log = dir.join("log");
        let line = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let mut serve = command(dir, &line);
        let child = serve.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut server = Self {
            child,
            log,
            address: String::new(),
        };
        let first = server.waits_for("listening on UDP ");
        let at = first.split("listening on UDP ").nth(1).unwrap();
        server.address = at.split(',').next().unwrap().to_owned();
        server
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The log, as soon as it has these words.
    fn waits_for(&self, words: &str) -> String {
        let begin = Instant::now();
        loop {
            let text = self.text();
            if text.contains(words) {
                return text;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "{words}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ok(ended: Finished) -> Finished {
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    ended
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// A rate that the server allows is said before the test, and is what limits the flow.
#[test]
fn a_rate_that_the_server_allows_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--max-rate", "20Mbit/s"]);
    let said = "warning: server: no direction gets more than 20Mbit/s (--max-rate)";
    for more in [&[][..], &["-b", "50Mbit/s"]] {
        let line = [&["send", &server.address, "-t", "1s"], more].concat();
        let ended = ok(fullpipe(dir.path(), &line));
        assert!(ended.stderr.contains(said), "{more:?}: {}", ended.stderr);
        let row = ended.stdout.lines().find(|l| l.starts_with("cubic"));
        let row = row.unwrap_or_else(|| panic!("{}", ended.stdout)).trim_end();
        assert!(row.ends_with("rate"), "{more:?}: {}", ended.stdout);
    }
    // Below it nothing is changed.
    let line = ["send", &server.address, "-t", "1s", "-b", "10Mbit/s"];
    let ended = ok(fullpipe(dir.path(), &line));
    assert!(!ended.stderr.contains("--max-rate"), "{}", ended.stderr);
}

/// As a copy that is not whole.
#[test]
fn an_amount_that_does_not_arrive_in_its_time_is_partial() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "-n",
        "20MB",
        "-t",
        "1s",
        "-b",
        "10Mbit/s",
    ];
    let ended = fullpipe(dir.path(), &line);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let why = "the time was over before all data had arrived";
    let said = format!("PARTIAL: measured for 1 s: {why}");
    assert!(ended.stdout.contains(&said), "{}", ended.stdout);
    let ended = fullpipe(dir.path(), &[&line[..], &["-J"]].concat());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert_eq!(json(&ended.stdout)["cases"][0]["partial"], why);
    // One that is whole is none.
    let line = ["send", &server.address, "-n", "1MB", "-t", "30s", "-J"];
    let ended = ok(fullpipe(dir.path(), &line));
    assert!(json(&ended.stdout)["cases"][0]["partial"].is_null());
}

#[test]
fn a_warm_up_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["send", &server.address, "-t", "1s"];
    let warm = [&line[..], &["--set", "measure.warmup=500ms"]].concat();
    let said = "the first 0.5 s (warm-up) are in counts, not in means";
    let ended = ok(fullpipe(dir.path(), &warm));
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    let ended = ok(fullpipe(dir.path(), &line));
    assert!(!ended.stdout.contains("warm-up"), "{}", ended.stdout);
    // Of a single run over a network nothing is said of seeds.
    assert!(!ended.stdout.contains("seed"), "{}", ended.stdout);
}

/// The last ones arrive, too, and no round trip is claimed that nobody measured.
#[test]
fn datagrams_alone_are_counted_to_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "-t",
        "1s",
        "--traffic",
        "udp,rate=5Mbit/s",
        "--only-traffic",
    ];
    let ended = ok(fullpipe(dir.path(), &[&line[..], &["-J"]].concat()));
    let traffic = &json(&ended.stdout)["cases"][0]["traffic"][0];
    assert_eq!(traffic["sent_packets"], traffic["received_packets"]);
    assert_eq!(traffic["loss_rate"], 0.0);
    let [sent, received] = ["sent_mbps", "received_mbps"].map(|m| traffic[m].as_f64().unwrap());
    assert!((received / sent - 1.0).abs() < 0.01, "{traffic}");
    let ended = ok(fullpipe(dir.path(), &line));
    assert!(
        ended
            .stdout
            .contains("a round trip (RTT not measured) grew"),
        "{}",
        ended.stdout
    );
}

/// Without the command line beside it: direction, streams, rates, addresses, and what the server
/// allows, which a history keeps.
#[test]
fn a_result_says_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--max-rate", "40Mbit/s"]);
    let line = [
        "send",
        &server.address,
        "-t",
        "500ms",
        "-P",
        "2",
        "-R",
        "-b",
        "8Mbit/s",
    ];
    let kept = ["-J", "--history", "kept"];
    let result = json(&ok(fullpipe(dir.path(), &[&line[..], &kept].concat())).stdout);
    holds("result", &result);
    assert_eq!(result["network"]["far"], server.address);
    assert!(
        result["network"]["near"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
    let limits = serde_json::json!({ "max_rate_mbps": 40.0, "max_bytes": null });
    assert_eq!(result["network"]["server_limits"], limits);
    let flow = &result["cases"][0]["flows"][0];
    assert_eq!(
        (&flow["direction"], &flow["rate_asked_mbps"]),
        (&"reverse".into(), &8.0.into())
    );
    let streams = flow["streams"].as_array().unwrap();
    let sum: f64 = streams
        .iter()
        .map(|s| s["goodput_mbps"].as_f64().unwrap())
        .sum();
    let all = flow["goodput_mbps"].as_f64().unwrap();
    assert!(
        streams.len() == 2 && (sum / all - 1.0).abs() < 1e-6,
        "{flow}"
    );
    let stored = ok(fullpipe(
        dir.path(),
        &["history", "kept", "--format", "json"],
    ));
    assert_eq!(
        json(&stored.stdout)["runs"][0]["result"]["network"]["server_limits"],
        limits
    );
    let table = ok(fullpipe(
        dir.path(),
        &[&line[..], &["-i", "100ms"]].concat(),
    ));
    assert!(table.stdout.contains("\nmain.2 "), "{}", table.stdout);
    assert!(
        table.stdout.contains("2 streams, Jain's fairness "),
        "{}",
        table.stdout
    );
    assert!(
        table.stderr.contains("Mbit/s  2 streams  "),
        "{}",
        table.stderr
    );
    let csv = ok(fullpipe(
        dir.path(),
        &[&line[..], &["--format", "csv"]].concat(),
    ))
    .stdout;
    assert_eq!(csv.matches(",stream,").count(), 2, "{csv}");
}

#[test]
fn a_copy_says_that_the_server_slows_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("files")).unwrap();
    let server = Server::start(dir.path(), &["--files", "files", "--max-rate", "40Mbit/s"]);
    fs::write(dir.path().join("data.bin"), vec![7; 2_000_000]).unwrap();
    let to = format!("{}:", server.address);
    let ended = ok(fullpipe(dir.path(), &["send", "data.bin", &to]));
    let warning = "warning: server: no direction gets more than 40Mbit/s (--max-rate)";
    assert_eq!(ended.stderr.matches(warning).count(), 1, "{}", ended.stderr);
    assert!(
        ended.stdout.contains(", limited by rate\n"),
        "{}",
        ended.stdout
    );
}

/// The question for the round-trip time before a test is none of the tests that are allowed.
#[test]
fn a_server_of_one_test_is_not_busy_with_a_question() {
    let dir = tempfile::tempdir().unwrap();
    let server = Logged::start(dir.path(), &["--max-tests", "1"]);
    for _ in 0..4 {
        ok(fullpipe(
            dir.path(),
            &["send", &server.address, "-t", "300ms"],
        ));
    }
    let log = server.text();
    assert!(!log.contains("refused"), "{log}");
    assert_eq!(log.matches("closed by the client").count(), 4, "{log}");
}

#[test]
fn the_log_says_what_a_copy_has_stored() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    let server = Logged::start(dir.path(), &["--files", "files"]);
    for (name, bytes) in [("data.bin", 200_000), ("more.bin", 1000)] {
        fs::write(dir.path().join(name), vec![7; bytes]).unwrap();
    }
    let to = format!("{}:", server.address);
    ok(fullpipe(dir.path(), &["send", "data.bin", &to]));
    let log = server.waits_for("stored");
    assert!(log.contains("stored `data.bin` (200kB)"), "{log}");
    assert!(!log.contains("stopped by"), "{log}");
    fs::create_dir(files.join("d")).unwrap();
    let to = format!("{}:d/", server.address);
    ok(fullpipe(dir.path(), &["send", "data.bin", "more.bin", &to]));
    server.waits_for("stored 2 files (201kB), `d/data.bin` first");
}

/// When it was, how long it took: a series in a monitoring system is made of these.
#[test]
fn a_result_says_when_it_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["send", &server.address, "-t", "500ms"];
    let ended = ok(fullpipe(dir.path(), &[&line[..], &["-J"]].concat()));
    let result = json(&ended.stdout);
    holds("result", &result);
    let began = result["began"].as_str().unwrap();
    assert!(began.len() == 24 && began.ends_with('Z'), "{began}");
    assert_eq!(result["duration_s"], 0.5);
    let flow = &result["cases"][0]["flows"][0];
    let segments = flow["delivered_segments"].as_f64().unwrap() as u64;
    let bytes = flow["delivered_bytes"].as_u64().unwrap();
    assert!(bytes > 0 && bytes.is_multiple_of(segments), "{flow}");
    let mbps = flow["goodput_mbps"].as_f64().unwrap();
    assert!((bytes as f64 * 16e-6 / mbps - 1.0).abs() < 0.01, "{flow}");
    let ended = ok(fullpipe(
        dir.path(),
        &[&line[..], &["--format", "ndjson"]].concat(),
    ));
    let last = json(ended.stdout.lines().last().unwrap());
    assert_eq!(last["duration_s"], 0.5);
    assert!(last["began"].is_string());
}

#[test]
fn a_probe_s_size_is_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["ping", &server.address, "-c", "2", "-i", "50ms", "-s"];
    let ended = ok(fullpipe(dir.path(), &[&line[..], &["1400"]].concat()));
    assert!(
        ended.stdout.contains("2 probes of 1400B"),
        "{}",
        ended.stdout
    );
}
