//! Writes a trace while a run lasts: one row per ACK of every sender on this host.

use std::path::Path;

use fullpipe_cc::Controller as _;
use fullpipe_flow::TraceSink;
use fullpipe_net::session::client::SessionError;
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_trace::{FlowMeta, Meta, Recording, Resolution, TRANSFER, TraceError};
use fullpipe_units::Span;

/// Begins the file that will be `path`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn begin(path: &Path, spec: &RunSpec) -> Result<Recording, SessionError> {
    let meta = Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ground: crate::udp::ENTRY.name.to_owned(),
        scenario: TRANSFER.to_owned(),
        case: 0,
        seed: spec.seed,
        flows: spec.flows.iter().map(flow).collect(),
        ..Meta::default()
    };
    Recording::begin(path, &meta, Resolution::Microseconds, QUEUE).map_err(|e| cannot(path, &e))
}

/// A way into it for each flow that sends from here.
pub(crate) fn taps(recording: &Recording, spec: &RunSpec) -> Vec<(u32, Box<dyn TraceSink>, Span)> {
    let flows = (0..).zip(&spec.flows);
    flows
        .filter(|(_, f)| !f.reverse)
        .map(|(i, _)| {
            (
                i,
                Box::new(recording.tap()) as Box<dyn TraceSink>,
                Span::ZERO,
            )
        })
        .collect()
}

/// The error of a trace file that cannot be written.
pub(crate) fn cannot(path: &Path, error: &TraceError) -> SessionError {
    let path = path.display();
    SessionError::Here(format!("the trace cannot be written to {path}: {error}"))
}

fn flow(f: &FlowSpec) -> FlowMeta {
    let (_, setup) = f.sender.clone().with_stack(&f.stack);
    let mut variables = Vec::new();
    f.stack
        .controller(setup)
        .report(&mut |name, _| variables.push(name.to_owned()));
    FlowMeta {
        name: f.name.clone(),
        stack: f.stack.to_string(),
        mss: f.sender.mss,
        packet: f.sender.packet(),
        variables,
    }
}

/// Rows that may wait for the disk: a second and a half of them at 43,000 ACKs a second.
const QUEUE: usize = 1 << 16;
