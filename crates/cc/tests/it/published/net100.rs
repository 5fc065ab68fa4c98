//! Vegas' test as a start-up on the path of Net100 2003.

use super::settled::{ms, near, still_round};
use crate::rounds::{ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::{Setup, StackSpec};
use fullpipe_units::Time;

/// Net100 2003, 77 ms, 120 segments: gamma 1 is exceeded above 77.647059 ms (paper form), 77.641667
/// ms (over base).
#[test]
fn gamma_needs_samples_finer_than_a_millisecond() {
    for (form, limit) in [("rtt", 77.647059), ("base", 77.641667)] {
        for (rtt, leaves) in [(limit - 2e-6, false), (limit + 2e-6, true)] {
            let setup = Setup {
                initial_window: 120.0,
                ..Setup::default()
            };
            let spelling = format!("reno+gamma(then=ca,diff_over={form})");
            let mut stack = StackSpec::parse(&spelling).unwrap().controller(setup);
            still_round(&mut stack, ms(77.0));
            still_round(&mut stack, ms(rtt));
            assert_eq!(!stack.in_start_up(), leaves, "{form} {rtt}");
        }
    }
}

/// Net100 2003: 10 s of a 77 ms path, window 2000, payload 1448 bytes, initial window 1, the
/// backlog made to exceed gamma when the window reaches 120.
struct Net100 {
    mbps: f64,
    /// Time at which the round of the crossing ends, s.
    crossed: f64,
    /// Rounds from there until 2000 segments, the last one in proportion.
    rounds_to_cap: Option<f64>,
}

fn net100(spelling: &str) -> Net100 {
    const CAP: f64 = 2000.0;
    const CROSSING: f64 = 120.0;
    let rtt = 0.077;
    let setup = Setup {
        initial_window: 1.0,
        max_window: CAP,
        ..Setup::default()
    };
    let mut stack = StackSpec::parse(spelling).unwrap().controller(setup);
    let mut sent = 0.0;
    let mut crossed = None;
    let mut rounds_to_cap = None;
    // The round is cut short at 110 segments so that only long samples precede the test at 120.
    let mut shortened = false;
    for round in 0_u32.. {
        let start = f64::from(round) * rtt;
        if start >= 10.0 {
            break;
        }
        let before = stack.window();
        sent += before.floor() * ((10.0 - start) / rtt).min(1.0);
        for i in 0..before as u64 {
            let w = stack.window();
            let cut = w >= 110.0 && !shortened;
            let cross = w >= CROSSING && crossed.is_none();
            let queue = if cut || shortened { 0.7 } else { 0.0 };
            shortened |= cut;
            if cross {
                crossed = Some((round + 1, start + rtt));
            }
            stack.on_ack(&changed(ack(Time::from_secs_f64(start), 1), |ev| {
                ev.rtt = Some(ms(77.0 + queue));
                ev.round_start = i == 0 || cut || cross;
            }));
        }
        if let (Some((at, _)), None) = (crossed, rounds_to_cap)
            && stack.window() >= CAP
        {
            let full = f64::from(round - at);
            // The window is capped: extend the step of the round before.
            rounds_to_cap = Some(full + (CAP - before) / (0.5 * CROSSING));
        }
    }
    Net100 {
        mbps: sent * 1448.0 * 8.0 / 10.0 / 1e6,
        crossed: crossed.unwrap().1,
        rounds_to_cap,
    }
}

#[test]
fn net100_hybrid() {
    let hybrid = net100("highspeed+gamma(threshold=1,then=limited)");
    near(hybrid.mbps, 249.7, 0.05);
    near(hybrid.crossed, 0.54, 0.005);
    near(hybrid.rounds_to_cap.unwrap(), 31.0, 0.5);
    // The law plays no part before the cap; Vegas as the law composes as well and ends at the same
    // window.
    let vegas = net100("vegas+gamma(threshold=1,then=limited)");
    near(vegas.mbps, hybrid.mbps, 1e-9);
    let fixed = net100("highspeed+gamma(threshold=1,then=limited,limit=120)");
    near(fixed.mbps, hybrid.mbps, 1e-9);
    assert!(net100("highspeed-ns2+gamma(threshold=1,then=limited)").mbps > 249.0);
    // The crossing imposed by the parameter instead of the delays.
    near(
        net100("highspeed+gamma(threshold=1e6,crossing=120)").mbps,
        249.7,
        0.05,
    );
}

#[test]
fn net100_without_the_hybrid() {
    // 43.4 is the law with Appendix B's p(w); the default, RFC 3649's exact line, gives 43.8.
    near(
        net100("highspeed(form=table)+gamma(threshold=1,then=ca)").mbps,
        43.4,
        0.05,
    );
    near(
        net100("highspeed+gamma(threshold=1,then=ca)").mbps,
        43.8,
        0.05,
    );
    near(net100("reno+gamma(threshold=1,then=ca)").mbps, 25.8, 0.05);
}

/// Cap of the same path: 2000 segments of 1448 bytes every 77 ms.
#[test]
fn net100_cap() {
    near(2000.0 * 1448.0 * 8.0 / 0.077 / 1e6, 300.9, 0.05);
}
