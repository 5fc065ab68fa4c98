//! The way of a link: packets that arrive in the order in which they left, a delay later.

use fullpipe_run::{Histogram, LinkOutcome};
use fullpipe_units::{Span, Time};

use super::Admission;
use crate::packet::Packet;
use crate::ring::Ring;

/// Packets on their way to the far end.
#[derive(Debug)]
pub struct Way {
    flying: Ring<Flying>,
    delay: Span,
    /// Bytes of the packets that arrived.
    taken_bytes: u64,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Flying {
    pub arrives: Time,
    pub packet: Packet,
}

impl Flying {
    /// Fills free slots.
    pub const NONE: Self = Self {
        arrives: Time::ZERO,
        packet: Packet::NONE,
    };
}

impl Way {
    /// An empty one.
    pub fn new(delay: Span) -> Self {
        Self {
            flying: Ring::new(Flying::NONE),
            delay,
            taken_bytes: 0,
        }
    }

    /// A packet leaves the transmitter at `departs`, no earlier than the one before.
    #[inline(always)]
    pub fn send(&mut self, departs: Time, packet: Packet) -> Admission {
        self.join(departs + self.delay, packet)
    }

    /// A packet arrives at `arrives`, no earlier than the one before.
    #[inline(always)]
    pub fn join(&mut self, arrives: Time, packet: Packet) -> Admission {
        let first = self.flying.is_empty();
        self.flying.push(Flying { arrives, packet });
        Admission::Accepted { arrives, first }
    }

    /// The oldest packet, which arrives now, and when the next one does.
    #[inline(always)]
    pub fn take(&mut self) -> (Packet, Option<Time>) {
        let (oldest, next) = self.flying.pop_before_next();
        self.taken_bytes += u64::from(oldest.packet.size());
        (oldest.packet, next.map(|f| f.arrives))
    }

    /// Packets sent so far.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.flying.pushed()
    }

    /// Packets that arrived, and their bytes.
    pub fn arrived(&self) -> (u64, u64) {
        (self.flying.popped(), self.taken_bytes)
    }

    /// When packet `n` of all left the transmitter; it has not arrived.
    pub fn departure(&self, n: u64) -> Time {
        self.flying.get(n).arrives - self.delay
    }

    /// Bytes of packet `n` of all; it has not arrived.
    pub fn size(&self, n: u64) -> u16 {
        self.flying.get(n).packet.size()
    }

    /// The [`Packet::key`] of the packet that was sent last.
    pub fn newest_key(&self) -> Option<u64> {
        self.flying.iter().next_back().map(|f| f.packet.key())
    }

    /// Every packet on the way.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        self.flying.iter().map(|f| &f.packet)
    }

    /// The result of a pure delay, where nothing waits and nothing is a part of a capacity.
    pub fn outcome(&self, name: String) -> LinkOutcome {
        let inside: u64 = self.inside().map(|p| u64::from(p.size())).sum();
        LinkOutcome {
            name,
            offered: self.sent(),
            delivered: self.sent(),
            delivered_bytes: self.taken_bytes + inside,
            measured_bytes: 0,
            buffer_drops: 0,
            random_drops: 0,
            policer_drops: 0,
            early_drops: 0,
            marks: 0,
            ties: None,
            queueing_delay: Histogram::default(),
            queue_max: 0,
            queue_mean: 0.0,
            utilization: 0.0,
            series: Vec::new(),
        }
    }
}
