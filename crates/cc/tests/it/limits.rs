//! Arguments at the edge of their range and beyond it, for every registered stack.

use fullpipe_cc::registry::{Kind, entries};
use fullpipe_cc::{Controller, LostSegment, RateSample, Setup, StackSpec};
use fullpipe_units::{Span, Time};

use crate::rounds::{ack, changed, loss, rto};

fn all() -> impl Iterator<Item = StackSpec> {
    let leads = |kind| matches!(kind, Kind::Law | Kind::Module | Kind::Model);
    let leading = entries().filter(move |e| leads(e.kind));
    leading.map(|e| StackSpec::parse(e.name).unwrap())
}

#[test]
fn no_cap_lowers_the_window_below_one_segment() {
    for spec in all() {
        for most in [0.0, 0.5, -1.0] {
            let mut stack = spec.controller(Setup::default());
            stack.cap_window(most);
            assert_eq!(stack.window(), 1.0, "{spec} {most}");
            stack.on_ack(&ack(at(1), 2));
            assert_eq!(stack.window(), 1.0, "{spec} {most}");
        }
    }
}

/// A kernel module does what the kernel does: its window meets the cap with the next ACK.
#[test]
fn no_event_raises_the_window_above_its_cap() {
    for spec in all().filter(|spec| spec.kind() != Kind::Module) {
        let setup = Setup {
            max_window: 8.0,
            ..Setup::default()
        };
        let mut stack = spec.controller(setup);
        assert_eq!(stack.window(), 8.0, "{spec}");
        stack.on_mss_change(6.0);
        assert!(stack.window() <= 8.0, "{spec}: {}", stack.window());
        stack.on_rto(&changed(rto(at(1), 100), |ev| ev.pipe = 50));
        assert!(stack.window() <= 8.0, "{spec}: {}", stack.window());
        let mut stack = spec.controller(Setup::default());
        stack.on_congestion(&loss(at(1), 10));
        stack.cap_window(4.0);
        stack.on_undo(at(2));
        assert!(stack.window() <= 4.0, "{spec}: {}", stack.window());
        let mut stack = spec.controller(Setup::default());
        stack.exit_start_up(at(1));
        stack.cap_window(1.0);
        stack.on_ack(&ack(at(2), 2));
        assert_eq!(stack.window(), 1.0, "{spec}");
    }
}

/// A coarse clock: nothing takes any time.
#[test]
fn samples_of_no_time_leave_finite_windows() {
    for spec in all() {
        let mut stack = spec.controller(Setup::default());
        for now in 1..100 {
            let ev = changed(ack(at(now / 10), 2), |ev| {
                (ev.rtt, ev.srtt, ev.min_rtt) = (Some(Span::ZERO), Span::ZERO, Span::ZERO);
                (ev.delivered, ev.round, ev.round_start) = (2 * now, now, true);
                ev.rate = Some(RateSample::new(2, Span::ZERO));
            });
            stack.on_delivery(&ev);
            stack.on_ack(&ev);
            if now == 50 {
                stack.on_lost(&LostSegment::new(at(5), 7, 10));
                stack.on_congestion(&loss(at(5), 10));
                stack.on_recovery_exit(at(5));
            }
            assert!(stack.window().is_finite(), "{spec} {now}");
            stack.report(&mut |name, value| {
                assert!(!value.is_infinite(), "{spec} {now}: {name} {value}");
            });
        }
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// RFC 3465 section 2.3, and `Controller::on_rto`: one segment per ACK until the exit.
#[test]
fn slow_start_after_a_timeout_is_limited_until_recovery_exits() {
    for law in ["reno", "cubic", "htcp"] {
        let mut stack = StackSpec::parse(law).unwrap().controller(Setup::quic(1200));
        stack.on_rto(&rto(at(1), 10));
        stack.on_ack(&ack(at(2), 2));
        assert_eq!(stack.window(), 2.0, "{law}");
        stack.on_recovery_exit(at(3));
        stack.on_ack(&ack(at(4), 2));
        assert_eq!(stack.window(), 4.0, "{law}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn debug_builds_refuse_in_words() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let words = |f: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("taken");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    for spec in all() {
        for initial_window in [0.0, -1.0, f64::NAN] {
            let setup = Setup {
                initial_window,
                ..Setup::default()
            };
            let said = words(&mut || drop(spec.controller(setup)));
            assert!(said.contains("initial_window"), "{spec}: {said}");
        }
        for ratio in [0.0, f64::NAN, f64::INFINITY] {
            let mut stack = spec.controller(Setup::default());
            let said = words(&mut || stack.on_mss_change(ratio));
            assert!(said.contains("segment size"), "{spec}: {said}");
        }
    }
}
