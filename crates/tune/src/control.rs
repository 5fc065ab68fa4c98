//! Words between the daemon and its clients: one line of JSON each way over a Unix socket.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use fullpipe_observe::tuner::ask;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde_json::{Value, json};

/// Longest request, bytes; of those who may change something, whole policies.
const LONGEST: usize = 4096;
const LONGEST_POLICY: usize = 1 << 20;
/// How long a client may take over its line and its answer, and the daemon over its own.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Clients at a time.
const MOST: usize = 64;
/// Requests that are answered before the daemon turns to its flows again.
const ANSWERS: usize = 8;

/// The daemon's end. Nobody at it is waited for: whoever is slow holds up himself alone. Dropped,
/// the socket is gone.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl Door {
    /// Listens. A socket that nobody listens at any more is replaced; everybody may connect, and
    /// [`Door::serve`] tells who it is.
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
        Ok(Self {
            listener,
            path: path.to_owned(),
            clients: Vec::new(),
        })
    }

    /// Takes what clients have sent, has `answer` answer it, and sends what they take. `answer` is
    /// told whether the client may change anything: root, and the daemon's own user.
    pub fn serve(&mut self, mut answer: impl FnMut(&Value, bool) -> Value) {
        for _ in 0..MOST {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if let Some(client) = Client::new(stream)
                && self.has_room_for(&client)
            {
                self.clients.push(client);
            }
        }
        let mut left = ANSWERS;
        self.clients.retain_mut(|client| {
            client
                .serve(&mut left, &mut answer)
                .is_ok_and(|goes_on| goes_on)
        });
    }

    /// Those who may only look make room for others, the oldest first.
    fn has_room_for(&mut self, client: &Client) -> bool {
        if self.clients.len() < MOST {
            return true;
        }
        let looks = self.clients.iter().position(|c| !c.may_change);
        match looks {
            Some(oldest) => drop(self.clients.remove(oldest)),
            None if client.may_change => drop(self.clients.remove(0)),
            None => return false,
        }
        true
    }

    /// Somebody waits for the rest of an answer.
    pub fn is_sending(&self) -> bool {
        self.clients.iter().any(|c| c.sent < c.answer.len())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Somebody at the door.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    may_change: bool,
    until: Instant,
    request: Vec<u8>,
    /// The end of the line has come.
    is_whole: bool,
    answer: Vec<u8>,
    sent: usize,
}

impl Client {
    fn new(stream: UnixStream) -> Option<Self> {
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            stream,
            may_change: peer.uid() == 0 || peer.uid() == nix::unistd::geteuid().as_raw(),
            until: Instant::now() + CLIENT_TIMEOUT,
            request: Vec::new(),
            is_whole: false,
            answer: Vec::new(),
            sent: 0,
        })
    }

    /// As far as it comes without waiting; whether there is more to do.
    fn serve(
        &mut self,
        left: &mut usize,
        answer: &mut impl FnMut(&Value, bool) -> Value,
    ) -> io::Result<bool> {
        if Instant::now() > self.until {
            return Ok(false);
        }
        if self.answer.is_empty() {
            if !self.is_asked()? || *left == 0 {
                return Ok(true);
            }
            *left -= 1;
            let request = serde_json::from_slice(&self.request);
            let answered = match request {
                Ok(request) => answer(&request, self.may_change),
                Err(e) => refusal(e),
            };
            self.answer = format!("{answered}\n").into_bytes();
        }
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// Whether the whole line is there.
    fn is_asked(&mut self) -> io::Result<bool> {
        let most = match self.may_change {
            true => LONGEST_POLICY,
            false => LONGEST,
        };
        let mut bytes = [0; LONGEST];
        while !self.is_whole {
            if self.request.len() >= most {
                return Err(io::Error::other("a request that is too long"));
            }
            let room = LONGEST.min(most - self.request.len());
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.request.extend(&bytes[..n]);
                    self.is_whole = bytes[..n].contains(&b'\n');
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}

/// An answer that says why not.
pub fn refusal(why: impl std::fmt::Display) -> Value {
    json!({ "error": why.to_string() })
}
