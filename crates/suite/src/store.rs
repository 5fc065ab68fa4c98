//! The result store: a directory that holds everything about the runs of one scenario.
//!
//! ```text
//! manifest.json                          version, scenario text, seeds, machine, key and files of every run, hashes
//! result.json                            the object of `--format json`, without wall times
//! runs.parquet                           one row per flow (or traffic) x case x seed: parameters, seed, flow, kind, stack, every metric
//! links.parquet                          one row per link x case x seed
//! series/case-0000-seed1.parquet         time series of all flows, decimated, extremes kept
//! series/case-0000-seed1.full.parquet    one row per ACK, with `trace = "full"`
//! series/case-0000-seed1.links.parquet   queue lengths
//! series/case-0000-seed1.events.parquet  reductions, timeouts, undos
//! series/case-0000-seed1.samples.parquet rates per interval of flows and traffic, and since their start
//! series/case-0000-seed1.transfers.parquet  short flows one by one
//! series/case-0000-seed1.pings.parquet   answers to probes
//! captures/case-0000-seed1-sender.pcap   packets at the senders' hosts, and -receiver.pcap; only if asked for
//! captures/case-0000-seed1-flow0-main.sqlog   events of a flow in qlog; only if asked for
//! runs/<key>.json                        one finished run: its metrics and the hashes of its series and captures
//! timing.json                            wall times of the runs that were made here
//! report.html                            all of it as one page, made from the other files
//! ```
//!
//! A run is known by its key: the hash of the resolved case, the seed and the engine (version and fingerprint of its sources). Resuming repeats no run whose
//! file is there and whole. Every file but `timing.json` and the lock is a pure function of scenario, seeds, program and
//! machine description: the same bytes for any number of threads, and after any number of kills. Wall times are kept apart
//! for that reason.
//!
//! `manifest.json` and the files under `runs/` carry their own SHA-256; the manifest carries that of every other file. What
//! does not match is never read as a result.

mod columns;
mod error;
mod files;
mod machine;
mod samples;
mod series;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_sim::Outcome;
use serde::{Deserialize, Serialize};

use crate::export::{Captures, pcap, qlog};
use crate::ground::Ground;
use crate::metrics::{RunMetrics, Scope};
use crate::report::REPORT;
use crate::result::{Params, RunResult, SeedRun, VERSION};
use crate::scenario::{Case, Scenario, TraceMode};

pub use columns::{Column, Table};
pub use error::StoreError;
pub use files::sha256;
pub use machine::Machine;

/// `manifest.json`: what was run, by what, and what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout of the directory.
    pub format: u32,
    /// Version of the program.
    pub fullpipe: String,
    /// Fingerprint of the sources that decide what a run returns.
    pub engine: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Ground it ran on.
    pub ground: String,
    /// The other host, where the path was the one to there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Where the scenario came from.
    pub origin: String,
    /// The scenario as it was read.
    pub scenario_text: String,
    /// SHA-256 of the scenario's text.
    pub scenario_sha256: String,
    /// Run with what the scenario's `[quick]` sets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Path and text of the files that the scenario refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(String, String)>,
    /// Seeds of every case; where a precision was asked for the first ones, and `runs` has all.
    pub seeds: Vec<u64>,
    /// Parameters of every case.
    pub cases: Vec<Params>,
    /// The machine that wrote it.
    pub machine: Machine,
    /// Every run, by case and seed.
    pub runs: Vec<ManifestRun>,
    /// False until the last file is written.
    pub complete: bool,
    /// Hashes of the files that are not a run's own; empty until complete.
    pub files: Vec<FileHash>,
}

/// A run in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRun {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Hash of resolved case, seed and engine version; name of its file under `runs/`.
    pub key: String,
    /// Its series and captures; empty until complete.
    pub files: Vec<FileHash>,
}

/// A file, relative to the directory, and its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Path with `/`.
    pub path: String,
    /// Hexadecimal.
    pub sha256: String,
}

/// `runs/<key>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredRun {
    format: u32,
    key: String,
    case: usize,
    seed: u64,
    files: Vec<FileHash>,
    metrics: RunMetrics,
}

/// Wall time of a run, for `timing.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Seconds.
    pub wall_s: f64,
    /// Delivered data packets per second.
    pub packets_per_s: f64,
}

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// See [`ManifestRun::key`].
    pub key: String,
}

/// Every run of a scenario, by case and seed, with its key; without the seeds that a precision may ask for. `ground` tells
/// results of one place from those of another.
pub fn plan(scenario: &Scenario, ground: &str) -> Vec<Unit> {
    plan_with(scenario, ground, &scenario.seeds)
}

/// The same with these seeds.
pub fn plan_with(scenario: &Scenario, ground: &str, seeds: &[u64]) -> Vec<Unit> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut units = Vec::new();
    for case in &scenario.cases {
        let text = case.key_text();
        for &seed in seeds {
            let mut key = key(case, &text, seed, ground, 0);
            // Two spellings of one case are two runs, each with its own files.
            let twins = seen.entry(key.clone()).or_default();
            if *twins > 0 {
                key = self::key(case, &text, seed, ground, *twins);
            }
            *twins += 1;
            units.push(Unit {
                case: case.index,
                seed,
                key,
            });
        }
    }
    units
}

fn key(case: &Case, key_text: &str, seed: u64, ground: &str, twin: usize) -> String {
    let groups = format!("{:?}", case.flows);
    let text = format!(
        "fullpipe {VERSION} {ENGINE}\nformat {FORMAT}\nground {ground}\nseed {seed}\ntwin {twin}\n{key_text}\n{groups}\n"
    );
    sha256(text.as_bytes())
}

/// A result directory that is being written.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    manifest: Manifest,
    trace: TraceMode,
    captures: Captures,
    _lock: files::Lock,
}

impl Store {
    /// Takes the directory for these runs, and for further ones among the `possible` ([`Store::extend`]). Without `resume` what an
    /// earlier run of the same scenario left is removed; with it the finished runs stay.
    ///
    /// # Errors
    /// If the directory cannot be written, is in use, or holds something else.
    pub fn create(
        dir: &Path,
        scenario: &Scenario,
        ground: &dyn Ground,
        units: &[Unit],
        possible: &[Unit],
        resume: bool,
    ) -> Result<Store, StoreError> {
        files::make_dir(dir)?;
        let lock = files::Lock::take(dir)?;
        let present = files::names(dir)?;
        let cases: Vec<Params> = scenario.cases.iter().map(params).collect();
        let earlier = present
            .iter()
            .any(|n| n == MANIFEST)
            .then(|| read_manifest(dir));
        match earlier {
            None if present
                .iter()
                .all(|n| n == files::LOCK || files::is_temporary(n)) => {}
            None => {
                return Err(StoreError::Foreign {
                    dir: dir.to_owned(),
                });
            }
            // What is left of a damaged manifest does not say whose the directory is.
            Some(Err(StoreError::Damaged { .. })) if resume => {}
            Some(Err(error)) => return Err(error),
            Some(Ok(m)) => {
                // Another engine gives every run another key: then the scenario's text has to do.
                let possible: BTreeSet<&String> = possible.iter().map(|u| &u.key).collect();
                let same_runs = if m.engine == ENGINE && m.fullpipe == VERSION {
                    let earlier: BTreeSet<&String> = m.runs.iter().map(|r| &r.key).collect();
                    earlier.is_subset(&possible) && units.iter().all(|u| earlier.contains(&u.key))
                } else {
                    m.scenario_text == scenario.text && m.cases == cases
                };
                // A resumed run may add cases and seeds, but never take a finished run away.
                let nothing_lost = m.engine != ENGINE
                    || m.runs.iter().all(|r| {
                        possible.contains(&r.key) || !dir.join(RUNS).join(run_name(&r.key)).exists()
                    });
                let same_place = m.ground == ground.name() && m.peer.as_deref() == ground.peer();
                let taken_up = same_runs || (resume && nothing_lost);
                if m.scenario != scenario.name || !same_place || !taken_up {
                    return Err(StoreError::OtherResult {
                        dir: dir.to_owned(),
                        scenario: m.scenario,
                    });
                }
            }
        }
        let manifest = Manifest {
            format: FORMAT,
            fullpipe: VERSION.to_owned(),
            engine: ENGINE.to_owned(),
            scenario: scenario.name.clone(),
            ground: ground.name().to_owned(),
            peer: ground.peer().map(str::to_owned),
            origin: scenario.origin.clone(),
            scenario_text: scenario.text.clone(),
            scenario_sha256: sha256(scenario.text.as_bytes()),
            quick: scenario.quick,
            inputs: scenario.files.clone(),
            seeds: scenario.seeds.clone(),
            cases,
            machine: Machine::this(),
            runs: manifest_runs(units),
            complete: false,
            files: Vec::new(),
        };
        let store = Store {
            dir: dir.to_owned(),
            manifest,
            trace: scenario.measure.trace,
            captures: Captures::default(),
            _lock: lock,
        };
        // First say that the result is not finished, then take away what would contradict it.
        files::make_dir(&dir.join(RUNS))?;
        files::make_dir(&dir.join(SERIES))?;
        store.write_manifest()?;
        for name in [RESULT, RUNS_TABLE, LINKS_TABLE, TIMING, REPORT] {
            files::remove(&dir.join(name))?;
        }
        store.sweep(|path| resume && !path.starts_with('.'))?;
        Ok(store)
    }

    /// Lets [`Store::save`] write captures too; a run that has none of these is not finished.
    ///
    /// # Errors
    /// If their directory cannot be made.
    pub fn with_captures(mut self, captures: Captures) -> Result<Store, StoreError> {
        if captures.any() {
            files::make_dir(&self.dir.join(CAPTURES))?;
        }
        self.captures = captures;
        Ok(self)
    }

    /// Says that these runs, by case and seed, belong to the result.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn extend(&mut self, units: &[Unit]) -> Result<(), StoreError> {
        self.manifest.runs = manifest_runs(units);
        self.write_manifest()
    }

    /// A finished run of an earlier time, or `None` with the reason if its file is there but not whole.
    ///
    /// # Errors
    /// If a file is there and the system refuses to read it.
    pub fn finished(&self, unit: &Unit) -> Result<Finished, StoreError> {
        let path = self.dir.join(RUNS).join(run_name(&unit.key));
        if !path.exists() {
            return Ok(Finished::No);
        }
        let damaged = |why: &str| {
            Ok(Finished::Damaged(format!(
                "`{}` is damaged ({why}): case {} seed {} is run again",
                path.display(),
                unit.case,
                unit.seed
            )))
        };
        let Some(stored) = unsealed::<StoredRun>(&files::read(&path)?) else {
            return damaged("its hash does not match");
        };
        if stored.key != unit.key || stored.case != unit.case || stored.seed != unit.seed {
            // Whole, but from a matrix in which the case stood elsewhere: its series bear another name.
            return Ok(Finished::No);
        }
        let has = |end: &str| stored.files.iter().any(|f| f.path.ends_with(end));
        if (self.captures.pcap && !has(PCAP)) || (self.captures.qlog && !has(SQLOG)) {
            return Ok(Finished::No);
        }
        for file in &stored.files {
            match files::read(&self.dir.join(&file.path)) {
                Ok(bytes) if sha256(&bytes) == file.sha256 => {}
                Ok(_) => return damaged(&format!("`{}` has changed", file.path)),
                Err(_) => return damaged(&format!("`{}` is missing", file.path)),
            }
        }
        Ok(Finished::Yes(
            StoredFiles(stored.files),
            SeedRun {
                seed: stored.seed,
                metrics: stored.metrics,
            },
        ))
    }

    /// Keeps a run: its series, then the file that says it is finished.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(
        &self,
        case: &Case,
        unit: &Unit,
        metrics: &RunMetrics,
        outcome: &Outcome,
    ) -> Result<StoredFiles, StoreError> {
        let mut hashes = Vec::new();
        let spec = case.run_spec(unit.seed);
        let ours = (
            self.manifest.scenario.as_str(),
            self.manifest.ground.as_str(),
        );
        let meta = series::meta(ours, (case.index, unit.seed), &spec.flows, &outcome.flows);
        let files = series::files(&case.flows, &meta, metrics, outcome, self.trace);
        let files = files.map_err(|e| StoreError::Table {
            name: format!("{SERIES}/{}.parquet", stem(case.index, unit.seed)),
            why: e.to_string(),
        })?;
        for (suffix, bytes) in files {
            let name = format!("{SERIES}/{}{suffix}.parquet", stem(case.index, unit.seed));
            hashes.push(self.write_bytes(name, &bytes)?);
        }
        self.write_captures(case, unit, outcome, &mut hashes)?;
        let stored = StoredRun {
            format: FORMAT,
            key: unit.key.clone(),
            case: unit.case,
            seed: unit.seed,
            files: hashes,
            metrics: metrics.clone(),
        };
        files::write(
            &self.dir.join(RUNS).join(run_name(&unit.key)),
            files::seal(&json(&stored)).as_bytes(),
        )?;
        Ok(StoredFiles(stored.files))
    }

    fn write_captures(
        &self,
        case: &Case,
        unit: &Unit,
        outcome: &Outcome,
        hashes: &mut Vec<FileHash>,
    ) -> Result<(), StoreError> {
        if !self.captures.any() {
            return Ok(());
        }
        let spec = case.run_spec(unit.seed);
        let stem = format!("{CAPTURES}/{}", stem(case.index, unit.seed));
        let rows = &outcome.capture;
        if self.captures.pcap {
            for (end, host) in [
                ("sender", pcap::Host::Sender),
                ("receiver", pcap::Host::Receiver),
            ] {
                let path = format!("{stem}-{end}{PCAP}");
                let sha256 = files::write_with(&self.dir.join(&path), |out| {
                    pcap::write(out, &spec.flows, rows, host)
                })?;
                hashes.push(FileHash { path, sha256 });
            }
        }
        if self.captures.qlog {
            let title = format!(
                "{}, case {}, seed {}",
                self.manifest.scenario, case.index, unit.seed
            );
            for (index, (flow, out)) in spec.flows.iter().zip(&outcome.flows).enumerate() {
                let subject = qlog::Subject {
                    title: &title,
                    index,
                    flow,
                    series: &out.series,
                };
                let path = format!("{stem}-flow{index}-{}{SQLOG}", plain(&flow.name));
                let sha256 = files::write_with(&self.dir.join(&path), |out| {
                    qlog::write(out, &subject, rows)
                })?;
                hashes.push(FileHash { path, sha256 });
            }
        }
        Ok(())
    }

    /// Writes the tables, the result and, last of all, the complete manifest. `runs[i]`: the runs of case `i`, by seed, with
    /// their files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(
        mut self,
        result: &RunResult,
        runs: &[Vec<SeedRun>],
        run_files: Vec<StoredFiles>,
        timings: &[Timing],
    ) -> Result<(), StoreError> {
        for (run, files) in self.manifest.runs.iter_mut().zip(run_files) {
            run.files = files.0;
        }
        let flows = tables::run_table(result, runs, Scope::Flow);
        let links = tables::run_table(result, runs, Scope::Link);
        let text = result.without_times().to_json();
        files::write(&self.dir.join(RESULT), text.as_bytes())?;
        let result_hash = FileHash {
            path: RESULT.to_owned(),
            sha256: sha256(text.as_bytes()),
        };
        self.manifest.files = vec![
            result_hash,
            self.write_table(RUNS_TABLE, &flows)?,
            self.write_table(LINKS_TABLE, &links)?,
        ];
        files::write(&self.dir.join(TIMING), json(&timings).as_bytes())?;
        self.manifest.complete = true;
        let keep = self.belonging();
        self.sweep(|path| keep.contains(path))?;
        self.write_manifest()
    }

    fn belonging(&self) -> BTreeSet<String> {
        let runs = self.manifest.runs.iter();
        runs.flat_map(|r| {
            let series = r.files.iter().map(|f| f.path.clone());
            series.chain([format!("{RUNS}/{}", run_name(&r.key))])
        })
        .collect()
    }

    /// Removes from the directories of runs, series and captures what is not to stay, and temporary files everywhere.
    fn sweep(&self, stays: impl Fn(&str) -> bool) -> Result<(), StoreError> {
        for name in files::names(&self.dir)?
            .iter()
            .filter(|n| files::is_temporary(n))
        {
            files::remove(&self.dir.join(name))?;
        }
        for part in [RUNS, SERIES, CAPTURES] {
            for name in files::names(&self.dir.join(part))? {
                if files::is_temporary(&name) || !stays(&format!("{part}/{name}")) {
                    files::remove(&self.dir.join(part).join(name))?;
                }
            }
        }
        Ok(())
    }

    fn write_manifest(&self) -> Result<(), StoreError> {
        files::write(
            &self.dir.join(MANIFEST),
            files::seal(&json(&self.manifest)).as_bytes(),
        )
    }

    fn write_table(&self, name: &str, table: &Table) -> Result<FileHash, StoreError> {
        let bytes = table.to_parquet().map_err(|e| StoreError::Table {
            name: name.to_owned(),
            why: e.to_string(),
        })?;
        self.write_bytes(name.to_owned(), &bytes)
    }

    fn write_bytes(&self, path: String, bytes: &[u8]) -> Result<FileHash, StoreError> {
        files::write(&self.dir.join(&path), bytes)?;
        let sha256 = sha256(bytes);
        Ok(FileHash { path, sha256 })
    }
}

fn manifest_runs(units: &[Unit]) -> Vec<ManifestRun> {
    let run = |u: &Unit| ManifestRun {
        case: u.case,
        seed: u.seed,
        key: u.key.clone(),
        files: Vec::new(),
    };
    units.iter().map(run).collect()
}

/// Answer of [`Store::finished`].
#[derive(Clone, Debug, PartialEq)]
pub enum Finished {
    /// There, and whole.
    Yes(StoredFiles, SeedRun),
    /// Not there.
    No,
    /// There, but cut or changed: a sentence for the user.
    Damaged(String),
}

/// Files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredFiles(Vec<FileHash>);

/// A finished result, for reading.
#[derive(Clone, Debug)]
pub struct ResultDir {
    dir: PathBuf,
    manifest: Manifest,
}

impl ResultDir {
    /// Opens a finished result.
    ///
    /// # Errors
    /// If there is none, if it is not finished, or if its manifest is damaged.
    pub fn open(dir: &Path) -> Result<ResultDir, StoreError> {
        if !dir.join(MANIFEST).exists() {
            return Err(StoreError::NoResult {
                dir: dir.to_owned(),
            });
        }
        let manifest = read_manifest(dir)?;
        if !manifest.complete {
            return Err(StoreError::Unfinished {
                dir: dir.to_owned(),
            });
        }
        Ok(ResultDir {
            dir: dir.to_owned(),
            manifest,
        })
    }

    /// True if the directory holds a result, finished or not.
    pub fn is_one(dir: &Path) -> bool {
        dir.join(MANIFEST).exists()
    }

    /// The finished results in the subdirectories of `dir`, by name.
    ///
    /// # Errors
    /// If the directory cannot be listed, or if one of the results is not finished or damaged.
    pub fn below(dir: &Path) -> Result<Vec<ResultDir>, StoreError> {
        let dirs = files::names(dir)?.into_iter().map(|name| dir.join(name));
        dirs.filter(|d| ResultDir::is_one(d))
            .map(|d| ResultDir::open(&d))
            .collect()
    }

    /// Writes a file that is made from results into `dir`: whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_beside(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let path = dir.join(name);
        files::write(&path, bytes)?;
        Ok(path)
    }

    /// What was run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The result.
    ///
    /// # Errors
    /// If its file is missing or does not match the manifest.
    pub fn result(&self) -> Result<RunResult, StoreError> {
        let bytes = self.verified(RESULT, &self.manifest.files)?;
        serde_json::from_slice(&bytes).map_err(|e| StoreError::Damaged {
            path: self.dir.join(RESULT),
            why: e.to_string(),
        })
    }

    /// One row per flow, case and seed.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn runs(&self) -> Result<Table, StoreError> {
        self.table(RUNS_TABLE, &self.manifest.files)
    }

    /// One row per link, case and seed.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn links(&self) -> Result<Table, StoreError> {
        self.table(LINKS_TABLE, &self.manifest.files)
    }

    /// A time series of a run, or `None` if the run kept none.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn series(
        &self,
        case: usize,
        seed: u64,
        kind: SeriesKind,
    ) -> Result<Option<Table>, StoreError> {
        let Some(run) = self
            .manifest
            .runs
            .iter()
            .find(|r| r.case == case && r.seed == seed)
        else {
            return Ok(None);
        };
        let name = series_name(case, seed, kind);
        if !run.files.iter().any(|f| f.path == name) {
            return Ok(None);
        }
        self.table(&name, &run.files).map(Some)
    }

    /// Path and bytes of the densest trace of a run's flows, or `None` if the run kept none.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn trace(&self, case: usize, seed: u64) -> Result<Option<(PathBuf, Vec<u8>)>, StoreError> {
        for kind in [SeriesKind::FlowsFull, SeriesKind::Flows] {
            let name = series_name(case, seed, kind);
            if let Some(bytes) = self.of_run(case, seed, &name)? {
                return Ok(Some((self.dir.join(name), bytes)));
            }
        }
        Ok(None)
    }

    /// The packets at a run's senders (pcap), or `None` if it was not captured.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn capture(&self, case: usize, seed: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let name = format!("{CAPTURES}/{}-sender{PCAP}", stem(case, seed));
        self.of_run(case, seed, &name)
    }

    /// The bytes of a file of a run, if it has it.
    fn of_run(&self, case: usize, seed: u64, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut runs = self.manifest.runs.iter();
        let run = runs.find(|r| r.case == case && r.seed == seed);
        match run {
            Some(run) if run.files.iter().any(|f| f.path == name) => {
                self.verified(name, &run.files).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn table(&self, name: &str, hashes: &[FileHash]) -> Result<Table, StoreError> {
        Table::from_parquet(self.verified(name, hashes)?).map_err(|e| StoreError::Damaged {
            path: self.dir.join(name),
            why: e.to_string(),
        })
    }

    fn verified(&self, name: &str, hashes: &[FileHash]) -> Result<Vec<u8>, StoreError> {
        let path = self.dir.join(name);
        let bytes = files::read(&path)?;
        match hashes.iter().find(|f| f.path == name) {
            Some(f) if f.sha256 == sha256(&bytes) => Ok(bytes),
            Some(_) => Err(StoreError::Damaged {
                path,
                why: "its hash is not the one in the manifest".to_owned(),
            }),
            None => Err(StoreError::Damaged {
                path,
                why: "the manifest does not know it".to_owned(),
            }),
        }
    }
}

/// The time series of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// Of the flows, decimated.
    Flows,
    /// Of the flows, a row per ACK.
    FlowsFull,
    /// Of the links.
    Links,
    /// Reductions, timeouts, undos.
    Events,
    /// Rates per interval, of flows and traffic.
    Samples,
    /// Short flows, one by one.
    Transfers,
    /// Answers to probes.
    Pings,
}

/// Path of a time series, relative to the result's directory.
pub fn series_name(case: usize, seed: u64, kind: SeriesKind) -> String {
    let suffix = match kind {
        SeriesKind::Flows => "",
        SeriesKind::FlowsFull => ".full",
        SeriesKind::Links => ".links",
        SeriesKind::Events => ".events",
        SeriesKind::Samples => ".samples",
        SeriesKind::Transfers => ".transfers",
        SeriesKind::Pings => ".pings",
    };
    format!("{SERIES}/{}{suffix}.parquet", stem(case, seed))
}

fn stem(case: usize, seed: u64) -> String {
    format!("case-{case:04}-seed{seed}")
}

/// A name that is safe in a file name; two names may become one.
fn plain(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    name.chars().map(safe).take(40).collect()
}

fn run_name(key: &str) -> String {
    format!("{key}.json")
}

fn params(case: &Case) -> Params {
    Params(
        case.json_params()
            .map(|(k, v)| (k.to_owned(), v.clone()))
            .collect(),
    )
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value)
        .expect("structures with string keys and finite numbers only");
    text.push('\n');
    text
}

fn unsealed<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let object = files::unseal(std::str::from_utf8(bytes).ok()?)?;
    serde_json::from_str(&object).ok()
}

fn read_manifest(dir: &Path) -> Result<Manifest, StoreError> {
    let path = dir.join(MANIFEST);
    let bytes = files::read(&path)?;
    let manifest: Manifest = unsealed(&bytes).ok_or_else(|| StoreError::Damaged {
        path: path.clone(),
        why: "its hash does not match, or it is of another version".to_owned(),
    })?;
    if manifest.format != FORMAT {
        let why = format!("its format is {}, not {FORMAT}", manifest.format);
        return Err(StoreError::Damaged { path, why });
    }
    Ok(manifest)
}

/// True if the directory holds a manifest, finished or not.
pub fn is_result(dir: &Path) -> bool {
    fs::metadata(dir.join(MANIFEST)).is_ok()
}

const FORMAT: u32 = 1;
/// Fingerprint of the sources that decide what a run returns; made by the build script.
const ENGINE: &str = env!("FULLPIPE_ENGINE");
const MANIFEST: &str = "manifest.json";
const RESULT: &str = "result.json";
const RUNS_TABLE: &str = "runs.parquet";
const LINKS_TABLE: &str = "links.parquet";
const TIMING: &str = "timing.json";
const RUNS: &str = "runs";
const SERIES: &str = "series";
const CAPTURES: &str = "captures";
const PCAP: &str = ".pcap";
const SQLOG: &str = ".sqlog";
