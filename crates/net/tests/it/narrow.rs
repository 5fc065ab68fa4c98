//! Paths that become narrower in the middle of a run, and tell nobody.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::session::client::{Client, Peer};
use fullpipe_net::session::request::{Options, Request};

use crate::moving::{Nat, SEGMENTS, TURN, Trick, slow};
use crate::session::{Running, flow, key, spec, until_complete};
use crate::transfer::{Serving, bytes, transfer};

/// UDP payload of what passes: that of packets of 1400 bytes, where segments have 1500.
const PASSES: usize = 1372;

#[test]
fn a_test_outlasts_a_path_that_becomes_narrower() {
    let never = AtomicBool::new(false);
    for encrypted in [false, true] {
        let server = Running::start(key("k"), slow());
        let nat = Nat::start(server.address, Trick::Narrow(PASSES));
        let options = Options {
            encrypted,
            ..until_complete()
        };
        let flows = vec![
            flow("up", Some(SEGMENTS), false),
            flow("down", Some(SEGMENTS), true),
        ];
        let mut spec = spec(20_000, flows);
        options.make_room(&mut spec);
        let request = Request {
            spec: spec.clone(),
            options,
        };
        let (local, begin) = (ground::Options::default(), Instant::now());
        let peer = Peer::new(nat.address, key("k"));
        let mut client = Client::connect(&peer, &request, &local, &never).unwrap();
        let spec = Arc::new(spec);
        let done = client.run(&spec, &local, Hooks::default(), &never).unwrap();
        let (lasted, narrowed) = (
            begin.elapsed(),
            [client.narrowed(), client.narrowed_there()],
        );
        client.close();
        let [pieces, lost] = [0, 1].map(|i| nat.pieces[i].load(Ordering::Relaxed));
        nat.end();
        server.end();
        let outcome = done.merge(&spec).unwrap();
        assert_eq!(outcome.partial, None);
        for f in &outcome.flows {
            assert!(f.totals.delivered >= SEGMENTS, "{}", f.totals.delivered);
        }
        assert!(lasted > TURN, "{lasted:?}");
        assert!(pieces > 500 && lost > 3, "{pieces} {lost}");
        let [narrowed, joined] = narrowed.map(|bytes| bytes.expect("some length"));
        assert!((1200..=PASSES).contains(&narrowed), "{narrowed}");
        // Two pieces are of equal length.
        assert!((700..=PASSES).contains(&joined), "{joined}");
    }
}

#[test]
fn copies_outlast_other_ports_and_narrower_paths() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    fs::create_dir(&there).unwrap();
    let whole = bytes(5_000_003);
    let from = dir.path().join("from");
    fs::write(&from, &whole).unwrap();
    for (name, trick) in [
        ("other-port", Trick::Port),
        ("narrow", Trick::Narrow(PASSES)),
    ] {
        for get in [false, true] {
            let mut server = Serving::within(Some(&there), slow());
            let nat = Nat::start(server.peer.address, trick);
            server.peer.address = nat.address;
            let here = match get {
                true => dir.path().join(name),
                false => from.clone(),
            };
            let begin = Instant::now();
            transfer(&server, &here, name, get, 20_000).unwrap();
            assert!(begin.elapsed() > TURN, "{:?}", begin.elapsed());
            let pieces = nat.pieces[0].load(Ordering::Relaxed);
            assert_eq!(pieces > 100, trick == Trick::Narrow(PASSES), "{pieces}");
            nat.end();
            let copy = if get { here } else { there.join(name) };
            assert!(fs::read(copy).unwrap() == whole, "{name} {get}");
        }
    }
}

/// A translator in user space sends plain datagrams, whatever came.
#[test]
fn ecn_that_is_cleared_on_the_way_is_noticed() {
    let never = AtomicBool::new(false);
    let mut flows = vec![
        flow("up", Some(500), false),
        flow("plain", Some(500), false),
        flow("down", Some(500), true),
    ];
    for i in [0, 2] {
        flows[i].sender.ecn = true;
    }
    let spec = spec(20_000, flows);
    let request = Request {
        spec: spec.clone(),
        options: until_complete(),
    };
    let (local, spec) = (ground::Options::default(), Arc::new(spec));
    let server = Running::start(key("k"), slow());
    let nat = Nat::start(server.address, Trick::Narrow(65_536));
    for (address, bleached) in [(server.address, &[][..]), (nat.address, &[0, 2])] {
        let peer = Peer::new(address, key("k"));
        let mut client = Client::connect(&peer, &request, &local, &never).unwrap();
        let done = client.run(&spec, &local, Hooks::default(), &never).unwrap();
        client.close();
        assert_eq!(done.near.bleached, bleached);
    }
    nat.end();
    server.end();
}
