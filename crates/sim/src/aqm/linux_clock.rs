//! The clock of Linux's queue disciplines: the time they read, and the ticks on which their timers
//! go off.

use fullpipe_flow::TimerClock;
use fullpipe_units::{Span, Time};

/// Time on the kernel's clock. A discipline is set up on a tick before time zero, from which its
/// timers count. How long before is nobody's to know on a real router; on ground `linux` it is
/// this, give or take a tick.
pub fn kernel_time(now: Time) -> Time {
    now + SET_UP
}

/// A timer of the kernel that is set again whenever it goes off.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    clock: TimerClock,
    /// Time on the kernel's clock at which it goes off next.
    next: Time,
    every: Span,
}

impl Ticker {
    /// Set half a second ahead at first (`pie_init`, `__red_change`), in a kernel with `hz` ticks
    /// a second.
    pub fn new(every: Span, hz: u32) -> Self {
        let clock = TimerClock::Wheel { hz };
        Self {
            clock,
            next: clock.after(Time::ZERO, FIRST),
            every,
        }
    }

    /// When it went off, if it did by `now` and nobody asked yet.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        let at = self.next;
        if kernel_time(now) < at {
            return None;
        }
        self.next = self.clock.after(at, self.every);
        // Before time zero nothing happens.
        Some(Time::ZERO + at.saturating_since(Time::ZERO + SET_UP))
    }
}

const SET_UP: Span = Span::from_millis(200);
const FIRST: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// 15 ms are four ticks at 250 a second, and a timer goes off on the tick after its last
    /// (`calc_index` in kernel/time/timer.c). Half a second is 125 ticks, beyond 63 of which timers
    /// go off on every eighth: 128.
    #[test]
    fn timers_go_off_on_the_ticks_of_the_kernel() {
        let ms = |t: Time| t.as_nanos() / 1_000_000;
        let times = |every, hz| {
            let mut ticker = Ticker::new(Span::from_millis(every), hz);
            let end = Time::from_nanos(2_000_000_000);
            let all = std::iter::from_fn(|| ticker.due(end)).map(ms);
            all.take(3).collect::<Vec<_>>()
        };
        assert_eq!(times(15, 250), [312, 332, 352]);
        assert_eq!(times(500, 250), [312, 824, 1336]);
        assert_eq!(times(15, 1000), [304, 320, 336]);
        let mut ticker = Ticker::new(Span::from_millis(15), 250);
        assert_eq!(ticker.due(Time::from_nanos(311_999_999)), None);
        assert!(ticker.due(Time::from_nanos(312_000_000)).is_some());
        assert_eq!(ticker.due(Time::from_nanos(312_000_000)), None);
    }
}
