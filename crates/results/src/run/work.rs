//! The runs of a batch, made on the threads that are there. Long runs start first, so that no
//! thread is left with one at the end.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{ParallelBridge, ParallelIterator};

use super::cost::cost;
use super::error::params_text;
use super::times::Stopwatch;
use super::{Options, Progress, RunError, RunFinished, RunStarted};
use crate::store::{Cache, Finished, Store, StoredFiles, Unit};
use fullpipe_metrics as metrics;
use fullpipe_metrics::SeedRun;
use fullpipe_run::{Ground, GroundError};
use fullpipe_scenario::Scenario;

pub(super) struct Work<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) units: &'a [Unit],
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
    /// Makes the runs that are not done, the longest first. Stops at the first error and at an
    /// interrupt; what is finished by then is in the store.
    pub(super) fn make(
        &self,
        done: &BTreeMap<CaseSeed, Done>,
    ) -> Result<Vec<(CaseSeed, Done)>, RunError> {
        let is_done = |u: &Unit| done.contains_key(&(u.case, u.seed));
        let mut missing: Vec<(usize, f64)> = (0..self.units.len())
            .filter(|&i| !is_done(&self.units[i]))
            .map(|i| {
                (
                    i,
                    cost(&self.scenario.cases[self.units[i].case].run_spec(0)),
                )
            })
            .collect();
        self.check(&missing)?;
        missing.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));

        let jobs = match (self.options.jobs, self.ground.at_once()) {
            (wanted, None) => wanted,
            (0, Some(most)) => most.get(),
            (wanted, Some(most)) => wanted.min(most.get()),
        };
        let threads = |e: rayon::ThreadPoolBuildError| RunError::Threads {
            jobs,
            why: e.to_string(),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs)
            .build()
            .map_err(threads)?;
        let failed: Mutex<Option<(usize, RunError)>> = Mutex::new(None);
        let stop = AtomicBool::new(false);
        let finished = Mutex::new(self.before);
        let stopped =
            || stop.load(Ordering::Relaxed) || self.options.interrupt.load(Ordering::Relaxed);
        let made = pool.install(|| {
            // The bridge hands out one run after the other, in this order.
            missing
                .into_iter()
                .par_bridge()
                .filter_map(|(i, _)| {
                    if stopped() {
                        return None;
                    }
                    let unit = &self.units[i];
                    match self.one(unit, &finished) {
                        Ok(done) => done
                            .inspect(|done| {
                                // Its far side is gone: it would be missed again.
                                if done.run.metrics.partial.is_some() {
                                    stop.store(true, Ordering::Relaxed);
                                }
                            })
                            .map(|done| ((unit.case, unit.seed), done)),
                        Err(error) => {
                            stop.store(true, Ordering::Relaxed);
                            let mut first = failed.lock().expect("nothing panics with it");
                            // The same error for any number of threads, as far as that can be.
                            if first.as_ref().is_none_or(|(j, _)| i < *j) {
                                *first = Some((i, error));
                            }
                            None
                        }
                    }
                })
                .collect::<Vec<_>>()
        });
        match failed.into_inner().expect("nothing panics with it") {
            Some((_, error)) => Err(error),
            None => Ok(made),
        }
    }

    /// Asks the ground for every case that is still to be run, with the first of its seeds.
    fn check(&self, missing: &[(usize, f64)]) -> Result<(), RunError> {
        let mut units: Vec<&Unit> = missing.iter().map(|(i, _)| &self.units[*i]).collect();
        units.sort_by_key(|u| u.case);
        units.dedup_by_key(|u| u.case);
        for unit in units {
            let mut spec = self.scenario.cases[unit.case].run_spec(unit.seed);
            spec.capture = self.options.captures.any();
            if let Err(error) = self.ground.check(&spec) {
                self.not_made(unit, error)?;
            }
        }
        Ok(())
    }

    /// Makes one run; `None`: stopped from outside before it was complete.
    fn one(&self, unit: &Unit, finished: &Mutex<usize>) -> Result<Option<Done>, RunError> {
        let case = &self.scenario.cases[unit.case];
        let internal = |what: String| RunError::Internal {
            case: unit.case,
            params: params_text(&case.params),
            seed: unit.seed,
            what,
        };
        let progress = self.options.progress;
        progress.started(&RunStarted {
            case: unit.case,
            seed: unit.seed,
            key: &unit.key,
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
            Ok(Err(error)) => return self.not_made(unit, error),
            Err(panic) => return Err(internal(panic_text(&*panic))),
        };
        let wall_s = watch.seconds();
        let files = match self.store {
            Some(store) => store.save(case, unit, &metrics, &outcome)?,
            None => StoredFiles::default(),
        };
        drop(outcome);
        if let Some(cache) = self.cache {
            cache.keep(&unit.key, &metrics);
        }
        let done = {
            let mut n = finished.lock().expect("nothing panics with it");
            *n += 1;
            *n
        };
        progress.finished(&RunFinished {
            case: unit.case,
            seed: unit.seed,
            key: &unit.key,
            done,
            total: self.total,
            simulated_s: metrics.simulated_s,
            packets: metrics.delivered_packets,
            wall_s,
        });
        Ok(Some(Done {
            run: SeedRun {
                seed: unit.seed,
                metrics,
            },
            files,
            wall_s: Some(wall_s),
        }))
    }

    /// What it means that the ground made no run.
    fn not_made(&self, unit: &Unit, error: GroundError) -> Result<Option<Done>, RunError> {
        no_run(self.scenario, self.ground, (unit.case, unit.seed), error).map_or(Ok(None), Err)
    }
}

/// What an error of the ground means for this case and seed; [`None`]: stopped from outside.
pub(super) fn no_run(
    scenario: &Scenario,
    ground: &dyn Ground,
    (case, seed): CaseSeed,
    error: GroundError,
) -> Option<RunError> {
    let params = params_text(&scenario.cases[case].params);
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
                let mut place = places.diagnostic(&key, String::new(), hint.clone());
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

/// A finished run.
#[derive(Clone)]
pub(super) struct Done {
    pub(super) run: SeedRun,
    pub(super) files: StoredFiles,
    /// `None` if taken over.
    pub(super) wall_s: Option<f64>,
}

/// Index of a case and a seed: what identifies a run within a scenario.
pub(super) type CaseSeed = (usize, u64);

/// Puts the finished runs of an earlier time among those that are done; how many there were.
pub(super) fn take_over(
    store: &Store,
    units: &[Unit],
    done: &mut BTreeMap<CaseSeed, Done>,
    progress: &dyn Progress,
) -> Result<usize, RunError> {
    let mut reused = 0;
    for unit in units {
        match store.finished(unit)? {
            // It is made again, whole.
            Finished::Yes(_, run) if run.metrics.partial.is_some() => {}
            Finished::Yes(files, run) => {
                let taken = Done {
                    run,
                    files,
                    wall_s: None,
                };
                done.insert((unit.case, unit.seed), taken);
                reused += 1;
            }
            Finished::No => {}
            Finished::Damaged(message) => progress.warn(&message),
        }
    }
    Ok(reused)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "panic: {}",
        text.unwrap_or_else(|| "without a message".to_owned())
    )
}
