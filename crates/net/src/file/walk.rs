//! Directories of a copy: what is in one, and the making of others. Links are not followed.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, UNIX_EPOCH};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};

use super::name::Name;
use super::place::Directory;
use super::plan::Item;
use super::state::Identity;

/// What is below a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Directories and regular files, each directory before what is in it.
    pub items: Vec<Item>,
    /// What is no part of a copy: name, and why.
    pub left_out: Vec<(String, &'static str)>,
}

impl Directory {
    /// The file `name`, or the directory and all that is below it.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::InvalidInput`] if it is neither;
    /// [`ErrorKind::FileTooLarge`] if there is too much below it.
    pub fn items(&self, name: &Name) -> io::Result<Listing> {
        let (way, leaf) = name.parts();
        let mut fd = self.again()?;
        for part in way {
            fd = openat(&fd, part, FLAGS, Mode::empty())?;
        }
        let stat = fstatat(&fd, leaf, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let mut listing = Listing::default();
        match kind(&stat) {
            SFlag::S_IFREG => listing
                .items
                .push(item(name.as_str().to_owned(), &stat, true)),
            SFlag::S_IFDIR => {
                let fd = openat(&fd, leaf, FLAGS, Mode::empty())?;
                listing
                    .items
                    .push(item(name.as_str().to_owned(), &stat, false));
                listing.descend(&fd, name.as_str(), 0)?;
            }
            SFlag::S_IFLNK => return Err(io::Error::from_raw_os_error(nix::libc::ELOOP)),
            _ => {
                return Err(io::Error::new(
                    ErrorKind::InvalidInput,
                    "not a regular file",
                ));
            }
        }
        Ok(listing)
    }

    /// All that is below this directory, which the copy calls `name`; itself first.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::FileTooLarge`] if there is too much below it.
    pub fn tree(&self, name: &Name) -> io::Result<Listing> {
        let fd = self.again()?;
        let stat = nix::sys::stat::fstat(&fd)?;
        let mut listing = Listing::default();
        listing
            .items
            .push(item(name.as_str().to_owned(), &stat, false));
        listing.descend(&fd, name.as_str(), 0)?;
        Ok(listing)
    }

    /// Makes the directories that `name` is in, and with `all` the one that it names.
    ///
    /// # Errors
    /// As the system says: something else may be in the way, a symbolic link for example.
    pub fn make(&self, name: &Name, all: bool, mode: u16) -> io::Result<()> {
        let (way, leaf) = name.parts();
        let mut fd = self.again()?;
        let own = Mode::from_bits_truncate(u32::from(mode & 0o777) | 0o700);
        let leaf = all.then_some((leaf, own));
        let way = way.map(|part| (part, Mode::from_bits_truncate(0o777)));
        for (part, mode) in way.chain(leaf) {
            match mkdirat(&fd, part, mode) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(e.into()),
            }
            fd = openat(&fd, part, FLAGS, Mode::empty())?;
        }
        Ok(())
    }
}

impl Listing {
    fn descend(&mut self, fd: &OwnedFd, under: &str, depth: usize) -> io::Result<()> {
        let mut dir = Dir::openat(fd.as_fd(), ".", FLAGS, Mode::empty())?;
        let mut names: Vec<OsString> = Vec::new();
        for entry in dir.iter() {
            let name = entry?.file_name().to_bytes().to_vec();
            if !matches!(name.as_slice(), b"." | b"..") {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort_unstable();
        for leaf in names {
            if self.items.len() >= MOST_ITEMS {
                return Err(ErrorKind::FileTooLarge.into());
            }
            self.add(fd, under, &leaf, depth)?;
        }
        Ok(())
    }

    fn add(&mut self, fd: &OwnedFd, under: &str, leaf: &OsStr, depth: usize) -> io::Result<()> {
        let shown = format!("{under}/{}", String::from_utf8_lossy(leaf.as_bytes()));
        let name = match leaf.to_str().map(|leaf| format!("{under}/{leaf}")) {
            None => return self.leave(shown, "its name is not UTF-8"),
            Some(name) if Name::parse(&name).is_err() => {
                return self.leave(
                    shown,
                    "hidden, of an unfinished copy, or not a name for others",
                );
            }
            Some(name) => name,
        };
        let stat = match fstatat(fd, leaf, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Removed since.
            Err(Errno::ENOENT) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        match kind(&stat) {
            SFlag::S_IFREG => self.items.push(item(name, &stat, true)),
            SFlag::S_IFDIR if depth >= DEEPEST => self.leave(shown, "too deep")?,
            SFlag::S_IFDIR => match openat(fd, leaf, FLAGS, Mode::empty()) {
                Ok(below) => {
                    self.items.push(item(name.clone(), &stat, false));
                    self.descend(&below, &name, depth + 1)?;
                }
                Err(_) => self.leave(shown, "it cannot be read")?,
            },
            SFlag::S_IFLNK => self.leave(shown, "a symbolic link")?,
            _ => self.leave(shown, "neither a file nor a directory")?,
        }
        Ok(())
    }

    fn leave(&mut self, name: String, why: &'static str) -> io::Result<()> {
        self.left_out.push((name, why));
        Ok(())
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// As [`Identity::of`] sees the open file.
fn item(name: String, stat: &FileStat, is_file: bool) -> Item {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let fraction = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    let changed = UNIX_EPOCH + Duration::new(seconds, fraction);
    let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    Item {
        name,
        source: is_file.then_some(Identity {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            changed: since.as_nanos() as u64,
        }),
        mode: (stat.st_mode & 0o777) as u16,
    }
}

const FLAGS: OFlag = OFlag::O_DIRECTORY
    .union(OFlag::O_RDONLY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Subdirectories below one another.
const DEEPEST: usize = 100;
/// Files and directories of one listing: some 20 MB of names.
const MOST_ITEMS: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn regular_files_and_directories_are_listed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().join("d");
        fs::create_dir_all(d.join("sub/empty")).unwrap();
        fs::write(d.join("sub/b"), "bytes").unwrap();
        fs::set_permissions(d.join("sub/b"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(d.join(".hidden"), "").unwrap();
        fs::write(d.join("x.part"), "").unwrap();
        fs::write(d.join(OsStr::from_bytes(b"bad\xff")), "").unwrap();
        fs::write(d.join("line\nbreak"), "").unwrap();
        symlink("/etc", d.join("way")).unwrap();
        nix::unistd::mkfifo(&d.join("pipe"), Mode::S_IRWXU).unwrap();
        let listing = Directory::open(dir.path())
            .unwrap()
            .items(&Name::parse("d").unwrap())
            .unwrap();
        let names: Vec<&str> = listing.items.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["d", "d/sub", "d/sub/b", "d/sub/empty"]);
        let b = &listing.items[2];
        let metadata = fs::metadata(d.join("sub/b")).unwrap();
        assert_eq!((b.source, b.mode), (Some(Identity::of(&metadata)), 0o640));
        assert_eq!(listing.left_out.len(), 6, "{:?}", listing.left_out);
    }

    #[test]
    fn directories_are_made_inside_and_not_through_links() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), dir.path().join("way")).unwrap();
        let root = Directory::open(dir.path()).unwrap();
        let name = |text| Name::parse(text).unwrap();
        root.make(&name("a/b/c"), true, 0o500).unwrap();
        root.make(&name("a/b/d/file"), false, 0).unwrap();
        assert!(dir.path().join("a/b/c").is_dir() && !dir.path().join("a/b/d/file").exists());
        let mode = fs::metadata(dir.path().join("a/b/c"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o700, 0o700, "its owner can go on in it");
        assert!(root.make(&name("way/x"), true, 0o700).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
