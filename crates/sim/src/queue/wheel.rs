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
    fine: Level,
    coarse: Level,
    /// Events in both.
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

#[derive(Debug)]
struct Level {
    slots: Vec<Vec<Key>>,
    /// A bit for each slot: it holds something.
    used: [u64; SLOTS / 64],
}

impl Level {
    fn new() -> Self {
        Self {
            slots: vec![Vec::new(); SLOTS],
            used: [0; SLOTS / 64],
        }
    }

    #[inline]
    fn put(&mut self, slot: u64, key: Key) {
        let slot = slot as usize % SLOTS;
        self.slots[slot].push(key);
        self.used[slot / 64] |= 1 << (slot % 64);
    }

    /// The first used slot from `from` on.
    #[inline]
    fn first_used(&self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..SLOTS / 64 {
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
        self.used = [0; SLOTS / 64];
        self.slots.iter_mut().flat_map(|slot| slot.drain(..))
    }

    fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.slots.iter().flatten().copied()
    }
}

impl Wheel {
    /// An empty one for events after `taken_until`, nanoseconds.
    pub fn new(taken_until: u64) -> Self {
        Self {
            fine: Level::new(),
            coarse: Level::new(),
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
    #[inline]
    pub fn put(&mut self, key: Key) {
        self.waiting += 1;
        self.spread(key);
    }

    #[inline]
    fn spread(&mut self, key: Key) {
        let page = self.page_of(key);
        if page == self.page {
            self.fine.put(nanos(key) >> self.width, key);
        } else {
            self.coarse.put(page, key);
        }
    }

    /// Moves the events of the first slot that has any into `empty`, unsorted, and returns the last
    /// nanosecond that it spans; `inserted` is the latest insertion number.
    pub fn take_first(&mut self, empty: &mut Vec<Key>, inserted: u64) -> Option<u64> {
        self.taken += 1;
        if self.taken == TRIAL {
            self.judge_width(inserted);
        }
        let slot = match self.fine.first_used(0) {
            Some(slot) => slot,
            None => {
                self.turn()?;
                self.fine.first_used(0)?
            }
        };
        // The room of the run that is over serves the slot.
        mem::swap(&mut self.fine.slots[slot], empty);
        self.fine.note_empty(slot);
        self.waiting -= empty.len();
        let last = (self.page << LEVEL) | slot as u64;
        self.taken_until = (last << self.width) | ((1 << self.width) - 1);
        Some(self.taken_until)
    }

    /// The page is over: spreads the next one that holds something over the fine level. `None`:
    /// there is none.
    #[cold]
    fn turn(&mut self) -> Option<()> {
        let begin = (self.page + 1) as usize % SLOTS;
        let mut from = 0;
        let mut earliest = None;
        while from < SLOTS {
            // From the slot of the next page to the end, then from the first on.
            let at = (begin + from) % SLOTS;
            let end = if at >= begin { SLOTS } else { begin };
            let Some(slot) = self.coarse.first_used(at).filter(|s| *s < end) else {
                from += end - at;
                continue;
            };
            from += slot + 1 - at;
            let pages = self.coarse.slots[slot].iter().map(|k| self.page_of(*k));
            earliest = pages.chain(earliest).min();
            if earliest.is_some_and(|page| page - self.page <= SLOTS as u64) {
                break; // other slots hold later pages
            }
        }
        self.page = earliest?;
        let slot = self.page as usize % SLOTS;
        let mut waiting = mem::take(&mut self.coarse.slots[slot]);
        waiting.retain(|key| {
            let now = self.page_of(*key) == self.page;
            if now {
                self.fine.put(nanos(*key) >> self.width, *key);
            }
            !now
        });
        if waiting.is_empty() {
            self.coarse.note_empty(slot);
        }
        self.coarse.slots[slot] = waiting;
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
        let waiting: Vec<Key> = self.fine.drain().chain(self.coarse.drain()).collect();
        self.width = width;
        self.page = self.taken_until >> (width + LEVEL);
        for key in waiting {
            self.spread(key);
        }
    }

    /// The first event.
    pub fn first(&self) -> Option<Key> {
        self.fine.keys().chain(self.coarse.keys()).min()
    }

    /// Events in it.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes all of them out, unsorted.
    pub fn drain(&mut self) -> impl Iterator<Item = Key> + '_ {
        self.waiting = 0;
        self.fine.drain().chain(self.coarse.drain())
    }
}
