//! After the run: checksums are compared, and what is whole gets its name.

use std::io;

use super::{Batch, End, File, differing, length, pages};
use crate::content::copy::{Ask, CopyError, ask_until_ready, meanwhile, unfit};
use crate::content::storing::NOT_COMPLETE;
use crate::content::{Answer, Question, coalesced, digest_of, failed_on, here, there};
use crate::file::tree::FAN;
use crate::file::{CHANGED, Cancel, Target, sync_directories, sync_files};

impl Batch {
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
                let first = failed.first().map(|(_, why)| why.clone());
                for (index, why) in failed {
                    if let Some(file) = self.files.get_mut(index as usize)
                        && file.fact.failure.is_none()
                        && (file.fact.damaged == 0 || why != NOT_COMPLETE)
                    {
                        file.fact.damaged = 0;
                        file.fail(there(&why));
                    }
                }
                match unnamed {
                    0 => Ok(true),
                    _ => {
                        let first = first.unwrap_or_default();
                        let why = format!("{all} files got no name; the first: {first}");
                        Err(CopyError::There(why))
                    }
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
                        discarded
                            .map_err(|e| CopyError::Here(here(&failed_on(&file.item.name, &e))))?;
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
                if file.fact.failure.is_none() {
                    // What has failed is not sent again.
                    file.fact.damaged = length(&spans);
                }
                if let End::Target(target) = &mut file.end {
                    target.blocks.forget(&spans);
                    let noted = target.note();
                    noted.map_err(|e| CopyError::Here(here(&failed_on(&file.item.name, &e))))?;
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
                file.fail(here(&failed_on(&file.item.name, &e)));
            }
        }
        Ok(())
    }
}
