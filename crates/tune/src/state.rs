//! The folder of a daemon: its files, its lock, and what can be wrong with it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::folder;
use crate::journal::JournalError;
use crate::kernel::KernelError;
use crate::tuner::TuneError;

/// What keeps a daemon from starting, or ends it; its text names the file or the remedy.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Everything that is wrong with the policy.
    #[error("{0}")]
    Policy(String),
    /// Another one has the folder.
    #[error("another tuner runs: it holds {}", .0.display())]
    Second(PathBuf),
    /// Another one has another folder, and algorithms of the same prefix: this one.
    #[error("another tuner runs, with another folder: the kernel has its algorithm `{0}`")]
    Elsewhere(String),
    /// The kernel, the policy's size, the journal.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The system.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// Several, of what goes on after the first.
    #[error("{}", labelled(.0))]
    Several(Vec<DaemonError>),
}

impl DaemonError {
    /// One error of all, if there is any.
    pub(crate) fn of(mut all: Vec<Self>) -> Result<(), Self> {
        match all.len() {
            0 => Ok(()),
            1 => Err(all.remove(0)),
            _ => Err(Self::Several(all)),
        }
    }
}

/// Each with its label; whoever prints it labels the first.
fn labelled(all: &[DaemonError]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join("\nerror: ")
}

impl From<KernelError> for DaemonError {
    fn from(error: KernelError) -> Self {
        TuneError::from(error).into()
    }
}

impl From<JournalError> for DaemonError {
    fn from(error: JournalError) -> Self {
        TuneError::from(error).into()
    }
}

/// File of the folder: what flows were given and had before.
pub const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
/// File that lists the objects put on interfaces ([`crate::spread`]).
pub(crate) const QUEUES: &str = "queues";
/// What was measured of paths ([`crate::probing`]), readable by everybody.
pub const MEASURED: &str = "measured";

/// One daemon per folder, whatever became of the one before: the lock ends with its process.
pub(crate) fn lock(state: &Path, patience: Duration) -> Result<Flock<File>, DaemonError> {
    let failed = |e| DaemonError::Io(state.display().to_string(), e);
    folder::own(state).map_err(failed)?;
    let file = state.join(LOCK);
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    let open = options
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(&file)
        .map_err(|e| DaemonError::Io(file.display().to_string(), e))?;
    let begin = Instant::now();
    let mut open = open;
    loop {
        open = match Flock::lock(open, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((open, _)) if begin.elapsed() < patience => open,
            Err(_) => return Err(DaemonError::Second(file)),
        };
        thread::sleep(Duration::from_millis(100));
    }
}

/// How long the guard of a daemon before may hold the lock.
pub(crate) const GUARDED: Duration = Duration::from_secs(2);
/// How long a daemon that was killed holds it: until the kernel has unloaded its programs, which
/// takes a busy host seconds.
pub(crate) const DYING: Duration = Duration::from_secs(20);
