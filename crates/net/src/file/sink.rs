//! A flow's data into a file: segments go to their place as they arrive, in any order; a thread
//! writes them, hashes what is without a hole, and leaves word of it now and then, so that a
//! transfer that dies can go on from there. What waits for the thread is bounded: the sender is
//! told how much room there is, and waits for more.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use blake3::{Hash, Hasher};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::hash::{Cancel, hash_range, hashed};
use super::place::Place;
use super::progress::{Checkpoints, Order, Progress};
use super::room::Room;
use super::state::{Identity, Stamp, State};
use crate::lender::Lender;
use crate::payload::Sink;

/// The data of a flow into a file; its other end is [`Writing`].
#[derive(Debug)]
pub struct FileSink {
    /// Byte of the file that segment 0 begins with.
    from: u64,
    size: u64,
    mss: u64,
    /// Neighbouring segments that go to the writer together.
    open: Piece,
    /// Bytes that may wait for the writer; who lends more, if the path brings much; looks until
    /// that is asked again.
    capacity: usize,
    lender: Option<Arc<dyn Lender>>,
    refused: u32,
    to_writer: Sender<Piece>,
    shared: Arc<Shared>,
}

/// What may wait for the disk, or be read ahead of it.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// So many bytes, unasked.
    pub least: u64,
    /// Lends more.
    pub lender: Arc<dyn Lender>,
}

/// The thread that writes, and the file.
#[derive(Debug)]
pub struct Writing {
    part: Part,
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<(Hasher, Left)>>,
}

/// The unfinished file as it was left when it was last written.
#[derive(Clone, Copy, Debug)]
struct Left {
    stamp: Stamp,
    /// Somebody else has changed it in between: what it holds has to be read.
    is_doubted: bool,
}

impl Left {
    /// Notices what somebody else has done since.
    fn look(&mut self, file: &File) -> io::Result<()> {
        let now = Stamp::of(file)?;
        self.is_doubted |= self.stamp != now;
        self.stamp = now;
        Ok(())
    }
}

/// An unfinished file, open and ours alone.
#[derive(Debug)]
pub struct Part {
    place: Arc<Place>,
    file: Arc<File>,
    source: Identity,
    /// Bytes without a hole, all seen by `hasher`.
    prefix: u64,
    hasher: Box<Hasher>,
    /// Once it has been written.
    left: Option<Left>,
    room: Room,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Bytes from the start of the file without a hole.
    pub(super) prefix: AtomicU64,
    /// Bytes that wait for the writer. Pieces do not count: in a recovery many have but one
    /// segment.
    pub(super) waiting: AtomicUsize,
    has_failed: AtomicBool,
    failure: Mutex<Option<(ErrorKind, String)>>,
}

#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

impl Part {
    /// Opens what an earlier transfer of `source` to `place` left, or begins anew. Reads and hashes
    /// what is there, and takes the disk that the rest needs out of `room`.
    ///
    /// # Errors
    /// As the system says:
    /// [`ErrorKind::ResourceBusy`] if another transfer writes it, [`ErrorKind::StorageFull`] or
    /// [`ErrorKind::QuotaExceeded`] if there is no room for all of it, [`ErrorKind::AlreadyExists`]
    /// if a file of somebody else has the name of the unfinished one, [`ErrorKind::Interrupted`]
    /// once it is cancelled.
    pub fn open(
        place: Arc<Place>,
        source: Identity,
        room: &Room,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let is_new = place.state_if_ours()?.is_none();
        if is_new {
            // Before the first byte it is known whose it is: what nobody goes on with can be told
            // from files of others.
            place.write_state(&State {
                source,
                prefix: 0,
                digest: Hasher::new().finalize(),
                ranges: Vec::new(),
                owner: 0,
            })?;
        }
        let file = place.open_part()?;
        let state = place.state().filter(|s| s.source == source);
        let mut part = Self {
            place,
            file: Arc::new(file),
            source,
            prefix: 0,
            hasher: Box::default(),
            left: None,
            room: room.clone(),
        };
        if let Some(state) = state
            && let Some(hasher) = hashed(&part.file, state.prefix, cancel)?
            && hasher.finalize() == state.digest
        {
            (part.prefix, *part.hasher) = (state.prefix, hasher);
        }
        if let Err(e) = part.take_disk() {
            // What was given of it before the disk was full is still there; what an earlier copy
            // left stays.
            match is_new {
                true => part.place.discard()?,
                false => part.file.set_len(part.file.metadata()?.len())?,
            }
            return Err(e);
        }
        Ok(part)
    }

    /// Bytes that are there without a hole.
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// BLAKE3 of these.
    pub fn digest(&self) -> Hash {
        self.hasher.finalize()
    }

    /// Forgets what is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        (self.prefix, *self.hasher) = (0, Hasher::new());
        let taken = self.take_disk();
        if taken.is_err() {
            self.place.discard()?;
        }
        taken
    }

    /// Takes the disk beforehand, where the file system can do that: a transfer that does not fit
    /// fails before it begins.
    fn take_disk(&self) -> io::Result<()> {
        if i64::try_from(self.source.size).is_err() {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let metadata = self.file.metadata()?;
        let taken = metadata.blocks().saturating_mul(512);
        let more = self.source.size.saturating_sub(taken);
        if more > self.place.free()? {
            return Err(ErrorKind::StorageFull.into());
        }
        if more > 0 {
            self.room.take(&self.file, self.source.size, || {
                allocate(&self.file, self.source.size)
            })?;
        }
        // An earlier file of this name may have been longer.
        if metadata.len() > self.source.size {
            self.file.set_len(self.source.size)?;
        }
        Ok(())
    }

    /// Takes segments of `mss` bytes, the first of which begins where the file ends so far.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn receive(self, mss: u32) -> io::Result<(FileSink, Writing)> {
        let shared = Arc::new(Shared::default());
        shared.prefix.store(self.prefix, Ordering::Relaxed);
        let (to_writer, pieces) = channel();
        let writer = Writer {
            place: Arc::clone(&self.place),
            file: Arc::clone(&self.file),
            source: self.source,
            shared: Arc::clone(&shared),
            progress: Progress::from(self.prefix),
            hasher: Hasher::clone(&self.hasher),
            left: Left {
                stamp: Stamp::of(&self.file)?,
                is_doubted: false,
            },
            checkpoints: Checkpoints::new()?,
            told: self.prefix,
        };
        let thread = thread::Builder::new()
            .name("file-writer".to_owned())
            .spawn(move || writer.run(&pieces))?;
        let sink = FileSink {
            from: self.prefix,
            size: self.source.size,
            mss: u64::from(mss.max(1)),
            open: Piece::default(),
            capacity: WAITING,
            lender: None,
            refused: 0,
            to_writer,
            shared: Arc::clone(&shared),
        };
        let writing = Writing {
            part: self,
            shared,
            thread,
        };
        Ok((sink, writing))
    }

    /// Gives the file its final name, if all of it is there and it has the hash that its sender
    /// found.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if it is another file than was sent: what was there is removed.
    /// [`ErrorKind::UnexpectedEof`] if it is not complete. Otherwise as the system says.
    pub fn publish(mut self, digest: Hash, overwrite: bool) -> io::Result<()> {
        if self.prefix != self.source.size {
            let missing = format!("{} of {} bytes are there", self.prefix, self.source.size);
            return Err(io::Error::new(ErrorKind::UnexpectedEof, missing));
        }
        if let Some(left) = &mut self.left {
            left.look(&self.file)?;
            if left.is_doubted {
                let read = hashed(&self.file, self.source.size, &Cancel::default())?;
                *self.hasher = read.unwrap_or_default();
            }
        }
        if self.file.metadata()?.len() != self.source.size || self.hasher.finalize() != digest {
            self.place.discard()?;
            let what = "the checksum of what arrived is not that of what was sent";
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        self.place.publish(&self.file, overwrite)
    }
}

impl Writing {
    /// Bytes from the start of the file without a hole.
    pub fn prefix(&self) -> u64 {
        self.shared.prefix.load(Ordering::Relaxed)
    }

    /// Waits until everything that came has been written; the sink must be gone by then.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> io::Result<Part> {
        let Ok(written) = self.thread.join() else {
            return Err(io::Error::other("the thread that writes the file failed"));
        };
        let mut part = self.part;
        let (hasher, left) = written?;
        (*part.hasher, part.left) = (hasher, Some(left));
        part.prefix = self.shared.prefix.load(Ordering::Relaxed);
        Ok(part)
    }
}

impl Sink for FileSink {
    fn room(&mut self, wanted: u64) -> io::Result<Option<u64>> {
        if self.shared.has_failed.load(Ordering::Acquire) {
            return Err(self.shared.failure());
        }
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let wanted = wanted.min(MOST_WAITING);
        if wanted > self.capacity {
            self.grow(wanted);
        }
        let waiting = self.shared.waiting.load(Ordering::Relaxed) + self.open.bytes.len();
        Ok(Some(self.capacity.saturating_sub(waiting) as u64))
    }

    fn length(&self, seq: u64) -> Option<usize> {
        let rest = self.start(seq).map_or(0, |at| self.size.saturating_sub(at));
        Some(rest.min(self.mss) as usize)
    }

    fn take(&mut self, seq: u64, payload: &[u8]) -> io::Result<()> {
        let (Some(at), length) = (self.start(seq), payload.len() as u64) else {
            return Err(ErrorKind::InvalidData.into());
        };
        if self.length(seq) != Some(payload.len()) {
            let what = "a segment of the wrong length";
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        if at != self.open.at + self.open.bytes.len() as u64 {
            self.seal()?;
            self.open.at = at;
        }
        if self.open.bytes.capacity() == 0 {
            // Room for one segment where they come one by one, for many where they follow each
            // other.
            self.open.bytes.reserve(payload.len());
        }
        self.open.bytes.extend_from_slice(payload);
        if self.open.bytes.len() >= PIECE || at + length == self.size {
            self.seal()?;
        }
        Ok(())
    }
}

impl FileSink {
    /// Of so many bytes in all; what comes goes to the receiver.
    pub(super) fn new(size: u64, mss: u32) -> (Self, Receiver<Piece>, Arc<Shared>) {
        let shared = Arc::new(Shared::default());
        let (to_writer, pieces) = channel();
        let sink = Self {
            from: 0,
            size,
            mss: u64::from(mss.max(1)),
            open: Piece::default(),
            capacity: WAITING,
            lender: None,
            refused: 0,
            to_writer,
            shared: Arc::clone(&shared),
        };
        (sink, pieces, shared)
    }

    /// Lets so many bytes wait for the disk, and as many more as are lent.
    pub fn with_buffer(mut self, buffer: Option<Buffer>) -> Self {
        if let Some(buffer) = buffer {
            self.capacity = usize::try_from(buffer.least).unwrap_or(usize::MAX);
            self.lender = Some(buffer.lender);
        }
        self
    }

    /// Lets more bytes wait, if they are lent.
    #[cold]
    fn grow(&mut self, wanted: usize) {
        let more = (wanted - self.capacity) as u64;
        if self.refused > 0 {
            self.refused -= 1;
        } else if self.lender.as_ref().is_none_or(|lender| lender.lend(more)) {
            self.capacity = wanted;
        } else {
            self.refused = ASK_AGAIN;
        }
    }

    /// Byte of the file that segment `seq` begins with.
    fn start(&self, seq: u64) -> Option<u64> {
        seq.checked_mul(self.mss)?.checked_add(self.from)
    }

    /// Hands the open piece to the writer.
    fn seal(&mut self) -> io::Result<()> {
        if self.open.bytes.is_empty() {
            return Ok(());
        }
        let next = self.open.at + self.open.bytes.len() as u64;
        let fresh = Piece {
            at: next,
            bytes: Vec::new(),
        };
        let piece = std::mem::replace(&mut self.open, fresh);
        let bytes = piece.bytes.len();
        self.shared.waiting.fetch_add(bytes, Ordering::Relaxed);
        let sent = self.to_writer.send(piece);
        sent.map_err(|_| self.shared.failure())
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // What fails here fails in the writer too, and is told by it.
        let _ = self.seal();
    }
}

impl Shared {
    /// Hands each piece to `write`, until the sink is gone or one cannot be written.
    pub(super) fn drain(
        &self,
        pieces: &Receiver<Piece>,
        mut write: impl FnMut(&Piece) -> io::Result<()>,
    ) -> io::Result<()> {
        for piece in pieces {
            let written = write(&piece);
            self.waiting.fetch_sub(piece.bytes.len(), Ordering::Relaxed);
            if let Err(error) = &written {
                self.fail(error);
                return written;
            }
        }
        Ok(())
    }

    fn fail(&self, error: &io::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some((error.kind(), error.to_string()));
        self.has_failed.store(true, Ordering::Release);
    }

    fn failure(&self) -> io::Error {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failure {
            Some((kind, text)) => io::Error::new(*kind, text.clone()),
            None => io::Error::other("the thread that writes the file failed"),
        }
    }
}

struct Writer {
    place: Arc<Place>,
    file: Arc<File>,
    source: Identity,
    shared: Arc<Shared>,
    progress: Progress,
    hasher: Hasher,
    left: Left,
    checkpoints: Checkpoints,
    /// Prefix that word was left of.
    told: u64,
}

impl Writer {
    fn run(mut self, pieces: &Receiver<Piece>) -> io::Result<(Hasher, Left)> {
        let shared = Arc::clone(&self.shared);
        let written = shared.drain(pieces, |piece| {
            let written = self.write(piece);
            written.map_err(|e| self.place.unwritten(&self.place.explained(e)))
        });
        self.checkpoints.end(Some(self.order()));
        written.map(|()| (self.hasher, self.left))
    }

    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        self.left.look(&self.file)?;
        self.file.write_all_at(&piece.bytes, piece.at)?;
        self.left.stamp = Stamp::of(&self.file)?;
        if self.progress.wrote(piece.at, piece.bytes.len()) {
            self.hasher.update(&piece.bytes);
            self.progress.hashed(piece.at + piece.bytes.len() as u64);
            if let Some(end) = self.progress.to_read_back() {
                let from = self.progress.prefix();
                hash_range(&self.file, &mut self.hasher, from, end, &Cancel::default())?;
                self.progress.hashed(end);
            }
        }
        let prefix = self.progress.prefix();
        self.shared.prefix.store(prefix, Ordering::Relaxed);
        if prefix != self.told && self.checkpoints.is_due() && self.checkpoints.order(self.order())
        {
            self.told = prefix;
        }
        Ok(())
    }

    fn order(&self) -> Order {
        let state = State {
            source: self.source,
            prefix: self.progress.prefix(),
            digest: self.hasher.finalize(),
            ranges: Vec::new(),
            owner: 0,
        };
        (Arc::clone(&self.place), Arc::clone(&self.file), state)
    }
}

/// Takes the disk for a file of `size` bytes, where the file system can do that.
pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
    let Ok(size) = i64::try_from(size) else {
        return Err(ErrorKind::FileTooLarge.into());
    };
    if size == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, size) {
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Bytes that go to the writer together, if they are neighbours.
const PIECE: usize = 256 * 1024;

/// Bytes that may wait for the writer.
pub const WAITING: usize = 16 << 20;
/// Looks at the room until more is asked for again.
const ASK_AGAIN: u32 = 1000;
/// The same on a path that brings more within two round trips.
pub const MOST_WAITING: usize = 256 << 20;
