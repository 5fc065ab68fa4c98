//! What all tests of a server together may grow to in memory. A test is accounted for when it is
//! admitted, with all that its buffers may hold, and until its session is over; nothing is
//! measured.

use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_run::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Span};

use super::{Limits, MOST_ROWS, MOST_SHORT, arrivals};
use crate::content::Content;
use crate::file::{sink, source};

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
    bytes: u64,
}

impl Memory {
    /// As much as `limits` say.
    pub fn new(limits: &Limits) -> Self {
        Self {
            most: limits.max_memory.0,
            tests: limits.max_tests.into(),
            taken: Arc::default(),
        }
    }

    /// Takes a share for a test that the limits have granted; `far_sends` says on which flows the
    /// server sends, by their direction. For a file that is put it says how many bytes may wait for
    /// the disk: half of what is left when every other test that may come has room for the least.
    ///
    /// # Errors
    /// A sentence that names the limit.
    pub fn take(
        &self,
        spec: &RunSpec,
        content: &Content,
        far_sends: impl Fn(bool) -> bool,
    ) -> Result<(Share, Option<u64>), String> {
        let run = of_run(spec, far_sends);
        // Nothing panics while it is held.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.most.saturating_sub(taken.bytes);
        let (file, buffer) = match content {
            Content::Put { .. } | Content::Store { .. } => {
                let (least, most) = (sink::WAITING as u64, sink::MOST_WAITING as u64);
                let others = self.tests.saturating_sub(taken.tests + 1);
                let kept = others.saturating_mul(OF_TEST + OF_HOLES + least);
                let buffer = free.saturating_sub(run).saturating_sub(kept) / 2;
                let buffer = buffer.clamp(least, most);
                (buffer, Some(buffer))
            }
            Content::Get { .. } | Content::Fetch { .. } => (source::AHEAD, None),
            _ => (0, None),
        };
        let bytes = run.saturating_add(file);
        // Whole megabytes: it is an estimate.
        let need = Bytes(bytes.div_ceil(MEGABYTE).saturating_mul(MEGABYTE));
        let (most, left) = (Bytes(self.most), Bytes(free / MEGABYTE * MEGABYTE));
        if bytes > self.most {
            return Err(format!(
                "the buffers of this test may take {need}, more than the server's limit of {most} for all tests (--max-memory); ask for smaller windows or longer intervals"
            ));
        }
        if bytes > free {
            return Err(format!(
                "the buffers of this test may take {need}, and {left} are free of the server's limit of {most} for all tests (--max-memory); try again when others have ended, or ask for smaller windows"
            ));
        }
        taken.bytes += bytes;
        taken.tests += 1;
        let share = Share {
            memory: self.clone(),
            bytes,
        };
        Ok((share, buffer))
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> Bytes {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        Bytes(taken.bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let taken = &self.memory.taken;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
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

/// What the far side of a run may grow to; `sends` says on which flows it sends, by their
/// direction.
fn of_run(spec: &RunSpec, sends: impl Fn(bool) -> bool) -> u64 {
    let seconds = spec.duration.as_secs_f64();
    let of_flow = |f: &FlowSpec| match sends(f.reverse) {
        // A window that is larger than any number is as good as refused.
        true => (f.sender.window.max as u64).saturating_mul(OF_SEGMENT),
        false => OF_HOLES,
    };
    let lasting = spec.flows.iter().map(of_flow);
    let short = spec.arrivals.iter().map(|a| {
        let count = (2.0 * arrivals(a, seconds) + 16.0).min(MOST_SHORT) as u64;
        let buffers = match sends(a.template.reverse) {
            true => of_flow(&a.template),
            false => OF_HOLES_OF_SHORT,
        };
        count.saturating_mul(buffers.saturating_add(OF_SHORT_FLOW))
    });
    let buffers = lasting.chain(short).fold(0, u64::saturating_add);
    let one_way = spec.cross_numbers().one_way;
    let counted = (spec.flows.len() + spec.arrivals.len() + one_way) as u64;
    let samples = spec.duration.as_nanos() / spec.interval.as_nanos().max(1) + 1;
    let samples = samples.saturating_mul(2 * counted * OF_SAMPLE);
    let sent = spec.flows.iter().filter(|f| sends(f.reverse)).count() as u64;
    let rows = match spec.trace {
        Trace::Off => 0,
        Trace::Full => MOST_ROWS,
        Trace::Every(step) => spec.duration.as_nanos() / step.max(Span::from_nanos(1)).as_nanos(),
    };
    let rows = (rows.saturating_mul(sent)).min(MOST_ROWS) * OF_ROW;
    let rounds = sent.min(4) * OF_ROUNDS;
    [buffers, samples, rows, rounds]
        .into_iter()
        .fold(OF_TEST, u64::saturating_add)
}

const MEGABYTE: u64 = 1_000_000;
/// Its sockets' buffers in the kernel, packets that are being sent or have just been received,
/// stacks of threads, bytes.
const OF_TEST: u64 = 24 << 20;
/// What a sender remembers of a segment: a record of 32 bytes in a ring that doubles, and its place
/// in lists.
const OF_SEGMENT: u64 = 100;
/// Holes that a receiver remembers at most, and that of a short flow.
const OF_HOLES: u64 = 1 << 20;
const OF_HOLES_OF_SHORT: u64 = 16 << 10;
/// A short flow besides: its place among the others, its timers, its row.
const OF_SHORT_FLOW: u64 = 2 << 10;
/// A number of a series, and once more in the result as it is sent.
const OF_SAMPLE: u64 = 16;
/// A row of a sender's time series, and in the result.
const OF_ROW: u64 = 320;
/// Rounds and episodes that a sender keeps at most.
const OF_ROUNDS: u64 = 14 << 20;

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::Episode;
    use fullpipe_flow::{Preset, Receiver, ReceiverConfig, SenderConfig, TraceRow};
    use fullpipe_run::{ArrivalSpec, Arrivals, Round, SizeLaw, Transfer};

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
        limits.grant(spec).unwrap().0
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

    #[test]
    fn tests_that_ask_for_no_window_fit_all_at_once() {
        let limits = Limits::default();
        let memory = Memory::new(&limits);
        let spec = granted(&limits, f64::INFINITY);
        let taken: Vec<_> = (0..limits.max_tests)
            .map(|_| memory.take(&spec, &Content::Nothing, |reverse| reverse))
            .collect();
        assert!(taken.iter().all(Result::is_ok), "{taken:?}");
        // Each with what it takes besides: docs/serve.md says how much.
        assert!(memory.taken().0 >= u64::from(limits.max_tests) * (24 << 20));
        drop(taken);
        assert_eq!(memory.taken(), Bytes(0));
    }

    #[test]
    fn the_largest_windows_are_refused_by_name_until_others_end() {
        let limits = Limits::default();
        let memory = Memory::new(&limits);
        let spec = granted(&limits, 1e9);
        assert_eq!(spec.flows[0].sender.window.max, limits.max_window as f64);
        let take = || memory.take(&spec, &Content::Nothing, |reverse| reverse);
        let (first, second) = (take().unwrap(), take().unwrap());
        assert!(memory.taken().0 > 2 * 400_000_000);
        let why = take().unwrap_err();
        assert!(
            why.contains("--max-memory") && why.contains("try again"),
            "{why}"
        );
        drop(first);
        take().unwrap();
        drop(second);
        let small = Memory::new(&Limits {
            max_memory: Bytes(100_000_000),
            ..limits.clone()
        });
        let why = small.take(&spec, &Content::Nothing, |reverse| reverse);
        let why = why.unwrap_err();
        assert!(
            why.contains("--max-memory") && why.contains("more than"),
            "{why}"
        );
        // Only the side that sends needs a window's worth.
        small
            .take(&spec, &Content::Nothing, |reverse| !reverse)
            .unwrap();
    }

    /// What is kept of each thing, in memory and, where it is part of the result, in that.
    #[test]
    fn no_estimate_is_smaller_than_what_is_kept() {
        let bytes = |n: usize| n as u64;
        assert!(OF_ROW >= 2 * bytes(size_of::<TraceRow>()));
        assert!(OF_SAMPLE >= 2 * bytes(size_of::<u64>()));
        let flow = size_of::<Receiver>() + size_of::<Transfer>();
        assert!(OF_SHORT_FLOW >= bytes(flow), "{flow}");
        let rounds = (1 << 18) * (size_of::<Round>() + size_of::<Episode>());
        assert!(OF_ROUNDS >= bytes(rounds), "{rounds}");
    }

    #[test]
    fn rows_rounds_and_short_flows_are_accounted_for() {
        let limits = Limits::default();
        let plain = granted(&limits, 10.0);
        let of = |spec: &RunSpec| of_run(spec, |reverse| reverse);
        let least = OF_TEST + 10 * OF_SEGMENT + OF_ROUNDS;
        assert!((least..least + 100_000).contains(&of(&plain)));
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
            }],
            ..plain.clone()
        };
        let short = of(&mice) - of(&plain);
        // Twice the hundred that come, for chance.
        assert!(
            short >= 200 * (OF_HOLES_OF_SHORT + OF_SHORT_FLOW),
            "{short}"
        );
    }

    #[test]
    fn files_share_what_is_free() {
        let limits = Limits::default();
        let memory = Memory::new(&limits);
        let mut spec = granted(&limits, f64::INFINITY);
        spec.flows[0].reverse = false;
        let mut kept = Vec::new();
        let mut buffers = Vec::new();
        for _ in 0..limits.max_tests {
            let (share, buffer) = memory.take(&spec, &put(), |reverse| reverse).unwrap();
            kept.push(share);
            buffers.extend(buffer);
        }
        assert!(buffers[0] > 128 << 20, "{buffers:?}");
        assert!(buffers.is_sorted_by(|a, b| a >= b), "{buffers:?}");
        assert!(memory.taken() <= limits.max_memory);
    }
}
