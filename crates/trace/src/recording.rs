//! Records a trace during a run: a bounded queue to a writer thread, so that the run never waits
//! for the disk and memory stays constant. What the queue cannot take is counted, not waited for.
//!
//! The file is a [`WholeFile`].

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fullpipe_cc::MOST_VARIABLES;
use fullpipe_flow::{TraceRow, TraceSink};

use crate::write::{Numbers, Resolution, TraceWriter};
use crate::{Meta, TraceError, WholeFile};

/// A trace under way.
#[derive(Debug)]
pub struct Recording {
    file: Option<WholeFile>,
    rows: Option<Sender<Sample>>,
    room: Arc<Room>,
    abandoned: Arc<AtomicBool>,
    stacks: Stacks,
    writer: Option<JoinHandle<Result<(u64, u64), TraceError>>>,
}

/// Stacks that flows turn out to have had, by index: for the writer, when the rows are over.
type Stacks = Arc<Mutex<Vec<(u32, String)>>>;

/// Rows and losses of a finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Rows in the file.
    pub rows: u64,
    /// Rows that the queue could not take.
    pub missed: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Takes the rows of flows; may be cloned, one for each thread or flow.
#[derive(Clone, Debug)]
pub struct Tap {
    rows: Sender<Sample>,
    room: Arc<Room>,
}

/// What bounds the queue. Not the queue itself: one that is made for the most that may ever wait is
/// passed through from end to end, never in a cache; one that grows and shrinks is as large as what
/// waits.
#[derive(Debug)]
struct Room {
    /// Rows that may wait, and rows that do.
    most: usize,
    taken: AtomicUsize,
    missed: AtomicU64,
}

/// A row on its way.
#[derive(Clone, Copy, Debug)]
struct Sample {
    row: TraceRow,
    variables: [f64; MOST_VARIABLES],
}

impl Recording {
    /// Begins a trace that will be `path`; `queue` rows may wait.
    ///
    /// # Errors
    /// If the temporary file beside it cannot be made.
    pub fn begin(
        path: &Path,
        meta: &Meta,
        resolution: Resolution,
        queue: usize,
    ) -> Result<Recording, TraceError> {
        let file = WholeFile::begin(path)?;
        let out = BufWriter::with_capacity(1 << 16, file.file()?);
        let writer = TraceWriter::new(out, meta, resolution, Numbers::Decimal)?;
        let (send, receive) = channel();
        let room = Arc::new(Room {
            most: queue.max(1),
            taken: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
        });
        let abandoned = Arc::new(AtomicBool::new(false));
        let (count, stop) = (Arc::clone(&room), Arc::clone(&abandoned));
        let stacks = Stacks::default();
        let named = Arc::clone(&stacks);
        let writer = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write(writer, &receive, &count, &stop, &named))?;
        Ok(Recording {
            file: Some(file),
            rows: Some(send),
            room,
            abandoned,
            stacks,
            writer: Some(writer),
        })
    }

    /// Another way in.
    ///
    /// # Panics
    /// Never: a recording that is not finished has its queue.
    pub fn tap(&self) -> Tap {
        Tap {
            rows: self.rows.clone().expect("until it is finished"),
            room: Arc::clone(&self.room),
        }
    }

    /// Waits until every tap is dropped and every row written, then gives the file its name. The
    /// flows of these indices had these stacks.
    ///
    /// # Errors
    /// If it could not be written; then there is no file.
    pub fn finish(mut self, stacks: Vec<(u32, String)>) -> Result<Summary, TraceError> {
        *self.stacks.lock().unwrap_or_else(PoisonError::into_inner) = stacks;
        drop(self.rows.take());
        let writer = self.writer.take().expect("finished once");
        let (rows, bytes) = writer
            .join()
            .map_err(|_| std::io::Error::other("the thread that writes the trace failed"))??;
        self.file.take().expect("finished once").finish()?;
        Ok(Summary {
            rows,
            missed: self.room.missed.load(Ordering::Relaxed),
            bytes,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.abandoned.store(true, Ordering::Relaxed);
            drop(self.rows.take());
            let _ = writer.join();
        }
    }
}

impl Tap {
    /// Rows that the queue could not take so far, of all taps together.
    pub fn missed(&self) -> u64 {
        self.room.missed.load(Ordering::Relaxed)
    }
}

impl TraceSink for Tap {
    #[inline]
    fn put(&mut self, row: &TraceRow, variables: &[f64]) {
        let room = &self.room;
        if room.taken.fetch_add(1, Ordering::Relaxed) >= room.most {
            room.taken.fetch_sub(1, Ordering::Relaxed);
            room.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut sample = Sample {
            row: *row,
            variables: [f64::NAN; MOST_VARIABLES],
        };
        let n = variables.len().min(MOST_VARIABLES);
        sample.variables[..n].copy_from_slice(&variables[..n]);
        if self.rows.send(sample).is_err() {
            room.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The writer's thread: rows until every tap is gone. It looks at the queue now and then instead of
/// sleeping in it: waking a sleeper would cost each row a system call.
fn write(
    mut writer: TraceWriter<BufWriter<File>>,
    rows: &Receiver<Sample>,
    room: &Room,
    abandoned: &AtomicBool,
    stacks: &Stacks,
) -> Result<(u64, u64), TraceError> {
    let mut taken = 0;
    loop {
        let row = rows.try_recv();
        if taken >= AT_ONCE || (row.is_err() && taken > 0) {
            room.taken.fetch_sub(taken, Ordering::Relaxed);
            taken = 0;
        }
        match row {
            Ok(s) => {
                taken += 1;
                writer.push(&s.row, &s.variables)?;
            }
            Err(TryRecvError::Empty) if abandoned.load(Ordering::Relaxed) => {
                return Err(std::io::Error::other("abandoned").into());
            }
            Err(TryRecvError::Empty) => std::thread::sleep(LOOK),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    let named = std::mem::take(&mut *stacks.lock().unwrap_or_else(PoisonError::into_inner));
    for (flow, stack) in named {
        writer.name_stack(flow, stack);
    }
    let (count, out) = writer.finish(room.missed.load(Ordering::Relaxed))?;
    let file = out.into_inner().map_err(|e| e.into_error())?;
    Ok((count, file.metadata()?.len()))
}

/// How often an empty queue is looked at: a look that wakes the thread costs some microseconds, and
/// a hundredth of [`QUEUE`] comes between two.
const LOOK: Duration = Duration::from_millis(10);
/// Rows after which the writer gives their room back.
const AT_ONCE: usize = 64;
/// Rows that may wait, unless asked for otherwise: at most 15 MB, more than half a second at
/// 100,000 ACKs a second.
pub const QUEUE: usize = 1 << 16;
