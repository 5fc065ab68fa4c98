//! The thread that writes a stream into its files. A file is open only while bytes of it are on
//! their way.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use super::Target;
use super::together::is_of_all;
use crate::file::plan::Plan;
use crate::file::progress::{Checkpoints, Progress};
use crate::file::sink::{FileSink, Piece, Shared};

/// The thread that writes a stream into its files.
#[derive(Debug)]
pub struct Receiving {
    shared: Arc<Shared>,
    thread: JoinHandle<(Vec<Target>, io::Result<()>)>,
}

/// Takes the stream of `plan`, whose files are `targets`, in segments of `mss` bytes.
///
/// # Errors
/// A thread cannot be started.
pub fn receive_all(
    targets: Vec<Target>,
    plan: Plan,
    mss: u32,
) -> io::Result<(FileSink, Receiving)> {
    let (sink, pieces, shared) = FileSink::new(plan.bytes(), mss);
    let writer = Writer {
        targets,
        plan,
        shared: Arc::clone(&shared),
        progress: Progress::default(),
        open: Vec::new(),
        checkpoints: Checkpoints::new()?,
    };
    let thread = thread::Builder::new()
        .name("file-writer".to_owned())
        .spawn(move || writer.run(&pieces))?;
    Ok((sink, Receiving { shared, thread }))
}

impl Receiving {
    /// Bytes of the stream without a hole.
    pub fn prefix(&self) -> u64 {
        self.shared.prefix.load(Ordering::Relaxed)
    }

    /// Waits until everything that came has been written; the sink must be gone by then.
    ///
    /// # Errors
    /// The thread failed. What could not be written is told beside the targets.
    pub fn finish(self) -> io::Result<(Vec<Target>, io::Result<()>)> {
        let joined = self.thread.join();
        joined.map_err(|_| io::Error::other("the thread that writes the files failed"))
    }
}

struct Writer {
    targets: Vec<Target>,
    plan: Plan,
    shared: Arc<Shared>,
    progress: Progress,
    /// Files that bytes came for of late.
    open: Vec<(u32, Arc<File>)>,
    checkpoints: Checkpoints,
}

impl Writer {
    fn run(mut self, pieces: &Receiver<Piece>) -> (Vec<Target>, io::Result<()>) {
        let shared = Arc::clone(&self.shared);
        let written = shared.drain(pieces, |piece| self.take(piece));
        self.checkpoints.end(None);
        let open: Vec<u32> = self.open.drain(..).map(|(index, _)| index).collect();
        for target in &mut self.targets {
            // What cannot be read back is not published either.
            if (target.held.is_some() || target.is_doubted)
                && target.failure.is_none()
                && let Ok(file) = target
                    .held
                    .clone()
                    .map_or_else(|| target.open().map(Arc::new), Ok)
            {
                let _ = target.prove(&file);
            }
        }
        for index in open {
            // Without it the next attempt begins further back.
            let _ = self.targets[index as usize].note();
        }
        (self.targets, written)
    }

    fn take(&mut self, piece: &Piece) -> io::Result<()> {
        self.each(piece.at, &piece.bytes, |this, index, inside, bytes| {
            this.of_file(index, |this| {
                let file = this.file(index)?;
                this.targets[index as usize].write(&file, bytes, inside)
            })
        })?;
        if self.progress.wrote(piece.at, piece.bytes.len()) {
            self.hash(piece.at, &piece.bytes)?;
            if let Some(end) = self.progress.to_read_back() {
                self.read_back(end)?;
            }
        }
        let prefix = self.progress.prefix();
        self.shared.prefix.store(prefix, Ordering::Relaxed);
        self.checkpoint();
        Ok(())
    }

    /// Calls `act` with each file that bytes of the stream belong to.
    fn each(
        &mut self,
        mut at: u64,
        mut bytes: &[u8],
        mut act: impl FnMut(&mut Self, u32, u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let (_, piece, inside) = self.plan.find(at).ok_or(ErrorKind::InvalidData)?;
            let n = bytes.len().min((piece.to - inside) as usize);
            act(self, piece.file, inside, &bytes[..n])?;
            (at, bytes) = (at + n as u64, &bytes[n..]);
        }
        Ok(())
    }

    /// The next bytes without a hole.
    fn hash(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.each(at, bytes, |this, index, inside, bytes| {
            let at = this.progress.prefix();
            let end = at + bytes.len() as u64;
            let (number, piece, _) = this.plan.find(at).ok_or(ErrorKind::InvalidData)?;
            this.progress.hashed(end);
            let is_end = end == piece.at + (piece.to - piece.from) && this.plan.is_last(number);
            this.of_file(index, |this| {
                this.targets[index as usize].blocks.feed(inside, bytes);
                if is_end {
                    // Opened again if need be: who writes the state holds the file.
                    let _held = this.file(index)?;
                    this.targets[index as usize].note()?;
                    this.open.retain(|(open, _)| *open != index);
                }
                Ok(())
            })
        })
    }

    /// Does something with a file. What fails there fails of this file alone, and what comes for it
    /// from then on is dropped, as long as others go on.
    fn of_file(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if index == NOBODY {
            return Ok(());
        }
        let target = self.targets.get(index as usize);
        if target.ok_or(ErrorKind::InvalidData)?.failure.is_some() {
            return Ok(());
        }
        let error = match act(self) {
            Ok(()) => return Ok(()),
            Err(e) if is_of_all(&e) => {
                return Err(self.targets[index as usize].place.unwritten(&e));
            }
            Err(e) => e,
        };
        self.open.retain(|(open, _)| *open != index);
        let target = &mut self.targets[index as usize];
        let error = target.place.explained(error);
        let what = target.place.unwritten(&error);
        // What came of it stays for the next attempt.
        target.failure = Some(error);
        match self.targets.iter().all(|target| target.failure.is_some()) {
            true => Err(io::Error::other(what)),
            false => Ok(()),
        }
    }

    /// A hole is filled: what lies behind it, up to `end`, is read back for its hash.
    fn read_back(&mut self, end: u64) -> io::Result<()> {
        let mut buffer = vec![0; READ_BACK];
        while self.progress.prefix() < end {
            let at = self.progress.prefix();
            let (_, piece, inside) = self.plan.find(at).ok_or(ErrorKind::InvalidData)?;
            let n = (end - at).min(piece.to - inside);
            let n = buffer.len().min(n as usize);
            let now = &mut buffer[..n];
            self.of_file(piece.file, |this| {
                this.file(piece.file)?.read_exact_at(now, inside)
            })?;
            self.hash(at, &buffer[..n])?;
        }
        Ok(())
    }

    fn file(&mut self, index: u32) -> io::Result<Arc<File>> {
        if let Some((_, file)) = self.open.iter().rfind(|(open, _)| *open == index) {
            return Ok(Arc::clone(file));
        }
        if self.open.len() >= MOST_OPEN {
            // One that is being brought to the disk stays locked until it is there: opened again
            // before, it would look like another transfer's.
            let is_idle = |(index, file): &(u32, Arc<File>)| {
                let held = self
                    .targets
                    .get(*index as usize)
                    .and_then(|t| t.held.as_ref());
                Arc::strong_count(file) == 1 + usize::from(held.is_some())
            };
            if let Some(idle) = self.open.iter().position(is_idle) {
                self.open.remove(idle);
            }
        }
        let target = self.targets.get(index as usize);
        let target = target.ok_or(ErrorKind::InvalidData)?;
        let file = match &target.held {
            Some(file) => Arc::clone(file),
            None => Arc::new(target.open()?),
        };
        self.open.push((index, Arc::clone(&file)));
        Ok(file)
    }

    /// Brings the file that grows to the disk now and then, with word of how far it got.
    fn checkpoint(&mut self) {
        if !self.checkpoints.is_due() {
            return;
        }
        if let Some((_, piece, _)) = self.plan.find(self.progress.prefix())
            && let Some((_, file)) = self.open.iter().find(|(open, _)| *open == piece.file)
        {
            let target = &self.targets[piece.file as usize];
            let order = (Arc::clone(&target.place), Arc::clone(file), target.state());
            self.checkpoints.order(order);
        }
    }
}

/// Index, in a plan, of a file that failed before the run: what comes for it is dropped.
pub const NOBODY: u32 = u32::MAX;

/// Files that are open at a time.
const MOST_OPEN: usize = 8;

/// Bytes that are read back at once.
const READ_BACK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::place::Place;
    use crate::file::state::Identity;

    /// A packet that comes late, for a file that is being brought to the disk, whose place among
    /// the open ones others have taken since.
    #[test]
    fn a_file_on_its_way_to_the_disk_is_not_taken_for_another_transfer_s() {
        let dir = tempfile::tempdir().unwrap();
        let source = Identity {
            size: 4,
            changed: 1,
        };
        let begun = |i: usize| {
            let place = Arc::new(Place::local(&dir.path().join(i.to_string())).unwrap());
            let mut target = Target::new(place, source);
            let mut before = target.begin(1).unwrap();
            target.reserve(&mut before, false).unwrap();
            target
        };
        let mut plan = Plan::default();
        let targets: Vec<_> = (0..3 * MOST_OPEN).map(begun).collect();
        for index in 0..targets.len() {
            plan.push(index as u32, &[(0, 4)]);
        }
        let (_sink, _pieces, shared) = FileSink::new(plan.bytes(), 1448);
        let mut writer = Writer {
            targets,
            plan,
            shared,
            progress: Progress::default(),
            open: Vec::new(),
            checkpoints: Checkpoints::new().unwrap(),
        };
        let on_its_way = writer.file(0).unwrap();
        for index in 1..writer.targets.len() as u32 {
            writer.file(index).unwrap();
        }
        writer.file(0).unwrap();
        drop(on_its_way);
        assert_eq!(writer.open.len(), MOST_OPEN, "the others were closed");
    }
}
