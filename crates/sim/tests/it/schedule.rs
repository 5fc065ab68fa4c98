//! Rates, delays and losses over time, and traces of opportunities, against their integrals.

use std::sync::Arc;

use fullpipe_run::{
    Buffer, Change, Codel, DeliveryTrace, Discipline, LinkSpec, Loss, Outcome, RunSpec, Trace,
};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use crate::build::{all_but_ties, dumbbell, flow, mbit, ms, poisson, source};
use crate::mdone::hold;

fn rate_at(ms: u64, mbps: u64) -> Change {
    Change {
        at: Time::ZERO + Span::from_millis(ms),
        rate: Some(Rate::from_bits_per_sec(mbps * 1_000_000)),
        delay: None,
        loss: None,
    }
}

fn delay_at(at: u64, delay: u64) -> Change {
    Change {
        rate: None,
        delay: Some(ms(delay)),
        ..rate_at(at, 0)
    }
}

/// Datagrams of 1500 B at `mbps` into a link of 12 Mbit/s and 10 ms.
fn datagrams(mbps: f64, seconds: f64, edit: impl FnOnce(&mut LinkSpec)) -> Outcome {
    let mut spec = RunSpec {
        cross: vec![source("s", mbps)],
        ..dumbbell(12.0, 20, Buffer::Unlimited, seconds, vec![])
    };
    edit(&mut spec.links[0]);
    run(&spec).unwrap()
}

/// 12, 6, 24, 3 Mbit/s for a second each, saturated: 1000 + 500 + 2000 + 250 packets, not one less.
#[test]
fn a_staircase_carries_its_integral() {
    let o = datagrams(40.0, 4.0, |l| {
        l.schedule = vec![rate_at(1000, 6), rate_at(2000, 24), rate_at(3000, 3)];
    });
    let l = &o.links[0];
    // The first packet comes after 0.3 ms, at 40 Mbit/s: 3749.7 fit into what remains.
    assert_eq!(l.delivered, 3749);
    assert!(l.utilization > 0.9997, "{}", l.utilization);
    // A flow that is never idle fills it too.
    let mut spec = dumbbell(12.0, 20, Buffer::Packets(60), 4.0, vec![flow("f", "reno")]);
    spec.links[0].schedule = vec![rate_at(1000, 6), rate_at(2000, 24), rate_at(3000, 3)];
    let o = run(&spec).unwrap();
    assert!(o.links[0].utilization > 0.93, "{}", o.links[0].utilization);
}

/// A queue that is full is so for the whole of an outage, although nothing enters or leaves it; a
/// second after the datagrams end it is empty.
#[test]
fn a_queue_is_seen_in_an_outage() {
    for held in [false, true] {
        let mut s = source("s", 6.0);
        s.stop = Some(Time::ZERO + Span::from_secs(5));
        let mut spec = RunSpec {
            cross: vec![s],
            trace: Trace::Every(ms(10)),
            ..dumbbell(12.0, 20, Buffer::Packets(83), 7.0, vec![])
        };
        spec.links[0].schedule = vec![rate_at(2000, 0), rate_at(4000, 12)];
        if held {
            hold(&mut spec.links[0]);
        }
        let series = run(&spec).unwrap().links.swap_remove(0).series;
        let between = |from: u64, to: u64| {
            let rows = &series[from as usize / 10..=to as usize / 10];
            assert_eq!(rows[0].at, Time::ZERO + ms(from));
            rows.iter().map(|s| (s.packets, s.min, s.max))
        };
        // 83 packets at 6 Mbit/s come in 166 ms.
        assert!(between(2200, 4000).all(|s| s == (83, 83, 83)), "{held}");
        assert!(between(2010, 2160).is_sorted() && between(4010, 4100).rev().is_sorted());
        assert!(between(6000, 7000).all(|s| s == (0, 0, 0)), "{held}");
        // A packet every 2 ms, which takes 1 ms, and the next one when a step ends.
        assert!(between(1000, 2000).all(|s| s == (0, 0, 1)), "{held}");
    }
}

/// From 2 s to 4 s nothing leaves; then everything queued does, at the full rate, in order.
#[test]
fn an_outage_delays_and_loses_nothing() {
    let o = datagrams(6.0, 10.0, |l| {
        l.schedule = vec![rate_at(2000, 0), rate_at(4000, 12)]
    });
    let s = &o.cross[0];
    assert_eq!(s.dropped, 0);
    // What comes at 6 Mbit/s while 12 drain: the queue of two seconds is gone after two more.
    let per_second: Vec<u64> = s.arrived_per_interval.clone();
    assert_eq!(per_second[3], 0, "{per_second:?}");
    assert!(per_second[2] <= 6, "those on the way: {per_second:?}");
    // The first of them arrives 11 ms after the outage, so the last ones do in the seventh second.
    assert_eq!((per_second[4], per_second[5]), (989, 1000));
    assert!((505..=507).contains(&per_second[6]), "{per_second:?}");
    for second in [7, 8, 9] {
        assert!((499..=501).contains(&per_second[second]), "{per_second:?}");
    }
    assert_eq!(s.sent - s.arrived, 6, "those of the last 11 ms");
    let longest = s.delay.max().unwrap();
    assert!(longest > ms(2010) && longest <= ms(2012), "{longest}");
    assert_eq!(o.links[0].queue_max, 1001, "from 2.000 to 4.000 s");
    // 8 of 10 seconds have a rate.
    assert!((o.links[0].utilization - 5000.0 / 8000.0).abs() < 1e-3);
}

#[test]
fn a_flow_survives_an_outage() {
    let mut spec = dumbbell(
        12.0,
        40,
        Buffer::Packets(60),
        20.0,
        vec![flow("f", "cubic")],
    );
    spec.links[0].schedule = vec![rate_at(5000, 0), rate_at(7000, 12)];
    let o = run(&spec).unwrap();
    let d = &o.flows[0].delivered_per_interval;
    assert!(d[5] < 30 && d[6] == 0, "{d:?}");
    assert!(d[9] > 900, "{d:?}");
    assert!(o.flows[0].totals.timeouts >= 1);
}

/// One opportunity a millisecond: 1504 B each, 12.032 Mbit/s. A packet of 1500 B leaves 4 B for the
/// next one.
#[test]
fn a_trace_of_one_opportunity_a_millisecond() {
    let even = |l: &mut LinkSpec| {
        l.rate = None;
        l.trace = Some(Arc::new(DeliveryTrace::parse("1").unwrap()));
    };
    let o = datagrams(40.0, 4.0, even);
    let l = &o.links[0];
    // 4000 opportunities; those of the first packet's millisecond are counted too.
    assert_eq!(l.delivered, 4000 * 1504 / 1500);
    assert!((l.utilization - 1.0).abs() < 1e-3, "{}", l.utilization);
    // 1504 B fit exactly, 1505 B take parts of two.
    for (size, expected) in [(1504, 4000), (752, 8000), (3008, 2000)] {
        let mut s = source("s", 40.0);
        s.packet = size;
        let mut spec = RunSpec {
            cross: vec![s],
            ..dumbbell(12.0, 20, Buffer::Unlimited, 4.0, vec![])
        };
        even(&mut spec.links[0]);
        assert_eq!(run(&spec).unwrap().links[0].delivered, expected, "{size}");
    }
    // At 6 Mbit/s each packet has an opportunity of its own, every second one is lost.
    let o = datagrams(6.0, 4.0, even);
    assert_eq!(o.cross[0].delay.max(), Some(ms(11)));
    assert!((o.links[0].utilization - 2000.0 / 4000.0 * 1500.0 / 1504.0).abs() < 1e-3);
}

/// Bursts of 40 opportunities in 10 ms, then 190 ms of nothing: a cellular link in the small.
#[test]
fn a_trace_with_gaps() {
    let mut text = String::new();
    for i in 0..40 {
        text += &format!("{}\n", 1 + i / 4);
    }
    text += "200\n";
    let trace = Arc::new(DeliveryTrace::parse(&text).unwrap());
    let o = datagrams(1.2, 10.0, |l| l.trace = Some(Arc::clone(&trace)));
    // 20 packets come in 200 ms: all leave in the next burst.
    let s = &o.cross[0];
    assert_eq!(s.dropped, 0);
    let longest = s.delay.max().unwrap();
    assert!((ms(195)..=ms(205)).contains(&longest), "{longest}");
    let used = 20.0 * 1500.0 / (41.0 * 1504.0);
    assert!(
        (o.links[0].utilization - used).abs() < 0.01,
        "{}",
        o.links[0].utilization
    );
    // A flow in it: every RTT sample includes the wait for an opportunity, and nothing but that
    // limits it.
    let mut spec = dumbbell(
        12.0,
        20,
        Buffer::Packets(100),
        20.0,
        vec![flow("f", "reno")],
    );
    spec.links[0].trace = Some(trace);
    let o = run(&spec).unwrap();
    assert!(o.links[0].utilization > 0.7, "{}", o.links[0].utilization);
    assert!(o.flows[0].rtt.max().unwrap() > ms(190));
}

/// 40 ms, then 100 ms, then 20 ms: the step up leaves a gap, the step down lets nothing overtake.
#[test]
fn delays_step_up_and_down() {
    let o = datagrams(1.2, 3.0, |l| {
        l.delay = ms(40);
        l.schedule = vec![delay_at(1000, 100), delay_at(2000, 20)];
    });
    let s = &o.cross[0];
    // One packet every 10 ms, sent in 1 ms. Those that leave in the last 80 ms before 2 s arrive
    // before those after.
    assert_eq!(
        (s.delay.min(), s.delay.max()),
        (Some(ms(21)), Some(ms(101)))
    );
    assert_eq!(s.sent, 300);
    assert_eq!(s.arrived, 297, "three are in the last 21 ms");
    let mean = s.delay.mean_s().unwrap();
    // 99 at 41 ms, 100 at 101 ms, then 21 ms; the first seven wait 70, 60 .. 10 ms more behind the
    // slow ones.
    let waiting: f64 = (1..=7).map(|i| 80.0 - 10.0 * f64::from(i)).sum();
    let expected = (99.0 * 41.0 + 100.0 * 101.0 + 98.0 * 21.0 + waiting) / 297.0;
    assert!(
        (mean * 1e3 - expected).abs() < 1e-6,
        "{} {expected}",
        mean * 1e3
    );
}

#[test]
fn a_flow_sees_the_delay_step_and_no_reordering() {
    let mut spec = dumbbell(12.0, 80, Buffer::Packets(100), 6.0, vec![flow("f", "reno")]);
    spec.flows[0].sender.window.max = 20.0;
    spec.links[0].schedule = vec![delay_at(2000, 100), delay_at(4000, 10)];
    let o = run(&spec).unwrap();
    let f = &o.flows[0];
    assert_eq!((f.totals.out_of_order, f.totals.retransmits), (0, 0));
    // One way 40 ms back: 141 ms at most but for queueing, 51 ms at least.
    assert_eq!(f.rtt.min(), Some(ms(51)));
    assert!(f.rtt.max().unwrap() >= ms(141));
}

#[test]
fn losses_come_and_go() {
    let lossy = |at, p| Change {
        rate: None,
        loss: Some(Loss::Bernoulli { p }),
        ..rate_at(at, 0)
    };
    let o = datagrams(12.0, 30.0, |l| {
        l.schedule = vec![
            lossy(10_000, 0.2),
            Change {
                loss: Some(Loss::None),
                ..lossy(20_000, 0.0)
            },
        ];
    });
    let lost = o.links[0].random_drops;
    // 10 000 packets, standard deviation 40.
    assert!((1840..=2160).contains(&lost), "{lost}");
    assert_eq!(o.cross[0].dropped, lost);
    let kept: u64 = o.cross[0].arrived_per_interval[..9].iter().sum();
    assert!(kept >= 8988, "{kept}");
}

/// A staircase that never steps is the plain link, to the nanosecond, whatever its buffer.
#[test]
fn a_schedule_without_change_changes_nothing() {
    let still = Change {
        rate: mbit(9.700001),
        delay: Some(Span::from_micros(18_500)),
        ..rate_at(3333, 0)
    };
    for buffer in [
        Buffer::Packets(25),
        Buffer::Bytes(37_499),
        Buffer::Time(Span::from_micros(30_500)),
        Buffer::Unlimited,
    ] {
        let outcome = |schedule| {
            let mut flows = vec![flow("a", "reno"), flow("b", "cubic")];
            flows[0].sender.window.max = 200.0;
            flows[1].sender.window.max = 200.0;
            flows[1].sender.header = 53;
            let mut spec = dumbbell(9.7, 37, buffer, 10.0, flows);
            spec.links[0].rate = mbit(9.700001);
            spec.links[0].loss = Loss::Bernoulli { p: 1e-3 };
            spec.links[0].schedule = schedule;
            run(&spec).unwrap()
        };
        let plain = outcome(vec![]);
        assert_eq!(
            plain.links[0].buffer_drops > 20,
            buffer != Buffer::Unlimited
        );
        assert_eq!(
            all_but_ties(&plain),
            all_but_ties(&outcome(vec![still])),
            "{buffer:?}"
        );
    }
}

/// CoDel decides when a packet leaves: over a trace at its opportunities, over an outage at its
/// end. Without drops both are the FIFO in closed form.
#[test]
fn a_queue_with_events_is_the_closed_form_without_drops() {
    let lenient = Discipline::Codel(Codel {
        target: Span::from_secs(100),
        interval: Span::from_secs(100),
        ..Codel::default()
    });
    let trace = DeliveryTrace::parse("0\n0\n1\n1\n2\n7\n7\n7\n20").unwrap();
    let trace = Arc::new(trace);
    let edits: [&dyn Fn(&mut LinkSpec); 3] =
        [&|_| {}, &|l| l.trace = Some(Arc::clone(&trace)), &|l| {
            l.schedule = vec![
                rate_at(300, 0),
                rate_at(1300, 7),
                rate_at(1800, 12),
                delay_at(2000, 3),
            ]
        }];
    for (i, edit) in edits.iter().enumerate() {
        for (mbps, size) in [(3.0, 1500), (9.1, 700), (30.0, 1500), (5.0, 9000)] {
            let with = |discipline| {
                let mut s = poisson(source("s", mbps));
                s.packet = size;
                let mut spec = RunSpec {
                    cross: vec![s],
                    ..dumbbell(12.0, 20, Buffer::Packets(200), 4.0, vec![])
                };
                edit(&mut spec.links[0]);
                spec.links[0].discipline = discipline;
                spec.measure_from = Time::ZERO + ms(700);
                let o = run(&spec).unwrap();
                let l = &o.links[0];
                assert_eq!(l.early_drops, 0);
                let s = &o.cross[0];
                let link = (
                    l.delivered,
                    l.delivered_bytes,
                    l.measured_bytes,
                    l.buffer_drops,
                );
                (
                    link,
                    s.arrived,
                    s.delay.clone(),
                    l.queueing_delay.clone(),
                    l.queue_mean,
                )
            };
            let (fifo, held) = (with(Discipline::DropTail), with(lenient));
            assert_eq!((fifo.0, fifo.1), (held.0, held.1), "{i} {mbps}");
            assert_eq!(
                format!("{:?}", fifo.2),
                format!("{:?}", held.2),
                "{i} {mbps}"
            );
            assert_eq!(
                format!("{:?}", fifo.3),
                format!("{:?}", held.3),
                "{i} {mbps}"
            );
            assert!(
                (fifo.4 - held.4).abs() < 1e-9,
                "{i} {mbps}: {} {}",
                fifo.4,
                held.4
            );
        }
    }
}
