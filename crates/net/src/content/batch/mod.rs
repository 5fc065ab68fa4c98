//! Several files and directories at the client: what is there of each, the run, and what became of
//! each.

mod base;
mod finish;
mod known;

use std::collections::HashMap;
use std::io;

use blake3::Hash;
use fullpipe_run::RunSpec;

pub use self::base::Base;
use super::carried::{Carried, set_transfer};
use super::copy::{Ask, CopyError, ask_until_ready, meanwhile, unfit};
use super::{Answer, Content, PAGE, Question, coalesced, failed_on, here};
use crate::file::tree::Span;
use crate::file::{
    Cancel, Item, LeftOut, Made, Origin, Plan, Receiving, Room, Sending, Target, Ways, Where,
    begin_all, receive_all, send_all,
};

/// A copy of several files on its way, at the client.
#[derive(Debug)]
pub struct Batch {
    files: Vec<File>,
    /// Where fetched files go; `None`: files are sent.
    base: Option<Base>,
    overwrite: bool,
    /// Directories that fetched files go to.
    ways: Ways,
    /// Entries of directories at the server that are no part of the copy.
    left_out: Vec<LeftOut>,
    /// Files that the server could not read, and why.
    unread: HashMap<u32, String>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Agreed,
    Sending(Vec<usize>, Sending),
    Receiving(Vec<usize>, Receiving),
    Over,
}

/// An item of the copy, and what is known of it.
#[derive(Debug)]
struct File {
    item: Item,
    end: End,
    fact: Fact,
}

/// The end of a file that is here.
#[derive(Debug)]
enum End {
    Nothing,
    Origin(Origin),
    Target(Target),
}

/// One line of a finished batch: a file, and how much of it moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Name at the server.
    pub name: String,
    /// Bytes of a file, if they are known.
    pub size: Option<u64>,
    /// A directory, which has no size; an entry that is left out may have none either.
    pub is_directory: bool,
    /// The same file was there already.
    pub skipped: bool,
    /// Bytes that were there of an earlier attempt, and are right.
    pub kept: u64,
    /// Bytes that were there, and wrong.
    pub wrong: u64,
    /// Bytes that are sent, or were.
    pub sent: u64,
    /// Bytes that came wrong, and have to be sent again.
    pub damaged: u64,
    /// BLAKE3, once the file has its name.
    pub digest: Option<Hash>,
    /// In words, the cause if it is not copied.
    pub failure: Option<String>,
}

impl File {
    fn new(item: Item, end: End) -> Self {
        let fact = Fact {
            name: item.name.clone(),
            size: item.source.map(|source| source.size),
            is_directory: item.source.is_none(),
            sent: item.size(),
            ..Fact::default()
        };
        Self { item, end, fact }
    }

    fn takes_part(&self) -> bool {
        !self.fact.skipped && self.fact.failure.is_none()
    }

    fn is_active(&self) -> bool {
        self.takes_part() && self.item.source.is_some()
    }

    fn skip(&mut self, digest: Hash) {
        self.fact.skipped = true;
        self.fact.sent = 0;
        self.fact.digest = Some(digest);
    }

    fn fail(&mut self, why: String) {
        self.fact.sent = 0;
        self.fact.failure = Some(why);
    }

    fn root(&self) -> Option<Hash> {
        match &self.end {
            End::Nothing => None,
            End::Origin(origin) => origin.blocks.root(),
            End::Target(target) => target.blocks.root(),
        }
    }
}

impl Batch {
    /// The request of files that are sent.
    pub fn content(files: &[(Item, Where)], overwrite: bool) -> Content {
        Content::Store {
            items: files.iter().map(|(item, _)| item.clone()).collect(),
            overwrite,
        }
    }

    /// Outcome so far of each item, in the order of the copy.
    pub fn facts(&self) -> Vec<Fact> {
        self.files.iter().map(|file| file.fact.clone()).collect()
    }

    /// Entries of directories at the server that are no part of the copy.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Bytes that will be sent.
    pub fn bytes(&self) -> u64 {
        self.plan().0.bytes()
    }

    /// What will be sent of a file.
    fn spans(file: &File) -> Vec<Span> {
        let all = || vec![(0, file.item.size())];
        match &file.end {
            End::Target(target) => coalesced(target.blocks.missing()),
            End::Origin(_) if file.fact.kept == 0 => all(),
            End::Origin(origin) => coalesced(origin.blocks.missing()),
            End::Nothing => all(),
        }
    }

    fn plan(&self) -> (Plan, Vec<usize>) {
        let (mut plan, mut places) = (Plan::default(), Vec::new());
        for (index, file) in self.files.iter().enumerate() {
            if file.is_active() {
                plan.push(places.len() as u32, &Self::spans(file));
                places.push(index);
            }
        }
        (plan, places)
    }

    /// Agrees on what is sent, and takes the disk for what is fetched. Until then nothing is
    /// changed anywhere.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn agree(&mut self, ask: Ask<'_>) -> Result<(), CopyError> {
        if let Some(base) = self.base.clone() {
            let mut made = Made::default();
            for file in self.files.iter_mut().filter(|file| file.takes_part()) {
                file.make(&base, &mut self.ways, &mut made);
            }
            for file in self.files.iter().filter(|file| file.fact.skipped) {
                if let End::Target(target) = &file.end {
                    // What stays is a few lines of text.
                    let _ = target.tidy();
                }
            }
            let (_, places) = self.plan();
            let mut targets = self.take_targets(&places);
            // A hundred thousand files are not made in the time that a server waits for a client.
            let begin = move |cancel: &Cancel| {
                let begun = begin_all(&mut targets, &Room::default(), cancel);
                (begun, targets)
            };
            let begun = meanwhile(begin, ask).and_then(|(begun, targets)| {
                self.take_back(targets, &places);
                begun.map_err(|(i, e)| {
                    let name = places.get(i).map(|i| &self.files[*i].item.name);
                    CopyError::Here(failed_on(name.map_or("files", String::as_str), &e))
                })
            });
            let mut files = self.files.iter().filter(|file| file.item.source.is_some());
            let first = files.next();
            let has_failed = |file: &File| file.fact.failure.is_some();
            if begun.is_err() || first.is_some_and(has_failed) && files.all(has_failed) {
                base.unmake(&made);
            }
            begun?;
        }
        let mut orders = Vec::new();
        for (index, file) in (0u32..).zip(&mut self.files) {
            let spans = Self::spans(file);
            let whole = spans == [(0, file.item.size())];
            let order = match file.takes_part() {
                true if file.item.source.is_none() => continue,
                true => Some(spans.clone()),
                false => None,
            };
            if let End::Target(target) = &mut file.end {
                // What lies between many ranges is fetched again.
                target.blocks.forget(&spans);
            }
            if whole && file.takes_part() && matches!(file.end, End::Nothing) {
                continue;
            }
            orders.push((index, order));
        }
        let length = |(_, spans): &(u32, Option<Vec<Span>>)| {
            8 + spans.as_ref().map_or(0, |spans| 20 * spans.len())
        };
        for page in pages(orders, length) {
            match ask_until_ready(&Question::Plan(page), ask)? {
                Answer::Noted => {}
                other => return Err(unfit(&other)),
            }
        }
        match ask_until_ready(&Question::Ready(self.bytes()), ask)? {
            Answer::Ready => Ok(()),
            other => Err(unfit(&other)),
        }
    }

    fn take_targets(&mut self, places: &[usize]) -> Vec<Target> {
        let ends = places
            .iter()
            .map(|i| std::mem::replace(&mut self.files[*i].end, End::Nothing));
        let targets = ends.filter_map(|end| match end {
            End::Target(target) => Some(target),
            _ => None,
        });
        targets.collect()
    }

    /// Puts targets back to their files, with what has failed of each.
    fn take_back(&mut self, targets: Vec<Target>, places: &[usize]) {
        for (mut target, place) in targets.into_iter().zip(places) {
            let file = &mut self.files[*place];
            if let Some(e) = target.take_failure() {
                file.fail(here(&failed_on(&file.item.name, &e)));
            }
            file.end = End::Target(target);
        }
    }

    fn give_back(&mut self, ends: impl Iterator<Item = End>, places: &[usize]) {
        for (end, place) in ends.zip(places) {
            self.files[*place].end = end;
        }
    }

    /// The run begins; `spec` gets the length of the transfer.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn begin(&mut self, spec: &mut RunSpec, ask: Ask<'_>) -> Result<Carried, CopyError> {
        let here = |e: io::Error| CopyError::Here(failed_on("files", &e));
        let (plan, places) = self.plan();
        let Some(flow) = spec.flows.first_mut() else {
            return Err(CopyError::Here("no flow carries the files".to_owned()));
        };
        set_transfer(flow, plan.bytes()).map_err(CopyError::Here)?;
        if self.base.is_some() {
            let targets = self.take_targets(&places);
            let mss = flow.sender.mss;
            let begun = meanwhile(move |_| receive_all(targets, plan, mss), ask)?;
            let (sink, receiving) = begun.map_err(here)?;
            self.stage = Stage::Receiving(places, receiving);
            return Ok(Carried::of_sink(sink));
        }
        let ends = places
            .iter()
            .map(|i| std::mem::replace(&mut self.files[*i].end, End::Nothing));
        let origins = ends.filter_map(|end| match end {
            End::Origin(origin) => Some(origin),
            _ => None,
        });
        let (source, sending) = send_all(origins.collect(), plan, None).map_err(here)?;
        self.stage = Stage::Sending(places, sending);
        Ok(Carried::of_source(source))
    }

    /// After the run, or without one where nothing was missing: takes back the files, whatever
    /// became of the run.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn ended(&mut self, carried: Option<Carried>, ask: Ask<'_>) -> Result<(), CopyError> {
        let here = |e: io::Error| CopyError::Here(failed_on("files", &e));
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Sending(places, sending) => {
                drop(carried);
                let origins = meanwhile(move |cancel| sending.finish(cancel), ask)?;
                let origins = origins.map_err(here)?;
                self.give_back(origins.into_iter().map(End::Origin), &places);
                for file in &mut self.files {
                    if let End::Origin(origin) = &file.end
                        && origin.failure.is_some()
                    {
                        file.fail(failed_here(origin));
                    }
                }
            }
            Stage::Receiving(places, receiving) => {
                let finish = move |_: &Cancel| {
                    drop(carried);
                    receiving.finish()
                };
                let (targets, written) = meanwhile(finish, ask)?.map_err(here)?;
                self.take_back(targets, &places);
                written.map_err(here)?;
            }
            Stage::Agreed | Stage::Over => {}
        }
        Ok(())
    }

    /// Bytes of the stream at the receiver without a hole, if that is here.
    pub fn written(&self) -> Option<u64> {
        match &self.stage {
            Stage::Receiving(_, receiving) => Some(receiving.prefix()),
            _ => None,
        }
    }

    /// Bytes of fetched files that are not here yet, in whole blocks; before they have ended, all.
    pub fn missing(&self) -> u64 {
        let active = self.files.iter().filter(|file| file.is_active());
        let missing = active.filter_map(|file| match &file.end {
            // What somebody else has destroyed did come.
            End::Target(target) if !target.is_changed() => Some(length(&target.blocks.missing())),
            _ => None,
        });
        missing.sum()
    }
}

/// Ranges of an item that the server has otherwise.
fn differing(
    blocks: &crate::file::Blocks,
    file: u32,
    ask: Ask<'_>,
) -> Result<Vec<Span>, CopyError> {
    blocks.differing(
        |from, to| match ask_until_ready(&Question::Tree { file, from, to }, ask)? {
            Answer::Tree(groups) => Ok(groups),
            other => Err(unfit(&other)),
        },
    )
}

/// Of a file here, by its path.
fn failed_here(origin: &Origin) -> String {
    let why = origin.failure.as_deref().unwrap_or_default();
    match &origin.at {
        Where::Path(path) => format!("{}: {why}", path.display()),
        Where::Place(_) => why.to_owned(),
    }
}

fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|(from, to)| to - from).sum()
}

/// Lists that fit into a message each, with at least one entry.
fn pages<T>(all: Vec<T>, length: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut pages, mut bytes): (Vec<Vec<T>>, usize) = (Vec::new(), 0);
    for one in all {
        let more = length(&one);
        match pages.last_mut() {
            Some(page) if bytes + more <= PAGE => {
                page.push(one);
                bytes += more;
            }
            _ => {
                pages.push(vec![one]);
                bytes = more;
            }
        }
    }
    pages
}
