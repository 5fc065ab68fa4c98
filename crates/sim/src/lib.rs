//! A packet-level simulator in integer nanoseconds: exact, deterministic, and no slower at a window of a million segments.
//!
//! What it is: links, losses, flows and an event loop around the endpoint of `fullpipe-flow`; it returns counters, samples and
//! series as plain columns. What it is not: it reads and writes no files and knows no scenarios; `fullpipe-suite` does.
//!
//! ```
//! use fullpipe_cc::StackSpec;
//! use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
//! use fullpipe_sim::{Buffer, Drops, FlowSpec, LinkSpec, Loss, RunSpec, Trace, run};
//! use fullpipe_units::{Rate, Span, Time};
//!
//! let link = |name: &str, rate, buffer| LinkSpec {
//!     name: name.into(),
//!     rate,
//!     delay: Span::from_millis(40),
//!     buffer,
//!     loss: Loss::None,
//!     jitter: Span::ZERO,
//! };
//! let outcome = run(&RunSpec {
//!     seed: 1,
//!     duration: Span::from_secs(5),
//!     measure_from: Time::ZERO,
//!     interval: Span::from_secs(1),
//!     links: vec![
//!         link("bottleneck", Some(Rate::from_bits_per_sec(100_000_000)), Buffer::Packets(667)),
//!         link("return", None, Buffer::Unlimited),
//!     ],
//!     flows: vec![FlowSpec {
//!         name: "main".into(),
//!         stack: StackSpec::parse("reno").unwrap(),
//!         sender: SenderConfig::preset(Preset::Y2026, 1500),
//!         receiver: ReceiverConfig::preset(Preset::Y2026),
//!         forward: vec![0],
//!         back: vec![1],
//!         local_queue: false,
//!         start: Time::ZERO,
//!         stop: None,
//!         drops: Drops::default(),
//!     }],
//!     trace: Trace::Off,
//! })
//! .unwrap();
//! assert!(outcome.links[0].utilization > 0.8);
//! assert!(outcome.flows[0].rtt.min().unwrap() >= Span::from_millis(80));
//! ```

pub mod histogram;
mod link;
mod loss;
pub mod outcome;
mod packet;
mod queue;
mod recorder;
mod ring;
mod rng;
pub mod spec;
mod world;

pub use fullpipe_flow::{Episode, EpisodeKind};
pub use histogram::RttHistogram;
pub use outcome::{FlowOutcome, FlowTotals, LinkOutcome, Outcome, Round, Series};
pub use spec::{Buffer, Drops, FlowSpec, LinkSpec, Loss, RunSpec, Trace};
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
