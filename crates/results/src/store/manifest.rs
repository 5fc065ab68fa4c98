//! `manifest.json`: what belongs to a result.

use std::collections::BTreeSet;
use std::path::Path;

use fullpipe_trace::{ENGINE, GROUND, SCENARIO, VERSION};

use serde::{Deserialize, Serialize};

use super::layout::{FORMAT, MANIFEST};
use super::seal::read_sealed;
use super::{Hash, Machine, StoreError, Unit};
use crate::result::Params;

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
    /// The system whose TCP made the runs, on ground `linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Stacks that fullpipe brought into that system, which has none of that name: their flows
    /// are not the system's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<String>,
    /// The other host, where the path was the one to there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Path of the scenario, name of the built-in one, or `standard input`.
    pub origin: String,
    /// The scenario as it was read.
    pub scenario_text: String,
    /// SHA-256 of the scenario's text.
    pub scenario_sha256: Hash,
    /// Run with what the scenario's `[quick]` sets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Keys and values that `--set` changed in the scenario; absent in results of versions that
    /// did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Vec<(String, String)>>,
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
    pub key: Hash,
    /// Its series and captures; empty until complete.
    pub files: Vec<FileHash>,
}

/// A file, relative to the directory, and its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Path with `/`.
    pub path: String,
    /// Hash of its bytes.
    pub sha256: Hash,
}

impl Manifest {
    /// What a table says of where it is from: all that decides its numbers and is the same
    /// whenever they are made again.
    pub(super) fn origin(&self) -> Vec<(&'static str, String)> {
        let set = self.set.iter().flatten();
        let set = set.map(|(key, value)| (key.clone(), value.as_str().into()));
        let set: serde_json::Map<_, _> = set.collect();
        let seeds = self.runs.iter().map(|run| run.seed);
        let seeds: BTreeSet<u64> = seeds.collect();
        let mut all = vec![
            (VERSION, self.fullpipe.clone()),
            (GROUND, self.ground.clone()),
            (SCENARIO, self.scenario.clone()),
            (ENGINE, self.engine.clone()),
            ("fullpipe.scenario_sha256", self.scenario_sha256.to_string()),
            ("fullpipe.seeds", ranges(&seeds)),
        ];
        if !set.is_empty() {
            all.push(("fullpipe.set", serde_json::Value::Object(set).to_string()));
        }
        if self.quick {
            all.push(("fullpipe.quick", "true".to_owned()));
        }
        let made_by = [
            ("fullpipe.kernel", &self.kernel),
            ("fullpipe.peer", &self.peer),
        ];
        all.extend(
            made_by
                .into_iter()
                .filter_map(|(key, of)| Some((key, of.clone()?))),
        );
        all
    }

    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// If there is none, or if it was changed or is of another version.
    pub(super) fn read(dir: &Path) -> Result<Manifest, StoreError> {
        let path = dir.join(MANIFEST);
        let manifest: Option<Manifest> = read_sealed(&path)?;
        let manifest = manifest.ok_or_else(|| StoreError::Damaged {
            path: path.clone(),
            why: "its hash does not match, or it is of another version".to_owned(),
        })?;
        if manifest.format != FORMAT {
            let why = format!("its format is {}, not {FORMAT}", manifest.format);
            return Err(StoreError::Damaged { path, why });
        }
        Ok(manifest)
    }
}

/// `1-20,30`.
fn ranges(seeds: &BTreeSet<u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for &seed in seeds {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(seed) => *last = seed,
            _ => found.push((seed, seed)),
        }
    }
    let text = |(first, last): (u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let texts: Vec<String> = found.into_iter().map(text).collect();
    texts.join(",")
}

impl From<Unit> for ManifestRun {
    /// A run without files.
    fn from(unit: Unit) -> ManifestRun {
        ManifestRun {
            case: unit.case,
            seed: unit.seed,
            key: unit.key,
            files: Vec::new(),
        }
    }
}
