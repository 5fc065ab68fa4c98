//! What a transport is, of a flow and of short flows, and where each of its keys lands.

use fullpipe_cc::{Base, Count};
use fullpipe_flow::{
    AckCompression, CeEcho, Detector, HEADERS, LocalDrop, LossWindow, PacerRule, Preset,
    ReceiverConfig, Reduction, RtoRule, RttSample, SenderConfig, SpuriousRule, TimerGrain,
    Validation,
};
use fullpipe_units::{Segments, Span, WindowSize};

use crate::value::{HOUR, Target, Words, Written, default_of, keys, words};

/// Both ends of a connection: what the keys of a transport land on.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// Bytes of a full packet.
    pub packet: u32,
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
}

impl Ends {
    pub fn new(preset: Preset, packet: u32) -> Self {
        let sender = SenderConfig::preset(preset, packet);
        Self {
            packet,
            receiver: ReceiverConfig::preset_for(preset, sender.mss),
            sender,
        }
    }
}

impl Target for Ends {
    const BY: &'static str = "preset ";

    fn varieties() -> Vec<(&'static str, Self)> {
        let of = |preset: &Preset| (preset.word(), Ends::new(*preset, 1500));
        Preset::ALL.iter().map(of).collect()
    }
}

keys! {
    /// A transport.
    Transport => Ends {
        stack: stack ~ r#""cubic""# [
            !,
            at "sender.pacing.initial" "sender.pacing.gains" "sender.window.initial"
        ],
            "highspeed(low_window=31)+limited(max_ssthresh=100)",
            "congestion control: window law, start-up, initial sending; see `fullpipe list stacks`";
        preset: word(Preset) [= Preset::Y2026], "2003",
            "named set of endpoint switches; any switch can be set beside it";
        receiver: word(Acknowledges) [
            or "that of `preset`",
            at "receiver.acks.every" "receiver.acks.delay" "receiver.acks.quick"
            "receiver.acks.compression" "sender.timers.max_ack_delay"
        ], "solaris",
            "how an old system acknowledges: stands for `ack_every`, `ack_delay`, `quick_acks` \
             and `merge_acks` where they are not given";
        window: window [at "sender.window.max"], "3500 segments",
            "cap of the congestion window; bytes are payload, 1BDP is rate x the flow's rtt in \
             packets; whole segments, rounded down";
        receive_window: window [
            of |ends| Some(WindowSize::Segments(ends.receiver.window.max? as f64)),
            at "receiver.window.max" "receiver.window.widest" "receiver.window.buffer"
        ], "8MB", "window that the receiver advertises";
        initial_window: segments(1, 64) [
            of |ends| Some(Segments(ends.sender.window.initial)),
            at "sender.window.initial"
        ],
            "2 segments",
            "initial window, whole segments, however long they are: RFC 6928's cap of 14,600 bytes \
             for jumbo frames is left out, as in Linux";
        delayed_ack: flag [
            of |ends| Some(ends.receiver.acks.every > 1),
            at "receiver.acks.every"
        ], false,
            "false: every segment is acknowledged at once";
        ack_every: whole(1, 64, "segments") [
            of |ends| Some(ends.receiver.acks.every),
            at "receiver.acks.every"
        ], 4,
            "the receiver acknowledges every n-th segment";
        ack_delay: span(1, 500_000_000) [
            get |ends| Some(ends.receiver.acks.delay),
            set |ends, delay| {
                ends.receiver.acks.delay = delay;
                ends.sender.timers.max_ack_delay = ends.sender.timers.max_ack_delay.max(delay);
            },
            at "receiver.acks.delay" "sender.timers.max_ack_delay"
        ], "200ms", "longest delay of an ACK, at most 500 ms (RFC 9293)";
        rtt: span(1, HOUR) [or "`path.rtt`"], "160ms",
            "the flow's own two-way propagation delay, at least that of the path";
        recovery: word(Detector) [
            get |ends| Some(ends.sender.recovery.detector),
            set |ends, detector| {
                ends.sender.recovery.detector = detector;
                ends.receiver.sack.enabled = detector != Detector::NewReno;
            },
            at "sender.recovery.detector" "receiver.sack.enabled"
        ], "sack",
            "how losses are detected and repaired; `sack` and `newreno` with preset `linux` are not \
             the kernel's where a path reorders: it waits for more duplicates as it sees reordering \
             (`tcp_reordering`), without RACK too";
        prr: flag [
            get |ends| Some(ends.sender.recovery.reduction != Reduction::Immediate),
            set |ends, on| {
                let reduction = &mut ends.sender.recovery.reduction;
                *reduction = match (on, *reduction) {
                    (false, _) => Reduction::Immediate,
                    (true, Reduction::Immediate) => Reduction::Prr,
                    (true, of_preset) => of_preset,
                };
            },
            at "sender.recovery.reduction"
        ], true, "proportional rate reduction (RFC 9937)";
        tlp: flag [=> sender.recovery.tlp], true,
            "tail loss probe (RFC 8985) with `recovery` `rack`; preset `linux` probes with `sack` \
             too, as the kernel does";
        frto: flag [=> sender.recovery.frto], true, "forward RTO recovery (RFC 5682)";
        frto_by: word(SpuriousRule) [=> sender.recovery.frto_by], "linux",
            "whose forward RTO recovery";
        reordering_by: word(SpuriousRule) [=> sender.recovery.reordering_by], "linux",
            "whose rules say how long a late segment is waited for, and without RACK for how many \
             SACKed segments or duplicates";
        undo: flag [=> sender.recovery.undo], true,
            "undo reductions that prove spurious (RFC 3522, RFC 3708)";
        undo_by: word(SpuriousRule) [=> sender.recovery.undo_by], "linux",
            "whose rules tell by time stamps and DSACK that a reduction was spurious";
        min_rto: span(1_000_000, 60_000_000_000) [
            get |ends| Some(ends.sender.rto.min),
            set |ends, min| {
                ends.sender.rto.min = min;
                ends.sender.rto.max = ends.sender.rto.max.max(min);
            },
            at "sender.rto.min" "sender.rto.max"
        ], "200ms", "smallest retransmission timeout";
        pacing: flag [or "of the stack", at "sender.pacing.gains"], true,
            "pace every segment at 2 x window/RTT in slow start and 1.2 x afterwards, as Linux \
             does; `bbr`, `bbr-linux` and `udt` pace by themselves, and refuse `false`";
        pacer: word(PacerRule) [=> sender.pacing.rule], "linux",
            "how a paced segment waits for its time";
        validation: word(Validation) [=> sender.window.validation], "none",
            "window validation after idle or application-limited time";
        ecn: flag [=> sender.ecn], true,
            "ECN-capable transport (RFC 3168); without this key `dctcp` and `dctcp-linux` ask for it \
             themselves";
        ecn_echo: word(CeEcho) [=> receiver.ce_echo], "rfc8257",
            "how the receiver echoes marks; without this key it is \"rfc8257\" for `dctcp` and \
             `dctcp-linux`";
        sendstall: word(LocalDrop) [=> sender.host.local_drop], "ignore",
            "answer to a full interface queue of the sender's own host, which `tsq` mostly \
             prevents";
        nic_rate: rate [or "with `txqueuelen` that of the fastest link on the flow's way"],
            "10Gbit/s",
            "rate of the interface of the sender's host; without `nic_rate` and `txqueuelen` the \
             host is faster than any link, and bursts leave at once";
        txqueuelen: long(1, 10_000_000, "packets")
            [shows format!("(with `nic_rate` {TXQUEUELEN})")], 100,
            "packets that may wait at that interface (Linux `DEFAULT_TX_QUEUE_LEN`)";
        tsq: flag [=> sender.host.small_queue], true,
            "TCP small queues: a flow keeps at most a millisecond of its rate in the queue of its \
             host, or two buffers (Linux `tcp_small_queue_check`)";
        timestamps: flag [
            get |ends| Some(ends.sender.timestamps),
            set |ends, on| if !on {
                ends.sender.timestamps = false;
                ends.sender.header = HEADERS;
                ends.sender.mss = ends.packet.saturating_sub(HEADERS).max(1);
                ends.receiver.sack.blocks = 4;
            },
            at "sender.timestamps" "sender.header" "sender.mss" "receiver.sack.blocks"
            "receiver.paws"
        ], false,
            "TCP time stamps: 52 bytes of headers and 3 SACK blocks, otherwise 40 bytes, 4 \
             blocks and no Eifel detection (RFC 3522)";
        handshake: flag [=> sender.handshake], false,
            "open with SYN and SYN/ACK, one round trip before the data";
        handshake_ack: flag [=> sender.handshake_ack], false,
            "an ACK without data ends the handshake, before the first segment, as in Linux: it \
             takes a place in the buffer";
        slow_start_limit: real(1.0, 1e6) [
            shows default_of::<Ends>(|ends| Some(match ends.sender.window.slow_start_limit {
                None => "(2, unlimited when paced)".to_owned(),
                Some(f64::INFINITY) => "(unlimited)".to_owned(),
                Some(limit) => limit.written(),
            })),
            set |ends, limit| ends.sender.window.slow_start_limit = Some(limit),
            at "sender.window.slow_start_limit"
        ], 8, "most segments the window grows by per ACK in slow start (RFC 3465 `L`)";
        lost_retransmission: word(LostRetransmission) [
            get |ends| Some(match ends.sender.recovery.reduce_on_lost_retransmission {
                true => LostRetransmission::Reduce,
                false => LostRetransmission::Ignore,
            }),
            set |ends, answer| ends.sender.recovery.reduce_on_lost_retransmission =
                answer == LostRetransmission::Reduce,
            at "sender.recovery.reduce_on_lost_retransmission"
        ], "reduce", "answer to the loss of a retransmission";
        decrease_base: word(Base) [=> sender.window.decrease_base], "cwnd",
            "what a reduction multiplies; the Linux stacks, `bbr` and `udt` have rules of their own";
        hz: whole(24, 10_000, "") [
            get |ends| Some(ends.sender.timers.hz),
            set |ends, hz| {
                ends.sender.timers.hz = hz;
                ends.receiver.acks.hz = ends.receiver.acks.hz.map(|_| hz);
            },
            at "sender.timers.hz" "receiver.acks.hz"
        ], 100,
            "ticks per second of the hosts' timer clock (Linux `CONFIG_HZ`); the Linux stacks and \
             the timers \"wheel\" follow it";
        timers: word(TimerGrain) [
            get |ends| Some(ends.sender.timers.grain),
            set |ends, timers| {
                ends.sender.timers.grain = timers;
                let wheel = timers == TimerGrain::Wheel;
                ends.receiver.acks.hz = wheel.then_some(ends.sender.timers.hz);
            },
            at "sender.timers.grain" "receiver.acks.hz"
        ], "exact", "when a timer goes off";
        rto_formula: word(RtoRule) [=> sender.rto.rule], "rounds",
            "how the retransmission timeout follows from the RTT samples";
        rtt_sample: word(RttSample) [=> sender.rto.sample], "newest",
            "which segment of an ACK gives the sample of SRTT";
        loss_window: word(LossWindow) [=> sender.recovery.loss_window], "one",
            "the window after a timeout";
        recover_from_loss: flag [=> sender.recovery.recover_from_loss], false,
            "a retransmission lost after a timeout begins a recovery with a reduction (RFC 5681 \
             section 4.3), as in Linux";
        timeout_reduces_in_recovery: flag [=> sender.recovery.timeout_reduces_in_recovery], true,
            "a timeout in fast recovery reduces once more (RFC 5681 section 3.1)";
        steady_newreno: flag [=> sender.recovery.steady_newreno], false,
            "without SACK every partial ACK restarts the retransmission timer (RFC 6582 section 4, \
             \"Slow-but-Steady\"), as in Linux";
        head_restarts_timer: flag [=> sender.timers.head_restarts_rto], false,
            "resending the first outstanding segment restarts the retransmission timer (RFC 6675 \
             section 6), as in BSD, ns-2 and Linux";
        push: flag [=> sender.host.send_buffer], false,
            "the application writes through a send buffer of two windows, a third at a time, and \
             pushes the last segment of each write, acknowledged at once (Linux)";
        first_window: segments(1, 1_000_000) [
            shows default_of::<Ends>(|ends| Some(match ends.receiver.window.first {
                None => "(that of `receive_window`)".to_owned(),
                Some(n) => Segments(n as f64).written(),
            })),
            set |ends, first| ends.receiver.window.first = Some(first.0 as u64),
            at "receiver.window.first"
        ], "45 segments",
            "the advertised window begins with this and grows by two segments for each that \
             arrives, acknowledged at once meanwhile (Linux); by preset linux it begins with 64 \
             KiB, whole segments: 45 at an mtu of 1500, 7 at 9000";
        paws: flag [=> receiver.paws], true,
            "discard what is late behind a retransmission, by its time stamp (RFC 7323 section \
             5.3), and answer a SYN that comes again with the stamp of the first (Linux)";
        quick_acks: whole(0, 1000, "segments") [=> receiver.acks.quick], 0,
            "segments that are acknowledged at once at the start and after a duplicate or a \
             silence, as Linux does";
        merge_acks: flag [
            get |ends| Some(ends.receiver.acks.compression.is_some()),
            set |ends, on| ends.receiver.acks.compression = on.then(|| {
                ends.receiver.acks.compression.unwrap_or(AckCompression::LINUX)
            }),
            at "receiver.acks.compression"
        ], false,
            "ACKs beyond the third for one hole wait up to 1.1 ms and become one (Linux \
             `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`)";
        tcp_options: flag [=> sender.tcp_options], true,
            "SYNs and ACKs are as long as their options make them: a SYN and its answer 60 bytes, \
             an ACK with SACK blocks 4 more than others and 8 for each block; otherwise all have \
             the headers of a data segment";
        mtu: whole(68, 65535, "bytes") [
            or "`path.mtu`", at "sender.mss" "receiver.window.first"
        ], 576,
            "bytes of a full packet of this flow, at most those of the path";
        host: name [or "of its own"], "server",
            "flows with the same host share its interface: one `nic_rate`, one `txqueuelen`";
        tso: off(volume) [off, at "sender.host.tso_segments"], "64kB",
            "segmentation offload: the sender emits trains of up to this many whole segments at \
             once, a paced one of at most a millisecond of its rate";
        tso_autosize: flag [=> sender.host.tso_autosize], true,
            "with `tso`: trains hold a millisecond of the pacing rate whether paced or not, more \
             below an RTT of 16 ms, and wait for no late ACK (Linux `tcp_tso_autosize`, \
             `tcp_tso_should_defer`)";
    }
}

words! {
    Preset {
        Y2003 = "2003", "SACK recovery without PRR, ACK counting, initial window 2, no handshake, \
                         no validation";
        Y2026 = "2026", "the RFCs of today: RACK-TLP, PRR, F-RTO, byte counting, initial window \
                         10, RFC 7661";
        Linux = "linux", "Linux 6.1 with its default settings; its modules are the stacks \
                          `reno-linux`, `cubic-linux`, ...";
        Linux66 = "linux-6.6", "the same from Linux 6.6 on: the receive window begins with half \
                                of the buffer, so that soon every second segment is acknowledged";
    }
}

words! {
    /// Systems as receivers; [`Acknowledges::land`] has their sources.
    enum Acknowledges {
        Linux22 = "linux-2.2", "the first segment at once, then every second, after 20 ms at the \
                                latest";
        Linux24 = "linux-2.4", "16 segments at once at the start, then every second, after 40 ms \
                                at the latest";
        Solaris = "solaris", "every second segment from the start, after 100 ms at the latest \
                              (Solaris 9)";
    }
}

impl Acknowledges {
    /// Sets what the system does.
    ///
    /// Linux 2.2: `__tcp_ack_snd_check` waits for no third full segment, and
    /// `tcp_delack_estimator` enters quick ACK mode for one segment; its estimate of the time
    /// between segments ends at two ticks of 10 ms where they follow closely. Linux 2.4:
    /// `TCP_MAX_QUICKACKS` and `TCP_ATO_MIN`. Solaris: `tcp_deferred_acks_max` and
    /// `tcp_deferred_ack_interval`, in the Tunable Parameters Reference Manual of Solaris 9.
    pub fn land(self, ends: &mut Ends) {
        let (quick, delay) = match self {
            Self::Linux22 => (1, Span::from_millis(20)),
            Self::Linux24 => (16, Span::from_millis(40)),
            Self::Solaris => (0, Span::from_millis(100)),
        };
        let acks = &mut ends.receiver.acks;
        (acks.every, acks.quick, acks.delay) = (2, quick, delay);
        acks.compression = None;
        let most = &mut ends.sender.timers.max_ack_delay;
        *most = (*most).max(delay);
    }
}

words! {
    Detector {
        Rack = "rack", "RACK with SACK (RFC 8985)";
        Sack = "sack", "duplicate ACKs over the SACK scoreboard (RFC 6675)";
        NewReno = "newreno", "duplicate ACKs without SACK (RFC 6582)";
    }
}

words! {
    CeEcho {
        UntilCwr = "rfc3168", "from a mark until the sender says that it has reduced its window";
        EachChange = "rfc8257", "each segment's, what came before a change being acknowledged first";
    }
}

words! {
    TimerGrain {
        Exact = "exact", "at the time it was set for";
        Wheel = "wheel", "on a tick of the clock `hz`, rounded up and one tick later, as Linux \
                          does";
    }
}

words! {
    RtoRule {
        Rfc6298 = "rfc6298", "SRTT + 4 RTTVAR, at least `min_rto`";
        Rounds = "rounds", "the larger of that and of the same with one sample per round trip";
        Linux = "linux", "SRTT + the largest deviation of a window, that at least `min_rto`";
    }
}

words! {
    RttSample {
        Newest = "newest", "the most recently sent";
        Oldest = "oldest", "the first sent, with the time its ACK was delayed, as Linux does";
    }
}

words! {
    SpuriousRule {
        Rfc = "rfc", "the RFCs'";
        Linux = "linux", "those of Linux 6.1 (`net/ipv4/tcp_input.c`)";
    }
}

words! {
    LossWindow {
        One = "one", "one segment, all outstanding ones are lost";
        FlightPlusOne = "flight", "one more than what was sent less than an RTT ago, as Linux does";
    }
}

words! {
    Count {
        Segments = "segments", "every newly delivered segment (RFC 3465)";
        Acks = "acks", "every ACK, however much it covers (RFC 2581, ns-2, Linux 2.4); past slow \
                        start segments all the same in BIC above `low_window`, FAST without `mi`, \
                        LEDBAT and YeAH's fast mode";
    }
}

words! {
    Validation {
        None = "none", "keep the window";
        Rfc5681 = "rfc5681", "restart window after an idle timeout";
        Rfc2861 = "rfc2861", "halve per idle timeout, as Linux does";
        Rfc7661 = "rfc7661", "non-validated phase with pipeACK";
    }
}

words! {
    PacerRule {
        Credit = "credit", "a late one is made up for, by two segments or 1 ms of data at most";
        Linux = "linux", "the first ten leave unpaced; behind a late one at least half of the time \
                          is waited (`tcp_update_skb_after_send`)";
    }
}

words! {
    LocalDrop {
        React = "react", "reduce once per window, as Linux does";
        Ignore = "ignore", "wait until the queue drains";
        ExitSlowStart = "exit-slow-start", "leave slow start without a reduction";
    }
}

words! {
    /// Answer to the loss of a retransmission.
    enum LostRetransmission {
        Reduce = "reduce", "one more reduction (RFC 5681, RFC 8985)";
        Ignore = "ignore", "no further reduction, as Linux does";
    }
}

words! {
    Base {
        MinFlight = "flight", "the smaller of window and flight size (RFC 5681)";
        Cwnd = "cwnd", "the window, as Linux does";
        Sent = "sent", "as \"flight\", but in slow start what was in flight when the first lost \
                        segment left, about half";
    }
}

/// Packets that wait at an interface by default (Linux `DEFAULT_TX_QUEUE_LEN`,
/// `include/net/pkt_sched.h`, `net/core/dev.c`).
pub(crate) const TXQUEUELEN: u64 = 1000;
