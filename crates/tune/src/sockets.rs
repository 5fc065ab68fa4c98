//! Sockets of other processes, through copies of their descriptors (pidfd_getfd(2)): what no BPF
//! program may set. Takes CAP_SYS_PTRACE where the process is another user's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// Buffers of a flow as they were before, when the kernel tuned them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// Number of its file, by which `/proc/PID/fd` names it.
    pub inode: u64,
    /// `sk_sndbuf`; `None`: it is not touched.
    pub send: Option<u32>,
    /// `sk_rcvbuf`; `None`: it is not touched.
    pub receive: Option<u32>,
}

mod option {
    // The macro calls others by their bare names.
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Which sizes of buffers the kernel does not tune (Linux 5.14).
        BufLock,
        Both,
        libc::SOL_SOCKET,
        libc::SO_BUF_LOCK,
        u32
    );
}

/// Sets sizes, beyond `wmem_max` and `rmem_max` too, and has the kernel tune them again. An answer
/// for each.
pub fn resize(sizes: &[Resize]) -> Vec<io::Result<()>> {
    let holders = match sizes.is_empty() {
        true => BTreeMap::new(),
        false => holders(),
    };
    let one = |size: &Resize| {
        let none = || io::Error::new(io::ErrorKind::NotFound, "no process has the socket");
        let &(pid, fd) = holders.get(&size.inode).ok_or_else(none)?;
        let socket = copy(pid, fd)?;
        if rustix::net::sockopt::socket_cookie(&socket)? != size.cookie {
            return Err(none());
        }
        let mut locks = getsockopt(&socket, option::BufLock)?;
        if let Some(bytes) = size.send {
            setsockopt(&socket, sockopt::SndBufForce, &(bytes as usize / 2))?;
            locks &= !1;
        }
        if let Some(bytes) = size.receive {
            setsockopt(&socket, sockopt::RcvBufForce, &(bytes as usize / 2))?;
            locks &= !2;
        }
        Ok(setsockopt(&socket, option::BufLock, &locks)?)
    };
    sizes.iter().map(one).collect()
}

fn copy(pid: i32, fd: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(pidfd_getfd(&process, fd, PidfdGetfdFlags::empty())?)
}

/// A process, and its descriptor, of each socket, by the inode of its file.
fn holders() -> BTreeMap<u64, (i32, i32)> {
    let mut found = BTreeMap::new();
    for (pid, folder) in processes() {
        for fd in fs::read_dir(folder.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let number = fd.file_name().to_str().and_then(|n| n.parse().ok());
            let inode = fs::read_link(fd.path())
                .ok()
                .and_then(|to| socket(to.to_str()?));
            if let (Some(inode), Some(number)) = (inode, number) {
                found.entry(inode).or_insert((pid, number));
            }
        }
    }
    found
}

/// Name of the process (`comm`) that has each socket, by the inode of its file.
pub fn owners() -> BTreeMap<u64, String> {
    let mut names: BTreeMap<i32, Option<String>> = BTreeMap::new();
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let named = holders().into_iter().filter_map(|(inode, (pid, _))| {
        let comm = names.entry(pid).or_insert_with(|| name(pid)).clone()?;
        Some((inode, comm.trim_end_matches('\n').to_owned()))
    });
    named.collect()
}

fn processes() -> impl Iterator<Item = (i32, std::path::PathBuf)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
}

fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}
