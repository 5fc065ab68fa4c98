//! Both senders on one path, event by event.

use std::collections::BTreeMap;
use std::fmt;

use fullpipe_cc::{Controller, Phase};
use fullpipe_flow::Sender;
use fullpipe_units::{Span, Time};

use crate::draw::{History, Sky};
use crate::law::Law;
use crate::path::{Event, Fate, Packet, Receiver, Way};
use crate::reference::{Detector, Literal, State};

/// The first event after which the sender and the literal one differ.
#[derive(Clone, Debug)]
pub struct Difference {
    pub at: Time,
    /// The quantity.
    pub what: &'static str,
    flow: String,
    literal: String,
    /// The last events before it.
    log: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.log {
            writeln!(f, "    {line}")?;
        }
        writeln!(f, "    {} at {:.6} s", self.what, self.at.as_secs_f64())?;
        writeln!(f, "      flow:    {}", self.flow)?;
        write!(f, "      literal: {}", self.literal)
    }
}

/// Source of the packets' fates.
pub enum Fates<'a> {
    Drawn(&'a mut Sky),
    /// Replayed from a history.
    Given,
}

/// A history with more events than this is cut off.
const MOST_EVENTS: u64 = 6_000;

/// Runs the history; the number of events if the senders agree.
pub fn duel(h: &History, fates: Fates<'_>, log: bool) -> Result<u64, Box<Difference>> {
    Duel {
        h,
        fates,
        now: Time::ZERO,
        sender: h.sender(),
        reference: h.reference(),
        receiver: Receiver::new(h.host),
        ways: [
            Way::new(h.delay_us, h.gap_us),
            Way::new(h.delay_us, h.gap_us.min(10)),
        ],
        events: BTreeMap::new(),
        n: 0,
        packets: 0,
        log: log.then(Vec::new),
    }
    .run()
}

struct Duel<'a> {
    h: &'a History,
    fates: Fates<'a>,
    now: Time,
    sender: Sender<Law>,
    reference: Box<dyn Literal>,
    receiver: Receiver,
    ways: [Way; 2],
    events: BTreeMap<(Time, u64), Event>,
    n: u64,
    /// Packets so far, copies included: of two that arrive at one time the older comes first.
    packets: u64,
    log: Option<Vec<String>>,
}

impl Duel<'_> {
    fn run(mut self) -> Result<u64, Box<Difference>> {
        loop {
            self.exchange()?;
            if self.reference.is_done() || self.n > MOST_EVENTS {
                return Ok(self.n);
            }
            let timer = self.sender.next_timeout();
            let packet = self
                .events
                .first_key_value()
                .map_or(Time::MAX, |(k, _)| k.0);
            let ack = self.receiver.due.unwrap_or(Time::MAX);
            self.now = packet.min(ack).min(timer);
            self.n += 1;
            if self.now == Time::MAX {
                return Err(self.differs("progress", "none".into(), "none".into()));
            }
            if packet == self.now {
                match self.events.pop_first().unwrap().1 {
                    Event::Data(p) => {
                        if let Some(ack) = self.receiver.arrives(self.now, p) {
                            self.acknowledge(ack);
                        }
                    }
                    Event::Ack(ack) => {
                        self.note(|| {
                            let blocks: Vec<String> = ack
                                .sacks
                                .iter()
                                .map(|b| format!("{}..{}", b.start, b.end))
                                .collect();
                            format!(
                                "ack {} [{}]{} echo {:.6}",
                                ack.cum,
                                blocks.join(" "),
                                if ack.dsack { " dsack" } else { "" },
                                ack.echo.as_secs_f64(),
                            )
                        });
                        self.sender.handle_ack(self.now, &ack);
                        self.reference.on_ack(self.now.as_nanos(), &ack);
                    }
                }
            } else if ack == self.now {
                let ack = self.receiver.timer();
                self.acknowledge(ack);
            } else {
                self.note(|| "timer".into());
                self.sender.handle_timeout(self.now);
                self.reference.on_timer(self.now.as_nanos());
            }
        }
    }

    fn fate(&mut self, way: usize) -> Option<Fate> {
        let n = self.ways[way].n;
        match (&mut self.fates, way) {
            (Fates::Drawn(sky), 0) => sky.data(n, self.now),
            (Fates::Drawn(sky), _) => sky.ack(n, self.now),
            (Fates::Given, 0) => self.h.fates.data.get(&n).copied(),
            (Fates::Given, _) => self.h.fates.acks.get(&n).copied(),
        }
    }

    fn travel(&mut self, way: usize, event: Event) {
        let fate = self.fate(way);
        for at in self.ways[way].send(self.now, fate) {
            self.packets += 1;
            self.events.insert((at, self.packets), event);
        }
    }

    fn acknowledge(&mut self, ack: fullpipe_flow::Ack) {
        self.travel(1, Event::Ack(ack));
    }

    /// Both send what they have; then everything that can be seen of them is compared.
    fn exchange(&mut self) -> Result<(), Box<Difference>> {
        self.compare("before sending")?;
        loop {
            let flow = self.sender.poll_transmit(self.now);
            let literal = self.reference.poll(self.now.as_nanos());
            let sent = flow.map(|s| (s.seq, s.retransmission));
            if sent != literal {
                return Err(self.differs("sent", format!("{sent:?}"), format!("{literal:?}")));
            }
            let Some(segment) = flow else {
                break;
            };
            let n = self.ways[0].n;
            self.note(|| {
                let again = if segment.retransmission {
                    "again"
                } else {
                    "new"
                };
                format!("send {} {again} (packet {n})", segment.seq)
            });
            self.travel(
                0,
                Event::Data(Packet {
                    seq: segment.seq,
                    stamp: segment.stamp,
                }),
            );
        }
        self.compare("after sending")
    }

    fn compare(&mut self, when: &'static str) -> Result<(), Box<Difference>> {
        let (s, r) = (&self.sender, &self.reference);
        if s.is_done() && r.is_done() {
            return Ok(());
        }
        macro_rules! same {
            ($what:literal, $flow:expr, $literal:expr) => {
                let (flow, literal) = ($flow, $literal);
                if flow != literal {
                    let (flow, literal) = (format!("{flow:?}"), format!("{literal:?}"));
                    let board = r.board();
                    self.note(|| board);
                    self.note(|| when.to_owned());
                    return Err(self.differs($what, flow, literal));
                }
            };
        }
        let state = match s.phase() {
            Phase::Open | Phase::Disorder => State::Open,
            Phase::Cwr => State::Reducing,
            Phase::Recovery => State::Recovery,
            Phase::Loss => State::Timeout,
        };
        same!("SND.UNA", s.una(), r.una());
        same!("SND.NXT", s.nxt(), r.nxt());
        same!("SRTT", s.rtt().srtt().as_nanos(), r.rto().acks.srtt);
        same!("RTTVAR", s.rtt().rttvar().as_nanos(), r.rto().acks.rttvar);
        same!("RTO", s.rtt().rto().as_nanos(), r.rto().rto());
        same!("undos", s.controller().undos, r.law().undos);
        same!("state", state, r.state());
        same!("ssthresh", s.controller().ssthresh(), r.law().ssthresh);
        same!("window of the law", s.controller().window(), r.law().cwnd);
        same!("cwnd", s.cwnd(), r.cwnd().max(0.0));
        // Without SACK the pipe is what the window leaves once it has been used.
        if self.h.detector != Detector::NewReno || when == "after sending" {
            same!("pipe", s.flight(), r.pipe());
        }
        if when == "after sending" {
            let timer = r
                .next_timer()
                .map_or(Time::MAX, |ns| Time::ZERO + Span::from_nanos(ns));
            same!("timer", s.next_timeout(), timer);
        }
        Ok(())
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{:.6} {}", self.now.as_secs_f64(), text()));
        }
    }

    fn differs(&self, what: &'static str, flow: String, literal: String) -> Box<Difference> {
        let log = self.log.clone().unwrap_or_default();
        let from = log.len().saturating_sub(40);
        Box::new(Difference {
            at: self.now,
            what,
            flow,
            literal,
            log: log[from..].to_vec(),
        })
    }
}
