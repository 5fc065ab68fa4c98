//! Where a file is, or will be: a directory that is held open, and a last name in it. Everything
//! goes through the open directory, so that nobody can lead a transfer elsewhere by moving
//! directories about.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, fstatat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, linkat, unlinkat};
use rustix::fs::{RenameFlags, renameat_with};

use super::name::{Name, PART, STATE};
use super::state::State;

/// A directory whose files, and those of its subdirectories, may be asked for by name. Links inside
/// it are not followed.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
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
pub(super) struct Way {
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

/// One file, by directory and last name.
#[derive(Debug)]
pub struct Place {
    /// Shared by the files of one copy in one directory.
    dir: Arc<Way>,
    leaf: OsString,
    /// Permissions of what gets the name, at most.
    mode: Mode,
    /// Held while the state is replaced: two threads may do that.
    noting: Mutex<()>,
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

    /// The same directory once more.
    pub(super) fn again(&self) -> io::Result<OwnedFd> {
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

impl Place {
    /// In a directory that is open.
    pub(super) fn at(dir: Arc<Way>, leaf: OsString) -> Self {
        let mode = Mode::from_bits_truncate(0o666);
        Self {
            dir,
            leaf,
            mode,
            noting: Mutex::default(),
        }
    }

    /// Gives a file here the permissions `mode` of its source, such as 0o640: less what the umask
    /// takes away, and where it replaces a file no more than that had. Only the nine bits of
    /// owner, group and others count.
    pub fn with_mode(self, mode: u16) -> Self {
        let mode = Mode::from_bits_truncate(u32::from(mode) & 0o777);
        Self { mode, ..self }
    }

    /// Permissions that a file here gets at most.
    pub fn mode(&self) -> u16 {
        self.mode.bits() as u16
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
        Ok(Self::at(Arc::new(Directory::open(parent)?.fd.into()), leaf))
    }

    /// True if something has the final name.
    ///
    /// # Errors
    /// As the system says.
    pub fn exists(&self) -> io::Result<bool> {
        self.has(&self.leaf)
    }

    fn has(&self, leaf: &OsStr) -> io::Result<bool> {
        match fstatat(&self.dir, leaf, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether `leaf` names this very file.
    fn is_named(&self, leaf: &OsStr, file: &File) -> io::Result<bool> {
        let (open, named) = (
            fstat(file)?,
            fstatat(&self.dir, leaf, AtFlags::AT_SYMLINK_NOFOLLOW),
        );
        match named {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
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
            match file.metadata()?.nlink() {
                // Removed between the opening and the lock: there is room for a new one.
                0 => {}
                1 => return Ok(file),
                // It has another name as well: a crash of somebody who published by a second name
                // left it, or somebody linked it. Whoever wrote on would change that file.
                _ => self.unlink(&self.named(PART))?,
            }
        }
    }

    /// Opens what an unfinished transfer left, and keeps others away from it until it is closed;
    /// `None` if nothing is there, or it has another name as well, by which it may be finished.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::ResourceBusy`] if another transfer writes it.
    pub(super) fn open_left(&self) -> io::Result<Option<File>> {
        match self.locked(OFlag::O_RDWR) {
            Ok(file) => Ok((file.metadata()?.nlink() == 1).then_some(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// As [`open_left`](Self::open_left), of one that another transfer may be writing, for reading.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn peek_left(&self) -> io::Result<Option<File>> {
        let file = self.open_part_if_any()?;
        let alone = |file: &File| file.metadata().is_ok_and(|metadata| metadata.nlink() == 1);
        Ok(file.filter(alone))
    }

    /// Fails if nothing can be made in its directory.
    ///
    /// # Errors
    /// As the system says: [`ErrorKind::PermissionDenied`] as a rule.
    pub fn may_make(&self) -> io::Result<()> {
        let (access, flags) = (AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
        Ok(faccessat(&self.dir, ".", access, flags)?)
    }

    /// Fails unless a directory has the final name, or one can get it.
    ///
    /// # Errors
    /// [`ErrorKind::NotADirectory`] if something else has it; as the system says.
    pub fn may_be_directory(&self) -> io::Result<()> {
        match fstatat(
            &self.dir,
            self.leaf.as_os_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Err(Errno::ENOENT) => self.may_make(),
            Err(e) => Err(e.into()),
            Ok(stat) => match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
                SFlag::S_IFDIR => Ok(()),
                _ => Err(ErrorKind::NotADirectory.into()),
            },
        }
    }

    /// Makes a new unfinished file, as [`open_part`](Self::open_part) does. With `replace` one that
    /// is there goes: it must be ours.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::ResourceBusy`] if another transfer was faster.
    pub(super) fn fresh_part(&self, replace: bool) -> io::Result<File> {
        let make = || self.locked(OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL);
        let mut made = make();
        if replace && matches!(&made, Err(e) if e.kind() == ErrorKind::AlreadyExists) {
            self.unlink(&self.named(PART))?;
            made = make();
        }
        made.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => ErrorKind::ResourceBusy.into(),
            _ => e,
        })
    }

    /// Removes the unfinished file `part`, if it still has its name.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn unlink_part(&self, part: &File) -> io::Result<()> {
        let name = self.named(PART);
        match self.is_named(&name, part)? {
            true => self.unlink(&name),
            false => Ok(()),
        }
    }

    /// Removes the name of the unfinished file, if that is the finished one: a kill came between
    /// the two names where no file can be renamed to a free name only.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn unlink_second_name(&self) -> io::Result<()> {
        match self.open_part_if_any()? {
            Some(part) if self.is_named(&self.leaf, &part)? => self.unlink_part(&part),
            _ => Ok(()),
        }
    }

    fn open_part_if_any(&self) -> io::Result<Option<File>> {
        match self.file(&self.named(PART), OFlag::O_RDONLY) {
            Ok(part) => Ok(Some(part)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Removes the state.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn unlink_state(&self) -> io::Result<()> {
        self.unlink(&self.named(STATE))
    }

    /// Bytes that the unfinished file takes on the disk.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn part_bytes(&self) -> io::Result<u64> {
        let leaf = self.named(PART);
        match fstatat(&self.dir, leaf.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok((stat.st_blocks.max(0) as u64).saturating_mul(512)),
            Err(Errno::ENOENT) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// True if something has the name of the unfinished file.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn has_part(&self) -> io::Result<bool> {
        self.has(&self.named(PART))
    }

    /// Bytes that the unfinished file takes on the disk or will take: where the file system
    /// reserves nothing, what its state says of its end. `None` if it is the file `own`, by device
    /// and inode.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn promised(&self, own: Option<(u64, u64)>) -> io::Result<Option<u64>> {
        let leaf = self.named(PART);
        let taken = match fstatat(&self.dir, leaf.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) if own == Some((stat.st_dev, stat.st_ino)) => return Ok(None),
            Ok(stat) => (stat.st_blocks.max(0) as u64).saturating_mul(512),
            Err(Errno::ENOENT) => 0,
            Err(e) => return Err(e.into()),
        };
        let size = self.state().map_or(0, |state| state.source.size);
        Ok(Some(taken.max(size)))
    }

    /// Bytes that the file system has left for this user.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn free(&self) -> io::Result<u64> {
        let system = fstatvfs(&self.dir)?;
        Ok(system
            .blocks_available()
            .saturating_mul(system.fragment_size()))
    }

    fn locked(&self, flags: OFlag) -> io::Result<File> {
        // The owner has to write it, and to go on with it.
        let file = self.file_of(&self.named(PART), flags, self.mode | OWNER)?;
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
            // Nothing of ours, but for a first state that was never complete.
            let leaf = self.named(UNFINISHED_STATE);
            return match self.file(&leaf, OFlag::O_RDONLY) {
                Ok(file) if is_old(&file)? && self.may_be_state(&leaf)? => {
                    self.unlink(&leaf).map(|()| Some(0))
                }
                Ok(_) => Ok(None),
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
                Err(e) => Err(e),
            };
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

    /// What is made by it is the owner's alone.
    fn file(&self, leaf: &OsStr, flags: OFlag) -> io::Result<File> {
        self.file_of(leaf, flags, OWNER)
    }

    fn file_of(&self, leaf: &OsStr, flags: OFlag, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.dir, leaf, flags, mode)?);
        if !file.metadata()?.is_file() {
            let what = "not a regular file";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        Ok(file)
    }

    /// What an unfinished transfer left word of; `None` if there is none, and whoever begins one
    /// may take the names.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if a file of somebody else has one of them: an unfinished file
    /// that no state tells of, or a state that is none.
    pub(super) fn state_if_ours(&self) -> io::Result<Option<State>> {
        for ending in [STATE, UNFINISHED_STATE] {
            if !self.may_be_state(&self.named(ending))? {
                return Err(not_ours(ending));
            }
        }
        match self.state() {
            None if self.has_part()? => Err(not_ours(PART)),
            state => Ok(state),
        }
    }

    /// False if `leaf` cannot be what a transfer wrote, or began to write when the power went.
    fn may_be_state(&self, leaf: &OsStr) -> io::Result<bool> {
        let file = match self.file(leaf, OFlag::O_RDONLY | OFlag::O_NONBLOCK) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
            // A link, a directory, a pipe, or what only others may read.
            Err(_) => return Ok(false),
        };
        let mut first = Vec::new();
        file.take(State::MAGIC.len() as u64)
            .read_to_end(&mut first)?;
        let is_lost = first.iter().all(|byte| *byte == 0);
        Ok(is_lost || State::MAGIC.as_bytes().starts_with(&first))
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
        self.replace_state(state, true)
    }

    /// The same without waiting for the disk: after a loss of power the old state may be there, or
    /// data may be missing that the new one lists. Whoever goes on by it compares what is there.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn note_state(&self, state: &State) -> io::Result<()> {
        self.replace_state(state, false)
    }

    fn replace_state(&self, state: &State, wait: bool) -> io::Result<()> {
        let _held = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let temporary = self.named(UNFINISHED_STATE);
        let written = self.write(&temporary, state.to_string().as_bytes(), wait);
        if written.is_err() {
            // On a full disk it would stay for nothing.
            let _ = self.unlink(&temporary);
        }
        written?;
        renameat(
            &self.dir,
            temporary.as_os_str(),
            &self.dir,
            self.named(STATE).as_os_str(),
        )?;
        Ok(())
    }

    fn write(&self, leaf: &OsStr, bytes: &[u8], wait: bool) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let mut file = self.file(leaf, flags)?;
        file.write_all(bytes)?;
        match wait {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    /// Gives the unfinished file its final name, once it is on the disk. At every moment the file
    /// has one name: a kill leaves it unfinished or finished.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::AlreadyExists`] if there is a file and `overwrite` is
    /// false; [`ErrorKind::NotFound`] if `part` no longer has the name of the unfinished file.
    pub(super) fn publish(&self, part: &File, overwrite: bool) -> io::Result<()> {
        part.sync_all()?;
        self.name(part, overwrite)?;
        nix::unistd::fsync(&self.dir)?;
        Ok(())
    }

    /// Device and inode of its directory.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn directory(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.dir)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Brings the names in its directory to the disk.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        Ok(nix::unistd::fsync(&self.dir)?)
    }

    /// Brings everything that was written to its file system to the disk.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn sync_file_system(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.dir.as_ref())?)
    }

    /// As [`publish`](Self::publish), of a file whose bytes are on the disk; after a loss of power
    /// the name may be missing.
    ///
    /// # Errors
    /// The same.
    pub(super) fn name(&self, part: &File, overwrite: bool) -> io::Result<()> {
        let (from, to) = (self.named(PART), self.leaf.as_os_str());
        if !self.is_named(&from, part)? {
            return Err(self.taken_away());
        }
        let (before, last) = (mode_of(part)?, self.final_mode(part)?);
        // Under its final name it is never open to more users than it will be. Its owner can go on
        // with it until then, whatever the source allows: a kill may come before the name does.
        fchmod(part, last | OWNER)?;
        let renamed = match overwrite {
            true => renameat(&self.dir, from.as_os_str(), &self.dir, to).map_err(io::Error::from),
            false => self.rename_to_free(&from, to),
        };
        if renamed.is_err() {
            fchmod(part, before | OWNER)?;
        }
        renamed?;
        fchmod(part, last)?;
        // Somebody may have put another file there since.
        if !self.is_named(to, part)? {
            return Err(self.taken_away());
        }
        self.unlink(&self.named(STATE))
    }

    /// Of the part, of its source, and of what it replaces, the permissions that all have.
    fn final_mode(&self, part: &File) -> io::Result<Mode> {
        let leaf = self.leaf.as_os_str();
        let replaced = match fstatat(&self.dir, leaf, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat)
                if SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
                    == SFlag::S_IFREG =>
            {
                Mode::from_bits_truncate(stat.st_mode)
            }
            Ok(_) | Err(Errno::ENOENT) => Mode::all(),
            Err(e) => return Err(e.into()),
        };
        Ok(mode_of(part)? & self.mode & replaced)
    }

    /// Renames where nothing is replaced.
    fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match renameat_with(&self.dir, from, &self.dir, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            // File systems that cannot: some of networks and in user space.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(e) => return Err(e.into()),
        }
        // A second name fails where a file is. Whoever is killed before the first one is gone
        // leaves both: `open_part` does not write on in such a file.
        match linkat(&self.dir, from, &self.dir, to, AtFlags::empty()) {
            Ok(()) => self.unlink(from),
            // No hard links either.
            Err(Errno::EPERM | Errno::EOPNOTSUPP) if !self.exists()? => {
                Ok(renameat(&self.dir, from, &self.dir, to)?)
            }
            Err(Errno::EPERM | Errno::EOPNOTSUPP) => Err(ErrorKind::AlreadyExists.into()),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes what an unfinished transfer left.
    ///
    /// # Errors
    /// As the system says; what is not there is no error.
    pub(super) fn discard(&self) -> io::Result<()> {
        // The state last: without it nobody would know what the part is.
        self.unlink(&self.named(PART))?;
        self.unlink(&self.named(UNFINISHED_STATE))?;
        self.unlink(&self.named(STATE))
    }

    fn unlink(&self, leaf: &OsStr) -> io::Result<()> {
        match unlinkat(&self.dir, leaf, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// The unfinished file is no longer what this transfer wrote.
    pub(super) fn taken_away(&self) -> io::Error {
        let name = self.named(PART);
        let what = format!("somebody else moved or replaced {}", name.to_string_lossy());
        io::Error::new(ErrorKind::NotFound, what)
    }

    fn named(&self, ending: &str) -> OsString {
        let mut name = self.leaf.clone();
        name.push(ending);
        name
    }
}

/// What the owner of an unfinished file needs.
const OWNER: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

fn mode_of(file: &File) -> io::Result<Mode> {
    Ok(Mode::from_bits_truncate(fstat(file)?.st_mode))
}

/// A state that is being written.
pub(super) const UNFINISHED_STATE: &str = ".part.state~";

fn free(directory: impl AsFd) -> io::Result<u64> {
    let system = fstatvfs(directory)?;
    let blocks = system.blocks_available();
    Ok(blocks.saturating_mul(system.fragment_size()))
}

/// A file of somebody else has the name of the unfinished one, or of its state.
fn not_ours(ending: &str) -> io::Error {
    let what = format!("a file or directory of this name with `{ending}` is there and is not ours");
    io::Error::new(ErrorKind::AlreadyExists, what)
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
    fn a_copy_has_as_many_directories_open_as_it_leaves_to_others() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..30 {
            fs::create_dir(dir.path().join(format!("{i}"))).unwrap();
        }
        let root = Directory::open(dir.path()).unwrap().with_most_open(20);
        let take = |ways: &mut Ways| {
            let place = |i| ways.place(&root, &name(&format!("{i}/x")));
            let places: Vec<_> = (0..30).map(place).map_while(Result::ok).collect();
            let error = ways.place(&root, &name("29/x")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
            assert!(error.to_string().contains("20 is the most"), "{error}");
            places
        };
        let (mut first, mut second) = (Ways::default(), Ways::default());
        let of_first = take(&mut first);
        assert_eq!(of_first.len(), 10);
        assert_eq!(take(&mut second).len(), 5);
        // Another file of a directory that is open needs nothing.
        first.place(&root, &name("0/y")).unwrap();
        // What files still lie in stays open.
        drop(first);
        assert_eq!(take(&mut Ways::default()).len(), 2);
        drop((of_first, second));
        assert_eq!(take(&mut Ways::default()).len(), 10);
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

    /// A crash between a second name and the end of the first, as on file systems that cannot
    /// rename to a free name only: the published file is not written to again.
    #[test]
    fn what_has_its_final_name_too_is_not_written_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let place = Place::local(&path).unwrap();
        place.open_part().unwrap().write_all(b"whole").unwrap();
        fs::hard_link(dir.path().join("x.part"), &path).unwrap();
        let mut part = place.open_part().unwrap();
        part.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read(dir.path().join("x.part")).unwrap(), b"new");
    }

    #[test]
    fn only_the_file_that_was_written_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::local(&dir.path().join("x")).unwrap();
        let part = place.open_part().unwrap();
        fs::remove_file(dir.path().join("x.part")).unwrap();
        for overwrite in [false, true] {
            fs::write(dir.path().join("x.part"), "foreign").unwrap();
            let error = place.publish(&part, overwrite).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(!place.exists().unwrap());
        }
    }

    #[test]
    fn permissions_are_those_of_the_source_and_never_more() {
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let published = |bits: u16, overwrite: bool| {
            let place = Place::local(&path).unwrap().with_mode(bits);
            let part = place.open_part().unwrap();
            let unfinished = mode(&dir.path().join("x.part"));
            assert_eq!(
                unfinished & 0o177 & !u32::from(bits),
                0,
                "{unfinished:o} of {bits:o}"
            );
            place.publish(&part, overwrite).unwrap();
            mode(&path)
        };
        // Whatever the umask is, it takes nothing from the owner here.
        assert_eq!(published(0o600, false), 0o600);
        assert_eq!(
            published(0o644, true),
            0o600,
            "what is replaced was private"
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(published(0o400, false), 0o400);
        fs::remove_file(&path).unwrap();
        assert_eq!(published(0o4755, false) & 0o7000, 0, "no set-user-ID");
    }

    /// Whatever the source allows its owner, what was not published can be gone on with.
    #[test]
    fn a_name_that_is_taken_leaves_the_unfinished_file_writable() {
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "old").unwrap();
        let place = Place::local(&dir.path().join("x"))
            .unwrap()
            .with_mode(0o444);
        let part = place.open_part().unwrap();
        let before = mode(&dir.path().join("x.part"));
        let error = place.publish(&part, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(mode(&dir.path().join("x.part")), before);
        assert_eq!(before & 0o600, 0o600);
        fs::remove_file(dir.path().join("x")).unwrap();
        place.publish(&part, false).unwrap();
        assert_eq!(mode(&dir.path().join("x")) & 0o700, 0o400);
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
