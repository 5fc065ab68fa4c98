//! Columns of metrics, and the columns of parameters before them.

use fullpipe_metrics::{Metric, Scope};
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, Estimate, Estimates};

use super::text::estimate_text;
use crate::table::{Align, Table};

/// One column of a table of flows or of traffic.
pub(super) struct Column {
    pub metric: &'static Metric,
    /// Significant digits; of a count they do not matter.
    pub digits: usize,
    /// Left out where no row has a value.
    pub optional: bool,
    /// Left out where every row has zero.
    pub rare: bool,
    /// Wanted by name: shown wherever there is a value.
    pub wanted: bool,
}

/// A column that is always there.
pub(super) const fn column(metric: &'static Metric) -> Column {
    Column {
        metric,
        digits: 4,
        optional: false,
        rare: false,
        wanted: false,
    }
}

/// A column that is left out where no row has a value.
pub(super) const fn optional(metric: &'static Metric) -> Column {
    Column {
        optional: true,
        ..column(metric)
    }
}

/// A column that is left out where every row has zero, or none has a value.
pub(super) const fn rare(metric: &'static Metric) -> Column {
    Column {
        rare: true,
        ..optional(metric)
    }
}

impl Column {
    /// Its value in a row of this case; fairness is shown where there is somebody to be fair to.
    pub fn value(&self, case: &CaseResult, row: &Estimates) -> Estimate {
        let of = |from: &Estimates| from.get(self.metric.name).copied();
        let value = match self.metric.scope {
            Scope::Case if self.wanted || case.flows.len() > 1 => of(&case.metrics.0),
            Scope::Case => None,
            _ => of(row),
        };
        value.unwrap_or_default()
    }

    /// Two lines: of a metric that is wanted by name its name, which finds it again.
    pub fn head(&self) -> [&'static str; 2] {
        let unit = match self.metric.unit {
            "1" => "",
            unit => unit,
        };
        match self.wanted {
            true => [self.metric.name, unit],
            false => self.metric.column_head(),
        }
    }

    /// Text of [`Self::value`], rounded as the interval allows.
    pub fn cell(&self, case: &CaseResult, row: &Estimates) -> String {
        let digits = if self.metric.count { 1 } else { self.digits };
        estimate_text(self.value(case, row), digits)
    }
}

/// The columns of metrics that are asked for.
pub(super) fn asked(metrics: &[&'static Metric]) -> Vec<Column> {
    let wanted = |m: &&'static Metric| Column {
        wanted: true,
        ..column(m)
    };
    metrics.iter().map(wanted).collect()
}

/// Those of some columns that are to be shown in these rows.
pub(super) fn shown<'a>(
    columns: &'a [Column],
    rows: &[(&CaseResult, &Estimates)],
) -> Vec<&'a Column> {
    let has = |column: &Column| {
        let values = rows.iter().filter_map(|(c, r)| column.value(c, r).mean);
        values.into_iter().any(|mean| !column.rare || mean != 0.0)
    };
    columns.iter().filter(|c| !c.optional || has(c)).collect()
}

/// A row of a table: the names of whom it is of before the metrics.
pub(super) struct Row<'a> {
    pub case: &'a CaseResult,
    /// Parameters of the case as text.
    pub of: &'a [(String, String)],
    pub names: Vec<String>,
    pub metrics: &'a Estimates,
}

/// A table with these headings of names. The columns are the metrics that are asked for, or without
/// any those of `usual` that these rows have.
pub(super) fn table(
    params: &[(&str, &str)],
    names: &[&str],
    rows: Vec<Row<'_>>,
    usual: &[Column],
    metrics: &[&'static Metric],
) -> Table {
    let values: Vec<_> = rows.iter().map(|row| (row.case, row.metrics)).collect();
    let asked = asked(metrics);
    let columns = match metrics.is_empty() {
        true => shown(usual, &values),
        false => asked.iter().collect(),
    };
    let params = &told_apart(params, names);
    let mut table = Table::new();
    add_params(&mut table, params);
    for head in names {
        table.column(Align::Left, &[head]);
    }
    for column in &columns {
        table.column(Align::Right, &column.head());
    }
    for row in rows {
        let mut cells = params_cells(row.of, params);
        cells.extend(row.names);
        cells.extend(columns.iter().map(|c| c.cell(row.case, row.metrics)));
        table.row(cells);
    }
    table
}

/// Parameters that vary (key and heading), those that are called like a column of names by more of
/// their key: `a.stack`.
pub(super) fn told_apart<'a>(
    params: &[(&'a str, &'a str)],
    names: &[&str],
) -> Vec<(&'a str, &'a str)> {
    let longer = |key: &'a str| {
        key.rmatch_indices('.')
            .nth(1)
            .map_or(key, |(at, _)| &key[at + 1..])
    };
    let apart = |(key, head): &(&'a str, &'a str)| match names.contains(head) {
        true => (*key, longer(key)),
        false => (*key, *head),
    };
    params.iter().map(apart).collect()
}

/// Adds the columns of parameters that vary (key and heading).
pub(super) fn add_params(table: &mut Table, params: &[(&str, &str)]) {
    for (_, head) in params {
        table.column(Align::Left, &[head]);
    }
}

/// The cells of these columns in a case of these parameters.
pub(super) fn params_cells(of: &[(String, String)], params: &[(&str, &str)]) -> Vec<String> {
    let text = |(key, _): &(&str, &str)| label::find(of, key).unwrap_or_default().to_owned();
    params.iter().map(text).collect()
}
