//! The window of a flow over time, and when it reaches a value.
//!
//! It is read from the rounds (a row per RTT), the windows before and after each episode, and the
//! moments at which the window reached its clamp, in the order of time. All of these are recorded
//! whether there is a time series or not, so that no metric depends on how much of a trace is kept.

use fullpipe_flow::EpisodeKind;
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

impl Point {
    fn of(at: Time, window: f64) -> Self {
        Self {
            at,
            last: window,
            low: window,
            high: window,
        }
    }
}

/// Episodes, rounds and arrivals at the clamp, merged by time.
pub(super) fn trajectory(flow: &FlowOutcome) -> Vec<Point> {
    let episodes = flow.episodes.iter().flat_map(|e| {
        let after = match e.kind {
            // At one stroke: what is undone before a round has begun is seen nowhere else.
            EpisodeKind::Undo(_) | EpisodeKind::Timeout => Some(Point::of(e.at, e.after)),
            // The reduction itself may take a round (RFC 9937): the next round shows it.
            _ => None,
        };
        std::iter::once(Point::of(e.at, e.before)).chain(after)
    });
    let rounds = flow.rounds.iter().map(|r| Point::of(r.start, r.cwnd));
    let at_cap = flow
        .at_cap
        .iter()
        .map(|(at, window)| Point::of(*at, *window));
    // Sorting keeps the order of equals: a round that begins with an episode follows it.
    let mut points: Vec<Point> = episodes.chain(rounds).chain(at_cap).collect();
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
