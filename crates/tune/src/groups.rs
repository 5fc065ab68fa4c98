//! Control groups of version 2.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs};

/// Where they are mounted: not always at `/sys/fs/cgroup`.
///
/// # Errors
/// Nowhere.
pub fn root() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let v2 = mounts.lines().find(|l| l.contains(" - cgroup2 "));
    let at = v2.and_then(|l| l.split(' ').nth(4));
    let none = || io::Error::other("no control groups of version 2 are mounted");
    at.map(PathBuf::from).ok_or_else(none)
}

/// The folder of one.
///
/// # Errors
/// There is none, or it is not of version 2.
pub fn open(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    match fstatfs(&folder)?.filesystem_type() == CGROUP2_SUPER_MAGIC {
        true => Ok(folder),
        false => Err(io::Error::other(match root() {
            Ok(root) => format!("not below {}, where version 2 is mounted", root.display()),
            Err(e) => e.to_string(),
        })),
    }
}

/// Path of each below the root, `/` first, by its number (the inode of its folder).
pub fn paths() -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    if let Ok(root) = root() {
        below(&root, &root, &mut found);
    }
    found
}

fn below(root: &Path, folder: &Path, found: &mut BTreeMap<u64, String>) {
    let Ok(of) = fs::metadata(folder) else {
        return;
    };
    let path = folder.strip_prefix(root).unwrap_or(folder).display();
    found.insert(of.ino(), format!("/{path}"));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(root, &entry.path(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_control_group_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(&folder.path().join("none")).is_err());
        let why = open(folder.path()).unwrap_err().to_string();
        assert!(why.contains("version 2"), "{why}");
    }
}
