//! How many files this program may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Takes as many as the system lets it have, and returns how many that are: a copy holds one for
/// each directory that it writes to, and the limit that a shell gives to begin with, mostly 1024,
/// is there for programs that use `select`.
pub fn as_many_as_allowed() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 1024;
    };
    let most = hard.min(MOST).max(soft);
    // Without it, copies of more directories are refused with a message.
    match setrlimit(Resource::RLIMIT_NOFILE, most, hard) {
        Ok(()) => most,
        Err(_) => soft,
    }
}

/// How many of these the directories of copies may take at a server of so many tests: not what its
/// sessions and their files need.
pub fn of_directories(all: u64, tests: u32) -> u64 {
    let others = OF_PROGRAM + OF_TEST * u64::from(tests);
    all.saturating_sub(others).max(all / 4)
}

/// Descriptors that are of use: 16 tests, a copy of 4096 directories each.
const MOST: u64 = 1 << 16;
/// Of the program, and of a test and its files.
const OF_PROGRAM: u64 = 64;
const OF_TEST: u64 = 8;
