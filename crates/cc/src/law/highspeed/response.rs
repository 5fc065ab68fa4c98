//! The response function: `p(w)`, `a(w)` and `b(w)` of RFC 3649 section 5 in closed form.

use alloc::string::String;

/// The five numbers of RFC 3649 section 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Segments up to which the flow is standard TCP.
    pub low_window: f64,
    /// Loss rate at `low_window`.
    pub low_p: f64,
    /// Segments at the end point.
    pub high_window: f64,
    /// Loss rate at `high_window`.
    pub high_p: f64,
    /// Fraction removed at `high_window`.
    pub high_decrease: f64,
}

impl Constants {
    /// RFC 3649 section 5.
    pub const RFC: Self = Self {
        low_window: 38.0,
        low_p: 1e-3,
        high_window: 83_000.0,
        high_p: 1e-7,
        high_decrease: 0.1,
    };

    /// ns-2's rule for the loss rate at the switch point: standard TCP's, `1.5 / low_window^2`.
    pub fn ns2_low_p(low_window: f64) -> f64 {
        1.5 / (low_window * low_window)
    }
}

/// Which `p(w)`, or which table, gives the increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `low_p (w/low_window)^(1/S)`.
    Exact,
    /// `0.078 / w^1.2`, the rounded text of RFC 3649 section 5.
    Rfc,
    /// `1 / (12.8 w^1.2)`, the script of RFC 3649 Appendix B.
    Table,
    /// Appendix B, last row whose window is at most `w`.
    Floor,
    /// Appendix B as in Linux: first row whose window is at least `w`, decrease in 1/256.
    Ceil,
}

impl Form {
    /// The form's spelling as a parameter; `exact` first, as the default.
    pub const WORDS: &[&str] = &["exact", "rfc", "table", "floor", "ceil"];

    /// The form that `word` of [`Form::WORDS`] names.
    pub fn of(word: &str) -> Self {
        match word {
            "rfc" => Form::Rfc,
            "table" => Form::Table,
            "floor" => Form::Floor,
            "ceil" => Form::Ceil,
            _ => Form::Exact,
        }
    }
}

/// Response function of RFC 3649: `p(w)`, `a(w)`, `b(w)` in closed form.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    pub(super) constants: Constants,
    pub(super) form: Form,
    ln_low: f64,
    /// `1 / (ln high_window - ln low_window)`.
    inverse_span: f64,
    /// `S` of the RFC: `(ln HW - ln LW) / (ln HP - ln LP)`, negative.
    s: f64,
}

impl Response {
    /// The response function of `constants`; the table forms use Appendix B's `p(w)`.
    ///
    /// # Errors
    /// A sentence if `high_window <= low_window`, `high_p >= low_p` or `high_decrease > 0.5`.
    pub fn new(constants: Constants, form: Form) -> Result<Self, String> {
        let Constants {
            low_window,
            low_p,
            high_window,
            high_p,
            high_decrease,
        } = constants;
        if high_window <= low_window {
            return Err(format!(
                "high_window ({high_window}) must be above low_window ({low_window})"
            ));
        }
        if high_p >= low_p {
            return Err(format!(
                "high_p ({high_p:e}) must be below low_p ({low_p:e})"
            ));
        }
        if high_decrease > 0.5 {
            return Err(format!(
                "high_decrease ({high_decrease}) must be at most 0.5, the decrease at low_window"
            ));
        }
        let span = libm::log(high_window) - libm::log(low_window);
        Ok(Self {
            constants,
            form,
            ln_low: libm::log(low_window),
            inverse_span: 1.0 / span,
            s: span / (libm::log(high_p) - libm::log(low_p)),
        })
    }

    /// Loss rate per segment at which the window `w` is sustained.
    pub fn p(&self, w: f64) -> f64 {
        match self.form {
            Form::Exact => self.constants.low_p * libm::exp((libm::log(w) - self.ln_low) / self.s),
            Form::Rfc => 0.078 / libm::pow(w, 1.2),
            Form::Table | Form::Floor | Form::Ceil => 1.0 / (12.8 * libm::pow(w, 1.2)),
        }
    }

    /// Fraction removed at a congestion event.
    pub fn b(&self, w: f64) -> f64 {
        if w <= self.constants.low_window {
            return 0.5;
        }
        let along = (libm::log(w) - self.ln_low) * self.inverse_span;
        ((self.constants.high_decrease - 0.5) * along + 0.5).max(MIN_DECREASE)
    }

    /// Increase per RTT, segments.
    pub fn a(&self, w: f64) -> f64 {
        if w <= self.constants.low_window {
            1.0
        } else {
            self.raw_a(w).max(1.0)
        }
    }

    /// Increase before the clamp at one segment: `w^2 p(w) 2b/(2-b)`.
    pub(super) fn raw_a(&self, w: f64) -> f64 {
        let b = self.b(w);
        w * w * self.p(w) * 2.0 * b / (2.0 - b)
    }
}

/// Smallest fraction removed; ours, see the module's text.
pub const MIN_DECREASE: f64 = 0.01;
