//! Many events, unsorted until they are due: a timing wheel of two levels (Varghese and Lauck,
//! SOSP 1987, schemes 6 and 7).
//!
//! A slot of the fine level holds the events of some microseconds of the present page; a slot of
//! the coarse level those of a page, and of every page that is a whole turn later.

use std::mem;

use super::{Key, nanos};

/// log2 of the slots of a level.
const LEVEL: u32 = 9;
const SLOTS: usize = 1 << LEVEL;

/// log2 of the nanoseconds that a fine slot spans at first, at least and at most.
const FIRST_WIDTH: u32 = 12;
const WIDTHS: std::ops::RangeInclusive<u32> = 4..=40;

/// After so many slots it is seen whether their width suits the rate of events.
const TRIAL: u64 = 1024;
/// Events set per slot: with fewer the search for slots costs more than the events, with more
/// sorting them does.
const SUITABLE: std::ops::RangeInclusive<u64> = 4..=32;

/// Events later than all that were taken out.
#[derive(Debug)]
pub struct Wheel {
    slots: Slots,
    /// Events in them.
    waiting: usize,
    /// The page of the fine level.
    page: u64,
    /// log2 of the nanoseconds that a fine slot spans.
    width: u32,
    /// Everything up to here was taken out, nanoseconds.
    taken_until: u64,
    /// Slots taken out in this trial, and the insertion number when it began.
    taken: u64,
    trial_from: u64,
}

/// Those of the fine level, then those of the coarse one: to set an event is the same for both.
#[derive(Debug)]
struct Slots {
    keys: Vec<Vec<Key>>,
    /// A bit for each slot: it holds something.
    used: [u64; 2 * SLOTS / 64],
}

/// The slot of the fine level for this number of its width.
#[inline]
fn fine(number: u64) -> usize {
    number as usize % SLOTS
}

/// The slot of the coarse level for this page.
#[inline]
fn coarse(page: u64) -> usize {
    SLOTS + page as usize % SLOTS
}

/// Apart and last, so that a caller with room has no registers to save.
#[cold]
#[inline(never)]
fn push_into_full(keys: &mut Vec<Key>, key: Key) {
    keys.push(key);
}

impl Slots {
    fn new() -> Self {
        Self {
            keys: vec![Vec::new(); 2 * SLOTS],
            used: [0; 2 * SLOTS / 64],
        }
    }

    #[inline]
    fn put(&mut self, slot: usize, key: Key) {
        self.used[slot / 64] |= 1 << (slot % 64);
        let keys = &mut self.keys[slot];
        if keys.len() == keys.capacity() {
            return push_into_full(keys, key);
        }
        keys.push(key);
    }

    /// The first used slot from `from` on, in its level.
    #[inline]
    fn first_used(&self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        let end = from - from % SLOTS + SLOTS;
        for word in from / 64..end / 64 {
            let used = self.used[word] & mask;
            if used != 0 {
                return Some(64 * word + used.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    fn note_empty(&mut self, slot: usize) {
        self.used[slot / 64] &= !(1 << (slot % 64));
    }

    fn drain(&mut self) -> impl Iterator<Item = Key> + '_ {
        self.used = [0; 2 * SLOTS / 64];
        self.keys.iter_mut().flat_map(|slot| slot.drain(..))
    }
}

impl Wheel {
    /// An empty one for events after `taken_until`, nanoseconds.
    pub fn new(taken_until: u64) -> Self {
        Self {
            slots: Slots::new(),
            waiting: 0,
            page: taken_until >> (FIRST_WIDTH + LEVEL),
            width: FIRST_WIDTH,
            taken_until,
            taken: 0,
            trial_from: 0,
        }
    }

    #[inline]
    fn page_of(&self, key: Key) -> u64 {
        nanos(key) >> (self.width + LEVEL)
    }

    /// Adds an event later than all that were taken out.
    #[inline(never)]
    pub fn put(&mut self, key: Key) {
        self.waiting += 1;
        self.spread(key);
    }

    #[inline]
    fn spread(&mut self, key: Key) {
        let page = self.page_of(key);
        let slot = match page == self.page {
            true => fine(nanos(key) >> self.width),
            false => coarse(page),
        };
        self.slots.put(slot, key);
    }

    /// Moves the events of the first slot that has any into `empty`, unsorted, and returns the last
    /// nanosecond that it spans; `inserted` is the latest insertion number.
    pub fn take_first(&mut self, empty: &mut Vec<Key>, inserted: u64) -> Option<u64> {
        self.taken += 1;
        if self.taken == TRIAL {
            self.judge_width(inserted);
        }
        let from = fine(self.taken_until >> self.width);
        let slot = match self.slots.first_used(from) {
            Some(slot) => slot,
            None => {
                self.turn()?;
                self.slots.first_used(0)?
            }
        };
        // The room of the run that is over serves the slot.
        mem::swap(&mut self.slots.keys[slot], empty);
        self.slots.note_empty(slot);
        self.waiting -= empty.len();
        let last = (self.page << LEVEL) | slot as u64;
        self.taken_until = (last << self.width) | ((1 << self.width) - 1);
        Some(self.taken_until)
    }

    /// The page is over: spreads the next one that holds something over the fine level. `None`:
    /// there is none.
    #[cold]
    fn turn(&mut self) -> Option<()> {
        let begin = coarse(self.page + 1);
        let mut from = 0;
        let mut earliest = None;
        while from < SLOTS {
            // From the slot of the next page to the end, then from the first on.
            let at = coarse((begin + from) as u64);
            let end = if at >= begin { 2 * SLOTS } else { begin };
            let Some(slot) = self.slots.first_used(at).filter(|s| *s < end) else {
                from += end - at;
                continue;
            };
            from += slot + 1 - at;
            let pages = self.slots.keys[slot].iter().map(|k| self.page_of(*k));
            earliest = pages.chain(earliest).min();
            if earliest.is_some_and(|page| page - self.page <= SLOTS as u64) {
                break; // other slots hold later pages
            }
        }
        self.page = earliest?;
        let slot = coarse(self.page);
        let mut waiting = mem::take(&mut self.slots.keys[slot]);
        waiting.retain(|key| {
            let now = self.page_of(*key) == self.page;
            if now {
                self.slots.put(fine(nanos(*key) >> self.width), *key);
            }
            !now
        });
        if waiting.is_empty() {
            self.slots.note_empty(slot);
        }
        self.slots.keys[slot] = waiting;
        Some(())
    }

    /// Fits the width to the rate of events. The order of events does not depend on it.
    #[cold]
    fn judge_width(&mut self, inserted: u64) {
        let per_slot = (inserted - self.trial_from) / TRIAL;
        self.taken = 0;
        self.trial_from = inserted;
        let width = if per_slot < *SUITABLE.start() {
            self.width + 1
        } else if per_slot > *SUITABLE.end() {
            self.width - 1
        } else {
            return;
        };
        if !WIDTHS.contains(&width) {
            return;
        }
        let waiting: Vec<Key> = self.slots.drain().collect();
        self.width = width;
        self.page = self.taken_until >> (width + LEVEL);
        for key in waiting {
            self.spread(key);
        }
    }

    /// The first event.
    pub fn first(&self) -> Option<Key> {
        self.slots.keys.iter().flatten().copied().min()
    }

    /// Events in it.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes all of them out, unsorted.
    pub fn drain(&mut self) -> impl Iterator<Item = Key> + '_ {
        self.waiting = 0;
        self.slots.drain()
    }
}
