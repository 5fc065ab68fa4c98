//! How many files this program may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Takes as many as the system lets it have: a copy holds one for each directory that it writes to,
/// and the limit that a shell gives to begin with, mostly 1024, is there for programs that use
/// `select`.
pub fn as_many_as_allowed() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Without it, copies of more directories are refused with a message.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(MOST), hard);
    }
}

/// Descriptors that are of use: 16 tests, a copy of 4096 directories each.
const MOST: u64 = 1 << 16;
