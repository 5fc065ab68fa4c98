//! What the tuner asks of the kernel: one trait, of which `bpf.rs` is the implementation and
//! `fake.rs` one for unit tests.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::image::Image;
use crate::journal::Key;
use crate::layout::{Control, Listing, Order, Record};
use crate::sockets::Resize;

/// Why the kernel does not do it.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A privilege or a feature is missing.
    #[error("{what}: {error}")]
    Lacks {
        /// The call that failed, and what it takes.
        what: String,
        /// The kernel's answer.
        error: String,
    },
    /// Names of algorithms are the whole machine's.
    #[error(
        "there is an algorithm `{0}` already: another tuner runs, which has the same prefix; \
         `--prefix` gives this one another"
    )]
    Taken(String),
    /// The folder that was named is none.
    #[error("the control group {}: {error}", path.display())]
    Group {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer to opening it, or that version 2 is not mounted there.
        error: io::Error,
    },
    /// The system.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

/// Counters in the order of `enum counter` of `bpf/shared.h`: the structure, its reading and its
/// names from one list.
macro_rules! counters {
    ($(#[doc = $about:literal] $name:ident,)*) => {
        /// Sums over all processors since the programs were loaded.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $(#[doc = $about] pub $name: u64,)*
        }

        impl Counters {
            /// Values that are read of the map, which has room for `COUNTERS`.
            pub const COUNT: usize = [$(stringify!($name)),*].len();

            /// From the map's values, in its order.
            pub fn from_array([$($name),*]: [u64; Self::COUNT]) -> Self {
                Self { $($name),* }
            }

            /// Names, what each counts, and values.
            pub fn described(&self) -> [(&'static str, &'static str, u64); Self::COUNT] {
                [$((stringify!($name), $about.trim_ascii(), self.$name)),*]
            }

            /// Names and values.
            pub fn named(&self) -> [(&'static str, u64); Self::COUNT] {
                [$((stringify!($name), self.$name)),*]
            }
        }
    };
}

counters! {
    /// ACKs that reached a law.
    acks,
    /// Flows that were given a rule.
    matched,
    /// Flows that were left as they were, for comparison.
    control,
    /// Flows whose program had chosen.
    app_choice,
    /// Flows that began to run an algorithm of ours.
    begun,
    /// Flows that ceased to.
    released,
    /// Reductions after a loss or a mark.
    cuts,
    /// After a timeout.
    timeouts,
    /// After a local stall.
    stalls,
    /// Local stalls without one.
    stalls_ignored,
    /// Records that found the ring buffer full.
    records_lost,
    /// ACKs that were answered by the standard: off, or no daemon.
    standard,
    /// New flows whose algorithm the kernel refused.
    refused,
    /// Packets of initial windows that a packet scheduler spaces.
    spread,
}

/// A socket and the network namespace that it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Inode of the namespace.
    pub namespace: u64,
    /// What a flow there gets by itself (`tcp_congestion_control`).
    pub default: String,
    /// The socket.
    pub listing: Listing,
}

impl Seen {
    /// What it is called in the journal.
    pub fn key(&self) -> Key {
        (self.namespace, self.listing.cookie)
    }
}

/// The kernel side.
pub trait Kernel {
    /// Fills one half of the maps.
    ///
    /// # Errors
    /// [`KernelError`], as of the others.
    fn fill(&mut self, half: u32, image: &Image) -> Result<(), KernelError>;

    /// Writes what all flows look at.
    ///
    /// # Errors
    /// See [`Kernel::fill`].
    fn control(&mut self, control: &Control) -> Result<(), KernelError>;

    /// Executes orders, by cookie, and lists all TCP sockets as they are then.
    ///
    /// # Errors
    /// See [`Kernel::fill`].
    fn flows(&mut self, orders: &[(u64, Order)]) -> Result<Vec<Seen>, KernelError>;

    /// What has happened; waits until something does, at most `wait`.
    ///
    /// # Errors
    /// See [`Kernel::fill`].
    fn records(&mut self, wait: Duration) -> Result<Vec<Record>, KernelError>;

    /// See [`Counters`].
    ///
    /// # Errors
    /// See [`Kernel::fill`].
    fn counters(&mut self) -> Result<Counters, KernelError>;

    /// Sizes of buffers, beyond what an option may ask for, and whether the kernel tunes them. An
    /// answer for each.
    fn resize(&mut self, sizes: &[Resize]) -> Vec<io::Result<()>>;

    /// Name of the process of each socket, by the inode of its file.
    fn owners(&self) -> BTreeMap<u64, String>;

    /// Path of each control group below the root of version 2, by its number.
    fn groups(&self) -> BTreeMap<u64, String>;

    /// Whether sockets of this namespace were looked for when they were listed last.
    fn sees(&self, namespace: u64) -> bool;

    /// `CLOCK_MONOTONIC`, microseconds.
    fn now_us(&self) -> u64;
}
