//! The client's side of what is carried.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blake3::{Hash, Hasher};
use fullpipe_run::RunSpec;

use super::carried::{Carried, set_transfer};
use super::{Answer, Content, EXISTS, Question, Work, failed_on};
use crate::file::{
    Cancel, Identity, Part, Place, Reading, Room, Writing, hashed, permissions, source,
};
use crate::payload::Tally;

/// This host's end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mine {
    /// A file to send.
    Have(PathBuf),
    /// Where a file of the server goes.
    Want(PathBuf),
}

/// Why a copy does not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A file of this host.
    #[error("{0}")]
    Here(String),
    /// A file of the server, or what it allows.
    #[error("at the server: {0}")]
    There(String),
    /// The checksums differ.
    #[error("the checksum of what arrived is not that of what was sent; nothing is kept")]
    Checksum,
    /// The server does not keep to the order of questions.
    #[error("the server's answer does not fit: {0}")]
    Answer(String),
    /// The session.
    #[error("{0}")]
    Session(String),
}

/// A file on its way, at the client.
#[derive(Debug)]
pub struct Copy {
    kind: Kind,
    identity: Identity,
    from: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Kind {
    Put,
    Get { overwrite: bool },
}

#[derive(Debug)]
enum Stage {
    /// Ready to send from here.
    Sending(File, Box<Hasher>),
    Reading(Reading),
    /// Ready to take from here.
    Taking(Part),
    Writing(Writing),
    /// The same file is at its place already.
    Same(Hash),
    Moving,
}

/// Asks the server and waits for its answer.
pub type Ask<'a> = &'a mut dyn FnMut(&Question) -> Result<Answer, String>;

/// A file to be sent: opened, and what the request says of it.
///
/// # Errors
/// [`CopyError::Here`].
pub fn put(path: &Path, name: &str, overwrite: bool) -> Result<(File, Content), CopyError> {
    let here = |e: io::Error| CopyError::Here(failed_on(&path.display().to_string(), &e));
    // A link is followed: it is the user's own.
    if !std::fs::metadata(path).map_err(here)?.is_file() {
        let what = "only regular files can be sent";
        return Err(CopyError::Here(format!("{}: {what}", path.display())));
    }
    let file = File::open(path).map_err(here)?;
    let metadata = file.metadata().map_err(here)?;
    let content = Content::Put {
        name: name.to_owned(),
        source: Identity::of(&metadata),
        mode: permissions(&metadata),
        overwrite,
    };
    Ok((file, content))
}

impl Copy {
    /// Agrees with the server, which has granted the request, from where to send `file`.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn send(file: File, ask: Ask<'_>) -> Result<Self, CopyError> {
        let here = |e: io::Error| CopyError::Here(failed_on("the file", &e));
        let identity = Identity::of(&file.metadata().map_err(here)?);
        let there = prepared(ask)?;
        let (prefix, digest) = (there.prefix, there.digest);
        if there.source != identity || prefix > identity.size {
            return Err(CopyError::Answer("another file".to_owned()));
        }
        let copy = file.try_clone().map_err(here)?;
        let mine = meanwhile(move |cancel| hashed(&copy, prefix, cancel), ask)?.map_err(here)?;
        let (from, hasher) = match mine.filter(|h| h.finalize() == digest) {
            Some(hasher) => (prefix, hasher),
            None => (0, Hasher::new()),
        };
        match ask_until_ready(&Question::From(from), ask)? {
            Answer::From(n) if n == from => {}
            other => return Err(unfit(&other)),
        }
        Ok(Self {
            kind: Kind::Put,
            identity,
            from,
            stage: Stage::Sending(file, Box::new(hasher)),
        })
    }

    /// Agrees with the server from where to take the file to `path`.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn take(path: &Path, overwrite: bool, ask: Ask<'_>) -> Result<Self, CopyError> {
        let named = path.display().to_string();
        let here = |e: io::Error| CopyError::Here(failed_on(&named, &e));
        let there = prepared(ask)?;
        let identity = there.source;
        let place = Arc::new(Place::local(path).map_err(here)?.with_mode(there.mode));
        let kind = Kind::Get { overwrite };
        let there = match place.exists().map_err(here)? {
            true => Some(place.open().map_err(here)?),
            false => None,
        };
        let same = match &there {
            Some(file) => file.metadata().map_err(here)?.len() == identity.size,
            None => false,
        };
        if there.is_some() && !same && !overwrite {
            return Err(exists(&named));
        }
        if let Some(file) = there.filter(|_| same) {
            let look = move |cancel: &Cancel| hashed(&file, identity.size, cancel);
            if let Some(hasher) = meanwhile(look, ask)?.map_err(here)? {
                let digest = hasher.finalize();
                if have(identity.size, digest, ask)? == identity.size {
                    return Ok(Self {
                        kind,
                        identity,
                        from: identity.size,
                        stage: Stage::Same(digest),
                    });
                }
            }
            // The server has now settled on the beginning, which is right for what replaces it.
            if !overwrite {
                return Err(exists(&named));
            }
            let cancel = Cancel::default();
            let mut part = Part::open(place, identity, &Room::default(), &cancel).map_err(here)?;
            part.restart().map_err(here)?;
            return Ok(Self {
                kind,
                identity,
                from: 0,
                stage: Stage::Taking(part),
            });
        }
        let open = move |cancel: &Cancel| Part::open(place, identity, &Room::default(), cancel);
        let mut part = meanwhile(open, ask)?.map_err(here)?;
        let from = have(part.prefix(), part.digest(), ask)?;
        if from != part.prefix() {
            if from != 0 {
                return Err(CopyError::Answer("another place to go on from".to_owned()));
            }
            part.restart().map_err(here)?;
        }
        Ok(Self {
            kind,
            identity,
            from,
            stage: Stage::Taking(part),
        })
    }

    /// Bytes of the whole.
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// Bytes that need not be sent, because they are there.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Bytes that are left to send; with none there is nothing to run.
    pub fn missing(&self) -> u64 {
        self.identity.size - self.from
    }

    /// The run begins; `spec` gets the length of the transfer.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, CopyError> {
        let here = |e: io::Error| CopyError::Here(failed_on("the file", &e));
        let missing = self.missing();
        let Some(flow) = spec.flows.first_mut() else {
            return Err(CopyError::Here("no flow carries the file".to_owned()));
        };
        set_transfer(flow, missing).map_err(CopyError::Here)?;
        match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Sending(file, hasher) => {
                let (source, reading) = source(file, self.from, *hasher, None).map_err(here)?;
                self.stage = Stage::Reading(reading);
                Ok(Carried::of_source(source))
            }
            Stage::Taking(part) => {
                let (sink, writing) = part.receive(flow.sender.mss).map_err(here)?;
                self.stage = Stage::Writing(writing);
                Ok(Carried::of_sink(sink))
            }
            other => {
                self.stage = other;
                Err(CopyError::Here("the transfer has begun already".to_owned()))
            }
        }
    }

    /// Bytes at the receiver without a hole, if that is here.
    pub fn written(&self) -> Option<u64> {
        match &self.stage {
            Stage::Writing(writing) => Some(writing.prefix()),
            _ => None,
        }
    }

    /// After the run, or without one where nothing was missing: holds the checksums against each
    /// other and gives the file its name. Returns the BLAKE3 of the whole.
    ///
    /// # Errors
    /// [`CopyError`]; nothing has the final name then.
    pub fn finish(self, carried: Option<Carried>, ask: Ask<'_>) -> Result<Hash, CopyError> {
        let here = |e: io::Error| CopyError::Here(failed_on("the file", &e));
        let stage = self.stage;
        if let Stage::Same(digest) = stage {
            return Ok(digest);
        }
        let end = move |cancel: &Cancel| match stage {
            Stage::Sending(_, hasher) => Ok(End::Sent(hasher.finalize())),
            Stage::Reading(reading) => reading.finish(cancel).map(End::Sent),
            Stage::Taking(part) => Ok(End::Taken(part)),
            Stage::Writing(writing) => {
                drop(carried);
                writing.finish().map(End::Taken)
            }
            Stage::Same(_) | Stage::Moving => Err(io::Error::other("the file is lost")),
        };
        match (meanwhile(end, ask)?.map_err(here)?, self.kind) {
            (End::Sent(digest), Kind::Put) => {
                match ask_until_ready(&Question::Verdict(digest.into()), ask)? {
                    Answer::Published => Ok(digest),
                    other => Err(unfit(&other)),
                }
            }
            (End::Taken(part), Kind::Get { overwrite }) => {
                let digest = match ask_until_ready(&Question::Verdict([0; 32]), ask)? {
                    Answer::Digest(digest) => Hash::from_bytes(digest),
                    other => return Err(unfit(&other)),
                };
                match meanwhile(move |_| part.publish(digest, overwrite), ask)? {
                    Ok(()) => Ok(digest),
                    Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(CopyError::Checksum),
                    Err(e) => Err(here(e)),
                }
            }
            _ => Err(CopyError::Here("sent and taken at once".to_owned())),
        }
    }
}

enum End {
    Sent(Hash),
    Taken(Part),
}

/// Patterns and their verifiers at the client.
pub fn patterns(key: u64, spec: &RunSpec) -> Carried {
    Carried::patterns(key, spec, |reverse| !reverse)
}

/// After a run with patterns: of each flow what was sent, what arrived, and what was damaged.
///
/// # Errors
/// [`CopyError`].
pub fn tallies(carried: &Carried, spec: &RunSpec, ask: Ask<'_>) -> Result<Vec<Proof>, CopyError> {
    let mut proofs = Vec::new();
    for (flow, mine, damaged) in carried.tallies() {
        let (theirs, damaged_there) = match ask_until_ready(&Question::Tally(flow), ask)? {
            Answer::Tally { tally, damaged } => (tally, damaged),
            other => return Err(unfit(&other)),
        };
        let reverse = spec.flows.get(flow as usize).is_some_and(|f| f.reverse);
        let (sent, received) = match reverse {
            true => (theirs, mine),
            false => (mine, theirs),
        };
        proofs.push(Proof {
            flow,
            sent,
            received,
            damaged: damaged + damaged_there,
        });
    }
    Ok(proofs)
}

/// What is known of the data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Index of the flow.
    pub flow: u32,
    /// Segments that were sent, each once.
    pub sent: Tally,
    /// Segments that arrived, each once.
    pub received: Tally,
    /// Segments of which a byte was wrong.
    pub damaged: u64,
}

impl Proof {
    /// Nothing is missing and nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.damaged == 0 && self.sent == self.received
    }
}

/// The server's file, and what is stored of it already.
struct Prepared {
    source: Identity,
    mode: u16,
    prefix: u64,
    digest: Hash,
}

fn prepared(ask: Ask<'_>) -> Result<Prepared, CopyError> {
    match ask_until_ready(&Question::Prepared, ask)? {
        Answer::Prepared {
            source,
            mode,
            prefix,
            digest,
        } => Ok(Prepared {
            source,
            mode,
            prefix,
            digest: Hash::from_bytes(digest),
        }),
        other => Err(unfit(&other)),
    }
}

fn have(prefix: u64, digest: Hash, ask: Ask<'_>) -> Result<u64, CopyError> {
    let question = Question::Have {
        prefix,
        digest: digest.into(),
    };
    match ask_until_ready(&question, ask)? {
        Answer::From(from) => Ok(from),
        other => Err(unfit(&other)),
    }
}

/// Asks until the server is no longer busy, for an hour at most: it may have to read all of a
/// large file.
pub(super) fn ask_until_ready(question: &Question, ask: Ask<'_>) -> Result<Answer, CopyError> {
    let began = Instant::now();
    let mut again = SOON;
    loop {
        match ask(question).map_err(CopyError::Session)? {
            Answer::Busy if began.elapsed() > BUSY => {
                return Err(CopyError::There(
                    "busy with the file for an hour".to_owned(),
                ));
            }
            Answer::Busy => {
                std::thread::sleep(again);
                again = (again * 2).min(AGAIN);
            }
            Answer::Failed(why) => return Err(CopyError::There(why)),
            answer => return Ok(answer),
        }
    }
}

/// Does work of this host, and lets the server know now and then that somebody is there.
pub(super) fn meanwhile<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> T + Send + 'static,
    ask: Ask<'_>,
) -> Result<T, CopyError> {
    let work = Work::start(work).map_err(CopyError::Here)?;
    let (mut turn, mut heard) = (FIRST_TURN, Instant::now());
    while !work.is_done() {
        std::thread::sleep(turn);
        turn = (turn * 2).min(TURN);
        if heard.elapsed() >= BETWEEN_SIGNS {
            heard = Instant::now();
            // Whatever it answers: that it answers is what counts.
            ask(&Question::Prepared).map_err(CopyError::Session)?;
        }
    }
    work.result().map_err(CopyError::Here)
}

pub(super) fn unfit(answer: &Answer) -> CopyError {
    CopyError::Answer(format!("{answer:?}"))
}

pub(super) fn exists(name: &str) -> CopyError {
    CopyError::Here(format!("{name}: {EXISTS}"))
}

/// Longest time that a server may be busy with a file, as long as it waits for a client that is.
const BUSY: Duration = Duration::from_secs(3600);
/// Until a busy server is asked again: first, and at most.
const SOON: Duration = Duration::from_millis(1);
const AGAIN: Duration = Duration::from_millis(50);
/// Between two looks at work of this host: first, and at most.
const FIRST_TURN: Duration = Duration::from_micros(50);
const TURN: Duration = Duration::from_millis(5);
/// Between two signs of life.
const BETWEEN_SIGNS: Duration = Duration::from_millis(500);
