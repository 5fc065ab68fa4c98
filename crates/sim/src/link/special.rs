//! A link with rare elements, in the order of [`LinkSpec`].

use fullpipe_units::{Span, Time};

use super::Admission;
use super::gate::Gate;
use super::meter::{Closing, Meter, Watch};
use super::timed::Timed;
use super::transmitter::Transmitter;
use super::wire::Wire;
use crate::outcome::LinkOutcome;
use crate::packet::Packet;
use crate::spec::LinkSpec;

/// A running link with rare elements.
#[derive(Debug)]
pub struct Special {
    spec: LinkSpec,
    gate: Gate,
    queue: Queue,
    /// Behind the transmitter.
    pub wire: Wire,
    meter: Meter,
}

/// What stands before the delay.
#[derive(Debug)]
enum Queue {
    /// No transmitter.
    None,
    /// First in, first out.
    Timed(Timed),
}

impl Special {
    /// A link at time zero.
    pub fn new(spec: &LinkSpec, seed: u64, watch: &Watch) -> Self {
        let queue = match Transmitter::new(spec) {
            Some(transmitter) => Queue::Timed(Timed::new(spec, transmitter)),
            None => Queue::None,
        };
        Self {
            spec: spec.clone(),
            gate: Gate::new(spec, seed),
            queue,
            wire: Wire::new(spec, seed),
            meter: Meter::new(spec, watch),
        }
    }

    /// Offers a packet.
    #[cold]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Admission {
        self.meter.offered += 1;
        if !self.gate.passes(now, &packet, &mut self.meter) {
            return Admission::Refused;
        }
        let departs = match &mut self.queue {
            Queue::None => {
                self.meter.pass(packet.size);
                Some(now)
            }
            Queue::Timed(queue) => queue.enter(now, packet.size, &mut self.meter),
        };
        match departs {
            Some(departs) => self.wire.send(departs, packet),
            None => Admission::Refused,
        }
    }

    /// See [`super::Link::room`].
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        match &mut self.queue {
            Queue::None => None,
            Queue::Timed(queue) => queue.room(now, size),
        }
    }

    /// See [`super::Link::unloaded`]; an opportunity of a trace counts as taking no time.
    pub fn unloaded(&self, size: u16) -> Span {
        let rate = self.spec.rate.filter(|_| self.spec.trace.is_none());
        let rate = rate.map_or(0, |r| r.as_bits_per_sec());
        let ns = (u64::from(size) * 8_000_000_000).checked_div(rate);
        Span::from_nanos(ns.unwrap_or(0)) + self.wire.first_delay()
    }

    /// Every packet inside.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        self.wire.inside()
    }

    /// See [`Meter::finish`].
    pub fn finish(self) -> Result<LinkOutcome, String> {
        let (from, end) = self.meter.measured();
        let capacity = match &self.queue {
            Queue::None => None,
            Queue::Timed(queue) => queue.transmitter().bytes_between(from, end),
        };
        let closing = Closing {
            booked: self.wire.sent(),
            queued: 0,
            capacity,
        };
        self.meter.finish(&self.spec, closing)
    }
}
