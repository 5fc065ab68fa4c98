//! Files that are either whole or absent, and text that knows whether it was changed.
//!
//! A file is written under a temporary name in its own directory, flushed to the disk and renamed;
//! then the directory is flushed. After a kill or a power cut there is the old file or the new one,
//! and at worst a temporary file that the next writer removes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::hash::{Hash, Hashing};

/// Writes a file so that it is never seen half.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    whole(path, |file| file.write_all(bytes))
}

/// The same for content that is made while it is written; its SHA-256.
pub(super) fn write_with(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<Hash, StoreError> {
    let mut hash = None;
    whole(path, |file| {
        let mut out = BufWriter::new(Hashing::new(file));
        content(&mut out)?;
        let out = out.into_inner().map_err(io::Error::from)?;
        hash = Some(out.finish().1);
        Ok(())
    })?;
    Ok(hash.expect("the content was written"))
}

/// The same for content that needs the file itself.
pub(super) fn whole(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let dir = path
        .parent()
        .expect("files of a result lie in its directory");
    let name = path
        .file_name()
        .expect("files of a result have a name")
        .to_string_lossy();
    let temporary = dir.join(format!(".{name}{TEMPORARY}"));
    let written = (|| {
        let mut file = File::create(&temporary)?;
        content(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(dir)?.sync_all()
    })();
    written.map_err(|source| {
        // Best effort: on a full disk the half file should not stay; the error that matters is the
        // first one.
        let _ = fs::remove_file(&temporary);
        refused("write", path, source)
    })
}

/// What the system does not let us do with a file or directory.
pub(super) fn refused(doing: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|e| refused("read", path, e))
}

/// Makes a directory and those above it.
pub(super) fn make_dir(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|e| refused("create", path, e))
}

/// The directory and those above it that are not there, the innermost first.
pub(super) fn missing_dirs(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().filter(|dir| !dir.as_os_str().is_empty());
    above
        .take_while(|dir| !dir.exists())
        .map(Path::to_owned)
        .collect()
}

/// Removes a file that may be absent.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(refused("remove", path, e)),
        _ => Ok(()),
    }
}

/// Names in a directory, sorted; empty if there is no such directory.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = each_name(dir)?.collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

/// The same, in no order and one after the other.
pub(super) fn each_name(
    dir: &Path,
) -> Result<impl Iterator<Item = Result<String, StoreError>>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        other => Some(other.map_err(|e| refused("list", dir, e))?),
    };
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let entries = entries.into_iter().flatten();
    Ok(entries.map(move |entry| entry.map(name).map_err(|e| refused("list", dir, e))))
}

/// Removes from a directory what is not to stay, some thousand names at a time.
pub(super) fn sweep(dir: &Path, stays: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    loop {
        let goes = each_name(dir)?.filter(|n| !n.as_ref().is_ok_and(|name| stays(name)));
        let batch: Vec<String> = goes.take(AT_A_TIME).collect::<Result<_, _>>()?;
        batch.iter().try_for_each(|name| remove(&dir.join(name)))?;
        if batch.len() < AT_A_TIME {
            return Ok(());
        }
    }
}

/// Names that wait to be removed: a list that is read while it shrinks may skip some.
const AT_A_TIME: usize = 1 << 14;

/// True for a name that [`write`] uses while it writes.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

const TEMPORARY: &str = ".tmp";

/// A directory that this process alone writes; released when dropped and by the death of the
/// process.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, but for a child of this process that was forked in the meantime and has
        // not executed yet.
        let _ = self.0.unlock();
    }
}

impl Lock {
    pub(super) fn take(dir: &Path) -> Result<Lock, StoreError> {
        let path = dir.join(LOCK);
        let io = |source| StoreError::Io {
            doing: "lock",
            path: path.clone(),
            source,
        };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(fs::TryLockError::WouldBlock) => Err(StoreError::Locked {
                dir: PathBuf::from(dir),
            }),
            Err(fs::TryLockError::Error(source)) => Err(io(source)),
        }
    }
}

/// Whether another process writes a result into `dir`.
pub fn is_written(dir: &Path) -> bool {
    let busy = |file: File| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
    File::open(dir.join(LOCK)).is_ok_and(busy)
}

/// Name of the lock file; it stays, empty.
pub(super) const LOCK: &str = ".lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        assert!(matches!(
            Lock::take(dir.path()),
            Err(StoreError::Locked { .. })
        ));
        drop(first);
        Lock::take(dir.path()).unwrap();
    }

    #[test]
    fn writing_replaces_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()).unwrap(), ["a.json"]);
        let hash = write_with(&path, |out| {
            (0..50_000).try_for_each(|i| writeln!(out, "line {i}"))
        });
        assert_eq!(hash.unwrap(), Hash::of(&read(&path).unwrap()));
        let failed = write_with(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(failed.unwrap_err().to_string().contains("no more"));
        assert!(
            read(&path).unwrap().starts_with(b"line 0\n"),
            "the old file"
        );
        assert_eq!(names(dir.path()).unwrap(), ["a.json"]);
        let error = write(&dir.path().join("no/such/a.json"), b"").unwrap_err();
        assert!(error.to_string().contains("cannot write"), "{error}");
    }
    #[test]
    fn of_many_files_those_stay_that_are_to() {
        let dir = tempfile::tempdir().unwrap();
        let all = 2 * AT_A_TIME + 5;
        for i in 0..all {
            fs::write(dir.path().join(i.to_string()), b"").unwrap();
        }
        sweep(dir.path(), |name| name.ends_with('7')).unwrap();
        let left = names(dir.path()).unwrap();
        assert!(left.iter().all(|name| name.ends_with('7')));
        assert_eq!(left.len(), (0..all).filter(|i| i % 10 == 7).count());
        sweep(&dir.path().join("no such"), |_| false).unwrap();
    }
}
