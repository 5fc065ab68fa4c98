//! How many seeds a case needs: more are added until the 95 % interval of every mean that matters
//! is narrow enough.
//!
//! A case begins with the scenario's seeds, at least [`FIRST`], and is judged after each batch. A
//! batch adds half as many seeds as there are, at least two: looking after every single run would
//! stop too often at a moment at which the values happen to lie close together. Stopping by the
//! interval's own width still makes the stated 95 % a little optimistic; a test measures how much.
//! The decision depends on the case's own runs alone, so it is the same for any number of threads.

use crate::result::{CaseResult, Estimate, Estimates, PrecisionResult};
use fullpipe_metrics as metrics;
use fullpipe_metrics::Scope;
use fullpipe_scenario::{Precision, Scenario};

/// Seeds before a case is judged for the first time.
pub const FIRST: usize = 3;

/// Precision that a batch of seeds has reached, and whether more may help.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// For the result.
    pub reached: PrecisionResult,
    /// Further seeds may help.
    pub more: bool,
}

/// Seeds that each case of a scenario has at least.
pub fn seeds_of(scenario: &Scenario) -> usize {
    let (seeds, wanted) = (&scenario.seeds, scenario.measure.precision.as_ref());
    let possible = possible(seeds, wanted).len();
    wanted.map_or(seeds.len(), |wanted| {
        at_first(seeds.len(), wanted).min(possible)
    })
}

/// Seeds at the start: what the scenario asks for, at least [`FIRST`] as far as the cap allows.
pub(crate) fn at_first(seeds: usize, precision: &Precision) -> usize {
    seeds.max(FIRST.min(precision.max_seeds as usize))
}

/// Seeds of the next batch and all before, or `None` at the cap.
pub(crate) fn next(seeds: usize, precision: &Precision) -> Option<usize> {
    let wanted = (seeds + (seeds / 2).max(2)).min(precision.max_seeds as usize);
    (wanted > seeds).then_some(wanted)
}

/// The seeds a case may run with: those of the scenario, then the numbers after the largest of
/// them.
pub(crate) fn possible(seeds: &[u64], precision: Option<&Precision>) -> Vec<u64> {
    let mut all = seeds.to_vec();
    let last = seeds.iter().copied().max().unwrap_or(0);
    let missing = precision
        .map_or(0, |p| p.max_seeds as usize)
        .saturating_sub(seeds.len());
    all.extend((1..=missing as u64).map_while(|i| last.checked_add(i)));
    all
}

/// Judges a case by the widest of its intervals. A metric that is undefined in every seed is not
/// judged; one that is undefined in some, or has the mean zero and a spread, is never sure.
pub(crate) fn judge(case: &CaseResult, precision: &Precision) -> Judgement {
    let mut widest: Option<(f64, &str, Option<&str>)> = None;
    for metric in &precision.of {
        for (of, estimates) in rows(case, metric) {
            let Some(estimate) = estimates.get(metric) else {
                continue;
            };
            let Some(width) = relative_half_width(estimate) else {
                continue;
            };
            if widest.is_none_or(|(w, ..)| width > w) {
                widest = Some((width, metric, of));
            }
        }
    }
    let (width, metric, of) = widest.unwrap_or((f64::INFINITY, &precision.of[0], None));
    let reached = width <= precision.target;
    Judgement {
        reached: PrecisionResult {
            target: precision.target,
            achieved: width.is_finite().then_some(width),
            metric: metric.to_owned(),
            of: of.map(str::to_owned),
            reached,
        },
        // Where nothing is defined another seed is not likely to change that.
        more: !reached && widest.is_some(),
    }
}

fn rows<'a>(case: &'a CaseResult, metric: &str) -> Vec<(Option<&'a str>, &'a Estimates)> {
    let flows = case.flows.iter().map(|f| (f.name.as_str(), &f.metrics));
    let traffic = case.traffic.iter().map(|t| (t.name.as_str(), &t.metrics));
    let links = case.links.iter().map(|l| (l.name.as_str(), &l.metrics));
    let named = |(name, e)| (Some(name), e);
    match metrics::scope_of(metric) {
        Some(Scope::Flow | Scope::Traffic) => flows.chain(traffic).map(named).collect(),
        Some(Scope::Link) => links.map(named).collect(),
        Some(Scope::Case) | None => vec![(None, &case.metrics.0)],
    }
}

/// Half width of the 95 % interval over the mean; infinite where it cannot be had, `None` where the
/// metric is undefined in every seed.
fn relative_half_width(e: &Estimate) -> Option<f64> {
    let (Some(mean), Some([low, high])) = (e.mean, e.ci95) else {
        return (e.mean.is_some() || e.undefined > 0).then_some(f64::INFINITY);
    };
    let half = (high - low) / 2.0;
    Some(if half == 0.0 { 0.0 } else { half / mean.abs() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CaseMetrics, FlowResult, LinkResult, Params, SeedValues};

    fn precision(target: f64, max_seeds: u32) -> Precision {
        Precision {
            target,
            of: vec!["goodput_mbps".into()],
            max_seeds,
        }
    }

    fn case(flows: &[&[Option<f64>]]) -> CaseResult {
        let flow = |(i, samples): (usize, &&[Option<f64>])| FlowResult {
            name: format!("f{i}"),
            stack: "reno".into(),
            delivered_bytes: None,
            direction: None,
            rate_asked_mbps: None,
            streams: Vec::new(),
            metrics: Estimates::from([("goodput_mbps".to_owned(), Estimate::of(samples))]),
        };
        CaseResult {
            by_seed: SeedValues::default(),
            seeds_repeat: false,
            in_phase: false,
            params: Params::default(),
            seeds: (1..=flows[0].len() as u64).collect(),
            flows: flows.iter().enumerate().map(flow).collect(),
            traffic: vec![],
            links: vec![LinkResult {
                name: "l".into(),
                metrics: Estimates::from([(
                    "drops".to_owned(),
                    Estimate::of(&[Some(1.0), Some(3.0)]),
                )]),
            }],
            metrics: CaseMetrics::default(),
            precision: None,
            fidelity: None,
            partial: None,
            simulated_s: 1.0,
            warmup_s: 0.0,
            delivered_packets: 1,
            wall_s: None,
            packets_per_s: None,
        }
    }

    #[test]
    fn batches_grow_by_half_up_to_the_cap() {
        let p = precision(0.02, 30);
        let mut n = at_first(1, &p);
        let mut all = vec![n];
        while let Some(more) = next(n, &p) {
            n = more;
            all.push(n);
        }
        assert_eq!(all, [3, 5, 7, 10, 15, 22, 30]);
        assert_eq!(at_first(12, &p), 12);
        assert_eq!(at_first(1, &precision(0.02, 2)), 2);
        // More seeds than the cap are what the scenario asks for.
        assert_eq!(next(40, &p), None);
        assert_eq!(possible(&[7, 5], Some(&precision(0.02, 4))), [7, 5, 8, 9]);
        assert_eq!(possible(&[7, 5], None), [7, 5]);
        assert_eq!(possible(&[u64::MAX], Some(&p)), [u64::MAX]);
    }

    #[test]
    fn the_widest_interval_decides() {
        // Half width of (99, 101): t(1) * sqrt(2)/sqrt(2) = 12.706; of three equal ones 0.
        let c = case(&[
            &[Some(5.0), Some(5.0)],
            &[Some(99.0), Some(101.0)],
            &[None, None],
        ]);
        let j = judge(&c, &precision(0.13, 9));
        assert!((j.reached.achieved.unwrap() - 0.12706204736).abs() < 1e-9);
        assert_eq!(j.reached.of.as_deref(), Some("f1"));
        assert!(j.reached.reached && !j.more);
        let j = judge(&c, &precision(0.12, 9));
        assert!(!j.reached.reached && j.more);
    }

    #[test]
    fn what_cannot_be_sure_says_so() {
        let p = precision(0.5, 9);
        let some = judge(&case(&[&[Some(1.0), None]]), &p);
        assert!(!some.reached.reached && some.more && some.reached.achieved.is_none());
        let none = judge(&case(&[&[None, None]]), &p);
        assert!(!none.reached.reached && !none.more);
        let one = judge(&case(&[&[Some(1.0)]]), &p);
        assert!(!one.reached.reached && one.more);
        let nothing = judge(&case(&[&[Some(0.0), Some(0.0)]]), &p);
        assert!(nothing.reached.reached);
        let of_links = Precision {
            of: vec!["drops".into()],
            ..p
        };
        let j = judge(&case(&[&[Some(1.0)]]), &of_links);
        assert_eq!(j.reached.of.as_deref(), Some("l"));
        assert!((j.reached.achieved.unwrap() - 12.706204736 / 2.0).abs() < 1e-8);
    }

    /// Normal samples with a spread of 6 % of the mean, judged until 2 %: how often the final
    /// interval holds the mean.
    #[test]
    fn stopping_early_costs_little_of_the_95_percent() {
        let p = precision(0.02, 100);
        let mut state = 1u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut held = 0;
        let trials = 2000;
        for _ in 0..trials {
            let (mut samples, mut n) = (Vec::new(), at_first(1, &p));
            loop {
                while samples.len() < n {
                    let (u, v) = (uniform(), uniform());
                    let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                    samples.push(Some(100.0 + 6.0 * normal));
                }
                let c = case(&[&samples]);
                match next(n, &p).filter(|_| judge(&c, &p).more) {
                    Some(more) => n = more,
                    None => break,
                }
            }
            let [low, high] = Estimate::of(&samples).ci95.unwrap();
            held += i32::from(low <= 100.0 && 100.0 <= high);
        }
        let coverage = f64::from(held) / f64::from(trials);
        assert!((0.88..=0.96).contains(&coverage), "{coverage}");
    }
}
