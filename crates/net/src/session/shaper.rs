//! The granted rate, kept by whoever sends.

use fullpipe_units::{Rate, Span, Time};

/// Token bucket for outgoing bytes; it may be overdrawn by one batch.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    rate: f64,
    depth: f64,
    bits: f64,
    last: Time,
}

impl Shaper {
    /// Depth of the bucket as a time at the configured rate.
    const DEPTH: Span = Span::from_millis(4);

    /// For this rate, in bit/s on the wire.
    pub fn new(rate: Rate, now: Time) -> Self {
        let rate = (rate.as_bits_per_sec() as f64).max(1.0);
        // Two full packets at the least.
        let depth = (rate * Self::DEPTH.as_secs_f64()).max(24_000.0);
        Self {
            rate,
            depth,
            bits: depth,
            last: now,
        }
    }

    pub(crate) fn spend(&mut self, bytes: u64) {
        self.bits -= bytes as f64 * 8.0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits < 0.0
    }

    /// When it is no longer in debt; `None`: it is not.
    pub(crate) fn refill(&mut self, now: Time) -> Option<Time> {
        let gain = now.saturating_since(self.last).as_secs_f64() * self.rate;
        self.bits = (self.bits + gain).min(self.depth);
        self.last = self.last.max(now);
        self.is_empty()
            .then(|| now + Span::from_secs_f64(-self.bits / self.rate).max(Span::from_micros(10)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_lets_through_its_rate_and_a_bucket() {
        let mut shaper = Shaper::new(Rate::from_bits_per_sec(10_000_000), Time::ZERO);
        let (mut now, mut sent) = (Time::ZERO, 0u64);
        let end = Time::ZERO + Span::from_secs(10);
        while now < end {
            match shaper.refill(now) {
                Some(later) => {
                    assert!(later > now);
                    now = later;
                }
                None => {
                    shaper.spend(1500);
                    sent += 1500;
                }
            }
        }
        let rate = sent as f64 * 8.0 / 10.0;
        assert!((rate / 1e7 - 1.0).abs() < 0.01, "{rate}");
    }
}
