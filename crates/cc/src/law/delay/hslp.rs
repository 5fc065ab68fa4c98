//! HSTCP-LP: HighSpeed growth with TCP-LP's early back-off, for background transfers on fast paths
//! (RFC 3649 and Linux `tcp_lp.c`; SLAC 2003 describes it as this mixture, "backs off
//! early by looking at RTT").
//!
//! No text of its paper was available: the combination, and the size of the early response, are
//! unverified. Growth is `a(w)` of RFC 3649, nothing inside the inference time; the early test is
//! TCP-LP's on the RTT; an early indication halves the window (`early_b=hs`: removes `b(w)`), a
//! second one within 3 RTT leaves one segment; a loss removes `b(w)`.

use fullpipe_units::Time;

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;
use crate::law::delay::early::{DELTA, EARLY_KEEP, Early, GRANULARITY, LINUX_SSTH, early_params};
use crate::law::highspeed::{Form, HighSpeed};

/// HSTCP-LP's window law.
#[derive(Clone, Debug)]
pub struct HsLp {
    highspeed: HighSpeed,
    early: Early,
    /// An early indication removes `b(w)` instead of a half.
    early_b: bool,
}

impl WindowLaw for HsLp {
    fn reads_owd(&self) -> bool {
        self.early.reads_owd()
    }

    fn holds(&self, now: Time) -> bool {
        self.early.inferring(now)
    }

    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        let keep = if self.early_b {
            1.0 - self.highspeed.b(win.w)
        } else {
            EARLY_KEEP
        };
        self.early.observe(win, ev, keep);
        self.highspeed.observe(win, ev);
    }

    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        self.highspeed.increase(win, n, ev);
    }

    fn decrease(&mut self, w: f64, base: f64, ev: &CongestionEvent) -> f64 {
        self.highspeed.decrease(w, base, ev)
    }

    fn on_rto(&mut self, w: f64, base: f64, ev: &RtoEvent) -> f64 {
        self.highspeed.on_rto(w, base, ev)
    }

    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        self.highspeed.report(w, visit);
        self.early.report(visit);
    }
}

/// `hstcp-lp`.
pub const HSTCP_LP: Entry<HsLp> = Entry {
    name: "hstcp-lp",
    aliases: &["hslp"],
    about: "background transfer: HighSpeed growth that halves as soon as the RTT grows",
    source: "SLAC 2003; RFC 3649; Linux tcp_lp.c; combination unverified",
    params: &[
        DELTA,
        param!(signal: choice = &["rtt", "owd"], "delay of the early test", "SLAC 2003"),
        param!(early_b: choice = &["half", "hs"],
            "an early indication removes a half, or HighSpeed's b(w)",
            "Linux tcp_lp.c; unverified for this combination"),
        param!(form: choice = Form::WORDS, "form of HighSpeed's increase", "RFC 3649 section 5"),
        GRANULARITY,
        LINUX_SSTH,
    ],
    build: |p| {
        Ok(HsLp {
            highspeed: HighSpeed::rfc(Form::of(p.word("form"))),
            early: Early::new(early_params(p)),
            early_b: p.word("early_b") == "hs",
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::law::delay::testing::*;
    use crate::{Setup, StackSpec};

    fn flow(spelling: &str) -> crate::Stack {
        let mut stack = StackSpec::parse(spelling).unwrap().controller(Setup {
            initial_window: 1000.0,
            ..Setup::default()
        });
        stack.exit_start_up(at_ms(0));
        stack
    }

    /// A flow at 1000 segments that has seen 70 ms and 130 ms; then delays of `rtt` until the
    /// smoothed one is there.
    fn at(spelling: &str, rtt: f64) -> f64 {
        let mut stack = flow(spelling);
        let idle = |r: f64| AckEvent {
            cwnd_limited: false,
            ..ack(at_ms(0), 1, ms(r))
        };
        for r in [70.0, 70.0, 130.0, 131.0] {
            // In recovery the delays are read and the window is left alone.
            stack.on_ack(&AckEvent {
                phase: crate::Phase::Recovery,
                ..idle(r)
            });
        }
        for _ in 0..200 {
            stack.on_ack(&AckEvent {
                phase: crate::Phase::Recovery,
                ..idle(rtt)
            });
        }
        assert_eq!(stack.window(), 1000.0);
        stack.on_ack(&idle(rtt));
        stack.window()
    }

    #[test]
    fn acts_above_seventy_nine_milliseconds() {
        assert_eq!(at("hstcp-lp", 78.9), 1000.0);
        assert_eq!(at("hstcp-lp", 79.1), 500.0);
        near(at("hstcp-lp(early_b=hs)", 79.1), 670.121731, 5e-7);
    }

    #[test]
    fn grows_and_loses_as_highspeed() {
        let mut stack = flow("hstcp-lp");
        let mut reference = flow("highspeed");
        for _ in 0..1000 {
            let ev = ack(at_ms(0), 1, ms(100.0));
            stack.on_ack(&ev);
            reference.on_ack(&ev);
        }
        assert_eq!(stack.window(), reference.window());
        assert!(stack.window() > 1007.0);
        stack.on_congestion(&loss(2000));
        reference.on_congestion(&loss(2000));
        assert_eq!(stack.window(), reference.window());
        let mut stack = flow("hstcp-lp");
        stack.on_rto(&rto(1000));
        near(stack.ssthresh(), 670.121731, 5e-7);
    }

    #[test]
    fn holds_still_inside_the_inference_time() {
        let mut stack = flow("hstcp-lp");
        for r in [70.0, 130.0, 131.0, 131.0] {
            stack.on_ack(&ack(at_ms(0), 1, ms(r)));
        }
        let w = stack.window();
        assert!(w < 600.0, "{w}");
        stack.on_ack(&ack(at_ms(1), 1, ms(70.0)));
        assert_eq!(stack.window(), w);
        stack.on_ack(&ack(at_ms(1000), 1, ms(70.0)));
        assert!(stack.window() > w);
    }
}
