//! The disk that unfinished files may take.

use std::io::{self, ErrorKind};
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
            .saturating_add(directory.unfinished_bytes()?);
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

    /// Takes `more` bytes by `take`, if there is room beside what all unfinished files take now.
    ///
    /// # Errors
    /// [`ErrorKind::QuotaExceeded`] if there is none; of `take`; the directory cannot be read.
    pub(super) fn take(&self, more: u64, take: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Some(shared) = &self.0 else {
            return take();
        };
        // Nothing is kept under the lock that a panic could leave half done.
        let _held = shared.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = shared.directory.unfinished_bytes()?;
        let most = shared.most;
        if taken.saturating_add(more) > most {
            let what = format!(
                "partial files take {taken} bytes, and {more} more exceed the server's limit of \
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
        std::fs::remove_file(dir.path().join("a.part")).unwrap();
        open("b", 2 << 20).unwrap();
    }
}
