//! Distributions as steps: what figures of completion times, of seeds and of round trips share.

use super::view::View;
use super::{Drawing, Drawn, Rows, Taken};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::figure::{Range, Ranges};
use fullpipe_units::printed_text;

/// Curves by panel, and beside them their numbers.
pub(super) struct Steps {
    tidy: Rows,
    panels: Vec<(String, Vec<Line>)>,
    /// Least and largest value of all curves.
    ends: Option<(f64, f64)>,
    /// Second line of the picture: which seeds, which part of the runs.
    pub subtitle: String,
    /// The axis begins near the least value, not at zero.
    pub near: bool,
}

impl Steps {
    /// `value` heads the column of the values.
    pub fn of(value: &str) -> Self {
        Self {
            tidy: Rows {
                heads: ["panel", "curve", value, "fraction"]
                    .map(str::to_owned)
                    .to_vec(),
                align: "llrr".to_owned(),
                ..Rows::default()
            },
            panels: Vec::new(),
            ends: None,
            subtitle: String::new(),
            near: false,
        }
    }

    /// Begins a panel: curves added from now on are drawn in it.
    pub fn panel(&mut self, title: String) {
        self.panels.push((title, Vec::new()));
    }

    /// A curve of the last panel: `values` of `all` samples, the others having none. Its rows are
    /// the values, or its steps where `thinned`: samples of every ACK are too many for a table. One
    /// without any value has a row without numbers, and the panel's heading names it.
    pub fn curve(&mut self, line: Line, mut values: Vec<f64>, all: usize, thinned: bool) {
        let Some((title, lines)) = self.panels.last_mut() else {
            return;
        };
        values.sort_by(f64::total_cmp);
        if let (Some(first), Some(last)) = (values.first(), values.last()) {
            let (low, high) = self.ends.unwrap_or((*first, *last));
            self.ends = Some((low.min(*first), high.max(*last)));
        }
        let head = [title.clone(), line.name.clone()];
        if values.is_empty() {
            let numbers = <[String; 2]>::default();
            self.tidy.rows.push([head, numbers].concat());
            lines.push(line);
            return;
        }
        let mut row = |value: f64, part: f64| {
            let numbers = [value, part].map(printed_text);
            self.tidy.rows.push([head.clone(), numbers].concat());
        };
        match thinned {
            true => {
                let every = values.len().div_ceil(ROWS).max(1);
                let points = steps(&values, all, every).into_iter();
                points.skip(1).step_by(2).for_each(|(v, part)| row(v, part));
            }
            false => {
                let parts = (1..).map(|k: u32| f64::from(k) / all as f64);
                values.iter().zip(parts).for_each(|(&v, part)| row(v, part));
            }
        }
        // The drawing leaves out what nobody could tell apart.
        let points = steps(&values, all, 1);
        lines.push(Line { points, ..line });
    }

    /// The chart; `None` if no curve has a value.
    pub fn drawn(self, view: &View<'_>, x: &str, y: &str, taken: Option<Taken>) -> Option<Drawn> {
        let (low, high) = self.ends?;
        let scale = match low > 0.0 && high / low > NEAR {
            true => Scale::Log,
            false => Scale::Linear,
        };
        let near = Range {
            from: Some(begin(low, high)),
            to: None,
        };
        let x_part = match self.near && scale == Scale::Linear && low < high {
            true => near,
            false => Range::default(),
        };
        let panel = |(title, lines): (String, Vec<Line>)| Panel {
            title: heading(title, &lines),
            ranges: Ranges {
                x: x_part,
                ..Ranges::default()
            },
            x: Axis {
                label: x.to_owned(),
                scale: scale.clone(),
            },
            y: Axis {
                label: y.to_owned(),
                scale: Scale::Linear,
            },
            lines,
            common: true,
            ..Panel::default()
        };
        Some(Drawn {
            drawing: Drawing::Chart(Chart {
                stacked: false,
                title: view.subtitle(),
                subtitle: self.subtitle,
                panels: self.panels.into_iter().map(panel).collect(),
            }),
            printed: None,
            taken,
            left_out: None,
            tidy: self.tidy,
        })
    }
}

/// The heading of a panel, and which of its lines have no value.
fn heading(title: String, lines: &[Line]) -> String {
    let empty = lines.iter().filter(|line| line.points.is_empty());
    let names: Vec<&str> = empty.map(|line| line.name.as_str()).collect();
    match (names.as_slice(), title.as_str()) {
        ([], _) => title,
        // The only line of a panel has no name.
        ([""], "") => "no value".to_owned(),
        ([""], _) => format!("{title} (no value)"),
        (_, "") => format!("no value: {}", names.join(", ")),
        _ => format!("{title} (no value: {})", names.join(", ")),
    }
}

/// A line of these looks, as yet without points.
pub(super) fn line(name: String, group: usize) -> Line {
    Line {
        name,
        group,
        ..Line::default()
    }
}

/// Values whose ends are as far apart lie on an axis of logarithms.
const NEAR: f64 = 8.0;

/// A round number below the least of some values.
fn begin(low: f64, high: f64) -> f64 {
    let step = 10f64.powf((high - low).log10().floor());
    (low / step).floor() * step
}

/// The distribution as steps, one for `every` so many values and one for the last.
fn steps(values: &[f64], all: usize, every: usize) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut below = 0.0;
    for (k, v) in values.iter().enumerate() {
        if k % every != 0 && k + 1 != values.len() {
            continue;
        }
        points.push((*v, below));
        below = (k + 1) as f64 / all as f64;
        points.push((*v, below));
    }
    points
}

/// Rows of a curve in a table of steps.
const ROWS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_finish_keeps_the_curve_below_one() {
        assert_eq!(
            steps(&[1.0, 2.0], 4, 1),
            [(1.0, 0.0), (1.0, 0.25), (2.0, 0.25), (2.0, 0.5)]
        );
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let thinned = steps(&many, 10_000, 25);
        assert!(thinned.len() <= 2 * ROWS + 2);
        assert_eq!(thinned.last(), Some(&(9_999.0, 1.0)));
    }

    #[test]
    fn an_axis_begins_at_a_round_number_below_the_least_value() {
        for (low, high, from) in [(40.2, 119.0, 40.0), (203.0, 209.0, 203.0), (7.0, 90.0, 0.0)] {
            assert_eq!(begin(low, high), from, "{low}");
        }
    }
}
