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
    /// What Linux 6.1 does by default, with the receive buffer of a host set up for long paths; `docs/linux.md` says where that
    /// departs from the RFCs.
    Linux,
}

/// How losses are detected and which segment is sent next in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Detector {
    /// RACK with SACK (RFC 8985).
    Rack,
    /// Duplicate-ACK counting over the SACK scoreboard (RFC 6675).
    Sack,
    /// Duplicate ACKs without SACK (RFC 6582).
    NewReno,
}

/// What the sender does when its own interface queue refuses a segment ("sendstall").
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LocalDrop {
    /// Reduce once per window like Linux: enter CWR, no undo.
    React,
    /// Wait for the queue to drain; window untouched (the Net100 daemon's switch).
    Ignore,
    /// Leave slow start without a reduction.
    ExitSlowStart,
}

/// How the window comes down during a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Reduction {
    /// To `ssthresh` at once.
    Immediate,
    /// Proportional rate reduction (RFC 9937): in proportion to what was outstanding and not SACKed.
    Prr,
    /// PRR in proportion to the window before the reduction (RFC 6937; Linux `tcp_cwnd_reduction`).
    PrrWindow,
}

/// Which segments of one ACK give the RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RttSample {
    /// The most recently sent one, for SRTT and controller alike.
    Newest,
    /// SRTT and RTO: the oldest newly acknowledged one, so that a delayed ACK's wait counts. Controller: the newest. An ACK
    /// that covers a retransmission samples its SACKed segments, or its time stamp in milliseconds (Linux
    /// `tcp_clean_rtx_queue`, `tcp_ack_update_rtt`).
    Oldest,
}

/// How the retransmission timeout follows from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RtoRule {
    /// `SRTT + 4 RTTVAR`, at least the minimum (RFC 6298).
    Rfc6298,
    /// `SRTT + RTTVAR` with RTTVAR the largest deviation of a window, at least the minimum; the deviation grows an eighth as
    /// fast when the RTT falls (Linux `tcp_rtt_estimator`).
    Linux,
}

/// When a timer that is set for a span of time goes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TimerGrain {
    /// Exactly then.
    Exact,
    /// On a tick of a clock of [`SenderConfig::hz`]: the span is rounded up to ticks, and one more tick passes because the
    /// present one has begun; spans of 63 ticks and more end on every eighth tick (Linux `kernel/time/timer.c`).
    Wheel,
}

/// The window after a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LossWindow {
    /// One segment; everything outstanding is taken to be lost (RFC 5681 section 3.1).
    One,
    /// One segment more than what is still in flight; segments sent less than an RTT ago are not taken to be lost (RFC 8985
    /// section 6.3, Linux `tcp_enter_loss`).
    FlightPlusOne,
}

/// Window validation after idle or application-limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RtoConfig {
    /// Lower bound.
    pub min: Span,
    /// Upper bound, backoff included.
    pub max: Span,
    /// Before the first RTT sample.
    pub initial: Span,
    /// Clock granularity `G`.
    pub granularity: Span,
    /// Formula.
    pub rule: RtoRule,
    /// Which segments are sampled.
    pub sample: RttSample,
}

/// Segments the sender itself treats as lost, to drive a response function without touching the path (un-ACK facility of
/// UCL 2003). The segment travels and is acknowledged; the sender answers with one reduction per window.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
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
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// How the window comes down.
    pub reduction: Reduction,
    /// Tail loss probe (RFC 8985 section 7).
    pub tlp: bool,
    /// Forward RTO recovery (RFC 5682).
    pub frto: bool,
    /// Undo of spurious reductions (Eifel time stamps, DSACK).
    pub undo: bool,
    /// A lost retransmission reduces once more (RFC 5681 section 4.3, RFC 8985); Linux: false.
    pub reduce_on_lost_retransmission: bool,
    /// A retransmission lost after a timeout begins a recovery of its own, with a reduction (Linux `tcp_fastretrans_alert`).
    pub recover_from_loss: bool,
    /// The window after a timeout.
    pub loss_window: LossWindow,
    /// A timeout in fast recovery reduces once more (RFC 5681 section 3.1); Linux: false, and in its place one after an earlier
    /// timeout that has been answered (`tcp_enter_loss`).
    pub timeout_reduces_in_recovery: bool,
    /// Resending the first outstanding segment restarts the retransmission timer (Linux `tcp_xmit_retransmit_queue`); RFC 6298
    /// starts it only if it is off.
    pub head_restarts_timer: bool,
    /// The application refills the send buffer whenever this part of the largest window has been acknowledged, and the last
    /// segment of a refill carries PSH, which the receiver acknowledges at once. Linux: the buffer holds twice the window with
    /// 4 % to spare (`tcp_sndbuf_expand`) and wakes the application when a third is free (`sk_stream_write_space`): 0.694.
    /// `None`: no PSH.
    pub refill: Option<f64>,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// How increase laws count ACKs.
    pub count: Count,
    /// `L` of slow start, segments per ACK; `None`: 2 unpaced, unlimited when paced.
    pub slow_start_limit: Option<f64>,
    /// What a decrease multiplies.
    pub base: Base,
    /// New segments that segmentation offload sends as one: the sender waits until this many, or a third of the window if that
    /// is less, may leave together (Linux `tcp_tso_should_defer`, `tcp_tso_win_divisor` 3), and a pacer lets them pass as one,
    /// but no more than a millisecond of its rate. 1: none.
    pub tso_segments: u32,
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
    /// What a tail loss probe waits beyond two SRTT.
    pub probe_margin: Span,
    /// Ticks per second of the host's timer clock (Linux `CONFIG_HZ`: 100, 250, 300 or 1000).
    pub hz: u32,
    /// How timers keep time.
    pub timers: TimerGrain,
}

/// While a hole is open, after three ACKs for the same cumulative number further ones are merged (Linux
/// `__tcp_ack_snd_check`, `tcp_comp_sack_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AckCompression {
    /// Longest time an ACK waits.
    pub delay: Span,
    /// And no longer than this part of the RTT: one over it.
    pub rtt_part: u64,
    /// At most this many ACKs become one.
    pub most: u32,
}

impl AckCompression {
    /// `tcp_comp_sack_delay_ns`, 5 % of the RTT, `tcp_comp_sack_nr`.
    pub const LINUX: Self = Self {
        delay: Span::from_millis(1),
        rtt_part: 20,
        most: 44,
    };
}

/// The receiver's configuration.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// The advertised window begins at this many segments and grows by two for each that arrives until it is
    /// [`ReceiverConfig::window`]; meanwhile every segment is acknowledged at once (Linux `tcp_grow_window`). `None`: the window
    /// is open from the start.
    pub first_window: Option<u64>,
    /// Acknowledge this many segments at once at the start of the connection and again after a duplicate or a silence (Linux quick
    /// ACK mode, `tcp_incr_quickack`); 0: none.
    pub quick_acks: u32,
    /// Merge the ACKs of segments that arrive above a hole; `None`: one for each (RFC 5681 section 4.2).
    pub compression: Option<AckCompression>,
    /// Ticks per second of the clock that delays ACKs; `None`: exact.
    pub hz: Option<u32>,
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
            reduction: Reduction::Prr,
            tlp: true,
            frto: true,
            undo: true,
            reduce_on_lost_retransmission: true,
            recover_from_loss: false,
            loss_window: LossWindow::One,
            timeout_reduces_in_recovery: true,
            head_restarts_timer: false,
            refill: None,
            rto: RtoConfig {
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                initial: Span::from_secs(1),
                granularity: Span::from_millis(1),
                rule: RtoRule::Rfc6298,
                sample: RttSample::Newest,
            },
            count: Count::Segments,
            slow_start_limit: None,
            base: Base::MinFlight,
            tso_segments: 1,
            pacing: None,
            sending: InitialSending::Burst,
            validation: Validation::Rfc7661,
            ecn: false,
            local_drop: LocalDrop::React,
            artificial_loss: ArtificialLoss::default(),
            handshake: true,
            max_ack_delay: Span::from_millis(200),
            probe_margin: Span::ZERO,
            hz: 250,
            timers: TimerGrain::Exact,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Y2003 => Self {
                initial_window: 2.0,
                detector: Detector::Sack,
                reduction: Reduction::Immediate,
                tlp: false,
                frto: false,
                undo: false,
                reduce_on_lost_retransmission: false,
                rto: RtoConfig {
                    min: Span::from_millis(200),
                    max: Span::from_secs(60),
                    initial: Span::from_secs(3),
                    granularity: Span::from_millis(10),
                    rule: RtoRule::Rfc6298,
                    sample: RttSample::Newest,
                },
                count: Count::Acks,
                validation: Validation::None,
                handshake: false,
                ..modern
            },
            Preset::Linux => Self {
                reduction: Reduction::PrrWindow,
                reduce_on_lost_retransmission: false,
                recover_from_loss: true,
                loss_window: LossWindow::FlightPlusOne,
                timeout_reduces_in_recovery: false,
                head_restarts_timer: true,
                refill: Some(0.694),
                rto: RtoConfig {
                    min: Span::from_millis(200),
                    max: Span::from_secs(120),
                    initial: Span::from_secs(1),
                    granularity: Span::from_millis(1),
                    rule: RtoRule::Linux,
                    sample: RttSample::Oldest,
                },
                slow_start_limit: Some(f64::INFINITY),
                base: Base::Cwnd,
                validation: Validation::Rfc2861,
                probe_margin: Span::from_millis(2),
                timers: TimerGrain::Wheel,
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
            first_window: None,
            quick_acks: 0,
            compression: None,
            hz: None,
            ecn: true,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Y2003 => Self {
                ack_delay: Span::from_millis(100),
                ..modern
            },
            Preset::Linux => Self {
                // 64 KB to 32 MB, half of the `tcp_rmem` of a host that is set up for long paths.
                first_window: Some(45),
                window: Some(23_172),
                quick_acks: 16,
                compression: Some(AckCompression::LINUX),
                hz: Some(250),
                ..modern
            },
        }
    }
}
