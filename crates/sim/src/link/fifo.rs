//! The common link: first in, first out at one rate, or a pure delay. A packet's departure is known
//! when it enters, so the link keeps one pending event, the arrival of its oldest packet at the far
//! end.

use fullpipe_run::{Buffer, ComponentRng, LinkOutcome, LinkSpec, Loss, LossProcess};
use fullpipe_units::{Span, Time};

use super::meter::{Closing, Meter, Watch};
use super::{Admission, Flying};
use crate::packet::Packet;
use crate::ring::Ring;

/// A running FIFO link without rare elements.
///
/// In the order of use: 10,000 flows have as many return links, pure delays, and a packet on one of
/// them fetches two cache lines of it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct FifoLink {
    buffer: Buffer,
    flying: Ring<Flying>,
    /// Bits per second; 0 for a pure delay.
    rate: u64,
    delay: Span,
    loss: Option<Box<LossProcess>>,
    /// At most so many of `flying`, from the back, have not left the transmitter yet: exactly so
    /// many after [`FifoLink::release`].
    waiting: u64,
    meter: Meter,
    waiting_bytes: u64,
    free_at: Time,
    /// Fraction of a nanosecond carried to the next transmission, in units of 1/rate.
    carry: u64,
    /// Transmission time of the last size: whole nanoseconds and remainder.
    last_time: (u64, u64),
    last_size: u16,
    /// Bytes of the largest packet so far.
    largest: u16,
    /// With fewer than this in `waiting` there is room, and the queue is no longer than it was
    /// before: nobody needs to know how long it is.
    count_from: u64,
    /// While packets of the last size wait no longer than this there is room, if the buffer is
    /// given as a time.
    longest_wait: Span,
    /// The next packet from here on makes the link count its queue all the same.
    count_at: Time,
    spec: Box<LinkSpec>,
}

impl FifoLink {
    /// A link at time zero; its delay is that of `spec`, the spread included.
    pub fn new(spec: &LinkSpec, seed: u64, watch: &Watch) -> Self {
        let loss = (spec.loss != Loss::None).then(|| {
            Box::new(LossProcess::new(
                spec.loss,
                ComponentRng::new(seed, &spec.name),
            ))
        });
        Self {
            spec: Box::new(spec.clone()),
            delay: spec.delay,
            buffer: spec.buffer,
            rate: spec.rate.map_or(0, |r| r.as_bits_per_sec()),
            loss,
            flying: Ring::new(Flying::NONE),
            waiting: 0,
            waiting_bytes: 0,
            count_from: 0,
            count_at: Time::ZERO,
            longest_wait: Span::MAX,
            free_at: Time::ZERO,
            carry: 0,
            last_size: 0,
            last_time: (0, 0),
            largest: 0,
            meter: Meter::new(spec, watch),
        }
    }

    /// Offers a packet.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Admission {
        self.meter.offered += 1;
        if self.loss.is_some() && self.loses(&packet) {
            self.meter.random_drops += 1;
            return Admission::Refused;
        }
        let departs = if self.rate == 0 {
            self.meter.pass(packet.size);
            now
        } else {
            if packet.size != self.last_size {
                self.note_size(packet.size);
            }
            if (!self.has_room(now) || now >= self.count_at) && !self.admits(now, packet.size) {
                self.meter.buffer_drops += 1;
                return Admission::Refused;
            }
            self.transmit(now, packet.size)
        };
        let arrives = departs + self.delay;
        let first = self.flying.is_empty();
        self.flying.push(Flying { arrives, packet });
        Admission::Accepted { arrives, first }
    }

    #[inline]
    fn loses(&mut self, packet: &Packet) -> bool {
        let loss = self.loss.as_mut();
        packet.bears_data() && loss.is_some_and(|loss| loss.drops())
    }

    /// The oldest packet, which arrives now, and when the next one does. The link holds one: its
    /// arrival was scheduled.
    #[inline(always)]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        let (oldest, next) = self.flying.pop_before_next();
        let next = next.map(|f| f.arrives);
        if self.waiting > self.flying.len() {
            // It left the transmitter unobserved: no packet was offered between its departure and
            // its arrival.
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(oldest.packet.size);
        }
        (oldest.packet, next)
    }

    /// Forgets packets that have left the transmitter by `now`.
    #[inline]
    fn release(&mut self, now: Time) {
        while self.waiting > 0 {
            let f = self.flying.nth_back(self.waiting);
            if f.arrives - self.delay > now {
                break;
            }
            self.waiting_bytes -= u64::from(f.packet.size);
            self.waiting -= 1;
        }
    }

    /// True if a packet of the last size surely fits.
    #[inline(always)]
    fn has_room(&mut self, now: Time) -> bool {
        if self.waiting >= self.count_from {
            self.release(now);
        }
        self.waiting < self.count_from && self.free_at <= now + self.longest_wait
    }

    #[inline]
    fn fits(&self, now: Time, size: u16) -> bool {
        match self.buffer {
            Buffer::Packets(most) => self.waiting < most,
            Buffer::Bytes(most) => self.waiting_bytes + u64::from(size) <= most,
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
            self.count_from = 0;
        }
    }

    /// Counts the queue. True if a packet of `size` fits: it enters.
    #[cold]
    #[inline(never)]
    fn admits(&mut self, now: Time, size: u16) -> bool {
        self.release(now);
        if !self.fits(now, size) {
            return false;
        }
        let with_it = self.waiting + 1;
        self.meter.sample(now, with_it);
        let (longest, until) = self.meter.queue(now, with_it);
        self.count_at = until;
        let room = match self.buffer {
            Buffer::Packets(most) => most,
            Buffer::Bytes(most) => most / u64::from(self.largest.max(1)),
            Buffer::Time(_) | Buffer::Unlimited => u64::MAX,
        };
        self.count_from = room.min(longest);
        true
    }

    /// See [`super::Link::room`].
    #[inline]
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        if self.rate == 0 || size == self.last_size && self.has_room(now) {
            return None;
        }
        self.room_counted(now, size)
    }

    fn room_counted(&mut self, now: Time, size: u16) -> Option<Time> {
        self.release(now);
        if self.fits(now, size) {
            None
        } else {
            self.oldest_departure()
        }
    }

    fn oldest_departure(&self) -> Option<Time> {
        (self.waiting > 0).then(|| self.flying.nth_back(self.waiting).arrives - self.delay)
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
        self.waiting += 1;
        self.waiting_bytes += u64::from(size);
        self.meter.book(now, begins, departs, size);
        departs
    }

    /// Every packet inside.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        self.flying.iter().map(|f| &f.packet)
    }

    /// See [`Meter::finish`].
    pub fn finish(self) -> Result<LinkOutcome, String> {
        let (from, end) = self.meter.measured();
        let capacity = self.rate as f64 * (end - from).as_secs_f64() / 8.0;
        let closing = Closing {
            booked: self.flying.pushed(),
            queued: 0,
            capacity: (self.rate > 0).then_some(capacity),
        };
        self.meter.finish(&self.spec, closing)
    }
}
