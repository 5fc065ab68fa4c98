//! Runs of scenarios, which Ctrl-C and other threads can stop.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fullpipe_grounds::{Far, GROUNDS, Kernel, Running, Settings};
use fullpipe_net::ground::Options as Sockets;
use fullpipe_results::capture::Captures;
use fullpipe_results::run::{Options, Progress, RunFinished, run_on};
use fullpipe_results::store::Earlier;
use pyo3::prelude::*;

use crate::controller::Hosting;
use crate::error::{FullpipeError, ScenarioError, no_ground, not_run};
use crate::result::ResultDir;
use crate::scenario::Scenario;

/// How often a call looks for Ctrl-C and reports its progress.
const GLANCE: Duration = Duration::from_millis(50);

/// The flag that stops the runs of one call and of no other. Grounds want it for as long as the
/// process lives: flags are lent, and those of calls that are over are lent again.
pub struct Flag(&'static AtomicBool);

static FREE: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());

impl Flag {
    /// A flag that is not set.
    pub fn new() -> Self {
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        Flag(free.pop().unwrap_or_else(|| Box::leak(Box::default())))
    }

    /// The flag itself.
    pub fn get(&self) -> &'static AtomicBool {
        self.0
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        free.push(self.0);
    }
}

/// Stops calls from another thread than theirs: those that were given it end after the run in
/// hand.
#[pyclass(frozen, module = "fullpipe._native")]
#[derive(Default)]
pub struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the calls that were given it.
    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Number of runs that are finished, and of all.
#[derive(Default)]
pub struct Counted {
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Counted {
    fn get(&self) -> (usize, usize) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed), total)
    }

    /// Calls `progress(done, total)` when either has changed since the last call.
    pub fn shown_to(&self, progress: Option<&Bound<'_, PyAny>>) -> impl FnMut() -> PyResult<()> {
        let mut shown = (0, 0);
        move || match (progress, self.get()) {
            (Some(progress), now) if now != shown => {
                shown = now;
                progress.call1(now).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

impl Progress for Counted {
    fn begin(&self, total: usize, reused: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(reused, Ordering::Relaxed);
    }

    fn finished(&self, run: &RunFinished<'_>) {
        self.total.store(run.total, Ordering::Relaxed);
        self.done.fetch_max(run.done, Ordering::Relaxed);
    }
}

/// Does `work` on a thread of its own while this one lets the rest of the interpreter go on, looks
/// for signals and calls `glance` now and then. Whatever that raises, a signal, or `stop` sets the
/// flag, and the error is returned when the work has ended.
pub fn watched<T: Send>(
    py: Python<'_>,
    flag: &Flag,
    stop: Option<&Stop>,
    mut glance: impl FnMut() -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (done, finished) = mpsc::channel();
    // Waiting without the interpreter takes what is `Sync`: a lock is, a receiver is not.
    let finished = Mutex::new(finished);
    let wait = || {
        let finished = finished.lock().unwrap_or_else(|e| e.into_inner());
        finished.recv_timeout(GLANCE)
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The receiver outlives this thread: the scope joins it.
            let _ = done.send(work());
        });
        let mut raised = None;
        loop {
            match py.detach(wait) {
                Ok(worked) => break raised.map_or(Ok(worked), Err),
                Err(RecvTimeoutError::Disconnected) => {
                    let what = "internal error: the work ended without a result; please report it";
                    break Err(raised.unwrap_or_else(|| FullpipeError::new_err(what)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.is_some_and(|stop| stop.0.load(Ordering::SeqCst)) {
                flag.get().store(true, Ordering::SeqCst);
            }
            if raised.is_none()
                && let Err(error) = glance().and_then(|()| py.check_signals())
            {
                flag.get().store(true, Ordering::SeqCst);
                raised = Some(error);
            }
        }
    })
}

/// Runs every case of a scenario with every seed, into the directory `out`. Other threads of the
/// interpreter go on meanwhile; `progress(done, total)` is called from this one.
#[pyfunction]
// Named in Python.
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (scenario, out, *, ground="sim", jobs=0, resume=false, kernel=None, progress=None))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    ground: &str,
    jobs: usize,
    resume: bool,
    kernel: Option<String>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<ResultDir> {
    let flag = Flag::new();
    let ground = Hosting::new(built(ground, kernel, &flag)?, flag.get());
    let counted = Counted::default();
    let options = Options {
        jobs,
        out: Some(&out),
        earlier: Earlier::resumed(resume),
        captures: Captures::default(),
        cases: None,
        progress: &counted,
        interrupt: flag.get(),
    };
    let mut show = counted.shown_to(progress.as_ref());
    let ran = watched(py, &flag, None, &mut show, || {
        run_on(&scenario.read, &options, &ground).map(|_| ())
    })?;
    ran.map_err(|error| ground.error(error, not_run))?;
    show()?;
    ResultDir::at(&out)
}

/// What a ground's results depend on beside the scenario: sources, or a kernel.
#[pyfunction]
#[pyo3(signature = (ground, kernel=None))]
pub fn fingerprint(ground: &str, kernel: Option<String>) -> PyResult<String> {
    let flag = Flag::new();
    Ok(built(ground, kernel, &flag)?.fingerprint().to_owned())
}

/// Names of the grounds of this machine, each with a few words.
#[pyfunction]
pub fn grounds() -> Vec<(&'static str, &'static str)> {
    let here = GROUNDS.iter().filter(|g| g.far == Far::Here);
    here.map(|g| (g.name, g.about)).collect()
}

/// The ground of this name on this machine.
pub fn built(
    name: &str,
    kernel: Option<String>,
    flag: &Flag,
) -> PyResult<Box<dyn fullpipe_run::Ground>> {
    let settings = Settings {
        sockets: Sockets::default(),
        way: None,
        kernel: Kernel {
            name: kernel,
            module: None,
        },
        running: Running::default(),
        live: None,
        interrupt: flag.get(),
    };
    let Some(entry) = fullpipe_grounds::find(name, Far::Here) else {
        let known: Vec<String> = grounds().iter().map(|g| format!("`{}`", g.0)).collect();
        let what = format!("no ground `{name}`\n  hint: there are {}", known.join(", "));
        return Err(ScenarioError::new_err(what));
    };
    (entry.build)(settings).map_err(no_ground)
}
