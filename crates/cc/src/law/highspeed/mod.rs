//! HighSpeed TCP: standard TCP up to `low_window`, above it an increase and a decrease that need
//! only realistic loss rates.
//!
//! Documents: RFC 3649 sections 5 to 9, 12 and Appendix B; Linux `tcp_highspeed.c`; ns-2 `tcp.cc`;
//! Net100 2003.
//!
//! The parts: `response` is `p(w)`, `a(w)` and `b(w)`, `table` Appendix B, `chord` what makes an
//! ACK cheap, `entries` the parameters.
//!
//! - The default is the RFC's own definition, a straight line through (low_window, low_p) and
//!   (high_window, high_p) on log-log axes (`form=exact`), because it is the only one that holds
//!   for other parameters. The rounded `0.078/w^1.2` of the text (`rfc`), the `1/(12.8 w^1.2)` of
//!   the script that made Appendix B (`table`), that table read downwards (`floor`) and Linux's
//!   reading of it upwards (`ceil`) are there to reproduce printed numbers.
//! - `b` keeps falling beyond `high_window` as in the RFC, but never below [`MIN_DECREASE`]: the
//!   RFC's line crosses zero at 570,000 segments, where a loss would raise the window.
//! - Loss in start-up: `b(w)` as everywhere (`first_decrease=half` for ns-2, which halves the first
//!   time). A lost retransmission cuts again with `b` of the reduced window. Timeout: `b(w)`
//!   (`rto_b` for ns-2's half). ECN: as loss. The law remembers no window, so undo, idle time and a
//!   new segment size need nothing; an application-limited flow does not grow.
//! - `retune=100ms` is the Net100 tuning daemon: `a` and `b` of the window at the last tick, held
//!   in between.

mod chord;
mod entries;
mod response;
mod table;

use fullpipe_units::{Span, Time};

pub use entries::{HIGHSPEED, HIGHSPEED_NS2};
pub use response::{Constants, Form, MIN_DECREASE, Response};
pub use table::{Row, WINDOWS, appendix_b};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use chord::Chord;
use table::{ceil_row, floor_row};

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
            chord: Chord::NONE,
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
        let b = if core::mem::take(&mut self.halve_next) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, loss};

    const RTT: Span = Span::from_millis(100);

    /// A flow past start-up at window `w`.
    fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
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
}
