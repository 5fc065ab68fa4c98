//! A running link: queue, transmitter, delay, and what goes wrong on the way.
//!
//! - [`way`]: the packets under way and their delay; without anything before it, a pure delay.
//! - [`fifo`]: first in, first out at one rate, in closed form: the common link and the fast one.
//! - [`composite`]: every other one, put together from [`gate`] (loss, policer), a queue
//!   ([`timed`]: in closed form, too; [`held`]: with an event per transmission, for disciplines
//!   that own the queue), a [`transmitter`] (schedules and traces) and a [`wire`] (delays,
//!   jitter, reordering).
//! - [`meter`]: what the last two count, and the checks at the end.

mod composite;
mod fifo;
mod gate;
mod held;
mod meter;
mod timed;
mod transmitter;
mod way;
mod wire;

use fullpipe_run::{LinkOutcome, LinkSpec, Loss};
use fullpipe_units::Time;

pub use meter::Watch;

use crate::packet::Packet;
use composite::Elements;
use fifo::Fifo;
use way::Way;

/// A running link.
///
/// One cache line: 10,000 flows have as many return links, which are pure delays.
#[derive(Debug)]
#[repr(align(64))]
pub struct Link {
    way: Way,
    entry: Entry,
}

/// Queue and transmitter of a link, before its delay.
#[derive(Debug)]
enum Entry {
    /// Nothing: a pure delay.
    Open(Box<LinkSpec>),
    /// First in, first out at one rate.
    Fifo(Box<Fifo>),
    /// Put together from elements.
    Elements(Box<Elements>),
}

/// What became of a packet offered to a link. `first` asks for an event: none is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is on its way.
    Accepted {
        /// Arrival at the far end.
        arrives: Time,
        /// No other packet arrives before.
        first: bool,
    },
    /// It is on its way and will be overtaken.
    Reordered {
        /// Arrival at the far end.
        at: Time,
        /// No other reordered packet arrives before.
        first: bool,
    },
    /// It waits in a queue that its discipline owns, or another packet was dropped for it, or it
    /// was dropped there.
    Queued {
        /// When the next transmission begins, if an event is to be set for it.
        begins: Option<Time>,
    },
    /// The link dropped the packet.
    Refused,
    /// Not decided: the link is made of elements, which [`Link::offer_apart`] asks.
    Apart,
}

impl Link {
    /// A link at time zero.
    pub fn new(spec: &LinkSpec, seed: u64, watch: &Watch) -> Self {
        let entry = match spec.rate {
            None if spec.is_fifo() && spec.loss == Loss::None => {
                Entry::Open(Box::new(spec.clone()))
            }
            Some(rate) if spec.is_fifo() => {
                Entry::Fifo(Box::new(Fifo::new(spec, rate, seed, watch)))
            }
            _ => Entry::Elements(Box::new(Elements::new(spec, seed, watch))),
        };
        Self {
            way: Way::new(spec.delay + spec.drawn_spread(seed)),
            entry,
        }
    }

    /// Offers a packet.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Admission {
        let departs = match &mut self.entry {
            Entry::Open(_) => now,
            Entry::Fifo(fifo) => match fifo.enter(now, &packet, &self.way) {
                Some(departs) => departs,
                None => return Admission::Refused,
            },
            Entry::Elements(_) => return Admission::Apart,
        };
        self.way.send(departs, packet)
    }

    /// Offers a packet for which [`Link::offer`] returned [`Admission::Apart`]: a call that is not
    /// inlined returns its answer in memory, and a plain link's is to stay in registers. A queue
    /// may drop others in the packet's favour, to `dropped`.
    pub fn offer_apart(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut Vec<Packet>,
    ) -> Admission {
        match &mut self.entry {
            Entry::Open(_) | Entry::Fifo(_) => self.offer(now, packet),
            Entry::Elements(elements) => elements.offer(now, packet, &mut self.way, dropped),
        }
    }

    /// The oldest packet of those in order, which arrives now, and when the next one does. The link
    /// holds one: its arrival was scheduled.
    #[inline(always)]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        self.way.take()
    }

    /// The oldest reordered packet, if it arrives by now, and when the next one does.
    pub fn take_reordered(&mut self) -> (Option<Packet>, Option<Time>) {
        match &mut self.entry {
            Entry::Open(_) | Entry::Fifo(_) => (None, None),
            Entry::Elements(elements) => {
                let wire = &mut elements.wire;
                (wire.take_reordered(), wire.next_reordered())
            }
        }
    }

    /// A transmission begins: what becomes of its packet, and when the next one begins. What the
    /// queue drops goes to `dropped`.
    pub fn transmit(
        &mut self,
        now: Time,
        dropped: &mut Vec<Packet>,
    ) -> (Option<Admission>, Option<Time>) {
        match &mut self.entry {
            Entry::Open(_) | Entry::Fifo(_) => (None, None),
            Entry::Elements(elements) => elements.transmit(now, &mut self.way, dropped),
        }
    }

    /// For a local queue: `None` if a packet of `size` fits now, else when the oldest waiting
    /// packet will have left.
    #[inline]
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        match &mut self.entry {
            Entry::Open(_) => None,
            Entry::Fifo(fifo) => fifo.room(now, size, &self.way),
            Entry::Elements(elements) => elements.room(now, size),
        }
    }

    /// Packets may wait for a transmitter.
    pub fn has_queue(&self) -> bool {
        match &self.entry {
            Entry::Open(_) => false,
            Entry::Fifo(_) => true,
            Entry::Elements(elements) => elements.has_queue(),
        }
    }

    /// A step of the trace ends at `at`: the queue as it is now, after all that happens in this
    /// instant, goes on the record.
    pub fn sample(&mut self, now: Time, at: Time) {
        match &mut self.entry {
            Entry::Open(_) => {}
            Entry::Fifo(fifo) => fifo.sample(now, at, &self.way),
            Entry::Elements(elements) => elements.sample(now, at),
        }
    }

    /// Every packet inside.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        let elements = match &self.entry {
            Entry::Open(_) | Entry::Fifo(_) => None,
            Entry::Elements(elements) => Some(elements.inside()),
        };
        self.way.inside().chain(elements.into_iter().flatten())
    }

    /// Checks conservation at the end of a run and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(self) -> Result<LinkOutcome, String> {
        match self.entry {
            Entry::Open(spec) => Ok(self.way.outcome(spec.name)),
            Entry::Fifo(fifo) => fifo.finish(&self.way),
            Entry::Elements(elements) => elements.finish(&self.way),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_cache_line() {
        assert_eq!((size_of::<Link>(), align_of::<Link>()), (64, 64));
    }
}
