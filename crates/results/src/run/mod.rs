//! Runs a scenario: every case with every seed, on as many threads as asked for, into a result and,
//! if wanted, a store.
//!
//! A run is a pure function of case and seed, and the result is put together in the order of cases
//! and seeds, so it is the same for any number of threads. With `[measure] precision` a case is
//! judged when all its runs of a batch are there, and gets further seeds until it is sure enough:
//! again a function of its own runs. An outcome is reduced to metrics, and its series written,
//! before the next run starts on the thread: memory does not grow with the matrix.

mod bench;
mod cost;
mod error;
mod progress;
mod seeds;
mod times;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::capture::Captures;
use crate::precision::{self, Judgement};
use crate::result::RunResult;
use crate::store::{Earlier, Store, Table, Unit, plan, runs_table};
use fullpipe_metrics::SeedRun;
use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;
use seeds::{by_case, chosen, grow};
use work::{CaseSeed, Done, Work, take_over};

pub(crate) use bench::{Bench, seeds};
pub(crate) use cost::cost;
pub use error::RunError;
pub use progress::{Progress, RunFinished, RunStarted, Silent};

/// Threads, directory, captures and the listener of a run.
pub struct Options<'a> {
    /// Threads; 0: one per processor.
    pub jobs: usize,
    /// Directory of the result; `None`: nothing is kept.
    pub out: Option<&'a Path>,
    /// What becomes of a result that the directory holds.
    pub earlier: Earlier,
    /// Written beside the series; they need `out`. They change neither a run's key nor its numbers.
    pub captures: Captures,
    /// Told about every run.
    pub progress: &'a dyn Progress,
    /// Set by someone else to stop: runs in flight are finished and kept, no further one is
    /// started.
    pub interrupt: &'a AtomicBool,
}

/// All processors, nothing kept, silent, never interrupted.
impl Default for Options<'_> {
    fn default() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self {
            jobs: 0,
            out: None,
            earlier: Earlier::Remade,
            captures: Captures::default(),
            progress: &Silent,
            interrupt: &NEVER,
        }
    }
}

/// A result and how much of it was made anew.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The result, with the wall times of the runs made now.
    pub result: RunResult,
    /// Runs made now.
    pub made: usize,
    /// Runs taken over.
    pub reused: usize,
}

/// What `ground` cannot do of the scenario, before anything runs: of each case the first such
/// thing, each of them once.
pub fn refusals(scenario: &Scenario, ground: &dyn Ground) -> Vec<RunError> {
    let seed = scenario.seeds.first().copied().unwrap_or_default();
    let mut known = BTreeSet::new();
    let refused = |case: &fullpipe_scenario::Case| {
        let error = ground.check(&case.run_spec(seed)).err()?;
        known.insert(error.to_string()).then_some(())?;
        work::no_run(scenario, ground, (case.index, seed), error)
    };
    scenario.cases.iter().filter_map(refused).collect()
}

/// Runs every case with every seed on `ground`.
///
/// # Errors
/// See [`RunError`]. Finished runs stay in the result directory.
pub fn run_on(
    scenario: &Scenario,
    options: &Options<'_>,
    ground: &dyn Ground,
) -> Result<Ran, RunError> {
    made_on(scenario, options, ground).map(|(ran, _)| ran)
}

/// The same runs as the table of `runs.parquet`, without a directory.
///
/// # Errors
/// See [`RunError`].
pub fn tabled(
    scenario: &Scenario,
    options: &Options<'_>,
    ground: &dyn Ground,
) -> Result<Table, RunError> {
    let (ran, runs) = made_on(scenario, options, ground)?;
    Ok(runs_table(&ran.result, &runs))
}

/// The result, and in the order of their seeds the runs of every case.
fn made_on(
    scenario: &Scenario,
    options: &Options<'_>,
    ground: &dyn Ground,
) -> Result<(Ran, Vec<Vec<SeedRun>>), RunError> {
    let wanted = scenario.measure.precision.as_ref();
    let seeds = precision::possible(&scenario.seeds, wanted);
    let possible = plan(scenario, ground, &seeds);
    // Seeds of each case so far: the first ones of `seeds`.
    let first = match wanted {
        Some(wanted) => precision::at_first(scenario.seeds.len(), wanted).min(seeds.len()),
        None => seeds.len(),
    };
    let mut counts = vec![first; scenario.cases.len()];
    let mut units = chosen(&possible, seeds.len(), &counts);
    if options.captures.any() {
        cost::check_captures(scenario, options)?;
    }
    let mut store = match options.out {
        Some(dir) => Some(
            Store::create(dir, scenario, ground, &units, &possible, options.earlier)?
                .with_captures(options.captures)?,
        ),
        None => None,
    };
    let mut done: BTreeMap<CaseSeed, Done> = BTreeMap::new();
    let mut reused = 0;
    let mut judged: Vec<Option<Judgement>> = vec![None; counts.len()];
    let mut begun = false;
    let mut runs = loop {
        let new: Vec<Unit> = (units.iter())
            .filter(|u| !done.contains_key(&(u.case, u.seed)))
            .cloned()
            .collect();
        if let Some(store) = store
            .as_ref()
            .filter(|_| options.earlier != Earlier::Remade)
        {
            reused += take_over(store, &new, &mut done, options.progress)?;
        }
        if !begun {
            options.progress.begin(units.len(), reused);
            begun = true;
        }
        let work = Work {
            scenario,
            units: &new,
            store: store.as_ref(),
            cache: None,
            options,
            ground,
            before: done.len(),
            total: units.len(),
        };
        done.extend(work.make(&done)?);
        if done.len() < units.len() {
            return Err(RunError::Interrupted {
                done: done.len(),
                total: units.len(),
                kept: store.is_some(),
                result: Some(Box::new(so_far(scenario, ground, &done))),
            });
        }
        let runs = by_case(scenario, &done);
        let Some(wanted) = wanted else { break runs };
        if !grow(
            scenario,
            wanted,
            &runs,
            &mut judged,
            &mut counts,
            seeds.len(),
        ) {
            break runs;
        }
        units = chosen(&possible, seeds.len(), &counts);
        if let Some(store) = &mut store {
            store.extend(&units)?;
        }
    };
    in_order(&mut runs, &seeds);
    let (mut files, mut timings) = (Vec::new(), Vec::new());
    for unit in &units {
        if let Some(done) = done.remove(&(unit.case, unit.seed)) {
            if let Some(wall_s) = done.wall_s {
                timings.push(times::timing(unit, &done.run.metrics, wall_s));
            }
            files.push(done.files);
        }
    }
    let mut result = RunResult::new(scenario, ground.name(), &runs);
    result.kernel = ground.kernel();
    for (case, judged) in result.cases.iter_mut().zip(&judged) {
        case.precision = judged.as_ref().map(|j| j.reached.clone());
    }
    if let Some(message) = result.unsure() {
        options.progress.warn(&message);
    }
    let made = units.len() - reused;
    if let Some(store) = store {
        store.finish(&result, &runs, files, &timings)?;
    }
    times::add_times(&mut result, &timings, &runs);
    let ran = Ran {
        result,
        made,
        reused,
    };
    Ok((ran, runs))
}

/// In each case the order of its seeds: what was drawn later comes later.
fn in_order(runs: &mut [Vec<SeedRun>], seeds: &[u64]) {
    for case in runs {
        case.sort_by_key(|r| seeds.iter().position(|s| *s == r.seed));
    }
}

/// The result of the runs that are there. Expectations are about all of them: none is judged.
fn so_far(scenario: &Scenario, ground: &dyn Ground, done: &BTreeMap<CaseSeed, Done>) -> RunResult {
    let mut runs = by_case(scenario, done);
    in_order(&mut runs, &scenario.seeds);
    let mut result = RunResult::new(scenario, ground.name(), &runs);
    result.kernel = ground.kernel();
    result.expectations.clear();
    result.cases.retain(|case| !case.seeds.is_empty());
    result
}
