//! Real senders and receivers over loopback: counts and order, no timing.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_sim::{Drops, FlowSpec, Outcome, RunSpec};
use fullpipe_units::Span;

use crate::ground::{Options, run_local};

fn flow(name: &str, segments: u64) -> FlowSpec {
    FlowSpec::new(
        name,
        StackSpec::parse("reno").unwrap(),
        SenderConfig {
            transfer: Some(segments),
            max_window: 200.0,
            ..SenderConfig::preset(Preset::Y2026, 1500)
        },
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    )
}

fn spec(flows: Vec<FlowSpec>) -> RunSpec {
    RunSpec {
        duration: Span::from_millis(1500),
        flows,
        ..RunSpec::default()
    }
}

fn run(spec: &RunSpec) -> Outcome {
    run_local(spec, &Options::default(), &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_transfer_delivers_every_segment_once() {
    let o = run(&spec(vec![flow("main", 5000)]));
    let f = &o.flows[0];
    assert_eq!(f.totals.delivered, 5000);
    assert!(f.completed.is_some(), "{:?}", f.totals);
    assert!(f.totals.acks >= 2500, "{:?}", f.totals);
}

#[test]
fn an_exact_drop_is_one_loss_event_and_one_retransmission() {
    let mut main = flow("main", 3000);
    main.drops = Drops {
        segments: vec![1000],
        ..Drops::default()
    };
    let o = run(&spec(vec![main]));
    let t = o.flows[0].totals;
    assert_eq!((t.sent, t.delivered, t.dropped), (3001, 3000, 1));
    assert_eq!((t.retransmits, t.loss_events, t.duplicates), (1, 1, 0));
}
