//! Several files and directories at the client: what is there of each, the run, and what became of
//! each.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use blake3::Hash;
use fullpipe_run::RunSpec;

use super::carried::{Carried, set_transfer};
use super::copy::{Ask, CopyError, ask_until_ready, meanwhile, unfit};
use super::storing::{NOT_COMPLETE, known};
use super::{Answer, Content, Found, Held, PAGE, Question, coalesced, digest_of, failed_on};
use crate::file::tree::{FAN, Span};
use crate::file::{
    CHANGED, Cancel, Directory, Identity, Item, LeftOut, Name, Origin, Place, Plan, Receiving,
    Room, Sending, Target, Ways, Where, begin_all, bytes_of, receive_all, send_all,
    sync_directories, sync_files,
};

/// Destination of fetched files at this host.
#[derive(Clone, Debug)]
pub enum Base {
    /// The one file that is fetched gets this path.
    Exact(PathBuf),
    /// Files go below this directory, under their names without this many bytes at the start.
    Below(Arc<Directory>, usize),
    /// They would go to a directory that is not there yet.
    Nowhere,
}

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

/// What became of a file.
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
    /// Why it is not copied.
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
    /// Looks, with a server that has granted it, what is there of these files, which are sent.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn put(
        files: Vec<(Item, Where)>,
        overwrite: bool,
        ask: Ask<'_>,
    ) -> Result<Self, CopyError> {
        let file = |(item, at): (Item, Where)| match item.source {
            Some(source) => File::new(item, End::Origin(Origin::new(at, source))),
            None => File::new(item, End::Nothing),
        };
        let mut batch = Self {
            files: files.into_iter().map(file).collect(),
            base: None,
            overwrite,
            ways: Ways::default(),
            left_out: Vec::new(),
            unread: HashMap::new(),
            stage: Stage::Agreed,
        };
        let mut next = 0;
        while (next as usize) < batch.files.len() {
            let (found, after) = match ask_until_ready(&Question::Found(next), ask)? {
                Answer::Found { found, next: after } if after > next => (found, after),
                other => return Err(unfit(&other)),
            };
            for (index, found) in found {
                batch.hold_against(index, found, ask)?;
            }
            next = after;
        }
        Ok(batch)
    }

    /// The request of files that are sent.
    pub fn content(files: &[(Item, Where)], overwrite: bool) -> Content {
        Content::Store {
            items: files.iter().map(|(item, _)| item.clone()).collect(),
            overwrite,
        }
    }

    /// Compares what the server has of a file with it.
    fn hold_against(&mut self, index: u32, found: Found, ask: Ask<'_>) -> Result<(), CopyError> {
        let Some(file) = self.files.get_mut(index as usize) else {
            return Err(CopyError::Answer("another file".to_owned()));
        };
        let spans = match &found {
            Found::Refused(why) => {
                file.fail(there(why));
                return Ok(());
            }
            Found::Whole(_) => vec![(0, file.item.size())],
            Found::Part { spans, .. } => spans.clone(),
        };
        let End::Origin(origin) = std::mem::replace(&mut file.end, End::Nothing) else {
            return Err(CopyError::Answer("a directory is no file".to_owned()));
        };
        let mut origin = hashed(origin, spans.clone(), ask)?;
        match found {
            _ if origin.failure.is_some() => {
                file.fail(failed_here(&origin));
            }
            Found::Whole(root) => match origin.blocks.root() {
                Some(mine) if mine == root => file.skip(mine),
                _ if !self.overwrite => file.fail(there(&format!(
                    "{}: another file of this name exists",
                    file.item.name
                ))),
                _ => {}
            },
            Found::Part { digest, .. } => {
                let wrong = match origin.blocks.summary(0, origin.blocks.count()) == digest {
                    true => Vec::new(),
                    false => differing(&origin.blocks, index, ask)?,
                };
                // They are missing there.
                origin.blocks.forget(&wrong);
                file.fact.kept = length(&origin.blocks.present());
                file.fact.wrong = length(&wrong);
                file.fact.sent = file.item.size() - file.fact.kept;
            }
            Found::Refused(_) => {}
        }
        file.end = End::Origin(origin);
        Ok(())
    }

    /// Looks, with a server that has granted it, what is here of the files `names`, which are
    /// fetched.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn get(
        names: &[String],
        base: Base,
        overwrite: bool,
        ask: Ask<'_>,
    ) -> Result<Self, CopyError> {
        let mut batch = Self {
            files: Vec::new(),
            base: Some(base),
            overwrite,
            ways: Ways::default(),
            left_out: Vec::new(),
            unread: HashMap::new(),
            stage: Stage::Agreed,
        };
        let many = loop {
            let from = batch.files.len() as u32;
            let (items, all, many) = match ask_until_ready(&Question::Items(from), ask)? {
                Answer::Items {
                    items,
                    all,
                    left_out,
                } => (items, all, left_out),
                other => return Err(unfit(&other)),
            };
            if items.is_empty() && from < all || all as usize > MOST_ITEMS {
                return Err(CopyError::Answer("a list without an end".to_owned()));
            }
            let single = all == 1 && items.iter().all(|item| item.source.is_some());
            if matches!(batch.base, Some(Base::Exact(_))) && !single {
                let what = "it is a directory there: name a directory here, as `DIR/`";
                return Err(CopyError::Here(what.to_owned()));
            }
            batch
                .files
                .extend(items.into_iter().map(|item| File::new(item, End::Nothing)));
            if batch.files.len() as u32 >= all {
                break many;
            }
        };
        asked_for(&batch.files, names)?;
        if bytes_of(batch.files.iter().map(|file| &file.item)).is_none() {
            let what = "it gives files of more bytes than there can be";
            return Err(CopyError::Answer(what.to_owned()));
        }
        batch.ask_what_is_left_out(many, ask)?;
        let held = batch.look(ask)?;
        for page in pages(held, |held| 40 + 20 * held.spans.len()) {
            let differ = match ask_until_ready(&Question::Here(page.clone()), ask)? {
                Answer::Differ(differ) => differ,
                other => return Err(unfit(&other)),
            };
            for held in page {
                batch.settle(&held, differ.contains(&held.file), ask)?;
            }
        }
        Ok(batch)
    }

    /// Which `many` entries are no part of the copy.
    fn ask_what_is_left_out(&mut self, many: u32, ask: Ask<'_>) -> Result<(), CopyError> {
        while self.left_out.len() < (many as usize).min(MOST_ITEMS) {
            let from = self.left_out.len() as u32;
            match ask_until_ready(&Question::LeftOut(from), ask)? {
                Answer::LeftOut(more) if !more.is_empty() => self.left_out.extend(more),
                other => return Err(unfit(&other)),
            }
        }
        Ok(())
    }

    /// What is here of each file; one piece of work, since a hundred thousand short ones would
    /// leave no time for a sign of life.
    fn look(&mut self, ask: Ask<'_>) -> Result<Vec<Held>, CopyError> {
        let Some(base) = self.base.clone() else {
            return Ok(Vec::new());
        };
        let overwrite = self.overwrite;
        let mut ways = std::mem::take(&mut self.ways);
        let items: Vec<Item> = self.files.iter().map(|file| file.item.clone()).collect();
        let all = move |cancel: &Cancel| {
            let one = |item: &Item| {
                let source = item.source?;
                Some(look(&base, &mut ways, item, source, overwrite, cancel))
            };
            let looked: Vec<_> = items.iter().map(one).collect();
            (looked, ways)
        };
        let (looked, ways) = meanwhile(all, ask)?;
        self.ways = ways;
        let looked = (0..).zip(&mut self.files).zip(looked);
        let held = looked.filter_map(|((index, file), looked)| file.found(index, looked?));
        Ok(held.collect())
    }

    /// What is here of a file is that of the server, or `differs`.
    fn settle(&mut self, held: &Held, differs: bool, ask: Ask<'_>) -> Result<(), CopyError> {
        let overwrite = self.overwrite;
        let file = &mut self.files[held.file as usize];
        let End::Target(target) = &mut file.end else {
            return Ok(());
        };
        match (target.is_final(), differs) {
            (true, false) if target.place.exists().unwrap_or(false) => {
                if let Some(root) = target.blocks.root() {
                    file.skip(root);
                }
            }
            // It has been removed since, or is replaced.
            (true, differs) if !differs || overwrite => {
                target.replace_final();
                // A file that is not ours stands in the way of this one alone.
                if let Err(e) = target.look(false, &Cancel::default()) {
                    let why = failed_on(&file.item.name, &e);
                    file.fail(why);
                } else {
                    target.blocks.forget(&[(0, file.item.size())]);
                }
            }
            (true, _) => file.fail(format!(
                "{}: another file of this name exists",
                file.item.name
            )),
            (false, _) => {
                let wrong = match differs {
                    true => differing(&target.blocks, held.file, ask)?,
                    false => Vec::new(),
                };
                target.blocks.forget(&wrong);
                file.fact.wrong = length(&wrong);
                file.fact.kept = length(&target.blocks.present());
                file.fact.sent = file.item.size() - file.fact.kept;
            }
        }
        Ok(())
    }

    /// What is known of each item.
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
            for file in self.files.iter_mut().filter(|file| file.takes_part()) {
                file.make(&base, &mut self.ways);
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
            let (begun, targets) = meanwhile(begin, ask)?;
            self.take_back(targets, &places);
            begun.map_err(|(i, e)| {
                let name = places.get(i).map(|i| &self.files[*i].item.name);
                CopyError::Here(failed_on(name.map_or("files", String::as_str), &e))
            })?;
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
                file.fail(failed_on(&file.item.name, &e));
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

    /// After a run that came to its end: compares checksums, and gives every file that is whole its
    /// name. Of the others it is known which bytes are wrong: another copy sends them again.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn finish(&mut self, ask: Ask<'_>) -> Result<(), CopyError> {
        if !self.ask_to_publish(ask)? {
            self.find_damage(ask)?;
            if self.base.is_none() && !self.ask_to_publish(ask)? {
                let what = "checksums that differ although all blocks agree";
                return Err(CopyError::Answer(what.to_owned()));
            }
        }
        if self.base.is_some() {
            self.publish(ask)?;
        }
        for file in self.files.iter_mut().filter(|file| file.is_active()) {
            if file.fact.damaged == 0 {
                file.fact.digest = file.root();
            }
        }
        Ok(())
    }

    /// Asks whether all hashes are the same there; a server that stores gives files their names.
    fn ask_to_publish(&mut self, ask: Ask<'_>) -> Result<bool, CopyError> {
        let damaged = |file: &File| file.fact.damaged > 0;
        let active = (0..).zip(&self.files).filter(|(_, file)| file.is_active());
        let good = active.filter(|(_, file)| !damaged(file));
        let digest = digest_of(good.filter_map(|(i, file)| Some((i, file.root()?))));
        match ask_until_ready(&Question::Publish(digest), ask)? {
            Answer::Named {
                same: false,
                failed,
                ..
            } => {
                self.unread = failed.into_iter().collect();
                Ok(false)
            }
            Answer::Named { failed, all, .. } => {
                let unnamed = (all as usize).saturating_sub(failed.len());
                for (index, why) in failed {
                    if let Some(file) = self.files.get_mut(index as usize)
                        && (file.fact.damaged == 0 || why != NOT_COMPLETE)
                    {
                        file.fact.damaged = 0;
                        file.fail(there(&why));
                    }
                }
                match unnamed {
                    0 => Ok(true),
                    n => Err(CopyError::There(format!("{n} more files got no name"))),
                }
            }
            other => Err(unfit(&other)),
        }
    }

    /// Finds the blocks that differ, and tells a server that stores.
    fn find_damage(&mut self, ask: Ask<'_>) -> Result<(), CopyError> {
        let mut damaged = Vec::new();
        let mut from = 0;
        while from < self.files.len() {
            let roots = match ask_until_ready(&Question::Roots(from as u32), ask)? {
                Answer::Roots(roots) if !roots.is_empty() => roots,
                other => return Err(unfit(&other)),
            };
            for (index, root) in (from..).zip(roots.iter()).take(FAN as usize) {
                let Some(file) = self.files.get_mut(index) else {
                    break;
                };
                let is_source = file.item.source.is_some();
                if !is_source || file.fact.skipped {
                    continue;
                }
                let mine = file.root();
                if file.fact.failure.is_none() && mine.is_some_and(|mine| mine == *root) {
                    continue;
                }
                if file.fact.failure.is_none() && self.base.is_some() && *root == [0; 32] {
                    let why = self.unread.get(&(index as u32));
                    let why = why.map_or(CHANGED, String::as_str);
                    file.fail(there(&format!("{}: {why}", file.item.name)));
                    if let End::Target(target) = &mut file.end {
                        // Nobody will go on with it.
                        let discarded = target.discard();
                        discarded.map_err(|e| CopyError::Here(failed_on(&file.item.name, &e)))?;
                    }
                    continue;
                }
                let spans = match &file.end {
                    _ if file.fact.failure.is_some() => vec![(0, file.item.size())],
                    End::Origin(origin) => differing(&origin.blocks, index as u32, ask)?,
                    End::Target(target) => {
                        let differing = differing(&target.blocks, index as u32, ask)?;
                        coalesced([differing, target.blocks.missing()].concat())
                    }
                    End::Nothing => continue,
                };
                file.fact.damaged = length(&spans);
                if let End::Target(target) = &mut file.end {
                    target.blocks.forget(&spans);
                    let noted = target.note();
                    noted.map_err(|e| CopyError::Here(failed_on(&file.item.name, &e)))?;
                }
                damaged.push((index as u32, coalesced(spans)));
            }
            from += roots.len();
        }
        if self.base.is_some() {
            return Ok(());
        }
        for page in pages(damaged, |(_, spans)| 8 + 20 * spans.len()) {
            match ask_until_ready(&Question::Damaged(page), ask)? {
                Answer::Noted => {}
                other => return Err(unfit(&other)),
            }
        }
        Ok(())
    }

    /// Gives fetched files their names.
    fn publish(&mut self, ask: Ask<'_>) -> Result<(), CopyError> {
        let whole = |file: &File| file.is_active() && file.fact.damaged == 0;
        let places: Vec<usize> = (0..self.files.len())
            .filter(|i| whole(&self.files[*i]))
            .collect();
        let mut targets = self.take_targets(&places);
        let overwrite = self.overwrite;
        let publish = move |_: &Cancel| {
            let publish = |target: &mut Target| target.publish(overwrite);
            let mut results: Vec<io::Result<()>> = Vec::new();
            let synced = sync_files(targets.iter_mut()).and_then(|()| {
                results.extend(targets.iter_mut().map(publish));
                sync_directories(targets.iter())
            });
            (targets, results, synced)
        };
        let (targets, results, synced) = meanwhile(publish, ask)?;
        synced.map_err(|e| CopyError::Here(failed_on("files", &e)))?;
        self.give_back(targets.into_iter().map(End::Target), &places);
        for (place, result) in places.into_iter().zip(results) {
            if let Err(e) = result {
                let file = &mut self.files[place];
                file.fail(failed_on(&file.item.name, &e));
            }
        }
        Ok(())
    }
}

impl File {
    /// What has been found at its place; what of it the server is asked about.
    fn found(
        &mut self,
        index: u32,
        looked: io::Result<Option<(Target, Vec<Span>)>>,
    ) -> Option<Held> {
        let (target, spans) = match looked {
            Ok(found) => found?,
            Err(e) => {
                let why = failed_on(&self.item.name, &e);
                self.fail(why);
                return None;
            }
        };
        let size = self.item.size();
        let held = Held {
            file: index,
            digest: target.blocks.summary(0, target.blocks.count()),
            spans,
        };
        let is_empty = size == 0 && target.is_final();
        if is_empty && let Some(root) = target.blocks.root() {
            self.skip(root);
        }
        self.end = End::Target(target);
        (!held.spans.is_empty() && size > 0).then_some(held)
    }

    /// Makes its directory, and itself if it is one.
    fn make(&mut self, base: &Base, ways: &mut Ways) {
        let made = base.make(&self.item).and_then(|()| {
            if let (Some(source), End::Nothing) = (self.item.source, &self.end) {
                let place = Arc::new(base.place(&self.item, ways)?);
                self.end = End::Target(Target::new(place, source));
            }
            Ok(())
        });
        if let Err(e) = made {
            let why = failed_on(&self.item.name, &e);
            self.fail(why);
        }
    }
}

impl Base {
    /// Of what another host calls a name nothing leads out of the directory.
    fn name(&self, item: &Item) -> io::Result<Option<Name>> {
        let bad =
            |e: crate::file::NameError| io::Error::new(io::ErrorKind::InvalidInput, e.to_string());
        match self {
            Self::Exact(_) | Self::Nowhere => Ok(None),
            Self::Below(_, cut) => {
                let name = item.name.get(*cut..).unwrap_or_default();
                Name::parse(name).map(Some).map_err(bad)
            }
        }
    }

    fn place(&self, item: &Item, ways: &mut Ways) -> io::Result<Place> {
        let place = match (self, self.name(item)?) {
            (Self::Below(directory, _), Some(name)) => ways.place(directory, &name)?,
            (Self::Exact(path), _) => Place::local(path)?,
            (Self::Nowhere, _) => return Err(io::ErrorKind::NotFound.into()),
            (Self::Below(..), None) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(place.with_mode(item.mode))
    }

    fn make(&self, item: &Item) -> io::Result<()> {
        match (self, self.name(item)?) {
            (Self::Below(directory, _), Some(name)) => {
                directory.make(&name, item.source.is_none(), item.mode)
            }
            _ => Ok(()),
        }
    }
}

/// What is at the place of a file that is fetched, and which of its bytes are there; `None` if not
/// even its directory is.
fn look(
    base: &Base,
    ways: &mut Ways,
    item: &Item,
    source: Identity,
    overwrite: bool,
    cancel: &Cancel,
) -> io::Result<Option<(Target, Vec<Span>)>> {
    let place = match base.place(item, ways) {
        Ok(place) => Arc::new(place),
        // It is made with its directory.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut target = Target::new(Arc::clone(&place), source);
    if place.exists()? {
        if target.look_at_final(cancel)? {
            // As at a server: see `Look::examine`.
            if overwrite {
                target.may_begin()?;
            }
            return Ok(Some((target, vec![(0, source.size)])));
        }
        if !overwrite {
            let what = "another file of this name exists";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
    }
    target.look(false, cancel)?;
    let spans = known(&mut target);
    Ok(Some((target, spans)))
}

/// Fails unless each of `items` is one of `names`, or lies below one, and there is no other of its
/// name: a server may list whatever it likes.
fn asked_for(items: &[File], names: &[String]) -> Result<(), CopyError> {
    let names = names.iter().map(|name| name.trim_end_matches('/'));
    let names: Vec<&str> = names.collect();
    let mut seen = HashSet::new();
    for File { item, .. } in items {
        let below = |name: &&str| {
            let rest = item.name.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !names.iter().any(below) || !seen.insert(&item.name) {
            let what = format!("it gives `{}`, which was not asked for", item.name);
            return Err(CopyError::Answer(what));
        }
    }
    Ok(())
}

/// Reads ranges of a file of this host.
fn hashed(mut origin: Origin, spans: Vec<Span>, ask: Ask<'_>) -> Result<Origin, CopyError> {
    let read = move |cancel: &Cancel| {
        let spans = origin.blocks.whole(&spans);
        origin.hash(&spans, cancel).map(|()| origin)
    };
    let read = meanwhile(read, ask)?;
    read.map_err(|e| CopyError::Here(failed_on("files", &e)))
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

fn there(why: &str) -> String {
    format!("at the server: {why}")
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

/// Files and directories of one copy, at most.
const MOST_ITEMS: usize = 100_000;
