//! Sources of datagrams against the integral of their rate.

use std::f64::consts::TAU;

use fullpipe_run::{Buffer, CrossSpec, Departures, Outcome, RunSpec, Waveform};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use crate::build::{at_rate, dumbbell, ms, poisson, source};

/// Sources over a bottleneck of 100 Mbit/s with an unlimited buffer and 10 ms each way.
fn sources(cross: Vec<CrossSpec>, seconds: f64) -> RunSpec {
    RunSpec {
        cross,
        ..dumbbell(100.0, 20, Buffer::Unlimited, seconds, vec![])
    }
}

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_sec(bits)
}

fn result(spec: &RunSpec) -> Outcome {
    run(spec).unwrap()
}

/// `floor(rate t / bits)` at every rate, also those that divide nothing.
#[test]
fn a_constant_rate_sends_its_integral() {
    for (bps, size, secs) in [
        (12_000_000, 1500, 10.0),
        (7_000_001, 1500, 33.0),
        (999, 123, 100.0),
        (33_333_333, 777, 5.0),
    ] {
        let mut s = source("s", bps as f64 * 1e-6);
        s.packet = size;
        let o = result(&sources(vec![s], secs));
        let expected = bps as f64 * secs / (8.0 * f64::from(size));
        let r = &o.cross[0];
        assert_eq!(r.sent, expected.floor() as u64, "{bps}");
        assert_eq!(r.sent_per_interval.iter().sum::<u64>(), r.sent);
        assert_eq!(r.arrived_per_interval.iter().sum::<u64>(), r.arrived);
        assert_eq!(r.sent_per_interval.len(), secs as usize);
        // On an idle path each takes its transmission (to the nanosecond, rounded down) and the
        // delay.
        let tx = u64::from(size) * 80;
        let delay = Span::from_nanos(10_000_000 + tx);
        assert_eq!((r.delay.min(), r.delay.max()), (Some(delay), Some(delay)));
        assert_eq!(r.delay.count(), r.arrived);
        assert_eq!(r.dropped, 0);
    }
}

#[test]
fn start_and_stop_bound_it() {
    let mut s = source("s", 12.0); // one per millisecond
    s.start = Time::ZERO + ms(500);
    s.stop = Some(Time::ZERO + ms(2500));
    let mut spec = sources(vec![s], 4.0);
    spec.measure_from = Time::ZERO + ms(1500);
    let r = &result(&spec).cross[0];
    // At 501, 502 ... 2499 ms.
    assert_eq!(r.sent, 1999);
    assert_eq!(r.sent_per_interval, [499, 1000, 500, 0]);
    assert_eq!(r.sent_measured, 1000);
    // Those of 1490 ms and later arrive, 10.12 ms after they left, within the measured part.
    assert_eq!(r.arrived_measured, 1010);
}

/// The datagrams of an interval follow the integral of the rate to one datagram, over the whole run
/// without drift.
#[test]
fn a_sine_follows_its_integral() {
    let (mean, amplitude, period) = (30e6, 25e6, 7.3);
    let sine = Waveform::Sine {
        mean: rate(mean as u64),
        amplitude: rate(amplitude as u64),
        period: Span::from_secs_f64(period),
    };
    let s = at_rate(source("s", 0.0), sine);
    let r = result(&sources(vec![s], 100.0)).cross.remove(0);
    let integral = |t: f64| {
        (mean * t + amplitude * period / TAU * (1.0 - (TAU * t / period).cos())) / 12_000.0
    };
    let mut sum = 0;
    for (i, n) in r.sent_per_interval.iter().enumerate() {
        sum += n;
        let expected = integral((i + 1) as f64);
        assert!(
            (sum as f64 - expected.floor()).abs() <= 1.0,
            "{i} {sum} {expected}"
        );
    }
    assert_eq!(sum, integral(100.0).floor() as u64);
}

/// A staircase with a silent step, repeated.
#[test]
fn a_staircase_repeats() {
    let mut s = at_rate(
        source("s", 0.0),
        Waveform::Steps {
            steps: vec![
                (Span::ZERO, rate(12_000_000)),
                (ms(1000), rate(0)),
                (ms(2000), rate(36_000_000)),
            ],
            period: Some(ms(3000)),
        },
    );
    let r = &result(&sources(vec![s.clone()], 9.0)).cross[0];
    // A datagram due at the very end of a step is the first of the next sample.
    assert_eq!(
        r.sent_per_interval,
        [999, 1, 2999, 1000, 1, 2999, 1000, 1, 3000]
    );
    // Without a period the last rate stays.
    if let Departures::Rate(Waveform::Steps { period, .. }, _) = &mut s.departures {
        *period = None;
    }
    let r = &result(&sources(vec![s], 5.0)).cross[0];
    assert_eq!(r.sent_per_interval, [999, 1, 2999, 3000, 3001]);
}

/// Mean rate `rate on / (on + off)`; 2000 cycles, whose lengths have a coefficient of variation
/// below 1: within 6 %.
#[test]
fn on_and_off_have_their_mean_rate() {
    let s = at_rate(
        source("s", 0.0),
        Waveform::OnOff {
            rate: rate(60_000_000),
            on: ms(20),
            off: ms(80),
        },
    );
    let r = &result(&sources(vec![s.clone()], 200.0)).cross[0];
    let mbps = r.sent as f64 * 0.012 / 200.0;
    assert!((mbps / 12.0 - 1.0).abs() < 0.06, "{mbps}");
    // It begins on.
    let s = at_rate(
        source("s", 0.0),
        Waveform::OnOff {
            rate: rate(60_000_000),
            on: ms(1_000_000),
            off: ms(1_000_000),
        },
    );
    assert_eq!(result(&sources(vec![s], 1.0)).cross[0].sent, 5000);
}

/// The number in an interval is Poisson: its variance over its mean is 1, within four standard
/// errors of 500 intervals.
#[test]
fn poisson_gaps_scatter_as_poisson() {
    let s = poisson(source("s", 12.0));
    let mut spec = sources(vec![s], 50.0);
    spec.interval = ms(100);
    let r = &result(&spec).cross[0];
    let n: Vec<f64> = r.sent_per_interval.iter().map(|n| *n as f64).collect();
    let mean = n.iter().sum::<f64>() / n.len() as f64;
    let variance = n.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n.len() - 1) as f64;
    assert!(
        (mean - 100.0).abs() < 4.0 * (100.0f64 / 500.0).sqrt(),
        "{mean}"
    );
    assert!(
        (variance / mean - 1.0).abs() < 4.0 * (2.0f64 / 500.0).sqrt(),
        "{variance}"
    );
}

/// What a full buffer refuses is counted with its source, and the bottleneck carries its capacity.
#[test]
fn a_blast_loses_what_does_not_fit() {
    let spec = RunSpec {
        cross: vec![source("a", 90.0), source("b", 60.0)],
        ..dumbbell(100.0, 20, Buffer::Packets(50), 10.0, vec![])
    };
    let o = result(&spec);
    let dropped: u64 = o.cross.iter().map(|s| s.dropped).sum();
    assert_eq!(dropped, o.links[0].buffer_drops);
    assert!(o.cross.iter().all(|s| s.dropped > 0));
    assert!(o.links[0].utilization > 0.999);
}

/// A source more, and another waveform of a neighbour, leave everybody else's randomness alone.
#[test]
fn components_draw_for_themselves() {
    let a = poisson(source("a", 5.0));
    let b = at_rate(
        source("b", 0.0),
        Waveform::OnOff {
            rate: rate(20_000_000),
            on: ms(50),
            off: ms(50),
        },
    );
    let alone = result(&sources(vec![a.clone()], 20.0));
    let both = result(&sources(vec![b.clone(), a.clone()], 20.0));
    assert_eq!(
        alone.cross[0].sent_per_interval,
        both.cross[1].sent_per_interval
    );
    let again = result(&sources(vec![b.clone(), a.clone()], 20.0));
    assert_eq!(
        again.cross[0].sent_per_interval,
        both.cross[0].sent_per_interval
    );
    // Poisson spacing of the on-off source keeps its times on and off.
    let c = poisson(b.clone());
    let [even, poisson] = [b, c].map(|s| result(&sources(vec![s], 20.0)).cross.remove(0));
    assert_ne!(even.sent_per_interval, poisson.sent_per_interval);
    for (x, y) in even
        .sent_per_interval
        .iter()
        .zip(&poisson.sent_per_interval)
    {
        let (x, y) = (*x as f64, *y as f64);
        assert!((x - y).abs() <= 6.0 * x.max(1.0).sqrt() + 2.0, "{x} {y}");
    }
    let mut other = sources(vec![a], 20.0);
    other.seed = 2;
    assert_ne!(
        result(&other).cross[0].sent_per_interval,
        alone.cross[0].sent_per_interval
    );
}
