//! What two grounds must have in common, and how closely.

use fullpipe_metrics::Scope;

/// Relative area between the windows.
pub const CWND_AREA: &str = "cwnd_area";
/// Largest difference of the times of two congestion events, in round trips.
pub const LOSS_TIME: &str = "loss_time_rtt";
/// Relative area between the distributions of completion times.
pub const COMPLETION_AREA: &str = "completion_area";
/// Every measure.
pub const MEASURES: [&str; 3] = [CWND_AREA, LOSS_TIME, COMPLETION_AREA];

/// True for the numbers that two grounds must have in common.
pub fn is_judged(scope: Scope, metric: &str) -> bool {
    let names: &[&str] = match scope {
        Scope::Flow => &[
            "goodput_mbps",
            "rtt_ms.mean",
            "retransmits",
            "loss_events",
            "timeouts",
            "completion_time_s",
        ],
        Scope::Traffic => &["completion_time_s.mean", "rtt_ms.mean", "received_mbps"],
        Scope::Link | Scope::Case => &[],
    };
    names.contains(&metric)
}

/// The threshold of a metric or measure where it is not that of all.
pub fn threshold(name: &str) -> Option<f64> {
    match name {
        // As many on both sides.
        "loss_events" | "timeouts" => Some(0.0),
        // One round trip.
        LOSS_TIME => Some(1.0),
        _ => None,
    }
}
