//! Runs the oracle: a user-mode Linux 6.1 in virtual time, built and run outside the repository.
//!
//! A run leaves `NAME.<flow>.csv.gz`, `NAME.counters.txt`, `NAME.qdisc.txt` and, last and at once,
//! `NAME.json`: a run whose description is there and equals what would be done now is not made
//! again. `NAME` is `<cell>.r<repeat>`.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cell::Cell;

/// Where the oracle lives and how hard it may work.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// Directory of the scripts (`calibrate/oracle`).
    pub scripts: PathBuf,
    /// Directory of the kernel and its programs.
    pub build: PathBuf,
    /// Directory of the results.
    pub out: PathBuf,
    /// Kernels that run at once.
    pub jobs: usize,
    /// Added to the niceness of each.
    pub nice: i32,
    /// A run that takes longer than this on the wall is ended.
    pub limit: Duration,
}

/// What a finished run says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the cell.
    pub cell: String,
    /// Number of the repeat.
    pub repeat: u32,
    /// The command, with placeholders for the places outside the repository.
    pub command: String,
    /// Release of the kernel.
    pub kernel: String,
}

/// Failures of the runner.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The file system.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// `build.sh` failed; its own message went to the standard error.
    #[error("the oracle could not be built in {0}")]
    Build(PathBuf),
    /// One or more runs failed.
    #[error("{failed} of {runs} runs failed; the logs are {out}/*.log")]
    Runs {
        /// Failed runs.
        failed: usize,
        /// Runs tried.
        runs: usize,
        /// Directory of the logs.
        out: PathBuf,
    },
}

/// Name of a run.
pub fn run_name(cell: &Cell, repeat: u32) -> String {
    format!("{}.r{repeat}", cell.id())
}

/// The command of a run as it is written beside its result.
pub fn command(cell: &Cell, repeat: u32) -> String {
    format!(
        "calibrate/oracle/run.sh BUILD OUT {}",
        cell.run(repeat).parameters().join(" ")
    )
}

impl Oracle {
    /// `$XDG_CACHE_HOME/fullpipe-oracle`, or the same under `~/.cache`.
    pub fn default_build() -> PathBuf {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
            .unwrap_or_else(std::env::temp_dir);
        cache.join("fullpipe-oracle")
    }

    /// Builds what is missing.
    ///
    /// # Errors
    /// [`OracleError::Build`] if the script fails.
    pub fn build(&self) -> Result<(), OracleError> {
        let status = Command::new(self.scripts.join("build.sh"))
            .arg(&self.build)
            .stdout(Stdio::null())
            .status()
            .map_err(at(&self.scripts.join("build.sh")))?;
        if status.success() {
            Ok(())
        } else {
            Err(OracleError::Build(self.build.clone()))
        }
    }

    /// The description of a finished run, if it is the run that would be made now.
    pub fn finished(&self, cell: &Cell, repeat: u32) -> Option<Manifest> {
        let text = fs::read(self.prefix(cell, repeat, "json")).ok()?;
        let manifest: Manifest = serde_json::from_slice(&text).ok()?;
        (manifest.command == command(cell, repeat)).then_some(manifest)
    }

    /// `OUT/NAME.SUFFIX`.
    pub fn prefix(&self, cell: &Cell, repeat: u32, suffix: &str) -> PathBuf {
        self.out
            .join(format!("{}.{suffix}", run_name(cell, repeat)))
    }

    /// Makes every run of `cells` that is not there yet, `jobs` at a time, telling `progress` about
    /// each.
    ///
    /// # Errors
    /// [`OracleError::Runs`] after all runs were tried, if some failed.
    pub fn run(&self, cells: &[Cell], progress: &(dyn Fn(&str) + Sync)) -> Result<(), OracleError> {
        fs::create_dir_all(&self.out).map_err(at(&self.out))?;
        let runs: Vec<(&Cell, u32)> = cells
            .iter()
            .flat_map(|c| (0..c.repeats).map(move |r| (c, r)))
            .collect();
        let todo: Vec<(&Cell, u32)> = runs
            .iter()
            .copied()
            .filter(|(c, r)| self.finished(c, *r).is_none())
            .collect();
        progress(&format!(
            "{} runs, {} already done, results in {}",
            runs.len(),
            runs.len() - todo.len(),
            self.out.display()
        ));
        let begin = Instant::now();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let failed = Mutex::new(0);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for job in 0..self.jobs.max(1) {
                // From the last processor down; a kernel that stays on one runs about three times
                // as fast.
                let cpu = cpus - 1 - job % cpus;
                let (next, done, failed, todo) = (&next, &done, &failed, &todo);
                scope.spawn(move || {
                    while let Some(&(cell, repeat)) = todo.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let start = Instant::now();
                        let result = self.one(cell, repeat, cpu);
                        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
                        let word = match result {
                            Ok(()) => "ok".to_owned(),
                            Err(e) => {
                                // A poisoned counter is still a counter.
                                *failed.lock().unwrap_or_else(|e| e.into_inner()) += 1;
                                format!("FAILED: {e}")
                            }
                        };
                        let left = begin.elapsed().as_secs_f64() / n as f64
                            * todo.len().saturating_sub(n) as f64;
                        progress(&format!(
                            "{n}/{} {} {:.1} s {word}; about {:.0} min left",
                            todo.len(),
                            run_name(cell, repeat),
                            start.elapsed().as_secs_f64(),
                            left / 60.0
                        ));
                    }
                });
            }
        });
        let failed = *failed.lock().unwrap_or_else(|e| e.into_inner());
        if failed > 0 {
            return Err(OracleError::Runs {
                failed,
                runs: todo.len(),
                out: self.out.clone(),
            });
        }
        Ok(())
    }

    /// One run on one processor.
    fn one(&self, cell: &Cell, repeat: u32, cpu: usize) -> Result<(), OracleError> {
        let log = self.prefix(cell, repeat, "log");
        let file = fs::File::create(&log).map_err(at(&log))?;
        let errors = file.try_clone().map_err(at(&log))?;
        let name = self.out.join(run_name(cell, repeat));
        let mut child = Command::new(self.scripts.join("run.sh"))
            .arg(&self.build)
            .arg(&name)
            .args(cell.run(repeat).parameters())
            .env("ORACLE_CPU", cpu.to_string())
            .env("ORACLE_NICE", self.nice.to_string())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(at(&self.scripts.join("run.sh")))?;
        let begin = Instant::now();
        while child.try_wait().map_err(at(&log))?.is_none() {
            if begin.elapsed() > self.limit {
                // The kernel keeps one process of the host per guest process: end the group.
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                let _ = child.wait();
                return Err(at(&log)(io::Error::other("took too long")));
            }
            #[allow(clippy::disallowed_methods)] // The oracle is a process of the host.
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = fs::read_to_string(&log).map_err(at(&log))?;
        if !text.lines().any(|l| l.trim() == "GUEST-DONE") {
            return Err(at(&log)(io::Error::other("the guest did not finish")));
        }
        let kernel = text
            .split_whitespace()
            .find_map(|w| w.strip_prefix("kernel="))
            .unwrap_or("unknown")
            .to_owned();
        self.check_path(cell, repeat)?;
        for flow in 0..cell.flows.len() {
            compress(&self.prefix(cell, repeat, &format!("{flow}.csv")))?;
        }
        let manifest = Manifest {
            cell: cell.id(),
            repeat,
            command: command(cell, repeat),
            kernel,
        };
        let path = self.prefix(cell, repeat, "json");
        // A struct of strings and numbers always serialises.
        let text = serde_json::to_string(&manifest).unwrap_or_default() + "\n";
        let part = path.with_extension("json.part");
        fs::write(&part, text).map_err(at(&part))?;
        fs::rename(&part, &path).map_err(at(&path))
    }

    /// Nothing may be lost but at the bottleneck, and at random where that is asked for.
    fn check_path(&self, cell: &Cell, repeat: u32) -> Result<(), OracleError> {
        let path = self.prefix(cell, repeat, "qdisc.txt");
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let drops = |section: &str| {
            text.split_once(&format!("{section}\n"))
                .and_then(|(_, rest)| rest.split_once("(dropped "))
                .and_then(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok())
        };
        let softnet = text
            .split_once("softnet\n")
            .and_then(|(_, rest)| rest.split_whitespace().nth(1))
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let clean = drops("back") == Some(0)
            && softnet == Some(0)
            && (cell.loss > 0.0 || drops("forward") == Some(0));
        if clean {
            Ok(())
        } else {
            Err(at(&path)(io::Error::other(
                "packets were lost elsewhere than at the bottleneck",
            )))
        }
    }
}

/// Replaces a file by its gzip form.
fn compress(path: &Path) -> Result<(), OracleError> {
    let text = fs::read(path).map_err(at(path))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let target = PathBuf::from(name);
    let file = fs::File::create(&target).map_err(at(&target))?;
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    gz.write_all(&text).map_err(at(&target))?;
    gz.finish().map_err(at(&target))?;
    fs::remove_file(path).map_err(at(path))
}

/// The text of a gzip file.
///
/// # Errors
/// [`OracleError::Io`] if it cannot be read.
pub fn read_gz(path: &Path) -> Result<String, OracleError> {
    let file = fs::File::open(path).map_err(at(path))?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .map_err(at(path))?;
    Ok(text)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> OracleError + use<> {
    let path = path.to_owned();
    move |source| OracleError::Io { path, source }
}
