//! Removes abandoned partial files when the server starts and once an hour, on its own thread: a
//! directory may be large and its disk slow.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

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
    /// The first one: by the clock of the server, which does not jump, and by the calendar.
    first: Option<(Time, SystemTime)>,
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
        let date = self.date(now, SystemTime::now());
        let (files, log) = (Arc::clone(files), Arc::clone(log));
        let sweep = move || {
            // A directory that cannot be read now may be readable in an hour.
            let removed = files.remove_abandoned(age, date);
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

    /// The date by which files are old. Days that the calendar is put forward while the server runs
    /// have not passed: no file ages by them.
    fn date(&mut self, now: Time, calendar: SystemTime) -> SystemTime {
        let (begun, first) = *self.first.get_or_insert((now, calendar));
        let passed = Duration::from_nanos(now.saturating_since(begun).as_nanos());
        first
            .checked_add(passed)
            .map_or(calendar, |date| date.min(calendar))
    }
}

/// Interval between cleanups.
const EVERY: Span = Span::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_that_is_put_forward_makes_no_file_older() {
        let mut cleanup = Cleanup::default();
        let hour = |n: u64| Time::ZERO + Span::from_secs(3600 * n);
        let day = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * n);
        let hours = |n: u64| Duration::from_secs(3600 * n);
        assert_eq!(cleanup.date(hour(5), day(100)), day(100));
        assert_eq!(
            cleanup.date(hour(6), day(100) + hours(1)),
            day(100) + hours(1)
        );
        assert_eq!(cleanup.date(hour(7), day(130)), day(100) + hours(2));
        // Put back, it is believed.
        assert_eq!(cleanup.date(hour(8), day(90)), day(90));
    }
}
