//! Memory as it is used: windows, records of rounds and holes of receivers begin small, and what
//! they grow by is borrowed from a lender that all runs of a program share. Who is refused goes on
//! with what it has.

use std::sync::Arc;

use fullpipe_host::Host;
use fullpipe_run::FlowSpec;
use fullpipe_units::Span;

use super::Plan;
use super::inlet::{Inlet, MOST_HOLES};
use super::outlet::Outlet;
use crate::lender::Lender;

/// Segments that the windows of a run may hold together before anything is borrowed: 47 Gbit/s at
/// a round trip of a millisecond.
pub const FIRST_WINDOW: u64 = 1 << 12;
/// The same for holes of a receiver.
pub const FIRST_HOLES: u64 = 1 << 8;
/// The same for rounds and episodes of a sender.
pub const FIRST_ROWS: u64 = 1 << 10;

/// What a sender remembers of a segment, bytes: a record of 32 in a ring that doubles, and its
/// place in lists.
pub const OF_SEGMENT: u64 = 100;
/// A hole of a receiver, and what proves what lies behind it.
pub const OF_HOLE: u64 = 64;
/// A round and an episode.
pub const OF_ROW: u64 = 56;

/// Rounds and episodes on the record of a flow without a full trace; of more than four flows,
/// together four times as many. At a round trip of 50 us rounds would take half a megabyte a
/// second, and a peer that acknowledges what it has not got makes them shorter still; beyond this
/// number every second row goes, again and again, so that they stay spread over the run.
pub const MOST_ROWS: usize = 1 << 18;

/// Between two looks while something grows: slow start doubles the window once in a round trip,
/// and what is borrowed is four times what is used.
pub const LOOK: Span = Span::from_millis(25);
/// The same when nothing grew.
const SLOW_LOOK: Span = Span::from_millis(100);

/// What the window of a flow has before it borrows, segments, in a run that sends so many flows.
pub fn first_window(f: &FlowSpec, flows: u64) -> u64 {
    let window = &f.sender.window;
    let later = f.changes.iter().filter_map(|c| c.change.window);
    // The casts saturate.
    match later.reduce(f64::max) {
        // A change of the window asks nobody.
        Some(most) => most.max(window.max) as u64,
        None => {
            let part = (FIRST_WINDOW / flows.max(1)).max(16);
            part.max(window.initial as u64).min(window.max as u64)
        }
    }
}

/// One thing that grows.
#[derive(Clone, Copy, Debug)]
struct Lease {
    has: u64,
    most: u64,
    /// Bytes of one.
    unit: u64,
}

impl Lease {
    fn new(first: u64, most: u64, unit: u64) -> Self {
        let has = first.min(most);
        Self { has, most, unit }
    }

    fn may_grow(&self) -> bool {
        self.has < self.most
    }

    /// More, if a quarter of it is in use; the new size.
    fn look(&mut self, used: u64, lender: &dyn Lender) -> Option<u64> {
        if !self.may_grow() || used.saturating_mul(4) < self.has {
            return None;
        }
        // Less than that where there is not so much.
        for fourths in [16, 8, 5] {
            let next = (self.has.saturating_mul(fourths) / 4).min(self.most);
            if next > self.has && lender.lend((next - self.has).saturating_mul(self.unit)) {
                self.has = next;
                return Some(next);
            }
        }
        None
    }
}

/// What the lasting flows of a host have borrowed.
#[derive(Debug)]
pub struct Leases {
    lender: Arc<dyn Lender>,
    /// Window and rows by slot of the sender.
    senders: Vec<(Lease, Lease)>,
    /// Holes by slot of the receiver.
    receivers: Vec<Lease>,
}

impl Leases {
    /// The host's flows have what they begin with.
    pub fn new(plan: &Plan, lender: Arc<dyn Lender>, host: &mut Host<Outlet, Inlet>) -> Self {
        let flows = &plan.spec.flows;
        let sent = flows.iter().filter(|f| plan.sends(f.reverse)).count();
        let senders = host.senders.iter_mut().map(|sender| {
            let flow = &flows[sender.flow() as usize];
            let first = first_window(flow, sent as u64);
            // The cast saturates.
            let window = Lease::new(first, flow.sender.window.max as u64, OF_SEGMENT);
            if window.may_grow() {
                sender.lend_window(window.has as f64);
            }
            let rows = (4 * MOST_ROWS / sent.max(4)).max(1 << 10) as u64;
            let rows = Lease::new(FIRST_ROWS, rows, OF_ROW);
            sender.limit_rows(rows.has as usize);
            (window, rows)
        });
        let senders = senders.collect();
        let receivers = host.receivers.iter_mut().map(|receiver| {
            let holes = Lease::new(FIRST_HOLES, MOST_HOLES as u64, OF_HOLE);
            receiver.inlet.holes = holes.has as usize;
            holes
        });
        Self {
            receivers: receivers.collect(),
            senders,
            lender,
        }
    }

    /// Borrows for what has grown; when to look again, if anything may grow still.
    #[cold]
    pub fn look(&mut self, host: &mut Host<Outlet, Inlet>) -> Option<Span> {
        let lender = &*self.lender;
        let (mut grew, mut may_grow) = (false, false);
        for ((window, rows), sender) in self.senders.iter_mut().zip(&mut host.senders) {
            let kept = sender.sender().nxt() - sender.sender().una();
            let used = kept.max(sender.sender().cwnd() as u64);
            if let Some(next) = window.look(used, lender) {
                sender.lend_window(next as f64);
                grew = true;
            }
            if let Some(next) = rows.look(sender.rows() as u64, lender) {
                sender.limit_rows(next as usize);
                grew = true;
            }
            may_grow |= window.may_grow() || rows.may_grow();
        }
        for (holes, receiver) in self.receivers.iter_mut().zip(&mut host.receivers) {
            if let Some(next) = holes.look(receiver.receiver().holes() as u64, lender) {
                receiver.inlet.holes = next as usize;
                grew = true;
            }
            may_grow |= holes.may_grow();
        }
        may_grow.then_some(if grew { LOOK } else { SLOW_LOOK })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug)]
    struct Purse(AtomicU64);

    impl Lender for Purse {
        fn lend(&self, bytes: u64) -> bool {
            let take = |left: u64| left.checked_sub(bytes);
            let done = self
                .0
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            done.is_ok()
        }
    }

    #[test]
    fn what_grows_borrows_what_is_there_and_no_more() {
        let purse = Purse(AtomicU64::new(10_000));
        let mut lease = Lease::new(100, 1000, 10);
        assert_eq!(lease.look(24, &purse), None);
        assert_eq!(lease.look(25, &purse), Some(400));
        // 3000 of 10,000 bytes are gone.
        assert_eq!(lease.look(100, &purse), Some(1000));
        assert!(!lease.may_grow());
        assert_eq!(lease.look(1000, &purse), None);
        let mut other = Lease::new(100, 1000, 10);
        assert_eq!(other.look(100, &purse), Some(200));
        assert_eq!(purse.0.into_inner(), 0);
        assert_eq!(other.look(200, &Purse(AtomicU64::new(0))), None);
        assert_eq!(other.has, 200);
    }
}
