//! Strangers and forgers against a server's gate and against a host in the middle of a run.
//!
//! The ordinary tests send 20,000 datagrams.
//! `cargo test -p fullpipe-net --test it -- --ignored attack` sends a million and looks at memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, Receiver, ReceiverConfig, SenderConfig};
use fullpipe_host::HostOutcome;
use fullpipe_net::endpoint::{self, Flush, Hooks, Mark, Plan, Port, Side};
use fullpipe_net::io::Stop;
use fullpipe_net::session::cookie::{Cookie, CookieJar};
use fullpipe_net::session::message::{self, Answer, Ask, Nonce, Opening};
use fullpipe_net::session::{Gate, GateOutput, Identity, Key, Reason, ServerId};
use fullpipe_net::wire::reception::Heard;
use fullpipe_net::wire::{AckDatagram, DataDatagram, Header, Kind, SessionId, VERSION};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::{Span, Time};

use crate::vectors::{bytes, list, text, vectors};

/// Numbers that look random and are the same every time (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }

    pub(crate) fn noise(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// One of a few thousand, so that some come again.
    pub(crate) fn address(&mut self) -> SocketAddr {
        let n = self.below(4096) as u16;
        SocketAddr::from(([198, 51, 100, n as u8], 1024 + n))
    }
}

fn key(letter: &str) -> Key {
    Key::from_text(&letter.repeat(40), "test").unwrap()
}

fn ask() -> Ask {
    Ask {
        kind: 1,
        options: 0,
        length: 700,
        digest: [9; 32],
    }
}

/// What an attacker has: a cookie of his own, other people's datagrams, no key.
pub(crate) struct Attacker {
    pub(crate) dice: Dice,
    pub(crate) own: SocketAddr,
    pub(crate) nonce: Nonce,
    pub(crate) cookie: Cookie,
    pub(crate) server: ServerId,
    pub(crate) overheard: Vec<u8>,
    pub(crate) vectors: Vec<Vec<u8>>,
}

impl Attacker {
    pub(crate) fn datagram(&mut self) -> (SocketAddr, Vec<u8>) {
        let d = &mut self.dice;
        let nonce = Nonce(d.array());
        let elsewhere = d.address();
        let wrong = |nonce, cookie| {
            let open = Opening::new(&key("x"), &self.server, nonce, cookie, &ask(), None);
            open.unwrap().bytes().to_vec()
        };
        match d.below(10) {
            0 => (elsewhere, d.noise(1500)),
            1 => {
                let mut any = d.noise(1500);
                any.resize(any.len().max(12), 0);
                any[0] = VERSION << 4 | (any[0] & 15);
                (elsewhere, any)
            }
            2 => (elsewhere, message::hello(&nonce).to_vec()),
            3 => {
                let mut short = message::hello(&nonce).to_vec();
                short.truncate(d.below(1200));
                (elsewhere, short)
            }
            4 => (elsewhere, wrong(nonce, Cookie(d.array()))),
            // His own address, a cookie that is good, no key.
            5 => (self.own, wrong(self.nonce, self.cookie)),
            // A cookie that is good, from another address.
            6 => (elsewhere, wrong(self.nonce, self.cookie)),
            // What opened the session, from elsewhere, whole or bent.
            7 => (elsewhere, self.overheard.clone()),
            8 => {
                let mut bent = self.overheard.clone();
                let at = d.below(bent.len());
                bent[at] ^= 1 << d.below(8);
                (self.own, bent)
            }
            _ => (elsewhere, self.vectors[d.below(self.vectors.len())].clone()),
        }
    }
}

fn cookie_for(gate: &mut Gate, now: Time, from: SocketAddr, nonce: &Nonce) -> Cookie {
    match gate.handle(now, from, &message::hello(nonce)) {
        GateOutput::Answer(answer) => message::read_cookie(&answer).unwrap().1,
        other => panic!("{other:?}"),
    }
}

/// `n` datagrams against a gate that has opened one session.
fn attack_gate(n: usize) {
    let mut secret = Dice(99);
    let jar = CookieJar::new(Time::ZERO, Box::new(move || secret.array()));
    let identity = Identity::from_private([7; 32]);
    let server = identity.public();
    let mut gate = Gate::new(key("k"), identity, jar);
    let mut now = Time::ZERO;
    let friend: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    let mut dice = Dice(7);

    let nonce = Nonce(dice.array());
    let cookie = cookie_for(&mut gate, now, friend, &nonce);
    let open = Opening::new(&key("k"), &server, nonce, cookie, &ask(), None).unwrap();
    let GateOutput::Open(mut opened) = gate.handle(now, friend, open.bytes()) else {
        panic!("the friend is refused");
    };
    gate.accept(now, &mut opened, SessionId(1)).unwrap();

    let file = vectors();
    let own = "203.0.113.5:5".parse().unwrap();
    let mut attacker = Attacker {
        own,
        nonce,
        cookie,
        server,
        overheard: open.bytes().to_vec(),
        vectors: ["valid", "invalid"]
            .into_iter()
            .flat_map(|which| list(&file, which))
            .map(|v| bytes(text(v, "hex")))
            .collect(),
        dice,
    };
    let mut balance: HashMap<SocketAddr, i64> = HashMap::new();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for i in 0..n {
        if i % 1000 == 0 {
            attacker.nonce = Nonce(attacker.dice.array());
            let nonce = attacker.nonce;
            attacker.cookie = cookie_for(&mut gate, now, own, &nonce);
        }
        let (from, datagram) = attacker.datagram();
        let account = balance.entry(from).or_default();
        *account += datagram.len() as i64;
        match gate.handle(now, from, &datagram) {
            GateOutput::Nothing => {}
            GateOutput::Open(_) => panic!("datagram {i} opened a session: {datagram:02x?}"),
            GateOutput::Answer(answer) => {
                *account -= answer.len() as i64;
                assert!(answer.len() <= datagram.len());
                if let Ok((_, reason)) = message::read_refuse(&answer) {
                    *reasons.entry(reason.to_string()).or_default() += 1;
                }
            }
        }
        assert!(*account >= 0, "{from} got more than it sent");
        now += Span::from_micros(50);
    }
    assert!(gate.remembered() <= 1, "the friend's cookie and no more");
    // Who has no key learns that, and not whether the cookie had been used.
    let words: Vec<String> = [Reason::Authentication, Reason::Cookie]
        .map(|r| r.to_string())
        .into();
    assert!(reasons.keys().all(|r| words.contains(r)), "{reasons:?}");
    assert_eq!(reasons.len(), 2, "{reasons:?}");

    // The friend's own OPEN again, while its cookie lives, and a new one.
    let again = Nonce(attacker.dice.array());
    let cookie = cookie_for(&mut gate, now, friend, &again);
    let mut open = Opening::new(&key("k"), &server, again, cookie, &ask(), None).unwrap();
    let GateOutput::Open(mut opened) = gate.handle(now, friend, open.bytes()) else {
        panic!("the friend is refused after the attack");
    };
    gate.accept(now, &mut opened, SessionId(2)).unwrap();
    match gate.handle(now, friend, open.bytes()) {
        GateOutput::Answer(answer) => {
            let said = open.read_answer(&answer).unwrap();
            assert!(
                matches!(said, Some(Answer::Refused(Reason::Replay))),
                "{said:?}"
            );
        }
        other => panic!("replayed: {other:?}"),
    }
}

#[test]
fn strangers_open_nothing_and_leave_nothing() {
    attack_gate(20_000);
}

#[test]
#[ignore = "a million datagrams: cargo test -p fullpipe-net --test it -- --ignored attack"]
fn a_million_strangers_open_nothing_and_leave_nothing() {
    attack_gate(10_000);
    let before = resident();
    attack_gate(1_000_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 8 << 20, "memory grew by {grown} bytes");
}

/// Bytes of memory of this process (`/proc/self/statm`).
pub(crate) fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

const SESSION: SessionId = SessionId(0x0123_4567_89ab_cdee);
const DELAY: Span = Span::from_millis(10);

/// A network in virtual time with the other host of one flow behind it, and somebody who forges.
struct Network {
    now: Time,
    receiver: Receiver,
    heard: Heard,
    /// ACKs on their way, with their arrival.
    acks: VecDeque<(Time, Vec<u8>)>,
    pushed: RefCell<Vec<Vec<u8>>>,
    arrived: Vec<(SocketAddr, Vec<u8>)>,
    forger: Option<Forger>,
}

struct Forger {
    dice: Dice,
    left: usize,
    vectors: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Forger {
    /// Everything but the right session from the right address in the right format.
    fn datagram(&mut self) -> (SocketAddr, Vec<u8>) {
        self.left -= 1;
        let d = &mut self.dice;
        let mut forged = match d.below(3) {
            0 => d.noise(1500),
            1 => self.vectors[d.below(self.vectors.len())].clone(),
            _ => self.last.clone(),
        };
        match d.below(4) {
            // Another session: one that was guessed.
            0 if forged.len() >= 12 => {
                forged[4..12].copy_from_slice(&d.array::<8>());
                (peer(), forged)
            }
            // A flow that does not exist, in the right session from the right address.
            1 if forged.len() >= 12 => {
                forged[2] = 0x40;
                forged[4..12].copy_from_slice(&SESSION.0.to_be_bytes());
                (peer(), forged)
            }
            // Right in all but length.
            2 if self.last.len() > 12 => {
                let mut cut = self.last.clone();
                cut.pop();
                (peer(), cut)
            }
            _ => (d.address(), forged),
        }
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 9], 9))
}

impl Port for Network {
    fn push(&mut self, _: SocketAddr, _: Option<Mark>, len: usize, fill: impl FnOnce(&mut [u8])) {
        let mut out = vec![0; len];
        fill(&mut out);
        self.pushed.borrow_mut().push(out);
    }

    fn is_full(&self) -> bool {
        self.pushed.borrow().len() >= 64
    }

    fn overhead(&self) -> usize {
        0
    }

    fn held_until(&mut self) -> Option<Time> {
        None
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let pushed = self.pushed.take();
        for datagram in &pushed {
            let header = Header::decode(datagram).unwrap();
            assert_eq!((header.kind, header.session), (Kind::Data, SESSION));
            let read = DataDatagram::decode(&header, datagram).unwrap();
            let segment = read.segment;
            // Every hundredth segment is lost once.
            if !segment.syn && segment.seq % 100 == 99 && !segment.retransmission {
                continue;
            }
            let before = self.receiver.counts().delivered;
            let ack = self.receiver.handle_segment(self.now + DELAY, &segment);
            if self.receiver.counts().delivered > before {
                self.heard.take(segment.seq, read.nonce);
            }
            if let Some(ack) = ack {
                let mut out = vec![0; AckDatagram::MOST];
                let n = AckDatagram {
                    session: SESSION,
                    flow: 0,
                    ack,
                    hold: Span::ZERO,
                    ce: 0,
                    ect: 0,
                    proof: self.heard.proof(&ack),
                }
                .encode(&mut out);
                out.truncate(n);
                self.acks.push_back((self.now + DELAY + DELAY, out));
            }
        }
        Ok(Flush {
            left: pushed.len(),
            refused: false,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        while self.acks.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, ack) = self.acks.pop_front().unwrap();
            if let Some(forger) = &mut self.forger {
                forger.last.clone_from(&ack);
                for _ in 0..forger.left.min(8) {
                    self.arrived.push(forger.datagram());
                }
            }
            self.arrived.push((peer(), ack));
        }
        Ok(self.arrived.len())
    }

    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for (from, datagram) in &self.arrived {
            take(*from, None, datagram);
        }
    }

    fn received_at(&self, _: impl FnMut(Time)) {}

    fn has_stamps(&self) -> bool {
        false
    }

    fn wait(&mut self, until: Time, _: bool) -> io::Result<bool> {
        let next = self.acks.front().map_or(until, |(at, _)| until.min(*at));
        let micros = next.as_nanos().div_ceil(1000);
        self.now = self.now.max(Time::from_nanos(micros * 1000));
        if let Some(ack) = self.receiver.handle_timeout(self.now) {
            // Nothing is delayed here; a receiver that delays would be an error of this test.
            panic!("{ack:?}");
        }
        Ok(true)
    }

    fn pause(&mut self, _: Time) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Time {
        self.now
    }

    fn drops(&self) -> u64 {
        0
    }

    fn passed_over(&self) -> (u64, u64) {
        (0, 0)
    }

    fn reroute(&mut self, _: SocketAddr, _: Option<SocketAddr>) -> io::Result<()> {
        Ok(())
    }
}

/// A transfer over that network, with `forged` datagrams in between.
fn transfer(segments: u64, forged: usize) -> HostOutcome {
    let sender = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
        c.transfer = Some(segments);
        c.window.max = 100.0;
    });
    let receiver = ReceiverConfig::preset(Preset::Y2026).with(|c| c.acks.every = 1);
    let stack = StackSpec::parse("reno").unwrap();
    let flow = FlowSpec::new("main", stack, sender, receiver.clone(), vec![], vec![]);
    let spec = RunSpec {
        duration: Span::from_secs(3600),
        flows: vec![flow],
        ..RunSpec::default()
    };
    let plan = Plan {
        spec: Arc::new(spec),
        side: Side::Near,
        session: SESSION,
        peer: peer(),
        shared_clock: false,
    };
    let file = vectors();
    let network = Network {
        now: Time::ZERO,
        receiver: Receiver::new(receiver),
        heard: Heard::default(),
        acks: VecDeque::new(),
        pushed: RefCell::default(),
        arrived: Vec::new(),
        forger: (forged > 0).then(|| Forger {
            dice: Dice(3),
            left: forged,
            vectors: list(&file, "valid")
                .iter()
                .map(|v| bytes(text(v, "hex")))
                .collect(),
            last: Vec::new(),
        }),
    };
    endpoint::run(&plan, network, Hooks::default(), &Stop::new().unwrap()).unwrap()
}

/// The same run to the nanosecond, whatever forgers send in between.
fn attack_host(segments: u64, forged: usize) {
    let alone = transfer(segments, 0);
    let attacked = transfer(segments, forged);
    assert!(alone.senders[0].completed.is_some(), "the transfer ended");
    assert_eq!(alone.counts.ignored, 0);
    assert_eq!(attacked.counts.ignored, forged as u64, "each was counted");
    assert_eq!(attacked.counts.datagrams_out, alone.counts.datagrams_out);
    assert_eq!(
        format!("{:?}", attacked.senders),
        format!("{:?}", alone.senders)
    );
}

#[test]
fn forgers_change_nothing_in_a_run() {
    attack_host(3000, 20_000);
}

#[test]
#[ignore = "a million datagrams: cargo test -p fullpipe-net --test it -- --ignored attack"]
fn a_million_forged_datagrams_change_nothing_in_a_run() {
    attack_host(150_000, 1_000_000);
}
