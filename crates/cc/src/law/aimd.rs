//! Reno and general AIMD(a, b): RFC 5681 section 3.1 with constant increase and decrease.
//!
//! `a` is the increase in segments per RTT, `b` the fraction REMOVED at a congestion event. The
//! Net100 pages write the pair as (b, a); parameters are therefore named, never positional.
//! `aimd(streams=N)` is the law of N Reno flows that share one loss process: `a = N`, `b = 1/(2N)`;
//! N = 4 is Net100's (0.125, 4). `pretuned` takes `a(W)` and `b(W)` of HighSpeed TCP once, as the
//! tuning daemon did from the buffer configured for the path: W is the flow's own buffer, the cap
//! of its window, unless `window` says otherwise.
//!
//! Every congestion event, timeouts included, removes `b`; a lost retransmission removes it again.
//! The law remembers nothing, so undo, idle time and a new segment size need nothing; an
//! application-limited flow does not grow.

use crate::classic::{Setup, Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;
use crate::law::highspeed::{Form, HighSpeed};

/// Constant increase, constant decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    /// Segments per RTT.
    pub increase: f64,
    /// Fraction removed at a congestion event.
    pub decrease: f64,
}

impl Aimd {
    /// RFC 5681: one segment per RTT, halve on loss.
    pub const RENO: Self = Self {
        increase: 1.0,
        decrease: 0.5,
    };

    /// N Reno streams that share one loss process.
    pub fn streams(n: f64) -> Self {
        Self {
            increase: n,
            decrease: 1.0 / (2.0 * n),
        }
    }

    /// `a(w)` and `b(w)` of HighSpeed TCP (RFC 3649 constants), evaluated once at `window`
    /// segments.
    pub fn pretuned(window: f64, form: Form) -> Self {
        let law = HighSpeed::rfc(form);
        Self {
            increase: law.a(window),
            decrease: law.b(window),
        }
    }

    /// Mean window in steady state at loss rate `p`, segments: `sqrt(a(2-b)/(2bp))`.
    pub fn mean_window(&self, p: f64) -> f64 {
        let Self {
            increase: a,
            decrease: b,
        } = *self;
        libm::sqrt(a * (2.0 - b) / (2.0 * b * p))
    }
}

impl WindowLaw for Aimd {
    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += self.increase * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        (1.0 - self.decrease) * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        (1.0 - self.decrease) * base
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.increase);
        visit("b", self.decrease);
    }
}

/// A pair that HighSpeed TCP's equations give for one window, the buffer of the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pretuned {
    /// The pair in force: a in segments per round trip, b a fraction of the window.
    pub pair: Aimd,
    /// Take the pair from the flow's buffer, if it has one, by this reading of the equations.
    pub from_buffer: Option<Form>,
}

impl WindowLaw for Pretuned {
    fn set_up(&mut self, setup: &Setup) {
        if let Some(form) = self.from_buffer.filter(|_| setup.max_window.is_finite()) {
            self.pair = Aimd::pretuned(setup.max_window, form);
        }
    }

    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        self.pair.increase(win, n, ev);
    }

    fn decrease(&mut self, w: f64, base: f64, ev: &CongestionEvent) -> f64 {
        self.pair.decrease(w, base, ev)
    }

    fn on_rto(&mut self, w: f64, base: f64, ev: &RtoEvent) -> f64 {
        self.pair.on_rto(w, base, ev)
    }

    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        self.pair.report(w, visit);
    }
}

/// `reno`.
pub const RENO: Entry<Aimd> = Entry {
    name: "reno",
    aliases: &["newreno", "standard-tcp"],
    about: "standard TCP: one segment per RTT, halve on loss",
    source: "RFC 5681 section 3.1",
    params: &[],
    build: |_| Ok(Aimd::RENO),
};

/// `aimd(increase, decrease)`.
pub const AIMD: Entry<Aimd> = Entry {
    name: "aimd",
    aliases: &[],
    about: "static AIMD as the Net100 tuning daemon sets it",
    source: "Net100 2003; RFC 5681 section 3.1",
    params: &[
        param!(increase: number = 1.0, 1e-3..=1e6, "segments/RTT",
            "additive increase a", "RFC 5681 3.1"),
        param!(decrease: number = 0.5, 1e-6..=0.999, "fraction",
            "fraction b removed on loss", "RFC 5681 3.1")
        .removed(),
    ],
    build: |p| {
        Ok(Aimd {
            increase: p.number("increase"),
            decrease: p.number("decrease"),
        })
    },
};

/// `multcp(streams)`.
pub const MULTCP: Entry<Aimd> = Entry {
    name: "multcp",
    aliases: &["streams"],
    about: "one flow with the increase and decrease of N parallel Reno streams",
    source: "Net100 2003: AIMD(0.125, 4) for N = 4",
    params: &[param!(n: number = 4.0, 1.0..=10_000.0, "streams",
        "streams emulated: a = n, b = 1/(2n)", "Net100 2003")],
    build: |p| Ok(Aimd::streams(p.number("n"))),
};

/// `pretuned(window)`.
pub const PRETUNED: Entry<Pretuned> = Entry {
    name: "pretuned",
    aliases: &["floyd-static"],
    about: "static AIMD with HighSpeed TCP's a and b at the window of the configured buffer",
    source: "Net100 2003; RFC 3649 section 5",
    params: &[
        param!(window: number = 3000.0, 1.0..=1e6, "segments",
            "window at which a and b are taken; if not given, the flow's buffer, the cap of its window",
            "Net100 2003: calculate an AIMD based on the buffer sizes configured for the path"),
        param!(form: choice = Form::WORDS, "p(w) as in `highspeed`", "RFC 3649 section 5"),
    ],
    build: |p| {
        let form = Form::of(p.word("form"));
        Ok(Pretuned {
            pair: Aimd::pretuned(p.number("window"), form),
            from_buffer: (!p.is_given("window")).then_some(form),
        })
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::law::Law;
    use crate::rounds::{Rounds, law, loss};

    const RTT: Span = Span::from_millis(100);

    fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
    }

    fn pair(name: &str, params: &[(&str, &str)]) -> Aimd {
        match law(name, params) {
            Law::Aimd(pair) => pair,
            Law::Pretuned(tuned) => tuned.pair,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_reno_four_streams_and_a_buffer_of_3000() {
        assert_eq!(
            pair("reno", &[]),
            Aimd {
                increase: 1.0,
                decrease: 0.5
            }
        );
        assert_eq!(
            pair("aimd", &[]),
            Aimd {
                increase: 1.0,
                decrease: 0.5
            }
        );
        assert_eq!(
            pair("streams", &[]),
            Aimd {
                increase: 4.0,
                decrease: 0.125
            }
        );
        assert_eq!(pair("pretuned", &[]), Aimd::pretuned(3000.0, Form::Exact));
        let linux = pair("pretuned", &[("window", "1000"), ("form", "ceil")]);
        assert_eq!(
            linux,
            Aimd {
                increase: 8.0,
                decrease: 83.0 / 256.0
            }
        );
    }

    #[test]
    fn the_first_ack_adds_a_over_w() {
        let mut flow = flow("aimd(increase=15,decrease=0.3)", 1000.0);
        flow.acks(1);
        assert_eq!(flow.w(), 1000.015);
    }

    #[test]
    fn every_event_removes_b() {
        let spelling = "aimd(increase=15,decrease=0.3)";
        let mut early = Rounds::starting(spelling, RTT, 1000.0); // in start-up
        early.lose();
        assert_eq!(early.w(), 700.0);
        let again = CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 700)
        };
        early.stack.on_congestion(&again);
        assert!((early.w() - 490.0).abs() < 1e-9);
        let mut marked = flow(spelling, 1000.0);
        marked.congest(CongestionKind::Ecn);
        assert_eq!(marked.w(), 700.0);
        let mut late = flow(spelling, 1000.0);
        late.time_out();
        assert_eq!((late.w(), late.stack.ssthresh()), (1.0, 700.0));
    }

    #[test]
    fn the_buffer_of_the_flow_pretunes_it_unless_a_window_is_given() {
        let removed = |spelling: &str, max_window| {
            let setup = Setup {
                initial_window: 100.0,
                max_window,
                ..Setup::default()
            };
            let spec: crate::StackSpec = spelling.parse().unwrap();
            let mut stack = spec.controller(setup);
            stack.on_congestion(&loss(Time::ZERO, 100));
            1.0 - stack.window() / 100.0
        };
        // RFC 3649 section 5: b(1448) = 0.310620, b(1000) = 0.329878, b(3000) = 0.272.
        let near = |seen: f64, b: f64| assert!((seen - b).abs() < 1e-5, "{seen}, not {b}");
        near(removed("pretuned", 1448.0), 0.310620);
        near(removed("pretuned(window=1000)", 1448.0), 0.329878);
        let default = Aimd::pretuned(3000.0, Form::Exact).decrease;
        near(removed("pretuned", f64::INFINITY), default);
    }

    #[test]
    fn undo_restores_and_an_unfilled_window_does_not_grow() {
        let mut flow = flow("reno", 1000.0);
        flow.lose();
        flow.stack.on_undo(Time::ZERO);
        assert_eq!(flow.w(), 1000.0);
        flow.cwnd_limited = false;
        flow.round();
        assert_eq!(flow.w(), 1000.0);
    }
}
