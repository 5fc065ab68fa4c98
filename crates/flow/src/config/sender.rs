//! The sender's configuration.

use fullpipe_cc::{Base, Count, InitialSending, PacingGains, Setup, StackSpec};
use fullpipe_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

use super::{
    Detector, HEADERS_WITH_STAMPS, LocalDrop, LossWindow, PacerRule, PacketLengths, Preset,
    Reduction, RtoRule, RttSample, SpuriousRule, TimerGrain, Validation,
};

/// The sender's configuration: what it sends, and the groups of its switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderConfig {
    /// Payload of a full segment, bytes (SMSS). Every segment is full: the sender counts segments.
    ///
    /// At least 1. In packets of 1500 bytes:
    /// Default: 1448.
    pub mss: u32,
    /// Network and transport headers of a data segment, bytes. A full packet has
    /// [`SenderConfig::packet`] bytes.
    ///
    /// Without time stamps: 40 (IPv4).
    /// Default: `52`.
    pub header: u32,
    /// What the options of SYNs and ACKs take is counted ([`SenderConfig::lengths`]): segment size,
    /// window scale, time stamp and "SACK permitted" in a SYN and its answer, 20 bytes in all,
    /// without time stamps 12, and 8 without SACK (Linux `tcp_syn_options`); SACK blocks in an ACK,
    /// 8 bytes each and 4 more for all of them (RFC 2018 section 3, padded to whole words). False:
    /// each has the [`SenderConfig::header`] of a data segment.
    ///
    /// Default: false; `linux`: true.
    #[serde(default)]
    pub tcp_options: bool,
    /// Segments to send in all, at least 1; `None`: as long as the flow lives.
    ///
    /// Default: none.
    pub transfer: Option<u64>,
    /// Open the connection with SYN and SYN/ACK. This costs a round trip and gives the RTT sample
    /// that spreading the initial window needs ([`PacingConfig::initial`]).
    ///
    /// Default: true; `2003`: false.
    pub handshake: bool,
    /// An ACK of its own ends the handshake before the first data leaves, as `connect` does it in
    /// Linux (`tcp_rcv_synsent_state_process`); [`SenderConfig::header`] bytes that take a place in
    /// the bottleneck's buffer. RFC 9293 section 3.5 lets the first data carry it.
    ///
    /// Default: false; `linux`: true.
    pub handshake_ack: bool,
    /// Both ends send time stamps (RFC 7323): an ACK's echo tells an original from a
    /// retransmission. Without them there is no Eifel detection (RFC 3522 section 3.1), no RTT
    /// sample of a segment that was resent (RFC 6298 section 3), no one-way delay, and headers are
    /// 12 bytes shorter ([`SenderConfig::header`]).
    ///
    /// Default: true.
    pub timestamps: bool,
    /// Send ECN-capable segments and react to ECE (RFC 3168).
    ///
    /// It changes nothing unless a queue on the way marks and the receiver echoes
    /// ([`ReceiverConfig::ecn`](super::ReceiverConfig::ecn)).
    /// Default: false.
    pub ecn: bool,
    /// The congestion window: where it starts, how it grows, when it is no longer trusted.
    pub window: WindowConfig,
    /// Loss detection, and what a loss or a timeout does to the window.
    pub recovery: RecoveryConfig,
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// The host's timers, and what they wait for.
    pub timers: TimerConfig,
    /// When segments that the window admits leave.
    pub pacing: PacingConfig,
    /// The sending host around the transport: application, offload, interface queue.
    pub host: HostConfig,
    /// Losses that the sender only pretends.
    ///
    /// Default: none.
    pub artificial_loss: ArtificialLoss,
    /// Another controller may take over while the flow runs (`Sender::change`): what only some
    /// controllers read is kept for it from the start, some 24 bytes per segment in flight.
    ///
    /// Default: false.
    pub changeable: bool,
}

/// The congestion window: its start and bounds, what its laws count, and when it is validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WindowConfig {
    /// Initial window, segments, at least 1 (RFC 6928; RFC 3390 before).
    ///
    /// A stack that sets its own (`iw`) overrides it ([`SenderConfig::with_stack`]).
    /// Default: 10; `2003`: 2.
    pub initial: f64,
    /// Clamp of the congestion window, segments, at least 1; infinite for none (Linux
    /// `snd_cwnd_clamp`).
    ///
    /// Lower it to model a send buffer that is too small for the path.
    /// Default: infinite.
    pub max: f64,
    /// Window validation after idle or application-limited time.
    ///
    /// Default: [`Validation::Rfc7661`]; `2003`: [`Validation::None`]; `linux`:
    /// [`Validation::Rfc2861`].
    pub validation: Validation,
    /// What the increase laws count: segments, or ACKs.
    ///
    /// Counting ACKs halves the growth behind a receiver that delays ACKs.
    /// Default: [`Count::Segments`]; `2003`: [`Count::Acks`].
    pub count: Count,
    /// `L` of appropriate byte counting (RFC 3465 section 2.2): most segments that one ACK may add
    /// in slow start, above 0. `None`: 2 unpaced, unlimited when paced.
    ///
    /// Raise it where ACKs are thinned out on the way; pace then, or slow start sends bursts.
    /// Default: none; `linux`: infinite.
    pub slow_start_limit: Option<f64>,
    /// What a decrease multiplies: FlightSize (RFC 5681 equation 4), or the window.
    ///
    /// [`Base::Sent`] suits paths on which slow start overshoots: the window is reduced from what
    /// the path held instead of twice that.
    /// Default: [`Base::MinFlight`]; `linux`: [`Base::Cwnd`].
    pub decrease_base: Base,
}

/// Loss detection and repair, and the reactions to loss, timeout and their taking back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecoveryConfig {
    /// How losses are detected and which segment is sent next in recovery.
    ///
    /// [`Detector::NewReno`] wants a receiver without SACK
    /// ([`SackConfig::enabled`](super::SackConfig::enabled)).
    /// Default: [`Detector::Rack`]; `2003`: [`Detector::Sack`].
    pub detector: Detector,
    /// How the window comes down during a reduction.
    ///
    /// Default: [`Reduction::Prr`]; `2003`: [`Reduction::Immediate`]; `linux`:
    /// [`Reduction::PrrWindow`].
    pub reduction: Reduction,
    /// Tail loss probes (RFC 8985 section 7). They need [`Detector::Rack`], in Linux SACK alone
    /// ([`RecoveryConfig::may_probe`]); their wait is set by [`TimerConfig::max_ack_delay`] and
    /// [`TimerConfig::probe_margin`].
    ///
    /// Default: true; `2003`: false.
    pub tlp: bool,
    /// Forward RTO recovery (RFC 5682): a timeout after which originals are acknowledged was
    /// spurious. It undoes the reduction only with [`RecoveryConfig::undo`].
    ///
    /// Default: true; `2003`: false.
    pub frto: bool,
    /// Whose F-RTO it is. By the RFC the first ACK that advances starts the test, and a timeout in
    /// a recovery does not (section 3.1 steps 1 and 2); by Linux any ACK of data that was not
    /// resent ends it, also a SACK that was under way when the timer went off
    /// (`tcp_process_loss`). The RFC lets one segment leave before that ACK and two after it, Linux
    /// as many as the window. With [`LossWindow::FlightPlusOne`] the RFC also spares what RACK's
    /// reordering window spares (RFC 8985 section 6.3).
    ///
    /// Default: [`SpuriousRule::Rfc`]; `linux`: [`SpuriousRule::Linux`].
    pub frto_by: SpuriousRule,
    /// Whose rules make of late segments and DSACKs how long a loss is waited for. By the RFC any
    /// DSACK widens RACK's window (RFC 8985 section 6.2 step 4). By Linux
    /// (`net/ipv4/tcp_recovery.c`, `tcp_input.c`) only once reordering was seen; and while the
    /// largest distance over which a segment was overtaken is above three (`reordering`) the window
    /// grows on SACKs too (`tcp_may_raise_cwnd`), and [`Detector::Sack`] asks for as many SACKed
    /// segments (`tcp_update_scoreboard`). Without SACK more duplicates than can be are reordering,
    /// by Linux: so many are asked for from then on, in place of three
    /// (`tcp_check_reno_reordering`).
    ///
    /// Default: [`SpuriousRule::Rfc`]; `linux`: [`SpuriousRule::Linux`].
    pub reordering_by: SpuriousRule,
    /// Undo a reduction that time stamps (Eifel, RFC 3522), DSACK (RFC 3708) or F-RTO show to be
    /// spurious.
    ///
    /// Default: true; `2003`: false.
    pub undo: bool,
    /// Whose rules tell that a reduction was spurious: the RFCs' or the kernel's.
    ///
    /// Default: [`SpuriousRule::Rfc`]; `linux`: [`SpuriousRule::Linux`].
    pub undo_by: SpuriousRule,
    /// The window after a retransmission timeout.
    ///
    /// Default: [`LossWindow::One`]; `linux`: [`LossWindow::FlightPlusOne`].
    pub loss_window: LossWindow,
    /// A retransmission lost in fast recovery reduces the window once more (RFC 5681 section 4.3,
    /// RFC 8985). Only [`Detector::Rack`] notices such a loss.
    ///
    /// Default: true; `2003`: false; `linux`: false.
    pub reduce_on_lost_retransmission: bool,
    /// A retransmission lost after a timeout begins a fast recovery with a reduction of its own
    /// (RFC 5681 section 4.3, Linux `tcp_fastretrans_alert`). Only [`Detector::Rack`] notices such
    /// a loss.
    ///
    /// Default: true; `2003`: false.
    pub recover_from_loss: bool,
    /// A timeout in fast recovery reduces once more (RFC 5681 section 3.1). False, as in Linux
    /// (`tcp_enter_loss`): it does not, but the first one after an answered timeout does.
    ///
    /// Default: true; `linux`: false.
    pub timeout_reduces_in_recovery: bool,
    /// Without SACK every partial ACK restarts the retransmission timer ("Slow-but-Steady" of RFC
    /// 6582 section 4): one segment is repaired in a round trip for as long as it takes, as in
    /// Linux (`tcp_ack` with `FLAG_SET_XMIT_TIMER`). Otherwise only the first does ("Impatient").
    ///
    /// Default: false; `linux`: true.
    pub steady_newreno: bool,
}

/// The retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RtoConfig {
    /// Lower bound of the timeout (RFC 6298 section 2.4; Linux `TCP_RTO_MIN`).
    ///
    /// Below the receiver's ACK delay it makes timeouts spurious.
    /// Default: 1s; `2003`: 200ms; `linux`: 200ms.
    pub min: Span,
    /// Upper bound, backoff included; not below [`RtoConfig::min`] (section 2.5; Linux
    /// `TCP_RTO_MAX`).
    ///
    /// Default: 1min; `linux`: 2min.
    pub max: Span,
    /// Timeout before the first RTT sample, of the SYN too (section 2.1; RFC 2988: 3 s).
    ///
    /// Default: 1s; `2003`: 3s.
    pub initial: Span,
    /// Clock granularity `G`: least that RTTVAR adds (section 2.3). [`RtoRule::Linux`] has none.
    ///
    /// Default: 1ms; `2003`: 10ms.
    pub granularity: Span,
    /// Estimator and formula.
    ///
    /// Default: [`RtoRule::Rounds`]; `2003`: [`RtoRule::Rfc6298`]; `linux`: [`RtoRule::Linux`].
    pub rule: RtoRule,
    /// Which segments of an ACK are sampled.
    ///
    /// Default: [`RttSample::Newest`]; `linux`: [`RttSample::Oldest`].
    pub sample: RttSample,
}

/// The host's timers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimerConfig {
    /// When a timer that is set for a span of time goes off.
    ///
    /// Default: [`TimerGrain::Exact`]; `linux`: [`TimerGrain::Wheel`].
    pub grain: TimerGrain,
    /// Ticks per second of the host's timer clock, at least 1 (Linux `CONFIG_HZ`: 100, 250, 300 or
    /// 1000). It matters to [`TimerGrain::Wheel`] and to the kernel's own controllers.
    ///
    /// Default: 250.
    pub hz: u32,
    /// Resending the first outstanding segment restarts the retransmission timer, as the fast
    /// retransmit did in 4.4BSD (`tcp_input.c` stops the timer, the retransmission starts it),
    /// ns-2 (`reset_rtx_timer` in `dupack_action`) and Linux since 2.4
    /// (`tcp_xmit_retransmit_queue`). RFC 6675 section 6 allows it; RFC 6298 section 5.1 alone
    /// starts the timer only if it is off.
    ///
    /// Without it one loss ends in a timeout wherever the RTT is above [`RtoConfig::min`] and
    /// steady: the timer of the last ACK that advanced goes off before the ACK of the fast
    /// retransmit.
    /// Default: true.
    pub head_restarts_rto: bool,
    /// Longest ACK delay assumed of the receiver: what a tail loss probe waits beyond two SRTT with
    /// one segment in flight (RFC 8985 section 7.2, `TLP.max_ack_delay`).
    ///
    /// Keep it at least [`AckConfig::delay`](super::AckConfig::delay), or probes are spurious.
    /// Default: 200ms.
    pub max_ack_delay: Span,
    /// What a tail loss probe waits beyond two SRTT with more than one in flight (Linux
    /// `tcp_schedule_loss_probe`: `TCP_TIMEOUT_MIN`).
    ///
    /// Default: 0s; `linux`: 2ms.
    pub probe_margin: Span,
}

/// When segments that the window admits leave the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PacingConfig {
    /// Pace every segment at `gain * max(cwnd, flight) * mss / srtt` with these gains (Linux
    /// `tcp_update_pacing_rate`); `None`: bursts, unless the controller sets a rate of its own.
    ///
    /// Default: none.
    pub gains: Option<PacingGains>,
    /// Ceiling of the pacing rate, of payload; a flow that has one is paced (Linux
    /// `SO_MAX_PACING_RATE`).
    ///
    /// Default: none.
    pub max: Option<Rate>,
    /// How exactly a segment waits for its time.
    ///
    /// Default: [`PacerRule::Credit`]; `linux`: [`PacerRule::Linux`].
    pub rule: PacerRule,
    /// How the initial window leaves. [`InitialSending::Spread`] needs [`SenderConfig::handshake`],
    /// whose RTT it divides.
    ///
    /// Default: [`InitialSending::Burst`].
    pub initial: InitialSending,
}

/// The sending host around the transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostConfig {
    /// Most new segments that segmentation offload sends as one, at least 1; 1: none.
    ///
    /// The sender waits until this many, or a third of the window if that is less, may leave
    /// together (Linux `tcp_tso_should_defer`, `tcp_tso_win_divisor` 3). A pacer lets them pass as
    /// one, but no more than a millisecond of its rate (`tcp_tso_autosize`).
    /// Default: 1.
    pub tso_segments: u32,
    /// A train has about a millisecond of the pacing rate, which is computed whether the flow is
    /// paced or not, and more at small RTTs; and a train is not waited for if the last segment left
    /// more than a millisecond ago, or if the next ACK is due later than in a millisecond or half
    /// an RTT (Linux `tcp_tso_autosize`, `tcp_tso_should_defer`). False: a train of a flow that is
    /// not paced is as long as the window allows.
    ///
    /// Default: false; `linux`: true.
    pub tso_autosize: bool,
    /// TCP small queues: the flow keeps no more than a millisecond of its rate in the queue of its
    /// own host, at least two buffers (Linux `tcp_small_queue_check`). It matters where the host
    /// has an interface.
    ///
    /// Default: true; `2003`: false.
    pub small_queue: bool,
    /// The application writes through a send buffer as Linux sizes it (`tcp_sndbuf_expand`), and
    /// wakes when a third of it is free. The last segment of a write carries PSH, which the
    /// receiver acknowledges at once; SACKed segments take room until the hole before them is
    /// closed. False: the application is never late, and nothing is pushed.
    ///
    /// Default: false; `linux`: true.
    pub send_buffer: bool,
    /// Memory that a segment takes in the send buffer beyond its payload, bytes; it decides where
    /// writes end. Linux up to 6.2: 768, `SKB_TRUESIZE` of `MAX_TCP_HEADER` in the slab's next
    /// size; since: 832, as its heads have a cache of their own (`SKB_SMALL_HEAD_SIZE`).
    ///
    /// Default: 768; `linux-6.6`: 832.
    #[serde(default = "slab_overhead")]
    pub segment_overhead: u32,
    /// Reaction to a segment that the interface queue refuses ("sendstall").
    ///
    /// Default: [`LocalDrop::React`].
    pub local_drop: LocalDrop,
}

fn slab_overhead() -> u32 {
    768
}

/// Segments that the sender itself treats as lost, to drive a response function without touching
/// the path (the un-ACK facility of UCL, 2003). The segment travels and is acknowledged; the sender
/// answers with one reduction per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtificialLoss {
    /// These segment numbers; 0 is the first segment of data.
    pub segments: Vec<u64>,
    /// Every n-th delivered segment, n at least 1.
    pub every: Option<u64>,
    /// Each delivered segment with this probability, 0 to 1.
    pub probability: f64,
    /// Once, when the window first reaches this many segments.
    pub at_window: Option<f64>,
    /// At these times since the start of the run.
    pub times: Vec<Time>,
}

impl ArtificialLoss {
    /// True if no rule is set.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl RecoveryConfig {
    /// Tail loss probes can be sent: with RACK (RFC 8985 section 7.1), and with any SACK where the
    /// reduction is Linux's (`tcp_schedule_loss_probe` asks `tcp_is_sack`, not for RACK).
    pub fn may_probe(&self) -> bool {
        match self.detector {
            Detector::Rack => true,
            Detector::Sack => self.reduction == Reduction::PrrWindow,
            Detector::NewReno => false,
        }
    }
}

impl SenderConfig {
    /// A preset for packets of `mtu` bytes with time stamps (payload `mtu - 52`).
    pub fn preset(preset: Preset, mtu: u32) -> Self {
        let header = HEADERS_WITH_STAMPS;
        let modern = Self {
            mss: mtu.saturating_sub(header).max(1),
            header,
            tcp_options: false,
            transfer: None,
            handshake: true,
            handshake_ack: false,
            timestamps: true,
            ecn: false,
            window: WindowConfig {
                initial: 10.0,
                max: f64::INFINITY,
                validation: Validation::Rfc7661,
                count: Count::Segments,
                slow_start_limit: None,
                decrease_base: Base::MinFlight,
            },
            recovery: RecoveryConfig {
                detector: Detector::Rack,
                reduction: Reduction::Prr,
                tlp: true,
                frto: true,
                frto_by: SpuriousRule::Rfc,
                reordering_by: SpuriousRule::Rfc,
                undo: true,
                undo_by: SpuriousRule::Rfc,
                loss_window: LossWindow::One,
                reduce_on_lost_retransmission: true,
                recover_from_loss: true,
                timeout_reduces_in_recovery: true,
                steady_newreno: false,
            },
            rto: RtoConfig {
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                initial: Span::from_secs(1),
                granularity: Span::from_millis(1),
                rule: RtoRule::Rounds,
                sample: RttSample::Newest,
            },
            timers: TimerConfig {
                grain: TimerGrain::Exact,
                hz: 250,
                head_restarts_rto: true,
                max_ack_delay: Span::from_millis(200),
                probe_margin: Span::ZERO,
            },
            pacing: PacingConfig {
                gains: None,
                max: None,
                rule: PacerRule::Credit,
                initial: InitialSending::Burst,
            },
            host: HostConfig {
                tso_segments: 1,
                tso_autosize: false,
                small_queue: true,
                send_buffer: false,
                segment_overhead: slab_overhead(),
                local_drop: LocalDrop::React,
            },
            artificial_loss: ArtificialLoss::default(),
            changeable: false,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Linux66 => {
                let older = Self::preset(Preset::Linux, mtu);
                older.with(|c| c.host.segment_overhead = 832)
            }
            Preset::Y2003 => Self {
                handshake: false,
                window: WindowConfig {
                    initial: 2.0,
                    validation: Validation::None,
                    count: Count::Acks,
                    ..modern.window
                },
                recovery: RecoveryConfig {
                    detector: Detector::Sack,
                    reduction: Reduction::Immediate,
                    tlp: false,
                    frto: false,
                    undo: false,
                    reduce_on_lost_retransmission: false,
                    recover_from_loss: false,
                    ..modern.recovery
                },
                rto: RtoConfig {
                    min: Span::from_millis(200),
                    initial: Span::from_secs(3),
                    granularity: Span::from_millis(10),
                    rule: RtoRule::Rfc6298,
                    ..modern.rto
                },
                host: HostConfig {
                    small_queue: false,
                    ..modern.host
                },
                ..modern
            },
            Preset::Linux => Self {
                tcp_options: true,
                handshake_ack: true,
                window: WindowConfig {
                    validation: Validation::Rfc2861,
                    slow_start_limit: Some(f64::INFINITY),
                    decrease_base: Base::Cwnd,
                    ..modern.window
                },
                recovery: RecoveryConfig {
                    reduction: Reduction::PrrWindow,
                    frto_by: SpuriousRule::Linux,
                    reordering_by: SpuriousRule::Linux,
                    undo_by: SpuriousRule::Linux,
                    loss_window: LossWindow::FlightPlusOne,
                    reduce_on_lost_retransmission: false,
                    recover_from_loss: true,
                    timeout_reduces_in_recovery: false,
                    steady_newreno: true,
                    ..modern.recovery
                },
                rto: RtoConfig {
                    min: Span::from_millis(200),
                    max: Span::from_secs(120),
                    rule: RtoRule::Linux,
                    sample: RttSample::Oldest,
                    ..modern.rto
                },
                timers: TimerConfig {
                    grain: TimerGrain::Wheel,
                    probe_margin: Span::from_millis(2),
                    ..modern.timers
                },
                pacing: PacingConfig {
                    rule: PacerRule::Linux,
                    ..modern.pacing
                },
                host: HostConfig {
                    send_buffer: true,
                    tso_autosize: true,
                    ..modern.host
                },
                ..modern
            },
        }
    }

    /// This configuration after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Moves a configuration made from the preset `own` to the preset `other`: every field that
    /// still has its value of `own` gets that of `other`, but the initial window and those that
    /// `keeps` names, as `rto.min`.
    pub fn follow(&mut self, own: &Self, other: &Self, keeps: impl Fn(&str) -> bool) {
        follow! { self, own, other, keeps, Self {
            mss, header, tcp_options, transfer, handshake, handshake_ack, timestamps, ecn,
            window: WindowConfig {
                max, validation, count, slow_start_limit, decrease_base; keeps initial
            },
            recovery: RecoveryConfig {
                detector, reduction, tlp, frto, frto_by, reordering_by, undo, undo_by, loss_window,
                reduce_on_lost_retransmission, recover_from_loss, timeout_reduces_in_recovery,
                steady_newreno
            },
            rto: RtoConfig { min, max, initial, granularity, rule, sample },
            timers: TimerConfig { grain, hz, head_restarts_rto, max_ack_delay, probe_margin },
            pacing: PacingConfig { gains, max, rule, initial },
            host: HostConfig {
                tso_segments, tso_autosize, small_queue, send_buffer, segment_overhead, local_drop
            },
            artificial_loss, changeable,
        }}
    }

    /// What a stack's spelling overrides here (initial window, sending, pacing), and the setup that
    /// its controller gets.
    pub fn with_stack(mut self, spec: &StackSpec) -> (Self, Setup) {
        if let Some(iw) = spec.initial_window() {
            self.window.initial = iw;
        }
        if let Some(sending) = spec.sending() {
            self.pacing.initial = sending;
        }
        self.pacing.gains = spec.pacing().or(self.pacing.gains);
        if self.pacing.max.is_some() {
            self.pacing.gains.get_or_insert_default();
        }
        let paced = self.pacing.gains.is_some();
        let default_limit = if paced { f64::INFINITY } else { 2.0 };
        let setup = Setup {
            initial_window: self.window.initial,
            max_window: self.window.max,
            count: self.window.count,
            slow_start_limit: self.window.slow_start_limit.unwrap_or(default_limit),
            base: self.window.decrease_base,
            mss: self.mss,
            paced,
            hz: self.timers.hz,
            selective_acks: self.recovery.detector != Detector::NewReno,
            seed: 0,
        };
        (self, setup)
    }

    /// Bytes of a full packet: payload and headers.
    pub fn packet(&self) -> u32 {
        self.mss + self.header
    }

    /// Bytes of packets by what they carry.
    pub fn lengths(&self) -> PacketLengths {
        let plain = self.header as u16;
        let has_sack = self.recovery.detector != Detector::NewReno;
        let start = match (self.tcp_options, self.timestamps) {
            (false, _) => 0,
            // Every header has room for time stamps, and "SACK permitted" takes their padding.
            (true, true) => 8,
            (true, false) => 8 + 4 * u16::from(has_sack),
        };
        PacketLengths {
            data: self.packet() as u16,
            plain,
            syn: plain + start,
            ack: std::array::from_fn(|blocks| match (self.tcp_options, blocks as u16) {
                (false, _) | (true, 0) => plain,
                (true, n) => plain + 4 + 8 * n,
            }),
        }
    }
}
