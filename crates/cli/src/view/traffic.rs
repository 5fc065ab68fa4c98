//! The table of short flows, datagrams and probes: one row per name and case.

use fullpipe_metrics::Scope;
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, RunResult, TrafficResult};

use super::column::{Column, add_params, optional, params_cells, shown};
use super::params_of;
use crate::table::{Align, Table};

pub(super) fn table(result: &RunResult) -> String {
    let all_params = params_of(&result.cases);
    let params = label::varying(&all_params);
    let rows: Vec<(&CaseResult, &TrafficResult)> = result
        .cases
        .iter()
        .flat_map(|c| c.traffic.iter().map(move |t| (c, t)))
        .collect();
    let values: Vec<_> = rows.iter().map(|(c, t)| (*c, &t.metrics)).collect();
    let columns = shown(COLUMNS, &values);
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
        cells.extend(values.map(|c| c.cell(Scope::Traffic, case, &row.metrics)));
        table.row(cells);
    }
    table.text()
}

const COLUMNS: &[Column] = &[
    optional(["arrivals", ""], "arrivals"),
    optional(["completed", ""], "completed"),
    optional(["complete", "mean s"], "completion_time_s.mean"),
    optional(["complete", "p95 s"], "completion_time_s.p95"),
    optional(["goodput", "Mbit/s"], "goodput_mbps"),
    optional(["sent", "Mbit/s"], "sent_mbps"),
    optional(["received", "Mbit/s"], "received_mbps"),
    optional(["delay mean", "ms"], "delay_ms.mean"),
    optional(["delay p95", "ms"], "delay_ms.p95"),
    optional(["rtt mean", "ms"], "rtt_ms.mean"),
    optional(["rtt p95", "ms"], "rtt_ms.p95"),
    optional(["inflation", ""], "rtt_inflation"),
    optional(["loss rate", ""], "loss_rate"),
];
