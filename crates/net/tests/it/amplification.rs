//! Bytes to an address: before it is proven, never more than came from it; after that, none but a
//! timeout's from one round trip after the last proof of reception on. Over random schedules.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Ack, Preset, Range, Receiver, ReceiverConfig, SackBlocks, SenderConfig};
use fullpipe_net::endpoint::{self, Flush, Hooks, Mark, Plan, Port, Side};
use fullpipe_net::io::Stop;
use fullpipe_net::session::cookie::{Cookie, CookieJar};
use fullpipe_net::session::message::{self, Ask, Nonce, Opening};
use fullpipe_net::session::{Gate, GateOutput, Identity, Key, Reason};
use fullpipe_net::wire::reception::{Heard, term};
use fullpipe_net::wire::{AckDatagram, DataDatagram, Header, SessionId};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::attack::Dice;

fn address(i: u8) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, i], 4000 + u16::from(i)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Strangers and holders of the key, who use their own cookies, those of others, old ones and
    /// bent ones: until an OPEN of an address is good, it is sent no more than it has sent.
    #[test]
    fn an_unproven_address_is_sent_no_more_than_it_sends(
        steps in proptest::collection::vec((0u8..4, 0u8..9, any::<u16>()), 1..60), seed in any::<u64>()
    ) {
        let (mut dice, mut secret) = (Dice(seed), Dice(!seed));
        let jar = CookieJar::new(Time::ZERO, Box::new(move || secret.array()));
        let identity = Identity::from_private([7; 32]);
        let server = identity.public();
        let right = Key::from_text(&"k".repeat(40), "test").unwrap();
        let wrong = Key::from_text(&"x".repeat(40), "test").unwrap();
        let mut gate = Gate::new(right.clone(), identity, jar);
        let mut now = Time::ZERO;
        let mut cookies: Vec<(u8, Nonce, Cookie)> = Vec::new();
        let (mut account, mut proven) = (HashMap::<u8, i64>::new(), [false; 4]);
        for (who, what, n) in steps {
            let nonce = Nonce(dice.array());
            let known = cookies.get(usize::from(n) % cookies.len().max(1)).copied();
            let (_, nonce, cookie) = known.unwrap_or((who, nonce, Cookie(dice.array())));
            let ask = Ask { kind: 1, options: 0, length: u32::from(n), digest: [9; 32] };
            let open = |key: &Key| {
                let open = Opening::new(key, &server, nonce, cookie, &ask, None).unwrap();
                open.bytes().to_vec()
            };
            let datagram = match what {
                0..=2 => message::hello(&Nonce(dice.array())).to_vec(),
                3 | 4 => open(&right),
                5 => open(&wrong),
                6 => {
                    let mut bent = open(&right);
                    let at = usize::from(n) % bent.len();
                    bent[at] ^= 1 << (n % 8);
                    bent
                }
                7 => dice.noise(1500),
                _ => {
                    now += Span::from_millis(u64::from(n));
                    continue;
                }
            };
            *account.entry(who).or_default() += datagram.len() as i64;
            let out = match gate.handle(now, address(who), &datagram) {
                GateOutput::Nothing => None,
                GateOutput::Answer(answer) => {
                    if let Ok((nonce, cookie, _)) = message::read_cookie(&answer) {
                        cookies.push((who, nonce, cookie));
                    }
                    Some(answer)
                }
                GateOutput::Open(mut opened) => {
                    prop_assert!(cookies.contains(&(who, nonce, cookie)), "a cookie of its own");
                    match n % 2 {
                        0 => gate.refuse(&mut opened, Reason::Busy(3)),
                        _ => {
                            proven[usize::from(who)] = true;
                            gate.accept(now, &mut opened, SessionId(1)).map(|(answer, _)| answer)
                        }
                    }
                }
            };
            *account.entry(who).or_default() -= out.map_or(0, |out| out.len() as i64);
            prop_assert!(proven[usize::from(who)] || account[&who] >= 0, "{account:?}");
        }
    }

    /// A client that reads until some time, over a path that loses, and from then on claims what it
    /// likes: guessed proofs, old ACKs, the best guess there is, nothing.
    #[test]
    fn nothing_but_timeouts_leaves_a_round_trip_after_the_last_proof(
        reads_ms in 0u64..1500, delay_ms in 1u64..60, loss in 0u64..8, every_ms in 1u64..40,
        stack in 0usize..3, seed in any::<u64>()
    ) {
        let liar = Liar {
            reads: Time::ZERO + Span::from_millis(reads_ms),
            delay: Span::from_millis(delay_ms),
            every: Span::from_millis(every_ms),
            loss,
            ..Liar::new(seed)
        };
        let sent = liar.run(["cubic", "reno", "bbr"][stack]);
        let rtt = Span::from_millis(2 * delay_ms);
        let (last, sent) = (sent.last_right.get(), sent.sent.take());
        let quiet = last + rtt + Span::from_millis(1);
        let under_way = sent.iter().filter(|at| **at > last && **at <= quiet).count();
        prop_assert!(under_way <= 2 * WINDOW, "{under_way} segments in one round trip");
        let after: Vec<_> = sent.into_iter().filter(|at| *at > quiet).collect();
        // A probe of the tail (RFC 8985 section 7), and timeouts of 200 ms and more, each twice as
        // long as the one before (RFC 6298 section 5.5): five and another in ten seconds, as many
        // if the timer was running already.
        prop_assert!(after.len() <= 8, "{} after {last:?}: {after:?}", after.len());
    }
}

/// Segments that the sender may have in flight.
const WINDOW: usize = 100;
/// Time that is watched after the last that is read.
const WATCHED: Span = Span::from_secs(10);
const SESSION: SessionId = SessionId(77);

/// When segments left, and when the last ACK came whose proof was right, by luck or by right.
#[derive(Default)]
struct Seen {
    sent: RefCell<Vec<Time>>,
    last_right: Cell<Time>,
}

/// The other host, in virtual time.
struct Liar {
    now: Time,
    reads: Time,
    delay: Span,
    every: Span,
    loss: u64,
    dice: Dice,
    receiver: Receiver,
    heard: Heard,
    /// Random bits of every segment that was sent, as only who reads could know.
    bits: Vec<u8>,
    next_lie: Time,
    /// ACKs on their way, and whether what they prove is right.
    acks: VecDeque<(Time, Vec<u8>, bool)>,
    old: Vec<Vec<u8>>,
    pushed: Vec<Vec<u8>>,
    arrived: Vec<Vec<u8>>,
    /// Segments that it knows the bits of: what it has read, and what it has guessed with luck.
    known: u64,
    stamp: Time,
    seen: Rc<Seen>,
}

impl Liar {
    fn new(seed: u64) -> Self {
        let config = ReceiverConfig::preset(Preset::Y2026).with(|c| c.acks.every = 1);
        Self {
            now: Time::ZERO,
            reads: Time::ZERO,
            delay: Span::ZERO,
            every: Span::ZERO,
            loss: 0,
            dice: Dice(seed),
            receiver: Receiver::new(config),
            heard: Heard::default(),
            bits: Vec::new(),
            next_lie: Time::ZERO,
            acks: VecDeque::new(),
            old: Vec::new(),
            pushed: Vec::new(),
            arrived: Vec::new(),
            known: 0,
            stamp: Time::ZERO,
            seen: Rc::default(),
        }
    }

    fn run(self, stack: &str) -> Rc<Seen> {
        let sender = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.window.max = WINDOW as f64;
        });
        let receiver = ReceiverConfig::preset(Preset::Y2026);
        let stack = StackSpec::parse(stack).unwrap();
        let flow = FlowSpec::new("main", stack, sender, receiver, vec![], vec![]);
        let spec = RunSpec {
            duration: self.reads.saturating_since(Time::ZERO) + WATCHED,
            flows: vec![flow],
            ..RunSpec::default()
        };
        let plan = Plan {
            spec: Arc::new(spec),
            side: Side::Near,
            session: SESSION,
            peer: address(9),
            shared_clock: false,
        };
        let seen = Rc::clone(&self.seen);
        endpoint::run(&plan, self, Hooks::default(), &Stop::new().unwrap()).unwrap();
        seen
    }

    fn say(&mut self, ack: Ack, proof: u32, right: bool) {
        let mut out = vec![0; AckDatagram::MOST];
        let n = AckDatagram {
            session: SESSION,
            flow: 0,
            ack,
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
            proof,
        }
        .encode(&mut out);
        out.truncate(n);
        self.old.push(out.clone());
        self.acks.push_back((self.now + self.delay, out, right));
    }

    fn lie(&mut self) {
        let sent = self.bits.len() as u64;
        let mut claim = Ack {
            cum: self.known,
            syn: false,
            echo: self.stamp,
            stamp_ms: 0,
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: u64::MAX,
        };
        let ahead = sent.saturating_sub(claim.cum);
        match self.dice.below(5) {
            _ if ahead < 2 => {}
            // The best there is: one segment more, by a guess of three bits.
            0 | 1 => {
                let known = &self.bits[..claim.cum as usize];
                let sum = known.iter().zip(0..).map(|(b, seq)| term(seq, *b));
                let sum = sum.fold(0u32, u32::wrapping_add);
                let guess = self.dice.below(8) as u8;
                let right = guess == self.bits[claim.cum as usize];
                let proof = sum.wrapping_add(term(claim.cum, guess));
                claim.cum += 1;
                if right {
                    self.known = claim.cum;
                }
                self.say(claim, proof, right);
            }
            2 => {
                claim.cum += 1 + self.dice.next() % ahead;
                let proof = self.dice.next() as u32;
                self.say(claim, proof, false);
            }
            3 => {
                let start = claim.cum + 1 + self.dice.next() % (ahead - 1);
                claim.sacks.push(Range { start, end: sent });
                let proof = self.dice.next() as u32;
                self.say(claim, proof, false);
            }
            _ => {
                if let Some(old) = self.old.last().cloned() {
                    self.acks.push_back((self.now + self.delay, old, false));
                }
            }
        }
    }
}

impl Port for Liar {
    fn push(&mut self, _: SocketAddr, _: Option<Mark>, len: usize, fill: impl FnOnce(&mut [u8])) {
        let mut out = vec![0; len];
        fill(&mut out);
        self.pushed.push(out);
    }

    fn is_full(&self) -> bool {
        self.pushed.len() >= 64
    }

    fn overhead(&self) -> usize {
        0
    }

    fn held_until(&mut self) -> Option<Time> {
        None
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let pushed = std::mem::take(&mut self.pushed);
        for datagram in &pushed {
            let header = Header::decode(datagram).unwrap();
            let read = DataDatagram::decode(&header, datagram).unwrap();
            let segment = read.segment;
            self.seen.sent.borrow_mut().push(self.now);
            if !segment.syn && segment.seq as usize == self.bits.len() {
                self.bits.push(read.nonce);
            }
            let lost = self.dice.next() % 100 < self.loss;
            let arrives = self.now + self.delay;
            if lost || (arrives > self.reads && !segment.syn) {
                continue;
            }
            self.stamp = segment.stamp;
            let before = self.receiver.counts().delivered;
            let ack = self.receiver.handle_segment(arrives, &segment);
            if self.receiver.counts().delivered > before {
                self.heard.take(segment.seq, read.nonce);
            }
            if let Some(ack) = ack {
                self.known = self.known.max(ack.cum);
                let proof = self.heard.proof(&ack);
                self.say(ack, proof, true);
                // It has been on its way there, too.
                if let Some(last) = self.acks.back_mut() {
                    last.0 = arrives + self.delay;
                }
            }
        }
        Ok(Flush {
            left: pushed.len(),
            refused: false,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        if self.now > self.reads && self.now >= self.next_lie {
            self.next_lie = self.now + self.every;
            self.lie();
        }
        self.acks.make_contiguous().sort_by_key(|(at, ..)| *at);
        while self.acks.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, ack, right) = self.acks.pop_front().unwrap();
            if right {
                self.seen.last_right.set(self.now);
            }
            self.arrived.push(ack);
        }
        Ok(self.arrived.len())
    }

    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for datagram in &self.arrived {
            take(address(9), None, datagram);
        }
    }

    fn received_at(&self, _: impl FnMut(Time)) {}

    fn has_stamps(&self) -> bool {
        false
    }

    fn wait(&mut self, until: Time, _: bool) -> io::Result<bool> {
        let mut next = self.acks.iter().map(|(at, ..)| *at).fold(until, Time::min);
        if next > self.reads {
            next = next.min(self.next_lie.max(self.reads + Span::from_micros(1)));
        }
        let micros = next.as_nanos().div_ceil(1000);
        let least = self.now + Span::from_micros(1);
        self.now = least.max(Time::from_nanos(micros * 1000));
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
