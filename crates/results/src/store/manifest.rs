//! `manifest.json` and the other files of a result that are JSON and carry their own hash.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::layout::{FORMAT, MANIFEST};
use super::{Machine, StoreError, Unit, files};
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
    /// Where the scenario came from.
    pub origin: String,
    /// The scenario as it was read.
    pub scenario_text: String,
    /// SHA-256 of the scenario's text.
    pub scenario_sha256: String,
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

impl Manifest {
    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// If there is none, or if it was changed or is of another version.
    pub(super) fn read(dir: &Path) -> Result<Manifest, StoreError> {
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
}

/// These units as runs without files.
pub(super) fn runs_of(units: &[Unit]) -> Vec<ManifestRun> {
    let run = |u: &Unit| ManifestRun {
        case: u.case,
        seed: u.seed,
        key: u.key.clone(),
        files: Vec::new(),
    };
    units.iter().map(run).collect()
}

/// A value as a JSON text of several lines.
pub(super) fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value)
        .expect("structures with string keys and finite numbers only");
    text.push('\n');
    text
}

/// Writes a value with its own hash.
pub(super) fn write_sealed(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    files::write(path, files::seal(&json(value)).as_bytes())
}

/// What [`write_sealed`] wrote; `None` if it was changed since, or is of another shape.
pub(super) fn unsealed<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let object = files::unseal(std::str::from_utf8(bytes).ok()?)?;
    serde_json::from_str(&object).ok()
}
