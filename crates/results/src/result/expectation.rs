//! Expectations held against cases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::verdict;
use super::{CaseResult, Estimate, Params, json};
use crate::compare::difference::{self, Difference, NOISE, size};
use crate::label;
use fullpipe_metrics::METRICS;
use fullpipe_scenario::{Against, Expectation, HoldsFor};

/// An expectation held against one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationResult {
    /// Name of the expectation.
    pub name: String,
    /// The case.
    pub params: Params,
    /// Mean over seeds, or what `holds_for` asks for: the worst seed, a quantile; `null` if
    /// undefined, which fails.
    pub observed: Option<f64>,
    /// 95 % interval of the mean; with two seeds or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ci95: Option<[f64; 2]>,
    /// Smallest and largest accepted value; `null` where open. Of a difference from another case
    /// (`agrees_with`) half of its 95 % interval to either side of 0, `null` where it has none.
    #[serde(
        serialize_with = "json::open_bound",
        deserialize_with = "json::closed_bound"
    )]
    #[schemars(with = "[Option<f64>; 2]")]
    pub bound: [f64; 2],
    /// What of the seeds must lie in the bound, and is observed: absent where the 95 % interval of
    /// their mean must overlap it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_for: Option<String>,
    /// An end of the bound lies in the 95 % interval, or an interval is asked for that one seed
    /// does not have: neither shown nor contradicted; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// False if the bound is missed: by the whole interval, or by what `holds_for` asks for.
    pub pass: bool,
    /// What is observed in place of the metric alone, where it is held against another case:
    /// `difference from path.buffer = 4BDP`, `ratio to flow.main.stack = cubic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Metric.
    pub metric: String,
    /// Flow it is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link it is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Document or reason of the bound, as the file says it.
    pub source: String,
}

/// Holds the expectations against the cases they apply to, in the order of the file.
pub fn evaluate(expectations: &[Expectation], cases: &[CaseResult]) -> Vec<ExpectationResult> {
    let judged = expectations.iter().flat_map(|e| {
        let points = points(e).into_iter();
        points.filter_map(|point| judged_at(e, point, |case| cases.get(case)))
    });
    judged.collect()
}

/// Where an expectation is judged: the index of a case, and of the one it is held against.
pub(crate) type Point = (usize, Option<usize>);

/// All points of an expectation, in the order of its cases.
pub(crate) fn points(e: &Expectation) -> Vec<Point> {
    match e.pairs.is_empty() {
        true => e.cases.iter().map(|&case| (case, None)).collect(),
        false => e.pairs.iter().map(|&(a, b)| (a, Some(b))).collect(),
    }
}

/// The judgement at one point; `None` if its cases are not there.
pub(crate) fn judged_at<'a>(
    e: &Expectation,
    (case, peer): Point,
    cases: impl Fn(usize) -> Option<&'a CaseResult>,
) -> Option<ExpectationResult> {
    let case = cases(case)?;
    Some(match peer {
        None => {
            let values = of_seeds(e, case);
            judge(e, case, &values, &estimate(e, case), case.seeds_repeat)
        }
        Some(peer) => held_against(e, case, cases(peer)?),
    })
}

fn estimate(e: &Expectation, case: &CaseResult) -> Estimate {
    case.estimate(&e.metric, e.flow.as_deref(), e.link.as_deref())
        .unwrap_or_default()
}

fn of_seeds(e: &Expectation, case: &CaseResult) -> Vec<Option<f64>> {
    let of = case.of_seeds(&e.metric, e.flow.as_deref(), e.link.as_deref());
    of.unwrap_or_default()
}

/// Holds the values of the seeds against the bound.
fn judge(
    e: &Expectation,
    case: &CaseResult,
    values: &[Option<f64>],
    estimate: &Estimate,
    fixed: bool,
) -> ExpectationResult {
    let found = verdict(e.holds_for, values, estimate, fixed, e.bound);
    ExpectationResult {
        holds_for: (e.holds_for != HoldsFor::Overlap).then(|| e.holds_for.to_string()),
        unclear: found.unclear,
        pass: found.pass,
        ..said(e, case, found.observed, estimate.ci95, e.bound)
    }
}

/// The result of an expectation that does not look at single seeds.
fn said(
    e: &Expectation,
    case: &CaseResult,
    observed: Option<f64>,
    ci95: Option<[f64; 2]>,
    bound: (f64, f64),
) -> ExpectationResult {
    ExpectationResult {
        name: e.name.clone(),
        params: case.params.clone(),
        observed,
        observed_ci95: ci95,
        bound: [bound.0, bound.1],
        holds_for: None,
        unclear: false,
        pass: observed.is_some_and(|v| bound.0 <= v && v <= bound.1),
        against: None,
        metric: e.metric.clone(),
        flow: e.flow.clone(),
        link: e.link.clone(),
        source: e.source.clone(),
    }
}

fn held_against(e: &Expectation, case: &CaseResult, peer: &CaseResult) -> ExpectationResult {
    let (how, judged) = match e.against {
        Against::Ratio => ("ratio to", ratio(e, case, peer)),
        _ => ("difference from", agreement(e, case, peer)),
    };
    ExpectationResult {
        against: Some(format!("{how} {}", peer_words(&case.params, &peer.params))),
        ..judged
    }
}

/// A case by what tells it from the one that is judged.
fn peer_words(own: &Params, peer: &Params) -> String {
    let both = label::texts([own, peer]);
    let differs = |param: &&(String, String)| !both[0].contains(param);
    let words = both[1].iter().filter(differs);
    let words: Vec<String> = words
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    match words.is_empty() {
        true => "the same case".to_owned(),
        false => words.join(", "),
    }
}

/// The values of the seeds that both cases ran with, the peer's first, as `fullpipe compare` pairs
/// them.
fn pairs(e: &Expectation, case: &CaseResult, peer: &CaseResult) -> Option<Vec<[f64; 2]>> {
    let of = |case: &CaseResult| -> Vec<_> {
        let seeds = case.seeds.iter().map(|seed| *seed as i64);
        seeds.zip(of_seeds(e, case)).collect()
    };
    difference::pairs(&of(peer), &of(case))
}

/// The quotient of two means, and its interval. Of single seeds: that of the values with the same
/// seed.
fn ratio(e: &Expectation, case: &CaseResult, peer: &CaseResult) -> ExpectationResult {
    let (a, b) = (estimate(e, case), estimate(e, peer));
    let over = |a: Option<f64>, b: Option<f64>| {
        let pair = a.zip(b).filter(|(_, b)| *b != 0.0);
        pair.map(|(a, b)| a / b)
    };
    let (mean, half) = match pairs(e, case, peer) {
        Some(pairs) => {
            let [x, y] = [0, 1].map(|i| pairs.iter().map(|pair| pair[i]).sum::<f64>());
            let mean = over(Some(y), Some(x));
            (mean, mean.and_then(|q| half_of_pairs(&pairs, q)))
        }
        None => {
            let mean = over(a.mean, b.mean);
            (mean, half_of_samples(&a, &b, mean))
        }
    };
    let interval = mean.zip(half).map(|(q, half)| [q - half, q + half]);
    let estimate = Estimate {
        mean,
        ci95: interval.filter(|i| i[0].is_finite()),
        undefined: 0,
    };
    let (own, others) = (of_seeds(e, case), of_seeds(e, peer));
    let values: Vec<Option<f64>> = own.iter().zip(&others).map(|(a, b)| over(*a, *b)).collect();
    let fixed = case.seeds_repeat && peer.seeds_repeat;
    judge(e, case, &values, &estimate, fixed)
}

/// Half of the 95 % interval of the quotient `q` of the means of pairs: that of the mean of
/// `y - q x`, in means of `x` (Cochran, Sampling Techniques, 3rd edition 1977, section 2.11).
fn half_of_pairs(pairs: &[[f64; 2]], q: f64) -> Option<f64> {
    let rests: Vec<_> = pairs.iter().map(|[x, y]| Some(y - q * x)).collect();
    let mean = pairs.iter().map(|[x, _]| x).sum::<f64>() / pairs.len() as f64;
    Some(half_width(Estimate::of(&rests).ci95?) / mean.abs())
}

/// The same of two independent samples, by the delta method.
fn half_of_samples(a: &Estimate, b: &Estimate, q: Option<f64>) -> Option<f64> {
    let relative = |x: &Estimate| Some(half_width(x.ci95?) / x.mean?);
    Some((q? * relative(a)?.hypot(relative(b)?)).abs())
}

fn is_count(metric: &str) -> bool {
    METRICS.iter().any(|m| m.name == metric && m.count)
}

fn half_width([low, high]: [f64; 2]) -> f64 {
    (high - low) / 2.0
}

/// Two cases agree if the 95 % interval of their difference holds zero. Without an interval (one
/// seed) nothing is shown and nothing contradicted.
fn agreement(e: &Expectation, case: &CaseResult, peer: &CaseResult) -> ExpectationResult {
    let (a, b) = (estimate(e, case), estimate(e, peer));
    let (na, nb) = (case.seeds.len(), peer.seeds.len());
    let fixed = case.seeds_repeat && peer.seeds_repeat;
    let pairs = pairs(e, case, peer);
    let mut found = match &pairs {
        Some(pairs) => Difference::paired(pairs),
        None => Difference::of_samples(&b, nb, &a, na),
    };
    if is_count(&e.metric) && !fixed {
        let pairs = pairs.map(|pairs| pairs.len());
        found = found.of_counts(pairs.unwrap_or(nb), pairs.unwrap_or(na));
    }
    let width = match found.interval {
        Some(interval) => half_width(interval),
        // One seed stands for all.
        None if fixed => 0.0,
        None => {
            let known = found.mean.is_some();
            return ExpectationResult {
                pass: known,
                unclear: known,
                ..said(e, case, found.mean, None, e.bound)
            };
        }
    };
    let room = width.max(NOISE * size(a.mean.iter().chain(&b.mean)));
    said(e, case, found.mean, None, (0.0 - room, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_bounds_are_null() {
        let e = ExpectationResult {
            name: "n".into(),
            params: Params::default(),
            observed: None,
            observed_ci95: None,
            bound: [0.5, f64::INFINITY],
            holds_for: None,
            unclear: false,
            pass: false,
            against: None,
            metric: "jain".into(),
            flow: None,
            link: None,
            source: String::new(),
        };
        let text = serde_json::to_string(&e).unwrap();
        assert!(
            text.contains(r#""observed":null,"bound":[0.5,null],"pass":false"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ExpectationResult>(&text).unwrap(), e);
    }
}
