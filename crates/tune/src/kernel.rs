//! What the tuner asks of the kernel: one trait, so that everything above it is tested without.

use std::io;
use std::time::Duration;

use crate::image::Image;
use crate::layout::{Control, Listing, Order, Record};

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
    /// The system.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

/// Sums over all processors since the programs were loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// ACKs that reached a law.
    pub acks: u64,
    /// Flows that were given a rule.
    pub matched: u64,
    /// Flows that were left as they were, for comparison.
    pub control: u64,
    /// Flows whose program had chosen.
    pub app_choice: u64,
    /// Flows that began to run an algorithm of ours.
    pub begun: u64,
    /// Flows that ceased to.
    pub released: u64,
    /// Reductions after a loss or a mark.
    pub cuts: u64,
    /// After a timeout.
    pub timeouts: u64,
    /// After a local stall.
    pub stalls: u64,
    /// Local stalls without one.
    pub stalls_ignored: u64,
    /// Records that found the ring buffer full.
    pub records_lost: u64,
    /// ACKs that were answered by the standard: off, or no daemon.
    pub standard: u64,
    /// New flows whose algorithm the kernel refused.
    pub refused: u64,
}

impl Counters {
    /// `COUNTERS` that are used, of `bpf/shared.h`.
    pub const COUNT: usize = 13;

    /// In the order of `enum counter`.
    pub fn from_array(c: [u64; Self::COUNT]) -> Self {
        let [
            acks,
            matched,
            control,
            app_choice,
            begun,
            released,
            cuts,
            timeouts,
            stalls,
            ..,
        ] = c;
        Self {
            acks,
            matched,
            control,
            app_choice,
            begun,
            released,
            cuts,
            timeouts,
            stalls,
            stalls_ignored: c[9],
            records_lost: c[10],
            standard: c[11],
            refused: c[12],
        }
    }

    /// Names and values.
    pub fn named(&self) -> [(&'static str, u64); Self::COUNT] {
        [
            ("acks", self.acks),
            ("matched", self.matched),
            ("control", self.control),
            ("app_choice", self.app_choice),
            ("begun", self.begun),
            ("released", self.released),
            ("cuts", self.cuts),
            ("timeouts", self.timeouts),
            ("stalls", self.stalls),
            ("stalls_ignored", self.stalls_ignored),
            ("records_lost", self.records_lost),
            ("standard", self.standard),
            ("refused", self.refused),
        ]
    }
}

/// A socket and the network namespace that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Inode of the namespace.
    pub namespace: u64,
    /// What a flow there gets by itself (`tcp_congestion_control`).
    pub default: String,
    /// The socket.
    pub listing: Listing,
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

    /// `CLOCK_MONOTONIC`, microseconds.
    fn now_us(&self) -> u64;
}
