//! A host over a socket that is made up: time stands still but for its waits, so that every count
//! is exact.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use fullpipe_flow::{Ack, Receiver, ReceiverConfig, Segment};
use fullpipe_host::{HostCounts, HostOutcome};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::{Span, Time};

use super::flow;
use crate::endpoint::lateness::LoopLateness;
use crate::endpoint::{Flush, Hooks, Mark, Plan, Port, Side, run};
use crate::io::Stop;
use crate::wire::reception::Heard;
use crate::wire::{AckDatagram, DataDatagram, Header, Kind, SessionId};

const SESSION: SessionId = SessionId(0x1234);
const DELAY: Span = Span::from_millis(5);

/// The other host is at the far end of a path of 5 ms and answers as a receiver does.
struct Fake {
    now: Rc<Cell<Time>>,
    peer: SocketAddr,
    batch: Vec<(usize, Vec<u8>)>,
    /// Takes the batch's length, returns how many leave.
    takes: Box<dyn FnMut(usize) -> usize>,
    flushed: usize,
    /// Changes a segment on the way.
    changes: fn(&mut DataDatagram),
    receiver: Receiver,
    heard: Heard,
    /// First transmissions in the order in which they left.
    left: Vec<u64>,
    /// ACKs on their way back.
    under_way: Vec<(Time, SocketAddr, Vec<u8>)>,
    arrived: Vec<(SocketAddr, Vec<u8>)>,
    /// Takes in so many of them at once.
    most: usize,
    /// Says that it has room whenever it is asked, as a socket over a full device does.
    says_room: bool,
    /// When those arrived; `None`: nobody says so.
    stamps: Option<Vec<Time>>,
    /// Every waking up comes so late, and every batch takes so long to leave.
    late: Span,
    slow: Span,
    /// Every batch takes so long to be taken in.
    taking: Span,
    log: Rc<RefCell<Log>>,
}

#[derive(Default)]
struct Log {
    left: Vec<u64>,
    refusals: u64,
    refused: u64,
    delivered: u64,
    /// Times of refused calls.
    refused_at: Vec<Time>,
    /// Departure times of ACKs.
    acked_at: Vec<Time>,
}

impl Fake {
    fn new(peer: SocketAddr, takes: impl FnMut(usize) -> usize + 'static) -> Self {
        Self {
            now: Rc::default(),
            peer,
            batch: Vec::new(),
            takes: Box::new(takes),
            flushed: 0,
            changes: |_| {},
            receiver: Receiver::new(
                ReceiverConfig::preset(fullpipe_flow::Preset::Y2026).with(|c| c.acks.every = 1),
            ),
            heard: Heard::default(),
            left: Vec::new(),
            under_way: Vec::new(),
            arrived: Vec::new(),
            most: usize::MAX,
            says_room: false,
            stamps: Some(Vec::new()),
            late: Span::ZERO,
            slow: Span::ZERO,
            taking: Span::ZERO,
            log: Default::default(),
        }
    }

    fn answer(&mut self, bytes: &[u8]) {
        let header = Header::decode(bytes).unwrap();
        if header.kind == Kind::Ack {
            return self.log.borrow_mut().acked_at.push(self.now.get());
        }
        let mut datagram = DataDatagram::decode(&header, bytes).unwrap();
        if !datagram.segment.syn && !datagram.segment.retransmission {
            self.left.push(datagram.segment.seq);
            (self.changes)(&mut datagram);
        }
        let segment = datagram.segment;
        let at = self.now.get() + DELAY;
        let before = self.receiver.counts().delivered;
        let ack = self.receiver.handle_segment(at, &segment);
        if self.receiver.counts().delivered > before {
            self.heard.take(segment.seq, datagram.nonce);
        }
        if let Some(ack) = ack {
            self.send_ack(at + DELAY, ack);
        }
    }

    fn send_ack(&mut self, at: Time, ack: Ack) {
        let datagram = AckDatagram {
            session: SESSION,
            flow: 0,
            ack,
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
            proof: self.heard.proof(&ack),
        };
        let mut bytes = vec![0; datagram.bytes()];
        datagram.encode(&mut bytes);
        self.under_way.push((at, self.peer, bytes));
    }
}

impl Port for Fake {
    fn push(&mut self, to: SocketAddr, _: Option<Mark>, len: usize, fill: impl FnOnce(&mut [u8])) {
        assert_eq!(to, self.peer);
        let mut bytes = vec![0; len];
        fill(&mut bytes);
        self.batch.push((len, bytes));
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= 16
    }

    fn overhead(&self) -> usize {
        0
    }

    fn held_until(&mut self) -> Option<Time> {
        None
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let batch = std::mem::take(&mut self.batch);
        let left = (self.takes)(batch.len()).min(batch.len());
        self.flushed += 1;
        for (_, bytes) in &batch[..left] {
            self.answer(bytes);
        }
        self.now.set(self.now.get() + self.slow);
        let refused = left < batch.len();
        let mut log = self.log.borrow_mut();
        log.refusals += u64::from(refused);
        log.refused_at.extend(refused.then_some(self.now.get()));
        log.refused += (batch.len() - left) as u64;
        Ok(Flush { left, refused })
    }

    fn receive(&mut self) -> io::Result<usize> {
        let now = self.now.get();
        self.arrived.clear();
        self.stamps.iter_mut().for_each(Vec::clear);
        while self.arrived.len() < self.most
            && let Some(i) = self.under_way.iter().position(|(at, ..)| *at <= now)
        {
            let (at, from, bytes) = self.under_way.remove(i);
            self.stamps.iter_mut().for_each(|stamps| stamps.push(at));
            self.arrived.push((from, bytes));
        }
        if !self.arrived.is_empty() {
            self.now.set(now + self.taking);
        }
        Ok(self.arrived.len())
    }

    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for (from, bytes) in &self.arrived {
            take(*from, None, bytes);
        }
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        if writable && self.says_room {
            return Ok(true);
        }
        let next = self.under_way.iter().map(|(at, ..)| *at).min();
        let until = until.min(next.unwrap_or(Time::MAX));
        self.now.set(self.now.get().max(until) + self.late);
        Ok(false)
    }

    fn pause(&mut self, _: Time) -> io::Result<()> {
        Ok(())
    }

    fn received_at(&self, take: impl FnMut(Time)) {
        self.stamps.iter().flatten().copied().for_each(take);
    }

    fn has_stamps(&self) -> bool {
        self.stamps.is_some()
    }

    fn now(&self) -> Time {
        self.now.get()
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

impl Drop for Fake {
    fn drop(&mut self) {
        let mut log = self.log.borrow_mut();
        log.left = std::mem::take(&mut self.left);
        log.delivered = self.receiver.counts().delivered;
    }
}

fn near(main: FlowSpec, fake: Fake) -> (HostOutcome, Log) {
    near_of(vec![main], fake)
}

fn near_of(flows: Vec<FlowSpec>, fake: Fake) -> (HostOutcome, Log) {
    let plan = Plan {
        spec: Arc::new(RunSpec {
            duration: Span::from_secs(20),
            flows,
            ..RunSpec::default()
        }),
        side: Side::Near,
        session: SESSION,
        peer: fake.peer,
        shared_clock: true,
    };
    let log = fake.log.clone();
    let outcome = run(&plan, fake, Hooks::default(), &Stop::new().unwrap()).unwrap();
    (outcome, log.take())
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

/// Every third batch is taken by half only. What is refused comes again in the same order, nothing
/// leaves twice, and the flow knows of each refusal.
#[test]
fn what_is_refused_leaves_later_in_the_same_order() {
    let mut batches = 0;
    let fake = Fake::new(peer(), move |n| {
        batches += 1;
        if batches % 3 == 0 { n / 2 } else { n }
    });
    let mut main = flow("main", 3000);
    main.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    let (outcome, log) = near(main, fake);
    let s = &outcome.senders[0];
    assert!(s.completed.is_some());
    assert!(log.refusals > 10, "{}", log.refusals);
    assert!(log.left.iter().copied().eq(0..3000));
    assert_eq!(log.delivered, 3000);
    assert_eq!(
        (s.totals.sent, s.offered, s.totals.retransmits),
        (3000, 3000, 0)
    );
    assert_eq!(s.totals.local_stalls, log.refused);
    assert_eq!(outcome.counts.local_stalls, log.refusals);
    assert_eq!((s.totals.loss_events, outcome.counts.refused), (0, 0));
}

/// A refused segment keeps the verdict over it, and those that leave are counted as the simulator
/// counts them.
#[test]
fn a_refusal_does_not_move_exact_drops() {
    let run = |refuses: bool| {
        let mut batches = 0;
        let fake = Fake::new(peer(), move |n| {
            batches += 1;
            if refuses && batches % 2 == 0 {
                n / 3
            } else {
                n
            }
        });
        let mut main = flow("main", 1000);
        main.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
        main.drops.segments = vec![100, 101, 555];
        let (outcome, log) = near(main, fake);
        assert_eq!(refuses, log.refusals > 0);
        let totals = outcome.senders[0].totals;
        assert_eq!((totals.dropped, totals.sent), (3, 1003), "{totals:?}");
        let mut first: Vec<u64> = (0..1000).collect();
        first.retain(|seq| ![100, 101, 555].contains(seq));
        assert_eq!(log.left, first);
    };
    run(false);
    run(true);
}

/// Linux reacts once per window, and so does the sender, however many datagrams of a batch come
/// back.
#[test]
fn a_refused_batch_is_one_congestion_event() {
    let mut batches = 0;
    let fake = Fake::new(peer(), move |n| {
        batches += 1;
        if batches == 12 { 0 } else { n }
    });
    let (outcome, log) = near(flow("main", 3000), fake);
    let totals = outcome.senders[0].totals;
    assert!(log.refused > 1, "{}", log.refused);
    assert_eq!(totals.local_stalls, log.refused);
    assert_eq!(totals.loss_events, 1);
    assert_eq!(log.delivered, 3000);
}

/// The queue of a device is full for 20 ms, and the socket says all the time that it has room. The
/// host asks it in vain once, then tries less and less often, and what it counts is one stall.
#[test]
fn a_device_that_is_full_is_tried_less_and_less_often() {
    let clock = Rc::new(Cell::new(Time::ZERO));
    let [from, until] = [100, 120].map(|ms| Time::ZERO + Span::from_millis(ms));
    let now = clock.clone();
    let mut fake = Fake::new(peer(), move |n| match now.get() {
        now if (from..until).contains(&now) => 0,
        _ => n,
    });
    (fake.now, fake.says_room) = (clock, true);
    let mut main = flow("main", 3000);
    main.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    let (outcome, log) = near(main, fake);
    let gaps = log
        .refused_at
        .windows(2)
        .map(|w| (w[1] - w[0]).as_nanos() / 1000);
    let gaps: Vec<u64> = gaps.collect();
    assert!(
        gaps.starts_with(&[0, 50, 100, 200, 400, 800, 1600, 2000]),
        "{gaps:?}"
    );
    assert!(gaps.len() < 20, "{gaps:?}");
    assert_eq!(outcome.counts.local_stalls, 1);
    assert_eq!(log.delivered, 3000);
    assert!(outcome.senders[0].completed.is_some());
}

/// Datagrams of strangers, of other sessions and flows, damaged ones, ACKs of what was never sent.
#[test]
fn what_is_none_of_the_runs_is_ignored_and_counted() {
    let mut fake = Fake::new(peer(), |n| n);
    let ack = |flow, session, cum| {
        let datagram = AckDatagram {
            session,
            flow,
            ack: Ack {
                cum,
                syn: false,
                echo: Time::ZERO,
                stamp_ms: 0,
                one_way: None,
                sacks: Default::default(),
                dsack: false,
                ece: false,
                window_end: u64::MAX,
            },
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
            proof: 0,
        };
        let mut bytes = vec![0; datagram.bytes()];
        datagram.encode(&mut bytes);
        bytes
    };
    let data = |flow| {
        let segment = Segment {
            seq: 0,
            syn: false,
            retransmission: false,
            stamp: Time::ZERO,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        };
        let datagram = DataDatagram {
            session: SESSION,
            flow,
            segment,
            nonce: 0,
        };
        let mut bytes = vec![0; 100];
        datagram.encode(&mut bytes);
        bytes
    };
    let other = |kind| {
        let header = Header {
            kind,
            flags: 0,
            flow: 0,
            session: SESSION,
        };
        let mut bytes = vec![0; 24];
        header.encode(&mut bytes);
        bytes
    };
    let mut short = ack(0, SESSION, 0);
    short.pop();
    let stranger = SocketAddr::from(([127, 0, 0, 1], 10));
    let garbage = vec![
        (peer(), vec![]),
        (peer(), vec![0xff; 40]),
        (peer(), short),
        (peer(), ack(0, SessionId(9), 0)),
        (peer(), ack(1, SESSION, 0)),
        (peer(), ack(0x8000, SESSION, 0)),
        (peer(), ack(0, SESSION, 1 << 40)),
        (peer(), data(0)),
        (peer(), data(7)),
        (peer(), data(0xffff)),
        (peer(), other(Kind::Datagram)),
        (peer(), other(Kind::Ping)),
        (peer(), other(Kind::Pong)),
        (peer(), other(Kind::Control)),
        (stranger, ack(0, SESSION, 0)),
    ];
    let count = garbage.len() as u64;
    let at = Time::ZERO + Span::from_millis(30);
    let garbage = garbage.into_iter().map(|(from, bytes)| (at, from, bytes));
    fake.under_way.extend(garbage);
    let (outcome, log) = near(flow("main", 500), fake);
    assert_eq!(outcome.counts.ignored, count);
    assert_eq!((log.delivered, outcome.senders[0].totals.sent), (500, 500));
}

/// Of a clear run nothing guards the header: a bit of the nonce or of the number is changed on the
/// way, also to a number that has not been sent.
#[test]
fn a_changed_header_does_not_end_a_flow() {
    let changes: [fn(&mut DataDatagram); 4] = [
        |d| d.nonce ^= u8::from(d.segment.seq == 50),
        |d| d.segment.seq ^= u64::from(d.segment.seq == 50),
        |d| d.segment.seq ^= u64::from(d.segment.seq == 50) << 6,
        |d| d.segment.seq ^= u64::from(d.segment.seq == 50) << 9,
    ];
    for changes in changes {
        let mut fake = Fake::new(peer(), |n| n);
        fake.changes = changes;
        let (outcome, log) = near(flow("main", 2000), fake);
        assert_eq!(log.delivered, 2000);
        assert!(outcome.senders[0].completed.is_some());
    }
}

/// A transfer through a host that wakes up so late and takes so long for a batch.
fn lateness(late_us: u64, slow_us: u64, stamps: bool) -> HostOutcome {
    let mut fake = Fake::new(peer(), |n| n);
    fake.late = Span::from_micros(late_us);
    fake.slow = Span::from_micros(slow_us);
    fake.stamps = stamps.then(Vec::new);
    let mut main = flow("main", 500);
    main.sender.pacing.gains = Some(fullpipe_cc::PacingGains::default());
    let (outcome, log) = near(main, fake);
    assert_eq!(log.delivered, 500);
    outcome
}

/// In time that passes only where the test says so: every number is exact.
#[test]
fn a_host_knows_how_late_it_was() {
    let prompt = lateness(0, 0, true);
    let (host, counts) = (prompt.lateness, prompt.counts);
    let arrivals = host.arrivals.unwrap();
    assert_eq!(arrivals.count, counts.datagrams_in);
    assert_eq!(host.departures.count, counts.datagrams_out);
    assert!(host.timers.count > 100, "{}", host.timers.count);
    let largest = [arrivals.max, host.departures.max, host.timers.max];
    assert_eq!(largest, [Span::ZERO; 3]);

    let late = Span::from_micros(700);
    let host = lateness(700, 0, true).lateness;
    let arrivals = host.arrivals.unwrap();
    assert_eq!((arrivals.max, host.timers.max), (late, late));
    assert!(arrivals.mean > Span::ZERO && arrivals.mean <= late);
    assert_eq!(host.departures.max, Span::ZERO);
    assert_eq!(host.added(), Some(arrivals.mean));

    // What leaves is late, and so is what has to wait for it.
    let slow = Span::from_micros(300);
    let host = lateness(0, 300, true).lateness;
    assert!(host.departures.mean >= slow, "{}", host.departures.mean);
    assert!(host.arrivals.unwrap().max > Span::ZERO);
    assert!(host.added().unwrap() > host.departures.mean);
}

/// Sending costs time, and a batch of arrivals is small: what arrived is heard before more is sent.
#[test]
fn acks_do_not_queue_up_behind_what_they_allow() {
    let mut fake = Fake::new(peer(), |n| n);
    (fake.most, fake.slow) = (4, Span::from_micros(10));
    let (outcome, log) = near(flow("main", 3000), fake);
    assert_eq!(log.delivered, 3000);
    let arrivals = outcome.lateness.arrivals.unwrap();
    assert!(arrivals.max < Span::from_micros(150), "{:?}", arrivals.max);
}

/// Nor do answers wait for what arrives after what they answer, and none is late without the host's
/// knowing.
#[test]
fn answers_leave_before_the_next_batch_is_heard() {
    let mut fake = Fake::new(peer(), |n| n);
    let taking = Span::from_micros(100);
    (fake.most, fake.taking) = (1, taking);
    let mut back = flow("back", 4);
    back.reverse = true;
    back.receiver.acks.every = 1;
    // The answer to the SYN comes first: from then on there is something to send.
    let at = Time::ZERO + DELAY * 2 + Span::from_nanos(1);
    for seq in 0..4 {
        let segment = Segment {
            seq,
            syn: false,
            retransmission: false,
            stamp: Time::ZERO,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        };
        let datagram = DataDatagram {
            session: SESSION,
            flow: 1,
            segment,
            nonce: 0,
        };
        let mut bytes = vec![0; back.sender.mss as usize + DataDatagram::LEN];
        datagram.encode(&mut bytes);
        fake.under_way.push((at, peer(), bytes));
    }
    let (outcome, log) = near_of(vec![flow("main", 500), back], fake);
    assert_eq!((log.delivered, outcome.receivers[0].arrived), (500, 4));
    let heard = Time::ZERO + DELAY * 2 + taking;
    let due: Vec<_> = (1..=4).map(|n| heard + taking * n).collect();
    assert_eq!(log.acked_at, due);
    assert_eq!(outcome.lateness.departures.max, Span::ZERO);
}

/// Where nobody says when a datagram came, nobody says that it was handled at once.
#[test]
fn without_stamps_a_host_does_not_claim_to_be_prompt() {
    let host = lateness(700, 0, false).lateness;
    assert_eq!((host.arrivals, host.added()), (None, None));
    assert_eq!(host.timers.max, Span::from_micros(700));
    // The port has promised them, and then there are none.
    let (some, none) = (1, 0);
    for (datagrams_in, known) in [(none, true), (some, false)] {
        let counts = HostCounts {
            datagrams_in,
            ..HostCounts::default()
        };
        let host = LoopLateness::default().finish(&counts, true);
        assert_eq!(host.arrivals.is_some(), known);
    }
}
