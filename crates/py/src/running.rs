//! Runs.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use fullpipe_grounds::{Far, GROUNDS, Kernel, Running, Settings};
use fullpipe_net::ground::Options as Sockets;
use fullpipe_results::capture::Captures;
use fullpipe_results::run::{Options, Progress, RunFinished, run_on};
use pyo3::prelude::*;

use crate::error::{ScenarioError, no_ground, not_run};
use crate::result::ResultDir;
use crate::scenario::Scenario;

/// How often a run looks for Ctrl-C and tells of its progress.
const GLANCE: Duration = Duration::from_millis(50);

/// Set by Ctrl-C, for every run of the process; cleared when none is left.
static INTERRUPT: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A run that counts among those of the process.
struct Counted;

impl Counted {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if RUNNING.fetch_sub(1, Ordering::SeqCst) == 1 {
            INTERRUPT.store(false, Ordering::SeqCst);
        }
    }
}

/// Runs that are done, and all of them.
#[derive(Default)]
struct Told(Mutex<(usize, usize)>);

impl Told {
    fn get(&self) -> (usize, usize) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn set(&self, done: usize, total: usize) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = (done, total);
    }
}

impl Progress for Told {
    fn begin(&self, total: usize, reused: usize) {
        self.set(reused, total);
    }

    fn finished(&self, run: &RunFinished<'_>) {
        self.set(run.done, run.total);
    }
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
    let counted = Counted::new();
    let ground = built(ground, kernel)?;
    let told = Told::default();
    let options = Options {
        jobs,
        out: Some(&out),
        resume,
        captures: Captures::default(),
        progress: &told,
        interrupt: &INTERRUPT,
    };
    let (done, finished) = mpsc::channel();
    // Only this thread waits; the lock lets it do so without the interpreter.
    let finished = Mutex::new(finished);
    let wait = || {
        let finished = finished.lock().unwrap_or_else(|e| e.into_inner());
        finished.recv_timeout(GLANCE)
    };
    let progress = progress.as_ref();
    let ran = std::thread::scope(|scope| {
        let options = &options;
        let ground = &*ground;
        scope.spawn(move || {
            // The one who waits is gone only with this thread.
            let _ = done.send(run_on(&scenario.0, options, ground).map(|_| ()));
        });
        let mut stopped = None;
        let mut shown = (0, 0);
        let ran = loop {
            match py.detach(wait) {
                Ok(ran) => break Some(ran),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = told.get();
            let called = match progress.filter(|_| now != shown) {
                Some(progress) => progress.call1(now).map(|_| ()),
                None => Ok(()),
            };
            shown = now;
            if let Err(error) = called.and_then(|()| py.check_signals()) {
                INTERRUPT.store(true, Ordering::SeqCst);
                stopped.get_or_insert(error);
            }
        };
        match stopped {
            Some(error) => Err(error),
            None => Ok(ran),
        }
    });
    drop(counted);
    match ran? {
        Some(Ok(())) => {
            if let Some(progress) = progress {
                progress.call1(told.get())?;
            }
            ResultDir::at(&out)
        }
        Some(Err(error)) => Err(not_run(&error)),
        None => Err(crate::error::FullpipeError::new_err(
            "internal error: the run ended without a result; please report it",
        )),
    }
}

/// What a ground's results depend on beside the scenario: sources, or a kernel.
#[pyfunction]
#[pyo3(signature = (ground, kernel=None))]
pub fn fingerprint(ground: &str, kernel: Option<String>) -> PyResult<String> {
    Ok(built(ground, kernel)?.fingerprint().to_owned())
}

/// The ground of this name on this machine.
fn built(name: &str, kernel: Option<String>) -> PyResult<Box<dyn fullpipe_run::Ground>> {
    let settings = Settings {
        sockets: Sockets::default(),
        way: None,
        kernel: Kernel {
            name: kernel,
            module: None,
        },
        running: Running::default(),
        interrupt: &INTERRUPT,
    };
    let Some(entry) = fullpipe_grounds::find(name, Far::Here) else {
        let here = GROUNDS.iter().filter(|g| g.far == Far::Here);
        let known: Vec<String> = here.map(|g| format!("`{}`", g.name)).collect();
        let what = format!("no ground `{name}`\n  hint: there are {}", known.join(", "));
        return Err(ScenarioError::new_err(what));
    };
    (entry.build)(settings).map_err(no_ground)
}
