//! The common queue: first in, first out at one rate. A packet's departure is known when it enters,
//! so the link keeps one pending event, the arrival of its oldest packet at the far end.

use fullpipe_run::{Buffer, ComponentRng, LinkOutcome, LinkSpec, Loss, LossProcess};
use fullpipe_units::{Rate, Span, Time};

use super::meter::{Closing, Meter, Watch};
use super::way::Way;
use crate::packet::Packet;

/// Queue and transmitter of a link without rare elements, in the order of use.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fifo {
    buffer: Buffer,
    /// Bits per second, not zero.
    rate: u64,
    loss: Option<Box<LossProcess>>,
    /// Of all packets sent those before this one are known to have left the transmitter; the first
    /// that has not after [`Fifo::release`].
    left: u64,
    meter: Meter,
    free_at: Time,
    /// Bytes of the packets before `left`, and of all; of use to a buffer given in bytes.
    left_bytes: u64,
    bytes: u64,
    /// Fraction of a nanosecond carried to the next transmission, in units of 1/rate.
    carry: u64,
    /// Transmission time of the last size: whole nanoseconds and remainder.
    last_time: (u64, u64),
    last_size: u16,
    /// Bytes of the largest packet so far.
    largest: u16,
    /// While the transmitter has this many nanoseconds to do, and fewer than `usual_work` more, a
    /// packet of the last size finds room and leaves the queue within its extremes so far: nobody
    /// needs to know how long it is.
    least_work: u64,
    usual_work: u64,
    /// The same for `least` packets waiting or more, and fewer than this, whatever their sizes.
    count_from: u64,
    least: u64,
    /// Transmission time of the largest packet.
    largest_time: (u64, u64),
    /// While packets of the last size wait no longer than this there is room, if the buffer is
    /// given as a time.
    longest_wait: Span,
    /// The next packet from here on makes the link count its queue all the same.
    count_at: Time,
    /// Every packet that waits after this is of the last size.
    mixed_until: Time,
    spec: LinkSpec,
}

impl Fifo {
    /// An empty queue of `rate` in the run with `seed`.
    pub fn new(spec: &LinkSpec, rate: Rate, seed: u64, watch: &Watch) -> Self {
        let loss = (spec.loss != Loss::None).then(|| {
            Box::new(LossProcess::new(
                spec.loss,
                ComponentRng::new(seed, &spec.name),
            ))
        });
        Self {
            buffer: spec.buffer,
            rate: rate.as_bits_per_sec(),
            loss,
            left: 0,
            left_bytes: 0,
            bytes: 0,
            least_work: 0,
            usual_work: 0,
            count_from: 0,
            least: 0,
            largest_time: (0, 0),
            count_at: Time::ZERO,
            longest_wait: Span::MAX,
            mixed_until: Time::ZERO,
            free_at: Time::ZERO,
            carry: 0,
            last_size: 0,
            last_time: (0, 0),
            largest: 0,
            meter: Meter::new(spec, watch),
            spec: spec.clone(),
        }
    }

    /// When a packet that comes now departs; `None`: it is dropped, which is counted.
    #[inline(always)]
    pub fn enter(&mut self, now: Time, packet: &Packet, way: &Way) -> Option<Time> {
        self.meter.offered += 1;
        if self.loss.is_some() && self.loses(packet) {
            self.meter.random_drops += 1;
            return None;
        }
        let size = packet.size();
        if size != self.last_size {
            self.note_size(size);
        }
        if (!self.is_usual(now, way) || now >= self.count_at)
            && !self.admits(now, size, packet.key(), way)
        {
            self.meter.buffer_drops += 1;
            return None;
        }
        Some(self.transmit(now, size))
    }

    #[inline]
    fn loses(&mut self, packet: &Packet) -> bool {
        let loss = self.loss.as_mut();
        packet.bears_data() && loss.is_some_and(|loss| loss.drops())
    }

    /// At most so many packets have not left the transmitter: exactly so many after
    /// [`Fifo::release`].
    #[inline(always)]
    fn waiting(&self, way: &Way) -> u64 {
        way.sent() - self.left
    }

    /// Finds the packets that have left the transmitter by `now`.
    #[inline]
    fn release(&mut self, now: Time, way: &Way) {
        let (arrived, arrived_bytes) = way.arrived();
        if self.left < arrived {
            self.left = arrived;
            self.left_bytes = arrived_bytes;
        }
        if self.left < way.sent() && way.departure(self.left) <= now {
            self.release_more(now, way);
        }
    }

    /// Most calls come with the queue at its longest, when few have left; the others after many
    /// have: steps double, then halve.
    #[inline(never)]
    fn release_more(&mut self, now: Time, way: &Way) {
        let (mut left, end) = (self.left, way.sent());
        let has_left = |n: u64| n < end && way.departure(n) <= now;
        if let Buffer::Bytes(_) = self.buffer {
            while has_left(left) {
                self.left_bytes += u64::from(way.size(left));
                left += 1;
            }
        } else {
            let mut step = 1;
            while has_left(left + step - 1) {
                left += step;
                step *= 2;
            }
            while step > 1 {
                step /= 2;
                if has_left(left + step - 1) {
                    left += step;
                }
            }
        }
        self.left = left;
    }

    /// True if a packet of the last size surely fits, and the queue stays within its extremes.
    #[inline(always)]
    fn is_usual(&self, now: Time, way: &Way) -> bool {
        let work = self.free_at.saturating_since(now).as_nanos();
        work.wrapping_sub(self.least_work) < self.usual_work
            || work >= self.least_work
                && self.waiting(way) < self.count_from
                && self.free_at <= now + self.longest_wait
    }

    /// What the extremes of the queue are in work. The first packet that waits has some of its
    /// transmission before it, the others all of it: `n` of the last size keep the transmitter busy
    /// for more than `n - 1` transmissions, and `n` of any size for `n` of the largest at most.
    fn note_work(&mut self, now: Time) {
        self.least_work = match self.least.checked_sub(1) {
            Some(fewer) => self.time_of(fewer, self.largest_time).1.saturating_add(1),
            None => 0,
        };
        let most = match self.count_from.checked_sub(1) {
            Some(others) if now >= self.mixed_until => {
                let (work, _) = self.time_of(others, self.last_time);
                work.min(self.longest_wait.as_nanos()).saturating_add(1)
            }
            _ => 0,
        };
        self.usual_work = most.saturating_sub(self.least_work);
    }

    /// Nanoseconds of `n` transmissions one after the other, the part of one omitted and counted.
    fn time_of(&self, n: u64, (whole, rest): (u64, u64)) -> (u64, u64) {
        let (least, most) = match n.checked_mul(rest) {
            Some(rests) => (rests / self.rate, rests.div_ceil(self.rate)),
            // More than any queue has, and each rest is less than one.
            None => (0, n),
        };
        let whole = n.saturating_mul(whole);
        (whole.saturating_add(least), whole.saturating_add(most))
    }

    #[inline]
    fn fits(&self, now: Time, size: u16, way: &Way) -> bool {
        match self.buffer {
            Buffer::Packets(most) => self.waiting(way) < most,
            Buffer::Bytes(most) => self.bytes - self.left_bytes + u64::from(size) <= most,
            Buffer::Time(most) => {
                let own = Span::from_nanos(u64::from(size) * 8_000_000_000 / self.rate);
                self.free_at.saturating_since(now) + own <= most
            }
            Buffer::Unlimited => true,
        }
    }

    #[cold]
    fn note_size(&mut self, size: u16) {
        // At most 65535 B: the product stays far below 2^64.
        let work = u64::from(size) * 8 * 1_000_000_000;
        self.last_size = size;
        self.mixed_until = self.free_at;
        self.usual_work = 0;
        self.last_time = (work / self.rate, work % self.rate);
        if let Buffer::Time(most) = self.buffer {
            let own = Span::from_nanos(work / self.rate);
            self.longest_wait = most.saturating_sub(own);
            if own > most {
                self.count_from = 0;
            }
        }
        if size > self.largest {
            self.largest = size;
            self.largest_time = self.last_time;
            self.count_from = 0;
        }
    }

    /// Counts the queue. True if a packet of `size` and with this [`Packet::key`] fits: it enters.
    #[cold]
    #[inline(never)]
    fn admits(&mut self, now: Time, size: u16, key: u64, way: &Way) -> bool {
        self.release(now, way);
        let is_usual = (self.least..self.count_from).contains(&self.waiting(way));
        if is_usual && now < self.count_at && self.free_at <= now + self.longest_wait {
            if self.usual_work == 0 && now >= self.mixed_until {
                self.note_work(now);
            }
            return true;
        }
        if !self.fits(now, size, way) {
            self.meter.ties += u64::from(self.is_tie(now, size, key, way));
            return false;
        }
        self.meter.queue(now, self.waiting(way) + 1);
        self.note_usual(now);
        true
    }

    /// What need not be counted from now on.
    fn note_usual(&mut self, now: Time) {
        let usual = self.meter.usual(now);
        let room = match self.buffer {
            Buffer::Packets(most) => most,
            Buffer::Bytes(most) => most / u64::from(self.largest.max(1)),
            Buffer::Time(_) | Buffer::Unlimited => u64::MAX,
        };
        self.count_from = room.min(usual.most);
        self.least = usual.least;
        self.count_at = usual.until;
        self.note_work(now);
    }

    /// See [`super::Link::sample`].
    pub fn sample(&mut self, now: Time, at: Time, way: &Way) {
        self.release(now, way);
        self.meter.sample(at, self.waiting(way));
        self.note_usual(now);
    }

    /// A packet of `size` and with this key is refused although one that was as large left in this
    /// very instant: its place went to one of another flow that came in it, too. To be asked after
    /// [`Fifo::release`].
    fn is_tie(&self, now: Time, size: u16, key: u64, way: &Way) -> bool {
        let as_large = |left: u64| match self.buffer {
            Buffer::Bytes(_) => way.size(left) >= size,
            _ => true,
        };
        self.has_places()
            && self.left > way.arrived().0
            && way.departure(self.left - 1) == now
            && as_large(self.left - 1)
            && way.newest_key() != Some(key)
    }

    /// What leaves makes room at once, not little by little.
    fn has_places(&self) -> bool {
        matches!(self.buffer, Buffer::Packets(_) | Buffer::Bytes(_))
    }

    /// See [`super::Link::room`].
    #[inline]
    pub fn room(&mut self, now: Time, size: u16, way: &Way) -> Option<Time> {
        if size == self.last_size && self.is_usual(now, way) {
            return None;
        }
        self.room_counted(now, size, way)
    }

    fn room_counted(&mut self, now: Time, size: u16, way: &Way) -> Option<Time> {
        self.release(now, way);
        let waits = !self.fits(now, size, way) && self.waiting(way) > 0;
        waits.then(|| way.departure(self.left))
    }

    /// Appends a packet to the transmitter's schedule; returns its departure.
    #[inline(always)]
    fn transmit(&mut self, now: Time, size: u16) -> Time {
        let begins = if self.free_at > now {
            self.free_at
        } else {
            self.carry = 0;
            now
        };
        let (mut ns, rest) = self.last_time;
        self.carry += rest;
        if self.carry >= self.rate {
            self.carry -= self.rate;
            ns += 1;
        }
        let departs = begins + Span::from_nanos(ns);
        self.free_at = departs;
        self.bytes += u64::from(size);
        self.meter.book(now, begins, departs, size);
        departs
    }

    /// See [`Meter::finish`].
    pub fn finish(mut self, way: &Way) -> Result<LinkOutcome, String> {
        if let Some(end) = self.meter.open_step() {
            self.sample(end, end, way);
        }
        let (from, end) = self.meter.measured();
        let capacity = self.rate as f64 * (end - from).as_secs_f64() / 8.0;
        let closing = Closing {
            booked: way.sent(),
            queued: 0,
            capacity: Some(capacity),
        };
        let ties = self.has_places().then_some(self.meter.ties);
        let outcome = self.meter.finish(&self.spec, closing)?;
        Ok(LinkOutcome { ties, ..outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Admission, Link};
    use crate::packet::Kind;
    use fullpipe_run::QueueSample;
    use proptest::prelude::*;

    const RATE: u64 = 7_000_000;
    const DELAY: Span = Span::from_millis(5);

    fn buffers() -> impl Strategy<Value = Buffer> {
        prop_oneof![
            (1u64..12).prop_map(Buffer::Packets),
            (500u64..12_000).prop_map(Buffer::Bytes),
            (500u64..12_000).prop_map(|us| Buffer::Time(Span::from_micros(us))),
            Just(Buffer::Unlimited),
        ]
    }

    proptest! {
        /// The link counts its queue only when it must; this counts it at every packet and sample.
        /// Runs of one size, from a transmitter that idles to one that falls behind.
        #[test]
        fn takes_in_what_fits(
            buffer in buffers(),
            step in prop::option::of(500u64..30_000),
            from in prop_oneof![Just(0), 0u64..40_000],
            runs in prop::collection::vec(
                (prop_oneof![Just(52u16), Just(1000), Just(1500)], 0u64..2500, 1usize..40),
                1..12,
            ),
        ) {
            let rate = Rate::from_bits_per_sec(RATE);
            let spec = LinkSpec::new("link", Some(rate), DELAY, buffer);
            let watch = Watch {
                measure_from: Time::ZERO + Span::from_micros(from),
                end: Time::from_nanos(1_000_000_000_000),
                sample_step: step.map_or(Span::MAX, Span::from_micros),
            };
            let mut sample_at = step.map_or(Time::MAX, |_| Time::ZERO);
            let (mut samples, mut low, mut high) = (Vec::new(), 0, 0);
            let mut link = Link::new(&spec, 1, &watch);
            // Departures and sizes of what waits, when the next packet arrives, the longest queue.
            let (mut waiting, mut due, mut longest) = (Vec::<(Time, u16)>::new(), None, 0);
            let mut now = Time::ZERO;
            for (size, gap, packets) in runs {
                for _ in 0..packets {
                    now += Span::from_micros(gap);
                    while sample_at <= now {
                        // Before what happens in that instant.
                        while due.is_some_and(|at| at < sample_at) {
                            due = link.take().1;
                        }
                        link.sample(sample_at - Span::from_nanos(1), sample_at);
                        let packets = waiting.iter().filter(|w| w.0 >= sample_at).count() as u64;
                        let (min, max) = (packets.min(low), high);
                        samples.push(QueueSample { at: sample_at, packets, min, max });
                        (low, high) = (packets, packets);
                        sample_at += watch.sample_step;
                    }
                    while due.is_some_and(|at| at <= now) {
                        due = link.take().1;
                    }
                    waiting.retain(|(departs, _)| *departs > now);
                    low = low.min(waiting.len() as u64);
                    let own = Span::from_nanos(u64::from(size) * 8_000_000_000 / RATE);
                    let free_at = waiting.last().map_or(now, |(departs, _)| *departs);
                    let bytes: u64 = waiting.iter().map(|(_, size)| u64::from(*size)).sum();
                    let fits = match buffer {
                        Buffer::Packets(most) => (waiting.len() as u64) < most,
                        Buffer::Bytes(most) => bytes + u64::from(size) <= most,
                        Buffer::Time(most) => (free_at - now) + own <= most,
                        Buffer::Unlimited => true,
                    };
                    let packet = Packet::cross(0, size, Kind::Datagram, 0, now);
                    match link.offer(now, packet) {
                        Admission::Accepted { arrives, .. } => {
                            prop_assert!(fits);
                            due = due.or(Some(arrives));
                            waiting.push((arrives - DELAY, size));
                            high = high.max(waiting.len() as u64);
                            if now >= watch.measure_from {
                                longest = longest.max(waiting.len() as u64);
                            }
                        }
                        _ => prop_assert!(!fits),
                    }
                }
            }
            let outcome = link.finish().unwrap();
            // Those that the measured part finds there are known at their departure only.
            if from == 0 {
                prop_assert_eq!(outcome.queue_max, longest);
            }
            prop_assert!(outcome.queue_max >= longest);
            prop_assert_eq!(outcome.series.is_empty(), step.is_none());
            prop_assert_eq!(&outcome.series[..samples.len()], &samples[..]);
        }
    }
}
