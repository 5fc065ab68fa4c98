//! What one host of a run leaves behind: plain data.

use fullpipe_flow::{ReceiverCounts, SenderCounts};
use fullpipe_sim::{CaptureRow, PerInterval, SenderRecord};
use fullpipe_units::{Span, Time};

/// Result of one host.
#[derive(Clone, Debug, Default)]
pub struct HostOutcome {
    /// Flows that send from here.
    pub senders: Vec<SenderReport>,
    /// Flows that are received here.
    pub receivers: Vec<ReceiverReport>,
    /// Packets of the flows, in the order of time; empty unless asked for.
    pub capture: Vec<CaptureRow>,
    /// Counters of the host itself.
    pub counts: HostCounts,
    /// When it ended: the end of the run, or earlier if it was stopped.
    pub ended: Time,
}

/// A flow at its sender.
#[derive(Clone, Debug)]
pub struct SenderReport {
    /// Index of the flow.
    pub flow: u32,
    /// Totals.
    pub counts: SenderCounts,
    /// Loss events before the measured part.
    pub loss_events_before: u64,
    /// Data packets that left the sender, exact drops included.
    pub offered: u64,
    /// Of these, dropped exactly as specified.
    pub dropped: u64,
    /// ACKs that arrived.
    pub acks: u64,
    /// Series and distributions.
    pub record: SenderRecord,
    /// Start.
    pub started: Time,
    /// When the last segment of a finite transfer was acknowledged.
    pub completed: Option<Time>,
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
pub struct ReceiverReport {
    /// Index of the flow.
    pub flow: u32,
    /// Totals.
    pub counts: ReceiverCounts,
    /// The same when the measured part began.
    pub before: ReceiverCounts,
    /// Segments per interval.
    pub arrivals: PerInterval,
}

/// What a host counts of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Datagrams that arrived.
    pub datagrams_in: u64,
    /// Datagrams that left.
    pub datagrams_out: u64,
    /// Datagrams that arrived and are none of this run's: wrong sender, session, number, length or format.
    pub ignored: u64,
    /// Segments beyond the advertised window or the bound on holes.
    pub beyond_window: u64,
    /// Datagrams that the operating system dropped at the socket.
    pub socket_drops: u64,
    /// Batches that the operating system refused to take whole.
    pub local_stalls: u64,
    /// ACKs and probes lost to such a refusal: they are not sent again.
    pub refused: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Processor time of the thread.
    pub cpu: Span,
}
