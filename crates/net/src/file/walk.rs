//! Directories of a copy: what is in one, and the making of others. Links are not followed.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, UNIX_EPOCH};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::{Deserialize, Serialize};

use super::hash::Cancel;
use super::name::{Name, NameError};
use super::place::Directory;
use super::plan::Item;
use super::state::Identity;
use crate::lender::Lender;
use crate::shown::shortened;

/// Entries below a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Directories and regular files, each directory before what is in it.
    pub items: Vec<Item>,
    /// What is no part of a copy.
    pub left_out: Vec<LeftOut>,
}

/// An entry of a directory that is no part of its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name in the copy; it may hold anything but be longer than a message allows.
    pub name: String,
    /// A reason that follows the name and a colon.
    pub why: String,
    /// A file or directory that the copy lacks; otherwise one of a kind that no copy has: a link, a
    /// pipe, a hidden file.
    pub is_missed: bool,
}

/// What the directories of a copy may have in them.
#[derive(Debug)]
pub struct Reach<'a> {
    entries: usize,
    /// Lends memory for what is listed; `None`: it is there.
    lender: Option<&'a dyn Lender>,
    /// Bytes that are lent and not used yet.
    lent: usize,
    cancel: &'a Cancel,
}

impl<'a> Reach<'a> {
    /// Of one copy, [`MOST_ENTRIES`] in all, however many names it has.
    pub fn new(lender: Option<&'a dyn Lender>, cancel: &'a Cancel) -> Self {
        Self {
            entries: MOST_ENTRIES,
            lender,
            lent: 0,
            cancel,
        }
    }

    /// One more, whose name in the copy has so many bytes.
    fn take(&mut self, name: usize) -> io::Result<()> {
        self.cancel.check()?;
        self.entries = self.entries.checked_sub(1).ok_or_else(|| {
            let what = format!(
                "a copy has {MOST_ENTRIES} files and directories at most: copy its directories one \
                 by one, or pack it first, as `tar` does"
            );
            io::Error::new(ErrorKind::FileTooLarge, what)
        })?;
        let bytes = OF_ENTRY + 3 * name;
        while self.lent < bytes {
            if !self.lender.is_none_or(|lender| lender.lend(LOT as u64)) {
                let what = "the server has no memory for more files and directories (limit \
                            --max-memory)";
                return Err(io::Error::new(ErrorKind::QuotaExceeded, what));
            }
            self.lent += LOT;
        }
        self.lent -= bytes;
        Ok(())
    }
}

impl Directory {
    /// The file `name`, or the directory and all that is below it.
    ///
    /// # Errors
    /// As the system says; [`ErrorKind::InvalidInput`] if it is neither;
    /// [`ErrorKind::FileTooLarge`] and [`ErrorKind::QuotaExceeded`] if it is beyond `reach`.
    pub fn items(&self, name: &Name, reach: &mut Reach<'_>) -> io::Result<Listing> {
        reach.take(name.as_str().len())?;
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
                listing.descend(&fd, name.as_str(), 0, reach)?;
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
    pub fn tree(&self, name: &Name, reach: &mut Reach<'_>) -> io::Result<Listing> {
        let fd = self.again()?;
        let stat = nix::sys::stat::fstat(&fd)?;
        let mut listing = Listing::default();
        listing
            .items
            .push(item(name.as_str().to_owned(), &stat, false));
        listing.descend(&fd, name.as_str(), 0, reach)?;
        Ok(listing)
    }

    /// Makes the directories that `name` is in, and with `all` the one that it names; which it has
    /// made is noted in `made`.
    ///
    /// # Errors
    /// As the system says: something else may be in the way, a symbolic link for example.
    pub fn make(&self, name: &Name, all: bool, mode: u16, made: &mut Made) -> io::Result<()> {
        let (way, leaf) = name.parts();
        let mut fd = self.again()?;
        let own = Mode::from_bits_truncate(u32::from(mode & 0o777) | 0o700);
        let leaf = all.then_some((leaf, own));
        let way = way.map(|part| (part, Mode::from_bits_truncate(0o777)));
        let mut end = 0;
        for (part, mode) in way.chain(leaf) {
            end += part.len();
            let is_new = match mkdirat(&fd, part, mode) {
                Ok(()) => true,
                Err(Errno::EEXIST) => false,
                Err(e) => return Err(e.into()),
            };
            fd = openat(&fd, part, FLAGS, Mode::empty())?;
            if is_new {
                let stat = fstat(&fd)?;
                let path = name.as_str()[..end].to_owned();
                made.0.push((path, (stat.st_dev, stat.st_ino)));
            }
            end += 1;
        }
        Ok(())
    }

    /// Removes the directories `made` that are empty and that `may_go`.
    pub fn unmake(&self, made: &Made, may_go: impl Fn(&str) -> bool) {
        for (path, key) in made.0.iter().rev().filter(|(path, _)| may_go(path)) {
            // That one is left is no trouble of a copy that has another.
            let _ = self.remove(path, *key);
        }
    }

    /// Removes a directory, if it is empty, and still the one that was made.
    fn remove(&self, path: &str, key: (u64, u64)) -> io::Result<()> {
        let (above, leaf) = path.rsplit_once('/').unwrap_or(("", path));
        let mut fd = self.again()?;
        for part in above.split('/').filter(|part| !part.is_empty()) {
            fd = openat(&fd, part, FLAGS, Mode::empty())?;
        }
        let stat = fstatat(&fd, leaf, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if (stat.st_dev, stat.st_ino) == key {
            unlinkat(&fd, leaf, UnlinkatFlags::RemoveDir)?;
        }
        Ok(())
    }
}

/// Directories that a copy has made, in this order: names below one directory, device and inode.
#[derive(Debug, Default)]
pub struct Made(Vec<(String, (u64, u64))>);

impl Listing {
    fn descend(
        &mut self,
        fd: &OwnedFd,
        under: &str,
        depth: usize,
        reach: &mut Reach<'_>,
    ) -> io::Result<()> {
        let mut dir = Dir::openat(fd.as_fd(), ".", FLAGS, Mode::empty())?;
        let mut names: Vec<OsString> = Vec::new();
        for entry in dir.iter() {
            let name = entry?.file_name().to_bytes().to_vec();
            if !matches!(name.as_slice(), b"." | b"..") {
                reach.take(under.len() + 1 + name.len())?;
                names.push(OsString::from_vec(name));
            }
        }
        names.sort_unstable();
        for leaf in names {
            self.add(fd, under, &leaf, depth, reach)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        fd: &OwnedFd,
        under: &str,
        leaf: &OsStr,
        depth: usize,
        reach: &mut Reach<'_>,
    ) -> io::Result<()> {
        let stat = match fstatat(fd, leaf, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Removed since.
            Err(Errno::ENOENT) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let shown = format!("{under}/{}", String::from_utf8_lossy(leaf.as_bytes()));
        let mut leave = |why: &str, is_missed| {
            self.left_out.push(LeftOut {
                name: shortened(&shown, MOST_SHOWN),
                why: why.to_owned(),
                is_missed,
            });
            Ok(())
        };
        let is_file = match kind(&stat) {
            SFlag::S_IFREG => true,
            SFlag::S_IFDIR => false,
            SFlag::S_IFLNK => return leave("a symbolic link", false),
            _ => return leave("neither a file nor a directory", false),
        };
        let Some(leaf_text) = leaf.to_str() else {
            return leave("its name is not UTF-8", true);
        };
        let name = format!("{under}/{leaf_text}");
        match Name::parse(&name) {
            Ok(_) => {}
            Err(NameError::Hidden) => return leave("hidden", false),
            Err(why) => return leave(&why.to_string(), true),
        }
        if is_file {
            self.items.push(item(name, &stat, true));
            return Ok(());
        }
        if depth >= DEEPEST {
            return leave("too many directories in each other", true);
        }
        match openat(fd, leaf, FLAGS, Mode::empty()) {
            Ok(below) => {
                self.items.push(item(name.clone(), &stat, false));
                self.descend(&below, &name, depth + 1, reach)
            }
            Err(e) => leave(&format!("it cannot be read: {}", e.desc()), true),
        }
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// An item with the size and time that [`Identity::of`] has of the open file.
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
/// Files, directories and what is left out of them, of one copy.
const MOST_ENTRIES: usize = 100_000;
/// Bytes that a copy keeps of a file or directory, beside its name; what is lent at a time.
pub const OF_ENTRY: usize = 640;
const LOT: usize = 1 << 20;
/// Characters of a name that is only told.
const MOST_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        fs::write(d.join("back\\slash"), "").unwrap();
        fs::write(d.join("y".repeat(201)), "").unwrap();
        symlink("/etc", d.join("way")).unwrap();
        nix::unistd::mkfifo(&d.join("pipe"), Mode::S_IRWXU).unwrap();
        let listing = Directory::open(dir.path())
            .unwrap()
            .items(
                &Name::parse("d").unwrap(),
                &mut Reach::new(None, &Cancel::default()),
            )
            .unwrap();
        let names: Vec<&str> = listing.items.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["d", "d/sub", "d/sub/b", "d/sub/empty"]);
        let b = &listing.items[2];
        let metadata = fs::metadata(d.join("sub/b")).unwrap();
        assert_eq!((b.source, b.mode), (Some(Identity::of(&metadata)), 0o640));
        let (missed, unfit): (Vec<_>, Vec<_>) =
            listing.left_out.into_iter().partition(|l| l.is_missed);
        let names = |all: &[LeftOut]| {
            let all = all.iter().map(|l| l.name.clone());
            all.collect::<Vec<_>>()
        };
        assert_eq!(names(&unfit), ["d/.hidden", "d/pipe", "d/way"]);
        let missed_names = [
            "d/back\\slash",
            "d/bad\u{fffd}",
            "d/line\nbreak",
            "d/x.part",
            &format!("d/{}\u{2026}{}", "y".repeat(64), "y".repeat(133)),
        ];
        assert_eq!(names(&missed), missed_names);
        for (missed, word) in missed
            .iter()
            .zip(["backsl", "UTF-8", "control", ".part", "200"])
        {
            assert!(missed.why.contains(word), "{missed:?}");
        }
    }

    #[test]
    fn a_copy_lists_so_much_and_no_more_whatever_it_is() {
        #[derive(Debug, Default)]
        struct Lots(AtomicUsize);
        impl Lender for Lots {
            fn lend(&self, bytes: u64) -> bool {
                assert_eq!(bytes, LOT as u64);
                self.0.fetch_sub(1, Ordering::Relaxed) > 0
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().join("d");
        fs::create_dir(&d).unwrap();
        for i in 0..40 {
            fs::write(d.join(format!("x{i}")), "").unwrap();
            fs::write(d.join(format!(".hidden{i}")), "").unwrap();
        }
        let root = Directory::open(dir.path()).unwrap();
        let (name, cancel) = (Name::parse("d").unwrap(), Cancel::default());
        let within = |entries, lots| {
            let lender = Lots(AtomicUsize::new(lots));
            let mut reach = Reach::new(Some(&lender), &cancel);
            reach.entries = entries;
            // Twice the same name is twice as much.
            root.items(&name, &mut reach)?;
            root.items(&name, &mut reach)
        };
        // Itself, forty files and forty that are left out, twice.
        let listing = within(162, 1).unwrap();
        assert_eq!((listing.items.len(), listing.left_out.len()), (41, 40));
        let error = within(161, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("100000 files"), "{error}");
        let error = within(162, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert!(error.to_string().contains("--max-memory"), "{error}");
        cancel.cancel();
        assert_eq!(within(162, 1).unwrap_err().kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn directories_are_made_inside_and_not_through_links() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), dir.path().join("way")).unwrap();
        let root = Directory::open(dir.path()).unwrap();
        let name = |text| Name::parse(text).unwrap();
        let mut made = Made::default();
        root.make(&name("a/b/c"), true, 0o500, &mut made).unwrap();
        root.make(&name("a/b/d/file"), false, 0, &mut made).unwrap();
        assert!(dir.path().join("a/b/c").is_dir() && !dir.path().join("a/b/d/file").exists());
        let mode = fs::metadata(dir.path().join("a/b/c"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o700, 0o700, "its owner can go on in it");
        assert!(root.make(&name("way/x"), true, 0o700, &mut made).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_made_goes_again_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = Directory::open(dir.path()).unwrap();
        let name = |text| Name::parse(text).unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir(at("old")).unwrap();
        let mut made = Made::default();
        for path in ["old", "old/a", "b/c/d", "e/f", "g", "h/i"] {
            root.make(&name(path), true, 0o700, &mut made).unwrap();
        }
        fs::write(at("e/file"), b"").unwrap();
        // Of the same name, and of somebody else.
        fs::rename(at("g"), at("moved")).unwrap();
        fs::create_dir(at("g")).unwrap();
        root.unmake(&made, |path| path != "h/i");
        for (path, is_left) in [
            ("old", true),
            ("old/a", false),
            ("b", false),
            ("e/f", false),
            ("e", true),
            ("g", true),
            ("moved", true),
            ("h/i", true),
        ] {
            assert_eq!(at(path).exists(), is_left, "{path}");
        }
    }
}
