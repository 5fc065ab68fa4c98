//! What becomes of a request.

use std::sync::Arc;

use fullpipe_run::RunSpec;

use super::super::control::Grant;
use super::super::limits::Limits;
use super::super::limits::memory::{Memory, Share};
use super::super::message::{Ask, ENCRYPT};
use super::super::request::{Options, Request};
use crate::content::{self, Allowed};

/// A run that was granted.
#[derive(Clone, Debug)]
pub struct Job {
    /// As this server hosts it.
    pub spec: Arc<RunSpec>,
    /// Direction, encryption, content and other options.
    pub options: Options,
    /// Within which bounds.
    pub grant: Grant,
}

/// Judges the bytes of a request that `ask` announced: what will be run, what it carries, and its
/// part of the memory; or why it will not.
pub fn admit(
    bytes: &[u8],
    ask: &Ask,
    (limits, memory, allowed): (&Limits, &Memory, &Allowed),
) -> Result<(Job, content::Job, Share), String> {
    if blake3::hash(bytes) != ask.digest {
        return Err("the request does not have the hash that was announced".to_owned());
    }
    let request = Request::decode(bytes).map_err(|e| e.to_string())?;
    let encrypted = ask.options & ENCRYPT != 0;
    if request.options.encrypted != encrypted {
        return Err("the request and the handshake differ about encryption".to_owned());
    }
    let mut spec = request.spec;
    let most = limits.max_duration;
    // What ends by itself gets the time that there is.
    let clipped = request.options.until_complete && spec.duration > most;
    if clipped {
        spec.duration = most;
    }
    let (spec, mut grant) = limits.grant(spec)?;
    if clipped {
        let note = format!("it ends after {most} at the latest (--max-duration)");
        grant.notes.push(note);
    }
    let carries = &request.options.content;
    let (share, buffer) = memory.take(&spec, carries, |reverse| reverse)?;
    let allowed = Allowed {
        buffer,
        ..allowed.clone()
    };
    let content = content::Job::new(carries, &allowed, &spec)?;
    let job = Job {
        spec: Arc::new(spec),
        options: request.options,
        grant,
    };
    Ok((job, content, share))
}
