//! The table of RFC 3649 Appendix B: its rows, its rule, and the row of a window.

use alloc::vec::Vec;

use super::{Form, HighSpeed};

/// One row of RFC 3649 Appendix B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Segments.
    pub window: u32,
    /// Increase, segments per RTT.
    pub a: u32,
    /// Fraction removed, not rounded.
    pub b: f64,
}

/// Makes the table of RFC 3649 Appendix B by the rule of its script: a new row whenever `a(w)` has
/// grown by more than one segment since the last row, up to 100,000 segments.
pub fn appendix_b() -> Vec<Row> {
    let law = HighSpeed::rfc(Form::Table);
    let mut last = 1.0;
    let mut rows = vec![Row {
        window: WINDOWS[0],
        a: 1,
        b: 0.5,
    }];
    for window in WINDOWS[0]..=100_000 {
        let a = law.response.a(f64::from(window));
        if a > last + 1.0 {
            last = a;
            rows.push(Row {
                window,
                a: a as u32,
                b: law.response.b(f64::from(window)),
            });
        }
    }
    rows
}

/// Last row of Appendix B whose window is at most `w`.
pub(super) fn floor_row(w: f64) -> Option<usize> {
    WINDOWS
        .partition_point(|&row| f64::from(row) <= w)
        .checked_sub(1)
}

/// First row of Linux's table whose window is at least `w`.
pub(super) fn ceil_row(w: f64) -> usize {
    WINDOWS[..LINUX_ROWS - 1].partition_point(|&row| f64::from(row) < w)
}

/// Linux's table ends one row before the RFC's (`tcp_highspeed.c`).
pub(super) const LINUX_ROWS: usize = 72;

/// Window column of RFC 3649 Appendix B; the increase of row `i` is `i + 1`.
#[rustfmt::skip]
pub const WINDOWS: [u32; 73] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177, 4596,
    5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424, 15265,
    16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193, 29557, 30975, 32450,
    33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851,
    68113, 71617, 75401, 79517, 84035, 89053, 94717,
];
