//! HighSpeed TCP: standard TCP up to `low_window`, above it an increase and a decrease that need only realistic loss rates.
//!
//! Documents: RFC 3649 sections 5 to 9, 12 and Appendix B; Linux `tcp_highspeed.c`; ns-2 `tcp.cc`; Net100 2003.
//!
//! - The default is the RFC's own definition, a straight line through (low_window, low_p) and (high_window, high_p) on
//!   log-log axes (`form=exact`), because it is the only one that holds for other parameters. The rounded `0.078/w^1.2` of the
//!   text (`rfc`), the `1/(12.8 w^1.2)` of the script that made Appendix B (`table`), that table read downwards (`floor`)
//!   and Linux' reading of it upwards (`ceil`) are there to reproduce printed numbers.
//! - `b` keeps falling beyond `high_window` as in the RFC, but never below [`MIN_DECREASE`]: the RFC's line crosses zero
//!   at 570,000 segments, where a loss would raise the window.
//! - Loss in start-up: `b(w)` as everywhere (`first_decrease=half` for ns-2, which halves the first time). A lost
//!   retransmission cuts again with `b` of the reduced window. Timeout: `b(w)` (`rto_b` for ns-2's half). ECN: as loss. The law
//!   remembers no window, so undo, idle time and a new segment size need nothing; an application-limited flow does not grow.
//! - `retune=100ms` is the Net100 tuning daemon: `a` and `b` of the window at the last tick, held in between.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::law::{Law, WindowLaw};
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

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
    constants: Constants,
    form: Form,
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
    fn raw_a(&self, w: f64) -> f64 {
        let b = self.b(w);
        w * w * self.p(w) * 2.0 * b / (2.0 - b)
    }

    /// Window sustained at loss rate `p`, segments: `low_window (p/low_p)^S`. The law is in force only for
    /// `p <= low_p`.
    pub fn window_at(&self, p: f64) -> f64 {
        self.constants.low_window * libm::pow(p / self.constants.low_p, self.s)
    }
}

/// HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    response: Response,
    /// Fraction removed on a timeout, if not `b(w)`.
    rto_decrease: Option<f64>,
    /// The next decrease is the connection's first, and halves (ns-2).
    halve_next: bool,
    chord: Chord,
    tuned: Option<Tuned>,
}

/// A piece of `a(w)` as a straight line, so that an ACK costs neither a logarithm nor a search.
#[derive(Clone, Copy, Debug)]
struct Chord {
    from: f64,
    to: f64,
    at_from: f64,
    slope: f64,
}

/// Pair held between two ticks of the tuning daemon.
#[derive(Clone, Copy, Debug)]
struct Tuned {
    period: Span,
    next: Time,
    a: f64,
    b: f64,
}

impl HighSpeed {
    /// The law of `response`, every option off.
    pub fn new(response: Response) -> Self {
        Self {
            response,
            rto_decrease: None,
            halve_next: false,
            chord: Chord {
                from: 1.0,
                to: 0.0,
                at_from: 1.0,
                slope: 0.0,
            },
            tuned: None,
        }
    }

    /// RFC 3649's constants.
    ///
    /// # Panics
    /// Never: the constants are consistent.
    pub fn rfc(form: Form) -> Self {
        Self::new(Response::new(Constants::RFC, form).unwrap_or_else(|why| unreachable!("{why}")))
    }

    /// Increase per RTT at window `w`, segments.
    pub fn a(&self, w: f64) -> f64 {
        match self.response.form {
            Form::Floor => floor_row(w).map_or(1.0, |row| (row + 1) as f64),
            Form::Ceil => (ceil_row(w) + 1) as f64,
            _ => self.response.a(w),
        }
    }

    /// Fraction removed at window `w`.
    pub fn b(&self, w: f64) -> f64 {
        match self.response.form {
            Form::Floor => floor_row(w).map_or(0.5, |row| self.row_b(row)),
            Form::Ceil => self.row_md(ceil_row(w)) / 256.0,
            _ => self.response.b(w),
        }
    }

    /// Loss rate at which the window `w` is sustained.
    pub fn p(&self, w: f64) -> f64 {
        self.response.p(w)
    }

    /// Closed forms behind the law.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Decrease of a table row as Appendix B prints it, two decimals.
    fn row_b(&self, row: usize) -> f64 {
        libm::round(self.response.b(f64::from(WINDOWS[row])) * 100.0) / 100.0
    }

    /// Decrease of a table row in Linux, 1/256.
    fn row_md(&self, row: usize) -> f64 {
        libm::floor(256.0 * self.response.b(f64::from(WINDOWS[row])))
    }

    /// `a(w)` without its logarithms or the table's search; within 1e-4 segments of the closed form, rows exactly.
    #[inline]
    fn fast_a(&mut self, w: f64) -> f64 {
        if !(self.chord.from <= w && w <= self.chord.to) {
            self.chord = self.chord_at(w);
        }
        (self.chord.at_from + self.chord.slope * (w - self.chord.from)).max(1.0)
    }

    /// The piece of `a(w)` that holds `w`: a row of the table, standard TCP, or a chord of the closed form. A chord of length
    /// `h w` errs by at most `(h w)^2 |a''| / 8`, and `w^2 |a''|` is below `a / 2`.
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
                let to = w * (1.0 + CHORD / at_from.max(1.0).sqrt());
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

    /// Fraction removed now, options included.
    fn cut(&self, w: f64) -> f64 {
        self.tuned.map_or_else(|| self.b(w), |tuned| tuned.b)
    }
}

impl WindowLaw for HighSpeed {
    #[inline]
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if let Some(tuned) = self.tuned.filter(|t| ev.now >= t.next) {
            let (a, b) = (self.a(win.w), self.b(win.w));
            self.tuned = Some(Tuned {
                a,
                b,
                next: ev.now + tuned.period,
                ..tuned
            });
        }
    }

    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        let a = match self.tuned {
            Some(tuned) => tuned.a,
            None => self.fast_a(win.w),
        };
        win.w += a * n / win.w;
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        let b = if std::mem::take(&mut self.halve_next) {
            0.5
        } else {
            self.cut(w)
        };
        (1.0 - b) * base
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.halve_next = false;
        (1.0 - self.rto_decrease.unwrap_or_else(|| self.cut(w))) * base
    }

    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.tuned.map_or_else(|| self.a(w), |t| t.a));
        visit("b", self.cut(w));
    }
}

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

/// Makes the table of RFC 3649 Appendix B by the rule of its script: a new row whenever `a(w)` has grown by more than one
/// segment since the last row, up to 100,000 segments.
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
fn floor_row(w: f64) -> Option<usize> {
    WINDOWS
        .partition_point(|&row| f64::from(row) <= w)
        .checked_sub(1)
}

/// First row of Linux' table whose window is at least `w`.
fn ceil_row(w: f64) -> usize {
    WINDOWS[..LINUX_ROWS - 1].partition_point(|&row| f64::from(row) < w)
}

/// Smallest fraction removed; ours, see the module's text.
pub const MIN_DECREASE: f64 = 0.01;

/// Relative length of a chord of `a(w)` where `a` is one segment.
const CHORD: f64 = 0.03;

/// Linux' table ends one row before the RFC's.
const LINUX_ROWS: usize = 72;

/// Window column of RFC 3649 Appendix B; the increase of row `i` is `i + 1`.
#[rustfmt::skip]
pub const WINDOWS: [u32; 73] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177, 4596,
    5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424, 15265,
    16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193, 29557, 30975, 32450,
    33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851,
    68113, 71617, 75401, 79517, 84035, 89053, 94717,
];

const fn low_window(default: f64, source: &'static str) -> ParamSpec {
    ParamSpec::number(
        "low_window",
        default,
        1.0..=1e6,
        "segments",
        "window up to which the flow is standard TCP",
        source,
    )
}

const LOW_P: ParamSpec = ParamSpec::number(
    "low_p",
    1e-3,
    1e-12..=1.0,
    "events/segment",
    "loss rate at low_window",
    "RFC 3649 section 5",
);
const HIGH_WINDOW: ParamSpec = ParamSpec::number(
    "high_window",
    83_000.0,
    2.0..=1e9,
    "segments",
    "window at the end point, 10 Gbit/s at 100 ms",
    "RFC 3649 section 5",
);
const HIGH_P: ParamSpec = ParamSpec::number(
    "high_p",
    1e-7,
    1e-15..=1.0,
    "events/segment",
    "loss rate at high_window",
    "RFC 3649 section 5",
);
const HIGH_DECREASE: ParamSpec = ParamSpec::number(
    "high_decrease",
    0.1,
    0.01..=1.0,
    "fraction",
    "fraction removed at high_window, at most 0.5",
    "RFC 3649 section 5",
);
const FIRST_DECREASE: ParamSpec = ParamSpec::choice(
    "first_decrease",
    &["law", "half"],
    "decrease at the connection's first congestion event: b(w), or one half as in ns-2",
    "Net100 2003 (law); ns-2 (half)",
);
const RETUNE: ParamSpec = ParamSpec::time(
    "retune",
    Span::ZERO,
    Span::ZERO..=Span::from_secs(60),
    "a and b are taken from the window once per period, as the Net100 daemon did every 100 ms; 0s: on every ACK",
    "Net100 2003",
);

const fn rto_b(default: f64) -> ParamSpec {
    ParamSpec::number(
        "rto_b",
        default,
        0.0..=0.999,
        "fraction",
        "fraction removed on a timeout; 0: b(w)",
        "RFC 3649 says nothing; ns-2 0.5",
    )
}

fn build(p: &Params, constants: Constants, form: Form) -> Result<Component, String> {
    let mut law = HighSpeed::new(Response::new(constants, form)?);
    let rto_b = p.number("rto_b");
    law.rto_decrease = (rto_b > 0.0).then_some(rto_b);
    law.halve_next = p.word("first_decrease") == "half";
    let period = p.time("retune");
    law.tuned = (period > Span::ZERO).then_some(Tuned {
        period,
        next: Time::ZERO,
        a: 1.0,
        b: 0.5,
    });
    Ok(Component::Law(Law::HighSpeed(law), None))
}

/// `highspeed`.
pub const HIGHSPEED: Entry = Entry {
    name: "highspeed",
    aliases: &["hstcp"],
    kind: Kind::Law,
    about: "HighSpeed TCP: increase and decrease that depend on the window",
    source: "RFC 3649 section 5",
    params: &[
        low_window(38.0, "RFC 3649 section 5"),
        LOW_P,
        HIGH_WINDOW,
        HIGH_P,
        HIGH_DECREASE,
        ParamSpec::choice(
            "form",
            Form::WORDS,
            "p(w): log-log line, 0.078/w^1.2, 1/(12.8 w^1.2); or the table of Appendix B read downwards or (Linux) upwards",
            "RFC 3649 section 5 and Appendix B",
        ),
        ParamSpec::choice(
            "constants",
            &["rfc", "ns2"],
            "loss rate at low_window when low_p is not given: 1e-3, or 1.5/low_window^2 as in ns-2",
            "RFC 3649 section 5; ns-2 tcp.cc",
        ),
        rto_b(0.0),
        FIRST_DECREASE,
        RETUNE,
    ],
    build: |p: &Params| {
        let form = Form::of(p.word("form"));
        let given = |names: &[&str]| names.iter().any(|name| p.is_given(name));
        if form != Form::Exact && (given(&["low_p", "high_p"]) || p.word("constants") == "ns2") {
            let form = p.word("form");
            return Err(format!(
                "form={form} fixes p(w); low_p, high_p and constants need form=exact"
            ));
        }
        let tabular = matches!(form, Form::Floor | Form::Ceil);
        if tabular && given(&["low_window", "high_window", "high_decrease"]) {
            let form = p.word("form");
            return Err(format!(
                "form={form} is the table of the RFC's constants; they cannot be changed"
            ));
        }
        let low_window = p.number("low_window");
        let low_p = if p.word("constants") == "ns2" && !p.is_given("low_p") {
            Constants::ns2_low_p(low_window)
        } else {
            p.number("low_p")
        };
        let constants = Constants {
            low_window,
            low_p,
            high_window: p.number("high_window"),
            high_p: p.number("high_p"),
            high_decrease: p.number("high_decrease"),
        };
        build(p, constants, form)
    },
};

/// `highspeed-ns2`.
pub const HIGHSPEED_NS2: Entry = Entry {
    name: "highspeed-ns2",
    aliases: &["hstcp-ns2"],
    kind: Kind::Law,
    about: "HighSpeed TCP as the ns-2 of early 2002 had it and the Net100 pages ran it: low_window 31",
    source: "ns-2 tcp.cc; Net100 2003",
    params: &[
        low_window(31.0, "ns-2 before August 2002; 38 after"),
        HIGH_WINDOW,
        HIGH_P,
        HIGH_DECREASE,
        rto_b(0.5),
        FIRST_DECREASE,
        RETUNE,
    ],
    build: |p: &Params| {
        let low_window = p.number("low_window");
        let constants = Constants {
            low_window,
            low_p: Constants::ns2_low_p(low_window),
            high_window: p.number("high_window"),
            high_p: p.number("high_p"),
            high_decrease: p.number("high_decrease"),
        };
        build(p, constants, Form::Exact)
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, loss, try_law};

    const RTT: Span = Span::from_millis(100);

    /// A flow past start-up at window `w`.
    fn flow(spelling: &str, w: f64) -> Rounds {
        let mut flow = Rounds::starting(spelling, RTT, w);
        flow.stack.exit_start_up(Time::ZERO);
        flow
    }

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

    #[test]
    fn beyond_the_zero_of_the_line_a_loss_still_lowers_the_window() {
        let law = HighSpeed::rfc(Form::Exact);
        assert_eq!(law.b(1e7), 0.01);
        assert_eq!(
            law.b(83_000.0 * 1.5).max(0.05),
            law.b(83_000.0 * 1.5),
            "and b(w) still falls past the end point"
        );
        assert!(law.a(1e7) >= 1.0);
    }

    #[test]
    fn the_first_ack_after_start_up_adds_a_over_w() {
        let mut flow = flow("highspeed", 1000.0);
        flow.acks(1);
        assert!((flow.w() - (1000.0 + 7.859922 / 1000.0)).abs() < 1e-8);
    }

    #[test]
    fn a_loss_in_start_up_follows_the_law_unless_told_to_halve() {
        for (spelling, kept) in [
            ("highspeed", 670.121731),
            ("highspeed(first_decrease=half)", 500.0),
            ("highspeed-ns2", 676.051707),
            ("highspeed-ns2(first_decrease=half)", 500.0),
        ] {
            let mut flow = Rounds::starting(spelling, RTT, 1000.0);
            assert!(flow.stack.in_start_up());
            flow.lose();
            assert!((flow.w() - kept).abs() < 1e-5, "{spelling}: {}", flow.w());
        }
    }

    #[test]
    fn only_the_first_decrease_is_special() {
        let mut flow = Rounds::starting("highspeed(first_decrease=half)", RTT, 2000.0);
        flow.lose();
        assert_eq!(flow.w(), 1000.0);
        flow.lose();
        assert!((flow.w() - 670.121731).abs() < 1e-5);
    }

    #[test]
    fn a_lost_retransmission_cuts_again_with_the_smaller_windows_fraction() {
        let mut flow = flow("highspeed", 1000.0);
        flow.stack.on_congestion(&loss(Time::ZERO, 1000));
        flow.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 1000)
        });
        let law = HighSpeed::rfc(Form::Exact);
        let once = 1000.0 * (1.0 - law.b(1000.0));
        assert!((flow.w() - once * (1.0 - law.b(once))).abs() < 1e-9);
    }

    #[test]
    fn a_timeout_keeps_what_a_loss_keeps_unless_rto_b_says_otherwise() {
        for (spelling, ssth) in [
            ("highspeed", 670.121731),
            ("highspeed(rto_b=0.5)", 500.0),
            ("highspeed-ns2", 500.0),
        ] {
            let mut flow = flow(spelling, 1000.0);
            flow.time_out();
            assert_eq!(flow.w(), 1.0);
            assert!((flow.stack.ssthresh() - ssth).abs() < 1e-5, "{spelling}");
        }
    }

    #[test]
    fn a_mark_counts_as_a_loss() {
        let mut flow = flow("highspeed", 1000.0);
        flow.congest(CongestionKind::Ecn);
        assert!((flow.w() - 670.121731).abs() < 1e-5);
    }

    #[test]
    fn undo_gives_back_the_window_the_row_and_the_unused_special_case() {
        let mut flow = Rounds::starting("highspeed(first_decrease=half)", RTT, 1000.0);
        flow.lose();
        flow.stack.on_undo(flow.now);
        assert_eq!((flow.w(), flow.stack.ssthresh()), (1000.0, f64::INFINITY));
        flow.lose();
        assert_eq!(flow.w(), 500.0);
    }

    #[test]
    fn a_flow_that_does_not_fill_its_window_does_not_grow() {
        for spelling in ["highspeed", "highspeed(form=floor)"] {
            let mut flow = flow(spelling, 1000.0);
            flow.cwnd_limited = false;
            flow.round();
            assert_eq!(flow.w(), 1000.0, "{spelling}");
        }
    }

    #[test]
    fn the_daemon_holds_its_pair_for_a_period() {
        let law = HighSpeed::rfc(Form::Exact);
        let mut flow = flow("highspeed(retune=250ms)", 1000.0);
        flow.round_at_once(); // tick at 100 ms with w = 1000
        let first = flow.w();
        assert!((first - 1000.0 - law.a(1000.0)).abs() < 1e-6);
        flow.round_at_once();
        flow.round_at_once(); // 300 ms: still the same pair
        let held = flow.w();
        let mut expected = first;
        for _ in 0..2 {
            expected += law.a(1000.0) * expected.floor() / expected;
        }
        assert!((held - expected).abs() < 1e-9);
        let mut stalled = flow.stack.clone();
        stalled.on_congestion(&loss(flow.now, 2000));
        assert!((stalled.window() - held * (1.0 - law.b(1000.0))).abs() < 1e-9);
        flow.round_at_once(); // 400 ms: a new tick
        assert!((flow.w() - held - law.a(held) * held.floor() / held).abs() < 1e-9);
    }

    #[test]
    fn contradicting_parameters_are_refused_in_words() {
        for (params, word) in [
            (
                &[("high_window", "38")][..],
                "high_window (38) must be above low_window (38)",
            ),
            (&[("high_decrease", "0.6")], "at most 0.5"),
            (&[("high_p", "0.01")], "must be below low_p"),
            (&[("form", "rfc"), ("low_p", "0.01")], "need form=exact"),
            (
                &[("form", "ceil"), ("low_window", "31")],
                "cannot be changed",
            ),
        ] {
            let why = try_law("highspeed", params).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
