//! The window of a flow over time, and when it reaches a value.
//!
//! It is read from the rounds (a row per RTT) and from the time series (extremes kept), merged in
//! time order, so a crossing is found at the resolution of the finer of the two.

use fullpipe_run::FlowOutcome;
use fullpipe_units::Time;

/// The window at a time, and its extremes since the row before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: Time,
    pub(super) last: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Rounds and series, merged by time.
pub(super) fn trajectory(flow: &FlowOutcome) -> Vec<Point> {
    let rows = flow.series.rows.iter().map(|r| Point {
        at: r.time,
        last: r.cwnd,
        low: r.cwnd_min,
        high: r.cwnd_max,
    });
    let rounds = flow.rounds.iter().map(|r| Point {
        at: r.start,
        last: r.cwnd,
        low: r.cwnd,
        high: r.cwnd,
    });
    let mut points: Vec<Point> = rows.chain(rounds).collect();
    points.sort_by_key(|p| p.at);
    points
}

/// First time at or after `from` that the window is at least `target`.
pub(super) fn reaches(points: &[Point], from: Time, target: f64) -> Option<Time> {
    let begin = points.partition_point(|p| p.at < from);
    crossing(
        begin.checked_sub(1).map(|i| points[i]),
        &points[begin..],
        target,
    )
}

pub(super) fn crossing(mut before: Option<Point>, points: &[Point], target: f64) -> Option<Time> {
    for p in points {
        if p.high >= target * (1.0 - ROUNDING) {
            let Some(b) = before.filter(|b| b.last < target && p.at > b.at) else {
                return Some(p.at);
            };
            // Linear between the two rows.
            let part = ((target - b.last) / (p.high - b.last)).clamp(0.0, 1.0);
            return Some(b.at + (p.at - b.at).mul_f64(part));
        }
        before = Some(*p);
    }
    None
}

/// Slack of a comparison with a window that was computed another way.
pub(super) const ROUNDING: f64 = 1e-9;
