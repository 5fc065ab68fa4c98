//! Where runs are made: the simulator, or something that lives in real time. The same case, the
//! same seed, another ground.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use fullpipe_units::{Bytes, Rate};

use crate::{Outcome, RunSpec, Violation};

/// Makes runs. Called from several threads.
pub trait Ground: Sync {
    /// Its name in results (contract): `sim`, `udp`, `linux`, `kernel`.
    fn name(&self) -> &str;

    /// What tells its runs from those of another build of the same version: a fingerprint of the
    /// sources that decide what it returns (crate `fullpipe-fingerprint`). A stored run is taken
    /// over only where both fit.
    fn fingerprint(&self) -> &str;

    /// The other host, where the path is not the scenario's but the one to there: its results are
    /// not those of another path.
    fn peer(&self) -> Option<&str> {
        None
    }

    /// Addresses of the last run over a network, and what the other host allows.
    fn network(&self) -> Option<Network> {
        None
    }

    /// The system whose TCP makes the runs, where that is not this program's: `Linux 6.1.192, 250
    /// ticks a second`, and a congestion module of the user's own.
    fn kernel(&self) -> Option<String> {
        None
    }

    /// Stacks of this run's flows that this program brought into that system, which has none of
    /// that name: such a flow is not the system's own.
    fn brought(&self, _spec: &RunSpec) -> Vec<String> {
        Vec::new()
    }

    /// What decides its runs of a case beside what every ground reads of it; `spec` makes a run's
    /// specification. Runs are taken over only where this is the same, too.
    fn reads(&self, _spec: &dyn Fn() -> RunSpec) -> String {
        String::new()
    }

    /// Runs that do not disturb one another; `None`: as many as there are processors.
    fn at_once(&self) -> Option<NonZeroUsize> {
        None
    }

    /// A run lasts as long as its scenario says, by the clock on the wall.
    fn in_real_time(&self) -> bool {
        false
    }

    /// Remarks on the runs so far, each once: what was not done as the scenario says.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it can make this run. All cases are asked before the first run, so that a long
    /// matrix does not end at a case that was never possible.
    ///
    /// # Errors
    /// [`GroundError::Unable`].
    fn check(&self, _spec: &RunSpec) -> Result<(), GroundError> {
        Ok(())
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`GroundError`].
    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError>;

    /// Makes one run, unless `goes_on` says no before its end. A ground that cannot end a run in
    /// between makes it whole.
    ///
    /// # Errors
    /// [`GroundError::Interrupted`], and as [`Ground::run`].
    fn run_while(
        &self,
        spec: &RunSpec,
        _goes_on: &dyn Fn() -> bool,
    ) -> Result<Outcome, GroundError> {
        self.run(spec)
    }
}

/// A run over a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// This host's end.
    pub near: SocketAddr,
    /// The other host's.
    pub far: SocketAddr,
    /// What the other host lets through in a direction, headers of IP and UDP included.
    pub max_rate: Option<Rate>,
    /// In both directions together, counted like the rate.
    pub max_bytes: Option<Bytes>,
}

/// A run that a ground did not make, by its cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroundError {
    /// A fault of the program.
    #[error("{0}")]
    Fault(String),
    /// The ground cannot do what the scenario asks for.
    #[error("{}{what}", key.as_ref().map_or(String::new(), |k| format!("`{k}`: ")))]
    Unable {
        /// The key of the scenario: of a flow, of traffic or of a link behind its name, as
        /// `main.tlp` or `bottleneck.queue.gentle`.
        key: Option<String>,
        /// What it cannot do; with the key, where that stands in no field of its own.
        what: String,
        /// Remedy for the user.
        hint: String,
    },
    /// The machine, the network or the other host lacks something.
    #[error("{what}")]
    Environment {
        /// The missing resource, one sentence.
        what: String,
        /// Remedy, one sentence.
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

/// A function in the place of the simulator, for tests and experiments. Its runs go by the name
/// `sim`, and nothing tells those of two functions apart: keep them in directories of their own.
impl<F> Ground for F
where
    F: Fn(&RunSpec) -> Result<Outcome, Violation> + Sync,
{
    fn name(&self) -> &str {
        "sim"
    }

    fn fingerprint(&self) -> &str {
        "function"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        Ok(self(spec)?)
    }
}
