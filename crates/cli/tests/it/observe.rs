//! `fullpipe observe` on connections of the test's own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::process::fullpipe;

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
