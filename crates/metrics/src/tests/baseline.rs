//! Metrics of a case against its baseline.

use crate::{FlowMetrics, RunMetrics, SeedRun, TrafficMetrics, Values, against, against_baselines};

const NAMES: [&str; 5] = [
    "gain",
    "loss",
    "harm.throughput",
    "harm.rtt",
    "harm.completion_time",
];

fn flow(goodput: f64, rtt: f64) -> FlowMetrics {
    FlowMetrics {
        name: "f".into(),
        stack: "reno".into(),
        values: Values::from([
            ("goodput_mbps".to_owned(), Some(goodput)),
            ("rtt_ms.mean".to_owned(), Some(rtt)),
        ]),
    }
}

fn run(flows: Vec<FlowMetrics>, mice: &[(f64, f64)]) -> RunMetrics {
    let mice = mice.iter().map(|(n, s)| TrafficMetrics {
        name: "mice".into(),
        kind: "short-flows".into(),
        stack: "reno".into(),
        values: Values::from([
            ("completed".to_owned(), Some(*n)),
            ("completion_time_s.mean".to_owned(), Some(*s)),
        ]),
    });
    RunMetrics {
        flows,
        traffic: mice.collect(),
        links: vec![],
        metrics: Values::new(),
        simulated_s: 1.0,
        delivered_packets: 1,
        fidelity: None,
        partial: None,
    }
}

#[test]
fn hand_numbers() {
    // The newcomer takes 60 where Reno took 40; two others fall from 30 + 30 to 15 + 25 and their
    // RTT rises from 50 to 80 ms; 100 mice in 0.2 s and 300 in 0.6 s, before: 0.25 s.
    let base = run(
        vec![flow(40.0, 50.0), flow(30.0, 40.0), flow(30.0, 60.0)],
        &[(10.0, 0.25)],
    );
    let new = run(
        vec![flow(60.0, 80.0), flow(15.0, 70.0), flow(25.0, 90.0)],
        &[(100.0, 0.2), (300.0, 0.6)],
    );
    let v = against(&new, &base);
    let close = |name: &str, x: f64| assert!((v[name].unwrap() - x).abs() < 1e-12, "{name}");
    close("gain", 1.5);
    close("loss", 40.0 / 60.0);
    close("harm.throughput", 1.0 / 3.0);
    close("harm.rtt", 30.0 / 80.0);
    close("harm.completion_time", 0.25 / 0.5);
    assert_eq!(v.len(), NAMES.len());
}

#[test]
fn the_baseline_does_no_harm_to_itself() {
    let base = run(vec![flow(40.0, 50.0), flow(30.0, 40.0)], &[(10.0, 0.25)]);
    let v = against(&base, &base);
    assert_eq!((v["gain"], v["loss"]), (Some(1.0), Some(1.0)));
    for name in &NAMES[2..] {
        assert_eq!(v[*name], Some(0.0), "{name}");
    }
}

#[test]
fn nobody_to_harm() {
    let alone = run(vec![flow(40.0, 50.0)], &[]);
    let v = against(&alone, &alone);
    assert_eq!(v["gain"], Some(1.0));
    assert!(NAMES[1..].iter().all(|n| v[*n].is_none()));
}

#[test]
fn seeds_are_paired() {
    let seed = |seed, first: f64| SeedRun {
        seed,
        metrics: run(vec![flow(first, 50.0), flow(30.0, 40.0)], &[]),
    };
    let mut runs = vec![
        vec![seed(1, 40.0), seed(2, 50.0)],
        vec![seed(1, 60.0), seed(2, 50.0), seed(3, 1.0)],
    ];
    against_baselines(&[None, Some(0)], &mut runs);
    let gain = |case: usize, i: usize| runs[case][i].metrics.metrics.get("gain").copied();
    assert_eq!(gain(0, 0), Some(None));
    assert_eq!(gain(1, 0), Some(Some(1.5)));
    assert_eq!(gain(1, 1), Some(Some(1.0)));
    assert_eq!(gain(1, 2), None);
}
