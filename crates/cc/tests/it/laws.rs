//! Laws that every window law obeys, checked after random histories.

use fullpipe_cc::controller::{CongestionKind, Controller, Phase};
use fullpipe_cc::{Count, Setup};
use fullpipe_units::Span;
use proptest::prelude::*;

use crate::model::{Flow, Op, kind, op, spellings};
use crate::rounds::{Rounds, changed, rto};

fn history() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 0..60)
}

fn flows(history: &[Op], iw: f64) -> Vec<(String, Flow)> {
    let setup = Setup {
        initial_window: iw,
        max_window: 1e6,
        slow_start_limit: f64::INFINITY,
        ..Setup::default()
    };
    let run = |spelling: String| {
        let mut flow = Flow::new(&spelling, setup);
        history.iter().for_each(|op| flow.apply(op));
        (spelling, flow)
    };
    spellings().into_iter().map(run).collect()
}

/// An open flow: recovery, if any, is over.
fn opened(history: &[Op], iw: f64) -> Vec<(String, Flow)> {
    let mut all = flows(history, iw);
    for (_, flow) in &mut all {
        flow.apply(&Op::Exit);
        if flow.phase() == Phase::Disorder {
            flow.apply(&Op::Reorder);
        }
    }
    all
}

fn rtt() -> impl Strategy<Value = Span> {
    (1_000_u64..300_000).prop_map(Span::from_micros)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_reduction_never_raises_and_leaves_two_segments(
        history in history(), iw in 1.0..1000.0, kind in kind(), flight in 0.5..1.0
    ) {
        for (spelling, mut flow) in flows(&history, iw) {
            let before = flow.stack.window();
            let ev = flow.congestion_event(kind, flight);
            flow.stack.on_congestion(&ev);
            let (w, ssth) = (flow.stack.window(), flow.stack.ssthresh());
            prop_assert!(w <= before, "{spelling}: {before} -> {w}");
            let floor = if kind == CongestionKind::Ecn { 1.0 } else { 2.0 };
            prop_assert!(ssth >= floor, "{spelling}: ssthresh {ssth}");
            prop_assert!(w >= floor.min(before), "{spelling}: {before} -> {w}");
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_beside_the_pipe_and_at_least_two_to_climb_to(
        history in history(), iw in 1.0..1000.0, flight in 1_u64..1000
    ) {
        for (spelling, mut flow) in flows(&history, iw) {
            let ev = rto(flow.now, flight);
            flow.stack.on_rto(&ev);
            prop_assert_eq!(flow.stack.window(), 1.0, "{}", &spelling);
            let ssth = flow.stack.ssthresh();
            prop_assert!(ssth >= 2.0, "{spelling}: ssthresh {ssth}");
            // Expiring again for the same segment changes nothing.
            flow.stack.on_rto(&changed(ev, |ev| { ev.first = false; }));
            prop_assert_eq!(flow.stack.ssthresh(), ssth, "{}", &spelling);
            // What is taken to be in the network still, and one (RFC 8985 section 6.3).
            flow.stack.on_rto(&changed(ev, |ev| { ev.pipe = 3; }));
            prop_assert_eq!(flow.stack.window(), 4.0, "{}", &spelling);
        }
    }

    #[test]
    fn an_undo_restores_window_and_threshold(
        history in history(), iw in 1.0..1000.0, timeout in any::<bool>(), rtt in rtt()
    ) {
        for (spelling, mut flow) in opened(&history, iw) {
            let (w, ssth) = (flow.stack.window(), flow.stack.ssthresh());
            if timeout {
                let ev = rto(flow.now, w as u64);
                flow.stack.on_rto(&ev);
            } else {
                let ev = flow.congestion_event(CongestionKind::Loss, 1.0);
                flow.stack.on_congestion(&ev);
                let mut recovery = flow.ack_event(1, rtt, true, true);
                recovery.phase = Phase::Recovery;
                flow.stack.on_ack(&recovery);
            }
            flow.stack.on_undo(flow.now);
            prop_assert!(flow.stack.window() >= w, "{spelling}: {w} -> {}", flow.stack.window());
            prop_assert!(flow.stack.ssthresh() >= ssth, "{spelling}: ssthresh below {ssth}");
        }
    }

    #[test]
    fn a_reduction_that_a_mark_justifies_is_not_undone(history in history(), iw in 10.0..1000.0) {
        for (spelling, mut flow) in opened(&history, iw) {
            let ev = flow.congestion_event(CongestionKind::Ecn, 1.0);
            flow.stack.on_congestion(&ev);
            let w = flow.stack.window();
            flow.stack.on_undo(flow.now);
            prop_assert_eq!(flow.stack.window(), w, "{}", spelling);
        }
    }

    #[test]
    fn recovery_never_grows(
        history in history(), iw in 1.0..1000.0, kind in kind(), n in 0_u64..300, rtt in rtt()
    ) {
        for (spelling, mut flow) in flows(&history, iw) {
            let ev = flow.congestion_event(kind, 1.0);
            flow.stack.on_congestion(&ev);
            for (i, phase) in [Phase::Recovery, Phase::Cwr, Phase::Recovery].into_iter().enumerate() {
                let before = flow.stack.window();
                let mut ev = flow.ack_event(n, rtt, i == 1, true);
                ev.phase = phase;
                flow.stack.on_delivery(&ev);
                flow.stack.on_ack(&ev);
                let w = flow.stack.window();
                prop_assert!(w <= before, "{spelling}: {before} -> {w}");
            }
        }
    }

    #[test]
    fn a_flow_that_does_not_fill_its_window_never_grows(
        history in history(), iw in 1.0..1000.0, n in 0_u64..300, rtt in rtt(),
        round_start in any::<bool>()
    ) {
        for (spelling, mut flow) in flows(&history, iw) {
            for _ in 0..3 {
                let before = flow.stack.window();
                let ev = flow.ack_event(n, rtt, round_start, false);
                flow.stack.on_delivery(&ev);
                flow.stack.on_ack(&ev);
                let w = flow.stack.window();
                prop_assert!(w <= before, "{spelling}: {before} -> {w}");
            }
        }
    }

    #[test]
    fn more_acknowledged_segments_never_give_a_smaller_window(
        history in history(), iw in 1.0..1000.0, fewer in 0_u64..200, more in 0_u64..200,
        rtt in rtt(), round_start in any::<bool>()
    ) {
        for (spelling, mut flow) in flows(&history, iw) {
            if NOT_MONOTONE.iter().any(|law| spelling.starts_with(law)) {
                continue;
            }
            let mut other = flow.clone();
            let ev = flow.ack_event(fewer, rtt, round_start, true);
            flow.stack.on_delivery(&ev);
            flow.stack.on_ack(&ev);
            let ev = other.ack_event(fewer + more, rtt, round_start, true);
            other.stack.on_delivery(&ev);
            other.stack.on_ack(&ev);
            let (a, b) = (flow.stack.window(), other.stack.window());
            prop_assert!(b >= a * (1.0 - 1e-12), "{spelling}: {fewer} gives {a}, {more} more {b}");
        }
    }

    #[test]
    fn counting_acks_never_grows_faster_than_counting_segments(
        n in 1_u64..100, iw in 2.0..1000.0, rounds in 1_u64..10
    ) {
        for law in ["reno", "scalable", "highspeed", "illinois", "westwood", "veno", "lp"] {
            let window = |count| {
                let setup = Setup { initial_window: iw, count, ..Setup::default() };
                let mut flow = Flow::new(law, setup);
                flow.stack.exit_start_up(flow.now);
                for i in 0..rounds {
                    let ev = flow.ack_event(n, Span::from_millis(50), i == 0, true);
                    flow.stack.on_delivery(&ev);
                    flow.stack.on_ack(&ev);
                }
                flow.stack.window()
            };
            prop_assert!(window(Count::Acks) <= window(Count::Segments), "{law}");
        }
    }
}

/// What a receiver that acknowledges every second segment leaves of the growth, where ACKs are
/// counted: all of it under a law that is defined per round trip (FAST; Vegas, which adds a segment
/// at its end, but for a first round that is Reno's), that divides by the segments per ACK (BIC
/// above `low_window`, Linux `tcp_bic.c`) or counts what is acknowledged (YeAH in the fast mode,
/// Linux `tcp_yeah.c`; LEDBAT, RFC 6817). All of CUBIC's cubic (RFC 9438 section 4.2), too, which
/// time drives: fewer ACKs follow it a round trip later. Half elsewhere, as in CUBIC's
/// Reno-friendly region (section 4.3) and under H-TCP and Illinois, whose increase is per window of
/// ACKs, however it comes from time or delay (draft-leith-tcp-htcp; Linux `tcp_illinois.c`).
#[test]
fn what_delayed_acks_leave_of_the_growth() {
    let grown = |law: &str, w: f64, rounds: u32, count| {
        let setup = Setup {
            initial_window: w,
            count,
            ..Setup::default()
        };
        let mut flow = Rounds::with(law, Span::from_millis(100), setup);
        flow.per_ack = 2;
        flow.stack.exit_start_up(flow.now);
        for _ in 0..rounds {
            flow.round();
        }
        flow.w() - w
    };
    for (law, w, rounds, left) in [
        ("bic", 500.0, 4, 1.0),
        ("bic(rule=linux)", 500.0, 4, 1.0),
        ("bic-paper", 500.0, 4, 1.0),
        ("fast", 500.0, 4, 1.0),
        ("yeah", 500.0, 4, 1.0),
        ("ledbat", 500.0, 4, 1.0),
        ("vegas", 500.0, 40, 1.0),
        ("cubic(tcp_friendliness=off)", 500.0, 80, 1.0),
        ("cubic", 500.0, 4, 0.5),
        ("bic", 8.0, 4, 0.5),
        ("bic(rule=linux)", 14.0, 1, 0.5),
        ("fast(mi=on)", 500.0, 1, 0.5),
        ("reno", 500.0, 4, 0.5),
        ("highspeed", 500.0, 4, 0.5),
        ("scalable", 500.0, 4, 0.5),
        ("hybla", 500.0, 4, 0.5),
        ("veno", 500.0, 4, 0.5),
        ("illinois", 500.0, 4, 0.5),
        ("westwood", 500.0, 4, 0.5),
        ("htcp", 500.0, 4, 0.5),
        ("htcp", 500.0, 20, 0.5),
        ("lp", 500.0, 4, 0.5),
        ("hstcp-lp", 500.0, 4, 0.5),
    ] {
        let of = |count| grown(law, w, rounds, count);
        let ratio = of(Count::Acks) / of(Count::Segments);
        assert!((ratio - left).abs() < 0.05, "{law} at {w}: {ratio}");
    }
}

/// Kept on loss, timeout and mark by a flow at 1000 segments that has measured nothing, in start-up
/// as past it.
#[test]
fn response_matrix() {
    let cases = [
        ("reno", 500.0, 500.0, 500.0),
        ("aimd", 500.0, 500.0, 500.0),
        ("multcp", 875.0, 875.0, 875.0),
        ("scalable", 875.0, 875.0, 875.0),
        ("hybla", 500.0, 500.0, 500.0),
        ("vegas", 500.0, 500.0, 500.0),
        ("fast", 500.0, 500.0, 500.0),
        ("lp", 500.0, 500.0, 500.0),
        ("hstcp-lp", 670.121731, 670.121731, 670.121731),
        ("westwood", 500.0, 500.0, 500.0),
        ("illinois", 500.0, 500.0, 500.0),
        ("yeah", 875.0, 875.0, 875.0),
        ("veno", 800.0, 800.0, 500.0),
        ("ledbat", 500.0, 2.0, 500.0),
    ];
    for (law, loss, timeout, mark) in cases {
        let setup = Setup {
            initial_window: 1000.0,
            ..Setup::default()
        };
        // Start-up or not makes no difference to any of these laws.
        for avoidance in [false, true] {
            let flow = || {
                let mut flow = Flow::new(law, setup);
                if avoidance {
                    flow.stack.exit_start_up(flow.now);
                }
                flow
            };
            let near = |value: f64, expected: f64| {
                assert!(
                    (value - expected).abs() < 1e-6,
                    "{law}: {value}, not {expected}"
                );
            };
            for (kind, kept) in [(CongestionKind::Loss, loss), (CongestionKind::Ecn, mark)] {
                let mut flow = flow();
                let ev = flow.congestion_event(kind, 1.0);
                flow.stack.on_congestion(&ev);
                near(flow.stack.window(), kept);
                near(flow.stack.ssthresh(), kept);
                // A lost retransmission is a second indication.
                let again = changed(flow.congestion_event(kind, 1.0), |ev| {
                    ev.first_in_window = false;
                });
                flow.stack.on_congestion(&again);
                assert!(flow.stack.window() < kept, "{law}");
            }
            let mut flow = flow();
            flow.stack.on_rto(&rto(flow.now, 1000));
            near(flow.stack.ssthresh(), timeout);
        }
    }
}

/// Segments added by a window of 1000 acknowledged at once, by the registered defaults: `a(1000)`,
/// since the window does not grow between the segments of one ACK.
#[test]
fn default_increases() {
    for (law, added) in [
        ("reno", 1.0),
        ("aimd", 1.0),
        ("multcp", 4.0),
        ("scalable", 10.0),
        ("highspeed", 7.859922),
        ("hstcp-lp", 7.859922),
        ("illinois", 10.0),
        ("westwood", 1.0),
        ("lp", 1.0),
        ("veno", 1.0),
        ("yeah", 10.0),
    ] {
        let setup = Setup {
            initial_window: 1000.0,
            ..Setup::default()
        };
        let mut flow = Flow::new(law, setup);
        flow.stack.exit_start_up(flow.now);
        let ev = flow.ack_event(1000, Span::from_millis(50), false, true);
        flow.stack.on_delivery(&ev);
        flow.stack.on_ack(&ev);
        let grown = flow.stack.window() - 1000.0;
        assert!((grown - added).abs() < 2e-4, "{law}: {grown}");
    }
}

/// Bytes in the window stay when the segments change, and the law goes on from there.
#[test]
fn a_new_segment_size_keeps_the_bytes() {
    for spelling in spellings() {
        let setup = Setup {
            initial_window: 100.0,
            ..Setup::default()
        };
        let mut flow = Flow::new(&spelling, setup);
        flow.stack.exit_start_up(flow.now);
        let before = flow.stack.window();
        flow.stack.on_mss_change(1460.0 / 8948.0);
        let after = flow.stack.window();
        assert!(
            (after * 8948.0 - before * 1460.0).abs() < 1e-6,
            "{spelling}: {after}"
        );
        assert!(flow.stack.ssthresh() <= after * (1.0 + 1e-12), "{spelling}");
    }
}

/// Laws whose window shrinks with every acknowledged segment while the queue is too long; and
/// CUBIC, where a large ACK can cross into the Reno-friendly region, which takes `W_est` instead of
/// the cubic's larger step (RFC 9438 section 4.3).
const NOT_MONOTONE: &[&str] = &["fast", "ledbat", "cubic"];
