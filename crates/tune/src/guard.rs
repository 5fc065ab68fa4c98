//! A small process beside the daemon. Flows that run an algorithm of the kernel's own call no
//! program of ours: when the daemon is killed or hangs, nothing in the kernel notices. The guard
//! reads the daemon's signs of life from a pipe and, when they stop, gives those flows back by the
//! journal.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bpf::{Bpf, Load};
use crate::journal::Journal;
use crate::kernel::{Kernel, Seen};
use crate::namespaces::Scope;
use crate::state::{DYING, DaemonError, JOURNAL, lock};
use crate::tuner::give_back;

/// The daemon's end.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

/// One byte a sign of life: what is to be done when it is the last.
const GIVE_BACK: u8 = b's';
const KEEP: u8 = b'k';
/// Everything has been given back: there is nothing to do any more.
const DONE: u8 = b'd';

impl Guard {
    /// Starts it, out of reach of the terminal's signals.
    ///
    /// # Errors
    /// There is no such program.
    pub fn begin(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let pipe = child.stdin.take();
        if let Some(pipe) = &pipe {
            // A guard that hangs does not hold up the daemon.
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Self { child, pipe })
    }

    /// A sign of life.
    pub fn beat(&mut self, keep: bool) {
        self.say(if keep { KEEP } else { GIVE_BACK });
    }

    /// Every flow has been given back: it ends without a look at them.
    pub fn dismiss(&mut self) {
        self.say(DONE);
    }

    fn say(&mut self, byte: u8) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write(&[byte]);
        }
    }
}

impl Drop for Guard {
    /// One that was not dismissed gives back what is left, for which it takes the daemon's lock:
    /// whoever drops this must not hold it.
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

/// The guard's process, over the pipe as its input. Lines of what it did go to `log`.
///
/// # Errors
/// [`DaemonError`].
pub fn run(
    state: &Path,
    prefix: &str,
    scope: Scope,
    patience: Duration,
    log: &mut dyn FnMut(&str),
) -> Result<(), DaemonError> {
    let failed = |e: io::Error| DaemonError::Io("the daemon's pipe".to_owned(), e);
    // Beforehand: a busy host takes seconds over it.
    let mut kernel = Bpf::load(Load {
        prefix,
        cgroup: None,
        scope,
        register: false,
    })?;
    let mut pipe = io::stdin();
    let mut bytes = [0; 64];
    let (mut last, mut done) = (GIVE_BACK, false);
    let wait = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    loop {
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut fds, wait).map_err(|e| failed(e.into()))?;
        let read = match ready {
            0 => None,
            _ => Some(pipe.read(&mut bytes).map_err(failed)?),
        };
        match read {
            Some(n) if n > 0 && bytes[n - 1] == DONE => return Ok(()),
            Some(n) if n > 0 => (last, done) = (bytes[n - 1], false),
            // Silence: the daemon hangs, and holds its lock.
            None if last == GIVE_BACK && !done => {
                act(&mut kernel, state, prefix, log)?;
                done = true;
            }
            None => {}
            // It is gone. One that has taken its place gives back what it has left.
            Some(_) if last == KEEP || done => return Ok(()),
            Some(_) => break,
        }
    }
    match lock(state, DYING) {
        Ok(_lock) => act(&mut kernel, state, prefix, log),
        Err(DaemonError::Second(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

fn act(
    kernel: &mut Bpf,
    state: &Path,
    prefix: &str,
    log: &mut dyn FnMut(&str),
) -> Result<(), DaemonError> {
    let mut journal = Journal::open(&state.join(JOURNAL))?;
    if journal.entries().next().is_none() {
        return Ok(());
    }
    let seen = kernel.flows(&[])?;
    // Those of ours run the standard by themselves.
    let theirs = |s: &Seen| !s.listing.algorithm.starts_with(prefix);
    let back = give_back(kernel, &mut journal, prefix, seen, theirs)?;
    for line in back.lines {
        log(&format!("without the daemon: {line}"));
    }
    Ok(back.noted?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_guard_that_is_dismissed_hears_of_it_last() {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        let mut command = Command::new("cat");
        command.stdout(fs::File::create(&heard).unwrap());
        let mut guard = Guard::begin(command).unwrap();
        guard.beat(false);
        guard.beat(true);
        guard.dismiss();
        drop(guard);
        assert_eq!(fs::read(heard).unwrap(), [GIVE_BACK, KEEP, DONE]);
    }
}
