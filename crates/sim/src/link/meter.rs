//! What a link counts, and the checks at its end. A packet is booked when its departure is known;
//! what lies beyond the run is cut off there.

use fullpipe_run::{Histogram, LinkOutcome, LinkSpec, QueueSample, RunSpec};
use fullpipe_units::{Span, Time};

/// What the run asks of every link.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Means and maxima count from here.
    pub measure_from: Time,
    /// End of the run.
    pub end: Time,
    /// Between two samples of the queue; [`Span::MAX`]: none.
    pub sample_step: Span,
}

impl Watch {
    /// Queues are sampled as [`RunSpec::queue_step`] says.
    pub fn new(spec: &RunSpec) -> Self {
        Self {
            measure_from: spec.measure_from,
            end: Time::ZERO + spec.duration,
            sample_step: spec.queue_step(),
        }
    }
}

/// Counters of one link, in the order of use.
#[derive(Debug)]
#[repr(C)]
pub struct Meter {
    /// Packets that left before the measured part, or no transmitter at all. They and their bytes
    /// stand apart: two sums in neighbouring words would be made in a vector register, for more
    /// than they cost.
    passed: u64,
    pub offered: u64,
    passed_bytes: u64,
    /// Packets and bytes that leave in the measured part.
    measured: u64,
    measure_from: Time,
    measured_bytes: u64,
    end: Time,
    /// Packet-nanoseconds since `measure_from`.
    queue_area: u128,
    queueing_delay: Histogram,
    watched: bool,
    pub buffer_drops: u64,
    pub random_drops: u64,
    pub policer_drops: u64,
    pub early_drops: u64,
    pub ties: u64,
    pub marks: u64,
    queue_max: u64,
    /// Packets that enter before `measure_from` and leave after it.
    there_at_begin: u64,
    is_sampled: bool,
    /// Extremes of the queue since the last sample.
    low: u64,
    high: u64,
    samples: Vec<QueueSample>,
}

/// Lengths of the queue that tell nothing new until a time.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    pub least: u64,
    pub most: u64,
    pub until: Time,
}

/// How a link ended, for the balance.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// Packets whose departure was booked, those after the end included.
    pub booked: u64,
    /// Packets that wait without a departure yet.
    pub queued: u64,
    /// Bytes that the transmitter could have sent from `measure_from` to the end; `None` if nothing
    /// limits it.
    pub capacity: Option<f64>,
}

impl Meter {
    /// All counters at zero.
    pub fn new(spec: &LinkSpec, watch: &Watch) -> Self {
        Self {
            measure_from: watch.measure_from.min(watch.end),
            end: watch.end,
            watched: spec.watched,
            offered: 0,
            buffer_drops: 0,
            random_drops: 0,
            policer_drops: 0,
            early_drops: 0,
            ties: 0,
            marks: 0,
            passed: 0,
            passed_bytes: 0,
            measured: 0,
            measured_bytes: 0,
            queue_max: 0,
            there_at_begin: 0,
            queue_area: 0,
            queueing_delay: Histogram::default(),
            is_sampled: watch.sample_step < Span::MAX,
            low: 0,
            high: 0,
            samples: Vec::new(),
        }
    }

    /// The measured part of the run.
    pub fn measured(&self) -> (Time, Time) {
        (self.measure_from, self.end)
    }

    /// A packet passes without a transmitter.
    #[inline(always)]
    pub fn pass(&mut self, size: u16) {
        self.passed += 1;
        self.passed_bytes += u64::from(size);
    }

    /// A packet entered at `entered` is sent from `begins` to `departs`.
    #[inline(always)]
    pub fn book(&mut self, entered: Time, begins: Time, departs: Time, size: u16) {
        if entered < self.measure_from || departs > self.end {
            return self.book_at_an_edge(entered, begins, departs, size);
        }
        self.measured += 1;
        self.measured_bytes += u64::from(size);
        self.queue_area += u128::from((departs - entered).as_nanos());
        if self.watched {
            self.queueing_delay.record(begins - entered);
        }
    }

    /// The same for a packet whose stay is not within the measured part.
    #[cold]
    #[inline(never)]
    fn book_at_an_edge(&mut self, entered: Time, begins: Time, departs: Time, size: u16) {
        if departs <= self.measure_from {
            return self.pass(size);
        }
        self.occupy(entered, departs, 1);
        if entered < self.measure_from && departs > self.measure_from {
            // Some of those before it are gone by then.
            self.there_at_begin += 1;
            self.queue_max = self.queue_max.max(self.there_at_begin);
        }
        self.leave(begins - entered, departs, size);
    }

    /// A packet enters now, and makes the queue so long.
    pub fn queue(&mut self, now: Time, packets: u64) {
        if now >= self.measure_from {
            self.queue_max = self.queue_max.max(packets);
        }
        self.vary(packets - 1);
        self.vary(packets);
    }

    /// The queue has so many packets for some time of this step. It is told before a packet enters
    /// and after: between, a queue only gets shorter, down to what the next packet or sample finds.
    pub fn vary(&mut self, packets: u64) {
        self.low = self.low.min(packets);
        self.high = self.high.max(packets);
    }

    /// What [`Meter::queue`] need not be told of.
    pub fn usual(&self, now: Time) -> Usual {
        let (least, most) = match self.is_sampled {
            true => (self.low, self.high),
            false => (0, u64::MAX),
        };
        if now < self.measure_from {
            return Usual {
                least,
                most,
                until: self.measure_from,
            };
        }
        // The step may have begun before the measured part, with a longer queue.
        Usual {
            least,
            most: most.min(self.queue_max),
            until: Time::MAX,
        }
    }

    /// So many packets take room from `from`, which lies within the run, to `to`.
    pub fn occupy(&mut self, from: Time, to: Time, packets: u64) {
        if to > self.measure_from {
            let since = from.max(self.measure_from);
            let time = u128::from((to.min(self.end) - since).as_nanos());
            self.queue_area += time * u128::from(packets);
        }
    }

    /// A packet that waited so long departs.
    pub fn leave(&mut self, waited: Span, departs: Time, size: u16) {
        if departs > self.end {
            return;
        }
        if departs <= self.measure_from {
            self.passed += 1;
            self.passed_bytes += u64::from(size);
            return;
        }
        self.measured += 1;
        self.measured_bytes += u64::from(size);
        if self.watched {
            self.queueing_delay.record(waited);
        }
    }

    /// The queue has this many packets until a time.
    pub fn reach(&mut self, until: Time, packets: u64) {
        if until > self.measure_from {
            self.queue_max = self.queue_max.max(packets);
        }
    }

    /// A step ends, with so many packets.
    pub fn sample(&mut self, at: Time, packets: u64) {
        self.vary(packets);
        self.samples.push(QueueSample {
            at,
            packets,
            min: self.low,
            max: self.high,
        });
        (self.low, self.high) = (packets, packets);
    }

    /// The end of the run, if it lies within a step, whose sample is not taken.
    pub fn open_step(&self) -> Option<Time> {
        let last = self.samples.last();
        let is_open = self.is_sampled && last.is_none_or(|s| s.at < self.end);
        is_open.then_some(self.end)
    }

    /// Checks conservation at the end of a run and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(self, spec: &LinkSpec, closing: Closing) -> Result<LinkOutcome, String> {
        let name = spec.name.clone();
        let accepted = closing.booked + closing.queued;
        let refused = self.buffer_drops + self.random_drops + self.policer_drops + self.early_drops;
        if self.offered != accepted + refused {
            return Err(format!(
                "link {name}: offered {} is not accepted {accepted} + dropped {refused}",
                self.offered
            ));
        }
        if let Some(most) = spec.most_packets().filter(|most| self.queue_max > *most) {
            return Err(format!(
                "link {name}: queue {} above its limit {most}",
                self.queue_max
            ));
        }
        let bytes = self.measured_bytes as f64;
        // One packet may have been under way when the measurement began.
        if let Some(capacity) = closing.capacity
            && bytes > capacity + 65_536.0
        {
            return Err(format!(
                "link {name}: carried {bytes} B, more than its capacity {capacity} B"
            ));
        }
        let utilization = match closing.capacity {
            Some(capacity) if capacity > 0.0 => (bytes / capacity).min(1.0),
            _ => 0.0,
        };
        let measured = self.end - self.measure_from;
        Ok(LinkOutcome {
            name,
            offered: self.offered,
            delivered: self.passed + self.measured,
            delivered_bytes: self.passed_bytes + self.measured_bytes,
            measured_bytes: self.measured_bytes,
            buffer_drops: self.buffer_drops,
            random_drops: self.random_drops,
            policer_drops: self.policer_drops,
            early_drops: self.early_drops,
            marks: self.marks,
            ties: None,
            queueing_delay: self.queueing_delay,
            queue_max: self.queue_max,
            // A quotient of whole numbers: never above the maximum by a rounding.
            queue_mean: if measured > Span::ZERO {
                self.queue_area as f64 / measured.as_nanos() as f64
            } else {
                0.0
            },
            utilization,
            series: self.samples,
        })
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_run::Buffer;

    use super::*;

    /// Three million packets for 8,000 s are more nanoseconds than 64 bits hold.
    #[test]
    fn a_long_queue_for_a_long_time_is_its_mean() {
        let spec = LinkSpec::new("l", None, Span::ZERO, Buffer::Unlimited);
        let end = Time::ZERO + Span::from_secs(8_000);
        let watch = Watch {
            measure_from: Time::ZERO,
            end,
            sample_step: Span::MAX,
        };
        let mut meter = Meter::new(&spec, &watch);
        meter.occupy(Time::ZERO, end, 3_000_000);
        let mean = meter.queue_area / u128::from((end - Time::ZERO).as_nanos());
        assert_eq!(mean, 3_000_000);
    }
}
