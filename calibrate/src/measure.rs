//! The reducer: one definition of every metric, for rows observed in Linux and rows of the
//! simulator.
//!
//! Both sides first become a [`Record`]: rows of one flow on the run's clock, and the moments at
//! which the flow found losses. [`measure`] and [`Curve::of`] know nothing of where a record comes
//! from.

use serde::{Deserialize, Serialize};

/// Grid on which window and RTT are averaged, ms.
pub const GRID_MS: u64 = 10;

/// Step of a curve that is kept, ms.
pub const CURVE_MS: u64 = 100;

/// What was seen of one flow. Times are ms since the start of the run's first flow; a flow starts
/// with its handshake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Rows in order of time, from the first one after the handshake; each holds until the next.
    pub rows: Vec<Row>,
    /// Losses found, in order of time.
    pub events: Vec<Event>,
    /// Segments sent more than once, counted as often as they were, over the flow's life.
    pub retransmits: u64,
    /// Fast recoveries entered, over the flow's life.
    pub recoveries: u64,
    /// Retransmission timeouts, over the flow's life.
    pub timeouts: u64,
    /// When all of a finite transfer was acknowledged, ms.
    pub completed_ms: Option<f64>,
}

/// State of a flow at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// When, ms.
    pub ms: f64,
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Smoothed RTT, ms.
    pub srtt_ms: f64,
    /// Payload acknowledged so far, bytes.
    pub acked: u64,
}

/// A loss found: a fast recovery begins, or the retransmission timer goes off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When, ms.
    pub ms: f64,
    /// Window just before, segments.
    pub cwnd: f64,
}

/// The metrics of one flow in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Payload acknowledged in the measured part over its length, Mbit/s.
    pub goodput_mbit: f64,
    /// Mean window on the 10 ms grid, segments.
    pub cwnd_mean: f64,
    /// Mean smoothed RTT on the 10 ms grid, ms.
    pub rtt_mean_ms: f64,
    /// Its 95th percentile (nearest rank), ms.
    pub rtt_p95_ms: f64,
    /// Fast recoveries and timeouts, over the flow's life.
    pub loss_events: u64,
    /// Retransmissions, over the flow's life.
    pub retransmits: u64,
    /// Timeouts, over the flow's life.
    pub timeouts: u64,
    /// Time of the first loss event, s.
    pub first_loss_s: Option<f64>,
    /// Window just before it, segments.
    pub first_loss_cwnd: Option<f64>,
    /// Time of a finite transfer, its handshake included, s.
    pub completed_s: Option<f64>,
}

/// A window over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Time of the first value, ms.
    pub start_ms: u64,
    /// Time between values, ms.
    pub step_ms: u64,
    /// Window, segments.
    pub cwnd: Vec<f64>,
}

impl Record {
    /// The rows that hold at the points of a grid within `[from_ms, end_ms]`; points before the
    /// first row have none.
    fn on_grid(&self, from_ms: u64, end_ms: u64, step_ms: u64) -> impl Iterator<Item = (u64, Row)> {
        let mut next = 0;
        (from_ms.div_ceil(step_ms)..=end_ms / step_ms).filter_map(move |k| {
            let ms = k * step_ms;
            while self.rows.get(next).is_some_and(|r| r.ms <= ms as f64) {
                next += 1;
            }
            Some((ms, self.rows[next.checked_sub(1)?]))
        })
    }

    /// Payload acknowledged up to a moment, bytes.
    fn acked_at(&self, ms: u64) -> u64 {
        let after = self.rows.partition_point(|r| r.ms <= ms as f64);
        after.checked_sub(1).map_or(0, |i| self.rows[i].acked)
    }
}

/// The metrics of a record. Goodput, window and RTT are those of the part from `from_ms` to
/// `end_ms`; losses are those of the flow's whole life.
pub fn measure(record: &Record, from_ms: u64, end_ms: u64) -> Measure {
    let (mut cwnd, mut rtt) = (Vec::new(), Vec::new());
    for (_, row) in record.on_grid(from_ms, end_ms, GRID_MS) {
        cwnd.push(row.cwnd);
        rtt.push(row.srtt_ms);
    }
    rtt.sort_by(f64::total_cmp);
    let rank = (rtt.len() * 95).div_ceil(100);
    let bits = 8.0 * (record.acked_at(end_ms) - record.acked_at(from_ms)) as f64;
    let first = record.events.first();
    Measure {
        goodput_mbit: bits / 1e3 / (end_ms - from_ms) as f64,
        cwnd_mean: mean(&cwnd),
        rtt_mean_ms: mean(&rtt),
        rtt_p95_ms: rank.checked_sub(1).map_or(0.0, |i| rtt[i]),
        loss_events: record.recoveries + record.timeouts,
        retransmits: record.retransmits,
        timeouts: record.timeouts,
        first_loss_s: first.map(|e| e.ms / 1e3),
        first_loss_cwnd: first.map(|e| e.cwnd),
        completed_s: record.completed_ms.map(|ms| ms / 1e3),
    }
}

impl Curve {
    /// The window of a record every `step_ms`, up to `end_ms`.
    pub fn of(record: &Record, end_ms: u64, step_ms: u64) -> Self {
        let mut start_ms = 0;
        let mut cwnd = Vec::new();
        for (ms, row) in record.on_grid(0, end_ms, step_ms) {
            if cwnd.is_empty() {
                start_ms = ms;
            }
            cwnd.push(row.cwnd);
        }
        Self {
            start_ms,
            step_ms,
            cwnd,
        }
    }

    /// The value that holds at a time; none before the first and more than a step after the last.
    pub fn at(&self, ms: f64) -> Option<f64> {
        let steps = (ms - self.start_ms as f64) / self.step_ms as f64;
        (steps >= 0.0)
            .then(|| self.cwnd.get(steps as usize).copied())
            .flatten()
    }

    /// Times, ms, and values.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let at = move |k: usize| (self.start_ms + k as u64 * self.step_ms) as f64;
        self.cwnd.iter().enumerate().map(move |(k, w)| (at(k), *w))
    }

    /// Normalised root-mean-square difference of two windows, `self` being the reference.
    ///
    /// The other curve is shifted in time by `shift_ms` (its first loss minus the reference's), so
    /// that a start that differs by some milliseconds does not count for the whole run:
    /// `sqrt(mean((o(t + shift) - r(t))^2)) / mean(r(t))`, over the reference's grid points at
    /// which both curves have a value. `None` without such points.
    pub fn rmse(&self, other: &Self, shift_ms: f64) -> Option<f64> {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (ms, reference) in self.points() {
            if let Some(value) = other.at(ms + shift_ms) {
                n += 1.0;
                sum += reference;
                squares += (value - reference) * (value - reference);
            }
        }
        (sum > 0.0).then(|| (squares / n).sqrt() / (sum / n))
    }
}

/// Arithmetic mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ms: f64, cwnd: f64, srtt_ms: f64, acked: u64) -> Row {
        Row {
            ms,
            cwnd,
            srtt_ms,
            acked,
        }
    }

    /// 10 segments from 5 ms, 20 from 60 ms, 30 at the very end (100 ms).
    fn record() -> Record {
        Record {
            rows: vec![
                row(5.0, 10.0, 40.0, 1000),
                row(60.0, 20.0, 80.0, 5000),
                row(100.0, 30.0, 120.0, 13_500),
            ],
            events: vec![
                Event {
                    ms: 60.0,
                    cwnd: 12.0,
                },
                Event {
                    ms: 90.0,
                    cwnd: 25.0,
                },
            ],
            retransmits: 7,
            recoveries: 2,
            timeouts: 1,
            completed_ms: None,
        }
    }

    #[test]
    fn a_row_holds_until_the_next_one() {
        let m = measure(&record(), 0, 100);
        // 10..50 ms: five points of 10; 60..90 ms: four of 20; 100 ms: one of 30. None at 0.
        assert_eq!(m.cwnd_mean, (5.0 * 10.0 + 4.0 * 20.0 + 30.0) / 10.0);
        assert_eq!(m.rtt_mean_ms, (5.0 * 40.0 + 4.0 * 80.0 + 120.0) / 10.0);
        assert_eq!(m.rtt_p95_ms, 120.0);
        // 13 500 bytes in 0.1 s.
        assert!((m.goodput_mbit - 1.08).abs() < 1e-12);
        assert_eq!((m.loss_events, m.retransmits, m.timeouts), (3, 7, 1));
        assert_eq!(
            (m.first_loss_s, m.first_loss_cwnd),
            (Some(0.06), Some(12.0))
        );
    }

    #[test]
    fn the_measured_part_begins_where_it_is_told() {
        let m = measure(&record(), 60, 100);
        assert_eq!(m.cwnd_mean, (4.0 * 20.0 + 30.0) / 5.0);
        // 8500 bytes in 40 ms: what was acknowledged at its first moment is not counted.
        assert!((m.goodput_mbit - 1.7).abs() < 1e-12);
        let m = measure(&Record::default(), 0, 100);
        assert_eq!((m.goodput_mbit, m.first_loss_s), (0.0, None));
    }

    #[test]
    fn the_95th_percentile_is_a_value_that_was_there() {
        let rows = (1..=100)
            .map(|k| row(f64::from(k) * 10.0, 1.0, f64::from(101 - k), 0))
            .collect();
        let record = Record {
            rows,
            ..Record::default()
        };
        assert_eq!(measure(&record, 0, 1000).rtt_p95_ms, 95.0);
    }

    #[test]
    fn curves_hold_and_end() {
        let c = Curve::of(&record(), 100, 20);
        assert_eq!(
            (c.start_ms, c.cwnd.clone()),
            (20, vec![10.0, 10.0, 20.0, 20.0, 30.0])
        );
        assert_eq!(c.at(19.9), None);
        assert_eq!(c.at(59.9), Some(10.0));
        assert_eq!(c.at(60.0), Some(20.0));
        assert_eq!(c.at(119.0), Some(30.0));
        assert_eq!(c.at(120.0), None);
    }

    #[test]
    fn a_shifted_curve_is_no_error_and_a_scaled_one_is() {
        let saw = |k: u64| ((k % 7) + 3) as f64;
        let curve = |from: u64, gain: f64| Curve {
            start_ms: 0,
            step_ms: 10,
            cwnd: (from..from + 100).map(|k| gain * saw(k)).collect(),
        };
        // The other one is 30 ms ahead: what it shows at t the reference shows at t + 30 ms.
        let (reference, early) = (curve(0, 1.0), curve(3, 1.0));
        assert_eq!(reference.rmse(&early, -30.0), Some(0.0));
        assert!(reference.rmse(&early, 0.0).unwrap() > 0.1);
        // Twice as large: the difference is the reference itself, so its rms over its mean.
        let squares = mean(&reference.cwnd.iter().map(|w| w * w).collect::<Vec<_>>());
        let expected = squares.sqrt() / mean(&reference.cwnd);
        let got = reference.rmse(&curve(0, 2.0), 0.0).unwrap();
        assert!((got - expected).abs() < 1e-12);
        assert_eq!(reference.rmse(&early, 1e9), None);
    }
}
