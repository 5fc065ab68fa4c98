//! Runs of the kernel's TCP in real time. They need network namespaces and TUN; without, they say
//! so and pass. Bounds are closed forms with room for a machine that does other things, too: what
//! packets show is exact, whatever the hour.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::{CongestionKind, StackSpec};
use fullpipe_flow::{EpisodeKind, Limit, LocalDrop, Preset, ReceiverConfig, SenderConfig};
use fullpipe_kernel::{Options, RunningKernel};
use fullpipe_observe::FIELDS;
use fullpipe_run::{
    ArrivalSpec, Arrivals, Buffer, Check, CrossSpec, Drops, FlowSpec, Ground, GroundError,
    LinkSpec, Outcome, RunSpec, Session, SizeLaw, Trace, Waveform,
};
use fullpipe_units::{Rate, Span, Time};

static NEVER: AtomicBool = AtomicBool::new(false);

/// The ground, or why there is none.
fn ground() -> Option<RunningKernel> {
    let options = Options {
        check: false,
        ..Options::default()
    };
    match RunningKernel::new(options, &NEVER) {
        Ok(ground) => Some(ground),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// A run, unless the machine cannot make one.
fn run(spec: &RunSpec) -> Option<Outcome> {
    run_on(&ground()?, spec)
}

/// A run that says of itself that the machine was busy is made again, twice: of the last one
/// everything is expected, whatever it says.
fn run_on(ground: &RunningKernel, spec: &RunSpec) -> Option<Outcome> {
    for _ in 0..2 {
        let outcome = run_once(ground, spec)?;
        let fidelity = outcome.fidelity.as_ref();
        let flags = fidelity.map_or_else(Vec::new, |f| {
            let busy = ["late", "time without", "flow ", "the path's thread"];
            let flagged = f.checks.iter().filter(|check| {
                !check.holds() && busy.iter().any(|word| check.name.starts_with(word))
            });
            flagged.map(|check| check.name.clone()).collect()
        });
        if flags.is_empty() {
            return Some(outcome);
        }
        eprintln!("made again: {}", flags.join(", "));
    }
    run_once(ground, spec)
}

fn run_once(ground: &RunningKernel, spec: &RunSpec) -> Option<Outcome> {
    match ground.run(spec) {
        Ok(outcome) => Some(outcome),
        Err(GroundError::Environment { what, .. }) => {
            eprintln!("skipped: {what}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// One flow on 20 Mbit/s, 40 ms, one BDP of buffer (66 packets).
fn spec(stack: &str, secs: u64) -> RunSpec {
    let half = Span::from_millis(20);
    let rate = Rate::from_bits_per_sec(20_000_000);
    let links = vec![
        LinkSpec::new("bottleneck", Some(rate), half, Buffer::Packets(66)),
        LinkSpec::pure_delay("back", half),
    ];
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse(stack).unwrap(),
        SenderConfig::preset(Preset::Linux, 1500),
        ReceiverConfig::preset(Preset::Linux),
        vec![0],
        vec![1],
    );
    flow.preset = Some(Preset::Linux);
    RunSpec {
        duration: Span::from_secs(secs),
        links,
        flows: vec![flow],
        trace: Trace::Every(Span::from_millis(20)),
        ..RunSpec::default()
    }
}

#[test]
fn reno_fills_a_path_with_a_buffer_of_one_bdp() {
    let mut spec = spec("reno-linux", 5);
    spec.measure_from = Time::ZERO + Span::from_secs(1);
    let Some(outcome) = run(&spec) else { return };
    let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
    let totals = &flow.totals;
    // 20 Mbit/s are 1667 packets of 1500 bytes a second, whatever the window does above one BDP
    // (Appenzeller, Keslassy and McKeown 2004).
    let measured = totals.delivered_measured as f64 / (4.0 * 1667.0);
    assert!(
        (0.95..=1.001).contains(&measured),
        "{measured} of the capacity"
    );
    assert!(flow.rtt.min().unwrap() >= Span::from_millis(40));
    // Everything that was dropped was dropped by the buffer, and sent again.
    assert!(link.buffer_drops > 0);
    assert_eq!(totals.dropped, link.buffer_drops);
    assert!(totals.retransmits >= totals.dropped);
    assert!(totals.loss_events >= 1 && totals.loss_events <= totals.dropped);
    // Delayed ACKs: at most one per segment, at least one for two of those that arrive in order.
    assert!(totals.acks <= totals.sent);
    assert!(totals.acks * 2 + 2 >= totals.delivered, "{totals:?}");
    let intervals: u64 = flow.delivered_per_interval.iter().sum();
    assert_eq!(intervals, totals.delivered);
    // Neither ACKs nor what is on its way.
    let delivered = totals.delivered + totals.duplicates;
    assert_eq!(outcome.delivered_packets, delivered);
    assert!(!flow.series.rows.is_empty());
}

/// One loss: one retransmission, half the window, and from there a segment per round trip: delayed
/// ACKs do not slow it down, because Linux counts segments (RFC 3465, section 2.1).
#[test]
fn one_loss_halves_the_window_and_it_grows_by_a_segment_per_round_trip() {
    let mut spec = spec("reno-linux", 6);
    spec.links[0].buffer = Buffer::Packets(1000);
    spec.flows[0].drops = Drops {
        segments: vec![400],
        ..Drops::default()
    };
    let Some(outcome) = run(&spec) else { return };
    let flow = &outcome.flows[0];
    let totals = &flow.totals;
    assert_eq!(
        (totals.dropped, totals.retransmits, totals.loss_events),
        (1, 1, 1)
    );
    let congestion = |k: &EpisodeKind| matches!(k, EpisodeKind::Congestion(_));
    let event = flow.episodes.iter().find(|e| congestion(&e.kind)).unwrap();
    // Recovery lasts a round trip, 40 ms and a queue of 400 packets; after a second it is over.
    // The sample before may be a twentieth of a round trip old, in slow start.
    let kept = event.after / event.before;
    assert!((0.45..=0.56).contains(&kept), "{kept}: {event:?}");
    let rows = &flow.series.rows;
    let after = rows.iter().find(|r| r.time > event.at + Span::from_secs(1));
    let (first, last) = (after.unwrap(), rows.last().unwrap());
    let grown = last.cwnd - first.cwnd;
    let trips = flow.rounds.iter().filter(|r| r.start > first.time).count() as f64;
    assert!(
        (grown / trips - 1.0).abs() < 0.15,
        "{grown} in {trips} round trips"
    );
}

/// The path knows when they are due: all counts have a closed form.
#[test]
fn cross_traffic_and_probes_enter_when_they_are_due() {
    let mut spec = spec("reno-linux", 2);
    // No data: the flow starts behind the end.
    spec.flows[0].start = Time::ZERO + Span::from_secs(60);
    let rate = Waveform::Steps {
        steps: vec![(Span::ZERO, Rate::from_bits_per_sec(8_000_000))],
        period: None,
    };
    let every = Span::from_millis(100);
    spec.cross = vec![
        CrossSpec::source("noise", 1000, rate, vec![0]),
        CrossSpec::probes("ping", 1250, every, vec![1], vec![1]),
    ];
    let Some(outcome) = run(&spec) else { return };
    // 1000 bytes at 8 Mbit/s: one a millisecond, 0.4 ms of transmission and 20 ms of way.
    let noise = &outcome.cross[0];
    assert_eq!((noise.sent, noise.dropped), (2000, 0));
    assert!(noise.sent - noise.arrived <= 21, "{}", noise.arrived);
    assert_eq!(noise.delay.min(), noise.delay.max());
    assert!((noise.delay.min().unwrap().as_millis_f64() - 20.4).abs() < 0.02);
    let ping = &outcome.cross[1];
    assert_eq!((ping.sent, ping.arrived), (21, 20));
    // Answered when the path wakes up.
    assert!(ping.delay.min().unwrap() >= Span::from_millis(40));
    assert_eq!(outcome.flows[0].totals.sent, 0);
}

/// A window of 20 segments on an empty path: 20 segments per round trip of 40 ms and 0.6 ms, and no
/// queue but its own burst.
#[test]
fn a_window_has_a_ceiling() {
    let mut spec = spec("cubic-linux", 4);
    spec.flows[0].sender.window.max = 20.0;
    spec.measure_from = Time::ZERO + Span::from_secs(1);
    let Some(outcome) = run(&spec) else { return };
    let flow = &outcome.flows[0];
    assert_eq!((flow.cwnd_max, flow.totals.retransmits), (20.0, 0));
    let trips = 3.0 / flow.rtt.mean_s().unwrap();
    let per_trip = flow.totals.delivered_measured as f64 / trips;
    assert!((per_trip / 20.0 - 1.0).abs() < 0.1, "{per_trip}");
}

/// What is read and written at the devices: every packet by itself, or several at once.
#[test]
fn offload_and_merging_can_be_switched_off() {
    let mut calls = Vec::new();
    for on in [true, false] {
        let options = Options {
            offload: on,
            merge: on,
            check: false,
            ..Options::default()
        };
        let Ok(ground) = RunningKernel::new(options, &NEVER) else {
            return eprintln!("skipped: no network namespaces");
        };
        let Some(outcome) = run_on(&ground, &spec("cubic-linux", 2)) else {
            return;
        };
        let totals = &outcome.flows[0].totals;
        // Each packet once into the path, and, if it was not dropped, once out of it.
        let packets = 2 * (totals.sent + totals.acks) - totals.dropped;
        calls.push(outcome.events as f64 / packets as f64);
    }
    assert!(calls[0] < 0.9, "{calls:?}");
    assert!(calls[1] > 0.97, "{calls:?}");
}

/// A receiver's buffer as it comes ends at 6 MB: the 11 MB that path and buffer hold do not fit.
#[test]
fn a_receiver_s_own_tuning_can_be_switched_on() {
    let mut limited = Vec::new();
    for on in [false, true] {
        let options = Options {
            autotuning: on,
            check: false,
            ..Options::default()
        };
        let Ok(ground) = RunningKernel::new(options, &NEVER) else {
            return eprintln!("skipped: no network namespaces");
        };
        let mut spec = spec("reno-linux", 4);
        spec.links[0].rate = Some(Rate::from_bits_per_sec(200_000_000));
        spec.links[0].buffer = Buffer::Packets(4000);
        for link in &mut spec.links {
            link.delay = Span::from_millis(100);
        }
        let Some(outcome) = run_on(&ground, &spec) else {
            return;
        };
        limited.push(outcome.flows[0].totals.limited.of(Limit::ReceiveWindow));
    }
    assert_eq!(limited[0], Span::ZERO);
    assert!(limited[1] > Span::from_millis(500), "{limited:?}");
}

/// The threshold that one connection ends with is where the next one leaves slow start: it loses a
/// part of what the first one lost there.
#[test]
fn what_earlier_connections_left_can_be_switched_on() {
    let mut lost = Vec::new();
    for on in [false, true] {
        let options = Options {
            remembers: on,
            check: false,
            ..Options::default()
        };
        let Ok(ground) = RunningKernel::new(options, &NEVER) else {
            return eprintln!("skipped: no network namespaces");
        };
        let Some(outcome) = run_on(&ground, &spec("reno-linux", 2)) else {
            return;
        };
        lost.push(outcome.flows[0].totals.retransmits);
    }
    assert!(lost[0] >= 40, "{lost:?}");
    assert!(lost[1] * 4 <= lost[0], "{lost:?}");
}

/// The path is measured before a run, however short that is.
#[test]
fn a_short_run_is_measured_like_a_long_one() {
    let Ok(ground) = RunningKernel::new(Options::default(), &NEVER) else {
        return eprintln!("skipped: no network namespaces");
    };
    let mut spec = spec("reno-linux", 1);
    spec.duration = Span::from_millis(300);
    let Some(outcome) = run_on(&ground, &spec) else {
        return;
    };
    let checks = outcome.fidelity.unwrap().checks;
    for name in ["delay forward", "rate forward", "small packets back"] {
        let check = checks.iter().find(|c| c.name == name).unwrap();
        assert!(check.measured > 0.0, "{check:?}");
    }
    let small = checks.iter().find(|c| c.name == "small packets forward");
    assert!(small.unwrap().holds(), "{small:?}");
}

/// Two directions and two round trips of 40 and 100 ms on one link: each flow knows its own.
#[test]
fn flows_have_their_own_way_and_direction() {
    let mut spec = spec("cubic-linux", 3);
    let half = Span::from_millis(50);
    spec.links.push(LinkSpec::pure_delay("there", half));
    spec.links.push(LinkSpec::pure_delay("and back", half));
    let mut far = spec.flows[0].clone();
    far.name = "far".to_owned();
    far.reverse = true;
    (far.forward, far.back) = (vec![2], vec![3]);
    for f in [&mut far, &mut spec.flows[0]] {
        f.sender.transfer = Some(50);
    }
    spec.flows.push(far);
    let Some(outcome) = run(&spec) else { return };
    for (flow, rtt) in outcome.flows.iter().zip([40, 100]) {
        assert_eq!(flow.totals.delivered, 50);
        let least = flow.rtt.min().unwrap();
        let bounds = Span::from_millis(rtt)..Span::from_millis(rtt + 5);
        assert!(bounds.contains(&least), "{} {least}", flow.name);
    }
}

#[test]
fn a_finite_transfer_has_an_end() {
    let mut spec = spec("cubic-linux", 3);
    spec.flows[0].sender.transfer = Some(100);
    spec.flows[0].start = Time::ZERO + Span::from_millis(500);
    let Some(outcome) = run(&spec) else { return };
    let flow = &outcome.flows[0];
    assert_eq!((flow.totals.delivered, flow.totals.retransmits), (100, 0));
    assert_eq!(flow.totals.sent, 100);
    // Handshake; windows of 10, 20, 40 and the last 30, each a round trip of 40 ms.
    let took = (flow.completed.unwrap() - flow.started).as_millis_f64();
    assert!((200.0..300.0).contains(&took), "{took} ms");
}

/// Ten segments each: a round trip for the handshake, one for the data, a transmission each.
#[test]
fn short_flows_come_when_they_are_due_and_take_two_round_trips() {
    let mut spec = spec("cubic-linux", 3);
    let mut template = spec.flows.remove(0);
    template.name = "web".to_owned();
    spec.arrivals = vec![ArrivalSpec {
        template,
        arrivals: Arrivals::Every(Span::from_millis(350)),
        sizes: SizeLaw::Fixed(10),
        session: Session::default(),
        seeded_by: None,
    }];
    let Some(outcome) = run(&spec) else { return };
    let class = &outcome.arrivals[0];
    let starts: Vec<u64> = class
        .transfers
        .iter()
        .map(|t| t.start.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(starts, (1..9).map(|n| 350 * n).collect::<Vec<_>>());
    for t in &class.transfers {
        let took = t.completion.expect("an idle path").as_millis_f64();
        // 80 ms, ten packets of 0.6 ms, and three threads to wake up.
        assert!((86.0..110.0).contains(&took), "{took} ms");
        assert_eq!((t.size, t.retransmits, t.timeouts), (10, 0, 0));
    }
    let totals = &class.totals;
    assert_eq!(
        (totals.delivered, totals.sent, totals.loss_events),
        (80, 80, 0)
    );
    assert_eq!(outcome.delivered_packets, 80);
    assert_eq!(class.delivered_per_interval.iter().sum::<u64>(), 80);
}

/// A response of 300 segments beside a bulk flow that fills the buffer: both lose, both repair.
#[test]
fn short_flows_share_the_path_with_lasting_ones() {
    let mut spec = spec("cubic-linux", 4);
    let mut template = spec.flows[0].clone();
    template.name = "response".to_owned();
    template.reverse = false;
    spec.arrivals = vec![ArrivalSpec {
        template,
        arrivals: Arrivals::Every(Span::from_millis(700)),
        sizes: SizeLaw::Fixed(300),
        session: Session::default(),
        seeded_by: None,
    }];
    let Some(outcome) = run(&spec) else { return };
    let (bulk, brief) = (&outcome.flows[0].totals, &outcome.arrivals[0].totals);
    assert!(bulk.delivered > 2000, "{bulk:?}");
    assert!(brief.delivered >= 600, "{brief:?}");
    let lost = outcome.links[0].buffer_drops;
    assert!(lost > 0 && bulk.dropped <= lost);
    assert!(bulk.retransmits + brief.retransmits >= lost.saturating_sub(60));
}

/// Over IPv6, and in packets of 9000 bytes: as long on the wire as the scenario says.
#[test]
fn packets_have_their_length_over_either_family_and_jumbo() {
    for (ipv6, mtu, header) in [(true, 1500, 72), (false, 9000, 52), (true, 9000, 72)] {
        let options = Options {
            check: false,
            ipv6,
            ..Options::default()
        };
        let Ok(ground) = RunningKernel::new(options, &NEVER) else {
            return eprintln!("skipped: no network namespaces");
        };
        let mut spec = spec("cubic-linux", 3);
        let flow = &mut spec.flows[0];
        flow.sender = SenderConfig::preset(Preset::Linux, mtu);
        flow.receiver = ReceiverConfig::preset_for(Preset::Linux, flow.sender.mss);
        let Some(outcome) = run_on(&ground, &spec) else {
            return;
        };
        let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
        assert_eq!((flow.mss, flow.packet), (mtu - header, mtu));
        // Every packet of data has crossed the link, and the SYN and some ACKs of its own.
        let bytes = flow.totals.delivered as f64 * f64::from(mtu);
        let rate = bytes * 8.0 / 3.0 / 20e6;
        assert!(
            (0.4..=1.01).contains(&rate),
            "{ipv6} {mtu}: {rate} of the rate"
        );
        assert!(link.buffer_drops > 0 || mtu == 9000);
        assert_eq!(flow.totals.dropped, link.buffer_drops);
    }
}

/// Four senders with round trips of their own, one of them from the other side, and datagrams.
fn dumbbell(secs: u64) -> RunSpec {
    let mut spec = spec("cubic-linux", secs);
    let (rate, back) = (spec.links[0].rate, Span::from_millis(20));
    spec.links
        .push(LinkSpec::new("other way", rate, back, Buffer::Packets(66)));
    let first = spec.flows.remove(0);
    for (k, extra) in [0, 20, 60].into_iter().enumerate() {
        let own = spec.links.len();
        let span = Span::from_millis(extra);
        spec.links
            .push(LinkSpec::pure_delay(&format!("own {k}"), span));
        let mut flow = first.clone();
        flow.name = format!("flow {k}");
        (flow.forward, flow.back) = (vec![own, 0], vec![1]);
        spec.flows.push(flow);
    }
    let mut reverse = first.clone();
    reverse.name = "reverse".to_owned();
    reverse.reverse = true;
    (reverse.forward, reverse.back) = (vec![2], vec![0]);
    spec.flows.push(reverse);
    let steps = vec![(Span::ZERO, Rate::from_bits_per_sec(4_000_000))];
    let noise = Waveform::Steps {
        steps,
        period: None,
    };
    spec.cross = vec![CrossSpec::source("noise", 1000, noise, vec![0])];
    spec
}

/// The path of every sender is measured before a run, what several share once. A busy machine may
/// find another path than the one that it made: then it is tried again.
#[test]
fn every_way_is_measured_before_a_run() {
    let options = Options::default();
    let Ok(ground) = RunningKernel::new(options, &NEVER) else {
        return;
    };
    for _ in 0..5 {
        let Some(outcome) = run_on(&ground, &dumbbell(1)) else {
            return;
        };
        let checks = &outcome.fidelity.as_ref().unwrap().checks;
        are_of_every_way(checks);
        if checks.iter().all(Check::holds) {
            return;
        }
        eprintln!("{checks:?}");
    }
    panic!("in each of five attempts something did not hold");
}

fn are_of_every_way(checks: &[Check]) {
    let of = |kind: &str| {
        let named = checks.iter().filter(|check| check.name.starts_with(kind));
        let named: Vec<(&str, Option<f64>)> = named
            .map(|check| (check.name.as_str(), check.specified))
            .collect();
        named
    };
    // What 100 bytes take at 20 Mbit/s, beside each sender's own delay and the 20 ms of the link.
    let at = |ms: f64| Some(ms + 0.04);
    let due = [
        ("delay forward", at(20.0)),
        ("delay back", Some(20.0)),
        ("delay forward, flow 1", at(40.0)),
        ("delay back, flow 1", Some(20.0)),
        ("delay forward, flow 2", at(80.0)),
        ("delay back, flow 2", Some(20.0)),
        ("delay forward, reverse", at(20.0)),
        ("delay back, reverse", at(20.0)),
    ];
    assert_eq!(of("delay"), due);
    let rate = Some(20.0);
    assert_eq!(
        of("rate"),
        [("rate forward", rate), ("rate back, reverse", rate)]
    );
    assert_eq!(of("buffer").len(), 2);
}

#[test]
fn several_senders_with_their_own_round_trips_share_a_link() {
    let Some(outcome) = run(&dumbbell(4)) else {
        return;
    };
    for (flow, least) in outcome.flows.iter().zip([40, 60, 100, 40]) {
        let rtt = flow.rtt.min().unwrap();
        assert!(rtt >= Span::from_millis(least), "{}: {rtt}", flow.name);
        assert!(
            flow.totals.delivered > 100,
            "{}: {:?}",
            flow.name,
            flow.totals
        );
    }
    // 4 Mbit/s of datagrams and 20 in all.
    let forward: u64 = outcome.flows[..3].iter().map(|f| f.totals.delivered).sum();
    let carried = forward as f64 * 1500.0 * 8.0 / 4.0;
    assert!((10e6..=16.3e6).contains(&carried), "{carried}");
    let reverse = outcome.flows[3].totals.delivered as f64 * 1500.0 * 8.0 / 4.0;
    assert!((10e6..=20.1e6).contains(&reverse), "{reverse}");
    assert_eq!(outcome.cross[0].sent, 2000);
}

/// 5 Mbit/s of payload: 432 segments of 1448 bytes a second on a path of 20 Mbit/s, and no queue.
#[test]
fn a_ceiling_of_the_rate_is_one_of_payload() {
    let mut spec = spec("cubic-linux", 4);
    spec.flows[0].sender.pacing.max = Some(Rate::from_bits_per_sec(5_000_000));
    spec.measure_from = Time::ZERO + Span::from_secs(1);
    let Some(outcome) = run(&spec) else { return };
    let flow = &outcome.flows[0];
    let per_second = flow.totals.delivered_measured as f64 / 3.0;
    // Behind a segment that leaves late the next one waits at least half of its time.
    assert!((415.0..=433.0).contains(&per_second), "{per_second}");
    assert_eq!((flow.totals.dropped, flow.totals.retransmits), (0, 0));
    let mean = flow.rtt.mean_s().unwrap();
    assert!((0.040..0.044).contains(&mean), "{mean}");
    // One for each ACK of the measured three quarters.
    let part = flow.rtt.count() as f64 / flow.totals.acks as f64;
    assert!((0.6..0.85).contains(&part), "{part}");
}

/// From two segments, 62 are five windows: the last, of 32, comes in pairs for single ACKs that are
/// as far apart as the path's packets, and half of it waits. Paced at twice a window per round trip
/// it is slower than the path.
#[test]
fn a_paced_slow_start_has_no_queue() {
    let queue = |pacing: bool| {
        let mut spec = spec("reno-linux", 1);
        let sender = &mut spec.flows[0].sender;
        sender.window.initial = 2.0;
        sender.transfer = Some(62);
        sender.pacing.gains = pacing.then(fullpipe_cc::PacingGains::default);
        let outcome = run(&spec)?;
        assert_eq!(outcome.flows[0].totals.delivered, 62);
        Some(outcome.links[0].queue_max)
    };
    let (Some(burst), Some(paced)) = (queue(false), queue(true)) else {
        return;
    };
    assert!(burst >= 12, "{burst}");
    assert!(paced <= 7, "{paced}");
}

/// A host of 10 Mbit/s in front of the path, with room for this many packets.
fn behind_an_interface(spec: &mut RunSpec, packets: u64) {
    let nic = spec.links.len();
    let rate = Some(Rate::from_bits_per_sec(10_000_000));
    spec.links.push(LinkSpec::new(
        "nic-main",
        rate,
        Span::ZERO,
        Buffer::Packets(packets + 1),
    ));
    for f in &mut spec.flows {
        f.local_queue = true;
        f.forward.insert(0, nic);
    }
}

/// 10 Mbit/s are 833 packets a second. Small queues keep a millisecond or two packets in the host,
/// so that its queue is never full.
#[test]
fn the_interface_of_a_host_has_a_rate() {
    let mut spec = spec("cubic-linux", 4);
    spec.measure_from = Time::ZERO + Span::from_secs(1);
    behind_an_interface(&mut spec, 1000);
    let Some(outcome) = run(&spec) else { return };
    let (flow, nic) = (&outcome.flows[0], &outcome.links[2]);
    let per_second = flow.totals.delivered_measured as f64 / 3.0;
    assert!((770.0..=834.0).contains(&per_second), "{per_second}");
    assert_eq!((flow.totals.dropped, flow.totals.local_stalls), (0, 0));
    assert_eq!((nic.buffer_drops, outcome.links[0].buffer_drops), (0, 0));
    // Ten packets of 1.2 ms at most, and what the machine is late.
    let mean = flow.rtt.mean_s().unwrap();
    assert!((0.041..0.060).contains(&mean), "{mean}");
}

/// Four flows of a host whose queue has room for four packets: it is full again and again, their
/// TCP is told, reduces, and nothing is lost.
#[test]
fn a_full_interface_is_a_stall_and_no_loss() {
    let mut spec = spec("cubic-linux", 3);
    let first = spec.flows.remove(0);
    for k in 0..4 {
        let mut flow = first.clone();
        flow.name = format!("flow {k}");
        spec.flows.push(flow);
    }
    behind_an_interface(&mut spec, 4);
    let Some(outcome) = run(&spec) else { return };
    let sum = |of: fn(&fullpipe_run::FlowTotals) -> u64| -> u64 {
        outcome.flows.iter().map(|f| of(&f.totals)).sum()
    };
    assert!(sum(|t| t.local_stalls) >= 10, "{}", sum(|t| t.local_stalls));
    assert_eq!((sum(|t| t.dropped), sum(|t| t.timeouts)), (0, 0));
    let told = outcome.flows.iter().flat_map(|f| &f.episodes);
    let stall = EpisodeKind::Congestion(CongestionKind::LocalDrop);
    let told = told.filter(|e| e.kind == stall).count();
    // Looks that come late see one reduction where there were several, and a flow that finds the
    // interface full at its every packet never leaves its first.
    assert!(told >= 1, "{told} of {}", sum(|t| t.local_stalls));
    let rate = sum(|t| t.delivered) as f64 / 3.0;
    assert!((700.0..=834.0).contains(&rate), "{rate}");
}

#[test]
fn what_the_kernel_lacks_says_how_to_get_it() {
    let Some(ground) = ground() else { return };
    let refusal = |change: fn(&mut RunSpec)| {
        let mut spec = spec("reno-linux", 1);
        change(&mut spec);
        ground.check(&spec).unwrap_err()
    };
    let stack = |s: &mut RunSpec| s.flows[0].stack = StackSpec::parse("vegas").unwrap();
    match refusal(stack) {
        GroundError::Environment { what, hint } => {
            assert!(
                what.contains("no congestion module `vegas`; it has reno"),
                "{what}"
            );
            assert!(hint.contains("modprobe tcp_vegas"), "{hint}");
            assert!(hint.contains("a build with the tuner"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
    for (key, change) in [
        (
            "main.stack",
            (|s| s.flows[0].stack = StackSpec::parse("bbr3").unwrap()) as fn(&mut RunSpec),
        ),
        ("main.tsq", |s| {
            behind_an_interface(s, 100);
            s.flows[0].sender.host.small_queue = false;
        }),
        ("main.sendstall", |s| {
            behind_an_interface(s, 100);
            s.flows[0].sender.host.local_drop = LocalDrop::Ignore;
        }),
        ("main.prr", |s| {
            let flow = &mut s.flows[0];
            flow.sender.recovery.reduction = fullpipe_flow::Reduction::Immediate;
            flow.written = vec![fullpipe_run::WrittenKey {
                name: "prr",
                fields: &["sender.recovery.reduction"],
                is_linux: false,
            }];
        }),
    ] {
        match refusal(change) {
            GroundError::Unable {
                key: Some(found),
                hint,
                ..
            } => {
                assert_eq!(found, key);
                assert!(!hint.is_empty());
            }
            other => panic!("{key}: {other:?}"),
        }
    }
}

/// Beside every row stands all that the kernel shows of the sender, under the names of `fullpipe
/// observe`, and it is the kernel's.
#[test]
fn every_look_that_is_a_row_has_all_fields_of_tcp_info() {
    let mut spec = spec("reno-linux", 4);
    spec.trace = Trace::Every(Span::from_millis(5));
    let Some(outcome) = run(&spec) else { return };
    let flow = &outcome.flows[0];
    let (looks, rows) = (&flow.looks, &flow.series.rows);
    let names: Vec<_> = looks.fields().iter().map(|f| (f.name, f.unit)).collect();
    let observed: Vec<_> = FIELDS.iter().map(|f| (f.name, f.unit)).collect();
    assert_eq!(names, observed);
    assert!(rows.len() > 100, "{} rows", rows.len());
    let all: Vec<_> = looks.iter().collect();
    let times: Vec<Time> = all.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, rows.iter().map(|r| r.time).collect::<Vec<_>>());
    let column = |name: &str| -> Vec<Option<u64>> {
        let at = names.iter().position(|(n, _)| *n == name).unwrap();
        all.iter().map(|(_, values)| values[at]).collect()
    };
    let whole = |name: &str| -> Vec<u64> {
        let values = column(name).into_iter();
        values
            .map(|v| v.unwrap_or_else(|| panic!("{name}")))
            .collect()
    };
    for (row, cwnd) in rows.iter().zip(whole("snd_cwnd")) {
        assert_eq!(row.cwnd, cwnd as f64);
    }
    for (row, delivered) in rows.iter().zip(whole("delivered")) {
        // The kernel counts the SYN.
        assert_eq!(row.delivered, delivered - 1);
    }
    // Connected, and more than the trace has: buffers and windows of both ends.
    assert!(whole("state").iter().all(|state| *state == 1));
    for name in ["rcv_space", "rcv_wnd", "snd_wnd", "rto", "pmtu", "advmss"] {
        assert!(whole(name).iter().all(|n| *n > 0), "{name}");
    }
    assert_eq!(whole("pmtu").last(), Some(&1500));
    // None before the first loss, and the last row's at the end.
    let thresholds = column("snd_ssthresh");
    assert_eq!(thresholds.first(), Some(&None));
    let last = thresholds.last().unwrap().map(|n| n as f64);
    assert_eq!(last, Some(rows.last().unwrap().ssthresh));
    let acked = whole("bytes_acked");
    assert!(acked.is_sorted());
    // What came out of the path by the end, less what the last ACKs, the way back of 20 ms and a
    // look before the end had not told: 2.5 kB a millisecond.
    let delivered = flow.totals.delivered * u64::from(flow.mss);
    let told = *acked.last().unwrap();
    assert!(
        told <= delivered + 1 && told + 2500 * 100 > delivered,
        "{told} of {delivered}"
    );
    let least = *whole("min_rtt").last().unwrap();
    assert!((40_000..45_000).contains(&least), "{least} us");
    // 400,000 looks, of four flows at 1000 Hz for 100 s, have less than 50 MB to themselves.
    let each = looks.bytes() / looks.len();
    assert!(each < 125, "{each} bytes");
}

/// A preset that is not Linux is another host than the kernel, and `check` says so.
#[test]
fn a_preset_that_is_not_linux_is_noted() {
    let Some(ground) = ground() else { return };
    let mut spec = spec("cubic", 1);
    spec.flows[0].preset = Some(Preset::Y2026);
    ground.check(&spec).unwrap();
    let notes = ground.notes();
    assert!(
        notes
            .iter()
            .any(|n| n.contains("is another host than the kernel")),
        "{notes:?}"
    );
}
