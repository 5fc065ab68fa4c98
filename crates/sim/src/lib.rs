//! A packet-level simulator in integer nanoseconds: exact, deterministic, and no slower at a window of a million segments.
//!
//! What it is: links, losses, flows and an event loop around the endpoint of `fullpipe-flow`; it returns counters, samples and
//! series as plain columns. [`Path`] is the same network without endpoints and clock, for hosts that live in real time. What it is not: it reads and writes no files and knows no scenarios; `fullpipe-suite` does.
//!
//! ```
//! use fullpipe_cc::StackSpec;
//! use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
//! use fullpipe_sim::{Buffer, FlowSpec, LinkSpec, RunSpec, run};
//! use fullpipe_units::{Rate, Span, Time};
//!
//! let delay = Span::from_millis(40);
//! let rate = Rate::from_bits_per_sec(100_000_000);
//! let outcome = run(&RunSpec {
//!     duration: Span::from_secs(5),
//!     links: vec![
//!         LinkSpec::new("bottleneck", Some(rate), delay, Buffer::Packets(667)),
//!         LinkSpec::pure_delay("return", delay),
//!     ],
//!     flows: vec![FlowSpec::new(
//!         "main",
//!         StackSpec::parse("reno").unwrap(),
//!         SenderConfig::preset(Preset::Y2026, 1500),
//!         ReceiverConfig::preset(Preset::Y2026),
//!         vec![0],
//!         vec![1],
//!     )],
//!     ..RunSpec::default()
//! })
//! .unwrap();
//! assert!(outcome.links[0].utilization > 0.8);
//! assert!(outcome.flows[0].rtt.min().unwrap() >= Span::from_millis(80));
//! ```

mod aqm;
mod flow;
pub mod histogram;
mod lateness;
mod link;
pub mod loss;
mod net;
pub mod outcome;
mod packet;
mod path;
mod queue;
pub mod recorder;
mod ring;
pub mod rng;
mod rows;
pub mod spec;
mod target;
pub mod traffic;
mod travel;
mod world;

pub use fullpipe_flow::{Episode, EpisodeKind, Events, TraceRow};
pub use histogram::Histogram;
pub use lateness::{HostLateness, Lateness};
pub use outcome::{
    ArrivalOutcome, CaptureEvent, CaptureRow, Fidelity, FlowOutcome, FlowTotals, LinkOutcome,
    Outcome, PingOutcome, Round, Series, SourceOutcome, Transfer,
};
pub use packet::Kind as PacketKind;
pub use path::{Exit, Fate, Parcel, Path, Route};
pub use recorder::{ArrivalRecorder, PerInterval, SenderRecord, SenderRecorder};
pub use spec::{
    ArrivalSpec, Arrivals, Buffer, Change, Codel, DeliveryTrace, DeliveryTraceError, Discipline,
    Drops, FlowSpec, FqCodel, LinkSpec, Loss, Pie, PingSpec, Policer, Red, Reorder, RunSpec,
    SizeLaw, SourceSpec, Spacing, Trace, Waveform,
};
pub use world::run;

/// A violated invariant of the simulator itself: an internal error, with the seed that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant violated (seed {seed}): {what}")]
pub struct Violation {
    /// Seed of the run.
    pub seed: u64,
    /// What did not add up.
    pub what: String,
}
