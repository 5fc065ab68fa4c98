//! A set of segment numbers as disjoint, sorted ranges: what the receiver holds out of order, what
//! the sender knows is SACKed.
//!
//! Changes come almost only at the two ends (new data at the back, repairs at the front), so a
//! deque of ranges makes them constant time whatever the window.

use std::collections::VecDeque;

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

    /// Number of segments.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// Ranges from the highest down that a look-up tries one by one: an ACK reports up to four.
const NEAR: usize = 4;

/// Disjoint, non-adjacent, sorted ranges.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: VecDeque<Range>,
}

impl RangeSet {
    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// Ranges from the highest down.
    pub fn rev(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// The range that holds `seq`.
    #[inline]
    pub fn holding(&self, seq: u64) -> Option<Range> {
        match self.ranges.back() {
            Some(last) if seq < last.start => self.holding_below(seq),
            Some(last) if seq < last.end => Some(*last),
            _ => None,
        }
    }

    /// The same for a number below the highest range.
    fn holding_below(&self, seq: u64) -> Option<Range> {
        // What is asked for is near either end: the newest blocks, or the hole being repaired.
        for r in self.ranges.iter().rev().take(NEAR).skip(1) {
            if seq >= r.start {
                return (seq < r.end).then_some(*r);
            }
        }
        let first = self.ranges.front()?;
        if seq < first.end {
            return (seq >= first.start).then_some(*first);
        }
        let i = self.ranges.partition_point(|r| r.end <= seq);
        self.ranges.get(i).filter(|r| r.start <= seq).copied()
    }

    /// Adds `range` and returns the range of the set that holds it now; calls `new` with every part
    /// of it that was not in the set.
    #[inline]
    pub fn insert(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        if range.is_empty() {
            return range;
        }
        match self.ranges.back_mut() {
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
                self.ranges.push_back(range);
                new(range);
                range
            }
        }
    }

    /// The same for a range that begins below the highest one.
    fn insert_below(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        // First range that touches or follows the new one.
        let i = self.ranges.partition_point(|r| r.end < range.start);
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
            self.ranges.insert(i, merged);
        } else {
            self.ranges[i] = merged;
            if j > i + 1 {
                self.ranges.drain(i + 1..j);
            }
        }
        merged
    }

    /// Forgets everything below `seq`.
    #[inline]
    pub fn trim_below(&mut self, seq: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end <= seq {
                self.ranges.pop_front();
            } else {
                first.start = first.start.max(seq);
                return;
            }
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
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
                let held = set.insert(Range { start, end: all.end }, |r| {
                    added.extend(r.start..r.end);
                });
                let expected: Vec<u64> = all.clone().filter(|s| !model.contains(s)).collect();
                prop_assert_eq!(&added, &expected);
                model.extend(all.clone());
                let members: Vec<u64> = set.ranges.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(&members, &model.iter().copied().collect::<Vec<_>>());
                let next = set.ranges.iter().skip(1);
                prop_assert!(set.ranges.iter().zip(next).all(|(a, b)| a.end < b.start));
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
