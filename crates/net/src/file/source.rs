//! A file as the data of a flow: a thread reads it ahead in order and hashes it on the way; what
//! the flow asks for outside of what has been read ahead, a retransmission for example, is read in
//! place, and more is kept from then on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use blake3::{Hash, Hasher};

use super::hash::Cancel;
use super::origin::{CHANGED, Streamed};
use super::sink::Buffer;
use super::state::{Identity, Stamp};
use crate::lender::Lender;
use crate::payload::Source;

/// The data of a flow from a file; its other end is [`Reading`].
#[derive(Debug)]
pub struct FileSource {
    file: Place,
    ahead: Arc<Ahead>,
    /// Byte of the file that segment 0 begins with.
    from: u64,
    size: u64,
    /// The piece that was used last.
    current: Option<(u64, Arc<[u8]>)>,
    /// The piece that was missed last.
    missed: Option<u64>,
}

/// The thread that reads ahead.
#[derive(Debug)]
pub struct Reading {
    ahead: Arc<Ahead>,
    thread: Option<JoinHandle<io::Result<Hash>>>,
}

/// What is read where it has not been read ahead.
#[derive(Debug)]
enum Place {
    File(Arc<File>),
    Stream(Box<Streamed>),
}

/// Pieces read ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    slots: Mutex<Slots>,
    wanted: Condvar,
}

#[derive(Debug)]
struct Slots {
    /// The latest ones, by number, without a gap.
    pieces: VecDeque<(u64, Arc<[u8]>)>,
    /// Pieces that are kept.
    kept: u64,
    /// Lends memory for more; `None`: they are there.
    lender: Option<Arc<dyn Lender>>,
    /// The highest piece that was asked for, and the one from which on the reader goes on.
    used: u64,
    due: u64,
    stop: bool,
    /// Of whoever waits for the hash of the whole.
    cancel: Cancel,
}

/// Makes segments of the bytes of `file` from byte `from` on. `hasher` has seen the bytes before.
/// `buffer` holds what is read ahead; `None`: [`AHEAD`] bytes.
///
/// # Errors
/// The thread cannot be started, or the file not looked at.
pub fn source(
    file: File,
    from: u64,
    hasher: Hasher,
    buffer: Option<Buffer>,
) -> io::Result<(FileSource, Reading)> {
    let (identity, first) = (Identity::of(&file.metadata()?), Stamp::of(&file)?);
    let file = Arc::new(file);
    let ahead = Arc::new(Ahead::new(from, buffer));
    let reader = Reader {
        file: Arc::clone(&file),
        ahead: Arc::clone(&ahead),
        from,
        size: identity.size,
        first,
    };
    let thread = thread::Builder::new()
        .name("file-reader".to_owned())
        .spawn(move || reader.run(hasher))?;
    let source = FileSource {
        file: Place::File(file),
        ahead: Arc::clone(&ahead),
        from,
        size: identity.size,
        current: None,
        missed: None,
    };
    let thread = Some(thread);
    Ok((source, Reading { ahead, thread }))
}

impl Source for FileSource {
    fn fill(&mut self, seq: u64, out: &mut [u8]) -> io::Result<usize> {
        let place = (out.len() as u64).checked_mul(seq);
        let start = place.and_then(|p| p.checked_add(self.from));
        let rest = start.map_or(0, |start| self.size.saturating_sub(start));
        let length = rest.min(out.len() as u64) as usize;
        let mut at = start.unwrap_or(self.size);
        let mut out = &mut out[..length];
        while !out.is_empty() {
            let inside = (at % PIECE) as usize;
            let n = out.len().min(PIECE as usize - inside);
            let (now, later) = out.split_at_mut(n);
            match self
                .piece(at / PIECE)
                .and_then(|p| p.get(inside..inside + n))
            {
                Some(bytes) => now.copy_from_slice(bytes),
                None => match &mut self.file {
                    Place::File(file) => file.read_exact_at(now, at)?,
                    Place::Stream(streamed) => streamed.read(now, at)?,
                },
            }
            (at, out) = (at + n as u64, later);
        }
        Ok(length)
    }
}

impl FileSource {
    /// Of a stream of several files, `size` bytes in all.
    pub(super) fn of_stream(streamed: Streamed, size: u64, ahead: &Arc<Ahead>) -> Self {
        Self {
            file: Place::Stream(Box::new(streamed)),
            ahead: Arc::clone(ahead),
            from: 0,
            size,
            current: None,
            missed: None,
        }
    }

    fn piece(&mut self, number: u64) -> Option<&[u8]> {
        if self.current.as_ref().is_none_or(|(n, _)| *n != number) {
            let mut slots = self.ahead.slots();
            if number > slots.used {
                slots.used = number;
                if number >= slots.due {
                    self.ahead.wanted.notify_one();
                }
            }
            let found = slots.find(number);
            if found.is_none() && self.missed.replace(number) != Some(number) && slots.grow() {
                self.ahead.wanted.notify_one();
            }
            self.current = Some((number, found?));
        }
        self.current.as_ref().map(|(_, bytes)| &bytes[..])
    }
}

impl Slots {
    fn find(&self, number: u64) -> Option<Arc<[u8]>> {
        let (first, _) = self.pieces.front()?;
        let at = usize::try_from(number.checked_sub(*first)?).ok()?;
        Some(Arc::clone(&self.pieces.get(at)?.1))
    }

    /// Keeps twice as many, if the memory is lent: there is more to read.
    #[cold]
    fn grow(&mut self) -> bool {
        let next = (2 * self.kept).min(KEPT);
        let more = (next - self.kept) * PIECE;
        let grows = more > 0 && self.lender.as_ref().is_some_and(|l| l.lend(more));
        if grows {
            (self.kept, self.due) = (next, self.used);
        }
        grows
    }
}

impl Reading {
    /// BLAKE3 of the whole file, once all of it has been read.
    ///
    /// # Errors
    /// It could not be read, or was changed meanwhile.
    pub fn finish(mut self, cancel: &Cancel) -> io::Result<Hash> {
        self.ahead.read_all(cancel);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that reads the file failed")),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.ahead.stop();
    }
}

impl Ahead {
    /// Nothing yet, of what begins with byte `from`.
    pub(super) fn new(from: u64, buffer: Option<Buffer>) -> Self {
        let (least, lender) = match buffer {
            Some(buffer) => (buffer.least, Some(buffer.lender)),
            None => (AHEAD, None),
        };
        Self {
            slots: Mutex::new(Slots {
                pieces: VecDeque::new(),
                kept: (least / PIECE).saturating_sub(BESIDE).clamp(2, KEPT),
                lender,
                used: from / PIECE,
                due: u64::MAX,
                stop: false,
                cancel: Cancel::default(),
            }),
            wanted: Condvar::new(),
        }
    }

    /// Nothing more is wanted.
    pub(super) fn stop(&self) {
        self.slots().stop = true;
        self.wanted.notify_one();
    }

    /// The reader need not wait any more, unless it is cancelled.
    pub(super) fn read_all(&self, cancel: &Cancel) {
        {
            let mut slots = self.slots();
            slots.used = u64::MAX / 2;
            slots.cancel = cancel.clone();
        }
        self.wanted.notify_one();
    }

    /// A piece has been read: the one after the last.
    pub(super) fn put(&self, number: u64, bytes: Vec<u8>) {
        let mut slots = self.slots();
        while slots.pieces.len() as u64 >= slots.kept {
            slots.pieces.pop_front();
        }
        slots.pieces.push_back((number, bytes.into()));
    }

    /// Waits until the piece may be read; false: it is not needed any more.
    pub(super) fn wait_for(&self, number: u64) -> bool {
        let mut slots = self.slots();
        // Half of the pieces lie behind, for what is sent again.
        if number > slots.used + slots.kept / 2 {
            // Several at a time: waking is dear.
            slots.due = number - slots.kept / 2 + slots.kept / 8;
            while !slots.stop && slots.used < slots.due {
                let woken = self.wanted.wait(slots);
                slots = woken.unwrap_or_else(PoisonError::into_inner);
            }
            slots.due = u64::MAX;
        }
        !slots.stop && slots.cancel.check().is_ok()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        // Every change is one assignment: a panic leaves nothing half done.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader {
    file: Arc<File>,
    ahead: Arc<Ahead>,
    from: u64,
    size: u64,
    /// As it was when the copy began.
    first: Stamp,
}

impl Reader {
    fn run(self, mut hasher: Hasher) -> io::Result<Hash> {
        let mut at = self.from;
        while at < self.size {
            let number = at / PIECE;
            if !self.ahead.wait_for(number) {
                return Err(ErrorKind::Interrupted.into());
            }
            // From the start of the piece: only the first is entered further on.
            let start = number * PIECE;
            let end = (start + PIECE).min(self.size);
            let mut bytes = vec![0; (end - start) as usize];
            self.file.read_exact_at(&mut bytes, start).map_err(shrunk)?;
            hasher.update(&bytes[(at - start) as usize..]);
            self.ahead.put(number, bytes);
            at = end;
        }
        if Stamp::of(&self.file)? != self.first {
            return Err(io::Error::other(CHANGED));
        }
        Ok(hasher.finalize())
    }
}

fn shrunk(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::other(CHANGED),
        _ => error,
    }
}

/// Bytes of a piece: as many as the kernel reads ahead of a file itself.
pub(super) const PIECE: u64 = 128 << 10;

/// Pieces that are kept at most, and those beside them: the one that is being read, and the one
/// that is being sent.
const KEPT: u64 = 126;
const BESIDE: u64 = 2;

/// Bytes that are read ahead at most.
pub const AHEAD: u64 = (KEPT + BESIDE) * PIECE;
/// Bytes that are read ahead at least.
pub const LEAST_AHEAD: u64 = (2 + BESIDE) * PIECE;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn file(size: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
        let bytes: Vec<u8> = (0..size)
            .map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8)
            .collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        file.flush().unwrap();
        (file, bytes)
    }

    #[test]
    fn segments_are_those_of_the_file_in_any_order() {
        let (file, bytes) = file(3 * PIECE as usize + 1234);
        let from = 777;
        let mut hasher = Hasher::new();
        hasher.update(&bytes[..from]);
        let (mut source, reading) =
            source(file.reopen().unwrap(), from as u64, hasher, None).unwrap();
        let mss = 1448;
        let count = (bytes.len() - from).div_ceil(mss) as u64;
        let mut out = vec![0; mss];
        // Forwards with every seventh segment again, then backwards.
        let forwards = (0..count).flat_map(|n| [n, n - n % 7]);
        for n in forwards.chain((0..count).rev()) {
            let length = source.fill(n, &mut out).unwrap();
            let start = from + n as usize * mss;
            assert_eq!(
                out[..length],
                bytes[start..bytes.len().min(start + mss)],
                "segment {n}"
            );
        }
        for beyond in [count, u64::MAX / 2, u64::MAX] {
            assert_eq!(source.fill(beyond, &mut out).unwrap(), 0);
        }
        assert_eq!(
            reading.finish(&Cancel::default()).unwrap(),
            blake3::hash(&bytes)
        );
    }

    #[test]
    fn it_reads_only_so_far_ahead() {
        let (file, bytes) = file(200 * PIECE as usize);
        let (mut source, reading) = source(file.reopen().unwrap(), 0, Hasher::new(), None).unwrap();
        let mut out = vec![0; 1000];
        // The last byte is there although nobody has read it ahead.
        let last = bytes.len() as u64 / 1000 - 1;
        source.fill(0, &mut out).unwrap();
        let ahead = Arc::clone(&source.ahead);
        assert!(ahead.slots().pieces.iter().all(|(n, _)| *n <= KEPT / 2));
        source.fill(last, &mut out).unwrap();
        assert_eq!(out, bytes[last as usize * 1000..][..1000]);
        assert_eq!(
            reading.finish(&Cancel::default()).unwrap(),
            blake3::hash(&bytes)
        );
    }

    /// Lends so many bytes.
    #[derive(Debug)]
    struct Purse(AtomicU64);

    impl Lender for Purse {
        fn lend(&self, bytes: u64) -> bool {
            let take = |left: u64| left.checked_sub(bytes);
            let took = self
                .0
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            took.is_ok()
        }
    }

    /// Waits until the reader has nothing to do: it has read half of what is kept ahead.
    fn settled(source: &FileSource) -> (u64, Vec<u64>) {
        loop {
            let slots = source.ahead.slots();
            if slots.due < u64::MAX && slots.used < slots.due {
                let pieces = slots.pieces.iter().map(|(n, _)| *n).collect();
                return (slots.kept, pieces);
            }
            drop(slots);
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_missed_has_more_kept_as_far_as_memory_is_lent() {
        let (file, bytes) = file(40 * PIECE as usize);
        // For two pieces more, and not for another four.
        let purse = Arc::new(Purse(AtomicU64::new(5 * PIECE)));
        let lender: Arc<dyn Lender> = Arc::clone(&purse) as _;
        let buffer = Buffer {
            least: LEAST_AHEAD,
            lender,
        };
        let (mut source, reading) =
            source(file.reopen().unwrap(), 0, Hasher::new(), Some(buffer)).unwrap();
        let mut out = vec![0; PIECE as usize];
        assert_eq!(settled(&source), (2, vec![0, 1]));
        for piece in [0, 1] {
            source.fill(piece, &mut out).unwrap();
            assert_eq!(settled(&source).0, 2, "in order nothing is missed");
        }
        // Sent again: it is behind what is kept.
        for _ in 0..2 {
            source.fill(0, &mut out).unwrap();
            assert_eq!(out, bytes[..PIECE as usize]);
        }
        assert_eq!(settled(&source), (4, vec![1, 2, 3]));
        // Far ahead of the reader; what it keeps is no more than what it has.
        source.fill(20, &mut out).unwrap();
        source.fill(30, &mut out).unwrap();
        assert_eq!(settled(&source), (4, vec![29, 30, 31, 32]));
        assert_eq!(purse.0.load(Ordering::Relaxed), 3 * PIECE);
        drop((source, reading));
    }

    #[test]
    fn a_file_that_changes_is_noticed() {
        let (file, _) = file(200 * PIECE as usize);
        let (_source, reading) = source(file.reopen().unwrap(), 0, Hasher::new(), None).unwrap();
        file.as_file().set_len(100).unwrap();
        assert!(reading.finish(&Cancel::default()).is_err());
    }

    #[test]
    fn an_end_without_finish_ends_the_thread() {
        let (file, _) = file(200 * PIECE as usize);
        let (source, mut reading) = source(file.reopen().unwrap(), 0, Hasher::new(), None).unwrap();
        let thread = reading.thread.take().unwrap();
        drop((source, reading));
        assert!(thread.join().unwrap().is_err());
    }
}
