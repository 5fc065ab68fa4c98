//! What every ground shares: the specification of a run, what decides its randomness, and the
//! outcome it returns.
//!
//! A *ground* is a place where runs are made: the simulator, or UDP sockets. All of them take a
//! [`RunSpec`] and return an [`Outcome`]; traffic laws, drop rules and random streams come from
//! here, so that one specification and one seed mean the same traffic everywhere. This crate moves
//! no packet and reads no clock.

pub mod ground;
mod histogram;
mod lateness;
mod looks;
mod loss;
mod outcome;
mod recorder;
mod rng;
mod rows;
mod spec;
pub mod traffic;
mod travel;

pub use ground::{Ground, GroundError, Network};
pub use histogram::Histogram;
pub use lateness::{HostLateness, Lateness};
pub use looks::{LookField, Looks};
pub use loss::{DropRules, LossProcess};
pub use outcome::*;
pub use recorder::{ArrivalRecord, ArrivalRecorder, SenderRecord, SenderRecorder};
pub use rng::{ComponentRng, derive_seed};
pub use spec::*;

/// A violated invariant of the engine itself: an internal error, with the seed that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant violated (seed {seed}): {what}")]
pub struct Violation {
    /// Seed of the run.
    pub seed: u64,
    /// The balance that is violated, one sentence.
    pub what: String,
}
