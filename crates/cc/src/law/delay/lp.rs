//! TCP-LP: Reno that yields as soon as the one-way delay grows (Linux `tcp_lp.c` and ns-3
//! `tcp-lp.cc` read, paper not).
//!
//! An early indication ([`Early`]) halves the window, a second one within the inference time leaves
//! one segment. Nothing grows inside that time.
//!
//! Loss (in start-up or a lost retransmission too), timeout and mark: Reno's half. Undo brings the
//! delays of before the reduction back. Idle time keeps the extremes. Segment sizes do not matter:
//! the state is delays.

use fullpipe_units::Time;

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;
use crate::law::delay::early::{DELTA, EARLY_KEEP, Early, GRANULARITY, LINUX_SSTH, early_params};

/// TCP-LP's window law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lp {
    early: Early,
}

impl WindowLaw for Lp {
    fn reads_owd(&self) -> bool {
        self.early.reads_owd()
    }

    fn holds(&self, now: Time) -> bool {
        self.early.inferring(now)
    }

    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        self.early.observe(win, ev, EARLY_KEEP);
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        (1.0 - DECREASE) * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        (1.0 - DECREASE) * base
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        self.early.report(visit);
    }
}

/// Fraction removed on loss and timeout: Reno's (RFC 5681 section 3.1).
const DECREASE: f64 = 0.5;

/// `lp`.
pub const LP: Entry<Lp> = Entry {
    name: "lp",
    aliases: &["tcp-lp"],
    about: "background transfer: Reno that halves as soon as the one-way delay grows",
    source: "Linux tcp_lp.c; ns-3 tcp-lp.cc",
    params: &[
        DELTA,
        param!(signal: choice = &["rtt", "owd"],
            "delay of the early test; over UDP the one-way delay has whole milliseconds",
            "Linux tcp_lp.c"),
        GRANULARITY,
        LINUX_SSTH,
    ],
    build: |p| {
        Ok(Lp {
            early: Early::new(early_params(p)),
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    #[test]
    fn losses_and_timeouts_halve_and_growth_is_renos() {
        let mut law = LP.make(&[]).unwrap();
        assert_eq!(law.decrease(100.0, 100.0, &loss(100)), 50.0);
        assert_eq!(law.on_rto(100.0, 100.0, &rto(100)), 50.0);
        let mut win = avoidance(100.0);
        law.increase(&mut win, 100.0, &ack(at_ms(0), 1, ms(100.0)));
        near(win.w, 101.0, 1e-12);
    }
}
