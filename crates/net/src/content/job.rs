//! The server's side of what is carried.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use blake3::{Hash, Hasher};
use fullpipe_sim::RunSpec;

use super::{Answer, Content, Question, Work, key_of, told};
use crate::endpoint::Hooks;
use crate::file::{
    Directory, FileSink, FileSource, Identity, Name, Part, Place, Reading, Writing, hashed, source,
};
use crate::payload::{Pattern, Sink, Source, Tally, Verifier};

/// What a server lets its clients do with files.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Where files are; `None`: no files.
    pub files: Option<Arc<Directory>>,
    /// A file may be replaced, if the client asks for it.
    pub overwrite: bool,
    /// Bytes of the largest file that is taken.
    pub most: Option<u64>,
    /// Copies to this server that are under way.
    pub under_way: UnderWay,
}

/// Copies under way: whoever begins the same one again, after a crash as a rule, takes the place of the one before.
#[derive(Clone, Debug, Default)]
pub struct UnderWay(Arc<Mutex<Vec<Entry>>>);

/// Name and file, and the flag of the copy.
type Entry = (String, Identity, Weak<AtomicBool>);

impl UnderWay {
    /// Ends an earlier copy of the same file to the same name. The flag is set when a later one does so.
    fn enter(&self, name: &str, source: Identity) -> Arc<AtomicBool> {
        let superseded = Arc::new(AtomicBool::new(false));
        // A panic while it was held leaves a list that is complete.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, _, flag)| flag.strong_count() > 0);
        for (other, identity, flag) in all.iter() {
            if other == name
                && *identity == source
                && let Some(flag) = flag.upgrade()
            {
                flag.store(true, Ordering::Release);
            }
        }
        all.push((name.to_owned(), source, Arc::downgrade(&superseded)));
        superseded
    }
}

/// What one run carries, at the server.
#[derive(Debug)]
pub struct Job(State);

#[derive(Debug)]
enum State {
    Nothing,
    Pattern {
        key: u64,
        tallies: Vec<(u32, Tally, u64)>,
    },
    Put(Put),
    Get(Get),
}

#[derive(Debug)]
struct Put {
    place: Arc<Place>,
    name: String,
    source: Identity,
    overwrite: bool,
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

#[derive(Debug)]
struct Get {
    name: String,
    identity: Identity,
    stage: GetStage,
}

#[derive(Debug)]
enum GetStage {
    Open(File),
    /// Holding what the client has against the file.
    Looking(File, Work<io::Result<Option<Hasher>>>, u64, Hash),
    Ready(File, u64, Box<Hasher>),
    Running(Reading),
    Finishing(Work<io::Result<Hash>>),
    Finished(Hash),
    Failed(String),
    Moving,
}

/// What is carried while the endpoint runs.
#[derive(Debug, Default)]
pub struct Carried {
    patterns: Vec<(u32, Pattern)>,
    verifiers: Vec<(u32, Verifier)>,
    source: Option<FileSource>,
    sink: Option<FileSink>,
}

impl Carried {
    /// As the endpoint takes it.
    pub fn hooks(&mut self) -> Hooks<'_> {
        let mut hooks = Hooks::default();
        for (flow, pattern) in &mut self.patterns {
            hooks.sources.push((*flow, pattern));
        }
        for (flow, verifier) in &mut self.verifiers {
            hooks.sinks.push((*flow, verifier));
        }
        if let Some(source) = &mut self.source {
            hooks.sources.push((0, source as &mut dyn Source));
        }
        if let Some(sink) = &mut self.sink {
            hooks.sinks.push((0, sink as &mut dyn Sink));
        }
        hooks
    }

    /// Patterns for the flows that are sent (`sends`), verifiers for those that are received.
    pub(super) fn patterns(key: u64, spec: &RunSpec, sends: impl Fn(bool) -> bool) -> Self {
        let mut carried = Self::default();
        for (i, flow) in (0u32..).zip(&spec.flows) {
            let mss = flow.sender.mss;
            let size = flow.sender.transfer.map(|n| n.saturating_mul(mss.into()));
            let pattern = Pattern::new(key_of(key, i), mss, size);
            if sends(flow.reverse) {
                carried.patterns.push((i, pattern));
            } else {
                carried.verifiers.push((i, Verifier::new(pattern)));
            }
        }
        carried
    }

    pub(super) fn of_source(source: FileSource) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
        }
    }

    pub(super) fn of_sink(sink: FileSink) -> Self {
        Self {
            sink: Some(sink),
            ..Self::default()
        }
    }

    /// Flow, segments and their sum, damaged segments.
    pub(super) fn tallies(&self) -> Vec<(u32, Tally, u64)> {
        let sent = self.patterns.iter().map(|(i, p)| (*i, p.tally(), 0));
        let received = self.verifiers.iter();
        let received = received.map(|(i, v)| (*i, v.tally(), v.damaged()));
        sent.chain(received).collect()
    }
}

impl Job {
    /// Looks at what is asked for.
    ///
    /// # Errors
    /// A sentence for the client, if it will not be done.
    pub fn new(content: &Content, allowed: &Allowed, spec: &RunSpec) -> Result<Self, String> {
        let state = match content {
            Content::Nothing => State::Nothing,
            Content::Pattern { key } => State::Pattern {
                key: *key,
                tallies: Vec::new(),
            },
            Content::Put {
                name,
                source,
                overwrite,
            } => {
                one_flow(spec, false)?;
                let place = place(name, allowed)?;
                if let Some(most) = allowed.most.filter(|most| source.size > *most) {
                    return Err(format!(
                        "{name}: {} bytes are more than the server's limit of {most} (--max-bytes)",
                        source.size
                    ));
                }
                let superseded = allowed.under_way.enter(name, *source);
                let overwrite = *overwrite && allowed.overwrite;
                State::Put(Put::new(
                    place,
                    name.clone(),
                    *source,
                    overwrite,
                    superseded,
                )?)
            }
            Content::Get { name } => {
                one_flow(spec, true)?;
                let place = place(name, allowed)?;
                let file = place.open().map_err(|e| told(name, &e))?;
                let metadata = file.metadata().map_err(|e| told(name, &e))?;
                State::Get(Get {
                    name: name.clone(),
                    identity: Identity::of(&metadata),
                    stage: GetStage::Open(file),
                })
            }
        };
        Ok(Self(state))
    }

    /// Answers the client.
    pub fn ask(&mut self, question: &Question) -> Answer {
        match (&mut self.0, question) {
            (State::Pattern { tallies, .. }, Question::Tally(flow)) => {
                match tallies.iter().find(|(i, ..)| i == flow) {
                    Some((_, tally, damaged)) => Answer::Tally {
                        tally: *tally,
                        damaged: *damaged,
                    },
                    None => Answer::Nonsense,
                }
            }
            (State::Put(put), question) => put.ask(question),
            (State::Get(get), question) => get.ask(question),
            _ => Answer::Nonsense,
        }
    }

    /// The run begins; `spec` gets the length of the transfer.
    ///
    /// # Errors
    /// A sentence for the client.
    pub fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        match &mut self.0 {
            State::Nothing => Ok(Carried::default()),
            State::Pattern { key, .. } => Ok(Carried::patterns(*key, spec, |reverse| reverse)),
            State::Put(put) => put.begin(spec),
            State::Get(get) => get.begin(spec),
        }
    }

    /// The run is over.
    pub fn ended(&mut self, carried: Carried) {
        match &mut self.0 {
            State::Nothing => {}
            State::Pattern { tallies, .. } => *tallies = carried.tallies(),
            State::Put(put) => put.ended(carried),
            State::Get(get) => get.ended(),
        }
    }

    /// The same copy was begun again.
    pub fn is_superseded(&self) -> bool {
        match &self.0 {
            State::Put(put) => put.superseded.load(Ordering::Acquire),
            _ => false,
        }
    }

    /// Why it cannot go on, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        match &self.0 {
            State::Put(Put {
                stage: PutStage::Failed(why),
                ..
            })
            | State::Get(Get {
                stage: GetStage::Failed(why),
                ..
            }) => Some(why),
            _ => None,
        }
    }
}

impl Put {
    fn new(
        place: Place,
        name: String,
        source: Identity,
        overwrite: bool,
        superseded: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let place = Arc::new(place);
        let exists = place.exists().map_err(|e| told(&name, &e))?;
        let there = exists.then(|| place.open()).transpose();
        let there = there.map_err(|e| told(&name, &e))?;
        let same = match &there {
            Some(file) => file.metadata().map_err(|e| told(&name, &e))?.len() == source.size,
            None => false,
        };
        if exists && !same && !overwrite {
            return Err(format!("{name}: another file of this name exists"));
        }
        let at = Arc::clone(&place);
        let look = move || match there.filter(|_| same) {
            Some(file) => match hashed(&file, source.size)? {
                Some(hasher) => Ok(There::Same(hasher.finalize())),
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            },
            None => open_soon(&at, source).map(There::Part),
        };
        Ok(Self {
            place,
            name,
            source,
            overwrite,
            superseded,
            stage: PutStage::Looking(Work::start(look)),
        })
    }

    fn ask(&mut self, question: &Question) -> Answer {
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
                PutStage::Failed(format!("{}: another file of this name exists", self.name))
            }
            There::Same(_) => {
                let (place, source) = (Arc::clone(&self.place), self.source);
                PutStage::Opening(Work::start(move || {
                    let mut part = Part::open(place, source)?;
                    part.restart()?;
                    Ok(part)
                }))
            }
            There::Part(part) if offset == part.prefix() => PutStage::Ready(part),
            There::Part(mut part) => PutStage::Opening(Work::start(move || {
                part.restart()?;
                Ok(part)
            })),
        };
        self.ask(&Question::From(offset))
    }

    fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, PutStage::Moving) {
            PutStage::Ready(part) => {
                let flow = &mut spec.flows[0];
                let missing = self.source.size - part.prefix();
                set_transfer(flow, missing)?;
                let begun = part.receive(flow.sender.mss);
                let (sink, writing) = begun.map_err(|e| told(&self.name, &e))?;
                self.stage = PutStage::Running(writing);
                Ok(Carried::of_sink(sink))
            }
            other => {
                self.stage = other;
                Err("the transfer has not been agreed upon".to_owned())
            }
        }
    }

    fn ended(&mut self, carried: Carried) {
        self.stage = match std::mem::replace(&mut self.stage, PutStage::Moving) {
            PutStage::Running(writing) => PutStage::Finishing(Work::start(move || {
                // Its last pieces may have to wait for the disk.
                drop(carried);
                writing.finish()
            })),
            other => other,
        };
    }

    fn publish(&mut self, digest: [u8; 32]) -> Answer {
        if let PutStage::Ready(part) = std::mem::replace(&mut self.stage, PutStage::Moving) {
            let overwrite = self.overwrite;
            self.stage = PutStage::Publishing(Work::start(move || {
                part.publish(Hash::from_bytes(digest), overwrite)
            }));
        }
        Answer::Busy
    }

    /// Takes the results of threads that are done.
    fn advance(&mut self) {
        let stage = std::mem::replace(&mut self.stage, PutStage::Moving);
        let failed = |e: String| PutStage::Failed(e);
        let named = |e: io::Error| PutStage::Failed(told(&self.name, &e));
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
}

impl Get {
    fn ask(&mut self, question: &Question) -> Answer {
        self.advance();
        match (&mut self.stage, question) {
            (GetStage::Failed(why), _) => Answer::Failed(why.clone()),
            (GetStage::Open(_), Question::Prepared) => Answer::Prepared {
                source: self.identity,
                prefix: 0,
                digest: Hasher::new().finalize().into(),
            },
            (GetStage::Open(_), Question::Have { prefix, digest }) => {
                self.look((*prefix).min(self.identity.size), *digest);
                Answer::Busy
            }
            (GetStage::Looking(..), Question::Have { .. }) => Answer::Busy,
            (GetStage::Ready(_, from, _), Question::Have { .. }) => Answer::From(*from),
            (GetStage::Ready(_, from, hasher), Question::Verdict(_)) => {
                match *from == self.identity.size {
                    true => Answer::Digest(hasher.finalize().into()),
                    false => Answer::Nonsense,
                }
            }
            (GetStage::Running(_) | GetStage::Finishing(_), Question::Verdict(_)) => Answer::Busy,
            (GetStage::Finished(digest), Question::Verdict(_)) => Answer::Digest((*digest).into()),
            _ => Answer::Nonsense,
        }
    }

    /// Holds what the client has against the file.
    fn look(&mut self, prefix: u64, digest: [u8; 32]) {
        if let GetStage::Open(file) = std::mem::replace(&mut self.stage, GetStage::Moving) {
            self.stage = match file.try_clone() {
                Ok(copy) => {
                    let work = Work::start(move || hashed(&copy, prefix));
                    GetStage::Looking(file, work, prefix, Hash::from_bytes(digest))
                }
                Err(e) => GetStage::Failed(told(&self.name, &e)),
            };
        }
    }

    fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, GetStage::Moving) {
            GetStage::Ready(file, from, hasher) => {
                let flow = &mut spec.flows[0];
                let missing = self.identity.size - from;
                set_transfer(flow, missing)?;
                let begun = source(file, from, *hasher);
                let (source, reading) = begun.map_err(|e| told(&self.name, &e))?;
                self.stage = GetStage::Running(reading);
                Ok(Carried::of_source(source))
            }
            other => {
                self.stage = other;
                Err("the transfer has not been agreed upon".to_owned())
            }
        }
    }

    fn ended(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, GetStage::Moving) {
            GetStage::Running(reading) => {
                GetStage::Finishing(Work::start(move || reading.finish()))
            }
            other => other,
        };
    }

    fn advance(&mut self) {
        let stage = std::mem::replace(&mut self.stage, GetStage::Moving);
        self.stage = match stage {
            GetStage::Looking(file, work, prefix, digest) if work.is_done() => {
                match work.result() {
                    Ok(Ok(Some(hasher))) if hasher.finalize() == digest => {
                        GetStage::Ready(file, prefix, Box::new(hasher))
                    }
                    Ok(Ok(_)) => GetStage::Ready(file, 0, Box::default()),
                    Ok(Err(e)) => GetStage::Failed(told(&self.name, &e)),
                    Err(e) => GetStage::Failed(e),
                }
            }
            GetStage::Finishing(work) if work.is_done() => match work.result() {
                Ok(Ok(digest)) => GetStage::Finished(digest),
                Ok(Err(e)) => GetStage::Failed(told(&self.name, &e)),
                Err(e) => GetStage::Failed(e),
            },
            other => other,
        };
    }
}

/// Waits a moment for the end of the copy that this one takes the place of.
fn open_soon(place: &Arc<Place>, source: Identity) -> io::Result<Part> {
    let deadline = Instant::now() + SOON;
    loop {
        match Part::open(Arc::clone(place), source) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

const SOON: Duration = Duration::from_secs(5);

fn one_flow(spec: &RunSpec, reverse: bool) -> Result<(), String> {
    match spec.flows.as_slice() {
        [flow] if flow.reverse == reverse => Ok(()),
        _ => Err("a file is carried by one flow, from where it is".to_owned()),
    }
}

fn place(name: &str, allowed: &Allowed) -> Result<Place, String> {
    let Some(files) = &allowed.files else {
        return Err("the server takes and gives no files (it runs without --files)".to_owned());
    };
    let name = Name::parse(name).map_err(|e| e.to_string())?;
    files.place(&name).map_err(|e| told(name.as_str(), &e))
}

/// Whole segments, the last of which may be shorter.
pub(super) fn set_transfer(flow: &mut fullpipe_sim::FlowSpec, bytes: u64) -> Result<(), String> {
    if bytes == 0 {
        return Err("nothing is left to send".to_owned());
    }
    let mss = u64::from(flow.sender.mss.max(1));
    flow.sender.transfer = Some(bytes.div_ceil(mss));
    Ok(())
}
