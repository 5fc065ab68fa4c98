//! Lines for somebody who may not read them: a terminal that was stopped, a pipe whose reader
//! hangs. Whoever writes them waits for nobody.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that wait for their reader; those beyond are left out, counted and told.
const MOST: usize = 4096;
/// How long the end waits for whoever reads.
const MOMENT: Duration = Duration::from_secs(1);

/// A log that a thread of its own writes.
#[derive(Debug)]
pub struct Log {
    lines: SyncSender<String>,
    /// Hangs up when the last line is written.
    written: Receiver<()>,
    left_out: usize,
}

impl Log {
    /// Lines go to `write`, in their order.
    pub fn new(write: impl FnMut(&str) + Send + 'static) -> Self {
        Self::of(MOST, write)
    }

    fn of(most: usize, mut write: impl FnMut(&str) + Send + 'static) -> Self {
        let (lines, taken) = sync_channel::<String>(most);
        let (hold, written) = sync_channel(0);
        thread::spawn(move || {
            let _hold: SyncSender<()> = hold;
            taken.iter().for_each(|line| write(&line));
        });
        Self {
            lines,
            written,
            left_out: 0,
        }
    }

    /// A line, unless too many wait already.
    pub fn say(&mut self, line: &str) {
        self.tell_left_out();
        if self.left_out > 0 || self.lines.try_send(line.to_owned()).is_err() {
            self.left_out += 1;
        }
    }

    fn tell_left_out(&mut self) {
        let left_out = match self.left_out {
            0 => return,
            1 => "1 line of the log is left out here: nobody read it".to_owned(),
            n => format!("{n} lines of the log are left out here: nobody read it"),
        };
        if self.lines.try_send(left_out).is_ok() {
            self.left_out = 0;
        }
    }

    /// The end: waits a moment for the reader. Whether all is written. Nothing is taken behind it.
    pub fn end(&mut self) -> bool {
        self.tell_left_out();
        self.lines = sync_channel(0).0;
        self.written.recv_timeout(MOMENT) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A log of room for two lines, whose reader hangs after each until it is told to go on, or
    /// that nobody will tell it again; what it has read.
    fn stopped() -> (Log, SyncSender<()>, Receiver<String>) {
        let (next, go_on) = sync_channel::<()>(0);
        let (read, reader) = channel();
        let log = Log::of(2, move |line| {
            let _ = read.send(line.to_owned());
            let _ = go_on.recv();
        });
        (log, next, reader)
    }

    #[test]
    fn what_nobody_reads_is_left_out_and_told() {
        let (mut log, next, reader) = stopped();
        log.say("0");
        assert_eq!(reader.recv().unwrap(), "0");
        // It hangs, and this returns.
        (1..100).for_each(|k| log.say(&k.to_string()));
        drop(next);
        assert_eq!([1, 2].map(|_| reader.recv().unwrap()), ["1", "2"]);
        log.say("after");
        assert!(log.end(), "the reader reads");
        let told = "97 lines of the log are left out here: nobody read it";
        assert_eq!(reader.iter().collect::<Vec<_>>(), [told, "after"]);
    }

    #[test]
    fn the_end_waits_a_moment_for_a_reader_that_hangs() {
        let (mut log, _next, _reader) = stopped();
        log.say("a line");
        assert!(!log.end());
    }
}
