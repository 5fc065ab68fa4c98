//! A host that only answers waits a little while datagrams arrive in quick succession, as a network
//! card does before it interrupts: waking up for each costs sender and receiver more than the
//! datagram itself.

use fullpipe_units::{Span, Time};

/// Time since the last arrivals, which decides how long to gather a batch.
#[derive(Debug)]
pub struct Batching {
    /// When the last ones were taken in.
    last: Time,
}

impl Batching {
    /// Before the first one.
    pub fn new() -> Self {
        Self { last: Time::ZERO }
    }

    /// Some datagrams were taken in at `now`. How long to let further ones gather; `None`: not at
    /// all, because they are slow, or so many that they gather by themselves.
    #[inline]
    pub fn pause(&mut self, now: Time, arrived: usize) -> Option<Span> {
        let since = now.saturating_since(self.last).as_nanos();
        self.last = now;
        let apart = since / (arrived as u64).max(1);
        let gather = apart < QUICK.as_nanos() && arrived < ENOUGH as usize;
        gather.then(|| Span::from_nanos(ENOUGH * apart).min(LONGEST))
    }
}

/// Datagrams further apart are answered as they come: 1.2 Gbit/s of full packets.
const QUICK: Span = Span::from_micros(10);
/// Datagrams worth waking up for.
const ENOUGH: u64 = 16;
/// Longest pause: it delays an ACK.
const LONGEST: Span = Span::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Time {
        Time::from_nanos(n * 1000)
    }

    #[test]
    fn only_quick_ones_gather_and_not_for_long() {
        let mut gathering = Batching::new();
        assert_eq!(gathering.pause(us(1000), 1), None);
        assert_eq!(gathering.pause(us(1010), 1), None);
        assert_eq!(gathering.pause(us(1019), 1), Some(LONGEST));
        assert_eq!(gathering.pause(us(1021), 1), Some(Span::from_micros(32)));
        assert_eq!(gathering.pause(us(1051), 15), Some(Span::from_micros(32)));
        assert_eq!(gathering.pause(us(1083), 16), None);
    }
}
