//! fullpipe-sim
pub mod histogram;
pub mod outcome;
pub mod spec;
pub use outcome::*;
pub use spec::*;

/// A violated invariant of the simulator itself: an internal error, with the seed that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Seed of the run.
    pub seed: u64,
    /// What did not add up.
    pub what: String,
}

/// Runs one specification to its end.
///
/// # Errors
/// [`Violation`] if a conservation check fails.
pub fn run(_spec: &RunSpec) -> Result<Outcome, Violation> {
    todo!()
}
