//! A metric over the values of an axis, with 95 % intervals: the report's error bars.

use fullpipe_metrics::{self as metrics, Metric};
use fullpipe_units::printed_text;

use super::view::{Part, Subject, View, metric_words};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::Range;
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::page::data;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let Subject { metric, of, taken } =
        view.metric(asked, const { Metric::flow("goodput_mbps").name })?;
    // Along the axis with the most numbers; without one along what competes.
    let others = view.axes.iter().filter(|a| !a.competes);
    let along = others.max_by_key(|a| (a.numbers.is_some(), a.values.len()));
    let lines = match along {
        Some(_) => view.competitors(),
        None => None,
    };
    let along = along.or(view.competitors());
    let used = |a: &&data::Axis| ![along, lines].iter().flatten().any(|u| u.key == a.key);
    let inner: Vec<&data::Axis> = view.axes.iter().filter(used).collect();
    let mut tidy = Rows {
        heads: ["panel", "line", "value", "mean", "ci95_low", "ci95_high"]
            .map(str::to_owned)
            .to_vec(),
        align: "lllrrr".to_owned(),
        ..Rows::default()
    };
    let mut panels = Vec::new();
    let words = |axis: &data::Axis, value: &str| view.words(axis, value);
    for Part { title, members } in view.parts(lines, &inner, &words) {
        let mut panel = Panel {
            title: title.clone(),
            x: axis_of(along),
            y: Axis {
                label: metric_words(&metric, of.as_deref()),
                scale: Scale::Linear,
            },
            possible: possible(&metric),
            // Side by side they are compared.
            common: true,
            lines: Vec::new(),
            ..Panel::default()
        };
        for member in members {
            let estimate = view.estimate(member.case, &metric, of.as_deref());
            let mean = estimate.and_then(|e| e.mean);
            let ci95 = estimate.and_then(|e| e.ci95);
            let value = along.and_then(|a| {
                let text = view.value_of(member.case, a);
                let at = a.values.iter().position(|v| *v == text)?;
                Some((at, text.to_owned()))
            });
            let (at, text) = value.unwrap_or_default();
            let x = match along.and_then(|a| a.numbers.as_ref()) {
                Some(numbers) => numbers[at],
                None => at as f64,
            };
            let end = |i: usize| ci95.map_or_else(String::new, |e| printed_text(e[i]));
            tidy.rows.push(vec![
                title.clone(),
                member.name.clone(),
                text,
                mean.map_or_else(String::new, printed_text),
                end(0),
                end(1),
            ]);
            let known = panel.lines.iter().position(|l| l.name == member.name);
            let line = match known {
                Some(i) => &mut panel.lines[i],
                None => {
                    panel.lines.push(Line {
                        name: member.name,
                        group: member.group,
                        dots: true,
                        loose: along.is_none_or(|a| a.numbers.is_none()),
                        ..Line::default()
                    });
                    panel.lines.last_mut().expect("just pushed")
                }
            };
            match mean {
                Some(mean) => {
                    line.points.push((x, mean));
                    line.intervals.push(ci95);
                }
                None => line.missing.push(x),
            }
        }
        for line in &mut panel.lines {
            let mut both: Vec<_> = line
                .points
                .iter()
                .copied()
                .zip(line.intervals.clone())
                .collect();
            both.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            (line.points, line.intervals) = both.into_iter().unzip();
        }
        let middle = (panel.lines.len() as f64 - 1.0) / 2.0;
        for (i, line) in panel.lines.iter_mut().enumerate() {
            line.shift = APART * (i as f64 - middle);
        }
        panels.push(panel);
    }
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            stacked: false,
            title: view.subtitle(),
            subtitle: String::new(),
            panels,
        }),
        printed: None,
        taken,
        left_out: None,
        tidy,
    })
}

/// A share is at most one, a time at least zero.
fn possible(metric: &str) -> Range {
    let [from, to] = metrics::range(metric).map(|end| Some(end).filter(|end| end.is_finite()));
    Range { from, to }
}

/// Distance of the error bars of two lines, units of the drawing.
const APART: f64 = 7.0;

/// Numbers over more than a decade are laid out by their logarithm.
fn axis_of(along: Option<&data::Axis>) -> Axis {
    let Some(along) = along else {
        return Axis {
            label: String::new(),
            scale: Scale::Names(vec![String::new()]),
        };
    };
    let name = along.label.replace('_', " ");
    let Some(numbers) = &along.numbers else {
        return Axis {
            label: name,
            scale: Scale::Names(along.values.clone()),
        };
    };
    let words = along.values.iter().map(|value| spaced(value));
    let mut marks: Vec<(f64, String)> = numbers.iter().copied().zip(words).collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = (
        marks.first().map_or(1.0, |m| m.0),
        marks.last().map_or(1.0, |m| m.0),
    );
    Axis {
        label: name,
        scale: Scale::Values {
            marks,
            log: ends.0 > 0.0 && ends.1 / ends.0 > 10.0,
        },
    }
}

/// `20ms` as `20 ms`.
fn spaced(value: &str) -> String {
    let digit = |at: usize| value.as_bytes()[at - 1].is_ascii_digit();
    match value.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) if at > 0 && digit(at) && value.parse::<f64>().is_err() => {
            format!("{} {}", &value[..at], &value[at..])
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_not_negative_and_shares_not_above_one() {
        for (metric, from, to) in [
            ("goodput_mbps", Some(0.0), None),
            ("rtt_ms.p95", Some(0.0), None),
            ("drops", Some(0.0), None),
            ("share", Some(0.0), Some(1.0)),
            ("asymmetry", Some(-1.0), Some(1.0)),
            ("rtt_unfairness", None, None),
            ("goodput_mbps - 5", None, None),
        ] {
            assert_eq!(possible(metric), Range { from, to }, "{metric}");
        }
    }
}
