//! Runs a scenario: every case with every seed, on as many threads as asked for, into a result and, if wanted, a store.
//!
//! A run is a pure function of case and seed, and the result is put together in the order of cases and seeds, so it is the
//! same for any number of threads. With `[measure] precision` a case is judged when all its runs of a batch are there, and gets
//! further seeds until it is sure enough: again a function of its own runs. Long runs start first, so that no thread is left with one at the end. An outcome is
//! reduced to metrics, and its series written, before the next run starts on the thread: memory does not grow with the
//! matrix.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_sim::RunSpec;
use fullpipe_units::Span;
use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::export::{self, Captures};
use crate::ground::{Ground, GroundError};
use crate::metrics::{self, RunMetrics};
use crate::precision::{self, Judgement};
use crate::result::{CaseResult, RunResult, SeedRun};
use crate::scenario::{Precision, Scenario};
use crate::store::{Finished, Store, StoreError, StoredFiles, Timing, Unit, plan_with};

/// How to run.
pub struct Options<'a> {
    /// Threads; 0: one per processor.
    pub jobs: usize,
    /// Directory of the result; `None`: nothing is kept.
    pub out: Option<&'a Path>,
    /// Take over the finished runs that the directory holds.
    pub resume: bool,
    /// Written beside the series; they need `out`. They change neither a run's key nor its numbers.
    pub captures: Captures,
    /// Told about every run.
    pub progress: &'a dyn Progress,
    /// Set by someone else to stop: runs in flight are finished and kept, no further one is started.
    pub interrupt: &'a AtomicBool,
}

/// Hears what happens. Called from several threads.
pub trait Progress: Sync {
    /// Before the first run: how many there are, and how many of them are taken over.
    fn begin(&self, total: usize, reused: usize) {
        let _ = (total, reused);
    }

    /// A run starts.
    fn started(&self, run: &RunStarted<'_>) {
        let _ = run;
    }

    /// A run is finished and kept.
    fn finished(&self, run: &RunFinished<'_>) {
        let _ = run;
    }

    /// Something the user should know.
    fn warn(&self, message: &str) {
        let _ = message;
    }
}

/// A [`Progress`] that does not listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// For [`Progress::started`].
#[derive(Clone, Copy, Debug)]
pub struct RunStarted<'a> {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Hash of the run.
    pub key: &'a str,
}

/// For [`Progress::finished`].
#[derive(Clone, Copy, Debug)]
pub struct RunFinished<'a> {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Hash of the run.
    pub key: &'a str,
    /// Runs that are finished, those taken over included.
    pub done: usize,
    /// All runs; grows where a precision is asked for.
    pub total: usize,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver.
    pub packets: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
}

/// What [`run_all`] returns.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The result, with the wall times of the runs made now.
    pub result: RunResult,
    /// Runs made now.
    pub made: usize,
    /// Runs taken over.
    pub reused: usize,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The result directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Stopped from outside.
    #[error("interrupted after {done} of {total} runs")]
    Interrupted {
        /// Runs that are finished.
        done: usize,
        /// All runs.
        total: usize,
        /// They are kept in the result directory.
        kept: bool,
    },
    /// A bug in the program.
    #[error("internal error in case {case} ({params}) with seed {seed}: {what}")]
    Internal {
        /// Index of the case.
        case: usize,
        /// Its parameters.
        params: String,
        /// Seed.
        seed: u64,
        /// What went wrong.
        what: String,
    },
    /// The ground cannot do what a case asks for.
    #[error("ground `{ground}` cannot run case {case} ({params}): {what}")]
    Unable {
        /// Name of the ground.
        ground: String,
        /// Index of the case.
        case: usize,
        /// Its parameters.
        params: String,
        /// What it cannot do.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// The machine, the network or the other host lacks something.
    #[error("{what}")]
    Environment {
        /// What is missing.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Captures of it would not fit in memory, and no tool would open them.
    #[error(
        "case {case} ({params}) may send {millions} million packets: too many for a capture, at most {most} million",
        most = export::MOST_PACKETS / 1_000_000
    )]
    CaptureTooLong {
        /// Index of the case.
        case: usize,
        /// Its parameters.
        params: String,
        /// Estimate, from above.
        millions: u64,
        /// Duration with which it would be accepted.
        shorter: Span,
    },
    /// Captures are part of a result directory.
    #[error("captures need a directory")]
    CaptureNowhere,
    /// Threads could not be started.
    #[error("cannot start {jobs} threads: {why}")]
    Threads {
        /// As asked for.
        jobs: usize,
        /// Reason.
        why: String,
    },
}

impl RunError {
    /// Exit code of the program (contract): 2 wrong request, 3 environment, 4 internal error, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Store(e) if e.is_environment() => 3,
            RunError::Store(_) => 2,
            RunError::Interrupted { .. } => 130,
            RunError::Internal { .. } => 4,
            RunError::Threads { .. } | RunError::Environment { .. } => 3,
            RunError::Unable { .. }
            | RunError::CaptureTooLong { .. }
            | RunError::CaptureNowhere => 2,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Store(e) => e.hint(),
            RunError::Interrupted { kept: true, .. } => {
                Some("finished runs are kept: continue with `--resume`".to_owned())
            }
            RunError::Interrupted { kept: false, .. } => {
                Some("with `--out DIR` finished runs are kept and `--resume` continues".to_owned())
            }
            RunError::Internal { case, seed, .. } => Some(format!(
                "please report it with the scenario, case {case} and seed {seed}"
            )),
            RunError::CaptureTooLong { shorter, .. } => {
                let seconds = shorter.as_secs_f64();
                let text = if seconds >= 1.0 {
                    format!("{seconds:.0}s")
                } else {
                    format!("{:.0}ms", seconds * 1e3)
                };
                Some(format!(
                    "capture a shorter run, for example with `--set duration={text}`, or a slower path"
                ))
            }
            RunError::Unable { hint, .. } | RunError::Environment { hint, .. } => {
                Some(hint.clone())
            }
            RunError::CaptureNowhere => Some("name one with `--out DIR`".to_owned()),
            RunError::Threads { .. } => Some("use a smaller `--jobs`".to_owned()),
        }
    }
}

/// Runs every case with every seed in the simulator.
///
/// # Errors
/// See [`RunError`]. Finished runs stay in the result directory.
pub fn run_all(scenario: &Scenario, options: &Options<'_>) -> Result<Ran, RunError> {
    run_on(scenario, options, &fullpipe_sim::run)
}

/// [`run_all`] on another ground.
///
/// # Errors
/// See [`RunError`].
pub fn run_on(
    scenario: &Scenario,
    options: &Options<'_>,
    ground: &dyn Ground,
) -> Result<Ran, RunError> {
    let wanted = scenario.measure.precision.as_ref();
    let seeds = precision::possible(&scenario.seeds, wanted);
    let possible = plan_with(scenario, &place(ground), &seeds);
    // Seeds of each case so far: the first ones of `seeds`.
    let first = match wanted {
        Some(wanted) => precision::at_first(scenario.seeds.len(), wanted).min(seeds.len()),
        None => seeds.len(),
    };
    let mut counts = vec![first; scenario.cases.len()];
    let mut units = chosen(&possible, seeds.len(), &counts);
    if options.captures.any() {
        check_captures(scenario, options)?;
    }
    let mut store = match options.out {
        Some(dir) => Some(
            Store::create(dir, scenario, ground, &units, &possible, options.resume)?
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
        if let Some(store) = store.as_ref().filter(|_| options.resume) {
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
    // In the order of cases, and in each of its seeds: what was drawn later comes later.
    for case in &mut runs {
        case.sort_by_key(|r| seeds.iter().position(|s| *s == r.seed));
    }
    let (mut files, mut timings) = (Vec::new(), Vec::new());
    for unit in &units {
        if let Some(done) = done.remove(&(unit.case, unit.seed)) {
            if let Some(wall_s) = done.wall_s {
                timings.push(timing(unit, &done.run.metrics, wall_s));
            }
            files.push(done.files);
        }
    }
    let mut result = RunResult::new(scenario, ground.name(), &runs);
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
    add_times(&mut result, &timings, &runs);
    Ok(Ran {
        result,
        made,
        reused,
    })
}

/// The first `counts[i]` of the `each` units of case `i`.
fn chosen(possible: &[Unit], each: usize, counts: &[usize]) -> Vec<Unit> {
    let cases = possible.chunks(each.max(1)).zip(counts);
    cases
        .flat_map(|(of_case, n)| of_case[..*n].to_vec())
        .collect()
}

/// The runs so far, with what needs two cases filled in.
fn by_case(scenario: &Scenario, done: &BTreeMap<CaseSeed, Done>) -> Vec<Vec<SeedRun>> {
    let mut runs: Vec<Vec<SeedRun>> = scenario.cases.iter().map(|_| Vec::new()).collect();
    for (&(case, _), done) in done {
        runs[case].push(done.run.clone());
    }
    let baselines: Vec<Option<usize>> = scenario.cases.iter().map(|c| c.baseline).collect();
    metrics::against_baselines(&baselines, &mut runs);
    runs
}

/// Judges the cases that are not settled and gives them, and the baselines they are judged by, their next batch; false if none
/// gets one.
fn grow(
    scenario: &Scenario,
    wanted: &Precision,
    runs: &[Vec<SeedRun>],
    judged: &mut [Option<Judgement>],
    counts: &mut [usize],
    most: usize,
) -> bool {
    let mut grown = false;
    for (i, case) in scenario.cases.iter().enumerate() {
        if judged[i].as_ref().is_some_and(|j| !j.more) {
            continue;
        }
        // A baseline has none of the metrics against it: it follows those that do.
        let held_against = || scenario.cases.iter().any(|c| c.baseline == Some(i));
        if wanted.of.iter().all(|m| metrics::needs_baseline(m)) && held_against() {
            continue;
        }
        let mut judgement = precision::judge(&CaseResult::new(case, &runs[i]), wanted);
        match precision::next(counts[i], wanted).map(|n| n.min(most)) {
            Some(more) if judgement.more && more > counts[i] => {
                counts[i] = more;
                grown = true;
            }
            _ => judgement.more = false,
        }
        judged[i] = Some(judgement);
    }
    // A run says something against its baseline only if that ran with the same seed.
    if wanted.of.iter().any(|m| metrics::needs_baseline(m)) {
        for (i, case) in scenario.cases.iter().enumerate() {
            if let Some(base) = case.baseline
                && counts[base] < counts[i]
            {
                counts[base] = counts[i];
                judged[base] = None;
                grown = true;
            }
        }
    }
    grown
}

/// A finished run.
#[derive(Clone)]
struct Done {
    run: SeedRun,
    files: StoredFiles,
    /// `None` if taken over.
    wall_s: Option<f64>,
}

/// Refuses captures that are too long; warns of those that may take much of the disk.
fn check_captures(scenario: &Scenario, options: &Options<'_>) -> Result<(), RunError> {
    if options.out.is_none() {
        return Err(RunError::CaptureNowhere);
    }
    let mut bytes = 0.0;
    for case in &scenario.cases {
        let spec = case.run_spec(0);
        let packets = cost(&spec);
        if packets > export::MOST_PACKETS as f64 {
            let part = export::MOST_PACKETS as f64 / packets;
            let shorter = spec.duration.as_secs_f64() * part;
            // Rounded down, so that the hint is good.
            let grain = if shorter >= 1.0 { 1.0 } else { 1e3 };
            return Err(RunError::CaptureTooLong {
                case: case.index,
                params: params_text(&case.params),
                millions: (packets / 1e6).ceil() as u64,
                shorter: Span::from_secs_f64((shorter * grain).floor() / grain),
            });
        }
        let runs = scenario.seeds.len() as f64;
        bytes += runs * packets * options.captures.bytes_per_packet() as f64;
    }
    if bytes > export::LARGE as f64 {
        options.progress.warn(&format!(
            "captures may take {:.1} GB: fewer cases, fewer seeds or a shorter run make them smaller",
            bytes / 1e9
        ));
    }
    Ok(())
}

fn take_over(
    store: &Store,
    units: &[Unit],
    done: &mut BTreeMap<CaseSeed, Done>,
    progress: &dyn Progress,
) -> Result<usize, RunError> {
    let mut reused = 0;
    for unit in units {
        match store.finished(unit)? {
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

/// Index of a case and a seed: what identifies a run within a scenario.
type CaseSeed = (usize, u64);

struct Work<'a> {
    scenario: &'a Scenario,
    units: &'a [Unit],
    store: Option<&'a Store>,
    options: &'a Options<'a>,
    ground: &'a dyn Ground,
    /// Runs that are finished.
    before: usize,
    /// All runs, as far as it is known.
    total: usize,
}

impl Work<'_> {
    /// Makes the runs that are not done, the longest first. Stops at the first error and at an interrupt; what is finished by
    /// then is in the store.
    fn make(&self, done: &BTreeMap<CaseSeed, Done>) -> Result<Vec<(CaseSeed, Done)>, RunError> {
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
                        Ok(done) => done.map(|done| ((unit.case, unit.seed), done)),
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
            self.ground.run(&spec).map(|o| {
                let mut m = metrics::measure(&case.flows, &spec, &o);
                // The scenario's own word for it: a staircase and a blast are both steps of a rate.
                for row in &mut m.traffic {
                    if let Some(group) = case.traffic.iter().find(|g| g.name == row.name) {
                        row.kind.clone_from(&group.word);
                    }
                }
                (m, o)
            })
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
        let case = unit.case;
        let params = params_text(&self.scenario.cases[case].params);
        Err(match error {
            GroundError::Interrupted => return Ok(None),
            GroundError::Fault(what) => RunError::Internal {
                case,
                params,
                seed: unit.seed,
                what,
            },
            GroundError::Unable { what, hint } => RunError::Unable {
                ground: self.ground.name().to_owned(),
                case,
                params,
                what,
                hint,
            },
            GroundError::Environment { what, hint } => RunError::Environment { what, hint },
        })
    }
}

/// What tells the ground's results from those of another: its name, and the other host if there is one.
fn place(ground: &dyn Ground) -> String {
    match ground.peer() {
        None => ground.name().to_owned(),
        Some(peer) => format!("{} to {peer}", ground.name()),
    }
}

/// Rough number of packets of a run: what the fastest link, or all window caps together, let through.
fn cost(spec: &RunSpec) -> f64 {
    let seconds = spec.duration.as_secs_f64();
    let per_flow = |f: &fullpipe_sim::FlowSpec| {
        let packet = f64::from(f.sender.mss + f.sender.header);
        let crossed = || f.forward.iter().filter_map(|&l| spec.links.get(l));
        let rate = crossed()
            .filter_map(|l| l.rate)
            .map(|r| r.as_bits_per_sec() as f64 / 8.0 / packet);
        let delay: f64 = crossed().map(|l| l.delay.as_secs_f64()).sum();
        let by_window = f.sender.max_window / (2.0 * delay).max(1e-6);
        rate.fold(f64::INFINITY, f64::min).min(by_window)
    };
    let offered: f64 = spec.flows.iter().map(per_flow).sum();
    let fastest = spec
        .links
        .iter()
        .filter_map(|l| l.rate)
        .map(|r| r.as_bits_per_sec() as f64 / 8.0 / 1500.0)
        .fold(0.0, f64::max);
    seconds
        * if fastest > 0.0 {
            offered.min(fastest)
        } else {
            offered
        }
}

fn timing(unit: &Unit, metrics: &RunMetrics, wall_s: f64) -> Timing {
    Timing {
        case: unit.case,
        seed: unit.seed,
        wall_s,
        packets_per_s: metrics.delivered_packets as f64 / wall_s.max(1e-9),
    }
}

/// Wall times of the runs made now; a case with a run that was taken over has none.
fn add_times(result: &mut RunResult, timings: &[Timing], runs: &[Vec<SeedRun>]) {
    for (i, case) in result.cases.iter_mut().enumerate() {
        let of_case: Vec<f64> = timings
            .iter()
            .filter(|t| t.case == i)
            .map(|t| t.wall_s)
            .collect();
        if of_case.len() == runs[i].len() && !of_case.is_empty() {
            let wall: f64 = of_case.iter().sum();
            case.wall_s = Some(wall);
            case.packets_per_s = Some(case.delivered_packets as f64 / wall.max(1e-9));
        }
    }
}

fn params_text(params: &[(String, String)]) -> String {
    if params.is_empty() {
        return "no parameters".to_owned();
    }
    params
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "panic: {}",
        text.unwrap_or_else(|| "without a message".to_owned())
    )
}

/// Wall time of a run. It is reported, and nothing else depends on it.
struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "reported only; results do not depend on it"
    )]
    fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
