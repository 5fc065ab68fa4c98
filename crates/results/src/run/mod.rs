//! Runs a scenario: every case with every seed, on as many threads as asked for, into a result and,
//! if wanted, a store.
//!
//! A run is a pure function of case and seed, and the result is put together in the order of cases
//! and seeds, so it is the same for any number of threads. With `[measure] precision` a case is
//! judged when all its runs of a batch are there, and gets further seeds until it is sure enough:
//! again a function of its own runs. An outcome is reduced to metrics, its series are written and
//! the metrics go into a file before the next run starts on the thread: memory does not grow with
//! the number of runs, but for some bytes each. Who takes the cases ([`CaseSink`]) gets each as
//! soon as it is complete, and then its numbers need not stay.

mod assembly;
mod bench;
mod cost;
mod error;
mod kept;
mod progress;
mod seeds;
mod times;
mod work;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::capture::Captures;
use crate::precision::{self, Judgement};
use crate::result::{Interrupted, RunResult};
use crate::store::{Earlier, Keys, Store, Table, brought, captures_with, runs_table};
use assembly::{Assembly, Stage};
use fullpipe_metrics as metrics;
use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;
use kept::Kept;
use seeds::grow;
use work::{Missing, Order, Work, take_over};

pub use assembly::{CaseSink, Keep, Taken};
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
    /// Who takes the cases while there are further ones to run; `None`: they are in the result.
    pub cases: Option<Taken<'a>>,
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
            cases: None,
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
    /// Of `made`, those that an earlier time has finished, which were not valid.
    pub remade: usize,
}

impl Ran {
    /// `1 run and 3 taken over`.
    pub fn counts(&self) -> String {
        let made = runs(self.made);
        match self.reused {
            0 => made,
            n => format!("{made} and {n} taken over"),
        }
    }

    /// `1 run made again: it was not valid`; `None` if none was.
    pub fn again(&self) -> Option<String> {
        let why = match self.remade {
            0 => return None,
            1 => "it was",
            _ => "they were",
        };
        Some(format!("{} made again: {why} not valid", runs(self.remade)))
    }
}

fn runs(n: usize) -> String {
    match n {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    }
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

/// Says in the result whose TCP made it, and where.
fn made_by(result: &mut RunResult, scenario: &Scenario, ground: &dyn Ground) {
    result.kernel = ground.kernel();
    result.brought = brought(scenario, ground);
    result.peer = ground.peer().map(str::to_owned);
    result.network = ground.network().map(Into::into);
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
    let mut counts = vec![precision::seeds_of(scenario); scenario.cases.len()];
    let captures = match (options.out, options.earlier) {
        (Some(dir), Earlier::Resumed) => captures_with(options.captures, dir)?,
        _ => options.captures,
    };
    let options = &Options {
        captures,
        ..*options
    };
    if captures.any() {
        cost::check_captures(scenario, options)?;
    }
    let mut store = match options.out {
        Some(dir) => {
            let all = vec![seeds.len(); counts.len()];
            let runs = (keys.planned(&seeds, &counts), keys.planned(&seeds, &all));
            let store = Store::create(dir, scenario, ground, runs, options.earlier)?;
            let (outdated, why) = store.outdated();
            if outdated > 0 {
                options.progress.outdated(outdated, why);
            }
            Some(store.with_captures(captures))
        }
        None => None,
    };
    let kept = Kept::new(scenario, seeds.clone());
    let name = ground.name().to_owned();
    let assembly = Assembly::new(
        scenario,
        (&name, ground.peer()),
        &kept,
        options.cases,
        store.is_some(),
    );
    let (order, cases) = match options.cases {
        Some(_) => (Order::AsListed, assembly.order()),
        None => (Order::LongestFirst, (0..counts.len()).collect()),
    };
    // What is measured against another case gives that one seeds, whatever it is sure of itself.
    let settles = wanted.is_none_or(|w| !w.of.iter().any(|m| metrics::needs_baseline(m)));
    let (mut reused, mut remade) = (0, 0);
    let mut judged: Vec<Option<Judgement>> = vec![None; counts.len()];
    let mut begun = false;
    let unkept = loop {
        let total = counts.iter().sum();
        if let Some(store) = store
            .as_ref()
            .filter(|_| options.earlier != Earlier::Remade)
        {
            let missing = kept.missing(&counts);
            let taken = take_over(store, &keys, missing, &kept, options.progress)?;
            (reused, remade) = (reused + taken.reused, remade + taken.not_valid);
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
        let stage = Stage {
            counts: &counts,
            judged: &judged,
            last: wanted.is_none(),
        };
        let streams = options.cases.is_some() && stage.last;
        let misses = |case: &usize| kept.runs(*case) < counts[*case];
        let missing = Missing {
            cases: cases.iter().copied().filter(misses).collect(),
            runs: total - kept.len(),
            order,
            of: &|case| kept.missing_of(case, counts[case]),
        };
        // What was taken over has no run whose end would hand it over.
        if streams {
            assembly.advance(&stage)?;
        }
        let made = work.make(&missing, &|place, made| {
            kept.put(place, &made)?;
            match streams {
                true => assembly.advance(&stage),
                false => Ok(()),
            }
        });
        let unkept = match made {
            Err(RunError::Store(error)) if wanted.is_none() && kept.len() == total => Some(error),
            made => made.map(|()| None)?,
        };
        if kept.len() < total {
            let done = kept.len();
            let mut result = assembly.so_far(Interrupted { done, total })?;
            made_by(&mut result, scenario, ground);
            return Err(RunError::Interrupted {
                done,
                total,
                kept: store.is_some(),
                result: Some(Box::new(result)),
            });
        }
        let Some(wanted) = wanted else { break unkept };
        let most = seeds.len();
        if !grow(scenario, wanted, &kept, &mut judged, &mut counts, most)? {
            break None;
        }
        if options.cases.is_some() && settles {
            assembly.advance(&Stage {
                counts: &counts,
                judged: &judged,
                last: false,
            })?;
        }
        if let Some(store) = &mut store {
            store.extend(keys.planned(&seeds, &counts))?;
        }
    };
    let stage = Stage {
        counts: &counts,
        judged: &judged,
        last: true,
    };
    assembly.advance(&stage)?;
    let (mut result, variables) = assembly.finish();
    made_by(&mut result, scenario, ground);
    if let Some(message) = result.unsure() {
        options.progress.warn(&message);
    }
    let made = kept.len() - reused;
    let stored = match (store, unkept) {
        (_, Some(error)) => Err(error),
        (None, None) => Ok(()),
        (Some(store), None) => {
            let has_all = options.cases.is_none_or(|taken| taken.keep == Keep::All);
            let case = |index: usize| match has_all {
                true => Ok(result.cases[index].clone()),
                false => assembly.case(index, &stage).map_err(io::Error::other),
            };
            store.finish((&result, &variables, &case), &kept)
        }
    };
    times::add_times(&mut result, &kept);
    let ran = Ran {
        result,
        made,
        reused,
        remade,
    };
    match stored {
        Ok(()) => Ok((ran, kept)),
        Err(error) => Err(RunError::NotKept {
            error,
            ran: Box::new(ran),
        }),
    }
}
