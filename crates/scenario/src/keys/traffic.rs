//! Keys of `[[traffic]]`.

use super::super::value::Kind;
use super::flow::DIRECTIONS;
use super::transport::TRANSPORT;
use super::{ANY_TIME, Key, MICROSECOND, POSITIVE_TIME, Word, YEAR, concat, fixed, key, word};

/// `[[traffic]]`.
pub(crate) const TRAFFIC: &[Key] =
    &concat::<{ TRAFFIC_OWN.len() + TRANSPORT.len() }>(&[TRAFFIC_OWN, TRANSPORT]);

/// Those that a flow does not have, or not so.
pub(crate) const TRAFFIC_OWN: &[Key] = &[
    fixed("name", Kind::Name, "", r#""mice""#, "unique name; required"),
    key(
        "kind",
        Kind::Word(KINDS),
        "",
        r#""udp""#,
        "what it is; required",
    ),
    key(
        "enabled",
        Kind::Flag,
        "true",
        "false",
        "false: it is left out",
    ),
    key(
        "direction",
        Kind::Word(DIRECTIONS),
        r#""forward""#,
        r#""reverse""#,
        "way of the data",
    ),
    key("start", ANY_TIME, r#""0s""#, r#""10s""#, "it begins"),
    key(
        "stop",
        POSITIVE_TIME,
        "",
        r#""50s""#,
        "no new flow, datagram or probe after this time",
    ),
    key(
        "size",
        Kind::Either(&Kind::Volume, &Kind::Table(SIZE)),
        r#"(short-flows: required; ping: "64B")"#,
        r#"{ pareto = { mean = "10 segments", shape = 1.2 } }"#,
        "short-flows: length of a transfer, or its law; ping: bytes without the 28 of headers",
    ),
    key(
        "load",
        Kind::Fraction,
        "",
        r#""60%""#,
        "short-flows: Poisson arrivals that offer this part of the capacity, headers included, nothing resent",
    ),
    key(
        "per_second",
        Kind::Real {
            min: 1e-6,
            max: 1e6,
        },
        "",
        "5",
        "short-flows: Poisson arrivals at this rate",
    ),
    key(
        "every",
        POSITIVE_TIME,
        "",
        r#""200ms""#,
        "short-flows: time between two arrivals; udp-staircase: time on a step",
    ),
    key(
        "count",
        Kind::Whole {
            min: 1,
            max: 1_000_000,
            unit: "flows",
        },
        "",
        "300",
        "short-flows: so many in all, each at a uniform time `within`",
    ),
    key(
        "within",
        POSITIVE_TIME,
        "(until `stop` or the end)",
        r#""10s""#,
        "short-flows with `count`: time in which they arrive",
    ),
    key(
        "rate",
        Kind::Rate,
        "",
        r#""20Mbit/s""#,
        "udp, udp-on-off (while on), udp-blast: rate, headers included",
    ),
    key(
        "on",
        Kind::Span {
            min: MICROSECOND,
            max: YEAR,
        },
        "",
        r#""500ms""#,
        "udp-on-off: mean of the exponential times of sending",
    ),
    key(
        "off",
        Kind::Span {
            min: MICROSECOND,
            max: YEAR,
        },
        "",
        r#""500ms""#,
        "udp-on-off: mean of the exponential times of silence",
    ),
    key(
        "mean",
        Kind::Rate,
        "",
        r#""50Mbit/s""#,
        "udp-sine: rate(t) = mean + amplitude sin(2 pi t / period)",
    ),
    key(
        "amplitude",
        Kind::ZeroRate,
        "",
        r#""30Mbit/s""#,
        "udp-sine: at most the mean",
    ),
    key(
        "period",
        POSITIVE_TIME,
        "(udp-sine: required; the others: the last rate stays)",
        r#""60s""#,
        "udp-sine; udp-staircase, udp-file: begins anew after this time",
    ),
    key(
        "volume",
        Kind::Size,
        "(until `stop`)",
        r#""100MB""#,
        "udp-blast: bytes with headers, then silence",
    ),
    key(
        "from",
        Kind::ZeroRate,
        "",
        r#""10Mbit/s""#,
        "udp-staircase: first rate",
    ),
    key(
        "to",
        Kind::ZeroRate,
        "",
        r#""100Mbit/s""#,
        "udp-staircase: last rate, above or below the first",
    ),
    key(
        "step",
        Kind::Rate,
        "",
        r#""10Mbit/s""#,
        "udp-staircase: difference of two rates",
    ),
    key(
        "file",
        Kind::Text,
        "",
        r#""video.csv""#,
        "udp-file: lines of seconds and a rate that holds from then on; its path counts from the scenario file",
    ),
    key(
        "packet",
        Kind::Whole {
            min: 28,
            max: 65_535,
            unit: "bytes",
        },
        "(`path.mtu`)",
        "200",
        "udp: bytes of a datagram with its headers",
    ),
    key(
        "spacing",
        Kind::Word(SPACINGS),
        r#""even""#,
        r#""poisson""#,
        "udp: how datagrams follow one another",
    ),
    key(
        "interval",
        POSITIVE_TIME,
        r#""100ms""#,
        r#""1s""#,
        "ping: from one request to the next",
    ),
];

const KINDS: &[Word] = &[
    word(
        "short-flows",
        "connections that arrive, transfer something and end; they take the keys of a transport too",
    ),
    word("udp", "datagrams at a constant `rate`"),
    word(
        "udp-on-off",
        "at `rate` while on, for exponential times `on` and `off`",
    ),
    word("udp-sine", "`mean`, `amplitude`, `period`"),
    word("udp-blast", "at `rate` until `volume` is sent"),
    word("udp-staircase", "`from`, `to`, `step`, `every`"),
    word("udp-file", "rates from a `file`"),
    word("ping", "probes that are answered at once"),
];

const SPACINGS: &[Word] = &[
    word("even", "as even as the rate allows"),
    word("poisson", "exponential gaps"),
];

/// `size` as a table.
pub(crate) const SIZE: &[Key] = &[
    key(
        "uniform",
        Kind::Bounds,
        "",
        "[2, 30]",
        "whole segments from the first to the second, equally likely",
    ),
    key(
        "pareto",
        Kind::Table(PARETO),
        "",
        r#"{ mean = "10 segments", shape = 1.2 }"#,
        "Pareto law",
    ),
    key(
        "file",
        Kind::Text,
        "",
        r#""sizes.csv""#,
        "distribution function: lines of segments and the probability of at most so many, the last 1; linear in between",
    ),
];

/// `size.pareto`.
pub(crate) const PARETO: &[Key] = &[
    key(
        "mean",
        Kind::Volume,
        "",
        r#""10 segments""#,
        "mean of the law before it is cut; required",
    ),
    key(
        "shape",
        Kind::Real {
            min: 1.000_001,
            max: 100.0,
        },
        "",
        "1.2",
        "above 1; required",
    ),
    key(
        "most",
        Kind::Volume,
        "(1e9 segments)",
        r#""100000 segments""#,
        "larger transfers are cut to this",
    ),
];
