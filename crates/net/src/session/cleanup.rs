//! Removes abandoned partial files when the server starts and once an hour, on its own thread: a
//! directory may be large and its disk slow.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use fullpipe_units::{Span, Time};

use super::event::Event;
use super::server::Log;
use crate::content::Allowed;
use crate::file::Removed;

/// Schedules removal of unfinished files, at most one at a time.
#[derive(Debug, Default)]
pub struct Cleanup {
    /// Earliest start of the next cleanup.
    next: Time,
    thread: Option<JoinHandle<()>>,
}

impl Cleanup {
    /// Starts a cleanup if one is due and none is running.
    pub fn run_if_due(&mut self, now: Time, allowed: &Allowed, log: &Log) {
        let (Some(files), Some(age)) = (&allowed.files, allowed.keep_parts) else {
            return;
        };
        let busy = self.thread.as_ref().is_some_and(|t| !t.is_finished());
        if now < self.next || busy {
            return;
        }
        self.next = now + EVERY;
        let (files, log) = (Arc::clone(files), Arc::clone(log));
        let sweep = move || {
            // A directory that cannot be read now may be readable in an hour.
            let removed = files.remove_abandoned(age, SystemTime::now());
            let Removed {
                parts,
                bytes,
                failed,
            } = removed.unwrap_or_default();
            if parts + failed > 0 {
                log(&Event::Removed {
                    parts,
                    bytes,
                    failed,
                });
            }
        };
        let thread = thread::Builder::new().name("file-sweeper".to_owned());
        self.thread = thread.spawn(sweep).ok();
    }
}

/// Interval between cleanups.
const EVERY: Span = Span::from_secs(3600);
