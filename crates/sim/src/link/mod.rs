//! A running link: queue, transmitter, delay, and what goes wrong on the way.
//!
//! - [`fifo`]: first in, first out at one rate, or a pure delay, in closed form: the common link
//!   and the fast one.
//! - [`composite`]: every other one, put together from [`gate`] (loss, policer), a queue
//!   ([`timed`]: in closed form, too; [`held`]: with an event per transmission, for disciplines
//!   that own the queue), a [`transmitter`] (schedules and traces) and a [`wire`] (delays,
//!   jitter, reordering).
//! - [`meter`]: what both count, and the checks at the end.

mod composite;
mod fifo;
mod gate;
mod held;
mod meter;
mod timed;
mod transmitter;
mod wire;

use fullpipe_run::{LinkOutcome, LinkSpec};
use fullpipe_units::Time;

pub use meter::Watch;

use crate::packet::Packet;
use composite::CompositeLink;
use fifo::FifoLink;

/// A running link.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // the frequent one is in place
pub enum Link {
    /// First in, first out, one rate, one delay.
    Fifo(FifoLink),
    /// Put together from elements.
    Composite(Box<CompositeLink>),
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
}

/// A packet on its way to the far end.
#[derive(Clone, Copy, Debug)]
struct Flying {
    arrives: Time,
    packet: Packet,
}

impl Flying {
    /// Fills free slots.
    const NONE: Self = Self {
        arrives: Time::ZERO,
        packet: Packet::NONE,
    };
}

impl Link {
    /// A link at time zero.
    pub fn new(spec: &LinkSpec, seed: u64, watch: &Watch) -> Self {
        if spec.is_fifo() {
            let mut spec = spec.clone();
            spec.delay += spec.drawn_spread(seed);
            Self::Fifo(FifoLink::new(&spec, seed, watch))
        } else {
            Self::Composite(Box::new(CompositeLink::new(spec, seed, watch)))
        }
    }

    /// Offers a packet; a queue may drop others in its favour, to `dropped`.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> Admission {
        match self {
            Self::Fifo(link) => link.offer(now, packet),
            Self::Composite(link) => link.offer(now, packet.apart(), dropped),
        }
    }

    /// The oldest packet of those in order, which arrives now, and when the next one does. The link
    /// holds one: its arrival was scheduled.
    #[inline(always)]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        match self {
            Self::Fifo(link) => link.take(),
            Self::Composite(link) => link.wire.take(),
        }
    }

    /// The oldest reordered packet, if it arrives by now, and when the next one does.
    pub fn take_reordered(&mut self) -> (Option<Packet>, Option<Time>) {
        match self {
            Self::Fifo(_) => (None, None),
            Self::Composite(link) => (link.wire.take_reordered(), link.wire.next_reordered()),
        }
    }

    /// A transmission begins: what becomes of its packet, and when the next one begins. What the
    /// queue drops goes to `dropped`.
    pub fn transmit(
        &mut self,
        now: Time,
        dropped: &mut Vec<Packet>,
    ) -> (Option<Admission>, Option<Time>) {
        match self {
            Self::Fifo(_) => (None, None),
            Self::Composite(link) => link.transmit(now, dropped),
        }
    }

    /// For a local queue: `None` if a packet of `size` fits now, else when the oldest waiting
    /// packet will have left.
    #[inline]
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        match self {
            Self::Fifo(link) => link.room(now, size),
            Self::Composite(link) => link.room(now, size),
        }
    }

    /// Every packet inside.
    pub fn inside(&self) -> Box<dyn Iterator<Item = &Packet> + '_> {
        match self {
            Self::Fifo(link) => Box::new(link.inside()),
            Self::Composite(link) => Box::new(link.inside()),
        }
    }

    /// Checks conservation at the end of a run and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(self) -> Result<LinkOutcome, String> {
        match self {
            Self::Fifo(link) => link.finish(),
            Self::Composite(link) => link.finish(),
        }
    }
}
