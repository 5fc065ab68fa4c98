//! Clients whose address changes in the middle of a run: a translator (NAT) between them and the
//! server takes another port or address, somebody copies their datagrams or forges them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::session::client::{Peer, run_with_peer};
use fullpipe_net::session::control::{ClientMessage, ServerMessage};
use fullpipe_net::session::event::Event;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::Options;
use fullpipe_net::wire::{Header, Kind};
use fullpipe_units::Rate;

use crate::attack::Dice;
use crate::hostile::{Raw, ask_for, encoded};
use crate::session::{Running, flow, key, spec, until_complete};

/// What the translator does from [`TURN`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trick {
    /// Takes another port.
    Port,
    /// Takes another port and address.
    Address,
    /// Drops what is longer than so many bytes of UDP payload, in either direction, and tells
    /// nobody: a black hole.
    Narrow(usize),
    /// Sends a copy of every datagram of the client from elsewhere, ahead of it.
    Copies,
}

/// After the first datagram.
pub(crate) const TURN: Duration = Duration::from_millis(800);

/// A translator on a thread.
pub(crate) struct Nat {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Bytes from the copier's address, and to it.
    pub(crate) copied: Arc<[AtomicU64; 2]>,
    /// Pieces that passed after the turn, and datagrams that did not pass.
    pub(crate) pieces: Arc<[AtomicU64; 2]>,
}

fn socket(at: &str) -> UdpSocket {
    let udp = UdpSocket::bind(at).unwrap();
    udp.set_nonblocking(true).unwrap();
    udp
}

impl Nat {
    pub(crate) fn start(server: SocketAddr, trick: Trick) -> Self {
        let inside = socket("127.0.0.1:0");
        let address = inside.local_addr().unwrap();
        let (over, copied) = (
            Arc::<AtomicBool>::default(),
            Arc::<[AtomicU64; 2]>::default(),
        );
        let pieces = Arc::<[AtomicU64; 2]>::default();
        let shared = (Arc::clone(&over), Arc::clone(&copied), Arc::clone(&pieces));
        let thread = std::thread::spawn(move || translate(&inside, server, trick, &shared));
        Self {
            address,
            over,
            thread: Some(thread),
            copied,
            pieces,
        }
    }

    pub(crate) fn end(mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

type Shared = (Arc<AtomicBool>, Arc<[AtomicU64; 2]>, Arc<[AtomicU64; 2]>);

fn translate(inside: &UdpSocket, server: SocketAddr, trick: Trick, shared: &Shared) {
    let (over, copied, pieces) = shared;
    let passes = |datagram: &[u8], turned: bool| {
        let Trick::Narrow(most) = trick else {
            return true;
        };
        let passes = !turned || datagram.len() <= most;
        let piece = Header::decode(datagram).is_ok_and(|h| h.kind == Kind::Piece);
        pieces[0].fetch_add(u64::from(piece), Ordering::Relaxed);
        pieces[1].fetch_add(u64::from(!passes), Ordering::Relaxed);
        passes
    };
    let mut out = socket("127.0.0.1:0");
    let copier = socket("127.0.0.3:0");
    let (mut client, mut begin, mut turned) = (None, None::<Instant>, false);
    let mut buffer = [0; 65_536];
    while !over.load(Ordering::Relaxed) {
        let mut idle = true;
        if !turned && begin.is_some_and(|b| b.elapsed() > TURN) {
            turned = true;
            match trick {
                Trick::Port => out = socket("127.0.0.1:0"),
                Trick::Address => out = socket("127.0.0.2:0"),
                Trick::Copies | Trick::Narrow(_) => {}
            }
        }
        while let Ok((n, from)) = inside.recv_from(&mut buffer) {
            idle = false;
            client = Some(from);
            begin.get_or_insert_with(Instant::now);
            let datagram = &buffer[..n];
            if turned && trick == Trick::Copies {
                copied[0].fetch_add(n as u64, Ordering::Relaxed);
                let _ = copier.send_to(datagram, server);
                // It wins the race.
                std::thread::sleep(Duration::from_micros(200));
            }
            if passes(datagram, turned) {
                let _ = out.send_to(datagram, server);
            }
        }
        while let Ok((n, _)) = out.recv_from(&mut buffer) {
            idle = false;
            if let Some(client) = client
                && passes(&buffer[..n], turned)
            {
                let _ = inside.send_to(&buffer[..n], client);
            }
        }
        while let Ok((n, _)) = copier.recv_from(&mut buffer) {
            copied[1].fetch_add(n as u64, Ordering::Relaxed);
        }
        if idle {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// 20 Mbit/s in either direction, so that a run lasts longer than until [`TURN`].
pub(crate) fn slow() -> Limits {
    Limits {
        max_rate: Some(Rate::from_bits_per_sec(20_000_000)),
        ..Limits::default()
    }
}

pub(crate) const SEGMENTS: u64 = 3000;

/// A flow in either direction through a translator with this trick, both of which arrive whole; and
/// how often the server has seen the client move.
fn through(trick: Trick, encrypted: bool) -> (usize, [u64; 2]) {
    let server = Running::start(key("k"), slow());
    let nat = Nat::start(server.address, trick);
    let flows = vec![
        flow("up", Some(SEGMENTS), false),
        flow("down", Some(SEGMENTS), true),
    ];
    let options = Options {
        encrypted,
        ..until_complete()
    };
    let peer = Peer::new(nat.address, key("k"));
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let spec = spec(15_000, flows);
    let begin = Instant::now();
    let ran = run_with_peer(&spec, &peer, options, &local, Hooks::default(), &never);
    let lasted = begin.elapsed();
    let copied = [0, 1].map(|i| nat.copied[i].load(Ordering::Relaxed));
    nat.end();
    let moves = server.count(|e| matches!(e, Event::Moved { .. }));
    server.end();
    let (outcome, _) = ran.unwrap();
    assert_eq!(outcome.partial, None);
    for f in &outcome.flows {
        // Encrypted segments are shorter, and so there are more.
        assert!(
            f.totals.delivered >= SEGMENTS,
            "{trick:?} {}: {lasted:?}",
            f.totals.delivered
        );
    }
    assert!(lasted > TURN, "{lasted:?}");
    (moves, copied)
}

#[test]
fn a_test_outlasts_a_translator_that_takes_another_port() {
    for encrypted in [false, true] {
        assert_eq!(through(Trick::Port, encrypted).0, 1);
    }
}

#[test]
fn a_test_outlasts_a_translator_that_takes_another_address() {
    for encrypted in [false, true] {
        assert_eq!(through(Trick::Address, encrypted).0, 1);
    }
}

/// Whoever copies the client's datagrams and is faster than they are moves nothing, and is sent no
/// more than he sends.
#[test]
fn copies_from_elsewhere_move_nothing() {
    for encrypted in [false, true] {
        let (moves, [from, to]) = through(Trick::Copies, encrypted);
        assert_eq!(moves, 0);
        assert!(from > 100_000, "{from}");
        assert!(to <= from / 100, "{to} bytes for {from}");
    }
}

/// Whoever knows addresses, ports and the session's number, but no key.
#[test]
fn forgeries_from_elsewhere_move_nothing() {
    let server = Running::start(key("k"), Limits::default());
    let request = encoded(spec(10_000, vec![flow("down", None, true)]));
    let mut dice = Dice(5);
    let mut raw = Raw::open(server.address, &key("k"), ask_for(&request), &mut dice).unwrap();
    let verdict = raw.verdict(&request);
    assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
    let forger = socket("127.0.0.3:0");
    let mut sent = 0;
    for i in 0..5000u64 {
        let mut datagram = vec![0; 12];
        let flags = dice.next() as u8 | 128;
        Header {
            kind: Kind::Control,
            flags,
            flow: 0,
            session: raw.secrets.session,
        }
        .encode(&mut datagram);
        datagram.extend(((1 << 63) + i).to_be_bytes());
        datagram.extend(dice.noise(60));
        sent += usize::from(forger.send_to(&datagram, server.address).is_ok());
    }
    assert!(sent > 4000, "{sent}");
    // What the client itself said, once more and from elsewhere.
    let mut again = raw.sealed(&ClientMessage::Alive);
    raw.send(&again);
    for _ in 0..10 {
        forger.send_to(&again, server.address).unwrap();
    }
    raw.say(&ClientMessage::Start);
    assert!(matches!(raw.hear(), Some(ServerMessage::Alive { .. })));
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        forger.recv_from(&mut again).is_err(),
        "something was sent to the forger"
    );
    assert_eq!(server.count(|e| matches!(e, Event::Moved { .. })), 0);
    server.end();
}

/// A client that has the key and names another's address as its own, which it has not: it is sent
/// less than it sends, and the session stays where it was.
#[test]
fn a_client_cannot_have_the_session_move_to_where_it_is_not() {
    let server = Running::start(key("k"), Limits::default());
    let request = encoded(spec(10_000, vec![flow("down", None, true)]));
    let mut dice = Dice(6);
    let mut raw = Raw::open(server.address, &key("k"), ask_for(&request), &mut dice).unwrap();
    let verdict = raw.verdict(&request);
    assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
    raw.say(&ClientMessage::Start);
    // The victim reads nothing that the liar could say.
    let victim = socket("127.0.0.3:0");
    // A challenge would be longer than this.
    let first = raw.sealed(&ClientMessage::Alive);
    victim.send_to(&first, server.address).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut buffer = [0; 2048];
    assert!(
        victim.recv_from(&mut buffer).is_err(),
        "more than came from there"
    );
    let mut from = first.len();
    for i in 0..40u8 {
        // Guessed challenges too.
        let message = match i % 2 {
            0 => ClientMessage::Alive,
            _ => ClientMessage::Path([i; 8]),
        };
        let datagram = raw.sealed(&message);
        from += datagram.len();
        victim.send_to(&datagram, server.address).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let (mut to, mut challenges) = (0, 0);
    while let Ok((n, _)) = victim.recv_from(&mut buffer) {
        to += n;
        challenges += 1;
    }
    assert!(challenges >= 2, "the address was asked");
    assert!(to <= from, "{to} bytes for {from}");
    assert_eq!(server.count(|e| matches!(e, Event::Moved { .. })), 0);
    server.end();
}
