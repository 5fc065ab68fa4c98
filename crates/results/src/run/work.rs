//! The runs of a batch, made on the threads that are there. Long runs start first, so that no
//! thread is left with one at the end, unless somebody waits for the cases in their order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{ParallelBridge, ParallelIterator};

use super::cost::cost;
use super::error::params_text;
use super::kept::Kept;
use super::times::Stopwatch;
use super::{Options, Progress, RunError, RunFinished, RunStarted};
use crate::store::{Cache, Finished, Keys, Store, StoredFiles};
use fullpipe_metrics as metrics;
use fullpipe_metrics::RunMetrics;
use fullpipe_run::{Ground, GroundError};
use fullpipe_scenario::Scenario;

pub(super) struct Work<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) keys: &'a Keys<'a>,
    pub(super) store: Option<&'a Store>,
    /// Where a run is kept beside, or in place of, the store.
    pub(super) cache: Option<&'a Cache>,
    pub(super) options: &'a Options<'a>,
    pub(super) ground: &'a dyn Ground,
    /// Runs that are finished.
    pub(super) before: usize,
    /// All runs, as far as it is known.
    pub(super) total: usize,
}

impl Work<'_> {
    /// Makes these runs and hands each over when it is done: nothing of it stays here. Stops at the
    /// first error and at an interrupt; what is finished by then is in the store.
    pub(super) fn make(
        &self,
        missing: &Missing<'_>,
        take: &(dyn Fn(Place, Made) -> Result<(), RunError> + Sync),
    ) -> Result<(), RunError> {
        self.check(missing)?;
        let mut cases = missing.cases.clone();
        if missing.order == Order::LongestFirst {
            let cost = |case: &usize| cost(&self.scenario.cases[*case].run_spec(0));
            let costs: BTreeMap<usize, f64> =
                cases.iter().map(|case| (*case, cost(case))).collect();
            cases.sort_by(|a, b| costs[b].total_cmp(&costs[a]));
        }

        let jobs = match (self.options.jobs, self.ground.at_once()) {
            (wanted, None) => wanted,
            (0, Some(most)) => most.get(),
            (wanted, Some(most)) => wanted.min(most.get()),
        };
        // A thread without a run only costs its start; 0 stays one per processor.
        let jobs = jobs.min(missing.runs.max(1));
        let threads = |e: rayon::ThreadPoolBuildError| RunError::Threads {
            jobs,
            why: e.to_string(),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs)
            .build()
            .map_err(threads)?;
        let failed: Mutex<Option<(Place, RunError)>> = Mutex::new(None);
        let stop = AtomicBool::new(false);
        let finished = Mutex::new(self.before);
        let stopped =
            || stop.load(Ordering::Relaxed) || self.options.interrupt.load(Ordering::Relaxed);
        pool.install(|| {
            // The bridge hands out one run after the other, in this order.
            let places = cases.into_iter().flat_map(|case| (missing.of)(case));
            places.par_bridge().for_each(|place| {
                if stopped() {
                    return;
                }
                match self.one(place, &finished, take) {
                    // Its far side is gone: it would be missed again.
                    Ok(Whole::No) => stop.store(true, Ordering::Relaxed),
                    Ok(Whole::Yes) => {}
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        let mut first = failed.lock().expect("nothing panics with it");
                        // The same error for any number of threads, as far as that can be.
                        if first.as_ref().is_none_or(|(other, _)| place < *other) {
                            *first = Some((place, error));
                        }
                    }
                }
            });
        });
        match failed.into_inner().expect("nothing panics with it") {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Asks the ground for every case that is still to be run, with the first of its seeds.
    fn check(&self, missing: &Missing<'_>) -> Result<(), RunError> {
        for &case in &missing.cases {
            let Some(place) = (missing.of)(case).first().copied() else {
                continue;
            };
            let mut spec = self.scenario.cases[place.case].run_spec(place.seed);
            spec.capture = self.options.captures.any();
            if let Err(error) = self.ground.check(&spec) {
                self.not_made(place, error)?;
            }
        }
        Ok(())
    }

    /// Makes one run.
    fn one(
        &self,
        place: Place,
        finished: &Mutex<usize>,
        take: &(dyn Fn(Place, Made) -> Result<(), RunError> + Sync),
    ) -> Result<Whole, RunError> {
        let unit = &self.keys.unit(place.case, place.seed);
        let key = &unit.key.to_string();
        let case = &self.scenario.cases[unit.case];
        let internal = |what: String| RunError::Internal {
            case: unit.case,
            params: params_text(&case.params()),
            seed: unit.seed,
            what,
        };
        let progress = self.options.progress;
        progress.started(&RunStarted {
            case: unit.case,
            seed: unit.seed,
            key,
        });
        let watch = Stopwatch::start();
        let mut spec = case.run_spec(unit.seed);
        spec.capture = self.options.captures.any();
        // A panic is a bug; it must not take the other runs with it, nor hide which run it was.
        let made = catch_unwind(AssertUnwindSafe(|| {
            let outcome = self.ground.run(&spec)?;
            let metrics = metrics::measure(&case.flows, &case.traffic, &spec, &outcome);
            Ok((metrics, outcome))
        }));
        let (metrics, outcome) = match made {
            Ok(Ok(pair)) => pair,
            Ok(Err(error)) => return self.not_made(place, error).map(|()| Whole::Yes),
            Err(panic) => return Err(internal(panic_text(&*panic))),
        };
        let wall_s = watch.seconds();
        let saved = match self.store {
            Some(store) => store.save(case, unit, &metrics, &outcome),
            None => Ok(StoredFiles::default()),
        };
        // What was measured counts, kept or not: only then is it an error.
        let (files, unkept) = match saved {
            Ok(files) => (files, None),
            Err(error) => (StoredFiles::default(), Some(error)),
        };
        drop(outcome);
        if let Some(cache) = self.cache {
            cache.keep(key, &metrics);
        }
        let (simulated_s, packets) = (metrics.simulated_s, metrics.delivered_packets);
        let whole = match metrics.partial {
            Some(_) => Whole::No,
            None => Whole::Yes,
        };
        let made = Made {
            metrics,
            files,
            wall_s: Some(wall_s),
        };
        take(place, made)?;
        if let Some(error) = unkept {
            return Err(error.into());
        }
        let done = {
            let mut n = finished.lock().expect("nothing panics with it");
            *n += 1;
            *n
        };
        let made = self.total.saturating_sub(self.before);
        let (kept_bytes, expected_bytes) = self.store.map_or((0, 0), |store| store.bytes(made));
        progress.finished(&RunFinished {
            case: unit.case,
            seed: unit.seed,
            key,
            done,
            total: self.total,
            simulated_s,
            packets,
            wall_s,
            kept_bytes,
            expected_bytes,
        });
        Ok(whole)
    }

    /// What it means that the ground made no run.
    fn not_made(&self, place: Place, error: GroundError) -> Result<(), RunError> {
        let of = (place.case, place.seed);
        no_run(self.scenario, self.ground, of, error).map_or(Ok(()), Err)
    }
}

/// What an error of the ground means for this case and seed; [`None`]: stopped from outside.
pub(super) fn no_run(
    scenario: &Scenario,
    ground: &dyn Ground,
    (case, seed): (usize, u64),
    error: GroundError,
) -> Option<RunError> {
    let params = params_text(&scenario.cases[case].params());
    Some(match error {
        GroundError::Interrupted => return None,
        GroundError::Fault(what) => RunError::Internal {
            case,
            params,
            seed,
            what,
        },
        GroundError::Unable { key, what, hint } => {
            let place = key.map(|key| {
                let places = &scenario.places;
                let case = scenario.cases[case].params();
                let mut place = places.diagnostic(&key, &case, String::new(), hint.clone());
                place.hint = None;
                place.to_string()
            });
            RunError::Unable {
                place: place.unwrap_or_default().into(),
                ground: ground.name().into(),
                case,
                params,
                what,
                hint,
            }
        }
        GroundError::Environment { what, hint } => RunError::Environment { what, hint },
    })
}

/// Whether a run went on until its end, or was not made at all because somebody stopped.
enum Whole {
    Yes,
    /// It ended before its time.
    No,
}

/// Runs that are to be made. Each is named when it is its turn: a list of ten million would take
/// more memory than all that is known of those that are finished.
pub(super) struct Missing<'a> {
    /// The cases that miss runs.
    pub(super) cases: Vec<usize>,
    /// Runs of all of them together.
    pub(super) runs: usize,
    pub(super) order: Order,
    /// The runs that a case misses, by seed.
    pub(super) of: &'a (dyn Fn(usize) -> Vec<Place> + Sync),
}

/// In which order runs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    LongestFirst,
    AsListed,
}

/// A run of a scenario: the case by its index, and its seed with the place among the case's seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) case: usize,
    pub(super) nth: usize,
    pub(super) seed: u64,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) metrics: RunMetrics,
    pub(super) files: StoredFiles,
    /// `None` if taken over.
    pub(super) wall_s: Option<f64>,
}

/// What became of the finished runs of an earlier time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TakenOver {
    pub(super) reused: usize,
    /// Left to be made again: a late machine may have peace this time.
    pub(super) not_valid: usize,
}

/// Puts the finished runs of an earlier time among those that are done.
pub(super) fn take_over(
    store: &Store,
    keys: &Keys<'_>,
    missing: Vec<Place>,
    kept: &Kept<'_>,
    progress: &dyn Progress,
) -> Result<TakenOver, RunError> {
    let mut taken = TakenOver::default();
    for place in missing {
        let unit = keys.unit(place.case, place.seed);
        match store.finished(&unit)? {
            // It is made again, whole.
            Finished::Yes(_, metrics) if metrics.partial.is_some() => {}
            Finished::Yes(_, metrics) if metrics.fidelity.as_ref().is_some_and(|f| !f.valid) => {
                taken.not_valid += 1;
            }
            Finished::Yes(files, metrics) => {
                let made = Made {
                    metrics: *metrics,
                    files,
                    wall_s: None,
                };
                kept.put(place, &made)?;
                taken.reused += 1;
            }
            Finished::No => {}
            Finished::Damaged(message) => progress.warn(&message),
        }
    }
    Ok(taken)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "panic: {}",
        text.unwrap_or_else(|| "without a message".to_owned())
    )
}
