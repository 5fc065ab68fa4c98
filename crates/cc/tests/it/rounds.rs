//! A round-based driver: one round is one RTT in which a whole window is acknowledged, per segment
//! or in one event.
//!
//! It knows no losses of its own: tests say when a round ends in [`Rounds::lose`]. Recovery takes
//! no time, as in the window models of the published tables ("in models without PRR set `w = ssth`
//! at once").
#![allow(dead_code)] // shared by test modules that use different parts

use fullpipe_cc::law::Law;
use fullpipe_cc::registry::{Component, entries};
use fullpipe_cc::{
    AckEvent, CongestionEvent, CongestionKind, Controller, RateSample, RestartEvent, RtoEvent,
    Setup, Stack, StackSpec,
};
use fullpipe_units::{Span, Time};

/// An ACK for `n` new segments of a window-limited flow in the open state; RTT 100 ms, nothing
/// marked, mid-round.
pub fn ack(now: Time, n: u64) -> AckEvent {
    changed(AckEvent::new(now), |ev| {
        (ev.acked, ev.delivered, ev.advanced) = (n, n, n > 0);
        (ev.rtt, ev.srtt, ev.min_rtt) = (Some(RTT), RTT, RTT);
        (ev.prior_flight, ev.flight, ev.cwnd_limited) = (10, 10, true);
        (ev.round, ev.snd_una, ev.snd_nxt) = (1, n, n + 10);
    })
}

/// A first loss in a window with `flight` segments outstanding; RTT 100 ms.
pub fn loss(now: Time, flight: u64) -> CongestionEvent {
    let first = CongestionEvent::new(now, CongestionKind::Loss, flight);
    changed(first, |ev| (ev.lost, ev.srtt, ev.min_rtt) = (1, RTT, RTT))
}

/// A first timeout with `flight` segments outstanding; RTT 100 ms.
pub fn rto(now: Time, flight: u64) -> RtoEvent {
    changed(RtoEvent::new(now, flight), |ev| {
        (ev.srtt, ev.min_rtt) = (RTT, RTT)
    })
}

/// `event` with some of its fields set.
pub fn changed<E>(mut event: E, set: impl FnOnce(&mut E)) -> E {
    set(&mut event);
    event
}

const RTT: Span = Span::from_millis(100);

/// The window law that the registry makes of `name(params)`.
pub fn law(name: &str, params: &[(&str, &str)]) -> Law {
    try_law(name, params).unwrap()
}

/// As [`law`], with the refusal of contradicting parameters.
pub fn try_law(name: &str, params: &[(&str, &str)]) -> Result<Law, String> {
    match try_component(name, params)? {
        Component::Law(law) => Ok(law),
        other => panic!("{name} is no window law but {other:?}"),
    }
}

/// What the registry makes of `name(params)`, or the refusal.
pub fn try_component(name: &str, params: &[(&str, &str)]) -> Result<Component, String> {
    entries()
        .find(|e| e.answers_to(name))
        .unwrap()
        .make(params)
        .map_err(|e| e.to_string())
}

/// A flow whose rounds are driven by hand.
pub struct Rounds {
    /// The stack under test.
    pub stack: Stack,
    /// End of the last round.
    pub now: Time,
    /// RTT of the rounds to come; tests may change it between rounds.
    pub rtt: Span,
    /// Smallest RTT so far.
    pub min_rtt: Span,
    /// Segments per ACK packet of the receiver.
    pub per_ack: u64,
    /// The window held the sender back, not the application.
    pub cwnd_limited: bool,
    /// Rounds run.
    pub round: u64,
    delivered: u64,
}

impl Rounds {
    /// A fresh flow with the default set-up, except no limit on growth per ACK.
    pub fn new(spelling: &str, rtt: Span) -> Self {
        let setup = Setup {
            slow_start_limit: f64::INFINITY,
            ..Setup::default()
        };
        Self::with(spelling, rtt, setup)
    }

    /// A fresh flow with initial window `w` segments, no limit on growth per ACK.
    pub fn starting(spelling: &str, rtt: Span, w: f64) -> Self {
        let limit = f64::INFINITY;
        Self::with(
            spelling,
            rtt,
            Setup {
                initial_window: w,
                slow_start_limit: limit,
                ..Setup::default()
            },
        )
    }

    /// The same past start-up.
    pub fn avoiding(spelling: &str, rtt: Span, w: f64) -> Self {
        let mut flow = Self::starting(spelling, rtt, w);
        flow.stack.exit_start_up(Time::ZERO);
        flow
    }

    /// A fresh flow.
    pub fn with(spelling: &str, rtt: Span, setup: Setup) -> Self {
        let stack = StackSpec::parse(spelling).unwrap().controller(setup);
        Self {
            stack,
            now: Time::ZERO,
            rtt,
            min_rtt: Span::MAX,
            per_ack: 1,
            cwnd_limited: true,
            round: 0,
            delivered: 0,
        }
    }

    /// The handshake is done: its RTT sample is known.
    pub fn established(&mut self) {
        self.stack
            .on_established(&changed(RestartEvent::new(self.now), |ev| {
                ev.srtt = self.rtt;
                (ev.snd_una, ev.snd_nxt) = (self.delivered, self.delivered);
            }));
    }

    /// Congestion window, segments.
    pub fn w(&self) -> f64 {
        self.stack.window()
    }

    /// One round: `floor(w)` segments acknowledged `per_ack` at a time, evenly over the RTT. A
    /// remainder waits for no timer: it is acknowledged by the last ACK.
    pub fn round(&mut self) {
        let window = (self.w() as u64).max(1);
        let acks = (window / self.per_ack).max(1);
        for i in 0..acks {
            let n = if i + 1 == acks {
                window - i * self.per_ack
            } else {
                self.per_ack
            };
            self.ack(
                n,
                window,
                self.rtt.mul_f64((i + 1) as f64 / acks as f64),
                i == 0,
            );
        }
        self.now += self.rtt;
        self.round += 1;
    }

    /// One round in which a single ACK covers the whole window (`floor(w)` segments).
    pub fn round_at_once(&mut self) {
        let window = (self.w() as u64).max(1);
        self.ack(window, window, self.rtt, true);
        self.now += self.rtt;
        self.round += 1;
    }

    /// `n` ACKs for one segment each, at the present time.
    pub fn acks(&mut self, n: u64) {
        for _ in 0..n {
            let window = (self.w() as u64).max(1);
            self.ack(1, window, Span::ZERO, false);
        }
    }

    /// Runs per-segment rounds until the window is at least `target`; returns their number.
    pub fn until(&mut self, target: f64, at_most: u64) -> u64 {
        let from = self.round;
        while self.w() < target {
            assert!(
                self.round - from < at_most,
                "no {target} after {at_most} rounds: {}",
                self.w()
            );
            self.round();
        }
        self.round - from
    }

    /// A loss with the whole window outstanding; recovery takes no time.
    pub fn lose(&mut self) {
        self.congest(CongestionKind::Loss);
    }

    /// Any congestion event with the whole window outstanding; recovery takes no time.
    pub fn congest(&mut self, kind: CongestionKind) {
        let flight = self.w().ceil() as u64;
        let ev = changed(loss(self.now, flight), |ev| {
            ev.kind = kind;
            ev.srtt = self.rtt;
            ev.min_rtt = self.min_rtt;
        });
        self.stack.on_congestion(&ev);
        self.stack.on_recovery_exit(self.now);
    }

    /// A timeout with the whole window outstanding.
    pub fn time_out(&mut self) {
        let flight = self.w().ceil() as u64;
        let ev = changed(rto(self.now, flight), |ev| {
            ev.srtt = self.rtt;
            ev.min_rtt = self.min_rtt;
        });
        self.stack.on_rto(&ev);
    }

    /// Value of a variable the stack reports.
    pub fn reported(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.stack.report(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.filter(|v: &f64| !v.is_nan())
    }

    fn ack(&mut self, n: u64, window: u64, after: Span, round_start: bool) {
        self.min_rtt = self.min_rtt.min(self.rtt);
        let prior_delivered = self.delivered;
        self.delivered += n;
        let ev = changed(ack(self.now + after, n), |ev| {
            ev.rtt = Some(self.rtt);
            ev.srtt = self.rtt;
            ev.min_rtt = self.min_rtt;
            ev.prior_flight = window;
            ev.flight = window - n;
            ev.delivered = self.delivered;
            ev.rate = Some(changed(RateSample::new(window, self.rtt), |sample| {
                sample.prior_delivered = prior_delivered.saturating_sub(window);
                sample.app_limited = !self.cwnd_limited;
            }));
            ev.cwnd_limited = self.cwnd_limited;
            ev.app_limited = !self.cwnd_limited;
            ev.round = self.round;
            ev.round_start = round_start;
            ev.snd_una = self.delivered;
            ev.snd_nxt = self.delivered + window;
        });
        self.stack.on_delivery(&ev);
        self.stack.on_ack(&ev);
    }
}
