//! Vegas: Brakmo and Peterson 1995, ns-2, Linux.

use super::settled::{at_ms, ms, near, reported, settled, still_round};
use crate::rounds::{Rounds, ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::round::{RoundEnd, queued, queued_over_base};
use fullpipe_cc::startup::gamma::linux_exit;
use fullpipe_cc::{Setup, StackSpec};

/// Linux's constants and forms, in real numbers.
const AS_LINUX: &str = "vegas(alpha=2,beta=4,diff_over=base,growth=every,exit=linux)";

#[test]
fn vegas_backlogs() {
    let cases = [
        (100.0, 100.0, 101.0, 0.990099, 1.0),
        (100.0, 100.0, 102.0, 1.960784, 2.0),
        (100.0, 100.0, 105.0, 4.761905, 5.0),
        (20.0, 100.0, 110.0, 1.818182, 2.0),
        (2000.0, 77.0, 80.0, 75.0, 77.922078),
    ];
    for (w, base, rtt, paper, linux) in cases {
        near(queued(w, base, rtt), paper, 5e-7);
        near(queued_over_base(w, base, rtt), linux, 5e-7);
        for (law, expected) in [("vegas", paper), ("vegas(diff_over=base)", linux)] {
            let mut stack = settled(law, w);
            still_round(&mut stack, ms(base));
            still_round(&mut stack, ms(rtt));
            near(reported(&stack, "diff"), expected, 1e-6);
        }
    }
}

#[test]
fn vegas_acts_once_a_round_between_alpha_and_beta() {
    // Backlogs 0.990, 2.913 and 4.762 segments against 1/3 (paper), 1, 3 and 5 against 2/4 (Linux).
    for (law, steps) in [("vegas", [1.0, 0.0, -1.0]), (AS_LINUX, [1.0, 0.0, -1.0])] {
        for (rtt, step) in [101.0, 103.0, 105.0].into_iter().zip(steps) {
            let mut stack = settled(law, 100.0);
            still_round(&mut stack, ms(100.0));
            for _ in 0..3 {
                stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
                    ev.rtt = Some(ms(rtt));
                }));
            }
            let before = stack.window();
            stack.on_ack(&changed(ack(at_ms(2), 1), |ev| {
                ev.round_start = true;
            }));
            near(stack.window() - before, step, 1e-9);
        }
    }
}

#[test]
fn linux_vegas_exit_windows() {
    let end = |rtt| RoundEnd {
        base: ms(100.0),
        rtt: ms(rtt),
        mean: ms(rtt),
        samples: 10,
    };
    assert_eq!(linux_exit(100.0, &end(101.0)), 100.0);
    assert_eq!(linux_exit(100.0, &end(102.0)), 99.0);
}

#[test]
fn vegas_own_start_ups_differ() {
    // ns-2: doubling every other round, exit takes an eighth. Linux: every round, exit at 99 of
    // 100.
    for (law, grown, left) in [("vegas", 4, 87.5), (AS_LINUX, 5, 99.0)] {
        let setup = Setup {
            initial_window: 4.0,
            ..Setup::default()
        };
        let mut flow = Rounds::with(law, ms(100.0), setup);
        for _ in 0..if law == "vegas" { 4 } else { 5 } {
            flow.round();
        }
        let doublings = if law == "vegas" { 2 } else { grown };
        assert_eq!(flow.w(), 4.0 * f64::from(1 << doublings), "{law}");
        let setup = Setup {
            initial_window: 100.0,
            ..Setup::default()
        };
        let mut stack = StackSpec::parse(law).unwrap().controller(setup);
        still_round(&mut stack, ms(100.0));
        assert!(stack.in_start_up());
        still_round(&mut stack, ms(102.0));
        assert!(!stack.in_start_up());
        assert_eq!(stack.window(), left, "{law}");
    }
}

/// Growth of a settled flow at 100 segments in the round after one with this backlog, by the
/// `vegas` estimate.
fn vegas_step(law: &str, rtt_of: impl Fn(f64) -> f64, backlog: f64) -> f64 {
    let mut stack = settled(law, 100.0);
    still_round(&mut stack, ms(100.0));
    for _ in 0..3 {
        stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
            ev.rtt = Some(ms(rtt_of(backlog)));
        }));
    }
    let before = stack.window();
    stack.on_ack(&changed(ack(at_ms(2), 1), |ev| {
        ev.round_start = true;
    }));
    stack.window() - before
}

#[test]
fn vegas_thresholds() {
    let over_rtt = |backlog: f64| 100.0 * 100.0 / (100.0 - backlog);
    let over_base = |backlog: f64| 100.0 + backlog;
    for (backlog, step) in [(0.98, 1.0), (1.02, 0.0), (2.95, 0.0), (3.05, -1.0)] {
        near(vegas_step("vegas", over_rtt, backlog), step, 1e-9);
    }
    for (backlog, step) in [(1.97, 1.0), (2.03, 0.0), (3.95, 0.0), (4.05, -1.0)] {
        near(vegas_step(AS_LINUX, over_base, backlog), step, 1e-9);
    }
}

#[test]
fn one_segment_queued_ends_start_up() {
    for spelling in ["vegas", AS_LINUX, "fast", "reno+gamma(then=ca)"] {
        for (backlog, leaves) in [(0.98, false), (1.02, true)] {
            let setup = Setup {
                initial_window: 100.0,
                ..Setup::default()
            };
            let mut stack = StackSpec::parse(spelling).unwrap().controller(setup);
            still_round(&mut stack, ms(100.0));
            still_round(&mut stack, ms(100.0 * 100.0 / (100.0 - backlog)));
            assert_eq!(!stack.in_start_up(), leaves, "{spelling} {backlog}");
        }
    }
}
