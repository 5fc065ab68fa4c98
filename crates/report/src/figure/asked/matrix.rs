//! A metric of every case as a coloured table.

use fullpipe_metrics::{self as metrics, Metric};
use fullpipe_units::printed_text;

use super::view::{Subject, View, metric_words, words};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::draw::{Matrix, MatrixCell};
use crate::page::data::Axis;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let Subject { metric, of, taken } =
        view.metric(asked, const { Metric::flow("goodput_mbps").name })?;
    let (row_axis, first) = match view.pair().filter(|_| asked.lines.is_none()) {
        Some((a, b)) => (Some(a), Some(b)),
        None => (view.competitors(), None),
    };
    let is = |a: &Axis, b: Option<&Axis>| b.is_some_and(|b| a.key == b.key);
    let rest = view
        .axes
        .iter()
        .filter(|a| !is(a, row_axis) && !is(a, first));
    // The outer levels first: a competitor's opponents stand together.
    let columns: Vec<&Axis> = rest.chain(first).collect();
    // Beside `a against` every column is the other's stack.
    let heads = |axis: &Axis, value: &str| match first {
        Some(_) => words(axis, value),
        None => view.words(axis, value),
    };
    let parts = view.parts(row_axis, &columns, &heads);
    let row_values: Vec<String> = match row_axis {
        Some(axis) => axis.values.iter().map(|v| words(axis, v)).collect(),
        None => vec![String::new()],
    };
    let heads: Vec<String> = match columns.is_empty() {
        true => vec![metric_words(&metric, of.as_deref())],
        false => parts.iter().map(|p| p.title.clone()).collect(),
    };
    let mut cells = vec![vec![None; parts.len()]; row_values.len()];
    let mut tidy = Rows {
        heads: ["row", "column", "mean", "ci95_low", "ci95_high"]
            .map(str::to_owned)
            .to_vec(),
        align: "llrrr".to_owned(),
        ..Rows::default()
    };
    for (c, part) in parts.iter().enumerate() {
        for member in &part.members {
            let estimate = view.estimate(member.case, &metric, of.as_deref());
            let mean = estimate.and_then(|e| e.mean);
            let ci95 = estimate.and_then(|e| e.ci95);
            let end = |i: usize| ci95.map_or_else(String::new, |e| printed_text(e[i]));
            tidy.rows.push(vec![
                row_values[member.group].clone(),
                part.title.clone(),
                mean.map_or_else(String::new, printed_text),
                end(0),
                end(1),
            ]);
            cells[member.group][c] = mean.map(|mean| MatrixCell {
                mean,
                half: ci95.map(|[low, high]| (high - low) / 2.0),
            });
        }
    }
    let row_head = row_axis.map_or_else(String::new, |a| match first {
        Some(_) => format!("{} against", a.flow.as_deref().unwrap_or(&a.label)),
        None => a.label.replace('_', " "),
    });
    let entry = metrics::scope_of(&metric).and_then(|s| metrics::find(s, &metric));
    let matrix = Matrix {
        title: metric_words(&metric, of.as_deref()),
        row_head,
        rows: row_values,
        columns: heads,
        cells,
        count: entry.is_some_and(|m| m.count),
    };
    Ok(Drawn {
        taken,
        left_out: None,
        tidy,
        printed: Some(matrix.printed()),
        drawing: Drawing::Matrix(matrix),
    })
}
