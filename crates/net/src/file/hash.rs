//! BLAKE3 of what is on the disk, for as long as somebody wants to know.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blake3::Hasher;

/// Set once nobody waits any more for what is being done.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the work within a piece of a file.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// # Errors
    /// [`ErrorKind::Interrupted`] once it is cancelled.
    pub fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Acquire) {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

/// A hasher that has seen the first `prefix` bytes of a file; `None` if it is shorter.
///
/// # Errors
/// As the system says; [`ErrorKind::Interrupted`] once it is cancelled.
pub fn hashed(file: &File, prefix: u64, cancel: &Cancel) -> io::Result<Option<Hasher>> {
    let mut hasher = Hasher::new();
    match hash_range(file, &mut hasher, 0, prefix, cancel) {
        Ok(()) => Ok(Some(hasher)),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Adds bytes `from` to `to` of a file.
pub(super) fn hash_range(
    file: &File,
    hasher: &mut Hasher,
    from: u64,
    to: u64,
    cancel: &Cancel,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE.min(to.saturating_sub(from)) as usize];
    let mut at = from;
    while at < to {
        cancel.check()?;
        let n = (to - at).min(PIECE) as usize;
        file.read_exact_at(&mut buffer[..n], at)?;
        hasher.update(&buffer[..n]);
        at += n as u64;
    }
    Ok(())
}

/// Bytes that are read at once.
const PIECE: u64 = 256 * 1024;
