//! Queue disciplines and their keys.

use fullpipe_units::{BufferSize, Span};

use super::super::value::{HOUR, MICROSECOND, Words, by_variety, keys, kinds};

keys! {
    /// `queue` as a table.
    QueueTable {
        kind: word(QueueKind), "red", "discipline; required";
        ecn: flag [= false], true, "mark packets of flows with `ecn` instead of dropping them";
        min: buffer [or r#""5 packets"; adaptive-red: 5 ms, at least 5 packets"#], "5 packets",
            "red, adaptive-red: below this average nothing is dropped";
        max: buffer [or "three times `min`"], "15 packets",
            "red, adaptive-red: average from which the probability rises to 1";
        max_p: fraction [= 0.1], 0.02,
            "red, adaptive-red: drop probability at `max`, at the start of an adaptive one";
        weight: real(1e-9, 1.0)
            [or "0.002; adaptive-red: 1 - exp(-1/C) with C packets per second"], 0.002,
            "red, adaptive-red: weight of a new sample in the average";
        gentle: flag [= true], false,
            "red, adaptive-red: the probability reaches 1 at twice `max` instead of at `max`";
        target: span(1, HOUR) [shows of_kinds("target")], "5ms",
            "pie, codel, fq-codel: queueing delay aimed at";
        interval: span(1, HOUR) [= Span::from_millis(100)], "100ms",
            "codel, fq-codel: a round trip, the time a queue may stay above the target";
        update: span(MICROSECOND, HOUR) [= Span::from_millis(15)], "16ms",
            "pie: time between two updates of the probability";
        alpha: real(0.0, 1e6) [= 0.125], 0.125,
            "pie: weight of the distance from the target, per second";
        beta: real(0.0, 1e6) [= 1.25], 1.25, "pie: weight of the change of the delay, per second";
        max_burst: span(0, HOUR) [= Span::from_millis(150)], "150ms",
            "pie: nothing is dropped for so long after an idle time";
        mark_until: fraction [= 0.1], 0.1,
            "pie with `ecn`: above this probability packets are dropped after all";
        flows: whole(1, 65_536, "queues") [= 1024], 1024, "fq-codel: number of queues";
        quantum: whole(1, 1_000_000, "bytes") [or "`path.mtu`"], 1514,
            "fq-codel: bytes that a queue may send per round";
    }
}

kinds! {
    /// A queue discipline.
    Queue of QueueTable,
    /// Word of a queue discipline.
    by QueueKind {
        DropTail = "droptail", "packets that find the buffer full are lost" {};
        Red = "red", "random early detection (Floyd and Jacobson 1993)" {
            ecn: bool,
            min: Option<BufferSize>,
            max: Option<BufferSize>,
            max_p: f64,
            weight: f64 [= f64, 0.002],
            gentle: bool,
        };
        AdaptiveRed = "adaptive-red",
            "random early detection that sets itself (Floyd, Gummadi, Shenker 2001)" {
            ecn: bool,
            min: Option<BufferSize>,
            max: Option<BufferSize>,
            max_p: f64,
            weight: Option<f64>,
            gentle: bool,
        };
        Codel = "codel", "controlled delay (RFC 8289)" {
            ecn: bool,
            target: Span [= Span, Span::from_millis(5)],
            interval: Span,
        };
        FqCodel = "fq-codel", "flow queueing with controlled delay (RFC 8290)" {
            ecn: bool,
            target: Span [= Span, Span::from_millis(5)],
            interval: Span,
            flows: u32,
            quantum: Option<u32>,
        };
        Pie = "pie", "proportional integral controller (RFC 8033)" {
            ecn: bool,
            target: Span [= Span, Span::from_millis(15)],
            update: Span,
            alpha: f64,
            beta: f64,
            max_burst: Span,
            mark_until: f64,
        };
    }
}

/// The defaults that the kinds have of a key, each with its kind.
fn of_kinds(name: &str) -> String {
    let defaults = QueueKind::ALL.iter().filter_map(|kind| {
        let own = kind.own().iter().find(|own| own.key.name == name)?;
        Some((kind.word(), own.default.map(|default| default())))
    });
    by_variety("", &defaults.collect::<Vec<_>>())
}
