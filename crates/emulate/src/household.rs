//! The processes of a run: all in one process namespace, whose first process ends as soon as this
//! program does, and with it, by the kernel's hand, every process in it.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::namespace::HostSide;

/// The processes of a run. Dropped, they are gone.
#[derive(Debug)]
pub struct Household {
    first: Child,
    pids: OwnedFd,
    mounts: OwnedFd,
    /// Dropped before its thread is waited for: it is what the thread waits for.
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// `/proc` shows the run's processes: mounting was allowed.
    pub own_proc: bool,
}

/// A process of a household. Dropped, it is gone: whoever did not wait for it would keep the first
/// process from ending.
#[derive(Debug)]
pub struct Member(Child);

impl Member {
    /// Sends it a signal.
    ///
    /// # Errors
    /// `ESRCH` if it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.0.id()).map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(pid), signal)?)
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the first process is called; no user's program is.
const NAME: &str = "fullpipe-emulate-first-process";

impl Household {
    /// Starts the first process: this program again, under a name of its own.
    ///
    /// # Errors
    /// The system has no process namespaces, or gives none.
    pub fn begin() -> io::Result<Self> {
        let (release, released) = mpsc::channel();
        let (started, start) = mpsc::channel();
        // The kernel ends the first process with the thread that started it: it lives as long.
        let thread = thread::Builder::new()
            .name("household".into())
            .spawn(move || {
                let _ = started.send(first_process());
                let _ = released.recv();
            })?;
        let mut first = start.recv().map_err(io::Error::other)??;
        let mut word = String::new();
        let ready = first.stdout.take().map(BufReader::new);
        let ready = ready.map(|mut out| out.read_line(&mut word)).transpose();
        if word.is_empty() {
            let _ = first.kill();
            let _ = first.wait();
            return Err(io::Error::other("the first process of the run ended"));
        }
        ready?;
        let of = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", first.id()));
        let (pids, mounts) = (of("pid")?.into(), of("mnt")?.into());
        Ok(Self {
            first,
            pids,
            mounts,
            release: Some(release),
            thread: Some(thread),
            own_proc: word.trim() == WITH_PROC,
        })
    }

    /// Starts a process of the run on a host.
    ///
    /// # Errors
    /// There is no such program.
    pub fn spawn(&self, host: &HostSide, mut command: Command) -> io::Result<Member> {
        let (pids, mounts) = (self.pids.try_clone()?, self.mounts.try_clone()?);
        let directory = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        host.enter(move || {
            // A thread that shares its root with others cannot change it.
            unshare(CloneFlags::CLONE_FS)?;
            setns(pids, CloneFlags::CLONE_NEWPID)?;
            setns(mounts, CloneFlags::CLONE_NEWNS)?;
            // A process begins with the mask of the thread that starts it, and this program blocks
            // what it reads ([`Signals`](crate::signals::Signals)). The thread ends here.
            SigSet::empty().thread_set_mask()?;
            command.current_dir(directory).spawn().map(Member)
        })
    }
}

impl Drop for Household {
    fn drop(&mut self) {
        // Its first process reads the end of its input, and all others end with it.
        drop(self.first.stdin.take());
        let _ = self.first.kill();
        let _ = self.first.wait();
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn first_process() -> io::Result<Child> {
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
    Command::new("/proc/self/exe")
        .arg0(NAME)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

const WITH_PROC: &str = "proc";
const WITHOUT_PROC: &str = "no-proc";

/// If this process is the first one of a run: its whole life, and true at its end. A program that
/// emulates calls this before it looks at its arguments.
pub fn is_first_process() -> bool {
    if env::args_os().next().is_none_or(|name| name != NAME) {
        return false;
    }
    // Whoever started this process may be gone already; then the input is at its end, too.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    println!(
        "{}",
        if mount_proc() {
            WITH_PROC
        } else {
            WITHOUT_PROC
        }
    );
    let input = io::stdin();
    loop {
        let mut end = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut end, PollTimeout::from(500u16)) {
            Ok(0) | Err(Errno::EINTR) => reap(),
            _ => return true,
        }
    }
}

/// Processes whose parent has ended are the first process's to wait for.
fn reap() {
    while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
    {
    }
}

/// `/proc` of this process namespace, seen by the run alone.
fn mount_proc() -> bool {
    const NONE: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(NONE, "/", NONE, private, NONE).is_ok()
        && mount(Some("proc"), "/proc", Some("proc"), quiet, NONE).is_ok()
        && fs::exists("/proc/self/stat").unwrap_or(false)
}
