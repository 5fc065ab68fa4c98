//! Random histories over every kernel module: integers that wrap where the kernel's do and nowhere
//! else, windows that exist.

use fullpipe_cc::registry::Kind;
use fullpipe_cc::{Controller, RestartEvent, Setup};
use fullpipe_units::Span;
use proptest::prelude::*;

use crate::model::{Flow, Op, names, op};
use crate::rounds::changed;

/// A flow of the module `name` whose handshake took `rtt`.
fn established(name: &str, setup: Setup, rtt: Span) -> Flow {
    let mut flow = Flow::new(name, setup);
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
