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
//! - [`job`]: the server's side, within what is [`allowed`].
//!   [`copy`](mod@copy): the client's. Both have something [`carried`].

pub mod allowed;
pub mod carried;
pub mod copy;
mod getting;
pub mod job;
mod putting;

use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

use crate::file::{Cancel, Identity};
use crate::payload::Tally;

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
}

impl Content {
    /// A file is put or got.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Get { .. })
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
}

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

    /// Its result; waits for it.
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

/// Why a file could not be had or kept, without the paths of this host.
fn failed_on(what: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind as E;
    let why = match error.kind() {
        // Ours: a sentence of its own.
        E::AlreadyExists | E::NotFound | E::QuotaExceeded if error.get_ref().is_some() => {
            error.to_string()
        }
        E::NotFound => "there is no such file or directory".to_owned(),
        E::PermissionDenied => "permission denied".to_owned(),
        E::StorageFull => "the disk is full".to_owned(),
        E::QuotaExceeded => "the disk quota is used up".to_owned(),
        E::FileTooLarge => "the file system holds no file of this size".to_owned(),
        E::ResourceBusy => "another transfer is writing it".to_owned(),
        E::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        E::NotADirectory => "symbolic links are not followed".to_owned(),
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
