//! Both sides of a handshake against each other, in virtual time.

use std::net::SocketAddr;

use fullpipe_units::{Span, Time};
use proptest::prelude::*;

use super::cookie::{Cookie, CookieJar};
use super::gate::{Gate, GateCounts, GateOutput, LONGEST_REQUEST};
use super::handshake::{Handshake, HandshakeError};
use super::message::{self, Ask, Nonce, OPEN_BYTES, Open, Opening, TestKind};
use super::{Identity, Key, Reason, Secrets, ServerId};
use crate::wire::{Header, Kind, SessionId, VERSION};

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

fn identity() -> Identity {
    Identity::from_private([7; 32])
}

fn gate(key: Key) -> Gate {
    Gate::new(key, identity(), CookieJar::new(Time::ZERO, counter(0)))
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
            GateOutput::Open(mut opened) => {
                let id = SessionId(100 + self.sessions.len() as u64);
                let (accept, secrets) = self.gate.accept(now, &mut opened, id).unwrap();
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
    let (secrets, by) = client.handle(at(4), &accept).unwrap().unwrap();
    assert_eq!(by, identity().public());
    let (_, theirs, _) = &server.sessions[0];
    assert_eq!(secrets.session, SessionId(100));
    assert_eq!(secrets.keys.up, theirs.keys.up);
    assert_eq!(secrets.keys.down, theirs.keys.down);
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
    // After 0, 0.25, 0.75, 1.75 and then every two seconds; from then on in two versions.
    assert_eq!((sent, now), (13, at(10_000)));
}

/// The client of this key asks this server with this cookie.
fn opening(key: &Key, nonce: Nonce, cookie: Cookie, ask: &Ask) -> Opening {
    Opening::new(key, &identity().public(), nonce, cookie, ask, None).unwrap()
}

fn opened(server: &mut Gate, key: &Key, t: u64, nonce: u8) -> Opening {
    let nonce = Nonce([nonce; 16]);
    let GateOutput::Answer(cookie) = server.handle(at(t), here(), &message::hello(&nonce)) else {
        panic!("no cookie");
    };
    let (_, cookie, _) = message::read_cookie(&cookie).unwrap();
    opening(key, nonce, cookie, &ask())
}

/// A refusal that anybody can read, 33 bytes.
fn refusal(heard: GateOutput) -> Reason {
    match heard {
        GateOutput::Answer(answer) => message::read_refuse(&answer).unwrap().1,
        other => panic!("{other:?}"),
    }
}

/// For this client alone.
fn sealed_refusal(opening: &mut Opening, heard: GateOutput) -> Reason {
    let GateOutput::Answer(answer) = heard else {
        panic!("{heard:?}");
    };
    assert!(message::read_refuse(&answer).is_err(), "in clear");
    match opening.read_answer(&answer) {
        Ok(Some(message::Answer::Refused(reason))) => reason,
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
        let GateOutput::Answer(answer) = gate.handle(at(1), here(), open.bytes()) else {
            panic!("no answer");
        };
        let (nonce, reason) = message::read_refuse(&answer).unwrap();
        assert_eq!(reason, Reason::Authentication);
        assert_eq!(reason.to_string(), "authentication failed");
        assert_eq!(
            answer.as_slice(),
            message::refuse(&nonce, Reason::Authentication)
        );
        assert_eq!(gate.remembered(), 0);
        assert_eq!(gate.counts().bad_proofs, 1);
    }
}

#[test]
fn one_key_on_two_servers_opens_nothing_on_the_other() {
    let mut gate = gate(key("a"));
    let nonce = Nonce([1; 16]);
    let GateOutput::Answer(cookie) = gate.handle(at(0), here(), &message::hello(&nonce)) else {
        panic!("no cookie");
    };
    let (_, cookie, _) = message::read_cookie(&cookie).unwrap();
    let other = Identity::from_private([8; 32]).public();
    let open = Opening::new(&key("a"), &other, nonce, cookie, &ask(), None).unwrap();
    let heard = gate.handle(at(1), here(), open.bytes());
    assert_eq!(refusal(heard), Reason::Authentication);
}

#[test]
fn a_replayed_open_opens_nothing() {
    let mut gate = gate(key("a"));
    let open = opened(&mut gate, &key("a"), 0, 1);
    let GateOutput::Open(mut first) = gate.handle(at(1), here(), open.bytes()) else {
        panic!("refused");
    };
    gate.accept(at(1), &mut first, SessionId(1)).unwrap();
    let mut open = open;
    let again = gate.handle(at(2), here(), open.bytes());
    // Who only sends what he has seen cannot read the answer.
    let mut other = opened(&mut gate, &key("a"), 2, 9);
    if let GateOutput::Answer(answer) = &again {
        assert!(!matches!(other.read_answer(answer), Ok(Some(_))));
    }
    assert_eq!(sealed_refusal(&mut open, again), Reason::Replay);
    // From then on it is not even read.
    for t in [3, 5_000, 20_000] {
        let again = gate.handle(at(t), here(), open.bytes());
        assert_eq!(refusal(again), Reason::Cookie, "{t}");
    }
    assert_eq!(gate.counts().replays, 1);
    // Once it is forgotten it is too old.
    let late = gate.handle(at(21_000), here(), open.bytes());
    assert_eq!(refusal(late), Reason::Cookie);
    // From elsewhere the cookie is none, at any time.
    let elsewhere = gate.handle(at(2), "192.0.2.2:1000".parse().unwrap(), open.bytes());
    assert_eq!(refusal(elsewhere), Reason::Cookie);
}

/// To read an OPEN costs a multiplication on the curve: once for each HELLO of 1200 bytes. Others
/// at the same address are not affected.
#[test]
fn a_wrong_open_is_read_once_for_each_cookie() {
    let mut gate = gate(key("a"));
    let wrong = opened(&mut gate, &key("b"), 0, 1);
    for n in 0..1000 {
        let heard = gate.handle(at(1), here(), wrong.bytes());
        let expected = match n {
            0 => Reason::Authentication,
            _ => Reason::Cookie,
        };
        assert_eq!(refusal(heard), expected, "{n}");
    }
    assert_eq!(gate.counts().bad_proofs, 1);
    let right = opened(&mut gate, &key("a"), 1, 2);
    let heard = gate.handle(at(1), here(), right.bytes());
    assert!(matches!(heard, GateOutput::Open(_)), "another cookie");
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
    let answer = |key: &Key, nonce, open: &Open| {
        let asked = opening(key, nonce, open.cookie, &ask());
        let theirs = Open::read(asked.bytes()).unwrap();
        let (noise, _) = theirs.understand(key, &identity()).unwrap();
        theirs.accept(noise, SessionId(3)).unwrap().0
    };
    assert!(
        client
            .handle(at(0), &answer(&key("a"), other, &open))
            .unwrap()
            .is_none()
    );
    // On the path, without the key, or with the key and without the server's own.
    for by in ["a", "b"] {
        let forged = answer(&key(by), nonce, &open);
        assert!(client.handle(at(0), &forged).unwrap().is_none());
    }
    // A refusal that only the server can give, in clear.
    let busy = message::refuse(&nonce, Reason::Busy(4));
    assert!(client.handle(at(0), &busy).unwrap().is_none());
    let late = at(3_600_000);
    assert_eq!(client.poll(late).unwrap_err(), HandshakeError::Impostor);
    // The right one still counts.
    let (noise, _) = open.understand(&key("a"), &identity()).unwrap();
    let (right, _) = open.accept(noise, SessionId(3)).unwrap();
    assert!(client.handle(at(0), &right).unwrap().is_some());
}

#[test]
fn a_refusal_of_the_server_ends_the_handshake() {
    let (mut client, mut gate) = (client(key("a")), gate(key("a")));
    let hello = client.poll(at(0)).unwrap().unwrap();
    let GateOutput::Answer(cookie) = gate.handle(at(0), here(), &hello) else {
        panic!("no cookie");
    };
    client.handle(at(0), &cookie).unwrap();
    let open = client.poll(at(0)).unwrap().unwrap();
    let GateOutput::Open(mut opened) = gate.handle(at(0), here(), &open) else {
        panic!("refused");
    };
    let busy = gate.refuse(&mut opened, Reason::Busy(4)).unwrap();
    assert_eq!(gate.refuse(&mut opened, Reason::Busy(4)), None, "once");
    let result = client.handle(at(0), &busy).map(|_| ());
    assert_eq!(result, Err(HandshakeError::Refused(Reason::Busy(4))));
}

/// Another server answers than the one that is meant: the first COOKIE may be damaged or forged,
/// the second is believed.
#[test]
fn a_server_that_is_not_the_one_meant_is_named() {
    let (found, meant) = (identity().public(), ServerId([1; 32]));
    let mut server = Server::new(key("a"));
    let mut client = client(key("a")).with_server(Some(meant));
    for (n, t) in [(1, 0), (2, 250)] {
        let hello = client.poll(at(t)).unwrap().unwrap();
        let cookie = server.handle(at(t), here(), &hello).unwrap();
        let heard = client.handle(at(t), &cookie).map(|_| ());
        let error = HandshakeError::OtherServer { found, meant };
        assert_eq!(heard, if n == 1 { Ok(()) } else { Err(error) });
    }
    let mut client = self::client(key("a")).with_server(Some(found));
    let hello = client.poll(at(0)).unwrap().unwrap();
    let mut damaged = server.handle(at(0), here(), &hello).unwrap();
    let whole = damaged.clone();
    *damaged.last_mut().unwrap() ^= 1;
    client.handle(at(0), &damaged).unwrap();
    client.handle(at(1), &whole).unwrap();
    let open = client.poll(at(1)).unwrap().unwrap();
    assert_eq!(open.len(), OPEN_BYTES);
}

/// A COOKIE that was damaged on its way names no server there is: the handshake begins anew.
#[test]
fn a_damaged_cookie_does_not_end_the_handshake() {
    for at_byte in [30, 70] {
        let (mut client, mut server) = (client(key("a")), Server::new(key("a")));
        let hello = client.poll(at(0)).unwrap().unwrap();
        let mut cookie = server.handle(at(0), here(), &hello).unwrap();
        cookie[at_byte] ^= 1;
        client.handle(at(0), &cookie).unwrap();
        let mut done = None;
        for t in 1..10 {
            let Some(said) = client.poll(at(t)).unwrap() else {
                continue;
            };
            let answer = server.handle(at(t), here(), &said).unwrap();
            done = done.or(client.handle(at(t), &answer).unwrap());
        }
        assert!(done.is_some(), "byte {at_byte}");
    }
}

#[test]
fn client_and_server_of_different_versions_name_them() {
    // Version 1 answers HELLOs of its own only.
    let mut client = client(key("a"));
    let mut now = Time::ZERO;
    let error = loop {
        match client.poll(now) {
            Ok(Some(said)) if said[0] == 0x10 => {
                let mut cookie = [0; 64];
                cookie[0] = 0x11;
                cookie[12..28].copy_from_slice(&said[12..28]);
                if let Err(error) = client.handle(now, &cookie) {
                    break error;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => now = client.next_timeout(),
            Err(error) => break error,
        }
    };
    assert_eq!(error, HandshakeError::OtherVersion(1));
    assert!(now <= at(2_000), "soon: {now}");
    // A server of a later version refuses in its own.
    let mut client = self::client(key("a"));
    let hello = client.poll(at(0)).unwrap().unwrap();
    let nonce = message::read_hello(&hello).unwrap();
    let mut later = message::refuse(&nonce, Reason::Version(3));
    later[0] = 0x34;
    let heard = client.handle(at(1), &later).map(|_| ());
    assert_eq!(heard, Err(HandshakeError::OtherVersion(3)));
    // Ours, to others.
    let mut gate = gate(key("a"));
    let old = gate.handle(at(0), here(), &message::hello_of_version_1(&nonce));
    assert!(matches!(old, GateOutput::Answer(answer) if answer[0] == 0x14));
    assert_eq!(gate.counts().other_versions, 1);
}

/// It answers the HELLO of version 1 sooner than the one before, whose answer is late.
#[test]
fn a_server_that_is_slow_is_not_taken_for_an_older_one() {
    let mut client = client(key("a"));
    let mut gate = gate(key("a"));
    let mut now = Time::ZERO;
    let knock = loop {
        match client.poll(now).unwrap() {
            Some(said) if said[0] == 0x10 => break said,
            Some(_) => {}
            None => now = client.next_timeout(),
        }
    };
    let GateOutput::Answer(refusal) = gate.handle(now, here(), &knock) else {
        panic!("no answer");
    };
    assert_eq!(client.handle(now, &refusal).map(|_| ()), Ok(()));
    let hello = message::hello(&message::read_hello(&with_version(&knock)).unwrap());
    let GateOutput::Answer(cookie) = gate.handle(now, here(), &hello) else {
        panic!("no answer");
    };
    assert_eq!(client.handle(now, &cookie).map(|_| ()), Ok(()));
    let open = client.poll(client.next_timeout()).unwrap().unwrap();
    assert_eq!(open[0], 0x22, "an OPEN");
}

/// The same in our version.
fn with_version(datagram: &[u8]) -> Vec<u8> {
    let mut own = datagram.to_vec();
    own[0] = 0x20 | own[0] & 15;
    own
}

#[test]
fn a_long_request_is_refused_before_anything_is_kept() {
    let mut gate = gate(key("a"));
    let open = opened(&mut gate, &key("a"), 0, 1);
    let ask = Ask {
        length: LONGEST_REQUEST + 1,
        ..ask()
    };
    let open = Open::read(open.bytes()).unwrap();
    let mut open = opening(&key("a"), open.nonce, open.cookie, &ask);
    let heard = gate.handle(at(0), here(), open.bytes());
    assert_eq!(
        sealed_refusal(&mut open, heard),
        Reason::TooLong(LONGEST_REQUEST)
    );
}

#[test]
fn a_flood_leaves_nothing_behind() {
    let mut gate = gate(key("a"));
    let open = *opening(&key("b"), Nonce([0; 16]), Cookie([0; 36]), &ask()).bytes();
    for n in 0..20_000u32 {
        let mut nonce = Nonce([0; 16]);
        nonce.0[..4].copy_from_slice(&n.to_be_bytes());
        let from = SocketAddr::new([198, 51, 100, n as u8].into(), n as u16);
        let _ = gate.handle(at(u64::from(n)), from, &message::hello(&nonce));
        let mut open = open;
        open[12..28].copy_from_slice(&nonce.0);
        open[28..64].fill(n as u8);
        let _ = gate.handle(at(u64::from(n)), from, &open);
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
                1 => opening(&key("a"), nonce, Cookie([1; 36]), &ask())
                    .bytes()
                    .to_vec(),
                2 => message::refuse(&nonce, Reason::Stopping).to_vec(),
                _ => vec![0x20; 64],
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
            datagram[0] = VERSION << 4 | kind;
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
            prop_assert_eq!(secrets.keys.up, server.sessions[0].1.keys.up);
        }
    }
}

/// Some delay that depends on the datagram.
fn fate_of(datagram: &[u8]) -> u64 {
    datagram.iter().map(|b| u64::from(*b)).sum::<u64>() % 50
}
