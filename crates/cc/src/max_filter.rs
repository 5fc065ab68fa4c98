//! A windowed maximum after Kathleen Nichols, as Linux `lib/win_minmax.c` has it: the three best
//! samples of a window, so that the next best is at hand when the best leaves it.

/// Maximum of a window whose clock is a count of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxFilter<T> {
    /// Best first; each is newer than the one before it, or the same.
    best: [Sample<T>; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample<T> {
    at: u32,
    value: T,
}

impl<T: Copy + PartialOrd> MaxFilter<T> {
    #[inline]
    pub(crate) fn get(&self) -> T {
        self.best[0].value
    }

    /// `minmax_running_max`: a sample taken at `at`; the window has length `window`.
    #[inline]
    pub(crate) fn update(&mut self, window: u32, at: u32, value: T) {
        let new = Sample { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at.wrapping_sub(third.at) > window {
            self.best = [new; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        self.age(window, new);
    }

    /// `minmax_subwin_update`: samples that left the window make room, and a maximum that has stood
    /// for a quarter or half of it gets successors from what came later.
    fn age(&mut self, window: u32, new: Sample<T>) {
        let [first, second, third] = &mut self.best;
        let age = new.at.wrapping_sub(first.at);
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if new.at.wrapping_sub(first.at) > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.at == first.at && age > window / 4 {
            (*second, *third) = (new, new);
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One sample per round, window 10: the maximum of the last 10 rounds and the present one.
    /// Where later samples are smaller, the successors come from the second quarter and the second
    /// half of the window, as the comment in `win_minmax.c` has it.
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
}
