//! A file that is to come: what of it is there, and whose it is. Bytes go to it in any order, and
//! are hashed by blocks.

#[cfg(test)]
mod tests;
mod together;
mod writer;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use self::together::{begin_all, sync_directories, sync_files};
pub use self::writer::{NOBODY, Receiving, receive_all};
use super::hash::Cancel;
use super::place::Place;
use super::sink::allocate;
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
    /// Its bytes have been synced to the disk.
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
    /// The unfinished file of that copy has been replaced.
    is_replaced: bool,
}

impl Target {
    /// A target that has not been looked at.
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

    /// True if its directory has been removed since, and nothing of it was there.
    pub fn is_void(&self) -> bool {
        self.blocks.present().is_empty() && self.place.is_gone()
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
        let noted = self.place.note_state(&self.state());
        noted.map_err(|e| self.place.explained(e))
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
        let named = self.place.name(&file, overwrite);
        named.map_err(|e| self.place.explained(e))
    }
}

fn key_of(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}
