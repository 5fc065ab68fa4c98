//! What two grounds must have in common, and how closely.

use fullpipe_metrics::{Metric, Scope};

pub use fullpipe_metrics::{COMPLETION_AREA, CWND_AREA, LOSS_TIME, MEASURES};

/// True for the numbers that two grounds must have in common.
pub fn is_judged(scope: Scope, metric: &str) -> bool {
    let judged = |m: &&Metric| m.scope == scope && m.name == metric;
    JUDGED.iter().any(judged)
}

/// Those of them that two single runs in real time must have in common: not the counts, in which
/// chance alone makes several times as much of little.
pub fn is_judged_of_one_run(scope: Scope, metric: &str) -> bool {
    is_judged(scope, metric) && fullpipe_metrics::find(scope, metric).is_some_and(|m| !m.count)
}

const LOSS_EVENTS: &Metric = Metric::flow("loss_events");
const TIMEOUTS: &Metric = Metric::flow("timeouts");
const JUDGED: [&Metric; 9] = [
    Metric::flow("goodput_mbps"),
    Metric::flow("rtt_ms.mean"),
    Metric::flow("retransmits"),
    LOSS_EVENTS,
    TIMEOUTS,
    Metric::flow("completion_time_s"),
    Metric::traffic("completion_time_s.mean"),
    Metric::traffic("rtt_ms.mean"),
    Metric::traffic("received_mbps"),
];

/// The threshold of a metric or measure where it is not that of all.
pub fn threshold(name: &str) -> Option<f64> {
    match name {
        // As many on both sides.
        name if [LOSS_EVENTS.name, TIMEOUTS.name].contains(&name) => Some(0.0),
        // One round trip.
        LOSS_TIME => Some(1.0),
        _ => None,
    }
}
