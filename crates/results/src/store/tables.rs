//! The tidy tables of a result: `runs.parquet` and `links.parquet`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::mem;

use super::columns::{Origin, TableWriter};
use super::quantity::{quantity, unit_of_all};
use super::{Column, StoreError, StoredFiles, Table, Timing};
use crate::result::{CaseResult, Estimates, RunResult};
use fullpipe_metrics as metrics;
use fullpipe_metrics::SeedRun;
use fullpipe_metrics::{Scope, Values};

/// The runs of all cases, as often as they are asked for.
pub(crate) trait AllRuns {
    /// Shows every run with the index of its case, by case and seed.
    fn each(&self, see: &mut dyn FnMut(usize, &SeedRun)) -> Result<(), StoreError>;

    /// Shows the files of every run, and its wall time if it was made now, in the same order.
    fn beside(&self, see: &mut dyn FnMut(StoredFiles, Option<Timing>)) -> Result<(), StoreError>;
}

/// The table of `runs.parquet`: one row per flow and traffic, case and seed.
pub(crate) fn runs_table(result: &RunResult, runs: &dyn AllRuns) -> Result<Table, StoreError> {
    let mut variables = Variables::default();
    result.cases.iter().for_each(|case| variables.add(case));
    let mut rows = Rows::new(result, &variables, Scope::Flow);
    runs.each(&mut |case, run| rows.push(case, run))?;
    Ok(rows.table)
}

/// Writes the table of a scope as a Parquet file, while the runs are read.
pub(super) fn write_table(
    out: &mut (dyn Write + Send),
    origin: &Origin,
    (result, variables): (&RunResult, &Variables),
    runs: &dyn AllRuns,
    scope: Scope,
) -> io::Result<()> {
    let mut rows = Rows::new(result, variables, scope);
    let mut writer = TableWriter::new(out, &rows.table, origin).map_err(io::Error::other)?;
    let mut failed = None;
    let read = runs.each(&mut |case, run| {
        rows.push(case, run);
        if rows.table.rows() >= ROWS_PER_GROUP && failed.is_none() {
            failed = writer.group(&rows.take()).err();
        }
    });
    read.map_err(io::Error::other)?;
    let rest = match failed {
        Some(error) => Err(error),
        None => writer.group(&rows.take()),
    };
    rest.and_then(|()| writer.finish())
        .map(|_| ())
        .map_err(io::Error::other)
}

/// One row per flow and traffic (or link), case and seed: parameters as text, quantities as numbers
/// beside it, then every metric of
/// the scope and, with the flows, of traffic and of the case. `kind` is `flow` or that of the
/// traffic.
struct Rows<'a> {
    result: &'a RunResult,
    scope: Scope,
    /// What the columns of the table hold.
    of: Vec<Of<'a>>,
    table: Table,
}

/// Where the values of a column come from.
enum Of<'a> {
    Case,
    Param(&'a str),
    /// The number of a parameter that is a quantity.
    Number(&'a str),
    Seed,
    Name,
    Kind,
    Stack,
    /// A metric of the row.
    Row(&'a str),
    /// A metric of the case.
    WholeCase(&'a str),
}

struct Row<'a> {
    case: usize,
    seed: u64,
    name: &'a str,
    kind: &'a str,
    stack: &'a str,
    values: &'a Values,
    case_values: &'a Values,
}

/// Name of the column that holds a key of `[matrix]`, in Parquet and in CSV: a key that is called
/// like another column of one of them has `param.` before it.
#[must_use]
pub fn column_of_key(key: &str) -> Cow<'_, str> {
    const OURS: [&str; 11] = [
        "scenario", "ground", "peer", "case", "seed", "seeds", "flow", "kind", "stack", "link",
        "partial",
    ];
    match OURS.contains(&key) || metrics::scope_of(key).is_some() {
        true => format!("param.{key}").into(),
        false => key.into(),
    }
}

/// Names of the variables that the controllers of a result report: a column for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    flows: BTreeSet<String>,
    links: BTreeSet<String>,
}

impl Variables {
    /// Adds those of a case; it has every name that one of its runs has.
    pub(crate) fn add(&mut self, case: &CaseResult) {
        let flows = case.flows.iter().map(|f| &f.metrics);
        let traffic = case.traffic.iter().map(|t| &t.metrics);
        let links = case.links.iter().map(|l| &l.metrics);
        add_variables(&mut self.flows, flows.chain(traffic));
        add_variables(&mut self.links, links);
    }
}

fn add_variables<'a>(to: &mut BTreeSet<String>, rows: impl Iterator<Item = &'a Estimates>) {
    let names = rows.flat_map(|estimates| estimates.keys());
    for name in names.filter(|name| metrics::is_variable(name)) {
        if !to.contains(name) {
            to.insert(name.to_owned());
        }
    }
}

impl<'a> Rows<'a> {
    fn new(result: &'a RunResult, variables: &'a Variables, scope: Scope) -> Rows<'a> {
        let mut rows = Rows {
            result,
            scope,
            of: Vec::new(),
            table: Table::default(),
        };
        rows.column("case", Of::Case);
        let mut keys: Vec<&str> = Vec::new();
        for (key, _) in result.cases.iter().flat_map(|c| c.params.iter()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for key in keys {
            let name = column_of_key(key);
            rows.column(&name, Of::Param(key));
            let texts = result
                .cases
                .iter()
                .map(|c| c.params.text(key).unwrap_or_default());
            if let Some(unit) = unit_of_all(texts) {
                rows.column(&format!("{name}_{unit}"), Of::Number(key));
            }
        }
        rows.column("seed", Of::Seed);
        let flows_wanted = scope == Scope::Flow;
        rows.column(if flows_wanted { "flow" } else { "link" }, Of::Name);
        if flows_wanted {
            rows.column("kind", Of::Kind);
            rows.column("stack", Of::Stack);
        }
        for name in metrics::names_of(scope) {
            rows.column(name, Of::Row(name));
        }
        if flows_wanted {
            // Names that flows have too are there already.
            for name in metrics::names_of(Scope::Traffic)
                .filter(|name| metrics::find(Scope::Flow, name).is_none())
            {
                rows.column(name, Of::Row(name));
            }
            for name in metrics::names_of(Scope::Case) {
                rows.column(name, Of::WholeCase(name));
            }
        }
        let variables = match flows_wanted {
            true => &variables.flows,
            false => &variables.links,
        };
        for name in variables {
            rows.column(name, Of::Row(name));
        }
        rows
    }

    fn column(&mut self, name: &str, of: Of<'a>) {
        self.table.columns.push((name.to_owned(), of.empty()));
        self.of.push(of);
    }

    fn push(&mut self, case: usize, run: &SeedRun) {
        let m = &run.metrics;
        let row = |name, kind, stack, values| Row {
            case,
            seed: run.seed,
            name,
            kind,
            stack,
            values,
            case_values: &m.metrics,
        };
        if self.scope == Scope::Flow {
            for f in &m.flows {
                self.push_row(&row(&f.name, "flow", &f.stack, &f.values));
            }
            for t in &m.traffic {
                self.push_row(&row(&t.name, &t.kind, &t.stack, &t.values));
            }
        } else {
            for l in &m.links {
                self.push_row(&row(&l.name, "", "", &l.values));
            }
        }
    }

    fn push_row(&mut self, row: &Row<'_>) {
        for (of, (_, column)) in self.of.iter().zip(&mut self.table.columns) {
            match (of, column) {
                (Of::Case, Column::Int(v)) => v.push(row.case as i64),
                (Of::Seed, Column::Int(v)) => v.push(row.seed as i64),
                (Of::Param(key), Column::Text(v)) => {
                    let params = &self.result.cases[row.case].params;
                    v.push(params.text(key).unwrap_or_default());
                }
                (Of::Number(key), Column::Float(v)) => {
                    let text = self.result.cases[row.case].params.text(key);
                    v.push(text.and_then(|text| Some(quantity(&text)?.0)));
                }
                (Of::Name, Column::Text(v)) => v.push(row.name.to_owned()),
                (Of::Kind, Column::Text(v)) => v.push(row.kind.to_owned()),
                (Of::Stack, Column::Text(v)) => v.push(row.stack.to_owned()),
                (Of::Row(name), Column::Float(v)) => v.push(metrics::value(row.values, name)),
                (Of::WholeCase(name), Column::Float(v)) => {
                    v.push(metrics::value(row.case_values, name));
                }
                _ => unreachable!("columns were made for what they hold"),
            }
        }
    }

    /// The rows so far; they go from here.
    fn take(&mut self) -> Table {
        let columns = self.table.columns.iter_mut().zip(&self.of);
        let taken = columns.map(|((name, column), of)| {
            let values = mem::replace(column, of.empty());
            (name.clone(), values)
        });
        Table {
            columns: taken.collect(),
        }
    }
}

impl Of<'_> {
    fn empty(&self) -> Column {
        match self {
            Of::Case | Of::Seed => Column::Int(Vec::new()),
            Of::Param(_) | Of::Name | Of::Kind | Of::Stack => Column::Text(Vec::new()),
            Of::Number(_) | Of::Row(_) | Of::WholeCase(_) => Column::Float(Vec::new()),
        }
    }
}

/// Rows of a row group: the table of many runs is never in memory.
const ROWS_PER_GROUP: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_metrics::{FlowMetrics, RunMetrics};

    #[test]
    fn an_axis_of_quantities_is_one_of_numbers_too() {
        let case = |loss: &str| {
            format!(
                r#"{{"params":{{"path.loss":{loss},"path.buffer":"0.25BDP",
                "flow.main.stack":"reno"}},"seeds":[1],"flows":[],"links":[],"metrics":{{}},
                "simulated_s":1,"delivered_packets":1}}"#
            )
        };
        let (a, b) = (case("0.00001"), case("1e-6"));
        let result: RunResult = serde_json::from_str(&format!(
            r#"{{"fullpipe":"","scenario":"","ground":"sim","cases":[{a},{b}],"expectations":[]}}"#
        ))
        .unwrap();
        let table = runs_table(&result, &Many(1)).unwrap();
        assert_eq!(table.text("path.loss").unwrap(), ["1e-5"]);
        assert_eq!(table.float("path.loss_number").unwrap(), [Some(1e-5)]);
        assert_eq!(table.float("path.buffer_bdp").unwrap(), [Some(0.25)]);
        let heads = table.columns.iter().map(|(name, _)| name.as_str());
        assert_eq!(
            heads.filter(|name| name.starts_with("flow.main")).count(),
            1
        );
    }

    struct Many(u64);

    impl AllRuns for Many {
        fn each(&self, see: &mut dyn FnMut(usize, &SeedRun)) -> Result<(), StoreError> {
            for seed in 1..=self.0 {
                let flow = FlowMetrics {
                    name: "main".into(),
                    stack: "reno".into(),
                    values: Values::from([("goodput_mbps", (seed % 3 > 0).then_some(seed as f64))]),
                };
                let metrics = RunMetrics {
                    flows: vec![flow],
                    traffic: vec![],
                    links: vec![],
                    metrics: Values::new(),
                    simulated_s: 1.0,
                    delivered_packets: 1,
                    fidelity: None,
                    partial: None,
                };
                see(0, &SeedRun { seed, metrics });
            }
            Ok(())
        }

        fn beside(&self, _: &mut dyn FnMut(StoredFiles, Option<Timing>)) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[test]
    fn a_table_is_written_group_by_group() {
        let result: RunResult = serde_json::from_str(
            r#"{"fullpipe":"","scenario":"","ground":"sim","cases":[],"expectations":[]}"#,
        )
        .unwrap();
        let runs = Many(2 * ROWS_PER_GROUP as u64 + 7);
        let mut bytes = Vec::new();
        let none = Variables::default();
        write_table(&mut bytes, &[], (&result, &none), &runs, Scope::Flow).unwrap();
        let read = Table::from_parquet(bytes).unwrap();
        assert_eq!(read, runs_table(&result, &runs).unwrap());
        assert_eq!(read.int("seed").unwrap().last(), Some(&(runs.0 as i64)));

        // Up to a group the file is that of the whole table.
        let (few, mut bytes) = (Many(5), Vec::new());
        let origin = [(fullpipe_trace::GROUND, "sim".to_owned())];
        write_table(&mut bytes, &origin, (&result, &none), &few, Scope::Flow).unwrap();
        let whole = runs_table(&result, &few).unwrap();
        assert_eq!(bytes, whole.to_parquet_from(&origin).unwrap());
    }
}
