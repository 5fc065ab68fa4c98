//! Controlled delay (RFC 8289).
//!
//! The law follows section 5's pseudo-code: comparisons, the order of steps, and the count it resumes with. Instead of a drop
//! an ECN-capable packet is marked and sent, as in Linux' `codel_impl.h`. The floor of one MTU is the largest packet seen.
//! The square root is exact, not Newton's approximation.

use std::collections::VecDeque;

use fullpipe_units::{Span, Time};

use super::{Popped, Room};
use crate::packet::Packet;
use crate::spec::Codel;

impl Default for Codel {
    /// The constants of RFC 8289, without marking.
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: false,
        }
    }
}

/// State of the control law of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodelLaw {
    /// When the delay will have been above the target for an interval; `None` while it is not.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// A FIFO of packets with the times they came.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<(Time, Packet)>,
    bytes: u64,
}

/// The time of the drop after one at `t` (RFC 8289, 5.3).
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span::from_nanos(
        libm::round(interval.as_nanos() as f64 / libm::sqrt(f64::from(count))) as u64,
    )
}

impl Fifo {
    /// Appends a packet.
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.packets.push_back((now, packet));
        self.bytes += u64::from(packet.size);
    }

    /// Takes the oldest packet and its time.
    pub fn pop(&mut self) -> Option<(Time, Packet)> {
        let oldest = self.packets.pop_front()?;
        self.bytes -= u64::from(oldest.1.size);
        Some(oldest)
    }

    /// Number of packets.
    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Bytes of the packets.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().map(|(_, packet)| packet)
    }
}

/// A packet at the head and whether it may be dropped.
struct Head {
    popped: Popped,
    above: bool,
}

impl CodelLaw {
    /// The next packet to send from `queue`; `mtu` is the largest packet so far, `marks` counts marks.
    pub fn pop(
        &mut self,
        p: &Codel,
        now: Time,
        queue: &mut Fifo,
        mtu: u16,
        marks: &mut u64,
        dropped: &mut Vec<Packet>,
    ) -> Option<Popped> {
        let mut head = self.head(p, now, queue, mtu);
        if self.dropping {
            self.dropping = head.as_ref().is_some_and(|h| h.above);
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.marked(p, &mut head, marks) {
                    self.drop_next = control_law(self.drop_next, p.interval, self.count);
                    break;
                }
                dropped.extend(head.map(|h| h.popped.packet));
                head = self.head(p, now, queue, mtu);
                if head.as_ref().is_some_and(|h| h.above) {
                    self.drop_next = control_law(self.drop_next, p.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if head.as_ref().is_some_and(|h| h.above) {
            if !self.marked(p, &mut head, marks) {
                dropped.extend(head.map(|h| h.popped.packet));
                head = self.head(p, now, queue, mtu);
            }
            self.begin(p, now);
        }
        head.map(|h| h.popped)
    }

    /// Packets of this queue were dropped for lack of room: the law becomes more eager, as in Linux' `fq_codel_drop`.
    pub fn overflowed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Enters the dropping state; soon after the last one at the rate that controlled the queue then (RFC 8289, 5.5).
    fn begin(&mut self, p: &Codel, now: Time) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now < self.drop_next + p.interval * RECENT_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, p.interval, self.count);
    }

    fn marked(&self, p: &Codel, head: &mut Option<Head>, marks: &mut u64) -> bool {
        match head {
            Some(h) if p.ecn && h.popped.packet.is_ect() => {
                h.popped.packet.mark_ce();
                *marks += 1;
                true
            }
            _ => false,
        }
    }

    /// Takes the packet at the head; it may be dropped if the delay has been above the target for an interval.
    fn head(&mut self, p: &Codel, now: Time, queue: &mut Fifo, mtu: u16) -> Option<Head> {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let waited = now - came;
        let above = if waited < p.target || queue.bytes() <= u64::from(mtu) {
            self.first_above = None;
            false
        } else {
            now >= *self.first_above.get_or_insert(now + p.interval)
        };
        Some(Head {
            popped: Popped { packet, waited },
            above,
        })
    }
}

/// One queue under the law.
#[derive(Debug)]
pub struct CodelQueue {
    p: Codel,
    room: Room,
    law: CodelLaw,
    queue: Fifo,
    mtu: u16,
    marks: u64,
}

impl CodelQueue {
    /// An empty queue.
    pub fn new(p: Codel, room: Room) -> Self {
        Self {
            p,
            room,
            law: CodelLaw::default(),
            queue: Fifo::default(),
            mtu: 0,
            marks: 0,
        }
    }

    /// A packet arrives; it is dropped if there is no room beside the `sending` bytes in transmission.
    pub fn push(&mut self, now: Time, packet: Packet, sending: u16, dropped: &mut Vec<Packet>) {
        let bytes = self.queue.bytes() + u64::from(packet.size);
        if !self.room.holds(self.queue.len() + 1, bytes, sending) {
            dropped.push(packet);
            return;
        }
        self.mtu = self.mtu.max(packet.size);
        self.queue.push(now, packet);
    }

    /// The next packet to send.
    pub fn pop(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Popped> {
        self.law.pop(
            &self.p,
            now,
            &mut self.queue,
            self.mtu,
            &mut self.marks,
            dropped,
        )
    }

    /// Packets waiting.
    pub fn packets(&self) -> u64 {
        self.queue.len()
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Marks so far.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// The packets waiting.
    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.queue.iter()
    }
}

/// A dropping state that begins within this many intervals after the next drop of the last one resumes its count.
const RECENT_INTERVALS: u64 = 16;
