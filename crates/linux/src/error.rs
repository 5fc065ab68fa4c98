//! What can go wrong between a specification and a run of the kernel.

use std::io;
use std::path::{Path, PathBuf};

use fullpipe_run::GroundError;

/// Why there is no kernel, or no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinuxError {
    /// The file system.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// No kernel has been built.
    #[error("there is no user-mode kernel {wanted} yet")]
    NotBuilt {
        /// Version.
        wanted: String,
    },
    /// The kernel there was built by another version of the program.
    #[error("the user-mode kernel {wanted} was built by another version of fullpipe")]
    Stale {
        /// Version.
        wanted: String,
    },
    /// Programs that a build or a run needs.
    #[error("missing: {}", missing.join(", "))]
    Missing {
        /// Programs and files.
        missing: Vec<String>,
        /// Debian packages that bring it.
        packages: Vec<&'static str>,
    },
    /// The tree is not one that the patches know.
    #[error("{file} of this kernel is not what fullpipe's patch expects")]
    Patch {
        /// File of the kernel.
        file: &'static str,
    },
    /// A step of the build failed.
    #[error("{what} failed, see {log}")]
    Build {
        /// Step.
        what: &'static str,
        /// Output of the tools.
        log: PathBuf,
    },
    /// The user's congestion module.
    #[error("{path}: {why}")]
    Module {
        /// The C file.
        path: PathBuf,
        /// Why none can be made of it: the name that it registers is missing or unfit.
        why: String,
    },
    /// What the kernel cannot do, by the key of the scenario.
    #[error("{what}")]
    Unable {
        /// What, with the key.
        what: String,
        /// A scenario that it can run.
        hint: String,
    },
    /// The guest ended without a result.
    #[error("the kernel ended without a result: {0}")]
    Guest(String),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl LinuxError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn unable(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unable {
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotBuilt { wanted } | Self::Stale { wanted } => how_to_build(wanted),
            Self::Missing { packages, .. } => {
                format!("Debian and Ubuntu: apt-get install {}", packages.join(" "))
            }
            Self::Patch { .. } => "known to work: Linux 6.1 and 6.12".to_owned(),
            Self::Unable { hint, .. } => hint.clone(),
            Self::Module { .. } => {
                "a module is a C file as in the kernel's net/ipv4/, with a struct \
                tcp_congestion_ops and its `.name`"
                    .to_owned()
            }
            Self::Io { path, .. } => format!("is `{}` there, and may it be read?", path.display()),
            _ => "`--ground sim` runs the same file in the simulator".to_owned(),
        }
    }
}

/// The command that builds the kernel called `name`: a version, or whatever a user called it.
fn how_to_build(name: &str) -> String {
    match name.chars().all(|c| c.is_ascii_digit() || c == '.') {
        true => format!("build it with `fullpipe linux build --version {name}`"),
        false => format!(
            "build it with `fullpipe linux build --name {name}` and the `--version`, or \
             `--source`, and the `--hz` that it shall have"
        ),
    }
}

impl From<LinuxError> for GroundError {
    fn from(error: LinuxError) -> Self {
        let hint = error.hint();
        match error {
            LinuxError::Unable { what, hint } => Self::Unable { what, hint },
            LinuxError::Interrupted => Self::Interrupted,
            other => Self::Environment {
                what: other.to_string(),
                hint,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_build_versions_by_version_and_others_by_name() {
        let hint = |wanted: &str| {
            let wanted = wanted.to_owned();
            LinuxError::NotBuilt { wanted }.hint()
        };
        assert!(hint("6.12").ends_with("`fullpipe linux build --version 6.12`"));
        let named = hint("6.1-hz1000");
        assert!(named.contains("--name 6.1-hz1000` and"), "{named}");
    }
}
