//! Why there is no result, and what to do about it.

use fullpipe_units::Span;

use super::Ran;
use crate::capture;
use crate::result::RunResult;
use crate::store::StoreError;

/// A scenario that came to no result, by its cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The result directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Every run was made, and the result directory does not hold them all.
    #[error("{error}")]
    NotKept {
        /// What could not be written, and what the system says.
        error: StoreError,
        /// With the metrics of every run.
        ran: Box<Ran>,
    },
    /// Stopped from outside.
    #[error("interrupted after {done} of {total} runs")]
    Interrupted {
        /// Runs that are finished.
        done: usize,
        /// All runs.
        total: usize,
        /// They are kept in the result directory.
        kept: bool,
        /// What they come to: the cases that have runs, and no expectations.
        result: Option<Box<RunResult>>,
    },
    /// A bug in the program.
    #[error("internal error in {} with seed {seed}: {what}", which(*case, params))]
    Internal {
        /// Index of the case.
        case: usize,
        /// Matrix parameters of the case.
        params: String,
        /// Seed.
        seed: u64,
        /// Violated invariant, or the text of a panic.
        what: String,
    },
    /// The ground cannot do what a case asks for.
    #[error("{place}ground `{ground}` cannot run {}: {what}", which(*case, params))]
    Unable {
        /// File, line, key and value, each with a colon behind it; empty where no key is to blame.
        place: Box<str>,
        /// Name of the ground.
        ground: Box<str>,
        /// Index of the case.
        case: usize,
        /// Matrix parameters of the case.
        params: String,
        /// The demand it cannot meet, with the key of the scenario.
        what: String,
        /// A scenario that the ground can run.
        hint: String,
    },
    /// The machine, the network or the other host lacks something.
    #[error("{what}")]
    Environment {
        /// The missing thing.
        what: String,
        /// The remedy, in one sentence.
        hint: String,
    },
    /// Captures of it would not fit in memory, and no tool would open them.
    #[error(
        "{} may send {millions} million packets: too many for a capture, at most {most} million",
        which(*case, params),
        most = capture::MOST_PACKETS / 1_000_000
    )]
    CaptureTooLong {
        /// Index of the case.
        case: usize,
        /// Matrix parameters of the case.
        params: String,
        /// Estimate, from above.
        millions: u64,
        /// Duration with which it would be accepted.
        shorter: Span,
    },
    /// Captures are part of a result directory.
    #[error("captures need a directory")]
    CaptureNowhere,
    /// A case is complete and could not be written to where the caller wants it.
    #[error("cannot hand over a case: {0}")]
    Output(std::io::Error),
    /// Threads could not be started.
    #[error("cannot start {jobs} threads: {why}")]
    Threads {
        /// Number asked for.
        jobs: usize,
        /// Reason.
        why: String,
    },
}

impl RunError {
    /// Exit code of the program (contract): 2 wrong request, 3 environment, 4 internal error, 130
    /// interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Store(e) | RunError::NotKept { error: e, .. } if e.is_environment() => 3,
            RunError::Store(_) | RunError::NotKept { .. } => 2,
            RunError::Interrupted { .. } => 130,
            RunError::Internal { .. } => 4,
            RunError::Threads { .. } | RunError::Environment { .. } | RunError::Output(_) => 3,
            RunError::Unable { .. }
            | RunError::CaptureTooLong { .. }
            | RunError::CaptureNowhere => 2,
        }
    }

    /// The remedy, in one sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Store(e) | RunError::NotKept { error: e, .. } => e.hint(),
            RunError::Interrupted { kept: true, .. } => {
                Some("finished runs are kept: continue with `--resume`".to_owned())
            }
            RunError::Interrupted { kept: false, .. } => {
                Some("with `--out DIR` finished runs are kept and `--resume` continues".to_owned())
            }
            RunError::Internal { case, seed, .. } => Some(format!(
                "please report it with the scenario, case {case} and seed {seed}"
            )),
            RunError::CaptureTooLong { shorter, .. } => {
                let seconds = shorter.as_secs_f64();
                let text = if seconds >= 1.0 {
                    format!("{seconds:.0}s")
                } else {
                    format!("{:.0}ms", seconds * 1e3)
                };
                Some(format!(
                    "capture a shorter run, for example with `--set duration={text}`, or a slower path"
                ))
            }
            RunError::Unable { hint, .. } | RunError::Environment { hint, .. } => {
                Some(hint.clone())
            }
            RunError::CaptureNowhere => Some("name one with `--out DIR`".to_owned()),
            RunError::Output(_) => None,
            RunError::Threads { .. } => Some("use a smaller `--jobs`".to_owned()),
        }
    }
}

/// A case in a message; a scenario without a matrix has but one.
fn which(case: usize, params: &str) -> String {
    match params {
        "" => "this scenario".to_owned(),
        _ => format!("case {case} ({params})"),
    }
}

/// Parameters of a case for a message.
pub(super) fn params_text(params: &[(String, String)]) -> String {
    params
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_with_one_case_has_no_number() {
        let params = [("flow.main.stack".to_owned(), "cubic".to_owned())];
        let text = |params: &[(String, String)]| {
            RunError::Unable {
                place: "a.toml:7: ".into(),
                ground: "linux".into(),
                case: 0,
                params: params_text(params),
                what: "it has no such module".to_owned(),
                hint: String::new(),
            }
            .to_string()
        };
        assert_eq!(
            text(&[]),
            "a.toml:7: ground `linux` cannot run this scenario: it has no such module"
        );
        assert!(text(&params).contains("cannot run case 0 (flow.main.stack = cubic): "));
    }
}
