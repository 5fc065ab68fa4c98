//! What one run of the simulator returns: counters, samples, episodes and series, in plain columns.

use fullpipe_flow::Episode;
use fullpipe_units::{Span, Time};

use crate::histogram::RttHistogram;

/// Result of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Virtual time simulated.
    pub duration: Span,
    /// Start of the measured part.
    pub measure_from: Time,
    /// Width of a sample.
    pub interval: Span,
    /// Per flow, in the order of the specification.
    pub flows: Vec<FlowOutcome>,
    /// Per link, in the order of the specification.
    pub links: Vec<LinkOutcome>,
    /// Events taken from the queue.
    pub events: u64,
    /// Data packets that reached a receiver, duplicates included.
    pub delivered_packets: u64,
}

/// Counters of one flow. `*_measured` count from `measure_from`, the others from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Segments that reached the receiver for the first time (goodput).
    pub delivered: u64,
    /// The same from `measure_from`.
    pub delivered_measured: u64,
    /// Data segments that reached the receiver, duplicates included (throughput), from `measure_from`.
    pub arrived_measured: u64,
    /// Segments that reached the receiver a second time.
    pub duplicates: u64,
    /// Arrivals below the highest sequence seen that are no retransmissions.
    pub out_of_order: u64,
    /// Data packets dropped on the path (random, exact or buffer).
    pub dropped: u64,
    /// Congestion events that reduced the window (at most one per window).
    pub loss_events: u64,
    /// The same from `measure_from`.
    pub loss_events_measured: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Segments refused by the local queue.
    pub local_stalls: u64,
    /// ACK packets that reached the sender.
    pub acks: u64,
}

/// Result of one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Name of the specification.
    pub name: String,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Counters.
    pub totals: FlowTotals,
    /// RTT samples since `measure_from`.
    pub rtt: RttHistogram,
    /// Time-weighted mean of the window since `measure_from` (or the flow's start), segments.
    pub cwnd_mean: f64,
    /// Largest window since `measure_from`, segments.
    pub cwnd_max: f64,
    /// First-delivery segments per interval since time zero; the last may be shorter than `interval`.
    pub delivered_per_interval: Vec<u64>,
    /// All data segments that arrived, per interval.
    pub arrived_per_interval: Vec<u64>,
    /// One row per packet-timed round.
    pub rounds: Vec<Round>,
    /// Every reduction, timeout and undo.
    pub episodes: Vec<Episode>,
    /// Time series, decimated or full.
    pub series: Series,
    /// Time at which the last segment of a finite transfer was acknowledged.
    pub completed: Option<Time>,
    /// Start of the flow.
    pub started: Time,
}

/// A packet-timed round: from one `round_start` to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Time of the round's first ACK.
    pub start: Time,
    /// Segments delivered before the round.
    pub delivered: u64,
    /// Window at its start, segments.
    pub cwnd: f64,
}

/// Columns of a flow's time series; all of one length.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Time of the row.
    pub time: Vec<Time>,
    /// Window the sender used, segments.
    pub cwnd: Vec<f64>,
    /// Smallest since the last row (equal to `cwnd` in a full trace).
    pub cwnd_min: Vec<f64>,
    /// Largest since the last row.
    pub cwnd_max: Vec<f64>,
    /// Threshold, segments; infinite before the first reduction.
    pub ssthresh: Vec<f64>,
    /// Latest RTT sample.
    pub rtt: Vec<Span>,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Vec<Span>,
    /// Pacing rate, bit/s; 0 when not paced.
    pub pacing_rate: Vec<f64>,
    /// Segments in the network.
    pub flight: Vec<u64>,
    /// Segments delivered so far.
    pub delivered: Vec<u64>,
    /// The controller's own variables: a name and a column; NaN where it did not report.
    pub variables: Vec<(&'static str, Vec<f64>)>,
}

/// Result of one link.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Name of the specification.
    pub name: String,
    /// Packets that entered the link, refused ones included.
    pub offered: u64,
    /// Packets that left the transmitter.
    pub delivered: u64,
    /// Bytes that left the transmitter.
    pub delivered_bytes: u64,
    /// Bytes that left since `measure_from`.
    pub measured_bytes: u64,
    /// Packets lost to a full buffer.
    pub buffer_drops: u64,
    /// Packets lost at random.
    pub random_drops: u64,
    /// Largest queue since `measure_from`, packets.
    pub queue_max: u64,
    /// Time-weighted mean queue since `measure_from`, packets.
    pub queue_mean: f64,
    /// Fraction of the capacity used since `measure_from`; 0 for a pure delay.
    pub utilization: f64,
    /// Decimated queue length: time and packets.
    pub series: Vec<(Time, u64)>,
}
