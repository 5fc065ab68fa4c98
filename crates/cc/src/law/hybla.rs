//! TCP Hybla: growth in seconds, not in RTTs, so that a long path grows as a path of `rtt0` does.
//!
//! Documents: Linux `tcp_hybla.c`; ns-3 `tcp-hybla.cc`. `rho = max(RTT/RTT0, 1)` from the smallest
//! RTT seen; congestion avoidance adds `rho^2` segments per RTT; slow start is its own
//! ([`HyblaStart`]). The paper's scaling of `ssthresh` by `rho` and Linux's first window of `rho`
//! are not done.
//!
//! Loss (in start-up or a lost retransmission too), timeout and mark: Reno's half. Undo, idle time
//! and a new segment size: the law remembers nothing. An application-limited flow does not grow.

use fullpipe_units::Span;

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;
use crate::params::Params;
use crate::startup::hybla::{HyblaStart, RTT0, UNCAPPED, rho};

/// Hybla's congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hybla {
    rtt0: Span,
    rho: f64,
}

impl Hybla {
    /// Hybla relative to `rtt0`.
    pub fn new(rtt0: Span) -> Self {
        Self { rtt0, rho: 1.0 }
    }
}

impl WindowLaw for Hybla {
    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        self.rho = rho(ev.min_rtt, self.rtt0);
        win.w += self.rho * self.rho * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        KEPT * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        KEPT * base
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rho", self.rho);
        visit("a", self.rho * self.rho);
    }
}

/// Fraction kept on loss, mark and timeout: Reno's (RFC 5681 section 3.1).
const KEPT: f64 = 0.5;

/// `hybla`.
pub const HYBLA: Entry<Hybla> = Entry {
    name: "hybla",
    aliases: &[],
    about: "Hybla: growth independent of the RTT, for long paths; pace it (`+paced`)",
    source: "Linux tcp_hybla.c; ns-3 tcp-hybla.cc",
    params: &[RTT0, UNCAPPED],
    build: |p| Ok(Hybla::new(p.time("rtt0"))),
};

/// Hybla's own slow start, from the parameters of [`HYBLA`].
pub fn start_up(p: &Params) -> HyblaStart {
    HyblaStart::new(p.time("rtt0"), p.flag("uncapped"))
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Time;

    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, ack, loss};

    fn flow(rtt: u64, w: f64) -> Rounds {
        Rounds::avoiding("hybla", Span::from_millis(rtt), w)
    }

    #[test]
    fn the_first_ack_adds_rho_squared_over_w() {
        let mut flow = flow(100, 1000.0);
        flow.acks(1);
        assert_eq!(flow.w(), 1000.016);
    }

    #[test]
    fn without_a_sample_it_is_reno() {
        let mut law = Hybla::new(Span::from_millis(25));
        let mut win = Window {
            w: 100.0,
            ssth: 1.0,
        };
        law.increase(
            &mut win,
            1.0,
            &AckEvent {
                min_rtt: Span::MAX,
                ..ack(Time::ZERO, 1)
            },
        );
        assert_eq!(win.w, 100.01);
    }

    #[test]
    fn every_reduction_halves_and_undo_restores() {
        let mut early = Rounds::starting("hybla", Span::from_millis(250), 1000.0);
        early.lose();
        assert_eq!(early.w(), 500.0);
        early.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 500)
        });
        assert_eq!(early.w(), 250.0);
        early.stack.on_undo(Time::ZERO);
        assert_eq!((early.w(), early.stack.ssthresh()), (1000.0, f64::INFINITY));
        let mut marked = flow(250, 1000.0);
        marked.congest(CongestionKind::Ecn);
        assert_eq!(marked.w(), 500.0);
        let mut late = flow(250, 1000.0);
        late.time_out();
        assert_eq!((late.w(), late.stack.ssthresh()), (1.0, 500.0));
    }

    #[test]
    fn an_unfilled_window_does_not_grow() {
        let mut flow = flow(250, 1000.0);
        flow.cwnd_limited = false;
        flow.round();
        assert_eq!(flow.w(), 1000.0);
    }
}
