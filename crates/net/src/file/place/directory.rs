//! Directories that are held open, and how many may be.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statvfs::fstatvfs;

use super::Place;
use crate::file::name::Name;

/// A directory whose files, and those of its subdirectories, may be asked for by name. Links inside
/// it are not followed.
#[derive(Debug)]
pub struct Directory {
    pub(super) fd: OwnedFd,
    shelf: Option<Arc<Shelf>>,
}

/// How many directories below one that is served may be open at a time.
#[derive(Debug)]
struct Shelf {
    most: u64,
    open: AtomicU64,
}

/// A directory that is held open.
#[derive(Debug)]
pub(in crate::file) struct Way {
    fd: OwnedFd,
    shelf: Option<Arc<Shelf>>,
}

impl Shelf {
    /// One more, of a copy that has so many: at most as many as it leaves to others.
    fn take(shelf: &Arc<Self>, has: u64) -> io::Result<Arc<Self>> {
        let next = |open: u64| {
            let left = shelf.most.saturating_sub(open + 1);
            (has < left || open == 0).then_some(open + 1)
        };
        let took = shelf
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        took.map(|_| Arc::clone(shelf)).map_err(|open| {
            let what = format!(
                "copies have {open} directories of the server open, and {} is the most (limit of \
                 open files, ulimit -n)",
                shelf.most
            );
            io::Error::new(ErrorKind::QuotaExceeded, what)
        })
    }
}

impl From<OwnedFd> for Way {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, shelf: None }
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Some(shelf) = &self.shelf {
            shelf.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Directory {
    /// Opens it; a link at the end of `path` is followed, for its owner named it.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(path, flags, Mode::empty())?;
        Ok(Self { fd, shelf: None })
    }

    /// Lets the copies of a server have at most so many directories open below it, together.
    pub fn with_most_open(self, most: u64) -> Self {
        let open = AtomicU64::new(0);
        Self {
            shelf: Some(Arc::new(Shelf { most, open })),
            ..self
        }
    }

    /// Bytes that the file system has left for this user.
    ///
    /// # Errors
    /// As the system says.
    pub fn free(&self) -> io::Result<u64> {
        free(&self.fd)
    }

    /// True if it has been removed: what has its name since is another.
    pub fn is_gone(&self) -> bool {
        is_gone(&self.fd)
    }

    /// The same directory once more.
    pub(in crate::file) fn again(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// The place that `name` means.
    ///
    /// # Errors
    /// A directory on the way is missing, or is not a directory: a symbolic link is none.
    pub fn place(&self, name: &Name) -> io::Result<Place> {
        Ways::default().place(self, name)
    }
}

/// Directories that the files of one copy are in, each open once however many files are in it.
#[derive(Debug, Default)]
pub struct Ways(HashMap<String, Arc<Way>>);

impl Ways {
    /// The place that `name` means in `root`, the same directory every time.
    ///
    /// # Errors
    /// As [`Directory::place`]; [`ErrorKind::QuotaExceeded`] if as many as there may be are open.
    pub fn place(&mut self, root: &Directory, name: &Name) -> io::Result<Place> {
        let (way, leaf) = name.parts();
        let text = name.as_str();
        let above = &text[..text.len() - leaf.len()];
        if let Some(dir) = self.0.get(above) {
            return Ok(Place::at(Arc::clone(dir), leaf.into()));
        }
        let has = self.0.len() as u64;
        let shelf = root.shelf.as_ref().map(|shelf| Shelf::take(shelf, has));
        let mut way_in = Way {
            fd: root.fd.try_clone()?,
            shelf: shelf.transpose()?,
        };
        for part in way {
            let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            way_in.fd = openat(&way_in.fd, part, flags, Mode::empty())?;
        }
        let dir = Arc::new(way_in);
        self.0.insert(above.to_owned(), Arc::clone(&dir));
        Ok(Place::at(dir, leaf.into()))
    }
}

/// True of a directory that has been removed.
pub(super) fn is_gone(directory: impl AsFd) -> bool {
    fstat(directory).is_ok_and(|stat| stat.st_nlink == 0)
}

/// Bytes that the file system of a directory has left for this user.
pub(super) fn free(directory: impl AsFd) -> io::Result<u64> {
    let system = fstatvfs(directory)?;
    let blocks = system.blocks_available();
    Ok(blocks.saturating_mul(system.fragment_size()))
}
