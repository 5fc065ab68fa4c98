//! What all tests of a server together may grow to in memory. A test is admitted with what it
//! begins with, borrows what it uses beyond that while it runs, and gives all back when its session
//! is over. Three quarters of the part of every test that may still come are not lent: as many
//! tests as the server takes find room, whatever the others use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_run::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Span};

use super::{Limits, MOST_ROWS, at_once};
use crate::content::Content;
use crate::endpoint::leases::{self, FIRST_HOLES, FIRST_ROWS, OF_HOLE, OF_SEGMENT};
use crate::file::{sink, source, walk};
use crate::lender::Lender;

/// Memory that tests share. Clones are the same.
#[derive(Clone, Debug)]
pub struct Memory {
    most: u64,
    /// Tests that there may be.
    tests: u64,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    bytes: u64,
    tests: u64,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub struct Share {
    memory: Memory,
    bytes: AtomicU64,
}

impl Memory {
    /// Memory of all tests together, bounded by `limits`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            most: limits.max_memory.0,
            tests: u64::from(limits.max_tests).max(1),
            taken: Arc::default(),
        }
    }

    /// Takes what a test begins with that the limits have granted; `far_sends` says on which flows
    /// the server sends, by their direction.
    ///
    /// # Errors
    /// A sentence that names the limit.
    pub fn take(
        &self,
        spec: &RunSpec,
        content: &Content,
        far_sends: impl Fn(bool) -> bool,
    ) -> Result<Arc<Share>, String> {
        let (send, receive) = self.socket_buffers(spec);
        // The kernel doubles what it is asked for.
        let sockets = 2 * (send + receive) as u64;
        let file = match content {
            Content::Put { .. } | Content::Get { .. } => self.waiting(),
            // Its entries are borrowed one by one as the walk finds them.
            Content::Fetch { .. } => self.waiting(),
            Content::Store { items, .. } => {
                let names = items.iter().map(|item| walk::OF_ENTRY + item.name.len());
                self.waiting() + names.sum::<usize>() as u64
            }
            Content::Nothing | Content::Pattern { .. } => 0,
        };
        let run = of_run(spec, far_sends);
        let bytes = run.saturating_add(file).saturating_add(sockets);
        // Nothing panics while it is held.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.most.saturating_sub(taken.bytes);
        // Whole megabytes: it is an estimate.
        let need = Bytes(bytes.div_ceil(MEGABYTE).saturating_mul(MEGABYTE));
        let (most, left) = (Bytes(self.most), Bytes(free / MEGABYTE * MEGABYTE));
        if bytes > self.most {
            return Err(format!(
                "this test begins with {need} of memory, more than the server's limit of {most} for all tests (--max-memory); ask for fewer flows or longer intervals"
            ));
        }
        if bytes > free {
            return Err(format!(
                "this test begins with {need} of memory, and {left} are free of the server's limit of {most} for all tests (--max-memory); try again when others have ended"
            ));
        }
        taken.bytes += bytes;
        taken.tests += 1;
        drop(taken);
        Ok(Arc::new(Share {
            memory: self.clone(),
            bytes: AtomicU64::new(bytes),
        }))
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> Bytes {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        Bytes(taken.bytes)
    }

    /// Bytes of files that may wait for the disk, or be read ahead, before any are borrowed.
    pub fn waiting(&self) -> u64 {
        (self.part() / 8).clamp(source::LEAST_AHEAD, sink::WAITING as u64)
    }

    /// What to ask the kernel for, for what waits to leave and for what waits to be read: of the
    /// memory a fair part, and no more than the windows of the run can fill.
    pub fn socket_buffers(&self, spec: &RunSpec) -> (usize, usize) {
        let of_flow = |f: &FlowSpec| {
            let received = f.receiver.window.max.unwrap_or(u64::MAX);
            // The cast saturates.
            received.min(f.sender.window.max as u64)
        };
        let flows = spec.flows.iter().map(of_flow).fold(0, u64::saturating_add);
        let segments = match spec.arrivals.is_empty() && spec.cross.is_empty() {
            true => flows,
            false => u64::MAX,
        };
        let filled = segments.saturating_mul(OF_PACKET);
        let fair = |fraction: u64| (self.part() / fraction).min(MOST_OF_SOCKET).min(filled);
        let at_least = |bytes: u64| bytes.max(LEAST_OF_SOCKET) as usize;
        (at_least(fair(32)), at_least(fair(8)))
    }

    /// Of each test, if there are as many as there may be.
    fn part(&self) -> u64 {
        self.most / self.tests
    }

    /// What is kept for a test that may still come: it begins with 7/16 of its part for its socket
    /// and a file, and with 1.5 MB.
    fn kept(&self) -> u64 {
        self.part() / 4 * 3
    }
}

impl Lender for Share {
    fn lend(&self, bytes: u64) -> bool {
        let memory = &self.memory;
        let mut taken = memory.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let others = memory.tests.saturating_sub(taken.tests);
        let kept = others * memory.kept();
        let free = memory.most.saturating_sub(taken.bytes).saturating_sub(kept);
        if bytes > free {
            return false;
        }
        taken.bytes += bytes;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let taken = &self.memory.taken;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = taken.bytes.saturating_sub(*self.bytes.get_mut());
        taken.tests = taken.tests.saturating_sub(1);
    }
}

impl Limits {
    /// Segments in flight, of all flows together, of a test that does not ask for so many: a
    /// quarter of its part of the memory.
    pub(super) fn quiet_window(&self) -> u64 {
        let part = self.max_memory.0 / u64::from(self.max_tests.max(1));
        part / 4 / OF_SEGMENT
    }
}

/// What the far side of a run begins with; `sends` says on which flows it sends, by their
/// direction.
fn of_run(spec: &RunSpec, sends: impl Fn(bool) -> bool) -> u64 {
    let sent = spec.flows.iter().filter(|f| sends(f.reverse)).count() as u64;
    let of_flow = |f: &FlowSpec| match sends(f.reverse) {
        true => {
            let window = leases::first_window(f, sent).saturating_mul(OF_SEGMENT);
            window.saturating_add(FIRST_ROWS * leases::OF_ROW)
        }
        false => FIRST_HOLES * OF_HOLE,
    };
    let lasting = spec.flows.iter().map(of_flow);
    let short = spec.arrivals.iter().map(|a| {
        let sessions = a.most_sessions(spec.duration);
        let transfers = a.most_transfers(spec.duration);
        let (count, buffers, rows) = match sends(a.template.reverse) {
            // A window that is larger than any number is as good as refused. What follows in a
            // session takes the place of the transfer before, and leaves a row.
            true => {
                let window = a.template.sender.window.max as u64;
                let rows = transfers.saturating_mul(OF_ROW_OF_SHORT);
                let waiting = match a.session.goes_on() {
                    true => sessions.saturating_mul(OF_SESSION),
                    false => 0,
                };
                let kept = rows.saturating_add(waiting);
                (sessions, window.saturating_mul(OF_SEGMENT), kept)
            }
            // A receiver stays until its number is needed again.
            false => (transfers, OF_HOLES_OF_SHORT, 0),
        };
        at_once(count)
            .saturating_mul(buffers.saturating_add(OF_SHORT_FLOW))
            .saturating_add(rows)
    });
    let buffers = lasting.chain(short).fold(0, u64::saturating_add);
    let one_way = spec.cross_numbers().one_way;
    let counted = (spec.flows.len() + spec.arrivals.len() + one_way) as u64;
    let samples = spec.duration.as_nanos() / spec.interval.as_nanos().max(1) + 1;
    let samples = samples.saturating_mul(2 * counted * OF_SAMPLE);
    let rows = match spec.trace {
        Trace::Off => 0,
        Trace::Full => MOST_ROWS,
        Trace::Every(step) => spec.duration.as_nanos() / step.max(Span::from_nanos(1)).as_nanos(),
    };
    let rows = (rows.saturating_mul(sent)).min(MOST_ROWS) * OF_ROW;
    [buffers, samples, rows]
        .into_iter()
        .fold(OF_TEST, u64::saturating_add)
}

const MEGABYTE: u64 = 1_000_000;
/// Packets that are being sent or have just been received, stacks of threads, the session itself,
/// bytes.
const OF_TEST: u64 = 1 << 20;
/// A full packet as the kernel counts it, half: the kernel doubles what it is asked for.
const OF_PACKET: u64 = 1152;
/// What is asked of the kernel for a socket: at least what it gives unasked (Linux 6.1:
/// `net.core.rmem_default`, doubled), and at most.
const LEAST_OF_SOCKET: u64 = 104 << 10;
const MOST_OF_SOCKET: u64 = 16 << 20;
/// Holes that a receiver of a short flow remembers.
const OF_HOLES_OF_SHORT: u64 = 16 << 10;
/// A short flow besides: its place among the others, its timers.
const OF_SHORT_FLOW: u64 = 2 << 10;
/// A row of a short flow in a list that grows by doubling, and in the result.
const OF_ROW_OF_SHORT: u64 = 128;
/// A session between two transfers: its generator, and its place in a B-tree that is half empty.
const OF_SESSION: u64 = 128;
/// A number of a series, and once more in the result as it is sent.
const OF_SAMPLE: u64 = 16;
/// A row of a sender's time series, and in the result.
const OF_ROW: u64 = 320;

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::Episode;
    use fullpipe_flow::{Change, Preset, Receiver, ReceiverConfig, SenderConfig, TraceRow};
    use fullpipe_run::{ArrivalSpec, Arrivals, Round, Session, SizeLaw, TimedChange, Transfer};
    use fullpipe_units::Time;

    use super::*;
    use crate::file::Identity;

    /// A flow of the window asked for, in segments, as `limits` grant it; the server sends.
    fn granted(limits: &Limits, window: f64) -> RunSpec {
        let sender = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.window.max = window);
        let receiver = ReceiverConfig::preset(Preset::Y2026);
        let stack = StackSpec::parse("reno").unwrap();
        let mut flow = FlowSpec::new("main", stack, sender, receiver, vec![], vec![]);
        flow.reverse = true;
        let spec = RunSpec {
            duration: Span::from_secs(10),
            flows: vec![flow],
            ..RunSpec::default()
        };
        limits.grant(spec, &Content::Nothing).unwrap().0
    }

    fn put() -> Content {
        Content::Put {
            name: "x".to_owned(),
            source: Identity {
                size: 1,
                changed: 0,
            },
            mode: 0o644,
            overwrite: false,
        }
    }

    fn of(tests: u32) -> Limits {
        Limits {
            max_tests: tests,
            ..Limits::default()
        }
    }

    #[test]
    fn as_many_tests_as_there_may_be_fit_at_once() {
        for tests in [1, 16, 64, 200] {
            let limits = of(tests);
            let name = "x".to_owned();
            let fetch = Content::Fetch {
                names: vec![name.clone()],
            };
            for content in [Content::Nothing, put(), Content::Get { name }, fetch] {
                let memory = Memory::new(&limits);
                let spec = granted(&limits, f64::INFINITY);
                let taken: Vec<_> = (0..tests)
                    .map(|_| {
                        let share = memory.take(&spec, &content, |reverse| reverse).unwrap();
                        // Whoever comes first takes what there is.
                        while share.lend(1 << 20) {}
                        share
                    })
                    .collect();
                assert!(memory.taken() <= limits.max_memory);
                drop(taken);
                assert_eq!(memory.taken(), Bytes(0));
            }
        }
    }

    #[test]
    fn what_fits_is_admitted_and_not_one_more() {
        // So few segments that the memory has no part in what its socket gets.
        let spec = granted(&of(1000), 10.0);
        let memory = Memory::new(&of(1000));
        let first = memory.take(&spec, &Content::Nothing, |reverse| reverse);
        let need = memory.taken().0;
        drop(first);
        // docs/serve.md says what of.
        assert!(need < 2_000_000, "{need}");
        for fit in [1, 2, 25, 200] {
            for (spare, much) in [(0, fit), (need - 1, fit), (need, fit + 1)] {
                let memory = Memory::new(&Limits {
                    max_memory: Bytes(fit * need + spare),
                    ..of(1000)
                });
                let take = || memory.take(&spec, &Content::Nothing, |reverse| reverse);
                let taken: Vec<_> = (0..much).map(|_| take().unwrap()).collect();
                let why = take().unwrap_err();
                assert!(why.contains("--max-memory"), "{why}");
                assert!(why.contains("try again"), "{why}");
                drop(taken);
            }
        }
        let none = Memory::new(&Limits {
            max_memory: Bytes(need - 1),
            ..of(1)
        });
        let why = none.take(&spec, &Content::Nothing, |reverse| reverse);
        assert!(why.unwrap_err().contains("more than the server's limit"));
    }

    #[test]
    fn what_is_kept_for_others_is_not_lent() {
        let limits = Limits::default();
        let memory = Memory::new(&limits);
        let spec = granted(&limits, 1e9);
        assert_eq!(spec.flows[0].sender.window.max, limits.max_window as f64);
        let take = || memory.take(&spec, &Content::Nothing, |reverse| reverse);
        let (first, second) = (take().unwrap(), take().unwrap());
        let whole = limits.max_window * OF_SEGMENT;
        assert!(first.lend(whole / 2), "{:?}", memory.taken());
        assert!(!second.lend(whole / 2), "{:?}", memory.taken());
        let kept = u64::from(limits.max_tests - 2) * (limits.max_memory.0 / 64 * 3);
        assert!(second.lend(limits.max_memory.0 - kept - memory.taken().0));
        assert!(!second.lend(1));
        drop(first);
        assert!(second.lend(whole / 4));
    }

    /// What is kept of each thing, in memory and, where it is part of the result, in that.
    #[test]
    fn no_estimate_is_smaller_than_what_is_kept() {
        let bytes = |n: usize| n as u64;
        assert!(OF_ROW >= 2 * bytes(size_of::<TraceRow>()));
        assert!(OF_SAMPLE >= 2 * bytes(size_of::<u64>()));
        let flow = size_of::<Receiver>() + size_of::<Transfer>();
        assert!(OF_SHORT_FLOW >= bytes(flow), "{flow}");
        assert!(OF_ROW_OF_SHORT >= 2 * size_of::<Transfer>() as u64);
        let row = size_of::<Round>() + size_of::<Episode>();
        assert!(leases::OF_ROW >= bytes(row), "{row}");
        const { assert!(2 * OF_PACKET >= 1500) };
    }

    #[test]
    fn windows_that_come_later_rows_and_short_flows_are_accounted_for() {
        let limits = Limits::default();
        let plain = granted(&limits, 10.0);
        let of = |spec: &RunSpec| of_run(spec, |reverse| reverse);
        let least = OF_TEST + 10 * OF_SEGMENT + FIRST_ROWS * leases::OF_ROW;
        assert!((least..least + 100_000).contains(&of(&plain)));
        let mut later = plain.clone();
        later.flows[0].changes.push(TimedChange {
            at: Time::ZERO + Span::from_secs(5),
            change: Change {
                window: Some(1e9),
                ..Change::default()
            },
        });
        let (later, grant) = limits.grant(later, &Content::Nothing).unwrap();
        assert!(grant.notes[0].contains("--max-window"), "{grant:?}");
        let more = limits.max_window - 10;
        assert_eq!(of(&later) - of(&plain), more * OF_SEGMENT);
        let traced = RunSpec {
            trace: Trace::Full,
            ..plain.clone()
        };
        assert_eq!(of(&traced) - of(&plain), MOST_ROWS * OF_ROW);
        let every = RunSpec {
            trace: Trace::Every(Span::from_millis(10)),
            ..plain.clone()
        };
        assert_eq!(of(&every) - of(&plain), 1000 * OF_ROW);
        let mice = RunSpec {
            arrivals: vec![ArrivalSpec {
                template: FlowSpec {
                    reverse: false,
                    ..plain.flows[0].clone()
                },
                arrivals: Arrivals::Every(Span::from_millis(100)),
                sizes: SizeLaw::Uniform(1, 30),
                session: Session::default(),
                seeded_by: None,
            }],
            ..plain.clone()
        };
        let short = of(&mice) - of(&plain);
        // Of a hundred that are expected chance may make (10 + 4)^2.
        assert!(
            short >= 196 * (OF_HOLES_OF_SHORT + OF_SHORT_FLOW),
            "{short}"
        );
        // What is received stays: five times as many. What is sent has one place for each session,
        // and a row for each transfer.
        let mut sessions = mice.clone();
        sessions.arrivals[0].session.exchanges = 5.0;
        let received = of(&sessions) - of(&mice);
        assert_eq!(received, 4 * 196 * (OF_HOLES_OF_SHORT + OF_SHORT_FLOW));
        let sent = of_run(&sessions, |_| true) - of_run(&mice, |_| true);
        assert_eq!(sent, 4 * 196 * OF_ROW_OF_SHORT + 196 * OF_SESSION);
        // In ten seconds of thoughts of a second no session has more than eleven.
        sessions.arrivals[0].session = Session {
            exchanges: 1e6,
            think: Span::from_secs(1),
        };
        let sent = of_run(&sessions, |_| true) - of_run(&mice, |_| true);
        assert_eq!(sent, 10 * 196 * OF_ROW_OF_SHORT + 196 * OF_SESSION);
        // Of many that come one after another the rows stay.
        let second = |arrivals| ArrivalSpec {
            arrivals: Arrivals::Spread {
                count: arrivals,
                within: Span::from_secs(1),
            },
            ..mice.arrivals[0].clone()
        };
        let many = |n| RunSpec {
            arrivals: vec![second(n)],
            ..plain.clone()
        };
        let more = of_run(&many(1_000_000), |_| true) - of_run(&many(40_000), |_| true);
        assert_eq!(more, (1004 * 1004 - 204 * 204) * OF_ROW_OF_SHORT);
    }

    #[test]
    fn sockets_get_a_fair_part_and_no_more_than_windows_fill() {
        let asked = |limits: &Limits, window: f64| {
            Memory::new(limits).socket_buffers(&granted(limits, window))
        };
        let (send, receive) = asked(&Limits::default(), f64::INFINITY);
        assert_eq!((send, receive), (1_953_125, 7_812_500));
        let (send, receive) = asked(&of(200), f64::INFINITY);
        assert_eq!((send, receive), (156_250, 625_000));
        let few = asked(&Limits::default(), 100.0);
        assert_eq!(few, (100 * OF_PACKET as usize, 100 * OF_PACKET as usize));
        let least = LEAST_OF_SOCKET as usize;
        assert_eq!(asked(&of(100_000), f64::INFINITY), (least, least));
    }
}
