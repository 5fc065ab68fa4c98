//! The servers that a user has met: a file of names and identities, as `known_hosts` of OpenSSH is.
//!
//! ```text
//! dtn.example.org:6220 5f3c...  64 hexadecimal digits
//! ```
//! Lines that begin with `#` are the user's own. Names are compared as what they mean, not as they
//! are spelled: otherwise another spelling of an address would be a new server, which anybody may
//! be.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
        let lines = (1..).zip(text.lines().map(str::trim));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let servers = lines.map(|(number, line)| {
            let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (number, first, rest)
        });
        let wanted = canonical(name);
        // A file may have one server in several spellings, of the time when these were compared.
        let as_spelled = servers.clone().find(|(_, first, _)| *first == name);
        let meant = || {
            servers
                .clone()
                .find(|(_, first, _)| canonical(first) == wanted)
        };
        let Some((line, _, rest)) = as_spelled.or_else(meant) else {
            return Ok(None);
        };
        let identity = rest.trim().parse().map_err(|_| KnownError::Line {
            path: self.path.clone(),
            line,
        })?;
        Ok(Some(Known { identity, line }))
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
            let name = canonical(name);
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

/// The one spelling of `HOST:PORT`.
fn canonical(name: &str) -> String {
    let (host, port) = match name.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, format!(":{port}")),
        _ => (name, String::new()),
    };
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let (bare, zone) = match bare.unwrap_or(host).split_once('%') {
        Some((bare, zone)) => (bare, format!("%{zone}")),
        None => (bare.unwrap_or(host), String::new()),
    };
    let v6 = bare.parse::<Ipv6Addr>().ok().map(|v6| v6.to_canonical());
    match v6.or_else(|| inet_aton(bare).map(IpAddr::V4)) {
        Some(IpAddr::V4(v4)) => format!("{v4}{port}"),
        Some(IpAddr::V6(v6)) => format!("[{v6}{zone}]{port}"),
        None => {
            let host = host.to_ascii_lowercase();
            format!("{}{port}", host.strip_suffix('.').unwrap_or(&host))
        }
    }
}

/// An IPv4 address as resolvers read it: one to four numbers, decimal, octal behind `0` and
/// hexadecimal behind `0x`, the last of which has all bytes that remain (`inet_aton` of POSIX).
fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| {
        let (digits, radix) = match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None if part.len() > 1 && part.starts_with('0') => (part, 8),
            None => (part, 10),
        };
        let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        u32::from_str_radix(digits, radix).ok().filter(|_| all)
    };
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, bytes) = parts.split_last().filter(|(_, bytes)| bytes.len() < 4)?;
    let high = (0..).zip(bytes).try_fold(0u32, |sum, (i, &byte)| {
        (byte < 256).then(|| sum | byte << (24 - 8 * i))
    })?;
    let most = u32::MAX.checked_shr(8 * bytes.len() as u32).unwrap_or(0);
    (*last <= most).then(|| Ipv4Addr::from(high | last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_in_every_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownServers::new(dir.path().join("known-servers"));
        let spellings: [&[&str]; 4] = [
            &["[fd77::2]:1", "[FD77::2]:1", "[fd77:0:0::2]:1"],
            &[
                "10.77.0.2:1",
                "[::ffff:10.77.0.2]:1",
                "10.77.2:1",
                "0x0a.0115.2:1",
                "172818434:1",
            ],
            &[
                "dtn.example.org:1",
                "DTN.Example.org.:1",
                "dtn.example.org.:1",
            ],
            &["[fe80::1%eth0]:1", "[FE80:0::1%eth0]:1"],
        ];
        for kept in 0.. {
            let of = |all: &[&'static str]| *all.get(kept).unwrap_or(&all[0]);
            let ids = (1..)
                .zip(spellings)
                .map(|(i, all)| (ServerId([i; 32]), all));
            // As it is added, and as an older version may have written it.
            let old: String = ids
                .clone()
                .map(|(id, all)| format!("{} {id}\n", of(all)))
                .collect();
            for is_old in [false, true] {
                std::fs::write(known.path(), if is_old { &old } else { "" }).unwrap();
                for (id, all) in ids.clone() {
                    if !is_old {
                        known.add(of(all), &id).unwrap();
                    }
                    for name in all {
                        let found = known.find(name).unwrap();
                        assert_eq!(found.map(|k| k.identity), Some(id), "{name}");
                    }
                }
            }
            let others = ["[fd77::2]:2", "[fd77::3]:1", "10.77.0.2:2", "10.77:1"];
            for other in others
                .into_iter()
                .chain(["[fe80::1%eth1]:1", "example.org:1", "256.1:1"])
            {
                assert_eq!(known.find(other).unwrap(), None, "{other}");
            }
            if kept == 4 {
                break;
            }
        }
    }

    #[test]
    fn the_line_of_this_very_spelling_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownServers::new(dir.path().join("known-servers"));
        let (a, b) = (ServerId([1; 32]), ServerId([2; 32]));
        std::fs::write(known.path(), format!("Dtn:1 {a}\ndtn:1 {b}\n")).unwrap();
        let identity = |name| known.find(name).unwrap().map(|known| known.identity);
        assert_eq!([identity("Dtn:1"), identity("dtn:1")], [Some(a), Some(b)]);
        assert_eq!(identity("DTN:1"), Some(a));
    }

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
