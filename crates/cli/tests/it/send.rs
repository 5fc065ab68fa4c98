//! `fullpipe send` and `fullpipe ping` against a server on this host, as programs.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fullpipe_results::store::Table;
use fullpipe_trace::Trace;
use serde_json::Value;

use crate::process::{Finished, command, finished, fullpipe};
use crate::server::Server;

fn ok(ended: Finished) -> Finished {
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    ended
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

#[test]
fn a_run_in_either_direction_has_the_names_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    for direction in [&[][..], &["--reverse"]] {
        let mut line = vec!["send", &server.address, "--time", "1s", "--format", "json"];
        line.extend(["--window", "50 segments", "--streams", "2"]);
        line.extend(direction);
        let ended = ok(fullpipe(dir.path(), &line));
        let result = json(&ended.stdout);
        assert_eq!(result["ground"], "udp");
        let flow = &result["cases"][0]["flows"][0];
        assert_eq!(flow["name"], "main");
        assert!(flow["goodput_mbps"].as_f64().unwrap() > 1.0, "{flow}");
        assert!(flow["cwnd_segments"]["max"].as_f64().unwrap() <= 100.0);
        assert!(flow["rtt_ms"]["p50"].as_f64().unwrap() > 0.0);
    }
}

/// The last answers come when the last probe has long been sent.
#[test]
fn a_ping_waits_for_the_last_answers_of_a_long_path() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(&server.address).unwrap();
    let host = near.local_addr().unwrap().to_string();
    let (near, far) = (Arc::new(near), Arc::new(far));
    let client = Arc::new(Mutex::new(None));
    // Each thread ends with the program.
    for up in [true, false] {
        let (near, far, client) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&client));
        std::thread::spawn(move || {
            let (late, due) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
            let (back, there) = (Arc::clone(&near), Arc::clone(&far));
            let at = Arc::clone(&client);
            std::thread::spawn(move || {
                for (when, bytes) in due {
                    std::thread::sleep(when.saturating_duration_since(Instant::now()));
                    let to = at.lock().unwrap().unwrap();
                    let _ = match up {
                        true => there.send(&bytes),
                        false => back.send_to(&bytes, to),
                    };
                }
            });
            let mut bytes = [0; 2000];
            loop {
                let n = match up {
                    true => {
                        let (n, from) = near.recv_from(&mut bytes).unwrap();
                        *client.lock().unwrap() = Some(from);
                        n
                    }
                    false => far.recv(&mut bytes).unwrap_or(0),
                };
                let when = Instant::now() + Duration::from_millis(700);
                late.send((when, bytes[..n].to_vec())).unwrap();
            }
        });
    }
    let line = ["ping", &host, "-c", "3", "-i", "10ms", "--format", "json"];
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    assert_eq!(
        (&result["received"], &result["lost"]),
        (&3.into(), &0.into())
    );
    assert!(result.get("partial").is_none(), "{result}");
    // And no longer than that.
    let begin = Instant::now();
    let line = ["ping", &server.address, "-c", "3", "-i", "10ms"];
    ok(fullpipe(dir.path(), &line));
    assert!(begin.elapsed() < Duration::from_secs(2));
}

/// Servers have bounds of their own making that a client knows: nobody is asked.
#[test]
fn what_no_server_runs_is_a_wrong_flag_with_its_range() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens there.
    let host = "127.0.0.1:1";
    for (line, why) in [
        (
            &["send", host, "--traffic", "udp", "--rate", "1bit/s"][..],
            "cross traffic cross: rate: 1bit/s is out of range (1kbit/s to 10Tbit/s)",
        ),
        (
            &["send", host, "--traffic", "ping,interval=1us"],
            "cross traffic cross: interval: 1us is out of range (10us to 168h)",
        ),
        (
            &["ping", host, "-i", "1us"],
            "cross traffic ping: interval: 1us is out of range (10us to 168h)",
        ),
        (
            &["send", host, "--time", "200h"],
            "duration: 200h is out of range (1ms to 168h)",
        ),
    ] {
        let refused = fullpipe(dir.path(), line);
        let said =
            format!("error: {why}\n  hint: no server goes beyond that: choose a value within it\n");
        assert_eq!((refused.code, refused.stderr), (2, said), "{line:?}");
    }
}

#[test]
fn intervals_are_objects_and_so_is_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "--time",
        "2s",
        "--format",
        "ndjson",
        "--interval",
        "200ms",
        "--window",
        "20 segments",
    ];
    let ended = ok(fullpipe(dir.path(), &line));
    let lines: Vec<Value> = ended.stdout.lines().map(json).collect();
    let (result, intervals) = lines.split_last().unwrap();
    assert!(intervals.len() >= 3, "{}", ended.stdout);
    let mut last = 0.0;
    for interval in intervals {
        let (from, to) = (
            &interval["interval"]["from_s"],
            &interval["interval"]["to_s"],
        );
        assert_eq!(from.as_f64().unwrap(), last);
        last = to.as_f64().unwrap();
        let flow = &interval["flows"][0];
        assert_eq!(flow["name"], "main");
        assert!(flow["cwnd_segments"].as_f64().unwrap() > 0.0, "{interval}");
        assert!(flow["retransmits"].is_u64());
    }
    assert!(
        result["flows"][0]["goodput_mbps"].as_f64().unwrap() > 0.0,
        "{result}"
    );
}

/// What only its sender knows of a flow comes from the far host while the run lasts.
#[test]
fn intervals_of_a_reverse_run_have_what_its_sender_knows() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["send", &server.address, "--reverse", "--time", "2s"];
    let more = [
        "--format",
        "ndjson",
        "--interval",
        "200ms",
        "--window",
        "20 segments",
    ];
    let lossy = ["--set", "drop={ every = 1000 }"];
    let ended = ok(fullpipe(dir.path(), &[&line[..], &more, &lossy].concat()));
    let lines: Vec<Value> = ended.stdout.lines().map(json).collect();
    let (result, intervals) = lines.split_last().unwrap();
    assert!(intervals.len() >= 3, "{}", ended.stdout);
    // The first may be over before an answer is here.
    let mut again = 0;
    for interval in &intervals[1..] {
        let flow = &interval["flows"][0];
        let cwnd = flow["cwnd_segments"].as_f64().unwrap();
        assert!(cwnd > 0.0 && cwnd <= 20.0, "{interval}");
        assert!(flow["rtt_ms"].as_f64().unwrap() > 0.0, "{interval}");
        assert!(flow["delivered_segments"].as_u64().unwrap() > 0);
        again += flow["retransmits"].as_u64().unwrap();
    }
    let all = result["flows"][0]["retransmits"].as_u64().unwrap();
    assert!(0 < again && again <= all, "{again} of {all}");
}

#[test]
fn a_size_from_memory_proves_itself() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    for direction in [&[][..], &["--reverse"]] {
        let mut line = vec!["send", &server.address, "--size", "20MB", "--verify"];
        line.extend([
            "--window",
            "100 segments",
            "--set",
            "drop={ every = 5000 }",
            "--mode",
            "bulk",
        ]);
        line.extend(direction);
        let ended = ok(fullpipe(dir.path(), &line));
        assert!(ended.stderr.contains("on both sides"), "{}", ended.stderr);
        assert!(ended.stderr.contains("none missing"), "{}", ended.stderr);
    }
}

#[test]
fn a_trace_has_a_row_for_every_ack_and_is_whole_or_absent() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let send = |file: &str| {
        let line = ["send", &server.address, "--size", "2000 segments"];
        let more = ["--window", "40 segments", "--trace", file];
        fullpipe(dir.path(), &[&line[..], &more[..]].concat())
    };
    ok(send("run.parquet"));
    let csv = ok(fullpipe(
        dir.path(),
        &["export", "run.parquet", "--to", "csv"],
    ));
    let mut rows = csv.stdout.lines();
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    let place = names.iter().position(|n| *n == "snd_una").unwrap();
    let una: Vec<u64> = rows
        .map(|r| r.split(',').nth(place).unwrap().parse().unwrap())
        .collect();
    // One ACK at most for every second segment, quick ones aside.
    assert!((500..=3000).contains(&una.len()), "{} rows", una.len());
    assert!(una.is_sorted() && una.last() == Some(&2000));

    let ended = send("nowhere/run.parquet");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("the trace cannot be written"));
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// A window of 40 segments becomes one of 5 while the flow runs: not before `set`, and then no more
/// than 5 are under way as soon as the ACKs of one round trip are back.
#[test]
fn a_running_flow_takes_orders_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let control = dir.path().join("control");
    let mut line = vec!["send", &server.address, "--time", "4s", "--window"];
    line.extend(["40 segments", "--set", "rate=20Mbit/s"]);
    line.extend([
        "--trace",
        "run.parquet",
        "--format",
        "json",
        "--out",
        "kept",
    ]);
    line.extend(["--control", control.to_str().unwrap()]);
    let sender = command(dir.path(), &line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let set = |words: &str| fullpipe(dir.path(), &["set", control.to_str().unwrap(), words]);
    // Nobody listens before the session stands.
    let mut answered = None;
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(50));
        let shown = fullpipe(dir.path(), &["set", control.to_str().unwrap()]);
        if shown.code == 0 && !shown.stdout.contains("\t-") {
            answered = Some(shown.stdout);
            break;
        }
    }
    assert!(answered.is_some(), "the control socket never answered");
    let empty = set(" ");
    assert_eq!(empty.code, 2, "{}", empty.stderr);
    assert!(
        empty.stderr.contains("nothing is changed"),
        "{}",
        empty.stderr
    );
    let typo = set("windw=5 segments");
    assert!(
        typo.code == 2 && typo.stderr.contains("did you mean `window`"),
        "{}",
        typo.stderr
    );
    ok(set("window=5 segments,stack=reno"));
    let ended = ok(finished(sender.wait_with_output().unwrap()));
    let flow = json(&ended.stdout)["cases"][0]["flows"][0].clone();
    let stack = flow["stack"].as_str().unwrap();
    assert_eq!(flow["streams"][0]["stack"], stack);
    let named = stack.starts_with("cubic, from ") && stack.ends_with(" s reno");
    assert!(named, "{stack}");
    // Every file that is kept says the same.
    let kept = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&kept("kept/result.json")).unwrap();
    assert_eq!(result["cases"][0]["flows"][0]["stack"], stack);
    let runs = Table::from_parquet(kept("kept/runs.parquet")).unwrap();
    assert_eq!(runs.text("stack").unwrap(), [stack]);
    for trace in ["run.parquet", "kept/series/case-0000-seed1.parquet"] {
        let read = Trace::open(&dir.path().join(trace)).unwrap();
        assert_eq!(read.meta.flows[0].stack, stack, "{trace}");
    }
    assert!(!control.exists(), "the socket goes with its owner");

    let csv = ok(fullpipe(
        dir.path(),
        &["export", "run.parquet", "--to", "csv"],
    ));
    let mut rows = csv.stdout.lines();
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|n| *n == name).unwrap();
    let (time, cwnd, flight) = (column("time_s"), column("cwnd"), column("flight"));
    let srtt = column("srtt_ms");
    let rows: Vec<Vec<f64>> = rows
        .map(|r| {
            r.split(',')
                .map(|x| x.parse().unwrap_or(f64::NAN))
                .collect()
        })
        .collect();
    let narrow = rows
        .iter()
        .position(|r| r[cwnd] <= 5.0)
        .expect("the window changes");
    let largest = rows[..narrow].iter().map(|r| r[cwnd]).fold(0.0, f64::max);
    // The initial window, and more where the order came after the first round trip.
    assert!(largest >= 10.0, "{largest} segments before the order");
    let changed = &rows[narrow];
    // Twice the smoothed RTT: that of a moment may be longer.
    let round_trip = changed[time] + 2.0 * changed[srtt] * 1e-3;
    let later: Vec<&Vec<f64>> = rows[narrow..]
        .iter()
        .filter(|r| r[time] > round_trip)
        .collect();
    assert!(later.len() > 10, "{} rows after the order", later.len());
    let wide = later.iter().find(|r| r[cwnd] > 5.0 || r[flight] > 5.0);
    assert_eq!(
        wide, None,
        "window changed at {}, RTT {} ms",
        changed[time], changed[srtt]
    );
}

#[test]
fn requests_and_cross_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "--request",
        "10",
        "--every",
        "50ms",
        "--count",
        "10",
        "--reverse",
        "--format",
        "json",
    ];
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    let row = &result["cases"][0]["traffic"][0];
    assert_eq!(row["name"], "requests", "{result}");
    let line = [
        "send",
        &server.address,
        "--time",
        "1s",
        "--window",
        "10 segments",
        "--traffic",
        "udp",
        "--rate",
        "2Mbit/s",
        "--traffic",
        "sine,mean=2Mbit/s,amplitude=1Mbit/s,period=500ms",
        "--traffic",
        "ping,interval=100ms",
        "--format",
        "json",
    ];
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    let rows = result["cases"][0]["traffic"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{result}");
}

#[test]
fn out_is_a_result_directory_with_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "--time",
        "1s",
        "--window",
        "20 segments",
        "--out",
        "out",
    ];
    ok(fullpipe(dir.path(), &line));
    for file in ["manifest.json", "runs.parquet", "report.html"] {
        assert!(dir.path().join("out").join(file).exists(), "{file}");
    }
}

#[test]
fn a_run_with_a_peer_has_the_numbers_of_any_run() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    crate::process::write(dir.path(), "small.toml", crate::process::SMALL);
    let line = [
        "run",
        "small.toml",
        "--peer",
        &server.address,
        "--set",
        "duration=1s",
        "--set",
        "measure.interval=250ms",
        "--format",
        "json",
        "--set",
        "flow.main.window=\"20 segments\"",
    ];
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    assert_eq!(result["ground"], "udp");
    let flow = &result["cases"][0]["flows"][0];
    assert!(flow["goodput_mbps"].as_f64().unwrap() > 0.0, "{flow}");
    let wrong = fullpipe(
        dir.path(),
        &[
            "run",
            "small.toml",
            "--ground",
            "linux",
            "--peer",
            "localhost",
        ],
    );
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn what_a_limit_cuts_short_and_where_the_path_is_another_is_said() {
    let dir = tempfile::tempdir().unwrap();
    // One test at a time is enough, although a client asks for the round-trip time first.
    let server = Server::start(dir.path(), &["--max-tests", "1", "--max-bytes", "2MB"]);
    let line = ["send", &server.address, "--time", "20s"];
    let ended = fullpipe(dir.path(), &line);
    let said = "the run lasted";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(ended.stderr.contains("--max-bytes"), "{}", ended.stderr);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    // With its headers the last one is larger than it is said to be.
    for amount in [["--time", "20s"], ["--size", "1.99MB"]] {
        let line = [&["send", &server.address, "-J", "-q"], &amount[..]].concat();
        let ended = fullpipe(dir.path(), &line);
        assert_eq!(ended.code, 3, "{amount:?}: {}", ended.stderr);
        let why = &json(&ended.stdout)["cases"][0]["partial"];
        assert_eq!(why, "ended by the server's limit --max-bytes", "{amount:?}");
    }
    let refused = fullpipe(dir.path(), &["send", &server.address, "--size", "3MB"]);
    let message = refused.stderr.lines().next().unwrap_or_default();
    assert!(
        message.starts_with("error: the server refuses: "),
        "{message}"
    );
    assert_eq!(refused.code, 3, "a limit of the server is no wrong flag");
    let lost = dir.path().join("nowhere/trace.parquet");
    let lost = lost.to_str().unwrap();
    let line = ["send", &server.address, "--time", "1s", "--trace", lost];
    let untraced = fullpipe(dir.path(), &line);
    assert!(untraced.stderr.contains(lost), "{}", untraced.stderr);
    assert_eq!(untraced.code, 3);

    crate::process::write(dir.path(), "small.toml", crate::process::SMALL);
    let server = Server::start(dir.path(), &[]);
    let line = [
        "run",
        "small.toml",
        "--peer",
        &server.address,
        "--set",
        "duration=300ms",
        "--set",
        "flow.main.window=\"5 segments\"",
        "--set",
        "measure.interval=100ms",
        "--out",
        "out",
    ];
    ok(fullpipe(dir.path(), &line));
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    let said = format!("the one to {}, as it was", server.address);
    assert!(page.contains(&said), "the page says whose path it was");
}

/// Requests are answered from here, or from there; a key without a table is one of theirs.
#[test]
fn requests_go_the_way_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = ["send", &server.address, "--request", "200", "--count", "2"];
    let more = ["--every", "200ms", "--set", "delayed_ack=false", "--json"];
    for (way, direction) in [(&[][..], "forward"), (&["--reverse"], "reverse")] {
        let ended = ok(fullpipe(dir.path(), &[&line[..], &more, way].concat()));
        let requests = &json(&ended.stdout)["cases"][0]["traffic"][0];
        assert_eq!(requests["completed"], 2, "{direction}: {requests}");
    }
    let udp = ["--traffic", "udp,rate=1Mbit/s,direction=reverse"];
    let ended = fullpipe(dir.path(), &[&["send", &server.address], &udp[..]].concat());
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let said = "error: `traffic.cross.direction`: datagrams and pings set out here";
    assert!(ended.stderr.starts_with(said), "{}", ended.stderr);
}

/// A path that nobody makes takes no settings, and nothing says that it had what the file says.
#[test]
fn what_a_real_path_cannot_have_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let small = crate::process::SMALL.replace("1BDP\"", "1BDP\"\nloss = \"1%\"\njitter = \"1ms\"");
    crate::process::write(dir.path(), "small.toml", &small);
    let send = ["send", &server.address, "--time", "300ms"];
    let run = ["run", "small.toml", "--peer", &server.address];
    let path = "the path is the network to 127.0.0.1";
    let interface = "the interface of a host is its system's";
    let keys = [
        ("txqueuelen=100", interface),
        ("tsq=false", interface),
        ("rtt=50ms", path),
        ("path.loss=10%", path),
        ("path.rtt=500ms", path),
        ("link.a.rate=1Mbit/s", path),
        (
            "tcp_options=true",
            "packets have the headers of the transport",
        ),
    ];
    for (key, about) in keys {
        let own = key.contains('.');
        let of_run = if own {
            key.to_owned()
        } else {
            format!("flow.main.{key}")
        };
        for (line, key) in [(&send[..], key.to_owned()), (&run, of_run)] {
            if line == run && key.starts_with("path.rtt") {
                // It is what a BDP is.
                continue;
            }
            let ended = fullpipe(dir.path(), &[line, &["--set", &key]].concat());
            let name = key.split('=').next().unwrap();
            let said = format!("error: --set {name}: {about}");
            assert!(ended.stderr.starts_with(&said), "{}", ended.stderr);
            assert_eq!(ended.code, 2, "{key}");
        }
    }
    let copy = ["send", "small.toml", &format!("{}:", server.address)];
    let ended = fullpipe(
        dir.path(),
        &[&copy[..], &["--set", "nic_rate=1Gbit/s"]].concat(),
    );
    let said = format!("error: --set nic_rate: {interface}");
    assert!(ended.stderr.starts_with(&said), "{}", ended.stderr);
    let matrix = "[matrix]\n\"path.rtt\" = [\"2ms\", \"8ms\"]\n";
    crate::process::write(dir.path(), "small.toml", &format!("{small}{matrix}"));
    let more = [
        "--set",
        "duration=1s",
        "--set",
        "flow.main.rate=5Mbit/s",
        "--out",
        "out",
    ];
    let ended = fullpipe(dir.path(), &[&run[..], &more].concat());
    for said in [
        "`path.rtt` is only what 1BDP means, cases have its label",
        "what the scenario says of loss is not made there",
        "what the scenario says of jitter is not made there",
    ] {
        assert_eq!(
            ended.stderr.matches(said).count(),
            1,
            "{said}: {}",
            ended.stderr
        );
    }
    let asked = ["figure", "out", "window", "--out", "windows.svg"];
    ok(fullpipe(dir.path(), &asked));
    for name in [
        "out/figures/case-0001-rtt-8ms.svg",
        "out/figures/overview.svg",
        "windows.svg",
    ] {
        let svg = fs::read_to_string(dir.path().join(name)).unwrap();
        let said = format!("the network to {}, as it is", server.address);
        assert!(svg.contains(&said), "{name}: {svg}");
        assert!(
            !svg.contains("BDP") && !svg.contains("round trip") && !svg.contains("buffer"),
            "{name}: nobody measured these"
        );
    }
}

#[test]
fn data_may_be_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let key = "k".repeat(40);
    std::fs::write(dir.path().join("key"), &key).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(dir.path().join("key"), private).unwrap();
    let server = Server::start(dir.path(), &["--key", "key"]);
    let line = [
        "send",
        &server.address,
        "--key",
        "key",
        "--encrypt",
        "--size",
        "2MB",
        "--verify",
        "--window",
        "50 segments",
    ];
    let ended = ok(fullpipe(dir.path(), &line));
    assert!(ended.stderr.contains("none missing"), "{}", ended.stderr);
    let ended = fullpipe(dir.path(), &["ping", &server.address]);
    assert!(
        ended.code == 3 && ended.stderr.contains("same key"),
        "{}",
        ended.stderr
    );
}

#[test]
fn where_nothing_answers_the_error_says_what_to_look_at() {
    let dir = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = fullpipe(dir.path(), &["ping", &address]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("fullpipe serve"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&address), "{}", ended.stderr);
}

#[test]
fn ping_prints_every_answer_and_their_summary() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "ping",
        &server.address,
        "--count",
        "5",
        "--interval",
        "50ms",
    ];
    let ended = ok(fullpipe(dir.path(), &line));
    assert_eq!(
        ended.stdout.matches("  rtt ").count(),
        5,
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("5 probes, 5 answers, 0.0 % lost"),
        "{}",
        ended.stdout
    );
    let mut line = line.to_vec();
    line.extend(["--format", "json"]);
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    assert_eq!((&result["sent"], &result["lost"]), (&5.into(), &0.into()));
    assert!(result["rtt_ms"]["p99"].as_f64().unwrap() > 0.0);
}

/// By address and, where that means the same host, by name.
#[test]
fn everything_works_over_ipv6() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    std::fs::create_dir(here.join("there")).unwrap();
    let server = Server::start_at(here, "[::1]:0", &["--files", "there"]);
    let port = server.address.rsplit_once(':').unwrap().1;
    let names = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 1));
    let named = names.is_ok_and(|mut all| all.any(|a| a.is_ipv6()));
    if !named {
        eprintln!("skipped: localhost is no name of ::1 here");
    }
    let by_name = named.then(|| format!("localhost:{port}"));
    for address in std::iter::once(server.address.clone()).chain(by_name) {
        let line = ["ping", &address, "--count", "3", "--interval", "50ms"];
        let ended = ok(fullpipe(here, &line));
        let (sent, text) = ("3 probes, 3 answers", &ended.stdout);
        assert!(text.contains(sent), "{text}");
        let line = ["send", &address, "--size", "2MB", "--verify"];
        let ended = ok(fullpipe(here, &line));
        assert!(ended.stderr.contains("none missing"), "{}", ended.stderr);
    }
    std::fs::write(here.join("data"), bytes(300_000)).unwrap();
    ok(fullpipe(
        here,
        &["send", "data", &format!("{}:copy", server.address)],
    ));
    let copy = std::fs::read(here.join("there/copy")).unwrap();
    assert!(copy == bytes(300_000));
}

#[test]
fn a_file_goes_there_and_comes_back() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files]);
    let data = bytes(3_000_001);
    fs::write(dir.path().join("a.bin"), &data).unwrap();
    let host = &server.address;
    let ended = ok(fullpipe(
        dir.path(),
        &["send", "a.bin", &format!("{host}:")],
    ));
    assert!(
        ended.stdout.contains("3,000,001 bytes in "),
        "{}",
        ended.stdout
    );
    assert!(fs::read(there.path().join("a.bin")).unwrap() == data);
    let line = [
        "send",
        &format!("{host}:a.bin"),
        "b.bin",
        "--format",
        "json",
    ];
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    assert!(fs::read(dir.path().join("b.bin")).unwrap() == data);
    assert_eq!(result["bytes"], 3_000_001);
    assert_eq!(result["blake3"], blake3_of(&data));
}

fn blake3_of(data: &[u8]) -> String {
    blake3::hash(data).to_hex().to_string()
}

/// A limit of bytes is one of content, and of each file by itself.
#[test]
fn files_of_as_many_bytes_as_a_server_allows_are_copied() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files, "--max-bytes", "1MB"]);
    let host = &server.address;
    let data = bytes(1_000_000);
    for name in ["a.bin", "b.bin"] {
        fs::write(dir.path().join(name), &data).unwrap();
    }
    ok(fullpipe(
        dir.path(),
        &["send", "a.bin", "b.bin", &format!("{host}:")],
    ));
    for name in ["a.bin", "b.bin"] {
        assert!(fs::read(there.path().join(name)).unwrap() == data, "{name}");
    }
    let back = |name: &str| fullpipe(dir.path(), &["send", &format!("{host}:{name}"), "back.bin"]);
    ok(back("a.bin"));
    assert!(fs::read(dir.path().join("back.bin")).unwrap() == data);
    fs::write(there.path().join("big.bin"), bytes(1_000_001)).unwrap();
    let ended = back("big.bin");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("--max-bytes"), "{}", ended.stderr);
}

#[test]
fn what_must_not_be_done_with_files_is_not_done() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let server = Server::start(
        dir.path(),
        &[
            "--files",
            &files,
            "--max-bytes",
            "1MB",
            "--max-tests-per-peer",
            "16",
        ],
    );
    fs::write(dir.path().join("a.bin"), bytes(1000)).unwrap();
    fs::write(dir.path().join("big.bin"), bytes(1_000_001)).unwrap();
    fs::write(there.path().join("there.bin"), b"other").unwrap();
    std::os::unix::fs::symlink("/etc", there.path().join("etc")).unwrap();
    let host = &server.address;
    for (name, word) in [
        ("../a.bin", "not allowed"),
        ("/srv/a.bin", "absolute"),
        ("etc/a.bin", "links"),
        (".a", "hidden"),
        ("there.bin", "exists"),
        ("a.part", ".part"),
    ] {
        let to = format!("{host}:{name}");
        for line in [["send", "a.bin", &to], ["send", &to, "back.bin"]] {
            if line[1] == to && name == "there.bin" {
                continue;
            }
            let ended = fullpipe(dir.path(), &line);
            assert_eq!(ended.code, 3, "{line:?}: {}", ended.stderr);
            let said = ended.stderr.contains(word) || line[1] == to;
            assert!(said, "{line:?}: {}", ended.stderr);
        }
    }
    let ended = fullpipe(dir.path(), &["send", "big.bin", &format!("{host}:")]);
    assert!(
        ended.code == 3 && ended.stderr.contains("--max-bytes"),
        "{}",
        ended.stderr
    );
    assert_eq!(fs::read(there.path().join("there.bin")).unwrap(), b"other");
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 2);
    assert!(!dir.path().join("back.bin").exists());
    // A server without files.
    let server = Server::start(dir.path(), &[]);
    let ended = fullpipe(
        dir.path(),
        &["send", "a.bin", &format!("{}:", server.address)],
    );
    assert!(
        ended.code == 3 && ended.stderr.contains("serve --files"),
        "{}",
        ended.stderr
    );
}

/// Killed ten times at moments that follow from a seed, five times the client and five times the
/// server; then left alone.
#[test]
fn a_file_survives_ten_kills() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let size = 60_000_000;
    let data = bytes(size);
    fs::write(dir.path().join("a.bin"), &data).unwrap();
    let mut server = Server::start(dir.path(), &["--files", &files]);
    let address = server.address.clone();
    let to = format!("{address}:b.bin");
    // Slow enough that it lasts: about 8 MB/s.
    let line = [
        "send",
        "a.bin",
        &to,
        "--set",
        "window=12 segments",
        "--set",
        "ack_every=1",
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut unfinished = 0;
    for round in 0..10 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut client = command(dir.path(), &line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(50 + seed % 400));
        unfinished += u32::from(client.try_wait().unwrap().is_none());
        if round % 2 == 0 {
            client.kill().unwrap();
        } else {
            server.kill();
            client.kill().unwrap();
            server = Server::start_at(dir.path(), &address, &["--files", &files]);
        }
        client.wait().unwrap();
        let half_written = fs::read(there.path().join("b.bin")).is_ok_and(|b| b != data);
        assert!(!half_written, "something half-written has the final name");
    }
    let ended = ok(fullpipe(
        dir.path(),
        &["send", "a.bin", &to, "--format", "json"],
    ));
    let result = json(&ended.stdout);
    assert_eq!(result["blake3"], blake3_of(&data));
    assert!(fs::read(there.path().join("b.bin")).unwrap() == data);
    assert_eq!(
        fs::read_dir(there.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    // A machine that is fast enough to finish in between shows less, but nothing wrong.
    println!("{unfinished} of 10 kills struck a transfer under way; {result}");
}

#[test]
fn a_full_disk_is_told_at_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount("4m") else {
        println!("skipped: a small file system needs root and a mount namespace");
        return;
    };
    let files = small.path();
    let server = Server::start(dir.path(), &["--files", &files]);
    fs::write(dir.path().join("a.bin"), bytes(8_000_000)).unwrap();
    let to = format!("{}:a.bin", server.address);
    let ended = fullpipe(dir.path(), &["send", "a.bin", &to]);
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("the disk is full"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("make room"), "{}", ended.stderr);
    drop(server);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("a.bin"), bytes(8_000_000)).unwrap();
    let files_there = other.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files_there]);
    let from = format!("{}:a.bin", server.address);
    let ended = fullpipe(dir.path(), &["send", &from, &files]);
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("the disk is full"),
        "{}",
        ended.stderr
    );
}

/// Somebody else takes the room while a copy runs: which file it is about is said, as if there had
/// been none from the start.
#[test]
fn a_disk_that_fills_during_a_copy_is_told_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount("8m") else {
        println!("skipped: a small file system needs root and a mount namespace");
        return;
    };
    let files = small.path();
    let there = tempfile::tempdir().unwrap();
    let line = ["--files", &there.path().display().to_string()];
    let server = Server::start(dir.path(), &line);
    fs::create_dir(there.path().join("d")).unwrap();
    for name in ["a", "b"] {
        fs::write(there.path().join("d").join(name), bytes(2_000_000)).unwrap();
    }
    let from = format!("{}:d", server.address);
    let line = ["send", &from, &files, "-b", "16Mbit/s"];
    let mut client = command(dir.path(), &line);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = client.spawn().unwrap();
    let part = Path::new(&files).join("d/a.part");
    let begun = Instant::now();
    while !part.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    // Whatever there is.
    let filled = fs::write(Path::new(&files).join("junk"), bytes(8_000_000));
    assert!(filled.is_err());
    let ended = finished(client.wait_with_output().unwrap());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let names = ["a: the disk is full", "b: the disk is full"];
    assert!(
        names.iter().any(|n| ended.stderr.contains(n)),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("make room"), "{}", ended.stderr);
}

/// A disk that is full soon.
pub struct Small(tempfile::TempDir);

impl Small {
    pub fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output();
        mounted.ok()?.status.success().then_some(Self(dir))
    }

    pub fn path(&self) -> String {
        self.0.path().display().to_string()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status();
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a.bin"), bytes(1000)).unwrap();
    let files = there.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files]);
    // A directory stands where the unfinished file would go: nobody, root included, can open it for
    // writing.
    fs::create_dir(there.path().join("a.bin.part")).unwrap();
    let ended = fullpipe(
        dir.path(),
        &["send", "a.bin", &format!("{}:", server.address)],
    );
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("directory"), "{}", ended.stderr);
}

/// 20 GB from memory to memory:
/// `cargo test --release -p fullpipe --test it -- --ignored twenty_gigabytes --nocapture`.
#[test]
#[ignore = "takes a minute and two processors"]
fn twenty_gigabytes_lose_nothing_in_flat_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let line = [
        "send",
        &server.address,
        "--size",
        "20GB",
        "--verify",
        "--mode",
        "bulk",
    ];
    let client = command(dir.path(), &line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, serving) = (client.id(), server.child.id());
    let waiting = std::thread::spawn(move || client.wait_with_output().unwrap());
    let mut peaks = Vec::new();
    while !waiting.is_finished() {
        if let (Some(a), Some(b)) = (resident(pid), resident(serving)) {
            peaks.push((a, b));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let ended = ok(finished(waiting.join().unwrap()));
    println!(
        "{}{}resident kB (client, server): {peaks:?}",
        ended.stdout, ended.stderr
    );
    assert!(ended.stderr.contains("none missing"));
    let most = peaks.iter().map(|(a, b)| *a.max(b)).max().unwrap();
    assert!(most < 300_000, "{most} kB");
}

fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn directories_go_there_and_come_back_with_a_summary() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files]);
    let d = dir.path().join("d");
    fs::create_dir_all(d.join("sub")).unwrap();
    for i in 0..200 {
        fs::write(d.join(format!("sub/{i}")), bytes(i * 37)).unwrap();
    }
    fs::write(d.join("big"), bytes(700_001)).unwrap();
    fs::write(dir.path().join("more"), bytes(5)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", d.join("link")).unwrap();
    let to = format!("{}:in/", server.address);
    let send = |more: &[&str]| {
        let line = [&["send", "d", "more", &to, "--format", "json"][..], more].concat();
        json(&ok(fullpipe(dir.path(), &line)).stdout)
    };
    let would = send(&["--dry-run"]);
    assert_eq!(
        (&would["sent"], &would["dry_run"]),
        (&202.into(), &true.into())
    );
    assert_eq!(
        fs::read_dir(there.path()).unwrap().count(),
        0,
        "nothing was changed"
    );
    let first = send(&[]);
    assert_eq!(
        (&first["sent"], &first["left_out"]),
        (&202.into(), &1.into())
    );
    assert_eq!(first["bytes_sent"], first["bytes"]);
    fs::write(d.join("sub/7"), bytes(8)).unwrap();
    let line = ["send", "d", "more", &to];
    let refused = fullpipe(dir.path(), &line);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let said = "203 files: 201 skipped, 1 failed";
    let said = said.replace("203", "202");
    assert!(refused.stdout.contains(&said), "{}", refused.stdout);
    assert!(refused.stderr.contains("sub/7"), "{}", refused.stderr);
    let from = format!("{}:in/d", server.address);
    let line = ["send", &from, "back/", "--format", "json"];
    let dry = [&line[..], &["--dry-run"]].concat();
    let would = json(&ok(fullpipe(dir.path(), &dry)).stdout);
    assert_eq!(would["sent"], 201);
    assert!(!dir.path().join("back").exists(), "nothing was made");
    let back = json(&ok(fullpipe(dir.path(), &line)).stdout);
    assert_eq!(back["sent"], 201, "{back}");
    for name in ["sub/199", "big"] {
        let copy = fs::read(dir.path().join("back/d").join(name)).unwrap();
        assert!(copy == fs::read(d.join(name)).unwrap(), "{name}");
    }
    assert!(!dir.path().join("back/d/link").exists());
}

#[test]
fn an_interrupted_copy_says_what_came_and_how_to_go_on() {
    let (dir, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = there.path().display().to_string();
    let server = Server::start(dir.path(), &["--files", &files, "--max-rate", "100Mbit/s"]);
    let data = bytes(60_000_000);
    fs::write(dir.path().join("a b"), &data).unwrap();
    let to = format!("{}:x", server.address);
    let line = ["send", "a b", &to, "--format", "json"];
    let mut client = command(dir.path(), &line);
    let client = client
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    let pid = nix::unistd::Pid::from_raw(client.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let ended = finished(client.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let result = json(&ended.stdout);
    let sent = result["bytes_sent"].as_u64().unwrap();
    assert!(sent > 100_000 && sent < 60_000_000, "{result}");
    assert_eq!(
        (&result["partial"], &result["unfinished"]),
        (&"interrupted".into(), &1.into())
    );
    let again = format!("fullpipe send 'a b' {to}");
    assert!(ended.stderr.contains(&again), "{}", ended.stderr);
    let result = json(&ok(fullpipe(dir.path(), &line)).stdout);
    let before = result["bytes_before"].as_u64().unwrap();
    assert!(before > 0 && before < 60_000_000, "{result}");
    assert_eq!(result["resumed"], 1);
    assert!(fs::read(there.path().join("x")).unwrap() == data);
}

/// A built-in scenario over the path to a host: what is the file's own path is not there, the flags
/// change its flows, and the picture that people know lies beside the result.
#[test]
fn a_named_test_is_a_scenario_over_the_path_to_a_host() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let test = |name: &str, more: &[&str]| {
        let line = ["send", &server.address, "--test", name, "--time", "2s"];
        let common = ["--bitrate", "4Mbit/s", "--json"];
        fullpipe(dir.path(), &[&line[..], &common, more].concat())
    };
    let result = json(&ok(test("rrul", &["--streams", "2", "--out", "r"])).stdout);
    assert_eq!(result["scenario"], "rrul");
    assert_eq!(result["cases"].as_array().unwrap().len(), 1);
    let case = &result["cases"][0];
    assert_eq!(
        case["params"],
        serde_json::json!({}),
        "the path is not ours"
    );
    assert_eq!(result["expectations"], serde_json::json!([]));
    for (i, name) in ["up", "down"].into_iter().enumerate() {
        let flow = &case["flows"][i];
        assert_eq!(
            (&flow["name"], &flow["stack"]),
            (&name.into(), &"cubic".into())
        );
        // Two streams of 4 Mbit/s in either direction, seven eighths of the time.
        let goodput = flow["goodput_mbps"].as_f64().unwrap();
        assert!((2.0..9.0).contains(&goodput), "{flow}");
    }
    assert!(
        case["traffic"][0]["rtt_ms"]["mean"].as_f64().unwrap() > 0.0,
        "{case}"
    );
    let load = fs::read_to_string(dir.path().join("r/figures/load.svg")).unwrap();
    for panel in [
        "up: goodput (Mbit/s)",
        "down: goodput (Mbit/s)",
        "ping: ping (ms)",
    ] {
        assert!(load.contains(&format!(">{panel}<")), "{panel}");
    }
    let result = json(&ok(test("versus", &["--stack", "htcp", "-C", "scalable"])).stdout);
    let flows = result["cases"][0]["flows"].as_array().unwrap();
    let stacks: Vec<&Value> = flows.iter().map(|f| &f["stack"]).collect();
    assert_eq!(stacks, ["htcp", "scalable"]);
}

#[test]
fn what_does_not_fit_a_named_test_is_said_of_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| fullpipe(dir.path(), &[&["send", "127.0.0.1:9"], args].concat());
    for (args, words) in [
        (
            &["--test", "rrul", "-s", "cubik"][..],
            "error: --stack: `flow.up.stack = cubik`",
        ),
        (
            &["--test", "rrul", "-s", "a", "-s", "b", "-s", "c"],
            "one each for up, down",
        ),
        (
            &["-s", "reno", "-s", "cubic"],
            "--test versus --stack A --stack B",
        ),
        (&["--test", "rull"], "rrul, bidirectional, versus"),
        (&["--test", "rull"], "hint: did you mean `rrul`?"),
        (
            &["--test", "rtt-fairness"],
            "hint: `rtt-fairness` is no question about one real path: its flows have different \
             round-trip times",
        ),
        (&["--test", "rtt_fair"], "`fullpipe run rtt-fairness` makes"),
        (
            &["--test", "parking-lot"],
            "hint: `parking` is no question about one real path: its flows cross several \
             bottlenecks",
        ),
        (
            &["--test", "blast"],
            "`fullpipe run blast` makes such a path",
        ),
        (&["--test", "rrul", "--reverse"], "cannot be used with"),
        (&["--test", "versus", "--time", "3 apples"], "--time"),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}
