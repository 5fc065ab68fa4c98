//! The shared key of two hosts.
//!
//! A key is one line of text, at least [`SHORTEST`] characters, in a file that only its owner may
//! read, or in the environment. A second line, `server` and 64 hexadecimal digits, names the server
//! that it is for. Only a hash of the key is used. A server that a client takes for the right one
//! can try keys at home with what the client sends, so a key is random: `fullpipe serve --new-key
//! FILE` and `openssl rand -hex 32` make good ones, people do not.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ServerId, private_file};

/// Fewest characters of a key.
pub const SHORTEST: usize = 32;

/// Most characters of a key.
pub const LONGEST: usize = 1024;

/// Environment variable that holds a key.
pub const VARIABLE: &str = "FULLPIPE_KEY";

/// A shared key, or the fixed one of an open server.
#[derive(Clone)]
pub struct Key {
    /// What both sides mix into the handshake; zeros if the server is open.
    secret: [u8; 32],
    open: bool,
    server: Option<ServerId>,
}

/// Why there is no key. No message contains any part of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{what} {path}: {error}")]
    Unreadable {
        /// Kind of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// Others may read it.
    #[error("{what} {path} can be read by others (mode {mode:03o})")]
    Exposed {
        /// Kind of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Permission bits found, octal when printed.
        mode: u32,
    },
    /// Not a regular file.
    #[error("{what} {path} is not a regular file")]
    NoFile {
        /// Kind of the file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// Too short, too long, or more than one line.
    #[error("{origin}: {why}")]
    Malformed {
        /// File or variable.
        origin: String,
        /// The rule that the text breaks.
        why: &'static str,
    },
    /// A new key would overwrite a file.
    #[error("cannot write a new {what} to {path}: {error}")]
    Unwritable {
        /// Kind of the file.
        what: &'static str,
        /// Path of the new file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file of a server's key pair has something else in it.
    #[error("identity file {path} is not one")]
    NoIdentity {
        /// Path of the file.
        path: PathBuf,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes from the operating system: {0}")]
    NoEntropy(String),
}

impl KeyError {
    /// The remedy, in one sentence, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!("run `chmod 600 {}`", path.display())),
            Self::Malformed { .. } => Some(
                "a key is one line of 32 to 1024 characters, and perhaps a second: `server` and 64 hexadecimal digits; `fullpipe serve --new-key FILE` makes one"
                    .to_owned(),
            ),
            Self::Unwritable { error, .. } if error.kind() == ErrorKind::AlreadyExists => Some(
                "a key is never overwritten: name another file, or remove this one first"
                    .to_owned(),
            ),
            Self::NoIdentity { path } => Some(format!(
                "move {} away: `fullpipe serve` makes a new identity, which clients then have to be told",
                path.display()
            )),
            _ => None,
        }
    }
}

impl Key {
    /// From a line of text.
    ///
    /// # Errors
    /// [`KeyError::Malformed`], which names `origin`.
    pub fn from_text(text: &str, origin: &str) -> Result<Self, KeyError> {
        let malformed = |why| KeyError::Malformed {
            origin: origin.to_owned(),
            why,
        };
        let mut lines = text.trim().lines().map(str::trim);
        let text = lines.next().unwrap_or_default();
        if text.is_empty() {
            return Err(malformed("no key in it"));
        }
        if text.len() < SHORTEST {
            return Err(malformed("the key is shorter than 32 characters"));
        }
        if text.len() > LONGEST {
            return Err(malformed("the key is longer than 1024 characters"));
        }
        let server = match lines.next() {
            None => None,
            Some(line) => match line.strip_prefix("server ").map(|id| id.trim().parse()) {
                Some(Ok(server)) => Some(server),
                Some(Err(_)) => {
                    return Err(malformed("no identity of a server in its second line"));
                }
                None => return Err(malformed("the key is not one line of text")),
            },
        };
        if lines.next().is_some() || text.contains(|c: char| c.is_control()) {
            return Err(malformed("the key is not one line of text"));
        }
        Ok(Self {
            secret: blake3::derive_key("fullpipe 2026 shared key v1", text.as_bytes()),
            open: false,
            server,
        })
    }

    /// Of a server that anybody may use.
    pub fn open() -> Self {
        Self {
            secret: [0; 32],
            open: true,
            server: None,
        }
    }

    /// From a file that nobody but its owner may read or write.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let text = private_file::read(path, WHAT)?;
        Self::from_text(&text, &format!("{WHAT} {}", path.display()))
    }

    /// From the environment; `None` if the variable is not set.
    ///
    /// # Errors
    /// [`KeyError::Malformed`].
    pub fn from_environment() -> Option<Result<Self, KeyError>> {
        let value = std::env::var_os(VARIABLE)?;
        let origin = format!("environment variable {VARIABLE}");
        Some(match value.to_str() {
            Some(text) => Self::from_text(text, &origin),
            None => Err(KeyError::Malformed {
                origin,
                why: "the key is not one line of text",
            }),
        })
    }

    /// Writes a fresh random key for this server to a file that must not exist yet, readable by its
    /// owner only.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn create(path: &Path, server: &ServerId) -> Result<Self, KeyError> {
        let mut random = [0; 32];
        crate::session::entropy(&mut random).map_err(|e| KeyError::NoEntropy(e.to_string()))?;
        let secret: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let text = format!("{secret}\nserver {server}\n");
        private_file::create(path, "key", &text)?;
        Self::from_text(&text, "new key")
    }

    /// The server that the key is for, if it says so.
    pub fn server(&self) -> Option<ServerId> {
        self.server
    }

    /// True for [`Key::open`].
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A name for the key that does not tell it: people compare two hosts with it.
    pub fn fingerprint(&self) -> String {
        let hash = blake3::keyed_hash(&self.secret, b"fingerprint\0");
        hash.to_hex()[..16].to_owned()
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

/// Kind of the file in errors.
const WHAT: &str = "key file";

/// Keys never reach a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.open { "Key(open)" } else { "Key(..)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_key_is_one_line_of_enough_characters() {
        let key = Key::from_text(TEXT, "x").unwrap();
        let with_line_end = Key::from_text(&format!("{TEXT}\n"), "x").unwrap();
        assert_eq!(key.fingerprint(), with_line_end.fingerprint());
        assert_ne!(key.fingerprint(), Key::open().fingerprint());
        assert!(Key::open().is_open() && !key.is_open());
        for bad in [
            "",
            " \n",
            &TEXT[1..],
            &format!("{TEXT}\n{TEXT}"),
            &format!("{TEXT}\nserver {}", "ab".repeat(31)),
            &format!("{TEXT}\nserver {}\nmore", "ab".repeat(32)),
            &"x".repeat(1025),
        ] {
            let error = Key::from_text(bad, "here").unwrap_err();
            assert!(error.to_string().starts_with("here: "), "{error}");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn a_key_file_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let server = ServerId([0xab; 32]);
        let made = Key::create(&path, &server).unwrap();
        let mode = std::fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(
            made.fingerprint(),
            Key::from_file(&path).unwrap().fingerprint()
        );
        assert_eq!(made.server(), Some(server));
        assert!(
            matches!(
                Key::create(&path, &server),
                Err(KeyError::Unwritable { .. })
            ),
            "an old key is never overwritten"
        );
        for mode in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = Key::from_file(&path).unwrap_err();
            assert!(matches!(error, KeyError::Exposed { mode: m, .. } if m == mode));
            assert!(error.hint().unwrap().contains("chmod 600"));
        }
        let error = Key::from_file(dir.path()).unwrap_err();
        assert!(matches!(error, KeyError::NoFile { .. }));
    }

    #[test]
    fn two_keys_are_never_shown() {
        let key = Key::from_text(TEXT, "x").unwrap();
        assert_eq!(format!("{key:?}"), "Key(..)");
        assert!(!TEXT.contains(&key.fingerprint()));
    }
}
