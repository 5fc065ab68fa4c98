//! The event queue: events in the order of (time, insertion number), 16 bytes each.
//!
//! A link keeps one pending event, not one per packet, and a flow's timer one entry that moves
//! lazily: a few flows on one path have a few events. Behind the first one those lie in a sorted
//! run, the earliest last, and what is set now is hardly ever far from that end. When there are
//! more than [`MOST_NEAR`], the later ones wait in a [`Wheel`], where setting one costs the same
//! whatever their number.

mod wheel;

use fullpipe_units::Time;

use wheel::Wheel;

/// Index of what an event wakes: links, then timers, then the run's own marks.
pub type Target = u32;

/// Bits of a [`Target`] in the key.
const TARGET_BITS: u32 = 24;

/// Time, insertion number and target from the highest bit down: the order of keys is that of
/// events.
type Key = u128;

/// Later than every event.
const VACANT: Key = u128::MAX;

/// From this number of events on a wheel takes the later ones.
const MOST_NEAR: usize = 128;

/// With fewer than this in it, and none before them, the wheel is of no use: a dozen flows have
/// many events only while a recovery moves their timers and leaves the entries behind.
const LEAST_LATER: usize = 32;

/// Pending events, earliest first.
#[derive(Debug)]
pub struct EventQueue {
    /// The earliest event, or [`VACANT`]: it is not known yet.
    first: Key,
    /// Every other event up to `near_until`, nanoseconds, the earliest last.
    near: Vec<Key>,
    near_until: u64,
    later: Option<Box<Wheel>>,
    inserted: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            first: VACANT,
            near: Vec::with_capacity(2 * MOST_NEAR),
            near_until: u64::MAX,
            later: None,
            inserted: 0,
        }
    }
}

#[inline(always)]
fn event(key: Key) -> (Time, Target) {
    let target = (key as u64 & ((1 << TARGET_BITS) - 1)) as u32;
    (Time::from_nanos(nanos(key)), target)
}

/// True for [`VACANT`]; no insertion number comes as far.
#[inline(always)]
fn is_vacant(key: Key) -> bool {
    key as u64 == u64::MAX
}

/// When the event is due.
#[inline(always)]
fn nanos(key: Key) -> u64 {
    (key >> 64) as u64
}

impl EventQueue {
    /// Largest number of targets.
    pub const MAX_TARGETS: usize = 1 << TARGET_BITS;

    #[inline]
    fn key(&mut self, at: Time, target: Target) -> Key {
        self.inserted += 1;
        (u128::from(at.as_nanos()) << 64)
            | u128::from((self.inserted << TARGET_BITS) | u64::from(target))
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, target: Target) {
        let key = self.key(at, target);
        self.add(at, key);
    }

    /// Adds an event that comes before all others of its instant but those added by this, whose
    /// order is that of their targets.
    pub fn push_ahead(&mut self, at: Time, target: Target) {
        self.add(at, (u128::from(at.as_nanos()) << 64) | u128::from(target));
    }

    /// Adds an event that comes after all others of its instant.
    pub fn push_behind(&mut self, at: Time, target: Target) {
        let last = (u64::MAX << TARGET_BITS) | u64::from(target);
        self.add(at, (u128::from(at.as_nanos()) << 64) | u128::from(last));
    }

    #[inline(always)]
    fn add(&mut self, at: Time, key: Key) {
        if at.as_nanos() > self.near_until {
            return self.push_later(key);
        }
        if key < self.first {
            let first = std::mem::replace(&mut self.first, key);
            if !is_vacant(first) {
                self.near.push(first);
            }
        } else {
            self.near.push(key);
            place(&mut self.near, key);
        }
        if self.near.len() > MOST_NEAR && self.later.is_none() {
            self.begin_wheel();
        }
    }

    /// The earliest event.
    #[inline]
    pub fn next(&mut self) -> Option<(Time, Target)> {
        if is_vacant(self.first) {
            self.find_first();
        }
        (!is_vacant(self.first)).then(|| event(self.first))
    }

    /// The earliest event, for those who only look.
    pub fn peek(&self) -> Option<(Time, Target)> {
        let waiting = || self.later.as_ref().and_then(|wheel| wheel.first());
        let known = Some(self.first).filter(|key| !is_vacant(*key));
        let near = || self.near.last().copied();
        known.or_else(near).or_else(waiting).map(event)
    }

    /// Removes the earliest event, which [`EventQueue::next`] has returned.
    #[inline]
    pub fn pop(&mut self) {
        self.first = self.near.pop().unwrap_or(VACANT);
    }

    /// Replaces the earliest event, which [`EventQueue::next`] has returned, by one at `at` for
    /// `target`: in one pass instead of a pop and a push.
    #[inline(always)]
    pub fn replace_top(&mut self, at: Time, target: Target) {
        let key = self.key(at, target);
        if at.as_nanos() > self.near_until {
            self.pop();
            return self.push_later(key);
        }
        self.first = match self.near.last().copied() {
            Some(next) if next < key => {
                place(&mut self.near, key);
                next
            }
            _ => key,
        };
    }

    #[inline]
    fn push_later(&mut self, key: Key) {
        if let Some(wheel) = &mut self.later {
            wheel.put(key);
        }
    }

    /// There are many events: all but the first few wait in a wheel from now on.
    #[cold]
    fn begin_wheel(&mut self) {
        let few = self.near.len() - MOST_NEAR / 16;
        self.near_until = nanos(self.near[few]);
        let mut wheel = Wheel::new(self.near_until);
        let near_from = self.near.partition_point(|k| nanos(*k) > self.near_until);
        for key in self.near.drain(..near_from) {
            wheel.put(key);
        }
        self.later = Some(Box::new(wheel));
    }

    /// The run is over, if there was one: the next one comes from the wheel.
    #[inline(never)]
    fn find_first(&mut self) {
        if self.near.is_empty()
            && let Some(wheel) = &mut self.later
        {
            if wheel.waiting() < LEAST_LATER {
                self.near.extend(wheel.drain());
                self.near_until = u64::MAX;
                self.later = None;
            } else if let Some(until) = wheel.take_first(&mut self.near, self.inserted) {
                self.near_until = until;
            }
            self.near.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.pop();
    }

    /// Pending events.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let first = usize::from(!is_vacant(self.first));
        first + self.near.len() + self.later.as_ref().map_or(0, |wheel| wheel.waiting())
    }
}

/// Puts `key` into its place in a sorted run whose last place is free.
#[inline(always)]
fn place(mut run: &mut [Key], key: Key) {
    while let [.., next, free] = run
        && *next < key
    {
        *free = *next;
        let most = run.len() - 1;
        run = &mut run[..most];
    }
    if let [.., free] = run {
        *free = key;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use fullpipe_run::ComponentRng;
    use fullpipe_units::Span;
    use proptest::prelude::*;

    /// The next event in a model: time, insertion number, target.
    type Model = BTreeSet<(Time, u64, Target)>;

    fn first(model: &Model) -> Option<(Time, Target)> {
        model.first().map(|(at, _, target)| (*at, *target))
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_insertion_but_those_ahead(
            ops in prop::collection::vec((0u64..50, 0u32..4, 0u8..5), 1..200),
        ) {
            let mut queue = EventQueue::default();
            let mut model = Model::new();
            for (n, (at, target, op)) in (1u64..).zip(ops) {
                let event = (Time::from_nanos(at), target);
                let replaces = op == 1 && queue.next().is_some();
                if replaces {
                    model.pop_first();
                    queue.replace_top(event.0, event.1);
                } else if op == 4 {
                    // A target is set ahead once.
                    if model.insert((event.0, 0, target)) {
                        queue.push_ahead(event.0, event.1);
                    }
                } else if op >= 2 && queue.next().is_some() {
                    model.pop_first();
                    queue.pop();
                }
                if op == 0 || op == 3 {
                    queue.push(event.0, event.1);
                }
                if op == 0 || op == 3 || replaces {
                    model.insert((event.0, n, target));
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.peek(), first(&model));
                if n % 3 == 0 {
                    prop_assert_eq!(queue.next(), first(&model));
                }
            }
        }
    }

    /// Thousands of events, soon dense and soon sparse, so that slots widen and narrow; some at the
    /// very time of others, some many turns of the wheel later, some never.
    #[test]
    fn many_events_come_in_order_too() {
        let mut rng = ComponentRng::new(1, "queue");
        let mut draw = |n: u64| (rng.uniform() * n as f64) as u64;
        let mut queue = EventQueue::default();
        let mut model = Model::new();
        let mut now = Time::ZERO;
        for n in 0..400_000u64 {
            // Nanoseconds to the next event, as a power of two: 16 ns or a millisecond.
            let density = if n / 100_000 % 2 == 0 { 4 } else { 20 };
            let wait = match draw(1000) {
                0 => Span::MAX,
                1..=9 => Span::from_nanos(draw(1 << 40)),
                10..=300 => Span::ZERO,
                _ => Span::from_nanos(draw(2000 << density)),
            };
            let target = n as u32 % 1000;
            let at = Time::from_nanos(now.as_nanos().saturating_add(wait.as_nanos()));
            assert_eq!(queue.peek(), first(&model));
            if let Some((time, _)) = first(&model) {
                assert_eq!(queue.next(), first(&model));
                if time < Time::MAX {
                    now = time;
                }
            }
            match model.len() {
                0..2000 => queue.push(at, target),
                2000..2200 if draw(2) == 0 => queue.push(at, target),
                2000..2200 => {
                    model.pop_first();
                    queue.replace_top(at, target);
                }
                _ => {
                    for _ in 0..draw(300) {
                        assert_eq!(queue.next(), first(&model));
                        model.pop_first();
                        queue.pop();
                    }
                    queue.push(at, target);
                }
            }
            model.insert((at, n, target));
        }
        assert!(queue.later.is_some());
        while let Some(event) = first(&model) {
            assert_eq!(queue.next(), Some(event));
            model.pop_first();
            queue.pop();
        }
        assert_eq!((queue.next(), queue.peek(), queue.len()), (None, None, 0));
    }
}
