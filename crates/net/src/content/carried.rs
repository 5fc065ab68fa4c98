//! What is carried while the endpoint runs: the sources and sinks of its flows.

use fullpipe_run::RunSpec;

use super::key_of;
use crate::endpoint::Hooks;
use crate::file::{FileSink, FileSource};
use crate::payload::{Pattern, Sink, Source, Tally, Verifier};

/// The sources and sinks of a run's flows, by flow number.
#[derive(Debug, Default)]
pub struct Carried {
    patterns: Vec<(u32, Pattern)>,
    verifiers: Vec<(u32, Verifier)>,
    source: Option<FileSource>,
    sink: Option<FileSink>,
}

impl Carried {
    /// Sources and sinks of the flows, for the endpoint.
    pub fn hooks(&mut self) -> Hooks<'_> {
        let mut hooks = Hooks::default();
        for (flow, pattern) in &mut self.patterns {
            hooks.sources.push((*flow, pattern));
        }
        for (flow, verifier) in &mut self.verifiers {
            hooks.sinks.push((*flow, verifier));
        }
        if let Some(source) = &mut self.source {
            hooks.sources.push((0, source as &mut dyn Source));
        }
        if let Some(sink) = &mut self.sink {
            hooks.sinks.push((0, sink as &mut dyn Sink));
        }
        hooks
    }

    /// Patterns for the flows that are sent (`sends`), verifiers for those that are received.
    pub(super) fn patterns(key: u64, spec: &RunSpec, sends: impl Fn(bool) -> bool) -> Self {
        let mut carried = Self::default();
        for (i, flow) in (0u32..).zip(&spec.flows) {
            let mss = flow.sender.mss;
            let size = flow.sender.transfer.map(|n| n.saturating_mul(mss.into()));
            let pattern = Pattern::new(key_of(key, i), mss, size);
            if sends(flow.reverse) {
                carried.patterns.push((i, pattern));
            } else {
                carried.verifiers.push((i, Verifier::new(pattern)));
            }
        }
        carried
    }

    pub(super) fn of_source(source: FileSource) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
        }
    }

    pub(super) fn of_sink(sink: FileSink) -> Self {
        Self {
            sink: Some(sink),
            ..Self::default()
        }
    }

    /// Flow, segments and their sum, damaged segments.
    pub(super) fn tallies(&self) -> Vec<(u32, Tally, u64)> {
        let sent = self.patterns.iter().map(|(i, p)| (*i, p.tally(), 0));
        let received = self.verifiers.iter();
        let received = received.map(|(i, v)| (*i, v.tally(), v.damaged()));
        sent.chain(received).collect()
    }
}

/// Whole segments, the last of which may be shorter.
pub(super) fn set_transfer(flow: &mut fullpipe_run::FlowSpec, bytes: u64) -> Result<(), String> {
    if bytes == 0 {
        return Err("nothing is left to send".to_owned());
    }
    let mss = u64::from(flow.sender.mss.max(1));
    flow.sender.transfer = Some(bytes.div_ceil(mss));
    Ok(())
}
