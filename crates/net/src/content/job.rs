//! The server's side of what is carried.

use std::sync::Arc;

use fullpipe_run::RunSpec;

use super::allowed::Allowed;
use super::carried::Carried;
use super::fetching::Fetch;
use super::getting::Get;
use super::putting::Put;
use super::storing::Store;
use super::{Answer, Content, Question, failed_on};
use crate::file::{Directory, Name, Place};
use crate::payload::Tally;

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
    Store(Store),
    Fetch(Fetch),
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
                mode,
                overwrite,
            } => {
                one_flow(spec, false)?;
                let place = place(name, allowed)?.with_mode(*mode);
                allowed.size(name, source.size)?;
                let superseded = allowed.under_way.enter(name, *source);
                let overwrite = *overwrite && allowed.overwrite;
                let room = allowed.room.clone();
                let put = Put::new(place, name.clone(), *source, overwrite, room, superseded)?;
                State::Put(put.with_buffer(allowed.buffer.clone()))
            }
            Content::Store { items, overwrite } => {
                one_flow(spec, false)?;
                let overwrite = *overwrite && allowed.overwrite;
                State::Store(Store::new(
                    items.clone(),
                    directory(allowed)?,
                    overwrite,
                    allowed,
                )?)
            }
            Content::Fetch { names } => {
                one_flow(spec, true)?;
                State::Fetch(Fetch::new(names, directory(allowed)?, allowed)?)
            }
            Content::Get { name } => {
                one_flow(spec, true)?;
                let place = place(name, allowed)?;
                State::Get(Get::new(&place, name.clone(), allowed)?)
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
            (State::Store(store), question) => store.ask(question),
            (State::Fetch(fetch), question) => fetch.ask(question),
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
            State::Store(store) => store.begin(spec),
            State::Fetch(fetch) => fetch.begin(spec),
        }
    }

    /// The run is over.
    pub fn ended(&mut self, carried: Carried) {
        match &mut self.0 {
            State::Nothing => {}
            State::Pattern { tallies, .. } => *tallies = carried.tallies(),
            State::Put(put) => put.ended(carried),
            State::Get(get) => get.ended(),
            State::Store(store) => store.ended(carried),
            State::Fetch(fetch) => fetch.ended(),
        }
    }

    /// What has been stored here: the name of one file, how many files, and their bytes.
    pub fn stored(&self) -> Option<(&str, u64, u64)> {
        match &self.0 {
            State::Put(put) => put.stored(),
            State::Store(store) => store.stored(),
            _ => None,
        }
    }

    /// The same copy was begun again.
    pub fn is_superseded(&self) -> bool {
        match &self.0 {
            State::Put(put) => put.is_superseded(),
            State::Store(store) => store.is_superseded(),
            _ => false,
        }
    }

    /// Why it cannot go on, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        match &self.0 {
            State::Put(put) => put.failure(),
            State::Get(get) => get.failure(),
            State::Store(store) => store.failure(),
            State::Fetch(fetch) => fetch.failure(),
            _ => None,
        }
    }
}

fn one_flow(spec: &RunSpec, reverse: bool) -> Result<(), String> {
    match spec.flows.as_slice() {
        [flow] if flow.reverse == reverse => Ok(()),
        _ => Err("a file is carried by one flow, from where it is".to_owned()),
    }
}

fn directory(allowed: &Allowed) -> Result<Arc<Directory>, String> {
    let files = allowed.files.clone().ok_or(super::NO_FILES)?;
    match files.is_gone() {
        // What has its name since may be anybody's: it is not opened.
        true => Err(super::REMOVED.to_owned()),
        false => Ok(files),
    }
}

fn place(name: &str, allowed: &Allowed) -> Result<Place, String> {
    let files = directory(allowed)?;
    let name = Name::parse(name).map_err(|e| e.to_string())?;
    files.place(&name).map_err(|e| failed_on(name.as_str(), &e))
}
