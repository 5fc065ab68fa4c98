//! A client and a server with a directory each.

use std::fs;
use std::path::Path;

use crate::process::{Finished, fullpipe};
use crate::server::Server;

pub fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// A client's directory, and a server with one of its own.
pub struct Pair {
    pub here: tempfile::TempDir,
    pub there: tempfile::TempDir,
    pub server: Server,
}

impl Pair {
    pub fn new(args: &[&str]) -> Self {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = there.path().display().to_string();
        let server = Server::start(here.path(), &[&["--files", &files][..], args].concat());
        Self {
            here,
            there,
            server,
        }
    }

    pub fn at(&self, name: &str) -> String {
        format!("{}:{name}", self.server.address)
    }

    pub fn send(&self, args: &[&str]) -> Finished {
        fullpipe(self.here.path(), &[&["send"][..], args].concat())
    }
}

/// Names of what unfinished copies have left in a directory.
pub fn unfinished(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".part")).collect()
}
