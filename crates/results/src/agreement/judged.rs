//! What two grounds must have in common, and how closely.

use fullpipe_metrics::{Metric, Scope};

pub use fullpipe_metrics::{COMPLETION_AREA, CWND_AREA, LOSS_TIME, MEASURES};

/// True for the numbers that two grounds must have in common.
pub fn is_judged(scope: Scope, metric: &str) -> bool {
    let judged = |m: &&Metric| m.scope == scope && m.name == metric;
    JUDGED.iter().any(judged)
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
