//! Links and losses against cases small enough for a pencil. 12 Mbit/s: a packet of 1500 bytes
//! takes a millisecond.

use fullpipe_flow::Limit;
use fullpipe_run::{Buffer, Codel, Discipline, FlowSpec, Loss, Outcome, RunSpec};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{all_but_ties, at, dumbbell, flow, link, mbit, ms};

/// Ten packets at once into a bottleneck of 12 Mbit/s; the run ends before anything is resent.
fn burst(buffer: Buffer) -> Outcome {
    let mut f = flow("main", "reno");
    f.sender.transfer = Some(10);
    let mut spec = dumbbell(12.0, 80, buffer, 0.079, vec![f]);
    let plain = run(&spec).unwrap();
    // A link put together from parts does the same.
    spec.links[0].loss_of_acks = true;
    assert_eq!(all_but_ties(&plain), all_but_ties(&run(&spec).unwrap()));
    plain
}

#[test]
fn a_buffer_of_packets_counts_the_one_in_transmission() {
    for room in [1, 4, 9, 10, 20] {
        let o = burst(Buffer::Packets(room));
        let l = &o.links[0];
        let fits = room.min(10);
        assert_eq!(
            (l.offered, l.buffer_drops, l.queue_max),
            (10, 10 - fits, fits)
        );
        assert_eq!((l.delivered, l.delivered_bytes), (fits, fits * 1500));
        assert_eq!(o.flows[0].totals.delivered, fits, "all arrived by 79 ms");
        // k packets that leave after 1, 2, ... k ms: k(k+1)/2 packet-milliseconds.
        let mean = (fits * (fits + 1) / 2) as f64 / 79.0;
        assert!(
            (l.queue_mean - mean).abs() < 1e-9,
            "{} {mean}",
            l.queue_mean
        );
        let used = fits as f64 / 79.0;
        assert!((l.utilization - used).abs() < 1e-9);
    }
}

/// Ten packets wait and leave after 1 to 10 ms: three of them are there when the measured part
/// begins at 7.5 ms, however long the queue was that the last one joined.
#[test]
fn the_largest_queue_is_that_of_the_measured_part() {
    let mut f = flow("main", "reno");
    f.sender.transfer = Some(10);
    let mut spec = dumbbell(12.0, 80, Buffer::Packets(20), 0.079, vec![f]);
    spec.measure_from = at(7.5);
    let disciplines = [Discipline::DropTail, Discipline::Codel(Codel::default())];
    for (discipline, parts) in [(0, false), (0, true), (1, false)] {
        spec.links[0].discipline = disciplines[discipline];
        spec.links[0].loss_of_acks = parts;
        let l = &run(&spec).unwrap().links[0];
        assert_eq!((l.queue_max, l.delivered), (3, 10), "{discipline} {parts}");
    }
}

#[test]
fn a_buffer_of_bytes_holds_whole_packets() {
    for (bytes, fits) in [(1500, 1), (5999, 3), (6000, 4), (15_000, 10)] {
        let l = &burst(Buffer::Bytes(bytes)).links[0];
        assert_eq!(l.buffer_drops, 10 - fits, "{bytes}");
    }
}

/// Between bursts the buffer of bytes is empty again, with a propagation delay and without.
#[test]
fn a_buffer_of_bytes_forgets_what_left() {
    for delay in [0, 40] {
        let mut f = flow("main", "reno");
        f.sender.window.max = 8.0;
        f.sender.window.initial = 8.0;
        let mut spec = dumbbell(12.0, 2 * delay, Buffer::Bytes(8 * 1500), 20.0, vec![f]);
        spec.links[0].delay = ms(delay);
        spec.links[1].delay = Span::from_micros(5_300);
        let o = run(&spec).unwrap();
        assert_eq!(
            o.links[0].buffer_drops, 0,
            "delay {delay} ms: eight packets always fit"
        );
        assert_eq!(o.flows[0].totals.retransmits, 0);
    }
}

/// A packet that would leave later than the limit after its arrival is dropped.
#[test]
fn a_buffer_of_time_bounds_the_time_to_departure() {
    for (limit_us, fits) in [(1000, 1), (3999, 3), (4000, 4), (10_000, 10)] {
        let l = &burst(Buffer::Time(Span::from_micros(limit_us))).links[0];
        assert_eq!(l.buffer_drops, 10 - fits, "{limit_us} us");
    }
}

fn lossy(edit: impl FnOnce(&mut FlowSpec)) -> Outcome {
    let mut f = flow("main", "reno");
    f.sender.transfer = Some(400);
    edit(&mut f);
    let o = run(&dumbbell(12.0, 40, Buffer::Unlimited, 60.0, vec![f])).unwrap();
    assert!(o.flows[0].completed.is_some());
    assert_eq!(o.flows[0].totals.delivered, 400);
    o
}

#[test]
fn exact_drops_strike_exactly() {
    let o = lossy(|f| f.drops.segments = vec![5, 7, 100]);
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.retransmits),
        (3, 3)
    );
    assert_eq!(
        o.flows[0].totals.loss_events, 2,
        "5 and 7 fell in one window"
    );
    let o = lossy(|f| f.drops.times = vec![at(50.0), at(51.0), at(300.0)]);
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.retransmits),
        (3, 3)
    );
    let o = lossy(|f| f.drops.at_window = Some(30.0));
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.loss_events),
        (1, 1)
    );
    let w = o.flows[0].episodes[0].before;
    // The window doubles in the round trip before the loss shows.
    assert!((30.0..=61.0).contains(&w), "{w}");
    let o = lossy(|f| f.drops.every = Some(50));
    assert_eq!(o.flows[0].totals.dropped, o.flows[0].totals.sent / 50);
    assert!(o.flows[0].totals.dropped >= 8);
    // The first transmission only: the retransmission passes.
    let o = lossy(|f| f.drops.segments = vec![399]);
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.timeouts),
        (1, 0),
        "the probe repairs the tail"
    );
    let o = lossy(|f| {
        f.drops.segments = vec![399];
        f.sender.recovery.tlp = false;
    });
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.timeouts),
        (1, 1)
    );
}

/// Exact drops work behind the host's own queue, too.
#[test]
fn exact_drops_strike_behind_a_local_queue() {
    let o = lossy(|f| {
        f.local_queue = true;
        f.drops.segments = vec![5, 100];
    });
    assert_eq!(
        (o.flows[0].totals.dropped, o.flows[0].totals.retransmits),
        (2, 2)
    );
}

#[test]
fn random_losses_have_their_rates() {
    // A constant window far below the path's, so that packets flow whatever is lost.
    let outcome = |loss: Loss, p: f64| {
        let mut f = flow("main", "aimd(increase=1000, decrease=0.01)");
        f.sender.window.max = 60.0;
        f.drops.probability = p;
        let mut spec = dumbbell(100.0, 10, Buffer::Unlimited, 60.0, vec![f]);
        spec.links[0].loss = loss;
        run(&spec).unwrap()
    };
    let o = outcome(Loss::Bernoulli { p: 0.01 }, 0.0);
    let rate = o.links[0].random_drops as f64 / o.links[0].offered as f64;
    assert!(o.links[0].offered > 100_000);
    assert!((rate / 0.01 - 1.0).abs() < 0.1, "{rate}");
    assert_eq!(o.links[0].random_drops, o.flows[0].totals.dropped);

    let o = outcome(Loss::None, 0.01);
    let t = o.flows[0].totals;
    assert!((t.dropped as f64 / t.sent as f64 / 0.01 - 1.0).abs() < 0.1);

    // Stationary loss: 0.5 * 0.002 / (0.002 + 0.1).
    let model = Loss::GilbertElliott {
        to_bad: 0.002,
        to_good: 0.1,
        good: 0.0,
        bad: 0.5,
    };
    let o = outcome(model, 0.0);
    let rate = o.links[0].random_drops as f64 / o.links[0].offered as f64;
    let expected = 0.5 * 0.002 / 0.102;
    assert!((rate / expected - 1.0).abs() < 0.15, "{rate} {expected}");
}

/// Host interface of 100 Mbit/s and txqueuelen 20 in front of a bottleneck of 12 Mbit/s: bursts
/// stall at the host, nothing is lost there, and the path behind sees packets spaced by the
/// interface.
#[test]
fn an_interface_queue_stalls_instead_of_losing() {
    let mut f = flow("main", "reno");
    f.local_queue = true;
    f.forward = vec![0, 2];
    f.sender.window.initial = 64.0;
    f.sender.transfer = Some(500);
    f.sender.host.local_drop = fullpipe_flow::LocalDrop::Ignore;
    f.sender.host.small_queue = false;
    let spec = RunSpec {
        links: vec![
            link("nic", mbit(120.0), Span::ZERO, Buffer::Packets(20)),
            link("return", None, ms(20), Buffer::Unlimited),
            link("bottleneck", mbit(12.0), ms(20), Buffer::Packets(1000)),
        ],
        ..dumbbell(12.0, 40, Buffer::Unlimited, 20.0, vec![f])
    };
    let o = run(&spec).unwrap();
    let t = o.flows[0].totals;
    assert!(t.local_stalls > 0);
    assert_eq!(
        (t.dropped, t.retransmits, o.links[0].buffer_drops),
        (0, 0, 0)
    );
    assert_eq!(o.links[0].queue_max, 20);
    assert_eq!(t.loss_events, 0, "ignored");
    // 500 packets of a millisecond, one round trip, and the first serialization at the interface.
    let done = o.flows[0].completed.unwrap().as_secs_f64();
    assert!((0.5..0.56).contains(&done), "{done}");
    assert!(o.flows[0].rtt.min().unwrap() >= Span::from_nanos(40_000_000 + 1_100_000));

    // React: one reduction of kind local drop.
    let mut spec = spec;
    spec.flows[0].sender.host.local_drop = fullpipe_flow::LocalDrop::React;
    let o = run(&spec).unwrap();
    assert!(o.flows[0].totals.loss_events >= 1);
    assert_eq!(o.flows[0].totals.dropped, 0);
    assert!(o.flows[0].completed.is_some());
    let _ = Time::ZERO;
}

/// The same interface with small queues: after the handshake a flow keeps two packets there, since
/// a millisecond of its rate is less, and is never refused.
#[test]
fn a_small_queue_is_never_refused() {
    let mut f = flow("main", "reno");
    f.local_queue = true;
    f.forward = vec![0, 2];
    f.sender.handshake = true;
    f.sender.window.initial = 64.0;
    f.sender.transfer = Some(500);
    f.sender.host.small_queue = true;
    let spec = RunSpec {
        links: vec![
            link("nic", mbit(120.0), Span::ZERO, Buffer::Packets(20)),
            link("return", None, ms(20), Buffer::Unlimited),
            link("bottleneck", mbit(12.0), ms(20), Buffer::Packets(1000)),
        ],
        ..dumbbell(12.0, 40, Buffer::Unlimited, 20.0, vec![f])
    };
    let o = run(&spec).unwrap();
    let t = o.flows[0].totals;
    assert_eq!((t.local_stalls, t.loss_events, t.dropped), (0, 0, 0));
    assert_eq!(o.links[0].queue_max, 2);
    // 64 packets of 0.1 ms: all but the last two wait in the sender.
    let held = t.limited.of(Limit::LocalQueue);
    assert!(held >= Span::from_micros(6_200), "{held}");
    let done = o.flows[0].completed.unwrap();
    assert_eq!(t.limited.total(), done - Time::ZERO);
    assert!(
        (0.54..0.60).contains(&done.as_secs_f64()),
        "a handshake longer: {done}"
    );
}

/// An interface no faster than the path. A flow of today fills the path, loses nothing and is held
/// back by its own host; its window stops at twice what it uses (Linux `tcp_is_cwnd_limited`). One
/// of 2003 grows until its own queue refuses it.
#[test]
fn a_host_no_faster_than_its_path_loses_nothing() {
    let of = |small_queue: bool| {
        let mut f = flow("main", "cubic");
        f.local_queue = true;
        f.forward = vec![0, 2];
        f.sender.handshake = true;
        f.sender.host.small_queue = small_queue;
        let spec = RunSpec {
            links: vec![
                link("nic", mbit(12.0), Span::ZERO, Buffer::Packets(101)),
                link("return", None, ms(20), Buffer::Unlimited),
                link("bottleneck", mbit(12.0), ms(20), Buffer::Packets(5)),
            ],
            ..dumbbell(12.0, 40, Buffer::Unlimited, 20.0, vec![f])
        };
        run(&spec).unwrap()
    };
    let today = of(true);
    let (t, nic) = (today.flows[0].totals, &today.links[0]);
    assert_eq!((t.dropped, t.local_stalls, t.loss_events), (0, 0, 0));
    assert_eq!(t.limited.longest(), Some(Limit::LocalQueue));
    assert!(nic.queue_max <= 3, "{}", nic.queue_max);
    // 20 s of a packet per millisecond, less the handshake and slow start.
    assert!(t.delivered > 19_600, "{}", t.delivered);
    // 41 packets fill the path and two the queue.
    let window = today.flows[0].cwnd_max;
    assert!(window <= 2.0 * 44.0, "{window}");
    let then = of(false);
    let t = then.flows[0].totals;
    assert!(t.local_stalls > 0 && t.loss_events > 0 && t.dropped == 0);
    assert_eq!(then.links[0].queue_max, 101);
}

/// Serialization at a rate that does not divide: 1000 packets of 1500 B at 7 Mbit/s take 1000 x
/// 12000/7 us, without drift.
#[test]
fn fractions_of_a_nanosecond_do_not_accumulate() {
    let mut f = flow("main", "reno");
    f.sender.window.initial = 64.0;
    f.sender.transfer = Some(1064);
    let o = run(&dumbbell(7.0, 0, Buffer::Unlimited, 10.0, vec![f])).unwrap();
    let done = o.flows[0].completed.unwrap().as_nanos() as f64;
    let exact = 1064.0 * 12_000.0 / 7e6 * 1e9;
    assert!((done - exact).abs() <= 1.0, "{done} {exact}");
}
