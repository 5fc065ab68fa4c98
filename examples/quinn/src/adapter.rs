//! A fullpipe stack behind quinn's controller interface.
//!
//! quinn counts bytes, fullpipe segments: one segment is one datagram of the path's MTU. What quinn
//! does not tell keeps its default in the event: no SACK, no delivery rate, no one-way delay. quinn
//! paces by the window, so that a stack's own pacing rate is not used.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use fullpipe_cc::{
    AckEvent, CongestionEvent, CongestionKind, Controller as _, Phase, RestartEvent, RtoEvent,
    Setup, Stack, StackSpec,
};
use fullpipe_units::Time;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

/// The same stack for every connection.
pub struct Factory(pub StackSpec);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let mut setup = Setup::default();
        setup.initial_window = self.0.initial_window().unwrap_or(setup.initial_window);
        setup.mss = mtu.into();
        setup.slow_start_limit = f64::INFINITY; // paced: RFC 9406 section 4.2
        Box::new(Adapter {
            stack: self.0.controller(setup),
            initial: setup.initial_window,
            mtu: mtu.into(),
            origin: now,
            ack: AckEvent::new(Time::ZERO),
            bytes: 0,
            recovery: None,
            round_ends: 0,
            last_sent: 0,
        })
    }
}

/// A stack and what turns quinn's calls into its events.
#[derive(Clone)]
struct Adapter {
    stack: Stack,
    /// Initial window, segments.
    initial: f64,
    /// Bytes of a segment.
    mtu: u64,
    /// Time zero of the stack.
    origin: Instant,
    /// The next event: grows by every acknowledged packet until the ACK is complete.
    ack: AckEvent,
    /// Acknowledged bytes that are not a whole segment yet.
    bytes: u64,
    /// When the present recovery began: packets sent before are part of it.
    recovery: Option<Instant>,
    /// Packet numbers that end the round, and sent last.
    round_ends: u64,
    last_sent: u64,
}

impl Adapter {
    fn time(&self, now: Instant) -> Time {
        Time::from(now - self.origin)
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, _now: Instant, _bytes: u64, packet: u64) {
        self.last_sent = packet;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        if self.ack.srtt.as_nanos() == 0 {
            let mut ev = RestartEvent::new(self.time(now));
            ev.srtt = rtt.get().into();
            self.stack.on_established(&ev);
        }
        if self.recovery.is_some_and(|began| sent > began) {
            self.recovery = None;
            self.stack.on_recovery_exit(self.time(now));
        }
        self.bytes += bytes;
        self.ack.rtt = Some((now - sent).into());
        self.ack.srtt = rtt.get().into();
        self.ack.min_rtt = rtt.min().into();
    }

    fn on_end_acks(&mut self, now: Instant, flight: u64, limited: bool, newest: Option<u64>) {
        let mut ev = self.ack;
        ev.now = self.time(now);
        ev.acked = self.bytes / self.mtu;
        ev.advanced = ev.acked > 0;
        self.bytes %= self.mtu;
        ev.flight = flight / self.mtu;
        ev.prior_flight = ev.flight + ev.acked;
        ev.delivered += ev.acked;
        (ev.snd_una, ev.snd_nxt) = (ev.delivered, ev.delivered + ev.flight);
        (ev.app_limited, ev.cwnd_limited) = (limited, !limited);
        ev.round_start = newest.is_some_and(|packet| packet >= self.round_ends);
        if ev.round_start {
            ev.round += 1;
            self.round_ends = self.last_sent + 1;
        }
        ev.phase = match self.recovery {
            Some(_) => Phase::Recovery,
            None => Phase::Open,
        };
        self.stack.on_delivery(&ev);
        self.stack.on_ack(&ev);
        self.ack = ev;
        (self.ack.rtt, self.ack.lost) = (None, 0);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        let at = self.time(now);
        self.ack.lost += lost.div_ceil(self.mtu);
        if persistent {
            self.stack.on_rto(&RtoEvent::new(at, self.ack.prior_flight));
        }
        if self.recovery.is_none_or(|began| sent > began) {
            self.recovery = Some(now);
            let kind = if lost > 0 {
                CongestionKind::Loss
            } else {
                CongestionKind::Ecn
            };
            let mut ev = CongestionEvent::new(at, kind, self.ack.flight);
            (ev.lost, ev.srtt, ev.min_rtt) = (self.ack.lost, self.ack.srtt, self.ack.min_rtt);
            self.stack.on_congestion(&ev);
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        let ratio = self.mtu as f64 / f64::from(mtu);
        self.stack.on_mss_change(ratio);
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        self.stack.window() as u64 * self.mtu
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        let ssthresh = self.stack.ssthresh() * self.mtu as f64;
        metrics.ssthresh = ssthresh.is_finite().then_some(ssthresh as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        (self.initial * self.mtu as f64) as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
