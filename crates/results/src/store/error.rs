//! What can go wrong with a result directory, and what to do about it.

use std::io;
use std::path::PathBuf;

/// What can go wrong with a result directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// Verb.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The system refused a file in which finished runs wait for the result.
    #[error("cannot {doing} finished runs in a temporary file in `{}`: {source}", dir.display())]
    Kept {
        /// Verb.
        doing: &'static str,
        /// Directory of temporary files.
        dir: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Not empty, and not one of ours.
    #[error("`{}` is not empty and holds no result", dir.display())]
    Foreign {
        /// Directory.
        dir: PathBuf,
    },
    /// Holds the result of something else.
    #[error("`{}` holds another result: {other}", dir.display())]
    OtherResult {
        /// Directory.
        dir: PathBuf,
        /// First difference found.
        other: Other,
    },
    /// Another process writes it.
    #[error("another run is writing to `{}`", dir.display())]
    Locked {
        /// Directory.
        dir: PathBuf,
    },
    /// No result there.
    #[error("`{}` holds no result: there is no `manifest.json`", dir.display())]
    NoResult {
        /// Directory.
        dir: PathBuf,
    },
    /// The run was interrupted.
    #[error("the result in `{}` is not finished", dir.display())]
    Unfinished {
        /// Directory.
        dir: PathBuf,
    },
    /// A file was changed or cut.
    #[error("`{}` is damaged: {why}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// Failed check.
        why: String,
    },
    /// A file of the result is not there.
    #[error("the result in `{}` is not whole: `{name}` is missing", dir.display())]
    Missing {
        /// Directory.
        dir: PathBuf,
        /// Path in it, as the manifest names it.
        name: String,
    },
    /// A file of a result was to become another.
    #[error("`{}` is a file of a result", path.display())]
    OfResult {
        /// File.
        path: PathBuf,
    },
    /// A table could not be written.
    #[error("cannot make the table `{name}`: {why}")]
    Table {
        /// File.
        name: String,
        /// Reason.
        why: String,
    },
}

/// In what the result in a directory is not the one that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Other {
    /// It is of another scenario.
    #[error("scenario `{0}`")]
    Scenario(String),
    /// It is of another ground.
    #[error("ground `{name}`{}", peer.as_ref().map_or(String::new(), |peer| format!(" to {peer}")))]
    Ground {
        /// Name of the ground.
        name: String,
        /// The other host, if there was one.
        peer: Option<String>,
    },
    /// It has finished runs with seeds that are not asked for.
    #[error("runs with seed{} {}", if theirs.len() == 1 { "" } else { "s" }, list(theirs))]
    Seeds {
        /// Seeds of these runs.
        theirs: Vec<u64>,
        /// These and the ones that are asked for, ascending.
        both: Vec<u64>,
    },
    /// It has finished runs of cases that are not asked for.
    #[error("{runs} finished run{} of other cases", if *runs == 1 { "" } else { "s" })]
    Cases {
        /// Number of these runs.
        runs: usize,
    },
    /// It has finished runs of the same cases, made of other values.
    #[error("{runs} finished run{} with {}", if *runs == 1 { "" } else { "s" }, list(keys))]
    Changed {
        /// Number of these runs.
        runs: usize,
        /// Keys with their value there and here: `duration: 60s -> 12s`.
        keys: Vec<String>,
    },
    /// It has a part of the runs that are asked for, and they were not to be taken over.
    #[error("other cases or seeds of this scenario")]
    Unresumed,
}

impl Other {
    fn hint(&self) -> String {
        let elsewhere = "choose another directory with `--out`, or remove this one yourself";
        match self {
            Other::Scenario(_) | Other::Ground { .. } => elsewhere.to_owned(),
            Other::Seeds { both, .. } => {
                let flags = match both.as_slice() {
                    [first, .., last] if last - first == both.len() as u64 - 1 => {
                        format!(" (`--seed {first} --repeat {} --resume`)", both.len())
                    }
                    _ => " with `--resume`".to_owned(),
                };
                format!(
                    "finished runs are never taken away: ask for their seeds too{flags}, {elsewhere}"
                )
            }
            Other::Cases { .. } => {
                format!(
                    "finished runs are never taken away: ask for their cases too with `--resume`, let `--replace` drop them, or {elsewhere}"
                )
            }
            Other::Changed { .. } => {
                format!(
                    "finished runs are never taken away: set them as they were, let `--replace` \
                     drop the runs, or {elsewhere}"
                )
            }
            Other::Unresumed => {
                format!("add to it with `--resume`: its finished runs are kept; or {elsewhere}")
            }
        }
    }
}

/// `1, 2, 3`; of many the first ones.
fn list(all: &[impl ToString]) -> String {
    let shown: Vec<String> = all.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if all.len() > SHOWN { ", ..." } else { "" };
    shown.join(", ") + more
}

const SHOWN: usize = 5;

impl StoreError {
    /// The remedy, in one sentence, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space; a `run` continues with `--resume`".to_owned())
            }
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("choose a directory you may write to with `--out`".to_owned())
            }
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("a file has this name: choose another directory with `--out`".to_owned())
            }
            StoreError::Kept { .. } => {
                Some("set `TMPDIR` to a directory with more space: a run takes some 2 kB".to_owned())
            }
            StoreError::Foreign { .. } => Some(
                "choose another directory with `--out`, or remove this one yourself".to_owned(),
            ),
            StoreError::OtherResult { other, .. } => Some(other.hint()),
            StoreError::Missing { .. } => Some(
                "copy the whole directory if this is a copy; or make what is missing again with `fullpipe run SCENARIO --out DIR \
                 --resume`: whole runs are kept"
                    .to_owned(),
            ),
            StoreError::Locked { .. } => {
                Some("wait for it to end, or choose another directory with `--out`".to_owned())
            }
            StoreError::NoResult { .. } => {
                Some("results are written by `fullpipe run SCENARIO --out DIR`".to_owned())
            }
            StoreError::Unfinished { .. } => {
                Some("finish it with `fullpipe run SCENARIO --out DIR --resume`".to_owned())
            }
            StoreError::Damaged { .. } => Some(
                "make it again with `fullpipe run SCENARIO --out DIR --resume`: whole runs are kept"
                    .to_owned(),
            ),
            StoreError::OfResult { .. } => {
                Some("name another: runs that are stored are not written over".to_owned())
            }
            StoreError::Io { .. } | StoreError::Table { .. } => None,
        }
    }

    /// True if the machine is to blame, not the request: the exit code differs.
    pub fn is_environment(&self) -> bool {
        matches!(
            self,
            StoreError::Io { .. } | StoreError::Kept { .. } | StoreError::Locked { .. }
        )
    }
}
