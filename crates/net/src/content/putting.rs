//! A file that comes to the server: what is there of it, from where it goes on, the run, its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blake3::Hash;
use fullpipe_run::RunSpec;

use super::carried::{Carried, set_transfer};
use super::{Answer, EXISTS, Question, Work, failed_on};
use crate::file::{Buffer, Cancel, Identity, Part, Place, Room, Writing, hashed};

/// The server's side of a file that the client sends.
#[derive(Debug)]
pub(super) struct Put {
    place: Arc<Place>,
    name: String,
    source: Identity,
    overwrite: bool,
    /// Bytes that may wait for the disk.
    buffer: Option<Buffer>,
    /// What unfinished files may take of the disk.
    room: Room,
    superseded: Arc<AtomicBool>,
    stage: PutStage,
}

#[derive(Debug)]
enum PutStage {
    /// Looking at what is there.
    Looking(Work<io::Result<There>>),
    There(There),
    /// Getting ready to take it from a byte on.
    Opening(Work<io::Result<Part>>),
    Ready(Part),
    Running(Writing),
    Finishing(Work<io::Result<Part>>),
    Publishing(Work<io::Result<()>>),
    Published,
    Failed(String),
    /// Between two of the others.
    Moving,
}

/// What is at the place of a file that is to come.
#[derive(Debug)]
enum There {
    Part(Part),
    /// A file of the same length, and its hash.
    Same(Hash),
}

impl Put {
    /// Looks at what is there.
    ///
    /// # Errors
    /// A sentence for the client, if it will not be done.
    pub(super) fn new(
        place: Place,
        name: String,
        source: Identity,
        overwrite: bool,
        room: Room,
        superseded: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let place = Arc::new(place);
        let exists = place.exists().map_err(|e| failed_on(&name, &e))?;
        let there = exists.then(|| place.open()).transpose();
        let there = there.map_err(|e| failed_on(&name, &e))?;
        let same = match &there {
            Some(file) => file.metadata().map_err(|e| failed_on(&name, &e))?.len() == source.size,
            None => false,
        };
        if exists && !same && !overwrite {
            return Err(format!("{name}: {EXISTS}"));
        }
        let (at, within) = (Arc::clone(&place), room.clone());
        let look = move |cancel: &Cancel| match there.filter(|_| same) {
            Some(file) => match hashed(&file, source.size, cancel)? {
                Some(hasher) => Ok(There::Same(hasher.finalize())),
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            },
            None => open_soon(&at, source, &within, cancel).map(There::Part),
        };
        Ok(Self {
            place,
            name,
            source,
            overwrite,
            buffer: None,
            room,
            superseded,
            stage: PutStage::Looking(Work::start(look)?),
        })
    }

    /// With the bytes that may wait for the disk, if there are bounds.
    pub(super) fn with_buffer(self, buffer: Option<Buffer>) -> Self {
        Self { buffer, ..self }
    }

    /// The file that has got its name: it, one, and its bytes.
    pub(super) fn stored(&self) -> Option<(&str, u64, u64)> {
        matches!(self.stage, PutStage::Published).then_some((
            self.name.as_str(),
            1,
            self.source.size,
        ))
    }

    /// Answers the client.
    pub(super) fn ask(&mut self, question: &Question) -> Answer {
        self.advance();
        match (&mut self.stage, question) {
            (PutStage::Failed(why), _) => Answer::Failed(why.clone()),
            (PutStage::Looking(_), Question::Prepared) => Answer::Busy,
            (PutStage::There(there), Question::Prepared) => {
                let (prefix, digest) = match there {
                    There::Part(part) => (part.prefix(), part.digest()),
                    There::Same(digest) => (self.source.size, *digest),
                };
                Answer::Prepared {
                    source: self.source,
                    mode: self.place.mode(),
                    prefix,
                    digest: digest.into(),
                }
            }
            (PutStage::There(_), Question::From(offset)) => self.open(*offset),
            (PutStage::Opening(_), Question::From(_)) => Answer::Busy,
            (PutStage::Ready(part), Question::From(_)) => Answer::From(part.prefix()),
            (PutStage::Published, Question::From(_)) => Answer::From(self.source.size),
            (PutStage::Ready(_), Question::Verdict(digest)) => self.publish(*digest),
            (
                PutStage::Running(_) | PutStage::Finishing(_) | PutStage::Publishing(_),
                Question::Verdict(_),
            ) => Answer::Busy,
            (PutStage::Published, Question::Verdict(_)) => Answer::Published,
            _ => Answer::Nonsense,
        }
    }

    /// It goes on from byte `offset`.
    fn open(&mut self, offset: u64) -> Answer {
        let PutStage::There(there) = std::mem::replace(&mut self.stage, PutStage::Moving) else {
            return Answer::Nonsense;
        };
        let whole = self.source.size;
        self.stage = match there {
            // What is there has the hash of what would come.
            There::Same(_) if offset == whole => PutStage::Published,
            There::Same(_) if !self.overwrite => {
                PutStage::Failed(format!("{}: {EXISTS}", self.name))
            }
            There::Same(_) => {
                let (place, source, room) = (self.place.clone(), self.source, self.room.clone());
                opening(move |cancel| {
                    let mut part = Part::open(place, source, &room, cancel)?;
                    part.restart()?;
                    Ok(part)
                })
            }
            There::Part(part) if offset == part.prefix() => PutStage::Ready(part),
            There::Part(mut part) => opening(move |_| {
                part.restart()?;
                Ok(part)
            }),
        };
        self.ask(&Question::From(offset))
    }

    /// The run begins; `spec` gets the length of the transfer.
    pub(super) fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, PutStage::Moving) {
            PutStage::Ready(part) => {
                let flow = &mut spec.flows[0];
                let missing = self.source.size - part.prefix();
                set_transfer(flow, missing)?;
                let begun = part.receive(flow.sender.mss);
                let (sink, writing) = begun.map_err(|e| failed_on(&self.name, &e))?;
                self.stage = PutStage::Running(writing);
                Ok(Carried::of_sink(sink.with_buffer(self.buffer.take())))
            }
            other => {
                self.stage = other;
                Err("the transfer has not been agreed upon".to_owned())
            }
        }
    }

    /// The run is over.
    pub(super) fn ended(&mut self, carried: Carried) {
        self.stage = match std::mem::replace(&mut self.stage, PutStage::Moving) {
            PutStage::Running(writing) => {
                let finish = Work::start(move |_| {
                    // Its last pieces may have to wait for the disk.
                    drop(carried);
                    writing.finish()
                });
                finish.map_or_else(PutStage::Failed, PutStage::Finishing)
            }
            other => other,
        };
    }

    fn publish(&mut self, digest: [u8; 32]) -> Answer {
        if let PutStage::Ready(part) = std::mem::replace(&mut self.stage, PutStage::Moving) {
            let overwrite = self.overwrite;
            let publish = Work::start(move |_| part.publish(Hash::from_bytes(digest), overwrite));
            self.stage = publish.map_or_else(PutStage::Failed, PutStage::Publishing);
        }
        Answer::Busy
    }

    /// Takes the results of threads that are done.
    fn advance(&mut self) {
        let stage = std::mem::replace(&mut self.stage, PutStage::Moving);
        let failed = |e: String| PutStage::Failed(e);
        let named = |e: io::Error| PutStage::Failed(failed_on(&self.name, &e));
        self.stage = match stage {
            PutStage::Looking(work) if work.is_done() => match work.result() {
                Ok(Ok(there)) => PutStage::There(there),
                Ok(Err(e)) => named(e),
                Err(e) => failed(e),
            },
            PutStage::Opening(work) | PutStage::Finishing(work) if work.is_done() => {
                match work.result() {
                    Ok(Ok(part)) => PutStage::Ready(part),
                    Ok(Err(e)) => named(e),
                    Err(e) => failed(e),
                }
            }
            PutStage::Publishing(work) if work.is_done() => match work.result() {
                Ok(Ok(())) => PutStage::Published,
                Ok(Err(e)) => named(e),
                Err(e) => failed(e),
            },
            other => other,
        };
    }

    /// The same copy was begun again.
    pub(super) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// Why it cannot go on, if it cannot.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.stage {
            PutStage::Failed(why) => Some(why),
            _ => None,
        }
    }
}

/// A part gets ready on a thread.
fn opening(open: impl FnOnce(&Cancel) -> io::Result<Part> + Send + 'static) -> PutStage {
    Work::start(open).map_or_else(PutStage::Failed, PutStage::Opening)
}

/// Waits a moment for the end of the copy that this one takes the place of.
fn open_soon(
    place: &Arc<Place>,
    source: Identity,
    room: &Room,
    cancel: &Cancel,
) -> io::Result<Part> {
    let deadline = Instant::now() + SOON;
    loop {
        match Part::open(Arc::clone(place), source, room, cancel) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                cancel.check()?;
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

const SOON: Duration = Duration::from_secs(5);
