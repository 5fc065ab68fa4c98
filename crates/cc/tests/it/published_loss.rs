//! Published and computed numbers of the loss-driven laws and of Limited Slow-Start.

use crate::rounds::{Rounds, law};
use fullpipe_cc::classic::Window;
use fullpipe_cc::law::{Law, WindowLaw};
use fullpipe_units::{Span, Time};

/// One round in which the window is acknowledged in one step: `w += a(w)`.
fn step(law: &mut Law, w: f64) -> f64 {
    let mut win = Window { w, ssth: 1.0 };
    law.increase(&mut win, w, &crate::rounds::ack(Time::ZERO, 1));
    win.w
}

/// Equation 0-1 with a = 1, 10 segments from w = 10 (tolerance: the printed digits).
#[test]
fn reno_grows_by_one_segment_per_round() {
    let mut reno = law("reno", &[]);
    assert!((step(&mut reno, 10.0) - 11.0).abs() < 1e-12);
    let mut flow = Rounds::new("reno", Span::from_millis(87));
    flow.stack = fullpipe_cc::StackSpec::parse("reno").unwrap().controller(fullpipe_cc::Setup {
        initial_window: 10.0,
        ..Default::default()
    });
    fullpipe_cc::Controller::exit_start_up(&mut flow.stack, Time::ZERO);
    flow.round();
    assert!((flow.w() - 10.958648).abs() < 5e-7);
}
