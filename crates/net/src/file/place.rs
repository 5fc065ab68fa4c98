//! Where a file is, or will be: a directory that is held open, and a last name in it. Everything
//! goes through the open directory, so that nobody can lead a transfer elsewhere by moving
//! directories about.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::name::{Name, PART, STATE};
use super::state::State;

/// A directory whose files, and those of its subdirectories, may be asked for by name. Links inside
/// it are not followed.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

/// One file, by directory and last name.
#[derive(Debug)]
pub struct Place {
    dir: OwnedFd,
    leaf: OsString,
}

impl Directory {
    /// Opens it; a link at the end of `path` is followed, for its owner named it.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(path, flags, Mode::empty())?;
        Ok(Self { fd })
    }

    /// The same directory once more.
    pub(super) fn again(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// The place that `name` means.
    ///
    /// # Errors
    /// A directory on the way is missing, or is not a directory: a symbolic link is none.
    pub fn place(&self, name: &Name) -> io::Result<Place> {
        let (way, leaf) = name.parts();
        let mut dir = self.fd.try_clone()?;
        for part in way {
            let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            dir = openat(&dir, part, flags, Mode::empty())?;
        }
        Ok(Place {
            dir,
            leaf: leaf.into(),
        })
    }
}

impl Place {
    /// In a directory that is open.
    pub(super) fn at(dir: OwnedFd, leaf: OsString) -> Self {
        Self { dir, leaf }
    }

    /// A path of the user's own, with links on the way followed.
    ///
    /// # Errors
    /// It ends in `..` or `/`, or its directory cannot be opened.
    pub fn local(path: &Path) -> io::Result<Self> {
        let leaf = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_owned();
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = Directory::open(parent)?.fd;
        Ok(Self { dir, leaf })
    }

    /// True if something has the final name.
    ///
    /// # Errors
    /// As the system says.
    pub fn exists(&self) -> io::Result<bool> {
        match fstatat(
            &self.dir,
            self.leaf.as_os_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens the file under its final name for reading.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::InvalidInput`] if it is not a regular file.
    pub fn open(&self) -> io::Result<File> {
        // Non-blocking, for a pipe without a writer would keep us waiting.
        self.file(&self.leaf, OFlag::O_RDONLY | OFlag::O_NONBLOCK)
    }

    /// Opens what an unfinished transfer left, or makes it, and keeps others away from it until it
    /// is closed.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::ResourceBusy`] if another transfer writes it.
    pub(super) fn open_part(&self) -> io::Result<File> {
        loop {
            let file = self.locked(OFlag::O_RDWR | OFlag::O_CREAT)?;
            // It may have been removed between the opening and the lock: then there is room for a
            // new one.
            if file.metadata()?.nlink() > 0 {
                return Ok(file);
            }
        }
    }

    fn locked(&self, flags: OFlag) -> io::Result<File> {
        let file = self.file(&self.named(PART), flags)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::ResourceBusy.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Removes what an unfinished transfer left, if neither its data nor its state was written to
    /// for `age` before `now`; returns the bytes that it took on the disk, and `None` if it stays.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::ResourceBusy`] if a transfer writes it.
    pub(super) fn remove_if_older(
        &self,
        age: Duration,
        now: SystemTime,
    ) -> io::Result<Option<u64>> {
        let is_old = |file: &File| -> io::Result<bool> {
            let written = file.metadata()?.modified()?;
            Ok(now.duration_since(written).is_ok_and(|since| since >= age))
        };
        if self.state().is_none() {
            return Ok(None);
        }
        if !is_old(&self.file(&self.named(STATE), OFlag::O_RDONLY)?)? {
            return Ok(None);
        }
        // Held until both are gone: nobody can begin to write it meanwhile.
        let part = match self.locked(OFlag::O_RDWR) {
            Ok(part) => part,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                // Only the state was left.
                self.unlink(&self.named(STATE))?;
                return Ok(Some(0));
            }
            Err(e) => return Err(e),
        };
        if !is_old(&part)? {
            return Ok(None);
        }
        let bytes = part.metadata()?.blocks().saturating_mul(512);
        self.discard()?;
        Ok(Some(bytes))
    }

    fn file(&self, leaf: &OsStr, flags: OFlag) -> io::Result<File> {
        let mode = Mode::from_bits_truncate(0o644);
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.dir, leaf, flags, mode)?);
        if !file.metadata()?.is_file() {
            let what = "not a regular file";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        Ok(file)
    }

    /// What an unfinished transfer left word of; `None` if there is none, or none that can be read.
    pub(super) fn state(&self) -> Option<State> {
        let file = self.file(&self.named(STATE), OFlag::O_RDONLY).ok()?;
        let mut text = String::new();
        file.take(State::MOST).read_to_string(&mut text).ok()?;
        State::parse(&text)
    }

    /// Leaves word. Whoever reads it sees the old state or the new one.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn write_state(&self, state: &State) -> io::Result<()> {
        let (name, temporary) = (self.named(STATE), self.named(".part.state~"));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let mut file = self.file(&temporary, flags)?;
        file.write_all(state.to_string().as_bytes())?;
        file.sync_data()?;
        renameat(
            &self.dir,
            temporary.as_os_str(),
            &self.dir,
            name.as_os_str(),
        )?;
        Ok(())
    }

    /// Gives the unfinished file its final name, once it is on the disk.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::AlreadyExists`] if there is a file and `overwrite` is
    /// false.
    pub(super) fn publish(&self, part: &File, overwrite: bool) -> io::Result<()> {
        part.sync_all()?;
        let (from, to) = (self.named(PART), self.leaf.as_os_str());
        if overwrite {
            renameat(&self.dir, from.as_os_str(), &self.dir, to)?;
        } else {
            // A second name fails where a file is; renaming would replace it.
            match linkat(&self.dir, from.as_os_str(), &self.dir, to, AtFlags::empty()) {
                Ok(()) => self.unlink(&from)?,
                // No hard links on this file system.
                Err(Errno::EPERM | Errno::EOPNOTSUPP) if !self.exists()? => {
                    renameat(&self.dir, from.as_os_str(), &self.dir, to)?;
                }
                Err(Errno::EPERM | Errno::EOPNOTSUPP) => {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                Err(e) => return Err(e.into()),
            }
        }
        self.unlink(&self.named(STATE))?;
        nix::unistd::fsync(&self.dir)?;
        Ok(())
    }

    /// Removes what an unfinished transfer left.
    ///
    /// # Errors
    /// As the system says; what is not there is no error.
    pub(super) fn discard(&self) -> io::Result<()> {
        // The state last: without it nobody would know what the part is.
        self.unlink(&self.named(PART))?;
        self.unlink(&self.named(STATE))
    }

    fn unlink(&self, leaf: &OsStr) -> io::Result<()> {
        match unlinkat(&self.dir, leaf, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn named(&self, ending: &str) -> OsString {
        let mut name = self.leaf.clone();
        name.push(ending);
        name
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn links_are_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let dir = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("way")).unwrap();
        symlink(outside.path().join("secret"), dir.path().join("file")).unwrap();
        symlink(outside.path().join("new"), dir.path().join("put.part")).unwrap();
        let root = Directory::open(dir.path()).unwrap();
        assert!(root.place(&name("way/secret")).is_err());
        assert!(root.place(&name("file")).unwrap().open().is_err());
        assert!(root.place(&name("put")).unwrap().open_part().is_err());
        assert!(!outside.path().join("new").exists());
    }

    #[test]
    fn pipes_and_directories_are_no_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("p"), Mode::S_IRWXU).unwrap();
        let root = Directory::open(dir.path()).unwrap();
        for text in ["d", "p"] {
            let error = root.place(&name(text)).unwrap().open().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
        }
    }

    #[test]
    fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "old").unwrap();
        let place = Place::local(&dir.path().join("x")).unwrap();
        let mut part = place.open_part().unwrap();
        part.write_all(b"new").unwrap();
        let error = place.publish(&part, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"old");
        place.publish(&part, true).unwrap();
        assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"new");
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 1, "nothing is left beside it");
    }

    #[test]
    fn one_transfer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::local(&dir.path().join("x")).unwrap();
        let first = place.open_part().unwrap();
        let error = place.open_part().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        drop(first);
        place.open_part().unwrap();
    }
}
