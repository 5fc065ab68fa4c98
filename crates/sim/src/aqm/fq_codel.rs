//! Flow queueing with controlled delay (RFC 8290).
//!
//! Deficit round robin over hashed queues, new queues before old ones (section 4.2), each under
//! CoDel. When the buffer is full, packets are dropped from the head of the queue with the most
//! bytes until half of its bytes or 64 packets are gone (section 4.1; Linux's `fq_codel_drop`). The
//! MTU floor of CoDel looks at the queue's own bytes, as RFC 8289 says.
//!
//! A transmitter that asks while nothing waits takes every queue off its list: each is new, with
//! its whole quantum, when its next packet comes (section 4.2).
//!
//! Under Linux's law the floor looks at the bytes of all queues, and a new queue that the scheduler
//! finds empty while no old one waits leaves its list at once (`net/sched/sch_fq_codel.c`).

use std::collections::VecDeque;

use fullpipe_run::{ComponentRng, FqCodel};
use fullpipe_units::Time;

use super::codel::{Fifo, Law, Served, marked_late};
use super::{Popped, Room};
use crate::packet::Packet;

/// Queues and their scheduler.
#[derive(Debug)]
pub struct FqCodelQueue<L> {
    p: FqCodel,
    room: Room,
    queues: Vec<Queue<L>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
    marks: u64,
    perturbation: u64,
    /// From when on the transmitter asks for packets and there are none.
    idle_from: Option<Time>,
}

#[derive(Debug, Default)]
struct Queue<L> {
    fifo: Fifo,
    law: L,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// It is on one of the lists.
    listed: bool,
}

/// The queue of `key` among `queues` (the finaliser of MurmurHash3; the perturbation comes before
/// it).
fn hashed(key: u64, perturbation: u64, queues: u32) -> u32 {
    let mut h = key ^ perturbation;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^= h >> 33;
    (((h >> 32) * u64::from(queues)) >> 32) as u32
}

impl<L: Law> FqCodelQueue<L> {
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
            marks: 0,
            perturbation: (rng.uniform() * (1u64 << 53) as f64) as u64,
            idle_from: None,
        }
    }

    /// The transmitter is free from `at` on, and nothing waits.
    pub fn ran_empty(&mut self, at: Time) {
        self.idle_from = Some(at);
    }

    /// The scheduler was asked in vain.
    #[cold]
    fn unlist(&mut self) {
        for i in self.new.drain(..).chain(self.old.drain(..)) {
            let queue = &mut self.queues[i as usize];
            queue.listed = false;
            queue.law.ran_empty();
        }
    }

    /// A packet arrives; if there is too little room beside the `sending` bytes in transmission,
    /// the fattest queue pays.
    pub fn push(&mut self, now: Time, packet: Packet, sending: u16, dropped: &mut Vec<Packet>) {
        if self.idle_from.take().is_some_and(|at| at <= now) {
            self.unlist();
        }
        let i = hashed(packet.key(), self.perturbation, self.queues.len() as u32);
        let queue = &mut self.queues[i as usize];
        queue.fifo.push(now, packet);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.p.quantum);
            self.new.push_back(i);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size());
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
            bytes += u64::from(packet.size());
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
            let mut served = Served {
                p: &self.p.codel,
                elsewhere: self.bytes - before.1,
                marks: &mut self.marks,
            };
            let mut popped = queue.law.pop(&mut served, now, &mut queue.fifo, dropped);
            if let Some(popped) = &mut popped {
                marked_late::<L>(&mut served, now, popped);
            }
            self.packets -= before.0 - queue.fifo.len();
            self.bytes -= before.1 - queue.fifo.bytes();
            if let Some(p) = popped {
                queue.deficit -= i64::from(p.packet.size());
                return popped;
            }
            list.pop_front();
            if from_new && (!L::LINUX || !self.old.is_empty()) {
                // A pass through the old queues first: a queue that empties and fills again must
                // not starve them.
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

#[cfg(test)]
mod tests {
    use super::super::codel::CodelLaw;
    use super::super::linux_codel::LinuxLaw;
    use super::super::testing::{ms, packet};
    use super::*;
    use fullpipe_run::Buffer;

    fn fq(buffer: Buffer) -> FqCodelQueue<CodelLaw> {
        let room = Room::new(buffer, 0);
        FqCodelQueue::new(FqCodel::default(), room, ComponentRng::new(1, "fq"))
    }

    /// Bytes sent per flow when the flows, with packets of these sizes, always have `depth` packets
    /// waiting.
    fn shares(sizes: &[u16], departures: u64) -> Vec<u64> {
        let mut q = fq(Buffer::Unlimited);
        let (mut none, mut sent) = (Vec::new(), vec![0u64; sizes.len()]);
        for (flow, size) in sizes.iter().enumerate() {
            (0..10).for_each(|n| q.push(ms(0), packet(flow as u32, *size, n), 0, &mut none));
        }
        for n in 0..departures {
            // No time passes: only the scheduler decides.
            let p = q.pop(ms(0), &mut none).unwrap().packet;
            sent[p.flow as usize] += u64::from(p.size());
            q.push(ms(0), packet(p.flow, p.size(), n), 0, &mut none);
        }
        assert!(none.is_empty());
        sent
    }

    /// Deficit round robin shares bytes, not packets (RFC 8290, 4.2). Never further apart than a
    /// quantum and a packet.
    #[test]
    fn flows_of_small_and_large_packets_send_equal_bytes() {
        let sent = shares(&[1500, 300], 30_000);
        assert!(sent[0].abs_diff(sent[1]) <= 1514 + 1500, "{sent:?}");
        assert!(sent[0] > 7_000_000);
    }

    /// Ten flows: none of them share a queue under this perturbation.
    #[test]
    fn many_flows_share_equally() {
        let sizes = [1500, 300, 64, 1000, 576, 1500, 1500, 200, 900, 1400];
        let sent = shares(&sizes, 100_000);
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= 1514 + 1500, "{sent:?}");
    }

    #[test]
    fn the_hash_spreads_flows_evenly_and_anew_in_every_run() {
        // 10 240 keys in 1024 queues: Poisson with mean 10; none beyond 30.
        let fill = |perturbation| {
            let mut counts = vec![0u32; 1024];
            for key in 0..10_240 {
                counts[hashed(key << 3, perturbation, 1024) as usize] += 1;
            }
            counts
        };
        let (a, b) = (fill(1), fill(2));
        assert!(a.iter().all(|n| *n < 30));
        let variance = a
            .iter()
            .map(|n| (f64::from(*n) - 10.0).powi(2))
            .sum::<f64>()
            / 1024.0;
        assert!((variance - 10.0).abs() < 2.0, "{variance}");
        assert_ne!(a, b);
    }

    /// A packet of a flow with an empty queue leaves next, though 50 of another one wait (RFC 8290,
    /// 4.2: new queues first).
    #[test]
    fn a_sparse_flow_overtakes_a_bulk_flow() {
        let mut q = fq(Buffer::Unlimited);
        let mut none = Vec::new();
        for n in 0..50 {
            q.push(ms(0), packet(0, 1500, n), 0, &mut none);
        }
        // The bulk flow has used its first quantum and is an old queue.
        q.pop(ms(0), &mut none);
        q.pop(ms(0), &mut none);
        for n in 0..5 {
            q.push(ms(0), packet(1, 100, n), 0, &mut none);
            assert_eq!(
                q.pop(ms(0), &mut none).unwrap().packet.flow,
                1,
                "packet {n}"
            );
            assert_eq!(q.pop(ms(0), &mut none).unwrap().packet.flow, 0);
        }
    }

    /// RFC 8290, 4.1: from the head of the queue with the most bytes, half of them, at most 64
    /// packets.
    #[test]
    fn a_full_buffer_drops_from_the_fattest_queue() {
        let mut q = fq(Buffer::Packets(60));
        let mut dropped = Vec::new();
        for n in 0..40 {
            q.push(ms(0), packet(0, 1500, n), 0, &mut dropped);
        }
        for n in 0..20 {
            q.push(ms(0), packet(1, 100, n), 0, &mut dropped);
        }
        assert!(dropped.is_empty());
        q.push(ms(0), packet(1, 100, 20), 0, &mut dropped);
        let number = |p: &Packet| (p.flow, p.number);
        let numbers: Vec<_> = dropped.iter().map(number).collect();
        assert_eq!(numbers, (0..20).map(|n| (0, n)).collect::<Vec<_>>());
        assert_eq!((q.packets(), q.bytes()), (41, 20 * 1500 + 21 * 100));
        // A large buffer: the batch ends at 64.
        let mut q = fq(Buffer::Packets(1000));
        dropped.clear();
        (0..1001).for_each(|n| q.push(ms(0), packet(0, 1500, n), 0, &mut dropped));
        assert_eq!((dropped.len(), q.packets()), (64, 937));
        // The packet in transmission takes room.
        let mut q = fq(Buffer::Packets(2));
        dropped.clear();
        q.push(ms(0), packet(0, 1500, 0), 1500, &mut dropped);
        assert!(dropped.is_empty());
        q.push(ms(0), packet(0, 1500, 1), 1500, &mut dropped);
        assert_eq!(dropped.len(), 1);
    }

    /// When `L` drops, in milliseconds after `start`, when the queue overflowed; it stands since.
    fn drops_after_an_overflow<L: Law>(start: u64) -> Vec<u64> {
        let rng = ComponentRng::new(1, "fq");
        let room = Room::new(Buffer::Packets(200), 0);
        let mut q = FqCodelQueue::<L>::new(FqCodel::default(), room, rng);
        let (mut dropped, mut times) = (Vec::new(), Vec::new());
        (0..201).for_each(|n| q.push(ms(start), packet(0, 1500, n), 0, &mut dropped));
        assert_eq!(dropped.len(), 64);
        dropped.clear();
        for t in 0..1000 {
            q.push(ms(start + t), packet(0, 1500, t), 0, &mut dropped);
            assert!(dropped.is_empty(), "the buffer is full again");
            q.pop(ms(start + t), &mut dropped);
            times.extend(dropped.drain(..).map(|_| t));
        }
        times
    }

    /// A queue that the scheduler found empty has its whole quantum when its next packets come
    /// (RFC 8290, 4.1 and 4.2; `fq_codel_enqueue`); one that it was not asked for in vain has what
    /// is left of it.
    #[test]
    fn a_queue_found_empty_is_new_again() {
        fn served<L: Law>(asked: bool) -> [u32; 3] {
            let rng = ComponentRng::new(1, "fq");
            let mut q = FqCodelQueue::<L>::new(FqCodel::default(), Room::waiting(9), rng);
            let mut none = Vec::new();
            // 14 of 1514 bytes are left.
            q.push(ms(0), packet(1, 1500, 0), 0, &mut none);
            q.pop(ms(0), &mut none);
            if asked {
                q.ran_empty(ms(1));
            }
            for flow in [1, 1, 0] {
                q.push(ms(2), packet(flow, 1500, 1), 0, &mut none);
            }
            [0; 3].map(|_| q.pop(ms(2), &mut none).unwrap().packet.flow)
        }
        for (asked, expected) in [(true, [1, 1, 0]), (false, [1, 0, 1])] {
            assert_eq!(served::<CodelLaw>(asked), expected, "{asked}");
            assert_eq!(served::<LinuxLaw>(asked), expected, "{asked}");
        }
    }

    /// Ten packets that CoDel dropped, then 64 for want of room: those count under Linux's law only
    /// (`fq_codel_drop`), RFC 8290, 4.1, tells CoDel nothing of them.
    #[test]
    fn only_linux_counts_packets_dropped_for_want_of_room() {
        fn gap_after<L: Law>() -> u64 {
            let rng = ComponentRng::new(1, "fq");
            let room = Room::new(Buffer::Packets(200), 0);
            let mut q = FqCodelQueue::<L>::new(FqCodel::default(), room, rng);
            let (mut dropped, mut drops) = (Vec::new(), Vec::new());
            (0..100).for_each(|n| q.push(ms(0), packet(0, 1500, n), 0, &mut dropped));
            let mut full = false;
            for t in 0..2000 {
                q.push(ms(t), packet(0, 1500, t), 0, &mut dropped);
                q.pop(ms(t), &mut dropped);
                drops.extend(dropped.drain(..).map(|_| t));
                if !full && drops.len() == 10 {
                    full = true;
                    while dropped.is_empty() {
                        q.push(ms(t), packet(0, 1500, t), 0, &mut dropped);
                    }
                    assert_eq!(dropped.len(), 64);
                    dropped.clear();
                }
            }
            drops[12] - drops[11]
        }
        // 100 ms / sqrt(12). Of 76 Newton's iteration, which began at ten, has no root yet.
        assert_eq!(gap_after::<CodelLaw>(), 29);
        assert_ne!(gap_after::<LinuxLaw>(), 29);
    }

    /// A queue that never was in a dropping state has no recent one, whenever the traffic starts:
    /// it begins to drop with a count of one, though 64 packets were dropped for want of room. The
    /// starts are whole numbers of the kernel's units.
    #[test]
    fn dropping_begins_at_one_whenever_traffic_starts() {
        for drops in [
            [0, 3072, 61_440].map(drops_after_an_overflow::<CodelLaw>),
            [0, 3072, 61_440].map(drops_after_an_overflow::<LinuxLaw>),
        ] {
            let [at_once, later, late] = drops;
            assert_eq!((&at_once, &at_once), (&later, &late));
            assert!(at_once[1] - at_once[0] >= 99, "{at_once:?}");
        }
    }

    /// Each queue has its own law: a flow that keeps a standing queue is dropped from, one that
    /// does not is spared.
    #[test]
    fn only_the_flow_with_a_standing_queue_is_controlled() {
        let mut q = fq(Buffer::Unlimited);
        let (mut dropped, mut sent) = (Vec::new(), 0u64);
        for t in 0..3000 {
            // 1 packet per ms leaves; flow 0 sends 1.2 of them, flow 1 a tenth.
            q.push(ms(t), packet(0, 1500, t), 0, &mut dropped);
            if t % 5 == 0 {
                q.push(ms(t), packet(0, 1500, t), 0, &mut dropped);
            }
            if t % 10 == 0 {
                q.push(ms(t), packet(1, 1500, t), 0, &mut dropped);
            }
            sent += u64::from(q.pop(ms(t), &mut dropped).is_some());
        }
        assert!(dropped.len() > 20);
        assert!(dropped.iter().all(|p| p.flow == 0));
        assert_eq!(dropped.len() as u64 + sent + q.packets(), 3000 + 600 + 300);
        assert_eq!(q.waiting().count() as u64, q.packets());
    }
}
