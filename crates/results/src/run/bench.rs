//! Cases of a scenario that are run when somebody looks at them.

use std::collections::{BTreeMap, BTreeSet};

use super::work::{Done, Work};
use super::{Options, RunError};
use crate::result::{CaseResult, Params};
use crate::store::{Cache, Unit, key_of};
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
    cache: Option<&'a Cache>,
    /// By case: its runs, without what is measured against a baseline.
    cases: Vec<Option<Vec<SeedRun>>>,
    /// Runs by key: cases that differ in their baseline only share them.
    runs: BTreeMap<String, RunMetrics>,
    /// Runs made here.
    pub made: usize,
    /// Runs that the cache had.
    pub reused: usize,
    begun: bool,
    /// Results hold their runs.
    by_seed: bool,
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
            cache,
            cases: vec![None; scenario.cases.len()],
            runs: BTreeMap::new(),
            made: 0,
            reused: 0,
            begun: false,
            by_seed: false,
        }
    }

    /// Puts the runs themselves into the results.
    pub fn by_seed(self, by_seed: bool) -> Self {
        Self { by_seed, ..self }
    }

    /// Runs those of these cases, and of the baselines they are measured against, that have not
    /// been run.
    pub fn need(&mut self, cases: impl IntoIterator<Item = usize>) -> Result<(), RunError> {
        let all = &self.scenario.cases;
        let mut wanted: BTreeSet<usize> = cases.into_iter().collect();
        wanted.extend(wanted.clone().iter().filter_map(|&i| all[i].baseline));
        wanted.retain(|&i| self.cases[i].is_none());
        let mut units: BTreeMap<String, Unit> = BTreeMap::new();
        for &i in &wanted {
            for seed in seeds(self.scenario, &all[i], self.ground) {
                let key = key_of(&all[i], seed, self.ground);
                if self.runs.contains_key(&key) || units.contains_key(&key) {
                    continue;
                }
                if let Some(run) = self.cache.and_then(|cache| cache.run(&key)) {
                    self.reused += 1;
                    self.runs.insert(key, run);
                    continue;
                }
                let case = i;
                units.insert(key.clone(), Unit { case, seed, key });
            }
        }
        self.make(units.into_values().collect())?;
        for i in wanted {
            let runs = seeds(self.scenario, &all[i], self.ground).into_iter();
            let made: Vec<RunMetrics> = runs
                .map(|seed| self.runs[&key_of(&all[i], seed, self.ground)].clone())
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

    fn make(&mut self, units: Vec<Unit>) -> Result<(), RunError> {
        let before = self.made + self.reused;
        let total = before + units.len();
        if !self.begun {
            self.options.progress.begin(total, self.reused);
            self.begun = true;
        }
        if units.is_empty() {
            return Ok(());
        }
        let work = Work {
            scenario: self.scenario,
            units: &units,
            store: None,
            cache: self.cache,
            options: self.options,
            ground: self.ground,
            before,
            total,
        };
        let done: BTreeMap<(usize, u64), Done> = work.make(&BTreeMap::new())?.into_iter().collect();
        self.made += done.len();
        let (made, kept) = (done.len(), self.cache.is_some());
        for unit in units {
            let Some(done) = done.get(&(unit.case, unit.seed)) else {
                let done = before + made;
                return Err(RunError::Interrupted {
                    done,
                    total,
                    kept,
                    result: None,
                });
            };
            self.runs.insert(unit.key, done.run.metrics.clone());
        }
        Ok(())
    }

    /// What came of a case that has been run, under the parameters of another one.
    pub fn result(&self, place: usize, shown_as: &Case) -> Option<CaseResult> {
        let case = &self.scenario.cases[place];
        let own = self.cases[place].clone()?;
        let base = match case.baseline {
            Some(base) => Some(self.cases[base].clone()?),
            None => None,
        };
        let mut runs = vec![own];
        runs.extend(base);
        let against = case.baseline.map(|_| 1);
        metrics::against_baselines(&[against, None][..runs.len()], &mut runs);
        let result = CaseResult::new(case, &runs[0]);
        Some(CaseResult {
            params: Params::of(shown_as),
            runs: if self.by_seed {
                runs.swap_remove(0)
            } else {
                Vec::new()
            },
            seeds_repeat: result.seeds_repeat && !self.ground.in_real_time(),
            in_phase: result.in_phase && !self.ground.in_real_time(),
            ..result
        })
    }
}

/// Seeds that a case is run with: one where the seed decides nothing.
pub(crate) fn seeds(scenario: &Scenario, case: &Case, ground: &dyn Ground) -> Vec<u64> {
    match ground.in_real_time() || case.run_spec(0).is_random() {
        true => scenario.seeds.clone(),
        false => scenario.seeds.iter().take(1).copied().collect(),
    }
}
