//! Events for the unit tests of laws and start-ups: a window-limited flow of 100 ms in the open
//! state.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, CongestionKind, IdleEvent, RtoEvent};
use crate::rounds;

/// An ACK for `n` segments at `now` with an RTT of `rtt`.
pub fn ack(now: Time, n: u64, rtt: Span) -> AckEvent {
    AckEvent {
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        prior_flight: 1_000_000,
        flight: 1_000_000,
        ..rounds::ack(now, n)
    }
}

/// The first ACK of a round.
pub fn round_start(now: Time, n: u64, rtt: Span) -> AckEvent {
    AckEvent {
        round_start: true,
        ..ack(now, n, rtt)
    }
}

/// First loss in a window of `flight` segments.
pub fn loss(flight: u64) -> CongestionEvent {
    congestion(CongestionKind::Loss, flight)
}

/// First congestion event of a kind in a window of `flight` segments.
pub fn congestion(kind: CongestionKind, flight: u64) -> CongestionEvent {
    CongestionEvent {
        kind,
        ..rounds::loss(at_ms(0), flight)
    }
}

/// First timeout with `flight` segments out.
pub fn rto(flight: u64) -> RtoEvent {
    rounds::rto(at_ms(0), flight)
}

/// Restart at `now` after `idle`, with window and threshold left alone.
pub fn restart(now: Time, idle: Span, win: Window) -> IdleEvent {
    IdleEvent {
        now,
        idle,
        window: win.w,
        ssthresh: win.ssth,
    }
}

/// `ms` milliseconds after the start.
pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// `ms` milliseconds.
pub fn ms(ms: f64) -> Span {
    Span::from_secs_f64(ms * 1e-3)
}

/// A window in congestion avoidance.
pub fn avoidance(w: f64) -> Window {
    Window {
        w,
        ssth: w.min(2.0),
    }
}

/// A window in its first slow start.
pub fn start_up(w: f64) -> Window {
    Window {
        w,
        ssth: f64::INFINITY,
    }
}

/// Asserts that two numbers agree to `tolerance`.
#[track_caller]
pub fn near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value} is not {expected}"
    );
}
