//! A link put together from elements, in the order of [`LinkSpec`].

use fullpipe_run::{ComponentRng, LinkOutcome, LinkSpec};
use fullpipe_units::Time;

use super::Admission;
use super::gate::Gate;
use super::held::Held;
use super::meter::{Closing, Meter, Watch};
use super::timed::Timed;
use super::transmitter::Transmitter;
use super::way::Way;
use super::wire::Wire;
use crate::aqm::HeldAqm;
use crate::packet::Packet;

/// The elements of a running link.
#[derive(Debug)]
pub struct Elements {
    spec: LinkSpec,
    gate: Gate,
    queue: Queue,
    /// Behind the transmitter.
    pub wire: Wire,
    meter: Meter,
}

/// Transmitter and queue before the delay.
#[derive(Debug)]
enum Queue {
    /// No transmitter.
    None,
    /// First in, first out.
    Timed(Timed),
    /// Owned by the discipline.
    Held(Held),
}

impl Elements {
    /// A link at time zero.
    pub fn new(spec: &LinkSpec, seed: u64, watch: &Watch) -> Self {
        let queue = match Transmitter::new(spec) {
            None => Queue::None,
            Some(transmitter) => {
                let (rate, rng) = (transmitter.first_rate(), format!("{} queue", spec.name));
                let rng = ComponentRng::new(seed, &rng);
                match HeldAqm::new(spec, rate, rng) {
                    Some(aqm) => Queue::Held(Held::new(spec, transmitter, aqm)),
                    None => Queue::Timed(Timed::new(spec, seed, transmitter)),
                }
            }
        };
        Self {
            spec: spec.clone(),
            gate: Gate::new(spec, seed),
            queue,
            wire: Wire::new(spec, seed),
            meter: Meter::new(spec, watch),
        }
    }

    /// Offers a packet. A queue that finds no room for it may drop others instead: those go to
    /// `dropped`.
    pub fn offer(
        &mut self,
        now: Time,
        mut packet: Packet,
        way: &mut Way,
        dropped: &mut Vec<Packet>,
    ) -> Admission {
        self.meter.offered += 1;
        if !self.gate.passes(now, &packet, &mut self.meter) {
            return Admission::Refused;
        }
        let departs = match &mut self.queue {
            Queue::None => {
                self.meter.pass(packet.size());
                Some(now)
            }
            Queue::Timed(queue) => queue.enter(now, &mut packet, &mut self.meter),
            Queue::Held(queue) => {
                let begins = queue.enter(now, packet, &mut self.meter, dropped);
                return Admission::Queued { begins };
            }
        };
        match departs {
            Some(departs) => self.wire.send(departs, packet, way),
            None => Admission::Refused,
        }
    }

    /// The transmission that was announced for now begins: what becomes of the packet, and when the
    /// next one begins. What the queue drops goes to `dropped`.
    pub fn transmit(
        &mut self,
        now: Time,
        way: &mut Way,
        dropped: &mut Vec<Packet>,
    ) -> (Option<Admission>, Option<Time>) {
        let Queue::Held(queue) = &mut self.queue else {
            return (None, None);
        };
        let sent = queue.send(now, &mut self.meter, dropped);
        let send = |(departs, packet)| self.wire.send(departs, packet, way);
        (sent.packet.map(send), sent.next)
    }

    /// See [`super::Link::room`].
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        match &mut self.queue {
            Queue::None => None,
            Queue::Timed(queue) => queue.room(now, size),
            Queue::Held(queue) => queue.room(now, size),
        }
    }

    /// See [`super::Link::has_queue`].
    pub fn has_queue(&self) -> bool {
        !matches!(self.queue, Queue::None)
    }

    /// See [`super::Link::sample`].
    pub fn sample(&mut self, now: Time, at: Time) {
        let packets = match &self.queue {
            Queue::None => return,
            Queue::Timed(queue) => queue.packets(now),
            Queue::Held(queue) => queue.packets(now),
        };
        self.meter.sample(at, packets);
    }

    /// Every packet inside that is not on the way.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        let held = match &self.queue {
            Queue::Held(queue) => Some(queue.aqm().waiting()),
            Queue::None | Queue::Timed(_) => None,
        };
        self.wire.inside().chain(held.into_iter().flatten())
    }

    /// See [`Meter::finish`].
    pub fn finish(mut self, way: &Way) -> Result<LinkOutcome, String> {
        if let Some(end) = self.meter.open_step() {
            self.sample(end, end);
        }
        let (from, end) = self.meter.measured();
        let mut closing = Closing {
            booked: way.sent() + self.wire.reordered(),
            queued: 0,
            capacity: None,
        };
        match &mut self.queue {
            Queue::None => {}
            Queue::Timed(queue) => closing.capacity = queue.transmitter().bytes_between(from, end),
            Queue::Held(queue) => {
                queue.count(end, &mut self.meter);
                self.meter.marks = queue.aqm().marks();
                closing.queued = queue.aqm().packets();
                closing.capacity = queue.transmitter().bytes_between(from, end);
            }
        }
        self.meter.finish(&self.spec, closing)
    }
}
