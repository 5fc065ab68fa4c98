//! The tidy tables of a result: `runs.parquet` and `links.parquet`.

use std::collections::BTreeSet;

use super::{Column, Table};
use crate::result::RunResult;
use fullpipe_metrics as metrics;
use fullpipe_metrics::SeedRun;
use fullpipe_metrics::{Scope, Values};

/// The table of `runs.parquet`: one row per flow and traffic, case and seed.
pub(crate) fn runs_table(result: &RunResult, runs: &[Vec<SeedRun>]) -> Table {
    run_table(result, runs, Scope::Flow)
}

/// One row per flow and traffic (or link), case and seed: parameters as text, then every metric of
/// the scope and, with the flows, of traffic and of the case. `kind` is `flow` or that of the
/// traffic.
pub(super) fn run_table(result: &RunResult, runs: &[Vec<SeedRun>], scope: Scope) -> Table {
    struct Row<'a> {
        case: usize,
        seed: u64,
        name: &'a str,
        kind: &'a str,
        stack: &'a str,
        values: &'a Values,
        case_values: &'a Values,
    }
    let mut rows = Vec::new();
    for (case, run) in runs
        .iter()
        .enumerate()
        .flat_map(|(i, r)| r.iter().map(move |r| (i, r)))
    {
        let m = &run.metrics;
        if scope == Scope::Flow {
            rows.extend(m.flows.iter().map(|f| Row {
                case,
                seed: run.seed,
                name: &f.name,
                kind: "flow",
                stack: &f.stack,
                values: &f.values,
                case_values: &m.metrics,
            }));
            rows.extend(m.traffic.iter().map(|t| Row {
                case,
                seed: run.seed,
                name: &t.name,
                kind: &t.kind,
                stack: &t.stack,
                values: &t.values,
                case_values: &m.metrics,
            }));
        } else {
            rows.extend(m.links.iter().map(|l| Row {
                case,
                seed: run.seed,
                name: &l.name,
                kind: "",
                stack: "",
                values: &l.values,
                case_values: &m.metrics,
            }));
        }
    }

    let mut table = Table::default();
    let text = |of: &dyn Fn(&Row<'_>) -> String| Column::Text(rows.iter().map(of).collect());
    table.push(
        "case",
        Column::Int(rows.iter().map(|r| r.case as i64).collect()),
    );
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in result.cases.iter().flat_map(|c| &c.params.0) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    for key in keys {
        let value = |r: &Row<'_>| {
            let params = &result.cases[r.case].params;
            params.text(key).unwrap_or_default()
        };
        // A parameter may bear the name of a column of ours.
        let ours = ["case", "seed", "flow", "kind", "stack", "link"].contains(&key)
            || metrics::scope_of(key).is_some();
        table.push(
            if ours {
                format!("param.{key}")
            } else {
                key.to_owned()
            },
            text(&value),
        );
    }
    table.push(
        "seed",
        Column::Int(rows.iter().map(|r| r.seed as i64).collect()),
    );
    table.push(
        if scope == Scope::Flow { "flow" } else { "link" },
        text(&|r| r.name.to_owned()),
    );
    if scope == Scope::Flow {
        table.push("kind", text(&|r| r.kind.to_owned()));
        table.push("stack", text(&|r| r.stack.to_owned()));
    }
    let column =
        |of: &dyn Fn(&Row<'_>) -> Option<f64>| Column::Float(rows.iter().map(of).collect());
    for name in metrics::names_of(scope) {
        table.push(name, column(&|r| metrics::value(r.values, name)));
    }
    if scope == Scope::Flow {
        // Names that flows have too are there already.
        for name in metrics::names_of(Scope::Traffic)
            .filter(|name| metrics::find(Scope::Flow, name).is_none())
        {
            table.push(name, column(&|r| metrics::value(r.values, name)));
        }
        for name in metrics::names_of(Scope::Case) {
            table.push(name, column(&|r| metrics::value(r.case_values, name)));
        }
    }
    let variables: BTreeSet<&String> = rows
        .iter()
        .flat_map(|r| r.values.keys())
        .filter(|n| metrics::is_variable(n))
        .collect();
    for name in variables {
        table.push(name.as_str(), column(&|r| metrics::value(r.values, name)));
    }
    table
}
