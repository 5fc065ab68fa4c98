//! Where data is drawn, and the axes around it.

use super::style::{AXIS_STROKE, GREY, INK};
use super::svg::Svg;
use super::text::{text_width, thousands};

/// Where data is drawn, and what its corners mean.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Beginning and end of the time, seconds.
    pub(super) x: (f64, f64),
    /// Smallest and largest window.
    pub(super) y: (f64, f64),
    /// Length of the runs, seconds: its unit is that of the axis, whatever part is drawn.
    pub(super) duration: f64,
}

impl Frame {
    pub(super) fn x(&self, seconds: f64) -> f64 {
        let (from, to) = self.x;
        self.left + self.width * ((seconds - from) / (to - from).max(f64::MIN_POSITIVE))
    }

    pub(super) fn y(&self, window: f64) -> f64 {
        let (from, to) = self.y;
        self.top + self.height * (1.0 - (window - from) / (to - from))
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

pub(super) struct Axes<'a> {
    pub(super) x_label: bool,
    pub(super) y_label: Option<&'a str>,
    /// Wanted number of ticks, horizontally and vertically.
    pub(super) ticks: (usize, usize),
    /// How far left of its axis the label of the vertical one stands, see [`beside`].
    pub(super) beside: f64,
}

/// How far left of a vertical axis its label stands: beside the widest of its numbers, at `least`
/// so far.
pub(super) fn beside(numbers: impl Iterator<Item = String>, least: f64) -> f64 {
    let widths = numbers.map(|text| text_width(&text, 12.0));
    (widths.fold(0.0, f64::max) + 14.0).max(least)
}

/// Room left of a vertical axis whose label stands so far from it.
pub(super) fn room_left(beside: f64) -> f64 {
    beside + 15.0
}

/// Middle of the label of a vertical axis that begins at `top`. One longer than its axis hangs
/// down beside the numbers below it, not up into the legend.
pub(super) fn middle_of_label((top, height): (f64, f64), label: &str, size: f64) -> f64 {
    (top + height / 2.0).max(top + text_width(label, size) / 2.0)
}

/// How far the numbers below a horizontal axis reach beyond its right end: each is in the middle
/// below its part of the width.
pub(super) fn overhang(numbers: impl Iterator<Item = (f64, String)>, width: f64) -> f64 {
    let beyond =
        |(part, text): (f64, String)| text_width(&text, 12.0) / 2.0 + 4.0 - (1.0 - part) * width;
    numbers.map(beyond).fold(0.0, f64::max)
}

/// The numbers of an axis of windows with these ends.
pub(super) fn numbers(ends: (f64, f64), wanted: usize) -> impl Iterator<Item = String> {
    ticks_between(ends, wanted).into_iter().map(|tick| tick.1)
}

/// The numbers of an axis of time of runs so long, and their parts of it.
pub(super) fn times(
    (from, to): (f64, f64),
    duration: f64,
    wanted: usize,
) -> impl Iterator<Item = (f64, String)> {
    let scale = time_unit(duration).0;
    let (from, all) = (from * scale, (to - from) * scale);
    let part = move |tick| if all > 0.0 { (tick - from) / all } else { 0.0 };
    let ticks = ticks_between((from, from + all), wanted).into_iter();
    ticks.map(move |(tick, text)| (part(tick), text))
}

pub(super) fn axes(out: &mut Svg, frame: &Frame, axes: &Axes<'_>) {
    let (scale, unit) = time_unit(frame.duration);
    let bottom = frame.bottom();
    let right = frame.left + frame.width;
    for (tick, text) in ticks_between(frame.y, axes.ticks.1) {
        let y = frame.y(tick);
        if tick > frame.y.0 {
            out.line(
                frame.left,
                y,
                right,
                y,
                "stroke=\"#e6e6e6\" stroke-width=\"1\"",
            );
        }
        if axes.y_label.is_some() {
            out.text(frame.left - 8.0, y + 4.0, "end", 12.0, GREY, &text);
        }
    }
    let shown = (frame.x.0 * scale, frame.x.1 * scale);
    for (tick, text) in ticks_between(shown, axes.ticks.0) {
        let x = frame.x(tick / scale);
        out.line(x, bottom, x, bottom + 5.0, AXIS_STROKE);
        if axes.x_label {
            out.text(x, bottom + 19.0, "middle", 12.0, GREY, &text);
        }
    }
    out.line(frame.left, bottom, right, bottom, AXIS_STROKE);
    out.line(frame.left, frame.top, frame.left, bottom, AXIS_STROKE);
    if axes.x_label {
        let x = frame.left + frame.width / 2.0;
        out.text(
            x,
            bottom + 40.0,
            "middle",
            13.0,
            INK,
            &format!("time ({unit})"),
        );
    }
    if let Some(words) = axes.y_label {
        let label = format!("congestion window ({words})");
        // A small panel has room for the short form only.
        let label = if text_width(&label, 13.0) > frame.height + 30.0 {
            format!("cwnd ({})", words.split(' ').next().unwrap_or(words))
        } else {
            label
        };
        out.rotated(
            frame.left - axes.beside,
            middle_of_label((frame.top, frame.height), &label, out.size(13.0)),
            13.0,
            INK,
            &label,
        );
    }
}

/// Factor from seconds, and the unit's name, so that an axis of this length has short numbers.
pub(in crate::figure) fn time_unit(seconds: f64) -> (f64, &'static str) {
    if seconds <= 1.0 {
        (1e3, "ms")
    } else {
        (1.0, "s")
    }
}

/// Round numbers between two ends, about `wanted` of them, and how each is written.
pub(super) fn ticks_between((from, to): (f64, f64), wanted: usize) -> Vec<(f64, String)> {
    let marks = ticks(to - from, wanted);
    let Some(step) = marks.get(1).copied() else {
        return vec![(from, thousands(from))];
    };
    stepped((from, to), step)
}

/// The multiples of `step` between two ends, and how each is written.
pub(super) fn stepped((from, to): (f64, f64), step: f64) -> Vec<(f64, String)> {
    let rounding = |steps: f64| (1e-9 * (1.0 + steps.abs())).min(0.5);
    let (first, last) = (from / step, to / step);
    let first = (first - rounding(first)).ceil() as i64;
    let last = (last + rounding(last)).floor() as i64;
    // Neighbours differ in the digit of the step.
    let digits = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    let text = |x: f64| match digits {
        0..=3 => thousands(x),
        _ => format!("{x:.digits$}"),
    };
    let ticks = (first..=last).map(|i| i as f64 * step);
    ticks.map(|x| (x, text(x))).collect()
}

/// Round numbers from 0 to `end`: 1, 2 or 5 times a power of ten apart, about `wanted` of them.
pub(super) fn ticks(end: f64, wanted: usize) -> Vec<f64> {
    if !(end > 0.0 && end.is_finite()) {
        return vec![0.0];
    }
    let wanted = wanted.max(1) as f64;
    let mut power = 1.0;
    while power > end / wanted {
        power /= 10.0;
    }
    while power * 10.0 <= end / wanted {
        power *= 10.0;
    }
    let off = |step: f64| (end / step - wanted).abs();
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = steps
        .into_iter()
        .min_by(|a, b| off(*a).total_cmp(&off(*b)))
        .unwrap_or(power);
    let count = (end / step * (1.0 + 1e-9)).floor() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(100.0, 10),
            (0..=10).map(|i| f64::from(i) * 10.0).collect::<Vec<_>>()
        );
        assert_eq!(ticks(7.0, 7), vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(
            ticks(2590.0, 7),
            vec![0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]
        );
        assert_eq!(ticks(700.0, 4), vec![0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(f64::NAN, 7), vec![0.0]);
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(0.25), "0.25");
    }
}
