//! Negative controls: where nothing should happen, nothing does.

use fullpipe_run::{Buffer, FlowSpec, Outcome, RunSpec};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{at, dumbbell, flow, link, mbit, ms};

fn goodput(o: &Outcome, i: usize) -> f64 {
    o.flows[i].totals.delivered_measured as f64
}

/// Two flows on 20 Mbit/s, 40 ms, half a BDP of buffer; the seed shifts the second one's start by a
/// part of the round trip.
fn pair(seed: u64, first: FlowSpec, second: FlowSpec) -> RunSpec {
    let mut spec = dumbbell(20.0, 40, Buffer::Packets(33), 60.0, vec![first, second]);
    spec.seed = seed;
    spec.measure_from = Time::ZERO + Span::from_secs(10);
    for f in &mut spec.flows {
        // A little loss decouples the two.
        f.drops.probability = 1e-4;
        f.sender.handshake = true;
    }
    spec.flows[1].start = at((seed * 7 % 40) as f64);
    spec
}

#[test]
fn two_equal_flows_share_equally() {
    for stack in ["reno", "cubic"] {
        let (mut asymmetry, mut jain) = (0.0, 0.0);
        let seeds = 24;
        for seed in 0..seeds {
            let o = run(&pair(seed, flow("a", stack), flow("b", stack))).unwrap();
            let (a, b) = (goodput(&o, 0), goodput(&o, 1));
            asymmetry += (a - b) / (a + b);
            jain += (a + b).powi(2) / (2.0 * (a * a + b * b));
        }
        let (asymmetry, jain) = (asymmetry / seeds as f64, jain / seeds as f64);
        assert!(asymmetry.abs() < 0.05, "{stack}: A {asymmetry}");
        assert!(jain > 0.98, "{stack}: F {jain}");
    }
}

/// Two different flows, in both orders of the specification: the means differ by less than what
/// seeds make of them.
#[test]
fn the_order_of_flows_changes_nothing() {
    let share = |swap: bool, seed: u64| {
        let mut spec = pair(seed, flow("a", "reno"), flow("b", "cubic"));
        if swap {
            spec.flows.reverse();
        }
        let o = run(&spec).unwrap();
        let a = o.flows.iter().position(|f| f.name == "a").unwrap();
        goodput(&o, a) / (goodput(&o, 0) + goodput(&o, 1))
    };
    let seeds = 16;
    let values = |swap| (0..seeds).map(|s| share(swap, s)).collect::<Vec<f64>>();
    let (straight, swapped) = (values(false), values(true));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let m = mean(&straight);
    let sd = (straight.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (seeds - 1) as f64).sqrt();
    let difference = (m - mean(&swapped)).abs();
    // Two standard errors of the difference, and never more than a hundredth.
    let bound = (2.0 * sd * (2.0 / seeds as f64).sqrt()).clamp(0.002, 0.03);
    assert!(difference <= bound, "{difference} {bound}");
}

/// One packet at a time: no loss, and each round trip is the base and one serialization, to the
/// nanosecond.
#[test]
fn an_unloaded_path_adds_one_serialization() {
    let mut f = flow("main", "reno");
    f.sender.window.max = 1.0;
    f.sender.window.initial = 1.0;
    let o = run(&dumbbell(100.0, 80, Buffer::Packets(10), 10.0, vec![f])).unwrap();
    let rtt = Span::from_nanos(80_000_000 + 120_000);
    let main = &o.flows[0];
    assert_eq!((main.rtt.min(), main.rtt.max()), (Some(rtt), Some(rtt)));
    assert_eq!(
        (
            main.totals.dropped,
            main.totals.retransmits,
            main.totals.timeouts
        ),
        (0, 0, 0)
    );
    assert_eq!((o.links[0].buffer_drops, o.links[0].queue_max), (0, 1));
    // One segment per round trip, the last one on its way.
    assert_eq!(main.totals.sent, 10_000_000_000u64.div_ceil(rtt.as_nanos()));
}

/// A capped window below the BDP: goodput is window over RTT, nothing queues for long, nothing is
/// lost.
#[test]
fn a_window_limited_flow_gets_window_over_rtt() {
    for (window, ack_every) in [(50.0, 1), (50.0, 2), (400.0, 2)] {
        let mut f = flow("main", "reno");
        f.sender.window.max = window;
        f.receiver.acks.every = ack_every;
        let mut spec = dumbbell(100.0, 80, Buffer::Packets(1000), 40.0, vec![f]);
        spec.measure_from = Time::ZERO + Span::from_secs(20);
        let o = run(&spec).unwrap();
        let main = &o.flows[0];
        let rate = goodput(&o, 0) / 20.0;
        let rtt = main.rtt.mean_s().unwrap();
        assert!(
            (rate * rtt / window - 1.0).abs() < 0.01,
            "{rate} {rtt} {window}"
        );
        assert!(
            (rate * 0.08 / window - 1.0).abs() < 0.01,
            "{rate} of {}",
            window / 0.08
        );
        assert_eq!((main.totals.dropped, main.totals.loss_events), (0, 0));
        assert_eq!(main.cwnd_max, window);
    }
    // The receiver's window does the same.
    let mut f = flow("main", "reno");
    f.receiver.window.max = Some(50);
    let mut spec = dumbbell(100.0, 80, Buffer::Packets(1000), 40.0, vec![f]);
    spec.measure_from = Time::ZERO + Span::from_secs(20);
    let o = run(&spec).unwrap();
    assert!((goodput(&o, 0) / 20.0 * 0.08 / 50.0 - 1.0).abs() < 0.01);
    let _ = ms(0);
}

/// A bulk flow with a BDP of buffer fills the link, and Little's law holds: queue = rate x time in
/// it.
#[test]
fn littles_law() {
    let mut spec = dumbbell(
        50.0,
        40,
        Buffer::Packets(167),
        60.0,
        vec![flow("main", "reno")],
    );
    spec.measure_from = Time::ZERO + Span::from_secs(10);
    let o = run(&spec).unwrap();
    let l = &o.links[0];
    assert!(
        l.utilization > 0.98 && l.utilization <= 1.0,
        "{}",
        l.utilization
    );
    let per_second = l.measured_bytes as f64 / 1500.0 / 50.0;
    // Time in the link's buffer and transmitter: what the round trip has beyond propagation.
    let sojourn = o.flows[0].rtt.mean_s().unwrap() - 0.04;
    let expected = per_second * sojourn;
    assert!(
        (l.queue_mean / expected - 1.0).abs() < 0.01,
        "{} {expected}",
        l.queue_mean
    );
}

/// A local queue that refuses is what holds the sender back: with `ignore` the window must not grow
/// on without it.
#[test]
fn a_stalled_sender_does_not_grow_its_window() {
    let mut f = flow("main", "reno");
    f.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    f.sender.host.small_queue = false;
    f.local_queue = true;
    f.forward = vec![2, 0];
    let mut spec = dumbbell(500.0, 80, Buffer::Packets(3333), 20.0, vec![f]);
    spec.links
        .push(link("nic", mbit(400.0), ms(0), Buffer::Packets(100)));
    let outcome = fullpipe_sim::run(&spec).unwrap();
    let flow = &outcome.flows[0];
    assert!(flow.totals.local_stalls > 0);
    // 400 Mbit/s x 80 ms are 2667 packets; slow start may overshoot by less than two.
    assert!(flow.cwnd_max < 2.0 * 2.0 * 2767.0, "{}", flow.cwnd_max);
}

/// Leaving start-up without a reduction is on the record.
#[test]
fn a_start_up_that_ends_by_itself_is_an_episode() {
    let mut f = flow("main", "reno+gamma(crossing=120,then=ca)");
    f.sender.window.initial = 1.0;
    let spec = dumbbell(622.0, 77, Buffer::Packets(4000), 2.0, vec![f]);
    let outcome = fullpipe_sim::run(&spec).unwrap();
    let first = outcome.flows[0].episodes[0];
    assert_eq!(first.kind, fullpipe_flow::EpisodeKind::StartUpExit);
    assert!((first.after - 120.0).abs() < 1.0, "{first:?}");
}

/// A SYN has the size of an ACK: the handshake's RTT sample holds no data packet's transmission.
#[test]
fn a_syn_is_small() {
    let mut f = flow("main", "reno");
    f.sender.handshake = true;
    f.sender.transfer = Some(1);
    let spec = dumbbell(1.0, 50, Buffer::Packets(20), 2.0, vec![f]);
    let outcome = fullpipe_sim::run(&spec).unwrap();
    // 52 B at 1 Mbit/s are 0.416 ms.
    assert_eq!(
        outcome.flows[0].rtt.min(),
        Some(ms(50) + fullpipe_units::Span::from_micros(416))
    );
}

/// A packet per millisecond from 41 ms on; the run ends with the arrival of the tenth, at the edge
/// of a sample.
#[test]
fn what_arrives_at_the_very_end_is_in_the_last_sample() {
    let mut f = flow("main", "reno");
    f.sender.transfer = Some(10);
    let mut spec = dumbbell(12.0, 80, Buffer::Unlimited, 0.05, vec![f]);
    spec.interval = ms(10);
    let o = run(&spec).unwrap();
    assert_eq!(o.flows[0].delivered_per_interval, [0, 0, 0, 0, 10]);
    assert_eq!(o.flows[0].arrived_per_interval, [0, 0, 0, 0, 10]);
}

/// The window that an idle connection keeps after its transfer does not count.
#[test]
fn the_mean_window_ends_with_the_transfer() {
    let mean = |seconds| {
        let mut f = flow("main", "reno");
        f.sender.transfer = Some(200);
        let spec = dumbbell(12.0, 80, Buffer::Packets(500), seconds, vec![f]);
        let o = run(&spec).unwrap();
        assert!(o.flows[0].completed.is_some());
        o.flows[0].cwnd_mean
    };
    let short = mean(2.0);
    assert_eq!(short, mean(20.0));
    assert!(short > 10.0 && short < 200.0, "{short}");
}

/// HyStart ends slow start between the ACK and the window law: that is the end of start-up, and not
/// the first loss, which comes later.
#[test]
fn the_end_of_slow_start_is_told_when_it_comes() {
    for stack in ["cubic-linux", "cubic+hystart"] {
        let path = dumbbell(
            100.0,
            50,
            Buffer::Packets(417),
            3.0,
            vec![flow("main", stack)],
        );
        let outcome = run(&path).unwrap();
        let first = outcome.flows[0].episodes[0];
        assert_eq!(
            first.kind,
            fullpipe_flow::EpisodeKind::StartUpExit,
            "{stack}"
        );
        assert!(first.at.as_secs_f64() < 0.6, "{stack}: {first:?}");
    }
}
