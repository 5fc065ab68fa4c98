//! Two results side by side: the same scenario before and after a change, on two grounds, or with
//! two settings.
//!
//! Cases are matched by their parameters, whatever their order, then flows, traffic and links by
//! name. A difference is real when the 95 % interval of `b - a` leaves out zero. Where both sides
//! ran with the same seeds the runs are compared in pairs: with common random numbers the two runs
//! of a pair share their losses and arrivals, and what both have in common does not widen the
//! interval of their difference. Otherwise it is Welch's interval for two independent samples. With
//! a single seed on either side there is no interval: the difference is exact, and the threshold
//! alone judges it.
//!
//! Many numbers are compared at 95 % each: of those that differ by chance alone one in twenty looks
//! real.
//!
//! Two grounds are not two versions: they are judged by their agreement ([`crate::agreement`]),
//! curves and events before numbers, and of the numbers only by those that a ground must get right.

mod collect;
mod difference;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::agreement::{self, Distance};
use crate::result::{CaseResult, Params, RunResult};
use crate::store::{ResultDir, StoreError};
use collect::Collector;

pub(crate) use difference::Difference;
pub(crate) use runs::Runs;

/// What is compared, and the largest difference that counts as equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Largest accepted relative difference, `|b - a| / |a|`.
    pub threshold: f64,
    /// The same for single metrics, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// Metrics to compare; empty: all of the table.
    pub metrics: Vec<String>,
    /// Metrics, agreement of grounds, or whichever fits the two results.
    pub view: View,
}

/// Rows that decide whether two results agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The agreement, if the two are results of different grounds; the metrics otherwise.
    #[default]
    Auto,
    /// Every metric.
    Metrics,
    /// The agreement: see [`crate::agreement`].
    Agreement,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: DEFAULT_THRESHOLD,
            thresholds: BTreeMap::new(),
            metrics: Vec::new(),
            view: View::Auto,
        }
    }
}

impl Options {
    pub(crate) fn threshold_of(&self, metric: &str, view: View) -> f64 {
        let default = || match view {
            View::Agreement => agreement::threshold(metric).unwrap_or(self.threshold),
            _ => self.threshold,
        };
        let own = self.thresholds.get(metric).copied();
        own.unwrap_or_else(default)
    }
}

/// 5 %.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// Every compared number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// First result.
    pub a: Side,
    /// Second result.
    pub b: Side,
    /// By case, then flows, links and the case's own metrics.
    pub rows: Vec<Row>,
    /// Distances of curves, events and distributions; only where the agreement is judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Distance>,
    /// Cases, flows and links that only one of the two has.
    pub missing: Vec<Missing>,
    /// What was judged: `metrics` or `agreement`.
    pub view: View,
    /// True if no judged row and no distance is beyond its threshold and nothing is missing.
    pub agree: bool,
}

/// One of the two results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Version of the program.
    pub fullpipe: String,
    /// Scenario.
    pub scenario: String,
    /// Ground.
    pub ground: String,
    /// What is to be said about runs whose path or hosts were not what they claim
    /// ([`RunResult::untrue`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrue: Option<String>,
    /// What the test bed had to do with its numbers ([`RunResult::test_bed`]); absent where time is
    /// virtual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bed: Option<String>,
}

/// One metric of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Parameters of the case.
    pub params: Params,
    /// Flow or traffic it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Metric.
    pub metric: String,
    /// Unit of the metric; `1` for a ratio.
    pub unit: &'static str,
    /// First value.
    pub a: Number,
    /// Second value.
    pub b: Number,
    /// `b - a`, in pairs the mean of the pairs' differences; `null` if either is undefined.
    pub difference: Option<f64>,
    /// 95 % interval of the difference; with two seeds or more on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ci95: Option<[f64; 2]>,
    /// Where the interval comes from.
    pub method: Method,
    /// Pairs, if it is paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Size of the difference against the spread of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// `difference / |a|`; `null` if undefined or `a` is zero.
    pub relative: Option<f64>,
    /// Largest accepted relative difference.
    pub threshold: f64,
    /// Judgement.
    pub verdict: Verdict,
    /// False if it is told, but the result is not judged by it.
    pub judged: bool,
}

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Mean over seeds; `null` if undefined.
    pub mean: Option<f64>,
    /// 95 % interval; with two seeds or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Seeds.
    pub seeds: usize,
}

/// How the interval of a difference is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Student's interval of the mean difference of runs with the same seed.
    Paired,
    /// Welch's interval of the difference of two means.
    Welch,
    /// No interval: a single seed on a side, or nothing defined.
    Single,
}

/// Standardised size of a difference (Cohen 1988, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// `d_z`: mean difference of the pairs / their standard deviation; `d`: difference of the means
    /// / pooled standard deviation.
    pub measure: &'static str,
    /// Standard deviations.
    pub value: f64,
}

/// Judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Equal.
    Same,
    /// Different, but the interval holds zero: the seeds there are do not tell the two apart. Or
    /// undefined in more of the seeds on one side than on the other.
    Indistinguishable,
    /// A difference (a real one, if there is an interval) within the threshold.
    Within,
    /// A difference (a real one, if there is an interval) beyond the threshold, from or to zero, or
    /// between a number and none.
    Beyond,
}

/// Something only one result has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// `a` or `b`.
    pub missing_in: &'static str,
    /// Parameters of the case.
    pub params: Params,
    /// Flow, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Compares two stored results, run by run where both have the same seeds.
///
/// # Errors
/// If a file is missing or damaged.
pub fn compare_stored(
    a: &ResultDir,
    b: &ResultDir,
    options: &Options,
) -> Result<Comparison, StoreError> {
    let runs = [Runs::of(a)?, Runs::of(b)?];
    let results = [a.result()?, b.result()?];
    let mut comparison = with_runs(&results[0], &results[1], Some(&runs), options);
    if comparison.view == View::Agreement {
        let same = matching(&results[0], &results[1]);
        comparison.distances = agreement::distances([a, b], &results, &runs, &same, options)?;
        let beyond = |d: &Distance| d.verdict == Verdict::Beyond;
        comparison.agree &= !comparison.distances.iter().any(beyond);
    }
    Ok(comparison)
}

/// Compares two results by their means and intervals alone.
pub fn compare(a: &RunResult, b: &RunResult, options: &Options) -> Comparison {
    with_runs(a, b, None, options)
}

fn with_runs(
    a: &RunResult,
    b: &RunResult,
    runs: Option<&[Runs; 2]>,
    options: &Options,
) -> Comparison {
    let side = |r: &RunResult| Side {
        fullpipe: r.fullpipe.clone(),
        scenario: r.scenario.clone(),
        ground: r.ground.clone(),
        untrue: r.untrue(),
        test_bed: r.test_bed(),
    };
    let view = match options.view {
        View::Auto if a.ground != b.ground => View::Agreement,
        View::Auto => View::Metrics,
        asked => asked,
    };
    let mut c = Collector {
        options,
        runs,
        view,
        at: [0, 0],
        rows: Vec::new(),
        missing: Vec::new(),
    };
    let same = matching(a, b);
    for (i, case) in a.cases.iter().enumerate() {
        match same.iter().find(|[at, _]| *at == i) {
            Some(&[i, j]) => {
                c.at = [i, j];
                c.case(case, &b.cases[j]);
            }
            None => c.miss("b", case, None, None),
        }
    }
    let in_a: BTreeSet<_> = a.cases.iter().map(point).collect();
    for case in b.cases.iter().filter(|case| !in_a.contains(&point(case))) {
        c.miss("a", case, None, None);
    }
    let beyond = |r: &Row| r.judged && r.verdict == Verdict::Beyond;
    let agree = c.missing.is_empty() && !c.rows.iter().any(beyond);
    Comparison {
        a: side(a),
        b: side(b),
        rows: c.rows,
        distances: Vec::new(),
        missing: c.missing,
        view,
        agree,
    }
}

/// Indices of the cases with the same parameters.
pub fn matching(a: &RunResult, b: &RunResult) -> Vec<[usize; 2]> {
    let of_b = b.cases.iter().enumerate().rev();
    let in_b: BTreeMap<_, usize> = of_b.map(|(i, case)| (point(case), i)).collect();
    let of_a = a.cases.iter().enumerate();
    of_a.filter_map(|(i, case)| Some([i, *in_b.get(&point(case))?]))
        .collect()
}

/// Parameters without their order.
fn point(case: &CaseResult) -> BTreeMap<String, String> {
    case.params.texts().into_iter().collect()
}

#[cfg(test)]
mod tests;
