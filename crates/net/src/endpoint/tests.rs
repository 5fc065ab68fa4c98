//! Real Sender and Receiver over loopback.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_sim::{Fidelity, FlowSpec, Outcome, RunSpec};
use fullpipe_units::Span;

use super::*;

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

fn run_pair(spec: RunSpec) -> Outcome {
    let spec = Arc::new(spec);
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let addresses = [0, 1].map(|i| sockets[i].local_addr().unwrap());
    let clock = Clock::start();
    let stop = AtomicBool::new(false);
    let plan = |side, peer| Plan {
        spec: spec.clone(),
        side,
        session: SessionId(7),
        peer,
    };
    let plans = [
        plan(Side::Near, addresses[1]),
        plan(Side::Far, addresses[0]),
    ];
    let [near, far] = sockets;
    let (near, far) = std::thread::scope(|s| {
        let far = s.spawn(|| run(&plans[1], UdpPort::new(far, clock).unwrap(), &stop).unwrap());
        let near = run(&plans[0], UdpPort::new(near, clock).unwrap(), &stop).unwrap();
        (near, far.join().unwrap())
    });
    merge(&spec, near, far, Vec::new(), Fidelity::default()).unwrap()
}

#[test]
fn a_transfer_delivers_every_segment_once() {
    let o = run_pair(RunSpec {
        duration: Span::from_millis(1500),
        flows: vec![flow("main", 5000)],
        ..RunSpec::default()
    });
    let f = &o.flows[0];
    assert_eq!(f.totals.delivered, 5000);
    assert!(f.completed.is_some(), "{:?}", f.totals);
    assert!(f.totals.acks >= 2500, "{:?}", f.totals);
}
