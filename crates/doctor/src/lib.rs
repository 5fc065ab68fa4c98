//! What this host can do, found out by doing it: each capability that real-time grounds, emulated
//! hosts and eBPF take is used once, and whatever is lacking comes with the command that mends it.
//!
//! Nothing is left of a trial, and no setting of the host is changed: modules that are not loaded
//! stay so.
//!
//! - [`time`]: cores, priority, clock, and how late a thread wakes up.
//! - [`sockets`]: UDP and its offloads.
//! - [`hosts`]: namespaces, TUN devices, and the kernel's congestion modules.
//! - [`tcp`]: what the kernel's TCP is set to, which is read.
//! - [`bpf`]: what eBPF takes.
//! - [`queues`]: queueing disciplines and classifiers, which `tune doctor` asks for.

#![allow(clippy::disallowed_methods)]

use std::fmt;

pub mod bpf;
pub mod hosts;
pub mod queues;
pub mod sockets;
pub mod tcp;
pub mod time;

/// One capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is, in a few words.
    pub name: String,
    /// Works, works in part, or does not.
    pub state: State,
    /// What the trial showed, in a few words.
    pub found: String,
    /// What mends it; `None` where nothing is lacking, or nothing mends it.
    pub remedy: Option<Remedy>,
}

/// What mends a finding. Its text is a command, or what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// This.
    Words(String),
    /// Capabilities of the program's file. The command replaces what the file had: two of these
    /// undo each other.
    Capabilities {
        /// Their names (capabilities(7)).
        names: Vec<&'static str>,
        /// Another way to the same end, as a clause behind "or".
        or: &'static str,
    },
}

/// Stands in for any capability.
pub const ROOT: &str = "run as root";

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Capabilities { names, or } => {
                let names = names.join(",");
                write!(
                    f,
                    "sudo setcap {names}+ep \"$(command -v fullpipe)\", or {or}"
                )
            }
        }
    }
}

impl From<String> for Remedy {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<&str> for Remedy {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

/// How much of a capability works for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All of it.
    Yes,
    /// Not all of it; what it is for works, less well.
    Limited,
    /// Nothing: what needs it does not run.
    No,
}

impl State {
    /// For tables and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Limited => "limited",
            Self::No => "no",
        }
    }
}

/// Capabilities that are needed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Real time.
    Time,
    /// Sockets.
    Sockets,
    /// Settings of the kernel's TCP.
    Tcp,
    /// Emulated hosts and the running kernel's TCP.
    Hosts,
    /// eBPF.
    Bpf,
}

impl Area {
    /// All of them, in an order in which they may be examined in one process: hosts last, for
    /// which the process may enter a user namespace and is root from then on, over nothing.
    pub const ALL: [Area; 5] = [Self::Time, Self::Sockets, Self::Tcp, Self::Bpf, Self::Hosts];

    /// As it is written on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Sockets => "sockets",
            Self::Tcp => "tcp",
            Self::Hosts => "hosts",
            Self::Bpf => "bpf",
        }
    }

    /// Commands and grounds that need it.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Time => "real time: grounds udp and kernel, emulate",
            Self::Sockets => "sockets: ground udp, send, serve",
            Self::Tcp => "settings of the kernel's TCP, for long fat paths: runs with a peer",
            Self::Hosts => "hosts and their TCP: ground kernel, emulate",
            Self::Bpf => "eBPF",
        }
    }

    /// Tries everything of it, and judges buffers for a path. [`Area::Hosts`] needs a process of
    /// one thread.
    pub fn examine(self, path: tcp::LongPath) -> Vec<Finding> {
        match self {
            Self::Time => time::examine(),
            Self::Sockets => sockets::examine(),
            Self::Tcp => tcp::examine(path),
            Self::Hosts => hosts::examine(),
            Self::Bpf => bpf::examine(),
        }
    }
}

impl Finding {
    /// All of it is there.
    pub fn yes(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: State::Yes,
            found: found.into(),
            remedy: None,
        }
    }

    /// Not all of it is there.
    pub fn limited(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::Limited,
            ..Self::yes(name, found)
        }
    }

    /// Nothing of it is there.
    pub fn no(name: impl Into<String>, found: impl ToString) -> Self {
        Self {
            state: State::No,
            ..Self::yes(name, found.to_string())
        }
    }

    /// With what mends it.
    pub fn remedy(mut self, remedy: impl Into<Remedy>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
