//! What the first flow does to the others, against the same case with another first flow: gain,
//! loss, harm.
//!
//! Gain and loss are the two ratios by which tests of "impact on standard traffic" compare camps
//! (tcpeval, draft-irtf-iccrg-tcpeval); with the baseline's own stack in the first flow both are 1.
//! Harm is that of Ware et al. 2019, `(solo - with) / solo` where more is better and `(with - solo)
//! / with` where less is better, taken against the baseline case instead of a case with the victims
//! alone: the harm beyond that of the baseline's stack, negative if they fare better.

use crate::metric::Metric;
use crate::number::{mean, ratio};
use crate::run_metrics::RunMetrics;
use crate::values::value;

/// `x / b`.
pub fn quotient(x: f64, b: f64) -> Option<f64> {
    ratio(x, b)
}

/// Harm where more is better: the fraction of `b` that is missing in `x`.
pub fn harm_of_more(x: f64, b: f64) -> Option<f64> {
    ratio(b - x, b)
}

/// Harm where less is better: the fraction of `x` that is not in `b`.
pub fn harm_of_less(x: f64, b: f64) -> Option<f64> {
    ratio(x - b, x)
}

/// Goodput of the first flow, Mbit/s.
pub fn first_goodput(run: &RunMetrics) -> Option<f64> {
    value(&run.flows.first()?.values, GOODPUT.name)
}

/// Of all flows but the first, Mbit/s.
pub fn other_goodput(run: &RunMetrics) -> Option<f64> {
    let others = others(run, GOODPUT)?;
    Some(others.iter().sum())
}

/// Mean over all flows but the first of their mean RTT, milliseconds.
pub fn other_rtt(run: &RunMetrics) -> Option<f64> {
    mean(&others(run, RTT)?)
}

/// Of a metric of every flow but the first; `None` if one has none or there is no such flow.
fn others(run: &RunMetrics, metric: &Metric) -> Option<Vec<f64>> {
    let others = run.flows.get(1..).filter(|o| !o.is_empty())?;
    others
        .iter()
        .map(|f| value(&f.values, metric.name))
        .collect()
}

/// Mean completion time of all short flows, seconds.
pub fn completion_time(run: &RunMetrics) -> Option<f64> {
    let rows = || run.traffic.iter().filter(|t| t.kind == SHORT_FLOWS);
    let of = |metric: &Metric| {
        let name = metric.name;
        rows().map(move |t| value(&t.values, name).unwrap_or(0.0))
    };
    let times = of(COMPLETION_TIME);
    let sum: f64 = of(COMPLETED).zip(times).map(|(n, x)| n * x).sum();
    ratio(sum, of(COMPLETED).sum())
}

const GOODPUT: &Metric = Metric::flow("goodput_mbps");
const RTT: &Metric = Metric::flow("rtt_ms.mean");
const COMPLETED: &Metric = Metric::traffic("completed");
const COMPLETION_TIME: &Metric = Metric::traffic("completion_time_s.mean");

/// What [`TrafficMetrics::kind`](crate::TrafficMetrics::kind) says of short flows.
const SHORT_FLOWS: &str = "short-flows";
