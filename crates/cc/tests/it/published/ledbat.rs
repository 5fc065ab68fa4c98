//! LEDBAT (RFC 6817).

use super::settled::{at_ms, ms, near, settled};
use crate::rounds::{Rounds, ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_units::Span;

#[test]
fn ledbat_steps() {
    for (q, w) in [
        (0.0, 10.1),
        (50.0, 10.05),
        (100.0, 10.0),
        (150.0, 9.95),
        (200.0, 9.9),
    ] {
        let mut stack = settled("ledbat", 10.0);
        // The base, three minutes ago: out of the current filter, in the history.
        let first = changed(ack(at_ms(0), 0), |ev| {
            ev.owd = Some(ms(30.0));
            ev.cwnd_limited = false;
        });
        stack.on_ack(&first);
        stack.on_ack(&changed(ack(at_ms(180_000), 1), |ev| {
            ev.owd = Some(ms(30.0 + q));
        }));
        near(stack.window(), w, 1e-9);
    }
}

/// A flow alone settles where the queue is 100 ms: 1000 packets/s, 40 ms.
#[test]
fn ledbat_holds_its_target() {
    let mut flow = Rounds::new("ledbat", ms(40.0));
    for _ in 0..600 {
        flow.rtt = Span::from_secs_f64(f64::max(0.040, flow.w() / 1000.0));
        flow.round();
    }
    near(flow.w() / 1000.0, 0.140, 0.002);
}

#[test]
fn ledbat_stays_within_one_segment_of_the_flight() {
    let mut stack = settled("ledbat", 10.0);
    stack.on_ack(&changed(ack(at_ms(0), 10), |ev| {
        ev.prior_flight = 10;
    }));
    near(stack.window(), 11.0, 1e-9);
    stack.on_ack(&changed(ack(at_ms(0), 11), |ev| {
        ev.prior_flight = 10;
    }));
    near(stack.window(), 11.0, 1e-9);
}
