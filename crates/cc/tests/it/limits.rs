//! Arguments at the edge of their range and beyond it, for every registered stack.

use fullpipe_cc::registry::{Kind, entries};
use fullpipe_cc::{Controller, Setup, StackSpec};
use fullpipe_units::{Span, Time};

use crate::rounds::{ack, rto};

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
