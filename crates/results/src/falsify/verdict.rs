//! What the worlds say about the expectations.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::World;
use crate::result::{CaseResult, Estimate, Params, evaluate};
use fullpipe_scenario::{Expectation, Scenario};

/// What came of holding a scenario's expectations against wrong worlds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Falsification {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Ground it ran on.
    pub ground: String,
    /// Run with what the scenario's `[quick]` sets; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Runs made now.
    pub made: usize,
    /// Runs taken over from an earlier time.
    pub reused: usize,
    /// In the order of the file.
    pub expectations: Vec<ExpectationTeeth>,
    /// Those of the file first.
    pub worlds: Vec<WorldResult>,
    /// Cases whose seeds all gave the same numbers: their intervals say nothing.
    pub same_for_all_seeds: Vec<Params>,
}

/// In which worlds an expectation fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Teeth")]
pub struct ExpectationTeeth {
    /// Name of the expectation.
    pub name: String,
    /// Line in the file.
    pub line: usize,
    /// Metric.
    pub metric: String,
    /// Passes in the scenario as it is, in every case.
    pub passes: bool,
    /// Worlds in which it fails in a case in which it passes as it is.
    pub caught: Vec<String>,
    /// Worlds in which the value is another one, and it passes all the same.
    pub missed: Vec<String>,
    /// Fails in no world.
    pub toothless: bool,
    /// The file says why that is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
}

/// A world, and the expectations that notice it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "World")]
pub struct WorldResult {
    /// What is wrong with it.
    pub about: String,
    /// Line of its `[[negative]]`; absent: made by the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Keys that differ, as `key=value`.
    pub set: Vec<String>,
    /// Caught, missed, or dead.
    pub effect: WorldEffect,
    /// Expectations that fail in it.
    pub caught_by: Vec<String>,
}

/// What a world does to the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorldEffect {
    /// An expectation fails.
    Caught,
    /// Numbers change, and every expectation passes.
    Missed,
    /// No metric of any case changes: the knob is dead.
    Dead,
}

impl Falsification {
    /// Expectations that fail nowhere, and whose file does not say why.
    pub fn toothless(&self) -> impl Iterator<Item = &ExpectationTeeth> {
        let all = self.expectations.iter();
        all.filter(|e| e.toothless && e.excuse.is_none())
    }

    /// Worlds of the file that no expectation catches.
    pub fn uncaught(&self) -> impl Iterator<Item = &WorldResult> {
        let all = self.worlds.iter();
        all.filter(|w| w.line.is_some() && w.effect != WorldEffect::Caught)
    }

    /// True if every expectation can fail, and every world that the file names is caught.
    pub fn passed(&self) -> bool {
        self.toothless().next().is_none() && self.uncaught().next().is_none()
    }

    /// The JSON text, with a line break at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers only");
        text.push('\n');
        text
    }

    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Falsification)
    }
}

/// Holds the expectations against the worlds. `cases[0]` is the scenario as it is, `cases[i + 1]`
/// are its cases in `worlds[i]`.
pub(super) fn judge(
    scenario: &Scenario,
    worlds: &[World],
    cases: &[Vec<CaseResult>],
) -> Falsification {
    let (real, others) = cases.split_first().expect("the scenario itself");
    let mut results: Vec<WorldResult> = Vec::new();
    for (world, other) in worlds.iter().zip(others) {
        let dead = real.iter().zip(other).all(|(a, b)| same_numbers(a, b));
        results.push(WorldResult {
            about: world.about.clone(),
            line: world.line,
            set: world.assignments(),
            effect: if dead {
                WorldEffect::Dead
            } else {
                WorldEffect::Missed
            },
            caught_by: Vec::new(),
        });
    }
    let mut expectations = Vec::new();
    for e in &scenario.expectations {
        let as_it_is = observed(e, real);
        let (mut caught, mut missed) = (Vec::new(), Vec::new());
        for (world, other) in results.iter_mut().zip(others) {
            let there = observed(e, other);
            let fails = |(case, here): (&String, &Observed)| {
                here.pass && !there.get(case).is_some_and(|there| there.pass)
            };
            if as_it_is.iter().any(fails) {
                caught.push(world.about.clone());
                world.caught_by.push(e.name.clone());
                world.effect = WorldEffect::Caught;
            } else if as_it_is != there {
                missed.push(world.about.clone());
            }
        }
        expectations.push(ExpectationTeeth {
            name: e.name.clone(),
            line: e.line,
            metric: e.metric.clone(),
            passes: as_it_is.values().all(|o| o.pass),
            toothless: caught.is_empty() && as_it_is.values().any(|o| o.pass),
            caught,
            missed,
            excuse: e.toothless.clone(),
        });
    }
    let same = real.iter().filter(|case| same_for_all_seeds(case));
    Falsification {
        expectations,
        worlds: results,
        same_for_all_seeds: same.map(|case| case.params.clone()).collect(),
        ..Falsification::default()
    }
}

/// A value and the judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Observed {
    value: Option<f64>,
    pass: bool,
}

/// What an expectation says of each case that it applies to.
fn observed(e: &Expectation, cases: &[CaseResult]) -> BTreeMap<String, Observed> {
    let results = evaluate(std::slice::from_ref(e), cases).into_iter();
    let of_case = results.map(|r| {
        let observed = Observed {
            value: r.observed,
            pass: r.pass,
        };
        (r.params.to_string(), observed)
    });
    of_case.collect()
}

/// True if two results differ in nothing but names and wall times.
fn same_numbers(a: &CaseResult, b: &CaseResult) -> bool {
    estimates(a).eq(estimates(b))
}

/// True if there are several seeds, and each metric is the same number with all of them.
fn same_for_all_seeds(case: &CaseResult) -> bool {
    let width = |e: &Estimate| e.ci95.map_or(0.0, |[low, high]| high - low);
    case.seeds.len() > 1 && estimates(case).all(|(_, e)| width(e) == 0.0 && e.undefined == 0)
}

/// Every metric of a case.
fn estimates(case: &CaseResult) -> impl Iterator<Item = (&String, &Estimate)> {
    let flows = case.flows.iter().flat_map(|f| &f.metrics);
    let traffic = case.traffic.iter().flat_map(|t| &t.metrics);
    let links = case.links.iter().flat_map(|l| &l.metrics);
    flows.chain(traffic).chain(links).chain(&case.metrics.0)
}
