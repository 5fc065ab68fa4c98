//! The servers that a user has met: a file of names and identities, as `known_hosts` of OpenSSH is.
//!
//! ```text
//! dtn.example.org:6220 5f3c...  64 hexadecimal digits
//! ```
//! Lines that begin with `#` are the user's own.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::ServerId;

/// A file of known servers; it need not exist.
#[derive(Clone, Debug)]
pub struct KnownServers {
    path: PathBuf,
}

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Public key of the server.
    pub identity: ServerId,
    /// Number of the line, from 1.
    pub line: usize,
}

/// Why the file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    /// It cannot be read or written.
    #[error("known servers {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A line that is none.
    #[error("known servers {path}, line {line}: not a name and 64 hexadecimal digits")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

impl KnownServers {
    /// A file that may be missing: it is made with the first server.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of a server, `HOST:PORT` as the user names it.
    ///
    /// # Errors
    /// [`KnownError`].
    pub fn find(&self, name: &str) -> Result<Option<Known>, KnownError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if first != name {
                continue;
            }
            let identity = rest.trim().parse().map_err(|_| KnownError::Line {
                path: self.path.clone(),
                line: i + 1,
            })?;
            let line = i + 1;
            return Ok(Some(Known { identity, line }));
        }
        Ok(None)
    }

    /// Adds a server that was not known.
    ///
    /// # Errors
    /// [`KnownError::Io`].
    pub fn add(&self, name: &str, identity: &ServerId) -> Result<(), KnownError> {
        if let Some(dir) = self.path.parent() {
            // If it cannot be made, neither can the file.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path);
        let added = file.and_then(|mut file| {
            // The user's editor may have left the last line without its end.
            let mut last = [b'\n'];
            if file.metadata()?.len() > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            let end = if last == *b"\n" { "" } else { "\n" };
            // One write: lines of two programs do not mix.
            file.write_all(format!("{end}{name} {identity}\n").as_bytes())
        });
        added.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> KnownError {
        KnownError::Io {
            path: self.path.clone(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_once_it_was_met() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownServers::new(dir.path().join("new/known-servers"));
        assert_eq!(known.find("a:1").unwrap(), None);
        let (a, b) = (ServerId([1; 32]), ServerId([2; 32]));
        known.add("a:1", &a).unwrap();
        known.add("b:1", &b).unwrap();
        let line = |identity, line| Some(Known { identity, line });
        assert_eq!(known.find("a:1").unwrap(), line(a, 1));
        assert_eq!(known.find("b:1").unwrap(), line(b, 2));
        assert_eq!(known.find("a").unwrap(), None);
        std::fs::write(
            known.path(),
            format!("# mine\n\nb:1   {b}\nc:1 {}\n", "0".repeat(63)),
        )
        .unwrap();
        assert_eq!(known.find("b:1").unwrap(), line(b, 3));
        let error = known.find("c:1").unwrap_err();
        assert!(error.to_string().contains("line 4"), "{error}");
    }

    #[test]
    fn a_last_line_without_an_end_stays_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownServers::new(dir.path().join("known-servers"));
        let (a, b) = (ServerId([1; 32]), ServerId([2; 32]));
        std::fs::write(known.path(), format!("a:1 {a}")).unwrap();
        known.add("b:1", &b).unwrap();
        let text = std::fs::read_to_string(known.path()).unwrap();
        assert_eq!(text, format!("a:1 {a}\nb:1 {b}\n"));
    }
}
