//! Queue disciplines in whole simulations, against what their documents report. Each test says its
//! source and tolerance.

use fullpipe_run::{
    Buffer, Codel, CrossSpec, Discipline, FlowSpec, FqCodel, LinkOutcome, Outcome, Pie, Red,
    RunSpec,
};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{at, dumbbell, flow, link, ms, source};

/// Milliseconds of queueing delay below which half of the packets, or a part `q` of them, waited.
fn waited(l: &LinkOutcome, q: f64) -> f64 {
    l.queueing_delay.quantile(q).unwrap().as_millis_f64()
}

fn mean_ms(l: &LinkOutcome) -> f64 {
    l.queueing_delay.mean_s().unwrap() * 1e3
}

/// `n` flows of `stack` that start within a second.
fn flows(n: usize, stack: &str) -> Vec<FlowSpec> {
    (0..n)
        .map(|i| FlowSpec {
            start: at(i as f64 * 1000.0 / n as f64),
            ..flow(&format!("f{i}"), stack)
        })
        .collect()
}

/// A bottleneck of `rate` Mbit/s under `discipline` with room for 1000 packets; the first ten
/// seconds are not measured.
fn spec(rate: f64, rtt: u64, discipline: Discipline, flows: Vec<FlowSpec>) -> RunSpec {
    let mut spec = dumbbell(rate, rtt, Buffer::Packets(1000), 60.0, flows);
    spec.links[0].discipline = discipline;
    spec.measure_from = at(10_000.0);
    spec
}

/// FGS01's automatic parameters for 20 Mbit/s and packets of 1500 B: thresholds of 5 and 15
/// packets.
fn adaptive() -> Red {
    Red::adaptive(20e6 / 12e3, ms(5))
}

fn marking() -> Codel {
    Codel {
        ecn: true,
        ..Codel::default()
    }
}

/// Datagrams of 1500 B at `mbps` into 20 Mbit/s for two minutes, the last one measured.
fn overload(mbps: f64, discipline: Discipline) -> RunSpec {
    let mut spec = spec(20.0, 50, discipline, vec![]);
    spec.duration = Span::from_secs(120);
    spec.measure_from = at(60_000.0);
    spec.cross = vec![source("udp", mbps)];
    spec
}

/// One flow from `flows` of each round trip, 10 and 100 ms, with a probe every 100 ms that waits
/// only in the bottleneck.
fn near_and_far(stack: &str, discipline: Discipline) -> Outcome {
    let two = vec![flow("near", stack), flow("far", stack)];
    let mut spec = spec(20.0, 10, discipline, two);
    for name in ["far there", "far back"] {
        spec.links.push(link(name, None, ms(45), Buffer::Unlimited));
    }
    spec.flows[1].forward = vec![2, 0];
    spec.flows[1].back = vec![1, 3];
    spec.cross = vec![CrossSpec::probes("ping", 84, ms(100), vec![0], vec![1])];
    run(&spec).unwrap()
}

/// Part of the goodput that the first of two flows has.
fn share(o: &Outcome) -> f64 {
    let goodput = |i: usize| o.flows[i].totals.delivered_measured as f64;
    goodput(0) / (goodput(0) + goodput(1))
}

/// Nichols and Jacobson 2012 and RFC 8289, 1: a good queue passes, a standing one does not stay.
/// One flow never keeps half of its packets longer than the target of 5 ms, four keep them there
/// (within a millisecond) and the link busy; before drop-tail they stand behind hundreds of
/// milliseconds.
#[test]
fn codel_holds_the_delay_at_its_target() {
    let codel = Discipline::Codel(Codel::default());
    for stack in ["reno", "cubic"] {
        for rtt in [20, 50, 100] {
            let o = run(&spec(20.0, rtt, codel, flows(1, stack))).unwrap();
            let l = &o.links[0];
            assert!(waited(l, 0.5) < 5.0, "{stack} {rtt}: {}", waited(l, 0.5));
            assert!(l.utilization > 0.78 && l.buffer_drops == 0);
        }
        let o = run(&spec(20.0, 50, codel, flows(4, stack))).unwrap();
        let l = &o.links[0];
        assert!(
            (waited(l, 0.5) - 5.0).abs() < 1.0,
            "{stack}: {}",
            waited(l, 0.5)
        );
        assert!(l.utilization > 0.98, "{stack}: {}", l.utilization);
        let o = run(&spec(20.0, 50, Discipline::DropTail, flows(1, stack))).unwrap();
        assert!(waited(&o.links[0], 0.5) > 300.0, "{stack}");
    }
}

/// One Reno flow, 20 Mbit/s, 100 ms: a pipe of 166.7 packets. The window rises until the delay has
/// been above 5 ms, 8.3 packets, for 100 ms, and one round trip more, to about 177; halved, it
/// takes 78 rounds to fill the pipe and 10 more. Its mean over these, never more than the pipe, is
/// 79.3 % of the pipe (within 2 %).
#[test]
fn reno_under_codel_has_the_utilization_of_its_sawtooth() {
    let codel = Discipline::Codel(Codel::default());
    let o = run(&spec(20.0, 100, codel, flows(1, "reno"))).unwrap();
    let used = o.links[0].utilization;
    assert!((used - 0.793).abs() < 0.02, "{used}");
}

/// 5 % too much from a source that does not listen. Drops come at a rate that grows by 50 per
/// second each second from 10 per second (sqrt(count) = 1 + 5 t), until it is the excess of 83.3
/// packets per second after 1.47 s. By then the queue is 8.3 (5 ms) + 8.3 (the first 100 ms) + 83.3
/// t - 10 t - 25 t^2 = 70 packets long (within 10 %).
#[test]
fn codel_needs_its_time_to_stop_a_source_that_does_not_listen() {
    let mut spec = overload(21.0, Discipline::Codel(Codel::default()));
    spec.measure_from = Time::ZERO;
    spec.duration = Span::from_secs(5);
    let o = run(&spec).unwrap();
    let most = o.links[0].queue_max as f64;
    assert!((most / 70.4 - 1.0).abs() < 0.1, "{most}");
}

/// RFC 8033, 4.2, and Pan and others 2013: the delay is brought to the reference of 15 ms whatever
/// the number of flows (mean within a millisecond). Against a source that does not listen the
/// integral part leaves no error: as many are dropped as are too many, 20 % of 25 Mbit/s (within
/// half a per cent), at 15 ms.
#[test]
fn pie_brings_the_delay_to_its_reference() {
    let pie = Discipline::Pie(Pie::default());
    for (n, rtt) in [(10, 20), (10, 100), (50, 20), (50, 100)] {
        let o = run(&spec(20.0, rtt, pie, flows(n, "reno"))).unwrap();
        let l = &o.links[0];
        assert!((mean_ms(l) - 15.0).abs() < 1.0, "{n} {rtt}: {}", mean_ms(l));
        assert!(l.utilization > 0.98 && l.buffer_drops == 0);
    }
    let o = run(&overload(25.0, pie)).unwrap();
    let l = &o.links[0];
    assert!((mean_ms(l) - 15.0).abs() < 1.0, "{}", mean_ms(l));
    let dropped = l.early_drops as f64 / l.offered as f64;
    assert!((dropped - 0.2).abs() < 0.005, "{dropped}");
}

/// FJ93: at a constant load RED drops 2 p_b / (1 + p_b) of the packets, and the average stands
/// where that is the excess. Of 21 Mbit/s into 20: p_b = 0.0244, 2.44 packets above `min_th`; of
/// 25: 0.111, 0.19 packets above `max_th` (gentle). The mean over time is within 0.75 packets of
/// what arriving packets see.
#[test]
fn red_stands_where_it_drops_the_excess() {
    let red = Red {
        adaptive: false,
        ..adaptive()
    };
    for (mbps, expected) in [(21.0, 7.44), (25.0, 15.19)] {
        let o = run(&overload(mbps, Discipline::Red(red))).unwrap();
        let l = &o.links[0];
        assert!(
            (l.queue_mean - expected).abs() < 0.75,
            "{mbps}: {}",
            l.queue_mean
        );
        let dropped = l.early_drops as f64 / l.offered as f64;
        assert!((dropped - (1.0 - 20.0 / mbps)).abs() < 0.005, "{dropped}");
    }
}

/// FGS01: the average queue stays in the target band, 9 to 11 packets, whatever the load; without
/// the adaptation it depends on the load and leaves the band on either side.
#[test]
fn adaptive_red_keeps_the_queue_in_its_band() {
    let mean = |red, n| {
        let o = run(&spec(20.0, 20, Discipline::Red(red), flows(n, "reno"))).unwrap();
        assert!(o.links[0].utilization > 0.94, "{n}");
        o.links[0].queue_mean
    };
    for n in [5, 10, 20, 50] {
        let queue = mean(adaptive(), n);
        assert!((9.0..=11.0).contains(&queue), "{n}: {queue}");
    }
    let fixed = Red {
        adaptive: false,
        ..adaptive()
    };
    assert!(mean(fixed, 5) < 7.0);
    assert!(mean(fixed, 50) > 13.0);
}

/// RFC 8290, 1 and 4.2: each backlogged flow has its share, whatever its round trip. While CoDel's
/// target is too high to act, both flows are backlogged and have half each (within 1 %). With the
/// standard target the far flow has what it would have behind CoDel alone at half of the rate
/// (within 5 %, for CUBIC half within 5 points). A probe waits for the packet in transmission and
/// at most two more, 1.8 ms; behind drop-tail for hundreds of milliseconds.
#[test]
fn fq_codel_gives_equal_shares_and_lets_probes_pass() {
    let lenient = Codel {
        target: ms(500),
        interval: ms(2000),
        ..Codel::default()
    };
    let fq = |codel| {
        Discipline::FqCodel(FqCodel {
            codel,
            ..FqCodel::default()
        })
    };
    for stack in ["reno", "cubic"] {
        let o = near_and_far(stack, fq(lenient));
        assert!((share(&o) - 0.5).abs() < 0.005, "{stack}: {}", share(&o));
        let o = near_and_far(stack, fq(Codel::default()));
        let far = o.flows[1].totals.delivered_measured as f64;
        let codel = Discipline::Codel(Codel::default());
        let alone = run(&spec(10.0, 100, codel, flows(1, stack))).unwrap();
        let ratio = far / alone.flows[0].totals.delivered_measured as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{stack}: {ratio}");
        assert!(
            stack == "reno" || (share(&o) - 0.5).abs() < 0.05,
            "{}",
            share(&o)
        );
        let wait = o.cross[0].delay.max().unwrap() - o.cross[0].unloaded;
        assert!(wait < Span::from_micros(1800), "{stack}: {wait}");
        let tail = near_and_far(stack, Discipline::DropTail);
        assert!(
            (share(&tail) - 0.5).abs() > 0.1,
            "{stack}: {}",
            share(&tail)
        );
        assert!(
            tail.cross[0].delay.quantile(0.5).unwrap() > ms(300),
            "{stack}"
        );
    }
}

/// RFC 3168, 5: where a packet would be dropped it is marked, so nothing is lost, and the sender
/// reduces all the same: the mean delay stays where drops would hold it (within a factor of 1.5).
/// RED's average must stay below twice `max_th`: the window is limited for that.
#[test]
fn flows_that_use_ecn_are_marked_and_lose_nothing() {
    let red = Red {
        ecn: true,
        ..Red::classic(400)
    };
    let fq = FqCodel {
        codel: marking(),
        ..FqCodel::default()
    };
    for discipline in [
        Discipline::Red(red),
        Discipline::Codel(marking()),
        Discipline::FqCodel(fq),
    ] {
        let run_with = |ecn| {
            let mut flows = flows(4, "cubic");
            for f in &mut flows {
                f.sender.ecn = ecn;
                f.receiver.ecn = ecn;
                f.sender.window.max = 60.0;
            }
            run(&spec(20.0, 50, discipline, flows)).unwrap()
        };
        let (marked, dropped) = (run_with(true), run_with(false));
        let (m, d) = (&marked.links[0], &dropped.links[0]);
        assert!(
            m.marks > 50 && m.early_drops == 0 && m.buffer_drops == 0,
            "{discipline:?}"
        );
        assert!(d.marks == 0 && d.early_drops > 50, "{discipline:?}");
        for f in &marked.flows {
            assert!(f.totals.retransmits == 0 && f.totals.loss_events > 0);
        }
        let (with, without) = (mean_ms(m), mean_ms(d));
        assert!(
            (0.67..1.5).contains(&(with / without)),
            "{discipline:?}: {with} {without}"
        );
    }
}
