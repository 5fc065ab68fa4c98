//! Whoever is gone: how long its place is held, its traffic goes on, and how much is said of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::session::client::{Peer, run_with_peer};
use fullpipe_net::session::control::{ClientMessage, ServerMessage};
use fullpipe_net::session::event::Event;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::Options;
use fullpipe_run::{CrossSpec, Waveform};
use fullpipe_units::{Rate, Span};

use crate::attack::Dice;
use crate::hostile::{Raw, ask_for, encoded};
use crate::moving::{Nat, Trick};
use crate::session::{Running, flow, key, spec};

/// A server forgets who is silent after ten seconds (SECURITY.md); a busy machine may need two more
/// to say so.
const SILENCE: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(2);

#[test]
fn places_are_free_ten_seconds_after_their_clients_fell_silent() {
    let limits = Limits {
        max_tests_per_peer: 8,
        ..Limits::default()
    };
    let server = Running::start(key("k"), limits);
    let mut dice = Dice(31);
    let short = encoded(spec(100, vec![]));
    let long = encoded(spec(60_000, vec![flow("down", None, true)]));
    let mut open = |request: &[u8], granted: bool| {
        let mut raw = Raw::open(server.address, &key("k"), ask_for(request), &mut dice).unwrap();
        if granted {
            let verdict = raw.verdict(request);
            assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
        }
        raw
    };
    // Before its request, granted, in its run, before its result.
    let mut held = [
        open(&long, false),
        open(&long, true),
        open(&long, true),
        open(&short, true),
    ];
    held[2].say(&ClientMessage::Start);
    held[3].say(&ClientMessage::Start);
    while !matches!(held[3].hear(), Some(ServerMessage::Ended { .. })) {
        held[3].say(&ClientMessage::Alive);
    }
    let begin = Instant::now();
    let vanished = |e: &Event| match e {
        Event::Lost { .. } => true,
        Event::Finished { why, .. } => why.contains("vanished"),
        _ => false,
    };
    while server.count(vanished) < held.len() {
        assert!(
            begin.elapsed() < SILENCE + SOON,
            "{}",
            server.count(vanished)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begin.elapsed() > SILENCE - SOON, "{:?}", begin.elapsed());
    server.end();
}

/// A run that ends while its client is silent already gives it no other ten seconds.
#[test]
fn the_end_of_a_run_is_no_sign_of_its_client() {
    let server = Running::start(key("k"), Limits::default());
    let request = encoded(spec(9_000, vec![flow("down", None, true)]));
    let mut raw = Raw::open(server.address, &key("k"), ask_for(&request), &mut Dice(32)).unwrap();
    let verdict = raw.verdict(&request);
    assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
    raw.say(&ClientMessage::Start);
    assert!(raw.hear().is_some());
    let begin = Instant::now();
    server.wait_for(|e| matches!(e, Event::Lost { .. }));
    assert!(begin.elapsed() < SILENCE + SOON, "{:?}", begin.elapsed());
    server.end();
}

/// Cross traffic has no ACKs: what says that it is still wanted is the server's voice.
#[test]
fn cross_traffic_ends_ten_seconds_after_the_server_was_heard() {
    let server = Running::start(key("k"), Limits::default());
    // From 0.8 s on nothing passes.
    let nat = Nat::start(server.address, Trick::Narrow(0));
    let mut spec = spec(60_000, vec![]);
    let rate = Waveform::Steps {
        steps: vec![(Span::ZERO, Rate::from_bits_per_sec(2_000_000))],
        period: None,
    };
    spec.cross = vec![CrossSpec::source("cross", 1000, rate, vec![])];
    let peer = Peer::new(nat.address, key("k"));
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let begin = Instant::now();
    let options = Options::default();
    let ran = run_with_peer(&spec, &peer, options, &local, Hooks::default(), &never);
    let lasted = begin.elapsed();
    // 250 a second, and ALIVE.
    let late = nat.pieces[1].load(Ordering::Relaxed);
    nat.end();
    assert!(ran.is_err() || ran.is_ok_and(|(outcome, _)| outcome.partial.is_some()));
    assert!(lasted < SILENCE + 3 * SOON, "{lasted:?}");
    assert!((2000..3300).contains(&late), "{late}");
    server.end();
}

/// Whoever knocks as often as it can makes a line for its first ten refusals in ten seconds, and a
/// sum of the others.
#[test]
fn a_crowd_at_the_door_is_logged_as_a_number() {
    let limits = Limits {
        max_tests_per_peer: 1,
        ..Limits::default()
    };
    let server = Running::start(key("k"), limits);
    let mut dice = Dice(33);
    let request = encoded(spec(100, vec![]));
    let held = Raw::open(server.address, &key("k"), ask_for(&request), &mut dice).unwrap();
    let begin = Instant::now();
    for _ in 0..60 {
        let refused = Raw::open(server.address, &key("k"), ask_for(&request), &mut dice);
        assert!(refused.is_err());
    }
    let periods = 1 + (begin.elapsed().as_secs() / 10) as usize;
    drop(held);
    let said = server.end();
    let lines = said
        .iter()
        .filter(|e| matches!(e, Event::Refused { .. }))
        .count();
    assert!((1..=10 * (periods + 1)).contains(&lines), "{lines}");
    let summed: u64 = said
        .iter()
        .map(|e| match e {
            Event::Turned { refused, .. } => *refused,
            _ => 0,
        })
        .sum();
    assert_eq!(lines as u64 + summed, 60);
}
