//! A run in a guest: a user-mode kernel in virtual time, from its files to its records.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use crate::error::LinuxError;
use crate::plan::{Plan, class_file};
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
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let dir = tempfile::Builder::new().prefix(&prefix).tempdir();
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
    for (class, text) in plan.classes.iter().enumerate() {
        let path = dir.path().join(class_file(class));
        fs::write(&path, text).map_err(LinuxError::io(&path))?;
    }
    let mut guest = Guest::start(product, dir.path(), seed)?;
    let ended = guest.wait(dir.path(), interrupt);
    drop(guest);
    let read = |name: &str| fs::read(dir.path().join(name));
    let why = match ended {
        Ok(()) if read("done").is_ok() => {
            let path = dir.path().join("records");
            return fs::read(&path).map_err(LinuxError::io(&path));
        }
        Ok(()) => {
            let log = read("log").unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            match without_room(&log, &memory_dir(|name| std::env::var_os(name))) {
                Some(error) => return Err(error),
                None => last_words(&log),
            }
        }
        Err(LinuxError::Guest(why)) => why,
        Err(other) => return Err(other),
    };
    // What it was asked and all it said, for whoever looks into it; a name that is not swept.
    let mut kept = dir.keep();
    let name = kept.file_name().unwrap_or_default().to_string_lossy();
    let other = kept.with_file_name(name.replacen(PREFIX, KEPT_PREFIX, 1));
    if fs::rename(&kept, &other).is_ok() {
        kept = other;
    }
    let kept = kept.display();
    let why = format!("{why}; see {kept}/log");
    Err(match &product.module {
        Some(module) => LinuxError::OwnModule {
            module: module.clone(),
            why,
        },
        None => LinuxError::Guest(why),
    })
}

/// Directories of runs in the system's directory for temporary files; the number of the process
/// follows.
const PREFIX: &str = "fullpipe-linux-";
/// Directories of runs that failed.
const KEPT_PREFIX: &str = "fullpipe-linux-failed-";

/// Removes what runs of processes that were killed have left behind.
pub fn sweep() {
    let entries = fs::read_dir(std::env::temp_dir());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(PREFIX);
        let pid = rest.and_then(|r| r.split_once('-')?.0.parse::<i32>().ok());
        let Some(pid) = pid else { continue };
        // Signal 0 asks whether there is such a process.
        if kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Where a user-mode kernel has its memory: `choose_tempdir` in `arch/um/os-Linux/mem.c`.
fn memory_dir(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let mut named = ["TMPDIR", "TMP", "TEMP"].into_iter().filter_map(variable);
    match named.find(|dir| !dir.is_empty()) {
        Some(dir) => dir.into(),
        None if Path::new(SHARED).is_dir() => SHARED.into(),
        None => "/tmp".into(),
    }
}

const SHARED: &str = "/dev/shm";

/// The error if the kernel ended because its memory found no room in `dir`. It is not told: the
/// page it touches is not there (SIGBUS), or it dies before it can say so.
fn without_room(log: &str, dir: &Path) -> Option<LinuxError> {
    let told = log.contains("panic") || log.contains("guest:");
    if told && !log.contains("Kernel mode signal 7") {
        return None;
    }
    let disk = statvfs(dir).ok()?;
    let free = disk.blocks_available() * disk.fragment_size() / 1_000_000;
    let dir = dir.to_owned();
    (free < MEMORY_MB).then_some(LinuxError::NoMemory { dir, free })
}

/// What the kernel and its guest said before they ended.
fn last_words(log: &str) -> String {
    let telling = |l: &&str| {
        [
            "fullpipe",
            "guest:",
            "panic",
            "Error",
            "Cannot",
            "RTNETLINK",
            "TCP: ",
        ]
        .iter()
        .any(|w| l.contains(w))
            && !l.trim_start().starts_with("[<")
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
    /// Seconds of processor time that it may take without progress.
    limit: u64,
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
        let limit = match product.module {
            Some(_) => BUSY_LIMIT_OF_A_MODULE,
            None => BUSY_LIMIT,
        };
        Ok(Self {
            child,
            limit,
            _processor: processor,
        })
    }

    /// Until it is over; an error if it makes no progress in its own time.
    fn wait(&mut self, dir: &Path, interrupt: &AtomicBool) -> Result<(), LinuxError> {
        let mut pause = Duration::from_millis(5);
        let mut progress = Progress::new(dir, self.child.id(), self.limit);
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
                None => progress.check()?,
            }
            #[allow(clippy::disallowed_methods)] // The kernel is a process of this machine.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// Whether a kernel's own time goes on: its guest writes it to a file twenty times a second.
struct Progress {
    file: PathBuf,
    process: PathBuf,
    last: Vec<u8>,
    limit: u64,
    /// Processor time and pauses when it was seen to go on.
    ticks: u64,
    pauses: u32,
}

impl Progress {
    fn new(dir: &Path, pid: u32, limit: u64) -> Self {
        Self {
            file: dir.join("time"),
            process: PathBuf::from(format!("/proc/{pid}/stat")),
            last: Vec::new(),
            limit,
            ticks: 0,
            pauses: 0,
        }
    }

    fn check(&mut self) -> Result<(), LinuxError> {
        self.pauses += 1;
        // Once a second is enough.
        if !self.pauses.is_multiple_of(20) {
            return Ok(());
        }
        let now = fs::read(&self.file).unwrap_or_default();
        let ticks = self.processor_ticks();
        if now != self.last || self.pauses == 20 {
            (self.last, self.ticks, self.pauses) = (now, ticks, 20);
            return Ok(());
        }
        let used = ticks.saturating_sub(self.ticks) / TICKS_PER_SECOND;
        if used < self.limit && self.pauses / 20 < IDLE_LIMIT {
            return Ok(());
        }
        let at = String::from_utf8_lossy(&self.last);
        let at = at.trim().parse::<u64>().map_or(0.0, |ns| ns as f64 / 1e9);
        Err(LinuxError::Guest(format!(
            "its time stands still at {at:.2} s, after {used} s of processor time: it loops, or \
             waits for ever"
        )))
    }

    /// Those of the kernel (proc(5): fields 14 and 15 of `stat`, the name in brackets before).
    fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(&self.process).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let fields = fields.split_whitespace().skip(11).take(2);
        fields.filter_map(|f| f.parse::<u64>().ok()).sum()
    }
}

/// `USER_HZ`, the same on every architecture of today.
const TICKS_PER_SECOND: u64 = 100;
/// Seconds of processor time for a twentieth of a second in the kernel: a hundred times what the
/// fastest path and the most flows take.
const BUSY_LIMIT: u64 = 60;
/// The same where somebody tries a module of their own: a loop is likelier than 256 flows.
const BUSY_LIMIT_OF_A_MODULE: u64 = 15;
/// Seconds on the clock, about, for the same.
const IDLE_LIMIT: u32 = 900;

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
/// The same, MB.
const MEMORY_MB: u64 = 1573;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_where_the_kernel_looks_for_room() {
        let of = |set: &[(&str, &str)]| {
            let found = |name: &str| set.iter().find(|(n, _)| *n == name);
            memory_dir(|name| found(name).map(|(_, dir)| dir.into()))
        };
        let set = [("TMPDIR", ""), ("TMP", "/one"), ("TEMP", "/two")];
        assert_eq!(of(&set), Path::new("/one"));
        assert!(of(&[]) == Path::new(SHARED) || of(&[]) == Path::new("/tmp"));
    }

    /// `/proc` has no room at all.
    #[test]
    fn a_kernel_without_room_for_its_memory_is_told_from_one_that_panics() {
        let without = |log: &str| without_room(log, Path::new("/proc"));
        let error = without("Kernel panic - not syncing: Kernel mode signal 7").unwrap();
        assert!(error.to_string().contains("/proc has 0 MB"), "{error}");
        assert!(error.hint().contains("TMPDIR"), "{}", error.hint());
        assert!(without("Linux version 6.1").is_some());
        assert!(without("Kernel panic - not syncing: Segfault with no mm").is_none());
        assert!(without("guest: the kernel knows no congestion module").is_none());
    }
}
