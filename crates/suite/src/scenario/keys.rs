//! The keys of a scenario file: name, values, default, example and description, once.
//!
//! Reading, the search for the nearest name, the JSON Schema and `docs/scenario.md` all come from these tables.

use super::value::Kind;

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written in the file, or words in parentheses; empty: none.
    pub default: &'static str,
    /// As it would be written in the file.
    pub example: &'static str,
    /// Sentence without a full stop.
    pub doc: &'static str,
    /// May stand in `[matrix]`.
    pub varies: bool,
}

/// One word of a choice.
#[derive(Debug)]
pub(super) struct Word {
    pub word: &'static str,
    pub doc: &'static str,
    /// The engine runs it; otherwise it is known and refused.
    pub runs: bool,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        example,
        doc,
        varies: true,
    }
}

const fn fixed(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        example,
        doc,
        varies: false,
    }
}

const fn word(word: &'static str, doc: &'static str) -> Word {
    Word {
        word,
        doc,
        runs: true,
    }
}

const fn later(word: &'static str, doc: &'static str) -> Word {
    Word {
        word,
        doc,
        runs: false,
    }
}

const HOUR: u64 = 3_600_000_000_000;
const YEAR: u64 = 8760 * HOUR;
const ANY_TIME: Kind = Kind::Span { min: 0, max: YEAR };
const POSITIVE_TIME: Kind = Kind::Span { min: 1, max: YEAR };

/// Top level of the file.
pub(super) const TOP: &[Key] = &[
    fixed(
        "name",
        Kind::Name,
        "",
        r#""early-loss""#,
        "name of the scenario, and of its directory when several are run",
    ),
    fixed(
        "about",
        Kind::Text,
        r#""""#,
        r#""Time to full bandwidth after one early loss""#,
        "what it shows, with its sources",
    ),
    key(
        "duration",
        POSITIVE_TIME,
        "",
        r#""60s""#,
        "virtual time of a run",
    ),
    fixed(
        "seeds",
        Kind::Seeds,
        "1",
        "[1, 2, 3]",
        "seeds of every case: a number `n` stands for 1 to n, a list for itself",
    ),
    fixed(
        "path",
        Kind::Table(PATH),
        "",
        "",
        "the bottleneck of a dumbbell, shared by all flows",
    ),
    fixed(
        "flow",
        Kind::Tables(FLOW),
        "",
        "",
        "one sender and its receiver",
    ),
    fixed(
        "traffic",
        Kind::Reserved {
            what: "cross traffic",
            hint: "use a second [[flow]] with its own `start`, `stop` and `size`",
        },
        "",
        "",
        "cross traffic, short flows and pings: not in this version",
    ),
    fixed(
        "link",
        Kind::Reserved {
            what: "a graph of links",
            hint: "describe the bottleneck in [path]",
        },
        "",
        "",
        "links of other graphs: not in this version",
    ),
    fixed(
        "route",
        Kind::Reserved {
            what: "a graph of links",
            hint: "every flow crosses the bottleneck of [path]",
        },
        "",
        "",
        "routes over other graphs: not in this version",
    ),
    fixed(
        "matrix",
        Kind::Free,
        "",
        r#"{ "path.mtu" = [1500, 9000] }"#,
        "dotted keys and lists of values: the product of all lists is run, the last key varies fastest",
    ),
    fixed(
        "measure",
        Kind::Table(MEASURE),
        "",
        "",
        "what is measured and from when",
    ),
    fixed(
        "expect",
        Kind::Tables(EXPECT),
        "",
        "",
        "a bound that the result must keep",
    ),
    fixed("report", Kind::Tables(REPORT), "", "", "a figure to draw"),
];

/// `[path]`.
pub(super) const PATH: &[Key] = &[
    key(
        "rate",
        Kind::Rate,
        "",
        r#""500Mbit/s""#,
        "capacity of the bottleneck, packet headers included",
    ),
    key(
        "rtt",
        Kind::Span { min: 1, max: HOUR },
        "",
        r#""80ms""#,
        "two-way propagation delay",
    ),
    key(
        "buffer",
        Kind::Buffer,
        r#""1BDP""#,
        r#""200 packets""#,
        "room at the bottleneck, the packet in transmission included; 1BDP is rate x rtt in whole packets",
    ),
    key(
        "queue",
        Kind::Word(QUEUES),
        r#""droptail""#,
        r#""droptail""#,
        "queue discipline",
    ),
    key(
        "mtu",
        Kind::Whole {
            min: 68,
            max: 65535,
            unit: "bytes",
        },
        "1500",
        "9000",
        "bytes of a full packet, IP and TCP headers included",
    ),
    key(
        "loss",
        Kind::Either(&Kind::Fraction, &Kind::Table(LOSS)),
        "0",
        r#""0.01%""#,
        "random loss of data packets before the bottleneck: a probability, or a table",
    ),
];

const QUEUES: &[Word] = &[
    word("droptail", "packets that find the buffer full are lost"),
    later("red", "random early detection"),
    later("codel", "controlled delay"),
    later("fq-codel", "flow queueing with controlled delay"),
    later("pie", "proportional integral controller"),
];

/// `path.loss` as a table.
pub(super) const LOSS: &[Key] = &[
    key(
        "model",
        Kind::Word(LOSS_MODELS),
        "",
        r#""gilbert-elliott""#,
        "loss process",
    ),
    key(
        "probability",
        Kind::Fraction,
        "",
        "1e-4",
        "bernoulli: probability of loss of each packet",
    ),
    key(
        "to_bad",
        Kind::Fraction,
        "",
        "1e-4",
        "gilbert-elliott: from the good to the bad state, per packet",
    ),
    key(
        "to_good",
        Kind::Fraction,
        "",
        "0.1",
        "gilbert-elliott: from the bad to the good state, per packet",
    ),
    key(
        "good",
        Kind::Fraction,
        "0",
        "0",
        "gilbert-elliott: probability of loss in the good state",
    ),
    key(
        "bad",
        Kind::Fraction,
        "1",
        "0.5",
        "gilbert-elliott: probability of loss in the bad state",
    ),
];

const LOSS_MODELS: &[Word] = &[
    word("bernoulli", "each packet independently"),
    word("gilbert-elliott", "two states, one step per packet"),
];

/// `[[flow]]`.
pub(super) const FLOW: &[Key] = &[
    fixed(
        "name",
        Kind::Name,
        r#""main""#,
        r#""main""#,
        "unique name; may be left out if there is one flow",
    ),
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
        "count",
        Kind::Word(COUNTS),
        r#"(of the preset: "acks" or "segments")"#,
        r#""acks""#,
        "what an increase law counts",
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
        "drop",
        Kind::OneOrMany(&Kind::Table(DROP)),
        "",
        r#"{ segment = 40 }"#,
        "losses of this flow at exact places or at random; a list of tables combines several, an empty list is none",
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
pub(super) const DROP: &[Key] = &[
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
        "sender",
        "the packet arrives, the sender treats it as lost: one reduction per window, no retransmission",
    ),
];

/// `[measure]`.
pub(super) const MEASURE: &[Key] = &[
    key(
        "interval",
        POSITIVE_TIME,
        r#"("5s", or 1/20 of the duration if that is shorter)"#,
        r#""5s""#,
        "width of a throughput sample",
    ),
    key(
        "warmup",
        ANY_TIME,
        r#""0s""#,
        r#""20s""#,
        "means and percentiles count from here",
    ),
    key(
        "recovered_at",
        Kind::Table(RECOVERED_AT),
        "{ rate = 0.95 }",
        r#"{ window = "1BDP" }"#,
        "when a flow counts as recovered from a loss",
    ),
    fixed(
        "trace",
        Kind::Word(TRACES),
        r#""decimated""#,
        r#""full""#,
        "time series that are kept",
    ),
];

/// `measure.recovered_at`.
pub(super) const RECOVERED_AT: &[Key] = &[
    key(
        "rate",
        Kind::Fraction,
        "0.95",
        "0.95",
        "the rate delivered over one RTT reaches this part of the smaller of capacity and window/RTT",
    ),
    key(
        "window",
        Kind::Either(
            &Kind::Window,
            &Kind::Real {
                min: 1e-6,
                max: 1.0,
            },
        ),
        "",
        r#""1BDP""#,
        "the congestion window reaches this size, or this part (a plain number) of the flow's `window`",
    ),
];

const TRACES: &[Word] = &[
    word("decimated", "about 2000 rows per flow, extremes kept"),
    word("full", "one row per ACK"),
    word("off", "none"),
];

/// `[[expect]]`.
pub(super) const EXPECT: &[Key] = &[
    fixed(
        "metric",
        Kind::Text,
        "",
        r#""goodput_mbps""#,
        "metric, see `fullpipe list metrics`",
    ),
    fixed(
        "flow",
        Kind::Text,
        "(the only flow)",
        r#""main""#,
        "flow it is taken from",
    ),
    fixed(
        "link",
        Kind::Text,
        r#""bottleneck""#,
        r#""bottleneck""#,
        "link it is taken from, for metrics of links",
    ),
    fixed(
        "where",
        Kind::Free,
        "(every case)",
        r#"{ "path.mtu" = 1500 }"#,
        "keys of [matrix] and one of their values, or a list of them: the cases it applies to",
    ),
    fixed(
        "within",
        Kind::Bounds,
        "",
        "[252, 312]",
        "smallest and largest accepted value",
    ),
    fixed(
        "agrees_with",
        Kind::Free,
        "",
        r#"{ "flow.main.drop.where" = "sender" }"#,
        "keys of [matrix] and values: the 95 % interval must overlap that of the same case with these values; needs several seeds",
    ),
    fixed(
        "ratio_to",
        Kind::Free,
        "",
        r#"{ "flow.main.stack" = "reno" }"#,
        "keys of [matrix] and values: the bound is one on the quotient of the value and that of the same case with these values",
    ),
    fixed(
        "at_least",
        Kind::Real {
            min: f64::MIN,
            max: f64::MAX,
        },
        "",
        "100",
        "smallest accepted value",
    ),
    fixed(
        "at_most",
        Kind::Real {
            min: f64::MIN,
            max: f64::MAX,
        },
        "",
        "0.05",
        "largest accepted value",
    ),
    fixed(
        "equals",
        Kind::Real {
            min: f64::MIN,
            max: f64::MAX,
        },
        "",
        "0.329878",
        "expected value, with `tolerance`",
    ),
    fixed(
        "tolerance",
        Kind::Tolerance,
        "",
        r#""10%""#,
        "accepted distance from `equals`: a number, or a percentage of it",
    ),
    fixed(
        "name",
        Kind::Text,
        "(metric, flow and where)",
        r#""Reno, 1500 B""#,
        "name in the result",
    ),
    fixed(
        "source",
        Kind::Text,
        r#""""#,
        r#""RFC 3649 appendix B""#,
        "where the bound comes from",
    ),
];

/// `[[report]]`.
pub(super) const REPORT: &[Key] = &[
    fixed(
        "figure",
        Kind::Word(FIGURES),
        r#""cwnd""#,
        r#""cwnd""#,
        "what is drawn",
    ),
    fixed(
        "flow",
        Kind::Text,
        "(all)",
        r#""main""#,
        "flow that is drawn",
    ),
    fixed(
        "x",
        Kind::Text,
        "",
        r#""path.mtu""#,
        "figure of a metric: key of [matrix] along the horizontal axis",
    ),
    fixed(
        "y",
        Kind::Text,
        "",
        r#""recovery_time_s""#,
        "figure of a metric: the metric",
    ),
    fixed(
        "title",
        Kind::Text,
        "",
        r#""Window after one loss""#,
        "heading",
    ),
];

const FIGURES: &[Word] = &[
    word("cwnd", "congestion window over time"),
    word("rtt", "round-trip time over time"),
    word("goodput", "goodput over time"),
    word("queue", "queue of the bottleneck over time"),
    word("metric", "a metric over the cases"),
];

#[cfg(test)]
mod tests {
    use super::super::document::{Data, Sources};
    use super::super::matrix::nested;
    use super::super::value::Reader;
    use super::*;

    /// Every key of every table, with its table's name.
    fn all() -> Vec<(String, &'static Key)> {
        fn walk(path: &str, keys: &'static [Key], out: &mut Vec<(String, &'static Key)>) {
            for key in keys {
                let full = format!("{path}.{}", key.name);
                out.push((full.clone(), key));
                let inner = match key.kind {
                    Kind::Tables(keys) => Some(keys),
                    _ => nested(&key.kind),
                };
                walk(&full, inner.unwrap_or_default(), out);
            }
        }
        let mut out = Vec::new();
        walk("", TOP, &mut out);
        out
    }

    #[test]
    fn defaults_and_examples_are_values_of_their_keys() {
        for (path, key) in all() {
            for text in [key.default, key.example] {
                if text.is_empty() || text.starts_with('(') {
                    continue;
                }
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, faults) = sources.parse(source);
                assert!(faults.is_empty(), "{path}: {text}: {faults:?}");
                let mut reader = Reader {
                    sources: &sources,
                    faults: Vec::new(),
                };
                let value = reader.value(&key.kind, &entries[0].node, &path, "");
                assert!(
                    value.is_some() && reader.faults.is_empty(),
                    "{path}: {text}: {:?}",
                    reader.faults
                );
            }
        }
    }

    #[test]
    fn keys_are_documented_and_unique() {
        let all = all();
        for (path, key) in &all {
            assert!(!key.doc.is_empty() && !key.doc.ends_with('.'), "{path}");
            let table = matches!(
                key.kind,
                Kind::Table(_) | Kind::Tables(_) | Kind::Reserved { .. }
            );
            assert!(table || !key.example.is_empty(), "{path} has no example");
        }
        let mut names: Vec<&String> = all.iter().map(|(path, _)| path).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    /// A value of any shape is read, or refused with a fault.
    #[test]
    fn every_kind_refuses_every_other_shape() {
        let shapes = [
            "\"\"",
            "\"x\"",
            "0",
            "-1",
            "1e300",
            "nan",
            "inf",
            "true",
            "1979-05-27",
            "[]",
            "[[]]",
            "{}",
            "[{}]",
            "\"\\u0000\"",
        ];
        for (path, key) in all() {
            for text in shapes {
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, _) = sources.parse(source);
                let mut reader = Reader {
                    sources: &sources,
                    faults: Vec::new(),
                };
                let value = reader.value(&key.kind, &entries[0].node, &path, key.example);
                let reserved = matches!(key.kind, Kind::Reserved { .. });
                assert!(
                    value.is_some() || reserved || !reader.faults.is_empty(),
                    "{path} = {text}"
                );
                if matches!(entries[0].node.data, Data::Date) {
                    assert!(value.is_none(), "{path} = {text}");
                }
            }
        }
    }
}
