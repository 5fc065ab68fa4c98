//! A drawing of a part of its axes.

use super::{AskedError, Drawing, Drawn};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::figure::draw::{on_one_axis, time_unit};
use crate::figure::{Curve, Figure, Mark, Range, Ranges};

impl Drawn {
    /// The same drawing with these parts of its axes; its numbers stay.
    ///
    /// # Errors
    /// [`AskedError::Range`]: an axis has no numbers, or nothing to show there.
    pub fn within(mut self, ranges: &Ranges) -> Result<Self, AskedError> {
        if *ranges == Ranges::default() {
            return Ok(self);
        }
        match &mut self.drawing {
            Drawing::Windows { figures, .. } => windows(figures, ranges)?,
            Drawing::Chart(chart) => of_chart(chart, ranges)?,
            Drawing::Matrix(_) => {
                let axis = if ranges.x.is_all() { 'y' } else { 'x' };
                return Err(refused(
                    axis,
                    "a table has no axes",
                    "`bars` draws a metric over one",
                ));
            }
        }
        Ok(self)
    }
}

fn windows(figures: &mut [Figure], ranges: &Ranges) -> Result<(), AskedError> {
    let duration = figures.iter().map(|f| f.duration).fold(0.0, f64::max);
    let seconds = ranges.x.times(1.0 / time_unit(duration).0);
    let shown = on_one_axis(figures);
    let rows = || {
        let curves = shown.iter().flat_map(|f| &f.curves);
        curves.flat_map(|c| (0..c.time.len()).map(move |i| (c, i, (i + 1).min(c.time.len() - 1))))
    };
    if !rows().any(|(c, i, j)| seconds.meets(c.time[i], c.time[j])) {
        return Err(nothing('x', ranges.x));
    }
    let mut seen = rows().filter(|(c, i, j)| seconds.meets(c.time[*i], c.time[*j]));
    let lies_in = |(c, i, j): (&Curve, usize, usize)| {
        let (low, high) = (c.low[i].min(c.low[j]), c.high[i].max(c.high[j]));
        ranges.y.meets(low, high)
    };
    if !seen.any(lies_in) {
        return Err(nothing('y', ranges.y));
    }
    for (figure, shown) in figures.iter_mut().zip(&shown) {
        figure.ranges = Ranges {
            x: seconds,
            y: ranges.y,
        };
        // The legend names and counts what is drawn.
        figure.warmup = warmup(figure.warmup, seconds);
        for (curve, shown) in figure.curves.iter_mut().zip(&shown.curves) {
            let is_seen = |mark: &Mark| seconds.has(mark.time) && ranges.y.has(mark.window);
            let mut seen = shown.marks.iter().map(is_seen);
            curve.marks.retain(|_| seen.next() == Some(true));
        }
    }
    Ok(())
}

fn of_chart(chart: &mut Chart, ranges: &Ranges) -> Result<(), AskedError> {
    let of_one = |a: &Panel, b: &Panel| a.y.label == b.y.label;
    if !ranges.y.is_all() && !chart.panels.windows(2).all(|p| of_one(&p[0], &p[1])) {
        let hint = "draw one of its quantities, as `goodput` or `rtt`";
        return Err(refused(
            'y',
            "the panels have different vertical axes",
            hint,
        ));
    }
    for panel in &mut chart.panels {
        // An end that nobody chose stays that of the drawing.
        let x = on_axis('x', &panel.x, ranges.x)?;
        panel.ranges = Ranges {
            x: Range {
                from: x.from.or(panel.ranges.x.from.filter(|_| x.to.is_none())),
                to: x.to,
            },
            y: on_axis('y', &panel.y, ranges.y)?,
        };
        panel.warmup = warmup(panel.warmup, panel.ranges.x);
    }
    // A line may cross a part in which it has no point.
    let pieces = || {
        let panels = chart.panels.iter();
        panels.flat_map(|p| {
            p.lines
                .iter()
                .flat_map(|l| pieces(l).map(|ends| (p.ranges, ends)))
        })
    };
    let meets = |range: Range, a: f64, b: f64| range.meets(a.min(b), a.max(b));
    let meets_both = |r: Ranges, [a, b]: [(f64, [f64; 2]); 2]| {
        let (low, high) = (a.1[0].min(b.1[0]), a.1[1].max(b.1[1]));
        meets(r.x, a.0, b.0) && r.y.meets(low, high)
    };
    if !pieces().any(|(r, [a, b])| meets(r.x, a.0, b.0)) {
        return Err(nothing('x', ranges.x));
    }
    if !pieces().any(|(r, ends)| meets_both(r, ends)) {
        return Err(nothing('y', ranges.y));
    }
    Ok(())
}

/// What is drawn of a line between its points, of loose ones the points: both ends, each with the
/// smallest and the largest that it stands for.
fn pieces(line: &Line) -> impl Iterator<Item = [(f64, [f64; 2]); 2]> + '_ {
    let step = usize::from(!line.loose);
    let count = line.points.len();
    let end = move |i: usize| {
        let (x, y) = line.points[i];
        (x, line.band.get(i).copied().unwrap_or([y, y]))
    };
    (0..count).map(move |i| [end(i), end((i + step).min(count - 1))])
}

/// The range as the points of an axis have it.
fn on_axis(which: char, axis: &Axis, range: Range) -> Result<Range, AskedError> {
    if range.is_all() {
        return Ok(range);
    }
    let by_logarithm = matches!(axis.scale, Scale::Log | Scale::Values { log: true, .. });
    if by_logarithm
        && [range.from, range.to]
            .iter()
            .flatten()
            .any(|end| *end <= 0.0)
    {
        let hint = "its ends are above zero";
        return Err(refused(which, "the axis is logarithmic", hint));
    }
    match &axis.scale {
        Scale::Names(_) => {
            let hint = "`--where KEY=VALUE` chooses among them";
            Err(refused(which, "the axis has names, no numbers", hint))
        }
        Scale::Values { marks, .. } => match shown_unit(marks) {
            Some(factor) => Ok(range.times(factor)),
            None => {
                let hint = "`--where KEY=VALUE` chooses among them";
                Err(refused(
                    which,
                    "the values of the axis have several units",
                    hint,
                ))
            }
        },
        _ => Ok(range),
    }
}

/// Factor from the numbers that stand below an axis to those behind them: `20 ms` may be 0.02. The
/// default is what each shows; none where they differ.
fn shown_unit(marks: &[(f64, String)]) -> Option<f64> {
    let mut factor = None;
    for (x, name) in marks {
        let end = name.find(' ').unwrap_or(name.len());
        let shown: f64 = name[..end].trim_end_matches('%').parse().ok()?;
        if shown == 0.0 {
            continue;
        }
        let here = x / shown;
        let known = *factor.get_or_insert(here);
        if (here - known).abs() > 1e-9 * known.abs() {
            return None;
        }
    }
    Some(factor.unwrap_or(1.0))
}

/// The end of a warm-up, or none where nothing of it is seen.
fn warmup(end: f64, range: Range) -> f64 {
    match range.from {
        Some(from) if from >= end => 0.0,
        _ => end,
    }
}

fn nothing(axis: char, range: Range) -> AskedError {
    let what = format!("nothing of the figure is between the ends of {range}");
    refused(axis, &what, "`--out FILE.csv` writes its numbers")
}

fn refused(axis: char, what: &str, hint: &str) -> AskedError {
    AskedError::Range {
        axis,
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(y: &str, points: Vec<(f64, f64)>) -> Panel {
        let axis = |label: &str| Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
        };
        let line = Line {
            points,
            ..Line::default()
        };
        Panel {
            x: axis("time (s)"),
            y: axis(y),
            lines: vec![line],
            warmup: 1.0,
            ..Panel::default()
        }
    }

    fn ranges(x: &str, y: &str) -> Ranges {
        let part = |text: &str| text.parse().unwrap_or_default();
        Ranges {
            x: part(x),
            y: part(y),
        }
    }

    /// Megabits are no milliseconds.
    #[test]
    fn one_vertical_range_is_of_one_quantity() {
        let points = vec![(0.0, 5.0), (9.0, 5.0)];
        let panels = |labels: [&str; 2]| Chart {
            panels: labels.map(|y| panel(y, points.clone())).to_vec(),
            ..Chart::default()
        };
        let mut load = panels(["goodput (Mbit/s)", "ping (ms)"]);
        assert!(of_chart(&mut load, &ranges("", "1:9")).is_err());
        // The time is that of both. Nothing between the ends is a point, and a line goes through.
        of_chart(&mut load, &ranges("2:3", "")).unwrap();
        assert_eq!(load.panels[1].warmup, 0.0, "nothing of it is seen");
        let mut same = panels(["goodput (Mbit/s)"; 2]);
        of_chart(&mut same, &ranges("", "1:9")).unwrap();
        assert!(of_chart(&mut same, &ranges("", "6:9")).is_err());
        assert!(of_chart(&mut same, &ranges("9.5:", "")).is_err());
    }

    /// What is seen of a line's band is something.
    #[test]
    fn a_band_lies_in_a_range() {
        let mut chart = Chart::default();
        chart.panels.push(panel(
            "round-trip time (ms)",
            vec![(0.0, 80.0), (9.0, 80.0)],
        ));
        let high = ranges("", "150:190");
        assert!(of_chart(&mut chart, &high).is_err());
        chart.panels[0].lines[0].band = vec![[80.0, 80.0], [80.0, 200.0]];
        of_chart(&mut chart, &high).unwrap();
    }

    #[test]
    fn a_range_is_in_the_unit_that_stands_below_an_axis() {
        let marks = |all: &[(f64, &str)]| -> Vec<(f64, String)> {
            all.iter()
                .map(|(x, name)| (*x, (*name).to_owned()))
                .collect()
        };
        let unit = |all: &[(f64, &str)]| shown_unit(&marks(all));
        assert_eq!(unit(&[(1.0, "1"), (9.0, "9")]), Some(1.0));
        assert_eq!(unit(&[(0.02, "20 ms"), (0.08, "80 ms")]), Some(0.001));
        assert_eq!(unit(&[(0.0, "0 %"), (0.05, "5%")]), Some(0.01));
        assert_eq!(unit(&[(0.08, "80 ms"), (1.0, "1 s")]), None);
        assert_eq!(unit(&[(0.5, "0.5 BDP"), (1.0, "large")]), None);
    }
}
