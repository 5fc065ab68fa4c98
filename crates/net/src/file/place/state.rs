//! What an unfinished transfer leaves word of, beside its file.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::PoisonError;

use nix::fcntl::{OFlag, renameat};

use super::Place;
use crate::file::name::{PART, STATE};
use crate::file::state::State;

/// A state that is being written.
pub(in crate::file) const UNFINISHED_STATE: &str = ".part.state~";

impl Place {
    /// What an unfinished transfer left word of; `None` if there is none, and whoever begins one
    /// may take the names.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if a file of somebody else has one of them: an unfinished file
    /// that no state tells of, or a state that is none.
    pub(in crate::file) fn state_if_ours(&self) -> io::Result<Option<State>> {
        for ending in [STATE, UNFINISHED_STATE] {
            if !self.may_be_state(&self.named(ending))? {
                return Err(not_ours(ending));
            }
        }
        match self.state() {
            None if self.has_part()? => Err(not_ours(PART)),
            state => Ok(state),
        }
    }

    /// False if `leaf` cannot be what a transfer wrote, or began to write when the power went.
    pub(super) fn may_be_state(&self, leaf: &OsStr) -> io::Result<bool> {
        let file = match self.file(leaf, OFlag::O_RDONLY | OFlag::O_NONBLOCK) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
            // A link, a directory, a pipe, or what only others may read.
            Err(_) => return Ok(false),
        };
        let mut first = Vec::new();
        file.take(State::MAGIC.len() as u64)
            .read_to_end(&mut first)?;
        let is_lost = first.iter().all(|byte| *byte == 0);
        Ok(is_lost || State::MAGIC.as_bytes().starts_with(&first))
    }

    /// What an unfinished transfer left word of; `None` if there is none, or none that can be read.
    pub(in crate::file) fn state(&self) -> Option<State> {
        let file = self.file(&self.named(STATE), OFlag::O_RDONLY).ok()?;
        let mut text = String::new();
        file.take(State::MOST).read_to_string(&mut text).ok()?;
        State::parse(&text)
    }

    /// Leaves word. Whoever reads it sees the old state or the new one.
    ///
    /// # Errors
    /// As the system says.
    pub(in crate::file) fn write_state(&self, state: &State) -> io::Result<()> {
        self.replace_state(state, true)
    }

    /// The same without waiting for the disk: after a loss of power the old state may be there, or
    /// data may be missing that the new one lists. Whoever goes on by it compares what is there.
    ///
    /// # Errors
    /// As the system says.
    pub(in crate::file) fn note_state(&self, state: &State) -> io::Result<()> {
        self.replace_state(state, false)
    }

    fn replace_state(&self, state: &State, wait: bool) -> io::Result<()> {
        let _held = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let temporary = self.named(UNFINISHED_STATE);
        let written = self.write(&temporary, state.to_string().as_bytes(), wait);
        if written.is_err() {
            // On a full disk it would stay for nothing.
            let _ = self.unlink(&temporary);
        }
        written?;
        renameat(
            &self.dir,
            temporary.as_os_str(),
            &self.dir,
            self.named(STATE).as_os_str(),
        )?;
        Ok(())
    }

    fn write(&self, leaf: &OsStr, bytes: &[u8], wait: bool) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let mut file = self.file(leaf, flags)?;
        file.write_all(bytes)?;
        match wait {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    /// Removes the state.
    ///
    /// # Errors
    /// As the system says.
    pub(in crate::file) fn unlink_state(&self) -> io::Result<()> {
        self.unlink(&self.named(STATE))
    }
}

/// A file of somebody else has the name of the unfinished one, or of its state.
fn not_ours(ending: &str) -> io::Error {
    let what = format!("a file or directory of this name with `{ending}` is there and is not ours");
    io::Error::new(ErrorKind::AlreadyExists, what)
}
