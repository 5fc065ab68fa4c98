//! The event queue: a 4-ary heap of (time, insertion number, target), 16 bytes an entry.
//!
//! It stays small by construction: a link keeps one pending event, not one per packet, and a flow's
//! timer keeps one entry that moves lazily. Ties in time are broken by insertion order.

use fullpipe_units::Time;

/// Index of what an event wakes: links, then timers, then the run's own marks.
pub type Target = u32;

/// Bits of a [`Target`] in the key.
const TARGET_BITS: u32 = 24;

/// Pending events, earliest first.
#[derive(Debug)]
pub struct EventQueue {
    /// `len` keys, then [`VACANT`] up to the end of the last group of four children.
    heap: Vec<u128>,
    len: usize,
    /// Places of the root's four children, the least key first, vacant ones in their order behind:
    /// the frequent events are those of a few links, which only change places near the root.
    order: [u8; 4],
    /// The root is over: the next event takes its place, or the pop is made up for.
    hole: bool,
    inserted: u64,
}

/// Later than every event: a group of children is always full, so the least of it is found without
/// counting.
const VACANT: u128 = u128::MAX;

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            heap: vec![VACANT; 5],
            len: 0,
            order: [1, 2, 3, 4],
            hole: false,
            inserted: 0,
        }
    }
}

#[inline(always)]
fn event(key: u128) -> (Time, Target) {
    let target = (key as u64 & ((1 << TARGET_BITS) - 1)) as u32;
    (Time::from_nanos((key >> 64) as u64), target)
}

impl EventQueue {
    /// Largest number of targets.
    pub const MAX_TARGETS: usize = 1 << TARGET_BITS;

    #[inline]
    fn key(&mut self, at: Time, target: Target) -> u128 {
        self.inserted += 1;
        (u128::from(at.as_nanos()) << 64)
            | u128::from((self.inserted << TARGET_BITS) | u64::from(target))
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, target: Target) {
        let key = self.key(at, target);
        if self.hole {
            self.hole = false;
            self.replace_root(key);
        } else {
            self.append(key);
        }
    }

    fn append(&mut self, key: u128) {
        if self.len == self.heap.len() {
            self.heap.extend([VACANT; 4]);
        }
        let mut i = self.len;
        self.len += 1;
        // The root's child on the way up, if one gets a lesser key.
        let mut child = i;
        while i > 0 {
            child = i;
            let parent = (i - 1) / 4;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[i] = self.heap[parent];
            i = parent;
        }
        self.heap[i] = key;
        if (1..=4).contains(&child) {
            self.move_forward(child);
        }
    }

    /// The key of a child of the root has become less.
    fn move_forward(&mut self, place: usize) {
        let key = self.heap[place];
        let place = place as u8;
        let mut i = if usize::from(place) == self.len - 1 {
            usize::from(place) - 1
        } else {
            self.order.iter().position(|p| *p == place).unwrap_or(0)
        };
        while i > 0 && key < self.heap[usize::from(self.order[i - 1])] {
            self.order[i] = self.order[i - 1];
            i -= 1;
        }
        self.order[i] = place;
    }

    /// Pending events.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len - usize::from(self.hole)
    }

    /// The earliest event.
    #[inline]
    pub fn next(&mut self) -> Option<(Time, Target)> {
        if self.hole {
            self.fill();
        }
        let key = self.heap[0];
        (self.len > 0).then(|| event(key))
    }

    /// The earliest event, for those who only look.
    pub fn peek(&self) -> Option<(Time, Target)> {
        let first = if self.hole { self.order[0] } else { 0 };
        let key = self.heap[usize::from(first)];
        (self.len > usize::from(self.hole)).then(|| event(key))
    }

    /// Removes the earliest event, which [`EventQueue::next`] has returned: often another one
    /// follows from it, and takes its place.
    #[inline]
    pub fn pop(&mut self) {
        self.hole = self.len > 0;
    }

    /// No event has taken the place of the one that is over.
    fn fill(&mut self) {
        self.hole = false;
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[self.len], VACANT);
        if (1..=4).contains(&self.len) {
            // A child of the root has gone: behind those that are left.
            let gone = self.len as u8;
            let at = self.order.iter().position(|p| *p == gone).unwrap_or(0);
            for i in at + 1..self.len {
                self.order[i - 1] = self.order[i];
            }
            self.order[self.len - 1] = gone;
        }
        if self.len > 0 {
            self.replace_root(last);
        }
    }

    /// Replaces the earliest event by one at `at` for `target`: one pass instead of a pop and a
    /// push.
    #[inline]
    pub fn replace_top(&mut self, at: Time, target: Target) {
        let key = self.key(at, target);
        self.replace_root(key);
    }

    #[inline]
    fn replace_root(&mut self, key: u128) {
        let [first, ..] = self.order;
        let place = usize::from(first);
        let second = self.heap[place];
        if key < second {
            self.heap[0] = key;
            return;
        }
        self.heap[0] = second;
        if self.len > 5 {
            self.sift_down(place, key);
        } else {
            self.heap[place] = key;
        }
        let key = self.heap[place];
        let mut i = 0;
        while i < 3 && self.heap[usize::from(self.order[i + 1])] < key {
            self.order[i] = self.order[i + 1];
            i += 1;
        }
        self.order[i] = first;
    }

    #[inline]
    fn sift_down(&mut self, from: usize, key: u128) {
        let heap = &mut self.heap[..];
        let mut i = from;
        loop {
            let child = 4 * i + 1;
            let children = heap.get(child..).and_then(|rest| rest.first_chunk::<4>());
            let Some((least, at)) = children.map(least) else {
                break;
            };
            if least >= key {
                break;
            }
            heap[i] = least;
            i = child + at;
        }
        heap[i] = key;
    }
}

/// The least of four keys and its index.
#[inline(always)]
fn least(&[a, b, c, d]: &[u128; 4]) -> (u128, usize) {
    let (low, low_at) = if b < a { (b, 1) } else { (a, 0) };
    let (high, high_at) = if d < c { (d, 3) } else { (c, 2) };
    if high < low {
        (high, high_at)
    } else {
        (low, low_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_insertion(
            ops in prop::collection::vec((0u64..50, 0u32..4, 0u8..4), 1..200),
        ) {
            let mut queue = EventQueue::default();
            let mut model = std::collections::BTreeSet::new();
            for (n, (at, target, op)) in (0u64..).zip(ops) {
                let event = (Time::from_nanos(at), target);
                if op > 0 && queue.next().is_some() {
                    model.pop_first();
                    if op == 1 {
                        queue.replace_top(event.0, event.1);
                    } else {
                        queue.pop();
                    }
                }
                if op == 0 || op == 3 {
                    queue.push(event.0, event.1);
                }
                if op != 2 && (op != 1 || queue.len() > model.len()) {
                    model.insert((event.0, n, target));
                }
                let first = model.first().map(|(at, _, target)| (*at, *target));
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.peek(), first);
                if n % 3 == 0 {
                    prop_assert_eq!(queue.next(), first);
                }
            }
        }
    }
}
