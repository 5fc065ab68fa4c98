//! One thread that hosts one side of a run: any number of senders and receivers of `fullpipe-flow`,
//! unchanged, on one UDP socket.
//!
//! The loop: take in a batch of datagrams (ACKs to senders, segments to receivers, whose ACKs leave
//! as one batch), serve the timers that are due, let every sender that may send do so in bounded
//! turns, send the batch, wait. What the operating system refuses is given back to its sender
//! ([`Sender::refuse`](fullpipe_flow::Sender::refuse)), newest first, and sent later.
//!
//! Nothing that arrives is trusted: another address, session, flow number or length is counted and
//! ignored, a segment beyond the advertised window is not taken in, an ACK of data that was never
//! sent means nothing.

mod arriving;
mod backoff;
mod batching;
mod cross_traffic;
mod event_loop;
mod hooks;
mod inlet;
mod interface;
mod lateness;
pub mod leases;
pub mod numbers;
mod outlet;
mod pieces;
mod port;
mod refusal;
mod room;
mod state;
#[cfg(test)]
mod tests;
mod timers;
mod udp;
mod wires;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use fullpipe_host::HostOutcome;
use fullpipe_run::{RunSpec, Violation};

pub use hooks::Hooks;
pub use interface::interfaces;
pub use pieces::{BASE, PathLimit, Pieces};
pub(crate) use port::forward;
pub use port::{Flush, Mark, Port};
pub use udp::UdpPort;

use crate::headers;
use crate::io::{IoConfig, Mode, Stop};
use crate::shown::Address;
use crate::wire::SessionId;

/// One of the two hosts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It hosts the senders of flows, but for reverse ones, of which it hosts the receivers.
    Near,
    /// The other one.
    Far,
}

/// One host's share of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run; its links are of no interest here.
    pub spec: Arc<RunSpec>,
    /// Side of the run that this host plays.
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
    /// The senders of a flow stand here.
    pub fn sends(self, reverse: bool) -> bool {
        (self == Side::Near) != reverse
    }

    /// What its socket should be like. Where only ACKs arrive merging them hides nothing.
    pub fn io_config(self, spec: &RunSpec, mode: Mode) -> IoConfig {
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let mut flows = spec.flows.iter().chain(templates);
        let only_acks = spec.cross.is_empty() && flows.all(|f| self.sends(f.reverse));
        IoConfig {
            longest: headers::longest(spec),
            coalesce: mode == Mode::Bulk || only_acks,
            stamps: true,
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
        /// Kind of number: flows, sources of cross traffic.
        what: &'static str,
        /// Number in the run specification.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// The data of a flow cannot be had or kept.
    #[error("flow {flow}: {error}")]
    Content {
        /// Name of the flow.
        flow: String,
        /// Error of the payload's source or sink.
        error: io::Error,
    },
    /// A host's interface is crossed by what does not set out there.
    #[error("link {0} is a host's own interface: only flows that set out there may cross it")]
    Interface(String),
    /// A fault of an interface.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The system does not take packets of this length.
    #[error("packets of {bytes} bytes do not fit the way to {peer}{}", remedy(*mtu, *of_probes))]
    Longer {
        /// Of the longest packet, with its headers.
        bytes: usize,
        /// Destination address.
        peer: Address,
        /// MTU towards the destination, bytes, if known.
        mtu: Option<u32>,
        /// There is nothing else than probes, which have a size of their own.
        of_probes: bool,
    },
    /// A filter of this host.
    #[error("this host forbids datagrams to {0}: look at the rules of its firewall")]
    Forbidden(Address),
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
    let ran = event_loop::Endpoint::new(plan, port, hooks).and_then(|endpoint| endpoint.run(stop));
    ran.map_err(|error| error.explained(plan))
}

impl EndpointError {
    /// With what helps, where a number of the operating system would not.
    fn explained(self, plan: &Plan) -> Self {
        let Self::Io(error) = &self else { return self };
        let peer = plan.peer;
        let ip = peer.ip().to_canonical();
        match rustix::io::Errno::from_io_error(error) {
            Some(rustix::io::Errno::MSGSIZE) => Self::Longer {
                bytes: headers::longest(&plan.spec) + if ip.is_ipv4() { 28 } else { 48 },
                peer: peer.into(),
                mtu: mtu(peer).ok(),
                of_probes: plan.spec.flows.is_empty()
                    && plan.spec.arrivals.is_empty()
                    && plan.spec.cross.iter().all(|cross| cross.answered),
            },
            Some(rustix::io::Errno::PERM) => Self::Forbidden(peer.into()),
            _ => self,
        }
    }
}

/// Bytes of the longest packet that the interface towards `peer` takes.
fn mtu(peer: SocketAddr) -> io::Result<u32> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok(match peer.ip().to_canonical() {
        IpAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket)?,
        IpAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket)?,
    })
}

fn remedy(mtu: Option<u32>, of_probes: bool) -> String {
    let takes = mtu.map_or(String::new(), |mtu| format!(", which takes {mtu}"));
    match (mtu, of_probes) {
        (_, true) => format!("{takes}: say `--size` with less"),
        (Some(mtu), false) => format!("{takes}: say `--set path.mtu={mtu}`"),
        (None, false) => ": say `--set path.mtu=...` with less".to_owned(),
    }
}
