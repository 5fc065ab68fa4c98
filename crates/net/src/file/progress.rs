//! How far a stream that is being written has come, and word of it on the disk.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullpipe_flow::{Range, RangeSet};

use super::place::Place;
use super::state::State;

/// Bytes of a stream that are written: those without a hole, which are hashed in order, and what
/// lies beyond the first hole.
#[derive(Debug, Default)]
pub(super) struct Progress {
    prefix: u64,
    ahead: RangeSet,
}

impl Progress {
    /// A stream of which `prefix` bytes are there and hashed.
    pub(super) fn from(prefix: u64) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }

    /// Bytes without a hole that are hashed.
    pub(super) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// `len` bytes from `at` on are written. True if they are the next to hash.
    pub(super) fn wrote(&mut self, at: u64, len: usize) -> bool {
        if at == self.prefix {
            return true;
        }
        let range = Range {
            start: at,
            end: at + len as u64,
        };
        self.ahead.insert(range, |_| {});
        false
    }

    /// What is written up to `end` is hashed.
    pub(super) fn hashed(&mut self, end: u64) {
        self.prefix = self.prefix.max(end);
        self.ahead.trim_below(self.prefix);
    }

    /// Where what lies behind a hole that is filled ends: it has to be read back for its hash. What
    /// came ahead is bounded by what a window holds.
    pub(super) fn to_read_back(&self) -> Option<u64> {
        let first = self.ahead.first()?;
        (first.start <= self.prefix).then_some(first.end)
    }
}

/// What is known of a file, and the file that is to be on the disk before that is said.
pub(super) type Order = (Arc<Place>, Arc<File>, State);

/// A thread that brings data to the disk and then says so, while the writer goes on.
pub(super) struct Checkpoints {
    to_thread: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    last: Instant,
}

impl Checkpoints {
    pub(super) fn new() -> io::Result<Self> {
        let (to_thread, orders) = sync_channel::<Order>(1);
        let thread = thread::Builder::new()
            .name("file-state".to_owned())
            .spawn(move || {
                for (place, file, state) in orders {
                    // Without it a transfer that dies begins further back: no reason to give up one
                    // that lives.
                    let _ = file.sync_data().and_then(|()| place.write_state(&state));
                }
            })?;
        Ok(Self {
            to_thread: Some(to_thread),
            thread: Some(thread),
            last: Instant::now(),
        })
    }

    pub(super) fn is_due(&self) -> bool {
        self.last.elapsed() >= BETWEEN_STATES
    }

    /// False: the thread is not done with the one before.
    pub(super) fn order(&mut self, order: Order) -> bool {
        let to_thread = self.to_thread.as_ref();
        let taken = to_thread.is_some_and(|to_thread| to_thread.try_send(order).is_ok());
        if taken {
            self.last = Instant::now();
        }
        taken
    }

    /// Waits for the thread, which takes one more order before it ends.
    pub(super) fn end(&mut self, last: Option<Order>) {
        if let (Some(to_thread), Some(last)) = (self.to_thread.take(), last) {
            let _ = to_thread.send(last);
        }
        if let Some(thread) = self.thread.take() {
            // A panic there costs the state only.
            let _ = thread.join();
        }
    }
}

/// Word is left at most this often.
const BETWEEN_STATES: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_ahead_is_read_back_once_the_hole_is_filled() {
        let mut progress = Progress::from(100);
        assert!(!progress.wrote(120, 10));
        assert!(!progress.wrote(130, 10));
        assert!(!progress.wrote(160, 10));
        assert_eq!(progress.to_read_back(), None);
        assert!(progress.wrote(100, 20));
        progress.hashed(120);
        assert_eq!(progress.to_read_back(), Some(140));
        progress.hashed(140);
        assert_eq!((progress.prefix(), progress.to_read_back()), (140, None));
        assert!(progress.wrote(140, 20));
        progress.hashed(160);
        assert_eq!(progress.to_read_back(), Some(170));
    }
}
