//! A point of the matrix: what is run, and what it is made of.

use std::fmt::Write as _;
use std::ops::Range;

use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::{Rate, Span, Time};

/// One point of the matrix, resolved.
#[derive(Clone, Debug)]
pub struct Case {
    /// Position in [`Scenario::cases`].
    pub index: usize,
    /// Matrix key and value as written, in file order (strings without their quotes, tables as inline TOML).
    pub params: Vec<(String, String)>,
    /// The flows of the file that take part; one with `streams = n` is one group of n members.
    pub flows: Vec<FlowGroup>,
    /// The traffic of the file that takes part.
    pub traffic: Vec<TrafficGroup>,
    /// Virtual time of the run.
    pub duration: Span,
    /// Start of the measured part.
    pub warmup: Span,
    /// Width of a throughput sample.
    pub interval: Span,
    /// The case that differs from this one only in the keys of `[measure] baseline`, for gain, loss and harm; an index into
    /// [`Scenario::cases`]. `None`: no such case, or it is the baseline itself.
    pub baseline: Option<usize>,
    pub(super) spec: RunSpec,
    pub(super) json: Vec<serde_json::Value>,
}

/// A flow of the file.
#[derive(Clone, Debug)]
pub struct FlowGroup {
    /// Name in the file.
    pub name: String,
    /// Canonical spelling of the stack.
    pub stack: String,
    /// Its members in `RunSpec.flows`.
    pub members: Range<usize>,
    /// When it counts as recovered from a loss.
    pub recovered_at: RecoveredAt,
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
    /// Its data takes the way back.
    pub reverse: bool,
    /// The link in `RunSpec.links` that has `capacity`.
    pub bottleneck: usize,
}

/// Traffic of the file.
#[derive(Clone, Debug)]
pub struct TrafficGroup {
    /// Name in the file.
    pub name: String,
    /// What it is.
    pub kind: TrafficKind,
    /// `kind` as in the file.
    pub word: String,
    /// Index in `RunSpec.arrivals`, `sources` or `pings`, whichever `kind` says.
    pub index: usize,
    /// Short flows: canonical spelling of the stack.
    pub stack: Option<String>,
    /// Its data takes the way back.
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
    /// Mean rate offered, headers included and nothing resent; `None` where it changes once and for all.
    pub offered: Option<Rate>,
    /// Its start.
    pub start: Time,
    /// Its end, if it has one.
    pub stop: Option<Time>,
}

/// Kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// `RunSpec.arrivals`.
    ShortFlows,
    /// `RunSpec.sources`.
    Datagrams,
    /// `RunSpec.pings`.
    Ping,
}

/// When a flow counts as recovered.
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

impl Case {
    /// What the simulator runs.
    pub fn run_spec(&self, seed: u64) -> RunSpec {
        RunSpec {
            seed,
            ..self.spec.clone()
        }
    }

    /// [`Case::params`] as JSON values: numbers stay numbers.
    pub fn json_params(&self) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        self.params
            .iter()
            .map(|(key, _)| key.as_str())
            .zip(&self.json)
    }

    /// Canonical text of everything that determines the result beside seed and engine version. Two spellings of the same
    /// case have the same text.
    pub fn key_text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write_key(&mut text);
        text
    }

    fn write_key(&self, out: &mut String) -> std::fmt::Result {
        let s = &self.spec;
        writeln!(
            out,
            "run {:?} from {:?} every {:?} trace {:?}",
            s.duration, s.measure_from, s.interval, s.trace
        )?;
        for link in &s.links {
            writeln!(out, "link {link:?}")?;
        }
        for flow in &s.flows {
            write_flow(out, flow)?;
        }
        for class in &s.arrivals {
            writeln!(out, "arrivals {:?} {:?}", class.arrivals, class.sizes)?;
            write_flow(out, &class.template)?;
        }
        for source in &s.sources {
            writeln!(out, "{source:?}")?;
        }
        for ping in &s.pings {
            writeln!(out, "{ping:?}")?;
        }
        for group in &self.flows {
            writeln!(
                out,
                "group {} {:?} {:?}",
                group.name, group.members, group.recovered_at
            )?;
        }
        for group in &self.traffic {
            writeln!(
                out,
                "traffic {} {:?} {}",
                group.name, group.kind, group.index
            )?;
        }
        Ok(())
    }
}

fn write_flow(out: &mut String, flow: &FlowSpec) -> std::fmt::Result {
    // Every field, so that a new one is not forgotten.
    let FlowSpec {
        name,
        stack,
        sender,
        receiver,
        forward,
        back,
        local_queue,
        start,
        start_spread,
        stop,
        drops,
        arrival_drops,
        reverse,
    } = flow;
    writeln!(out, "flow {name} {stack}")?;
    writeln!(out, "  {sender:?}\n  {receiver:?}")?;
    writeln!(
        out,
        "  forward {forward:?} back {back:?} local {local_queue} reverse {reverse} start {start:?} + {start_spread:?} \
         stop {stop:?} {drops:?} {arrival_drops:?}"
    )
}

/// `rate * rtt / (8 * packet)`, packets with their headers.
pub(crate) fn bdp_packets(rate: Rate, rtt: Span, packet: u32) -> f64 {
    rate.as_bits_per_sec() as f64 * rtt.as_secs_f64() / (8.0 * f64::from(packet))
}
