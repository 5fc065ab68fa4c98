//! What can go wrong between a specification and a run of the kernel.

use std::io;
use std::path::{Path, PathBuf};

use fullpipe_run::{FlowSpec, GroundError};

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
        packages: Vec<String>,
    },
    /// A directory that a kernel is to be built from, and cannot.
    #[error("{path} is not a kernel's source tree: it has no {absent}")]
    NoTree {
        /// The directory.
        path: PathBuf,
        /// A file or directory of every kernel tree that runs in user mode.
        absent: &'static str,
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
    #[error("`{key}`: {what}")]
    Unable {
        /// Dotted: `flow.main.tlp`.
        key: String,
        /// The value or the combination that it has no means for.
        what: String,
        /// A scenario that it can run.
        hint: Option<String>,
        /// What the user can do where the kernel is the user's own to build, as on this ground.
        own_kernel: Option<String>,
    },
    /// The guest ended without a result.
    #[error("the kernel ended without a result: {0}")]
    Guest(String),
    /// The guest's memory found no room.
    #[error("the kernel's memory had no room: {dir} has {free} MB")]
    NoMemory {
        /// Where a user-mode kernel keeps its memory.
        dir: PathBuf,
        /// Room after the guest has ended, MB.
        free: u64,
    },
    /// The guest of a kernel with the user's own module ended without a result.
    #[error("the kernel with your module `{module}` ended without a result: {why}")]
    OwnModule {
        /// The module's name.
        module: String,
        /// The kernel's last words, and where the rest of them is.
        why: String,
    },
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl LinuxError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// About a key of a flow, or of traffic.
    pub(crate) fn unable(
        f: &FlowSpec,
        key: &str,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::unable_to(format!("{}.{key}", f.name), what, hint)
    }

    /// About this key, dotted.
    pub(crate) fn unable_to(
        key: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Unable {
            key: key.into(),
            what: what.into(),
            hint: Some(hint.into()),
            own_kernel: None,
        }
    }

    /// The same with what the user can do to this ground's kernel.
    pub(crate) fn or_with_own_kernel(mut self, how: impl Into<String>) -> Self {
        if let Self::Unable { own_kernel, .. } = &mut self {
            *own_kernel = Some(how.into());
        }
        self
    }

    /// The same to the running kernel, which is what it is: what can be done to a kernel of the
    /// user's own is done on ground linux.
    #[must_use]
    pub fn of_running_kernel(mut self) -> Self {
        if let Self::Unable {
            own_kernel: Some(how),
            ..
        } = &mut self
        {
            *how = format!("with --ground linux {how}");
        }
        self
    }

    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotBuilt { wanted } | Self::Stale { wanted } => how_to_build(wanted),
            Self::Missing { packages, .. } => {
                format!("Debian and Ubuntu: apt-get install {}", packages.join(" "))
            }
            Self::NoTree { .. } => {
                "name the directory that has `Makefile`, `arch/um` and `net/ipv4`, or an archive \
                 of it"
                    .to_owned()
            }
            Self::Build { .. } => {
                "its last lines say why; known to work: Linux 6.1 and 6.12".to_owned()
            }
            Self::NoMemory { .. } => "a run may take 1.6 GB there: make room, or set TMPDIR to a \
                 directory that has it"
                .to_owned(),
            Self::Patch { .. } => "known to work: Linux 6.1 and 6.12".to_owned(),
            Self::Unable {
                hint, own_kernel, ..
            } => {
                let both: Vec<&str> = hint.iter().chain(own_kernel).map(String::as_str).collect();
                both.join("; or ")
            }
            Self::Module { .. } => {
                "a module is a C file as in the kernel's net/ipv4/, with a struct \
                tcp_congestion_ops and its `.name`; functions of a module that the kernel has too \
                are `static`, or have names of their own"
                    .to_owned()
            }
            Self::OwnModule { module, .. } => format!(
                "mend `{module}`: a registered module has at least `.ssthresh`, `.undo_cwnd` and \
                 `.cong_avoid` or `.cong_control`, waits for nothing and may be called at any \
                 ACK; without `--kernel-module` the kernel's own modules run"
            ),
            Self::Io { path, source } if source.kind() == io::ErrorKind::StorageFull => {
                format!(
                    "make room there: a kernel takes 1.4 GB, a run some MB; `{}`",
                    path.display()
                )
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
            LinuxError::Unable { key, what, .. } => Self::Unable {
                key: Some(key),
                what,
                hint,
            },
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
