//! A run in a guest: a user-mode kernel in virtual time, from its files to its records.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::LinuxError;
use crate::plan::Plan;
use crate::product::Product;

/// Runs a plan and returns the records it left.
///
/// # Errors
/// [`LinuxError::Guest`] with the kernel's last words, [`LinuxError::Interrupted`].
pub fn run(
    product: &Product,
    plan: &Plan,
    seed: u64,
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, LinuxError> {
    let dir = tempfile::Builder::new().prefix("fullpipe-linux-").tempdir();
    let dir = dir.map_err(LinuxError::io(&std::env::temp_dir()))?;
    let files = [
        ("net", &plan.net),
        ("ip0", &plan.ip[0]),
        ("ip1", &plan.ip[1]),
        ("tc", &plan.tc),
        ("sysctl", &plan.sysctl),
        ("apps", &plan.apps),
    ];
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::write(&path, text).map_err(LinuxError::io(&path))?;
    }
    let mut guest = Guest::start(product, dir.path(), seed)?;
    guest.wait(interrupt)?;
    let read = |name: &str| fs::read(dir.path().join(name));
    if read("done").is_err() {
        let log = read("log").unwrap_or_default();
        let why = last_words(&String::from_utf8_lossy(&log));
        // What it was asked and all it said, for whoever looks into it.
        let kept = dir.keep();
        return Err(LinuxError::Guest(format!("{why}; see {}", kept.display())));
    }
    let path = dir.path().join("records");
    fs::read(&path).map_err(LinuxError::io(&path))
}

/// What the kernel and its guest said before they ended.
fn last_words(log: &str) -> String {
    let telling = |l: &&str| {
        ["fullpipe", "guest:", "panic", "Error", "Cannot"]
            .iter()
            .any(|w| l.contains(w))
    };
    let mut lines: Vec<&str> = log.lines().filter(telling).collect();
    if lines.is_empty() {
        lines = log.lines().rev().take(3).collect();
        lines.reverse();
    }
    lines.truncate(5);
    match lines.is_empty() {
        true => "it said nothing".to_owned(),
        false => lines.join("; "),
    }
}

/// A running kernel and its processes, in a process group of their own. They end when this is
/// dropped, and when the thread that started them ends.
struct Guest {
    child: Child,
    _processor: Processor,
}

impl Guest {
    fn start(product: &Product, dir: &Path, seed: u64) -> Result<Self, LinuxError> {
        let log = dir.join("log");
        let out = fs::File::create(&log).map_err(LinuxError::io(&log))?;
        let errors = out.try_clone().map_err(LinuxError::io(&log))?;
        let kernel = product.kernel();
        let processor = Processor::take();
        let child = Command::new(&kernel)
            .arg(format!("mem={MEMORY}"))
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
            .arg(format!("init={}", product.guest().display()))
            .arg(format!("OUT={}", dir.display()))
            .arg(format!("uml_dir={}", dir.join("uml").display()))
            .arg(format!("detrand={seed}"))
            .args(["con0=null,fd:1", "con=null", "quiet"])
            .arg("time-travel=inf-cpu")
            .env("HOME", dir)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn();
        processor.release_own();
        let child = child.map_err(LinuxError::io(&kernel))?;
        Ok(Self {
            child,
            _processor: processor,
        })
    }

    fn wait(&mut self, interrupt: &AtomicBool) -> Result<(), LinuxError> {
        let mut pause = Duration::from_millis(5);
        loop {
            let over = self.child.try_wait();
            match over.map_err(LinuxError::io(Path::new("the kernel's process")))? {
                Some(status) => {
                    return match status.signal() {
                        // Someone ended it; a panic of the kernel is an abort.
                        Some(9 | 15) => Err(LinuxError::Interrupted),
                        _ => Ok(()),
                    };
                }
                None if interrupt.load(Ordering::Relaxed) => return Err(LinuxError::Interrupted),
                None => {}
            }
            #[allow(clippy::disallowed_methods)] // The kernel is a process of this machine.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // One process of this machine for each process of the guest: the whole group. A pid fits.
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// Guest memory; only what is used is taken.
const MEMORY: &str = "1500M";

/// One processor for a kernel: it and its processes hand over to each other hundreds of thousands
/// of times, which across two processors takes most of the time.
struct Processor {
    number: Option<usize>,
    before: Option<CpuSet>,
}

/// Kernels on each processor.
static BUSY: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Processor {
    /// Moves this thread to the processor with the fewest kernels; its children begin there.
    fn take() -> Self {
        let myself = Pid::from_raw(0);
        let before = sched_getaffinity(myself).ok();
        let mut busy = BUSY.lock().unwrap_or_else(|e| e.into_inner());
        busy.resize(CpuSet::count(), 0);
        let allowed = |n: &usize| {
            before
                .as_ref()
                .is_some_and(|set| set.is_set(*n).unwrap_or(false))
        };
        // From the last one down: the first one serves interrupts.
        let best = (0..CpuSet::count())
            .filter(allowed)
            .min_by_key(|n| (busy[*n], usize::MAX - *n));
        if let Some(n) = best {
            let mut one = CpuSet::new();
            if one.set(n).is_ok() && sched_setaffinity(myself, &one).is_ok() {
                busy[n] += 1;
                return Self {
                    number: Some(n),
                    before,
                };
            }
        }
        Self {
            number: None,
            before: None,
        }
    }

    /// This thread goes where it was before.
    fn release_own(&self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        if let Some(n) = self.number {
            let mut busy = BUSY.lock().unwrap_or_else(|e| e.into_inner());
            busy[n] = busy[n].saturating_sub(1);
        }
    }
}
