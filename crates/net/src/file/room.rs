//! The disk that unfinished files may take.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use super::place::Directory;

/// Bytes that the unfinished files of a directory may take together.
#[derive(Clone, Debug, Default)]
pub struct Room(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    directory: Arc<Directory>,
    most: u64,
    /// Held while somebody looks how much is taken and takes his part.
    taking: Mutex<()>,
}

impl Room {
    /// Below `directory`, half of what its disk has left beside the unfinished files there.
    ///
    /// # Errors
    /// As the system says.
    pub fn half(directory: Arc<Directory>) -> io::Result<Self> {
        let left = directory
            .free()?
            .saturating_add(directory.unfinished_bytes(None)?);
        Ok(Self::new(directory, left / 2))
    }

    /// Below `directory`, at most so many bytes.
    pub fn new(directory: Arc<Directory>, most: u64) -> Self {
        Self(Some(Arc::new(Shared {
            directory,
            most,
            taking: Mutex::new(()),
        })))
    }

    /// Lets `begin` leave word of files that are to come, which counts then as if they were there.
    ///
    /// # Errors
    /// [`ErrorKind::QuotaExceeded`] if that is too much: the caller takes it back; of `begin`.
    pub(super) fn admit(&self, begin: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Some(shared) = &self.0 else {
            return begin();
        };
        // Nothing is kept under the lock that a panic could leave half done.
        let _held = shared.taking.lock().unwrap_or_else(PoisonError::into_inner);
        begin()?;
        let (all, most) = (shared.directory.unfinished_bytes(None)?, shared.most);
        match all > most {
            false => Ok(()),
            true => Err(io::Error::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "with these, partial files would take {all} bytes, more than the server's \
                     limit of {most} (--max-partial)"
                ),
            )),
        }
    }

    /// Takes what the unfinished file `part` needs to become `size` bytes long, by `take`, if there
    /// is room for that beside what all others take or will take.
    ///
    /// # Errors
    /// [`ErrorKind::QuotaExceeded`] if there is none; of `take`; the directory cannot be read.
    pub(super) fn take(
        &self,
        part: &File,
        size: u64,
        take: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(shared) = &self.0 else {
            return take();
        };
        let part = part.metadata()?;
        // Nothing is kept under the lock that a panic could leave half done.
        let _held = shared.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let others = shared
            .directory
            .unfinished_bytes(Some((part.dev(), part.ino())))?;
        let most = shared.most;
        if others.saturating_add(size) > most {
            let what = format!(
                "other partial files take {others} bytes, and {size} exceed the server's limit of \
                 {most} (--max-partial)"
            );
            return Err(io::Error::new(ErrorKind::QuotaExceeded, what));
        }
        take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Cancel, Identity, Part, Place};

    #[test]
    fn unfinished_files_share_it_and_what_goes_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::open(dir.path()).unwrap());
        let room = Room::new(directory, 3 << 20);
        let open = |name: &str, size: u64| {
            let place = Arc::new(Place::local(&dir.path().join(name)).unwrap());
            Part::open(
                place,
                Identity { size, changed: 1 },
                &room,
                &Cancel::default(),
            )
        };
        // The file system may round up by a block.
        let first = open("a", 2 << 20).unwrap();
        let error = open("b", 2 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert!(!dir.path().join("b.part").exists());
        assert!(!dir.path().join("b.part.state").exists());
        // Resumed, it takes nothing more.
        drop(first);
        drop(open("a", 2 << 20).unwrap());
        for left in ["a.part", "a.part.state"] {
            std::fs::remove_file(dir.path().join(left)).unwrap();
        }
        open("b", 2 << 20).unwrap();
    }

    /// A file system that refuses to reserve: the unfinished file has no blocks yet.
    #[test]
    fn what_is_promised_counts_where_nothing_is_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::open(dir.path()).unwrap());
        let room = Room::new(directory, 3 << 20);
        let source = Identity {
            size: 2 << 20,
            changed: 1,
        };
        let open = |name: &str| {
            let place = Arc::new(Place::local(&dir.path().join(name)).unwrap());
            Part::open(place, source, &room, &Cancel::default())
        };
        drop(open("a").unwrap());
        let sparse = std::fs::File::create(dir.path().join("a.part")).unwrap();
        assert_eq!(sparse.metadata().unwrap().blocks(), 0);
        let error = open("b").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
        // Itself it does not stand in its own way.
        open("a").unwrap();
    }
}
