//! Proportional integral controller as `sch_pie` has it (`net/sched/sch_pie.c`).
//!
//! Where it departs from RFC 8033:
//!
//! - The delay is that of the packet that left last, zero if it left an empty queue: in a growing
//!   queue it lags behind by itself.
//! - Updates come on ticks: 15 ms are four ticks at 250 a second, and the timer goes off on the
//!   fifth, every 20 ms. The burst allowance shrinks by the time between departures.
//! - Probabilities add up from one drop to the next: below a sum of 0.85 nothing is dropped, from
//!   8.5 on everything (RFC 8033, section 5.4).
//! - The probability of an idle queue loses a 64th per update, and none while packets wait.

use fullpipe_run::{ComponentRng, Pie};
use fullpipe_units::Time;

use super::Popped;
use super::codel::Fifo;
use super::linux_clock::{Ticker, kernel_time};
use crate::packet::Packet;

/// The queue and its controller; times in ticks of 64 ns (`PSCHED_SHIFT`).
#[derive(Debug)]
pub struct LinuxPie {
    ecn: bool,
    /// Most packets that may wait.
    limit: u64,
    law: PieLaw,
    updates: Ticker,
    queue: Fifo,
    /// Bytes of a full packet (`psched_mtu`).
    mtu: u64,
    marks: u64,
    rng: ComponentRng,
}

/// The controller (`struct pie_params`, `struct pie_vars`).
#[derive(Clone, Debug)]
struct PieLaw {
    target: u64,
    /// Change of the probability per tick of delay.
    alpha: u64,
    beta: u64,
    /// Sojourn time of the packet that left last.
    delay: u64,
    delay_old: u64,
    burst: u64,
    /// Departure from which the burst allowance shrinks.
    left: Option<u64>,
    /// Of a drop, in units of 2^-56.
    probability: u64,
    /// Sum of the probabilities since the last drop.
    sum: u64,
}

/// Ticks of 64 ns.
fn ticks(nanos: u64) -> u64 {
    nanos >> 6
}

/// A parameter per second, which `tc` takes in sixteenths, per tick.
fn per_tick(parameter: f64) -> u64 {
    let sixteenths = libm::round(parameter * 16.0) as u64;
    sixteenths.saturating_mul(ONE / TICKS_PER_S) >> 4
}

impl PieLaw {
    fn new(p: &Pie) -> Self {
        Self {
            target: ticks(p.target.as_nanos()),
            alpha: per_tick(p.alpha),
            beta: per_tick(p.beta),
            delay: 0,
            delay_old: 0,
            burst: BURST,
            left: None,
            probability: 0,
            sum: 0,
        }
    }

    /// A packet that came at `came` leaves, and `backlog` bytes stay (`pie_process_dequeue`).
    fn leave(&mut self, came: u64, now: u64, backlog: u64) {
        self.delay = if backlog > 0 { now - came } else { 0 };
        if let Some(before) = self.left.replace(now) {
            self.burst = self.burst.saturating_sub(now - before);
        }
    }

    /// `alpha` and `beta` for the probability as it is.
    fn weights(&self) -> (u64, u64) {
        let mut shift = u32::from(self.probability < ONE / 10);
        let mut part = 100;
        while shift > 0 && part <= 1_000_000 && self.probability < ONE / part {
            shift += 2;
            part *= 10;
        }
        (self.alpha >> shift, self.beta >> shift)
    }

    /// `pie_calculate_probability`.
    fn update(&mut self, backlog: u64) {
        let (alpha, beta) = self.weights();
        let times =
            |weight: u64, from: u64| (weight as i64).wrapping_mul(self.delay as i64 - from as i64);
        let mut step = times(alpha, self.target).wrapping_add(times(beta, self.delay_old));
        if step > (ONE / 50) as i64 && self.probability >= ONE / 10 {
            step = (ONE / 100 * 2) as i64;
        }
        if self.delay > HIGH_DELAY {
            step = step.wrapping_add((ONE / 50) as i64);
        }
        // Zero is a bound, one is not: beyond it everything is dropped all the same.
        let mut decays = self.delay > 0 || backlog == 0;
        match self.probability.checked_add_signed(step) {
            Some(probability) => self.probability = probability,
            None if step > 0 => {
                self.probability = ONE;
                decays = false;
            }
            None => self.probability = 0,
        }
        if decays && self.delay == 0 && self.delay_old == 0 {
            self.probability -= self.probability / 64;
        }
        if self.is_low(self.delay) && self.is_low(self.delay_old) && self.probability == 0 {
            self.burst = BURST;
            self.left = None;
            self.sum = 0;
        }
        self.delay_old = self.delay;
    }

    /// Whether an arriving packet is dropped (`pie_drop_early`); `random`: a number below one.
    fn drops(&mut self, backlog: u64, mtu: u64, mut random: impl FnMut() -> f64) -> bool {
        if self.burst > 0
            || (self.is_low(self.delay) && self.probability < ONE / 5)
            || backlog < 2 * mtu
        {
            return false;
        }
        self.sum = match self.probability {
            0 => 0,
            p => self.sum.wrapping_add(p),
        };
        if self.sum < ONE / 100 * 85 {
            return false;
        }
        if self.sum >= ONE / 2 * 17 {
            return true;
        }
        let hit = random() * (ONE as f64) < self.probability as f64;
        if hit {
            self.sum = 0;
        }
        hit
    }

    fn is_low(&self, delay: u64) -> bool {
        delay < self.target / 2
    }
}

impl LinuxPie {
    /// An empty queue for `limit` packets. It has been idle for long: each update then begins the
    /// law anew (`pie_vars_init`), with the whole allowance, and the next one is a few ms ahead. In
    /// a queue that has just been set up the first one comes half a second later, in which a slow
    /// start fills it.
    pub fn new(p: &Pie, limit: u64, rng: ComponentRng) -> Self {
        Self {
            ecn: p.ecn.is_some(),
            limit,
            law: PieLaw::new(p),
            updates: Ticker::new(p.update, p.hz),
            queue: Fifo::default(),
            mtu: u64::from(p.mtu),
            marks: 0,
            rng,
        }
    }

    /// A packet arrives; one that is dropped goes to `dropped`. Returns how many of them there was
    /// room for.
    pub fn push(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) -> u64 {
        self.catch_up(now);
        if self.queue.len() >= self.limit {
            self.law.sum = 0;
            dropped.push(packet);
            return 0;
        }
        let rng = &mut self.rng;
        let (backlog, mtu) = (self.queue.bytes(), self.mtu);
        if self.law.drops(backlog, mtu, || rng.uniform()) {
            if !(self.ecn && self.law.probability <= ONE / 10 && packet.is_ect()) {
                self.law.sum = 0;
                dropped.push(packet);
                return 1;
            }
            packet.mark_ce();
            self.marks += 1;
        }
        self.queue.push(now, packet);
        0
    }

    /// The next packet to send.
    pub fn pop(&mut self, now: Time) -> Option<Popped> {
        self.catch_up(now);
        let (came, packet) = self.queue.pop()?;
        let on_clock = |t: Time| ticks(kernel_time(t).as_nanos());
        self.law
            .leave(on_clock(came), on_clock(now), self.queue.bytes());
        let waited = now - came;
        Some(Popped { packet, waited })
    }

    /// The updates due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.updates.due(now).is_some() {
            self.law.update(self.queue.bytes());
        }
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

/// `MAX_PROB`: a probability of one.
const ONE: u64 = u64::MAX >> 8;
/// `PSCHED_TICKS_PER_SEC`.
const TICKS_PER_S: u64 = 15_625_000;
/// 150 ms, at the start and after a quiet time.
const BURST: u64 = 150_000_000 >> 6;
/// Above 250 ms each update adds 2 %.
const HIGH_DELAY: u64 = 250_000_000 >> 6;

#[cfg(test)]
mod tests {
    use super::super::testing::{capable, ms, packet};
    use super::*;

    const MS: u64 = 15_625;

    fn law() -> PieLaw {
        PieLaw::new(&Pie::default())
    }

    /// `pie_calculate_probability` with alpha 2 and beta 20, in 2^-56: 576 460 752 and
    /// 5 764 607 522 per tick of delay.
    #[test]
    fn the_probability_is_the_kernels_to_the_bit() {
        assert_eq!(
            (law().alpha, law().beta, law().target),
            (576_460_752, 5_764_607_522, 15 * MS)
        );
        let cases = [
            // 0.025 625 / 2048, all shifts of the smallest probability.
            (0, 20, 0, 901_599_218_750),
            (ONE / 200, 10, 20, 242_068_480_033_389),
            (ONE / 20, 25, 20, 3_873_095_679_474_521),
            // The step is capped at 2 %; above 250 ms another 2 %.
            (3 * (ONE / 10), 215, 15, 23_058_430_092_136_937),
            (3 * (ONE / 10), 315, 15, 24_499_581_972_895_495),
        ];
        for (probability, delay, old, expected) in cases {
            let mut law = PieLaw {
                probability,
                delay: delay * MS,
                delay_old: old * MS,
                ..law()
            };
            law.update(1500);
            assert_eq!(law.probability, expected, "{delay} {old}");
            assert_eq!(law.delay_old, delay * MS);
        }
    }

    /// Idle: a 64th less, and below zero is zero. While packets wait the delay of zero is only that
    /// of the last one.
    #[test]
    fn an_idle_queue_loses_a_64th() {
        let quiet = || PieLaw {
            probability: ONE / 2,
            ..law()
        };
        let (mut idle, mut waiting) = (quiet(), quiet());
        idle.update(0);
        waiting.update(1500);
        // 15 ms below the target: -0.125 x 0.015.
        let step = law().alpha * law().target;
        assert_eq!(waiting.probability, ONE / 2 - step);
        assert_eq!(
            idle.probability,
            waiting.probability - waiting.probability / 64
        );
        let mut low = PieLaw {
            probability: 1,
            burst: 0,
            ..law()
        };
        low.update(0);
        assert_eq!((low.probability, low.burst), (0, BURST));
        // Beyond one there is room up to 2^64, then it is one.
        let mut high = PieLaw {
            probability: u64::MAX - 5,
            delay: 300 * MS,
            delay_old: 300 * MS,
            ..law()
        };
        high.update(1500);
        assert_eq!(high.probability, ONE);
    }

    /// RFC 8033, section 5.4, as `pie_drop_early` has it: at 0.1 the ninth packet is the first that
    /// may be dropped, and the 85th is.
    #[test]
    fn probabilities_add_up() {
        let ready = || PieLaw {
            probability: ONE / 10 + 1,
            delay: 20 * MS,
            burst: 0,
            ..law()
        };
        let first = |random: f64| {
            let mut law = ready();
            (1..1000).find(|_| law.drops(30_000, 1500, || random))
        };
        assert_eq!((first(0.0), first(0.99)), (Some(9), Some(85)));
        let mut law = ready();
        assert!(
            !(0..1000).any(|_| law.drops(2999, 1500, || 0.0)),
            "two packets are spared"
        );
        law.delay = 7 * MS;
        assert!(
            !(0..1000).any(|_| law.drops(30_000, 1500, || 0.0)),
            "a low delay is"
        );
    }

    /// A router has been up for long: its updates do nothing to an idle queue but keep it as it was
    /// set up, and a queue that grows from time zero on meets them at once, not half a second after
    /// the set-up.
    #[test]
    fn updates_run_before_the_first_packet() {
        let mut idle = law();
        idle.update(0);
        assert_eq!(format!("{idle:?}"), format!("{:?}", law()));
        let mut q = LinuxPie::new(&Pie::default(), 1000, ComponentRng::new(1, "pie"));
        for n in 0..10 {
            q.push(ms(0), packet(0, 1500, n), &mut Vec::new());
        }
        // The delay of this one, 20 ms, is above the target at the update of 32 ms.
        q.pop(ms(20)).unwrap();
        q.push(ms(31), packet(0, 1500, 10), &mut Vec::new());
        assert_eq!((q.law.probability, q.law.delay_old), (0, 0));
        q.push(ms(32), packet(0, 1500, 11), &mut Vec::new());
        assert!(q.law.probability > 0);
        assert_eq!(q.law.delay_old, 20 * MS);
    }

    /// The delay of the packet that left last; none where nothing waits behind it. The allowance
    /// shrinks from departure to departure.
    #[test]
    fn the_delay_is_that_of_the_last_departure() {
        let mut law = law();
        law.leave(0, 20 * MS, 1500);
        assert_eq!((law.delay, law.burst), (20 * MS, BURST));
        law.leave(9 * MS, 30 * MS, 0);
        assert_eq!((law.delay, law.burst), (0, BURST - 10 * MS));
    }

    #[test]
    fn marks_up_to_a_tenth_and_drops_above() {
        for (probability, marks) in [(ONE / 10, true), (ONE / 10 + 1, false)] {
            let p = Pie {
                ecn: Some(0.1),
                ..Pie::default()
            };
            let mut q = LinuxPie::new(&p, 1000, ComponentRng::new(1, "pie"));
            let mut dropped = Vec::new();
            for n in 0..3 {
                q.push(ms(0), packet(0, 1500, n), &mut dropped);
            }
            q.law = PieLaw {
                probability,
                delay: 20 * MS,
                burst: 0,
                sum: 9 * ONE,
                ..law()
            };
            let early = q.push(ms(0), capable(9), &mut dropped);
            assert_eq!((q.marks(), early), (u64::from(marks), u64::from(!marks)));
            let early = q.push(ms(0), packet(0, 1500, 10), &mut dropped);
            assert_eq!(
                early,
                u64::from(marks),
                "the sum lasts after a mark, not after a drop"
            );
        }
        let mut full = LinuxPie::new(&Pie::default(), 2, ComponentRng::new(1, "pie"));
        let mut dropped = Vec::new();
        let early: u64 = (0..5)
            .map(|n| full.push(ms(0), packet(0, 1500, n), &mut dropped))
            .sum();
        assert_eq!((early, dropped.len(), full.packets()), (0, 3, 2));
    }
}
