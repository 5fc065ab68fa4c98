//! The end of a stream of several files: bytes go to their files in any order, and are hashed by
//! blocks. A file is open only while bytes of it are on their way.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use fullpipe_flow::{Range, RangeSet};

use super::hash::Cancel;
use super::place::Place;
use super::plan::Plan;
use super::room::Room;
use super::sink::{BETWEEN_STATES, FileSink, Piece, Shared, allocate};
use super::state::{Identity, State};
use super::tree::Blocks;

/// A file that is to come, and what of it is there.
#[derive(Debug)]
pub struct Target {
    /// Directory and final name.
    pub place: Arc<Place>,
    /// Size and modification time of the sender's file.
    pub source: Identity,
    /// Digests of the blocks that are on the disk.
    pub blocks: Blocks,
    /// Device and inode of the unfinished file.
    key: Option<(u64, u64)>,
}

impl Target {
    /// Of which nothing is known yet.
    pub fn new(place: Arc<Place>, source: Identity) -> Self {
        Self {
            place,
            source,
            blocks: Blocks::new(source.size),
            key: None,
        }
    }

    /// Reads and hashes what an earlier copy of the same file left; false if there is nothing.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if a file of somebody else has the name of the unfinished one;
    /// [`ErrorKind::ResourceBusy`] if another transfer writes it; as the system says.
    pub fn look(&mut self, cancel: &Cancel) -> io::Result<bool> {
        let there = self.place.has_part()?;
        let Some(state) = self.place.state() else {
            return match there {
                true => Err(not_ours()),
                false => Ok(false),
            };
        };
        if !there || state.source != self.source {
            return Ok(false);
        }
        let file = self.place.open_part()?;
        let spans = self.blocks.whole(&state.present());
        self.blocks.read(&file, &spans, cancel)?;
        Ok(!self.blocks.present().is_empty())
    }

    /// Leaves word of what is there, for whoever goes on with it.
    ///
    /// # Errors
    /// As the system says.
    pub fn note(&self) -> io::Result<()> {
        self.place.note_state(&self.state())
    }

    fn state(&self) -> State {
        State::of_ranges(self.source, self.blocks.present())
    }

    /// Opens the unfinished file, the same one every time.
    fn open(&mut self) -> io::Result<File> {
        let file = self.place.open_part()?;
        let metadata = file.metadata()?;
        let key = (metadata.dev(), metadata.ino());
        match *self.key.get_or_insert(key) == key {
            true => Ok(file),
            false => Err(io::Error::new(
                ErrorKind::NotFound,
                "somebody else moved or replaced the unfinished file",
            )),
        }
    }

    /// Takes the disk that it needs.
    fn reserve(&mut self) -> io::Result<()> {
        let file = self.open()?;
        if self.blocks.present().is_empty() {
            file.set_len(0)?;
        } else if file.metadata()?.len() > self.source.size {
            file.set_len(self.source.size)?;
        }
        allocate(&file, self.source.size)
    }

    /// Gives the file its final name; [`sync_directories`] brings that to the disk.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if it is not complete; as the system says.
    pub fn publish(&mut self, overwrite: bool) -> io::Result<()> {
        if !self.blocks.is_complete() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let file = self.open()?;
        self.place.name(&file, overwrite)
    }
}

/// Brings the names of files to the disk.
///
/// # Errors
/// As the system says.
pub fn sync_directories<'t>(targets: impl Iterator<Item = &'t Target>) -> io::Result<()> {
    let mut done = Vec::new();
    for target in targets {
        let directory = target.place.directory()?;
        if !done.contains(&directory) {
            target.place.sync_directory()?;
            done.push(directory);
        }
    }
    Ok(())
}

fn not_ours() -> io::Error {
    let what = "a file or directory of this name with `.part` is there and is not ours";
    io::Error::new(ErrorKind::AlreadyExists, what)
}

/// Leaves word of all `targets` that are to come, and takes the disk for them; if there is no room
/// for all of them, nothing is left of those that are new.
///
/// # Errors
/// [`ErrorKind::QuotaExceeded`], [`ErrorKind::StorageFull`]; as the system says.
pub fn begin_all(targets: &mut [Target], room: &Room) -> io::Result<()> {
    if let Some(first) = targets.first() {
        let taken = targets.iter().filter_map(|t| t.place.part_bytes().ok());
        let sizes = targets.iter().map(|t| t.source.size);
        let all = sizes.fold(0, u64::saturating_add);
        if all.saturating_sub(taken.sum()) > first.place.free()? {
            return Err(ErrorKind::StorageFull.into());
        }
    }
    let begun = room.admit(|| {
        for target in targets.iter() {
            target.place.begin_part()?;
            target.note()?;
        }
        Ok(())
    });
    let begun = begun.and_then(|()| targets.iter_mut().try_for_each(Target::reserve));
    if begun.is_err() {
        for target in targets.iter().filter(|t| t.blocks.present().is_empty()) {
            target.place.discard()?;
        }
    }
    begun
}

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
        prefix: 0,
        ahead: RangeSet::default(),
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
    /// Bytes of the stream that are written and hashed.
    prefix: u64,
    /// Bytes beyond the first hole.
    ahead: RangeSet,
    /// Files that bytes came for of late.
    open: Vec<(u32, Arc<File>)>,
    checkpoints: Checkpoints,
}

impl Writer {
    fn run(mut self, pieces: &Receiver<Piece>) -> (Vec<Target>, io::Result<()>) {
        let mut written = Ok(());
        for piece in pieces {
            written = self.take(&piece);
            let bytes = piece.bytes.len();
            self.shared.waiting.fetch_sub(bytes, Ordering::Relaxed);
            if let Err(error) = &written {
                self.shared.fail(error);
                break;
            }
        }
        self.checkpoints.end();
        let open: Vec<u32> = self.open.drain(..).map(|(index, _)| index).collect();
        for index in open {
            // Without it the next attempt begins further back.
            let _ = self.targets[index as usize].note();
        }
        (self.targets, written)
    }

    fn take(&mut self, piece: &Piece) -> io::Result<()> {
        let end = piece.at + piece.bytes.len() as u64;
        self.each(piece.at, &piece.bytes, |this, index, inside, bytes| {
            this.file(index)?.write_all_at(bytes, inside)
        })?;
        if piece.at == self.prefix {
            self.hash(piece.at, &piece.bytes)?;
            self.join()?;
        } else {
            let range = Range {
                start: piece.at,
                end,
            };
            self.ahead.insert(range, |_| {});
        }
        self.shared.prefix.store(self.prefix, Ordering::Relaxed);
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
            this.targets[index as usize].blocks.feed(inside, bytes);
            let end = this.prefix + bytes.len() as u64;
            let (number, piece, _) = this.plan.find(this.prefix).ok_or(ErrorKind::InvalidData)?;
            this.prefix = end;
            if end == piece.at + (piece.to - piece.from) && this.plan.is_last(number) {
                this.targets[index as usize].note()?;
                this.open.retain(|(open, _)| *open != index);
            }
            Ok(())
        })
    }

    /// A hole is filled: what lies behind it is read back for its hash.
    fn join(&mut self) -> io::Result<()> {
        let Some(next) = self.ahead.first().filter(|r| r.start <= self.prefix) else {
            return Ok(());
        };
        let mut buffer = vec![0; READ_BACK];
        while self.prefix < next.end {
            let at = self.prefix;
            let (_, piece, inside) = self.plan.find(at).ok_or(ErrorKind::InvalidData)?;
            let n = (next.end - at).min(piece.to - inside);
            let n = buffer.len().min(n as usize);
            self.file(piece.file)?
                .read_exact_at(&mut buffer[..n], inside)?;
            self.hash(at, &buffer[..n])?;
        }
        self.ahead.trim_below(self.prefix);
        Ok(())
    }

    fn file(&mut self, index: u32) -> io::Result<Arc<File>> {
        if let Some((_, file)) = self.open.iter().rfind(|(open, _)| *open == index) {
            return Ok(Arc::clone(file));
        }
        if self.open.len() >= MOST_OPEN {
            self.open.remove(0);
        }
        let target = self.targets.get_mut(index as usize);
        let file = Arc::new(target.ok_or(ErrorKind::InvalidData)?.open()?);
        self.open.push((index, Arc::clone(&file)));
        Ok(file)
    }

    /// Brings the file that grows to the disk now and then, with word of how far it got.
    fn checkpoint(&mut self) {
        if !self.checkpoints.is_due() {
            return;
        }
        if let Some((_, piece, _)) = self.plan.find(self.prefix)
            && let Some((_, file)) = self.open.iter().find(|(open, _)| *open == piece.file)
        {
            let target = &self.targets[piece.file as usize];
            let order = (Arc::clone(&target.place), Arc::clone(file), target.state());
            self.checkpoints.order(order);
        }
    }
}

type Order = (Arc<Place>, Arc<File>, State);

/// A thread that brings data to the disk and then says so, while the writer goes on.
struct Checkpoints {
    to_thread: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    last: Instant,
}

impl Checkpoints {
    fn new() -> io::Result<Self> {
        let (to_thread, orders) = sync_channel::<Order>(1);
        let thread = thread::Builder::new()
            .name("file-state".to_owned())
            .spawn(move || {
                for (place, file, state) in orders {
                    // Without it a copy that dies begins further back.
                    let _ = file.sync_data().and_then(|()| place.write_state(&state));
                }
            })?;
        Ok(Self {
            to_thread: Some(to_thread),
            thread: Some(thread),
            last: Instant::now(),
        })
    }

    fn is_due(&self) -> bool {
        self.last.elapsed() >= BETWEEN_STATES
    }

    fn order(&mut self, order: Order) {
        if let Some(to_thread) = &self.to_thread
            && to_thread.try_send(order).is_ok()
        {
            self.last = Instant::now();
        }
    }

    fn end(&mut self) {
        drop(self.to_thread.take());
        if let Some(thread) = self.thread.take() {
            // A panic there costs the state only.
            let _ = thread.join();
        }
    }
}

/// Files that are open at a time.
const MOST_OPEN: usize = 8;
/// Bytes that are read back at once.
const READ_BACK: usize = 256 << 10;
