//! The table of short flows, datagrams and probes: one row per name and case.

use fullpipe_metrics::Metric;
use fullpipe_results::label;
use fullpipe_results::result::RunResult;

use super::column::{Column, Row, optional};
use super::{column, params_of};
use crate::table::Table;

/// With the metrics that are asked for, or without any with those that are usual.
pub(super) fn table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    let params = params_of(&result.cases);
    let rows = result.cases.iter().zip(&params).flat_map(|(case, of)| {
        case.traffic.iter().map(move |t| Row {
            case,
            of,
            names: vec![t.name.clone(), t.kind.clone()],
            metrics: &t.metrics,
        })
    });
    let varying = label::varying(&params);
    let names = ["traffic", "kind"];
    column::table(&varying, &names, rows.collect(), COLUMNS, metrics)
}

const COLUMNS: &[Column] = &[
    optional(Metric::traffic("arrivals")),
    optional(Metric::traffic("completed")),
    optional(Metric::traffic("completion_time_s.mean")),
    optional(Metric::traffic("completion_time_s.p95")),
    optional(Metric::traffic("goodput_mbps")),
    optional(Metric::traffic("sent_mbps")),
    optional(Metric::traffic("received_mbps")),
    optional(Metric::traffic("delay_ms.mean")),
    optional(Metric::traffic("delay_ms.p95")),
    optional(Metric::traffic("rtt_ms.mean")),
    optional(Metric::traffic("rtt_ms.p95")),
    optional(Metric::traffic("rtt_inflation")),
    optional(Metric::traffic("loss_rate")),
];
