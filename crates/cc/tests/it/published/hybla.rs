//! Section 1.12.

use super::near;
use super::stepped::avoiding;
use fullpipe_cc::Setup;
use fullpipe_cc::startup::hybla::HyblaStart;
use fullpipe_units::Span;

/// RTT 25 to 600 ms: rho, slow-start increment, increase per RTT in avoidance.
#[test]
fn increments_at_five_rtts() {
    let rtt0 = Span::from_millis(25);
    for (ms, rho, start, avoidance) in [
        (25, 1.0, 1.0, 1.0),
        (50, 2.0, 3.0, 4.0),
        (100, 4.0, 15.0, 16.0),
        (250, 10.0, 1023.0, 100.0),
        (600, 24.0, 16_777_215.0, 576.0),
    ] {
        let rtt = Span::from_millis(ms);
        let uncapped = HyblaStart::new(rtt0, true);
        near(uncapped.increment(rtt), start, start * 1e-12, ms);
        let capped = HyblaStart::new(rtt0, false);
        near(capped.increment(rtt), start.min(3.0), 1e-12, ms);
        let mut flow = avoiding("hybla", 1e6, rtt, Setup::default());
        flow.round_at_once();
        near(flow.w() - 1e6, avoidance, 1e-6, ms);
        assert_eq!(flow.reported("rho"), Some(rho));
    }
}

/// Section 7: rounds to return to W, rho = RTT/25 ms; 10 -> 3500 segments at 80 ms.
#[test]
fn rounds_to_return_to_w() {
    for (w, ms, want) in [(1000.0, 87, 42), (3500.0, 80, 171), (10_000.0, 100, 313)] {
        let mut flow = avoiding("hybla", w, Span::from_millis(ms), Setup::default());
        flow.lose();
        let before = flow.round;
        while flow.w() < w {
            flow.round_at_once();
        }
        // Whole windows: up to one segment in `w` less per round than the table's `w += rho^2`.
        let got = flow.round - before;
        assert!((want..=want + 1).contains(&got), "{w}: {got}");
    }
    let mut flow = avoiding("hybla", 10.0, Span::from_millis(80), Setup::default());
    while flow.w() < 3500.0 {
        flow.round_at_once();
    }
    near(flow.now.as_secs_f64(), 27.3, 0.2, "10 -> 3500");
}
