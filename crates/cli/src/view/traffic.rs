//! The table of short flows, datagrams and probes: one row per name and case.

use fullpipe_metrics::Metric;
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, RunResult, TrafficResult};

use super::column::{Column, add_params, asked, optional, params_cells, shown};
use super::params_of;
use crate::table::{Align, Table};

/// With the metrics that are asked for, or without any with those that are usual.
pub(super) fn table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    let all_params = params_of(&result.cases);
    let params = label::varying(&all_params);
    let rows: Vec<(&CaseResult, &TrafficResult)> = result
        .cases
        .iter()
        .flat_map(|c| c.traffic.iter().map(move |t| (c, t)))
        .collect();
    let values: Vec<_> = rows.iter().map(|(c, t)| (*c, &t.metrics)).collect();
    let asked = asked(metrics);
    let columns = match metrics.is_empty() {
        true => shown(COLUMNS, &values),
        false => asked.iter().collect(),
    };
    let mut table = Table::new();
    add_params(&mut table, &params);
    table.column(Align::Left, &["traffic"]);
    table.column(Align::Left, &["kind"]);
    for column in &columns {
        table.column(Align::Right, &column.head);
    }
    for (case, row) in rows {
        let mut cells = params_cells(case, &params);
        cells.extend([row.name.clone(), row.kind.clone()]);
        let values = columns.iter();
        cells.extend(values.map(|c| c.cell(case, &row.metrics)));
        table.row(cells);
    }
    table
}

const COLUMNS: &[Column] = &[
    optional(["arrivals", ""], Metric::traffic("arrivals")),
    optional(["completed", ""], Metric::traffic("completed")),
    optional(
        ["complete", "mean s"],
        Metric::traffic("completion_time_s.mean"),
    ),
    optional(
        ["complete", "p95 s"],
        Metric::traffic("completion_time_s.p95"),
    ),
    optional(["goodput", "Mbit/s"], Metric::traffic("goodput_mbps")),
    optional(["sent", "Mbit/s"], Metric::traffic("sent_mbps")),
    optional(["received", "Mbit/s"], Metric::traffic("received_mbps")),
    optional(["delay mean", "ms"], Metric::traffic("delay_ms.mean")),
    optional(["delay p95", "ms"], Metric::traffic("delay_ms.p95")),
    optional(["rtt mean", "ms"], Metric::traffic("rtt_ms.mean")),
    optional(["rtt p95", "ms"], Metric::traffic("rtt_ms.p95")),
    optional(["inflation", ""], Metric::traffic("rtt_inflation")),
    optional(["loss rate", ""], Metric::traffic("loss_rate")),
];
