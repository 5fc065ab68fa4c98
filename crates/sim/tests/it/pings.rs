//! Round-trip probes on idle paths and behind queues of known length.

use fullpipe_run::{Buffer, CrossSpec, Departures, RunSpec, Waveform};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use crate::build::{dumbbell, link, mbit, ms, source};

fn ping(size: u16) -> CrossSpec {
    CrossSpec::probes("ping", size, ms(100), vec![0], vec![1])
}

/// 84 B at 7 Mbit/s there, at 3 Mbit/s and 11 Mbit/s back, each rounded down to the nanosecond, and
/// the delays.
#[test]
fn an_empty_path_takes_its_closed_form() {
    let mut p = ping(84);
    p.back = vec![1, 2];
    p.start = Time::ZERO + ms(50);
    p.stop = Some(Time::ZERO + ms(1050));
    let spec = RunSpec {
        links: vec![
            link("there", mbit(7.0), ms(20), Buffer::Packets(5)),
            link("here", mbit(3.0), ms(13), Buffer::Packets(5)),
            link("home", mbit(11.0), ms(1), Buffer::Packets(5)),
        ],
        cross: vec![p],
        measure_from: Time::ZERO + ms(500),
        ..dumbbell(1.0, 20, Buffer::Unlimited, 2.0, vec![])
    };
    let r = run(&spec).unwrap().cross.remove(0);
    let exact = Span::from_nanos(34_000_000 + 96_000 + 224_000 + 61_090);
    assert_eq!(r.unloaded, exact);
    assert_eq!((r.sent, r.dropped), (10, 0));
    let expected: Vec<(Time, Span)> = (0..10)
        .map(|i| (Time::ZERO + ms(50 + 100 * i) + exact, exact))
        .collect();
    assert_eq!(r.series, expected);
    // Answers since 500 ms: those of requests at 550 ms and later.
    assert_eq!((r.delay.count(), r.delay.max()), (5, Some(exact)));
}

/// A burst of 1000 packets of a millisecond each, then nothing: a probe waits for what is left of
/// it.
#[test]
fn a_known_queue_inflates_by_its_length() {
    let burst = Waveform::Steps {
        steps: vec![
            (Span::ZERO, Rate::from_bits_per_sec(1_200_000_000)),
            (ms(10), Rate::from_bits_per_sec(0)),
        ],
        period: None,
    };
    let s = CrossSpec::source("burst", 1500, burst, vec![0]);
    let mut p = ping(1500);
    p.start = Time::ZERO + ms(100);
    let spec = RunSpec {
        cross: vec![s, p],
        ..dumbbell(12.0, 40, Buffer::Unlimited, 2.0, vec![])
    };
    let o = run(&spec).unwrap();
    assert_eq!(o.cross[0].sent, 1000);
    let r = &o.cross[1];
    assert_eq!(r.unloaded, ms(41));
    for (k, (at, rtt)) in (0..).zip(&r.series) {
        // Busy since 10 us with 1000 packets and the probes before this one, a millisecond each.
        let sent = 100 * (k + 1);
        let free = Span::from_micros(10) + ms(1000 + k);
        let expected = free.saturating_sub(ms(sent)) + ms(41);
        assert_eq!(*rtt, expected, "{k}");
        assert_eq!(*at, Time::ZERO + ms(sent) + expected);
    }
    assert_eq!(r.sent, 20, "at 100 ... 2000 ms, the last at the end");
    assert_eq!(r.series.len(), 19);
}

/// Requests find the buffer full, answers too: both count as lost, and sent = answered + lost +
/// under way.
#[test]
fn losses_are_counted_both_ways() {
    let mut there = source("there", 15.0);
    there.name = "blast".into();
    let mut back = source("back", 15.0);
    back.forward = vec![1];
    let probes = CrossSpec {
        departures: Departures::Every(Span::from_micros(10_300)),
        ..ping(1500)
    };
    let mut spec = dumbbell(12.0, 40, Buffer::Packets(5), 20.0, vec![]);
    spec.links[1].rate = mbit(12.0);
    spec.links[1].buffer = Buffer::Packets(5);
    let lost = |sources: Vec<CrossSpec>| {
        let o = run(&RunSpec {
            cross: [sources, vec![probes.clone()]].concat(),
            ..spec.clone()
        })
        .unwrap();
        let p = o.answered().next().unwrap();
        let drops: u64 = o.links.iter().map(|l| l.buffer_drops).sum();
        assert_eq!(drops, o.cross.iter().map(|c| c.dropped).sum::<u64>());
        (p.dropped as f64 / p.sent as f64, o.links[1].buffer_drops)
    };
    let (idle, _) = lost(vec![]);
    assert_eq!(idle, 0.0);
    let (one, _) = lost(vec![there.clone()]);
    assert!(one > 0.02, "{one}");
    let (two, drops) = lost(vec![there, back]);
    assert!(two > one && drops > 0, "{two} {one}");
}
