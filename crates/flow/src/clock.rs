//! The tick-grained clock of a kernel's timers (Linux `kernel/time/timer.c`).
//!
//! A timer is set in whole ticks from the last one, so it may not end on the tick that rounding
//! gives: one more passes. Timers of 63 ticks and more live on coarser levels, each eight times as
//! coarse as the one before.

use fullpipe_units::{Span, Time};

use crate::config::TimerGrain;

/// When timers of a host go off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Exactly when they are due.
    Exact,
    /// On ticks, `hz` a second.
    Wheel {
        /// Ticks per second.
        hz: u32,
    },
}

impl TimerClock {
    /// A clock of a grain.
    pub fn new(grain: TimerGrain, hz: u32) -> Self {
        match grain {
            TimerGrain::Exact => Self::Exact,
            TimerGrain::Wheel => Self::Wheel { hz },
        }
    }

    /// When a timer set at `now` for `span` goes off.
    #[inline]
    pub fn after(self, now: Time, span: Span) -> Time {
        match self {
            Self::Exact => now + span,
            Self::Wheel { hz } => wheel(now, span, hz),
        }
    }

    /// The whole ticks that fit into a span (`nsecs_to_jiffies`).
    pub fn whole_ticks(self, span: Span) -> Span {
        match self {
            Self::Exact => span,
            Self::Wheel { hz } => {
                let tick = NANOS / u64::from(hz);
                Span::from_nanos(span.as_nanos() / tick * tick)
            }
        }
    }
}

/// When a timer set at `now` for `span` goes off on a clock of `hz` ticks per second.
#[inline(never)] // so that exact timers, which are the rule, cost a comparison and a sum
fn wheel(now: Time, span: Span, hz: u32) -> Time {
    let tick = NANOS / u64::from(hz);
    let ticks = span.as_nanos().div_ceil(tick);
    let mut grain = 1;
    // Levels begin at 63, 504, 4032, ... ticks.
    while ticks >= FIRST_LEVEL * grain {
        grain *= 8;
    }
    let end = now.as_nanos() / tick + ticks;
    Time::from_nanos((end / grain + 1) * grain * tick)
}

const NANOS: u64 = 1_000_000_000;
const FIRST_LEVEL: u64 = 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(now_us: u64, span_ms: u64, hz: u32) -> u64 {
        let now = Time::from_nanos(now_us * 1000);
        wheel(now, Span::from_millis(span_ms), hz).as_nanos() / 1_000_000
    }

    #[test]
    fn a_timer_waits_for_the_tick_after_its_last() {
        assert_eq!(at_ms(0, 40, 100), 50);
        assert_eq!(at_ms(9_999, 40, 100), 50);
        assert_eq!(at_ms(10_000, 40, 100), 60);
        assert_eq!(at_ms(10_000, 41, 100), 70);
        assert_eq!(at_ms(0, 40, 1000), 41);
    }

    #[test]
    fn long_timers_end_on_every_eighth_tick() {
        assert_eq!(at_ms(0, 620, 100), 630);
        assert_eq!(at_ms(0, 630, 100), 640);
        assert_eq!(at_ms(20_000, 630, 100), 720);
    }
}
