//! Runs a scenario: every case with every seed, on as many threads as asked for, into a result and,
//! if wanted, a store.
//!
//! A run is a pure function of case and seed, and the result is put together in the order of cases
//! and seeds, so it is the same for any number of threads. With `[measure] precision` a case is
//! judged when all its runs of a batch are there, and gets further seeds until it is sure enough:
//! again a function of its own runs. An outcome is reduced to metrics, its series are written and
//! the metrics go into a file before the next run starts on the thread: memory does not grow with
//! the number of runs, but for some bytes each.

mod bench;
mod cost;
mod error;
mod kept;
mod progress;
mod seeds;
mod times;
mod work;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::capture::Captures;
use crate::precision::{self, Judgement};
use crate::result::{CaseResult, RunResult, by_seed};
use crate::store::{Earlier, Keys, Store, StoreError, Table, Timing, runs_table};
use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;
use kept::Kept;
use seeds::grow;
use work::{Work, take_over};

pub(crate) use bench::{Bench, is_random, seeds};
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
    let (ran, kept) = made_on(scenario, options, ground)?;
    Ok(runs_table(&ran.result, &kept)?)
}

/// The result, and the runs of every case.
fn made_on<'a>(
    scenario: &'a Scenario,
    options: &Options<'_>,
    ground: &dyn Ground,
) -> Result<(Ran, Kept<'a>), RunError> {
    let wanted = scenario.measure.precision.as_ref();
    let seeds = precision::possible(&scenario.seeds, wanted);
    let keys = Keys::apart(scenario, ground);
    // Seeds of each case so far: the first ones of `seeds`.
    let first = match wanted {
        Some(wanted) => precision::at_first(scenario.seeds.len(), wanted).min(seeds.len()),
        None => seeds.len(),
    };
    let mut counts = vec![first; scenario.cases.len()];
    if options.captures.any() {
        cost::check_captures(scenario, options)?;
    }
    let mut store = match options.out {
        Some(dir) => {
            let all = vec![seeds.len(); counts.len()];
            let (units, possible) = (keys.units(&seeds, &counts), keys.units(&seeds, &all));
            let earlier = options.earlier;
            let store = Store::create(dir, scenario, ground, &units, &possible, earlier)?;
            Some(store.with_captures(options.captures)?)
        }
        None => None,
    };
    let kept = Kept::new(scenario, seeds.clone());
    let mut reused = 0;
    let mut judged: Vec<Option<Judgement>> = vec![None; counts.len()];
    let mut begun = false;
    loop {
        let total = counts.iter().sum();
        if let Some(store) = store
            .as_ref()
            .filter(|_| options.earlier != Earlier::Remade)
        {
            let missing = kept.missing(&counts);
            reused += take_over(store, &keys, missing, &kept, options.progress)?;
        }
        if !begun {
            options.progress.begin(total, reused);
            begun = true;
        }
        let work = Work {
            scenario,
            keys: &keys,
            store: store.as_ref(),
            cache: None,
            options,
            ground,
            before: kept.len(),
            total,
        };
        work.make(kept.missing(&counts), &|place, made| {
            Ok(kept.put(place, &made)?)
        })?;
        if kept.len() < total {
            return Err(RunError::Interrupted {
                done: kept.len(),
                total,
                kept: store.is_some(),
                result: Some(Box::new(so_far(scenario, ground, &kept)?)),
            });
        }
        let Some(wanted) = wanted else { break };
        let most = seeds.len();
        if !grow(scenario, wanted, &kept, &mut judged, &mut counts, most)? {
            break;
        }
        if let Some(store) = &mut store {
            store.extend(&keys.units(&seeds, &counts))?;
        }
    }
    let cases = cases(scenario, &kept, &by_seed(scenario))?;
    let mut result = RunResult::new(scenario, ground.name(), cases);
    result.kernel = ground.kernel();
    for (case, judged) in result.cases.iter_mut().zip(&judged) {
        case.precision = judged.as_ref().map(|j| j.reached.clone());
    }
    if let Some(message) = result.unsure() {
        options.progress.warn(&message);
    }
    let made = kept.len() - reused;
    if let Some(store) = store {
        let (mut files, mut timings) = (Vec::new(), Vec::new());
        kept.records(&mut |place, made| {
            timings.extend(made.wall_s.map(|wall_s| Timing {
                case: place.case,
                seed: place.seed,
                wall_s,
                packets_per_s: made.metrics.delivered_packets as f64 / wall_s.max(1e-9),
            }));
            files.push(made.files);
        })?;
        store.finish(&result, &kept, files, &timings)?;
    }
    times::add_times(&mut result, &kept);
    let ran = Ran {
        result,
        made,
        reused,
    };
    Ok((ran, kept))
}

fn cases(
    scenario: &Scenario,
    kept: &Kept<'_>,
    by_seed: &BTreeSet<String>,
) -> Result<Vec<CaseResult>, StoreError> {
    let cases = scenario.cases.iter().enumerate();
    cases
        .map(|(i, case)| CaseResult::new(case, &kept.case(i), by_seed))
        .collect()
}

/// The result of the runs that are there. Expectations are about all of them: none is judged.
fn so_far(
    scenario: &Scenario,
    ground: &dyn Ground,
    kept: &Kept<'_>,
) -> Result<RunResult, StoreError> {
    let cases = cases(scenario, kept, &BTreeSet::new())?;
    let mut result = RunResult::new(scenario, ground.name(), cases);
    result.kernel = ground.kernel();
    result.expectations.clear();
    result.cases.retain(|case| !case.seeds.is_empty());
    Ok(result)
}
