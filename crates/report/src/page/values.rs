//! Estimates of a result as columns, expectations with the case they belong to, the metrics that
//! occur.

use std::collections::BTreeSet;

use super::data::{Estimates, Expected, Figure, Metric, Table};
use super::pack;
use fullpipe_metrics::{self as metrics, Better, Expression, Metric as Row, Scope};
use fullpipe_results::compare::Runs;
use fullpipe_results::result::{
    CaseResult, Estimate, Estimates as Values, RunResult, TrafficResult,
};

/// What a reader compares first, in this order, then what the scenario's figures are of. What
/// several flows do together is left out where there is one.
pub(super) fn side_by_side(tables: &[Table], figures: &[Figure]) -> Vec<String> {
    let flows = tables.iter().filter(|t| t.scope == "flow");
    let names: BTreeSet<&String> = flows.flat_map(|t| &t.name).collect();
    let columns = || tables.iter().flat_map(|t| &t.columns);
    let has = |name: &str| columns().any(|c| c.metric == name);
    let together = [ALL_FLOWS, FAIRNESS].map(|metric| metric.name);
    let asked = figures.iter().filter(|f| f.figure == "metric");
    let asked = asked.filter_map(|f| f.y.as_deref());
    let mut shown: Vec<String> = Vec::new();
    for name in SIDE_BY_SIDE.into_iter().map(|m| m.name).chain(asked) {
        let applies = names.len() > 1 || !together.contains(&name);
        if has(name) && applies && !shown.iter().any(|s| s == name) {
            shown.push(name.to_owned());
        }
    }
    shown
}

const ALL_FLOWS: &Row = Row::case("aggregate_goodput_mbps");
const FAIRNESS: &Row = Row::case("jain");
const SIDE_BY_SIDE: [&Row; 19] = [
    Row::flow("goodput_mbps"),
    ALL_FLOWS,
    Row::flow("stability"),
    Row::link("utilization"),
    FAIRNESS,
    Row::case("asymmetry"),
    Row::flow("rtt_ms.mean"),
    Row::flow("rtt_ms.p95"),
    Row::flow("rtt_ms.p99"),
    Row::link("queue_packets.mean"),
    Row::flow("cwnd_segments.mean"),
    Row::flow("cwnd_segments.max"),
    Row::flow("loss_events"),
    Row::flow("retransmits"),
    Row::flow("timeouts"),
    Row::flow("recovery_time_s"),
    Row::flow("completion_time_s"),
    Row::traffic("completion_time_s.mean"),
    Row::traffic("completion_time_s.p95"),
];

/// One table per scope that has values.
pub(super) fn tables(result: &RunResult) -> Vec<Table> {
    let wanted: BTreeSet<&str> = result
        .expectations
        .iter()
        .map(|e| e.metric.as_str())
        .collect();
    let all = [
        table(
            "flow",
            &rows(result, |c| {
                c.flows
                    .iter()
                    .map(|f| (f.name.as_str(), f.stack.as_str(), &f.metrics))
                    .collect()
            }),
            &wanted,
        ),
        table(
            "traffic",
            &rows(result, |c| c.traffic.iter().map(of_traffic).collect()),
            &wanted,
        ),
        table(
            "link",
            &rows(result, |c| {
                c.links
                    .iter()
                    .map(|l| (l.name.as_str(), "", &l.metrics))
                    .collect()
            }),
            &wanted,
        ),
        table(
            "case",
            &rows(result, |c| vec![("", "", &c.metrics.0)]),
            &wanted,
        ),
    ];
    all.into_iter().filter(|t| !t.columns.is_empty()).collect()
}

/// Short flows are told apart by their stack, the others by what they are.
fn of_traffic(t: &TrafficResult) -> (&str, &str, &Values) {
    let kind = if t.stack.is_empty() {
        &t.kind
    } else {
        &t.stack
    };
    (&t.name, kind, &t.metrics)
}

struct Cells<'a> {
    case: usize,
    name: &'a str,
    kind: &'a str,
    values: &'a Values,
}

fn rows<'a>(
    result: &'a RunResult,
    of: impl Fn(&'a CaseResult) -> Vec<(&'a str, &'a str, &'a Values)>,
) -> Vec<Cells<'a>> {
    let of_case = |(case, c)| {
        let row = move |(name, kind, values)| Cells {
            case,
            name,
            kind,
            values,
        };
        of(c).into_iter().map(row)
    };
    result.cases.iter().enumerate().flat_map(of_case).collect()
}

/// Columns in the order of the table of metrics. A controller's own variables are left out unless
/// an expectation asks.
fn table(scope: &'static str, rows: &[Cells<'_>], wanted: &BTreeSet<&str>) -> Table {
    let present: BTreeSet<&str> = rows
        .iter()
        .flat_map(|r| r.values.iter())
        .filter(|(name, e)| {
            e.mean.is_some() && (!metrics::is_variable(name) || wanted.contains(name))
        })
        .map(|(name, _)| name)
        .collect();
    let listed: Vec<&str> = metrics::METRICS
        .iter()
        .filter(|m| m.scope.word() == scope && present.contains(m.name))
        .map(|m| m.name)
        .collect();
    let others = present.iter().copied().filter(|n| !listed.contains(n));
    let column = |name: &str| {
        let value = |r: &Cells<'_>| r.values.get(name).copied().unwrap_or_default();
        estimates(name, &rows.iter().map(value).collect::<Vec<_>>())
    };
    Table {
        scope,
        case: rows.iter().map(|r| r.case).collect(),
        name: rows.iter().map(|r| r.name.to_owned()).collect(),
        kind: rows.iter().map(|r| r.kind.to_owned()).collect(),
        columns: listed.iter().copied().chain(others).map(column).collect(),
    }
}

fn estimates(metric: &str, rows: &[Estimate]) -> Estimates {
    let end = |i: usize| pack::f64s(rows.iter().map(|e| e.ci95.map(|c| c[i])));
    let with_ends = rows.iter().any(|e| e.ci95.is_some());
    Estimates {
        metric: metric.to_owned(),
        mean: pack::f64s(rows.iter().map(|e| e.mean)),
        low: with_ends.then(|| end(0)),
        high: with_ends.then(|| end(1)),
    }
}

/// The expectations, each with its case.
pub(super) fn expectations(result: &RunResult) -> Vec<Expected> {
    let places = result.places();
    let expected = |e: &fullpipe_results::result::ExpectationResult| {
        Some(Expected {
            name: e.name.clone(),
            case: *places.get(&e.params)?,
            metric: e.metric.clone(),
            of: e.flow.clone().or_else(|| e.link.clone()),
            observed: e.observed,
            ci95: e.observed_ci95,
            bound: e.bound.map(|b| b.is_finite().then_some(b)),
            pass: e.pass,
            unclear: e.unclear,
            source: e.source.clone(),
        })
    };
    result.expectations.iter().filter_map(expected).collect()
}

/// Adds a column for each of these expressions over metrics, from the values of single runs.
pub(super) fn add_expressions(tables: &mut [Table], expressions: &BTreeSet<String>, runs: &Runs) {
    for text in expressions {
        let Some(scope) = metrics::scope(text) else {
            continue;
        };
        let Some(table) = tables.iter_mut().find(|t| t.scope == scope.word()) else {
            continue;
        };
        let of_row = |(case, name): (&usize, &String)| {
            let name = Some(name.as_str()).filter(|_| scope != Scope::Case);
            let values = runs.values(*case, scope, name, text);
            let values: Vec<Option<f64>> = values.into_iter().map(|(_, value)| value).collect();
            Estimate::of(&values)
        };
        let of_rows: Vec<Estimate> = table.case.iter().zip(&table.name).map(of_row).collect();
        table.columns.push(estimates(text, &of_rows));
    }
}

/// The entries of the metrics that any of the tables has.
pub(super) fn metrics<'a>(tables: impl IntoIterator<Item = &'a Table>) -> Vec<Metric> {
    let present: BTreeSet<(&str, &str)> = tables
        .into_iter()
        .flat_map(|t| t.columns.iter().map(|c| (t.scope, c.metric.as_str())))
        .collect();
    let computed = present
        .iter()
        .filter(|(_, name)| Expression::is_one(name))
        .map(|&(scope, name)| Metric {
            name: name.to_owned(),
            title: name.to_owned(),
            heading: name.to_owned(),
            scope,
            unit: "",
            count: false,
            signed: false,
            better: "neither",
            about: "an expression of the scenario's",
            formula: "",
            source: "",
        });
    metrics::METRICS
        .iter()
        .filter(|m| present.contains(&(m.scope.word(), m.name)))
        .map(|m| Metric {
            name: m.name.to_owned(),
            title: m.title(),
            heading: m.heading(),
            scope: m.scope.word(),
            unit: m.unit,
            count: m.count,
            signed: m.signed,
            better: match m.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
                Better::Neither => "neither",
            },
            about: m.about,
            formula: m.formula,
            source: m.source,
        })
        .chain(computed)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_do_together_is_shown_where_there_are_several() {
        let table = |scope, names: &[&str], metrics: &[&str]| Table {
            scope,
            case: vec![0; names.len()],
            name: names.iter().map(|n| (*n).to_owned()).collect(),
            kind: vec![String::new(); names.len()],
            columns: metrics.iter().map(|m| estimates(m, &[])).collect(),
        };
        let of_case = || table("case", &[""], &["jain", "aggregate_goodput_mbps"]);
        let mice = || table("traffic", &["web"], &["completion_time_s.mean"]);
        let flows = |names: &[&str]| table("flow", names, &["undone", "goodput_mbps"]);
        let asked = Figure {
            figure: "metric".to_owned(),
            y: Some("undone".to_owned()),
            ..Figure::default()
        };
        let alone = [flows(&["a"]), mice(), of_case()];
        assert_eq!(
            side_by_side(&alone, &[asked]),
            ["goodput_mbps", "completion_time_s.mean", "undone"]
        );
        let several = [flows(&["a", "b"]), of_case()];
        assert_eq!(
            side_by_side(&several, &[]),
            ["goodput_mbps", "aggregate_goodput_mbps", "jain"]
        );
    }
}
