//! A windowed maximum in constant space, after Kathleen Nichols: of all samples of a window three
//! candidates are kept, the second and third of which are at hand when the maximum leaves it.
//!
//! Exact from a new maximum on until that leaves the window. What takes its place may be less than
//! the largest of what is left: candidates are spread over the window, and what came soon after one
//! was not kept. Every sample gives the maximum that Linux (`lib/win_minmax.c`) gives.

/// Maximum of a window whose clock is a count of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxFilter<T> {
    /// Largest first; each is as old as the one before it or newer, and larger than every sample
    /// that is newer still. A place that nothing has been found for repeats another one.
    candidates: [Sample<T>; PLACES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample<T> {
    at: u32,
    value: T,
}

const PLACES: usize = 3;

impl<T: Copy + PartialOrd> MaxFilter<T> {
    #[inline]
    pub(crate) fn get(&self) -> T {
        self.candidates[0].value
    }

    /// A sample taken at `at`; the window has length `window`.
    ///
    /// It takes the places of all candidates that it is as large as, because it will outlive them,
    /// and of those that have left the window.
    #[inline]
    pub(crate) fn update(&mut self, window: u32, at: u32, value: T) {
        let new = Sample { at, value };
        match self.count(|s| s.value > value) {
            0 => return self.candidates = [new; PLACES],
            PLACES => {}
            larger => self.candidates[larger..].fill(new),
        }
        let age = |s: &Sample<T>| at.wrapping_sub(s.at);
        let oldest = age(&self.candidates[0]);
        if oldest <= window {
            return self.spread(window, oldest, new);
        }
        let gone = self.count(|s| age(s) > window);
        self.candidates.copy_within(gone.., 0);
        self.candidates[PLACES - gone..].fill(new);
    }

    /// Leading candidates of which something is true.
    #[inline]
    fn count(&self, is: impl Fn(&Sample<T>) -> bool) -> usize {
        self.candidates.iter().take_while(|s| is(s)).count()
    }

    /// The maximum is `age` old. Candidates of one time would leave the window together: past a
    /// quarter of the window there is one that is newer than the maximum, past half of it one that
    /// is newer still.
    #[inline]
    fn spread(&mut self, window: u32, age: u32, new: Sample<T>) {
        for (place, least) in [(1, window / 4), (2, window / 2)] {
            let [before, this] = [place - 1, place].map(|k| self.candidates[k].at);
            if age > least && before == this {
                self.candidates[place..].fill(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// One sample per round, window 10: the maximum of the last 10 rounds and the present one.
    /// Where later samples are smaller, the successors come from the second quarter and the second
    /// half of the window.
    #[test]
    fn the_maximum_leaves_after_its_window() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 100);
        let seen: Vec<u32> = (1..=13)
            .map(|round| {
                filter.update(10, round, 90 - round);
                filter.get()
            })
            .collect();
        assert_eq!(seen[..10], [100; 10]);
        assert_eq!(
            seen[10], 87,
            "the first sample past a quarter of the window"
        );
        filter.update(10, 14, 200);
        assert_eq!(filter.get(), 200);
        filter.update(10, 25, 1);
        assert_eq!(filter.get(), 1, "nothing is left in the window");
    }

    /// Which samples are kept decides the rates of `bbr-linux`; the sums are those of Linux 6.1
    /// (`minmax_running_max`).
    #[test]
    fn maxima_of_random_samples() {
        let sum_of = |window, longest_gap: u64, spread| {
            let mut filter = MaxFilter::default();
            let (mut state, mut at, mut sum) = (1_u64, 0, 0_u64);
            let mut draw = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005);
                state = state.wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            for i in 0..100_000_u64 {
                at += draw(longest_gap + 1) as u32;
                filter.update(window, at, draw(spread));
                sum += filter.get() * (i % 7 + 1);
            }
            sum
        };
        let sums = [
            sum_of(10, 1, 1_000_000),
            sum_of(10, 2, 1000),
            sum_of(10, 6, 50),
            sum_of(3, 1, 1_000_000),
            sum_of(1, 1, 1000),
            sum_of(40, 12, 1_000_000),
        ];
        let expected = [
            381_571_894_999,
            365_329_550,
            15_655_533,
            350_837_554_721,
            308_670_086,
            349_150_120_075,
        ];
        assert_eq!(sums, expected);
    }

    proptest! {
        #[test]
        fn a_maximum_is_a_sample_of_the_window(
            window in 1..12_u32,
            steps in prop::collection::vec((0..5_u32, 0..40_u32), 1..200),
        ) {
            let mut filter = MaxFilter::default();
            let (mut at, mut all) = (0, Vec::new());
            for (gap, value) in steps {
                at += gap;
                all.push((at, value));
                filter.update(window, at, value);
                let left = all.iter().filter(|s| at - s.0 <= window).map(|s| s.1);
                let largest = left.clone().max();
                prop_assert!(left.clone().any(|v| v == filter.get()));
                prop_assert!(filter.get() >= value);
                if largest == all.iter().map(|s| s.1).max() {
                    prop_assert_eq!(Some(filter.get()), largest, "it has not left the window");
                }
            }
        }
    }
}
