//! Network namespaces of this host: those of its processes, those with a name (ip-netns(8)), and
//! others that the caller holds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::sched::{CloneFlags, setns};
use nix::sys::stat::fstat;

/// Network namespaces that the tuner looks into.
#[derive(Debug, Default)]
pub enum Scope {
    /// The one that this process is in.
    Own,
    /// All that can be found.
    #[default]
    All,
    /// These.
    Some(Vec<OwnedFd>),
}

impl Scope {
    /// The same once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Scope::Own => Scope::Own,
            Scope::All => Scope::All,
            Scope::Some(these) => {
                let copies = these.iter().map(OwnedFd::try_clone);
                Scope::Some(copies.collect::<io::Result<_>>()?)
            }
        })
    }

    /// Inode and file of each.
    ///
    /// # Errors
    /// The own one cannot be opened.
    pub fn open(&self) -> io::Result<BTreeMap<u64, OwnedFd>> {
        let mut found = BTreeMap::new();
        let mut add = |file: File| -> io::Result<()> {
            found.entry(file.metadata()?.ino()).or_insert(file.into());
            Ok(())
        };
        match self {
            Scope::Own => add(File::open(OWN)?)?,
            Scope::Some(these) => {
                for fd in these {
                    add(File::from(fd.try_clone()?))?;
                }
            }
            Scope::All => {
                add(File::open(OWN)?)?;
                for path in candidates() {
                    // Processes end, and some are not ours to look at.
                    if let Ok(file) = File::open(path) {
                        add(file)?;
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Whether this thread may go into other namespaces and come back (CAP_SYS_ADMIN).
pub fn others_are_in_reach() -> bool {
    // Into its own it takes the same privilege.
    File::open(OWN).is_ok_and(|own| setns(own, CloneFlags::CLONE_NEWNET).is_ok())
}

/// This thread's.
pub(crate) const OWN: &str = "/proc/thread-self/ns/net";

fn candidates() -> Vec<PathBuf> {
    let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes()[0].is_ascii_digit();
    let processes = entries("/proc").filter(|e| is_process(&e.file_name()));
    let processes = processes.map(|e| e.path().join("ns/net"));
    processes
        .chain(entries("/run/netns").map(|e| e.path()))
        .collect()
}

/// Runs `f` with this thread in the namespace, and brings it back. That takes CAP_SYS_ADMIN, unless
/// the thread is there already.
///
/// # Errors
/// The namespace may not be entered; or those of `f`.
pub fn within<T>(namespace: &OwnedFd, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = File::open(OWN)?;
    if fstat(namespace)?.st_ino == own.metadata()?.ino() {
        return f();
    }
    setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
    let done = f();
    setns(own, CloneFlags::CLONE_NEWNET)?;
    done
}

/// The algorithm that flows of this thread's namespace get by themselves.
pub fn default_algorithm() -> String {
    let file = "/proc/sys/net/ipv4/tcp_congestion_control";
    fs::read_to_string(file).map_or_else(|_| "cubic".to_owned(), |s| s.trim().to_owned())
}
