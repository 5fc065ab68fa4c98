//! The end of a stream of several files: bytes go to their files in any order, and are hashed by
//! blocks. A file is open only while bytes of it are on their way.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use fullpipe_flow::{Range, RangeSet};

use super::hash::Cancel;
use super::place::Place;
use super::plan::Plan;
use super::room::Room;
use super::sink::{BETWEEN_STATES, FileSink, Piece, Shared, allocate};
use super::state::{Identity, Stamp, State};
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
    /// Those blocks are of the file that has the final name, and of no unfinished one.
    is_final: bool,
    /// Whose unfinished file it is, as its state says.
    owner: u64,
    /// Device and inode of the unfinished file.
    key: Option<(u64, u64)>,
    /// The unfinished file, locked, where there are few.
    held: Option<Arc<File>>,
    /// The unfinished file as it was when it was read, or as it was left when it was last written.
    left: Option<Stamp>,
    /// Somebody else has changed the unfinished file since: what it holds has to be read.
    is_doubted: bool,
    /// Blocks that had come are no longer what they were.
    is_changed: bool,
    /// The same copy was writing the unfinished file when it was read.
    is_beside: bool,
    /// Its bytes are on the disk.
    is_synced: bool,
    /// Why it cannot be written: bytes that come for it are dropped.
    failure: Option<io::Error>,
    /// Who comes after this copy waits until it is gone.
    claim: Option<Arc<AtomicBool>>,
}

/// What a copy found when it began, for whoever takes that back.
#[derive(Debug)]
struct Before {
    /// Of an earlier copy; `None`: there was none.
    state: Option<State>,
    /// Its unfinished file has been replaced.
    is_replaced: bool,
}

impl Target {
    /// Of which nothing is known yet.
    pub fn new(place: Arc<Place>, source: Identity) -> Self {
        Self {
            place,
            source,
            blocks: Blocks::new(source.size),
            is_final: false,
            owner: 0,
            key: None,
            held: None,
            left: None,
            is_doubted: false,
            is_changed: false,
            is_beside: false,
            is_synced: false,
            failure: None,
            claim: None,
        }
    }

    /// Keeps `claim` as long as it lives.
    pub fn claim(&mut self, claim: Option<Arc<AtomicBool>>) {
        self.claim = claim;
    }

    /// Why it could not be begun or written.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Reads and hashes the file that has the final name, if that is as long as the sender's; false
    /// if it is not.
    ///
    /// # Errors
    /// As the system says.
    pub fn look_at_final(&mut self, cancel: &Cancel) -> io::Result<bool> {
        let file = self.place.open()?;
        if file.metadata()?.len() != self.source.size {
            return Ok(false);
        }
        self.blocks.read(&file, &[(0, self.source.size)], cancel)?;
        self.is_final = true;
        Ok(true)
    }

    /// Nothing of somebody else is in the way of an unfinished file.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn may_begin(&self) -> io::Result<()> {
        self.place.state_if_ours().map(drop)
    }

    /// True if the blocks are those of a file that has the final name.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Removes what a copy left that was killed when it had just given the file its name.
    ///
    /// # Errors
    /// As the system says.
    pub fn tidy(&self) -> io::Result<()> {
        let state = self.place.state().filter(|s| s.source == self.source);
        if !self.is_final || state.is_none() {
            return Ok(());
        }
        self.place.unlink_second_name()?;
        match self.place.has_part()? {
            true => Ok(()),
            false => self.place.unlink_state(),
        }
    }

    /// What has the final name counts for nothing: all of it is to come.
    pub fn replace_final(&mut self) {
        if self.is_final {
            self.is_final = false;
            self.blocks = Blocks::new(self.source.size);
        }
    }

    /// Reads and hashes what an earlier copy of the same file left; false if there is nothing.
    /// `beside`: the same copy may still be writing it, and is not disturbed.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if a file of somebody else has the name of the unfinished one;
    /// [`ErrorKind::ResourceBusy`] if another transfer writes it; as the system says.
    pub fn look(&mut self, beside: bool, cancel: &Cancel) -> io::Result<bool> {
        let Some(state) = self.place.state_if_ours()? else {
            return Ok(false);
        };
        let left = match beside {
            true => self.place.peek_left()?,
            false => self.place.open_left()?,
        };
        let Some(file) = left.filter(|_| state.source == self.source) else {
            return Ok(false);
        };
        self.key = Some(key_of(&file)?);
        let spans = self.blocks.whole(&state.present());
        self.left = Some(Stamp::of(&file)?);
        self.is_beside = beside;
        self.blocks.read(&file, &spans, cancel)?;
        Ok(!self.blocks.present().is_empty())
    }

    /// Of what was read while the same copy was writing it, once that is over: it is still there.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] if it is not, or another transfer writes it; as the system says.
    pub fn look_again(&mut self, cancel: &Cancel) -> io::Result<()> {
        let present = self.blocks.present();
        if !self.is_beside || present.is_empty() {
            return Ok(());
        }
        let file = self.place.open_left()?.ok_or(ErrorKind::ResourceBusy)?;
        let left = Stamp::of(&file)?;
        let mut now = Blocks::new(self.source.size);
        now.read(&file, &present, cancel)?;
        if self.key != Some(key_of(&file)?) || !self.blocks.is_within(&now) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        self.left = Some(left);
        Ok(())
    }

    /// Leaves word of what is there, for whoever goes on with it.
    ///
    /// # Errors
    /// As the system says.
    pub fn note(&self) -> io::Result<()> {
        self.place.note_state(&self.state())
    }

    fn state(&self) -> State {
        State::of_ranges(self.source, self.blocks.present(), self.owner)
    }

    /// Leaves word that it is to come, unless somebody else writes it.
    fn begin(&mut self, owner: u64) -> io::Result<Before> {
        let state = self.place.state_if_ours()?;
        let left = self.place.open_left()?;
        // What was read at the first look is still there.
        if !self.blocks.present().is_empty() {
            let file = left.as_ref().ok_or_else(|| self.place.taken_away())?;
            self.same(file)?;
            if self.left != Some(Stamp::of(file)?) {
                return Err(self.place.taken_away());
            }
        }
        self.owner = owner;
        self.note()?;
        Ok(Before {
            state,
            is_replaced: false,
        })
    }

    /// Makes the unfinished file, or goes on with it, and takes the disk that it needs.
    fn reserve(&mut self, before: &mut Before, hold: bool) -> io::Result<()> {
        let left = self.place.open_left()?;
        let file = match left {
            Some(file) if !self.blocks.present().is_empty() => {
                self.key = Some(self.same(&file)?);
                if file.metadata()?.len() > self.source.size {
                    file.set_len(self.source.size)?;
                }
                file
            }
            // Whoever still writes the old one keeps it, without a name.
            _left => {
                let file = self.place.fresh_part(before.state.is_some())?;
                before.is_replaced = true;
                self.key = Some(key_of(&file)?);
                file
            }
        };
        let file = Arc::new(file);
        self.held = Some(Arc::clone(&file));
        allocate(&file, self.source.size)?;
        self.left = Some(Stamp::of(&file)?);
        if !hold {
            self.held = None;
        }
        Ok(())
    }

    /// Bytes of the file, to the unfinished one `file`.
    fn write(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        self.look_for_others(file)?;
        file.write_all_at(bytes, at)?;
        self.left = Some(Stamp::of(file)?);
        Ok(())
    }

    /// Notices what somebody else has done to the unfinished file since it was last written to:
    /// what was hashed on its way here may not be what is there.
    fn look_for_others(&mut self, file: &File) -> io::Result<()> {
        let now = Stamp::of(file)?;
        self.is_doubted |= self.left.is_some_and(|left| left != now);
        self.left = Some(now);
        Ok(())
    }

    /// Reads back what somebody else may have changed, and forgets the blocks that are not as they
    /// came; false if there are any.
    fn prove(&mut self, file: &File) -> io::Result<bool> {
        self.look_for_others(file)?;
        if !self.is_doubted {
            return Ok(true);
        }
        let (before, mut now) = (self.blocks.present(), Blocks::new(self.source.size));
        now.read(file, &before, &Cancel::default())?;
        self.blocks.keep_same(&now);
        self.is_doubted = false;
        let is_good = self.blocks.present() == before;
        self.is_changed |= !is_good;
        Ok(is_good)
    }

    /// Somebody else has changed blocks of it that had come: they have to come again.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Leaves everything as it was before [`begin`](Self::begin), as far as that is still there.
    fn take_back(&mut self, before: Before) -> io::Result<()> {
        let held = self.held.take();
        if before.is_replaced
            && let Some(file) = held.or_else(|| self.open().ok().map(Arc::new))
        {
            self.place.unlink_part(&file)?;
        }
        if !self.is_ours() {
            return Ok(());
        }
        match before.state.filter(|_| !before.is_replaced) {
            Some(state) => self.place.note_state(&state),
            None => self.place.unlink_state(),
        }
    }

    /// Opens the unfinished file, the same one every time. The number of a file that is gone may be
    /// given to another's, so the state has to be that of this copy, too.
    fn open(&self) -> io::Result<File> {
        let file = self
            .place
            .open_left()?
            .ok_or_else(|| self.place.taken_away())?;
        self.same(&file)?;
        match self.is_ours() {
            true => Ok(file),
            false => Err(self.place.taken_away()),
        }
    }

    fn same(&self, file: &File) -> io::Result<(u64, u64)> {
        let key = key_of(file)?;
        match self.key == Some(key) {
            true => Ok(key),
            false => Err(self.place.taken_away()),
        }
    }

    /// True if the state is that of this copy, and no other has begun since.
    fn is_ours(&self) -> bool {
        let state = self.place.state();
        state.is_some_and(|state| state.owner == self.owner)
    }

    /// Removes what nobody can go on with: the unfinished file, and its state.
    ///
    /// # Errors
    /// As the system says.
    pub fn discard(&mut self) -> io::Result<()> {
        let file = match self.held.take() {
            Some(file) => file,
            None => Arc::new(self.open()?),
        };
        match self.is_ours() {
            true => {
                self.place.unlink_part(&file)?;
                self.place.unlink_state()
            }
            false => Ok(()),
        }
    }

    /// Gives the file its final name; [`sync_directories`] brings that to the disk.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if it is not complete; as the system says.
    pub fn publish(&mut self, overwrite: bool) -> io::Result<()> {
        if !self.blocks.is_complete() || self.is_final {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let file = match self.held.take() {
            Some(file) => file,
            None => Arc::new(self.open()?),
        };
        let is_whole = file.metadata()?.len() == self.source.size;
        if !self.prove(&file)? || !is_whole {
            // Whoever goes on with it finds out which blocks are good.
            self.note()?;
            let what = "its unfinished file was changed by somebody else";
            return Err(io::Error::new(ErrorKind::NotFound, what));
        }
        if !self.is_ours() {
            let what = "another transfer has begun to write it";
            return Err(io::Error::new(ErrorKind::NotFound, what));
        }
        if !self.is_synced {
            file.sync_all()?;
        }
        self.place.name(&file, overwrite)
    }
}

fn key_of(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

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
fn is_of_all(error: &io::Error) -> bool {
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

/// Leaves word of all `targets` that are to come, and takes the disk for them. One that cannot be
/// gets its failure; if that is a matter of all, everything is left as it was.
///
/// # Errors
/// Which one, and why: [`ErrorKind::QuotaExceeded`], [`ErrorKind::StorageFull`] of the first;
/// [`ErrorKind::ResourceBusy`] if another transfer writes it; [`ErrorKind::Interrupted`] once it is
/// cancelled.
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
    // The same copy comes again for what another transfer writes.
    let of_all = |e: &io::Error| is_of_all(e) || e.kind() == ErrorKind::ResourceBusy;
    let mut index = 0;
    let admitted = room.admit(|| {
        for target in targets.iter_mut() {
            cancel.check()?;
            begun.push(match target.begin(owner) {
                Ok(before) => Some(before),
                Err(e) if of_all(&e) => return Err(e),
                Err(e) => {
                    target.failure = Some(e);
                    None
                }
            });
            index += 1;
        }
        // Of all together.
        index = 0;
        Ok(())
    });
    admitted.map_err(|e| (index, e))?;
    for (index, (target, before)) in targets.iter_mut().zip(begun).enumerate() {
        cancel.check().map_err(|e| (index, e))?;
        let Some(before) = before else { continue };
        match target.reserve(before, hold) {
            Err(e) if of_all(&e) => return Err((index, e)),
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
        let end = piece.at + piece.bytes.len() as u64;
        self.each(piece.at, &piece.bytes, |this, index, inside, bytes| {
            this.of_file(index, |this| {
                let file = this.file(index)?;
                this.targets[index as usize].write(&file, bytes, inside)
            })
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
            let end = this.prefix + bytes.len() as u64;
            let (number, piece, _) = this.plan.find(this.prefix).ok_or(ErrorKind::InvalidData)?;
            this.prefix = end;
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
            Err(e) if !is_of_all(&e) => e,
            done => return done,
        };
        let what = error.to_string();
        self.open.retain(|(open, _)| *open != index);
        let target = &mut self.targets[index as usize];
        // What came of it stays for the next attempt.
        target.failure = Some(error);
        match self.targets.iter().all(|target| target.failure.is_some()) {
            true => Err(io::Error::other(what)),
            false => Ok(()),
        }
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
            let now = &mut buffer[..n];
            self.of_file(piece.file, |this| {
                this.file(piece.file)?.read_exact_at(now, inside)
            })?;
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

/// Index, in a plan, of a file that failed before the run: what comes for it is dropped.
pub const NOBODY: u32 = u32::MAX;
/// Files that are open at a time.
const MOST_OPEN: usize = 8;
/// Files of a copy that stay open and locked from its beginning to its end; of more than these each
/// is locked while it is written, and not published if another copy has taken it over since.
const MOST_HELD: usize = 64;
/// Bytes that are read back at once.
const READ_BACK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of copies whose locks are not kept: the file of the first is replaced twice, and the system
    /// gives its number to the last one's. Neither writes into the other's, nor publishes it.
    #[test]
    fn a_number_that_is_given_again_makes_no_file_ours() {
        let dir = tempfile::tempdir().unwrap();
        let place = Arc::new(Place::local(&dir.path().join("x")).unwrap());
        let begun = |changed, owner| {
            let source = Identity { size: 4, changed };
            let mut target = Target::new(Arc::clone(&place), source);
            let mut before = target.begin(owner).unwrap();
            target.reserve(&mut before, false).unwrap();
            target
        };
        let mut first = begun(1, 1);
        let mut last = begun(2, 2);
        first.key = last.key;
        let error = first.open().unwrap_err();
        assert!(error.to_string().contains("x.part"), "{error}");
        let mut plan = Plan::default();
        plan.push(0, &[(0, 4)]);
        let (mut sink, receiving) = receive_all(vec![first], plan, 1448).unwrap();
        crate::payload::Sink::take(&mut sink, 0, b"mine").unwrap();
        drop(sink);
        let (mut targets, written) = receiving.finish().unwrap();
        written.unwrap_err();
        targets[0].publish(false).unwrap_err();
        let part = last.open().unwrap();
        assert_eq!(part.metadata().unwrap().len(), 0, "nothing was written");
        assert!(last.is_ours());
        drop(part);
        last.blocks.feed(0, b"last");
        last.open().unwrap().write_all_at(b"last", 0).unwrap();
        last.publish(false).unwrap();
        assert_eq!(std::fs::read(dir.path().join("x")).unwrap(), b"last");
    }
}
