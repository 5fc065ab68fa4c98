//! What waits to happen, earliest first. Entries are lazy: who wants an earlier time adds one, who
//! wants a later time lets the old one come and sets it again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fullpipe_units::Time;

/// Target of a timer entry.
pub type Wake = fullpipe_host::Wake<Event>;

/// Timers of the endpoint itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A segment has crossed an interface of the host.
    Interface,
    /// The state of the flows is published.
    Publish,
    /// It is looked whether flows get on.
    Watch,
    /// It is looked whether flows need more memory.
    Lend,
}

/// The heap; equal times in the order of entry.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, Wake)>>,
    entered: u64,
}

impl Timers {
    /// Adds an entry; [`Time::MAX`] is never.
    pub fn set(&mut self, at: Time, wake: Wake) {
        if at < Time::MAX {
            self.entered += 1;
            self.heap.push(Reverse((at, self.entered, wake)));
        }
    }

    /// The earliest time.
    #[inline]
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes an entry that is due, and its time.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<(Time, Wake)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, wake))| (at, wake))
    }
}
