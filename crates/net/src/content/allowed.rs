//! What a server lets its clients do with files, and which copies to it are under way.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::file::{Buffer, Directory, Identity, Room};

/// What a server lets its clients do with files.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Where files are; `None`: no files.
    pub files: Option<Arc<Directory>>,
    /// A file may be replaced, if the client asks for it.
    pub overwrite: bool,
    /// Bytes of the largest file that is taken.
    pub most: Option<u64>,
    /// Unfinished files that have not been written to for so long are removed; `None`: never.
    pub keep_parts: Option<Duration>,
    /// What unfinished files may take of the disk together.
    pub room: Room,
    /// Bytes of a file that may wait for the disk; `None`: as many as the path makes use of.
    pub buffer: Option<Buffer>,
    /// Copies to this server that are under way.
    pub under_way: UnderWay,
}

/// Copies under way: whoever begins the same one again, after a crash as a rule, takes the place of
/// the one before.
#[derive(Clone, Debug, Default)]
pub struct UnderWay(Arc<Mutex<Vec<Entry>>>);

/// Name and file, and the flag of the copy.
type Entry = (String, Identity, Weak<AtomicBool>);

impl UnderWay {
    /// Ends an earlier copy of the same file to the same name. The flag is set when a later one
    /// does so; whoever holds it, or a part of the work, is under way.
    pub(super) fn enter(&self, name: &str, source: Identity) -> Arc<AtomicBool> {
        let superseded = Arc::new(AtomicBool::new(false));
        // A panic while it was held leaves a list that is complete.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, _, flag)| flag.strong_count() > 0);
        for (other, identity, flag) in all.iter() {
            if other == name
                && *identity == source
                && let Some(flag) = flag.upgrade()
            {
                flag.store(true, Ordering::Release);
            }
        }
        all.push((name.to_owned(), source, Arc::downgrade(&superseded)));
        superseded
    }

    /// Fails while an earlier copy to this name than that of `claim` is under way.
    pub(super) fn first(&self, name: &str, claim: &Arc<AtomicBool>) -> io::Result<()> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_name = all.iter().filter(|(other, ..)| other == name);
        let first = of_name.map(|(_, _, flag)| flag).find_map(Weak::upgrade);
        match first.is_none_or(|first| Arc::ptr_eq(&first, claim)) {
            true => Ok(()),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}
