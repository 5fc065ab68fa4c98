//! Keys of `[[flow]]`.

use super::super::value::Kind;
use super::transport::{COUNTS, TRANSPORT};
use super::{ANY_TIME, HOUR, Key, POSITIVE_TIME, Word, concat, fixed, key, word};

/// `[[flow]]`.
pub(crate) const FLOW: &[Key] = &concat::<{ OWN.len() + TRANSPORT.len() }>(&[OWN, TRANSPORT]);

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

/// `flow.drop`.
pub(crate) const DROP: &[Key] = &[
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
