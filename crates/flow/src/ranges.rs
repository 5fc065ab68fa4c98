//! A set of segment numbers as disjoint, sorted ranges: what the receiver holds out of order, what
//! the sender knows is SACKed.
//!
//! Changes come almost only at the two ends (new data at the back, repairs at the front). Ranges
//! lie in one slice, so that looking one up is a matter of a few comparisons; what the front has
//! lost is given back in blocks, so that either end changes in constant time whatever the window.

/// Half-open range of segment numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Range {
    /// First segment.
    pub start: u64,
    /// One past the last segment.
    pub end: u64,
}

impl Range {
    /// No segment.
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// One segment.
    pub fn one(seq: u64) -> Self {
        Self {
            start: seq,
            end: seq + 1,
        }
    }

    /// Number of segments.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// Ranges below the highest that a look-up tries one by one: an ACK reports up to four blocks.
const NEAR: usize = 3;

/// From so many ranges on that are no more, half of all, their place is given back.
const MOST_GONE: usize = 16;

/// Disjoint, non-adjacent, sorted ranges.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<Range>,
    /// Ranges at the front that are no more.
    gone: usize,
}

impl RangeSet {
    /// The ranges, the lowest first.
    #[inline]
    fn held(&self) -> &[Range] {
        &self.ranges[self.gone..]
    }

    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.len() == self.gone
    }

    /// Number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len() - self.gone
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range> {
        self.held().first().copied()
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range> {
        self.held().last().copied()
    }

    /// Ranges from the highest down.
    pub fn rev(&self) -> impl Iterator<Item = Range> + '_ {
        self.held().iter().rev().copied()
    }

    /// The range that holds `seq`.
    #[inline]
    pub fn holding(&self, seq: u64) -> Option<Range> {
        match self.held() {
            [below @ .., last] if seq < last.start => holding(below, seq),
            [.., last] if seq < last.end => Some(*last),
            _ => None,
        }
    }

    /// Adds `range`, which holds something, if nothing of the set but its highest range reaches as
    /// far as the beginning of `range`, as with new data; returns what of it was not in the set,
    /// which may be nothing. `None`: something may reach as far, and nothing is added.
    #[inline]
    pub fn add_at_end(&mut self, range: Range) -> Option<Range> {
        match self.ranges[self.gone..].last_mut() {
            Some(last) if range.start < last.start => None,
            Some(last) if range.start <= last.end => {
                let new = Range {
                    start: last.end,
                    end: range.end,
                };
                last.end = last.end.max(range.end);
                Some(new)
            }
            _ => {
                self.append(range);
                Some(range)
            }
        }
    }

    /// Adds `range` and returns the range of the set that holds it now; calls `new` with every part
    /// of it that was not in the set.
    #[inline]
    pub fn insert(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        if range.is_empty() {
            return range;
        }
        match self.ranges[self.gone..].last_mut() {
            Some(last) if range.start < last.start => self.insert_below(range, new),
            Some(last) if range.start <= last.end => {
                if range.end > last.end {
                    let added = Range {
                        start: last.end,
                        end: range.end,
                    };
                    last.end = range.end;
                    let last = *last;
                    new(added);
                    return last;
                }
                *last
            }
            _ => {
                self.append(range);
                new(range);
                range
            }
        }
    }

    /// Adds `seq` if it follows the highest range; true if it does.
    #[inline]
    pub fn extend_last(&mut self, seq: u64) -> bool {
        let last = self.ranges[self.gone..].last_mut();
        let last = last.filter(|r| r.end == seq);
        last.map(|r| r.end += 1).is_some()
    }

    /// Adds a range above all others. Before the slice grows, the places of those that are no more
    /// are used again, if that is worth moving the rest.
    fn append(&mut self, range: Range) {
        if self.ranges.len() == self.ranges.capacity() && 4 * self.gone >= self.ranges.len() {
            self.give_back();
        }
        self.ranges.push(range);
    }

    fn give_back(&mut self) {
        self.ranges.drain(..self.gone);
        self.gone = 0;
    }

    /// The same for a range that begins below the highest one.
    fn insert_below(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        // First range that touches or follows the new one.
        let i = self.gone + self.held().partition_point(|r| r.end < range.start);
        let mut merged = range;
        let mut at = range.start;
        let mut j = i;
        while let Some(r) = self.ranges.get(j).filter(|r| r.start <= range.end) {
            if r.start > at {
                new(Range {
                    start: at,
                    end: r.start,
                });
            }
            at = at.max(r.end);
            merged.start = merged.start.min(r.start);
            merged.end = merged.end.max(r.end);
            j += 1;
        }
        if at < range.end {
            new(Range {
                start: at,
                end: range.end,
            });
        }
        if j == i {
            self.make_room(i, merged);
        } else {
            self.ranges[j - 1] = merged;
            self.close_gap(i, j - 1);
        }
        merged
    }

    /// Puts `range` before the one at `i`; the shorter side makes room, if there is some.
    fn make_room(&mut self, i: usize, range: Range) {
        if self.gone > 0 && i - self.gone < self.ranges.len() - i {
            self.ranges.copy_within(self.gone..i, self.gone - 1);
            self.gone -= 1;
            self.ranges[i - 1] = range;
        } else {
            self.ranges.insert(i, range);
        }
    }

    /// Takes out those from `from` up to `to` (exclusive); the shorter side closes up.
    fn close_gap(&mut self, from: usize, to: usize) {
        if from - self.gone < self.ranges.len() - to {
            let gap = to - from;
            self.ranges.copy_within(self.gone..from, self.gone + gap);
            self.gone += gap;
        } else {
            self.ranges.drain(from..to);
        }
    }

    /// Forgets everything below `seq`.
    #[inline]
    pub fn trim_below(&mut self, seq: u64) {
        while let Some(first) = self.ranges.get_mut(self.gone) {
            if first.end > seq {
                first.start = first.start.max(seq);
                break;
            }
            self.gone += 1;
        }
        if self.gone >= MOST_GONE && 2 * self.gone >= self.ranges.len() {
            self.give_back();
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.gone = 0;
    }
}

/// The one of these ranges that holds `seq`. What is asked for is near either end: the newest
/// blocks, or the hole being repaired.
fn holding(ranges: &[Range], seq: u64) -> Option<Range> {
    let (far, near) = ranges.split_at(ranges.len().saturating_sub(NEAR));
    for r in near.iter().rev() {
        if seq >= r.start {
            return (seq < r.end).then_some(*r);
        }
    }
    let first = far.first()?;
    if seq < first.end {
        return (seq >= first.start).then_some(*first);
    }
    let i = far.partition_point(|r| r.end <= seq);
    far.get(i).filter(|r| r.start <= seq).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a plain set: the same members, `new` reports exactly the added ones, ranges stay
        /// disjoint and apart.
        #[test]
        fn behaves_like_a_set(
            ops in prop::collection::vec((0u64..200, 1u64..20, any::<bool>()), 1..60),
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, len, trim) in ops {
                if trim {
                    set.trim_below(start);
                    model = model.split_off(&start);
                    continue;
                }
                let (mut added, all) = (Vec::new(), start..start + len);
                let mut ended = set.clone();
                let at_end = ended.add_at_end(Range { start, end: all.end });
                let top = set.last().map_or(0, |r| r.start);
                prop_assert_eq!(at_end.is_some(), start >= top);
                let follows = set.last().is_some_and(|r| r.end == start);
                let [mut longer, mut one_more] = [(); 2].map(|()| set.clone());
                prop_assert_eq!(longer.extend_last(start), follows);
                if follows {
                    one_more.insert(Range::one(start), |_| {});
                }
                prop_assert_eq!(longer.held(), one_more.held());
                let held = set.insert(Range { start, end: all.end }, |r| {
                    added.extend(r.start..r.end);
                });
                let expected: Vec<u64> = all.clone().filter(|s| !model.contains(s)).collect();
                prop_assert_eq!(&added, &expected);
                if let Some(new) = at_end {
                    prop_assert_eq!((new.start..new.end).collect::<Vec<_>>(), expected);
                    prop_assert_eq!(ended.held(), set.held());
                }
                model.extend(all.clone());
                let members: Vec<u64> = set.held().iter().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(&members, &model.iter().copied().collect::<Vec<_>>());
                let next = set.held().iter().skip(1);
                prop_assert!(set.held().iter().zip(next).all(|(a, b)| a.end < b.start));
                prop_assert_eq!(set.holding(start), Some(held));
                prop_assert!(held.start <= start && held.end >= all.end);
                for seq in 0..230 {
                    let holds = set.holding(seq).map(|r| r.start <= seq && seq < r.end);
                    prop_assert_eq!(holds, model.contains(&seq).then_some(true), "{}", seq);
                }
            }
        }
    }
}
