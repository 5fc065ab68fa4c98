//! A packet-level simulator in integer nanoseconds: exact, deterministic, and no slower at a window
//! of a million segments.
//!
//! What it is: links, losses, flows and an event loop around the endpoint of `fullpipe-flow`; it
//! returns counters, samples and series as plain columns. [`Path`] is the same network without
//! endpoints and clock, for hosts that live in real time. What it is not: it reads and writes no
//! files and knows no scenarios; `fullpipe-scenario` does.
//!
//! ```
//! use fullpipe_cc::StackSpec;
//! use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
//! use fullpipe_run::{Buffer, FlowSpec, LinkSpec, RunSpec};
//! use fullpipe_sim::run;
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
mod hosts;
mod link;
mod net;
mod packet;
mod path;
mod queue;
mod ring;
mod target;
mod world;

pub use packet::Kind as PacketKind;
pub use path::{Datagram, Departure, PacketOutcome, Path, Route};
pub use world::{run, run_while};
