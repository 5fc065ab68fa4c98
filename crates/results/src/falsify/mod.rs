//! Which expectations could fail at all: each is held against wrong worlds, in which the scenario's
//! subject is another one, or something that it is about is missing. An expectation that passes in
//! all of them says nothing about its subject.
//!
//! All worlds run as one scenario, whose cases are those of the worlds, each different one once.

mod search;
mod verdict;
mod world;

use std::collections::{BTreeSet, HashMap};

use fullpipe_run::Ground;
use fullpipe_scenario::{Case, Overrides, Scenario};

use crate::result::{CaseResult, VERSION, by_seed};
use crate::run::{Bench, Options, RunError, Silent, is_random, seeds};
use crate::store::{Cache, sha256};
use search::Search;

pub use verdict::{ExpectationTeeth, Falsification, Nearest, Tighter, WorldEffect, WorldResult};
pub use world::{NOT_THE_OTHER, World, worlds};

/// A scenario beside its wrong worlds, ready to run.
#[derive(Clone, Debug)]
pub struct Trial {
    scenario: Scenario,
    worlds: Vec<World>,
    /// Every different case of all worlds.
    union: Scenario,
    /// Where the cases of the scenario are in the union; then those of each world.
    places: Vec<Vec<usize>>,
}

impl Trial {
    /// The worlds of a scenario that was read with these overrides. Those that change none of its
    /// cases are left out; a `[[negative]]` is not.
    pub fn new(scenario: Scenario, overrides: &Overrides) -> Trial {
        let mut union = Union::default();
        let mut places = vec![union.add(&scenario.cases)];
        let mut kept = Vec::new();
        for world in worlds(&scenario) {
            let Some(other) = world.of(&scenario, overrides) else {
                continue;
            };
            let here = union.add(&other.cases);
            let known = places.contains(&here);
            if !known || world.line.is_some() {
                places.push(here);
                kept.push(world);
            }
        }
        let mut together = scenario.clone();
        together.cases = union.cases;
        together.expectations.clear();
        together.measure.precision = None;
        Trial {
            scenario,
            worlds: kept,
            union: together,
            places,
        }
    }

    /// Number of worlds.
    pub fn worlds(&self) -> usize {
        self.worlds.len()
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

/// How far an expectation is followed.
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
