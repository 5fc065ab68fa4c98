//! Real senders and receivers over loopback: counts and order, no timing.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_sim::{Buffer, Drops, FlowSpec, LinkSpec, Outcome, RunSpec};
use fullpipe_units::{Rate, Span};

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

fn over_a_path(mut spec: RunSpec, ms: u64, mbps: u64) -> RunSpec {
    let delay = Span::from_millis(ms);
    let rate = Rate::from_bits_per_sec(mbps * 1_000_000);
    spec.links = vec![
        LinkSpec::new("bottleneck", Some(rate), delay, Buffer::Packets(30)),
        LinkSpec::pure_delay("return", delay),
    ];
    for f in &mut spec.flows {
        (f.forward, f.back) = (vec![0], vec![1]);
    }
    spec
}

/// The buffer overflows: the line says what it dropped, and nothing else is missing.
#[test]
fn over_a_path_every_loss_is_accounted_for() {
    let mut spec = over_a_path(spec(vec![flow("main", 2000)]), 5, 50);
    spec.duration = Span::from_millis(2500);
    let o = run(&spec);
    let (t, link) = (&o.flows[0].totals, &o.links[0]);
    assert!(t.dropped > 0, "{t:?}");
    assert_eq!(t.delivered, 2000, "{t:?} {:?}", o.fidelity);
    assert_eq!(t.dropped, link.buffer_drops);
    assert_eq!(t.sent, 2000 + t.duplicates + t.dropped, "{t:?}");
    assert_eq!(o.fidelity.unwrap().unplanned_drops, 0);
    assert!(o.flows[0].rtt.min().unwrap() >= Span::from_millis(10));
}

/// A host whose own interface is slower than the path and has a short queue: stalls and not losses.
#[test]
fn an_interface_stalls_its_senders() {
    let mut spec = over_a_path(spec(vec![flow("main", 1500)]), 5, 100);
    spec.duration = Span::from_millis(2500);
    let rate = Rate::from_bits_per_sec(20_000_000);
    let nic = LinkSpec::new("nic", Some(rate), Span::ZERO, Buffer::Packets(10));
    spec.links.push(nic);
    let f = &mut spec.flows[0];
    (f.forward, f.local_queue) = (vec![2, 0], true);
    f.sender.local_drop = fullpipe_flow::LocalDrop::Ignore;
    let o = run(&spec);
    let t = o.flows[0].totals;
    assert_eq!((t.delivered, t.dropped), (1500, 0), "{t:?}");
    assert!(t.local_stalls > 100, "{t:?}");
    assert_eq!(o.links[2].name, "nic");
    // The SYN and every segment.
    assert_eq!(o.links[2].delivered, t.sent + 1);
    assert!(o.links[2].queue_max >= 10, "{}", o.links[2].queue_max);
}
