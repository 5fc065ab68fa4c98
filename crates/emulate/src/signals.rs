//! Waiting for processes and for the user, on the main thread.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
pub use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::household::Member;

/// Signals that are read instead of ending the program. Made before any thread, so that none of
/// them is ended either; processes of the run begin with the usual ones.
#[derive(Debug)]
pub struct Signals {
    read: SignalFd,
}

/// The first of three things that may end [`Signals::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process.
    Process(ExitStatus),
    /// A signal that is for this program.
    Stopped(Signal),
    /// The time.
    Time,
}

impl Signals {
    /// From now on.
    ///
    /// # Errors
    /// No file descriptors are left.
    pub fn block() -> io::Result<Self> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGCHLD,
        ] {
            set.add(signal);
        }
        set.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let read = SignalFd::with_flags(&set, flags)?;
        Ok(Self { read })
    }

    /// Does something that takes its time while no process of the run is there: a signal ends the
    /// program at once, Ctrl-C too, with the exit code that a shell reports.
    pub fn ending<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(Some(signal)) = self.read.read_signal()
                        && signal.ssi_signo != Signal::SIGCHLD as u32
                    {
                        // The kernel takes back what the run has, however it ends.
                        std::process::exit(128 + signal.ssi_signo as i32);
                    }
                    let mut polled = [PollFd::new(self.read.as_fd(), PollFlags::POLLIN)];
                    let _ = poll(&mut polled, GLANCE);
                }
            });
            let _over = Over(&is_over);
            work()
        })
    }

    /// Until `process` ends, `after` has passed, or somebody ends this program. Ctrl-C is for the
    /// process in the foreground, which the terminal sends it, too.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn wait(&self, process: &mut Member, after: Duration) -> io::Result<Ended> {
        let until = Instant::now() + after;
        loop {
            if let Some(status) = process.ended()? {
                return Ok(Ended::Process(status));
            }
            while let Some(signal) = self.read.read_signal()? {
                let of_terminal = signal.ssi_code > 0;
                let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
                let signal = Signal::try_from(number)?;
                let for_us = match signal {
                    Signal::SIGCHLD => false,
                    Signal::SIGINT | Signal::SIGQUIT => !of_terminal,
                    _ => true,
                };
                if for_us {
                    return Ok(Ended::Stopped(signal));
                }
            }
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(Ended::Time);
            }
            let millis = u16::try_from(rest.as_millis()).unwrap_or(u16::MAX);
            let mut polled = [PollFd::new(self.read.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::from(millis.max(1))) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// Between two looks at whether the work is done, milliseconds.
const GLANCE: u8 = 10;
