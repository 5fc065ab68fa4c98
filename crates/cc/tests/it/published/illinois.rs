//! Illinois.

use super::settled::{at_ms, ms, near, reported, settled};
use crate::rounds::{Rounds, ack, changed, loss};
use fullpipe_cc::Setup;
use fullpipe_cc::controller::Controller;
use fullpipe_cc::law::illinois::IllinoisParams;
use fullpipe_units::Time;

#[test]
fn illinois_tables() {
    let da = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 80.0, 100.0];
    let alpha = [
        10.0, 10.0, 7.538071, 4.335766, 2.538462, 1.387850, 0.588119, 0.373116, 0.3,
    ];
    let paper_alpha = [10.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.125, 0.1];
    let beta = [
        0.125, 0.125, 0.125, 0.125, 0.125, 0.178571, 0.339286, 0.5, 0.5,
    ];
    // Linux's fixed point, from da = 2 ms on.
    let fixed = [
        7.515625, 4.304688, 2.515625, 1.375, 0.578125, 0.367188, 0.296875,
    ];
    let linux = IllinoisParams {
        alpha_min: 0.3,
        alpha_max: 10.0,
        beta_min: 0.125,
        beta_max: 0.5,
        win_thresh: 15.0,
        theta: 5.0,
    };
    let paper = IllinoisParams {
        alpha_min: 0.1,
        win_thresh: 10.0,
        ..linux
    };
    for i in 0..da.len() {
        near(linux.alpha(da[i], 100.0), alpha[i], 5e-7);
        near(paper.alpha(da[i], 100.0), paper_alpha[i], 5e-7);
        near(linux.beta(da[i], 100.0), beta[i], 5e-7);
        if i >= 2 {
            near(linux.alpha(da[i], 100.0), fixed[i - 2], 1.0 / 32.0);
        }
    }
    near(linux.beta(20.0, 100.0), 0.171875, 1.0 / 64.0);
    near(linux.beta(50.0, 100.0), 0.328125, 1.0 / 64.0);
}

/// The registered defaults give the same table: mean queueing delay 50 of 100 ms.
#[test]
fn illinois_controller_follows_the_table() {
    let mut stack = settled("illinois", 1000.0);
    for rtt in [100.0, 200.0, 150.0] {
        stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
            ev.rtt = Some(ms(rtt));
            ev.cwnd_limited = false;
        }));
    }
    let next = changed(ack(at_ms(2), 1), |ev| {
        ev.rtt = None;
        ev.cwnd_limited = false;
        ev.round_start = true;
    });
    stack.on_ack(&next);
    near(reported(&stack, "alpha"), 0.588119, 5e-7);
    near(reported(&stack, "beta"), 0.339286, 5e-7);
    stack.on_congestion(&loss(Time::ZERO, 1000));
    near(stack.window(), 660.714, 1e-3);
}

#[test]
fn illinois_fills_the_pipe_in_28_seconds() {
    let setup = Setup {
        initial_window: 10.0,
        ..Setup::default()
    };
    let mut flow = Rounds::with("illinois", ms(80.0), setup);
    flow.stack.exit_start_up(Time::ZERO);
    while flow.w() < 3500.0 && flow.round < 1000 {
        flow.round_at_once();
    }
    near(flow.round as f64 * 0.080, 28.3, 0.1);
}

#[test]
fn illinois_returns_to_its_maximum_after_five_short_rounds() {
    let mut stack = settled("illinois", 1000.0);
    let mut round = |rtt: f64| {
        for r in [rtt, rtt] {
            stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
                ev.rtt = Some(ms(r));
                ev.cwnd_limited = false;
            }));
        }
        stack.on_ack(&changed(ack(at_ms(2), 1), |ev| {
            ev.rtt = None;
            ev.cwnd_limited = false;
            ev.round_start = true;
        }));
        reported(&stack, "alpha")
    };
    round(100.0);
    near(round(200.0), 0.3, 1e-9);
    for _ in 0..4 {
        near(round(100.0), 0.3, 1e-9);
    }
    near(round(100.0), 10.0, 1e-9);
}
