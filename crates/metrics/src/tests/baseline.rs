//! Metrics of a case against its baseline.

use crate::{FlowMetrics, RunMetrics, TrafficMetrics, Values, against, hold_against};

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
        values: Values::from([("goodput_mbps", Some(goodput)), ("rtt_ms.mean", Some(rtt))]),
    }
}

fn run(flows: Vec<FlowMetrics>, mice: &[(f64, f64)]) -> RunMetrics {
    let mice = mice.iter().map(|(n, s)| TrafficMetrics {
        name: "mice".into(),
        kind: "short-flows".into(),
        stack: "reno".into(),
        values: Values::from([
            ("completed", Some(*n)),
            ("completion_time_s.mean", Some(*s)),
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
fn a_run_is_held_against_the_same_seed_or_loses_what_says_so() {
    let gain = |base: Option<&RunMetrics>| {
        let mut held = run(vec![flow(60.0, 50.0), flow(30.0, 40.0)], &[]);
        held.metrics = Values::from([("gain", None), ("jain", Some(0.5))]);
        hold_against(&mut held, base);
        assert_eq!(held.metrics["jain"], Some(0.5));
        held.metrics.get("gain").copied()
    };
    let base = run(vec![flow(40.0, 50.0), flow(30.0, 40.0)], &[]);
    assert_eq!(gain(Some(&base)), Some(Some(1.5)));
    assert_eq!(gain(None), None);
}
