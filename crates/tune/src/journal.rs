//! Values before a change, written ahead: what `revert` gives back after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kernel::Seen;

/// The journal cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct JournalError {
    path: PathBuf,
    error: io::Error,
}

/// Algorithms of flows before they were adopted, by namespace and cookie: one line each, synced
/// before the flow is touched.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    algorithms: BTreeMap<(u64, u64), String>,
    returned: BTreeMap<(u64, u64), String>,
    boot: String,
}

impl Journal {
    /// Opens or begins one. Lines of an earlier boot count for nothing: cookies begin anew.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError {
            path: path.to_owned(),
            error,
        };
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let mut journal = Self {
            path: path.to_owned(),
            file: None,
            algorithms: BTreeMap::new(),
            returned: BTreeMap::new(),
            boot: boot.trim().to_owned(),
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(failed(e)),
        };
        for line in text.lines() {
            journal.read(line);
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // Cut off by a crash.
            file.write_all(b"\n").map_err(failed)?;
        }
        journal.file = Some(file);
        Ok(journal)
    }

    /// A line that a crash cut short was written before its change, which then was not made.
    fn read(&mut self, line: &str) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return;
        };
        if value["boot"] != self.boot.as_str() {
            return;
        }
        let number = |key: &str| value[key].as_u64();
        let (Some(namespace), Some(cookie)) = (number("namespace"), number("cookie")) else {
            return;
        };
        let key = (namespace, cookie);
        if let Some(before) = value["before"].as_str() {
            self.algorithms.entry(key).or_insert(before.to_owned());
        }
        if let Some(returned) = value["returned"].as_str() {
            self.algorithms.remove(&key);
            self.returned.insert(key, returned.to_owned());
        }
    }

    /// Writes down what a flow runs, before it is touched.
    ///
    /// # Errors
    /// It could not be written: the flow must not be touched.
    pub fn before(&mut self, seen: &Seen) -> Result<(), JournalError> {
        let listing = &seen.listing;
        let key = (seen.namespace, listing.cookie);
        if self.algorithms.contains_key(&key) {
            return Ok(());
        }
        self.write(seen, "before", &listing.algorithm)?;
        self.algorithms.insert(key, listing.algorithm.clone());
        Ok(())
    }

    /// Writes down that a flow has an algorithm back. The kernel calls it chosen from then on, as
    /// if its program had asked for it, and keeps no note of who did.
    ///
    /// # Errors
    /// It could not be written.
    pub fn returned(&mut self, seen: &Seen, algorithm: &str) -> Result<(), JournalError> {
        let key = (seen.namespace, seen.listing.cookie);
        self.write(seen, "returned", algorithm)?;
        self.algorithms.remove(&key);
        self.returned.insert(key, algorithm.to_owned());
        Ok(())
    }

    fn write(&mut self, seen: &Seen, what: &str, algorithm: &str) -> Result<(), JournalError> {
        let line = json!({
            "boot": self.boot,
            "namespace": seen.namespace,
            "cookie": seen.listing.cookie,
            "flow": crate::tuner::label(&seen.listing),
            what: algorithm,
        });
        let failed = |error| JournalError {
            path: self.path.clone(),
            error,
        };
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(format!("{line}\n").as_bytes())
            .map_err(failed)?;
        file.sync_data().map_err(failed)
    }

    /// Whether the flow's algorithm is the one that was given back to it.
    pub fn has_returned(&self, seen: &Seen) -> bool {
        let key = (seen.namespace, seen.listing.cookie);
        self.returned.get(&key) == Some(&seen.listing.algorithm)
    }

    /// What a flow ran before.
    pub fn algorithm(&self, namespace: u64, cookie: u64) -> Option<String> {
        self.algorithms.get(&(namespace, cookie)).cloned()
    }
}
