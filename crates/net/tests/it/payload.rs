//! Flows that carry something, over loopback.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::atomic::AtomicBool;

use blake3::Hasher;
use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_net::endpoint::{EndpointError, Hooks, HostOutcome};
use fullpipe_net::file::{Identity, Part, Place, source};
use fullpipe_net::ground::{GroundError, Options, run_hosts};
use fullpipe_net::live::Live;
use fullpipe_net::payload::{Pattern, Sink, Verifier};
use fullpipe_sim::{FlowSpec, RunSpec};
use fullpipe_units::Span;

const MSS: u32 = 1448;

/// One flow of as many segments as `size` bytes need; some of them are dropped on purpose.
fn spec(size: u64, reverse: bool) -> RunSpec {
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse("reno").unwrap(),
        SenderConfig {
            transfer: Some(size.div_ceil(u64::from(MSS))),
            max_window: 200.0,
            ..SenderConfig::preset(Preset::Y2026, 1500)
        },
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    );
    flow.drops.segments = vec![0, 7, 100];
    flow.reverse = reverse;
    RunSpec {
        duration: Span::from_secs(4),
        flows: vec![flow],
        ..RunSpec::default()
    }
}

fn run<'h>(
    spec: &RunSpec,
    near: Hooks<'h>,
    far: Hooks<'h>,
) -> Result<[HostOutcome; 2], GroundError> {
    let (near, far, _) = run_hosts(
        spec,
        &Options::default(),
        [near, far],
        &AtomicBool::new(false),
    )?;
    Ok([near, far])
}

#[test]
fn memory_to_memory_loses_nothing_and_the_checksums_match() {
    let size = 3_000_001;
    for reverse in [false, true] {
        let mut from = Pattern::new(42, MSS, Some(size));
        let mut to = Verifier::new(from.clone());
        let live = Live::default();
        let mut near = Hooks {
            live: Some(&live),
            ..Hooks::default()
        };
        let mut far = Hooks::default();
        if reverse {
            near.sinks.push((0, &mut to));
            far.sources.push((0, &mut from));
        } else {
            near.sources.push((0, &mut from));
            far.sinks.push((0, &mut to));
        }
        let [near, far] = run(&spec(size, reverse), near, far).unwrap();
        let senders = near.senders.iter().chain(&far.senders);
        let totals: Vec<_> = senders.map(|s| s.totals).collect();
        assert_eq!(to.tally(), from.tally(), "{totals:?}");
        assert_eq!((to.tally().bytes, to.damaged()), (size, 0));
        assert_eq!(to.tally().segments, size.div_ceil(u64::from(MSS)));
        assert!(totals[0].retransmits >= 3, "{totals:?}");
        let seen = live.latest();
        assert_eq!(seen.flows.len(), 1);
        assert_eq!(seen.flows[0].cwnd.is_some(), !reverse);
    }
}

#[test]
fn a_file_arrives_over_a_lossy_flow() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i ^ (i >> 9)) as u8).collect();
    fs::write(&from, &bytes).unwrap();
    let file = fs::File::open(&from).unwrap();
    let identity = Identity::of(&file.metadata().unwrap());
    let part = Part::open(Place::local(&to).unwrap().into(), identity).unwrap();
    let (mut source, reading) = source(file, 0, Hasher::new()).unwrap();
    let (mut sink, writing) = part.receive(MSS).unwrap();
    let complete = AtomicBool::new(false);
    let near = Hooks {
        sources: vec![(0, &mut source)],
        complete: Some(&complete),
        ..Hooks::default()
    };
    let far = Hooks {
        sinks: vec![(0, &mut sink)],
        ..Hooks::default()
    };
    run(&spec(bytes.len() as u64, false), near, far).unwrap();
    assert!(complete.into_inner());
    drop(sink);
    let part = writing.finish().unwrap();
    part.publish(reading.finish().unwrap(), false).unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
}

/// What cannot be written ends the run, with the reason.
#[test]
fn a_sink_that_fails_ends_the_run() {
    struct Full;
    impl Sink for Full {
        fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            Err(ErrorKind::StorageFull.into())
        }
    }
    let mut full = Full;
    let far = Hooks {
        sinks: vec![(0, &mut full)],
        ..Hooks::default()
    };
    let error = run(&spec(1_448_000, false), Hooks::default(), far).unwrap_err();
    match error {
        GroundError::Host(EndpointError::Content { error, .. }) => {
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        other => panic!("{other}"),
    }
}

/// A sink without room costs retransmissions, no data.
#[test]
fn a_sink_without_room_loses_nothing() {
    struct Slow<'a>(u32, &'a mut Verifier);
    impl Sink for Slow<'_> {
        fn ready(&mut self) -> io::Result<bool> {
            self.0 += 1;
            Ok(!self.0.is_multiple_of(50))
        }
        fn take(&mut self, seq: u64, payload: &[u8]) -> io::Result<()> {
            self.1.take(seq, payload)
        }
    }
    let size = 1_000_000;
    let mut from = Pattern::new(1, MSS, Some(size));
    let mut to = Verifier::new(from.clone());
    let mut slow = Slow(0, &mut to);
    let near = Hooks {
        sources: vec![(0, &mut from)],
        ..Hooks::default()
    };
    let far = Hooks {
        sinks: vec![(0, &mut slow)],
        ..Hooks::default()
    };
    let [_, far] = run(&spec(size, false), near, far).unwrap();
    assert!(
        far.receivers[0].not_taken >= 10,
        "{:?}",
        far.receivers[0].totals
    );
    assert_eq!(to.tally(), from.tally());
}
