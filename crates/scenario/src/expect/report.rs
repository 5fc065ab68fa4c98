//! `[[report]]`: figures of a page, held against the flows, the metrics and the matrix.

use super::subject::are_links_broken;
use super::table::{Known, Referring};
use crate::document::shorten;
use crate::keys::{Figure, Figures};
use crate::scenario::Report;
use crate::value::{At, Key, Reader, Record, Words, did_you_mean};

/// Reads the figures.
pub(crate) fn reports(
    reader: &mut Reader<'_>,
    tables: &[Record],
    known: &Known<'_>,
) -> Vec<Report> {
    let mut all = Vec::new();
    for (i, record) in tables.iter().enumerate() {
        let at = At::<Figures>::new(record, format!("report[{}]", i + 1));
        all.extend(report(reader, &Referring { at, known }));
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
    fn of(figure: Figure) -> Shape {
        match figure {
            Figure::Metric => Shape::Metric,
            Figure::Matrix => Shape::Matrix,
            Figure::Cwnd | Figure::Rtt | Figure::Goodput | Figure::Queue | Figure::Completion => {
                Shape::Curves
            }
        }
    }

    /// Keys it cannot do without, with an example of each.
    fn needs(self) -> &'static [(Key, &'static str)] {
        match self {
            Shape::Curves => &[],
            Shape::Metric => &[
                (Figures::x, r#"x = "path.rtt""#),
                (Figures::y, r#"y = "goodput_mbps""#),
            ],
            Shape::Matrix => &[
                (Figures::x, r#"x = "flow.a.stack""#),
                (Figures::y, r#"y = "flow.b.stack""#),
                (Figures::metric, r#"metric = "asymmetry""#),
            ],
        }
    }

    /// Keys that do not belong to it.
    fn lacks(self) -> &'static [Key] {
        match self {
            Shape::Curves => &[Figures::x, Figures::y, Figures::metric],
            Shape::Metric => &[Figures::metric],
            Shape::Matrix => &[],
        }
    }

    /// The key that names a metric.
    fn metric(self) -> &'static Key {
        match self {
            Shape::Metric => &Figures::y,
            Shape::Curves | Shape::Matrix => &Figures::metric,
        }
    }

    /// The keys that name an axis.
    fn axes(self) -> &'static [Key] {
        match self {
            Shape::Matrix => &[Figures::x, Figures::y],
            Shape::Curves | Shape::Metric => &[Figures::x],
        }
    }
}

/// Sees to it that there is something of this name, and that the figure can be of it.
fn subject(reader: &mut Reader<'_>, table: &Referring<'_, Figures>, figure: Figure, name: &str) {
    let names = table.known.names;
    let (flows, traffic) = (names.flows.as_slice(), names.traffic.as_slice());
    let (what, of, or_a_link): (&str, [&[String]; 2], bool) = match figure {
        Figure::Cwnd | Figure::Rtt | Figure::Goodput => ("flow", [flows, &[]], false),
        Figure::Queue => ("link", [&[], &[]], true),
        Figure::Completion => ("traffic", [&[], traffic], false),
        Figure::Metric | Figure::Matrix => ("flow, traffic or link", [flows, traffic], true),
    };
    let links = table.known.links().filter(|_| or_a_link);
    let known = || {
        of.into_iter()
            .flatten()
            .map(String::as_str)
            .chain(links.clone())
    };
    if known().any(|known| known == name) || (or_a_link && are_links_broken(reader)) {
        return;
    }
    let message = format!("there is no {what} `{}`", shorten(name));
    table.refuse(reader, &Figures::flow, message, did_you_mean(name, known()));
}

fn report(reader: &mut Reader<'_>, table: &Referring<'_, Figures>) -> Option<Report> {
    let figure = table.figure;
    if table.record.get::<Figure>(&Figures::figure).is_none()
        && table.is_attempted(&Figures::figure)
    {
        return None;
    }
    let shape = Shape::of(figure);
    if let Some(name) = &table.flow {
        subject(reader, table, figure, name);
    }
    for (key, line) in shape.needs() {
        if !table.is_attempted(key) {
            let hint = match (shape, table.known.axes.first()) {
                // One of those that there are.
                (Shape::Metric, Some(axis)) if key.name == Figures::x.name => {
                    format!("write for example x = \"{}\"", axis.key)
                }
                (Shape::Metric, None) if key.name == Figures::x.name => {
                    format!("write for example {line}, and its values in [matrix]")
                }
                _ => format!("write for example {line}"),
            };
            table.lacks(reader, key, "this key is missing", hint);
        }
    }
    for key in shape.lacks().iter().filter(|key| table.is_given(key)) {
        let message = format!("a figure `{}` does not have this key", figure.word());
        let hint = match key.name == Figures::metric.name {
            true => "write figure = \"matrix\", or `y` for figure = \"metric\"",
            false => "write figure = \"metric\" or \"matrix\"",
        };
        table.refuse(reader, key, message, hint);
    }
    let text = |key: &Key| table.record.get::<String>(key);
    if let Some(name) = text(shape.metric()) {
        table.metric(reader, shape.metric(), &name);
    }
    for axis in shape.axes() {
        let Some(key) = text(axis) else {
            continue;
        };
        if !table.known.axes.iter().any(|axis| axis.key == key) {
            let message = "this key is not varied in [matrix]";
            table.refuse(reader, axis, message, table.axis_hint(&key));
        }
    }
    if shape == Shape::Matrix && table.x == table.y && table.is_given(&Figures::x) {
        let hint = "name two keys of [matrix]";
        table.refuse(reader, &Figures::y, "both axes are the same", hint);
    }
    Some(Report {
        figure: figure.word().to_owned(),
        flow: table.flow.clone(),
        x: table.x.clone(),
        y: table.y.clone(),
        metric: table.metric.clone(),
        title: table.title.clone(),
    })
}
