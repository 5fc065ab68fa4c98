//! Runs kept by their key alone, whatever scenario made them: for results that are worth nothing
//! when they are lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fullpipe_metrics::RunMetrics;

use super::sha256;

/// A directory of runs. What cannot be read or written is as if it were not there.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Below `dir`, which is made when the first run is kept.
    pub fn new(dir: &Path) -> Cache {
        Cache {
            dir: dir.to_owned(),
        }
    }

    /// The run with this key, if it is there and whole.
    pub fn run(&self, key: &str) -> Option<RunMetrics> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        let (hash, body) = text.split_once('\n')?;
        (sha256(body.as_bytes()) == hash).then_some(())?;
        serde_json::from_str(body).ok()
    }

    /// Keeps a run.
    pub fn keep(&self, key: &str, run: &RunMetrics) {
        let path = self.path(key);
        let Ok(body) = serde_json::to_string(run) else {
            return;
        };
        let text = format!("{}\n{body}", sha256(body.as_bytes()));
        let mine = path.with_extension(std::process::id().to_string());
        let directory = path.parent().map_or(Ok(()), fs::create_dir_all);
        // Without it the run is made again.
        let _ = directory
            .and_then(|()| fs::write(&mine, text))
            .and_then(|()| fs::rename(&mine, &path));
    }

    /// Removes the oldest runs beyond this many.
    pub fn shrink(&self, most: usize) {
        let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
        let dated = |entry: fs::DirEntry| -> Option<(SystemTime, PathBuf)> {
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        };
        let mut all: Vec<(SystemTime, PathBuf)> = entries(&self.dir)
            .flat_map(|folder| entries(&folder.path()).filter_map(dated))
            .collect();
        all.sort();
        for (_, path) in all.iter().take(all.len().saturating_sub(most)) {
            // What stays is removed the next time.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        let folder = key.get(..2).unwrap_or(key);
        self.dir.join(folder).join(format!("{key}.json"))
    }
}
