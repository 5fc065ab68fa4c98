//! YeAH, and the rounds that it and Illinois need to return to `w`.

use super::settled::{ms, near, reported, settled, still_round};
use crate::rounds::{Rounds, loss};
use fullpipe_cc::Setup;
use fullpipe_cc::controller::Controller;
use fullpipe_units::{Span, Time};

#[test]
fn yeah_queue_and_drain() {
    for (rtt, queue, w) in [
        (105.0, 47.619, 1000.0),
        (110.0, 90.909, 909.091),
        (120.0, 166.667, 833.333),
    ] {
        let mut stack = settled("yeah", 1000.0);
        still_round(&mut stack, ms(100.0));
        still_round(&mut stack, ms(rtt));
        near(reported(&stack, "queue"), queue, 5e-4);
        near(stack.window(), w, 5e-4);
    }
}

#[test]
fn yeah_decreases() {
    // Queues of 10, 200 and 700 segments at 1000: RTT = base w/(w - Q).
    for (queue, ssth) in [(10.0, 875.0), (200.0, 800.0), (700.0, 500.0)] {
        let mut stack = settled("yeah(q_max=1000)", 1000.0);
        still_round(&mut stack, ms(100.0));
        still_round(&mut stack, ms(100.0 * 1000.0 / (1000.0 - queue)));
        near(reported(&stack, "queue"), queue, 1e-4);
        stack.on_congestion(&loss(Time::ZERO, 1000));
        near(stack.ssthresh(), ssth, 1e-3);
    }
}

/// Rounds that a flow needs to be back at `w`; fractions of a segment that the whole-segment
/// rounds lose are forgiven.
fn rounds_back(spelling: &str, w: f64, rtt: Span) -> u64 {
    let setup = Setup {
        initial_window: w,
        ..Setup::default()
    };
    let mut flow = Rounds::with(spelling, rtt, setup);
    flow.stack.exit_start_up(Time::ZERO);
    flow.cwnd_limited = false;
    flow.round();
    flow.round();
    assert_eq!(flow.w(), w);
    flow.cwnd_limited = true;
    flow.lose();
    near(flow.w(), 0.875 * w, 1e-6);
    let from = flow.round;
    while flow.w() < w - 0.5 && flow.round - from < 10_000 {
        flow.round_at_once();
    }
    flow.round - from
}

#[test]
fn reopening_rounds() {
    for (w, rtt, illinois, yeah) in [
        (1000.0, 87.0, 13, 14),
        (3500.0, 80.0, 44, 14),
        (10_000.0, 100.0, 125, 14),
    ] {
        assert_eq!(rounds_back("illinois", w, ms(rtt)), illinois, "{w}");
        assert_eq!(rounds_back("yeah", w, ms(rtt)), yeah, "{w}");
    }
}

#[test]
fn yeah_changes_mode_at_eighty_segments_and_at_an_eighth_of_the_base() {
    let mode = |w: f64, rtt: f64| {
        let mut stack = settled("yeah", w);
        still_round(&mut stack, ms(100.0));
        still_round(&mut stack, ms(rtt));
        (reported(&stack, "slow_rounds"), stack.window() < w)
    };
    let holding = |queue: f64| 100.0 * 1000.0 / (1000.0 - queue);
    assert_eq!(mode(1000.0, holding(79.0)), (0.0, false));
    assert_eq!(mode(1000.0, holding(81.0)), (1.0, true));
    assert_eq!(mode(100.0, 112.4), (0.0, false));
    assert_eq!(mode(100.0, 112.6), (1.0, false));
}
