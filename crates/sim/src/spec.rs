//! What one run of the simulator is given: links, flows, what to record. Everything resolved, no file, no unit left open.

use fullpipe_cc::StackSpec;
use fullpipe_flow::{ReceiverConfig, SenderConfig};
use fullpipe_units::{Rate, Span, Time};

/// One run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Seed; every component derives its own generator from it and its name.
    pub seed: u64,
    /// Virtual time to simulate.
    pub duration: Span,
    /// Means, percentiles and totals marked "measured" count from here (warm-up removal).
    pub measure_from: Time,
    /// Width of a throughput sample.
    pub interval: Span,
    /// Links, referred to by index.
    pub links: Vec<LinkSpec>,
    /// Flows, referred to by index.
    pub flows: Vec<FlowSpec>,
    /// Time series.
    pub trace: Trace,
}

/// Time series of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// None.
    Off,
    /// At most one row per step, with the extremes in between kept.
    Every(Span),
    /// One row per ACK.
    Full,
}

/// A FIFO link: a drop-tail buffer, a transmitter, a propagation delay.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Unique name; seeds the link's generator.
    pub name: String,
    /// Capacity; `None`: no transmitter, only delay.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Span,
    /// Room for packets that wait or are being transmitted.
    pub buffer: Buffer,
    /// Random loss at the entry.
    pub loss: Loss,
    /// Each packet's delay is longer by a uniform part of this; order is kept. Only for a link without a transmitter.
    pub jitter: Span,
}

/// Size of a drop-tail buffer, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Packets.
    Packets(u64),
    /// Bytes of packets.
    Bytes(u64),
    /// Time to drain: a packet that would leave later than this after its arrival is dropped.
    Time(Span),
    /// No limit.
    Unlimited,
}

/// Random loss of data packets at a link's entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet independently.
    Bernoulli {
        /// Probability of loss.
        p: f64,
    },
    /// Two-state Markov chain, one step per packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability to go from good to bad.
        to_bad: f64,
        /// Probability to go from bad to good.
        to_good: f64,
        /// Loss probability in the good state.
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// Losses of one flow at exact places, on its way into its first link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drops {
    /// First transmission of these segments (0 is the first segment of data).
    pub segments: Vec<u64>,
    /// The next data packet after each of these times.
    pub times: Vec<Time>,
    /// Every n-th data packet, retransmissions counted.
    pub every: Option<u64>,
    /// Once, the next new segment after the window first reaches this many segments.
    pub at_window: Option<f64>,
    /// Each data packet with this probability.
    pub probability: f64,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Unique name; seeds the flow's generator.
    pub name: String,
    /// Congestion control.
    pub stack: StackSpec,
    /// Sender's switches.
    pub sender: SenderConfig,
    /// Receiver's switches.
    pub receiver: ReceiverConfig,
    /// Links that data crosses, in order.
    pub forward: Vec<usize>,
    /// Links that ACKs cross, in order.
    pub back: Vec<usize>,
    /// The first forward link is the sender's own interface: its overflow is a local stall, not a loss.
    pub local_queue: bool,
    /// Start of the flow.
    pub start: Time,
    /// No new data after this time.
    pub stop: Option<Time>,
    /// Exact losses on the path.
    pub drops: Drops,
}
