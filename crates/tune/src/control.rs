//! Words between the daemon and its clients: one line of JSON each way over a Unix socket.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde_json::{Value, json};

/// Longest request, bytes.
const LONGEST: u64 = 4096;
/// How long a client may take over its line, and the daemon over its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take before flows would notice that nobody beats.
const GLANCE: Duration = Duration::from_millis(500);

/// The daemon's end. Dropped, the socket is gone.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Listens. A socket that nobody listens at any more is replaced; everybody may connect, and
    /// [`Door::next`] tells who it is.
    ///
    /// # Errors
    /// Another daemon listens there, or the path cannot be had.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                let there = "there is a file of this name";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, there));
            }
            if UnixStream::connect(path).is_ok() {
                let busy = "another tuner listens there";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, busy));
            }
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        let path = path.to_owned();
        Ok(Self { listener, path })
    }

    /// A client that waits, if there is one.
    pub fn next(&self) -> Option<Client> {
        let (stream, _) = self.listener.accept().ok()?;
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(GLANCE)).ok()?;
        stream.set_write_timeout(Some(GLANCE)).ok()?;
        let may_change = peer.uid() == 0 || peer.uid() == nix::unistd::geteuid().as_raw();
        Some(Client { stream, may_change })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Somebody at the door.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// Root, or the daemon's own user: others may look only.
    pub may_change: bool,
}

impl Client {
    /// What it wants.
    ///
    /// # Errors
    /// It breaks off, takes too long, or does not speak JSON.
    pub fn request(&self) -> io::Result<Value> {
        let mut line = String::new();
        BufReader::new((&self.stream).take(LONGEST)).read_line(&mut line)?;
        serde_json::from_str(&line).map_err(io::Error::other)
    }

    /// Answers it.
    ///
    /// # Errors
    /// It is gone.
    pub fn answer(&mut self, answer: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{answer}\n").as_bytes())
    }
}

/// Asks a daemon.
///
/// # Errors
/// Nobody listens there, or it answers that it cannot (`error` of the answer).
pub fn ask(path: &Path, request: &Value) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
    match answer["error"].as_str() {
        Some(why) => Err(io::Error::other(why.to_owned())),
        None => Ok(answer),
    }
}

/// An answer that says why not.
pub fn refusal(why: impl std::fmt::Display) -> Value {
    json!({ "error": why.to_string() })
}
