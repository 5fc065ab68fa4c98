//! TCP of the running kernel as a ground: own senders and sinks on two network namespaces, the path
//! between them from crate `fullpipe-emulate`, in real time.
//!
//! - [`plan`]: what of a scenario the kernel can be told, and by which means; the rest is refused.
//! - [`laws`]: congestion control that the kernel has no module for; [`acks`]: a record of every
//!   ACK.
//! - [`sockets`]: senders and sinks; [`brief`]: those of short flows.
//! - [`peer`]: which runs can be made with another host instead, over the network as it is.
//! - [`sampler`]: looks at the senders of a run.
//! - [`ground`]: a run from the first namespace to the outcome.
//!
//! What packets show (segments, losses, round trips) is counted where they pass and is exact; what
//! only the kernel knows (windows, thresholds, its reasons) is sampled.

#![allow(clippy::disallowed_methods)]

pub mod acks;
pub mod brief;
pub mod ground;
pub mod laws;
mod outcome;
pub mod peer;
pub mod plan;
pub mod sampler;
pub mod sockets;

pub use ground::{Options, RunningKernel};
pub use peer::RunningTcp;
