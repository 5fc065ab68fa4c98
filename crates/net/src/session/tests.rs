//! Both sides of a handshake against each other, in virtual time.

use std::net::SocketAddr;

use fullpipe_units::{Span, Time};
use proptest::prelude::*;

use super::cookie::CookieJar;
use super::gate::{Gate, GateCounts, GateOutput, LONGEST_REQUEST};
use super::handshake::{Handshake, HandshakeError};
use super::message::{self, Ask, Nonce, Open, Reason, TestKind};
use super::{Key, Secrets};
use crate::wire::{Header, Kind, SessionId};

fn key(letter: &str) -> Key {
    Key::from_text(&letter.repeat(40), "test").unwrap()
}

fn counter<const N: usize>(first: u8) -> Box<dyn FnMut() -> [u8; N] + Send> {
    let mut n = first;
    Box::new(move || {
        n = n.wrapping_add(1);
        [n; N]
    })
}

fn gate(key: Key) -> Gate {
    Gate::new(key, CookieJar::new(Time::ZERO, counter(0)))
}

fn ask() -> Ask {
    Ask {
        kind: TestKind::Udp as u8,
        options: 0,
        length: 700,
        digest: [9; 32],
    }
}

fn client(key: Key) -> Handshake {
    Handshake::new(Time::ZERO, Span::from_secs(10), key, ask(), counter(100))
}

fn here() -> SocketAddr {
    "192.0.2.1:1000".parse().unwrap()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A server as small as can be: the gate, and the sessions it opened with the OPENs they came from.
struct Server {
    gate: Gate,
    sessions: Vec<(Open, Secrets, Vec<u8>)>,
}

impl Server {
    fn new(key: Key) -> Self {
        Self {
            gate: gate(key),
            sessions: Vec::new(),
        }
    }

    fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        // Its session answers a repeated OPEN, as the session's own socket does.
        if let Some((_, _, accept)) = self.sessions.iter().find(|s| s.0.bytes[..] == *datagram) {
            return Some(accept.clone());
        }
        match self.gate.handle(now, from, datagram) {
            GateOutput::Nothing => None,
            GateOutput::Answer(answer) => Some(answer),
            GateOutput::Open(opened) => {
                let id = SessionId(100 + self.sessions.len() as u64);
                let (accept, secrets) = self.gate.accept(now, &opened, id).unwrap();
                self.sessions.push((opened.open, secrets, accept.clone()));
                Some(accept)
            }
        }
    }
}

#[test]
fn a_handshake_takes_two_round_trips_and_agrees_on_secrets() {
    let (mut client, mut server) = (client(key("a")), Server::new(key("a")));
    let hello = client.poll(at(0)).unwrap().unwrap();
    assert_eq!(client.poll(at(0)), Ok(None), "once");
    let cookie = server.handle(at(1), here(), &hello).unwrap();
    assert_eq!(server.gate.remembered(), 0, "a HELLO leaves nothing");
    assert!(client.handle(at(2), &cookie).unwrap().is_none());
    let open = client.poll(at(2)).unwrap().unwrap();
    let accept = server.handle(at(3), here(), &open).unwrap();
    let (secrets, _) = client.handle(at(4), &accept).unwrap().unwrap();
    let (_, theirs, _) = &server.sessions[0];
    assert_eq!(secrets.session, SessionId(100));
    assert_eq!(secrets.control.up, theirs.control.up);
    assert_eq!(secrets.data.down, theirs.data.down);
    assert_eq!(server.gate.remembered(), 1);
}

#[test]
fn nobody_answers_a_client_for_ever() {
    let mut client = client(key("a"));
    let (mut now, mut sent) = (Time::ZERO, 0);
    let error = loop {
        match client.poll(now) {
            Ok(Some(_)) => sent += 1,
            Ok(None) => now = client.next_timeout(),
            Err(error) => break error,
        }
    };
    assert_eq!(error, HandshakeError::NoAnswer);
    // After 0, 0.25, 0.75, 1.75 and then every two seconds.
    assert_eq!((sent, now), (8, at(10_000)));
}

fn opened(server: &mut Gate, key: &Key, t: u64, nonce: u8) -> Open {
    let nonce = Nonce([nonce; 16]);
    let GateOutput::Answer(cookie) = server.handle(at(t), here(), &message::hello(&nonce)) else {
        panic!("no cookie");
    };
    let (_, cookie) = message::read_cookie(&cookie).unwrap();
    Open::new(key, nonce, cookie, ask())
}

fn refusal(heard: GateOutput) -> Reason {
    match heard {
        GateOutput::Answer(answer) => message::read_refuse(&answer).unwrap().1,
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_key_or_none_is_told_the_same_and_nothing_else() {
    for (theirs, ours) in [
        (key("a"), key("b")),
        (key("a"), Key::open()),
        (Key::open(), key("b")),
    ] {
        let mut gate = gate(theirs);
        let open = opened(&mut gate, &ours, 0, 1);
        let GateOutput::Answer(answer) = gate.handle(at(1), here(), &open.bytes) else {
            panic!("no answer");
        };
        let (_, reason) = message::read_refuse(&answer).unwrap();
        assert_eq!(reason, Reason::Authentication);
        assert_eq!(reason.to_string(), "authentication failed");
        assert_eq!(
            answer.as_slice(),
            message::refuse(&open.nonce, Reason::Authentication)
        );
        assert_eq!(gate.remembered(), 0);
        assert_eq!(gate.counts().bad_proofs, 1);
    }
}

#[test]
fn a_replayed_open_opens_nothing() {
    let mut gate = gate(key("a"));
    let open = opened(&mut gate, &key("a"), 0, 1);
    let GateOutput::Open(first) = gate.handle(at(1), here(), &open.bytes) else {
        panic!("refused");
    };
    gate.accept(at(1), &first, SessionId(1)).unwrap();
    for t in [2, 5_000, 20_000] {
        let again = gate.handle(at(t), here(), &open.bytes);
        assert_eq!(refusal(again), Reason::Replay, "{t}");
    }
    // Once it is forgotten it is too old.
    let late = gate.handle(at(21_000), here(), &open.bytes);
    assert_eq!(refusal(late), Reason::Cookie);
    // From elsewhere the cookie is none, at any time.
    let elsewhere = gate.handle(at(2), "192.0.2.2:1000".parse().unwrap(), &open.bytes);
    assert_eq!(refusal(elsewhere), Reason::Cookie);
}

#[test]
fn an_expired_cookie_begins_the_handshake_anew() {
    let (mut client, mut server) = (client(key("a")), Server::new(key("a")));
    client.give_up_at(at(60_000));
    let hello = client.poll(at(0)).unwrap().unwrap();
    let cookie = server.handle(at(0), here(), &hello).unwrap();
    client.handle(at(0), &cookie).unwrap();
    let open = client.poll(at(0)).unwrap().unwrap();
    let refuse = server.handle(at(30_000), here(), &open).unwrap();
    assert!(client.handle(at(30_000), &refuse).unwrap().is_none());
    let second = client.poll(at(30_000)).unwrap().unwrap();
    assert_eq!(Header::decode(&second).unwrap().kind, Kind::Hello);
    assert_ne!(second, hello, "with another nonce");
    let cookie = server.handle(at(30_001), here(), &second).unwrap();
    client.handle(at(30_002), &cookie).unwrap();
    let open = client.poll(at(30_002)).unwrap().unwrap();
    let accept = server.handle(at(30_003), here(), &open).unwrap();
    assert!(client.handle(at(30_004), &accept).unwrap().is_some());
}

#[test]
fn an_impostor_is_found_out_and_a_stranger_ignored() {
    let (mut client, mut server) = (client(key("a")), Server::new(key("a")));
    let hello = client.poll(at(0)).unwrap().unwrap();
    let cookie = server.handle(at(0), here(), &hello).unwrap();
    let nonce = message::read_hello(&hello).unwrap();
    // Off the path: the nonce is not known.
    let other = Nonce([0; 16]);
    let blind = message::refuse(&other, Reason::Busy(1));
    assert!(client.handle(at(0), &blind).unwrap().is_none());
    client.handle(at(0), &cookie).unwrap();
    let open = Open::read(&client.poll(at(0)).unwrap().unwrap()).unwrap();
    let blind = Open::new(&key("a"), other, open.cookie, ask()).accept(&key("a"), SessionId(3));
    assert!(client.handle(at(0), &blind).unwrap().is_none());
    // On the path, without the key.
    let forged = open.accept(&key("b"), SessionId(3));
    assert!(client.handle(at(0), &forged).unwrap().is_none());
    let late = at(3_600_000);
    assert_eq!(client.poll(late).unwrap_err(), HandshakeError::Impostor);
    // The right one still counts.
    let right = open.accept(&key("a"), SessionId(3));
    assert!(client.handle(at(0), &right).unwrap().is_some());
    let busy = message::refuse(&nonce, Reason::Busy(4));
    let result = client.handle(at(0), &busy).map(|_| ());
    assert_eq!(result, Err(HandshakeError::Refused(Reason::Busy(4))));
}

#[test]
fn a_long_request_is_refused_before_anything_is_kept() {
    let mut gate = gate(key("a"));
    let open = opened(&mut gate, &key("a"), 0, 1);
    let ask = Ask {
        length: LONGEST_REQUEST + 1,
        ..ask()
    };
    let open = Open::new(&key("a"), open.nonce, open.cookie, ask);
    let heard = gate.handle(at(0), here(), &open.bytes);
    assert_eq!(refusal(heard), Reason::TooLong(LONGEST_REQUEST));
}

#[test]
fn a_flood_leaves_nothing_behind() {
    let mut gate = gate(key("a"));
    for n in 0..20_000u32 {
        let mut nonce = Nonce([0; 16]);
        nonce.0[..4].copy_from_slice(&n.to_be_bytes());
        let from = SocketAddr::new([198, 51, 100, n as u8].into(), n as u16);
        let _ = gate.handle(at(u64::from(n)), from, &message::hello(&nonce));
        let open = Open::new(
            &key("b"),
            nonce,
            super::cookie::Cookie([n as u8; 36]),
            ask(),
        );
        let _ = gate.handle(at(u64::from(n)), from, &open.bytes);
    }
    assert_eq!(gate.remembered(), 0);
    let counts = gate.counts();
    assert_eq!((counts.hellos, counts.bad_cookies), (20_000, 20_000));
    assert!(counts.bytes_out < counts.bytes_in / 10);
}

/// Any first datagram, right ones bent among them.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let noise = proptest::collection::vec(any::<u8>(), 0..1500);
    let bent = (0usize..4, 0usize..1200, any::<u8>(), 0usize..1400).prop_map(
        |(which, place, with, length)| {
            let nonce = Nonce([5; 16]);
            let mut datagram = match which {
                0 => message::hello(&nonce).to_vec(),
                1 => Open::new(&key("a"), nonce, super::cookie::Cookie([1; 36]), ask())
                    .bytes
                    .to_vec(),
                2 => message::refuse(&nonce, Reason::Stopping).to_vec(),
                _ => vec![0x10; 64],
            };
            if let Some(byte) = datagram.get_mut(place) {
                *byte = with;
            }
            if place % 2 == 0 {
                datagram.truncate(length);
            }
            datagram
        },
    );
    let kinds = (0u8..16, proptest::collection::vec(any::<u8>(), 12..1400)).prop_map(
        |(kind, mut datagram)| {
            datagram[0] = 0x10 | kind;
            datagram
        },
    );
    prop_oneof![noise, bent, kinds]
}

proptest! {
    /// The rule against amplification, for each datagram on its own.
    #[test]
    fn an_unproven_address_gets_no_more_than_it_sent(
        first in proptest::collection::vec(datagrams(), 1..40),
    ) {
        let mut gate = gate(key("a"));
        for (i, datagram) in first.iter().enumerate() {
            match gate.handle(at(i as u64), here(), datagram) {
                GateOutput::Nothing => {}
                GateOutput::Answer(answer) => prop_assert!(answer.len() <= datagram.len()),
                GateOutput::Open(_) => prop_assert!(false, "opened by noise"),
            }
        }
        prop_assert_eq!(gate.remembered(), 0);
        let GateCounts { bytes_in, bytes_out, .. } = gate.counts();
        prop_assert!(bytes_out <= bytes_in);
    }

    /// Through a network that loses, repeats and reorders, with other people's datagrams between:
    /// one session, or none in time.
    #[test]
    fn a_handshake_through_a_bad_network_ends_in_one_session(
        fate in proptest::collection::vec((0u8..10, 0u64..400), 200),
        noise in proptest::collection::vec(datagrams(), 20),
    ) {
        let (mut client, mut server) = (client(key("a")), Server::new(key("a")));
        // (arrival, to the server, datagram)
        let mut network: Vec<(Time, bool, Vec<u8>)> = Vec::new();
        let mut fate = fate.into_iter();
        let mut noise = noise.into_iter();
        let mut done = None;
        let mut now = Time::ZERO;
        'run: while done.is_none() {
            let mut send = |network: &mut Vec<_>, up: bool, datagram: Vec<u8>| {
                let (kind, late) = fate.next().unwrap_or((9, 1));
                let arrival = now + Span::from_millis(1 + late);
                match kind {
                    0..3 => {}
                    3 => network.extend([(arrival, up, datagram.clone()), (arrival + Span::from_millis(30), up, datagram)]),
                    4 => network.extend(noise.next().map(|n| (arrival, up, n)).into_iter().chain([(arrival, up, datagram)])),
                    _ => network.push((arrival, up, datagram)),
                }
            };
            match client.poll(now) {
                Ok(Some(datagram)) => send(&mut network, true, datagram),
                Ok(None) => {}
                Err(error) => {
                    prop_assert_eq!(error, HandshakeError::NoAnswer);
                    break 'run;
                }
            }
            network.sort_by_key(|(t, ..)| *t);
            now = client.next_timeout().min(network.first().map_or(Time::MAX, |(t, ..)| *t));
            while network.first().is_some_and(|(t, ..)| *t <= now) {
                let (_, up, datagram) = network.remove(0);
                if up {
                    if let Some(answer) = server.handle(now, here(), &datagram) {
                        prop_assert!(answer.len() <= datagram.len());
                        let (kind, late) = (fate_of(&datagram), 1);
                        network.push((now + Span::from_millis(late + kind), false, answer));
                    }
                } else if let Some((secrets, _)) = client.handle(now, &datagram).unwrap_or(None) {
                    done = Some(secrets);
                }
            }
            network.sort_by_key(|(t, ..)| *t);
        }
        prop_assert!(server.sessions.len() <= 1);
        if let Some(secrets) = done {
            prop_assert_eq!(secrets.control.up, server.sessions[0].1.control.up);
        }
    }
}

/// Some delay that depends on the datagram.
fn fate_of(datagram: &[u8]) -> u64 {
    datagram.iter().map(|b| u64::from(*b)).sum::<u64>() % 50
}
