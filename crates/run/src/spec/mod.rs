//! What one run is given: links, flows, what to record. Everything resolved, no file, no unit left
//! open.

mod chance;
mod delivery;
mod link;
mod traffic;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_units::{Span, Time};

use crate::rng::ComponentRng;

pub use delivery::{DeliveryTrace, DeliveryTraceError};
pub use link::*;
pub use traffic::*;

/// How late a host is with a packet at most: those of ground `linux` leave 0.1 to 0.4 us after
/// the ACK that lets them out.
pub const LATENESS: Span = Span::from_nanos(400);

/// One run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct RunSpec {
    /// Seed; every component derives its own generator from it and its name.
    pub seed: u64,
    /// Virtual time to simulate.
    pub duration: Span,
    /// Means, percentiles and totals marked "measured" count from here (warm-up removal).
    pub measure_from: Time,
    /// Width of a throughput sample.
    pub interval: Span,
    /// Links, referred to by index; they stay where they are when a run goes to another host.
    #[serde(skip)]
    pub links: Vec<LinkSpec>,
    /// Flows, referred to by index.
    pub flows: Vec<FlowSpec>,
    /// Short flows that come and go.
    pub arrivals: Vec<ArrivalSpec>,
    /// Datagrams without congestion control, those that are answered last.
    pub cross: Vec<CrossSpec>,
    /// Time series.
    pub trace: Trace,
    /// Record every packet that the hosts of `flows` send and receive.
    pub capture: bool,
}

impl RunSpec {
    /// Between two samples of a queue: the trace's grain, at least a ten-thousandth of the run;
    /// [`Span::MAX`]: none.
    pub fn queue_step(&self) -> Span {
        let least = (self.duration / 10_000).max(Span::from_nanos(1));
        match self.trace {
            Trace::Off => Span::MAX,
            Trace::Every(step) => step.max(least),
            Trace::Full => least,
        }
    }

    /// The same on hosts that take time: up to [`LATENESS`] between an ACK and what it lets out.
    ///
    /// Where a buffer runs empty, the packet that ends the pause sets the times at which later ones
    /// leave the queue, and others arrive at these very times. A host that is never late finds room
    /// in every such tie, one that is sometimes late in some of them.
    #[must_use]
    pub fn with_late_hosts(mut self) -> Self {
        for link in self.flows.iter().flat_map(|f| &f.back) {
            if let Some(link) = self.links.get_mut(*link) {
                link.jitter = link.jitter.max(LATENESS);
            }
        }
        self
    }

    /// Numbers of `cross` on the wire and in queues.
    pub fn cross_numbers(&self) -> CrossNumbers {
        CrossNumbers {
            one_way: self.cross.partition_point(|c| !c.answered),
            all: self.cross.len(),
        }
    }

    /// The first instant after the end.
    pub fn after_end(&self) -> Time {
        Time::ZERO + self.duration + Span::from_nanos(1)
    }
}

impl Default for RunSpec {
    /// One minute with nothing in it.
    fn default() -> Self {
        Self {
            seed: 1,
            duration: Span::from_secs(60),
            measure_from: Time::ZERO,
            interval: Span::from_secs(1),
            links: Vec::new(),
            flows: Vec::new(),
            arrivals: Vec::new(),
            cross: Vec::new(),
            trace: Trace::Off,
            capture: false,
        }
    }
}

/// Time series of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Trace {
    /// None.
    Off,
    /// At most one row per step, with the extremes in between kept.
    Every(Span),
    /// One row per ACK.
    Full,
}

/// Losses of one flow at exact places: on its way into its first link, or where it arrives.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
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

/// A change of a running flow at a time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TimedChange {
    /// Time of the run; a flow that starts later begins with it.
    pub at: Time,
    /// Stack, cap and ceiling from then on.
    pub change: fullpipe_flow::Change,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
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
    #[serde(skip)]
    pub forward: Vec<usize>,
    /// Links that ACKs cross, in order.
    #[serde(skip)]
    pub back: Vec<usize>,
    /// The first forward link is the sender's own interface: its overflow is a local stall, not a
    /// loss.
    pub local_queue: bool,
    /// Start of the flow.
    pub start: Time,
    /// It starts later by a uniform part of this, drawn once per run from the flow's generator.
    pub start_spread: Span,
    /// No new data after this time.
    pub stop: Option<Time>,
    /// Exact losses on the path.
    pub drops: Drops,
    /// Exact losses at the receiver's host, of packets that have crossed the path; `at_window`
    /// means nothing there.
    pub arrival_drops: Drops,
    /// Changes of its parameters while it runs, in the order of their times.
    pub changes: Vec<TimedChange>,
    /// Its sender stands where the receivers of the others do. The simulator, where hosts have no
    /// place, does not care.
    pub reverse: bool,
    /// The set of switches that `sender` and `receiver` began with, where that is known: a ground
    /// whose hosts are not ours has to tell what was set by hand.
    #[serde(skip)]
    pub preset: Option<Preset>,
    /// Keys of the scenario that were written for it, at the preset's value too.
    #[serde(skip)]
    pub written: Vec<WrittenKey>,
}

/// A key of a scenario that was written for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenKey {
    /// As the file has it, `min_rto`.
    pub name: &'static str,
    /// Fields of [`FlowSpec`] that it sets, as `sender.rto.min`.
    pub fields: &'static [&'static str],
    /// It says what [`Preset::Linux`] has, in the key's own words: `prr = true`, though a preset's
    /// reduction may be another one than Linux's.
    pub is_linux: bool,
}

impl FlowSpec {
    /// When the flow starts in the run with `seed`.
    pub fn started(&self, seed: u64) -> Time {
        let mut rng = ComponentRng::new(seed, &format!("{} start", self.name));
        match self.start_spread {
            Span::ZERO => self.start,
            spread => self.start + spread.mul_f64(rng.uniform()),
        }
    }

    /// A bulk flow from time zero over these links, nothing dropped on purpose.
    pub fn new(
        name: &str,
        stack: StackSpec,
        sender: SenderConfig,
        receiver: ReceiverConfig,
        forward: Vec<usize>,
        back: Vec<usize>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            stack,
            sender,
            receiver,
            forward,
            back,
            local_queue: false,
            start: Time::ZERO,
            start_spread: Span::ZERO,
            stop: None,
            drops: Drops::default(),
            arrival_drops: Drops::default(),
            changes: Vec::new(),
            reverse: false,
            preset: None,
            written: Vec::new(),
        }
    }
}
