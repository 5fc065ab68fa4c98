//! Files and directories that come to the server: what is there of each, the run, their names.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_run::RunSpec;

use super::allowed::{Allowed, UnderWay};
use super::carried::{Carried, set_transfer};
use super::{Answer, Found, PAGE, Question, Work, coalesced, digest_of, failed_on};
use crate::file::tree::{FAN, Span};
use crate::file::{
    Buffer, Cancel, Directory, Item, Name, Plan, Receiving, Room, State, Target, Ways, begin_all,
    bytes_of, receive_all, sync_directories, sync_files,
};

/// The server's side of files that the client sends.
#[derive(Debug)]
pub(super) struct Store {
    overwrite: bool,
    room: Room,
    directory: Arc<Directory>,
    /// Bytes that may wait for the disk.
    buffer: Option<Buffer>,
    claims: Vec<Arc<AtomicBool>>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Looking at what is there.
    Looking(Work<io::Result<Vec<Slot>>>),
    There(Vec<Slot>),
    /// Taking the disk for a plan of so many bytes.
    Opening(Work<Result<Vec<Slot>, String>>, u64),
    Ready(Vec<Slot>, u64),
    Running(Vec<Slot>, Vec<usize>, Receiving),
    Finishing(Work<io::Result<Vec<Slot>>>),
    Publishing(Work<Vec<Slot>>),
    Published(Vec<Slot>),
    Failed(String),
    /// Between two of the others.
    Moving,
}

/// An item, and what is at its place.
#[derive(Debug)]
struct Slot {
    item: Item,
    /// Of a file that can be taken.
    target: Option<Target>,
    found: Option<Found>,
    takes_part: bool,
    /// Why it did not get its name.
    failure: Option<String>,
    /// Of a file; who comes after this copy waits until it is gone.
    claim: Option<Arc<AtomicBool>>,
}

impl Store {
    /// Looks at what is there.
    ///
    /// # Errors
    /// A sentence for the client, if it will not be done.
    pub(super) fn new(
        items: Vec<Item>,
        directory: Arc<Directory>,
        overwrite: bool,
        allowed: &Allowed,
    ) -> Result<Self, String> {
        let mut names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("two files have one name".to_owned());
        }
        if bytes_of(&items).is_none() {
            return Err("these are more bytes than there can be".to_owned());
        }
        let claim = |item: &Item| Some(allowed.under_way.enter(&item.name, item.source?));
        let claims: Vec<_> = items.iter().map(claim).collect();
        let held = claims.iter().flatten().cloned().collect();
        let look = Look {
            root: Arc::clone(&directory),
            ways: Ways::default(),
            overwrite,
            most: allowed.most,
            under_way: allowed.under_way.clone(),
            deadline: Instant::now() + SOON,
        };
        let look = move |cancel: &Cancel| look.all(items, claims, cancel);
        Ok(Self {
            overwrite,
            room: allowed.room.clone(),
            directory,
            buffer: allowed.buffer.clone(),
            claims: held,
            stage: Stage::Looking(Work::start(look)?),
        })
    }

    /// Answers the client.
    pub(super) fn ask(&mut self, question: &Question) -> Answer {
        self.advance();
        match (&mut self.stage, question) {
            (Stage::Failed(why), _) => Answer::Failed(why.clone()),
            (Stage::Looking(_), Question::Found(_) | Question::Prepared) => Answer::Busy,
            (Stage::There(slots), Question::Found(from)) => found(slots, *from),
            (Stage::There(slots), Question::Plan(orders)) => match note(slots, orders) {
                true => Answer::Noted,
                false => Answer::Nonsense,
            },
            (Stage::There(_), Question::Ready(bytes)) => self.open(*bytes),
            (Stage::Opening(_, wanted), Question::Ready(bytes)) if *wanted == *bytes => {
                Answer::Busy
            }
            (Stage::Ready(_, planned), Question::Ready(bytes)) if *planned == *bytes => {
                Answer::Ready
            }
            (
                Stage::There(slots) | Stage::Ready(slots, _) | Stage::Published(slots),
                Question::Tree { file, from, to },
            ) => tree(slots, *file, *from, *to),
            (Stage::Ready(slots, _), Question::Roots(from)) => roots(slots, *from),
            (Stage::Ready(slots, _), Question::Damaged(damaged)) => {
                forget(slots, damaged);
                Answer::Noted
            }
            (Stage::Ready(..), Question::Publish(digest)) => self.publish(digest),
            (
                Stage::Running(..) | Stage::Finishing(_),
                Question::Roots(_) | Question::Publish(_),
            )
            | (Stage::Publishing(_), Question::Publish(_)) => Answer::Busy,
            (Stage::Published(slots), Question::Publish(_)) => named(slots),
            // A sign of life.
            (_, Question::Prepared) => Answer::Noted,
            _ => Answer::Nonsense,
        }
    }

    /// The plan is complete.
    fn open(&mut self, bytes: u64) -> Answer {
        let Stage::There(mut slots) = std::mem::replace(&mut self.stage, Stage::Moving) else {
            return Answer::Nonsense;
        };
        for slot in slots.iter_mut().filter(|slot| slot.takes_part) {
            if let Some(target) = &mut slot.target {
                target.replace_final();
            }
        }
        if plan(&slots).0.bytes() != bytes {
            self.stage = Stage::Failed("client and server do not plan the same copy".to_owned());
            return self.ask(&Question::Ready(bytes));
        }
        let (root, room) = (Arc::clone(&self.directory), self.room.clone());
        let open = Work::start(move |cancel| {
            for slot in slots.iter().filter(|slot| !slot.takes_part) {
                // It stays until it is swept otherwise.
                let _ = slot.target.as_ref().map(Target::tidy);
            }
            let mut ways = Ways::default();
            for slot in slots.iter_mut().filter(|slot| slot.takes_part) {
                cancel.check().map_err(|e| failed_on("files", &e))?;
                slot.make(&root, &mut ways);
            }
            if let Some(why) = slots.iter().find_map(|slot| slot.failure.clone()) {
                return Err(why);
            }
            let (mut targets, places) = take_targets(&mut slots);
            let begun = begin_all(&mut targets, &room, cancel);
            give_back(&mut slots, targets, &places);
            match begun {
                Ok(()) => Ok(slots),
                Err((i, e)) => {
                    let name = places.get(i).map_or("files", |i| &slots[*i].item.name);
                    Err(failed_on(name, &e))
                }
            }
        });
        self.stage = match open {
            Ok(work) => Stage::Opening(work, bytes),
            Err(why) => Stage::Failed(why),
        };
        Answer::Busy
    }

    /// The run begins; `spec` gets the length of the transfer.
    pub(super) fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Ready(mut slots, bytes) if bytes > 0 => {
                let flow = &mut spec.flows[0];
                set_transfer(flow, bytes)?;
                let (plan, _) = plan(&slots);
                let (targets, places) = take_targets(&mut slots);
                let begun = receive_all(targets, plan, flow.sender.mss);
                let (sink, receiving) = begun.map_err(|e| failed_on("files", &e))?;
                self.stage = Stage::Running(slots, places, receiving);
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
        self.stage = match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Running(mut slots, places, receiving) => {
                let finish = Work::start(move |_| {
                    // Its last pieces may have to wait for the disk.
                    drop(carried);
                    let (targets, written) = receiving.finish()?;
                    give_back(&mut slots, targets, &places);
                    written.map(|()| slots)
                });
                finish.map_or_else(Stage::Failed, Stage::Finishing)
            }
            other => other,
        };
    }

    fn publish(&mut self, digest: &[u8; 32]) -> Answer {
        let Stage::Ready(mut slots, bytes) = std::mem::replace(&mut self.stage, Stage::Moving)
        else {
            return Answer::Nonsense;
        };
        if digest_of(whole(&slots)) != *digest {
            self.stage = Stage::Ready(slots, bytes);
            return Answer::Named {
                same: false,
                failed: Vec::new(),
                all: 0,
            };
        }
        let overwrite = self.overwrite;
        let publish = Work::start(move |cancel| {
            // Each gets its name by itself; who comes back finds the others unfinished.
            let parts = slots.iter_mut().filter(|slot| slot.takes_part);
            let whole = |target: &&mut Target| target.blocks.is_complete();
            let targets = parts.filter_map(|slot| slot.target.as_mut());
            let synced = sync_files(targets.filter(whole));
            let parts = slots.iter_mut().filter(|slot| slot.takes_part);
            if let Err(e) = synced {
                parts.for_each(|slot| slot.failure = Some(failed_on(&slot.item.name, &e)));
                return slots;
            }
            for slot in parts.take_while(|_| cancel.check().is_ok()) {
                slot.publish(overwrite);
            }
            if let Err(e) = sync_directories(slots.iter().filter_map(|s| s.target.as_ref())) {
                let first = slots.iter_mut().find(|slot| slot.takes_part);
                if let Some(slot) = first {
                    slot.failure = Some(failed_on("the directory", &e));
                }
            }
            slots
        });
        self.stage = publish.map_or_else(Stage::Failed, Stage::Publishing);
        Answer::Busy
    }

    /// Takes the results of threads that are done.
    fn advance(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Moving);
        let failed = |e: io::Error| Stage::Failed(failed_on("files", &e));
        self.stage = match stage {
            Stage::Looking(work) if work.is_done() => match work.result() {
                Ok(Ok(slots)) => Stage::There(slots),
                Ok(Err(e)) => failed(e),
                Err(e) => Stage::Failed(e),
            },
            Stage::Opening(work, bytes) if work.is_done() => match work.result() {
                Ok(Ok(slots)) => Stage::Ready(slots, bytes),
                Ok(Err(e)) | Err(e) => Stage::Failed(e),
            },
            Stage::Finishing(work) if work.is_done() => match work.result() {
                Ok(Ok(slots)) => Stage::Ready(slots, 0),
                Ok(Err(e)) => failed(e),
                Err(e) => Stage::Failed(e),
            },
            Stage::Publishing(work) if work.is_done() => {
                work.result().map_or_else(Stage::Failed, Stage::Published)
            }
            other => other,
        };
    }

    /// One of these copies was begun again.
    pub(super) fn is_superseded(&self) -> bool {
        self.claims.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Why it cannot go on, if it cannot.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            _ => None,
        }
    }
}

/// How a server looks at what is there.
struct Look {
    root: Arc<Directory>,
    ways: Ways,
    overwrite: bool,
    most: Option<u64>,
    under_way: UnderWay,
    /// Until then the copies that these take the place of may come to their end.
    deadline: Instant,
}

impl Look {
    fn all(
        mut self,
        items: Vec<Item>,
        claims: Vec<Option<Arc<AtomicBool>>>,
        cancel: &Cancel,
    ) -> io::Result<Vec<Slot>> {
        let mut slots = Vec::with_capacity(items.len());
        for (item, claim) in items.into_iter().zip(claims) {
            slots.push(self.slot(item, claim, cancel)?);
        }
        Ok(slots)
    }

    fn slot(
        &mut self,
        item: Item,
        claim: Option<Arc<AtomicBool>>,
        cancel: &Cancel,
    ) -> io::Result<Slot> {
        let mut slot = Slot {
            target: None,
            found: None,
            takes_part: true,
            failure: None,
            item,
            claim,
        };
        let refused = |why: String| Some(Found::Refused(why));
        let name = slot.item.name.clone();
        if let Err(e) = Name::parse(&name) {
            slot.found = refused(format!("{name}: {e}"));
        } else if let Some(most) = self.most.filter(|most| slot.item.size() > *most) {
            slot.found = refused(format!(
                "{name}: {} bytes are more than the server's limit of {most} (--max-bytes)",
                slot.item.size()
            ));
        } else if let Err(e) = self.examine(&mut slot, cancel) {
            if cancel.check().is_err() {
                return Err(e);
            }
            slot.found = refused(failed_on(&name, &e));
        }
        slot.takes_part = !matches!(slot.found, Some(Found::Refused(_)));
        Ok(slot)
    }

    fn examine(&mut self, slot: &mut Slot, cancel: &Cancel) -> io::Result<()> {
        let Some(source) = slot.item.source else {
            return Ok(());
        };
        let name = name_of(&slot.item)?;
        if let Some(claim) = &slot.claim {
            self.in_time(cancel, || self.under_way.first(&slot.item.name, claim))?;
        }
        let place = match self.ways.place(&self.root, &name) {
            Ok(place) => Arc::new(place.with_mode(slot.item.mode)),
            // It is made with its directory.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let mut target = Target::new(Arc::clone(&place), source).claimed(slot.claim.clone());
        if place.exists()? {
            if target.look_at_final(cancel)? {
                // If it is another file it is to be replaced; what hinders that is said while other
                // files can still go on.
                if self.overwrite {
                    target.may_begin()?;
                }
                if let Some(root) = target.blocks.root() {
                    slot.found = Some(Found::Whole(root.into()));
                }
                slot.target = Some(target);
                return Ok(());
            }
            if !self.overwrite {
                let what = "another file of this name exists";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
        }
        if self.in_time(cancel, || target.look(cancel))? {
            let spans = known(&mut target);
            let digest = target.blocks.summary(0, target.blocks.count());
            slot.found = Some(Found::Part { spans, digest });
        }
        slot.target = Some(target);
        Ok(())
    }

    /// Tries again while another copy is busy with it, for a moment.
    fn in_time<T>(
        &self,
        cancel: &Cancel,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match attempt() {
                Err(e)
                    if e.kind() == io::ErrorKind::ResourceBusy
                        && Instant::now() < self.deadline =>
                {
                    cancel.check()?;
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
    }
}

impl Slot {
    /// Makes its directory, and itself if it is one.
    fn make(&mut self, root: &Directory, ways: &mut Ways) {
        let Ok(name) = name_of(&self.item) else {
            return;
        };
        let is_directory = self.item.source.is_none();
        let made = root.make(&name, is_directory, self.item.mode);
        let found = made.and_then(|()| match (self.item.source, &self.target) {
            (Some(source), None) => {
                let place = Arc::new(ways.place(root, &name)?.with_mode(self.item.mode));
                self.target = Some(Target::new(place, source).claimed(self.claim.clone()));
                Ok(())
            }
            _ => Ok(()),
        });
        if let Err(e) = found {
            self.failure = Some(failed_on(&self.item.name, &e));
        }
    }

    fn publish(&mut self, overwrite: bool) {
        if let Some(target) = &mut self.target {
            let done = match target.blocks.is_complete() {
                true => target.publish(overwrite),
                // Nobody will go on with what has changed at its source.
                false if target.blocks.present().is_empty() => target
                    .discard()
                    .and(Err(io::ErrorKind::UnexpectedEof.into())),
                // What of it is not what was sent is known here only.
                false => target.note().and(Err(io::ErrorKind::UnexpectedEof.into())),
            };
            self.failure = done.err().map(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => "not complete".to_owned(),
                _ => failed_on(&self.item.name, &e),
            });
        }
    }
}

fn name_of(item: &Item) -> io::Result<Name> {
    let name = Name::parse(&item.name);
    name.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))
}

/// What is there of a file, no more ranges than a message holds.
pub(super) fn known(target: &mut Target) -> Vec<Span> {
    let mut spans = target.blocks.present();
    if spans.len() > State::MOST_RANGES {
        let rest = spans.split_off(State::MOST_RANGES);
        target.blocks.forget(&rest);
    }
    spans
}

fn found(slots: &[Slot], from: u32) -> Answer {
    let mut page = Vec::new();
    let (mut next, mut bytes) = (from as usize, 0);
    for (index, slot) in slots.iter().enumerate().skip(next) {
        if let Some(found) = &slot.found {
            let found = match found {
                Found::Refused(why) => Found::Refused(short(why)),
                found => found.clone(),
            };
            bytes += postcard::to_stdvec(&found).map_or(PAGE, |b| b.len()) + 5;
            if bytes > PAGE && !page.is_empty() {
                break;
            }
            page.push((index as u32, found));
        }
        next = index + 1;
    }
    Answer::Found {
        found: page,
        next: next as u32,
    }
}

/// Takes note of what will be sent; false: that is not possible.
fn note(slots: &mut [Slot], orders: &[(u32, Option<Vec<Span>>)]) -> bool {
    for (index, spans) in orders {
        let Some(slot) = slots.get_mut(*index as usize) else {
            return false;
        };
        match spans {
            None => slot.takes_part = false,
            Some(spans) => {
                slot.takes_part = !matches!(slot.found, Some(Found::Refused(_)));
                if let Some(target) = &mut slot.target {
                    target.blocks.forget(spans);
                }
            }
        }
    }
    true
}

/// What will be sent, of which slots.
fn plan(slots: &[Slot]) -> (Plan, Vec<usize>) {
    let (mut plan, mut places) = (Plan::default(), Vec::new());
    for (index, slot) in slots.iter().enumerate() {
        if slot.takes_part && slot.item.source.is_some() && slot.failure.is_none() {
            let spans = match &slot.target {
                Some(target) => target.blocks.missing(),
                None => vec![(0, slot.item.size())],
            };
            plan.push(places.len() as u32, &spans);
            places.push(index);
        }
    }
    (plan, places)
}

fn take_targets(slots: &mut [Slot]) -> (Vec<Target>, Vec<usize>) {
    let (_, places) = plan(slots);
    let taken = places
        .iter()
        .filter_map(|i| Some((slots[*i].target.take()?, *i)));
    taken.unzip()
}

fn give_back(slots: &mut [Slot], targets: Vec<Target>, places: &[usize]) {
    for (target, place) in targets.into_iter().zip(places) {
        slots[*place].target = Some(target);
    }
}

fn tree(slots: &[Slot], file: u32, from: u64, to: u64) -> Answer {
    match slots
        .get(file as usize)
        .and_then(|slot| slot.target.as_ref())
    {
        Some(target) => Answer::Tree(target.blocks.groups(from, to)),
        None => Answer::Nonsense,
    }
}

fn roots(slots: &[Slot], from: u32) -> Answer {
    let some = slots.iter().skip(from as usize).take(FAN as usize);
    let root = |slot: &Slot| {
        let target = slot.target.as_ref().filter(|_| slot.takes_part)?;
        target.blocks.root().map(|root| *root.as_bytes())
    };
    Answer::Roots(some.map(|slot| root(slot).unwrap_or_default()).collect())
}

fn whole(slots: &[Slot]) -> impl Iterator<Item = (u32, blake3::Hash)> {
    let taking_part = (0..).zip(slots).filter(|(_, slot)| slot.takes_part);
    taking_part.filter_map(|(i, slot)| Some((i, slot.target.as_ref()?.blocks.root()?)))
}

fn forget(slots: &mut [Slot], damaged: &[(u32, Vec<Span>)]) {
    for (index, spans) in damaged {
        if let Some(slot) = slots.get_mut(*index as usize)
            && let Some(target) = &mut slot.target
        {
            target.blocks.forget(&coalesced(spans.clone()));
        }
    }
}

fn named(slots: &[Slot]) -> Answer {
    let failed = (0..).zip(slots).filter(|(_, slot)| slot.takes_part);
    let failed = failed.filter_map(|(i, slot)| Some((i, slot.failure.clone()?)));
    let (mut page, mut bytes, mut all) = (Vec::new(), 0, 0);
    for (index, why) in failed {
        all += 1;
        let why = short(&why);
        bytes += why.len() + 8;
        if bytes <= PAGE {
            page.push((index, why));
        }
    }
    Answer::Named {
        same: true,
        failed: page,
        all,
    }
}

/// A sentence that fits into a message with others.
fn short(why: &str) -> String {
    why.chars().take(200).collect()
}

/// So long for the end of a copy of the same file.
const SOON: Duration = Duration::from_secs(5);
