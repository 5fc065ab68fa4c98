//! A thread of ordinary priority that sleeps and looks how late it wakes up: what the programs of a
//! run suffer on a busy machine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullpipe_run::{Histogram, Lateness};
use fullpipe_units::Span;

/// Looks on until it is asked.
#[derive(Debug)]
pub struct Witness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Histogram>,
}

/// Length of a sleep.
const SLEEP: Duration = Duration::from_millis(5);

impl Witness {
    /// Begins to look.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn begin() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("witness".into());
        let thread = thread.spawn(move || {
            let mut late = Histogram::default();
            while !stopped.load(Ordering::Relaxed) {
                let due = Instant::now() + SLEEP;
                thread::sleep(SLEEP);
                let nanos = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
                late.record(Span::from_nanos(nanos));
            }
            late
        })?;
        Ok(Self { stop, thread })
    }

    /// Lateness of its wake-ups since [`Witness::begin`].
    pub fn end(self) -> Lateness {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_or_else(
            |_| Lateness::default(),
            |histogram| Lateness::of(&histogram),
        )
    }
}
