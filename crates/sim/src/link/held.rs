//! A real queue before a [`Transmitter`], for disciplines that own it: who is sent next, or what
//! the discipline knows by then, is known only when the transmitter is free, so that each
//! transmission has an event.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::Time;

use super::meter::Meter;
use super::transmitter::{Cursor, Transmitter};
use crate::aqm::HeldAqm;
use crate::packet::Packet;

/// The queue and its transmitter.
#[derive(Debug)]
pub struct Held {
    aqm: HeldAqm,
    buffer: Buffer,
    transmitter: Transmitter,
    /// The next transmission, whose event is pending.
    next: Option<Cursor>,
    /// The packet in transmission: its departure and size.
    sending: (Time, u16),
    /// The queue is accounted for up to this time.
    counted: Time,
}

/// The outcome of a transmission's event.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// A packet and when it departs; `None`: the discipline dropped all.
    pub packet: Option<(Time, Packet)>,
    /// When the next transmission begins.
    pub next: Option<Time>,
}

impl Held {
    /// An empty queue.
    pub fn new(spec: &LinkSpec, transmitter: Transmitter, aqm: HeldAqm) -> Self {
        Self {
            aqm,
            buffer: spec.buffer,
            transmitter,
            next: None,
            sending: (Time::ZERO, 0),
            counted: Time::ZERO,
        }
    }

    /// A packet comes; returns when the next transmission begins, if no event is pending for it.
    /// What finds no room, this packet or others, is appended to `dropped`.
    pub fn enter(
        &mut self,
        now: Time,
        packet: Packet,
        meter: &mut Meter,
        dropped: &mut Vec<Packet>,
    ) -> Option<Time> {
        self.count(now, meter);
        let before = dropped.len();
        let sending = self.sending(now);
        meter.vary(self.packets(now));
        let early = self.aqm.push(now, packet, sending, dropped);
        meter.early_drops += early;
        meter.buffer_drops += (dropped.len() - before) as u64 - early;
        meter.vary(self.packets(now));
        if self.next.is_some() || self.aqm.packets() == 0 {
            return None;
        }
        self.schedule(self.transmitter.start(now))
    }

    /// The transmission for which an event was pending begins now.
    pub fn send(&mut self, now: Time, meter: &mut Meter, dropped: &mut Vec<Packet>) -> Sent {
        self.count(now, meter);
        let start = self.next.take();
        let before = dropped.len();
        let popped = self.aqm.pop(now, dropped);
        meter.early_drops += (dropped.len() - before) as u64;
        let packet = popped.zip(start).map(|(p, start)| {
            let done = self.transmitter.done(start, p.packet.size());
            self.transmitter.set(done);
            self.sending = (done.at, p.packet.size());
            meter.occupy(now, done.at, 1);
            meter.leave(p.waited, done.at, p.packet.size());
            (done.at, p.packet)
        });
        // If all was dropped, nothing waits.
        let next = match self.aqm.packets() {
            0 => {
                if self.aqm.notes_idle_times() {
                    let free = self.transmitter.follow().at;
                    self.aqm.ran_empty(free.max(now));
                }
                None
            }
            _ => self.schedule(self.transmitter.follow()),
        };
        Sent { packet, next }
    }

    /// See [`super::Link::room`].
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        let packets = self.packets(now);
        let bytes = self.aqm.bytes() + u64::from(self.sending(now)) + u64::from(size);
        let fits = match self.buffer {
            Buffer::Packets(most) => packets < most,
            Buffer::Bytes(most) => bytes <= most,
            Buffer::Time(_) | Buffer::Unlimited => true,
        };
        let leaves = self.next.map_or(self.sending.0, |n| n.at);
        (!fits && packets > 0).then_some(leaves)
    }

    /// The transmitter behind the queue.
    pub fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// The queue itself.
    pub fn aqm(&self) -> &HeldAqm {
        &self.aqm
    }

    /// Accounts for the queue up to `now`.
    pub fn count(&mut self, now: Time, meter: &mut Meter) {
        if now > self.counted {
            let waiting = self.aqm.packets();
            let sending = self.sending(self.counted);
            meter.occupy(self.counted, now, waiting);
            meter.reach(now, waiting + u64::from(sending > 0));
            self.counted = now;
        }
    }

    /// Packets in the queue, the one in transmission included.
    pub fn packets(&self, now: Time) -> u64 {
        self.aqm.packets() + u64::from(self.sending(now) > 0)
    }

    fn schedule(&mut self, start: Cursor) -> Option<Time> {
        self.next = Some(start);
        Some(start.at)
    }

    /// Bytes of the packet in transmission; 0 if there is none.
    fn sending(&self, now: Time) -> u16 {
        if self.sending.0 > now {
            self.sending.1
        } else {
            0
        }
    }
}
