//! Unfinished files that nobody goes on with: found by their state beside them, and removed once
//! they are old.
//!
//! Only what has a state of ours is removed: a `NAME.part` that somebody else left there is
//! somebody else's. One that a transfer is writing is locked, and passed over.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::name::STATE;
use super::place::{Directory, Place, UNFINISHED_STATE, Way};

/// Totals of one cleanup of unfinished files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Unfinished files.
    pub parts: u64,
    /// Bytes that they had been given on the disk.
    pub bytes: u64,
    /// Of those that are old enough, how many could not be removed.
    pub failed: u64,
}

impl Directory {
    /// Removes every unfinished file, here and in subdirectories, that has not been written to for
    /// `age` before `now`. Links are not followed. What is not readable is passed over.
    ///
    /// # Errors
    /// The directory itself cannot be read.
    pub fn remove_abandoned(&self, age: Duration, now: SystemTime) -> io::Result<Removed> {
        let mut removed = Removed::default();
        self.each_unfinished(|place| match place.remove_if_older(age, now) {
            Ok(Some(bytes)) => {
                removed.parts += 1;
                removed.bytes += bytes;
            }
            Ok(None) => {}
            // Somebody writes it, or has just finished it.
            Err(e) if matches!(e.kind(), ErrorKind::ResourceBusy | ErrorKind::NotFound) => {}
            Err(_) => removed.failed += 1,
        })?;
        Ok(removed)
    }

    /// Bytes that all unfinished files, here and in subdirectories, take on the disk or will take,
    /// but for the file `own`, by device and inode.
    ///
    /// # Errors
    /// The directory itself cannot be read.
    pub fn unfinished_bytes(&self, own: Option<(u64, u64)>) -> io::Result<u64> {
        let mut bytes = 0u64;
        self.each_unfinished(|place| {
            let promised = place.promised(own).ok().flatten();
            bytes = bytes.saturating_add(promised.unwrap_or(0));
        })?;
        Ok(bytes)
    }

    /// One directory of each level is open at a time. What cannot be read is passed over, but not
    /// for want of descriptors or memory: then nobody knows what is there.
    fn each_unfinished(&self, mut each: impl FnMut(&Place)) -> io::Result<()> {
        let mut visit = |fd: OwnedFd| {
            let (leaves, below) = list(&fd)?;
            let way = Arc::new(Way::from(fd));
            for leaf in leaves {
                each(&Place::at(Arc::clone(&way), leaf));
            }
            io::Result::Ok((way, below))
        };
        let mut levels = vec![visit(self.again()?)?];
        while let Some((way, below)) = levels.last_mut() {
            let Some(name) = below.pop() else {
                levels.pop();
                continue;
            };
            let opened = openat(&**way, name.as_os_str(), FLAGS, Mode::empty());
            match opened.map_err(io::Error::from).and_then(&mut visit) {
                Ok(level) if levels.len() <= DEEPEST => levels.push(level),
                Err(e) if is_short(&e) => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_short(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM))
}

/// Final names of the unfinished files in a directory, and its subdirectories.
fn list(fd: &OwnedFd) -> io::Result<(Vec<OsString>, Vec<OsString>)> {
    let mut dir = Dir::openat(fd.as_fd(), ".", FLAGS, Mode::empty())?;
    let (mut leaves, mut below) = (Vec::new(), Vec::new());
    for entry in dir.iter() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        // Of one whose state was never complete both endings may be there: it is met once.
        let unfinished = name.strip_suffix(UNFINISHED_STATE.as_bytes());
        let leaf = name.strip_suffix(STATE.as_bytes()).or(unfinished);
        // A file system that does not say the type: what is opened later has to be a directory.
        let may_be_directory = matches!(entry.file_type(), Some(Type::Directory) | None);
        if let Some(leaf) = leaf.filter(|leaf| !leaf.is_empty()) {
            leaves.push(OsString::from_vec(leaf.to_vec()));
        } else if may_be_directory && !name.starts_with(b".") {
            below.push(std::ffi::OsStr::from_bytes(name).to_owned());
        }
    }
    leaves.sort();
    leaves.dedup();
    Ok((leaves, below))
}

const FLAGS: OFlag = OFlag::O_DIRECTORY
    .union(OFlag::O_RDONLY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Subdirectories below one another: more than a name of a client can have.
const DEEPEST: usize = 500;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::file::{Cancel, Identity, Part, Room};

    const DAY: Duration = Duration::from_secs(86_400);

    /// An unfinished file of a megabyte, written to so long ago.
    fn left(path: &Path, ago: Duration) -> Part {
        let source = Identity {
            size: 1 << 20,
            changed: 1,
        };
        let place = Arc::new(Place::local(path).unwrap());
        let part = Part::open(place, source, &Room::default(), &Cancel::default()).unwrap();
        for ending in [".part", ".part.state"] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            let file = File::options().write(true).open(name).unwrap();
            file.set_modified(SystemTime::now() - ago).unwrap();
        }
        part
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn sweep(dir: &Path) -> Removed {
        let directory = Directory::open(dir).unwrap();
        directory
            .remove_abandoned(7 * DAY, SystemTime::now())
            .unwrap()
    }

    #[test]
    fn old_ones_go_wherever_they_are_and_young_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path();
        fs::create_dir_all(d.join("a/b")).unwrap();
        drop(left(&d.join("old"), 8 * DAY));
        drop(left(&d.join("a/b/old"), 8 * DAY));
        drop(left(&d.join("young"), 6 * DAY));
        fs::write(d.join("whole"), "x").unwrap();
        let removed = sweep(d);
        assert_eq!((removed.parts, removed.failed), (2, 0));
        assert_eq!(names(d), ["a", "whole", "young.part", "young.part.state"]);
        assert_eq!(names(&d.join("a/b")), [""; 0]);
        assert_eq!(sweep(d), Removed::default());
    }

    #[test]
    fn one_that_is_in_use_stays() {
        let dir = tempfile::tempdir().unwrap();
        let part = left(&dir.path().join("x"), 8 * DAY);
        assert_eq!(sweep(dir.path()), Removed::default());
        assert_eq!(names(dir.path()).len(), 2);
        drop(part);
        assert_eq!(sweep(dir.path()).parts, 1);
        assert_eq!(names(dir.path()).len(), 0);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let d = dir.path();
        drop(left(&outside.path().join("y"), 8 * DAY));
        symlink(outside.path(), d.join("way")).unwrap();
        // Without a state, and with one that is none.
        let foreign = ["v.part.state~", "x.part", "z.part", "z.part.state"];
        for name in foreign {
            fs::write(d.join(name), "x").unwrap();
            let file = File::options().write(true).open(d.join(name)).unwrap();
            file.set_modified(SystemTime::now() - 8 * DAY).unwrap();
        }
        assert_eq!(sweep(d), Removed::default());
        let stay = ["v.part.state~", "way", "x.part", "z.part", "z.part.state"];
        assert_eq!(names(d), stay);
        assert_eq!(names(outside.path()).len(), 2);
    }

    /// A copy can make thousands of directories beside each other: the sweep does not take the
    /// descriptors of everybody else.
    #[test]
    fn one_directory_of_each_level_is_open_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().canonicalize().unwrap();
        for i in 0..300 {
            fs::create_dir(d.join(format!("{i}"))).unwrap();
        }
        for i in [0, 7, 150, 299] {
            drop(left(&d.join(format!("{i}/old")), 8 * DAY));
        }
        let open = || {
            let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let links = all.filter_map(|fd| fs::read_link(fd.path()).ok());
            links.filter(|path| path.starts_with(&d)).count()
        };
        let directory = Directory::open(&d).unwrap();
        let mut most = Vec::new();
        directory.each_unfinished(|_| most.push(open())).unwrap();
        assert_eq!(most.len(), 4);
        // The directory, once more for its list, and one below.
        assert!(most.iter().all(|open| *open <= 4), "{most:?}");
    }

    /// Whoever waited for the lock of one that is then removed begins anew, and not in a file
    /// without a name.
    #[test]
    fn who_comes_while_it_is_removed_gets_a_file_with_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        drop(left(&path, 8 * DAY));
        assert_eq!(sweep(dir.path()).parts, 1);
        let part = left(&path, Duration::ZERO);
        assert_eq!(part.prefix(), 0);
        assert_eq!(names(dir.path()), ["x.part", "x.part.state"]);
    }
}
