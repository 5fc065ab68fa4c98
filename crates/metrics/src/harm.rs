//! What the first flow does to the others, against the same case with another first flow: gain, loss, harm.
//!
//! Gain and loss are the two ratios by which tests of "impact on standard traffic" compare camps (tcpeval,
//! draft-irtf-iccrg-tcpeval); with the baseline's own stack in the first flow both are 1. Harm is that of Ware et al. 2019,
//! `(solo - with) / solo` where more is better and `(with - solo) / with` where less is better, taken against the baseline
//! case instead of a case with the victims alone: the harm beyond that of the baseline's stack, negative if they fare better.

use std::collections::BTreeMap;

use super::traffic::SHORT_FLOWS;
use super::{RunMetrics, SeedRun, Values, mean, ratio, value};

/// Fills the metrics of [`NAMES`] in every run, seed by seed. `baseline[i]`: the case that case `i` is held against. A seed that
/// the baseline did not run says nothing: the names are left out of that run.
pub fn against_baselines(baseline: &[Option<usize>], runs: &mut [Vec<SeedRun>]) {
    let bases: Vec<Option<BTreeMap<u64, RunMetrics>>> = baseline
        .iter()
        .map(|b| {
            let runs = runs.get((*b)?)?;
            Some(runs.iter().map(|r| (r.seed, r.metrics.clone())).collect())
        })
        .collect();
    for (base, case) in bases.iter().zip(runs) {
        for run in case {
            match base {
                None => run.metrics.metrics.extend(undefined()),
                Some(base) => match base.get(&run.seed) {
                    Some(base) => {
                        let values = against(&run.metrics, base);
                        run.metrics.metrics.extend(values);
                    }
                    None => run
                        .metrics
                        .metrics
                        .retain(|name, _| !NAMES.contains(&name.as_str())),
                },
            }
        }
    }
}

/// True for a metric that needs the same seed of a baseline.
pub fn needs_baseline(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The metrics of a case that has no baseline.
pub(super) fn undefined() -> Values {
    NAMES.iter().map(|n| ((*n).to_owned(), None)).collect()
}

/// One run against the run of its baseline with the same seed.
pub fn against(run: &RunMetrics, base: &RunMetrics) -> Values {
    let both = |of: fn(&RunMetrics) -> Option<f64>| of(run).zip(of(base));
    let quotient = |of| both(of).and_then(|(x, b)| ratio(x, b));
    let harm_of_more = |of| both(of).and_then(|(x, b)| ratio(b - x, b));
    let harm_of_less = |of| both(of).and_then(|(x, b)| ratio(x - b, x));
    NAMES
        .iter()
        .copied()
        .map(str::to_owned)
        .zip([
            quotient(first_goodput),
            quotient(other_goodput),
            harm_of_more(other_goodput),
            harm_of_less(other_rtt),
            harm_of_less(completion_time),
        ])
        .collect()
}

fn first_goodput(run: &RunMetrics) -> Option<f64> {
    value(&run.flows.first()?.values, "goodput_mbps")
}

/// Of all flows but the first, Mbit/s.
fn other_goodput(run: &RunMetrics) -> Option<f64> {
    let others = others(run, "goodput_mbps")?;
    Some(others.iter().sum())
}

/// Mean over all flows but the first of their mean RTT, milliseconds.
fn other_rtt(run: &RunMetrics) -> Option<f64> {
    mean(&others(run, "rtt_ms.mean")?)
}

/// Of a metric of every flow but the first; `None` if one has none or there is no such flow.
fn others(run: &RunMetrics, name: &str) -> Option<Vec<f64>> {
    let others = run.flows.get(1..).filter(|o| !o.is_empty())?;
    others.iter().map(|f| value(&f.values, name)).collect()
}

/// Mean completion time of all short flows, seconds.
fn completion_time(run: &RunMetrics) -> Option<f64> {
    let rows = || run.traffic.iter().filter(|t| t.kind == SHORT_FLOWS);
    let of = |name: &'static str| rows().map(move |t| value(&t.values, name).unwrap_or(0.0));
    let sum: f64 = of("completed")
        .zip(of("completion_time_s.mean"))
        .map(|(n, x)| n * x)
        .sum();
    ratio(sum, of("completed").sum())
}

/// Names, in the order in which [`against`] computes them.
const NAMES: [&str; 5] = [
    "gain",
    "loss",
    "harm.throughput",
    "harm.rtt",
    "harm.completion_time",
];

#[cfg(test)]
mod tests {
    use super::super::{FlowMetrics, TrafficMetrics};
    use super::*;

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
            kind: SHORT_FLOWS.into(),
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
            metrics: undefined(),
            simulated_s: 1.0,
            delivered_packets: 1,
            fidelity: None,
        }
    }

    #[test]
    fn hand_numbers() {
        // The newcomer takes 60 where Reno took 40; two others fall from 30 + 30 to 15 + 25 and their RTT rises from 50 to
        // 80 ms; 100 mice in 0.2 s and 300 in 0.6 s, before: 0.25 s.
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
}
