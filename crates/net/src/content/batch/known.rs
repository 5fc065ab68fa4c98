//! Before the run: what is there of each file already, here or at the server.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use super::{Base, Batch, End, File, Stage, differing, failed_here, length, pages};
use crate::content::copy::{Ask, CopyError, ask_until_ready, meanwhile, unfit};
use crate::content::storing::known;
use crate::content::{Answer, EXISTS, Found, Held, Question, failed_on, here, there};
use crate::file::tree::Span;
use crate::file::{Cancel, Identity, Item, Origin, Target, Ways, Where, bytes_of};

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
                _ if !self.overwrite => file.fail(there(&format!("{}: {EXISTS}", file.item.name))),
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
                    let why = here(&failed_on(&file.item.name, &e));
                    file.fail(why);
                } else {
                    target.blocks.forget(&[(0, file.item.size())]);
                }
            }
            (true, _) => file.fail(here(&format!("{}: {EXISTS}", file.item.name))),
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
                let why = here(&failed_on(&self.item.name, &e));
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
            let what = EXISTS;
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

/// Files and directories of one copy, at most.
const MOST_ITEMS: usize = 100_000;
