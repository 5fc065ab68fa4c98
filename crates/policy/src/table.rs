//! a(w) and b(w) as rows: each holds from its window up to the next row's.
//!
//! The rows are as few, and the error as small, as 128 rows allow: a row ends where a or b would
//! leave a band around its value, and the band is the narrowest with which the rows suffice. The
//! error is stated, not assumed.

use crate::compiled::{Row, TABLE_ROWS};

/// Rows, and how far they are from the law at whole windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// At most [`TABLE_ROWS`]; the first begins at 0.
    pub rows: Vec<Row>,
    /// Largest relative error of a, and of b.
    pub error: (f64, f64),
}

/// Segments beyond which the last row holds: TCP's largest window, 2^30 bytes (RFC 7323 section
/// 2.3), in segments of 1024 bytes.
pub const MOST_FITTED: u32 = 1 << 20;

/// Rows for windows up to `most` segments.
pub fn fit(a: impl Fn(f64) -> f64, b: impl Fn(f64) -> f64, most: u32) -> Fit {
    let points = points(&a, &b, most.clamp(1, MOST_FITTED));
    let exact = runs(&points, 0.0);
    let runs = match exact.len() <= TABLE_ROWS {
        true => exact,
        false => narrowest(&points),
    };
    let rows: Vec<Row> = runs.iter().enumerate().map(|(i, run)| run.row(i)).collect();
    let mut error = (0.0_f64, 0.0_f64);
    for (run, row) in runs.iter().zip(&rows) {
        let off = |value: f64, (low, high): (f64, f64)| {
            (value / low - 1.0).abs().max((value / high - 1.0).abs())
        };
        error.0 = error.0.max(off(f64::from(row.increase) / 256.0, run.a));
        error.1 = error.1.max(off(f64::from(row.decrease) / 65536.0, run.b));
    }
    Fit { rows, error }
}

struct Point {
    window: u32,
    a: f64,
    b: f64,
}

/// Consecutive points that share a row: lowest and highest a and b among them.
struct Run {
    window: u32,
    points: u32,
    a: (f64, f64),
    b: (f64, f64),
}

impl Run {
    fn of(point: &Point) -> Self {
        Self {
            window: point.window,
            points: 1,
            a: (point.a, point.a),
            b: (point.b, point.b),
        }
    }

    /// The run with one more point, if a and b stay within a factor of `band`.
    fn with(&self, point: &Point, band: f64) -> Option<Self> {
        let wider = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
        let (a, b) = (wider(self.a, point.a), wider(self.b, point.b));
        let fits = |(low, high): (f64, f64)| high <= low * band;
        // Where the law is constant, as Reno's below `low_window`, the row is exact.
        let flat = self.a.0 == self.a.1 && self.b.0 == self.b.1 && self.points >= FLAT;
        let bends = flat && (a != self.a || b != self.b);
        (fits(a) && fits(b) && !bends).then_some(Self {
            points: self.points + 1,
            a,
            b,
            ..*self
        })
    }

    /// The value with the same relative error to either end is the geometric mean.
    fn row(&self, index: usize) -> Row {
        let middle = |(low, high): (f64, f64)| {
            if low == high {
                low
            } else {
                libm::sqrt(low * high)
            }
        };
        Row {
            window: if index == 0 { 0 } else { self.window },
            increase: libm::round(middle(self.a) * 256.0) as u32,
            decrease: libm::round(middle(self.b) * 65536.0) as u32,
        }
    }
}

fn runs(points: &[Point], error: f64) -> Vec<Run> {
    let band = (1.0 + error) * (1.0 + error);
    let mut runs: Vec<Run> = Vec::new();
    for point in points {
        match runs.last().and_then(|run| run.with(point, band)) {
            Some(wider) => *runs.last_mut().expect("there is a last") = wider,
            None => runs.push(Run::of(point)),
        }
    }
    runs
}

/// Bisection of the error; the number of rows falls with it.
fn narrowest(points: &[Point]) -> Vec<Run> {
    let (mut low, mut high) = (0.0, 1.0);
    while runs(points, high).len() > TABLE_ROWS {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        match runs(points, middle).len() > TABLE_ROWS {
            true => low = middle,
            false => high = middle,
        }
    }
    runs(points, high)
}

/// Halvings of an error of 1: to a hundred-thousandth.
const STEPS: u32 = 17;

/// Windows at which the law is looked at: all where a or b moves by more than [`STEP`] from one to
/// the next, and at least every hundredth part of a window, so that nothing is stepped over.
fn points(a: &impl Fn(f64) -> f64, b: &impl Fn(f64) -> f64, most: u32) -> Vec<Point> {
    let at = |window: u32| Point {
        window,
        a: a(f64::from(window)),
        b: b(f64::from(window)),
    };
    let mut points = vec![at(1)];
    let mut ahead: Vec<Point> = Vec::new();
    while let Some(last) = points.last().map(|p| p.window).filter(|w| *w < most) {
        let step = (last / 100).max(1);
        ahead.push(at((last + step).min(most)));
        while let Some(next) = ahead.pop() {
            let before = &points[points.len() - 1];
            let moves = |x: f64, y: f64| (x / y - 1.0).abs() > STEP;
            let far = moves(next.a, before.a) || moves(next.b, before.b);
            if far && next.window - before.window > 1 {
                let middle = at(before.window + (next.window - before.window) / 2);
                ahead.push(next);
                ahead.push(middle);
            } else {
                points.push(next);
            }
        }
    }
    points
}

/// Points of equal a and b from which on a row is left alone.
const FLAT: u32 = 8;

/// Relative change of a or b between two windows that are looked at.
const STEP: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use fullpipe_cc::law::highspeed::{Constants, Form, HighSpeed, Response};
    use proptest::prelude::*;

    use super::*;

    fn row_at(rows: &[Row], w: u32) -> &Row {
        &rows[rows.partition_point(|row| row.window <= w) - 1]
    }

    /// Third column of Linux's table (`hstcp_aimd_vals`, tcp_highspeed.c): 256 b(w), rounded down,
    /// at all windows of RFC 3649's Appendix B but the last.
    #[rustfmt::skip]
    const LINUX_DECREASE: [u32; 72] = [
        128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59,
        58, 57, 56, 55, 54, 53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40,
        39, 39, 38, 38, 37, 36, 36, 35, 35, 34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
    ];

    /// RFC 3649, Appendix B: 73 rows, of which some as they are printed; b in two decimals.
    #[test]
    fn appendix_b_is_compiled_row_by_row() {
        let law = HighSpeed::rfc(Form::Floor);
        let fit = fit(|w| law.a(w), |w| law.b(w), MOST_FITTED);
        assert_eq!(fit.rows.len(), 73);
        for (i, window, increase, decrease) in [
            (1, 118, 2, 0.44),
            (2, 221, 3, 0.41),
            (3, 347, 4, 0.38),
            (6, 851, 7, 0.34),
            (7, 1058, 8, 0.33),
            (71, 89053, 72, 0.10),
            (72, 94717, 73, 0.09),
        ] {
            let row = fit.rows[i];
            assert_eq!(
                (row.window, row.increase),
                (window, increase * 256),
                "row {i}"
            );
            let printed = (decrease * 65536.0_f64).round() as u32;
            assert_eq!(row.decrease, printed, "row {i}");
        }
        for (i, (row, linux)) in fit.rows.iter().zip(LINUX_DECREASE).enumerate() {
            assert_eq!(row.increase, (i as u32 + 1) * 256);
            let off = f64::from(row.decrease) / 65536.0 - f64::from(linux) / 256.0;
            assert!(
                (-0.005..=0.005 + 1.0 / 256.0).contains(&off),
                "row {i}: {off}"
            );
        }
        assert!(fit.error.0 == 0.0 && fit.error.1 < 1e-4, "{:?}", fit.error);
    }

    #[test]
    fn a_constant_pair_is_one_row() {
        let fit = fit(|_| 4.0, |_| 0.125, MOST_FITTED);
        let row = Row {
            window: 0,
            increase: 1024,
            decrease: 8192,
        };
        assert_eq!((fit.rows, fit.error), (vec![row], (0.0, 0.0)));
    }

    #[test]
    fn the_rfcs_constants_fit_within_three_per_cent() {
        let law = HighSpeed::rfc(Form::Exact);
        let fit = fit(|w| law.a(w), |w| law.b(w), 100_000);
        assert!(fit.rows.len() <= TABLE_ROWS);
        assert!(fit.error.0 < 0.03 && fit.error.1 < 0.03, "{:?}", fit.error);
    }

    proptest! {
        /// Whatever the four parameters: at most 128 rows, and at any whole window the row is as
        /// close to the law as stated; 0.2 % for what lies between the windows that were looked at.
        #[test]
        fn the_stated_error_holds_for_any_parameters(
            low_window in 2.0..1000.0_f64,
            span in 2.0..10_000.0_f64,
            high_p in -9.0..-5.0_f64,
            high_decrease in 0.05..0.5_f64,
            windows in prop::collection::vec(0.0..1.0_f64, 50),
        ) {
            let constants = Constants {
                low_window,
                high_window: (low_window * span).min(1e6),
                high_p: 10_f64.powf(high_p),
                high_decrease,
                ..Constants::RFC
            };
            let Ok(response) = Response::new(constants, Form::Exact) else {
                return Err(TestCaseError::reject("no such law"));
            };
            let law = HighSpeed::new(response);
            let fit = fit(|w| law.a(w), |w| law.b(w), MOST_FITTED);
            prop_assert!(fit.rows.len() <= TABLE_ROWS);
            for x in windows {
                let w = f64::from(MOST_FITTED).powf(x) as u32;
                let row = row_at(&fit.rows, w);
                let (a, b) = (law.a(f64::from(w)), law.b(f64::from(w)));
                let off_a = (f64::from(row.increase) / 256.0 / a - 1.0).abs();
                let off_b = (f64::from(row.decrease) / 65536.0 / b - 1.0).abs();
                prop_assert!(off_a <= fit.error.0 + 0.002, "a({w}) off by {off_a}");
                prop_assert!(off_b <= fit.error.1 + 0.002, "b({w}) off by {off_b}");
            }
        }
    }
}
