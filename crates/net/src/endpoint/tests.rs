//! Real senders and receivers over loopback: counts and order, no timing.

mod refusing;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{
    ArrivalOutcome, ArrivalSpec, Arrivals, Buffer, CaptureEvent, CrossSpec, Departures, Drops,
    FlowSpec, LinkSpec, Outcome, RunSpec, Session, SizeLaw, Spacing, Waveform,
};
use fullpipe_units::{Rate, Span, Time};

use super::numbers::MOST_CLASSES;
use super::{EndpointError, Plan, Side};
use crate::ground::{GroundError, Options, run_local};
use crate::wire::SessionId;

fn flow(name: &str, segments: u64) -> FlowSpec {
    FlowSpec::new(
        name,
        StackSpec::parse("reno").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.transfer = Some(segments);
            c.window.max = 200.0;
        }),
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    )
}

fn spec(flows: Vec<FlowSpec>) -> RunSpec {
    RunSpec {
        duration: Span::from_millis(1500),
        flows,
        ..RunSpec::default()
    }
}

fn run(spec: &RunSpec) -> Outcome {
    run_local(spec, &Options::default(), None, &AtomicBool::new(false)).unwrap()
}

/// A run that ends with its last transfer, however slow the machine.
fn run_whole(spec: &RunSpec) -> Outcome {
    let spec = RunSpec {
        duration: Span::from_secs(60),
        ..spec.clone()
    };
    let options = Options {
        until_complete: true,
        ..Options::default()
    };
    run_local(&spec, &options, None, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_transfer_delivers_every_segment_once() {
    let o = run_whole(&spec(vec![flow("main", 5000)]));
    let f = &o.flows[0];
    assert_eq!(f.totals.delivered, 5000);
    assert!(f.completed.is_some(), "{:?}", f.totals);
    assert!(f.totals.acks >= 2500, "{:?}", f.totals);
}

#[test]
fn an_exact_drop_is_one_loss_event_and_one_retransmission() {
    let mut main = flow("main", 3000);
    main.drops = Drops {
        segments: vec![1000],
        ..Drops::default()
    };
    let o = run_whole(&spec(vec![main]));
    let t = o.flows[0].totals;
    assert_eq!((t.sent, t.delivered, t.dropped), (3001, 3000, 1));
    assert_eq!((t.retransmits, t.loss_events, t.duplicates), (1, 1, 0));
}

fn over_a_path(mut spec: RunSpec, ms: u64, mbps: u64) -> RunSpec {
    let delay = Span::from_millis(ms);
    let rate = Rate::from_bits_per_sec(mbps * 1_000_000);
    spec.links = vec![
        LinkSpec::new("bottleneck", Some(rate), delay, Buffer::Packets(30)),
        LinkSpec::pure_delay("return", delay),
    ];
    for f in &mut spec.flows {
        (f.forward, f.back) = (vec![0], vec![1]);
    }
    spec
}

/// The buffer overflows: the line says what it dropped, and nothing else is missing.
#[test]
fn over_a_path_every_loss_is_accounted_for() {
    let spec = over_a_path(spec(vec![flow("main", 2000)]), 5, 50);
    let o = run_whole(&spec);
    let (t, link) = (&o.flows[0].totals, &o.links[0]);
    assert!(t.dropped > 0, "{t:?}");
    assert_eq!(t.delivered, 2000, "{t:?} {:?}", o.fidelity);
    assert_eq!(t.dropped, link.buffer_drops);
    assert_eq!(t.sent, 2000 + t.duplicates + t.dropped, "{t:?}");
    assert_eq!(o.fidelity.unwrap().unplanned_drops, 0);
    assert!(o.flows[0].rtt.min().unwrap() >= Span::from_millis(10));
}

/// A host without small queues, whose own interface is slower than the path and has a short queue:
/// stalls and not losses.
#[test]
fn an_interface_stalls_its_senders() {
    let mut spec = over_a_path(spec(vec![flow("main", 1500)]), 5, 100);
    let rate = Rate::from_bits_per_sec(20_000_000);
    let nic = LinkSpec::new("nic", Some(rate), Span::ZERO, Buffer::Packets(10));
    spec.links.push(nic);
    let f = &mut spec.flows[0];
    (f.forward, f.local_queue) = (vec![2, 0], true);
    f.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    f.sender.host.small_queue = false;
    let o = run_whole(&spec);
    let t = o.flows[0].totals;
    assert_eq!((t.delivered, t.dropped), (1500, 0), "{t:?}");
    assert!(t.local_stalls > 100, "{t:?}");
    assert_eq!(o.links[2].name, "nic");
    // The SYN and every segment.
    assert_eq!(o.links[2].delivered, t.sent + 1);
    assert!(o.links[2].queue_max >= 10, "{}", o.links[2].queue_max);
}

/// The same of three: each gets its part.
#[test]
fn flows_take_turns_at_an_interface() {
    for small_queue in [false, true] {
        let flows = ["a", "b", "c"].map(|name| flow(name, u64::MAX));
        let mut spec = over_a_path(spec(flows.to_vec()), 5, 100);
        spec.duration = Span::from_secs(3);
        let rate = Rate::from_bits_per_sec(20_000_000);
        let nic = LinkSpec::new("nic", Some(rate), Span::ZERO, Buffer::Packets(5));
        spec.links.push(nic);
        for f in &mut spec.flows {
            (f.forward, f.local_queue) = (vec![2, 0], true);
            f.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
            f.sender.host.small_queue = small_queue;
        }
        let flows = run(&spec).flows;
        let delivered: Vec<u64> = flows.iter().map(|f| f.totals.delivered).collect();
        let part = delivered.iter().sum::<u64>() / 3;
        assert!(flows.iter().all(|f| f.totals.local_stalls > 0), "{flows:?}");
        assert!(delivered.iter().min() > Some(&(part / 2)), "{delivered:?}");
    }
}

/// A short flow leaves its slot once its interface knows nothing of it: the next one, which has no
/// interface, neither takes its turn nor its segments. The queue of the interface grows by more
/// than twice a round trip in one: probes of segments that are still in it are in it when the ACK
/// of the first comes.
#[test]
fn short_flows_leave_an_interface_as_they_came() {
    let mut spec = short_flows(2, 300.0);
    spec.duration = Span::from_secs(4);
    let rate = Rate::from_bits_per_sec(2_000_000);
    let nic = LinkSpec::new("nic", Some(rate), Span::ZERO, Buffer::Packets(100));
    spec.links.push(nic);
    let template = &mut spec.arrivals[0].template;
    template.stop = Some(Time::ZERO + Span::from_millis(500));
    template.forward = vec![2, 0];
    template.local_queue = true;
    template.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    template.sender.timers.max_ack_delay = Span::ZERO;
    spec.arrivals[0].sizes = SizeLaw::Fixed(1);
    spec.arrivals[1].template.reverse = false;
    (
        spec.arrivals[1].template.forward,
        spec.arrivals[1].template.back,
    ) = (vec![0], vec![1]);
    let o = run(&spec);
    for class in &o.arrivals {
        // A busy machine begins fewer before the end.
        assert!(class.transfers.len() > 20);
        assert!(
            class.transfers.iter().all(|t| t.completion.is_some()),
            "{class:?}"
        );
    }
    let totals = o.arrivals[0].totals;
    assert!(totals.local_stalls > 0 && totals.probes > 0, "{totals:?}");
}

#[test]
fn a_sender_stays_within_the_advertised_window() {
    let mut main = flow("main", 2000);
    main.receiver.window.max = Some(20);
    let mut spec = over_a_path(spec(vec![main]), 5, 100);
    spec.capture = true;
    let o = run_whole(&spec);
    let mut window_end = 0;
    let mut filled = false;
    for row in &o.capture {
        match row.event {
            CaptureEvent::AckReceived(ack) => window_end = window_end.max(ack.window_end),
            CaptureEvent::SegmentSent(s) if !s.syn => {
                assert!(s.seq < window_end, "{} {window_end}", s.seq);
                filled |= s.seq + 1 == window_end;
            }
            _ => {}
        }
    }
    assert!(filled);
    assert_eq!((o.flows[0].totals.delivered, window_end), (2000, 2020));
    assert_eq!(o.flows[0].totals.dropped, 0);
}

#[test]
fn a_receiver_acknowledges_every_nth_segment() {
    for every in [1, 2, 4] {
        let mut main = flow("main", 4000);
        main.receiver.acks.every = every;
        // Only counts decide.
        main.receiver.acks.delay = Span::from_secs(10);
        main.sender.window.max = 64.0;
        let o = run_whole(&spec(vec![main]));
        let acks = o.flows[0].totals.acks;
        let expected = 4000 / u64::from(every);
        assert!(
            (expected..=expected + 20).contains(&acks),
            "{every}: {acks}"
        );
        assert_eq!(o.flows[0].totals.delivered, 4000);
    }
}

#[test]
fn flows_in_both_directions_share_a_socket() {
    let mut flows: Vec<FlowSpec> = (0..4).map(|i| flow(&format!("f{i}"), 1500)).collect();
    flows[1].reverse = true;
    flows[3].reverse = true;
    flows[3].sender.handshake = false;
    let o = run_whole(&spec(flows));
    for f in &o.flows {
        assert_eq!(f.totals.delivered, 1500, "{}", f.name);
        assert!(f.completed.is_some(), "{}", f.name);
    }
}

#[test]
fn losses_at_the_receiver_are_exact_too() {
    let mut main = flow("main", 2000);
    main.arrival_drops.segments = vec![500];
    let o = run_whole(&spec(vec![main]));
    let t = o.flows[0].totals;
    assert_eq!((t.sent, t.delivered, t.dropped), (2001, 2000, 1));
    assert_eq!((t.retransmits, t.loss_events), (1, 1));
}

fn source(name: &str, waveform: Waveform, spacing: Spacing) -> CrossSpec {
    CrossSpec {
        departures: Departures::Rate(waveform.clone(), spacing),
        start: Time::ZERO + Span::from_millis(100),
        stop: Some(Time::ZERO + Span::from_millis(900)),
        ..CrossSpec::source(name, 200, waveform, vec![])
    }
}

/// As many datagrams of each kind of source as in the simulator, and each arrives; the same for
/// probes.
#[test]
fn cross_traffic_and_probes_are_those_of_the_simulator() {
    let rate = Rate::from_bits_per_sec;
    let (on, off) = (Span::from_millis(50), Span::from_millis(30));
    let steps = |first, second| Waveform::Steps {
        steps: vec![(Span::ZERO, rate(first)), (on, rate(second))],
        period: Some(Span::from_millis(200)),
    };
    let sine = Waveform::Sine {
        mean: rate(400_000),
        amplitude: rate(300_000),
        period: Span::from_millis(150),
    };
    let on_off = Waveform::OnOff {
        rate: rate(800_000),
        on,
        off,
    };
    let spec = RunSpec {
        cross: vec![
            source("constant", steps(400_000, 400_000), Spacing::Even),
            source("stairs", steps(100_000, 900_000), Spacing::Even),
            source("sine", sine, Spacing::Even),
            source("on-off", on_off, Spacing::Even),
            source("poisson", steps(400_000, 400_000), Spacing::Poisson),
            CrossSpec {
                stop: Some(Time::ZERO + Span::from_secs(1)),
                ..CrossSpec::probes("ping", 64, Span::from_millis(20), vec![], vec![])
            },
        ],
        ..spec(vec![])
    };
    let (wire, simulated) = (run(&spec), fullpipe_sim::run(&spec).unwrap());
    for (w, s) in wire.one_way().zip(simulated.one_way()) {
        assert!(s.sent > 50, "{}: {}", s.name, s.sent);
        assert_eq!((w.sent, w.arrived), (s.sent, s.sent), "{}", s.name);
        assert_eq!((w.dropped, w.delay.count()), (0, s.sent), "{}", s.name);
    }
    let ping = &wire.cross[5];
    assert_eq!((ping.sent, ping.delay.count(), ping.dropped), (50, 50, 0));
}

fn short_flows(classes: usize, per_second: f64) -> RunSpec {
    let class = |i: usize| ArrivalSpec {
        template: FlowSpec {
            stop: Some(Time::ZERO + Span::from_millis(1000)),
            reverse: i % 2 == 1,
            forward: vec![i % 2],
            back: vec![1 - i % 2],
            ..flow(&format!("mice{i}"), 1)
        },
        arrivals: Arrivals::Poisson {
            per_second: if i < 2 { per_second } else { 0.0 },
        },
        sizes: SizeLaw::Uniform(1, 30),
        session: Session::default(),
        seeded_by: None,
    };
    RunSpec {
        arrivals: (0..classes).map(class).collect(),
        links: ["there", "back"]
            .map(|name| LinkSpec::pure_delay(name, Span::from_millis(2)))
            .into(),
        duration: Span::from_secs(3),
        ..spec(vec![])
    }
}

/// With 2048 classes there are sixteen numbers for each, so that flows follow one another under the
/// same number.
#[test]
fn short_flows_come_as_in_the_simulator_and_complete() {
    for (classes, per_second) in [(2, 100.0), (2048, 30.0)] {
        let spec = short_flows(classes, per_second);
        let (wire, simulated) = (run(&spec), fullpipe_sim::run(&spec).unwrap());
        for (w, s) in wire.arrivals.iter().zip(&simulated.arrivals).take(2) {
            assert!(s.transfers.len() > 20);
            let sizes =
                |o: &ArrivalOutcome| -> Vec<u64> { o.transfers.iter().map(|t| t.size).collect() };
            assert_eq!(sizes(w), sizes(s));
            assert!(w.transfers.iter().all(|t| t.completion.is_some()), "{w:?}");
            let all: u64 = sizes(s).iter().sum();
            assert_eq!((w.totals.delivered, w.totals.dropped), (all, 0));
            assert_eq!(w.delivered_per_interval.iter().sum::<u64>(), all);
        }
    }
}

/// Every session draws its own: over the loopback each has the transfers that it has in the
/// simulator, though they follow one another at other times.
#[test]
fn sessions_go_on_as_in_the_simulator() {
    let mut spec = short_flows(2, 0.0);
    for class in &mut spec.arrivals {
        class.template.stop = None;
        class.arrivals = Arrivals::Spread {
            count: 20,
            within: Span::from_millis(300),
        };
        class.session = Session {
            exchanges: 4.0,
            think: Span::from_millis(10),
        };
    }
    let (wire, simulated) = (run(&spec), fullpipe_sim::run(&spec).unwrap());
    for (w, s) in wire.arrivals.iter().zip(&simulated.arrivals) {
        let sizes = |o: &ArrivalOutcome| -> Vec<u64> {
            let mut sizes: Vec<u64> = o.transfers.iter().map(|t| t.size).collect();
            sizes.sort_unstable();
            sizes
        };
        assert!(s.transfers.len() > 40, "{}", s.transfers.len());
        assert_eq!(sizes(w), sizes(s));
        assert!(w.transfers.iter().all(|t| t.completion.is_some()), "{w:?}");
        let all: u64 = sizes(s).iter().sum();
        assert_eq!((w.totals.delivered, w.totals.dropped), (all, 0));
    }

    // None begins after the stop; a busy machine may be late with one that was due before it.
    let stop = Time::ZERO + Span::from_millis(600);
    for class in &mut spec.arrivals {
        class.template.stop = Some(stop);
        class.session.exchanges = 1e6;
    }
    for class in run(&spec).arrivals {
        let last = class.transfers.iter().map(|t| t.start).max().unwrap();
        assert!(class.transfers.len() > 100, "{}", class.transfers.len());
        assert!(last < stop + Span::from_millis(200), "{last}");
    }
}

/// With 4096 classes there are eight numbers for each, none of which is free again before the run
/// ends.
#[test]
fn short_flows_beyond_the_numbers_of_the_wire_spoil_a_run() {
    let mut spec = short_flows(MOST_CLASSES, 0.0);
    spec.arrivals[0].arrivals = Arrivals::Every(Span::from_millis(5));
    for link in &mut spec.links {
        link.delay = Span::from_millis(200);
    }
    // None begins so late that a busy machine could not.
    spec.arrivals[0].template.stop = Some(Time::ZERO + Span::from_millis(150));
    spec.duration = Span::from_millis(300);
    let o = run(&spec);
    let flows = o.arrivals[0].transfers.len() as u64;
    assert!(flows > 20, "{flows}");
    assert_eq!(o.fidelity.unwrap().unplanned_drops, flows - 8);
}

#[test]
fn a_run_is_interrupted() {
    let mut spec = spec(vec![flow("main", u64::MAX)]);
    spec.duration = Span::from_secs(600);
    let interrupt = AtomicBool::new(false);
    let began = Instant::now();
    let result = std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupt.store(true, Ordering::Relaxed);
        });
        run_local(&spec, &Options::default(), None, &interrupt)
    });
    assert!(
        matches!(result, Err(GroundError::Interrupted)),
        "{result:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_run_ends_when_all_is_complete() {
    let mut flows = vec![flow("there", 1000), flow("back", 500)];
    flows[1].reverse = true;
    let mut spec = spec(flows);
    spec.duration = Span::from_secs(600);
    let options = Options {
        until_complete: true,
        ..Options::default()
    };
    let o = run_local(&spec, &options, None, &AtomicBool::new(false)).unwrap();
    assert!(o.flows.iter().all(|f| f.completed.is_some()));
    assert!(o.duration < Span::from_secs(60));
    let last = o.flows.iter().filter_map(|f| f.completed).max().unwrap();
    assert!(Time::ZERO + o.duration >= last);
}

/// The path counts what the scenario says, whatever the sockets are of.
#[test]
fn a_run_over_ipv6_is_the_same_run() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 here");
        return;
    }
    let mut spec = over_a_path(spec(vec![flow("main", 1000)]), 5, 1000);
    let every = Span::from_millis(20);
    spec.cross = vec![CrossSpec::probes("ping", 100, every, vec![0], vec![1])];
    spec.duration = Span::from_secs(4);
    let [four, six] = [false, true].map(|ipv6| {
        let options = Options {
            ipv6,
            ..Options::default()
        };
        run_local(&spec, &options, None, &AtomicBool::new(false)).unwrap()
    });
    for o in [&four, &six] {
        let (t, link) = (&o.flows[0].totals, &o.links[0]);
        assert_eq!(t.delivered, 1000, "{t:?}");
        let pings = o.cross[0].series.len() as u64;
        assert!(pings > 50, "{pings}");
        // The SYN counts 52 bytes, a segment 1500.
        let segments = t.sent - t.dropped;
        let probes = link.delivered - segments - 1;
        let bytes = 52 + 1500 * segments + 100 * probes;
        assert_eq!(link.delivered_bytes, bytes, "{t:?} {link:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said_with_a_remedy() {
    let refused = |spec: &RunSpec| match run_local(
        spec,
        &Options::default(),
        None,
        &AtomicBool::new(false),
    ) {
        Err(GroundError::Unable { what, hint }) => format!("{what}; {hint}"),
        other => panic!("{other:?}"),
    };
    let mut jumbo = flow("main", 10);
    jumbo.sender.mss = 65_500;
    let told = refused(&spec(vec![jumbo]));
    assert!(
        told.contains("flow main") && told.contains("`mtu`"),
        "{told}"
    );
    let mut through = flow("main", 10);
    through.local_queue = true;
    let shared = over_a_path(spec(vec![through, flow("other", 10)]), 5, 100);
    let told = refused(&shared);
    assert!(
        told.contains("link bottleneck") && told.contains("`nic_rate`"),
        "{told}"
    );
    let told = refused(&short_flows(5000, 1.0));
    assert!(told.contains("5000 classes"), "{told}");
}

#[test]
fn who_sends_probes_alone_is_told_of_their_size() {
    let told = |spec: RunSpec| {
        let plan = Plan {
            spec: Arc::new(spec),
            side: Side::Near,
            session: SessionId(1),
            peer: SocketAddr::from(([127, 0, 0, 1], 9)),
            shared_clock: true,
        };
        let refused = io::Error::from_raw_os_error(nix::libc::EMSGSIZE);
        EndpointError::from(refused).explained(&plan).to_string()
    };
    let mut probes = spec(vec![]);
    probes.cross = vec![CrossSpec::probes(
        "ping",
        3000,
        Span::from_millis(20),
        vec![],
        vec![],
    )];
    let (ping, flow) = (told(probes), told(spec(vec![flow("main", 10)])));
    assert!(
        ping.contains("`--size`") && !ping.contains("path.mtu"),
        "{ping}"
    );
    assert!(flow.contains("`--set path.mtu="), "{flow}");
}
