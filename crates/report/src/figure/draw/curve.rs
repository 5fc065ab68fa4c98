//! Curves reduced to what a picture can show.

use super::Frame;
use super::svg::PathText;
use crate::figure::Range;
use crate::figure::picture::{Curve, Mark};

impl Curve {
    /// Largest window in a part of the time; 0 without one.
    pub(super) fn highest(&self, seconds: Range) -> f64 {
        let rows = self.time.iter().zip(&self.high);
        rows.filter(|(t, w)| seconds.has(**t) && w.is_finite())
            .fold(0.0, |highest, (_, w)| w.max(highest))
    }
}

/// The window, reduced to first, smallest, largest and last value per `step` seconds.
pub(super) fn window_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let (begin, rows) = rows(curve, frame);
    let mut i = begin;
    while i < rows {
        let column = (curve.time[i] / step).floor();
        let first = i;
        let (mut lowest, mut highest) = (i, i);
        while i < rows && (curve.time[i] / step).floor() == column {
            if curve.low[i] < curve.low[lowest] {
                lowest = i;
            }
            if curve.high[i] > curve.high[highest] {
                highest = i;
            }
            i += 1;
        }
        let last = i - 1;
        if first == begin {
            path.to(frame.x(curve.time[first]), frame.y(curve.window[first]));
        }
        let low = (lowest, curve.low[lowest]);
        let high = (highest, curve.high[highest]);
        // Extremes of one row: a row that ends near its smallest value peaked first.
        let fell =
            curve.window[lowest] - curve.low[lowest] < curve.high[highest] - curve.window[highest];
        let peak_first = highest < lowest || highest == lowest && fell;
        let (a, b) = if peak_first { (high, low) } else { (low, high) };
        for (row, w) in [a, b, (last, curve.window[last])] {
            path.to(frame.x(curve.time[row]), frame.y(w));
        }
    }
    path.text
}

/// First row and end of the rows that are drawn: those of the frame, and the neighbour on either
/// side, so that a line goes on to the edge, where the clip ends it.
fn rows(curve: &Curve, frame: &Frame) -> (usize, usize) {
    let (from, to) = frame.x;
    let before = curve.time.partition_point(|t| *t < from);
    let until = curve.time.partition_point(|t| *t <= to * (1.0 + 1e-9));
    let beyond = usize::from(to < frame.duration);
    (
        before.saturating_sub(1),
        (until + beyond).min(curve.time.len()),
    )
}

/// The threshold as steps; parts where it is not finite are left out.
pub(super) fn threshold_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let mut before: Option<(f64, f64)> = None;
    let mut column = f64::NEG_INFINITY;
    // A threshold far above the frame is cut off by the clip, not by the number format.
    let (low, high) = frame.y;
    let y = |w: f64| frame.y(w.min(high + 3.0 * (high - low)));
    let (begin, end) = rows(curve, frame);
    for i in begin..end {
        let (t, w) = (curve.time[i], curve.ssthresh[i]);
        if !w.is_finite() {
            before = None;
            path.lift();
            continue;
        }
        let here = (t / step).floor();
        match before {
            Some((_, v)) if v == w || here == column => {}
            _ => {
                if let Some((_, v)) = before {
                    path.to(frame.x(t), y(v));
                }
                path.to(frame.x(t), y(w));
                before = Some((t, w));
                column = here;
            }
        }
    }
    if let (Some((_, v)), Some(&end)) = (before, curve.time.last()) {
        path.to(frame.x(end.min(frame.x.1)), y(v));
    }
    path.text
}

/// Marks far enough from the one before of their kind to be told apart.
pub(super) fn thinned(curve: &Curve, frame: &Frame, distance: f64) -> Vec<Mark> {
    let mut kept: Vec<Mark> = Vec::new();
    let is_seen = |m: &&Mark| {
        let (from, to) = frame.x;
        from <= m.time && m.time <= to && frame.y.0 <= m.window && m.window <= frame.y.1
    };
    for mark in curve.marks.iter().filter(is_seen) {
        let near = kept
            .iter()
            .rev()
            .find(|k| k.kind == mark.kind)
            .is_some_and(|k| (frame.x(mark.time) - frame.x(k.time)) < distance);
        if !near {
            kept.push(*mark);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::tests::sawtooth;
    use super::*;

    #[test]
    fn one_tooth_of_a_million_rows_keeps_its_peak() {
        let mut curve = sawtooth(1_000_000, 100.0, 1.0, 500.0, 500.0);
        curve.high[123_456] = 1000.0;
        curve.low[654_321] = 10.0;
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 800.0,
            height: 400.0,
            x: (0.0, 100.0),
            y: (0.0, 1100.0),
            duration: 100.0,
        };
        let (low, high) = drawn_range(&window_path(&curve, &frame, 100.0 / 800.0), &frame);
        assert!(
            (high - 1000.0).abs() < 1.0 && (low - 10.0).abs() < 1.0,
            "{low} {high}"
        );
    }

    #[test]
    fn marks_that_would_cover_each_other_are_thinned() {
        let curve = sawtooth(100_000, 100.0, 2_000.0, 400.0, 800.0);
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 840.0,
            height: 400.0,
            x: (0.0, 100.0),
            y: (0.0, 1000.0),
            duration: 100.0,
        };
        let kept = thinned(&curve, &frame, 7.0);
        assert!(kept.len() <= 121 && kept.len() > 60, "{}", kept.len());
    }

    /// Smallest and largest y of the drawn points, in windows again.
    fn drawn_range(d: &str, frame: &Frame) -> (f64, f64) {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for part in d.split(['M', 'L', 'V']).filter(|p| !p.is_empty()) {
            let y: f64 = part.split(' ').next_back().unwrap().parse().unwrap();
            let w = frame.y.1 * (1.0 - (y - frame.top) / frame.height);
            range = (range.0.min(w), range.1.max(w));
        }
        range
    }
}
