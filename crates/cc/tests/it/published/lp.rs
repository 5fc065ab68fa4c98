//! TCP-LP and HSTCP-LP.

use super::settled::{at_ms, ms, near, settled, settled_rounds};
use crate::rounds::{ack, changed, loss};
use fullpipe_cc::Stack;
use fullpipe_cc::controller::{Controller, Phase};
use fullpipe_units::{Span, Time};

/// A flow at `w` whose delays were `low` and `high` ms and whose smoothed delay is `smoothed` ms,
/// seen while it could not react.
fn after_delays(spelling: &str, w: f64, low: f64, high: f64, smoothed: f64) -> Stack {
    let mut stack = settled(spelling, w);
    let mut see = |d: f64| {
        stack.on_ack(&changed(ack(at_ms(1000), 1), |ev| {
            ev.rtt = Some(ms(d));
            ev.owd = Some(ms(d));
            ev.phase = Phase::Recovery;
        }));
    };
    see(low);
    see(high);
    see(high + 1.0); // the largest waits in reserve
    for _ in 0..300 {
        see(smoothed);
    }
    assert_eq!(stack.window(), w);
    stack
}

fn see(stack: &mut Stack, now_ms: u64, delay: f64) {
    stack.on_ack(&changed(ack(at_ms(now_ms), 1), |ev| {
        ev.rtt = Some(ms(delay));
        ev.owd = Some(ms(delay));
        ev.cwnd_limited = false;
    }));
}

#[test]
fn tcp_lp_backs_off_above_forty_three_milliseconds() {
    for (smoothed, w) in [(42.99, 100.0), (43.01, 50.0), (44.0, 50.0)] {
        let mut stack = after_delays("lp", 100.0, 40.0, 60.0, smoothed);
        see(&mut stack, 1000, smoothed);
        assert_eq!(stack.window(), w, "{smoothed}");
    }
    let mut stack = after_delays("lp", 100.0, 40.0, 60.0, 44.0);
    see(&mut stack, 1000, 44.0);
    see(&mut stack, 1100, 200.0);
    assert_eq!(stack.window(), 1.0);
    let mut stack = after_delays("lp", 100.0, 40.0, 60.0, 44.0);
    see(&mut stack, 1000, 44.0);
    see(&mut stack, 1000 + 3 * 200, 200.0); // three RTTs later
    assert_eq!(stack.window(), 25.0);
}

#[test]
fn hstcp_lp_acts_above_seventy_nine_milliseconds() {
    for (smoothed, w) in [(78.99, 1000.0), (79.01, 500.0)] {
        let mut stack = after_delays("hstcp-lp", 1000.0, 70.0, 130.0, smoothed);
        see(&mut stack, 1000, smoothed);
        assert_eq!(stack.window(), w, "{smoothed}");
    }
    let mut stack = settled("hstcp-lp", 1000.0);
    stack.on_congestion(&loss(Time::ZERO, 1000));
    near(stack.window(), 670.121731, 5e-7);
}

/// Mean rate of one flow on 450 Mb/s (37,500 packets/s), 70 ms, with a buffer of one
/// bandwidth-delay product.
fn alone(spelling: &str) -> f64 {
    let (capacity, base) = (37_500.0, 0.070);
    let bdp = capacity * base;
    let mut flow = settled_rounds(spelling, 1000.0, Span::from_secs_f64(base));
    let (mut sent, mut time) = (0.0, 0.0);
    while time < 200.0 {
        let rtt = f64::max(base, flow.w() / capacity);
        flow.rtt = Span::from_secs_f64(rtt);
        flow.round_at_once();
        if flow.w() > 2.0 * bdp {
            flow.lose();
        }
        sent += flow.w().min(capacity * rtt);
        time += rtt;
    }
    sent / time
}

/// SLAC 2003 as a target: alone, HSTCP-LP must come within 20 % of HSTCP.
#[test]
fn hstcp_lp_alone_is_nearly_as_fast_as_highspeed() {
    let (lp, hs) = (alone("hstcp-lp"), alone("highspeed"));
    assert!(lp >= 0.8 * hs, "{lp} {hs}");
    assert!(lp <= hs, "{lp} {hs}");
}

#[test]
fn tcp_lp_ignores_less_than_a_millisecond() {
    for law in ["lp", "hstcp-lp"] {
        for (delay, w) in [(40.97, 100.0), (41.03, 50.0)] {
            let mut stack = settled(law, 100.0);
            see(&mut stack, 0, 40.0);
            for _ in 0..100 {
                stack.on_ack(&changed(ack(at_ms(0), 1), |ev| {
                    ev.rtt = Some(ms(delay));
                    ev.owd = Some(ms(delay));
                    ev.phase = Phase::Recovery;
                }));
            }
            see(&mut stack, 0, delay);
            assert_eq!(stack.window(), w, "{law} {delay}");
        }
    }
}
