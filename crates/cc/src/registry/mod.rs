//! Names, parameters and provenance of everything a stack is made of, and the one parser of a
//! stack's spelling.
//!
//! `law(params)+start-up(params)+sending(params)`, at most one component of each kind, the window
//! law first: `reno`, `highspeed(low_window=31)+limited(max_ssthresh=100)`, `cubic+hystart++`,
//! `reno+spread(t_max=4ms,iw=10)`.

mod absent;
mod change;
mod error;
#[cfg(feature = "guests")]
pub mod guest;
mod spec;
mod spelling;
mod stack;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::ops::Deref;
use core::{fmt, iter};

pub use error::StackError;
pub use spec::StackSpec;
pub use stack::Stack;

use crate::entry::Entry;
use crate::law::{self, Law};
#[cfg(feature = "linux")]
use crate::linux::{self, AnyModule};
use crate::model::{self, Model};
use crate::params::{ParamSpec, Params};
use crate::sending::{self, InitialSending, PacingGains};
use crate::startup::{self, Start};

/// Everything that can stand in a stack's spelling, in the order `fullpipe list stacks` prints it.
pub fn entries() -> impl Iterator<Item = Registered> {
    let built_in = FAMILIES.iter().flat_map(|(kind, entries)| {
        let kind = *kind;
        entries.iter().map(move |entry| Registered {
            kind,
            entry,
            #[cfg(feature = "guests")]
            guest: None,
        })
    });
    #[cfg(feature = "guests")]
    let built_in = built_in.chain(guest::guests());
    built_in
}

const FAMILIES: &[(Kind, &[Entry<Component>])] = &[
    (Kind::Law, &law::entries()),
    #[cfg(feature = "linux")]
    (Kind::Module, &linux::entries()),
    (Kind::Model, &model::entries()),
    (Kind::StartUp, &startup::entries()),
    (Kind::Sending, &sending::initial()),
    (Kind::Pacing, &sending::pacing()),
];

/// Parameters that every window law accepts beside its own.
pub const COMMON_LAW_PARAMS: &[ParamSpec] =
    &[param!(ecn_keep: number = 0.0, 0.0..=1.0, "fraction",
    "fraction kept on an ECN mark in congestion avoidance (ABE: 0.8, CUBIC 0.85); 0: as on loss",
    "RFC 8511 section 3")];

/// Which part of a stack an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Window law.
    Law,
    /// A congestion module of the Linux kernel: law and slow start in one.
    Module,
    /// A model-based controller: pacing rate and window in one.
    Model,
    /// Start-up.
    StartUp,
    /// Initial-window sending.
    Sending,
    /// Pacing of the connection.
    Pacing,
}

impl Kind {
    /// Every kind, in the order of the registry.
    pub const ALL: [Self; 6] = [
        Kind::Law,
        Kind::Module,
        Kind::Model,
        Kind::StartUp,
        Kind::Sending,
        Kind::Pacing,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Law => "window law",
            Kind::Module => "Linux module",
            Kind::Model => "model-based controller",
            Kind::StartUp => "start-up",
            Kind::Sending => "initial-window sending",
            Kind::Pacing => "pacing",
        })
    }
}

/// One name of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Part of the stack.
    pub kind: Kind,
    entry: &'static Entry<Component>,
    #[cfg(feature = "guests")]
    guest: Option<&'static guest::Maker>,
}

impl Registered {
    /// The part with these parameters.
    fn component(&self, params: &Params) -> Result<Component, String> {
        #[cfg(feature = "guests")]
        if let Some(guest) = self.guest {
            return guest.component(params);
        }
        (self.entry.build)(params)
    }
}

impl Deref for Registered {
    type Target = Entry<Component>;
    fn deref(&self) -> &Self::Target {
        self.entry
    }
}

/// A built part of a stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // one per part of a spelling, never on the ACK path
pub enum Component {
    /// A window law.
    Law(Law),
    /// A kernel module.
    #[cfg(feature = "linux")]
    Module(AnyModule),
    /// A model-based controller.
    Model(Model),
    /// A controller from elsewhere.
    #[cfg(feature = "guests")]
    Guest(guest::Hosted),
    /// A start-up.
    StartUp(Start),
    /// Initial-window sending.
    Sending(InitialSending),
    /// Pacing of the whole connection.
    Pacing(PacingGains),
}

macro_rules! component {
    ($($(#[$cfg:meta])? $variant:ident($part:ty)),+ $(,)?) => {$(
        $(#[$cfg])?
        impl From<$part> for Component {
            fn from(part: $part) -> Self {
                Self::$variant(part)
            }
        }
    )+};
}

component! {
    Law(Law),
    #[cfg(feature = "linux")]
    Module(AnyModule),
    Model(Model),
    StartUp(Start),
    Sending(InitialSending),
    Pacing(PacingGains),
}

/// The known name closest to `name`, if close enough to be a slip; case does not matter.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_SLIP {
        return None;
    }
    let name = name.to_lowercase();
    known
        .map(|k| {
            (
                strsim::normalized_damerau_levenshtein(&name, &k.to_lowercase()),
                k,
            )
        })
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// Longer texts, bytes, are no slips of a name, and measuring them takes long.
const LONGEST_SLIP: usize = 64;

fn find(name: &str) -> Result<Registered, StackError> {
    if let Some(entry) = entries().find(|e| e.answers_to(name)) {
        return Ok(entry);
    }
    let name = name.to_owned();
    Err(match absent::find(&name) {
        Some(absent) => StackError::Absent {
            name,
            nearest: absent.nearest,
            why: absent.why,
        },
        None => StackError::UnknownName {
            nearest: nearest(
                &name,
                entries().flat_map(|e| iter::once(e.name).chain(e.aliases.iter().copied())),
            )
            // By the name that is in the list of those known.
            .and_then(|near| entries().find(|e| e.answers_to(near)))
            .map(|e| e.name),
            known: entries().map(|e| e.name).collect(),
            name,
        },
    })
}
