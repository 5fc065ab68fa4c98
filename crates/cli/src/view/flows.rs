//! The table of flows: one row per flow and case.

use fullpipe_cc::StackSpec;
use fullpipe_metrics::{Metric, Scope, jain, names_of};
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, Estimates, FlowResult, RunResult};

use super::column::{
    Column, add_params, asked, column, optional, params_cells, rare, shown, told_apart,
};
use super::params_of;
use crate::table::{Align, Table, number};

/// Parameters of a case.
type Texts = Vec<(String, String)>;

/// With the metrics that are asked for, or without any with those that are usual.
pub(super) fn table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    let all_params = params_of(&result.cases);
    let params = label::varying(&all_params);
    let cases = result.cases.iter().zip(&all_params);
    let rows: Vec<(&CaseResult, &Texts, &FlowResult)> = cases
        .flat_map(|(c, p)| c.flows.iter().map(move |f| (c, p, f)))
        .collect();
    let first_name = rows.first().map(|(.., f)| f.name.as_str());
    let named = rows
        .iter()
        .any(|(.., f)| Some(f.name.as_str()) != first_name);
    let shown_by_param = |(case, _, flow): &(&CaseResult, _, &FlowResult)| {
        let key = format!("flow.{}.stack", flow.name);
        let written = case
            .params
            .text(&key)
            .filter(|_| params.iter().any(|(k, _)| *k == key));
        // The scenario may spell a stack in another way than the registry.
        written.is_some_and(|s| StackSpec::parse(&s).is_ok_and(|s| s.to_string() == flow.stack))
    };
    let with_stack = !rows.iter().all(shown_by_param);
    let values: Vec<_> = rows.iter().map(|(c, _, f)| (*c, &f.metrics)).collect();
    let asked = asked(metrics);
    let columns = match metrics.is_empty() {
        true => shown(COLUMNS, &values),
        false => asked.iter().collect(),
    };
    let limited = metrics.is_empty() && rows.iter().any(|(.., f)| limited_by(&f.metrics).is_some());
    let names = [(named, "flow"), (with_stack, "stack")];
    let names: Vec<&str> = names.iter().filter(|n| n.0).map(|n| n.1).collect();
    let params = told_apart(&params, &names);
    let mut table = Table::new();
    add_params(&mut table, &params);
    for head in names {
        table.column(Align::Left, &[head]);
    }
    for column in &columns {
        table.column(Align::Right, &column.head());
    }
    if limited {
        table.column(Align::Left, &["limited by"]);
    }
    for (case, of, flow) in rows {
        let mut row = params_cells(of, &params);
        if named {
            row.push(flow.name.clone());
        }
        if with_stack {
            row.push(flow.stack.clone());
        }
        let cells = columns.iter();
        row.extend(cells.map(|c| c.cell(case, &flow.metrics)));
        if limited {
            let word = limited_by(&flow.metrics);
            row.push(word.unwrap_or_else(|| "-".to_owned()));
        }
        table.row(row);
    }
    table
}

/// Streams of flows that have several, below their sums, and how they shared.
pub(super) fn streams(result: &RunResult) -> String {
    let mut out = String::new();
    let flows = result.cases.iter().flat_map(|case| &case.flows);
    for flow in flows.filter(|f| f.streams.len() > 1) {
        let mut table = Table::new();
        table.column(Align::Left, &["stream", ""]);
        for metric in OF_STREAMS {
            table.column(Align::Right, &metric.column_head());
        }
        let text = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| number(x, 4));
        for stream in &flow.streams {
            table.row(vec![
                stream.name.clone(),
                text(stream.goodput_mbps),
                text(stream.cwnd_mean_segments),
                text(stream.cwnd_max_segments),
                stream.retransmits.to_string(),
            ]);
        }
        let goodputs = flow.streams.iter().filter_map(|s| s.goodput_mbps);
        let goodputs: Vec<f64> = goodputs.collect();
        out += &format!("\n{}", table.text());
        if let Some(jain) = jain(&goodputs) {
            let n = flow.streams.len();
            out += &format!("{n} streams, Jain's fairness {}\n", number(jain, 3));
        }
    }
    out
}

/// What held the flow back for most of its time, in one word.
fn limited_by(metrics: &Estimates) -> Option<String> {
    let shares = names_of(Scope::Flow).filter_map(|name| {
        let word = name.strip_prefix("limited.")?;
        Some((word, metrics.get(name)?.mean?))
    });
    let (word, _) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(word.replace('_', " "))
}

const OF_STREAMS: [&Metric; 4] = [
    Metric::flow("goodput_mbps"),
    Metric::flow("cwnd_segments.mean"),
    Metric::flow("cwnd_segments.max"),
    Metric::flow("retransmits"),
];
const COLUMNS: &[Column] = &[
    column(Metric::flow("goodput_mbps")),
    column(Metric::flow("rtt_ms.mean")),
    column(Metric::flow("rtt_ms.p95")),
    column(Metric::flow("cwnd_segments.mean")),
    column(Metric::flow("cwnd_segments.max")),
    column(Metric::flow("loss_events")),
    column(Metric::flow("retransmits")),
    column(Metric::flow("timeouts")),
    rare(Metric::flow("local_stalls")),
    Column {
        digits: 3,
        ..optional(Metric::flow("recovery_time_s"))
    },
    optional(Metric::flow("completion_time_s")),
    optional(Metric::case("jain")),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{case, result};
    use super::*;

    /// The axis is of one flow, the column of every flow.
    #[test]
    fn no_two_columns_are_called_stack() {
        let of = |stack: &str| {
            let flows = [("a", stack, 40.0), ("b", "cubic", 50.0)];
            case(&[("flow.a.stack", json!(stack))], 1, &flows)
        };
        let text = table(&result(vec![of("reno"), of("bbr")]), &[]).text();
        let heads: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(heads[..3], ["a.stack", "flow", "stack"], "{text}");
    }
}
