//! By which right namespaces are made: as root, or in a user namespace, where this process is root
//! over what it makes and over nothing else.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// The right by which namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
    Root,
    /// A user namespace of this process.
    UserNamespace,
}

/// Bits of `CapEff` in `/proc/self/status` (capabilities(7)).
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;

impl Privilege {
    /// Takes what is there: this process enters a user namespace if it must. To be called before
    /// the first thread.
    ///
    /// # Errors
    /// Neither right is to be had.
    pub fn take() -> io::Result<Self> {
        let both = NET_ADMIN | SYS_ADMIN;
        if capabilities() & both == both {
            return Ok(Self::Root);
        }
        let (user, group) = (geteuid(), getegid());
        unshare(CloneFlags::CLONE_NEWUSER)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
        Ok(Self::UserNamespace)
    }

    /// For a sentence about a run.
    pub fn word(self) -> &'static str {
        match self {
            Self::Root => "as root",
            Self::UserNamespace => "in a user namespace",
        }
    }
}

fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let bits = line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
    bits.unwrap_or(0)
}
