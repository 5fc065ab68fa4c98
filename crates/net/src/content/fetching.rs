//! Files and directories that leave the server: which there are, what the client has of them, the
//! run, their checksums.

use std::io;
use std::sync::Arc;

use fullpipe_run::RunSpec;

use super::allowed::Allowed;
use super::carried::{Carried, set_transfer};
use super::{Answer, Held, PAGE, Question, Work, digest_of, failed_on};
use crate::file::tree::{FAN, Span};
use crate::file::{
    Buffer, Cancel, Directory, Item, LeftOut, Name, Origin, Plan, Reach, Sending, Ways, Where,
    send_all,
};

/// The server's side of files that the client fetches.
#[derive(Debug)]
pub(super) struct Fetch {
    /// Bytes that may be read ahead.
    buffer: Option<Buffer>,
    stage: Stage,
    /// The latest question that took time, and its answer.
    last: Option<(Question, Answer)>,
}

#[derive(Debug)]
enum Stage {
    Listing(Work<Result<Files, String>>),
    There(Files),
    /// Holding what the client has against the files.
    Hashing(Question, Work<io::Result<(Files, Vec<u32>)>>),
    Ready(Files, u64),
    Running(Files, Vec<usize>, Sending),
    Finishing(Work<io::Result<Files>>),
    Failed(String),
    Moving,
}

/// Items of a fetch, in the order in which the client counts them.
#[derive(Debug, Default)]
struct Files {
    all: Vec<File>,
    left_out: Vec<LeftOut>,
}

#[derive(Debug)]
struct File {
    item: Item,
    origin: Option<Origin>,
    /// What is to be sent: `None`: all; nothing of what takes no part.
    spans: Option<Vec<Span>>,
    takes_part: bool,
}

impl Fetch {
    /// Looks for what has these names.
    ///
    /// # Errors
    /// A sentence for the client, if it will not be done.
    pub(super) fn new(
        names: &[String],
        directory: Arc<Directory>,
        allowed: &Allowed,
    ) -> Result<Self, String> {
        let parsed = names
            .iter()
            .map(|name| Name::parse(name).map_err(|e| format!("{name}: {e}")));
        let names = parsed.collect::<Result<Vec<Name>, String>>()?;
        let (allowed, buffer) = (allowed.clone(), allowed.buffer.clone());
        let lender = buffer.as_ref().map(|buffer| Arc::clone(&buffer.lender));
        let list = Work::start(move |cancel: &Cancel| {
            let (mut files, mut ways) = (Files::default(), Ways::default());
            let mut reach = Reach::new(lender.as_deref(), cancel);
            for name in &names {
                files.add(&directory, &mut ways, name, &mut reach)?;
            }
            let mut items = files.all.iter().map(|file| &file.item);
            items.try_for_each(|item| allowed.size(&item.name, item.size()))?;
            Ok(files)
        });
        Ok(Self {
            buffer,
            stage: Stage::Listing(list?),
            last: None,
        })
    }

    /// Answers the client.
    pub(super) fn ask(&mut self, question: &Question) -> Answer {
        self.advance();
        if let Some((_, answer)) = self.last.as_ref().filter(|(asked, _)| asked == question) {
            return answer.clone();
        }
        match (&mut self.stage, question) {
            (Stage::Failed(why), _) => Answer::Failed(why.clone()),
            (Stage::Listing(_), Question::Items(_) | Question::Prepared) => Answer::Busy,
            (Stage::There(files), Question::Items(from)) => files.page(*from),
            (Stage::There(files), Question::LeftOut(from)) => files.left_out(*from),
            (Stage::There(_), Question::Here(held)) => self.hash(question, held.clone()),
            (Stage::Hashing(asked, _), Question::Here(_)) if asked == question => Answer::Busy,
            (Stage::There(files), Question::Plan(orders)) => match files.note(orders) {
                true => Answer::Noted,
                false => Answer::Nonsense,
            },
            (Stage::There(files), Question::Ready(bytes)) => {
                if files.plan().0.bytes() != *bytes {
                    let what = "client and server do not plan the same copy";
                    return Answer::Failed(what.to_owned());
                }
                let files = std::mem::take(files);
                self.stage = Stage::Ready(files, *bytes);
                Answer::Ready
            }
            (Stage::Ready(..), Question::Ready(_)) => Answer::Ready,
            (Stage::There(files) | Stage::Ready(files, _), Question::Tree { file, from, to }) => {
                files.tree(*file, *from, *to)
            }
            (Stage::Ready(files, _), Question::Roots(from)) => files.roots(*from),
            (Stage::Ready(files, _), Question::Publish(digest)) => Answer::Named {
                same: digest_of(files.whole()) == *digest,
                failed: files.unread(),
                all: 0,
            },
            (
                Stage::Running(..) | Stage::Finishing(_),
                Question::Roots(_) | Question::Publish(_) | Question::Tree { .. },
            ) => Answer::Busy,
            // A sign of life.
            (_, Question::Prepared) => Answer::Noted,
            _ => Answer::Nonsense,
        }
    }

    fn hash(&mut self, question: &Question, held: Vec<Held>) -> Answer {
        let Stage::There(mut files) = std::mem::replace(&mut self.stage, Stage::Moving) else {
            return Answer::Nonsense;
        };
        let hash = Work::start(move |cancel| {
            let differing = files.compare(&held, cancel)?;
            Ok((files, differing))
        });
        self.stage = match hash {
            Ok(work) => Stage::Hashing(question.clone(), work),
            Err(why) => Stage::Failed(why),
        };
        Answer::Busy
    }

    /// The run begins; `spec` gets the length of the transfer.
    pub(super) fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Ready(mut files, bytes) if bytes > 0 => {
                set_transfer(&mut spec.flows[0], bytes)?;
                let (plan, places) = files.plan();
                let origins = places.iter().filter_map(|i| files.all[*i].origin.take());
                let begun = send_all(origins.collect(), plan, self.buffer.take());
                let (source, sending) = begun.map_err(|e| failed_on("files", &e))?;
                self.stage = Stage::Running(files, places, sending);
                Ok(Carried::of_source(source))
            }
            other => {
                self.stage = other;
                Err("the transfer has not been agreed upon".to_owned())
            }
        }
    }

    /// The run is over.
    pub(super) fn ended(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Moving) {
            Stage::Running(mut files, places, sending) => {
                let finish = Work::start(move |cancel| {
                    let origins = sending.finish(cancel)?;
                    for (origin, place) in origins.into_iter().zip(&places) {
                        files.all[*place].origin = Some(origin);
                    }
                    Ok(files)
                });
                finish.map_or_else(Stage::Failed, Stage::Finishing)
            }
            other => other,
        };
    }

    fn advance(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Moving);
        let failed = |e: io::Error| Stage::Failed(failed_on("files", &e));
        self.stage = match stage {
            Stage::Listing(work) if work.is_done() => match work.result() {
                Ok(Ok(files)) => Stage::There(files),
                Ok(Err(e)) | Err(e) => Stage::Failed(e),
            },
            Stage::Hashing(asked, work) if work.is_done() => match work.result() {
                Ok(Ok((files, differing))) => {
                    self.last = Some((asked, Answer::Differ(differing)));
                    Stage::There(files)
                }
                Ok(Err(e)) => failed(e),
                Err(e) => Stage::Failed(e),
            },
            Stage::Finishing(work) if work.is_done() => match work.result() {
                Ok(Ok(files)) => Stage::Ready(files, 0),
                Ok(Err(e)) => failed(e),
                Err(e) => Stage::Failed(e),
            },
            other => other,
        };
    }

    /// Why it cannot go on, if it cannot.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            _ => None,
        }
    }
}

impl Files {
    fn add(
        &mut self,
        directory: &Directory,
        ways: &mut Ways,
        name: &Name,
        reach: &mut Reach<'_>,
    ) -> Result<(), String> {
        let failed = |e: io::Error| failed_on(name.as_str(), &e);
        let listing = directory.items(name, reach).map_err(failed)?;
        self.left_out.extend(listing.left_out);
        for item in listing.items {
            let origin = match (item.source, Name::parse(&item.name)) {
                (Some(source), Ok(name)) => {
                    let place = ways.place(directory, &name).map_err(failed)?;
                    Some(Origin::new(Where::Place(Arc::new(place)), source))
                }
                _ => None,
            };
            self.all.push(File {
                item,
                origin,
                spans: None,
                takes_part: true,
            });
        }
        Ok(())
    }

    fn page(&self, from: u32) -> Answer {
        let (mut items, mut bytes) = (Vec::new(), 0);
        for file in self.all.iter().skip(from as usize) {
            bytes += file.item.name.len() + 24;
            if bytes > PAGE && !items.is_empty() {
                break;
            }
            items.push(file.item.clone());
        }
        Answer::Items {
            items,
            all: self.all.len() as u32,
            left_out: self.left_out.len() as u32,
        }
    }

    fn left_out(&self, from: u32) -> Answer {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for left_out in self.left_out.iter().skip(from as usize) {
            bytes += postcard::to_stdvec(left_out).map_or(PAGE, |b| b.len());
            if bytes > PAGE && !page.is_empty() {
                break;
            }
            page.push(left_out.clone());
        }
        Answer::LeftOut(page)
    }

    fn compare(&mut self, held: &[Held], cancel: &Cancel) -> io::Result<Vec<u32>> {
        let mut differing = Vec::new();
        for held in held {
            let file = self.all.get_mut(held.file as usize);
            let Some(origin) = file.and_then(|file| file.origin.as_mut()) else {
                continue;
            };
            let spans = origin.blocks.whole(&held.spans);
            origin.hash(&spans, cancel)?;
            if origin.blocks.summary(0, origin.blocks.count()) != held.digest {
                differing.push(held.file);
            }
        }
        Ok(differing)
    }

    fn note(&mut self, orders: &[(u32, Option<Vec<Span>>)]) -> bool {
        for (index, spans) in orders {
            let Some(file) = self.all.get_mut(*index as usize) else {
                return false;
            };
            let size = file.item.size();
            let sound = |spans: &[Span]| {
                let inside = spans.iter().all(|(from, to)| from < to && *to <= size);
                inside && spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
            };
            if !spans.as_deref().is_none_or(sound) {
                return false;
            }
            file.takes_part = spans.is_some();
            file.spans = spans.clone();
        }
        true
    }

    fn plan(&self) -> (Plan, Vec<usize>) {
        let (mut plan, mut places) = (Plan::default(), Vec::new());
        for (index, file) in self.all.iter().enumerate() {
            if file.takes_part && file.item.source.is_some() {
                let all = [(0, file.item.size())];
                plan.push(places.len() as u32, file.spans.as_deref().unwrap_or(&all));
                places.push(index);
            }
        }
        (plan, places)
    }

    fn tree(&self, file: u32, from: u64, to: u64) -> Answer {
        let file = self.all.get(file as usize);
        match file.and_then(|file| file.origin.as_ref()) {
            Some(origin) => Answer::Tree(origin.blocks.groups(from, to)),
            None => Answer::Nonsense,
        }
    }

    fn roots(&self, from: u32) -> Answer {
        let some = self.all.iter().skip(from as usize).take(FAN as usize);
        let root = |file: &File| {
            let origin = file.origin.as_ref().filter(|_| file.takes_part)?;
            origin.blocks.root().map(|root| *root.as_bytes())
        };
        Answer::Roots(some.map(|file| root(file).unwrap_or_default()).collect())
    }

    /// Files that cannot be read, and why: as many as a message holds.
    fn unread(&self) -> Vec<(u32, String)> {
        let taking_part = (0..).zip(&self.all).filter(|(_, file)| file.takes_part);
        let failed =
            taking_part.filter_map(|(i, file)| Some((i, file.origin.as_ref()?.failure.clone()?)));
        let mut bytes = 0;
        let fits = |(_, why): &(u32, String)| {
            bytes += why.len() + 8;
            bytes <= PAGE
        };
        failed.take_while(fits).collect()
    }

    fn whole(&self) -> impl Iterator<Item = (u32, blake3::Hash)> {
        let taking_part = (0..).zip(&self.all).filter(|(_, file)| file.takes_part);
        taking_part.filter_map(|(i, file)| Some((i, file.origin.as_ref()?.blocks.root()?)))
    }
}
