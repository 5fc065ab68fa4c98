//! Live progress of a run: a few numbers per flow, written ten times a second by whoever drives
//! the flows and read by another thread; and the other way, changes of flows that run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_flow::Change;
use fullpipe_run::RunSpec;
use fullpipe_units::{Span, Time};

/// The latest state of the flows of one run after another. Cheap for the writer: nothing is
/// allocated after the first time.
#[derive(Debug, Default)]
pub struct Live {
    latest: Mutex<Latest>,
    /// Answers to probes: when they came, and their round-trip times.
    answers: Mutex<Vec<(Time, Span)>>,
    /// Changes that wait for the endpoint, each with the index of its flow.
    orders: Mutex<Vec<(u32, Change)>>,
    /// There are such.
    ordered: AtomicBool,
    /// Nanoseconds between two looks of whoever reads; 0: not known.
    read_every: AtomicU64,
}

#[derive(Debug, Default)]
struct Latest {
    snapshot: Snapshot,
    /// What the far host says of flows that it sends, by their index.
    told: Vec<Option<LiveFlow>>,
}

/// The flows of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The run that they belong to.
    pub run: Arc<LiveRun>,
    /// Since the start of the run.
    pub at: Time,
    /// In the order of the specification.
    pub flows: Vec<LiveFlow>,
}

/// A run, as whoever watches needs to know it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// Runs begun so far, this one included; 0: none has begun.
    pub number: u64,
    /// Seed of its random generators.
    pub seed: u64,
    /// Longest duration.
    pub lasts: Span,
    /// Lasting flows, in the order of the specification.
    pub flows: Vec<NamedFlow>,
}

/// A lasting flow of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFlow {
    /// Name of the flow, as in the table.
    pub name: String,
    /// Spelling of its stack at the start.
    pub stack: String,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes in all, if that is known.
    pub size: Option<u64>,
    /// It is sent by the far host.
    pub reverse: bool,
}

impl LiveRun {
    /// The run of this specification.
    pub fn new(spec: &RunSpec) -> Self {
        let flows = spec.flows.iter();
        let flows = flows.map(|f| NamedFlow {
            name: f.name.clone(),
            stack: f.stack.to_string(),
            mss: f.sender.mss,
            size: f.sender.transfer.map(|n| n * u64::from(f.sender.mss)),
            reverse: f.reverse,
        });
        Self {
            number: 0,
            seed: spec.seed,
            lasts: spec.duration,
            flows: flows.collect(),
        }
    }
}

/// One flow. What only its sender knows is `None` where only the host of its receiver is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveFlow {
    /// Segments acknowledged (sender) or delivered (receiver) so far.
    pub delivered: u64,
    /// Segments sent again so far.
    pub retransmits: Option<u64>,
    /// Congestion window, segments.
    pub cwnd: Option<f64>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<Span>,
}

impl LiveFlow {
    /// Seen by its sender.
    fn is_sent(&self) -> bool {
        self.retransmits.is_some()
    }
}

impl Live {
    /// A run begins: what is published from now on is its.
    pub fn begin(&self, run: LiveRun) {
        let mut state = self.state();
        state.told.clear();
        let latest = &mut state.snapshot;
        let number = latest.run.number + 1;
        latest.run = Arc::new(LiveRun { number, ..run });
        latest.at = Time::ZERO;
        latest.flows.clear();
    }

    /// Replaces the state; `flows` is written in place, in the order of the specification. Where
    /// both hosts of a run publish, a flow is what its sender says of it.
    pub fn publish(&self, at: Time, flows: impl Iterator<Item = LiveFlow>) {
        let latest = &mut self.state().snapshot;
        latest.at = latest.at.max(at);
        for (i, flow) in flows.enumerate() {
            match latest.flows.get_mut(i) {
                None => latest.flows.push(flow),
                Some(known) if known.is_sent() && !flow.is_sent() => {}
                Some(known) => *known = flow,
            }
        }
    }

    /// The far host says this of a flow that it sends. A flow that is none of its, or of another
    /// run, is left out; retransmissions do not become fewer.
    pub fn told(&self, flow: u32, of: LiveFlow) {
        let state = &mut *self.state();
        let index = flow as usize;
        let named = state.snapshot.run.flows.get(index);
        if !named.is_some_and(|named| named.reverse) {
            return;
        }
        if state.told.len() <= index {
            state.told.resize(index + 1, None);
        }
        let before = state.told[index].and_then(|before| before.retransmits);
        state.told[index] = Some(LiveFlow {
            retransmits: of.retransmits.max(before),
            ..of
        });
    }

    /// Flows that this host sends, with their indices, from an index on.
    pub fn sent(&self, from: u32, most: usize) -> Vec<(u32, LiveFlow)> {
        let state = self.state();
        let flows = (0..).zip(&state.snapshot.flows).skip(from as usize);
        let sent = flows.filter(|(_, flow)| flow.is_sent());
        sent.take(most)
            .map(|(index, flow)| (index, *flow))
            .collect()
    }

    /// Somebody looks this often.
    pub fn read_every(&self, every: Span) {
        self.read_every.store(every.as_nanos(), Ordering::Relaxed);
    }

    /// Somebody looks now and then, unless it is known how often.
    pub fn is_read(&self) {
        let _ = self.read_every.compare_exchange(
            0,
            NOW_AND_THEN.as_nanos(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// How often somebody looks; `None`: nobody does.
    pub fn is_read_every(&self) -> Option<Span> {
        let nanos = self.read_every.load(Ordering::Relaxed);
        (nanos > 0).then(|| Span::from_nanos(nanos))
    }

    /// An answer to a probe has come.
    pub fn answered(&self, at: Time, rtt: Span) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() < MOST_ANSWERS {
            answers.push((at, rtt));
        }
    }

    /// The answers since the last time this was asked.
    pub fn take_answers(&self) -> Vec<(Time, Span)> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut answers)
    }

    /// The flow with this index of the specification is to change. The endpoint sees it with the
    /// next datagram or timer, at the latest after [`EVERY`].
    pub fn order(&self, flow: u32, change: Change) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push((flow, change));
        self.ordered.store(true, Ordering::Release);
    }

    /// There may be orders.
    #[inline]
    pub fn has_orders(&self) -> bool {
        self.ordered.load(Ordering::Acquire)
    }

    /// The orders since the last time this was asked.
    pub fn take_orders(&self) -> Vec<(u32, Change)> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        self.ordered.store(false, Ordering::Release);
        std::mem::take(&mut orders)
    }

    /// The state of a moment ago; empty before the first. Flows that are received here are as
    /// their sender has told, as far as it has.
    pub fn latest(&self) -> Snapshot {
        let state = self.state();
        let mut latest = state.snapshot.clone();
        for (flow, told) in latest.flows.iter_mut().zip(&state.told) {
            if let Some(told) = told
                && !flow.is_sent()
            {
                let delivered = flow.delivered;
                *flow = LiveFlow { delivered, ..*told };
            }
        }
        latest
    }

    fn state(&self) -> MutexGuard<'_, Latest> {
        // A panic while it was held leaves numbers that are old, not wrong.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers that wait for a reader, if there is one.
const MOST_ANSWERS: usize = 10_000;

/// Between two looks of those who do not say how often they look.
const NOW_AND_THEN: Span = Span::from_millis(500);

/// Time between two publications of a host: a reader needs no more, and no packet waits for one.
pub const EVERY: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn received(delivered: u64) -> LiveFlow {
        LiveFlow {
            delivered,
            ..LiveFlow::default()
        }
    }

    #[test]
    fn the_reader_sees_the_last_state() {
        let live = Live::default();
        assert_eq!(live.latest(), Snapshot::default());
        live.publish(Time::from_nanos(1), [received(1), received(2)].into_iter());
        live.publish(Time::from_nanos(2), [received(3)].into_iter());
        let seen = live.latest();
        assert_eq!(
            (seen.at, seen.flows),
            (Time::from_nanos(2), vec![received(3), received(2)])
        );
    }

    #[test]
    fn of_both_hosts_the_sender_is_believed() {
        let live = Live::default();
        let sent = LiveFlow {
            retransmits: Some(0),
            ..received(5)
        };
        live.publish(Time::from_nanos(1), [sent, received(1)].into_iter());
        live.publish(Time::from_nanos(1), [received(6), sent].into_iter());
        live.publish(Time::from_nanos(2), [sent, received(9)].into_iter());
        assert_eq!(live.latest().flows, [sent, sent]);
    }

    /// What a network says of flows is believed of those that come from there.
    #[test]
    fn a_far_sender_tells_of_its_flows_alone() {
        let live = Live::default();
        let named = |reverse| NamedFlow {
            name: String::new(),
            stack: String::new(),
            mss: 1448,
            size: None,
            reverse,
        };
        let flows = vec![named(false), named(true)];
        live.begin(LiveRun {
            flows,
            ..LiveRun::default()
        });
        let near = LiveFlow {
            retransmits: Some(1),
            ..received(5)
        };
        live.publish(Time::from_nanos(1), [near, received(8)].into_iter());
        let told = |retransmits| LiveFlow {
            delivered: 99,
            retransmits: Some(retransmits),
            cwnd: Some(20.0),
            srtt: Some(Span::from_millis(3)),
        };
        for flow in [0, 1, 2, u32::MAX] {
            live.told(flow, told(7));
        }
        live.told(1, told(6));
        let seen = live.latest().flows;
        assert_eq!(
            seen,
            [
                near,
                LiveFlow {
                    delivered: 8,
                    ..told(7)
                }
            ]
        );
        // It is no flow of this host's, and the next run's is not known.
        assert_eq!(live.sent(0, 9), [(0, near)]);
        assert_eq!((live.sent(1, 9), live.sent(u32::MAX, 9)), (vec![], vec![]));
        live.publish(Time::from_nanos(2), [near, received(9)].into_iter());
        assert_eq!(live.latest().flows[1].retransmits, Some(7));
        let again = vec![named(false), named(true)];
        live.begin(LiveRun {
            flows: again,
            ..LiveRun::default()
        });
        live.publish(Time::from_nanos(1), [near, received(1)].into_iter());
        assert_eq!(live.latest().flows[1], received(1));
    }

    #[test]
    fn a_run_begins_with_nothing_of_the_one_before() {
        let live = Live::default();
        live.begin(LiveRun::default());
        live.publish(Time::from_nanos(7), [received(3)].into_iter());
        live.begin(LiveRun::default());
        let seen = live.latest();
        assert_eq!(
            (seen.run.number, seen.at, seen.flows),
            (2, Time::ZERO, vec![])
        );
    }
}
