//! Whose socket it is: sockets have inodes, and `/proc` says which process holds which. Only root
//! can look into processes of other users.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process identifier.
    pub pid: u32,
    /// Name of its command, as in `/proc/PID/comm`.
    pub name: String,
}

/// Processes by the inode of a socket.
pub fn by_inode() -> HashMap<u32, Process> {
    let mut found = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        // It may have ended since, or be somebody else's.
        let Ok(files) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let mut name = None;
        for file in files.flatten() {
            if let Some(inode) = fs::read_link(file.path()).ok().and_then(|to| inode(&to)) {
                let name = name.get_or_insert_with(|| comm(&entry.path()));
                let name = name.clone();
                found.entry(inode).or_insert(Process { pid, name });
            }
        }
    }
    found
}

/// 12345 of the link `socket:[12345]`.
fn inode(link: &Path) -> Option<u32> {
    let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

fn comm(process: &Path) -> String {
    // Anybody may name a process, with any bytes: nothing that steers a terminal.
    let name = fs::read(process.join("comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    let clean = |c: char| if c.is_control() { '?' } else { c };
    name.trim_end().chars().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_of_a_socket_stands_in_its_link() {
        assert_eq!(inode(Path::new("socket:[12345]")), Some(12_345));
        for other in ["pipe:[12]", "/dev/null", "socket:[x]", "socket:[1"] {
            assert_eq!(inode(Path::new(other)), None);
        }
    }

    #[test]
    fn a_name_of_any_bytes_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("comm"), b"\xff\x1b[2J x\n").unwrap();
        assert_eq!(comm(folder.path()), "\u{fffd}?[2J x");
    }
}
