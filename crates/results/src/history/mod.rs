//! A history: a directory of results of one test that is made again and again, or of several, each
//! under the moment at which it began.
//!
//! ```text
//! DIR/20261124T132005.123Z/   a result directory (crate::store), begun at this moment of UTC
//! ```
//!
//! Two runs are of one *kind*, and can be compared, when everything is the same that a user has
//! said of them: other host, scenario and settings. What was measured of the path beforehand is no
//! setting.

mod judge;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fullpipe_metrics::Expression;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::result::{Estimates, RunResult};
use crate::store::{ResultDir, StoreError};

pub use crate::moment::Moment;
pub use judge::{Judged, SMALL, Verdict};

/// Runs of a directory, by kind.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Kinds of runs, in the order in which they first appear.
    pub kinds: Vec<Kind>,
    /// From the oldest to the newest.
    pub runs: Vec<Record>,
    /// Directories of moments without a whole result: of runs that go on, or that were killed.
    pub unfinished: usize,
    /// Of results that are damaged or cannot be read: why, with their paths.
    pub unreadable: Vec<String>,
}

/// Runs that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub struct Kind {
    /// The other host; absent where the path was the scenario's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Name of the scenario; `send` for one made of flags.
    pub scenario: String,
    /// Keys and values, `flow.stack = "cubic"`, in which kinds of this scenario and peer differ.
    pub settings: Vec<String>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Beginning of the run, and name of its directory.
    pub began: Moment,
    /// The result directory, below that of the history.
    pub dir: PathBuf,
    /// Index of its kind in [`History::kinds`].
    pub kind: usize,
    /// As the directory has it: without wall times.
    pub result: RunResult,
}

/// What `history --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Printed<'a> {
    /// Kinds of runs.
    pub kinds: &'a [Kind],
    /// Runs, from the oldest to the newest.
    pub runs: Vec<PrintedRun<'a>>,
    /// The newest run of each kind held against those before it; only with `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<&'a [Judged]>,
}

impl Printed<'_> {
    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Printed<'_>)
    }
}

/// One run, as it is printed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PrintedRun<'a> {
    /// When it began, UTC (RFC 3339).
    pub began: String,
    /// Path of the result directory, relative if the history's was.
    pub dir: String,
    /// Its kind: index in `kinds`.
    pub kind: usize,
    /// Without wall times.
    pub result: &'a RunResult,
}

impl Kind {
    /// `send to dtn.example.org (flow.stack = "cubic")`.
    pub fn headline(&self) -> String {
        let peer = match &self.peer {
            Some(peer) => format!(" with {peer}"),
            None => String::new(),
        };
        let settings = match self.settings.join(", ") {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        format!("{}{peer}{settings}", self.scenario)
    }
}

impl History {
    /// Makes the directory of a run that begins at `now`, or the next free moment, in the history
    /// `dir`, which is made if it is missing.
    ///
    /// # Errors
    /// The folder, or that of the history, cannot be made.
    pub fn begin(dir: &Path, now: Moment) -> io::Result<PathBuf> {
        fs::create_dir_all(dir)?;
        let mut moment = now;
        loop {
            let path = dir.join(moment.name());
            match fs::create_dir(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && moment < Moment::LAST => {
                    moment = Moment(moment.0 + 1);
                }
                made => return made.map(|()| path),
            }
        }
    }

    /// Takes back what [`History::begin`] has made, if nothing came of the run.
    pub fn cancel(run: &Path) {
        // It is empty, or it is kept.
        let _ = fs::remove_dir(run);
    }

    /// Reads every run of a history that can be read: one that is damaged takes none of the others
    /// with it.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(dir: &Path) -> Result<History, StoreError> {
        let failed = |source| StoreError::Io {
            doing: "read",
            path: dir.to_owned(),
            source,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(began) = entry.file_name().to_str().and_then(Moment::of_name) {
                found.push((began, entry.path()));
            }
        }
        found.sort();
        let mut kinds = Vec::new();
        let mut history = History {
            kinds: Vec::new(),
            runs: Vec::new(),
            unfinished: 0,
            unreadable: Vec::new(),
        };
        for (began, dir) in found {
            let (stored, result) = match whole(&dir) {
                Ok(Some(whole)) => whole,
                Ok(None) => {
                    history.unfinished += 1;
                    continue;
                }
                Err(error) => {
                    history.unreadable.push(error.to_string());
                    continue;
                }
            };
            let m = stored.manifest();
            let set = m.set.as_deref().unwrap_or_default();
            let kind = Told::new(m.peer.as_deref(), &m.scenario, &m.scenario_text, set);
            let known = kinds.iter().position(|k| *k == kind);
            let kind = known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            history.runs.push(Record {
                began,
                dir,
                kind,
                result,
            });
        }
        history.kinds = kinds.iter().map(|k| k.among(&kinds)).collect();
        Ok(history)
    }

    /// The runs of a kind, from the oldest to the newest.
    pub fn of_kind(&self, kind: usize) -> impl DoubleEndedIterator<Item = &Record> {
        self.runs.iter().filter(move |r| r.kind == kind)
    }

    /// Only what `keeps` says of kinds, and only the newest `last` runs of each.
    pub fn only(mut self, keeps: impl Fn(&Kind) -> bool, last: usize) -> History {
        let mut left = vec![last; self.kinds.len()];
        let kept = |run: &Record| {
            let left = &mut left[run.kind];
            let is_kept = *left > 0 && keeps(&self.kinds[run.kind]);
            *left = left.saturating_sub(1);
            is_kept
        };
        // From the newest, whose number is known.
        let mut keep: Vec<bool> = self.runs.iter().rev().map(kept).collect();
        keep.reverse();
        let mut keep = keep.into_iter();
        self.runs.retain(|_| keep.next().unwrap_or(false));
        self
    }

    /// The newest run of each kind that counts, held against those before it, by these metrics: a
    /// run that was cut short, or that is not valid, says nothing of the path.
    pub fn judged(&self, metrics: &[String]) -> Vec<Judged> {
        let kinds = 0..self.kinds.len();
        kinds
            .flat_map(|kind| {
                let those = self.of_kind(kind).filter(|r| r.counts());
                judge::newest(kind, &those.collect::<Vec<_>>(), metrics)
            })
            .collect()
    }

    /// Every run with its result, and what was judged, for programs.
    pub fn printed<'a>(&'a self, judged: Option<&'a [Judged]>) -> Printed<'a> {
        let runs = self.runs.iter();
        Printed {
            kinds: &self.kinds,
            runs: runs
                .map(|run| PrintedRun {
                    began: run.began.rfc3339(),
                    dir: run.dir.display().to_string(),
                    kind: run.kind,
                    result: &run.result,
                })
                .collect(),
            judged,
        }
    }
}

impl Record {
    /// Whether it says something of the path: it was not cut short, and it is valid.
    pub fn counts(&self) -> bool {
        self.result.partial().is_none() && self.result.untrue().is_none()
    }

    /// A metric, or an expression over metrics, of every flow and traffic that has it, by name;
    /// what the run as a whole has is of no name.
    pub fn values(&self, metric: &str) -> Vec<(&str, f64)> {
        let (Some(case), Ok(metric)) = (self.result.cases.first(), Expression::parse(metric))
        else {
            return Vec::new();
        };
        let of = |estimates: &Estimates| metric.value(&mut |name| estimates.get(name)?.mean);
        let flows = case.flows.iter().map(|f| (f.name.as_str(), &f.metrics));
        let traffic = case.traffic.iter().map(|t| (t.name.as_str(), &t.metrics));
        let all = flows.chain(traffic).chain([("", &case.metrics.0)]);
        all.filter_map(|(name, estimates)| Some((name, of(estimates)?)))
            .collect()
    }
}

/// The result in a directory, if there is one and it is complete.
fn whole(dir: &Path) -> Result<Option<(ResultDir, RunResult)>, StoreError> {
    if !ResultDir::is_one(dir) {
        return Ok(None);
    }
    let stored = ResultDir::open(dir)?;
    match stored.manifest().complete {
        true => stored.result().map(|result| Some((stored, result))),
        false => Ok(None),
    }
}

/// What a user has said of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    peer: Option<String>,
    scenario: String,
    settings: BTreeSet<String>,
}

impl Told {
    /// `set`: what `--set` has changed in the text.
    fn new(peer: Option<&str>, scenario: &str, text: &str, set: &[(String, String)]) -> Told {
        let mut settings = BTreeSet::new();
        let mut table = "";
        for line in text.lines().map(str::trim) {
            if let Some(head) = line.strip_prefix('[') {
                table = head.trim_matches(['[', ']']);
            } else if line.contains('=') {
                let dot = if table.is_empty() { "" } else { "." };
                settings.insert(format!("{table}{dot}{line}"));
            }
        }
        settings.extend(set.iter().map(|(key, value)| format!("{key} = {value}")));
        settings.retain(|line: &String| !MEASURED.iter().any(|key| line.starts_with(key)));
        Told {
            peer: peer.map(str::to_owned),
            scenario: scenario.to_owned(),
            settings,
        }
    }

    /// As it is told from the others.
    fn among(&self, all: &[Told]) -> Kind {
        let alike = |t: &&Told| (&t.peer, &t.scenario) == (&self.peer, &self.scenario);
        let common = |line: &&String| all.iter().filter(alike).all(|t| t.settings.contains(*line));
        let own = self.settings.iter().filter(|line| !common(line));
        Kind {
            peer: self.peer.clone(),
            scenario: self.scenario.clone(),
            settings: own.cloned().collect(),
        }
    }
}

/// What `send` has found of the path before the run, how it words it, and how often it looks.
const MEASURED: [&str; 4] = ["path.rtt =", "path.rate =", "about =", "measure.interval ="];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, set: &[(&str, &str)]) -> Told {
        let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Told::new(Some("dtn"), "send", text, &set.collect::<Vec<_>>())
    }

    #[test]
    fn a_kind_is_what_was_said_and_not_what_was_measured() {
        let text = "about = \"to x\"\nduration = \"10s\"\n[path]\nrtt = \"7ns\"\n[[flow]]\nw = 1\n";
        let a = told(text, &[]);
        let again = text.replace("7ns", "8ns").replace("to x", "to y");
        assert_eq!(a, told(&again, &[("path.rtt", "9ns")]));
        let b = told(&text.replace("w = 1", "w = 2"), &[]);
        let c = told(text, &[("flow.main.rate", "1Mbit/s")]);
        let all = [a, b, c];
        let headlines: Vec<String> = all.iter().map(|k| k.among(&all).headline()).collect();
        assert_eq!(
            headlines,
            [
                "send with dtn (flow.w = 1)",
                "send with dtn (flow.w = 2)",
                "send with dtn (flow.main.rate = 1Mbit/s, flow.w = 1)",
            ]
        );
    }

    #[test]
    fn runs_of_one_moment_get_directories_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new");
        let now = Moment(1_795_526_405_123);
        let made: Vec<PathBuf> = (0..3).map(|_| History::begin(&dir, now).unwrap()).collect();
        let names: Vec<_> = made.iter().map(|p| p.file_name().unwrap()).collect();
        assert_eq!(
            names,
            [
                "20261124T132005.123Z",
                "20261124T132005.124Z",
                "20261124T132005.125Z"
            ]
        );
        History::cancel(&made[0]);
        let history = History::open(&dir).unwrap();
        assert_eq!((history.unfinished, history.runs.len()), (2, 0));
    }
}
