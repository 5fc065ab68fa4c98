//! Many tests at a time on one server, in a process of its own: what each gets, what they take, and
//! what one more is told.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::io::Stop;
use fullpipe_net::session::Key;
use fullpipe_net::session::client::{Peer, run_with_peer};
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::Options;
use fullpipe_net::session::server::{Config, Server};
use fullpipe_units::Span;

use crate::session::{flow, spec};

/// Set in the process that serves: how many tests.
const SERVES: &str = "FULLPIPE_TEST_SERVES";

/// A process beside this one takes processors from some tests and not from others; a server that
/// prefers some does so every time.
#[test]
fn eight_are_served_alike() {
    let name = "crowd::eight_are_served_alike";
    let is_even = (0..4).any(|_| crowd(name, 8, 4_000).is_none_or(|jain| jain > EVEN));
    assert!(is_even, "four times uneven");
}

#[test]
#[ignore = "half a minute of two processors: cargo test -p fullpipe-net --test it -- --ignored crowd"]
fn two_hundred_are_served_alike() {
    let jain = crowd("crowd::two_hundred_are_served_alike", 200, 20_000);
    assert!(jain.is_none_or(|jain| jain > EVEN), "{jain:?}");
}

/// 1 is what equal shares have; TCP flows of equal round trips have more (Jain et al. 1984 define
/// it; Chiu and Jain 1989 show that additive increase gets there).
const EVEN: f64 = 0.9;

/// `tests` at a time, `millis` each, by the test `name`: Jain's index of what they got; none in the
/// process that serves.
fn crowd(name: &str, tests: u32, millis: u64) -> Option<f64> {
    if let Ok(tests) = std::env::var(SERVES) {
        serve(tests.parse().unwrap());
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--include-ignored", "--nocapture", name])
        .env(SERVES, tests.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.find_map(|line| {
        let line = line.unwrap();
        let (_, address) = line.split_once("serving ")?;
        Some(address.parse().unwrap())
    });
    let peer = Peer {
        patience: Span::from_secs(30),
        ..Peer::new(said.expect("its address"), Key::open())
    };
    let before = status(&child, "VmRSS:");
    let clients: Vec<_> = (0..tests)
        .map(|_| {
            let peer = peer.clone();
            std::thread::spawn(move || down(&peer, millis))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(millis * 2 / 3));
    let (during, threads) = (status(&child, "VmRSS:"), status(&child, "Threads:"));
    let one_more = down(&peer, 1000).unwrap_err();
    let got: Vec<f64> = clients
        .into_iter()
        .map(|client| client.join().unwrap().unwrap())
        .collect();
    let (sum, squares) = got.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let jain = sum * sum / (f64::from(tests) * squares);
    let each = during.saturating_sub(before) / u64::from(tests);
    println!(
        "{tests} tests: {:.0} Mbit/s in all, Jain's index {jain:.3}, {each} kB each, {threads} \
         threads; one more: {one_more}",
        sum * 8.0 * 1448.0 / (millis as f64 * 1e3)
    );
    drop(child.stdin.take());
    // What the other process prints has to go somewhere.
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    let busy = format!("busy with {tests} tests");
    assert!(one_more.contains(&busy), "{one_more}");
    // What it is booked with at the least (docs/serve.md).
    assert!(each < 1024 + 400 + 64, "{each} kB");
    // Of the test itself: one of the harness, one that serves, one that waits.
    assert!(threads <= u64::from(tests) + 4, "{threads}");
    Some(jain)
}

/// Segments that a flow of the server brings.
fn down(peer: &Peer, millis: u64) -> Result<f64, String> {
    let spec = spec(millis, vec![flow("down", None, true)]);
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let ran = run_with_peer(
        &spec,
        peer,
        Options::default(),
        &local,
        Hooks::default(),
        &never,
    );
    let (outcome, _) = ran.map_err(|e| e.to_string())?;
    Ok(outcome.flows[0].totals.delivered as f64)
}

/// A number of `/proc/PID/status`.
fn status(child: &Child, name: &str) -> u64 {
    let all = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Until nobody holds its input any more.
fn serve(tests: u32) {
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        key: Key::open(),
        limits: Limits {
            max_tests: tests,
            max_tests_per_peer: tests,
            ..Limits::default()
        },
        grace: Span::from_secs(2),
    };
    let server = Server::bind(config, Arc::new(|_| {})).unwrap();
    println!("serving {}", server.address());
    let stop = Stop::new().unwrap();
    let until = stop.clone();
    let thread = std::thread::spawn(move || server.run(&until).unwrap());
    let _ = std::io::stdin().read(&mut [0]);
    stop.set();
    // One more was turned away before it was one.
    assert_eq!(thread.join().unwrap(), u64::from(tests));
}
