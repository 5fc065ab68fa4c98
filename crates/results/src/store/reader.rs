//! A finished result, for reading: nothing is returned whose hash is not the one in the manifest.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files;
use super::layout::{
    LINKS_TABLE, MANIFEST, RESULT, RUNS_TABLE, SeriesKind, is_kept, pcap_name, qlog_name,
    series_name,
};
use super::{FileHash, Hash, Manifest, ManifestRun, StoreError, Table};
use crate::capture::pcap::Host;
use crate::result::RunResult;
use fullpipe_trace::WholeFile;

/// A finished result, for reading.
#[derive(Clone, Debug)]
pub struct ResultDir {
    dir: PathBuf,
    manifest: Manifest,
    /// Places of the manifest's runs, by case and seed: a page asks for every run of a million.
    order: Vec<u32>,
}

impl ResultDir {
    /// Opens a finished result.
    ///
    /// # Errors
    /// If there is none, if it is not finished, or if its manifest is damaged.
    pub fn open(dir: &Path) -> Result<ResultDir, StoreError> {
        if !ResultDir::is_one(dir) {
            return Err(StoreError::NoResult {
                dir: dir.to_owned(),
            });
        }
        let manifest = Manifest::read(dir)?;
        if !manifest.complete {
            return Err(StoreError::Unfinished {
                dir: dir.to_owned(),
            });
        }
        let runs = &manifest.runs;
        let mut order: Vec<u32> = (0..).take(runs.len()).collect();
        order.sort_by_key(|place| place_of(&runs[*place as usize]));
        Ok(ResultDir {
            dir: dir.to_owned(),
            manifest,
            order,
        })
    }

    /// True if the directory holds a result, finished or not.
    pub fn is_one(dir: &Path) -> bool {
        dir.join(MANIFEST).exists()
    }

    /// The finished results in the subdirectories of `dir`, by name.
    ///
    /// # Errors
    /// If it is a file or cannot be listed, or if one of the results is not finished or damaged.
    pub fn below(dir: &Path) -> Result<Vec<ResultDir>, StoreError> {
        if dir.is_file() {
            return Err(StoreError::NoResult {
                dir: dir.to_owned(),
            });
        }
        let dirs = files::names(dir)?.into_iter().map(|name| dir.join(name));
        dirs.filter(|d| ResultDir::is_one(d))
            .map(|d| ResultDir::open(&d))
            .collect()
    }

    /// Writes a file that is made from results into `dir`: whole or not at all. A directory that is
    /// missing is made.
    ///
    /// # Errors
    /// If it cannot be written, or is a file that a result keeps its runs in.
    pub fn write_beside(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        files::make_dir(dir)?;
        let path = dir.join(name);
        refuse_kept(&path)?;
        let written = WholeFile::begin(&path).and_then(|whole| {
            whole.file()?.write_all(bytes)?;
            whole.finish()
        });
        written.map_err(|e| files::refused("write", &path, e))?;
        Ok(path)
    }

    /// The manifest as it was read.
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
        self.table(RUNS_TABLE)
    }

    /// One row per link, case and seed.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn links(&self) -> Result<Table, StoreError> {
        self.table(LINKS_TABLE)
    }

    /// [`ResultDir::runs`] and [`ResultDir::links`] with columns of these names only: all that a
    /// version measures take 3 kB a run.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn runs_and_links(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<[Table; 2], StoreError> {
        let table = |name| {
            let bytes = self.verified(name, &self.manifest.files)?;
            let table = Table::some_from_parquet(bytes, is_wanted);
            table.map_err(|e| self.damaged(name, &e))
        };
        Ok([table(RUNS_TABLE)?, table(LINKS_TABLE)?])
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
        let name = series_name(case, seed, kind);
        let bytes = self.of_run(case, seed, &name)?;
        bytes.map(|bytes| self.parsed(&name, bytes)).transpose()
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

    /// The packets at one end of a run (pcap), or `None` if they were not captured.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn capture(
        &self,
        case: usize,
        seed: u64,
        host: Host,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.of_run(case, seed, &pcap_name(case, seed, host))
    }

    /// The events of a run's flow, by index and name, in qlog, or `None` if it was not captured.
    ///
    /// # Errors
    /// Like [`ResultDir::result`].
    pub fn qlog(
        &self,
        case: usize,
        seed: u64,
        (index, flow): (usize, &str),
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.of_run(case, seed, &qlog_name(case, seed, index, flow))
    }

    /// The bytes of a file of a run, if it has it.
    fn of_run(&self, case: usize, seed: u64, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let runs = &self.manifest.runs;
        let wanted = (case, seed);
        let found = self
            .order
            .binary_search_by_key(&wanted, |place| place_of(&runs[*place as usize]));
        match found.ok().map(|at| &runs[self.order[at] as usize]) {
            Some(run) if run.files.iter().any(|f| f.path == name) => {
                self.verified(name, &run.files).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn table(&self, name: &str) -> Result<Table, StoreError> {
        self.parsed(name, self.verified(name, &self.manifest.files)?)
    }

    fn parsed(&self, name: &str, bytes: Vec<u8>) -> Result<Table, StoreError> {
        Table::from_parquet(bytes).map_err(|e| self.damaged(name, &e))
    }

    fn damaged(&self, name: &str, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Damaged {
            path: self.dir.join(name),
            why: why.to_string(),
        }
    }

    fn verified(&self, name: &str, hashes: &[FileHash]) -> Result<Vec<u8>, StoreError> {
        let path = self.dir.join(name);
        let known = hashes.iter().find(|f| f.path == name);
        let bytes = match files::read(&path) {
            Err(StoreError::Io { source, .. })
                if known.is_some() && source.kind() == io::ErrorKind::NotFound =>
            {
                return Err(StoreError::Missing {
                    dir: self.dir.clone(),
                    name: name.to_owned(),
                });
            }
            other => other?,
        };
        match known {
            Some(f) if f.sha256 == Hash::of(&bytes) => Ok(bytes),
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

/// Refuses a place, behind its symbolic links, at which a result keeps its runs.
fn refuse_kept(path: &Path) -> Result<(), StoreError> {
    let Ok(place) = path.canonicalize() else {
        // Nothing is there that could be lost.
        return Ok(());
    };
    let above = place.ancestors().skip(1);
    for dir in above.filter(|dir| ResultDir::is_one(dir)) {
        let name = place.strip_prefix(dir).unwrap_or(&place).to_string_lossy();
        if is_kept(&name) {
            return Err(StoreError::OfResult {
                path: path.to_owned(),
            });
        }
    }
    Ok(())
}

/// Of all runs of a result no other has these.
fn place_of(run: &ManifestRun) -> (usize, u64) {
    (run.case, run.seed)
}
