//! What one host of a run leaves behind: plain data.

use fullpipe_run::{
    ArrivalOutcome, ArrivalRecord, CaptureRow, CrossOutcome, FlowTotals, HostLateness, LinkOutcome,
    SenderRecord,
};
use fullpipe_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// Result of one host. What a host cannot know is zero or empty in its half of an outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostOutcome {
    /// Flows that send from here.
    pub senders: Vec<SenderReport>,
    /// Flows that are received here.
    pub receivers: Vec<ReceiverReport>,
    /// This end of every class of short flows.
    pub classes: Vec<ArrivalOutcome>,
    /// This end of all cross traffic.
    pub cross: Vec<CrossOutcome>,
    /// The host's own interfaces, with their indices among the links.
    pub interfaces: Vec<(usize, LinkOutcome)>,
    /// Packets of the lasting flows, in the order of time; empty unless asked for.
    pub capture: Vec<CaptureRow>,
    /// Counters of the host itself.
    pub counts: HostCounts,
    /// When it ended: the end of the run, or earlier if it was stopped.
    pub ended: Time,
    /// Scheduling lateness of its event loop.
    pub lateness: HostLateness,
    /// Indices of the flows with ECN none of whose segments arrived ECN-capable. It stays at its
    /// host.
    #[serde(skip)]
    pub bleached: Vec<u32>,
}

/// A flow at its sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SenderReport {
    /// Index of the flow.
    pub flow: u32,
    /// Counters of this end of the flow.
    pub totals: FlowTotals,
    /// Data packets that left the sender, exact drops included.
    pub offered: u64,
    /// Series and distributions.
    pub record: SenderRecord,
    /// Start.
    pub started: Time,
    /// When the last segment of a finite transfer was acknowledged.
    pub completed: Option<Time>,
    /// Segments delivered, as far as the sender knows. It stays at its host: where there is a
    /// receiver, that one counts.
    #[serde(skip)]
    pub acked: u64,
}

/// A flow at its receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiverReport {
    /// Index of the flow.
    pub flow: u32,
    /// Counters of this end of the flow.
    pub totals: FlowTotals,
    /// Data packets that were taken in.
    pub arrived: u64,
    /// Data packets that the sink of the data had no room for.
    pub not_taken: u64,
    /// Segments per interval.
    pub arrivals: ArrivalRecord,
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Datagrams that arrived.
    pub datagrams_in: u64,
    /// Datagrams that left.
    pub datagrams_out: u64,
    /// Datagrams that arrived and are none of this run's: wrong sender, session, number, length or
    /// format.
    pub ignored: u64,
    /// Segments beyond the advertised window or the bound on holes.
    pub beyond_window: u64,
    /// Datagrams that the operating system dropped at the socket.
    pub socket_drops: u64,
    /// Times that the operating system refused: once from the first refusal until a batch left
    /// whole again, however often it was tried between.
    pub local_stalls: u64,
    /// ACKs, datagrams and probes lost to such a refusal: they are not sent again.
    pub refused: u64,
    /// Short flows that found no free number, and did not start.
    pub unnumbered: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Processor time of the thread.
    pub cpu: Span,
}

impl HostCounts {
    /// The sums of two hosts.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            datagrams_in: a.datagrams_in.saturating_add(b.datagrams_in),
            datagrams_out: a.datagrams_out.saturating_add(b.datagrams_out),
            ignored: a.ignored.saturating_add(b.ignored),
            beyond_window: a.beyond_window.saturating_add(b.beyond_window),
            socket_drops: a.socket_drops.saturating_add(b.socket_drops),
            local_stalls: a.local_stalls.saturating_add(b.local_stalls),
            refused: a.refused.saturating_add(b.refused),
            unnumbered: a.unnumbered.saturating_add(b.unnumbered),
            turns: a.turns.saturating_add(b.turns),
            cpu: Span::from_nanos(a.cpu.as_nanos().saturating_add(b.cpu.as_nanos())),
        }
    }
}
