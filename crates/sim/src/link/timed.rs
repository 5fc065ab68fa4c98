//! A first-in-first-out queue in closed form before a [`Transmitter`]: a packet's departure is known when it enters, so nothing
//! is scheduled for it.

use fullpipe_units::Time;

use super::meter::Meter;
use super::transmitter::{Cursor, Transmitter};
use crate::ring::Ring;
use crate::spec::{Buffer, LinkSpec};

/// The queue, the packet in transmission included.
#[derive(Debug)]
pub struct Timed {
    transmitter: Transmitter,
    buffer: Buffer,
    /// Departure and size of each packet that has not left.
    waiting: Ring<(Time, u16)>,
    bytes: u64,
}

impl Timed {
    /// An empty queue.
    pub fn new(spec: &LinkSpec, transmitter: Transmitter) -> Self {
        Self {
            transmitter,
            buffer: spec.buffer,
            waiting: Ring::new((Time::ZERO, 0)),
            bytes: 0,
        }
    }

    /// When a packet of `size` that comes now departs; `None`: there is no room, which is counted.
    pub fn enter(&mut self, now: Time, size: u16, meter: &mut Meter) -> Option<Time> {
        self.release(now);
        let start = self.transmitter.start(now);
        let done = self.transmitter.done(start, size);
        if !self.fits(now, size, done) {
            meter.buffer_drops += 1;
            return None;
        }
        self.transmitter.set(done);
        self.waiting.push((done.at, size));
        self.bytes += u64::from(size);
        meter.book(now, start.at, done.at, size);
        meter.queue(now, done.at, self.waiting.len());
        Some(done.at)
    }

    /// See [`super::Link::room`].
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        self.release(now);
        let done = self.transmitter.done(self.transmitter.start(now), size);
        if self.fits(now, size, done) {
            None
        } else {
            self.waiting.front().map(|w| w.0)
        }
    }

    /// What the transmitter could have sent, see [`Transmitter::bytes_between`].
    pub fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// Forgets packets that have left by `now`.
    fn release(&mut self, now: Time) {
        while let Some(&(departs, size)) = self.waiting.front()
            && departs <= now
        {
            self.waiting.pop();
            self.bytes -= u64::from(size);
        }
    }

    fn fits(&self, now: Time, size: u16, done: Cursor) -> bool {
        match self.buffer {
            Buffer::Packets(most) => self.waiting.len() < most,
            Buffer::Bytes(most) => self.bytes + u64::from(size) <= most,
            Buffer::Time(most) => done.at.saturating_since(now) <= most,
            Buffer::Unlimited => true,
        }
    }
}
