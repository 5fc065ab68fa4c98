//! Names, parameters and provenance of everything a stack is made of, and the one parser of a stack's spelling.
//!
//! `law(params)+start-up(params)+sending(params)`, at most one component of each kind, the window law first:
//! `reno`, `highspeed(low_window=31)+limited(max_ssthresh=100)`, `cubic+hystart++`, `reno+spread(t_max=4ms,iw=10)`.

mod error;
mod spec;
mod spelling;
mod stack;

use std::fmt;

pub use error::StackError;
pub use spec::StackSpec;
pub use stack::Stack;

use crate::delay::{fast, hslp, ledbat, lp, vegas, veno, yeah};
use crate::law::{Law, aimd, bic, cubic, highspeed, htcp, hybla, illinois, scalable, westwood};
use crate::linux::{self, AnyModule};
use crate::params::{ParamSpec, Params};
use crate::sending::{self, InitialSending, PacingGains};
use crate::startup::{Start, gamma, hybla as hybla_start, hystart, hystart_pp, limited, standard};

/// Everything that can stand in a stack's spelling, in the order `fullpipe list stacks` prints it.
pub const ENTRIES: &[Entry] = &[
    aimd::RENO,
    aimd::AIMD,
    aimd::MULTCP,
    aimd::PRETUNED,
    highspeed::HIGHSPEED,
    highspeed::HIGHSPEED_NS2,
    scalable::SCALABLE,
    bic::BIC,
    bic::BIC_PAPER,
    htcp::HTCP,
    cubic::CUBIC,
    hybla::HYBLA,
    vegas::VEGAS,
    fast::FAST,
    lp::LP,
    hslp::HSTCP_LP,
    westwood::WESTWOOD,
    illinois::ILLINOIS,
    yeah::YEAH,
    veno::VENO,
    ledbat::LEDBAT,
    linux::RENO_LINUX,
    linux::VEGAS_LINUX,
    linux::YEAH_LINUX,
    linux::VENO_LINUX,
    linux::ILLINOIS_LINUX,
    linux::WESTWOOD_LINUX,
    linux::LP_LINUX,
    linux::HIGHSPEED_LINUX,
    linux::SCALABLE_LINUX,
    linux::BIC_LINUX,
    linux::HTCP_LINUX,
    linux::CUBIC_LINUX,
    linux::HYBLA_LINUX,
    standard::STANDARD,
    limited::LIMITED,
    hybla_start::HYBLA_START,
    gamma::GAMMA,
    hystart::HYSTART,
    hystart_pp::HYSTART_PP,
    sending::BURST,
    sending::SPREAD,
    sending::SPREAD_VARIABLE,
    sending::PACED,
];

/// Parameters that every window law accepts beside its own.
pub const COMMON_LAW_PARAMS: &[ParamSpec] = &[ParamSpec::number(
    "ecn_keep",
    0.0,
    0.0..=1.0,
    "fraction",
    "fraction kept on an ECN mark in congestion avoidance (ABE: 0.8, CUBIC 0.85); 0: as on loss",
    "RFC 8511 section 3",
)];

/// Which part of a stack an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Window law.
    Law,
    /// A congestion module of the Linux kernel: law and slow start in one.
    Module,
    /// Start-up.
    StartUp,
    /// Initial-window sending.
    Sending,
    /// Pacing of the connection.
    Pacing,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Law => "window law",
            Kind::Module => "Linux module",
            Kind::StartUp => "start-up",
            Kind::Sending => "initial-window sending",
            Kind::Pacing => "pacing",
        })
    }
}

/// One name of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name, lower case, as Linux spells it where it has one.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// Part of the stack.
    pub kind: Kind,
    /// One line.
    pub about: &'static str,
    /// Document and section.
    pub source: &'static str,
    /// Parameters with defaults and ranges.
    pub params: &'static [ParamSpec],
    /// Makes the component; an error is a sentence about parameters that contradict each other.
    pub build: fn(&Params) -> Result<Component, String>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

impl Entry {
    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A built part of a stack.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per part of a spelling, never on the ACK path
pub enum Component {
    /// A window law, with its own start-up when the standard one does not fit.
    Law(Law, Option<Start>),
    /// A kernel module.
    Module(AnyModule),
    /// A start-up.
    StartUp(Start),
    /// Initial-window sending.
    Sending(InitialSending),
    /// Pacing of the whole connection.
    Pacing(PacingGains),
}

/// The known name closest to `name`, if close enough to be a slip.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    known
        .map(|k| (strsim::normalized_damerau_levenshtein(name, k), k))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

fn find(name: &str) -> Result<&'static Entry, StackError> {
    ENTRIES
        .iter()
        .find(|e| e.answers_to(name))
        .ok_or_else(|| StackError::UnknownName {
            name: name.to_owned(),
            nearest: nearest(
                name,
                ENTRIES
                    .iter()
                    .flat_map(|e| std::iter::once(e.name).chain(e.aliases.iter().copied())),
            ),
            known: ENTRIES.iter().map(|e| e.name).collect(),
        })
}
