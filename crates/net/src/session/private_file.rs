//! Files with secrets: nobody but their owner may read or write them.

use std::fs::{File, OpenOptions, hard_link, remove_file};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{KeyError, entropy};

/// Bytes that are read of a file.
const MOST: u64 = 4096;

/// The text of a file with a secret; `what` names it in errors.
///
/// # Errors
/// [`KeyError`]: not readable, not a regular file, or open to others.
pub fn read(path: &Path, what: &'static str) -> Result<String, KeyError> {
    let unreadable = |error| KeyError::Unreadable {
        what,
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file: what is checked is what is read.
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(KeyError::NoFile {
            what,
            path: path.to_owned(),
        });
    }
    let mode = meta.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed {
            what,
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    let mut file = file.take(MOST);
    file.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Writes a secret to a file that must not exist yet. It has its name once all of it is on the
/// disk: who reads it meanwhile finds none, and a full disk leaves none.
///
/// # Errors
/// [`KeyError::Unwritable`].
pub fn create(path: &Path, what: &'static str, text: &str) -> Result<(), KeyError> {
    let unwritable = |error| KeyError::Unwritable {
        what,
        path: path.to_owned(),
        error,
    };
    let mut random = [0; 8];
    entropy(&mut random).map_err(|e| KeyError::NoEntropy(e.to_string()))?;
    let begun = path.with_file_name(format!(".fullpipe-{:016x}", u64::from_be_bytes(random)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&begun)
        .map_err(unwritable)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    let named = written.and_then(|()| name(&begun, path));
    // There is nothing left to remove if it has its name.
    let _ = remove_file(&begun);
    named.map_err(unwritable)
}

/// Gives a file its name, which nothing else may have.
fn name(begun: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, begun, CWD, path, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        // Not every file system can.
        Err(e) if e.kind() != ErrorKind::AlreadyExists => hard_link(begun, path),
        renamed => renamed,
    }
}
