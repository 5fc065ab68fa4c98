//! When the next segment may leave: spreading of the initial window, then pacing of the connection if wanted.
//!
//! Virtual scheduling: each segment moves the next send time by its length over the rate; lateness is credited up to a
//! quantum of 2 segments or 1 ms of data, whichever is larger.

use fullpipe_units::{Span, Time};

/// Release times.
#[derive(Clone, Debug)]
pub struct Pacer {
    next: Time,
    /// Spreading: segments of the initial window still to be spaced, and their gap.
    spread_left: u64,
    spread_gap: Span,
}

impl Pacer {
    /// Nothing is held back.
    pub fn new() -> Self {
        Self {
            next: Time::ZERO,
            spread_left: 0,
            spread_gap: Span::ZERO,
        }
    }

    /// Spread the first `segments` segments by `gap` from now on (Initial Spreading 2014).
    pub fn spread(&mut self, now: Time, segments: u64, gap: Span) {
        if gap > Span::ZERO {
            self.spread_left = segments;
            self.spread_gap = gap;
            self.next = now;
        }
    }

    /// Segments of the initial window are still to be spaced.
    #[inline]
    pub fn is_spreading(&self) -> bool {
        self.spread_left > 0
    }

    /// A loss, a timeout or a mark ends spreading: the rest is ACK-clocked.
    pub fn end_spreading(&mut self) {
        if self.spread_left > 0 {
            self.spread_left = 0;
            self.next = Time::ZERO;
        }
    }

    /// Earliest time of the next segment.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// A segment leaves now; `gap` is its length over the pacing rate, if the connection is paced.
    #[inline]
    pub fn on_sent(&mut self, now: Time, gap: Option<Span>) {
        if self.spread_left > 0 {
            self.spread_left -= 1;
            self.next = if self.spread_left > 0 {
                self.next.max(now) + self.spread_gap
            } else {
                Time::ZERO
            };
        } else if let Some(gap) = gap {
            let credit = (gap * 2).max(Span::from_millis(1));
            self.next = self.next.max(now - credit) + gap;
        }
    }
}
