//! The numbers of one run.

use serde::{Deserialize, Serialize};

use crate::fidelity::Fidelity;
use crate::values::Values;

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Flows of the scenario, in its order.
    pub flows: Vec<FlowMetrics>,
    /// Short flows, datagrams and probes, in this order.
    #[serde(default)]
    pub traffic: Vec<TrafficMetrics>,
    /// Links, in the order of the specification.
    pub links: Vec<LinkMetrics>,
    /// Metrics of the case.
    pub metrics: Values,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver.
    pub delivered_packets: u64,
    /// How true a real path was; absent where time is virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Box<Fidelity>>,
    /// Why the run ended before its time, and what is missing of it; absent of a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

/// Metrics of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Name in the scenario.
    pub name: String,
    /// Canonical spelling of the stack; of one that changes every one that it had
    /// ([`fullpipe_run::FlowOutcome::stack`]).
    pub stack: String,
    /// Values by metric name (`rtt_ms.p95`, `var.w_max.last`).
    pub values: Values,
}

/// Metrics of short flows, datagrams or probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficMetrics {
    /// Name in the scenario.
    pub name: String,
    /// `short-flows`, `ping`, or `udp` with what its rate does (`udp-sine`).
    pub kind: String,
    /// Canonical spelling of the stack of short flows; empty for the others.
    pub stack: String,
    /// By name; only those of its kind.
    pub values: Values,
}

/// Metrics of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMetrics {
    /// Name in the scenario.
    pub name: String,
    /// Values by metric name (`queue_packets.mean`).
    pub values: Values,
}

/// One run's part of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedRun {
    /// Seed.
    pub seed: u64,
    /// Values of this run.
    pub metrics: RunMetrics,
}
