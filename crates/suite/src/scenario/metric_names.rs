//! Names that `[[expect]]` and `[[report]]` accept, and what each is a metric of.

/// What a metric is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Flow,
    Link,
    Case,
}

use Scope::{Case, Flow, Link};

/// Every metric.
pub(super) const METRICS: &[(&str, Scope)] = &[
    ("goodput_mbps", Flow),
    ("throughput_mbps", Flow),
    ("rtt_ms.min", Flow),
    ("rtt_ms.mean", Flow),
    ("rtt_ms.p50", Flow),
    ("rtt_ms.p95", Flow),
    ("rtt_ms.p99", Flow),
    ("cwnd_segments.mean", Flow),
    ("cwnd_segments.max", Flow),
    ("retransmits", Flow),
    ("loss_events", Flow),
    ("timeouts", Flow),
    ("stability", Flow),
    ("recovery_time_s", Flow),
    ("completion_time_s", Flow),
    ("reopen_time_s", Flow),
    ("decrease_fraction", Flow),
    ("increase_per_rtt_first", Flow),
    ("increase_per_rtt_last", Flow),
    ("climb_time_s", Flow),
    ("mean_window", Flow),
    ("utilization", Link),
    ("drops", Link),
    ("delivered_packets", Link),
    ("queue_packets.mean", Link),
    ("queue_packets.max", Link),
    ("jain", Case),
    ("asymmetry", Case),
    ("aggregate_goodput_mbps", Case),
    ("convergence_time_s", Case),
];
