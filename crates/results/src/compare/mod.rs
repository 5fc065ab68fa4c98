//! Two results side by side: the same scenario before and after a change, on two grounds, or with
//! two settings.
//!
//! Cases are matched by their parameters, whatever their order, then flows, traffic and links by
//! name. A difference is real when the 95 % interval of `b - a` leaves out zero, and still is among
//! all that are judged with it (`many`). Where both sides
//! ran with the same seeds the runs are compared in pairs: with common random numbers the two runs
//! of a pair share their losses and arrivals, and what both have in common does not widen the
//! interval of their difference. Otherwise it is Welch's interval for two independent samples. A
//! single seed on one side is held against the interval in which a run of the other side would lie;
//! with one on both sides there is no interval: the difference is exact, and the threshold alone
//! judges it.
//!
//! Two grounds are not two versions: they are judged by their agreement ([`crate::agreement`]),
//! curves and events before numbers, and of the numbers only by those that a ground must get right,
//! each of them alone: whoever claims that two agree is not helped by having asked for more.

mod collect;
pub(crate) mod difference;
mod many;
pub(crate) mod options;
mod ratio;
pub(crate) mod row;
pub(crate) mod runs;

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::agreement::{self, Distance};
use crate::result::{CaseResult, Params, RunResult};
use crate::store::{ResultDir, StoreError, quantity};
use collect::Collector;
use fullpipe_metrics as metrics;
use fullpipe_metrics::Expression;
pub use runs::Runs;

pub use options::{DEFAULT_THRESHOLD, Options, View};
pub use ratio::Ratio;
pub use row::{Effect, Method, Missing, Number, Row, Verdict};

/// Every compared number.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// First result.
    pub a: Side,
    /// Second result.
    pub b: Side,
    /// By case, then flows, links and the case's own metrics.
    pub rows: Vec<Row>,
    /// Distances of curves, events and distributions; only where the agreement is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Distance>,
    /// Cases, flows and links that only one of the two has.
    pub missing: Vec<Missing>,
    /// Cases that do not count: on one side a run was not what the scenario says (flagged), and
    /// [`Options::with_flagged`] was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Params>,
    /// Of the metrics that were asked for those that neither side has: a variable of no controller,
    /// an expression without a metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What was judged: `metrics` or `agreement`.
    pub view: View,
    /// One run on each side, in real time: how far two runs of the same are apart is not known, so
    /// that only goodput, round trips and completion times are judged, unless others are asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
    /// True if something was compared, no judged row and no distance is beyond its threshold and
    /// nothing that is judged is missing.
    pub agree: bool,
}

/// One of the two results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    /// Version of the program.
    pub fullpipe: String,
    /// Scenario.
    pub scenario: String,
    /// Ground.
    pub ground: String,
    /// The system whose TCP made its runs, on ground `linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Stacks that fullpipe brought into that system, which has none of that name: their flows
    /// are not the system's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<String>,
    /// What its means leave out ([`RunResult::warmup`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// What is to be said about runs whose path or hosts were not what they claim
    /// ([`RunResult::untrue`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrue: Option<String>,
    /// What the test bed had to do with its numbers ([`RunResult::test_bed`]); absent where time is
    /// virtual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_bed: Option<String>,
}

/// What `compare --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Compared {
    /// One scenario, on either side.
    Pair(Box<Comparison>),
    /// Every scenario that two studies have in common.
    Studies {
        /// True if every pair of results agrees.
        agree: bool,
        /// One per scenario of the studies.
        results: Vec<Comparison>,
    },
}

impl Compared {
    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Compared)
    }
}

impl From<Vec<Comparison>> for Compared {
    fn from(mut all: Vec<Comparison>) -> Self {
        match all.pop() {
            Some(only) if all.is_empty() => Self::Pair(Box::new(only)),
            last => {
                all.extend(last);
                Self::Studies {
                    agree: all.iter().all(|c| c.agree),
                    results: all,
                }
            }
        }
    }
}

impl Comparison {
    /// True if no case is left that counts, on neither side.
    pub fn is_empty(&self) -> bool {
        !self.left_out.is_empty() && self.says_nothing()
    }

    /// Nothing to compare, and nothing that only one side has and should not.
    pub(crate) fn says_nothing(&self) -> bool {
        self.compares_nothing() && !self.lacks_something()
    }

    fn lacks_something(&self) -> bool {
        self.missing.iter().any(|m| m.judged)
    }

    fn compares_nothing(&self) -> bool {
        self.rows.is_empty() && self.distances.is_empty()
    }

    fn drop_left_out(&mut self) {
        let cases = &self.left_out;
        self.rows.retain(|r| !cases.contains(&r.params));
        self.distances.retain(|d| !cases.contains(&d.params));
        self.missing.retain(|m| !cases.contains(&m.params));
    }

    /// Where nothing is left to compare the two do not agree.
    fn agrees(&self) -> bool {
        let row = |r: &Row| r.judged && r.verdict == Verdict::Beyond;
        let distance = |d: &Distance| d.verdict == Verdict::Beyond;
        !self.compares_nothing()
            && !self.lacks_something()
            && !self.rows.iter().any(row)
            && !self.distances.iter().any(distance)
    }
}

/// Without the cases that are left out; what stays decides whether two results agree, and how many
/// numbers chance had its go at.
fn settle(all: &mut [Comparison]) {
    all.iter_mut().for_each(Comparison::drop_left_out);
    let of_metrics = all.iter_mut().filter(|c| c.view == View::Metrics);
    many::judge(of_metrics.flat_map(|c| &mut c.rows));
    for comparison in all {
        comparison.agree = comparison.agrees();
    }
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
    let mut one = compare_all([(a, b)], options)?;
    Ok(one.pop().expect("a comparison of every pair"))
}

/// The same of several pairs, whose numbers are judged together.
///
/// # Errors
/// If a file is missing or damaged.
pub fn compare_all<'a>(
    pairs: impl IntoIterator<Item = (&'a ResultDir, &'a ResultDir)>,
    options: &Options,
) -> Result<Vec<Comparison>, StoreError> {
    let collected = pairs.into_iter().map(|(a, b)| {
        let runs = [Runs::of(a)?, Runs::of(b)?];
        let results = [a.result()?, b.result()?];
        let mut comparison = with_runs(&results[0], &results[1], Some(&runs), options);
        if comparison.view == View::Agreement {
            let same = matching(&results[0], &results[1]);
            comparison.distances = agreement::distances([a, b], &results, &runs, &same, options)?;
        }
        Ok(comparison)
    });
    let mut all = collected.collect::<Result<Vec<_>, StoreError>>()?;
    settle(&mut all);
    Ok(all)
}

/// Compares two results by their means and intervals alone.
pub fn compare(a: &RunResult, b: &RunResult, options: &Options) -> Comparison {
    let mut one = [with_runs(a, b, None, options)];
    settle(&mut one);
    let [comparison] = one;
    comparison
}

/// All that there is to compare, not yet judged as a whole.
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
        kernel: r.kernel.clone(),
        brought: r.brought.clone(),
        warmup: r.warmup(),
        untrue: r.untrue(),
        test_bed: r.test_bed(),
    };
    let view = match options.view {
        View::Auto if (&a.ground, &a.kernel) != (&b.ground, &b.kernel) => View::Agreement,
        View::Auto => View::Metrics,
        asked => asked,
    };
    let single = view == View::Metrics
        && [a, b].iter().all(|r| {
            let of_one = r.cases.iter().all(|case| case.seeds.len() == 1);
            of_one && r.cases.iter().any(|case| case.fidelity.is_some())
        });
    let mut c = Collector {
        options,
        runs,
        view,
        single,
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
            None => c.miss("b", case, None),
        }
    }
    let in_a: BTreeSet<_> = a.cases.iter().map(point).collect();
    for case in b.cases.iter().filter(|case| !in_a.contains(&point(case))) {
        c.miss("a", case, None);
    }
    let left_out = match options.with_flagged {
        true => Vec::new(),
        false => flagged(a, b, &same),
    };
    let asked = options.metrics.iter();
    Comparison {
        a: side(a),
        b: side(b),
        rows: c.rows,
        distances: Vec::new(),
        missing: c.missing,
        left_out,
        unknown: asked
            .filter(|m| !has(a, m) && !has(b, m))
            .cloned()
            .collect(),
        view,
        single,
        agree: true,
    }
}

/// Cases with runs that were not what the scenario says, on either side; of the same case the
/// parameters as `a` has them.
fn flagged(a: &RunResult, b: &RunResult, same: &[[usize; 2]]) -> Vec<Params> {
    let of_a = a.cases.iter().enumerate().filter(|(i, case)| {
        let other = same.iter().find(|[at, _]| at == i);
        case.is_flagged() || other.is_some_and(|[_, j]| b.cases[*j].is_flagged())
    });
    let alone = b.cases.iter().enumerate().filter(|(j, case)| {
        let is_of_b_alone = same.iter().all(|[_, at]| at != j);
        is_of_b_alone && case.is_flagged()
    });
    let all = of_a.chain(alone).map(|(_, case)| case.params.clone());
    all.collect()
}

/// Indices of the cases with the same parameters.
pub fn matching(a: &RunResult, b: &RunResult) -> Vec<[usize; 2]> {
    let of_b = b.cases.iter().enumerate().rev();
    let in_b: BTreeMap<_, usize> = of_b.map(|(i, case)| (point(case), i)).collect();
    let of_a = a.cases.iter().enumerate();
    of_a.filter_map(|(i, case)| Some([i, *in_b.get(&point(case))?]))
        .collect()
}

/// A result has the metric, or every metric of the expression, whether it has a value or not.
fn has(result: &RunResult, text: &str) -> bool {
    let names = match metrics::scope_of(text) {
        Some(_) => vec![text.to_owned()],
        None => Expression::parse(text).map_or_else(
            |_| Vec::new(),
            |expression| {
                expression
                    .metrics()
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            },
        ),
    };
    let case_has = |case: &CaseResult, name: &str| {
        let flows = case.flows.iter().map(|f| &f.metrics);
        let traffic = case.traffic.iter().map(|t| &t.metrics);
        let links = case.links.iter().map(|l| &l.metrics);
        let mut all = flows.chain(traffic).chain(links).chain([&case.metrics.0]);
        all.any(|of| of.contains_key(name))
    };
    let any_has = |name: &String| result.cases.iter().any(|case| case_has(case, name));
    !names.is_empty() && names.iter().all(any_has)
}

/// Parameters without their order. `40ms` and `0.04s` are one value of a key; names of cases, whose
/// axes have no dot, are what they are.
fn point(case: &CaseResult) -> BTreeMap<String, String> {
    let value = |key: &str, text: String| match quantity(&text).filter(|_| key.contains('.')) {
        Some((number, unit)) => format!("{number} {unit}"),
        None => text,
    };
    let texts = case.params.texts().into_iter();
    let values = texts.map(|(key, text)| {
        let value = value(&key, text);
        (key, value)
    });
    values.collect()
}

#[cfg(test)]
mod tests;
