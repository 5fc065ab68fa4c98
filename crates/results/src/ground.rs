//! Where runs are made: the simulator, or something that lives in real time. The same case, the
//! same seed, another ground.

use std::num::NonZeroUsize;

use fullpipe_run::{Outcome, RunSpec, Violation};

/// Makes runs. Called from several threads.
pub trait Ground: Sync {
    /// Its name in results (contract): `sim`, `udp`, `linux`, `kernel`.
    fn name(&self) -> &str;

    /// The other host, where the path is not the scenario's but the one to there: its results are
    /// not those of another path.
    fn peer(&self) -> Option<&str> {
        None
    }

    /// Runs that do not disturb one another; `None`: as many as there are processors.
    fn at_once(&self) -> Option<NonZeroUsize> {
        None
    }

    /// A run lasts as long as its scenario says, by the clock on the wall.
    fn in_real_time(&self) -> bool {
        false
    }

    /// What is to be said about the runs so far, each once: what was not done as the scenario says.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`GroundError`].
    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError>;
}

/// Why a ground made no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroundError {
    /// A fault of the program.
    #[error("{0}")]
    Fault(String),
    /// The ground cannot do what the scenario asks for.
    #[error("{what}")]
    Unable {
        /// What it cannot do, with the key of the scenario.
        what: String,
        /// A scenario that the ground can run.
        hint: String,
    },
    /// The machine, the network or the other host lacks something.
    #[error("{what}")]
    Environment {
        /// The missing thing.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Stopped from outside: there is no result.
    #[error("interrupted")]
    Interrupted,
}

impl From<Violation> for GroundError {
    fn from(violation: Violation) -> Self {
        Self::Fault(violation.what)
    }
}

/// The simulator, or what stands in for it.
impl<F> Ground for F
where
    F: Fn(&RunSpec) -> Result<Outcome, Violation> + Sync,
{
    fn name(&self) -> &str {
        "sim"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        Ok(self(spec)?)
    }
}
