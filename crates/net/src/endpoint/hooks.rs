//! What a host lends to the run besides its socket.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_flow::TraceSink;
use fullpipe_realtime::live::Live;
use fullpipe_units::Span;

use super::inlet::{self, Receiving};
use super::pieces::PathLimit;
use crate::lender::Lender;
use crate::payload::{Sink, Source};

/// All of it may be left out: flows then carry bytes that mean nothing, and nobody watches.
#[derive(Default)]
pub struct Hooks<'h> {
    /// Where the data of flows that send from here comes from, by index of the flow.
    pub sources: Vec<(u32, &'h mut dyn Source)>,
    /// Where the data of flows that are received here goes, by index of the flow.
    pub sinks: Vec<(u32, &'h mut dyn Sink)>,
    /// Where rows of the trace of lasting flows that send from here go while the run lasts, by
    /// index of the flow, and how often.
    pub traces: Vec<(u32, Box<dyn TraceSink>, Span)>,
    /// Told ten times a second how the lasting flows are getting on.
    pub live: Option<&'h Live>,
    /// Set once every lasting flow that sends from here has a last segment and that is
    /// acknowledged.
    pub complete: Option<&'h AtomicBool>,
    /// Told when flows that send from here time out again and again.
    pub path: Option<Arc<PathLimit>>,
    /// Lends memory for what grows; without it everything may grow to its limit.
    pub lender: Option<Arc<dyn Lender>>,
}

impl<'h> Hooks<'h> {
    /// The same with another flag, that perhaps does not live as long.
    pub fn with_complete<'s>(self, complete: &'s AtomicBool) -> Hooks<'s>
    where
        'h: 's,
    {
        // Element by element: a vector of references does not change its lifetime.
        let source = |(flow, source): (u32, &'h mut dyn Source)| (flow, source as &mut dyn Source);
        let sink = |(flow, sink): (u32, &'h mut dyn Sink)| (flow, sink as &mut dyn Sink);
        Hooks {
            sources: self.sources.into_iter().map(source).collect(),
            sinks: self.sinks.into_iter().map(sink).collect(),
            traces: self.traces,
            live: self.live,
            complete: Some(complete),
            path: self.path,
            lender: self.lender,
        }
    }
}

impl std::fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("sources", &self.sources.len())
            .field("sinks", &self.sinks.len())
            .finish_non_exhaustive()
    }
}

/// Tells `receiver` what its sink has room for; false: there is no bound.
///
/// # Errors
/// Those of the sink.
#[inline]
pub fn room<'h>(
    sink: &mut Option<&mut (dyn Sink + 'h)>,
    receiver: &mut Receiving,
) -> io::Result<bool> {
    let Some(sink) = sink else { return Ok(false) };
    match sink.room(receiver.inlet.wanted())? {
        Some(bytes) => {
            inlet::set_room(receiver, bytes);
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Sources and sinks by slot, and the first thing that went wrong with one of them.
pub struct Contents<'h> {
    pub sources: Vec<Option<&'h mut dyn Source>>,
    pub sinks: Vec<Option<&'h mut dyn Sink>>,
    /// One segment.
    pub scratch: Vec<u8>,
    pub fault: Option<(u32, io::Error)>,
}
