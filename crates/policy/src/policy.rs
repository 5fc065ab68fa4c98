//! A policy that was read: its rules compiled, and what the file says of each path.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fullpipe_cc::StackSpec;
use fullpipe_scenario::{Diagnostic, Diagnostics};
use fullpipe_units::{BufferSize, Rate, Span};

use crate::compiled::{Action, Compiled, Selector};
use crate::keys::Via;
use crate::measured::{Measured, Measurements};
use crate::read::{self, MAX_TEXT};

/// A policy that exists is a valid one.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Rules and fixed-point tables, as the maps of the BPF programs take them.
    pub compiled: Compiled,
    /// A path for each rule, in the same order.
    pub paths: Vec<PathFacts>,
    /// Paths that have no rule before they are measured.
    pub waiting: Vec<Waiting>,
}

/// A path that has no rule before it is measured.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// `name` of its `[[path]]`.
    pub name: String,
    /// Flows to which the rule will apply.
    pub selector: Selector,
    /// Rate, RTT and the like, from the file.
    pub facts: PathFacts,
}

/// What the file says of a path beyond its rule.
#[derive(Clone, Debug)]
pub struct PathFacts {
    /// File and line of the path.
    pub place: String,
    /// The stack; `None` for an algorithm of the kernel by its name.
    pub stack: Option<StackSpec>,
    /// Capacity.
    pub rate: Option<Rate>,
    /// Round-trip time without queues.
    pub rtt: Option<Span>,
    /// Buffer of the bottleneck.
    pub buffer: Option<BufferSize>,
    /// Where what the file does not give is measured, and for how long that counts.
    pub probe: Option<(String, Span)>,
    /// What a probe has found, however old.
    pub measured: Option<Measured>,
    /// Bytes of a packet, headers included.
    pub mtu: u32,
    /// How the initial window is to be spread.
    pub via: Via,
    /// Where the kernel side departs from the stack as the simulator runs it.
    pub departures: Vec<String>,
    /// Largest relative error of the table's a and b, against the law.
    pub table_error: (f64, f64),
    /// What changes later, in the order of time.
    pub changes: Vec<Later>,
}

/// What a path gets from a time on (`[[path.change]]`).
#[derive(Clone, Debug)]
pub struct Later {
    /// Since the policy was applied.
    pub at: Span,
    /// What a flow runs from then on.
    pub action: Action,
    /// The stack of it.
    pub stack: StackSpec,
}

/// A file of a policy: its name in messages, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path.
    pub name: String,
    /// TOML.
    pub text: String,
}

impl Policy {
    /// What the file says of each path, with a rule or waiting for one.
    pub fn facts(&self) -> impl Iterator<Item = &PathFacts> {
        let waiting = self.waiting.iter().map(|waiting| &waiting.facts);
        self.paths.iter().chain(waiting)
    }

    /// Reads a file and, in the order of their names, the `*.toml` of the folder beside it that has
    /// its name with `.d`: `policy.d/` for `policy.toml`.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn load(file: &Path) -> Result<Self, Diagnostics> {
        Self::load_with(file, &Measurements::new())
    }

    /// The same, with what was measured of paths that are probed.
    ///
    /// # Errors
    /// See [`Policy::load`].
    pub fn load_with(file: &Path, measured: &Measurements) -> Result<Self, Diagnostics> {
        Self::parse_with(&Source::all(file)?, measured)
    }

    /// Reads texts, the main file first.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn parse(sources: &[Source]) -> Result<Self, Diagnostics> {
        Self::parse_with(sources, &Measurements::new())
    }

    /// The same, with what was measured of paths that are probed.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn parse_with(sources: &[Source], measured: &Measurements) -> Result<Self, Diagnostics> {
        read::policy(sources, measured)
    }
}

impl Source {
    /// The texts of a policy, as [`Policy::load`] reads them.
    ///
    /// # Errors
    /// Those that cannot be read.
    pub fn all(file: &Path) -> Result<Vec<Self>, Diagnostics> {
        let mut names = vec![file.to_owned()];
        let folder = file.with_extension("d");
        if folder.is_dir() {
            let listed = fs::read_dir(&folder).map_err(|why| unreadable(&folder, &why))?;
            let files = listed.filter_map(Result::ok).map(|entry| entry.path());
            // A hidden one is no part of it: an editor's lock, or what it has not written yet.
            let is_part = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default();
                let is_hidden = name.as_encoded_bytes().starts_with(b".");
                !is_hidden && path.extension().is_some_and(|e| e == "toml")
            };
            let mut more: Vec<_> = files.filter(is_part).collect();
            more.sort();
            names.extend(more);
        }
        let mut sources = Vec::new();
        let mut faults = Vec::new();
        for path in names {
            match text(&path) {
                Ok(text) => sources.push(Source {
                    name: path.display().to_string(),
                    text,
                }),
                Err(why) => faults.extend(unreadable(&path, &why).0),
            }
        }
        match faults.is_empty() {
            true => Ok(sources),
            false => Err(Diagnostics(faults)),
        }
    }
}

impl PathFacts {
    /// Whether a probe is to find out what nobody knows yet.
    pub fn is_to_be_measured(&self) -> bool {
        let unknown = self.rate.is_none() || self.rtt.is_none();
        self.probe.is_some() && self.measured.is_none() && unknown
    }

    /// Bytes of payload of a full segment.
    pub fn mss(&self) -> u32 {
        self.mtu - HEADERS
    }

    /// Packets that fill the path: rate x RTT.
    pub fn bdp(&self) -> Option<f64> {
        let bytes = self.rate?.bdp(self.rtt?).get();
        Some(bytes as f64 / f64::from(self.mtu))
    }

    /// The same and the buffer: the largest window without a loss, segments.
    pub fn reach(&self) -> Option<f64> {
        let bdp = self.bdp()?;
        let mtu = f64::from(self.mtu);
        let buffer = match self.buffer {
            None | Some(BufferSize::Unlimited) => 0.0,
            Some(BufferSize::Packets(n)) => n as f64,
            Some(BufferSize::Bytes(bytes)) => bytes.get() as f64 / mtu,
            Some(BufferSize::Time(span)) => self.rate?.bytes_in(span).get() as f64 / mtu,
            Some(BufferSize::Bdp(factor)) => factor * bdp,
        };
        Some(bdp + buffer)
    }

    /// The stack, or the model of the kernel's algorithm that runs instead of it.
    pub fn modelled(&self, action: &Action) -> Option<StackSpec> {
        match (&self.stack, action) {
            (Some(stack), _) => Some(stack.clone()),
            (None, Action::Kernel { name, .. }) => StackSpec::parse(&format!("{name}-linux")).ok(),
            (None, Action::Ours { .. }) => None,
        }
    }
}

/// Bytes of a packet that are no payload: IPv4 and TCP with time stamps.
pub const HEADERS: u32 = 52;

/// A regular file's: others may have no end, or nobody who writes them. No more than it takes to
/// see that it is too long.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    let mut file = File::open(path)?.take(MAX_TEXT as u64 + 1);
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(path: &Path, why: &io::Error) -> Diagnostics {
    Diagnostics(vec![Diagnostic {
        file: path.display().to_string(),
        line: 0,
        column: 0,
        key: String::new(),
        value: None,
        message: match why.kind() {
            io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => format!("cannot be read: {why}"),
        },
        hint: Some("a policy is a TOML file; docs/policy.md has its keys".to_owned()),
    }])
}
