//! Whether stdout was closed when the program began (`>&-`). Rust's runtime puts /dev/null there
//! before `main`, where every write then succeeds: whoever closed it by mistake would lose the
//! output and be told that all is well. The look is taken before the runtime's, by a constructor of
//! the program.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a write to it would have said.
///
/// # Errors
/// If it was closed.
pub fn is_open() -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(nix::errno::Errno::EBADF.into()),
        false => Ok(()),
    }
}

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before the runtime and must not need it: one system call, and no memory.
#[cfg(target_os = "linux")]
extern "C" fn look() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    CLOSED.store(flags.is_err(), Ordering::Relaxed);
}

// A section of the linker is where the C runtime looks for constructors; that one of them is put
// there is what the compiler calls unsafe of this.
#[cfg(target_os = "linux")]
#[used]
#[allow(unsafe_code)]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
