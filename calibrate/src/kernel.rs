//! Runs cells over Linux's own TCP, on the ground linux.
//!
//! A finished run is a directory `OUT/<cell>.r<repeat>` in the form of the references; its last
//! step is a rename, so a run that is there is whole and is not made again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use fullpipe_linux::{Linux, LinuxError, Product, phase};
use rayon::prelude::*;

use crate::cell::{Cell, Kernel, Model, ScenarioError};
use crate::measure::CURVE_MS;
use crate::observed;
use crate::reference::{self, ReferenceError, Run};

/// Failures of a run.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The kernel or its guest.
    #[error("{0}")]
    Linux(#[from] LinuxError),
    /// The cell.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The result could not be kept.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The file system.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Some runs failed; each was named.
    #[error("{failed} of {runs} runs failed")]
    Runs {
        /// Failed runs.
        failed: usize,
        /// Runs tried.
        runs: usize,
    },
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// A kernel that is ready to run cells.
#[derive(Debug)]
pub struct Guest {
    ground: Linux,
    release: String,
    hz: u32,
}

impl Guest {
    /// The kernel of the cache.
    ///
    /// # Errors
    /// [`KernelError::Linux`] if it has not been built.
    pub fn find(kernel: Kernel) -> Result<Self, KernelError> {
        let product = Product::find(kernel.name())?;
        fullpipe_linux::needs(false)?;
        Ok(Self {
            release: product.release.clone(),
            hz: product.hz,
            ground: Linux::of(product, &NEVER),
        })
    }

    /// One run of a cell.
    ///
    /// # Errors
    /// [`KernelError`].
    pub fn run(&self, cell: &Cell, repeat: u32) -> Result<Run, KernelError> {
        let timed = cell.run(repeat);
        let spec = timed.spec(seed(repeat), Model::Linux)?;
        let outcome = self.ground.run_one(&spec)?;
        let step = (repeat == 0).then_some(CURVE_MS);
        Ok(Run {
            cell: cell.id(),
            repeat,
            kernel: self.release.clone(),
            hz: self.hz,
            command: format!("fullpipe-calibrate measure --only {}", cell.id()),
            counters: Default::default(),
            flows: observed::flows(&timed, &outcome, step),
        })
    }
}

/// Seed of a run: the ground draws from it where in a tick a run begins, and those of cells begin
/// with one, as the simulator's do.
pub fn seed(repeat: u32) -> u64 {
    let on_a_tick = (1..).filter(|s| phase(*s).as_nanos() == 0);
    on_a_tick.take(repeat as usize + 1).last().unwrap_or(1)
}

/// Makes the runs of `cells` that are neither `frozen` nor in `out`, `jobs` at a time, telling
/// `progress` about each.
///
/// # Errors
/// [`KernelError::Runs`] after all runs were tried, if some failed; [`KernelError::Linux`] at once
/// if a kernel is absent.
pub fn measure(
    cells: &[Cell],
    frozen: &[Run],
    out: &Path,
    jobs: usize,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), KernelError> {
    fs::create_dir_all(out).map_err(at(out))?;
    let done = |cell: &Cell, repeat: u32| {
        let id = cell.id();
        frozen.iter().any(|r| r.cell == id && r.repeat == repeat)
            || out.join(cell.run_name(repeat)).is_dir()
    };
    let all: u32 = cells.iter().map(|c| c.repeats).sum();
    let runs = cells
        .iter()
        .flat_map(|c| (0..c.repeats).map(move |r| (c, r)));
    let todo: Vec<(&Cell, u32)> = runs.filter(|(c, r)| !done(c, *r)).collect();
    progress(&format!(
        "{all} runs, {} to make, results in {}",
        todo.len(),
        out.display()
    ));
    let mut guests = Vec::new();
    for kernel in Kernel::ALL {
        if todo.iter().any(|(c, _)| c.kernel == kernel) {
            guests.push((kernel, Guest::find(kernel)?));
        }
    }
    let (begin, made, failed) = (Instant::now(), AtomicUsize::new(0), AtomicUsize::new(0));
    let one = |(cell, repeat): &(&Cell, u32)| {
        let guest = guests.iter().find(|(k, _)| *k == cell.kernel);
        let result = guest.map_or(Ok(()), |(_, g)| keep(g, cell, *repeat, out));
        let n = made.fetch_add(1, Ordering::Relaxed) + 1;
        let left = begin.elapsed().as_secs_f64() / n as f64 * (todo.len().saturating_sub(n)) as f64;
        let word = match result {
            Ok(()) => "ok".to_owned(),
            Err(e) => {
                failed.fetch_add(1, Ordering::Relaxed);
                format!("FAILED: {e}")
            }
        };
        progress(&format!(
            "{n}/{} {} {word}; about {:.0} min left",
            todo.len(),
            cell.run_name(*repeat),
            left / 60.0
        ));
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.max(1))
        .build();
    let pool = pool.map_err(|e| at(out)(io::Error::other(e)))?;
    pool.install(|| todo.par_iter().with_max_len(1).for_each(one));
    match failed.into_inner() {
        0 => Ok(()),
        failed => Err(KernelError::Runs {
            failed,
            runs: todo.len(),
        }),
    }
}

/// Makes a run and keeps it.
fn keep(guest: &Guest, cell: &Cell, repeat: u32, out: &Path) -> Result<(), KernelError> {
    let run = guest.run(cell, repeat)?;
    let dir = out.join(cell.run_name(repeat));
    let part = out.join(format!("{}.part", cell.run_name(repeat)));
    reference::write(&part, &[run])?;
    fs::rename(&part, &dir).map_err(at(&dir))
}

/// The runs of `cells` in `out` and, where it has none, those that are `frozen`, in the order of
/// the cells; beside them the names of runs that are in neither.
///
/// # Errors
/// [`KernelError::Reference`] if a result cannot be read.
pub fn collect(
    cells: &[Cell],
    frozen: &[Run],
    out: &Path,
) -> Result<(Vec<Run>, Vec<String>), KernelError> {
    let (mut runs, mut missing) = (Vec::new(), Vec::new());
    for cell in cells {
        let id = cell.id();
        for repeat in 0..cell.repeats {
            let dir = out.join(cell.run_name(repeat));
            let kept = frozen.iter().find(|r| r.cell == id && r.repeat == repeat);
            if dir.is_dir() {
                runs.extend(reference::read(&dir)?);
            } else if let Some(run) = kept {
                runs.push(run.clone());
            } else {
                missing.push(cell.run_name(repeat));
            }
        }
    }
    Ok((runs, missing))
}

/// `$XDG_CACHE_HOME/fullpipe/calibrate`, or the same under `~/.cache`.
pub fn default_out() -> PathBuf {
    fullpipe_linux::cache().with_file_name("calibrate")
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> KernelError + use<> {
    let path = path.to_owned();
    move |source| KernelError::Io { path, source }
}
