//! `fullpipe observe` on connections of the test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::process::{command, finished, fullpipe};
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
    // Not in every fifth of a second: on a busy machine the reader may be late.
    let sends = |o: &&Value| o["sent_mbps"].as_f64().is_some_and(|rate| rate > 0.0);
    assert!(sent.iter().any(sends));
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

/// A connection that has sent what it had and stays open: nothing of it changes between two looks,
/// and iproute2's `ss -ti` reads the same of it.
#[test]
fn what_is_observed_is_what_ss_says() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.write_all(&[0; 300_000]).unwrap();
    far.read_exact(&mut vec![0; 300_000]).unwrap();
    // The last ACK is there, and no timer will send another.
    thread::sleep(Duration::from_millis(300));
    let port = port.to_string();
    let args = [
        "observe",
        "--loopback",
        "--port",
        &port,
        "--interval",
        "50ms",
    ];
    let args = [&args[..], &["--duration", "100ms", "--format", "ndjson"]].concat();
    let ended = fullpipe(Path::new("."), &args);
    let to = format!("dport = :{port}");
    let ss = std::process::Command::new("ss")
        .args(["-tinH", &to])
        .output();
    let ss = match ss {
        Ok(ss) if ended.code != 3 && ss.status.success() => ss,
        other => {
            eprintln!("skipped: {} {other:?}", ended.stderr);
            return;
        }
    };
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ss = String::from_utf8(ss.stdout).unwrap();
    if !ss.contains("rcv_space:") || !ss.contains("bytes_sent:") {
        eprintln!("skipped: an `ss` that does not know these fields: {ss}");
        return;
    }
    let local = near.local_addr().unwrap().to_string();
    let lines = ended
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap());
    let lines: Vec<Value> = lines.collect();
    let ours = lines
        .iter()
        .rfind(|o| o["local"] == local.as_str())
        .unwrap();
    let info = |name: &str| ours["tcp_info"][name].as_f64().unwrap();
    let theirs = |name: &str| {
        let word = ss
            .split_whitespace()
            .find_map(|w| w.strip_prefix(&format!("{name}:")));
        let word = word.unwrap_or_else(|| panic!("{name}: {ss}"));
        word.split(['/', ','])
            .map(|n| n.parse().unwrap())
            .collect::<Vec<f64>>()
    };
    // RTTs in milliseconds of three decimals there, in microseconds here.
    let rtt = theirs("rtt");
    assert_eq!(
        (info("rtt") / 1e3, info("rttvar") / 1e3),
        (rtt[0], rtt[1]),
        "{ss}"
    );
    assert_eq!(info("min_rtt") / 1e3, theirs("minrtt")[0], "{ss}");
    assert_eq!(info("rto") / 1e3, theirs("rto")[0], "{ss}");
    for (name, word) in [
        ("snd_cwnd", "cwnd"),
        ("snd_mss", "mss"),
        ("pmtu", "pmtu"),
        ("rcv_mss", "rcvmss"),
        ("advmss", "advmss"),
        ("bytes_sent", "bytes_sent"),
        ("bytes_acked", "bytes_acked"),
        ("segs_out", "segs_out"),
        ("segs_in", "segs_in"),
        ("data_segs_out", "data_segs_out"),
        ("delivered", "delivered"),
        ("rcv_space", "rcv_space"),
    ] {
        assert_eq!(info(name), theirs(word)[0], "{name}: {ss}");
    }
    assert!(info("bytes_acked") >= 300_000.0);
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

/// `fullpipe observe | head -1` ends with `head`; what is traced stays.
#[test]
fn it_ends_when_nobody_reads_any_more() {
    let (near, port) = connection(Duration::from_millis(1));
    let folder = tempfile::tempdir().unwrap();
    let port = port.to_string();
    let args = [
        "observe",
        "--loopback",
        "--port",
        &port,
        "--format",
        "ndjson",
    ];
    let args = [&args[..], &["--interval", "20ms", "--trace", "t.parquet"]].concat();
    let mut observing = command(folder.path(), &args);
    let observing = observing.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut observing = observing.spawn().unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(observing.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    drop(lines);
    let ended = finished(observing.wait_with_output().unwrap());
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(first.starts_with('{'), "{first}");
    assert!(fullpipe_trace::Trace::open(&folder.path().join("t.parquet")).is_ok());
    drop(near);
}

/// A client that has said all it has to say, and still receives.
#[test]
fn who_only_receives_is_seen_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    server.write_all(&[7; 1000]).unwrap();
    thread::sleep(Duration::from_millis(50));
    let args = ["observe", "--loopback", "--duration", "100ms", "--interval"];
    let args = [&args[..], &["100ms", "--format", "ndjson", "--port"]].concat();
    let ended = fullpipe(Path::new("."), &[&args[..], &[&port.to_string()]].concat());
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    let local = client.local_addr().unwrap().to_string();
    let looks = ended.stdout.lines();
    let mut looks = looks.map(|l| serde_json::from_str::<Value>(l).unwrap());
    // The other end's row names it, too.
    assert!(looks.any(|l| l["local"] == local), "{}", ended.stdout);
    drop((client, server));
}

/// Devices and pipes are written to, not replaced.
#[test]
fn a_trace_may_go_into_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    let args = ["observe", "--duration", "50ms", "--interval", "50ms"];
    let ended = fullpipe(folder.path(), &[&args[..], &["--trace", "pipe"]].concat());
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(reader.join().unwrap().starts_with(b"PAR1"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
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
