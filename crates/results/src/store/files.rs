//! Files that are either whole or absent, and text that knows whether it was changed.
//!
//! A file is written under a temporary name in its own directory, flushed to the disk and renamed;
//! then the directory is flushed. After a kill or a power cut there is the old file or the new one,
//! and at worst a temporary file that the next writer removes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::StoreError;

/// Writes a file so that it is never seen half.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    whole(path, |file| file.write_all(bytes))
}

/// The same for content that is made while it is written; its SHA-256.
pub(super) fn write_with(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<String, StoreError> {
    let mut hash = Sha256::new();
    whole(path, |file| {
        let mut out = BufWriter::new(Hashing {
            file,
            hash: &mut hash,
        });
        content(&mut out)?;
        out.flush()
    })?;
    Ok(hexadecimal(&hash.finalize()))
}

/// Hashes what it passes on.
struct Hashing<'a> {
    file: &'a mut File,
    hash: &'a mut Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn whole(path: &Path, content: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), StoreError> {
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
        StoreError::Io {
            doing: "write",
            path: path.to_owned(),
            source,
        }
    })
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|source| StoreError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

/// Makes a directory and those above it.
pub(super) fn make_dir(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|source| StoreError::Io {
        doing: "create",
        path: path.to_owned(),
        source,
    })
}

/// Removes a file that may be absent.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StoreError::Io {
            doing: "remove",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Names in a directory, sorted; empty if there is no such directory.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let error = |source| StoreError::Io {
        doing: "list",
        path: dir.to_owned(),
        source,
    };
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(error)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(
            entry
                .map_err(error)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    names.sort();
    Ok(names)
}

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

/// Name of the lock file; it stays, empty.
pub(super) const LOCK: &str = ".lock";

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(hash: &[u8]) -> String {
    use std::fmt::Write as _;
    hash.iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string");
            text
        })
}

/// Adds to a JSON object of several lines its own hash, as first member.
pub(super) fn seal(object: &str) -> String {
    let rest = object
        .strip_prefix("{\n")
        .expect("a JSON object of several lines");
    format!("{{\n{SEAL}{}\",\n{rest}", sha256(object.as_bytes()))
}

/// The object without its hash; `None` if anything in it was changed or is missing.
pub(super) fn unseal(text: &str) -> Option<String> {
    let rest = text.strip_prefix("{\n")?.strip_prefix(SEAL)?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let object = format!("{{\n{}", rest.strip_prefix("\",\n")?);
    (sha256(object.as_bytes()) == hash).then_some(object)
}

const SEAL: &str = "  \"sha256\": \"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_the_standard_s_example() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_seal_notices_every_change() {
        let object = "{\n  \"a\": 1.5,\n  \"b\": \"x\"\n}\n";
        let sealed = seal(object);
        assert_eq!(unseal(&sealed).as_deref(), Some(object));
        assert!(serde_json::from_str::<serde_json::Value>(&sealed).is_ok());
        for i in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..i]), None, "cut at {i}");
            let mut bytes = sealed.clone().into_bytes();
            bytes[i] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(unseal(&changed), None, "changed at {i}");
        }
    }

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
        assert_eq!(hash.unwrap(), sha256(&read(&path).unwrap()));
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
}
