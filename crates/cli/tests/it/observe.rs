//! `fullpipe observe` on connections of the test's own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::process::fullpipe;
use crate::schema::holds;

/// A sender that writes without a pause and a reader that takes `pause` between two reads, until
/// either is dropped.
fn connection(pause: Duration) -> (TcpStream, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let near = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let mut sender = near.try_clone().unwrap();
    thread::spawn(move || while sender.write_all(&[0; 65_536]).is_ok() {});
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while far.read(&mut buffer).is_ok_and(|n| n > 0) {
            thread::sleep(pause);
        }
    });
    (near, port)
}

#[test]
fn a_slow_reader_is_named_as_the_limit() {
    let (near, port) = connection(Duration::from_millis(20));
    let port = port.to_string();
    let args = [
        "observe",
        "--loopback",
        "--port",
        &port,
        "--interval",
        "200ms",
    ];
    let args = [&args[..], &["--duration", "1s", "--format", "ndjson"]].concat();
    let ended = fullpipe(Path::new("."), &args);
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let lines = ended
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap());
    let all: Vec<Value> = lines.collect();
    holds("observation", &all[0]);
    holds("observation", all.last().unwrap());
    let local = near.local_addr().unwrap().to_string();
    let sent: Vec<&Value> = all
        .iter()
        .filter(|o| o["local"] == local.as_str())
        .collect();
    assert_eq!(
        sent.first().unwrap()["limited_by"],
        Value::Null,
        "nothing to hold it against"
    );
    assert_eq!(sent.last().unwrap()["limited_by"], "receive window");
    assert!(sent.last().unwrap()["sent_mbps"].as_f64().unwrap() > 0.0);
    assert!(
        sent.last().unwrap()["tcp_info"]["rwnd_limited"]
            .as_u64()
            .unwrap()
            > 0
    );
    let acked = |o: &Value| o["rfc4898"]["ThruOctetsAcked"].as_u64().unwrap();
    assert!(acked(sent.last().unwrap()) > acked(sent.first().unwrap()));
    drop(near);
}

#[test]
fn only_flows_that_were_asked_for_are_shown() {
    let (near, _) = connection(Duration::from_millis(1));
    let args = [
        "observe",
        "--to",
        "192.0.2.0/24",
        "--loopback",
        "--interval",
        "10ms",
    ];
    let args = [&args[..], &["--duration", "30ms"]].concat();
    let ended = fullpipe(Path::new("."), &args);
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert!(ended.stdout.contains("0 flows"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("127.0.0.1"), "{}", ended.stdout);
    drop(near);
}

/// On a host with flows over its loopback alone an empty table would look as if there were none.
#[test]
fn flows_within_this_host_are_not_shown_but_hinted_at() {
    let (near, port) = connection(Duration::from_millis(1));
    let port = port.to_string();
    let args = ["observe", "--port", &port, "--interval", "10ms"];
    let args = [&args[..], &["--duration", "50ms"]].concat();
    let ended = fullpipe(Path::new("."), &args);
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert!(ended.stdout.contains("0 flows"), "{}", ended.stdout);
    // Once, and not at every look.
    let hint = "  hint: all 2 flows are within this host: `--loopback` shows them\n";
    assert_eq!(ended.stderr, hint);
    let shown = fullpipe(Path::new("."), &[&args[..], &["--loopback"]].concat());
    assert!(shown.stdout.contains("2 flows"), "{}", shown.stdout);
    assert_eq!(shown.stderr, "");
    drop(near);
}

#[test]
fn a_trace_has_a_row_per_look_in_the_schema_of_runs() {
    let (near, port) = connection(Duration::from_millis(1));
    let folder = tempfile::tempdir().unwrap();
    let port = port.to_string();
    let args = ["observe", "--loopback", "--port", &port];
    let args = [&args[..], &["--interval", "50ms", "--duration", "500ms"]].concat();
    let args = [&args[..], &["--trace", "flows.parquet"]].concat();
    let ended = fullpipe(folder.path(), &args);
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let trace = fullpipe_trace::Trace::open(&folder.path().join("flows.parquet")).unwrap();
    // Both ends are flows of this host.
    assert_eq!(trace.meta.flows.len(), 2);
    let local = near.local_addr().unwrap().to_string();
    let sender = trace
        .meta
        .flows
        .iter()
        .position(|f| f.name.starts_with(&local))
        .unwrap();
    let rows: Vec<_> = trace.of_flow(sender).map(|(_, row)| *row).collect();
    // Eleven where none was late.
    assert!((2..=11).contains(&rows.len()), "{} rows", rows.len());
    assert!(rows.is_sorted_by(|a, b| a.time < b.time));
    assert!(rows.last().unwrap().delivered > rows[0].delivered);
    assert!(rows.iter().all(|r| r.cwnd >= 1.0 && r.srtt.as_nanos() > 0));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays");
    drop(near);
}

#[test]
fn a_trace_that_cannot_be_written_is_told_at_once() {
    let ended = fullpipe(
        Path::new("."),
        &["observe", "--trace", "no/such/flows.parquet"],
    );
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("no/such/flows.parquet"),
        "{}",
        ended.stderr
    );
}
