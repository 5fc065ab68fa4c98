//! Keys of `[measure]`, `[[expect]]` and `[[report]]`.

use super::super::value::Kind;
use super::{ANY_TIME, Key, POSITIVE_TIME, Word, fixed, key, word};

/// `[measure]`.
pub(crate) const MEASURE: &[Key] = &[
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
    fixed(
        "precision",
        Kind::Fraction,
        "",
        r#""2%""#,
        "further seeds are run until the half width of the 95 % interval is at most this part of the mean",
    ),
    fixed(
        "precision_of",
        Kind::OneOrMany(&Kind::Text),
        r#"["goodput_mbps"]"#,
        r#"["goodput_mbps", "rtt_ms.p95"]"#,
        "metrics that `precision` asks it of, of every flow or link that has them",
    ),
    fixed(
        "max_seeds",
        Kind::Whole {
            min: 2,
            max: 1_000_000,
            unit: "seeds",
        },
        "30",
        "100",
        "no more seeds than this, precise or not",
    ),
    fixed(
        "baseline",
        Kind::Free,
        "",
        r#"{ "flow.main.stack" = "reno" }"#,
        "keys of [matrix] and values: harm and gain of every case are against the same case with these values",
    ),
];

/// `measure.recovered_at`.
pub(crate) const RECOVERED_AT: &[Key] = &[
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
pub(crate) const EXPECT: &[Key] = &[
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
    fixed(
        "quick",
        Kind::Flag,
        "(with and without `--quick`)",
        "false",
        "false: not with `--quick`; true: only with it",
    ),
];

/// `[[report]]`.
pub(crate) const REPORT: &[Key] = &[
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
        "`metric`, `matrix`: key of [matrix] along the horizontal axis",
    ),
    fixed(
        "y",
        Kind::Text,
        "",
        r#""recovery_time_s""#,
        "`metric`: the metric; `matrix`: key of [matrix] along the vertical axis",
    ),
    fixed(
        "metric",
        Kind::Text,
        "",
        r#""asymmetry""#,
        "`matrix`: the metric",
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
    word(
        "matrix",
        "a metric over two keys of [matrix], as a coloured table",
    ),
    word(
        "completion",
        "distribution of the completion times of short flows",
    ),
];
