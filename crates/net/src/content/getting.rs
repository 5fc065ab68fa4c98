//! A file that leaves the server: what the client has of it, the run, its checksum.

use std::fs::File;
use std::io;

use blake3::{Hash, Hasher};
use fullpipe_run::RunSpec;

use super::allowed::Allowed;
use super::carried::{Carried, set_transfer};
use super::{Answer, Question, Work, failed_on};
use crate::file::{Buffer, Identity, Place, Reading, hashed, permissions, source};

/// The server's side of a file that the client fetches.
#[derive(Debug)]
pub(super) struct Get {
    name: String,
    identity: Identity,
    mode: u16,
    /// Bytes that may be read ahead.
    buffer: Option<Buffer>,
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

impl Get {
    /// Opens what is at `place`.
    ///
    /// # Errors
    /// A sentence for the client, if it will not be done.
    pub(super) fn new(place: &Place, name: String, allowed: &Allowed) -> Result<Self, String> {
        let file = place.open().map_err(|e| failed_on(&name, &e))?;
        let metadata = file.metadata().map_err(|e| failed_on(&name, &e))?;
        let identity = Identity::of(&metadata);
        allowed.size(&name, identity.size)?;
        Ok(Self {
            name,
            identity,
            mode: permissions(&metadata),
            buffer: allowed.buffer.clone(),
            stage: GetStage::Open(file),
        })
    }

    /// Answers the client.
    pub(super) fn ask(&mut self, question: &Question) -> Answer {
        self.advance();
        match (&mut self.stage, question) {
            (GetStage::Failed(why), _) => Answer::Failed(why.clone()),
            (GetStage::Open(_), Question::Prepared) => Answer::Prepared {
                source: self.identity,
                mode: self.mode,
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
                Ok(copy) => match Work::start(move |cancel| hashed(&copy, prefix, cancel)) {
                    Ok(work) => GetStage::Looking(file, work, prefix, Hash::from_bytes(digest)),
                    Err(e) => GetStage::Failed(e),
                },
                Err(e) => GetStage::Failed(failed_on(&self.name, &e)),
            };
        }
    }

    /// The run begins; `spec` gets the length of the transfer.
    pub(super) fn begin(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        self.advance();
        match std::mem::replace(&mut self.stage, GetStage::Moving) {
            GetStage::Ready(file, from, hasher) => {
                let flow = &mut spec.flows[0];
                let missing = self.identity.size - from;
                set_transfer(flow, missing)?;
                let begun = source(file, from, *hasher, self.buffer.take());
                let (source, reading) = begun.map_err(|e| failed_on(&self.name, &e))?;
                self.stage = GetStage::Running(reading);
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
        self.stage = match std::mem::replace(&mut self.stage, GetStage::Moving) {
            GetStage::Running(reading) => {
                let finish = Work::start(move |cancel| reading.finish(cancel));
                finish.map_or_else(GetStage::Failed, GetStage::Finishing)
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
                    Ok(Err(e)) => GetStage::Failed(failed_on(&self.name, &e)),
                    Err(e) => GetStage::Failed(e),
                }
            }
            GetStage::Finishing(work) if work.is_done() => match work.result() {
                Ok(Ok(digest)) => GetStage::Finished(digest),
                Ok(Err(e)) => GetStage::Failed(failed_on(&self.name, &e)),
                Err(e) => GetStage::Failed(e),
            },
            other => other,
        };
    }

    /// Why it cannot go on, if it cannot.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.stage {
            GetStage::Failed(why) => Some(why),
            _ => None,
        }
    }
}
