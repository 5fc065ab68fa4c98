//! Every switch of the endpoint, and the named sets of them.
//!
//! A preset is a set of defaults, nothing more: any field may be changed afterwards.

use fullpipe_cc::{Base, Count, InitialSending, PacingGains};
use fullpipe_units::Span;

/// A named set of endpoint switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Hosts of the Net100 and SLAC measurements and ns-2 of the time: RFC 6675 recovery without PRR, ACK counting, IW 2,
    /// minimum RTO 0.2 s, no window validation, no handshake.
    Y2003,
    /// The RFCs of today: RACK-TLP, PRR, F-RTO, byte counting, IW 10, minimum RTO 1 s, RFC 7661.
    Y2026,
}

/// How losses are detected and which segment is sent next in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// RACK with SACK (RFC 8985).
    Rack,
    /// Duplicate-ACK counting over the SACK scoreboard (RFC 6675).
    Sack,
    /// Duplicate ACKs without SACK (RFC 6582).
    NewReno,
}

/// What the sender does when its own interface queue refuses a segment ("sendstall").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalDrop {
    /// Reduce once per window like Linux: enter CWR, no undo.
    React,
    /// Wait for the queue to drain; window untouched (the Net100 daemon's switch).
    Ignore,
    /// Leave slow start without a reduction.
    ExitSlowStart,
}

/// Window validation after idle or application-limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Keep the window (ns-2).
    None,
    /// Restart window after an idle RTO (RFC 5681 section 4.1).
    Rfc5681,
    /// Halve per idle RTO, remember 3/4 of the window (RFC 2861, Linux form).
    Rfc2861,
    /// Non-validated phase with pipeACK (RFC 7661).
    Rfc7661,
}

/// Retransmission-timer limits (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Lower bound.
    pub min: Span,
    /// Upper bound, backoff included.
    pub max: Span,
    /// Before the first RTT sample.
    pub initial: Span,
    /// Clock granularity `G`.
    pub granularity: Span,
}

/// Segments the sender itself treats as lost, to drive a response function without touching the path (un-ACK facility of
/// UCL 2003). The segment travels and is acknowledged; the sender answers with one reduction per window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArtificialLoss {
    /// These segment numbers (0 is the first segment of data).
    pub segments: Vec<u64>,
    /// Every n-th delivered segment.
    pub every: Option<u64>,
    /// Each delivered segment with this probability.
    pub probability: f64,
    /// Once, when the window first reaches this many segments.
    pub at_window: Option<f64>,
    /// At these times since the start of the run.
    pub times: Vec<fullpipe_units::Time>,
}

impl ArtificialLoss {
    /// True if no rule is set.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The sender's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderConfig {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// IP and TCP headers of a data segment, bytes.
    pub header: u32,
    /// Initial window, segments.
    pub initial_window: f64,
    /// Clamp of the congestion window, segments; infinite for none.
    pub max_window: f64,
    /// Segments to send in all; `None`: as long as the flow lives.
    pub transfer: Option<u64>,
    /// Loss detector.
    pub detector: Detector,
    /// Proportional rate reduction (RFC 9937); off: the window drops to `ssthresh` at once.
    pub prr: bool,
    /// Tail loss probe (RFC 8985 section 7).
    pub tlp: bool,
    /// Forward RTO recovery (RFC 5682).
    pub frto: bool,
    /// Undo of spurious reductions (Eifel time stamps, DSACK).
    pub undo: bool,
    /// A lost retransmission reduces once more (RFC 5681 section 4.3, RFC 8985); Linux: false.
    pub reduce_on_lost_retransmission: bool,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// How increase laws count ACKs.
    pub count: Count,
    /// `L` of slow start, segments per ACK; `None`: 2 unpaced, unlimited when paced.
    pub slow_start_limit: Option<f64>,
    /// What a decrease multiplies.
    pub base: Base,
    /// Pace every segment with these gains; `None`: bursts, unless the controller sets a rate of its own.
    pub pacing: Option<PacingGains>,
    /// How the initial window leaves.
    pub sending: InitialSending,
    /// Window validation.
    pub validation: Validation,
    /// ECN-capable transport (RFC 3168).
    pub ecn: bool,
    /// Reaction to a refusal by the local queue.
    pub local_drop: LocalDrop,
    /// Sender-side artificial loss.
    pub artificial_loss: ArtificialLoss,
    /// Open with SYN and SYN/ACK: one round trip, and the RTT sample that spreading needs.
    pub handshake: bool,
    /// Receiver's longest ACK delay assumed by the tail loss probe (RFC 8985 section 7.2).
    pub max_ack_delay: Span,
    /// Ticks per second of the host's timer clock (Linux `CONFIG_HZ`: 100, 250, 300 or 1000).
    pub hz: u32,
}

/// The receiver's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// Acknowledge every n-th segment; 1: no delayed ACK.
    pub ack_every: u32,
    /// Longest delay of an ACK.
    pub ack_delay: Span,
    /// Report SACK blocks (RFC 2018) and duplicates (RFC 2883).
    pub sack: bool,
    /// Most SACK blocks in one ACK: 3 with time stamps, 4 without.
    pub sack_blocks: usize,
    /// Advertised window, segments; `None`: never limiting.
    pub window: Option<u64>,
    /// Acknowledge this many segments at once at the start of the connection (Linux quick ACK); 0: none.
    pub quick_acks: u32,
    /// Echo ECN (RFC 3168).
    pub ecn: bool,
}

impl SenderConfig {
    /// A preset for packets of `mtu` bytes with time stamps (payload `mtu - 52`).
    pub fn preset(preset: Preset, mtu: u32) -> Self {
        let header = 52;
        let modern = Self {
            mss: mtu.saturating_sub(header).max(1),
            header,
            initial_window: 10.0,
            max_window: f64::INFINITY,
            transfer: None,
            detector: Detector::Rack,
            prr: true,
            tlp: true,
            frto: true,
            undo: true,
            reduce_on_lost_retransmission: true,
            rto: RtoConfig {
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                initial: Span::from_secs(1),
                granularity: Span::from_millis(1),
            },
            count: Count::Segments,
            slow_start_limit: None,
            base: Base::MinFlight,
            pacing: None,
            sending: InitialSending::Burst,
            validation: Validation::Rfc7661,
            ecn: false,
            local_drop: LocalDrop::React,
            artificial_loss: ArtificialLoss::default(),
            handshake: true,
            max_ack_delay: Span::from_millis(200),
            hz: 250,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Y2003 => Self {
                initial_window: 2.0,
                detector: Detector::Sack,
                prr: false,
                tlp: false,
                frto: false,
                undo: false,
                reduce_on_lost_retransmission: false,
                rto: RtoConfig {
                    min: Span::from_millis(200),
                    max: Span::from_secs(60),
                    initial: Span::from_secs(3),
                    granularity: Span::from_millis(10),
                },
                count: Count::Acks,
                validation: Validation::None,
                handshake: false,
                ..modern
            },
        }
    }
}

impl ReceiverConfig {
    /// A preset: delayed ACKs for every second segment, 100 ms (ns-2) or 40 ms (RFC 9293 allows up to 500 ms).
    pub fn preset(preset: Preset) -> Self {
        let modern = Self {
            ack_every: 2,
            ack_delay: Span::from_millis(40),
            sack: true,
            sack_blocks: 3,
            window: None,
            quick_acks: 0,
            ecn: true,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Y2003 => Self {
                ack_delay: Span::from_millis(100),
                ..modern
            },
        }
    }
}
