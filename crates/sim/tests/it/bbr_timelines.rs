//! The states of `bbr-linux` over time, its phases and estimates, beside those of two kernels.

use std::collections::BTreeMap;

use fullpipe_run::{FlowOutcome, Series, Trace};
use fullpipe_sim::run;

use crate::bbr_kernels::{PATHS, spec};

/// What Linux 6.1.192 and 6.12.117 (HZ 250) did with four seeds each, by
/// `scripts/bbr_timelines.py`: path, measure, least and most of the eight runs; seconds, segments
/// per second.
const KERNELS: &str = include_str!("bbr_timelines.txt");

/// Relative to what the kernels span: 2 % for times and rates, 4 % for RTTs and for phases, whose
/// length is counted in RTTs: the limits of `docs/linux.md`.
fn part(measure: &str) -> f64 {
    match measure {
        "up" | "down" | "cruise" | "probe_rtt_lasts" | "min_rtt" => 0.04,
        _ => 0.02,
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Step {
    at: f64,
    state: f64,
    gain: f64,
    bw: f64,
    min_rtt: f64,
}

fn steps(series: &Series) -> Vec<Step> {
    let column = |name| {
        let found = series.variables.iter().find(|(n, _)| *n == name);
        &found.unwrap().1
    };
    let (state, gain) = (column("state"), column("pacing_gain"));
    let (bw, min_rtt) = (column("bw"), column("min_rtt"));
    let times = series.rows.iter().map(|row| row.time.as_secs_f64());
    let step = |(i, at)| Step {
        at,
        state: state[i],
        gain: gain[i],
        bw: bw[i],
        min_rtt: min_rtt[i],
    };
    times.enumerate().map(step).collect()
}

/// The first step of each spell with one value of `key`.
fn spells<K: PartialEq>(steps: &[Step], key: impl Fn(&Step) -> K) -> Vec<Step> {
    let mut all = steps.to_vec();
    all.dedup_by(|later, earlier| key(later) == key(earlier));
    all
}

const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// The measures of `KERNELS`.
fn measures(flow: &FlowOutcome) -> BTreeMap<&'static str, f64> {
    let steps = steps(&flow.series);
    let states = spells(&steps, |step| step.state);
    let begin = |state| states.iter().find(|s| s.state == state).unwrap().at;
    let lasts = |of: f64, spells: &[Step]| {
        let whole = spells.windows(2).filter(move |pair| pair[0].state == of);
        mean(whole.map(|pair| pair[1].at - pair[0].at))
    };
    let phases = spells(&steps, |step| (step.state, (100.0 * step.gain).round()));
    // The phases after Drain or ProbeRTT and before ProbeRTT are cut short.
    let phase = |gain: f64| {
        let whole = phases.windows(2).filter(|pair| {
            pair[0].state == PROBE_BW
                && pair[1].state == PROBE_BW
                && (pair[0].gain - gain).abs() < 0.01
        });
        mean(whole.map(|pair| pair[1].at - pair[0].at))
    };
    let estimate = |value: fn(&Step) -> f64| {
        let probing = steps.windows(2).filter(|pair| pair[0].state == PROBE_BW);
        let (total, time) = probing.fold((0.0, 0.0), |(total, time), pair| {
            let span = pair[1].at - pair[0].at;
            (total + value(&pair[0]) * span, time + span)
        });
        total / time
    };
    BTreeMap::from([
        ("drain", begin(DRAIN)),
        ("probe_bw", begin(PROBE_BW)),
        ("probe_rtt", begin(PROBE_RTT)),
        ("probe_rtt_lasts", lasts(PROBE_RTT, &states)),
        ("up", phase(1.25)),
        ("down", phase(0.75)),
        ("cruise", phase(1.0)),
        ("bw", estimate(|step| step.bw)),
        ("min_rtt", estimate(|step| step.min_rtt)),
    ])
}

/// Eight seeds: the mean is to lie in what eight runs of the kernels span, or close to it.
#[test]
fn states_phases_and_estimates_are_the_kernels() {
    let mut apart = String::new();
    for (index, path) in PATHS.iter().enumerate() {
        let runs: Vec<_> = (1..=8)
            .map(|seed| {
                let spec = spec(path, seed, Trace::Full);
                measures(&run(&spec).unwrap().flows[0])
            })
            .collect();
        let lines = KERNELS.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [number, measure, least, most] = words[..] else {
                panic!("{line}")
            };
            if number.parse() != Ok(index) {
                continue;
            }
            let (least, most): (f64, f64) = (least.parse().unwrap(), most.parse().unwrap());
            let got = mean(runs.iter().map(|run| run[measure]));
            let part = part(measure);
            let inside = (least * (1.0 - part)..=most * (1.0 + part)).contains(&got);
            if !inside {
                apart += &format!("{:?}: {measure} {got} not in {least}..{most}\n", path.at);
            }
        }
    }
    assert!(apart.is_empty(), "\n{apart}");
}
