//! Controlled delay as `include/net/codel_impl.h` has it.
//!
//! Where it departs from RFC 8289:
//!
//! - 1 / sqrt(count) is a fraction of 16 bits that gets one step of Newton's iteration per drop.
//!   The second gap is 50 ms and not 71, the third 56 and not 58, and a count that is resumed
//!   begins with the root of another one.
//! - Time has units of 1024 ns, and the interval above the target must be over, not just end.
//! - The floor of one MTU looks at the bytes of all queues (FQ-CoDel).
//! - Packets dropped for want of room raise the count of their queue (FQ-CoDel).

use fullpipe_run::Codel;
use fullpipe_units::{Span, Time};

use super::Popped;
use super::codel::{Fifo, Law, RECENT_INTERVALS, Served, marked};
use super::linux_clock::kernel_time;
use crate::packet::Packet;

/// State of the control law of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxLaw {
    /// When the delay will have been above the target for an interval, in units.
    first_above: Option<u64>,
    /// Units.
    drop_next: u64,
    count: u32,
    /// Count with which the last dropping state began; 0: there was none.
    last_count: u32,
    /// 1 / sqrt(count), in 2^-16.
    root: u16,
    dropping: bool,
}

/// Units of 1024 ns (`CODEL_SHIFT`).
fn units(nanos: u64) -> u64 {
    nanos >> 10
}

/// One step from `root` towards 1 / sqrt(count): `x (3 - count x^2) / 2` (`codel_Newton_step`).
fn newton(root: u16, count: u32) -> u16 {
    let x = u64::from(root) << 16;
    let square = (x * x) >> 32;
    // In 2^-32; a quarter of it, so that the product fits.
    let rest = (3u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
    (rest.wrapping_mul(x) >> (32 - 2 + 1 + 16)) as u16
}

impl LinuxLaw {
    /// The drop after one at `t`.
    fn after(&self, p: &Codel, t: u64) -> u64 {
        t + ((units(p.interval.as_nanos()) * u64::from(self.root)) >> 16)
    }

    /// Enters the dropping state; soon after the last one at the rate that controlled the queue
    /// then.
    fn begin(&mut self, p: &Codel, now: u64) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        // Before the first dropping state `drop_next` is the boot of the kernel, which on a router
        // is long ago.
        let recent = self.last_count > 0
            && now < self.drop_next + RECENT_INTERVALS * units(p.interval.as_nanos());
        if delta > 1 && recent {
            self.count = delta;
            self.root = newton(self.root, delta);
        } else {
            self.count = 1;
            self.root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(p, now);
    }

    /// Whether a packet that waited from `came` on may be dropped (`codel_should_drop`).
    fn above(&mut self, s: &Served<'_>, came: Time, now: u64, backlog: u64) -> bool {
        let waited = now - units(kernel_time(came).as_nanos());
        if waited < units(s.p.target.as_nanos()) || backlog <= u64::from(s.p.mtu) {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + units(s.p.interval.as_nanos()));
                false
            }
            Some(end) => now > end,
        }
    }

    /// Takes the packet at the head, and tells whether it may be dropped.
    fn head(&mut self, s: &Served<'_>, now: Time, queue: &mut Fifo) -> Option<(Popped, bool)> {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let units = units(kernel_time(now).as_nanos());
        let above = self.above(s, came, units, queue.bytes() + s.elsewhere);
        let waited = now - came;
        Some((Popped { packet, waited }, above))
    }
}

impl Law for LinuxLaw {
    const LINUX: bool = true;

    /// `codel_time_after(ldelay, ce_threshold)`.
    fn exceeds(now: Time, waited: Span, threshold: Span) -> bool {
        let at = |time: Time| units(kernel_time(time).as_nanos());
        at(now) - at(now - waited) > units(threshold.as_nanos())
    }

    fn pop(
        &mut self,
        s: &mut Served<'_>,
        now: Time,
        queue: &mut Fifo,
        dropped: &mut Vec<Packet>,
    ) -> Option<Popped> {
        let Some((mut popped, above)) = self.head(s, now, queue) else {
            self.dropping = false;
            return None;
        };
        let t = units(kernel_time(now).as_nanos());
        if !self.dropping {
            if !above {
                return Some(popped);
            }
            let next = match marked(s, &mut popped.packet) {
                true => Some(popped),
                false => {
                    dropped.push(popped.packet);
                    self.head(s, now, queue).map(|(popped, _)| popped)
                }
            };
            self.begin(s.p, t);
            return next;
        }
        self.dropping = above;
        while self.dropping && t >= self.drop_next {
            self.count = self.count.wrapping_add(1);
            self.root = newton(self.root, self.count);
            if marked(s, &mut popped.packet) {
                self.drop_next = self.after(s.p, self.drop_next);
                break;
            }
            dropped.push(popped.packet);
            match self.head(s, now, queue) {
                Some((next, true)) => {
                    popped = next;
                    self.drop_next = self.after(s.p, self.drop_next);
                }
                Some((next, false)) => {
                    popped = next;
                    self.dropping = false;
                }
                None => {
                    self.dropping = false;
                    return None;
                }
            }
        }
        Some(popped)
    }

    /// The law becomes more eager (`fq_codel_drop`).
    fn overflowed(&mut self, packets: u32) {
        self.count = self.count.wrapping_add(packets);
    }

    fn ran_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Room;
    use super::super::codel::CodelQueue;
    use super::super::fq_codel::FqCodelQueue;
    use super::super::testing::{ms, packet};
    use super::*;
    use fullpipe_run::{ComponentRng, FqCodel};
    use fullpipe_units::Span;

    /// `codel_Newton_step` from 0xffff, the root of one: in 2^-16. 32769 is 0.500 and not 0.707.
    #[test]
    fn roots_follow_the_kernels_steps() {
        let mut root = u16::MAX;
        let roots = (2..=8).map(|count| {
            root = newton(root, count);
            root
        });
        let expected = [32_769, 36_864, 31_968, 28_935, 26_481, 24_588, 23_037];
        assert_eq!(roots.collect::<Vec<_>>(), expected);
        // The root of eleven as a first guess at that of eight.
        assert_eq!(newton(19_699, 8), 22_429);
    }

    /// Times in units since the first drop at which a queue that stands at 20 ms loses packets; a
    /// packet leaves every unit of 1024 ns.
    fn drops(n: usize) -> Vec<u64> {
        let p = Codel::default();
        let (mut law, mut marks, mut times) = (LinuxLaw::default(), 0, Vec::new());
        let mut unit = 1_000_000u64;
        while times.len() < n {
            let now = Time::from_nanos(unit << 10);
            let mut queue = Fifo::default();
            (0..5).for_each(|n| queue.push(now - Span::from_millis(20), packet(0, 1500, n)));
            let mut served = Served {
                p: &p,
                elsewhere: 0,
                marks: &mut marks,
            };
            let mut dropped = Vec::new();
            law.pop(&mut served, now, &mut queue, &mut dropped).unwrap();
            times.extend(dropped.iter().map(|_| unit));
            unit += 1;
        }
        // 100 ms are 97 656 units; above the target from the first packet on, and for longer.
        assert_eq!(times[0], 1_000_000 + 97_656 + 1);
        times.iter().map(|t| t - times[0]).collect()
    }

    /// Gaps of 97 656 units times the roots of `roots_follow_the_kernels_steps`: the second is 50
    /// ms.
    #[test]
    fn gaps_follow_the_roots() {
        let gaps: Vec<_> = drops(5).windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(gaps, [97_654, 48_829, 54_931, 47_635]);
    }

    /// `codel_dequeue`: a delay of one unit less than the target leaves the dropping state, and so
    /// does a queue of one packet.
    #[test]
    fn the_target_is_compared_in_units() {
        let p = Codel {
            target: Span::from_nanos(5 << 10),
            interval: Span::from_nanos(1 << 10),
            ..Codel::default()
        };
        // The clock of the kernel is 200 ms, not a whole number of units, ahead.
        for (waited, packets, above) in [(5u64, 3, true), (4, 3, false), (5, 2, false)] {
            let (mut law, mut marks, mut dropped) = (LinuxLaw::default(), 0, Vec::new());
            for unit in [100_000u64, 100_002] {
                let now = Time::from_nanos(unit << 10);
                let mut queue = Fifo::default();
                let came = now - Span::from_nanos(waited << 10);
                (0..packets).for_each(|n| queue.push(came, packet(0, 1500, n)));
                let mut served = Served {
                    p: &p,
                    elsewhere: 0,
                    marks: &mut marks,
                };
                law.pop(&mut served, now, &mut queue, &mut dropped);
            }
            assert_eq!(dropped.len(), usize::from(above), "{waited} {packets}");
        }
    }

    /// The limit is one of packets that wait: the one in transmission is not among them.
    #[test]
    fn the_limit_is_of_packets_that_wait() {
        let mut q = CodelQueue::<LinuxLaw>::new(Codel::default(), Room::waiting(2));
        let mut dropped = Vec::new();
        (0..3).for_each(|n| q.push(ms(0), packet(0, 1500, n), 1500, &mut dropped));
        assert_eq!((q.packets(), dropped.len()), (2, 1));
    }

    /// Two flows, each with one packet that waits for 20 ms. RFC 8289's floor spares both queues;
    /// the kernel's sees the bytes of the other one.
    #[test]
    fn the_floor_sees_all_queues() {
        let rng = ComponentRng::new(1, "fq");
        let mut q = FqCodelQueue::<LinuxLaw>::new(FqCodel::default(), Room::waiting(1000), rng);
        let mut dropped = Vec::new();
        for t in 0..200 {
            // One packet per ms leaves; flow 0 has 20 in the queue, flow 1 two at most.
            if t == 0 {
                (0..20).for_each(|n| q.push(ms(0), packet(0, 1500, n), 0, &mut dropped));
                (0..2).for_each(|n| q.push(ms(0), packet(1, 1500, n), 0, &mut dropped));
            }
            let sent = q.pop(ms(t + 20), &mut dropped).unwrap().packet;
            q.push(ms(t), packet(sent.flow, 1500, t), 0, &mut dropped);
        }
        assert!(dropped.iter().any(|p| p.flow == 1), "{}", dropped.len());
    }
}
