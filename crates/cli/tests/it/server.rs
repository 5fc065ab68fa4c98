//! `fullpipe serve` as a program.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};

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
        let mut child = command(dir, &line).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        log.read_line(&mut first).unwrap();
        let host = listen.trim_end_matches(|c: char| c.is_ascii_digit());
        let at = first.find(host).unwrap_or_else(|| panic!("{first}"));
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
