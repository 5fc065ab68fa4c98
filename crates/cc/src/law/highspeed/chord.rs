//! `a(w)` in pieces, so that an ACK costs neither a logarithm nor a search.

use super::table::{LINUX_ROWS, WINDOWS, ceil_row, floor_row};
use super::{Form, HighSpeed};

/// A piece of `a(w)` as a straight line, so that an ACK costs neither a logarithm nor a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chord {
    from: f64,
    to: f64,
    at_from: f64,
    slope: f64,
}

impl Chord {
    /// Holds no window.
    pub(super) const NONE: Self = Self {
        from: 1.0,
        to: 0.0,
        at_from: 1.0,
        slope: 0.0,
    };
}

impl HighSpeed {
    /// `a(w)` without its logarithms or the table's search; within 1e-4 segments of the closed
    /// form, rows exactly.
    #[inline]
    pub(super) fn fast_a(&mut self, w: f64) -> f64 {
        if !(self.chord.from <= w && w <= self.chord.to) {
            self.chord = self.chord_at(w);
        }
        (self.chord.at_from + self.chord.slope * (w - self.chord.from)).max(1.0)
    }

    /// The piece of `a(w)` that holds `w`: a row of the table, standard TCP, or a chord of the
    /// closed form. A chord of length `h w` errs by at most `(h w)^2 |a''| / 8`, and `w^2 |a''|` is
    /// below `a / 2`.
    #[cold]
    fn chord_at(&self, w: f64) -> Chord {
        let low = self.response.constants.low_window;
        let flat = |from: f64, to: f64| Chord {
            from,
            to,
            at_from: self.a(w),
            slope: 0.0,
        };
        let row = |i: usize| {
            WINDOWS
                .get(i)
                .map_or(f64::INFINITY, |&window| f64::from(window))
        };
        match self.response.form {
            Form::Floor => match floor_row(w) {
                None => flat(0.0, row(0).next_down()),
                Some(i) => flat(row(i), row(i + 1).next_down()),
            },
            Form::Ceil => match ceil_row(w) {
                0 => flat(0.0, row(0)),
                i if i == LINUX_ROWS - 1 => flat(row(i - 1).next_up(), f64::INFINITY),
                i => flat(row(i - 1).next_up(), row(i)),
            },
            _ if w <= low => flat(0.0, low),
            _ => {
                let at_from = self.response.raw_a(w);
                let to = w * (1.0 + CHORD / libm::sqrt(at_from.max(1.0)));
                let slope = (self.response.raw_a(to) - at_from) / (to - w);
                Chord {
                    from: w,
                    to,
                    at_from,
                    slope,
                }
            }
        }
    }
}

/// Relative length of a chord of `a(w)` where `a` is one segment; ours.
const CHORD: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::super::{Constants, Response};
    use super::*;

    #[test]
    fn the_chords_stay_within_a_ten_thousandth_of_a_segment() {
        let phase_space = Constants {
            low_window: 14.0,
            low_p: 1e-2,
            high_decrease: 0.3,
            ..Constants::RFC
        };
        let ns2 = Constants {
            low_window: 31.0,
            low_p: Constants::ns2_low_p(31.0),
            ..Constants::RFC
        };
        for constants in [Constants::RFC, ns2, phase_space] {
            for form in [Form::Exact, Form::Rfc, Form::Table, Form::Floor, Form::Ceil] {
                let mut law = HighSpeed::new(Response::new(constants, form).unwrap());
                let mut w = constants.low_window - 1.0;
                let mut refills = 0;
                let mut last = law.chord.to;
                while w < 200_000.0 {
                    let error = (law.fast_a(w) - law.a(w)).abs();
                    assert!(error < 1e-4, "{constants:?} {form:?} at {w}: {error:e}");
                    refills += u32::from(law.chord.to != last);
                    last = law.chord.to;
                    w += 0.0007 * w;
                }
                assert!(refills < 2500, "{refills} logarithms are no saving");
            }
        }
    }

    #[test]
    fn the_pieces_of_the_table_end_where_its_rows_do() {
        for form in [Form::Floor, Form::Ceil] {
            let mut law = HighSpeed::rfc(form);
            for window in WINDOWS.map(f64::from) {
                for w in [window.next_down(), window, window.next_up(), window + 0.5] {
                    assert_eq!(law.fast_a(w), law.a(w), "{form:?} {w}");
                }
            }
        }
    }
}
