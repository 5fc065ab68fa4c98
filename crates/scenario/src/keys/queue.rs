//! Queue disciplines and their keys.

use super::super::value::Kind;
use super::{HOUR, Key, MICROSECOND, Word, key, word};

pub(super) const QUEUES: &[Word] = &[
    word("droptail", "packets that find the buffer full are lost"),
    word("red", "random early detection (Floyd and Jacobson 1993)"),
    word(
        "adaptive-red",
        "random early detection that sets itself (Floyd, Gummadi, Shenker 2001)",
    ),
    word("codel", "controlled delay (RFC 8289)"),
    word("fq-codel", "flow queueing with controlled delay (RFC 8290)"),
    word("pie", "proportional integral controller (RFC 8033)"),
];

/// `queue` as a table.
pub(crate) const QUEUE: &[Key] = &[
    key(
        "kind",
        Kind::Word(QUEUES),
        "",
        r#""red""#,
        "discipline; required",
    ),
    key(
        "ecn",
        Kind::Flag,
        "false",
        "true",
        "mark packets of flows with `ecn` instead of dropping them",
    ),
    key(
        "min",
        Kind::Buffer,
        r#"("5 packets"; adaptive-red: 5 ms, at least 5 packets)"#,
        r#""5 packets""#,
        "red, adaptive-red: below this average nothing is dropped",
    ),
    key(
        "max",
        Kind::Buffer,
        "(three times `min`)",
        r#""15 packets""#,
        "red, adaptive-red: average from which the probability rises to 1",
    ),
    key(
        "max_p",
        Kind::Fraction,
        "0.1",
        "0.02",
        "red, adaptive-red: drop probability at `max`, at the start of an adaptive one",
    ),
    key(
        "weight",
        Kind::Real {
            min: 1e-9,
            max: 1.0,
        },
        "(0.002; adaptive-red: 1 - exp(-1/C) with C packets per second)",
        "0.002",
        "red, adaptive-red: weight of a new sample in the average",
    ),
    key(
        "gentle",
        Kind::Flag,
        "true",
        "false",
        "red, adaptive-red: the probability reaches 1 at twice `max` instead of at `max`",
    ),
    key(
        "target",
        Kind::Span { min: 1, max: HOUR },
        r#"(pie: "15ms"; codel, fq-codel: "5ms")"#,
        r#""5ms""#,
        "pie, codel, fq-codel: queueing delay aimed at",
    ),
    key(
        "interval",
        Kind::Span { min: 1, max: HOUR },
        r#""100ms""#,
        r#""100ms""#,
        "codel, fq-codel: a round trip, the time a queue may stay above the target",
    ),
    key(
        "update",
        Kind::Span {
            min: MICROSECOND,
            max: HOUR,
        },
        r#""15ms""#,
        r#""16ms""#,
        "pie: time between two updates of the probability",
    ),
    key(
        "alpha",
        Kind::Real { min: 0.0, max: 1e6 },
        "0.125",
        "0.125",
        "pie: weight of the distance from the target, per second",
    ),
    key(
        "beta",
        Kind::Real { min: 0.0, max: 1e6 },
        "1.25",
        "1.25",
        "pie: weight of the change of the delay, per second",
    ),
    key(
        "max_burst",
        Kind::Span { min: 0, max: HOUR },
        r#""150ms""#,
        r#""150ms""#,
        "pie: nothing is dropped for so long after an idle time",
    ),
    key(
        "mark_until",
        Kind::Fraction,
        "0.1",
        "0.1",
        "pie with `ecn`: above this probability packets are dropped after all",
    ),
    key(
        "flows",
        Kind::Whole {
            min: 1,
            max: 65_536,
            unit: "queues",
        },
        "1024",
        "1024",
        "fq-codel: number of queues",
    ),
    key(
        "quantum",
        Kind::Whole {
            min: 1,
            max: 1_000_000,
            unit: "bytes",
        },
        "(`path.mtu`)",
        "1514",
        "fq-codel: bytes that a queue may send per round",
    ),
];
