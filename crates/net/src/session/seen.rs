//! Which numbers have come: nothing counts twice (the window of RFC 4303 section 3.4.3; RFC 6479).

/// The latest `64 * WORDS` numbers up to the highest, each as a bit; what is older counts as seen.
#[derive(Debug)]
pub struct Seen<const WORDS: usize> {
    /// One more than the highest.
    end: u64,
    bits: [u64; WORDS],
}

impl<const WORDS: usize> Default for Seen<WORDS> {
    fn default() -> Self {
        Self {
            end: 0,
            bits: [0; WORDS],
        }
    }
}

impl<const WORDS: usize> Seen<WORDS> {
    /// How far behind the highest a number may come and still count.
    const WINDOW: u64 = 64 * WORDS as u64;

    /// One more than the highest that has come; 0 if none has.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// True if `number` would count.
    #[inline]
    pub fn is_new(&self, number: u64) -> bool {
        match number < self.end {
            true => self.end - number <= Self::WINDOW && !self.has(number),
            // One more than it has to exist.
            false => number != u64::MAX,
        }
    }

    /// True if `number` counts: it has not come before and is not too old to tell.
    #[inline]
    pub fn take(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number >= self.end {
            // What was above the highest so far has not come.
            if number - self.end >= Self::WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.end..number).for_each(|n| self.clear(n));
            }
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
        true
    }

    fn place(number: u64) -> (usize, u64) {
        (((number % Self::WINDOW) / 64) as usize, 1 << (number % 64))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.bits[word] & bit != 0
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.bits[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = 1024;

    #[test]
    fn the_last_number_there_is_never_counts() {
        let mut seen = Seen::<1>::default();
        assert!(seen.take(u64::MAX - 1) && !seen.take(u64::MAX));
        assert!(seen.take(u64::MAX - 64) && !seen.take(u64::MAX - 65));
    }

    proptest! {
        /// Against a set of all numbers.
        #[test]
        fn numbers_count_as_a_set_would_say(steps in proptest::collection::vec((any::<bool>(), 0u64..3000), 1..400)) {
            let (mut seen, mut all, mut end) = (Seen::<16>::default(), HashSet::new(), 0u64);
            for (ahead, by) in steps {
                let number = if ahead { end + by } else { end.saturating_sub(by) };
                let counts = number + WINDOW >= end && all.insert(number);
                prop_assert_eq!(seen.is_new(number), counts);
                prop_assert_eq!(seen.take(number), counts, "{} of {}", number, end);
                end = end.max(number + 1);
            }
        }
    }
}
