//! A first-in-first-out queue in closed form before a [`Transmitter`]: a packet's departure is
//! known when it enters, so nothing is scheduled for it. A discipline that decides at the entry
//! sees the queue as it is then.

use fullpipe_run::{Buffer, ComponentRng, LinkSpec};
use fullpipe_units::Time;

use super::meter::Meter;
use super::transmitter::{Cursor, Transmitter};
use crate::aqm::{Backlog, EntryAqm, Verdict};
use crate::packet::Packet;
use crate::ring::Ring;

/// The queue, the packet in transmission included.
#[derive(Debug)]
pub struct Timed {
    transmitter: Transmitter,
    buffer: Buffer,
    /// Departure and size of each packet that has not left.
    waiting: Ring<(Time, u16)>,
    bytes: u64,
    /// Departure of the last packet that has left.
    left: Time,
    aqm: Option<EntryAqm>,
    /// Changes of the rate that the discipline is still to be told, the next one at the back.
    rates: Vec<(Time, u64)>,
}

impl Timed {
    /// An empty queue in the run with `seed`.
    pub fn new(spec: &LinkSpec, seed: u64, transmitter: Transmitter) -> Self {
        let rng = ComponentRng::new(seed, &format!("{} queue", spec.name));
        let mut rates = transmitter.rates();
        rates.reverse();
        Self {
            aqm: EntryAqm::new(&spec.discipline, transmitter.first_rate(), rng),
            rates,
            transmitter,
            buffer: spec.buffer,
            waiting: Ring::new((Time::ZERO, 0)),
            bytes: 0,
            left: Time::ZERO,
        }
    }

    /// When a packet that comes now departs; `None`: it is dropped, which is counted. It may be
    /// marked.
    pub fn enter(&mut self, now: Time, packet: &mut Packet, meter: &mut Meter) -> Option<Time> {
        self.release(now);
        let start = self.transmitter.start(now);
        let verdict = self.judge(now, start, packet);
        if verdict == Verdict::Drop {
            meter.early_drops += 1;
            return None;
        }
        let done = self.transmitter.done(start, packet.size());
        if !self.fits(now, packet.size(), done) {
            meter.buffer_drops += 1;
            return None;
        }
        if verdict == Verdict::Mark {
            packet.mark_ce();
            meter.marks += 1;
        }
        self.transmitter.set(done);
        self.waiting.push((done.at, packet.size()));
        self.bytes += u64::from(packet.size());
        meter.book(now, start.at, done.at, packet.size());
        meter.queue(now, self.waiting.len());
        meter.sample(now, self.waiting.len());
        Some(done.at)
    }

    fn judge(&mut self, now: Time, start: Cursor, packet: &Packet) -> Verdict {
        let Some(aqm) = &mut self.aqm else {
            return Verdict::Admit;
        };
        while let Some((_, rate)) = self.rates.pop_if(|r| r.0 <= now) {
            aqm.set_rate(rate);
        }
        let backlog = Backlog {
            packets: self.waiting.len(),
            bytes: self.bytes,
            delay: start.at - now,
            idle_since: self.waiting.is_empty().then_some(self.left),
        };
        aqm.judge(now, &backlog, packet.is_ect())
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
            self.left = departs;
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
