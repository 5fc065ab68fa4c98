//! Events for the unit tests of laws and start-ups: a window-limited flow of 100 ms in the open state.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, CongestionKind, IdleEvent, Phase, RtoEvent};

/// An ACK for `n` segments at `now` with an RTT of `rtt`.
pub fn ack(now: Time, n: u64, rtt: Span) -> AckEvent {
    AckEvent {
        now,
        acked: n,
        sacked: 0,
        lost: 0,
        acks: 1,
        advanced: n > 0,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        owd: None,
        prior_flight: 1_000_000,
        flight: 1_000_000,
        stamps: Default::default(),
        delivered: n,
        rate: None,
        cwnd_limited: true,
        app_limited: false,
        ece: false,
        ce: 0,
        round: 1,
        round_start: false,
        phase: Phase::Open,
        snd_una: n,
        snd_nxt: n + 10,
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
        now: at_ms(0),
        kind,
        first_in_window: true,
        lost: 1,
        flight,
        srtt: Span::from_millis(100),
        min_rtt: Span::from_millis(100),
    }
}

/// First timeout with `flight` segments out.
pub fn rto(flight: u64) -> RtoEvent {
    RtoEvent {
        now: at_ms(0),
        first: true,
        flight,
        pipe: 0,
        srtt: Span::from_millis(100),
        min_rtt: Span::from_millis(100),
    }
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
