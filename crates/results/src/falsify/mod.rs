//! Which expectations could fail at all: each is held against wrong worlds, in which the scenario's
//! subject is another one, or something that it is about is missing. An expectation that passes in
//! all of them says nothing about its subject.
//!
//! All worlds run as one scenario, whose cases are those of the worlds, each different one once.

mod search;
mod verdict;
mod world;

use std::collections::{BTreeSet, HashMap};

use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Scope, TrafficKind};
use fullpipe_run::Ground;
use fullpipe_scenario::{Case, Expectation, Overrides, Scenario};

use crate::result::{CaseResult, VERSION, by_seed};
use crate::run::{Bench, Options, RunError, Silent, is_random, seeds};
use crate::store::{Cache, sha256};
use search::Search;

pub use verdict::{
    ExpectationTeeth, Falsification, LeftOut, Nearest, Tighter, WorldEffect, WorldResult,
};
pub use world::{NOT_THE_OTHER, World, worlds};

/// A scenario beside its wrong worlds, ready to run.
#[derive(Clone, Debug)]
pub struct Trial {
    scenario: Scenario,
    worlds: Vec<World>,
    /// By world: expectations that are invalid in it.
    left_out: Vec<Vec<LeftOut>>,
    /// Every different case of all worlds.
    union: Scenario,
    /// Where the cases of the scenario are in the union; then those of each world.
    places: Vec<Vec<usize>>,
}

/// A world of the file that nothing can be held against.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: [[negative]] \"{about}\": {why}")]
pub struct NoWorld {
    /// File of the scenario.
    pub file: String,
    /// Line of the `[[negative]]`.
    pub line: usize,
    /// Description of the world, from the file.
    pub about: String,
    /// The error that reading the scenario with its `set` ends with.
    pub why: String,
}

impl NoWorld {
    /// The remedy, a sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        "change its `set` or what is expected, or take it out of the file"
    }
}

impl Trial {
    /// The worlds of a scenario that was read with these overrides. Those that change none of its
    /// cases are left out, and so are those made here that are invalid, or in which an expectation
    /// is. A `[[negative]]` is not: it is held against the expectations that are valid in it.
    ///
    /// # Errors
    /// A `[[negative]]` is invalid, or every expectation is in it.
    pub fn new(scenario: Scenario, overrides: &Overrides) -> Result<Trial, NoWorld> {
        let mut union = Union::default();
        let mut places = vec![union.add(&scenario.cases)];
        let (mut kept, mut all_left_out) = (Vec::new(), Vec::new());
        for world in worlds(&scenario) {
            let refused = |why: String| {
                world.line.map(|line| NoWorld {
                    file: scenario.origin.clone(),
                    line,
                    about: world.about.clone(),
                    why,
                })
            };
            let other = match world.of(&scenario, overrides) {
                Ok(other) => other,
                Err(why) => match refused(why) {
                    Some(refused) => return Err(refused),
                    None => continue,
                },
            };
            let left_out = left_out(&scenario, &other);
            if let Some(first) = left_out.first() {
                let why = format!("every expectation is invalid in it: {}", first.why);
                // What is inert is held against numbers.
                let nobody = world.inert.is_none() && left_out.len() == scenario.expectations.len();
                match refused(why) {
                    Some(refused) if nobody => return Err(refused),
                    Some(_) => {}
                    None => continue,
                }
            }
            let here = union.add(&other.cases);
            let known = places.contains(&here);
            if !known || world.line.is_some() {
                places.push(here);
                kept.push(world);
                all_left_out.push(left_out);
            }
        }
        let mut together = scenario.clone();
        together.cases = union.cases;
        together.expectations.clear();
        together.measure.precision = None;
        Ok(Trial {
            scenario,
            worlds: kept,
            left_out: all_left_out,
            union: together,
            places,
        })
    }

    /// Number of worlds.
    pub fn worlds(&self) -> usize {
        self.worlds.len()
    }

    /// Each world with the expectations that are invalid in it.
    pub fn left_out(&self) -> impl Iterator<Item = (&World, &[LeftOut])> {
        let left_out = self.left_out.iter().map(Vec::as_slice);
        self.worlds.iter().zip(left_out)
    }

    /// Whether an expectation is valid in a world, counted from 0.
    fn applies(&self, expectation: &Expectation, world: usize) -> bool {
        let mut left_out = self.left_out[world].iter();
        left_out.all(|out| out.line != expectation.line)
    }

    /// What an expectation measures is gone with what a world, counted from 0, switches off: the
    /// numbers of that flow or traffic, and with a flow those of all flows together. What a queue
    /// or another flow has no longer is what the world does to it.
    fn is_gone(&self, expectation: &Expectation, world: usize) -> bool {
        let Some(off) = self.worlds[world].switched_off() else {
            return false;
        };
        let is_off = |name: &str| name == off;
        let cases = &self.scenario.cases;
        match metrics::scope(&expectation.metric) {
            Some(Scope::Link) => false,
            Some(Scope::Case) => {
                let mut flows = cases.iter().flat_map(|case| case.flows.iter());
                flows.any(|flow| is_off(&flow.name))
            }
            Some(Scope::Flow | Scope::Traffic) | None => match &expectation.flow {
                Some(name) => is_off(name),
                // The only one that has the metric is meant.
                None => {
                    let mut traffic = cases.iter().flat_map(|case| case.traffic.iter());
                    traffic.any(|t| is_off(&t.name) && has(t.kind, &expectation.metric))
                }
            },
        }
    }

    /// Number of runs, if every world is looked at: different cases times their seeds, and those
    /// of the scenario as it is with other seeds.
    pub fn runs(&self, ground: &dyn Ground) -> usize {
        let cases = self.union.cases.iter();
        let worlds: usize = cases
            .map(|case| seeds(&self.union, case, ground).len())
            .sum();
        worlds + self.drawn(ground).len() * self.union.seeds.len()
    }

    /// Where the cases of the scenario are whose numbers depend on the seed.
    fn drawn(&self, ground: &dyn Ground) -> BTreeSet<usize> {
        let here = self.places[0].iter().copied();
        let random = |&place: &usize| is_random(&self.union.cases[place], ground);
        here.filter(random).collect()
    }

    /// The union with as many seeds behind its own.
    fn with_other_seeds(&self) -> Scenario {
        let mut other = self.union.clone();
        let last = other.seeds.iter().copied().max().unwrap_or(0);
        let count = other.seeds.len() as u64;
        other.seeds = (1..=count).map(|n| last.wrapping_add(n)).collect();
        other
    }

    /// Runs the worlds and judges the expectations: in every world, or each expectation only up
    /// to the first one in which it fails.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(
        &self,
        depth: Depth,
        options: &Options<'_>,
        ground: &dyn Ground,
        cache: Option<&Cache>,
    ) -> Result<Falsification, RunError> {
        let bench = Bench::new(&self.union, options, ground, cache);
        let mut bench = bench.by_seed(by_seed(&self.scenario));
        match depth {
            Depth::EveryWorld => bench.need(0..self.union.cases.len())?,
            Depth::FirstFailure => Search::new(self, &mut bench).run()?,
        }
        let in_world = |bench: &Bench<'_>, places: &[usize]| -> Vec<Option<CaseResult>> {
            let cases = places.iter().zip(&self.scenario.cases);
            cases
                .map(|(&place, case)| bench.result(place, case))
                .collect()
        };
        let worlds = self.places.iter();
        let cases: Vec<_> = worlds.map(|places| in_world(&bench, places)).collect();
        let (mut made, mut reused) = (bench.made, bench.reused);
        // The scenario itself once more, with other seeds, where chance has a part in it.
        let other_seeds = self.with_other_seeds();
        let mut again: Vec<Option<CaseResult>> = vec![None; self.scenario.cases.len()];
        if depth == Depth::EveryWorld {
            let quiet = Options {
                progress: &Silent,
                ..*options
            };
            let bench = Bench::new(&other_seeds, &quiet, ground, cache);
            let mut bench = bench.by_seed(by_seed(&self.scenario));
            bench.need(self.drawn(ground))?;
            let there = in_world(&bench, &self.places[0]).into_iter();
            let same = cases[0].iter().cloned();
            again = there
                .zip(same)
                .map(|(there, same)| there.or(same))
                .collect();
            (made, reused) = (made + bench.made, reused + bench.reused);
        }
        let judged = verdict::judge(self, &cases, &again, depth, ground);
        Ok(Falsification {
            fullpipe: VERSION.to_owned(),
            scenario: self.scenario.name.clone(),
            scenario_sha256: sha256(self.scenario.text.as_bytes()),
            ground: ground.name().to_owned(),
            quick: self.scenario.quick,
            left_out: self.scenario.left_out.clone(),
            first_failure: depth == Depth::FirstFailure,
            made,
            reused,
            ..judged
        })
    }
}

/// The expectations of a scenario that are invalid in a world.
fn left_out(scenario: &Scenario, other: &Scenario) -> Vec<LeftOut> {
    let of = |e: &Expectation| {
        let mut all = other.inapplicable.iter();
        let invalid = all.find(|invalid| invalid.line == e.line)?;
        Some(LeftOut {
            name: e.name.clone(),
            line: e.line,
            why: invalid.why.clone(),
        })
    };
    scenario.expectations.iter().filter_map(of).collect()
}

/// Traffic of this kind has the metric, or one that an expression is made of.
fn has(kind: TrafficKind, metric: &str) -> bool {
    let parsed = Expression::parse(metric);
    let mut parts = parsed.iter().flat_map(|e| e.metrics());
    parts.any(|name| metrics::find(Scope::Traffic, name).is_some_and(|m| m.is_of_kind(kind)))
}

/// Number of worlds in which an expectation is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Into every world.
    #[default]
    EveryWorld,
    /// Up to the first one in which it fails.
    FirstFailure,
}

/// The different cases of several worlds.
#[derive(Default)]
struct Union {
    cases: Vec<Case>,
    places: HashMap<String, usize>,
}

impl Union {
    /// Where these cases are, those that were not there before at the end.
    fn add(&mut self, cases: &[Case]) -> Vec<usize> {
        let text = |case: &Case| format!("{}{:?}", case.key_text(), case.flows);
        let mut at = Vec::new();
        for case in cases {
            // Two equal cases are not the same if they are measured against different ones.
            let baseline = case.baseline.and_then(|i| cases.get(i));
            let key = format!("{}\n{}", text(case), baseline.map(text).unwrap_or_default());
            let next = self.cases.len();
            let place = *self.places.entry(key).or_insert(next);
            if place == next {
                let mut case = case.clone();
                case.index = next;
                self.cases.push(case);
            }
            at.push(place);
        }
        for (case, &place) in cases.iter().zip(&at) {
            self.cases[place].baseline = case.baseline.map(|i| at[i]);
        }
        at
    }
}
