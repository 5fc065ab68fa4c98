//! What a host of a run does, once for every ground: the ends of its flows, short flows that come
//! and go, cross traffic, timers, captures, counters, and the way from all of these to an
//! [`Outcome`](fullpipe_run::Outcome).
//!
//! A [`Host`] knows neither links nor sockets and reads no clock. What differs between grounds is a
//! [`Network`]: where packets go, and when its timers come back. The simulator is one with links
//! and virtual time, and hosts both ends of every flow; a UDP endpoint is one with a socket, and
//! hosts one end.

mod alone;
mod capture;
mod configs;
mod host;
mod outcome;
mod receiver;
mod report;
mod sender;
mod traffic;
mod waiting;
mod wake;

pub use alone::{ends_at, other_half};
pub use capture::Capture;
pub use host::{FlowId, Host, Network};
pub use outcome::{Losses, PathReport, merge, outcome};
pub use receiver::FlowReceiver;
pub use report::{HostCounts, HostOutcome, ReceiverReport, SenderReport};
pub use sender::FlowSender;
pub use traffic::{ClassRecord, Cross, departures, short_flows};
pub use waiting::Waiting;
pub use wake::Wake;

/// No flow of the specification: the index of a short flow.
pub const NO_FLOW: u32 = u32::MAX;
