//! A fullpipe stack behind quinn's controller interface.
//!
//! quinn counts bytes, fullpipe segments: one segment is one datagram of the path's MTU. What quinn
//! does not tell keeps its default in the event: no SACK, no delivery rate, no one-way delay. quinn
//! paces by the window and applies the window at once, so that a stack that needs more is refused
//! ([`Unfit`]).
//!
//! `Controller` wants an ACK's losses between `on_delivery` and `on_ack`. quinn detects them after
//! its `on_end_acks`, and asks for the window without a call that ends the ACK; both events are
//! therefore reported there, and the ACK that shows a loss grows the window before the reduction.
//! quinn's own controllers count in the same order.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use fullpipe_cc::{
    AckEvent, CongestionEvent, CongestionKind, Controller as _, InitialSending, Phase,
    RestartEvent, RtoEvent, Setup, Stack, StackSpec,
};
use fullpipe_units::{Span, Time};
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

/// The same stack for every connection.
pub struct Factory(StackSpec);

impl Factory {
    /// A factory of `spec`.
    ///
    /// # Errors
    /// [`Unfit`] for a stack that needs what quinn's interface does not have.
    pub fn new(spec: StackSpec) -> Result<Self, Unfit> {
        let stack = spec.controller(Setup::default());
        let why = if !spec.has_law() {
            "is a module for the kernel of ground linux, nothing to drive here"
        } else if stack.reads_rate() {
            "reads delivery rates, which quinn does not measure"
        } else if stack.sets_rate() {
            "sets a pacing rate, which quinn does not take"
        } else if stack.owns_window() {
            "sets the window during recovery, which quinn does not report"
        } else if let Some(InitialSending::Spread { .. }) = spec.sending() {
            "spreads the initial window, which quinn sends at its own pace"
        } else if spec.pacing().is_some() {
            "paces, which quinn does by gains of its own"
        } else {
            return Ok(Self(spec));
        };
        Err(Unfit {
            stack: spec.to_string(),
            why,
        })
    }
}

/// Why a stack cannot run under quinn.
#[derive(Debug)]
pub struct Unfit {
    stack: String,
    why: &'static str,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.stack, self.why)
    }
}

impl std::error::Error for Unfit {}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let mut setup = Setup::quic(mtu.into());
        setup.initial_window = self.0.initial_window().unwrap_or(setup.initial_window);
        Box::new(Adapter {
            stack: self.0.controller(setup),
            initial: setup.initial_window,
            mtu: mtu.into(),
            origin: now,
            ack: AckEvent::new(Time::ZERO),
            bytes: 0,
            repair: None,
            round_ends: 0,
            last_sent: 0,
            last_sent_at: now,
            silent: false,
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
    /// A recovery or what persistent congestion began, and since when: it ends when a packet that
    /// left later is acknowledged. Losses of packets sent before belong to a recovery.
    repair: Option<(Phase, Instant)>,
    /// Packet numbers that end the round, and sent last.
    round_ends: u64,
    last_sent: u64,
    /// Departure of the packet sent last: what a pause is counted from.
    last_sent_at: Instant,
    /// Nothing was in flight after the last ACK, and nothing has left since.
    silent: bool,
}

impl Adapter {
    fn time(&self, now: Instant) -> Time {
        Time::from(now - self.origin)
    }

    /// A packet of `bytes`; smoothed and smallest RTT with it.
    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, [srtt, min]: [Span; 2]) {
        if self.ack.srtt == Span::ZERO {
            let mut ev = RestartEvent::new(self.time(now));
            ev.srtt = srtt;
            self.stack.on_established(&ev);
        }
        if self.repair.is_some_and(|(_, began)| sent > began) {
            self.repair = None;
            self.stack.on_recovery_exit(self.time(now));
        }
        self.bytes += bytes;
        self.ack.rtt = Some((now - sent).into());
        (self.ack.srtt, self.ack.min_rtt) = (srtt, min);
    }

    /// `segments` in bytes, never less than the minimum window (RFC 9002 section 7.2).
    fn bytes_of(&self, segments: f64) -> u64 {
        ((segments * self.mtu as f64) as u64).max(MIN_WINDOW * self.mtu)
    }
}

/// Datagrams of the smallest window (RFC 9002 section 7.2, `kMinimumWindow`).
const MIN_WINDOW: u64 = 2;

impl Controller for Adapter {
    // quinn reports datagrams of ACKs alone here, too, so that a pause may seem to end early.
    fn on_sent(&mut self, now: Instant, _bytes: u64, packet: u64) {
        if std::mem::take(&mut self.silent) {
            let mut ev = RestartEvent::new(self.time(now));
            (ev.idle, ev.srtt) = ((now - self.last_sent_at).into(), self.ack.srtt);
            (ev.snd_una, ev.snd_nxt) = (self.ack.delivered, self.ack.delivered);
            ev.app_limited = true;
            self.stack.on_restart(&ev);
        }
        (self.last_sent, self.last_sent_at) = (packet, now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.acknowledged(now, sent, bytes, [rtt.get().into(), rtt.min().into()]);
    }

    fn on_end_acks(&mut self, now: Instant, flight: u64, limited: bool, newest: Option<u64>) {
        let mut ev = self.ack;
        ev.now = self.time(now);
        ev.acked = self.bytes / self.mtu;
        ev.advanced = ev.acked > 0;
        self.bytes %= self.mtu;
        ev.flight = flight / self.mtu;
        self.silent = flight == 0;
        ev.prior_flight = ev.flight + ev.acked;
        ev.delivered += ev.acked;
        (ev.snd_una, ev.snd_nxt) = (ev.delivered, ev.delivered + ev.flight);
        (ev.app_limited, ev.cwnd_limited) = (limited, !limited);
        ev.round_start = newest.is_some_and(|packet| packet >= self.round_ends);
        if ev.round_start {
            ev.round += 1;
            self.round_ends = self.last_sent + 1;
        }
        ev.phase = self.repair.map_or(Phase::Open, |(phase, _)| phase);
        self.stack.on_delivery(&ev);
        self.stack.on_ack(&ev);
        self.ack = ev;
        (self.ack.rtt, self.ack.lost) = (None, 0);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        let at = self.time(now);
        self.ack.lost += lost.div_ceil(self.mtu);
        let known = |(phase, began)| phase == Phase::Recovery && sent <= began;
        if !self.repair.is_some_and(known) {
            self.repair = Some((Phase::Recovery, now));
            let kind = if lost > 0 {
                CongestionKind::Loss
            } else {
                CongestionKind::Ecn
            };
            let mut ev = CongestionEvent::new(at, kind, self.ack.flight);
            (ev.lost, ev.srtt, ev.min_rtt) = (self.ack.lost, self.ack.srtt, self.ack.min_rtt);
            self.stack.on_congestion(&ev);
        }
        if persistent {
            // RFC 9002 section 7.6.2 and appendix B.8: the threshold is that of the loss, the
            // window the smallest, and what is sent from now on is in no recovery.
            self.stack.on_recovery_exit(at);
            let mut ev = RtoEvent::new(at, self.ack.flight);
            (ev.first, ev.srtt, ev.min_rtt) = (false, self.ack.srtt, self.ack.min_rtt);
            self.stack.on_rto(&ev);
            self.repair = Some((Phase::Loss, now));
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        let ratio = self.mtu as f64 / f64::from(mtu);
        self.stack.on_mss_change(ratio);
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        self.bytes_of(self.stack.window().floor())
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        let ssthresh = self.stack.ssthresh();
        metrics.ssthresh = ssthresh.is_finite().then(|| self.bytes_of(ssthresh));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.bytes_of(self.initial)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quinn::congestion::{CubicConfig, NewRenoConfig};

    use super::*;

    const MTU: u16 = 1200;
    /// 64 datagrams, in bytes.
    const INITIAL: u64 = 64 * MTU as u64;

    fn ours(stack: &str, now: Instant) -> Box<dyn Controller> {
        let spec = StackSpec::parse(&format!("{stack}+burst(iw=64)")).unwrap();
        let mut cc = Arc::new(Factory::new(spec).unwrap()).build(now, MTU);
        assert_eq!(cc.initial_window(), INITIAL);
        cc.on_end_acks(now, INITIAL, false, None);
        cc
    }

    /// Window and threshold after a loss that shows persistent congestion.
    fn persistent(mut cc: Box<dyn Controller>, now: Instant) -> (u64, u64) {
        let ms = Duration::from_millis(1);
        cc.on_congestion_event(now + 900 * ms, now + 600 * ms, true, 4800);
        let metrics = cc.metrics();
        (metrics.congestion_window, metrics.ssthresh.unwrap())
    }

    /// RFC 9002 appendix B.8: one reduction, then the smallest window. quinn's NewReno does the
    /// same; its CUBIC reduces the threshold a second time.
    #[test]
    fn persistent_congestion_reduces_once() {
        let now = Instant::now();
        let mut config = NewRenoConfig::default();
        config.initial_window(INITIAL);
        let theirs = persistent(Arc::new(config).build(now, MTU), now);
        assert_eq!(theirs, (2400, 38_400));
        assert_eq!(persistent(ours("reno", now), now), theirs);

        let mut config = CubicConfig::default();
        config.initial_window(INITIAL);
        let theirs = persistent(Arc::new(config).build(now, MTU), now);
        assert_eq!(theirs, (2400, 37_632));
        assert_eq!(persistent(ours("cubic", now), now), (2400, 53_760));
        // A kernel module counts whole segments.
        assert_eq!(persistent(ours("cubic-linux", now), now).0, 2400);
    }

    /// RFC 9002 appendix B.8 sets `congestion_recovery_start_time` to zero.
    #[test]
    fn persistent_congestion_ends_recovery() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut cc = ours("reno", now);
        cc.on_congestion_event(at(100), at(50), false, 1200);
        assert_eq!(cc.window(), INITIAL / 2);
        cc.on_congestion_event(at(101), at(60), false, 1200);
        assert_eq!(cc.window(), INITIAL / 2, "the same window of data");
        cc.on_congestion_event(at(900), at(90), true, 1200);
        let metrics = cc.metrics();
        assert_eq!(metrics.congestion_window, 2400);
        assert_eq!(metrics.ssthresh, Some(INITIAL / 2));
        cc.on_congestion_event(at(901), at(95), false, 1200);
        assert_eq!(cc.metrics().ssthresh, Some(2400), "a new episode");
    }

    /// RFC 9002 section 7.3.1: the window grows by what is acknowledged. Ours grows from the one
    /// segment that the smallest window of two datagrams stands for.
    #[test]
    fn the_window_doubles_after_persistent_congestion() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let rtt = Duration::from_millis(50);
        for stack in ["reno", "cubic", "westwood(timing=linux)", "cubic-linux"] {
            let mut cc = ours(stack, now).into_any().downcast::<Adapter>().unwrap();
            cc.on_congestion_event(at(900), at(600), true, 4800);
            let mut windows = vec![cc.window() / u64::from(MTU)];
            for round in 0..3 {
                let sent = at(950 + 50 * round);
                for packet in 0..windows[windows.len() - 1] {
                    cc.on_sent(sent, MTU.into(), 1000 * round + packet);
                    cc.acknowledged(sent + rtt, sent, MTU.into(), [rtt.into(); 2]);
                }
                cc.on_end_acks(sent + rtt, 0, false, Some(1000 * round));
                windows.push(cc.window() / u64::from(MTU));
            }
            assert_eq!(windows, [2, 3, 6, 12], "{stack}");
        }
    }

    #[test]
    fn what_quinn_cannot_serve_is_refused() {
        for (stack, why) in [
            ("reno+spread(iw=10)", "spreads the initial window"),
            ("reno+spread-variable", "spreads the initial window"),
            ("cubic+limited+paced", "paces"),
            ("own-linux", "is a module for the kernel"),
        ] {
            let spec = StackSpec::parse(stack).unwrap();
            let said = Factory::new(spec).err().expect(stack).to_string();
            assert!(said.starts_with(&format!("`{stack}` {why}")), "{said}");
        }
        for stack in ["bbr", "bbr-linux", "udt"] {
            let spec = StackSpec::parse(stack).unwrap();
            let why = Factory::new(spec).err().expect(stack).to_string();
            assert!(why.starts_with(&format!("`{stack}` reads")), "{why}");
        }
        for stack in [
            "cubic",
            "cubic-linux",
            "htcp",
            "ledbat",
            "highspeed+limited",
            "reno+burst(iw=64)",
        ] {
            assert!(
                Factory::new(StackSpec::parse(stack).unwrap()).is_ok(),
                "{stack}"
            );
        }
    }
}
