//! What a service manager is told: that the daemon is ready, and that it lives (sd_notify(3)).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whoever has started this process and wants to know.
#[derive(Debug)]
pub struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    /// `NOTIFY_SOCKET` of the environment; `None`: nobody waits.
    ///
    /// # Errors
    /// It names no socket that takes datagrams.
    pub fn of_environment() -> io::Result<Option<Self>> {
        let name = env::var_os("NOTIFY_SOCKET");
        name.map(|name| Self::at(&name)).transpose()
    }

    fn at(name: &OsStr) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        socket.connect_addr(&address)?;
        // A manager that hangs holds up nothing.
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// The policy is in force.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// A sign of life (`WatchdogSec`).
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// Flows are given back.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// One that does not listen any more is nothing to end for.
    fn say(&self, words: &str) {
        let _ = self.socket.send(words.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_it_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let abstracted = format!("fullpipe-test-{}", std::process::id());
        let name = SocketAddr::from_abstract_name(abstracted.as_bytes()).unwrap();
        let heard = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path)),
            (
                format!("@{abstracted}").into(),
                UnixDatagram::bind_addr(&name),
            ),
        ];
        for (name, socket) in heard {
            let socket = socket.unwrap();
            let manager = Manager::at(&name).unwrap();
            manager.ready();
            manager.alive();
            manager.stopping();
            for word in ["READY=1", "WATCHDOG=1", "STOPPING=1"] {
                let mut bytes = [0; 64];
                let n = socket.recv(&mut bytes).unwrap();
                assert_eq!(&bytes[..n], word.as_bytes());
            }
        }
        assert!(Manager::at(OsStr::new("/nobody/listens")).is_err());
    }
}
