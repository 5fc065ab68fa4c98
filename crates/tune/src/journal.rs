//! Values before a change, written ahead: what `revert` gives back after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde_json::{Value, json};

use crate::folder;
use crate::kernel::Seen;
use crate::layout::{FlowRecord, Listing, Locks};

/// The journal cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct JournalError {
    path: PathBuf,
    error: io::Error,
}

/// Namespace and cookie of a flow.
pub type Key = (u64, u64);

/// What a flow had before it was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// As `ss -ti` and `tcp_congestion_control` spell it.
    pub algorithm: String,
    /// `sk_max_pacing_rate`, bytes per second; `u64::MAX`: no ceiling.
    pub max_pacing: u64,
    /// `sk_sndbuf`.
    pub send_buffer: u32,
    /// `sk_rcvbuf`.
    pub receive_buffer: u32,
    /// Which of them its program had set.
    pub locks: Locks,
}

/// What it was given. What a flow has and was not given is its program's own, and stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// As `ss -ti` and `tcp_congestion_control` spell it.
    pub algorithm: String,
    /// Ceiling of pacing, bytes per second; 0: none.
    pub ceiling: u32,
    /// `SO_SNDBUF`; 0: none.
    pub send_buffer: u32,
    /// `SO_RCVBUF`; 0: none.
    pub receive_buffer: u32,
}

/// A flow that has been touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `ADDRESS:PORT -> ADDRESS:PORT`, for people who read the file.
    pub flow: String,
    /// Before the first touch.
    pub before: Before,
    /// By the last touch: rules change.
    pub given: Given,
    /// By those before it, oldest first. A flow has one of these until the last has reached it:
    /// a ceiling comes with its next ACK, and an order may be cut off by a crash.
    pub earlier: Vec<Given>,
}

/// Of a divided path whose flows come and go all day, the parts that an idle flow may still have.
const MOST_EARLIER: usize = 64;

impl Entry {
    /// What it has been given, the latest first.
    pub fn gave(&self) -> impl Iterator<Item = &Given> {
        std::iter::once(&self.given).chain(self.earlier.iter().rev())
    }

    /// Comes after `old`, of the same flow.
    fn follow(&mut self, old: &Self) {
        self.earlier.clone_from(&old.earlier);
        if self.given == old.given {
            return;
        }
        self.earlier
            .retain(|given| *given != self.given && *given != old.given);
        self.earlier.push(old.given.clone());
        let above = self.earlier.len().saturating_sub(MOST_EARLIER);
        self.earlier.drain(..above);
    }
}

impl Before {
    /// Of a flow that has not been touched.
    pub fn of(listing: &Listing) -> Self {
        Self {
            algorithm: listing.algorithm.clone(),
            max_pacing: listing.max_pacing,
            send_buffer: listing.send_buffer,
            receive_buffer: listing.receive_buffer,
            locks: listing.locks,
        }
    }

    /// From the kernel side's record of the flow.
    pub fn kept(record: &FlowRecord) -> Self {
        Self {
            algorithm: record.before.clone(),
            max_pacing: record.max_pacing,
            send_buffer: record.send_buffer,
            receive_buffer: record.receive_buffer,
            locks: record.locks,
        }
    }
}

/// What flows had before they were touched: a line each, synced before the flow is touched. Of a
/// new flow, which the kernel side gives its rule by itself, as soon as that is known.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: BTreeMap<Key, Entry>,
    returned: BTreeMap<Key, String>,
    lines: usize,
    boot: String,
}

/// A file of more lines than this, most of them of flows that have ended, is written anew.
const LONG: usize = 4096;

impl Journal {
    /// Opens or begins one. Lines of an earlier boot count for nothing: cookies begin anew.
    ///
    /// # Errors
    /// The file cannot be read or written, or is a link.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError {
            path: path.to_owned(),
            error,
        };
        let text = match folder::text(path) {
            // One that is no regular file is not opened to write, either: that would wait, too.
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            text => text.unwrap_or_default(),
        };
        let mut file = append(path).map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // Cut off by a crash.
            file.write_all(b"\n").map_err(failed)?;
        }
        let mut journal = Self::empty(path, file);
        for line in text.lines() {
            journal.read(line);
        }
        Ok(journal)
    }

    fn empty(path: &Path, file: File) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            path: path.to_owned(),
            file,
            entries: BTreeMap::new(),
            returned: BTreeMap::new(),
            lines: 0,
            boot: boot.trim().to_owned(),
        }
    }

    /// What a journal says, if there is one. What is written to this one goes nowhere.
    ///
    /// # Errors
    /// There is one, and it cannot be read.
    pub fn look(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError {
            path: path.to_owned(),
            error,
        };
        let nowhere = Path::new("/dev/null");
        let mut journal = Self::empty(nowhere, append(nowhere).map_err(failed)?);
        match folder::text(path) {
            Ok(text) => text.lines().for_each(|line| journal.read(line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(journal)
    }

    /// A line that a crash cut short was written before its change, which then was not made.
    fn read(&mut self, line: &str) {
        self.lines += 1;
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return;
        };
        if value["boot"] != self.boot.as_str() {
            return;
        }
        let number = |value: &Value| value.as_u64();
        let (Some(namespace), Some(cookie)) =
            (number(&value["namespace"]), number(&value["cookie"]))
        else {
            return;
        };
        let key = (namespace, cookie);
        if let Some(returned) = value["returned"].as_str() {
            self.entries.remove(&key);
            self.returned.insert(key, returned.to_owned());
        }
        let (before, given) = (&value["before"], &value["given"]);
        if let (Some(was), Some(is)) = (before["algorithm"].as_str(), given["algorithm"].as_str()) {
            let of = |v: &Value| v.as_u64().unwrap_or_default() as u32;
            let mut entry = Entry {
                flow: value["flow"].as_str().unwrap_or_default().to_owned(),
                before: Before {
                    algorithm: was.to_owned(),
                    max_pacing: number(&before["max_pacing"]).unwrap_or(u64::MAX),
                    send_buffer: of(&before["send_buffer"]),
                    receive_buffer: of(&before["receive_buffer"]),
                    locks: Locks::of(of(&before["locks"])),
                },
                given: Given {
                    algorithm: is.to_owned(),
                    ceiling: of(&given["ceiling"]),
                    send_buffer: of(&given["send_buffer"]),
                    receive_buffer: of(&given["receive_buffer"]),
                },
                earlier: Vec::new(),
            };
            if let Some(old) = self.entries.get(&key) {
                entry.follow(old);
            }
            self.returned.remove(&key);
            self.entries.insert(key, entry);
        }
    }

    /// Writes down what flows have and what they are about to be given. What a flow had before the
    /// first time stays.
    ///
    /// # Errors
    /// It could not be written: the flows must not be touched.
    pub fn touch(
        &mut self,
        flows: impl IntoIterator<Item = (Key, Entry)>,
    ) -> Result<(), JournalError> {
        let mut text = String::new();
        let mut changed = Vec::new();
        for (key, mut entry) in flows {
            if let Some(old) = self.entries.get(&key) {
                entry.before = old.before.clone();
                entry.follow(old);
                if *old == entry {
                    continue;
                }
            }
            text += &self.line(key, &entry, &entry.given);
            changed.push((key, entry));
        }
        self.write(&text)?;
        self.lines += changed.len();
        for (key, entry) in changed {
            self.returned.remove(&key);
            self.entries.insert(key, entry);
        }
        Ok(())
    }

    /// Writes down that flows have back what they had; `algorithm` each. The kernel calls it chosen
    /// from then on, as if its program had asked for it, and keeps no note of who did.
    ///
    /// # Errors
    /// It could not be written; it is known all the same.
    pub fn returned(
        &mut self,
        flows: impl IntoIterator<Item = (Key, String)>,
    ) -> Result<(), JournalError> {
        let mut text = String::new();
        for (key, algorithm) in flows {
            text += &self.line_returned(key, &algorithm);
            self.lines += 1;
            self.entries.remove(&key);
            self.returned.insert(key, algorithm);
        }
        self.write(&text)
    }

    /// Forgets flows that are no more.
    ///
    /// # Errors
    /// The file had grown long, and could not be written anew.
    pub fn retain(&mut self, alive: impl Fn(&Key) -> bool) -> Result<(), JournalError> {
        self.entries.retain(|key, _| alive(key));
        self.returned.retain(|key, _| alive(key));
        if self.lines <= LONG + 2 * self.needed() {
            return Ok(());
        }
        self.rewrite()
    }

    /// Lines that say all of it.
    fn needed(&self) -> usize {
        let entries = self.entries.values().map(|e| 1 + e.earlier.len());
        entries.sum::<usize>() + self.returned.len()
    }

    /// The end, when flows have back what they had: what has ended goes, in the file too. Flows of
    /// namespaces that were not looked into (`seen`) stay, known or not.
    ///
    /// # Errors
    /// The file could not be written anew.
    pub fn conclude(
        &mut self,
        alive: impl Fn(&Key) -> bool,
        seen: impl Fn(u64) -> bool,
    ) -> Result<(), JournalError> {
        let stays = |key: &Key| alive(key) || !seen(key.0);
        // Memory has forgotten those that no listing showed.
        for (key, entry) in Self::look(&self.path)?.entries {
            if !seen(key.0) && !self.knows(key) {
                self.entries.insert(key, entry);
            }
        }
        self.entries.retain(|key, _| stays(key));
        self.returned.retain(|key, _| stays(key));
        // In place where the disk has no room for both: nothing is to be given back any more that
        // a crash in between could lose.
        self.rewrite().or_else(|_| self.replace())
    }

    fn text(&self) -> String {
        let entries = self.entries.iter().flat_map(|(k, e)| {
            let given = e.earlier.iter().chain([&e.given]);
            given.map(|given| self.line(*k, e, given))
        });
        let returned = self.returned.iter().map(|(k, a)| self.line_returned(*k, a));
        entries.chain(returned).collect()
    }

    fn rewrite(&mut self) -> Result<(), JournalError> {
        let text = self.text();
        let anew = self.path.with_extension("new");
        let written = (|| {
            let _ = fs::remove_file(&anew);
            let mut file = append(&anew)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&anew, &self.path)?;
            Ok(file)
        })();
        let written = written.inspect_err(|_| drop(fs::remove_file(&anew)));
        self.file = written.map_err(|error| self.failed(error))?;
        self.lines = self.needed();
        Ok(())
    }

    fn replace(&mut self) -> Result<(), JournalError> {
        let emptied = self.file.set_len(0);
        emptied.map_err(|error| self.failed(error))?;
        self.write(&self.text())?;
        self.lines = self.needed();
        Ok(())
    }

    fn line(&self, (namespace, cookie): Key, entry: &Entry, given: &Given) -> String {
        let Entry { flow, before, .. } = entry;
        let line = json!({
            "boot": self.boot,
            "namespace": namespace,
            "cookie": cookie,
            "flow": flow,
            "before": {
                "algorithm": before.algorithm,
                "max_pacing": before.max_pacing,
                "send_buffer": before.send_buffer,
                "receive_buffer": before.receive_buffer,
                "locks": before.locks.bits(),
            },
            "given": {
                "algorithm": given.algorithm,
                "ceiling": given.ceiling,
                "send_buffer": given.send_buffer,
                "receive_buffer": given.receive_buffer,
            },
        });
        format!("{line}\n")
    }

    fn line_returned(&self, (namespace, cookie): Key, algorithm: &str) -> String {
        let line = json!({
            "boot": self.boot,
            "namespace": namespace,
            "cookie": cookie,
            "returned": algorithm,
        });
        format!("{line}\n")
    }

    fn write(&mut self, text: &str) -> Result<(), JournalError> {
        if text.is_empty() {
            return Ok(());
        }
        let length = self.file.metadata().map(|file| file.len());
        let written = self.file.write_all(text.as_bytes());
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|error| {
            // The beginning of a line would spoil the next one.
            let _ = length.and_then(|length| self.file.set_len(length));
            self.failed(error)
        })
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError {
            path: self.path.clone(),
            error,
        }
    }

    /// Whether the flow's algorithm is the one that was given back to it.
    pub fn has_returned(&self, seen: &Seen) -> bool {
        self.returned.get(&seen.key()) == Some(&seen.listing.algorithm)
    }

    /// Whether it has a line about the flow.
    pub fn knows(&self, key: Key) -> bool {
        self.entries.contains_key(&key) || self.returned.contains_key(&key)
    }

    /// What a flow that has been touched had, and was given.
    pub fn entry(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    /// All flows that have been touched.
    pub fn entries(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter()
    }
}

#[cfg(test)]
impl Journal {
    /// From now on the disk is full, or has room again.
    pub(crate) fn fill_disk(&mut self, is_full: bool) {
        let path = match is_full {
            true => Path::new("/dev/full"),
            false => &self.path,
        };
        self.file = append(path).expect("it is there");
    }
}

/// For root, or the tuner's own user, alone: it names who speaks to whom.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(algorithm: &str, given: &str) -> Entry {
        Entry {
            flow: "here -> there".into(),
            before: Before {
                algorithm: algorithm.into(),
                max_pacing: u64::MAX,
                send_buffer: 87_040,
                receive_buffer: 131_072,
                locks: Locks::of(2),
            },
            given: Given {
                algorithm: given.into(),
                ceiling: 1_000,
                send_buffer: 5,
                receive_buffer: 0,
            },
            earlier: Vec::new(),
        }
    }

    #[test]
    fn what_was_written_is_read_and_the_first_before_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        journal.touch([((1, 7), entry("reno", "fp_aimd"))]).unwrap();
        journal.touch([((1, 8), entry("bbr", "fp_aimd"))]).unwrap();
        journal
            .touch([((1, 7), entry("fp_aimd", "dctcp"))])
            .unwrap();
        journal.returned([((1, 8), "bbr".to_owned())]).unwrap();
        // A crash in the middle of a line.
        fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut f| f.write_all(b"{\"boot\":"))
            .unwrap();
        let read = Journal::open(&path).unwrap();
        let mut last = entry("reno", "dctcp");
        last.earlier.push(entry("reno", "fp_aimd").given);
        assert_eq!(read.entry((1, 7)), Some(&last));
        assert_eq!((read.entry((1, 8)), read.entries.len()), (None, 1));
        assert_eq!(read.returned, BTreeMap::from([((1, 8), "bbr".to_owned())]));
    }

    #[test]
    fn what_was_given_before_the_last_is_known_after_a_rewrite_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let with = |ceiling| {
            let mut entry = entry("reno", "fp_aimd");
            entry.given.ceiling = ceiling;
            entry
        };
        let ceilings = |journal: &Journal| {
            let entry = journal.entry((1, 7)).unwrap();
            entry.gave().map(|g| g.ceiling).collect::<Vec<_>>()
        };
        for ceiling in [9, 4, 3, 4, 4] {
            journal.touch([((1, 7), with(ceiling))]).unwrap();
        }
        assert_eq!(ceilings(&journal), [4, 3, 9]);
        journal.rewrite().unwrap();
        assert_eq!(ceilings(&Journal::open(&path).unwrap()), [4, 3, 9]);
        for ceiling in 100..300 {
            journal.touch([((1, 7), with(ceiling))]).unwrap();
        }
        assert_eq!(ceilings(&journal).len(), MOST_EARLIER + 1);
        assert_eq!(ceilings(&journal)[..3], [299, 298, 297]);
        journal.returned([((1, 7), "reno".to_owned())]).unwrap();
        journal.touch([((1, 7), with(5))]).unwrap();
        assert_eq!(ceilings(&Journal::open(&path).unwrap()), [5]);
    }

    #[test]
    fn a_line_that_is_damaged_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        for cookie in 7..10 {
            let flow = ((1, cookie), entry("reno", "fp_aimd"));
            journal.touch([flow]).unwrap();
        }
        let mut bytes = fs::read(&path).unwrap();
        let second = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
        bytes[second + 2] = 0xff;
        fs::write(&path, bytes).unwrap();
        for read in [Journal::look(&path), Journal::open(&path)] {
            let read = read.unwrap();
            let keys: Vec<Key> = read.entries().map(|(k, _)| *k).collect();
            assert_eq!(keys, [(1, 7), (1, 9)]);
        }
    }

    #[test]
    fn flows_that_are_no_more_leave_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let flows = (0..2 * LONG as u64).map(|k| ((1, k), entry("reno", "fp_aimd")));
        journal.touch(flows).unwrap();
        journal.retain(|&(_, cookie)| cookie == 5).unwrap();
        journal.touch([((1, 6), entry("reno", "fp_aimd"))]).unwrap();
        let read = Journal::open(&path).unwrap();
        let keys: Vec<Key> = read.entries().map(|(k, _)| *k).collect();
        assert_eq!(keys, [(1, 5), (1, 6)]);
    }

    #[test]
    fn what_has_ended_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let flows = (6..9).map(|k| ((1, k), entry("reno", "fp_aimd")));
        journal.touch(flows).unwrap();
        journal.returned([((1, 6), "reno".to_owned())]).unwrap();
        let seen = |namespace| namespace == 1;
        journal.touch([((2, 9), entry("bbr", "dctcp"))]).unwrap();
        // A listing shows nothing of other namespaces.
        journal.retain(|&(namespace, _)| namespace == 1).unwrap();
        journal.conclude(|&(_, cookie)| cookie == 7, seen).unwrap();
        let read = Journal::open(&path).unwrap();
        let keys: Vec<Key> = read.entries().map(|(k, _)| *k).collect();
        assert_eq!(
            (keys, read.returned),
            (vec![(1, 7), (2, 9)], BTreeMap::new())
        );
        journal.conclude(|_| false, |_| true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("journal"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(Journal::open(&path).is_err());
        assert!(!target.exists());
    }

    #[test]
    fn a_pipe_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for refused in [Journal::open(&path), Journal::look(&path)] {
            let why = refused.unwrap_err().to_string();
            assert!(why.ends_with("journal: it is no regular file"), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        journal.touch([((1, 7), entry("reno", "fp_aimd"))]).unwrap();
        journal.fill_disk(true);
        journal
            .touch([((1, 8), entry("reno", "fp_aimd"))])
            .unwrap_err();
        journal
            .touch([((1, 7), entry("reno", "dctcp"))])
            .unwrap_err();
        assert_eq!(journal.entry((1, 7)), Some(&entry("reno", "fp_aimd")));
        assert_eq!(journal.entry((1, 8)), None);
        // A flow has back what it had, whether that can be written or not.
        journal.returned([((1, 7), "reno".to_owned())]).unwrap_err();
        assert_eq!(journal.entry((1, 7)), None);
        journal.fill_disk(false);
        journal.touch([((1, 8), entry("reno", "fp_aimd"))]).unwrap();
        assert!(Journal::open(&path).unwrap().knows((1, 8)));
    }
}
