//! Scalable TCP: a fixed gain per acknowledged segment, so that recovery takes the same number of
//! rounds at any window.
//!
//! Documents: RFC 3649 sections 8 and 12 (quoting Kelly); Net100 2003.
//!
//! - Below `lwnd` segments the flow is Reno in increase and decrease. Kelly's 16 is where the two
//!   response curves meet.
//! - Loss in start-up, a lost retransmission, a timeout and a mark all remove the same fraction.
//!   The law remembers nothing, so undo, idle time and a new segment size need nothing; an
//!   application-limited flow does not grow.

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;

/// Multiplicative increase, multiplicative decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalable {
    /// Segments added per acknowledged segment.
    pub step: f64,
    /// Fraction removed at a congestion event.
    pub decrease: f64,
    /// Below this window increase and decrease are Reno's, segments.
    pub lwnd: f64,
}

impl Scalable {
    /// Segments added per acknowledged segment at window `w`.
    pub fn gain(&self, w: f64) -> f64 {
        if w < self.lwnd { 1.0 / w } else { self.step }
    }

    /// Fraction removed at window `w`.
    pub fn b(&self, w: f64) -> f64 {
        if w < self.lwnd { 0.5 } else { self.decrease }
    }

    /// Window before a loss when one event falls on every `1/p` segments: `step / (b p)`, RFC 3649
    /// section 8.
    pub fn peak_window(&self, p: f64) -> f64 {
        self.step / (self.decrease * p)
    }

    /// Mean over time of the same cycle, segments: `b / -ln(1-b)` of the peak, growth being
    /// exponential in time.
    pub fn mean_window(&self, p: f64) -> f64 {
        self.peak_window(p) * self.decrease / -libm::log1p(-self.decrease)
    }
}

impl WindowLaw for Scalable {
    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += self.gain(win.w) * n;
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        (1.0 - self.b(w)) * base
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        (1.0 - self.b(w)) * base
    }

    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.gain(w) * w);
        visit("b", self.b(w));
    }
}

/// `scalable`.
pub const SCALABLE: Entry<Scalable> = Entry {
    name: "scalable",
    aliases: &["stcp", "kelly"],
    about: "Scalable TCP: 1 % more per RTT, 1/8 less per loss",
    source: "RFC 3649 section 8, quoting Kelly",
    params: &[
        param!(increase: number = 0.01, 1e-6..=1.0, "segments/segment",
            "added per acknowledged segment", "RFC 3649 section 8; Net100 2003"),
        param!(decrease: number = 0.125, 1e-6..=0.999, "fraction",
            "fraction removed on loss", "RFC 3649 section 8; Linux shift of 3")
        .removed(),
        param!(lwnd: number = 16.0, 0.0..=1e6, "segments",
            "window below which the flow is Reno",
            "Kelly, derived: the response curves meet there"),
    ],
    build: |p| {
        let law = Scalable {
            step: p.number("increase"),
            decrease: p.number("decrease"),
            lwnd: p.number("lwnd"),
        };
        Ok(law)
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, loss};

    const RTT: Span = Span::from_millis(100);

    fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
    }

    #[test]
    fn below_lwnd_it_is_reno() {
        let mut flow = flow("scalable", 15.9);
        flow.acks(1);
        assert_eq!(flow.w(), 15.9 + 1.0 / 15.9);
        flow.lose();
        assert_eq!(flow.w(), (15.9 + 1.0 / 15.9) / 2.0);
    }

    #[test]
    fn from_lwnd_on_it_is_scalable() {
        let mut flow = flow("scalable", 16.0);
        flow.acks(1);
        assert_eq!(flow.w(), 16.01);
        flow.lose();
        assert!((flow.w() - 16.01 * 0.875).abs() < 1e-12);
    }

    #[test]
    fn start_up_loss_lost_retransmission_timeout_and_mark_remove_an_eighth() {
        let mut early = Rounds::starting("scalable", RTT, 1000.0);
        early.lose();
        assert_eq!(early.w(), 875.0);
        early.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 875)
        });
        assert_eq!(early.w(), 765.625);
        let mut late = flow("scalable", 1000.0);
        late.time_out();
        assert_eq!((late.w(), late.stack.ssthresh()), (1.0, 875.0));
        let mut marked = flow("scalable", 1000.0);
        marked.congest(CongestionKind::Ecn);
        assert_eq!(marked.w(), 875.0);
    }

    #[test]
    fn undo_restores_and_an_unfilled_window_does_not_grow() {
        let mut flow = flow("scalable", 1000.0);
        flow.lose();
        flow.stack.on_undo(Time::ZERO);
        assert_eq!(flow.w(), 1000.0);
        flow.cwnd_limited = false;
        flow.round();
        assert_eq!(flow.w(), 1000.0);
    }
}
