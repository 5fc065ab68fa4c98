//! What a run with a server leaves behind: its side, and both.

use fullpipe_host::{HostOutcome, PathReport, merge};
use fullpipe_run::{Outcome, RunSpec};
use serde::{Deserialize, Serialize};

use super::control::{EndReason, shown};
use super::failure::SessionError;

/// What the server leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Its side of the run.
    pub outcome: HostOutcome,
    /// Error at the server, one sentence; `None` after a clean run.
    pub error: Option<String>,
}

impl Report {
    /// Of a run that did not come about, or broke off.
    pub fn failed(why: String) -> Self {
        Self {
            outcome: HostOutcome::default(),
            error: Some(why),
        }
    }
}

/// Both sides of a run.
#[derive(Clone, Debug)]
pub struct Done {
    /// Outcome of the client's host.
    pub near: HostOutcome,
    /// The other.
    pub far: HostOutcome,
    /// The server's reason for ending the run.
    pub why: EndReason,
}

impl Done {
    /// The result of `spec`, which both sides ran.
    ///
    /// # Errors
    /// [`SessionError::Misfit`].
    pub fn merge(self, spec: &RunSpec) -> Result<Outcome, SessionError> {
        merge(spec, self.near, self.far, PathReport::default())
            .map_err(|what| SessionError::Misfit(shown(&what)))
    }
}
