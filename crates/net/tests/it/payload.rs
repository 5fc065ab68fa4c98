//! Flows that carry something, over loopback.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use blake3::Hasher;
use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_host::{HostOutcome, merge};
use fullpipe_net::endpoint::{EndpointError, Hooks};
use fullpipe_net::file::{Cancel, Identity, Part, Place, Room, source};
use fullpipe_net::ground::{GroundError, Options, run_hosts};
use fullpipe_net::io::Mode;
use fullpipe_net::payload::{Pattern, Sink, Verifier};
use fullpipe_realtime::live::Live;
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::Span;

const MSS: u32 = 1448;

/// One flow of as many segments as `size` bytes need; some of them are dropped on purpose.
fn spec(size: u64, reverse: bool) -> RunSpec {
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse("reno").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.transfer = Some(size.div_ceil(u64::from(MSS)));
            c.window.max = 200.0;
        }),
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
    let (room, cancel) = (Room::default(), Cancel::default());
    let part = Part::open(Place::local(&to).unwrap().into(), identity, &room, &cancel).unwrap();
    let (mut source, reading) = source(file, 0, Hasher::new(), None).unwrap();
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
    part.publish(reading.finish(&cancel).unwrap(), false)
        .unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
}

/// Takes its time.
struct Slow(Duration);

impl Sink for Slow {
    fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        thread::sleep(self.0);
        Ok(())
    }
}

/// The far host takes 40 ms for every segment, by its own clock: its answers are as late, the
/// result says so, and of which host. How late the near one is this test cannot say, but it does
/// not take the blame.
#[test]
fn a_slow_host_is_named() {
    let mut slow = Slow(Duration::from_millis(40));
    let far = Hooks {
        sinks: vec![(0, &mut slow)],
        ..Hooks::default()
    };
    let mut spec = spec(10 * u64::from(MSS), false);
    spec.flows[0].drops.segments.clear();
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let (near, far, path) = run_hosts(&spec, &options, [Hooks::default(), far], &never).unwrap();
    let alone = near.lateness;
    let outcome = merge(&spec, near, far, path).unwrap();
    assert_eq!(outcome.flows[0].totals.delivered, 10);
    let fidelity = outcome.fidelity.unwrap();
    assert_eq!(fidelity.near, alone);
    // Either has looked at the kernel's stamps of what reached it.
    let stamped = [fidelity.near, fidelity.far].map(|host| host.arrivals.unwrap().count);
    assert!(stamped[0] > 0 && stamped[1] >= 10, "{stamped:?}");
    // The SYN is answered at once.
    let departures = fidelity.far.departures;
    assert!(departures.max >= Span::from_millis(40), "{departures:?}");
    assert!(fidelity.far.added().unwrap() >= Span::from_millis(5));
    assert_eq!(fidelity.path_added, None, "there is no path between them");
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

/// A disk that is slower than the network: what waits for it is bounded, and a thread takes a
/// segment now and then.
struct SlowDisk<'a> {
    to: &'a mut Verifier,
    capacity: u64,
    waiting: Arc<AtomicU64>,
    most: u64,
}

impl Sink for SlowDisk<'_> {
    fn room(&mut self, _: u64) -> io::Result<Option<u64>> {
        let waiting = self.waiting.load(Ordering::Relaxed);
        Ok(Some(self.capacity.saturating_sub(waiting)))
    }

    fn take(&mut self, seq: u64, payload: &[u8]) -> io::Result<()> {
        let bytes = payload.len() as u64;
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most = self.most.max(waiting);
        self.to.take(seq, payload)
    }
}

/// The window holds the sender back: nothing is declined, nothing sent twice, and no more waits
/// than there is room for.
#[test]
fn a_slow_disk_holds_the_sender_and_loses_nothing() {
    for mode in [Mode::Packet, Mode::Bulk] {
        let size = 2_000_000;
        let mut spec = spec(size, false);
        spec.flows[0].drops.segments.clear();
        // A tail loss probe is due two round trips after the last segment, which on loopback is
        // often before the ACK's thread runs.
        spec.flows[0].sender.recovery.tlp = false;
        spec.duration = Span::from_secs(60);
        let mut from = Pattern::new(1, MSS, Some(size));
        let mut to = Verifier::new(from.clone());
        let waiting = Arc::new(AtomicU64::new(0));
        let mut disk = SlowDisk {
            to: &mut to,
            capacity: 60_000,
            waiting: Arc::clone(&waiting),
            most: 0,
        };
        let done = AtomicBool::new(false);
        let options = Options {
            mode,
            until_complete: true,
            ..Options::default()
        };
        let (near, far, _) = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(2));
                    let all = waiting.load(Ordering::Relaxed);
                    waiting.fetch_sub(all.min(20_000), Ordering::Relaxed);
                }
            });
            let near = Hooks {
                sources: vec![(0, &mut from)],
                ..Hooks::default()
            };
            let far = Hooks {
                sinks: vec![(0, &mut disk)],
                ..Hooks::default()
            };
            let ran = run_hosts(&spec, &options, [near, far], &AtomicBool::new(false));
            done.store(true, Ordering::Relaxed);
            ran
        })
        .unwrap();
        assert!(disk.most > 30_000, "the disk was not slow: {}", disk.most);
        assert!(disk.most <= 60_000, "{} bytes waited", disk.most);
        assert_eq!(far.receivers[0].not_taken, 0, "{mode:?}");
        assert_eq!(far.counts.beyond_window, 0, "{mode:?}");
        let sent = near.senders[0].totals;
        assert_eq!((sent.retransmits, sent.loss_events), (0, 0), "{sent:?}");
        assert_eq!((to.tally(), to.damaged()), (from.tally(), 0));
    }
}

/// A sender that does not keep to the window loses what there is no room for, and nothing else
/// happens.
#[test]
fn what_comes_without_room_is_declined() {
    struct Full(u64);
    impl Sink for Full {
        fn room(&mut self, _: u64) -> io::Result<Option<u64>> {
            Ok(Some(0))
        }
        fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            self.0 += 1;
            Ok(())
        }
    }
    let mut spec = spec(1_000_000, false);
    // Without a handshake the sender does not know of the window before its first ACK.
    spec.flows[0].sender.handshake = false;
    spec.flows[0].drops.segments.clear();
    spec.duration = Span::from_millis(500);
    let mut full = Full(0);
    let far = Hooks {
        sinks: vec![(0, &mut full)],
        ..Hooks::default()
    };
    let [near, far] = run(&spec, Hooks::default(), far).unwrap();
    assert_eq!(full.0, 1, "the first is always taken");
    let receiver = &far.receivers[0];
    assert!(receiver.not_taken >= 9, "{receiver:?}");
    assert_eq!(receiver.not_taken, far.counts.beyond_window);
    assert_eq!(
        near.senders[0].offered,
        receiver.arrived + receiver.not_taken
    );
}
