//! HyStart and HyStart++.

use super::settled::{at_ms, ms, near};
use crate::rounds::{Rounds, ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::startup::hystart::delay_threshold;
use fullpipe_cc::{Setup, StackSpec};
use fullpipe_units::{Span, Time};

#[test]
fn hystart_thresholds() {
    let cases = [
        (10, 4),
        (20, 4),
        (32, 4),
        (40, 5),
        (80, 10),
        (128, 16),
        (160, 16),
        (200, 16),
    ];
    for (last, growth) in cases {
        let (last, growth) = (Span::from_millis(last), Span::from_millis(growth));
        assert_eq!(delay_threshold(last), growth);
        // HyStart++ acts at the threshold, HyStart above it.
        for (start, rtt, acts) in [
            ("hystart++", last + growth - Span::from_nanos(1), false),
            ("hystart++", last + growth, true),
            ("hystart(detect=delay)", last + growth, false),
            (
                "hystart(detect=delay)",
                last + growth + Span::from_nanos(1),
                true,
            ),
        ] {
            let setup = Setup {
                initial_window: 40.0,
                ..Setup::default()
            };
            let mut flow = Rounds::with(&format!("reno+{start}"), last, setup);
            flow.round();
            flow.rtt = rtt;
            flow.round();
            // Doubling gives 160; conservative slow start and an exit give less.
            assert_eq!(flow.w() < 160.0, acts, "{start} {rtt}");
        }
    }
}

#[test]
fn hystart_acts_from_sixteen_segments_on() {
    for (w, leaves) in [(15.9, false), (16.0, true)] {
        let setup = Setup {
            initial_window: w,
            ..Setup::default()
        };
        let mut stack = StackSpec::parse("reno+hystart").unwrap().controller(setup);
        for rtt in [100.0, 150.0] {
            for i in 0..20 {
                stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
                    ev.rtt = Some(ms(rtt));
                    ev.round_start = i == 0;
                    ev.cwnd_limited = false;
                }));
            }
        }
        assert_eq!(!stack.in_start_up(), leaves, "{w}");
    }
}

/// ACKs every 10 us; the train may be (100 ms + 1 ms of ACK delay)/2 long, all of it when paced,
/// which the endpoint says unless the spelling does.
#[test]
fn hystart_train_lengths() {
    for (spelling, paced, longest) in [
        ("reno+hystart", false, 50_500),
        ("reno+hystart", true, 101_000),
        ("reno+hystart(paced=on)", false, 101_000),
        ("reno+hystart(paced=off)", true, 50_500),
    ] {
        let setup = Setup {
            initial_window: 100.0,
            paced,
            ..Setup::default()
        };
        let mut stack = StackSpec::parse(spelling).unwrap().controller(setup);
        let mut at = 0;
        while stack.in_start_up() && at < 200_000 {
            at += 10;
            stack.on_ack(&changed(ack(Time::ZERO + Span::from_micros(at), 1), |ev| {
                ev.round_start = at == 10;
                ev.cwnd_limited = false;
            }));
        }
        assert_eq!(at - 10, longest + 10, "{spelling}");
    }
}

#[test]
fn hystart_pp_grows_by_a_quarter_for_five_rounds() {
    let setup = Setup {
        initial_window: 20.0,
        ..Setup::default()
    };
    let mut flow = Rounds::with("reno+hystart++", ms(80.0), setup);
    flow.round();
    assert_eq!(flow.w(), 40.0);
    flow.rtt = ms(95.0);
    // RFC 9406 section 4.2 updates the window before it looks at the sample: the eighth ACK, which
    // enters conservative slow start, counts in full.
    flow.round();
    near(flow.w(), 40.0 + 8.0 + 32.0 / 4.0, 1e-9);
    for _ in 0..4 {
        let w = flow.w();
        flow.round();
        near(flow.w(), w + w.floor() / 4.0, 1e-9);
        assert!(flow.stack.in_start_up());
    }
    let w = flow.w();
    flow.round();
    assert!(!flow.stack.in_start_up());
    near(flow.w(), w + 1.0, 0.01);
}
