//! `fullpipe serve` as a program.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::command;

/// A server that is killed at the end.
pub struct Server {
    pub child: Child,
    /// `127.0.0.1:PORT`, `[::1]:PORT`.
    pub address: String,
}

impl Server {
    pub fn start(dir: &Path, args: &[&str]) -> Self {
        Self::start_at(dir, "127.0.0.1:0", args)
    }

    pub fn start_at(dir: &Path, listen: &str, args: &[&str]) -> Self {
        let mut line = vec!["serve", "--listen", listen];
        line.extend(args);
        let host = listen.trim_end_matches(|c: char| c.is_ascii_digit());
        Self::of(command(dir, &line), host)
    }

    /// One that is started by this command, and listens on an address that begins so.
    pub fn of(mut command: Command, host: &str) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        log.read_line(&mut first).unwrap();
        let at = match first.find(host) {
            Some(at) => at,
            // Ended by whatever is done to it.
            None if first.is_empty() => 0,
            None => panic!("{first}"),
        };
        let address = first[at..]
            .split([',', ' ', '\n'])
            .next()
            .unwrap()
            .to_owned();
        // Nobody reads on, but nobody may stumble either.
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = log.read_to_string(&mut rest);
        });
        Self { child, address }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// One that strace runs must be ended itself: strace alone would leave it behind.
impl Server {
    pub fn stop(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        for pid in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
