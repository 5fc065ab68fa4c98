//! Random histories over every kernel module: integers that wrap where the kernel's do and nowhere
//! else, windows that exist.

use fullpipe_cc::registry::Kind;
use fullpipe_cc::{Controller, RestartEvent, Setup};
use fullpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::model::{Flow, Op, names, op};
use crate::rounds::changed;

/// A flow of the module `name` whose handshake took `rtt`.
fn established(name: &str, setup: Setup, rtt: Span) -> Flow {
    established_at(Time::ZERO, name, setup, rtt)
}

fn established_at(now: Time, name: &str, setup: Setup, rtt: Span) -> Flow {
    let mut flow = Flow::new(name, setup);
    flow.now = now;
    flow.stack
        .on_established(&changed(RestartEvent::new(flow.now), |ev| ev.srtt = rtt));
    flow
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_module_survives_any_history(
        ops in prop::collection::vec(op(), 1..200),
        rtt in 0_u64..1_000_000,
        handshake in any::<bool>(),
        hz in prop::sample::select(vec![100_u32, 250, 300, 1000]),
        paced in any::<bool>(),
    ) {
        let setup = Setup { max_window: 30_000.0, hz, paced, ..Setup::default() };
        for name in names(Kind::Module) {
            let mut flow = if handshake {
                established(name, setup, Span::from_micros(rtt))
            } else {
                Flow::new(name, setup)
            };
            for op in &ops {
                flow.apply(op);
                let (w, ssth) = (flow.stack.window(), flow.stack.ssthresh());
                prop_assert!(w >= 1.0 && w.fract() == 0.0, "{name} after {op:?}: {w}");
                prop_assert!(ssth >= 1.0, "{name} after {op:?}: ssthresh {ssth}");
                let mut seen = Vec::new();
                flow.stack.report(&mut |key, value| {
                    assert!(value.is_finite() && !seen.contains(&key), "{name}: {key} {value}");
                    seen.push(key);
                });
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// But for TCP-LP, which multiplies absolute times, and H-TCP, whose first measurement of the
    /// throughput began at tick 0.
    #[test]
    fn a_wrap_of_the_ticks_changes_nothing(
        ops in prop::collection::vec(op(), 1..200),
        before in 0_u64..40,
    ) {
        let setup = Setup { max_window: 30_000.0, hz: 1000, ..Setup::default() };
        let (early, rtt) = (Time::ZERO + Span::from_secs(100), Span::from_millis(50));
        // The module's own ticks begin with a second of them.
        let late = Time::ZERO + Span::from_millis(1) * (1 << 32) - Span::from_secs(1 + before);
        for name in names(Kind::Module).filter(|name| !matches!(*name, "lp-linux" | "htcp-linux")) {
            let mut flow = established_at(early, name, setup, rtt);
            let mut wraps = established_at(late, name, setup, rtt);
            for op in &ops {
                flow.apply(op);
                wraps.apply(op);
                let restart = |flow: &Flow| changed(RestartEvent::new(flow.now), |ev| {
                    (ev.idle, ev.app_limited) = (rtt * 2, true);
                });
                if let Op::Idle { .. } = op {
                    flow.stack.on_restart(&restart(&flow));
                    wraps.stack.on_restart(&restart(&wraps));
                }
                let both = (flow.stack.window(), wraps.stack.window());
                prop_assert_eq!(both.0, both.1, "{} after {:?}", name, op);
            }
        }
    }
}

/// The histories reach growth and reductions.
#[test]
fn every_module_grows_and_gives_way() {
    for name in names(Kind::Module) {
        let mut flow = established(name, Setup::default(), Span::from_millis(50));
        for _ in 0..100 {
            flow.apply(&Op::Ack {
                n: 2,
                gap: Span::from_micros(2_500),
                queue: Span::ZERO,
                round_start: false,
                cwnd_limited: true,
                sample: true,
            });
        }
        let grown = flow.stack.window();
        assert!(grown > 10.0, "{name}: {grown}");
        flow.apply(&Op::Rto { first: true });
        assert!(flow.stack.window() < grown, "{name}");
        assert!(flow.stack.ssthresh() <= grown, "{name}");
    }
}
