//! `[[report]]`: figures of a page, held against the flows, the metrics and the matrix.

use super::super::value::{Reader, Value};
use super::table::{Known, Table};
use crate::Report;

/// Reads the figures.
pub(crate) fn reports(reader: &mut Reader<'_>, tables: &[Value], known: &Known<'_>) -> Vec<Report> {
    let mut all = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        if let Value::Record(record) = table {
            let table = Table::new(record, format!("report[{}]", i + 1), known);
            all.extend(report(reader, &table));
        }
    }
    all
}

/// What a figure has beyond a flow and a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Nothing.
    Curves,
    /// `y` over an axis `x`.
    Metric,
    /// `metric` over the axes `x` and `y`.
    Matrix,
}

impl Shape {
    fn of(figure: &str) -> Shape {
        match figure {
            "metric" => Shape::Metric,
            "matrix" => Shape::Matrix,
            _ => Shape::Curves,
        }
    }

    /// Keys it cannot do without, with an example of each.
    fn needs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Shape::Curves => &[],
            Shape::Metric => &[("y", r#"y = "goodput_mbps""#)],
            Shape::Matrix => &[
                ("x", r#"x = "flow.a.stack""#),
                ("y", r#"y = "flow.b.stack""#),
                ("metric", r#"metric = "asymmetry""#),
            ],
        }
    }

    /// Keys it may have.
    fn takes(self) -> &'static [&'static str] {
        match self {
            Shape::Curves => &[],
            Shape::Metric => &["x", "y"],
            Shape::Matrix => &["x", "y", "metric"],
        }
    }

    /// The key that names a metric.
    fn metric(self) -> &'static str {
        match self {
            Shape::Metric => "y",
            Shape::Curves | Shape::Matrix => "metric",
        }
    }

    /// The keys that name an axis.
    fn axes(self) -> &'static [&'static str] {
        match self {
            Shape::Matrix => &["x", "y"],
            Shape::Curves | Shape::Metric => &["x"],
        }
    }
}

fn report(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Report> {
    let record = table.record;
    let figure = match record.word("figure") {
        Some(figure) => figure,
        None if record.is_attempted("figure") => return None,
        None => "cwnd",
    };
    let flow = record.text("flow");
    if let Some(flow) = &flow {
        table.flow(reader, flow);
    }
    let shape = Shape::of(figure);
    for (key, line) in shape.needs() {
        if !record.is_attempted(key) {
            table.missing(reader, key, line);
        }
    }
    for key in ["x", "y", "metric"] {
        if !shape.takes().contains(&key) && record.is_given(key) {
            let message = format!("a figure `{figure}` does not have this key");
            let hint = match key {
                "metric" => "write figure = \"matrix\", or `y` for figure = \"metric\"",
                _ => "write figure = \"metric\" or \"matrix\"",
            };
            table.refuse(reader, key, message, hint);
        }
    }
    if let Some(name) = record.text(shape.metric()) {
        table.metric(reader, shape.metric(), &name);
    }
    for axis in shape.axes() {
        let Some(key) = record.text(axis) else {
            continue;
        };
        if !table.known.axes.iter().any(|axis| axis.key == key) {
            let message = "this key is not varied in [matrix]";
            table.refuse(reader, axis, message, table.axis_hint(&key));
        }
    }
    let same = shape == Shape::Matrix && record.text("x") == record.text("y");
    if same && record.is_given("x") {
        let hint = "name two keys of [matrix]";
        table.refuse(reader, "y", "both axes are the same", hint);
    }
    Some(Report {
        figure: figure.to_owned(),
        flow,
        x: record.text("x"),
        y: record.text("y"),
        metric: record.text("metric"),
        title: record.text("title"),
    })
}
