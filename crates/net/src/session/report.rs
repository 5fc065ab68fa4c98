//! What a run with a server leaves behind: its side, and both.

use fullpipe_host::{HostOutcome, PathReport, merge, other_half};
use fullpipe_run::{Outcome, RunSpec};
use serde::{Deserialize, Serialize};

use super::control::EndReason;
use super::failure::SessionError;
use crate::shown::shown;
use crate::tcp;

/// Result of a run at the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Outcome at the server's host.
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
    /// The other; `None`: the server was gone before it reported.
    pub far: Option<HostOutcome>,
    /// The server's reason for ending the run.
    pub why: EndReason,
    /// Why it ended before its time, if it did.
    pub cut: Option<Cut>,
    /// What went wrong here and did not end it, one sentence each.
    pub notes: Vec<String>,
}

/// Why a run ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Interrupted here.
    Interrupted,
    /// The server was not heard of any more.
    Vanished,
    /// The server was heard, and nothing came of the flows any more.
    Stalled,
    /// The server ended it.
    Server(EndReason),
    /// The run was over, but its server gone before all of its result was here.
    Unfetched,
}

impl Cut {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Vanished => "the server has not been heard of for 10 seconds",
            Self::Stalled => "the server answers, but the flows have stood still for 2 minutes",
            Self::Server(why) => why.text(),
            Self::Unfetched => {
                "the server, or the path to it, was gone before its result was here; the silence \
                 before does not count"
            }
        }
    }
}

impl Done {
    /// The result of `spec`, which both sides ran.
    ///
    /// # Errors
    /// [`SessionError::Misfit`].
    pub fn merge(self, spec: &RunSpec) -> Result<Outcome, SessionError> {
        let (mut near, mut partial) = (self.near, self.cut.map(|cut| cut.text().to_owned()));
        let far = match self.far {
            Some(far) => far,
            None => {
                partial = Some(format!("{}; {ALONE}", partial.unwrap_or_default()));
                other_half(spec, &mut near)
            }
        };
        let mut far = far;
        tcp::settle(&mut near, &mut far);
        let outcome = merge(spec, near, far, PathReport::default())
            .map_err(|what| SessionError::Misfit(shown(&what)))?;
        Ok(Outcome { partial, ..outcome })
    }
}

/// What a result lacks whose server is gone.
const ALONE: &str = "the server's half is missing: deliveries are those that were acknowledged";
