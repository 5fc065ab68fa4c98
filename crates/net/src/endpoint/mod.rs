//! One thread that hosts one side of a run: any number of senders and receivers of `fullpipe-flow`, unchanged, on one UDP socket.
//!
//! The loop: take in a batch of datagrams (ACKs to senders, segments to receivers, whose ACKs leave as one batch), serve the
//! timers that are due, let every sender that may send do so in bounded turns, send the batch, wait. What the operating system
//! refuses is given back to its sender ([`Sender::refuse`](fullpipe_flow::Sender::refuse)), newest first, and sent later.
//!
//! Nothing that arrives is trusted: another address, session, flow number or length is counted and ignored, a segment beyond the
//! advertised window is not taken in, an ACK of data that was never sent means nothing.

mod arriving;
mod backoff;
mod crossing;
mod gather;
mod hooks;
mod host;
mod interface;
mod merge;
pub mod numbers;
mod outcome;
mod port;
mod receiving;
mod refusal;
mod sending;
mod short;
mod state;
#[cfg(test)]
mod tests;
mod timers;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fullpipe_sim::{RunSpec, Violation};

pub use hooks::Hooks;
pub use interface::interfaces;
pub use merge::{PathReport, merge};
pub use outcome::{HostCounts, HostOutcome, ReceiverReport, SenderReport};
pub use port::{Flush, Mark, Port};
pub use udp::UdpPort;

use crate::ground;
use crate::io::{IoConfig, Mode, Stop};
use crate::wire::SessionId;

/// Which host of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It hosts the senders of flows, but for reverse ones, of which it hosts the receivers.
    Near,
    /// The other one.
    Far,
}

/// What one host is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run; its links are of no interest here.
    pub spec: Arc<RunSpec>,
    /// This side of it.
    pub side: Side,
    /// Name of the session: datagrams of others are ignored.
    pub session: SessionId,
    /// Where datagrams go to and come from.
    pub peer: SocketAddr,
    /// Both hosts have one clock: the delay of a datagram from one to the other is known.
    pub shared_clock: bool,
}

impl Plan {
    /// The senders of a flow stand here.
    fn sends(&self, reverse: bool) -> bool {
        self.side.sends(reverse)
    }
}

impl Side {
    fn sends(self, reverse: bool) -> bool {
        (self == Side::Near) != reverse
    }

    /// What its socket should be like. Where only ACKs arrive merging them hides nothing.
    pub fn io_config(self, spec: &RunSpec, mode: Mode) -> IoConfig {
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let mut flows = spec.flows.iter().chain(templates);
        let foreign = !spec.sources.is_empty() || !spec.pings.is_empty();
        let only_acks = !foreign && flows.all(|f| self.sends(f.reverse));
        IoConfig {
            longest: ground::longest(spec),
            coalesce: mode == Mode::Bulk || only_acks,
            stamps: false,
            ..IoConfig::new(mode)
        }
    }
}

/// Why a host cannot do its part.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// A packet does not fit a datagram.
    #[error("flow {flow}: a datagram of {bytes} bytes is too large; the largest has 65507")]
    TooLarge {
        /// Name of the flow.
        flow: String,
        /// Bytes.
        bytes: usize,
    },
    /// More than the wire has numbers for.
    #[error("{count} {what} are more than the wire can number; at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// So many.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// The data of a flow cannot be had or kept.
    #[error("flow {flow}: {error}")]
    Content {
        /// Name of the flow.
        flow: String,
        /// Why.
        error: io::Error,
    },
    /// A host's interface is crossed by what does not set out there.
    #[error("link {0} is a host's own interface: only flows that set out there may cross it")]
    Interface(String),
    /// A fault of an interface.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The operating system.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}

/// Runs one host until the end of the run, or until `stop` is set.
///
/// # Errors
/// See [`EndpointError`].
pub fn run(
    plan: &Plan,
    port: impl Port,
    hooks: Hooks<'_>,
    stop: &Stop,
) -> Result<HostOutcome, EndpointError> {
    host::Host::new(plan, port, hooks)?.run(stop)
}
