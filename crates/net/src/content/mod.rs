//! Payload agreed between two hosts: which file and from which byte before the run, and whether
//! everything arrived after it.
//!
//! The client asks, the server answers ([`Question`], [`Answer`]); asking again changes nothing.
//! What takes time, hashing what is there already or bringing a file to the disk, happens on a
//! thread of its own, and the answer is [`Answer::Busy`] until then.
//!
//! ```text
//! put                                              get
//! Prepared -> what is there of it, and its hash    Prepared -> size and date of the file
//! From(0 or that)                                  Have(what is here of it, and its hash) -> From(0 or that)
//!                       the run, if anything is left to send
//! Verdict(hash of the whole) -> Published          Verdict -> Digest(hash of the whole)
//! ```
//!
//! ```text
//! store                                            fetch
//! Found -> what is there of each                   Items -> names and sizes
//! Tree -> where it differs                         Here(what is here) -> Differ; Tree -> where
//! Plan(what to send of each), Ready(bytes) -> Ready
//!                       the run, if anything is left to send
//! Publish(digest of all hashes) -> Named; else Roots, Tree -> where it differs, Damaged, Publish
//! ```
//!
//! - [`batch`]: several files at the client; at the server they are stored or fetched.
//! - [`job`]: the server's side, within what is [`allowed`].
//!   [`copy`](mod@copy): the client's. Both have something [`carried`].

pub mod allowed;
pub mod batch;
pub mod carried;
pub mod copy;
mod fetching;
mod getting;
pub mod job;
mod putting;
mod storing;

use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

use crate::file::tree::Span;
use crate::file::{Cancel, Identity, Item, LeftOut, State};
use crate::payload::Tally;
use crate::shown::shown;

pub use allowed::{Allowed, UnderWay};
pub use carried::Carried;
pub use copy::{Copy, CopyError, Mine};
pub use job::Job;

/// What flows carry; a part of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Bytes that mean nothing.
    #[default]
    Nothing,
    /// A [`Pattern`](crate::payload::Pattern) in every flow, with this key and the flow's index.
    Pattern {
        /// Seed of the pattern; both hosts generate it.
        key: u64,
    },
    /// A file from the client, in the only flow of the run, to this name at the server.
    Put {
        /// Name, inside the server's directory.
        name: String,
        /// Identity of the client's file: size and modification time.
        source: Identity,
        /// Its permission bits, `0o777` at most; others do not count.
        mode: u16,
        /// A file of that name may be replaced.
        overwrite: bool,
    },
    /// A file of the server, in the only flow of the run, which is reverse.
    Get {
        /// Name, inside the server's directory.
        name: String,
    },
    /// Files and directories from the client, one after the other in the only flow of the run.
    Store {
        /// What they are; a directory before what is in it.
        items: Vec<Item>,
        /// Files of these names may be replaced.
        overwrite: bool,
    },
    /// Files and directories of the server, in the only flow of the run, which is reverse.
    Fetch {
        /// Names, inside the server's directory.
        names: Vec<String>,
    },
}

impl Content {
    /// Files are put or got.
    pub fn is_file(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Pattern { .. })
    }
}

/// Requests of the client about content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Is it clear what is there?
    Prepared,
    /// Put: it goes on from this byte, 0 or what was said to be there.
    From(u64),
    /// Get: so many bytes are here, and this is their BLAKE3.
    Have {
        /// Bytes.
        prefix: u64,
        /// Their hash.
        digest: [u8; 32],
    },
    /// All has been carried. Put: this is the BLAKE3 of the whole.
    Verdict([u8; 32]),
    /// What did this flow carry, or bring?
    Tally(u32),
    /// Fetch: which files and directories are there, from this index on?
    Items(u32),
    /// Store: what is there of them, from this index on?
    Found(u32),
    /// Fetch: this is here of these files.
    Here(Vec<Held>),
    /// Digests of the blocks from `from` up to `to` of item `file`, in at most 32 groups.
    Tree {
        /// Index of the item.
        file: u32,
        /// First block.
        from: u64,
        /// One after the last.
        to: u64,
    },
    /// What is to be sent of these items, where it is not all: ranges of bytes; `None`: the item
    /// takes no part.
    Plan(Vec<(u32, Option<Vec<Span>>)>),
    /// The plan is complete; so many bytes will be sent.
    Ready(u64),
    /// BLAKE3 of the items from this index on.
    Roots(u32),
    /// Store: these ranges of these items are not what was sent.
    Damaged(Vec<(u32, Vec<Span>)>),
    /// All has been carried; this is the digest of the hashes of all files that are whole. Store:
    /// give them their names.
    Publish([u8; 32]),
    /// Fetch: which entries of directories are no part of the copy, from this index on?
    LeftOut(u32),
}

/// What a client has of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Index of the item.
    pub file: u32,
    /// Ranges of bytes, whole blocks.
    pub spans: Vec<Span>,
    /// Digest of the digests of all blocks; zeros for those that are not here.
    pub digest: [u8; 32],
}

/// What a server has of an item, if it has anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// An unfinished copy.
    Part {
        /// Ranges of bytes, whole blocks.
        spans: Vec<Span>,
        /// Digest of the digests of all blocks; zeros for those that are not there.
        digest: [u8; 32],
    },
    /// A file of the same length, and its BLAKE3.
    Whole([u8; 32]),
    /// It will not be taken, for this reason.
    Refused(String),
}

/// Responses of the server; each repeats safely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Not yet: ask again.
    Busy,
    /// It cannot be done, for this reason.
    Failed(String),
    /// Put: what is there. Get: which file it is, nothing of it is here.
    Prepared {
        /// The whole file.
        source: Identity,
        /// Permission bits of the file, `0o777` at most.
        mode: u16,
        /// Bytes of it that the server has on its disk.
        prefix: u64,
        /// BLAKE3 of these.
        digest: [u8; 32],
    },
    /// It goes on from this byte.
    From(u64),
    /// The file has its name.
    Published,
    /// BLAKE3 of the whole.
    Digest([u8; 32]),
    /// What a flow carried or brought, and how many of its segments were damaged.
    Tally {
        /// Each segment once.
        tally: Tally,
        /// Segments of which a byte was wrong.
        damaged: u64,
    },
    /// The question has no place here: a fault of the client.
    Nonsense,
    /// Files and directories, some of them.
    Items {
        /// The next ones.
        items: Vec<Item>,
        /// Number of items in all.
        all: u32,
        /// How many entries of directories are no part of a copy.
        left_out: u32,
    },
    /// Items that exist at the server, a part of them.
    Found {
        /// Index of the item, and what there is of it; the others are not there.
        found: Vec<(u32, Found)>,
        /// First index that this says nothing about; as many as there are items: nothing is left.
        next: u32,
    },
    /// Of these files the server has other bytes than the client.
    Differ(Vec<u32>),
    /// Digests of groups of blocks.
    Tree(Vec<[u8; 32]>),
    /// Taken note of.
    Noted,
    /// The run can begin.
    Ready,
    /// Hashes of files; zeros where one is not whole.
    Roots(Vec<[u8; 32]>),
    /// The files have their names, if the digest is the same here.
    Named {
        /// The digest is the same.
        same: bool,
        /// Of these the name could not be given, and why: the first ones.
        failed: Vec<(u32, String)>,
        /// Number of failures in all.
        all: u32,
    },
    /// Entries of directories that are no part of the copy: the next ones.
    LeftOut(Vec<LeftOut>),
}

/// The digest of [`Question::Publish`]: BLAKE3 of index and hash of every file that is whole.
pub fn digest_of(roots: impl Iterator<Item = (u32, blake3::Hash)>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for (index, root) in roots {
        hasher.update(&index.to_be_bytes()).update(root.as_bytes());
    }
    hasher.finalize().into()
}

/// Ranges in order, those that touch made one, and no more than a message holds: what lies between
/// the last of many counts as theirs.
fn coalesced(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (from, to) in spans {
        let is_full = merged.len() >= State::MOST_RANGES;
        match merged.last_mut() {
            Some(last) if last.1 >= from || is_full => {
                last.1 = last.1.max(to);
            }
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// Bytes of lists in one message, below those of a body of CONTROL.
const PAGE: usize = 1000;

/// A piece of work on a thread of its own. It ends with whoever waits for it: dropped, it is
/// cancelled, and the drop waits until its thread is gone, so that whatever was granted for it is
/// held as long as it runs.
#[derive(Debug)]
struct Work<T> {
    cancel: Cancel,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Work<T> {
    /// # Errors
    /// No thread can be started.
    fn start(work: impl FnOnce(&Cancel) -> T + Send + 'static) -> Result<Self, String> {
        let cancel = Cancel::default();
        let theirs = cancel.clone();
        let thread = thread::Builder::new().name("file-work".to_owned());
        let thread = thread.spawn(move || work(&theirs));
        let thread = thread.map_err(|e| format!("no thread for a file: {e}"))?;
        Ok(Self {
            cancel,
            thread: Some(thread),
        })
    }

    fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread and returns its result.
    fn result(mut self) -> Result<T, String> {
        let result = self.thread.take().map(JoinHandle::join);
        match result {
            Some(Ok(result)) => Ok(result),
            _ => Err("a fault of the program".to_owned()),
        }
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic there is told by `result`, and by nobody else.
            let _ = thread.join();
        }
    }
}

/// The key of flow `flow`.
fn key_of(key: u64, flow: u32) -> u64 {
    key.wrapping_add(u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Whether `why` says that another transfer writes the file `name`, here or at the server, and
/// nothing else: the name may hold any words, and be too long for a message.
pub fn says_busy(name: &str, why: &str) -> bool {
    let busy = format!("{name}: {BUSY}");
    let is_said = |busy: &str| why == busy || why == here(busy) || why == there(busy);
    is_said(&busy) || is_said(&shown(&busy)) || is_said(&storing::short(&busy))
}

/// Whether `why` ends with this reason, behind the name that it is about.
pub fn ends_with_reason(why: &str, reason: &str) -> bool {
    let before = why.strip_suffix(reason);
    before.is_some_and(|before| before.is_empty() || before.ends_with(": "))
}

/// What the server says of a file, to the user.
fn there(why: &str) -> String {
    format!("at the server: {why}")
}

/// What this host says of a file that it fetches, whose name is the server's.
fn here(why: &str) -> String {
    format!("here: {why}")
}

pub use crate::file::{DIRECTORY_REMOVED, DISK_FULL, QUOTA_USED};
/// Reasons that go over the wire as text, and that a client knows by it; two more are of the disk.
pub const BUSY: &str = "another transfer is writing it";
/// See [`BUSY`].
pub const EXISTS: &str = "another file of this name exists";
/// See [`BUSY`].
pub const NO_FILES: &str = "the server takes and gives no files (it runs without --files)";
/// See [`BUSY`].
pub const REMOVED: &str = "the directory that the server had opened was removed";

/// Why a file could not be had or kept, without the paths of this host.
fn failed_on(what: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind as E;
    let why = match error.kind() {
        // The writer's, which names the file.
        E::StorageFull if error.get_ref().is_some() => return error.to_string(),
        // Ours: a sentence of its own.
        E::AlreadyExists | E::NotFound | E::QuotaExceeded | E::FileTooLarge
            if error.get_ref().is_some() =>
        {
            error.to_string()
        }
        E::NotFound => "there is no such file or directory".to_owned(),
        E::PermissionDenied => "permission denied".to_owned(),
        E::StorageFull => DISK_FULL.to_owned(),
        E::QuotaExceeded => QUOTA_USED.to_owned(),
        E::FileTooLarge => "the file system holds no file of this size".to_owned(),
        E::ResourceBusy => BUSY.to_owned(),
        E::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        // The system does not say which.
        E::NotADirectory => {
            "what should be a directory is none (symbolic links are not followed)".to_owned()
        }
        _ if error.raw_os_error() == Some(nix::libc::ELOOP) => {
            "symbolic links are not followed".to_owned()
        }
        E::IsADirectory => "it is a directory".to_owned(),
        E::AlreadyExists => "a file of this name exists".to_owned(),
        _ => error.to_string(),
    };
    format!("{what}: {why}")
}

#[cfg(test)]
mod tests;
