//! Controlled delay (RFC 8289).
//!
//! The RFC's law follows section 5's pseudo-code: comparisons, the order of steps, and the count it
//! resumes with. Instead of a drop an ECN-capable packet is marked and sent, as in Linux's
//! `codel_impl.h`. The floor is the MTU of the path (section 5.3: of the interface). The square
//! root is exact; [Linux's law](super::linux_codel::LinuxLaw) approximates it.

use std::collections::VecDeque;

use fullpipe_run::Codel;
use fullpipe_units::{Span, Time};

use super::{Popped, Room};
use crate::packet::Packet;

/// A control law: when a packet that leaves its queue is dropped or marked instead.
pub trait Law: Default + std::fmt::Debug {
    /// It is Linux's, and its scheduler too.
    const LINUX: bool;

    /// The next packet to send from `queue`; what is dropped before it goes to `dropped`.
    fn pop(
        &mut self,
        s: &mut Served<'_>,
        now: Time,
        queue: &mut Fifo,
        dropped: &mut Vec<Packet>,
    ) -> Option<Popped>;

    /// True if a packet that leaves `now` after having `waited` has waited longer than `threshold`.
    fn exceeds(now: Time, waited: Span, threshold: Span) -> bool;

    /// Packets of this queue were dropped for lack of room.
    fn overflowed(&mut self, packets: u32);

    /// The transmitter asked for a packet and there was none.
    fn ran_empty(&mut self);
}

/// What a law is told of the queues that it serves.
#[derive(Debug)]
pub struct Served<'a> {
    /// Target, interval and whether it marks.
    pub p: &'a Codel,
    /// Bytes in other queues before the same transmitter.
    pub elsewhere: u64,
    /// Counts marks.
    pub marks: &'a mut u64,
}

/// Marks a packet instead of dropping it, if it may be marked.
pub fn marked(s: &mut Served<'_>, packet: &mut Packet) -> bool {
    let marks = s.p.ecn && packet.is_ect();
    if marks {
        packet.mark_ce();
        *s.marks += 1;
    }
    marks
}

/// Marks a packet that leaves after more than [`Codel::ce_threshold`].
pub fn marked_late<L: Law>(s: &mut Served<'_>, now: Time, popped: &mut Popped) {
    let Some(threshold) = s.p.ce_threshold else {
        return;
    };
    let packet = &mut popped.packet;
    if packet.is_ect() && !packet.is_ce() && L::exceeds(now, popped.waited, threshold) {
        packet.mark_ce();
        *s.marks += 1;
    }
}

/// State of the RFC's control law of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodelLaw {
    /// When the delay will have been above the target for an interval; `None` while it is not.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    /// Count with which the last dropping state began; 0: there was none.
    last_count: u32,
    dropping: bool,
}

/// A FIFO of packets with the times they came.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<(Time, Packet)>,
    bytes: u64,
}

/// The time of the drop after one at `t` (RFC 8289, `control_law`).
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span::from_nanos(
        libm::round(interval.as_nanos() as f64 / libm::sqrt(f64::from(count))) as u64,
    )
}

impl Fifo {
    /// Appends a packet.
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.packets.push_back((now, packet));
        self.bytes += u64::from(packet.size());
    }

    /// Takes the oldest packet and its time.
    pub fn pop(&mut self) -> Option<(Time, Packet)> {
        let oldest = self.packets.pop_front()?;
        self.bytes -= u64::from(oldest.1.size());
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

impl Law for CodelLaw {
    const LINUX: bool = false;

    fn pop(
        &mut self,
        s: &mut Served<'_>,
        now: Time,
        queue: &mut Fifo,
        dropped: &mut Vec<Packet>,
    ) -> Option<Popped> {
        let mut head = self.head(s, now, queue);
        if self.dropping {
            self.dropping = head.as_ref().is_some_and(|h| h.above);
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if Self::marked(s, &mut head) {
                    self.drop_next = control_law(self.drop_next, s.p.interval, self.count);
                    break;
                }
                dropped.extend(head.map(|h| h.popped.packet));
                head = self.head(s, now, queue);
                if head.as_ref().is_some_and(|h| h.above) {
                    self.drop_next = control_law(self.drop_next, s.p.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if head.as_ref().is_some_and(|h| h.above) {
            if !Self::marked(s, &mut head) {
                dropped.extend(head.map(|h| h.popped.packet));
                head = self.head(s, now, queue);
            }
            self.begin(s.p, now);
        }
        head.map(|h| h.popped)
    }

    fn exceeds(_now: Time, waited: Span, threshold: Span) -> bool {
        waited > threshold
    }

    /// Neither RFC 8289 nor RFC 8290 (section 4.1) counts them.
    fn overflowed(&mut self, _: u32) {}

    /// The floor of one MTU said so when the last packet left.
    fn ran_empty(&mut self) {}
}

impl CodelLaw {
    /// Enters the dropping state; soon after the last one at the rate that controlled the queue
    /// then.
    fn begin(&mut self, p: &Codel, now: Time) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        // Before the first dropping state `drop_next` means nothing.
        let recent = self.last_count > 0 && now < self.drop_next + p.interval * RECENT_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, p.interval, self.count);
    }

    fn marked(s: &mut Served<'_>, head: &mut Option<Head>) -> bool {
        head.as_mut()
            .is_some_and(|h| marked(s, &mut h.popped.packet))
    }

    /// Takes the packet at the head; it may be dropped if the delay has been above the target for
    /// an interval.
    fn head(&mut self, s: &Served<'_>, now: Time, queue: &mut Fifo) -> Option<Head> {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let waited = now - came;
        let above = if waited < s.p.target || queue.bytes() <= u64::from(s.p.mtu) {
            self.first_above = None;
            false
        } else {
            now >= *self.first_above.get_or_insert(now + s.p.interval)
        };
        Some(Head {
            popped: Popped { packet, waited },
            above,
        })
    }
}

/// One queue under a law.
#[derive(Debug)]
pub struct CodelQueue<L> {
    p: Codel,
    room: Room,
    law: L,
    queue: Fifo,
    marks: u64,
}

impl<L: Law> CodelQueue<L> {
    /// An empty queue.
    pub fn new(p: Codel, room: Room) -> Self {
        Self {
            p,
            room,
            law: L::default(),
            queue: Fifo::default(),
            marks: 0,
        }
    }

    /// A packet arrives; it is dropped if there is no room beside the `sending` bytes in
    /// transmission.
    pub fn push(&mut self, now: Time, packet: Packet, sending: u16, dropped: &mut Vec<Packet>) {
        let bytes = self.queue.bytes() + u64::from(packet.size());
        if !self.room.holds(self.queue.len() + 1, bytes, sending) {
            dropped.push(packet);
            return;
        }
        self.queue.push(now, packet);
    }

    /// The next packet to send.
    pub fn pop(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Popped> {
        let mut served = Served {
            p: &self.p,
            elsewhere: 0,
            marks: &mut self.marks,
        };
        let mut popped = self.law.pop(&mut served, now, &mut self.queue, dropped);
        if let Some(popped) = &mut popped {
            marked_late::<L>(&mut served, now, popped);
        }
        popped
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

/// A dropping state that begins within this many intervals after the next drop of the last one
/// resumes its count.
pub const RECENT_INTERVALS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::super::linux_codel::LinuxLaw;
    use super::super::testing::{capable, ms, packet};
    use super::*;
    use fullpipe_run::Buffer;

    const STEP: Span = Span::from_micros(10);

    /// A law before a queue that always holds `backlog` packets which waited for the delay given.
    #[derive(Default)]
    struct Standing {
        law: CodelLaw,
        p: Codel,
        ect: bool,
        marks: u64,
        now: u64,
    }

    impl Standing {
        /// Times in steps of 10 microseconds at which packets are dropped or marked, over `steps`.
        fn drops(&mut self, delay: Span, backlog: u64, steps: u64) -> Vec<u64> {
            let mut drops = Vec::new();
            for _ in 0..steps {
                self.now += 1;
                let now = Time::ZERO + Span::from_secs(100) + STEP * self.now;
                let mut fifo = Fifo::default();
                for n in 0..backlog {
                    let p = if self.ect {
                        capable(n)
                    } else {
                        packet(0, 1500, n)
                    };
                    fifo.push(now - delay, p);
                }
                let (before, mut dropped) = (self.marks, Vec::new());
                let mut served = Served {
                    p: &self.p,
                    elsewhere: 0,
                    marks: &mut self.marks,
                };
                let popped = self.law.pop(&mut served, now, &mut fifo, &mut dropped);
                assert_eq!(popped.unwrap().waited, delay);
                let n = dropped.len() as u64 + self.marks - before;
                drops.extend((0..n).map(|_| self.now));
            }
            drops
        }
    }

    /// Steps at which the law drops when the delay rises at step `from`: after an interval, then
    /// after an interval over the square root of `count`, `count` + 1, ...
    fn expected(from: u64, count: u32, n: usize) -> Vec<u64> {
        let interval = 10_000.0;
        let mut exact = from as f64 + interval;
        let mut steps = vec![exact as u64];
        for k in 0..n as u32 - 1 {
            exact += interval / f64::from(count + k).sqrt();
            steps.push((exact - 1e-3).ceil() as u64);
        }
        steps
    }

    /// RFC 8289, `control_law`: above the target for 100 ms, then gaps of 100 ms / sqrt(count):
    /// 100, 70.7, 57.7, 50 ...
    #[test]
    fn drops_come_faster_by_the_square_root() {
        let mut s = Standing::default();
        let drops = s.drops(Span::from_millis(20), 5, 120_000);
        assert!(drops.len() > 30, "{}", drops.len());
        assert_eq!(drops, expected(1, 1, drops.len()));
        assert_eq!(drops[..4], [10_001, 20_001, 27_073, 32_846]);
    }

    #[test]
    fn marks_come_at_the_same_times_and_nothing_is_dropped() {
        let ecn = Codel {
            ecn: true,
            ..Codel::default()
        };
        let mut s = Standing {
            ect: true,
            p: ecn,
            ..Standing::default()
        };
        let drops = s.drops(Span::from_millis(20), 5, 60_000);
        assert_eq!(drops, expected(1, 1, drops.len()));
        assert_eq!(s.marks, drops.len() as u64);
        // Packets that may not be marked are dropped, and ECN that is off marks nothing.
        let mut plain = Standing {
            p: ecn,
            ..Standing::default()
        };
        assert_eq!(plain.drops(Span::from_millis(20), 5, 60_000), drops);
        let mut off = Standing {
            ect: true,
            ..Standing::default()
        };
        assert_eq!(off.drops(Span::from_millis(20), 5, 60_000), drops);
        assert_eq!((plain.marks, off.marks), (0, 0));
    }

    /// Whether the law itself marks or not: what has waited longer than the threshold, of what may
    /// be marked. Linux counts in units of 1024 ns.
    #[test]
    fn what_waits_longer_than_the_threshold_is_marked() {
        fn marks<L: Law>(waited: u64, ect: bool) -> u64 {
            let p = Codel {
                ce_threshold: Some(Span::from_micros(1000)),
                ..Codel::default()
            };
            let mut q = CodelQueue::<L>::new(p, Room::new(Buffer::Unlimited, 0));
            let mut dropped = Vec::new();
            for n in 0..3 {
                let packet = if ect { capable(n) } else { packet(0, 1500, n) };
                q.push(ms(0), packet, 0, &mut dropped);
            }
            let popped = q.pop(Time::from_nanos(waited), &mut dropped).unwrap();
            assert_eq!(popped.packet.is_ce(), q.marks() > 0);
            assert!(dropped.is_empty());
            q.marks()
        }
        assert_eq!(marks::<CodelLaw>(1_000_000, true), 0);
        assert_eq!(marks::<CodelLaw>(1_000_001, true), 1);
        assert_eq!(marks::<CodelLaw>(9_000_000, false), 0);
        assert_eq!(marks::<LinuxLaw>(999_000, true), 0);
        assert_eq!(marks::<LinuxLaw>(1_003_000, true), 1);
        assert_eq!(marks::<LinuxLaw>(9_000_000, false), 0);
    }

    #[test]
    fn nothing_is_dropped_below_the_target_or_from_one_packet() {
        let mut s = Standing::default();
        assert_eq!(s.drops(Span::from_nanos(4_999_999), 5, 50_000), []);
        assert_eq!(s.drops(Span::from_millis(50), 2, 50_000), []);
        // A single low delay within the interval begins it anew.
        assert_eq!(s.drops(Span::from_millis(5), 5, 10_000), []);
        assert_eq!(s.drops(Span::from_millis(4), 5, 1), []);
        assert_eq!(s.drops(Span::from_millis(5), 5, 10_001), [120_002]);
    }

    /// RFC 8289, 5.3: the floor is the MTU of the interface, whatever comes: 15 packets of 100
    /// bytes wait in peace from the first on, 16 do not.
    #[test]
    fn the_floor_is_the_mtu_of_the_path() {
        for (waiting, drops) in [(15, 0), (16, 1)] {
            let room = Room::new(Buffer::Unlimited, 0);
            let mut q = CodelQueue::<CodelLaw>::new(Codel::default(), room);
            let mut dropped = Vec::new();
            for t in [0, 101] {
                // The one that leaves does not count.
                let n = waiting + 1 - q.packets();
                (0..n).for_each(|n| q.push(ms(t), packet(0, 100, n), 0, &mut dropped));
                q.pop(ms(t + 5), &mut dropped);
            }
            assert_eq!(dropped.len(), drops, "{waiting}");
        }
    }

    /// Ten drops, a pause: if the law drops again less than 16 intervals after the eleventh,
    /// which did not come, the count goes on at 10 - 1 = 9, so the next gap is 100 ms / 3; later it
    /// begins at one. The eleventh would have come 100 ms / sqrt(10), 3162 steps, after the tenth,
    /// and striking again takes 10 000 steps: the limit is a pause of 153 162 steps.
    #[test]
    fn a_count_is_resumed_soon_after() {
        for (pause, count) in [(100_000, 9), (153_150, 9), (153_175, 1)] {
            let mut s = Standing::default();
            let high = Span::from_millis(20);
            while s.law.count < 10 {
                s.drops(high, 5, 1);
            }
            s.drops(Span::from_millis(1), 5, pause);
            let from = s.now + 1;
            let drops = s.drops(high, 5, 25_000);
            assert!(drops.len() > 1);
            assert_eq!(drops, expected(from, count, drops.len()), "pause {pause}");
        }
    }

    /// An arrival every millisecond, a departure every 2 ms: the queue grows, and every packet is
    /// either sent, or dropped by the law, or waits.
    #[test]
    fn packets_are_conserved_and_the_limit_holds() {
        let mut q =
            CodelQueue::<CodelLaw>::new(Codel::default(), Room::new(Buffer::Packets(50), 0));
        let (mut tail, mut head, mut sent) = (Vec::new(), Vec::new(), 0u64);
        for t in 0..5000 {
            q.push(ms(t), packet(0, 1500, t), 1500, &mut tail);
            if t % 2 == 0 {
                sent += u64::from(q.pop(ms(t), &mut head).is_some());
            }
            assert!(q.packets() <= 49);
            assert_eq!(q.bytes(), q.packets() * 1500);
        }
        assert!(!tail.is_empty() && !head.is_empty());
        assert_eq!(
            tail.len() as u64 + head.len() as u64 + sent + q.packets(),
            5000
        );
    }
}
