//! What the metrics need to know of a scenario: its flows and its cross traffic, each with its
//! place in the run.

use std::ops::Range;

use fullpipe_units::{Rate, Span, Time};

/// A flow of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name in the file.
    pub name: String,
    /// Canonical spelling of the stack.
    pub stack: String,
    /// Range of its streams in `RunSpec.flows` and `Outcome.flows`.
    pub members: Range<usize>,
    /// When it counts as recovered from a loss.
    pub recovered_at: RecoveredAt,
    /// The recovery is counted from this time; `None`: from the first congestion event.
    pub recovered_from: Option<Time>,
    /// Cap of one member's window, segments: the smaller of `window` and `receive_window`.
    pub window_cap: Option<f64>,
    /// Round-trip propagation delay.
    pub base_rtt: Span,
    /// Capacity of the bottleneck.
    pub capacity: Rate,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Segments per ACK at the receiver.
    pub ack_every: u32,
    /// Start of the flow.
    pub start: Time,
    /// End of the flow, if before the end of the run.
    pub stop: Option<Time>,
    /// Segments of one member's finite transfer.
    pub transfer: Option<u64>,
    /// Losses on the path or at the sender are ordered by `drop`.
    pub has_drops: bool,
    /// Data flows from the far host to the near one.
    pub reverse: bool,
    /// The link in `RunSpec.links` that has `capacity`.
    pub bottleneck: usize,
}

/// Traffic of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficGroup {
    /// Name in the file.
    pub name: String,
    /// Short flows, datagrams or probes: which list of the run `index` points into.
    pub kind: TrafficKind,
    /// `kind` as in the file.
    pub word: String,
    /// Index in `RunSpec.arrivals` for short flows, else in `cross`.
    pub index: usize,
    /// Short flows: canonical spelling of the stack.
    pub stack: Option<String>,
    /// Data flows from the far host to the near one.
    pub reverse: bool,
    /// The link in `RunSpec.links` that has `capacity`.
    pub bottleneck: usize,
    /// Capacity of that link.
    pub capacity: Rate,
    /// Round-trip propagation delay; for datagrams that of their path.
    pub base_rtt: Span,
    /// Bytes of a full packet, a datagram or a probe, headers included.
    pub packet: u32,
    /// Short flows: payload of a full segment, bytes; otherwise 0.
    pub mss: u32,
    /// Short flows: mean length, segments.
    pub mean_size: Option<f64>,
    /// Mean rate offered, headers included and nothing resent; `None` where it changes once and for
    /// all.
    pub offered: Option<Rate>,
    /// Time at which it starts.
    pub start: Time,
    /// Time at which it stops, if before the end of the run.
    pub stop: Option<Time>,
}

/// Kind of traffic, in the order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficKind {
    /// `RunSpec.arrivals`.
    ShortFlows,
    /// `RunSpec.cross` that nobody answers.
    Datagrams,
    /// `RunSpec.cross` that is answered.
    Ping,
}

/// What a flow has when it counts as recovered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecoveredAt {
    /// The delivered rate over one RTT reaches this part of `min(capacity, window_cap/RTT)`.
    Rate(f64),
    /// The window of a member reaches this many segments.
    Window(f64),
}

impl FlowGroup {
    /// Bandwidth-delay product of the flow's path in packets, `rate * rtt / (8 * packet)`.
    pub fn bdp(&self) -> f64 {
        bdp_packets(self.capacity, self.base_rtt, self.packet)
    }
}

/// `rate * rtt / (8 * packet)`, packets with their headers.
pub fn bdp_packets(rate: Rate, rtt: Span, packet: u32) -> f64 {
    rate.as_bits_per_sec() as f64 * rtt.as_secs_f64() / (8.0 * f64::from(packet))
}
