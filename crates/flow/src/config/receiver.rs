//! The receiver's configuration.

use fullpipe_units::Span;
use serde::{Deserialize, Serialize};

use super::Preset;

/// The receiver's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiverConfig {
    /// Delayed-ACK policy.
    pub acks: AckConfig,
    /// What ACKs say of segments above a hole.
    pub sack: SackConfig,
    /// The advertised window.
    pub window: ReceiveWindowConfig,
    /// Discard a segment whose time stamp is more than a millisecond older than that of the last
    /// one acknowledged in order (RFC 7323 section 5.3, Linux `tcp_paws_discard`): what overtakes
    /// it, a retransmission that fills the hole before it, makes a late original worthless. A SYN
    /// that comes again is answered with the stamp of the first (`tcp_check_req`).
    ///
    /// Default: false; `linux`: true.
    pub paws: bool,
    /// Echo ECN marks (RFC 3168 section 6.1.3). Nothing is marked unless the sender asks for it
    /// ([`SenderConfig::ecn`](super::SenderConfig::ecn)).
    ///
    /// Default: true.
    pub ecn: bool,
    /// How long ACKs say that congestion was experienced; a controller that [lives on
    /// marks](fullpipe_cc::Controller::needs_ecn) needs [`CeEcho::EachChange`].
    ///
    /// Default: [`CeEcho::UntilCwr`].
    pub ce_echo: CeEcho,
}

/// Until when ACKs carry ECE for a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CeEcho {
    /// From a mark until the sender says that it has reduced its window (RFC 3168 section 6.1.3).
    #[default]
    UntilCwr,
    /// ECE is the mark of the segment that came last; a segment whose mark is another makes what
    /// waits for an ACK be acknowledged before it ([`Receiver::ack_before`], RFC 8257 section 3.2).
    ///
    /// [`Receiver::ack_before`]: crate::Receiver::ack_before
    EachChange,
}

/// When segments are acknowledged (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AckConfig {
    /// Acknowledge every n-th segment, at least 1; 1: no delayed ACKs.
    ///
    /// RFC 5681 allows 2 at most; more saves ACKs and makes an unpaced sender send bursts.
    /// Default: 2.
    pub every: u32,
    /// Longest delay of an ACK; RFC 9293 allows 500 ms. ns-2 had 100 ms, Linux has 40 ms
    /// (`TCP_DELACK_MIN`).
    ///
    /// Beyond the sender's [`TimerConfig::max_ack_delay`](super::TimerConfig::max_ack_delay) it
    /// brings on spurious probes.
    /// Default: 40ms; `2003`: 100ms.
    pub delay: Span,
    /// Acknowledge this many segments at once at the start of the connection, and again after a
    /// duplicate or a silence, but no more than half of the window's segments, of a window of one
    /// two (Linux quick ACK mode, `tcp_incr_quickack`); 0: none. With such a receiver goes a reader
    /// who, having read half of the largest window, says that it doubles (`tcp_cleanup_rbuf`): of a
    /// window of two segments each is acknowledged.
    ///
    /// Default: 0; `linux`: 16.
    pub quick: u32,
    /// Merge the ACKs of segments that arrive above a hole; `None`: one for each (RFC 5681
    /// section 4.2).
    ///
    /// Default: none; `linux`: [`AckCompression::LINUX`].
    pub compression: Option<AckCompression>,
    /// Ticks per second of the clock that delays ACKs, at least 1 (Linux `CONFIG_HZ`); `None`:
    /// exact.
    ///
    /// Default: none; `linux`: 250.
    pub hz: Option<u32>,
}

/// Selective acknowledgements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SackConfig {
    /// Report SACK blocks (RFC 2018) and duplicates (RFC 2883). Set it to false for a sender with
    /// [`Detector::NewReno`](super::Detector::NewReno).
    ///
    /// Default: true.
    pub enabled: bool,
    /// Most SACK blocks in one ACK, 0 to 4: the option field has room for 3 beside time stamps, for
    /// 4 without.
    ///
    /// Default: 3.
    pub blocks: usize,
    /// A block holds all that was received around the newest segment (RFC 2018 section 4). False:
    /// what was reported of it before and is among the last four blocks, so that a segment between
    /// two that fell out is a block of its own; and a duplicate above a hole counts as the newest
    /// (Linux `tcp_sack_new_ofo_skb`).
    ///
    /// Default: true; `linux`: false.
    #[serde(default = "yes")]
    pub whole: bool,
}

fn yes() -> bool {
    true
}

/// The advertised window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceiveWindowConfig {
    /// Largest advertised window, segments, at least 1; `None`: never limiting.
    ///
    /// Linux: half of `tcp_rmem`'s maximum, here 32 MB of 64 MB as on hosts set up for long paths;
    /// from 6.6 on what the buffer holds at the payload measured of a packet's memory, 162 of 256
    /// at an mtu of 1500 (`tcp_measure_rcv_mss`).
    /// Default: none; `linux`: 23172; `linux-6.6`: 29328.
    pub max: Option<u64>,
    /// The advertised window begins at this many segments and grows by two for each that arrives
    /// until it is [`ReceiveWindowConfig::max`]; meanwhile every segment is acknowledged at once
    /// (Linux `tcp_grow_window`). At least 1; `None`: open from the start.
    ///
    /// Linux: [`ReceiveWindowConfig::begins_with`], here for segments of 1448 bytes; from 6.6 on
    /// half of the buffer (`tcp_select_initial_window`).
    /// Default: none; `linux`: 45; `linux-6.6`: 23172.
    pub first: Option<u64>,
    /// Largest window that an ACK can say, segments, at least 1: 65,535 in the unit of the scale,
    /// which the SYN settles by the window that the buffer promises then. What the receiver grants
    /// itself beyond it ([`ReceiveWindowConfig::max`]) shows in its quick ACKs alone. `None`:
    /// whatever the receiver grants.
    ///
    /// Linux: `tcp_select_initial_window`; the preset's buffer gives units of 512 bytes.
    /// Default: none; `linux`: 23172.
    #[serde(default)]
    pub widest: Option<u64>,
    /// Window that the empty buffer is worth, segments, at least 2. Room for one is reserved: no
    /// window is larger than the rest. When an ACK leaves, what lies there unread,
    /// [`ReceiveWindowConfig::unread`] in all, takes of the buffer; so the ACK that fills a hole
    /// advertises less than the ones before and after it, which a sender's header prediction
    /// notices. `None`: it is never short.
    ///
    /// Linux: `tcp_init_buffer_space`, `__tcp_select_window`; from 6.6 on more than the widest
    /// window that an ACK can say.
    /// Default: none; `linux`: 23172; `linux-6.6`: 29328.
    #[serde(default)]
    pub buffer: Option<u64>,
}

impl ReceiveWindowConfig {
    /// Payload of a segment, bytes: [`ReceiveWindowConfig::buffer`] counts so many as one.
    pub const SEGMENT: u64 = 1448;

    /// The window that an ACK says at most, segments: [`ReceiveWindowConfig::max`], or what of the
    /// buffer is not reserved.
    pub fn largest(&self) -> Option<u64> {
        let unreserved = self.buffer.map(|buffer| buffer.saturating_sub(1).max(1));
        self.max.into_iter().chain(unreserved).min()
    }

    /// Segments of `mss` bytes that Linux advertises at first: whole ones in half of the middle
    /// value of `tcp_rmem`, 131,072 bytes (`tcp_select_initial_window`).
    pub fn begins_with(mss: u32) -> u64 {
        (65_536 / u64::from(mss.max(1))).max(1)
    }

    /// Memory of a packet beside its payload, bytes: `sk_buff`, headers and `skb_shared_info`.
    const BESIDE: u64 = 768;

    /// Window that unread segments take, bytes: half of their memory. Those `ahead` of a hole have
    /// a packet each, those that are `in_order` have come together in packets of 17
    /// (`tcp_ofo_queue`, `skb_try_coalesce`, `MAX_SKB_FRAGS`).
    pub const fn unread(in_order: u64, ahead: u64) -> u64 {
        let packets = in_order.div_ceil(17) + ahead;
        ((in_order + ahead) * Self::SEGMENT + packets * Self::BESIDE) / 2
    }
}

/// While a hole is open, ACKs beyond the third for one cumulative number are merged (Linux
/// `__tcp_ack_snd_check`, `tcp_comp_sack_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckCompression {
    /// Longest time that an ACK waits.
    pub delay: Span,
    /// And no longer than RTT over this, at least 1.
    pub rtt_part: u64,
    /// How much later the timer goes off: the slack that the kernel gives it to share a wake-up.
    pub slack: Span,
    /// Most ACKs that become one.
    pub most: u32,
}

impl AckCompression {
    /// `tcp_comp_sack_delay_ns` 1 ms, 5 % of the RTT, `tcp_comp_sack_slack_ns` 100 us,
    /// `tcp_comp_sack_nr` 44.
    pub const LINUX: Self = Self {
        delay: Span::from_millis(1),
        rtt_part: 20,
        slack: Span::from_micros(100),
        most: 44,
    };
}

impl ReceiverConfig {
    /// A preset for segments of `mss` bytes.
    pub fn preset_for(preset: Preset, mss: u32) -> Self {
        let mut receiver = Self::preset(preset);
        if preset == Preset::Linux {
            receiver.window.first = Some(ReceiveWindowConfig::begins_with(mss));
        }
        receiver
    }

    /// A preset, for segments of 1448 bytes.
    pub fn preset(preset: Preset) -> Self {
        let modern = Self {
            acks: AckConfig {
                every: 2,
                delay: Span::from_millis(40),
                quick: 0,
                compression: None,
                hz: None,
            },
            sack: SackConfig {
                enabled: true,
                blocks: 3,
                whole: true,
            },
            window: ReceiveWindowConfig {
                max: None,
                first: None,
                widest: None,
                buffer: None,
            },
            paws: false,
            ecn: true,
            ce_echo: CeEcho::UntilCwr,
        };
        match preset {
            Preset::Y2026 => modern,
            Preset::Linux66 => Self::preset(Preset::Linux).with(|c| {
                c.window.first = Some(23_172);
                c.window.max = Some(29_328);
                c.window.buffer = Some(29_328);
            }),
            Preset::Y2003 => Self {
                acks: AckConfig {
                    delay: Span::from_millis(100),
                    ..modern.acks
                },
                ..modern
            },
            Preset::Linux => Self {
                acks: AckConfig {
                    quick: 16,
                    compression: Some(AckCompression::LINUX),
                    hz: Some(250),
                    ..modern.acks
                },
                sack: SackConfig {
                    whole: false,
                    ..modern.sack
                },
                // 64 KB to 32 MB.
                window: ReceiveWindowConfig {
                    first: Some(45),
                    max: Some(23_172),
                    widest: Some(23_172),
                    buffer: Some(23_172),
                },
                paws: true,
                ..modern
            },
        }
    }

    /// Moves a configuration made from the preset `own` to the preset `other`: every field that
    /// still has its value of `own` gets that of `other`, but those that `keeps` names, as
    /// `acks.delay`. A window that was set keeps its size, and begins as the other's.
    pub fn follow(&mut self, own: &Self, other: &Self, keeps: impl Fn(&str) -> bool) {
        let window = self.window.clone();
        follow! { self, own, other, keeps, Self {
            acks: AckConfig { every, delay, quick, compression, hz },
            sack: SackConfig { enabled, blocks, whole },
            window: ReceiveWindowConfig { first, max, widest, buffer },
            paws, ecn, ce_echo,
        }}
        if window != own.window {
            let first = self.window.first;
            self.window = ReceiveWindowConfig { first, ..window };
        }
    }

    /// This configuration after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
