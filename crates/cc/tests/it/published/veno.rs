//! Veno.

use super::settled::{ms, near, reported, settled, still_round};
use crate::rounds::loss;
use fullpipe_cc::controller::Controller;
use fullpipe_units::Time;

#[test]
fn veno_keeps_four_fifths_below_three_segments() {
    for (backlog, w) in [(2.9, 80.0), (3.0001, 50.0)] {
        let mut stack = settled("veno", 100.0);
        still_round(&mut stack, ms(100.0));
        still_round(&mut stack, ms(100.0 * 100.0 / (100.0 - backlog)));
        near(reported(&stack, "backlog"), backlog, 1e-4);
        stack.on_congestion(&loss(Time::ZERO, 100));
        near(stack.window(), w, 1e-9);
    }
}
