//! Congestion control that the running kernel has no module for, loaded for the length of a run,
//! and a record of its ACKs. Who can load programs into the kernel hands them to the ground
//! ([`Options::laws`](crate::Options::laws)).

use std::fmt;
use std::net::IpAddr;

use fullpipe_cc::StackSpec;
use fullpipe_run::GroundError;
use fullpipe_units::Span;

use crate::acks::Record;

/// Loads laws into the running kernel, and what records ACKs there.
pub trait Laws: fmt::Debug + Sync {
    /// Tells flows by these laws from those by another build's.
    fn fingerprint(&self) -> String;

    /// Whether the flow can be had.
    ///
    /// # Errors
    /// What of the stack is not there, and what to write instead.
    fn check(&self, wanted: &Wanted) -> Result<(), Lack>;

    /// Loads them: sockets that this process makes from now on run them once they are connected.
    ///
    /// # Errors
    /// [`GroundError::Environment`].
    fn load(&self, flows: &[Wanted]) -> Result<Box<dyn Loaded>, GroundError>;

    /// Records every ACK that these sockets get, which are named by their `SO_COOKIE`.
    ///
    /// # Errors
    /// What is missing for it, in a sentence.
    fn record(&self, sockets: &[u64]) -> Result<Box<dyn Record>, String>;
}

/// Laws in the kernel. Dropped, nothing of them is left.
pub trait Loaded {
    /// All sockets of the run are made.
    ///
    /// # Errors
    /// [`GroundError::Environment`].
    fn sockets_made(&mut self) -> Result<(), GroundError>;

    /// How many flows have run one of them.
    ///
    /// # Errors
    /// The kernel refused a flow's.
    fn ran(&mut self) -> Result<usize, GroundError>;
}

/// A flow that is to run a law.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Law and start-up, as the scenario has them.
    pub stack: StackSpec,
    /// The other end's address, which no other flow of the run has.
    pub to: IpAddr,
    /// Round-trip time without queues.
    pub rtt: Span,
}

/// Something of a stack that cannot be had, and what to write instead.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub struct Lack {
    pub message: String,
    pub hint: String,
}
