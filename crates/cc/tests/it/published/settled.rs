//! Running controllers past their start-up, and times.

use crate::rounds::{Rounds, ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::{Setup, Stack, StackSpec};
use fullpipe_units::{Span, Time};

/// Asserts `|value - expected| <= tolerance`.
#[track_caller]
pub fn near(value: f64, expected: f64, tolerance: f64) {
    super::near(value, expected, tolerance, "value");
}

pub fn ms(ms: f64) -> Span {
    Span::from_secs_f64(ms * 1e-3)
}

pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A flow at `w` segments, out of start-up.
pub fn settled(spelling: &str, w: f64) -> Stack {
    let setup = Setup {
        initial_window: w,
        ..Setup::default()
    };
    let mut stack = StackSpec::parse(spelling).unwrap().controller(setup);
    stack.exit_start_up(Time::ZERO);
    stack
}

/// A flow at `w` segments driven by rounds, out of start-up, which has seen one round.
pub fn settled_rounds(spelling: &str, w: f64, rtt: Span) -> Rounds {
    let setup = Setup {
        initial_window: w,
        ..Setup::default()
    };
    let mut flow = Rounds::with(spelling, rtt, setup);
    flow.stack.exit_start_up(Time::ZERO);
    flow.round();
    flow
}

/// Three samples of `rtt` and the ACK that begins the next round, none of which may grow the
/// window.
pub fn still_round(stack: &mut Stack, rtt: Span) {
    for _ in 0..3 {
        stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
            ev.rtt = Some(rtt);
            ev.srtt = rtt;
            ev.cwnd_limited = false;
        }));
    }
    stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
        ev.rtt = None;
        ev.srtt = rtt;
        ev.cwnd_limited = false;
        ev.round_start = true;
    }));
}

pub fn reported(stack: &Stack, name: &str) -> f64 {
    let mut found = f64::NAN;
    stack.report(&mut |key, value| {
        if key == name {
            found = value;
        }
    });
    found
}
