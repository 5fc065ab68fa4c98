//! What one run returns: counters, samples, episodes and series, in plain columns.

use fullpipe_flow::{Episode, LimitTimes, TraceRow};
use fullpipe_units::{Span, Time};

use crate::histogram::Histogram;
use crate::lateness::HostLateness;
use crate::looks::Looks;
use crate::recorder::{ArrivalRecord, SenderRecord};
use crate::spec::FlowSpec;

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
    /// Short flows, in the order of the specification.
    pub arrivals: Vec<ArrivalOutcome>,
    /// Datagrams without congestion control, in the order of the specification.
    pub cross: Vec<CrossOutcome>,
    /// Packets at the hosts of the flows, in the order of time; empty unless asked for.
    pub capture: Vec<CaptureRow>,
    /// Events taken from the queue.
    pub events: u64,
    /// Data packets that reached a receiver, duplicates included: of lasting and of short flows.
    pub delivered_packets: u64,
    /// How true a real path was to its specification; `None` in the simulator, which is exact.
    pub fidelity: Option<Fidelity>,
    /// Why it ended before its time, and what is missing of it; `None` of a whole run.
    pub partial: Option<String>,
}

impl Outcome {
    /// Datagrams of `cross` that nobody answers.
    pub fn one_way(&self) -> impl Iterator<Item = &CrossOutcome> {
        self.cross.iter().filter(|c| !c.answered)
    }

    /// Probes of `cross`, which are answered.
    pub fn answered(&self) -> impl Iterator<Item = &CrossOutcome> {
        self.cross.iter().filter(|c| c.answered)
    }
}

/// [`Outcome::delivered_packets`] of these flows and classes of short flows.
pub fn delivered_packets(flows: &[FlowOutcome], arrivals: &[ArrivalOutcome]) -> u64 {
    let totals = flows.iter().map(|f| &f.totals);
    let totals = totals.chain(arrivals.iter().map(|a| &a.totals));
    totals.fold(0, |sum, t| sum.saturating_add(t.arrived()))
}

/// How true a path in real time was to its specification, and how prompt the hosts at its ends
/// were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// How much later than computed packets left the path: median, 99th percentile, largest.
    pub late_p50: Span,
    /// See [`Fidelity::late_p50`].
    pub late_p99: Span,
    /// See [`Fidelity::late_p50`].
    pub late_max: Span,
    /// Packets lost that the specification does not lose: overflows of sockets.
    pub unplanned_drops: u64,
    /// Sends that the operating system refused.
    pub local_stalls: u64,
    /// The path's thread had real-time priority from begin to end.
    pub real_time: bool,
    /// Packets due within so long left together; zero: each at its own time.
    pub grain: Span,
    /// What the path's lateness adds to a mean round trip, both directions together; `None`: the
    /// path is not the program's own, and nothing is known of its lateness.
    pub path_added: Option<Span>,
    /// Lateness of the near host.
    pub near: HostLateness,
    /// Lateness of the far host.
    pub far: HostLateness,
    /// What else was measured of the path and its hosts, before the run and during it.
    pub checks: Vec<Check>,
}

/// One quantity of a path in real time: what it was to be, what it was, and what is still true.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was measured, with its direction or place.
    pub name: String,
    /// Unit of `specified`, `measured` and `bound`.
    pub unit: String,
    /// By the specification; `None`: there is only a bound.
    pub specified: Option<f64>,
    /// NaN where nothing came to be measured.
    pub measured: f64,
    /// Smallest and largest value that is accepted.
    pub bound: (f64, f64),
}

impl Check {
    /// Within its bound.
    pub fn holds(&self) -> bool {
        (self.bound.0..=self.bound.1).contains(&self.measured)
    }
}

/// Counters of one flow. `*_measured` count from `measure_from`, the others from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FlowTotals {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Segments that reached the receiver for the first time (goodput).
    pub delivered: u64,
    /// The same from `measure_from`.
    pub delivered_measured: u64,
    /// Data segments that reached the receiver, duplicates included (throughput), from
    /// `measure_from`.
    pub arrived_measured: u64,
    /// Segments that reached the receiver a second time.
    pub duplicates: u64,
    /// First arrivals below the highest sequence seen that are no retransmissions.
    pub out_of_order: u64,
    /// Data packets dropped on the path (random, exact or buffer).
    pub dropped: u64,
    /// Congestion events for a loss, a mark or a local stall, at most one per window; without
    /// timeouts.
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
    /// What held the sender back, and for how long, from `measure_from` until the flow was
    /// complete; nothing where the ground does not say.
    pub limited: LimitTimes,
}

impl FlowTotals {
    /// Data segments that the receiver took, duplicates included, from the start.
    pub fn arrived(&self) -> u64 {
        self.delivered.saturating_add(self.duplicates)
    }

    /// The sum with another flow, or with the other end of this one: each end leaves at zero what
    /// the other one counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            sent: a.sent.saturating_add(b.sent),
            retransmits: a.retransmits.saturating_add(b.retransmits),
            delivered: a.delivered.saturating_add(b.delivered),
            delivered_measured: a.delivered_measured.saturating_add(b.delivered_measured),
            arrived_measured: a.arrived_measured.saturating_add(b.arrived_measured),
            duplicates: a.duplicates.saturating_add(b.duplicates),
            out_of_order: a.out_of_order.saturating_add(b.out_of_order),
            dropped: a.dropped.saturating_add(b.dropped),
            loss_events: a.loss_events.saturating_add(b.loss_events),
            loss_events_measured: a
                .loss_events_measured
                .saturating_add(b.loss_events_measured),
            timeouts: a.timeouts.saturating_add(b.timeouts),
            probes: a.probes.saturating_add(b.probes),
            undone: a.undone.saturating_add(b.undone),
            local_stalls: a.local_stalls.saturating_add(b.local_stalls),
            acks: a.acks.saturating_add(b.acks),
            limited: a.limited.plus(b.limited),
        }
    }

    /// The same of a flow that was over before the measured part began.
    #[must_use]
    pub fn unmeasured(self) -> Self {
        Self {
            delivered_measured: 0,
            arrived_measured: 0,
            loss_events_measured: 0,
            limited: LimitTimes::default(),
            ..self
        }
    }
}

/// Result of one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Name of the specification.
    pub name: String,
    /// Stacks that it had, in order: `reno, from 1.9 s aimd(increase=6)`.
    pub stack: String,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Counters.
    pub totals: FlowTotals,
    /// RTT samples since `measure_from`.
    pub rtt: Histogram,
    /// Time-weighted mean of the window since `measure_from` (or the flow's start), segments.
    pub cwnd_mean: f64,
    /// Largest window since `measure_from`, segments.
    pub cwnd_max: f64,
    /// First-delivery segments per interval since time zero; the last may be shorter than
    /// `interval`.
    pub delivered_per_interval: Vec<u64>,
    /// All data segments that arrived, per interval.
    pub arrived_per_interval: Vec<u64>,
    /// One row per packet-timed round.
    pub rounds: Vec<Round>,
    /// Every reduction, timeout and undo.
    pub episodes: Vec<Episode>,
    /// Every time the window reached its clamp, and the window then, segments.
    pub at_cap: Vec<(Time, f64)>,
    /// What the controller's own variables were, whatever the series holds.
    pub variables: Vec<(&'static str, Extent)>,
    /// Time series, decimated or full.
    pub series: Series,
    /// What the kernel showed of it, look by look; empty where its TCP is not a kernel's.
    pub looks: Looks,
    /// Time at which the last segment of a finite transfer was acknowledged.
    pub completed: Option<Time>,
    /// Start of the flow.
    pub started: Time,
}

impl FlowOutcome {
    /// From what the two hosts of a flow remember; `timing`: its start and its completion.
    pub fn new(
        spec: &FlowSpec,
        totals: FlowTotals,
        sender: SenderRecord,
        arrivals: ArrivalRecord,
        (started, completed): (Time, Option<Time>),
    ) -> Self {
        Self {
            name: spec.name.clone(),
            stack: spec.stacks(&sender.stacks),
            mss: spec.sender.mss,
            packet: spec.sender.packet(),
            totals,
            rtt: sender.rtt,
            cwnd_mean: sender.cwnd_mean,
            cwnd_max: sender.cwnd_max,
            delivered_per_interval: arrivals.delivered,
            arrived_per_interval: arrivals.arrived,
            rounds: sender.rounds,
            episodes: sender.episodes,
            at_cap: sender.at_cap,
            variables: sender.variables,
            series: sender.series,
            looks: sender.looks,
            completed,
            started,
        }
    }
}

impl FlowSpec {
    /// The stacks of a flow, in order: `reno, from 1.9 s aimd(increase=6)`. What took over is known
    /// where the flow sends ([`SenderRecord::stacks`]); elsewhere it is what the schedule says.
    pub fn stacks(&self, known: &[(Time, String)]) -> String {
        let scheduled = self.changes.iter().filter_map(|timed| {
            let stack = timed.change.stack.as_ref()?;
            Some((timed.at, stack.to_string()))
        });
        let later = match known {
            [] => scheduled.collect(),
            known => known.to_vec(),
        };
        let first = self.stack.to_string();
        later.iter().fold(first, |text, (at, stack)| {
            let at = at.saturating_since(Time::ZERO).as_secs_f64();
            format!("{text}, from {at:.1} s {stack}")
        })
    }
}

/// A packet-timed round: from one `round_start` to the next.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Round {
    /// Time of the round's first ACK.
    pub start: Time,
    /// Segments delivered before the round.
    pub delivered: u64,
    /// Window at its start, segments.
    pub cwnd: f64,
}

/// What a variable of a controller was at the begin of each round, at each episode and at the end;
/// NaN where it was never reported.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// The latest value.
    pub last: f64,
    /// The largest one.
    pub max: f64,
}

impl Default for Extent {
    fn default() -> Self {
        Self {
            last: f64::NAN,
            max: f64::NAN,
        }
    }
}

impl Extent {
    /// One more value.
    pub fn take(&mut self, value: f64) {
        if value.is_finite() {
            self.last = value;
            self.max = self.max.max(value);
        }
    }
}

/// A flow's time series.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Series {
    /// Rows in order of time.
    pub rows: Vec<TraceRow>,
    /// The controller's own variables: a name and a value per row; NaN where it did not report.
    #[serde(with = "crate::travel")]
    pub variables: Vec<(&'static str, Vec<f64>)>,
}

/// Result of one link.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
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
    /// Packets dropped by the policer.
    pub policer_drops: u64,
    /// Packets dropped by the queue discipline before the buffer was full.
    pub early_drops: u64,
    /// Packets marked by the queue discipline.
    pub marks: u64,
    /// Of the packets lost to a full buffer those in whose very nanosecond another one left, whose
    /// place went to one of another flow that came then, too. Counted where virtual time makes
    /// that more than chance: at a first-in, first-out link of the simulator without jitter, whose
    /// buffer is given in packets or bytes. `None` elsewhere.
    #[serde(default)]
    pub ties: Option<u64>,
    /// Time between entry and the begin of transmission of packets that left since `measure_from`;
    /// empty unless watched.
    pub queueing_delay: Histogram,
    /// Largest queue since `measure_from`, packets.
    pub queue_max: u64,
    /// Time-weighted mean queue since `measure_from`, packets.
    pub queue_mean: f64,
    /// Fraction of the capacity used since `measure_from`; 0 for a pure delay.
    pub utilization: f64,
    /// The queue over time: at the begin, at the end of every step of the trace, and at the end of
    /// the run. Empty without a trace, and where nothing can wait.
    pub series: Vec<QueueSample>,
}

/// A queue at an instant, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueueSample {
    /// The instant.
    pub at: Time,
    /// Packets before anything happens in it.
    pub packets: u64,
    /// Fewest packets since the sample before, both included.
    pub min: u64,
    /// Most packets since the sample before, both included.
    pub max: u64,
}

/// Result of one class of short flows.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ArrivalOutcome {
    /// Name of the specification.
    pub name: String,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a full packet.
    pub packet: u32,
    /// One row per flow, in the order of arrival, unfinished ones included.
    pub transfers: Vec<Transfer>,
    /// RTT samples of all of them since `measure_from`.
    pub rtt: Histogram,
    /// Sums over all of them.
    pub totals: FlowTotals,
    /// First-delivery segments per interval since time zero.
    pub delivered_per_interval: Vec<u64>,
}

/// One short flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Transfer {
    /// Time at which the flow started.
    pub start: Time,
    /// Segments.
    pub size: u64,
    /// From the start until the last segment was acknowledged; `None`: not before the end of the
    /// run.
    pub completion: Option<Span>,
    /// Bit `i` is set if the first transmission of segment `i` was lost, for the first 64.
    pub lost: u64,
    /// Retransmissions.
    pub retransmits: u32,
    /// Timeouts.
    pub timeouts: u32,
}

/// Result of datagrams without congestion control. One that is answered has arrived when its answer
/// is back.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct CrossOutcome {
    /// Name of the specification.
    pub name: String,
    /// Bytes of a datagram.
    pub packet: u32,
    /// The far host answers.
    pub answered: bool,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// Datagrams or answers dropped on the way.
    pub dropped: u64,
    /// Datagrams that arrived since `measure_from`.
    pub arrived_measured: u64,
    /// Datagrams sent since `measure_from`.
    pub sent_measured: u64,
    /// Arrival of the last one; zero if none arrived.
    pub last_arrival: Time,
    /// One-way delay, or round-trip time, of those that arrived since `measure_from`.
    pub delay: Histogram,
    /// The same on an empty path: delays and transmission times of all links.
    pub unloaded: Span,
    /// Datagrams sent per interval since time zero; empty if they are answered.
    pub sent_per_interval: Vec<u64>,
    /// Datagrams that arrived per interval since time zero; empty if they are answered.
    pub arrived_per_interval: Vec<u64>,
    /// Time of each answer and its round-trip time; empty if nobody answers.
    pub series: Vec<(Time, Span)>,
}

/// A packet as a capture at a host sees it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CaptureRow {
    /// When it was sent or received.
    pub at: Time,
    /// Index of the flow.
    pub flow: u32,
    /// Packet, host and direction.
    pub event: CaptureEvent,
}

/// An event of a packet capture.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum CaptureEvent {
    /// The sender's host sent a segment.
    SegmentSent(fullpipe_flow::Segment),
    /// The receiver's host received a segment.
    SegmentReceived(fullpipe_flow::Segment),
    /// The path dropped a segment.
    SegmentDropped(fullpipe_flow::Segment),
    /// The receiver's host sent an ACK.
    AckSent(fullpipe_flow::Ack),
    /// The sender's host received an ACK.
    AckReceived(fullpipe_flow::Ack),
    /// The path dropped an ACK with this cumulative number.
    AckDropped(u64),
    /// The sender marked this segment lost.
    SegmentLost(u64),
}
