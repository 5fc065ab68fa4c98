//! A result directory that is being written.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use fullpipe_run::Outcome;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer as _};

use super::claim::{Claim, Earlier};
use super::files;
use super::layout::REPORT;
use super::layout::{
    CAPTURES, FORMAT, LINKS_TABLE, MANIFEST, PCAP, RESULT, RUNS, RUNS_TABLE, SERIES, SQLOG, TIMING,
    is_kept, is_of_run, key_of, pcap_name, qlog_name, run_name, series_name,
};
use super::seal::{read_sealed, write_sealed};
use super::{
    AllRuns, FileHash, Hash, Machine, Manifest, ManifestRun, Planned, SeriesKind, StoreError, Unit,
    Variables, engine,
    series::{self, DECIMATED_ROWS},
    tables,
};
use crate::capture::{Captures, has_stamps, pcap, qlog};
use crate::moment::Moment;
use crate::result::{CaseResult, Params, RunResult, VERSION};
use fullpipe_metrics::{RunMetrics, Scope};
use fullpipe_run::Ground;
use fullpipe_scenario::{Case, Scenario, TraceMode};

/// A result directory that is being written. What is there stays as it is until the first run is
/// to be kept: a ground that refuses or a host that does not answer costs no earlier result, and
/// leaves no directory behind.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    manifest: Manifest,
    trace: TraceMode,
    /// Seeds whose time series are kept; `None`: all.
    series_of: Option<Vec<u64>>,
    /// Rows of a flow in them; `None`: all.
    rows: Option<usize>,
    captures: Captures,
    /// Finished runs that were there and are of no use to this result, and why.
    outdated: (usize, Earlier),
    earlier: Earlier,
    /// The directory holds this result, and no longer the earlier one.
    begun: Mutex<bool>,
    written: Mutex<Written>,
    /// Directories that were made for it, the innermost first.
    made: Vec<PathBuf>,
    _lock: files::Lock,
}

/// The captures that are asked for, and of those in a result that is resumed the kinds that it has:
/// what is made again is captured again.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn captures_with(asked: Captures, dir: &Path) -> Result<Captures, StoreError> {
    let names = files::names(&dir.join(CAPTURES))?;
    let ours = |name: &&String| is_of_run(name);
    let has = |end: &str| names.iter().filter(ours).any(|name| name.ends_with(end));
    Ok(Captures {
        pcap: asked.pcap || has(PCAP),
        qlog: asked.qlog || has(SQLOG),
    })
}

impl Store {
    /// Takes the directory for these runs, and for further ones among the `possible`
    /// ([`Store::extend`]); `earlier` says what becomes of a result that is there.
    ///
    /// # Errors
    /// If the directory cannot be written, is in use, or holds something else.
    pub fn create(
        dir: &Path,
        scenario: &Scenario,
        ground: &dyn Ground,
        (runs, possible): (Planned<'_>, Planned<'_>),
        earlier: Earlier,
    ) -> Result<Store, StoreError> {
        let made = files::missing_dirs(dir);
        files::make_dir(dir)?;
        let lock = files::Lock::take(dir)?;
        let cases: Vec<Params> = scenario.cases.iter().map(Params::of).collect();
        let claim = Claim {
            scenario,
            cases: &cases,
            ground,
            runs,
            possible,
            earlier,
        };
        claim.check(dir)?;
        let manifest = Manifest {
            format: FORMAT,
            fullpipe: VERSION.to_owned(),
            engine: engine::of(ground),
            scenario: scenario.name.clone(),
            ground: ground.name().to_owned(),
            kernel: ground.kernel(),
            brought: engine::brought(scenario, ground),
            peer: ground.peer().map(str::to_owned),
            origin: scenario.origin.clone(),
            scenario_text: scenario.text.clone(),
            scenario_sha256: Hash::of(scenario.text.as_bytes()),
            quick: scenario.quick,
            set: Some(scenario.set.clone()),
            inputs: scenario.files.clone(),
            seeds: scenario.seeds.clone(),
            cases,
            machine: Machine::this(),
            runs: runs.each().map(ManifestRun::from).collect(),
            complete: false,
            files: Vec::new(),
        };
        let outdated = outdated(dir, possible, earlier)?;
        let series_of = series_of(scenario, runs.len());
        let kept = series_of.as_ref().map_or(scenario.seeds.len(), Vec::len);
        Ok(Store {
            dir: dir.to_owned(),
            manifest,
            trace: scenario.measure.trace,
            rows: rows_of(scenario, kept),
            series_of,
            captures: Captures::default(),
            outdated,
            earlier,
            begun: Mutex::new(false),
            written: Mutex::new(Written::default()),
            made,
            _lock: lock,
        })
    }

    /// Puts this result in the place of the earlier one, once.
    fn begin(&self) -> Result<(), StoreError> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if *begun {
            return Ok(());
        }
        // First say what this is, and that it is not finished, then take away what would
        // contradict it.
        self.write_manifest()?;
        files::make_dir(&self.dir.join(RUNS))?;
        files::make_dir(&self.dir.join(SERIES))?;
        if self.captures.any() {
            files::make_dir(&self.dir.join(CAPTURES))?;
        }
        for name in [RESULT, RUNS_TABLE, LINKS_TABLE, TIMING, REPORT] {
            files::remove(&self.dir.join(name))?;
        }
        self.sweep(|_, _| self.earlier != Earlier::Remade)?;
        *begun = true;
        Ok(())
    }

    fn has_begun(&self) -> bool {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finished runs that were there and are not taken over, and how they were meant:
    /// [`Earlier::Remade`] are such as could be, of [`Earlier::Resumed`] another engine made them.
    pub fn outdated(&self) -> (usize, Earlier) {
        self.outdated
    }

    /// Lets [`Store::save`] write captures too; a run that has none of these is not finished.
    pub fn with_captures(mut self, captures: Captures) -> Store {
        self.captures = captures;
        self
    }

    /// Says that these runs, by case and seed, belong to the result.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn extend(&mut self, runs: Planned<'_>) -> Result<(), StoreError> {
        self.manifest.runs = runs.each().map(ManifestRun::from).collect();
        match self.has_begun() {
            true => self.write_manifest(),
            false => Ok(()),
        }
    }

    /// A finished run of an earlier time, or `None` with the reason if its file is there but not
    /// whole.
    ///
    /// # Errors
    /// If a file is there and the system refuses to read it.
    pub fn finished(&self, unit: &Unit) -> Result<Finished, StoreError> {
        let path = self.dir.join(run_name(unit.key));
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
        let Some(stored) = read_sealed::<StoredRun>(&path)? else {
            return damaged("its hash does not match");
        };
        if stored.key != unit.key || stored.case != unit.case || stored.seed != unit.seed {
            // Whole, but from a matrix in which the case stood elsewhere: its series bear another
            // name.
            return Ok(Finished::No);
        }
        let has = |end: &str| stored.files.iter().any(|f| f.path.ends_with(end));
        if (self.captures.pcap && !has(PCAP)) || (self.captures.qlog && !has(SQLOG)) {
            return Ok(Finished::No);
        }
        for file in &stored.files {
            match files::read(&self.dir.join(&file.path)) {
                Ok(bytes) if Hash::of(&bytes) == file.sha256 => {}
                Ok(_) => return damaged(&format!("`{}` has changed", file.path)),
                Err(_) => return damaged(&format!("`{}` is missing", file.path)),
            }
        }
        Ok(Finished::Yes(
            StoredFiles(stored.files),
            Box::new(stored.metrics),
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
        self.begin()?;
        let mut hashes = Vec::new();
        let meta = series::meta(&self.manifest, unit, &outcome.flows);
        let has_series = |seeds: &Vec<u64>| seeds.contains(&unit.seed);
        let files = match self.series_of.as_ref().is_none_or(has_series) {
            true => {
                let trace = (self.trace, self.rows);
                series::files(&case.flows, &meta, metrics, outcome, trace)
            }
            false => Ok(Vec::new()),
        };
        let files = files.map_err(|e| StoreError::Table {
            name: series_name(case.index, unit.seed, SeriesKind::Flows),
            why: e.to_string(),
        })?;
        for (kind, bytes) in files {
            let name = series_name(case.index, unit.seed, kind);
            hashes.push(self.write_bytes(name, &bytes)?);
        }
        self.write_captures(case, unit, outcome, &mut hashes)?;
        let stored = StoredRun {
            format: FORMAT,
            key: unit.key,
            case: unit.case,
            seed: unit.seed,
            files: hashes,
            metrics: metrics.clone(),
        };
        let own = run_name(unit.key);
        write_sealed(&self.dir.join(&own), &stored)?;
        self.count(&own, &stored.files);
        Ok(StoredFiles(stored.files))
    }

    fn count(&self, own: &str, files: &[FileHash]) {
        let (series, rest): (Vec<_>, Vec<_>) = (files.iter().map(|file| file.path.as_str()))
            .partition(|path| path.starts_with(SERIES));
        let sum = |paths: &[&str]| paths.iter().map(|path| self.size(path)).sum::<u64>();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.runs += 1;
        written.bytes += self.size(own) + sum(&rest);
        written.with_series += u64::from(!series.is_empty());
        written.of_series += sum(&series);
    }

    /// Bytes of the files of runs that were kept so far, and of all `runs` when they are like
    /// those, of which the first seeds alone may have time series.
    pub fn bytes(&self, runs: usize) -> (u64, u64) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let seeds = self.series_of.as_ref().map(Vec::len);
        let with_series = seeds.map_or(runs, |n| runs.min(n * self.manifest.cases.len()));
        let all = |bytes: u64, of: u64, n: usize| bytes as f64 / of.max(1) as f64 * n as f64;
        let rest = all(written.bytes, written.runs, runs);
        let series = all(written.of_series, written.with_series, with_series);
        (written.bytes + written.of_series, (rest + series) as u64)
    }

    fn size(&self, name: &str) -> u64 {
        // A file that somebody takes away is no reason to stop.
        fs::metadata(self.dir.join(name)).map_or(0, |file| file.len())
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
        let rows = &outcome.capture;
        if self.captures.pcap {
            for host in [pcap::Host::Sender, pcap::Host::Receiver] {
                let path = pcap_name(case.index, unit.seed, host);
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
                    name: &flow.name,
                    about: &format!(
                        "flow {}, {}, simulated by fullpipe; the vocabulary is QUIC's",
                        flow.name, flow.stack
                    ),
                    mss: flow.sender.mss,
                    stamps: has_stamps(flow),
                    detector: Some(flow.sender.recovery.detector),
                    states: &out.series.rows,
                };
                let path = qlog_name(case.index, unit.seed, index, &flow.name);
                let sha256 = files::write_with(&self.dir.join(&path), |out| {
                    qlog::write(out, &subject, rows)
                })?;
                hashes.push(FileHash { path, sha256 });
            }
        }
        Ok(())
    }

    /// Writes the tables, the result and, last of all, the complete manifest. Cases of the result
    /// may lack their metrics: `case` makes them once more.
    ///
    /// # Errors
    /// If a file cannot be written, or a run not be read.
    pub(crate) fn finish(
        mut self,
        (result, variables, case): Results<'_>,
        runs: &dyn AllRuns,
    ) -> Result<(), StoreError> {
        self.begin()?;
        let stored = |out: &mut (dyn Write + Send)| result.write_stored(case, out);
        let result_hash = FileHash {
            path: RESULT.to_owned(),
            sha256: files::write_with(&self.dir.join(RESULT), stored)?,
        };
        let columns = (result, variables);
        self.manifest.files = vec![
            result_hash,
            self.write_table(RUNS_TABLE, columns, runs, Scope::Flow)?,
            self.write_table(LINKS_TABLE, columns, runs, Scope::Link)?,
        ];
        let timing = self.dir.join(TIMING);
        let mut listed = self.manifest.runs.iter_mut();
        files::write_with(&timing, |out| {
            write_timing(out, &self.dir, runs, &mut listed)
        })?;
        self.manifest.complete = true;
        self.sweep_foreign()?;
        self.write_manifest()
    }

    /// Removes what belongs to no run of the manifest.
    fn sweep_foreign(&self) -> Result<(), StoreError> {
        let runs = &self.manifest.runs;
        let mut keys: Vec<Hash> = runs.iter().map(|r| r.key).collect();
        keys.sort_unstable();
        let paths = runs.iter().flat_map(|r| &r.files).map(|f| f.path.as_str());
        let paths: BTreeSet<&str> = paths.collect();
        self.sweep(|part, name| match part {
            RUNS => key_of(name).is_some_and(|key| keys.binary_search(&key).is_ok()),
            _ => paths.contains(format!("{part}/{name}").as_str()),
        })
    }

    /// Removes from the directories of runs, series and captures what is not to stay, by directory
    /// and name, and temporary files everywhere. What nobody here has made stays.
    fn sweep(&self, stays: impl Fn(&str, &str) -> bool) -> Result<(), StoreError> {
        files::sweep(&self.dir, |name| !files::is_temporary(name))?;
        for part in [RUNS, SERIES, CAPTURES] {
            let is_ours = |name: &str| is_kept(&format!("{part}/{name}"));
            files::sweep(&self.dir.join(part), |name| {
                !files::is_temporary(name) && (!is_ours(name) || stays(part, name))
            })?;
        }
        Ok(())
    }

    fn write_manifest(&self) -> Result<(), StoreError> {
        write_sealed(&self.dir.join(MANIFEST), &self.manifest)
    }

    fn write_table(
        &self,
        name: &str,
        columns: (&RunResult, &Variables),
        runs: &dyn AllRuns,
        scope: Scope,
    ) -> Result<FileHash, StoreError> {
        let sha256 = files::write_with(&self.dir.join(name), |out| {
            tables::write_table(out, &self.manifest.origin(), columns, runs, scope)
        })?;
        let path = name.to_owned();
        Ok(FileHash { path, sha256 })
    }

    fn write_bytes(&self, path: String, bytes: &[u8]) -> Result<FileHash, StoreError> {
        files::write(&self.dir.join(&path), bytes)?;
        let sha256 = Hash::of(bytes);
        Ok(FileHash { path, sha256 })
    }
}

/// Runs and bytes written, with and without time series.
#[derive(Debug, Default)]
struct Written {
    runs: u64,
    /// All but time series.
    bytes: u64,
    with_series: u64,
    of_series: u64,
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.has_begun() || self.made.is_empty() {
            return;
        }
        // Best effort: what stays is empty, and in nobody's way.
        let _ = files::remove(&self.dir.join(files::LOCK));
        for dir in &self.made {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// See [`Store::outdated`].
fn outdated(
    dir: &Path,
    possible: Planned<'_>,
    earlier: Earlier,
) -> Result<(usize, Earlier), StoreError> {
    let mut there = 0;
    for name in files::each_name(&dir.join(RUNS))? {
        there += usize::from(!files::is_temporary(&name?));
    }
    if there == 0 {
        return Ok((0, earlier));
    }
    let is_there = |unit: &Unit| dir.join(run_name(unit.key)).exists();
    let ours = possible.each().filter(is_there).count();
    let others = there - ours;
    Ok(match (earlier, ours) {
        (Earlier::Remade, 0) => (others, Earlier::Resumed),
        (Earlier::Remade, ours) => (ours, Earlier::Remade),
        (earlier, _) => (others, earlier),
    })
}

/// Writes the wall times of the runs that were made now, and gives the runs of the manifest their
/// files.
fn write_timing(
    out: &mut dyn Write,
    dir: &Path,
    runs: &dyn AllRuns,
    listed: &mut dyn Iterator<Item = &mut ManifestRun>,
) -> io::Result<()> {
    let mut json = serde_json::Serializer::pretty(&mut *out);
    let mut times = json.serialize_seq(None)?;
    let mut written = Ok(());
    let read = runs.beside(&mut |files, timing| {
        let mut ended = None;
        if let Some(run) = listed.next() {
            run.files = files.0;
            ended = written_at(&dir.join(run_name(run.key)));
        }
        if let (Some(timing), Ok(())) = (timing, &written) {
            written = times.serialize_element(&Timing { ended, ..timing });
        }
    });
    read.map_err(io::Error::other)?;
    written?;
    times.end()?;
    out.write_all(b"\n")
}

/// When a file was written, UTC.
fn written_at(path: &Path) -> Option<String> {
    let modified = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Moment(since.as_millis() as u64).rfc3339())
}

/// Answer of [`Store::finished`].
#[derive(Clone, Debug, PartialEq)]
pub enum Finished {
    /// There, and whole.
    Yes(StoredFiles, Box<RunMetrics>),
    /// Not there.
    No,
    /// There, but cut or changed: a sentence for the user.
    Damaged(String),
}

/// Files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFiles(Vec<FileHash>);

/// Wall time of a run, for `timing.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Seconds.
    pub wall_s: f64,
    /// Delivered data packets per second.
    pub packets_per_s: f64,
    /// When the run was finished and kept, UTC (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A result, the variables of its runs, and what makes its cases.
pub(crate) type Results<'a> = (
    &'a RunResult,
    &'a Variables,
    &'a dyn Fn(usize) -> io::Result<CaseResult>,
);

/// A file under `runs/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredRun {
    format: u32,
    key: Hash,
    case: usize,
    seed: u64,
    files: Vec<FileHash>,
    metrics: RunMetrics,
}

/// Most runs of a result that all have their time series, and most flows that have all their rows:
/// some 60 MB, as a rule.
const MOST_SERIES: usize = 500;
/// Fewest rows of a flow: what a picture shows.
const FEWEST_ROWS: usize = 500;

/// Of a larger result the first seeds of each case have theirs, at least one.
fn series_of(scenario: &Scenario, runs: usize) -> Option<Vec<u64>> {
    if scenario.measure.trace != TraceMode::Decimated || runs <= MOST_SERIES {
        return None;
    }
    let seeds = (MOST_SERIES / scenario.cases.len().max(1)).max(1);
    Some(scenario.seeds.iter().take(seeds).copied().collect())
}

/// Rows of a flow, where more flows than [`MOST_SERIES`] have a series: they share the rows of so
/// many.
fn rows_of(scenario: &Scenario, seeds: usize) -> Option<usize> {
    let flows = |case: &Case| {
        case.flows
            .iter()
            .map(|group| group.members.len())
            .sum::<usize>()
    };
    let flows = seeds * scenario.cases.iter().map(flows).sum::<usize>();
    let most = MOST_SERIES * DECIMATED_ROWS / flows.max(1);
    (flows > MOST_SERIES).then(|| most.max(FEWEST_ROWS))
}
