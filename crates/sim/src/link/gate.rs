//! The entry of a link: random loss, that may change over time, then the policer.

use fullpipe_run::{ComponentRng, LinkSpec, Loss, LossProcess, Policer};
use fullpipe_units::Time;

use super::meter::Meter;
use crate::packet::Packet;

/// What a packet meets before the queue.
#[derive(Debug)]
pub struct Gate {
    loss: LossProcess,
    /// Later losses, the next one at the back.
    changes: Vec<(Time, Loss)>,
    loss_of_acks: bool,
    policer: Option<Bucket>,
}

impl Gate {
    /// The entry of a link in the run with `seed`.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        let changes = spec.schedule.iter().rev();
        Self {
            loss: LossProcess::new(spec.loss, ComponentRng::new(seed, &spec.name)),
            changes: changes.filter_map(|c| Some((c.at, c.loss?))).collect(),
            loss_of_acks: spec.loss_of_acks,
            policer: spec.policer.map(Bucket::new),
        }
    }

    /// True if the packet passes; counts it otherwise.
    pub fn passes(&mut self, now: Time, packet: &Packet, meter: &mut Meter) -> bool {
        while let Some((_, loss)) = self.changes.pop_if(|c| c.0 <= now) {
            self.loss.change(loss);
        }
        if (self.loss_of_acks || packet.bears_data()) && self.loss.drops() {
            meter.random_drops += 1;
            return false;
        }
        if let Some(bucket) = &mut self.policer
            && !bucket.takes(now, packet.size())
        {
            meter.policer_drops += 1;
            return false;
        }
        true
    }
}

/// A token bucket. Tokens are bits times a second's nanoseconds, so that they are whole.
#[derive(Debug)]
struct Bucket {
    rate: u128,
    depth: u128,
    tokens: u128,
    at: Time,
}

/// Tokens of a byte.
const BYTE: u128 = 8_000_000_000;

impl Bucket {
    fn new(policer: Policer) -> Self {
        let depth = u128::from(policer.burst) * BYTE;
        Self {
            rate: u128::from(policer.rate.as_bits_per_sec()),
            depth,
            tokens: depth,
            at: Time::ZERO,
        }
    }

    fn takes(&mut self, now: Time, size: u16) -> bool {
        let gained = self.rate * u128::from((now - self.at).as_nanos());
        self.at = now;
        self.tokens = (self.tokens + gained).min(self.depth);
        let needs = u128::from(size) * BYTE;
        let takes = self.tokens >= needs;
        if takes {
            self.tokens -= needs;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::{Rate, Span};

    /// Arrivals every `gap` for a second into 1 Mbit/s with a bucket of ten packets: rate times
    /// time plus the burst pass.
    #[test]
    fn rate_times_time_plus_burst_passes() {
        for gap_us in [100, 1000, 7919] {
            let mut bucket = Bucket::new(Policer {
                rate: Rate::from_bits_per_sec(1_000_000),
                burst: 12_500,
            });
            let gap = Span::from_micros(gap_us);
            let n = 1_000_000 / gap_us;
            let passed = (0..n)
                .filter(|i| bucket.takes(Time::ZERO + gap * *i, 1250))
                .count() as u64;
            let last = Span::from_micros(gap_us * (n - 1)).as_secs_f64();
            // A packet is 10 kbit: 100 a second.
            assert_eq!(passed, (10 + (100.0 * last) as u64).min(n), "{gap_us}");
        }
    }

    #[test]
    fn an_idle_bucket_is_no_deeper_than_its_depth() {
        let mut bucket = Bucket::new(Policer {
            rate: Rate::from_bits_per_sec(1_000_000_000),
            burst: 3000,
        });
        let late = Time::ZERO + Span::from_secs(100);
        let passed = (0..5).filter(|_| bucket.takes(late, 1500)).count();
        assert_eq!(passed, 2);
    }
}
