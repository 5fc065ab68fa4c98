//! A path fed with the packets of a simulated run, at their times, does with them what the
//! simulator did: every arrival at the same nanosecond, every loss, every mark, every counter of
//! every link.

use fullpipe_run::{
    Buffer, CaptureEvent, Change, Codel, Discipline, FlowSpec, FqCodel, LinkSpec, Loss, Pie,
    Policer, Red, Reorder, RunSpec, Trace,
};
use fullpipe_sim::{Datagram, PacketKind, PacketOutcome, Path, Route, run};
use fullpipe_units::{Rate, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::any_link::links;
use crate::build::{dumbbell, flow, link, mbit, ms};

/// An end of a packet at a host: time, flow, whether it is data, number, mark; `None`: lost.
type End = (Time, u32, bool, u64, Option<bool>);

/// The simulated run, and the same packets offered to a path: what ended how, and the links.
#[derive(PartialEq, Debug)]
struct Seen {
    ends: Vec<End>,
    links: Vec<String>,
}

/// See [`Seen`]; last, whether two things that have nothing to do with one another happened at one
/// instant, of which a capture does not tell which was first.
fn both(spec: &RunSpec) -> (Seen, Seen, bool) {
    let simulated = run(spec).unwrap();
    let mut tie = false;
    let mut latest = (Time::MAX, 0);
    let mut path = Path::new(spec);
    let routes: Vec<[Route; 2]> = spec
        .flows
        .iter()
        .map(|f| [&f.forward, &f.back].map(|links| path.route(links).unwrap()))
        .collect();
    let (mut expected, mut seen, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    for row in &simulated.capture {
        use CaptureEvent::*;
        let (at, flow) = std::mem::replace(&mut latest, (row.at, row.flow));
        tie |= at == row.at && flow != row.flow;
        let (kind, seq, ect) = match row.event {
            SegmentSent(s) if s.syn => (PacketKind::Syn, s.seq, s.ect),
            SegmentSent(s) => (PacketKind::Data, s.seq, s.ect),
            AckSent(a) if a.syn => (PacketKind::SynAck, a.cum, false),
            AckSent(a) => (PacketKind::Ack, a.cum, false),
            SegmentReceived(s) => {
                let end = (row.at, row.flow, true, s.seq, Some(s.ce));
                expected.push(end);
                move_to(end, &mut path, &sent, &mut seen);
                continue;
            }
            AckReceived(a) => {
                let end = (row.at, row.flow, false, a.cum, Some(false));
                expected.push(end);
                move_to(end, &mut path, &sent, &mut seen);
                continue;
            }
            SegmentDropped(s) => {
                expected.push((row.at, row.flow, true, s.seq, None));
                continue;
            }
            SegmentLost(_) => continue,
            AckDropped(cum) => {
                expected.push((row.at, row.flow, false, cum, None));
                continue;
            }
        };
        let is_data = matches!(kind, PacketKind::Data | PacketKind::Syn);
        let sender = &spec.flows[row.flow as usize].sender;
        let size = match kind {
            PacketKind::Data => sender.packet(),
            _ => sender.header,
        };
        if at != row.at {
            // What is due before hides what is due now.
            while path.next_event().is_some_and(|due| due < row.at) {
                path.advance_by_one();
            }
            take(&mut path, &sent, &mut seen);
            tie |= path.next_event() == Some(row.at);
        }
        let datagram = Datagram {
            token: sent.len() as u64,
            kind,
            flow: row.flow,
            size: size as u16,
            ect,
        };
        sent.push((row.flow, is_data, seq));
        path.offer(
            row.at,
            routes[row.flow as usize][usize::from(!is_data)],
            &datagram,
        );
        take(&mut path, &sent, &mut seen);
    }
    path.advance(Time::ZERO + spec.duration);
    take(&mut path, &sent, &mut seen);
    // At one instant, the simulator notes a loss after what caused it.
    expected.sort();
    seen.sort();
    let outcomes = simulated.links.iter().map(|l| format!("{l:?}"));
    let links = path.finish().unwrap().into_iter();
    (
        Seen {
            ends: expected,
            links: outcomes.collect(),
        },
        Seen {
            ends: seen,
            links: links.map(|(_, l)| format!("{l:?}")).collect(),
        },
        tie,
    )
}

/// Moves the path until a packet has arrived: what the host does next comes before other events of
/// the same instant.
fn move_to(end: End, path: &mut Path, sent: &[(u32, bool, u64)], seen: &mut Vec<End>) {
    let from = seen.len();
    while !seen[from..].contains(&end) && path.next_event().is_some_and(|at| at <= end.0) {
        path.advance_by_one();
        take(path, sent, seen);
    }
}

fn take(path: &mut Path, sent: &[(u32, bool, u64)], seen: &mut Vec<End>) {
    for exit in path.departures() {
        let (flow, is_data, seq) = sent[exit.token as usize];
        let ce = match exit.outcome {
            PacketOutcome::Arrived { ce } => Some(ce),
            PacketOutcome::Dropped => None,
        };
        seen.push((exit.at, flow, is_data, seq, ce));
    }
}

/// Two ECN flows, of which the second starts in the first one's queue, for three seconds.
fn spec(change: impl FnOnce(&mut LinkSpec)) -> RunSpec {
    let mut a = flow("a", "reno");
    a.sender.handshake = true;
    let mut b = flow("b", "cubic");
    b.start = Time::ZERO + Span::from_micros(300_017);
    for f in [&mut a, &mut b] {
        f.sender.ecn = true;
        f.receiver.ecn = true;
        f.receiver.acks.every = 2;
    }
    let mut spec = dumbbell(11.93, 41, Buffer::Packets(30), 3.0, vec![a, b]);
    change(&mut spec.links[0]);
    spec.capture = true;
    spec.trace = Trace::Every(ms(10));
    spec
}

fn held(codel: Codel) -> [Discipline; 2] {
    let fq = FqCodel {
        codel,
        flows: 16,
        quantum: 1500,
    };
    [Discipline::Codel(codel), Discipline::FqCodel(fq)]
}

/// Also says that the case has what it is for.
fn agree(spec: &RunSpec, lost: bool, marked: bool) {
    let (expected, seen, _) = both(spec);
    let ends = &expected.ends;
    assert!(ends.len() > 3000, "{}", ends.len());
    assert_eq!(ends.iter().any(|e| e.4.is_none()), lost);
    assert_eq!(ends.iter().any(|e| e.4 == Some(true)), marked);
    assert!(expected == seen);
}

#[test]
fn plain_links() {
    agree(&spec(|_| ()), true, false);
    agree(&spec(|l| l.buffer = Buffer::Unlimited), false, false);
    agree(&spec(|l| l.buffer = Buffer::Bytes(40_000)), true, false);
    agree(&spec(|l| l.buffer = Buffer::Time(ms(30))), true, false);
    agree(&spec(|l| l.loss = Loss::Bernoulli { p: 0.01 }), true, false);
    agree(&spec(|l| l.delay_spread = ms(9)), true, false);
}

#[test]
fn losses_of_everything() {
    let burst = Loss::GilbertElliott {
        to_bad: 0.005,
        to_good: 0.2,
        good: 0.0,
        bad: 0.5,
    };
    agree(&spec(|l| l.loss = burst), true, false);
    let mut both_ways = spec(|l| l.loss = burst);
    both_ways.links[1].loss = Loss::Bernoulli { p: 0.05 };
    both_ways.links[1].loss_of_acks = true;
    agree(&both_ways, true, false);
    let policer = Policer {
        rate: Rate::from_bits_per_sec(9_000_000),
        burst: 20_000,
    };
    agree(&spec(|l| l.policer = Some(policer)), true, false);
}

#[test]
fn ways_that_vary() {
    agree(&spec(|l| l.jitter = ms(3)), true, false);
    let reorder = Reorder {
        probability: 0.02,
        extra: ms(7),
    };
    agree(&spec(|l| l.reorder = Some(reorder)), true, false);
    let change = |at, rate, delay| Change {
        at: Time::ZERO + ms(at),
        rate: mbit(rate),
        delay,
        loss: None,
    };
    let changes = vec![
        change(700, 5.1, Some(ms(33))),
        change(1500, 0.0, None),
        change(1700, 20.3, Some(ms(11))),
    ];
    agree(&spec(|l| l.schedule = changes), true, false);
}

#[test]
fn disciplines() {
    let red = Red {
        min: 5.0,
        max: 15.0,
        max_p: 0.1,
        weight: 0.01,
        adaptive: true,
        ecn: true,
        ..Red::classic(60)
    };
    agree(&spec(|l| l.discipline = Discipline::Red(red)), true, true);
    let pie = Pie {
        target: ms(5),
        update: ms(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: ms(10),
        ecn: Some(0.1),
        ..Pie::default()
    };
    agree(&spec(|l| l.discipline = Discipline::Pie(pie)), true, true);
    for ecn in [false, true] {
        let codel = Codel {
            target: ms(5),
            interval: ms(50),
            ecn,
            ..Codel::default()
        };
        for discipline in held(codel) {
            let spec = spec(|l| l.discipline = discipline);
            agree(&spec, true, ecn);
        }
    }
}

/// Three links in a row, the second of which holds its packets.
#[test]
fn links_in_a_row() {
    let mut spec = spec(|l| l.rate = mbit(19.7));
    let mut second = link("second", mbit(13.1), ms(3), Buffer::Packets(50));
    second.discipline = held(Codel {
        target: ms(5),
        interval: ms(50),
        ecn: true,
        ..Codel::default()
    })[1];
    spec.links.push(second);
    spec.links
        .push(link("third", mbit(12.3), ms(4), Buffer::Packets(5)));
    for f in &mut spec.flows {
        f.forward = vec![0, 2, 3];
    }
    agree(&spec, true, true);
}

proptest! {
    // Always the same cases: of one in several thousand, a tie that a capture does not show
    // decides.
    #![proptest_config(ProptestConfig { cases: 1000, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn any_links(
        mut links in links(5),
        routes in prop::collection::vec((any::<[prop::sample::Index; 4]>(), any::<bool>(), 0u64..900_000_000), 1..4),
        seed in any::<u64>(),
    ) {
        // A round trip takes some time, so that a run has an end.
        for link in &mut links {
            link.delay = link.delay.max(ms(2));
            for change in &mut link.schedule {
                change.delay = change.delay.map(|d| d.max(ms(2)));
            }
        }
        let flows = routes.iter().enumerate().map(|(i, (at, ecn, start))| {
            let [a, b, c, d] = at.map(|i| i.index(links.len()));
            let mut flow: FlowSpec = flow(&format!("f{i}"), ["cubic", "reno"][i % 2]);
            (flow.forward, flow.back) = (vec![a, b], vec![c, d]);
            (flow.sender.ecn, flow.receiver.ecn) = (*ecn, *ecn);
            flow.sender.handshake = true;
            flow.sender.window.max = 60.0;
            flow.start = Time::ZERO + Span::from_nanos(*start);
            flow
        }).collect();
        let spec = RunSpec { seed, duration: ms(2000), links, flows, capture: true, ..RunSpec::default() };
        let (expected, seen, tie) = both(&spec);
        prop_assume!(!tie);
        prop_assert!(expected == seen);
    }
}

/// A path that has some of the links has them as if it had all.
#[test]
fn some_of_the_links() {
    let spec = spec(|_| ());
    let mut path = Path::with_links(&spec, |i| i == 0);
    assert_eq!(path.route(&[1]), None);
    assert_eq!(path.route(&[0, 1]), None);
    assert_eq!(path.route(&[7]), None);
    let route = path.route(&[0]).unwrap();
    assert_eq!(path.route(&[0]), Some(route));
    let indices: Vec<usize> = path.finish().unwrap().iter().map(|l| l.0).collect();
    assert_eq!(indices, [0]);
}

/// 1500 B at 12 Mbit/s: a packet a millisecond, room for two.
#[test]
fn a_full_interface_names_the_time_to_try_again() {
    let spec = RunSpec {
        links: vec![link("nic", mbit(12.0), Span::ZERO, Buffer::Packets(2))],
        duration: ms(10),
        ..RunSpec::default()
    };
    let mut path = Path::new(&spec);
    let route = path.route(&[0]).unwrap();
    let at = |us| Time::ZERO + Span::from_micros(us);
    let datagram = Datagram {
        token: 9,
        kind: PacketKind::Data,
        flow: 0,
        size: 1500,
        ect: false,
    };
    for _ in 0..2 {
        assert_eq!(path.room(at(0), route, 1500), None);
        path.offer(at(0), route, &datagram);
    }
    assert_eq!(path.room(at(500), route, 1500), Some(at(1000)));
    assert_eq!(path.room(at(1000), route, 1500), None);
    assert_eq!(path.inside(), 2);
    path.advance(at(1000));
    assert_eq!(path.inside(), 1);
    // After the end nothing enters and nothing happens.
    path.offer(at(10_001), route, &datagram);
    assert_eq!(path.next_event(), None);
    let ends: Vec<PacketOutcome> = path.departures().map(|e| e.outcome).collect();
    let arrived = PacketOutcome::Arrived { ce: false };
    assert_eq!(ends, [arrived, arrived]);
    assert_eq!(path.finish().unwrap()[0].1.offered, 2);
}
