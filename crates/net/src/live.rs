//! Live progress of a run: a few numbers per flow, written by the endpoint's thread and read by
//! another; and the other way, changes of flows that run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use fullpipe_flow::Change;
use fullpipe_units::{Span, Time};

/// The latest state of the flows of one host. Cheap for the writer: nothing is allocated after the
/// first time.
#[derive(Debug, Default)]
pub struct Live {
    latest: Mutex<Snapshot>,
    /// Answers to probes: when they came, and their round-trip times.
    answers: Mutex<Vec<(Time, Span)>>,
    /// Changes that wait for the endpoint, each with the index of its flow.
    orders: Mutex<Vec<(u32, Change)>>,
    /// There are such.
    ordered: AtomicBool,
}

/// The flows of one host at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Since the start of the run.
    pub at: Time,
    /// In the order of the specification.
    pub flows: Vec<LiveFlow>,
}

/// One flow. What only its sender knows is `None` at the host of its receiver.
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

impl Live {
    /// Replaces the state; `flows` is written in place, in the order of the specification.
    pub fn publish(&self, at: Time, flows: impl Iterator<Item = LiveFlow>) {
        // A panic while it was held leaves numbers that are old, not wrong.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.at = at;
        latest.flows.clear();
        latest.flows.extend(flows);
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

    /// The state of a moment ago; empty before the first.
    pub fn latest(&self) -> Snapshot {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }
}

/// Answers that wait for a reader, if there is one.
const MOST_ANSWERS: usize = 10_000;

/// How often a host publishes.
pub const EVERY: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_sees_the_last_state() {
        let live = Live::default();
        assert_eq!(live.latest(), Snapshot::default());
        let flow = |delivered| LiveFlow {
            delivered,
            ..LiveFlow::default()
        };
        live.publish(Time::from_nanos(1), [flow(1), flow(2)].into_iter());
        live.publish(Time::from_nanos(2), [flow(3)].into_iter());
        let seen = live.latest();
        assert_eq!((seen.at, seen.flows), (Time::from_nanos(2), vec![flow(3)]));
    }
}
