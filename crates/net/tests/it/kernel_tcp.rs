//! Flows over the kernel's own TCP beside a session, over loopback.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::session::Reason;
use fullpipe_net::session::client::{SessionError, run_with_peer};
use fullpipe_net::session::event::Event;
use fullpipe_net::session::handshake::HandshakeError;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::Options;
use fullpipe_realtime::live::{Live, LiveFlow, LiveRun};
use fullpipe_run::{CrossSpec, FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Rate, Span, Time};

use crate::session::{Running, flow, go, key, spec};

/// An address of the loopback from which no connection begins: no other's port is in the way when
/// the server listens for TCP at the port that it has for UDP.
const OWN: &str = "127.23.0.1:0";

fn kernel_tcp() -> Options {
    Options {
        kernel_tcp: true,
        ..Options::default()
    }
}

/// Without the ceiling of the window, which the kernel is not told.
fn tcp_flow(name: &str, segments: Option<u64>, reverse: bool) -> FlowSpec {
    let mut flow = flow(name, segments, reverse);
    flow.sender.window.max = f64::INFINITY;
    flow
}

fn run(server: &Running, spec: &RunSpec) -> fullpipe_run::Outcome {
    go(server, key("a"), spec, kernel_tcp()).unwrap()
}

#[test]
fn finite_transfers_go_up_and_down_to_the_last_segment() {
    let server = Running::at(OWN, key("a"), Limits::default());
    let flows = vec![
        tcp_flow("up", Some(3000), false),
        tcp_flow("down", Some(2000), true),
    ];
    let mut spec = spec(1500, flows);
    spec.trace = Trace::Every(Span::from_millis(10));
    spec.cross = vec![CrossSpec::probes(
        "ping",
        100,
        Span::from_millis(10),
        vec![],
        vec![],
    )];
    let outcome = run(&server, &spec);
    for (f, segments) in outcome.flows.iter().zip([3000, 2000]) {
        let totals = &f.totals;
        assert_eq!(totals.delivered, segments, "{}", f.name);
        assert!(
            totals.sent >= segments && f.cwnd_max >= 10.0,
            "{}: {totals:?}",
            f.name
        );
        assert!(
            f.completed.unwrap() <= Time::ZERO + spec.duration,
            "{}",
            f.name
        );
        assert!(f.rtt.count() > 0 && !f.rounds.is_empty(), "{}", f.name);
        assert!(!f.series.rows.is_empty(), "{}", f.name);
        assert_eq!(f.delivered_per_interval.iter().sum::<u64>(), segments);
    }
    // The probes are UDP as ever.
    assert!(outcome.cross[0].arrived > 100);
    let events = server.end();
    assert!(
        !events.iter().any(|e| matches!(e, Event::Lost { .. })),
        "{events:?}"
    );
}

/// Of a connection that the far host sends on, too: it says so while the run lasts.
#[test]
fn windows_of_both_directions_are_seen_while_they_run() {
    let server = Running::at(OWN, key("a"), Limits::default());
    let flows = vec![tcp_flow("up", None, false), tcp_flow("down", None, true)];
    let spec = spec(3000, flows);
    let live = Live::default();
    live.begin(LiveRun::new(&spec));
    live.read_every(Span::from_millis(200));
    let (over, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        let seen = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let latest = live.latest();
                let knows = |f: &LiveFlow| f.cwnd.is_some() && f.srtt.is_some();
                if latest.flows.len() == 2 && latest.flows.iter().all(knows) {
                    return Some(latest);
                }
                thread::sleep(Duration::from_millis(20));
            }
            None
        });
        let hooks = Hooks {
            live: Some(&live),
            ..Hooks::default()
        };
        let peer = server.peer(key("a"));
        let local = ground::Options::default();
        run_with_peer(&spec, &peer, kernel_tcp(), &local, hooks, &never).unwrap();
        over.store(true, Ordering::Relaxed);
        seen.join().unwrap()
    });
    let seen = seen.expect("both windows, before the run was over");
    for flow in &seen.flows {
        assert!(flow.cwnd.unwrap() >= 1.0, "{flow:?}");
        assert!(flow.srtt.unwrap() > Span::ZERO, "{flow:?}");
        assert!(flow.retransmits.is_some(), "{flow:?}");
    }
    // At the end each side knows what was delivered.
    assert!(live.latest().flows.iter().all(|f| f.delivered > 1000));
}

#[test]
fn it_listens_only_while_a_test_of_it_runs() {
    let server = Running::at(OWN, key("a"), Limits::default());
    TcpStream::connect(server.address).unwrap_err();
    let outcome = run(&server, &spec(300, vec![tcp_flow("up", None, false)]));
    assert!(outcome.flows[0].totals.delivered > 1000);
    let begin = Instant::now();
    while TcpStream::connect(server.address).is_ok() {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "it still listens"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_limits_of_a_server_hold_for_connections_too() {
    let limits = Limits {
        max_rate: Some(Rate::from_bits_per_sec(20_000_000)),
        max_bytes: Some(Bytes(2_000_000)),
        ..Limits::default()
    };
    let server = Running::at(OWN, key("a"), limits);
    // 2 MB at 20 Mbit/s are 0.8 s.
    for reverse in [false, true] {
        let outcome = run(&server, &spec(8000, vec![tcp_flow("bulk", None, reverse)]));
        let delivered = outcome.flows[0].totals.delivered * 1448;
        assert!(
            (500_000..2_200_000).contains(&delivered),
            "{reverse} {delivered}"
        );
    }
    let ends: Vec<f64> = server
        .end()
        .iter()
        .filter_map(|e| match e {
            Event::Finished { why, seconds, .. } if why.contains("--max-bytes") => Some(*seconds),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 2);
    assert!(
        ends.iter().all(|s| *s > 0.7),
        "faster than the limit: {ends:?}"
    );
}

#[test]
fn what_the_kernels_tcp_cannot_carry_is_refused_before_the_run() {
    let server = Running::at(OWN, key("a"), Limits::default());
    let encrypted = Options {
        encrypted: true,
        ..kernel_tcp()
    };
    let refused = go(&server, key("a"), &spec(100, vec![]), encrypted);
    assert!(
        matches!(
            refused,
            Err(SessionError::Handshake {
                error: HandshakeError::Refused(Reason::Unsupported),
                ..
            })
        ),
        "{refused:?}"
    );
    let mut strange = tcp_flow("down", None, true);
    strange.stack = StackSpec::parse("fast").unwrap();
    match go(&server, key("a"), &spec(100, vec![strange]), kernel_tcp()) {
        Err(SessionError::Refused(why)) => {
            assert!(
                why.contains("no congestion control `fast`; it has"),
                "{why}"
            );
        }
        other => panic!("{other:?}"),
    }
}
