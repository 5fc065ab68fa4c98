//! Where a file is, or will be: a directory that is held open, and a last name in it. Everything
//! goes through the open directory, so that nobody can lead a transfer elsewhere by moving
//! directories about.

mod directory;
mod publish;
mod state;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};

pub(super) use self::directory::Way;
pub use self::directory::{Directory, Ways};
pub(super) use self::state::UNFINISHED_STATE;
use super::name::{PART, STATE};

/// There is no room for a file.
pub const DISK_FULL: &str = "the disk is full";
/// What has been removed while a copy wrote there.
pub const DIRECTORY_REMOVED: &str = "its directory was removed";
/// There is none for this user.
pub const QUOTA_USED: &str = "the disk quota is used up";

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
        directory::free(&self.dir)
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

    /// Device and inode of its directory.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn directory(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.dir)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// True if its directory has been removed.
    pub(crate) fn is_gone(&self) -> bool {
        directory::is_gone(&self.dir)
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
        if self.is_gone() {
            return io::Error::new(ErrorKind::NotFound, DIRECTORY_REMOVED);
        }
        let name = self.named(PART);
        let what = format!("somebody else moved or replaced {}", name.to_string_lossy());
        io::Error::new(ErrorKind::NotFound, what)
    }

    /// An error of this place; of one whose directory has been removed, that it has been.
    pub(super) fn explained(&self, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(nix::libc::ENOENT) if self.is_gone() => self.taken_away(),
            _ => error,
        }
    }

    /// The error of a write, with the name of the file and without the system's number.
    pub(super) fn unwritten(&self, error: &io::Error) -> io::Error {
        let why = match error.kind() {
            ErrorKind::StorageFull => DISK_FULL.to_owned(),
            ErrorKind::QuotaExceeded => QUOTA_USED.to_owned(),
            _ => error.to_string(),
        };
        let what = format!("{}: {why}", self.leaf.to_string_lossy());
        io::Error::new(error.kind(), what)
    }

    fn named(&self, ending: &str) -> OsString {
        let mut name = self.leaf.clone();
        name.push(ending);
        name
    }
}

/// What the owner of an unfinished file needs.
const OWNER: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
