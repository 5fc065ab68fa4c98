//! Cases of a scenario that are run when somebody looks at them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::work::{Made, Missing, Order, Place, Work};
use super::{Options, RunError};
use crate::result::{CaseResult, Params};
use crate::store::{Cache, Hash, Keys};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{RunMetrics, SeedRun};
use fullpipe_run::Ground;
use fullpipe_scenario::{Case, Scenario};

/// Cases of a scenario, run when they are asked for. Where its seed decides nothing in a case, one
/// run stands for all of them.
pub(crate) struct Bench<'a> {
    scenario: &'a Scenario,
    options: &'a Options<'a>,
    ground: &'a dyn Ground,
    keys: Keys<'a>,
    cache: Option<&'a Cache>,
    /// By case: its runs, without what is measured against a baseline.
    cases: Vec<Option<Vec<SeedRun>>>,
    /// Runs by key: cases that differ in their baseline only share them.
    runs: BTreeMap<Hash, RunMetrics>,
    /// Runs made here.
    pub made: usize,
    /// Runs that the cache had.
    pub reused: usize,
    begun: bool,
    /// Metrics of which results hold the values of single seeds.
    by_seed: BTreeSet<String>,
}

impl<'a> Bench<'a> {
    pub fn new(
        scenario: &'a Scenario,
        options: &'a Options<'a>,
        ground: &'a dyn Ground,
        cache: Option<&'a Cache>,
    ) -> Self {
        Self {
            scenario,
            options,
            ground,
            keys: Keys::shared(scenario, ground),
            cache,
            cases: vec![None; scenario.cases.len()],
            runs: BTreeMap::new(),
            made: 0,
            reused: 0,
            begun: false,
            by_seed: BTreeSet::new(),
        }
    }

    /// Puts the values of single seeds of these metrics into the results.
    pub fn by_seed(self, by_seed: BTreeSet<String>) -> Self {
        Self { by_seed, ..self }
    }

    /// Runs those of these cases, and of the baselines they are measured against, that have not
    /// been run.
    pub fn need(&mut self, cases: impl IntoIterator<Item = usize>) -> Result<(), RunError> {
        let all = &self.scenario.cases;
        let mut wanted: BTreeSet<usize> = cases.into_iter().collect();
        wanted.extend(wanted.clone().iter().filter_map(|&i| all[i].baseline));
        wanted.retain(|&i| self.cases[i].is_none());
        let mut places: BTreeMap<Hash, Place> = BTreeMap::new();
        for &i in &wanted {
            let seeds = seeds(self.scenario, &all[i], self.ground).into_iter();
            for (nth, seed) in seeds.enumerate() {
                let key = self.keys.of(i, seed);
                if self.runs.contains_key(&key) || places.contains_key(&key) {
                    continue;
                }
                if let Some(run) = self.cache.and_then(|cache| cache.run(&key.to_string())) {
                    self.reused += 1;
                    self.runs.insert(key, run);
                    continue;
                }
                let case = i;
                places.insert(key, Place { case, nth, seed });
            }
        }
        self.make(places.into_values().collect())?;
        for i in wanted {
            let runs = seeds(self.scenario, &all[i], self.ground).into_iter();
            let made: Vec<RunMetrics> = runs
                .map(|seed| self.runs[&self.keys.of(i, seed)].clone())
                .collect();
            let every = self.scenario.seeds.iter().enumerate();
            let run = |(n, &seed): (usize, &u64)| SeedRun {
                seed,
                metrics: made[n.min(made.len() - 1)].clone(),
            };
            self.cases[i] = Some(every.map(run).collect());
        }
        Ok(())
    }

    fn make(&mut self, places: Vec<Place>) -> Result<(), RunError> {
        let before = self.made + self.reused;
        let total = before + places.len();
        if !self.begun {
            self.options.progress.begin(total, self.reused);
            self.begun = true;
        }
        if places.is_empty() {
            return Ok(());
        }
        let work = Work {
            scenario: self.scenario,
            keys: &self.keys,
            store: None,
            cache: self.cache,
            options: self.options,
            ground: self.ground,
            before,
            total,
        };
        let wanted = places.len();
        let mut of_case: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for place in places {
            of_case.entry(place.case).or_default().push(place);
        }
        let missing = Missing {
            cases: of_case.keys().copied().collect(),
            runs: wanted,
            order: Order::LongestFirst,
            of: &|case| of_case[&case].clone(),
        };
        let done = Mutex::new(Vec::new());
        work.make(&missing, &|place: Place, made: Made| {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((self.keys.of(place.case, place.seed), made.metrics));
            Ok(())
        })?;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let made = done.len();
        self.made += made;
        self.runs.extend(done);
        match made < wanted {
            true => Err(RunError::Interrupted {
                done: before + made,
                total,
                kept: self.cache.is_some(),
                result: None,
            }),
            false => Ok(()),
        }
    }

    /// What came of a case that has been run, under the parameters of another one.
    pub fn result(&self, place: usize, shown_as: &Case) -> Option<CaseResult> {
        let case = &self.scenario.cases[place];
        let mut own = self.cases[place].clone()?;
        if let Some(base) = case.baseline {
            let base = self.cases[base].as_ref()?;
            for run in &mut own {
                let same = base.iter().find(|b| b.seed == run.seed);
                metrics::hold_against(&mut run.metrics, same.map(|b| &b.metrics));
            }
        }
        let Ok(result) = CaseResult::new(case, own.as_slice(), &self.by_seed);
        Some(CaseResult {
            params: Params::of(shown_as),
            seeds_repeat: result.seeds_repeat && !self.ground.in_real_time(),
            in_phase: result.in_phase && !self.ground.in_real_time(),
            ..result
        })
    }
}

/// Seeds that a case is run with: one where the seed decides nothing.
pub(crate) fn seeds(scenario: &Scenario, case: &Case, ground: &dyn Ground) -> Vec<u64> {
    match is_random(case, ground) {
        true => scenario.seeds.clone(),
        false => scenario.seeds.iter().take(1).copied().collect(),
    }
}

/// True if two seeds can give a case two results.
pub(crate) fn is_random(case: &Case, ground: &dyn Ground) -> bool {
    ground.in_real_time() || case.run_spec(0).is_random()
}
