//! Client and server over loopback.

mod sealed;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::io::Stop;
use fullpipe_net::session::client::{Client, Peer, SessionError, run_with_peer};
use fullpipe_net::session::control::{ClientMessage, EndReason, ServerMessage};
use fullpipe_net::session::event::Event;
use fullpipe_net::session::handshake::HandshakeError;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::server::{Config, Server};
use fullpipe_net::session::{Key, Reason};
use fullpipe_run::{CrossSpec, FlowSpec, Outcome, RunSpec, Waveform};
use fullpipe_units::{Bytes, Rate, Span, Time};

use crate::attack::Dice;
use crate::hostile::{Raw, ask_for, encoded};

/// A server on a thread, and what it said.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Stop,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<JoinHandle<u64>>,
}

impl Running {
    pub(crate) fn start(key: Key, limits: Limits) -> Self {
        Self::at("127.0.0.1:0", key, limits)
    }

    pub(crate) fn at(listen: &str, key: Key, limits: Limits) -> Self {
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let log = Arc::clone(&events);
        let config = Config {
            listen: listen.parse().unwrap(),
            key,
            limits,
            grace: Span::from_secs(2),
        };
        let log = Arc::new(move |event: &Event| log.lock().unwrap().push(event.clone()));
        let server = Server::bind(config, log).unwrap();
        let stop = Stop::new().unwrap();
        let address = server.address();
        let until = stop.clone();
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || server.run(&until).unwrap())
            .unwrap();
        Self {
            address,
            stop,
            events,
            thread: Some(thread),
        }
    }

    pub(crate) fn peer(&self, key: Key) -> Peer {
        Peer::new(self.address, key)
    }

    /// Ends it and returns what it said.
    pub(crate) fn end(mut self) -> Vec<Event> {
        self.stop.set();
        self.thread.take().unwrap().join().unwrap();
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// How many things of this kind it has said.
    pub(crate) fn count(&self, what: impl Fn(&Event) -> bool) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|e| what(e)).count()
    }

    /// Waits until it has said something of this kind.
    pub(crate) fn wait_for(&self, what: impl Fn(&Event) -> bool) {
        let begin = Instant::now();
        while !self.events.lock().unwrap().iter().any(&what) {
            assert!(begin.elapsed() < Duration::from_secs(40), "never said");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn key(letter: &str) -> Key {
    Key::from_text(&letter.repeat(40), "test").unwrap()
}

pub(crate) fn flow(name: &str, segments: Option<u64>, reverse: bool) -> FlowSpec {
    let mut flow = FlowSpec::new(
        name,
        StackSpec::parse("cubic").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.transfer = segments;
            c.window.max = 100.0;
        }),
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    );
    flow.reverse = reverse;
    flow
}

pub(crate) fn spec(millis: u64, flows: Vec<FlowSpec>) -> RunSpec {
    RunSpec {
        duration: Span::from_millis(millis),
        flows,
        ..RunSpec::default()
    }
}

pub(crate) fn go(
    server: &Running,
    key: Key,
    spec: &RunSpec,
    options: Options,
) -> Result<Outcome, SessionError> {
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let peer = server.peer(key);
    run_with_peer(spec, &peer, options, &local, Hooks::default(), &never).map(|done| done.0)
}

fn refusal(result: Result<Outcome, SessionError>) -> String {
    match result {
        Err(SessionError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn constant(bits_per_sec: u64) -> Waveform {
    Waveform::Steps {
        steps: vec![(Span::ZERO, Rate::from_bits_per_sec(bits_per_sec))],
        period: None,
    }
}

/// Datagrams at 4 Mbit/s, and a probe every 2 ms.
fn add_cross_traffic_and_probes(spec: &mut RunSpec) {
    spec.cross = vec![
        CrossSpec::source("cross", 1000, constant(4_000_000), vec![]),
        CrossSpec::probes("ping", 100, Span::from_millis(2), vec![], vec![]),
    ];
}

pub(crate) fn until_complete() -> Options {
    Options {
        until_complete: true,
        label: "a test".to_owned(),
        ..Options::default()
    }
}

#[test]
fn data_goes_up_and_down_and_every_segment_is_accounted_for() {
    let server = Running::start(key("a"), Limits::default());
    let mut spec = spec(
        20_000,
        vec![
            flow("up", Some(3000), false),
            flow("down", Some(2000), true),
        ],
    );
    add_cross_traffic_and_probes(&mut spec);
    let begin = Instant::now();
    let outcome = go(&server, key("a"), &spec, until_complete()).unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "it ended when all was complete"
    );
    for (f, segments) in outcome.flows.iter().zip([3000, 2000]) {
        assert_eq!(f.totals.delivered, segments, "{}", f.name);
        assert!(f.completed.is_some() && f.totals.acks > 0, "{}", f.name);
    }
    let [source, ping] = &outcome.cross[..] else {
        panic!("{:?}", outcome.cross);
    };
    assert!(source.arrived > 0 && source.arrived <= source.sent);
    assert!(ping.delay.count() > 0 && ping.delay.count() <= ping.sent);
    let events = server.end();
    let said = |what: &str| {
        events
            .iter()
            .filter(|e| e.to_string().contains(what))
            .count()
    };
    assert_eq!((said("opened by"), said("granted `a test`")), (1, 1));
    assert_eq!(said("ended by the client after"), 1, "{events:?}");
}

#[test]
fn a_run_that_is_not_finite_lasts_its_time() {
    let server = Running::start(Key::open(), Limits::default());
    let spec = spec(
        2000,
        vec![flow("up", None, false), flow("down", None, true)],
    );
    let outcome = go(&server, Key::open(), &spec, Options::default()).unwrap();
    for f in &outcome.flows {
        assert!(f.totals.delivered > 100, "{}: {:?}", f.name, f.totals);
        assert_eq!(f.completed, None);
    }
}

#[test]
fn many_flows_make_a_request_of_many_parts() {
    let server = Running::start(key("a"), Limits::default());
    let flows = (0..200).map(|i| flow(&format!("flow-{i}"), Some(10), i % 2 == 1));
    let spec = spec(30_000, flows.collect());
    let outcome = go(&server, key("a"), &spec, until_complete()).unwrap();
    let delivered: Vec<u64> = outcome.flows.iter().map(|f| f.totals.delivered).collect();
    assert_eq!(delivered, vec![10; 200]);
}

#[test]
fn segmentation_offload_works_through_a_session() {
    let server = Running::start(key("a"), Limits::default());
    let spec = spec(20_000, vec![flow("down", Some(20_000), true)]);
    let options = Options {
        bulk: true,
        ..until_complete()
    };
    let outcome = go(&server, key("a"), &spec, options).unwrap();
    assert_eq!(outcome.flows[0].totals.delivered, 20_000);
}

#[test]
fn another_key_is_told_so_without_detail() {
    let server = Running::start(key("a"), Limits::default());
    let error = go(&server, key("b"), &spec(100, vec![]), Options::default()).unwrap_err();
    assert!(
        matches!(
            error,
            SessionError::Handshake {
                error: HandshakeError::Refused(Reason::Authentication),
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().ends_with(": authentication failed"));
    assert!(error.hint().is_some());
    let events = server.end();
    let wrong = |e: &Event| {
        matches!(
            e,
            Event::Turned {
                // Once more: the COOKIE might have been damaged.
                wrong_key: 2,
                last_wrong_key: Some(_),
                ..
            }
        )
    };
    assert!(events.iter().any(wrong), "{events:?}");
    assert!(!events.iter().any(|e| matches!(e, Event::Opened { .. })));
}

#[test]
fn every_limit_is_kept_and_named() {
    let limits = Limits {
        max_rate: Some(Rate::from_bits_per_sec(20_000_000)),
        max_duration: Span::from_secs(10),
        max_bytes: Some(Bytes(2_000_000)),
        max_flows: 3,
        max_window: 64,
        ..Limits::default()
    };
    let server = Running::start(key("a"), limits);
    let go = |spec: &RunSpec, options| go(&server, key("a"), spec, options);
    let long = refusal(go(&spec(10_001, vec![]), Options::default()));
    assert!(long.contains("--max-duration"), "{long}");
    let flows = (0..4).map(|i| flow(&format!("{i}"), None, false)).collect();
    let many = refusal(go(&spec(100, flows), Options::default()));
    assert!(many.contains("--max-flows"), "{many}");
    let large = vec![flow("up", Some(2_000), false)];
    let large = refusal(go(&spec(100, large), Options::default()));
    assert!(large.contains("--max-bytes"), "{large}");
    let mut cross = spec(100, vec![]);
    let sine = Waveform::Sine {
        mean: Rate::from_bits_per_sec(15_000_000),
        amplitude: Rate::from_bits_per_sec(10_000_000),
        period: Span::from_secs(1),
    };
    cross.cross = vec![CrossSpec::source("cross", 1000, sine, vec![])];
    let fast = refusal(go(&cross, Options::default()));
    assert!(fast.contains("--max-rate"), "{fast}");
    let refused = [long, many, large, fast];
    // Rate and bytes of what has no size beforehand: 2 MB at 20 Mbit/s are 0.8 s, ACKs and all.
    for reverse in [false, true] {
        let outcome = go(
            &spec(8_000, vec![flow("bulk", None, reverse)]),
            Options::default(),
        );
        let delivered = outcome.unwrap().flows[0].totals.delivered * 1448;
        assert!(
            delivered > 500_000 && delivered < 2_100_000,
            "{reverse} {delivered}"
        );
    }
    let events = server.end();
    let denied = events.iter().filter_map(|e| match e {
        Event::Denied { reason, .. } => Some(reason),
        _ => None,
    });
    for (why, logged) in refused.iter().zip(denied.clone()) {
        assert!(why.ends_with(logged), "{why}, {logged}");
    }
    assert_eq!(denied.count(), refused.len(), "{events:?}");
    let mut ends = Vec::new();
    for event in &events {
        if let Event::Finished { why, seconds, .. } = event {
            assert!(why.contains("--max-bytes"), "{why}");
            assert!(*seconds > 0.7, "faster than the limit: {seconds} s");
            ends.push(seconds);
        }
    }
    assert_eq!(ends.len(), 2);
}

#[test]
fn a_window_beyond_the_limit_is_clipped_and_said() {
    let limits = Limits {
        max_window: 64,
        ..Limits::default()
    };
    let server = Running::start(key("a"), limits);
    let request = Request {
        spec: spec(100, vec![flow("down", None, true)]),
        options: Options::default(),
    };
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let client = Client::connect(&server.peer(key("a")), &request, &local, &never).unwrap();
    let notes = &client.grant().notes;
    assert!(
        notes[0].contains("64 segments") && notes[0].contains("--max-window"),
        "{notes:?}"
    );
}

#[test]
fn tests_at_a_time_are_limited_in_all_and_per_address() {
    for (limits, name) in [
        (
            Limits {
                max_tests: 1,
                ..Limits::default()
            },
            "--max-tests)",
        ),
        (
            Limits {
                max_tests_per_peer: 1,
                ..Limits::default()
            },
            "--max-tests-per-peer)",
        ),
    ] {
        let server = Running::start(key("a"), limits);
        let peer = server.peer(key("a"));
        let request = Request {
            spec: spec(100, vec![]),
            options: Options::default(),
        };
        let (local, never) = (ground::Options::default(), AtomicBool::new(false));
        let mut first = Client::connect(&peer, &request, &local, &never).unwrap();
        let second = Client::connect(&peer, &request, &local, &never).unwrap_err();
        assert!(second.to_string().contains(name), "{second}");
        let spec = Arc::new(request.spec.clone());
        first.run(&spec, &local, Hooks::default(), &never).unwrap();
        // Its place is free again.
        server.wait_for(|e| matches!(e, Event::Finished { .. }));
        let begin = Instant::now();
        while let Err(error) = Client::connect(&peer, &request, &local, &never) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
        }
    }
}

#[test]
fn the_memory_of_all_tests_together_is_limited() {
    let limits = Limits {
        max_memory: Bytes(2_000_000),
        ..Limits::default()
    };
    let server = Running::start(key("a"), limits);
    let peer = server.peer(key("a"));
    let request = Request {
        spec: spec(100, vec![]),
        options: Options::default(),
    };
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let connect = || Client::connect(&peer, &request, &local, &never);
    // A busy machine answers late: a request that was sent again meets the memory of its first copy
    // until the server gives that up.
    let granted = || {
        let begin = Instant::now();
        loop {
            match connect() {
                Ok(client) => return client,
                Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
            }
        }
    };
    let first = granted();
    let second = connect().unwrap_err().to_string();
    assert!(second.contains("--max-memory"), "{second}");
    first.close();
    granted();
}

#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let server = Running::start(
        key("a"),
        Limits {
            max_tests: 1,
            ..Limits::default()
        },
    );
    let request = encoded(spec(500_000, vec![flow("down", None, true)]));
    let mut client =
        Raw::open(server.address, &key("a"), ask_for(&request), &mut Dice(34)).unwrap();
    let verdict = client.verdict(&request);
    assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
    client.say(&ClientMessage::Start);
    assert!(client.hear().is_some());
    drop(client);
    server.wait_for(|e| matches!(e, Event::Finished { why, .. } if why.contains("vanished")));
    let spec = spec(200, vec![flow("up", None, false)]);
    let begin = Instant::now();
    while let Err(error) = go(&server, key("a"), &spec, Options::default()) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
    }
}

#[test]
fn a_client_that_gives_up_says_so_and_makes_room_at_once() {
    let limits = Limits {
        max_tests: 1,
        ..Limits::default()
    };
    let server = Running::start(key("a"), limits);
    let long = spec(30_000, vec![flow("up", None, false)]);
    let give_up = AtomicBool::new(false);
    let ended = std::thread::scope(|s| {
        let run = s.spawn(|| {
            let (options, how) = (ground::Options::default(), Options::default());
            let peer = server.peer(key("a"));
            run_with_peer(&long, &peer, how, &options, Hooks::default(), &give_up)
        });
        server.wait_for(|e| matches!(e, Event::Granted { .. }));
        std::thread::sleep(Duration::from_millis(300));
        give_up.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    let (kept, _) = ended.unwrap();
    assert!(
        kept.partial
            .is_some_and(|why| why.starts_with("interrupted"))
    );
    let begin = Instant::now();
    server.wait_for(|e| e.to_string().contains("ended by the client after"));
    let mut again = go(&server, key("a"), &spec(200, vec![]), Options::default());
    while again.is_err() && begin.elapsed() < Duration::from_secs(5) {
        again = go(&server, key("a"), &spec(200, vec![]), Options::default());
    }
    again.unwrap();
    let events = server.end();
    let lost = |e: &&Event| matches!(e, Event::Lost { .. });
    assert_eq!(events.iter().filter(lost).count(), 0, "{events:?}");
}

#[test]
fn a_flood_of_garbage_changes_nothing() {
    let server = Running::start(key("a"), Limits::default());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let flood = || {
        let (mut n, mut sent, mut got, mut word) = (0u32, 0usize, 0usize, 0x9e37_79b9_u32);
        let mut buffer = [0; 2048];
        while n < 20_000 {
            let length = 1 + (word as usize >> 7) % 1400;
            let mut datagram = vec![(word >> 3) as u8; length];
            // Every kind in turn, and every version now and then.
            datagram[0] = if n % 17 == 0 {
                word as u8
            } else {
                0x10 | (n % 16) as u8
            };
            if let Ok(bytes) = stranger.send_to(&datagram, server.address) {
                sent += bytes;
            }
            while let Ok((bytes, _)) = stranger.recv_from(&mut buffer) {
                got += bytes;
            }
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            n += 1;
        }
        std::thread::sleep(Duration::from_millis(300));
        while let Ok((bytes, _)) = stranger.recv_from(&mut buffer) {
            got += bytes;
        }
        (sent, got)
    };
    let (sent, got) = std::thread::scope(|s| {
        let flood = s.spawn(flood);
        let spec = spec(
            20_000,
            vec![
                flow("up", Some(3000), false),
                flow("down", Some(3000), true),
            ],
        );
        let outcome = go(&server, key("a"), &spec, until_complete()).unwrap();
        for f in &outcome.flows {
            assert_eq!(f.totals.delivered, 3000);
        }
        flood.join().unwrap()
    });
    assert!(got <= sent, "amplified: {got} for {sent}");
    let events = server.end();
    let opened = events.iter().filter(|e| matches!(e, Event::Opened { .. }));
    assert_eq!(opened.count(), 1);
    assert!(
        events.len() < 15,
        "the log is not a way to fill a disk: {events:?}"
    );
}

#[test]
fn a_recorded_session_cannot_be_played_again() {
    let server = Running::start(key("a"), Limits::default());
    // Between the client and the server, from one address each.
    let wire = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = Peer::new(wire.local_addr().unwrap(), key("a"));
    wire.set_read_timeout(Some(Duration::from_millis(2000)))
        .unwrap();
    let there = server.address;
    let recorder = std::thread::spawn(move || {
        let (mut recorded, mut client) = (Vec::new(), None);
        let mut buffer = [0; 2048];
        while let Ok((n, from)) = wire.recv_from(&mut buffer) {
            if from == there {
                let _ = client.map(|client| wire.send_to(&buffer[..n], client));
            } else {
                client = Some(from);
                recorded.push(buffer[..n].to_vec());
                let _ = wire.send_to(&buffer[..n], there);
            }
        }
        (wire, recorded)
    });
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let spec = spec(200, vec![flow("up", Some(10), false)]);
    run_with_peer(
        &spec,
        &peer,
        until_complete(),
        &local,
        Hooks::default(),
        &never,
    )
    .unwrap();
    let (wire, recorded) = recorder.join().unwrap();
    for datagram in &recorded {
        wire.send_to(datagram, there).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let events = server.end();
    let opened = events.iter().filter(|e| matches!(e, Event::Opened { .. }));
    assert_eq!(opened.count(), 1);
    let replayed = |e: &Event| matches!(e, Event::Turned { replayed, .. } if *replayed > 0);
    assert!(events.iter().any(replayed), "{events:?}");
}

#[test]
fn a_server_that_stops_lets_tests_finish_and_takes_no_new_ones() {
    let server = Running::start(key("a"), Limits::default());
    let address = server.address;
    let short = spec(1_200, vec![flow("up", None, false)]);
    let outcome = std::thread::scope(|s| {
        let run = s.spawn(|| go(&server, key("a"), &short, Options::default()));
        server.wait_for(|e| matches!(e, Event::Granted { .. }));
        std::thread::sleep(Duration::from_millis(300));
        server.stop.set();
        server.wait_for(|e| matches!(e, Event::Stopping { .. }));
        let late = go(&server, key("a"), &short, Options::default()).unwrap_err();
        assert!(late.to_string().contains("shutting down"), "{late}");
        run.join().unwrap()
    });
    assert!(outcome.unwrap().flows[0].totals.delivered > 0);
    server.end();
    // The port is free again.
    UdpSocket::bind(address).unwrap();
}

#[test]
fn a_server_that_ends_a_test_hands_out_what_there_is() {
    let server = Running::start(key("a"), Limits::default());
    let long = spec(30_000, vec![flow("up", None, false)]);
    let (done, begin) = std::thread::scope(|s| {
        let run = s.spawn(|| {
            let request = Request {
                spec: long.clone(),
                options: Options::default(),
            };
            let (options, free) = (ground::Options::default(), AtomicBool::new(false));
            let peer = server.peer(key("a"));
            let mut client = Client::connect(&peer, &request, &options, &free)?;
            client.run(&Arc::new(long.clone()), &options, Hooks::default(), &free)
        });
        server.wait_for(|e| matches!(e, Event::Granted { .. }));
        std::thread::sleep(Duration::from_millis(300));
        server.stop.set();
        let begin = Instant::now();
        (run.join().unwrap(), begin)
    });
    let done = done.unwrap();
    assert_eq!(done.why, EndReason::ShuttingDown);
    // The grace time is two seconds; nobody waits for ten until it is clear that there is nobody.
    assert!(begin.elapsed() < Duration::from_secs(8));
    let outcome = done.merge(&long).unwrap();
    assert!(outcome.flows[0].totals.delivered > 0);
    server.end();
}

/// Passes datagrams on between one client and a server, but for every `nth` of those with data.
/// Returns its address; at the end the numbers of segments, datagrams and probes that it dropped.
fn lossy(
    server: SocketAddr,
    nth: u64,
    stop: Arc<AtomicBool>,
) -> (SocketAddr, JoinHandle<[u64; 3]>) {
    let client_side = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server_side = UdpSocket::bind("127.0.0.1:0").unwrap();
    server_side.connect(server).unwrap();
    let address = client_side.local_addr().unwrap();
    let (back, back_from) = (
        client_side.try_clone().unwrap(),
        server_side.try_clone().unwrap(),
    );
    let client = Arc::new(Mutex::new(None::<SocketAddr>));
    let known = Arc::clone(&client);
    let over = Arc::clone(&stop);
    for socket in [&client_side, &server_side] {
        let wait = Some(Duration::from_millis(50));
        socket.set_read_timeout(wait).unwrap();
    }
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while !over.load(Ordering::Relaxed) {
            let Ok(n) = back_from.recv(&mut buffer) else {
                continue;
            };
            if let Some(client) = *known.lock().unwrap() {
                let _ = back.send_to(&buffer[..n], client);
            }
        }
    });
    let thread = std::thread::spawn(move || {
        let (mut seen, mut dropped) = ([0u64; 3], [0u64; 3]);
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let Ok((n, from)) = client_side.recv_from(&mut buffer) else {
                continue;
            };
            *client.lock().unwrap() = Some(from);
            // Kinds of the wire format: DATA, DATAGRAM, PING.
            let kind = [8, 10, 11].iter().position(|k| buffer[0] & 15 == *k);
            if let Some(kind) = kind {
                seen[kind] += 1;
                if seen[kind] % nth == 10 {
                    dropped[kind] += 1;
                    continue;
                }
            }
            let _ = server_side.send(&buffer[..n]);
        }
        dropped
    });
    (address, thread)
}

#[test]
fn what_a_network_loses_without_a_word_is_counted() {
    let server = Running::start(key("a"), Limits::default());
    let stop: Arc<AtomicBool> = Arc::default();
    let (address, proxy) = lossy(server.address, 50, Arc::clone(&stop));
    let mut spec = spec(3_000, vec![flow("up", Some(1_500), false)]);
    let (until, end) = (Time::from_secs_f64(2.0), Time::from_secs_f64(2.5));
    let stopped = |stop, cross| CrossSpec {
        stop: Some(stop),
        ..cross
    };
    let source = CrossSpec::source("cross", 500, constant(800_000), vec![]);
    let probes = CrossSpec::probes("ping", 100, Span::from_millis(5), vec![], vec![]);
    spec.cross = vec![stopped(until, source), stopped(end, probes)];
    let peer = Peer::new(address, key("a"));
    let (options, free) = (ground::Options::default(), AtomicBool::new(false));
    let ran = run_with_peer(
        &spec,
        &peer,
        Options::default(),
        &options,
        Hooks::default(),
        &free,
    );
    stop.store(true, Ordering::Relaxed);
    let (outcome, _) = ran.unwrap();
    let [segments, datagrams, probes] = proxy.join().unwrap();
    let f = &outcome.flows[0];
    assert_eq!(f.totals.delivered, 1_500);
    assert!(segments >= 20 && datagrams >= 5 && probes >= 5);
    assert_eq!(f.totals.dropped, segments, "{:?}", f.totals);
    let [source, ping] = &outcome.cross[..] else {
        panic!("{:?}", outcome.cross);
    };
    assert_eq!((source.dropped, ping.dropped), (datagrams, probes));
    assert_eq!(source.sent, source.arrived + source.dropped);
    server.end();
}

#[test]
fn two_servers_do_not_share_a_port() {
    let server = Running::start(key("a"), Limits::default());
    let config = Config {
        listen: server.address,
        key: key("a"),
        limits: Limits::default(),
        grace: Span::ZERO,
    };
    let second = Server::bind(config, Arc::new(|_: &Event| ()));
    assert_eq!(
        second.err().map(|e| e.kind()),
        Some(std::io::ErrorKind::AddrInUse)
    );
}

/// A server at every address answers from the address that it was asked at, and calls its client
/// by that which the client has.
#[test]
fn every_address_of_either_family_is_served() {
    for (listen, ask) in [
        ("0.0.0.0:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.7"),
        ("[::]:0", "::1"),
        ("[::]:0", "127.0.0.1"),
        ("[::]:0", "127.0.0.7"),
    ] {
        if listen.starts_with('[') && UdpSocket::bind("[::1]:0").is_err() {
            eprintln!("skipped {listen}: no IPv6 here");
            continue;
        }
        let mut server = Running::at(listen, key("a"), Limits::default());
        server.address.set_ip(ask.parse().unwrap());
        let spec = spec(
            20_000,
            vec![flow("up", Some(50), false), flow("down", Some(50), true)],
        );
        let outcome = go(&server, key("a"), &spec, until_complete());
        let outcome = outcome.unwrap_or_else(|e| panic!("{listen} asked at {ask}: {e}"));
        // 50 segments of 1448 bytes; the longer headers of IPv6 leave room for 1428.
        let expected = if ask == "::1" { 51 } else { 50 };
        assert!(outcome.flows.iter().all(|f| f.totals.delivered == expected));
        let client = if ask == "::1" { "[::1]:" } else { "127.0.0." };
        for event in server.end() {
            let of_client = serde_json::to_value(&event).unwrap();
            if let Some(peer) = of_client["peer"].as_str() {
                assert!(peer.starts_with(client), "{listen} asked at {ask}: {event}");
            }
            assert!(!event.to_string().contains("::ffff:"), "{event}");
        }
    }
}

/// Several clients at a time, each with its own socket at the server, while others knock.
#[test]
fn sessions_do_not_disturb_one_another() {
    let limits = Limits {
        max_tests_per_peer: 8,
        ..Limits::default()
    };
    let server = Running::start(key("a"), limits);
    std::thread::scope(|s| {
        let runs: Vec<_> = (1..=6u64)
            .map(|i| {
                let server = &server;
                s.spawn(move || {
                    let flows = vec![
                        flow("up", Some(100 * i), false),
                        flow("down", Some(70 * i), true),
                    ];
                    let outcome = go(server, key("a"), &spec(30_000, flows), until_complete());
                    let delivered = outcome
                        .unwrap()
                        .flows
                        .into_iter()
                        .map(|f| f.totals.delivered);
                    assert_eq!(delivered.collect::<Vec<_>>(), [100 * i, 70 * i]);
                })
            })
            .collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
    });
}
