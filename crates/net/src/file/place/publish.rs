//! The unfinished file gets its final name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, fstatat};
use nix::unistd::linkat;
use rustix::fs::{RenameFlags, renameat_with};

use super::{OWNER, Place};
use crate::file::name::{PART, STATE};

impl Place {
    /// Gives the unfinished file its final name, once it is on the disk. At every moment the file
    /// has one name: a kill leaves it unfinished or finished.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::AlreadyExists`] if there is a file and `overwrite` is
    /// false; [`ErrorKind::NotFound`] if `part` no longer has the name of the unfinished file.
    pub(in crate::file) fn publish(&self, part: &File, overwrite: bool) -> io::Result<()> {
        part.sync_all()?;
        self.name(part, overwrite)?;
        nix::unistd::fsync(&self.dir)?;
        Ok(())
    }

    /// As [`publish`](Self::publish), of a file whose bytes are on the disk; after a loss of power
    /// the name may be missing.
    ///
    /// # Errors
    /// The same.
    pub(in crate::file) fn name(&self, part: &File, overwrite: bool) -> io::Result<()> {
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
}

fn mode_of(file: &File) -> io::Result<Mode> {
    Ok(Mode::from_bits_truncate(fstat(file)?.st_mode))
}
