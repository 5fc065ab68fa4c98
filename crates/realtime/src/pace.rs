//! How often a path wakes up: for each packet that is due while they are few, for all of a tick
//! when they are many.

use fullpipe_units::{Span, Time};

/// Counts what leaves, and says how long to sleep at least.
#[derive(Debug, Default)]
pub struct Pace {
    /// Packets that left in this window.
    count: u64,
    since: Time,
    grain: Span,
    /// The largest so far.
    coarsest: Span,
}

/// Shortest sleep while packets are many.
const TICK: Span = Span::from_micros(100);
const WINDOW: Span = Span::from_millis(20);
/// Packets per window from which a tick is cheaper than a wake-up for each, and below which it
/// ends.
const MANY: u64 = 400;
const NO_LONGER_MANY: u64 = 200;

impl Pace {
    /// Packets have left.
    pub fn count(&mut self, packets: u64) {
        self.count += packets;
    }

    /// Shortest sleep at the rate of the last window; zero: whatever is due is worth a wake-up.
    pub fn grain(&mut self, now: Time) -> Span {
        if now.saturating_since(self.since) >= WINDOW {
            if self.count >= MANY {
                self.grain = TICK;
            } else if self.count < NO_LONGER_MANY {
                self.grain = Span::ZERO;
            }
            self.coarsest = self.coarsest.max(self.grain);
            (self.since, self.count) = (now, 0);
        }
        self.grain
    }

    /// The longest of all [`Pace::grain`]s.
    pub fn coarsest(&self) -> Span {
        self.coarsest
    }
}
