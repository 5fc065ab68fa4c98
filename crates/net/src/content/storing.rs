//! Files and directories that come to the server: what is there of each, the run, their names.

use std::collections::HashSet;
use std::io::{self, ErrorKind as Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_run::RunSpec;

use super::allowed::{Allowed, UnderWay};
use super::carried::{Carried, set_transfer};
use super::{Answer, EXISTS, Found, PAGE, Question, Work, coalesced, digest_of, failed_on};
use crate::file::tree::{FAN, Span};
use crate::file::{
    Blocks, Buffer, Cancel, Directory, Item, Made, NOBODY, Name, Plan, Receiving, Room, State,
    Target, Ways, begin_all, bytes_of, receive_all, sync_directories, sync_files,
};
use crate::shown::shortened;
use crate::too_many::too_many;

/// The server's side of files that the client sends.
#[derive(Debug)]
pub(super) struct Store {
    overwrite: bool,
    room: Room,
    directory: Arc<Directory>,
    /// Bytes that may wait for the disk.
    buffer: Option<Buffer>,
    under_way: UnderWay,
    /// Of the files that are written, from the moment that it is clear which these are.
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
        let look = Look {
            root: Arc::clone(&directory),
            ways: Ways::default(),
            refused: HashSet::new(),
            overwrite,
            most: allowed.most,
            under_way: allowed.under_way.clone(),
            busy: BusyDeadline::default(),
        };
        let look = move |cancel: &Cancel| look.all(items, cancel);
        Ok(Self {
            overwrite,
            room: allowed.room.clone(),
            directory,
            buffer: allowed.buffer.clone(),
            under_way: allowed.under_way.clone(),
            claims: Vec::new(),
            stage: Stage::Looking(Work::start(look)?),
        })
    }

    /// The files that have got their names: one of these, how many, and their bytes.
    pub(super) fn stored(&self) -> Option<(&str, u64, u64)> {
        let Stage::Published(slots) = &self.stage else {
            return None;
        };
        let is_stored =
            |slot: &&Slot| slot.takes_part && slot.item.source.is_some() && slot.failure.is_none();
        let files = || slots.iter().filter(is_stored);
        let bytes: u64 = files().map(|slot| slot.item.size()).sum();
        let first = files().next()?;
        Some((first.item.name.as_str(), files().count() as u64, bytes))
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
        // Only now it is a copy, which takes the place of the same one if that is under way: who
        // wants to know what there would be to do (`--dry-run`) comes no further.
        let claim = |slot: &Slot| {
            let source = slot.item.source.filter(|_| slot.takes_part)?;
            Some(self.under_way.enter(&slot.item.name, source))
        };
        let claims: Vec<_> = slots.iter().map(claim).collect();
        self.claims = claims.iter().flatten().cloned().collect();
        let (root, room) = (Arc::clone(&self.directory), self.room.clone());
        let under_way = self.under_way.clone();
        let own = self.claims.clone();
        let open = Work::start(move |cancel| {
            let mut made = Made::default();
            let begun = begin(slots, claims, (&root, &mut made), &room, &under_way, cancel);
            if begun.is_err() {
                under_way.unmake(&root, &made, &own);
            }
            begun
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

/// Makes directories, which are noted, and takes the disk for `slots`. Each claim is of its slot.
fn begin(
    mut slots: Vec<Slot>,
    claims: Vec<Option<Arc<AtomicBool>>>,
    (root, made): (&Directory, &mut Made),
    room: &Room,
    under_way: &UnderWay,
    cancel: &Cancel,
) -> Result<Vec<Slot>, String> {
    for slot in slots.iter().filter(|slot| !slot.takes_part) {
        // It stays until it is swept otherwise.
        let _ = slot.target.as_ref().map(Target::tidy);
    }
    let mut ways = Ways::default();
    let taking_part = |slot: &&mut Slot| slot.takes_part;
    for slot in slots.iter_mut().filter(taking_part) {
        cancel.check().map_err(|e| failed_on("files", &e))?;
        slot.make((root, made), &mut ways);
    }
    let busy = BusyDeadline::default();
    for (slot, claim) in slots.iter_mut().zip(claims) {
        if let (Some(target), Some(claim)) = (&mut slot.target, claim) {
            let name = &slot.item.name;
            let first = busy.wait(cancel, || under_way.first(name, &claim));
            match first.and_then(|()| target.look_again(cancel)) {
                Ok(()) => target.claim(Some(claim)),
                Err(e) => {
                    cancel.check().map_err(|e| failed_on("files", &e))?;
                    slot.failure = Some(failed_on(name, &e));
                    slot.target = None;
                }
            }
        }
    }
    let (mut targets, places) = take_targets(&mut slots);
    let begun = begin_all(&mut targets, room, cancel);
    give_back(&mut slots, targets, &places);
    if let Err((i, e)) = begun {
        let name = places.get(i).map_or("files", |i| &slots[*i].item.name);
        return Err(failed_on(name, &e));
    }
    let mut files = slots.iter().filter(|slot| slot.is_active());
    match files.find_map(|slot| slot.failure.clone()) {
        // Nobody waits for any of them.
        Some(why) if slots.iter().all(|s| !s.is_active() || s.failure.is_some()) => Err(why),
        _ => Ok(slots),
    }
}

/// How a server looks at what is there.
struct Look {
    root: Arc<Directory>,
    ways: Ways,
    /// Directories that cannot be, with what lies below them.
    refused: HashSet<String>,
    overwrite: bool,
    most: Option<u64>,
    under_way: UnderWay,
    busy: BusyDeadline,
}

/// Until when a file that another copy is writing is waited for.
#[derive(Clone, Copy, Debug)]
struct BusyDeadline(Instant);

impl Default for BusyDeadline {
    fn default() -> Self {
        Self(Instant::now() + SOON)
    }
}

impl BusyDeadline {
    /// Tries again while another copy is busy with it.
    fn wait<T>(self, cancel: &Cancel, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match attempt() {
                Err(e) if e.kind() == Kind::ResourceBusy && Instant::now() < self.0 => {
                    cancel.check()?;
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
    }
}

impl Look {
    fn all(mut self, items: Vec<Item>, cancel: &Cancel) -> io::Result<Vec<Slot>> {
        let slots = items.into_iter().map(|item| self.slot(item, cancel));
        slots.collect()
    }

    fn slot(&mut self, item: Item, cancel: &Cancel) -> io::Result<Slot> {
        let mut slot = Slot {
            target: None,
            found: None,
            takes_part: true,
            failure: None,
            item,
        };
        let refused = |why: String| Some(Found::Refused(why));
        let name = slot.item.name.clone();
        if let Err(e) = Name::parse(&name) {
            slot.found = refused(format!("{name}: {e}"));
        } else if let Some(most) = self.most.filter(|most| slot.item.size() > *most) {
            let why = too_many(slot.item.size(), most);
            slot.found = refused(format!("{name}: {why}"));
        } else if let Err(e) = self.examine(&mut slot, cancel) {
            if cancel.check().is_err() {
                return Err(e);
            }
            slot.found = refused(failed_on(&name, &e));
        } else if let Some(above) = self.refused_above(&name) {
            slot.found = refused(format!("{name}: there is no directory {above}"));
        }
        slot.takes_part = !matches!(slot.found, Some(Found::Refused(_)));
        if !slot.takes_part && slot.item.source.is_none() {
            self.refused.insert(name);
        }
        Ok(slot)
    }

    /// The directory on the way to `name` that is refused.
    fn refused_above<'n>(&self, name: &'n str) -> Option<&'n str> {
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        above.find(|above| self.refused.contains(*above))
    }

    fn examine(&mut self, slot: &mut Slot, cancel: &Cancel) -> io::Result<()> {
        let name = name_of(&slot.item)?;
        let text = &slot.item.name;
        let Some(source) = slot.item.source else {
            return match self.root.place(&name) {
                Ok(place) => place.may_be_directory(),
                // It is made with the one above; or nothing can be said of it now.
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::QuotaExceeded) => Ok(()),
                Err(e) => Err(e),
            };
        };
        let beside = self
            .busy
            .wait(cancel, || self.under_way.look(text, source))?;
        let place = match self.ways.place(&self.root, &name) {
            Ok(place) => Arc::new(place.with_mode(slot.item.mode)),
            // It is made with its directory.
            Err(e) if e.kind() == Kind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let mut target = Target::new(Arc::clone(&place), source);
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
                let what = EXISTS;
                return Err(io::Error::new(Kind::AlreadyExists, what));
            }
        }
        place.may_make()?;
        if self.busy.wait(cancel, || target.look(beside, cancel))? {
            let spans = known(&mut target);
            let digest = target.blocks.summary(0, target.blocks.count());
            slot.found = Some(Found::Part { spans, digest });
        }
        slot.target = Some(target);
        Ok(())
    }
}

impl Slot {
    /// A file that is to be sent.
    fn is_active(&self) -> bool {
        self.takes_part && self.item.source.is_some()
    }

    /// Makes its directory, and itself if it is one.
    fn make(&mut self, (root, made): (&Directory, &mut Made), ways: &mut Ways) {
        let Ok(name) = name_of(&self.item) else {
            return;
        };
        let is_directory = self.item.source.is_none();
        let made = root.make(&name, is_directory, self.item.mode, made);
        // A copy that failed may have taken away the directory that it had made.
        let is_void = self.target.as_ref().is_none_or(Target::is_void);
        let found = made.and_then(|()| match self.item.source {
            Some(source) if is_void => {
                let place = Arc::new(ways.place(root, &name)?.with_mode(self.item.mode));
                self.target = Some(Target::new(place, source));
                Ok(())
            }
            _ => Ok(()),
        });
        if let Err(e) = found {
            self.failure = Some(failed_on(&self.item.name, &e));
        }
    }

    fn publish(&mut self, overwrite: bool) {
        if let Some(target) = self.target.as_mut().filter(|_| self.failure.is_none()) {
            let done = match target.blocks.is_complete() {
                true => target.publish(overwrite),
                // Nobody will go on with what has changed at its source.
                false if target.blocks.present().is_empty() => {
                    target.discard().and(Err(Kind::UnexpectedEof.into()))
                }
                // What of it is not what was sent is known here only.
                false => target.note().and(Err(Kind::UnexpectedEof.into())),
            };
            self.failure = done.err().map(|e| match e.kind() {
                Kind::UnexpectedEof => NOT_COMPLETE.to_owned(),
                _ => failed_on(&self.item.name, &e),
            });
        }
    }
}

fn name_of(item: &Item) -> io::Result<Name> {
    let name = Name::parse(&item.name);
    name.map_err(|e| io::Error::new(Kind::InvalidInput, e.to_string()))
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
        if slot.is_active() {
            let spans = match &slot.target {
                Some(target) => target.blocks.missing(),
                None => vec![(0, slot.item.size())],
            };
            if slot.failure.is_some() {
                // It is sent all the same: the client knows nothing of it yet.
                plan.push(NOBODY, &spans);
                continue;
            }
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
    for (mut target, place) in targets.into_iter().zip(places) {
        let slot = &mut slots[*place];
        let failure = target.take_failure();
        slot.failure = failure.map(|e| failed_on(&slot.item.name, &e));
        slot.target = Some(target);
    }
}

fn tree(slots: &[Slot], file: u32, from: u64, to: u64) -> Answer {
    let slot = slots.get(file as usize);
    match slot.map(|slot| (slot, &slot.target)) {
        Some((_, Some(target))) => Answer::Tree(target.blocks.groups(from, to)),
        // Its directory could not be made.
        Some((slot, None)) if slot.failure.is_some() => {
            Answer::Tree(Blocks::new(slot.item.size()).groups(from, to))
        }
        _ => Answer::Nonsense,
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
pub(super) fn short(why: &str) -> String {
    shortened(why, 200)
}

/// What is said of a file whose blocks are not all there, or not all right.
pub(super) const NOT_COMPLETE: &str = "not complete";
/// So long for the end of a copy of the same file.
const SOON: Duration = Duration::from_secs(5);
