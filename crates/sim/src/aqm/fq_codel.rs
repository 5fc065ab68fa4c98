//! Flow queueing with controlled delay (RFC 8290).
//!
//! Deficit round robin over hashed queues, new queues before old ones (section 4.2), each under CoDel. When the
//! buffer is full, packets are dropped from the head of the queue with the most bytes until half of its bytes or 64 packets
//! are gone (section 4.1; Linux' `fq_codel_drop`). The MTU floor of CoDel looks at the queue's own bytes, as RFC 8289
//! says; Linux looks at the bytes of all queues.

use std::collections::VecDeque;

use fullpipe_units::Time;

use super::codel::{CodelLaw, Fifo};
use super::{Popped, Room};
use crate::packet::Packet;
use crate::rng::ComponentRng;
use crate::spec::{Codel, FqCodel};

impl Default for FqCodel {
    /// The constants of RFC 8290 (section 5.2), without marking.
    fn default() -> Self {
        Self {
            codel: Codel::default(),
            flows: 1024,
            quantum: 1514,
        }
    }
}

/// Queues and their scheduler.
#[derive(Debug)]
pub struct FqCodelQueue {
    p: FqCodel,
    room: Room,
    queues: Vec<Queue>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
    mtu: u16,
    marks: u64,
    perturbation: u64,
}

#[derive(Debug, Default)]
struct Queue {
    fifo: Fifo,
    law: CodelLaw,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// It is on one of the lists.
    listed: bool,
}

/// The queue of `key` among `queues` (the finaliser of MurmurHash3; the perturbation comes before it).
fn hashed(key: u64, perturbation: u64, queues: u32) -> u32 {
    let mut h = key ^ perturbation;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^= h >> 33;
    (((h >> 32) * u64::from(queues)) >> 32) as u32
}

impl FqCodelQueue {
    /// Empty queues; `rng` gives the perturbation of the hash.
    pub fn new(p: FqCodel, room: Room, mut rng: ComponentRng) -> Self {
        Self {
            p,
            room,
            queues: (0..p.flows.max(1)).map(|_| Queue::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            mtu: 0,
            marks: 0,
            perturbation: (rng.uniform() * (1u64 << 53) as f64) as u64,
        }
    }

    /// A packet arrives; if there is too little room beside the `sending` bytes in transmission, the fattest queue pays.
    pub fn push(&mut self, now: Time, packet: Packet, sending: u16, dropped: &mut Vec<Packet>) {
        let i = hashed(packet.key(), self.perturbation, self.queues.len() as u32);
        let queue = &mut self.queues[i as usize];
        queue.fifo.push(now, packet);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.p.quantum);
            self.new.push_back(i);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        self.mtu = self.mtu.max(packet.size);
        while !self.room.holds(self.packets, self.bytes, sending) && self.packets > 0 {
            self.overflow(dropped);
        }
    }

    /// Drops from the head of the fattest queue, the first one if several are.
    fn overflow(&mut self, dropped: &mut Vec<Packet>) {
        let fattest = self.queues.iter_mut().rev().max_by_key(|q| q.fifo.bytes());
        let Some(queue) = fattest else { return };
        let half = queue.fifo.bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets < MOST_DROPS && (packets == 0 || bytes < half) {
            let Some((_, packet)) = queue.fifo.pop() else {
                break;
            };
            packets += 1;
            bytes += u64::from(packet.size);
            dropped.push(packet);
        }
        queue.law.overflowed(packets);
        self.packets -= u64::from(packets);
        self.bytes -= bytes;
    }

    /// The next packet to send.
    pub fn pop(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Popped> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let i = *list.front()?;
            let queue = &mut self.queues[i as usize];
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.p.quantum);
                list.pop_front();
                self.old.push_back(i);
                continue;
            }
            let before = (queue.fifo.len(), queue.fifo.bytes());
            let popped = queue.law.pop(
                &self.p.codel,
                now,
                &mut queue.fifo,
                self.mtu,
                &mut self.marks,
                dropped,
            );
            self.packets -= before.0 - queue.fifo.len();
            self.bytes -= before.1 - queue.fifo.bytes();
            if let Some(p) = popped {
                queue.deficit -= i64::from(p.packet.size);
                return popped;
            }
            list.pop_front();
            if from_new {
                // A pass through the old queues first: a queue that empties and fills again must not starve them.
                self.old.push_back(i);
            } else {
                queue.listed = false;
            }
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Marks so far.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// The packets waiting.
    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flat_map(|q| q.fifo.iter())
    }
}

/// At most this many packets are dropped at once.
const MOST_DROPS: u32 = 64;
