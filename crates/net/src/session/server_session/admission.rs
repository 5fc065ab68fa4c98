//! Admission of a request: limits, memory, content.

use std::sync::Arc;

use fullpipe_run::RunSpec;

use super::super::control::Grant;
use super::super::limits::Limits;
use super::super::limits::memory::{Memory, Share};
use super::super::message::{Ask, ENCRYPT, TestKind};
use super::super::request::{Options, Request};
use crate::content::{self, Allowed, Content};
use crate::file::Buffer;
use crate::lender::Lender;
use crate::tcp;

/// A granted run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The run as this server executes it.
    pub spec: Arc<RunSpec>,
    /// Direction, encryption, content and other options.
    pub options: Options,
    /// Limits of the run.
    pub grant: Grant,
}

/// Decides on the request that `ask` announced: the run, its payload and its share of the memory;
/// or the reason for a refusal.
pub fn admit(
    bytes: &[u8],
    ask: &Ask,
    (limits, memory, allowed): (&Limits, &Memory, &Allowed),
) -> Result<(Job, content::Job, Arc<Share>), String> {
    if blake3::hash(bytes) != ask.digest {
        return Err("the request does not have the hash that was announced".to_owned());
    }
    let request = Request::decode(bytes).map_err(|e| e.to_string())?;
    let encrypted = ask.options & ENCRYPT != 0;
    if request.options.encrypted != encrypted {
        return Err("the request and the handshake differ about encryption".to_owned());
    }
    let mut options = request.options;
    options.kernel_tcp = ask.kind == TestKind::KernelTcp as u8;
    let mut spec = request.spec;
    if options.kernel_tcp {
        can_be_tcp(&spec, &options)?;
    }
    let most = limits.max_duration;
    // A run that ends by itself gets the time that is left.
    let clipped = options.until_complete && spec.duration > most;
    if clipped {
        spec.duration = most;
    }
    let carries = &options.content;
    let (spec, mut grant) = limits.grant(spec, carries)?;
    if clipped {
        let note = format!("it ends after {most} at the latest (--max-duration)");
        grant.notes.push(note);
    }
    let share = memory.take(&spec, carries, |reverse| reverse)?;
    let lender: Arc<dyn Lender> = Arc::clone(&share) as _;
    let allowed = Allowed {
        buffer: Some(Buffer {
            least: memory.waiting(),
            lender,
        }),
        ..allowed.clone()
    };
    let content = content::Job::new(carries, &allowed, &spec)?;
    let job = Job {
        spec: Arc::new(spec),
        options,
        grant,
    };
    Ok((job, content, share))
}

/// Whether this kernel's TCP can carry what a run asks for.
fn can_be_tcp(spec: &RunSpec, options: &Options) -> Result<(), String> {
    if options.content != Content::Nothing {
        return Err("a test of the kernel's TCP carries no files and no patterns".to_owned());
    }
    if !spec.arrivals.is_empty() {
        return Err("a test of the kernel's TCP has no short flows".to_owned());
    }
    let here = tcp::modules();
    let mut sent = spec.flows.iter().filter(|f| f.reverse);
    match sent.find(|f| !here.iter().any(|m| m == tcp::module(&f.stack))) {
        None => Ok(()),
        Some(f) => Err(format!(
            "this server's kernel has no congestion control `{}`; it has {}",
            tcp::module(&f.stack),
            here.join(", ")
        )),
    }
}
