//! [`Waiter`]: sleeps until something is to be done.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::unistd::Pid;

use super::{Clock, Socket};

/// How a thread waits for its next deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WaitStrategy {
    /// Sleeps all the time: some 15 us late on an idle machine.
    #[default]
    Sleep,
    /// Sleeps until shortly before, then asks the clock again and again: late by less than a
    /// microsecond, for a part of a core.
    Spin,
}

/// Ends the loops of other threads. All clones are the same.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    set: AtomicBool,
    wake: EventFd,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// No file descriptors are left.
    pub fn new() -> io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Self {
            shared: Arc::new(Shared {
                set: AtomicBool::new(false),
                wake,
            }),
        })
    }

    /// Now: whoever waits wakes up, and whoever asks is told so.
    pub fn set(&self) {
        self.shared.set.store(true, Ordering::Release);
        // Can fail only because its counter is full, and then it is readable already.
        let _ = self.shared.wake.write(1);
    }

    /// True once a stop was requested.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Acquire)
    }
}

/// Readable once it is set.
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

/// Result of a wait: which socket is ready, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ready {
    /// Bit i: socket i has something to read.
    pub readable: u8,
    /// Bit i: socket i takes datagrams again. Only if asked for.
    pub writable: u8,
    /// The moment was reached.
    pub due: bool,
    /// A stop was requested.
    pub stopped: bool,
}

/// Waits for sockets and moments, on the thread that made it.
#[derive(Debug)]
pub struct Waiter {
    wait: WaitStrategy,
    clock: Clock,
    stop: Stop,
    /// Timer slack is a property of the thread.
    on_this_thread: PhantomData<Rc<()>>,
}

impl Waiter {
    /// Most sockets that it waits for at once.
    pub const SOCKETS: usize = 4;

    /// Has timers of this thread fire when they are due rather than when it suits the kernel.
    ///
    /// # Errors
    /// The kernel is too old.
    pub fn new(wait: WaitStrategy, clock: Clock, stop: Stop) -> io::Result<Self> {
        prctl::set_timerslack(1)?;
        Ok(Self {
            wait,
            clock,
            stop,
            on_this_thread: PhantomData,
        })
    }

    /// The clock that moments are of.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The end that it wakes for.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Waits until one of `sockets` (the first [`Waiter::SOCKETS`] count) is readable, or writable
    /// if `writable`, until the clock reads `until` ([`Time::MAX`]: never), or the end. Returns at
    /// once if the moment has passed, having looked at the sockets.
    ///
    /// # Errors
    /// Those of the system call; not an interruption by a signal, after which the result is empty.
    pub fn wait(&self, sockets: &[&Socket], until: Time, writable: bool) -> io::Result<Ready> {
        let until = self.clock.instant(until);
        let mut now = Instant::now();
        if let (WaitStrategy::Spin, Some(at)) = (self.wait, until) {
            let soon = at.checked_sub(SPIN).unwrap_or(at);
            if soon > now {
                let found = self.poll(sockets, Some(soon - now), writable)?;
                if found.any() {
                    return Ok(found);
                }
            }
            loop {
                let mut found = self.poll(sockets, Some(Duration::ZERO), writable)?;
                found.due = Instant::now() >= at;
                if found.any() || found.due {
                    return Ok(found);
                }
                std::hint::spin_loop();
            }
        }
        loop {
            let rest = until.map(|at| at.saturating_duration_since(now));
            let mut found = self.poll(sockets, rest, writable)?;
            now = Instant::now();
            found.due = until.is_some_and(|at| now >= at);
            // Timers may fire a little early.
            if found.any() || found.due || until.is_none() {
                return Ok(found);
            }
        }
    }

    fn poll(
        &self,
        sockets: &[&Socket],
        timeout: Option<Duration>,
        writable: bool,
    ) -> io::Result<Ready> {
        let wanted = if writable {
            PollFlags::POLLIN | PollFlags::POLLOUT
        } else {
            PollFlags::POLLIN
        };
        let mut polled: [PollFd<'_>; Self::SOCKETS + 1] =
            std::array::from_fn(|i| match i.checked_sub(1).and_then(|i| sockets.get(i)) {
                Some(socket) => PollFd::new(socket.as_fd(), wanted),
                None => PollFd::new(self.stop.shared.wake.as_fd(), PollFlags::POLLIN),
            });
        let count = 1 + sockets.len().min(Self::SOCKETS);
        match ppoll(&mut polled[..count], timeout.map(Into::into), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let mut found = Ready {
            stopped: self.stop.is_set(),
            ..Ready::default()
        };
        for (i, polled) in polled[1..count].iter().enumerate() {
            let events = polled.revents().unwrap_or(PollFlags::empty());
            // An answer of the network waits as an error: a receive takes it away.
            let read = PollFlags::POLLIN | PollFlags::POLLERR;
            found.readable |= u8::from(events.intersects(read)) << i;
            found.writable |= u8::from(events.contains(PollFlags::POLLOUT)) << i;
        }
        Ok(found)
    }
}

impl Ready {
    /// Whether there is anything to do besides what is due.
    fn any(&self) -> bool {
        self.stopped || self.readable != 0 || self.writable != 0
    }
}

/// Keeps this thread on one processor.
///
/// # Errors
/// There is no such processor, or this process may not use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// How long before the moment spinning begins: longer than a timer is late unless the machine is
/// overloaded.
const SPIN: Duration = Duration::from_micros(60);
