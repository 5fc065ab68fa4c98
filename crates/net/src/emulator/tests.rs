//! Over loopback: counts, order, drops and marks are exact, times have room for a busy machine.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Ack, Preset, ReceiverConfig, SackBlocks, Segment, SenderConfig};
use fullpipe_run::{
    Buffer, CaptureEvent, CrossSpec, Discipline, FlowSpec, LinkSpec, Loss, Red, RunSpec, Waveform,
};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use super::*;
use crate::io::{Ecn, Inbox, Outbox, Waiter};
use crate::wire::{AckDatagram, CrossDatagram, DataDatagram, Kind};

const SESSION: SessionId = SessionId(0x1234_5678_9abc_def0);

fn mbit(mbps: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_sec(mbps * 1_000_000))
}

/// A flow over link 0 and back over link 1, a reverse one, a source and a probe, for twenty
/// seconds.
fn spec(change: impl FnOnce(&mut LinkSpec)) -> RunSpec {
    let delay = Span::from_millis(5);
    let flow = |name: &str| {
        FlowSpec::new(
            name,
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![0],
            vec![1],
        )
    };
    let reverse = FlowSpec {
        reverse: true,
        forward: vec![1],
        back: vec![0],
        ..flow("reverse")
    };
    let silence = Waveform::Steps {
        steps: Vec::new(),
        period: None,
    };
    let mut spec = RunSpec {
        duration: Span::from_secs(20),
        links: vec![
            LinkSpec::new("there", mbit(100), delay, Buffer::Packets(1000)),
            LinkSpec::pure_delay("back", delay),
        ],
        flows: vec![flow("flow"), reverse],
        cross: vec![
            CrossSpec::source("cross", 200, silence, vec![0]),
            CrossSpec::probes("ping", 84, Span::from_secs(1), vec![0], vec![1]),
        ],
        ..RunSpec::default()
    };
    change(&mut spec.links[0]);
    spec
}

fn segment(seq: u64) -> Segment {
    Segment {
        seq,
        syn: false,
        retransmission: false,
        stamp: Time::ZERO,
        ect: false,
        ce: false,
        cwr: false,
        push: false,
    }
}

/// A segment with little payload, so that the smallest socket buffer holds all of a test.
fn data(flow: u16, segment: Segment) -> Vec<u8> {
    let payload = if segment.syn { 0 } else { 76 };
    let mut out = vec![7; DataDatagram::LEN + payload];
    let datagram = DataDatagram {
        session: SESSION,
        flow,
        segment,
        nonce: 0,
    };
    datagram.encode(&mut out);
    out
}

fn ack(flow: u16, cum: u64) -> Vec<u8> {
    let mut out = vec![0; AckDatagram::MOST];
    let datagram = AckDatagram {
        session: SESSION,
        flow,
        ack: Ack {
            cum,
            syn: false,
            echo: Time::ZERO,
            stamp_ms: 0,
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: u64::MAX,
        },
        hold: Span::ZERO,
        ce: 0,
        ect: 0,
        proof: 0,
    };
    let n = datagram.encode(&mut out);
    out.truncate(n);
    out
}

/// The two hosts and the emulator between them.
struct Bench {
    near: UdpSocket,
    far: UdpSocket,
    emulator: Emulator,
}

fn host() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wait = Some(Duration::from_secs(10));
    socket.set_read_timeout(wait).unwrap();
    socket
}

impl Bench {
    fn new(spec: &RunSpec) -> Self {
        let (near, far) = (host(), host());
        let peers = (near.local_addr().unwrap(), far.local_addr().unwrap());
        let config = EmulatorConfig {
            real_time: false,
            ..EmulatorConfig::new(SESSION, peers.0, peers.1)
        };
        let emulator = Emulator::start(spec, Clock::new(), &config).unwrap();
        Self {
            near,
            far,
            emulator,
        }
    }

    fn send_near(&self, datagram: &[u8]) {
        self.near
            .send_to(datagram, self.emulator.near_addr())
            .unwrap();
    }

    fn send_far(&self, datagram: &[u8]) {
        self.far
            .send_to(datagram, self.emulator.far_addr())
            .unwrap();
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let n = socket.recv(&mut buffer).unwrap();
    buffer[..n].to_vec()
}

fn number(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(datagram[12..20].try_into().unwrap())
}

#[test]
fn datagrams_arrive_whole_in_order_and_late() {
    let bench = Bench::new(&spec(|_| ()));
    let begun = Instant::now();
    for seq in 0..100 {
        bench.send_near(&data(0, segment(seq)));
        bench.send_far(&ack(0, seq));
    }
    let first = receive(&bench.far);
    assert!(begun.elapsed() >= Duration::from_millis(5));
    assert_eq!(first, data(0, segment(0)));
    for seq in 1..100 {
        assert_eq!(receive(&bench.far), data(0, segment(seq)));
    }
    for seq in 0..100 {
        assert_eq!(receive(&bench.near), ack(0, seq));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    let outcome = bench.emulator.stop().unwrap();
    assert_eq!(
        (outcome.arrived, outcome.left, outcome.ignored),
        (200, 200, 0)
    );
    assert_eq!(outcome.lateness.count(), 200);
    assert_eq!(outcome.fidelity.unplanned_drops, 0);
    assert!(!outcome.fidelity.real_time);
    let [there, back] = &outcome.links[..] else {
        panic!("two links")
    };
    assert_eq!((there.0, back.0), (0, 1));
    assert_eq!((there.1.offered, there.1.delivered), (100, 100));
    assert_eq!(there.1.delivered_bytes, 100 * (100 + 28));
    assert_eq!(back.1.delivered_bytes, 100 * 52);
}

#[test]
fn every_kind_has_its_way_and_its_bytes() {
    let bench = Bench::new(&spec(|_| ()));
    let syn = Segment {
        syn: true,
        ..segment(0)
    };
    let mut cross = vec![0; 60];
    let of_kind = |kind, number| CrossDatagram {
        kind,
        session: SESSION,
        flow: 0,
        number,
        stamp: Time::ZERO,
    };
    of_kind(Kind::Datagram, 3).encode(&mut cross);
    let (mut ping, mut pong) = (vec![0; 56], vec![0; 56]);
    of_kind(Kind::Ping, 4).encode(&mut ping);
    of_kind(Kind::Pong, 4).encode(&mut pong);

    for datagram in [&data(0, syn), &ack(1, 9), &cross, &ping] {
        bench.send_near(datagram);
        assert_eq!(&receive(&bench.far), datagram);
    }
    for datagram in [&ack(0, 9), &data(1, segment(5)), &pong] {
        bench.send_far(datagram);
        assert_eq!(&receive(&bench.near), datagram);
    }
    let links = bench.emulator.stop().unwrap().links;
    assert_eq!(links[0].1.delivered_bytes, 52 + 52 + 200 + 84);
    assert_eq!(links[1].1.delivered_bytes, 52 + 128 + 84);
}

#[test]
fn what_is_none_of_the_run_is_ignored() {
    let bench = Bench::new(&spec(|_| ()));
    let mut other = data(0, segment(0));
    other[11] ^= 1; // session
    let mut version = data(0, segment(0));
    version[0] ^= 0x80;
    let mut control = data(0, segment(0));
    control[0] = control[0] & 0xf0 | 5;
    let wrong = [
        vec![],
        vec![0xff; 3],
        other,
        version,
        control,
        data(0, segment(0))[..20].to_vec(),
        // No such flow, no such class.
        data(2, segment(0)),
        data(0x8000, segment(0)),
        // From the wrong side.
        data(1, segment(0)),
        ack(0, 0),
    ];
    for datagram in &wrong {
        bench.send_near(datagram);
    }
    bench.send_near(&data(0, segment(77)));
    assert_eq!(number(&receive(&bench.far)), 77);
    let outcome = bench.emulator.stop().unwrap();
    assert_eq!(outcome.ignored, wrong.len() as u64);
    assert_eq!(outcome.links[0].1.offered, 1);
}

/// The packets that a link loses at random are, by their number, those that it loses in the
/// simulator.
#[test]
fn the_line_loses_what_the_simulator_loses() {
    let mut spec = spec(|l| l.loss = Loss::Bernoulli { p: 0.2 });
    spec.duration = Span::from_secs(10);
    let alone = RunSpec {
        flows: vec![spec.flows[0].clone()],
        cross: Vec::new(),
        capture: true,
        ..spec.clone()
    };
    let (mut sent, mut lost) = (0, Vec::new());
    for row in run(&alone).unwrap().capture {
        match row.event {
            CaptureEvent::SegmentSent(s) if !s.syn => sent += 1,
            // The entry of the link is the only place.
            CaptureEvent::SegmentDropped(s) if !s.syn => lost.push(sent - 1),
            _ => {}
        }
    }
    lost.retain(|n| *n < 150);
    assert!(lost.len() > 15, "{lost:?}");

    let bench = Bench::new(&spec);
    for seq in 0..150 {
        bench.send_near(&data(0, segment(seq)));
    }
    // Not data: it is not lost, and nothing comes after it.
    bench.send_near(&ack(1, 1000));
    let mut arrived = Vec::new();
    loop {
        match number(&receive(&bench.far)) {
            1000 => break,
            n => arrived.push(n),
        }
    }
    let expected: Vec<u64> = (0..150).filter(|n| !lost.contains(n)).collect();
    assert_eq!(arrived, expected);
    let outcome = bench.emulator.stop().unwrap();
    assert_eq!(outcome.links[0].1.random_drops, lost.len() as u64);
    assert_eq!(outcome.fidelity.unplanned_drops, 0);
}

/// A queue that marks what is ECN-capable from the second packet on.
#[test]
fn marks_are_set_on_what_is_capable() {
    let red = Red {
        min: 0.5,
        max: 60.0,
        max_p: 1.0,
        weight: 1.0,
        gentle: false,
        ecn: true,
        ..Red::classic(60)
    };
    let spec = spec(|l| {
        l.discipline = Discipline::Red(red);
        l.rate = mbit(1);
    });
    let bench = Bench::new(&spec);
    let config = IoConfig::new(Mode::Packet);
    let near = Socket::new(bench.near.try_clone().unwrap(), &config).unwrap();
    let far = Socket::new(bench.far.try_clone().unwrap(), &config).unwrap();
    let mut out = Outbox::new(50, 100);
    for seq in 0..50 {
        let bytes = data(0, segment(seq));
        assert!(
            out.push(bench.emulator.near_addr(), Some(Ecn::Ect0), 100, |b| {
                b.copy_from_slice(&bytes);
            })
        );
    }
    out.flush(&near).unwrap();
    let waiter = Waiter::new(WaitStrategy::Sleep, Clock::new(), Stop::new().unwrap()).unwrap();
    let mut inbox = Inbox::new(&far);
    let (mut marked, mut plain) = (0, 0);
    let until = waiter.clock().now() + Span::from_secs(1);
    while waiter.clock().now() < until {
        waiter.wait(&[&far], until, false).unwrap();
        while far.receive(&mut inbox).unwrap() > 0 {
            for datagram in inbox.iter() {
                match datagram.ecn {
                    Some(Ecn::Ce) => marked += 1,
                    Some(Ecn::Ect0) => plain += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    let there = bench.emulator.stop().unwrap().links.remove(0).1;
    assert!(there.marks > 0 && plain > 0);
    assert_eq!((marked, marked + plain), (there.marks, there.delivered));
}

/// Hosts that nobody named are learnt from what they send; before that, there is nobody to send to.
#[test]
fn hosts_are_learnt() {
    let config = EmulatorConfig {
        session: SESSION,
        near_peer: None,
        far_peer: None,
        wait: WaitStrategy::Sleep,
        real_time: false,
    };
    let (near, far) = (host(), host());
    let emulator = Emulator::start(&spec(|_| ()), Clock::new(), &config).unwrap();
    near.send_to(b"noise", emulator.far_addr()).unwrap();
    far.send_to(&ack(0, 5), emulator.far_addr()).unwrap();
    // The ACK finds nobody at first; the near host is known when its own datagram has come.
    near.send_to(&data(0, segment(3)), emulator.near_addr())
        .unwrap();
    assert_eq!(number(&receive(&far)), 3);
    far.send_to(&ack(0, 6), emulator.far_addr()).unwrap();
    while number(&receive(&near)) != 6 {}
    emulator.stop().unwrap();
}

/// An emulator of a run that ends.
#[test]
fn a_line_ends_with_its_run() {
    let mut spec = spec(|_| ());
    spec.duration = Span::from_millis(50);
    let bench = Bench::new(&spec);
    let begun = Instant::now();
    while !bench.emulator.thread.is_finished() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        thread::yield_now();
    }
    assert_eq!(bench.emulator.stop().unwrap().links.len(), 2);
}

/// How late datagrams leave, for a few rates:
/// `cargo test --release -p fullpipe-net lateness -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn lateness() {
    for (mbps, wait) in [
        (10, WaitStrategy::Sleep),
        (100, WaitStrategy::Sleep),
        (100, WaitStrategy::Spin),
        (300, WaitStrategy::Sleep),
        (1000, WaitStrategy::Sleep),
    ] {
        for real_time in [false, true] {
            measure(mbps, wait, real_time);
        }
    }
}

/// Full packets at 95 % of the rate for three seconds over 80 ms, every second one acknowledged.
fn measure(mbps: u64, wait: WaitStrategy, real_time: bool) {
    let mut spec = spec(|_| ());
    spec.duration = Span::from_secs(4);
    spec.links[0].rate = mbit(mbps);
    for link in &mut spec.links {
        link.delay = Span::from_millis(40);
    }
    let config = IoConfig::new(Mode::Packet);
    let socket = || Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &config).unwrap();
    let (near, far) = (socket(), socket());
    let line_config = EmulatorConfig {
        wait,
        real_time,
        ..EmulatorConfig::new(SESSION, near.local(), far.local())
    };
    let clock = Clock::new();
    let emulator = Emulator::start(&spec, clock, &line_config).unwrap();
    let (near_addr, far_addr) = (emulator.near_addr(), emulator.far_addr());
    let end = Time::ZERO + Span::from_millis(3200);
    let sink = thread::spawn(move || {
        let waiter = Waiter::new(WaitStrategy::Sleep, clock, Stop::new().unwrap()).unwrap();
        let (mut inbox, mut out) = (Inbox::new(&far), Outbox::new(64, 100));
        let mut arrived = 0u64;
        while clock.now() < end {
            waiter.wait(&[&far], end, false).unwrap();
            while far.receive(&mut inbox).unwrap() > 0 {
                for datagram in inbox.iter() {
                    arrived += 1;
                    if arrived.is_multiple_of(2) {
                        let bytes = ack(0, number(datagram.bytes));
                        out.push(far_addr, None, bytes.len(), |b| b.copy_from_slice(&bytes));
                    }
                }
                out.flush(&far).unwrap();
            }
        }
        arrived
    });
    let waiter = Waiter::new(WaitStrategy::Sleep, clock, Stop::new().unwrap()).unwrap();
    let mut out = Outbox::new(64, 1472);
    let mut inbox = Inbox::new(&near);
    let gap = 1500.0 * 8.0 / (mbps as f64 * 1e6 * 0.95);
    let mut sent = 0u64;
    while clock.now() < Time::ZERO + Span::from_secs(3) {
        let at = |n: u64| Time::from_secs_f64(n as f64 * gap);
        // Behind by more than a batch: the emulator is what is measured, not this sender.
        for _ in 0..64 {
            if at(sent) > clock.now() {
                break;
            }
            let mut bytes = vec![0; 1472];
            DataDatagram {
                session: SESSION,
                flow: 0,
                segment: segment(sent),
                nonce: 0,
            }
            .encode(&mut bytes);
            if !out.push(near_addr, None, 1472, |b| b.copy_from_slice(&bytes)) {
                out.flush(&near).unwrap();
                continue;
            }
            sent += 1;
        }
        out.flush(&near).unwrap();
        while near.receive(&mut inbox).unwrap() > 0 {}
        waiter.wait(&[], at(sent), false).unwrap();
    }
    let arrived = sink.join().unwrap();
    let outcome = emulator.stop().unwrap();
    let us = |s: Option<Span>| s.map_or(0.0, |s| s.as_secs_f64() * 1e6);
    let late = |q| us(outcome.lateness.quantile(q));
    println!(
        "{mbps:>5} Mbit/s {wait:?} real-time {:5} grain {:?}: sent {sent}, arrived {arrived}, late p50 {:.1} p99 {:.1} p99.9 {:.1} \
         max {:.0} us, cpu {:.1} % of a core, {:.0} turns/s, unplanned {}, emulator's link dropped {}",
        outcome.fidelity.real_time,
        outcome.fidelity.grain,
        late(0.5),
        late(0.99),
        late(0.999),
        us(outcome.lateness.max()),
        outcome.cpu.as_secs_f64() / 4.0 * 100.0,
        outcome.turns as f64 / 4.0,
        outcome.fidelity.unplanned_drops,
        outcome.links[0].1.buffer_drops,
    );
}
