//! The search's memory: a file with one line of JSON per scenario. A line is written in one piece;
//! what a kill leaves of the last one is dropped when the file is read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::draw::Class;
use super::trial::Trial;

/// A scenario and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The seed it was drawn from.
    pub seed: u64,
    /// Class of the draw; sets the bounds.
    pub class: Class,
    /// Congestion control of its flows.
    pub stack: String,
    /// The scenario file.
    pub scenario: String,
    /// Kernel that ran it.
    pub kernel: String,
    /// Runs and verdict.
    #[serde(flatten)]
    pub trial: Trial,
}

/// The file, open for further lines.
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the log of a directory, which is made if it is missing, and returns what it holds.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(dir: &Path) -> io::Result<(Self, Vec<Record>)> {
        fs::create_dir_all(dir)?;
        let path = dir.join("fuzz.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let (records, whole) = read(&text);
        if text[whole..].contains('\n') {
            let what = format!(
                "{}, line {}: not a record of this version; use another directory",
                path.display(),
                records.len() + 1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        // Half a line is not to become the begin of the next one.
        file.set_len(whole as u64)?;
        Ok((Self { path, file }, records))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file system's.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        self.file.write_all(line(record)?.as_bytes())
    }

    /// Puts other records in the place of all.
    ///
    /// # Errors
    /// The file system's.
    pub fn replace(&mut self, records: &[Record]) -> io::Result<()> {
        let lines = records.iter().map(line).collect::<io::Result<String>>()?;
        let part = self.path.with_extension("part");
        fs::write(&part, lines)?;
        fs::rename(&part, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        Ok(())
    }
}

fn line(record: &Record) -> io::Result<String> {
    Ok(serde_json::to_string(record)? + "\n")
}

/// The records, and how many bytes they take.
fn read(text: &str) -> (Vec<Record>, usize) {
    let (mut records, mut whole) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let record = line
            .strip_suffix('\n')
            .and_then(|l| serde_json::from_str(l).ok());
        let Some(record) = record else { break };
        records.push(record);
        whole += line.len();
    }
    (records, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seed: u64) -> Record {
        let reason = "`x` is not implemented".to_owned();
        Record {
            seed,
            class: Class::AckLoss,
            stack: "reno-linux".to_owned(),
            scenario: "name = \"x\"\n".to_owned(),
            kernel: "k".to_owned(),
            trial: Trial::Refused { reason },
        }
    }

    #[test]
    fn a_torn_line_is_dropped_and_the_rest_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, before) = Log::open(dir.path()).unwrap();
        assert_eq!(before, []);
        log.add(&record(1)).unwrap();
        log.add(&record(2)).unwrap();
        let path = dir.path().join("fuzz.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        let (mut log, before) = Log::open(dir.path()).unwrap();
        assert_eq!(before, [record(1)]);
        log.add(&record(3)).unwrap();
        let (mut log, before) = Log::open(dir.path()).unwrap();
        assert_eq!(before, [record(1), record(3)]);
        log.replace(&[record(4)]).unwrap();
        log.add(&record(5)).unwrap();
        assert_eq!(Log::open(dir.path()).unwrap().1, [record(4), record(5)]);
    }
}
