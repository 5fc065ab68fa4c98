//! Waking up in time: a processor that halts takes its time to run again, and what is known of that
//! time is spent awake.
//!
//! In a virtual machine it is some 50 us.

use fullpipe_units::Span;

/// How late timed wake-ups are here, and how much sooner to wake up for it.
#[derive(Clone, Debug, Default)]
pub struct Alert {
    /// Smoothed, quick to rise.
    late: Span,
}

impl Alert {
    /// How long before the end of a wait of `span` to wake up: a quarter of the processor at most.
    pub fn early(&self, span: Span) -> Span {
        match span >= SHORTEST {
            true => self.late.min(MOST),
            false => Span::ZERO,
        }
    }

    /// A wake-up that nothing but the clock has caused was so late.
    pub fn woke(&mut self, late: Span) {
        let known = self.late;
        self.late = match late > known {
            true => known + (late - known) / 4,
            false => known - (known - late) / 16,
        };
    }
}

/// Longest time spent awake.
const MOST: Span = Span::from_micros(100);
/// Shortest wait that is worth it.
const SHORTEST: Span = Span::from_micros(400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_that_are_late_come_sooner() {
        let us = Span::from_micros;
        let mut alert = Alert::default();
        assert_eq!(alert.early(us(1000)), Span::ZERO);
        for _ in 0..50 {
            alert.woke(us(60));
        }
        let early = alert.early(us(1000)).as_nanos();
        assert!((59_000..=60_000).contains(&early), "{early}");
        assert_eq!(alert.early(us(399)), Span::ZERO);
        for _ in 0..50 {
            alert.woke(us(900));
        }
        assert_eq!(alert.early(us(400)), us(100));
        for _ in 0..500 {
            alert.woke(us(5));
        }
        assert!(alert.early(us(1000)) < us(6));
    }
}
