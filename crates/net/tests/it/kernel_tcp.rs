//! Flows over the kernel's own TCP beside a session, over loopback.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_net::session::Reason;
use fullpipe_net::session::client::SessionError;
use fullpipe_net::session::event::Event;
use fullpipe_net::session::handshake::HandshakeError;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::Options;
use fullpipe_run::{CrossSpec, FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Rate, Span, Time};

use crate::session::{Running, flow, go, key, spec};

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
    let server = Running::start(key("a"), Limits::default());
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

#[test]
fn it_listens_only_while_a_test_of_it_runs() {
    let server = Running::start(key("a"), Limits::default());
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
    let server = Running::start(key("a"), limits);
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
    let server = Running::start(key("a"), Limits::default());
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
