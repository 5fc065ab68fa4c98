//! Counts per interval of the run.

use fullpipe_units::{Span, Time};

/// One counter per interval since time zero.
#[derive(Clone, Debug)]
pub struct PerInterval {
    width: Span,
    counts: Vec<u64>,
}

impl PerInterval {
    /// Intervals of this width, above zero.
    pub fn new(width: Span) -> Self {
        Self {
            width,
            counts: Vec::new(),
        }
    }

    /// Adds `n` at `now`.
    #[inline]
    pub fn add(&mut self, now: Time, n: u64) {
        let i = (now.as_nanos() / self.width.as_nanos()) as usize;
        if i >= self.counts.len() {
            self.counts.resize(i + 1, 0);
        }
        self.counts[i] += n;
    }

    /// One count per interval until `end`, the last possibly shorter; what came at `end` itself
    /// belongs to the last.
    pub fn finish(mut self, end: Time) -> Vec<u64> {
        let n = end.as_nanos().div_ceil(self.width.as_nanos()) as usize;
        let beyond: u64 = self.counts.iter().skip(n).sum();
        self.counts.resize(n, 0);
        if let Some(last) = self.counts.last_mut() {
            *last += beyond;
        }
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_at_the_edges() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut c = PerInterval::new(Span::from_millis(10));
        for ms in [0, 9, 10, 35, 40] {
            c.add(at(ms), 1);
        }
        assert_eq!(c.clone().finish(at(40)), [2, 1, 0, 2]);
        assert_eq!(c.clone().finish(at(45)), [2, 1, 0, 1, 1]);
        assert_eq!(
            PerInterval::new(Span::from_millis(10)).finish(at(25)),
            [0, 0, 0]
        );
    }
}
