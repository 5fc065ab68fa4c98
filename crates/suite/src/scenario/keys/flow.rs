//! Keys of `[[flow]]`, and what a transport is.

use super::super::value::Kind;
use super::{ANY_TIME, HOUR, Key, POSITIVE_TIME, Word, concat, fixed, key, word};

/// `[[flow]]`.
pub(in crate::scenario) const FLOW: &[Key] =
    &concat::<{ OWN.len() + TRANSPORT.len() }>(&[OWN, TRANSPORT]);

const OWN: &[Key] = &[
    fixed(
        "name",
        Kind::Name,
        r#""main""#,
        r#""main""#,
        "unique name; may be left out if there is one flow",
    ),
    key(
        "streams",
        Kind::Whole {
            min: 1,
            max: 10_000,
            unit: "streams",
        },
        "1",
        "16",
        "number of equal connections from one host; they are named `<name>.1`, `<name>.2` and so on",
    ),
    key(
        "direction",
        Kind::Word(DIRECTIONS),
        r#""forward""#,
        r#""reverse""#,
        "way of the data",
    ),
    key(
        "start_spread",
        ANY_TIME,
        r#""0s""#,
        r#""100ms""#,
        "each stream starts later by a uniform part of this",
    ),
    key(
        "rtt_spread",
        Kind::Span { min: 0, max: HOUR },
        r#""0s""#,
        r#""10ms""#,
        "the delay of each stream is longer by a uniform part of this, drawn once per run",
    ),
    key(
        "enabled",
        Kind::Flag,
        "true",
        "false",
        "false: the flow is left out",
    ),
    key("start", ANY_TIME, r#""0s""#, r#""10s""#, "the flow begins"),
    key(
        "stop",
        POSITIVE_TIME,
        "",
        r#""50s""#,
        "no new data after this time",
    ),
    key(
        "size",
        Kind::Volume,
        "",
        r#""100MB""#,
        "length of a finite transfer of each stream; without it the flow sends until the end",
    ),
    key(
        "drop",
        Kind::OneOrMany(&Kind::Table(DROP)),
        "",
        r#"{ segment = 40 }"#,
        "losses of this flow at exact places or at random; a list of tables combines several, an empty list is none",
    ),
    key(
        "count",
        Kind::Word(COUNTS),
        r#"(of the preset: "acks" or "segments")"#,
        r#""acks""#,
        "what an increase law counts",
    ),
];

/// Ways of data.
pub(super) const DIRECTIONS: &[Word] = &[
    word("forward", "over the bottleneck; ACKs take the way back"),
    word(
        "reverse",
        "over the way back, which is then a bottleneck as well; ACKs take the bottleneck",
    ),
];

/// What a transport is, of a flow and of short flows.
pub(super) const TRANSPORT: &[Key] = &[
    key(
        "stack",
        Kind::Stack,
        "",
        r#""highspeed(low_window=31)+limited(max_ssthresh=100)""#,
        "congestion control: window law, start-up, initial sending; see `fullpipe list stacks`",
    ),
    key(
        "preset",
        Kind::Word(PRESETS),
        r#""2026""#,
        r#""2003""#,
        "named set of endpoint switches; any switch can be set beside it",
    ),
    key(
        "window",
        Kind::Window,
        "",
        r#""3500 segments""#,
        "cap of the congestion window; bytes are payload, 1BDP is rate x the flow's rtt in packets; whole segments, rounded down",
    ),
    key(
        "receive_window",
        Kind::Window,
        "",
        r#""8MB""#,
        "window that the receiver advertises",
    ),
    key(
        "initial_window",
        Kind::Segments { min: 1, max: 64 },
        r#"(of the preset: "2 segments" or "10 segments")"#,
        r#""2 segments""#,
        "initial window, whole segments",
    ),
    key(
        "delayed_ack",
        Kind::Flag,
        "true",
        "false",
        "false: every segment is acknowledged at once",
    ),
    key(
        "ack_every",
        Kind::Whole {
            min: 1,
            max: 64,
            unit: "segments",
        },
        "2",
        "4",
        "the receiver acknowledges every n-th segment",
    ),
    key(
        "ack_delay",
        Kind::Span {
            min: 1,
            max: 500_000_000,
        },
        r#"(of the preset: "100ms" or "40ms")"#,
        r#""200ms""#,
        "longest delay of an ACK, at most 500 ms (RFC 9293)",
    ),
    key(
        "rtt",
        Kind::Span { min: 1, max: HOUR },
        "(`path.rtt`)",
        r#""160ms""#,
        "the flow's own two-way propagation delay, at least that of the path",
    ),
    key(
        "recovery",
        Kind::Word(RECOVERIES),
        r#"(of the preset: "sack" or "rack")"#,
        r#""sack""#,
        "how losses are detected and repaired",
    ),
    key(
        "prr",
        Kind::Flag,
        "(of the preset: false or true)",
        "true",
        "proportional rate reduction (RFC 9937)",
    ),
    key(
        "tlp",
        Kind::Flag,
        "(of the preset: false or true)",
        "true",
        "tail loss probe (RFC 8985)",
    ),
    key(
        "frto",
        Kind::Flag,
        "(of the preset: false or true)",
        "true",
        "forward RTO recovery (RFC 5682)",
    ),
    key(
        "undo",
        Kind::Flag,
        "(of the preset: false or true)",
        "true",
        "undo reductions that prove spurious (RFC 3522, RFC 3708)",
    ),
    key(
        "min_rto",
        Kind::Span {
            min: 1_000_000,
            max: 60_000_000_000,
        },
        r#"(of the preset: "200ms" or "1s")"#,
        r#""200ms""#,
        "smallest retransmission timeout",
    ),
    key(
        "pacing",
        Kind::Flag,
        "(of the stack)",
        "true",
        "pace every segment at 2 x window/RTT in slow start and 1.2 x afterwards, as Linux does",
    ),
    key(
        "validation",
        Kind::Word(VALIDATIONS),
        r#"(of the preset: "none" or "rfc7661")"#,
        r#""none""#,
        "window validation after idle or application-limited time",
    ),
    key(
        "ecn",
        Kind::Flag,
        "false",
        "true",
        "ECN-capable transport (RFC 3168)",
    ),
    key(
        "sendstall",
        Kind::Word(SENDSTALLS),
        r#""react""#,
        r#""ignore""#,
        "answer to a full interface queue of the sender's own host",
    ),
    key(
        "txqueuelen",
        Kind::Whole {
            min: 1,
            max: 10_000_000,
            unit: "packets",
        },
        "",
        "100",
        "packets that may wait at the sender's interface; sets an interface in front of the bottleneck",
    ),
    key(
        "nic_rate",
        Kind::Rate,
        "(`path.rate`)",
        r#""1Gbit/s""#,
        "rate of that interface",
    ),
    key(
        "timestamps",
        Kind::Flag,
        "true",
        "false",
        "TCP time stamps: 52 bytes of headers and 3 SACK blocks, otherwise 40 bytes and 4 blocks",
    ),
    key(
        "handshake",
        Kind::Flag,
        "(of the preset: false or true)",
        "false",
        "open with SYN and SYN/ACK, one round trip before the data",
    ),
    key(
        "slow_start_limit",
        Kind::Real { min: 1.0, max: 1e6 },
        "(2, unlimited when paced)",
        "8",
        "most segments the window grows by per ACK in slow start (RFC 3465 `L`)",
    ),
    key(
        "lost_retransmission",
        Kind::Word(LOST_RETRANSMISSIONS),
        r#"(of the preset: "ignore" or "reduce")"#,
        r#""reduce""#,
        "answer to the loss of a retransmission",
    ),
    key(
        "decrease_base",
        Kind::Word(BASES),
        r#""flight""#,
        r#""cwnd""#,
        "what a reduction multiplies",
    ),
    key(
        "hz",
        Kind::Whole {
            min: 24,
            max: 10_000,
            unit: "",
        },
        "250",
        "100",
        "ticks per second of the hosts' timer clock (Linux `CONFIG_HZ`); the Linux stacks and the timers \"wheel\" follow it",
    ),
    key(
        "timers",
        Kind::Word(TIMERS),
        r#"(of the preset: "exact" or "wheel")"#,
        r#""exact""#,
        "when a timer goes off",
    ),
    key(
        "rto_formula",
        Kind::Word(RTO_FORMULAS),
        r#"(of the preset: "rfc6298" or "linux")"#,
        r#""rfc6298""#,
        "how the retransmission timeout follows from the RTT samples",
    ),
    key(
        "rtt_sample",
        Kind::Word(RTT_SAMPLES),
        r#"(of the preset: "newest" or "oldest")"#,
        r#""newest""#,
        "which segment of an ACK gives the sample of SRTT",
    ),
    key(
        "loss_window",
        Kind::Word(LOSS_WINDOWS),
        r#"(of the preset: "one" or "flight")"#,
        r#""one""#,
        "the window after a timeout",
    ),
    key(
        "recover_from_loss",
        Kind::Flag,
        "(of the preset: false or true)",
        "false",
        "a retransmission lost after a timeout begins a recovery with a reduction, as in Linux",
    ),
    key(
        "timeout_reduces_in_recovery",
        Kind::Flag,
        "(of the preset: true or false)",
        "true",
        "a timeout in fast recovery reduces once more (RFC 5681 section 3.1)",
    ),
    key(
        "head_restarts_timer",
        Kind::Flag,
        "(of the preset: false or true)",
        "false",
        "resending the first outstanding segment restarts the retransmission timer, as in Linux",
    ),
    key(
        "push",
        Kind::Flag,
        "(of the preset: false or true)",
        "false",
        "the application refills the send buffer in thirds and pushes the last segment of each, acknowledged at once (Linux)",
    ),
    key(
        "first_window",
        Kind::Segments {
            min: 1,
            max: 1_000_000,
        },
        r#"(of the preset: that of `receive_window`, or "45 segments")"#,
        r#""45 segments""#,
        "the advertised window begins with this and grows by two segments for each that arrives, acknowledged at once meanwhile (Linux)",
    ),
    key(
        "quick_acks",
        Kind::Whole {
            min: 0,
            max: 1000,
            unit: "segments",
        },
        "(of the preset: 0 or 16)",
        "0",
        "segments that are acknowledged at once at the start and after a duplicate or a silence, as Linux does",
    ),
    key(
        "merge_acks",
        Kind::Flag,
        "(of the preset: false or true)",
        "false",
        "ACKs beyond the third for one hole wait up to 1 ms and become one (Linux `tcp_comp_sack_delay_ns`)",
    ),
    key(
        "mtu",
        Kind::Whole {
            min: 68,
            max: 65535,
            unit: "bytes",
        },
        "(`path.mtu`)",
        "576",
        "bytes of a full packet of this flow, at most those of the path",
    ),
    key(
        "host",
        Kind::Name,
        "(of its own)",
        r#""server""#,
        "flows with the same host share its interface: one `txqueuelen`, one `nic_rate`",
    ),
    key(
        "tso",
        Kind::OrOff(&Kind::Volume),
        r#""off""#,
        r#""64kB""#,
        "segmentation offload: the sender emits trains of up to this many whole segments at once, a paced one of at most a millisecond of its rate",
    ),
];

const PRESETS: &[Word] = &[
    word(
        "2003",
        "SACK recovery without PRR, ACK counting, initial window 2, no handshake, no validation",
    ),
    word(
        "2026",
        "the RFCs of today: RACK-TLP, PRR, F-RTO, byte counting, initial window 10, RFC 7661",
    ),
    word(
        "linux",
        "Linux 6.1 with its default settings; its modules are the stacks `reno-linux`, `cubic-linux`, ...",
    ),
];

const RECOVERIES: &[Word] = &[
    word("rack", "RACK with SACK (RFC 8985)"),
    word("sack", "duplicate ACKs over the SACK scoreboard (RFC 6675)"),
    word("newreno", "duplicate ACKs without SACK (RFC 6582)"),
];

const TIMERS: &[Word] = &[
    word("exact", "at the time it was set for"),
    word(
        "wheel",
        "on a tick of the clock `hz`, rounded up and one tick later, as Linux does",
    ),
];

const RTO_FORMULAS: &[Word] = &[
    word("rfc6298", "SRTT + 4 RTTVAR, at least `min_rto`"),
    word(
        "linux",
        "SRTT + the largest deviation of a window, that at least `min_rto`",
    ),
];

const RTT_SAMPLES: &[Word] = &[
    word("newest", "the most recently sent"),
    word(
        "oldest",
        "the first sent, with the time its ACK was delayed, as Linux does",
    ),
];

const LOSS_WINDOWS: &[Word] = &[
    word("one", "one segment, all outstanding ones are lost"),
    word(
        "flight",
        "one more than what was sent less than an RTT ago, as Linux does",
    ),
];

const COUNTS: &[Word] = &[
    word("segments", "every newly delivered segment (RFC 3465)"),
    word(
        "acks",
        "every ACK, however much it covers (RFC 2581, ns-2, Linux 2.4)",
    ),
];

const VALIDATIONS: &[Word] = &[
    word("none", "keep the window"),
    word("rfc5681", "restart window after an idle timeout"),
    word("rfc2861", "halve per idle timeout, as Linux does"),
    word("rfc7661", "non-validated phase with pipeACK"),
];

const SENDSTALLS: &[Word] = &[
    word("react", "reduce once per window, as Linux does"),
    word("ignore", "wait until the queue drains"),
    word("exit-slow-start", "leave slow start without a reduction"),
];

const LOST_RETRANSMISSIONS: &[Word] = &[
    word("reduce", "one more reduction (RFC 5681, RFC 8985)"),
    word("ignore", "no further reduction, as Linux does"),
];

const BASES: &[Word] = &[
    word("flight", "the smaller of window and flight size (RFC 5681)"),
    word("cwnd", "the window, as Linux does"),
];

/// `flow.drop`.
pub(in crate::scenario) const DROP: &[Key] = &[
    key(
        "segment",
        Kind::OneOrMany(&Kind::Whole {
            min: 0,
            max: 1 << 40,
            unit: "",
        }),
        "",
        "[40, 41]",
        "first transmission of these segments; 0 is the first segment of data",
    ),
    key(
        "at_cwnd",
        Kind::Real { min: 1.0, max: 1e9 },
        "",
        "32",
        "once, the next new segment after the window first reaches this many segments",
    ),
    key(
        "every",
        Kind::Whole {
            min: 2,
            max: 1 << 40,
            unit: "",
        },
        "",
        "1000",
        "every n-th data packet",
    ),
    key(
        "probability",
        Kind::Fraction,
        "0",
        "1e-5",
        "each data packet with this probability",
    ),
    key(
        "time",
        Kind::OneOrMany(&ANY_TIME),
        "",
        r#""4.73s""#,
        "the next data packet after these times of the run",
    ),
    key(
        "where",
        Kind::Word(PLACES),
        r#""path""#,
        r#""sender""#,
        "who loses the segment",
    ),
];

const PLACES: &[Word] = &[
    word("path", "the packet is lost on its way"),
    word(
        "receiver",
        "the packet crosses the path and is thrown away where it arrives",
    ),
    word(
        "sender",
        "the packet arrives, the sender treats it as lost: one reduction per window, no retransmission",
    ),
];
