//! What the files of a copy do together: they begin, or none does, and reach the disk.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};

use super::{Before, Target};
use crate::file::hash::Cancel;
use crate::file::room::Room;

/// Brings the bytes of files to the disk, if there are many: one by one a hundred thousand small
/// files take as many waits for it. Of few each waits for itself when it gets its name.
///
/// # Errors
/// As the system says: something written there could not be kept (Linux 5.8 and later).
pub fn sync_files<'t>(targets: impl Iterator<Item = &'t mut Target>) -> io::Result<()> {
    let mut targets: Vec<_> = targets.collect();
    if targets.len() <= MOST_HELD {
        return Ok(());
    }
    let mut done = HashSet::new();
    for target in &mut targets {
        let (system, _) = target.place.directory()?;
        if done.insert(system) {
            target.place.sync_file_system()?;
        }
        target.is_synced = true;
    }
    Ok(())
}

/// Brings the names of files to the disk.
///
/// # Errors
/// As the system says.
pub fn sync_directories<'t>(targets: impl Iterator<Item = &'t Target>) -> io::Result<()> {
    let mut done = HashSet::new();
    for target in targets {
        if done.insert(target.place.directory()?) {
            target.place.sync_directory()?;
        }
    }
    Ok(())
}

/// True if what failed for one file of a copy fails for the others too: the disk, descriptors,
/// memory.
pub(super) fn is_of_all(error: &io::Error) -> bool {
    use nix::libc::{EIO, EMFILE, ENFILE};
    let kinds = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::OutOfMemory,
        ErrorKind::Interrupted,
        ErrorKind::InvalidData,
    ];
    kinds.contains(&error.kind()) || matches!(error.raw_os_error(), Some(EIO | EMFILE | ENFILE))
}

/// Leaves word of all `targets` that are to come, and takes the disk for them. One that cannot be,
/// [`ErrorKind::ResourceBusy`] if another transfer writes it, gets its failure; if that is a matter
/// of all, everything is left as it was.
///
/// # Errors
/// Which one, and why: [`ErrorKind::QuotaExceeded`], [`ErrorKind::StorageFull`] of the first;
/// [`ErrorKind::Interrupted`] once it is cancelled.
pub fn begin_all(
    targets: &mut [Target],
    room: &Room,
    cancel: &Cancel,
) -> Result<(), (usize, io::Error)> {
    let of_first = |e: io::Error| (0, e);
    if let Some(first) = targets.first() {
        let taken = targets.iter().filter_map(|t| t.place.part_bytes().ok());
        let sizes = targets.iter().map(|t| t.source.size);
        let all = sizes.fold(0, u64::saturating_add);
        if all.saturating_sub(taken.sum()) > first.place.free().map_err(of_first)? {
            return Err((0, ErrorKind::StorageFull.into()));
        }
    }
    let owner = fresh_owner();
    let mut begun = Vec::with_capacity(targets.len());
    let done = begin_in(targets, (room, cancel), owner, &mut begun);
    for (target, before) in targets.iter_mut().zip(begun) {
        if let Some(before) = before.filter(|_| done.is_err() || target.failure.is_some()) {
            // Why it cannot be is told; that something is left is the lesser trouble.
            let _ = target.take_back(before);
        }
    }
    done
}

fn begin_in(
    targets: &mut [Target],
    (room, cancel): (&Room, &Cancel),
    owner: u64,
    begun: &mut Vec<Option<Before>>,
) -> Result<(), (usize, io::Error)> {
    let hold = targets.len() <= MOST_HELD;
    let mut index = 0;
    let admitted = room.admit(|| {
        for target in targets.iter_mut() {
            cancel.check()?;
            begun.push(match target.begin(owner) {
                Ok(before) => Some(before),
                Err(e) if is_of_all(&e) => return Err(e),
                Err(e) => {
                    target.failure = Some(e);
                    None
                }
            });
            index += 1;
        }
        // Errors from here on are of the batch, not of its last file.
        index = 0;
        Ok(())
    });
    admitted.map_err(|e| (index, e))?;
    for (index, (target, before)) in targets.iter_mut().zip(begun).enumerate() {
        cancel.check().map_err(|e| (index, e))?;
        let Some(before) = before else { continue };
        match target.reserve(before, hold) {
            Err(e) if is_of_all(&e) => return Err((index, e)),
            reserved => target.failure = reserved.err(),
        }
    }
    Ok(())
}

/// A number that no other copy has.
fn fresh_owner() -> u64 {
    // Keyed with what the system gave at random when the program started.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

/// Files of a copy that stay open and locked from its beginning to its end; of more than these each
/// is locked while it is written, and not published if another copy has taken it over since.
const MOST_HELD: usize = 64;
