//! Random early detection as `sch_red` has it (`net/sched/sch_red.c`, `include/net/red.h`), set up
//! by `tc` (iproute2, `tc/q_red.c`, `tc/tc_red.c`).
//!
//! Where it departs from the papers:
//!
//! - The average counts bytes that wait, with a weight of 2^-W.
//! - One random number decides how far the next drop is, at a probability that may change on the
//!   way: a packet is dropped once (average - min) x packets since then exceeds it.
//! - After an idle time the average is shifted by a table that `tc` makes in units of 64 ns and the
//!   kernel reads in microseconds: it decays 15.6 times slower than the link could have sent.
//! - Above `max` packets are marked too, without `harddrop`.
//! - Nothing adapts: since iproute2 5.7 (commit 6c10fdca, 2020) `tc` says `adaptive` in an
//!   attribute that is shown and changes nothing (`TCA_RED_FLAGS`), and `__red_change` starts the
//!   timer by the flags of `TCA_RED_PARMS`, which are zero. `adaptive-red` is RED with settings
//!   from the rate.

use fullpipe_run::{ComponentRng, Red};
use fullpipe_units::{Span, Time};

use super::Popped;
use super::codel::Fifo;
use crate::packet::Packet;

/// The queue and its discipline; lengths in bytes.
#[derive(Debug)]
pub struct LinuxRed {
    ecn: bool,
    harddrop: bool,
    /// Most bytes that may wait.
    limit: u64,
    law: RedLaw,
    queue: Fifo,
    /// From when on the transmitter asks for packets and there are none.
    idle_from: Option<Time>,
    marks: u64,
    rng: ComponentRng,
}

/// Average, thresholds and probability (`struct red_parms`, `struct red_vars`).
#[derive(Clone, Debug)]
struct RedLaw {
    /// W: the average and both thresholds are in 2^-W bytes.
    log: u32,
    min: u64,
    max: u64,
    /// Probability at `max` per byte of the range, in 2^-32; at least one.
    slope: u32,
    damping: Damping,
    average: u64,
    /// Packets since the last random number; `None`: below `min` or above `max`.
    count: Option<u64>,
    random: u32,
}

/// By how many bits the average is shifted after an idle time (`Stab`).
#[derive(Clone, Debug)]
struct Damping {
    /// The table is in steps of 2^this microseconds.
    log: u32,
    shifts: [u8; 256],
}

/// Decision about an arriving packet (`red_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Admit,
    /// By chance, between the thresholds.
    Early,
    /// The average is above `max`.
    Hard,
}

impl Damping {
    /// For a weight of 2^-`log` and packets of `packet` bytes at a link of `rate` bits per second
    /// (`tc_red_eval_idle_damping`).
    fn new(log: u32, packet: u32, rate: u64) -> Self {
        // `tc` counts in whole ticks of 64 ns.
        let ticks = f64::from(packet) * 8.0 / rate.max(1) as f64 * TICKS_PER_S;
        let per_tick = -libm::log1p(-1.0 / (1u64 << log) as f64) / libm::trunc(ticks).max(1.0);
        let last = f64::from(MOST_SHIFT) / per_tick;
        let step = (0..31).find(|log| last / f64::from(1u32 << log) < 512.0);
        let step = step.unwrap_or(31);
        let mut shifts = [0; 256];
        for (i, shift) in shifts.iter_mut().enumerate() {
            let exact = ((i as u64) << step) as f64 * per_tick;
            *shift = (exact as u64).min(u64::from(MOST_SHIFT)) as u8;
        }
        shifts[255] = MOST_SHIFT;
        Self { log: step, shifts }
    }

    /// The average after an idle time (`red_calc_qavg_from_idle_time`).
    fn decayed(&self, average: u64, idle: Span) -> u64 {
        let micros = (idle.as_nanos() / 1000).min(255 << self.log);
        match self.shifts[(micros >> self.log) as usize] {
            0 => {
                let part = (average * micros) >> self.log;
                match part < average >> 1 {
                    true => average - part,
                    false => average >> 1,
                }
            }
            shift => average >> shift,
        }
    }
}

impl RedLaw {
    /// At a link of `rate` bits per second.
    fn new(p: &Red, rate: u64) -> Self {
        let bytes = |packets: f64| (packets * f64::from(p.mtu)) as u64;
        let log = libm::round(-libm::log2(p.weight)).clamp(1.0, 31.0) as u32;
        let (min, max) = (bytes(p.min), bytes(p.max));
        let range = u32::try_from(max.saturating_sub(min))
            .unwrap_or(u32::MAX)
            .max(1);
        // Saturates at one.
        let max_p = (p.max_p * (1u64 << 32) as f64) as u32;
        Self {
            log,
            min: min << log,
            max: max << log,
            slope: (max_p / range).max(1),
            damping: Damping::new(log, p.mtu, rate),
            average: 0,
            count: None,
            random: 0,
        }
    }

    /// The average when a packet comes: `backlog` bytes wait, or nothing has since `idle`.
    fn average(&self, backlog: u64, idle: Option<Span>) -> u64 {
        match idle {
            None => self.average + backlog - (self.average >> self.log),
            Some(idle) => self.damping.decayed(self.average, idle),
        }
    }

    /// What becomes of the packet that moved the average (`red_action`).
    fn act(&mut self, rng: &mut ComponentRng) -> Action {
        if self.average < self.min {
            self.count = None;
            return Action::Admit;
        }
        if self.average >= self.max {
            self.count = None;
            return Action::Hard;
        }
        let Some(count) = self.count else {
            self.draw(rng);
            return Action::Admit;
        };
        let above = (self.average - self.min) >> self.log;
        if above * (count + 1) < u64::from(self.random) {
            self.count = Some(count + 1);
            return Action::Admit;
        }
        self.draw(rng);
        Action::Early
    }

    /// A random number of bytes below 1 / `slope` decides about the next drop (`red_random`).
    fn draw(&mut self, rng: &mut ComponentRng) {
        self.random = (rng.uniform() * (1u64 << 32) as f64) as u32 / self.slope;
        self.count = Some(0);
    }
}

impl LinuxRed {
    /// An empty queue for `limit` bytes before a transmitter of `rate` bits per second.
    pub fn new(p: &Red, limit: u64, rate: u64, rng: ComponentRng) -> Self {
        Self {
            ecn: p.ecn,
            harddrop: p.harddrop,
            limit,
            law: RedLaw::new(p, rate),
            queue: Fifo::default(),
            idle_from: Some(Time::ZERO),
            marks: 0,
            rng,
        }
    }

    /// A packet arrives; one that is dropped goes to `dropped`. Returns how many of them there was
    /// room for.
    pub fn push(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) -> u64 {
        let idle = self.idle(now);
        self.law.average = self.law.average(self.queue.bytes(), idle);
        let marks = match self.law.act(&mut self.rng) {
            Action::Admit => None,
            Action::Early => Some(self.ecn),
            Action::Hard => Some(self.ecn && !self.harddrop),
        };
        if idle.is_some() {
            // The transmitter asks again at once; for this packet, if it enters.
            self.idle_from = Some(now);
        }
        if let Some(marks) = marks {
            if !(marks && packet.is_ect()) {
                dropped.push(packet);
                return 1;
            }
            packet.mark_ce();
            self.marks += 1;
        }
        if self.queue.bytes() + u64::from(packet.size()) > self.limit {
            dropped.push(packet);
            return 0;
        }
        self.idle_from = None;
        self.queue.push(now, packet);
        0
    }

    /// The next packet to send.
    pub fn pop(&mut self, now: Time) -> Option<Popped> {
        let (came, packet) = self.queue.pop()?;
        let waited = now - came;
        Some(Popped { packet, waited })
    }

    /// The transmitter is free from `at` on, and nothing waits.
    pub fn ran_empty(&mut self, at: Time) {
        self.idle_from = Some(at);
    }

    fn idle(&self, now: Time) -> Option<Span> {
        let since = self.idle_from.filter(|since| *since <= now)?;
        Some(now - since)
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

/// Ticks of `tc`'s clock per second: /proc/net/psched.
const TICKS_PER_S: f64 = 15_625_000.0;
/// Largest shift in the table.
const MOST_SHIFT: u8 = 31;

#[cfg(test)]
mod tests {
    use super::super::testing::{capable, ms, packet};
    use super::*;
    use fullpipe_run::QueueRule;

    fn red(packets: (f64, f64)) -> Red {
        Red {
            min: packets.0,
            max: packets.1,
            max_p: 0.02,
            weight: 1.0 / 512.0,
            by: QueueRule::Linux,
            harddrop: false,
            gentle: false,
            ..Red::classic(60)
        }
    }

    fn law() -> RedLaw {
        RedLaw::new(&red((10.0, 30.0)), 10_000_000)
    }

    /// `red_set_parms`: 15 000 and 45 000 bytes at 2^-9; 2 % are 85 899 345 of 2^32, over a range
    /// of 30 000 bytes 2863 per byte.
    #[test]
    fn parameters_are_the_kernels() {
        let law = law();
        assert_eq!((law.log, law.min, law.max), (9, 15_000 << 9, 45_000 << 9));
        assert_eq!(law.slope, 2863);
    }

    /// `tc_red_eval_idle_damping`: a packet takes 18 750 ticks of 64 ns at 10 Mbit/s. The table has
    /// steps of 2^20 and shifts by 1, 2, 10 from entries 10, 19, 92 on.
    #[test]
    fn the_table_is_that_of_tc() {
        let table = |log, rate| {
            let d = Damping::new(log, 1500, rate);
            let from = |shift| d.shifts.iter().position(|s| *s == shift).unwrap();
            (d.log, [from(1), from(2), from(10)], d.shifts[254])
        };
        assert_eq!(table(9, 10_000_000), (20, [10, 19, 92], 27));
        assert_eq!(table(9, 100_000_000), (16, [15, 30, 147], 17));
        assert_eq!(table(4, 2_000_000), (17, [12, 23, 111], 22));
    }

    /// `red_calc_qavg_from_idle_time` reads the table in microseconds: before its first shift the
    /// average falls linearly to a half, and 255 steps are as long as any time.
    #[test]
    fn an_idle_time_shifts_the_average() {
        let d = Damping::new(9, 1500, 10_000_000);
        let at = |ms| d.decayed(1 << 20, Span::from_millis(ms));
        // 100 ms are 100 000 of 2^20 us.
        assert_eq!(at(100), (1 << 20) - 100_000);
        assert_eq!(at(1000), 1 << 19);
        // Entry 10 from 10.49 s on.
        assert_eq!((at(10_485), at(10_486)), (1 << 19, 1 << 19));
        assert_eq!(at(20_000), 1 << 18);
        assert_eq!(at(100_000_000), 0);
    }

    /// qavg + (backlog - qavg 2^-9), of a queue that stands at 30 000 bytes: after n packets
    /// 30 000 (1 - (1 - 1/512)^n), within the rounding of n bits.
    #[test]
    fn the_average_counts_bytes() {
        let mut law = law();
        for _ in 0..512 {
            law.average = law.average(30_000, None);
        }
        let exact = 30_000.0 * (1.0 - (511.0f64 / 512.0).powi(512));
        assert!((law.average as f64 / 512.0 - exact).abs() < 1.0);
    }

    /// Between the thresholds the first packet draws; from then on `(average - min) x packets` is
    /// held against the number, and the drop draws the next one.
    #[test]
    fn one_number_decides_about_the_next_drop() {
        let mut rng = ComponentRng::new(1, "red");
        let mut law = law();
        law.average = 25_000 << 9;
        assert_eq!(law.act(&mut rng), Action::Admit);
        for _ in 0..1000 {
            let random = u64::from(law.random);
            assert!(random <= u64::from(u32::MAX) / 2863);
            let gap = (1..).find(|_| law.act(&mut rng) == Action::Early);
            assert_eq!(gap, Some(random.div_ceil(10_000).max(1)));
        }
        law.average = 14_999 << 9;
        assert_eq!((law.act(&mut rng), law.count), (Action::Admit, None));
        law.average = 45_000 << 9;
        assert_eq!((law.act(&mut rng), law.count), (Action::Hard, None));
    }

    /// Whether `adaptive` was asked for or not: ten seconds behind a queue that is always too long.
    #[test]
    fn nothing_adapts() {
        let drops = |adaptive| {
            let p = Red {
                adaptive,
                ..red((10.0, 30.0))
            };
            let mut q = LinuxRed::new(&p, 150_000, 10_000_000, ComponentRng::new(1, "red"));
            let mut dropped = Vec::new();
            for i in 0..2000 {
                q.push(ms(5 * i), packet(0, 1500, i), &mut dropped);
                if q.packets() > 29 {
                    q.pop(ms(5 * i));
                }
            }
            dropped.len()
        };
        assert!(drops(false) > 20);
        assert_eq!(drops(true), drops(false));
    }

    /// Above `max` packets are marked, unless `harddrop` is set; others are dropped.
    #[test]
    fn above_max_packets_are_marked_without_harddrop() {
        for (harddrop, expected) in [(false, (1, 0)), (true, (0, 1))] {
            let p = Red {
                ecn: true,
                harddrop,
                ..red((10.0, 30.0))
            };
            let mut q = LinuxRed::new(&p, 150_000, 10_000_000, ComponentRng::new(1, "red"));
            q.law.average = 60_000 << 9;
            let mut dropped = Vec::new();
            q.idle_from = None;
            let early = q.push(ms(0), capable(1), &mut dropped);
            assert_eq!((q.marks(), early), expected);
            assert_eq!(q.push(ms(0), packet(0, 1500, 2), &mut dropped), 1);
        }
    }

    /// The limit is one of bytes; what finds no room was not dropped early.
    #[test]
    fn the_limit_is_of_bytes() {
        let mut q = LinuxRed::new(
            &red((10.0, 30.0)),
            6000,
            10_000_000,
            ComponentRng::new(1, "red"),
        );
        let mut dropped = Vec::new();
        let early: u64 = (0..20)
            .map(|n| q.push(ms(0), packet(0, 600, n), &mut dropped))
            .sum();
        assert_eq!((q.packets(), dropped.len(), early), (10, 10, 0));
    }

    /// Idle from the departure of the last packet, and again from a drop on.
    #[test]
    fn a_drop_begins_the_idle_time_anew() {
        let p = red((0.0, 1.0));
        let mut q = LinuxRed::new(&p, 150_000, 10_000_000, ComponentRng::new(1, "red"));
        let mut dropped = Vec::new();
        q.law.average = 1 << 30;
        q.ran_empty(ms(100));
        q.push(ms(50), packet(0, 1500, 0), &mut dropped);
        let busy = (1 << 30) - (1 << 21);
        assert_eq!((q.law.average, q.idle_from), (busy, Some(ms(100))));
        q.push(ms(300), packet(0, 1500, 1), &mut dropped);
        let decayed = q.law.damping.decayed(busy, Span::from_millis(200));
        assert_eq!((q.law.average, q.idle_from), (decayed, Some(ms(300))));
        assert_eq!(dropped.len(), 2);
    }
}
