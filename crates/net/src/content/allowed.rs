//! What a server lets its clients do with files, and which copies to it are under way.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::file::{Buffer, Directory, Identity, Made, Room};
use crate::too_many::too_many;

/// What a server lets its clients do with files.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Where files are; `None`: no files.
    pub files: Option<Arc<Directory>>,
    /// A file may be replaced, if the client asks for it.
    pub overwrite: bool,
    /// Bytes of the largest file that is taken or given.
    pub most: Option<u64>,
    /// Unfinished files that have not been written to for so long are removed; `None`: never.
    pub keep_parts: Option<Duration>,
    /// What unfinished files may take of the disk together.
    pub room: Room,
    /// Bytes of files that may wait for the disk, or be read ahead; `None`: as many as the path
    /// makes use of.
    pub buffer: Option<Buffer>,
    /// Copies to this server that are under way.
    pub under_way: UnderWay,
}

/// Copies under way: whoever begins the same one again, after a crash as a rule, takes the place of
/// the one before.
#[derive(Clone, Debug, Default)]
pub struct UnderWay(Arc<Mutex<Entries>>);

/// File and flag of the copies to a name, in the order in which they began.
#[derive(Debug, Default)]
struct Entries {
    of_name: HashMap<String, Vec<(Identity, Weak<AtomicBool>)>>,
    /// Those that are over are cleared away when there are more names than this.
    tidy_at: usize,
}

impl Allowed {
    /// Whether a file may have so many bytes.
    ///
    /// # Errors
    /// A sentence for the client, if it may not.
    pub(super) fn size(&self, name: &str, bytes: u64) -> Result<(), String> {
        match self.most.filter(|most| bytes > *most) {
            Some(most) => Err(format!("{name}: {}", too_many(bytes, most))),
            None => Ok(()),
        }
    }
}

impl UnderWay {
    /// Ends an earlier copy of the same file to the same name. The flag is set when a later one
    /// does so; whoever holds it, or a part of the work, is under way.
    pub(super) fn enter(&self, name: &str, source: Identity) -> Arc<AtomicBool> {
        let superseded = Arc::new(AtomicBool::new(false));
        // A panic while it was held leaves a list that is complete.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.of_name.len() >= entries.tidy_at {
            entries.of_name.retain(|_, copies| {
                copies.retain(|(_, flag)| flag.strong_count() > 0);
                !copies.is_empty()
            });
            entries.tidy_at = 2 * entries.of_name.len() + FEW;
        }
        let copies = entries.of_name.entry(name.to_owned()).or_default();
        copies.retain(|(_, flag)| flag.strong_count() > 0);
        for (identity, flag) in copies.iter() {
            if *identity == source
                && let Some(flag) = flag.upgrade()
            {
                flag.store(true, Ordering::Release);
            }
        }
        copies.push((source, Arc::downgrade(&superseded)));
        superseded
    }

    /// Removes the directories that a copy with these claims has made, as far as they are empty and
    /// no other copy under way goes there: none begins meanwhile.
    pub(super) fn unmake(&self, root: &Directory, made: &Made, own: &[Arc<AtomicBool>]) {
        let own: HashSet<*const AtomicBool> = own.iter().map(Arc::as_ptr).collect();
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other =
            |flag: &Weak<AtomicBool>| flag.strong_count() > 0 && !own.contains(&flag.as_ptr());
        let names = entries.of_name.iter();
        let others = names.filter(|(_, copies)| copies.iter().any(|(_, flag)| is_other(flag)));
        let above = others.flat_map(|(name, _)| name.match_indices('/').map(|(at, _)| &name[..at]));
        let used: HashSet<&str> = above.collect();
        root.unmake(made, |path| !used.contains(path));
    }

    /// True while a copy of this very file to this name is under way; it is not disturbed.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] while one of another file is.
    pub(super) fn look(&self, name: &str, source: Identity) -> io::Result<bool> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = entries.of_name.get(name).into_iter().flatten();
        let mut alive = copies.filter(|(_, flag)| flag.strong_count() > 0);
        match alive.next() {
            None => Ok(false),
            Some((first, _)) if *first == source => Ok(true),
            Some(_) => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }

    /// Fails while an earlier copy to this name than that of `claim` is under way.
    pub(super) fn first(&self, name: &str, claim: &Arc<AtomicBool>) -> io::Result<()> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = entries.of_name.get(name).into_iter().flatten();
        let first = copies.map(|(_, flag)| flag).find_map(Weak::upgrade);
        match first.is_none_or(|first| Arc::ptr_eq(&first, claim)) {
            true => Ok(()),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}

/// Names of which nobody need clear away those that are over.
const FEW: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_are_over_are_forgotten_and_those_under_way_are_not() {
        let under_way = UnderWay::default();
        let source = Identity {
            size: 1,
            changed: 1,
        };
        let kept: Vec<_> = (0..500)
            .map(|i| under_way.enter(&format!("kept {i}"), source))
            .collect();
        for i in 0..10_000 {
            drop(under_way.enter(&format!("over {i}"), source));
        }
        let names = under_way.0.lock().unwrap().of_name.len();
        assert!((500..=2 * 500 + FEW).contains(&names), "{names}");
        for (i, claim) in kept.iter().enumerate() {
            let name = format!("kept {i}");
            let later = under_way.enter(&name, source);
            assert!(claim.load(Ordering::Acquire), "it is told");
            under_way.first(&name, claim).unwrap();
            under_way.first(&name, &later).unwrap_err();
        }
    }

    #[test]
    fn a_directory_that_another_copy_goes_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = Directory::open(dir.path()).unwrap();
        let mut made = Made::default();
        for name in ["a/b", "c"] {
            let name = crate::file::Name::parse(name).unwrap();
            root.make(&name, true, 0o700, &mut made).unwrap();
        }
        let (under_way, source) = (
            UnderWay::default(),
            Identity {
                size: 1,
                changed: 1,
            },
        );
        let own = [
            under_way.enter("c/x", source),
            under_way.enter("a/b/x", source),
        ];
        let other = under_way.enter("a/y", source);
        under_way.unmake(&root, &made, &own);
        let is_there = |path: &str| dir.path().join(path).exists();
        assert!(is_there("a") && !is_there("a/b") && !is_there("c"));
        drop(other);
        under_way.unmake(&root, &made, &own);
        assert!(!is_there("a"));
    }
}
