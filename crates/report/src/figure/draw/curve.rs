//! Curves reduced to what a picture can show.

use super::Frame;
use super::svg::PathText;
use crate::figure::picture::{Curve, Mark};

impl Curve {
    /// Largest window; 0 without one.
    pub(super) fn highest(&self) -> f64 {
        self.high
            .iter()
            .copied()
            .filter(|w| w.is_finite())
            .fold(0.0, f64::max)
    }
}

/// The window, reduced to first, smallest, largest and last value per `step` seconds.
pub(super) fn window_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let rows = curve
        .time
        .iter()
        .take_while(|t| **t <= frame.x_end * (1.0 + 1e-9))
        .count();
    let mut i = 0;
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
        if first == 0 {
            path.to(frame.x(curve.time[0]), frame.y(curve.window[0]));
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

/// The threshold as steps; parts where it is not finite are left out.
pub(super) fn threshold_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let mut before: Option<(f64, f64)> = None;
    let mut column = -1.0;
    for (&t, &w) in curve.time.iter().zip(&curve.ssthresh) {
        if t > frame.x_end {
            break;
        }
        if !w.is_finite() {
            before = None;
            path.lift();
            continue;
        }
        let here = (t / step).floor();
        match before {
            Some((_, v)) if v == w || here == column => {}
            _ => {
                // A threshold far above the frame is cut off by the clip, not by the number format.
                let y = frame.y(w.min(4.0 * frame.y_end));
                if let Some((_, v)) = before {
                    path.to(frame.x(t), frame.y(v.min(4.0 * frame.y_end)));
                }
                path.to(frame.x(t), y);
                before = Some((t, w));
                column = here;
            }
        }
    }
    if let (Some((_, v)), Some(&end)) = (before, curve.time.last()) {
        path.to(
            frame.x(end.min(frame.x_end)),
            frame.y(v.min(4.0 * frame.y_end)),
        );
    }
    path.text
}

/// Marks far enough from the one before of their kind to be told apart.
pub(super) fn thinned(curve: &Curve, frame: &Frame, distance: f64) -> Vec<Mark> {
    let mut kept: Vec<Mark> = Vec::new();
    for mark in curve.marks.iter().filter(|m| m.time <= frame.x_end) {
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
            x_end: 100.0,
            y_end: 1100.0,
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
            x_end: 100.0,
            y_end: 1000.0,
        };
        let kept = thinned(&curve, &frame, 7.0);
        assert!(kept.len() <= 121 && kept.len() > 60, "{}", kept.len());
    }

    /// Smallest and largest y of the drawn points, in windows again.
    fn drawn_range(d: &str, frame: &Frame) -> (f64, f64) {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for part in d.split(['M', 'L', 'V']).filter(|p| !p.is_empty()) {
            let y: f64 = part.split(' ').next_back().unwrap().parse().unwrap();
            let w = frame.y_end * (1.0 - (y - frame.top) / frame.height);
            range = (range.0.min(w), range.1.max(w));
        }
        range
    }
}
