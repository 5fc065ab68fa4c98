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
    /// Not empty, and not one of ours.
    #[error("`{}` is not empty and holds no result", dir.display())]
    Foreign {
        /// Directory.
        dir: PathBuf,
    },
    /// Holds the result of something else.
    #[error("`{}` holds another result: scenario `{scenario}`", dir.display())]
    OtherResult {
        /// Directory.
        dir: PathBuf,
        /// Scenario of the result.
        scenario: String,
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
        /// What does not match.
        why: String,
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

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space, then continue with `--resume`".to_owned())
            }
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("choose a directory you may write to with `--out`".to_owned())
            }
            StoreError::Foreign { .. } | StoreError::OtherResult { .. } => Some(
                "choose another directory with `--out`, or remove this one yourself".to_owned(),
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
            StoreError::Io { .. } | StoreError::Table { .. } => None,
        }
    }

    /// True if the machine is to blame, not the request: the exit code differs.
    pub fn is_environment(&self) -> bool {
        matches!(self, StoreError::Io { .. } | StoreError::Locked { .. })
    }
}
