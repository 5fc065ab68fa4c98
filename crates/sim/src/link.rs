//! A FIFO link in closed form: a packet's departure is known when it enters, so the link keeps one pending event, the
//! arrival of its oldest packet at the far end.

use fullpipe_units::{Span, Time};

use crate::histogram::Histogram;
use crate::loss::LossProcess;
use crate::outcome::LinkOutcome;
use crate::packet::Packet;
use crate::ring::Ring;
use crate::rng::ComponentRng;
use crate::spec::{Buffer, LinkSpec};

/// A running link.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    /// Bits per second; 0 for a pure delay.
    rate: u64,
    loss: Option<LossProcess>,
    flying: Ring<Flying>,
    /// How many of `flying`, from the back, have not left the transmitter yet.
    waiting: u64,
    waiting_bytes: u64,
    free_at: Time,
    /// Fraction of a nanosecond carried to the next transmission, in units of 1/rate.
    carry: u64,
    /// Transmission time of the last size: whole nanoseconds and remainder.
    last_size: u16,
    last_time: (u64, u64),
    measure_from: Time,
    stats: LinkStats,
    sample_at: Time,
    sample_step: Span,
    samples: Vec<(Time, u64)>,
    jitter: Option<Jitter>,
}

/// Order-keeping delay variation.
#[derive(Debug)]
struct Jitter {
    rng: ComponentRng,
    most: Span,
    last: Time,
}

impl Jitter {
    fn new(spec: &LinkSpec, seed: u64) -> Option<Self> {
        (spec.jitter > Span::ZERO && spec.rate.is_none()).then(|| Self {
            rng: ComponentRng::new(seed, &format!("{} jitter", spec.name)),
            most: spec.jitter,
            last: Time::ZERO,
        })
    }

    fn delay(&mut self, arrives: Time) -> Time {
        let extra = (self.most.as_nanos() as f64 * self.rng.uniform()) as u64;
        self.last = self.last.max(arrives + Span::from_nanos(extra));
        self.last
    }
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    arrives: Time,
    packet: Packet,
}

#[derive(Clone, Copy, Debug, Default)]
struct LinkStats {
    offered: u64,
    accepted_bytes: u64,
    measured_bytes: u64,
    buffer_drops: u64,
    random_drops: u64,
    queue_max: u64,
    /// Packet-nanoseconds since `measure_from`.
    queue_area: u64,
}

/// What became of a packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is on its way; `first` if the link was empty, so that its arrival must be scheduled.
    Accepted {
        /// Arrival at the far end.
        arrives: Time,
        /// No other packet is in the link.
        first: bool,
    },
    /// No room.
    Full,
    /// Random loss.
    Lost,
}

impl Link {
    /// A link at time zero; queue samples every `sample_step` ([`Span::MAX`]: none).
    pub fn new(spec: &LinkSpec, seed: u64, measure_from: Time, sample_step: Span) -> Self {
        let loss = (spec.loss != crate::spec::Loss::None)
            .then(|| LossProcess::new(spec.loss, ComponentRng::new(seed, &spec.name)));
        Self {
            spec: spec.clone(),
            rate: spec.rate.map_or(0, |r| r.as_bits_per_sec()),
            loss,
            flying: Ring::new(Flying {
                arrives: Time::ZERO,
                packet: Packet::NONE,
            }),
            waiting: 0,
            waiting_bytes: 0,
            free_at: Time::ZERO,
            carry: 0,
            last_size: 0,
            last_time: (0, 0),
            measure_from,
            stats: LinkStats::default(),
            sample_at: Time::ZERO,
            sample_step,
            samples: Vec::new(),
            jitter: Jitter::new(spec, seed),
        }
    }

    /// Offers a packet.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Admission {
        self.stats.offered += 1;
        if let Some(loss) = &mut self.loss
            && packet.bears_data()
            && loss.strikes()
        {
            self.stats.random_drops += 1;
            return Admission::Lost;
        }
        let departs = if self.rate == 0 {
            now
        } else {
            self.release(now);
            if !self.fits(now, packet.size) {
                self.stats.buffer_drops += 1;
                return Admission::Full;
            }
            self.transmit(now, packet.size)
        };
        self.stats.accepted_bytes += u64::from(packet.size);
        let mut arrives = departs + self.spec.delay;
        if let Some(jitter) = &mut self.jitter {
            arrives = jitter.delay(arrives);
        }
        let first = self.flying.is_empty();
        self.flying.push(Flying { arrives, packet });
        Admission::Accepted { arrives, first }
    }

    /// The oldest packet, which arrives now. The link holds one: its arrival was scheduled.
    #[inline]
    pub fn take(&mut self) -> Packet {
        let oldest = self.flying.pop();
        if self.waiting > self.flying.len() {
            // It left the transmitter unobserved: no packet was offered between its departure and its arrival.
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(oldest.packet.size);
        }
        oldest.packet
    }

    /// When the oldest packet arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        self.flying.front().map(|f| f.arrives)
    }

    /// Forgets packets that have left the transmitter by `now`.
    #[inline]
    fn release(&mut self, now: Time) {
        while self.waiting > 0 {
            let f = self.flying.nth_back(self.waiting);
            if f.arrives - self.spec.delay > now {
                break;
            }
            self.waiting_bytes -= u64::from(f.packet.size);
            self.waiting -= 1;
        }
        if self.waiting == 0 {
            self.waiting_bytes = 0;
        }
    }

    #[inline]
    fn fits(&self, now: Time, size: u16) -> bool {
        match self.spec.buffer {
            Buffer::Packets(most) => self.waiting < most,
            Buffer::Bytes(most) => self.waiting_bytes + u64::from(size) <= most,
            Buffer::Time(most) => {
                let own = Span::from_nanos(u64::from(size) * 8_000_000_000 / self.rate);
                self.free_at.saturating_since(now) + own <= most
            }
            Buffer::Unlimited => true,
        }
    }

    /// For a local queue: `None` if a packet of `size` fits now, else when the oldest waiting packet will have left.
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        if self.rate == 0 {
            return None;
        }
        self.release(now);
        if self.fits(now, size) {
            None
        } else {
            self.oldest_departure()
        }
    }

    fn oldest_departure(&self) -> Option<Time> {
        (self.waiting > 0).then(|| self.flying.nth_back(self.waiting).arrives - self.spec.delay)
    }

    /// Appends a packet to the transmitter's schedule; returns its departure.
    #[inline]
    fn transmit(&mut self, now: Time, size: u16) -> Time {
        if size != self.last_size {
            // At most 65535 B: the product stays far below 2^64.
            let work = u64::from(size) * 8 * 1_000_000_000;
            self.last_size = size;
            self.last_time = (work / self.rate, work % self.rate);
        }
        let start = if self.free_at > now {
            self.free_at
        } else {
            self.carry = 0;
            now
        };
        let (mut ns, rest) = self.last_time;
        self.carry += rest;
        if self.carry >= self.rate {
            self.carry -= self.rate;
            ns += 1;
        }
        let departs = start + Span::from_nanos(ns);
        self.free_at = departs;
        self.waiting += 1;
        self.waiting_bytes += u64::from(size);
        self.account(now, departs, size);
        departs
    }

    #[inline]
    fn account(&mut self, now: Time, departs: Time, size: u16) {
        if departs > self.measure_from {
            let since = now.max(self.measure_from);
            self.stats.queue_area += (departs - since).as_nanos();
            self.stats.measured_bytes += u64::from(size);
            self.stats.queue_max = self.stats.queue_max.max(self.waiting);
        }
        if now >= self.sample_at {
            self.samples.push((now, self.waiting));
            self.sample_at = now + self.sample_step;
        }
    }

    /// Transmission time and delay of a packet of `size` bytes that finds the link idle.
    pub fn unloaded(&self, size: u16) -> Span {
        let ns = (u64::from(size) * 8_000_000_000).checked_div(self.rate);
        Span::from_nanos(ns.unwrap_or(0)) + self.spec.delay
    }

    /// Every packet inside.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        self.flying.iter().map(|f| &f.packet)
    }

    /// Checks conservation at the end of a run and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(mut self, end: Time) -> Result<LinkOutcome, String> {
        let s = self.stats;
        let name = self.spec.name.clone();
        let accepted = self.flying.pushed();
        if s.offered != accepted + s.buffer_drops + s.random_drops {
            return Err(format!(
                "link {name}: offered {} is not accepted {accepted} + dropped",
                s.offered
            ));
        }
        if let Buffer::Packets(most) = self.spec.buffer
            && s.queue_max > most
        {
            return Err(format!(
                "link {name}: queue {} above its limit {most}",
                s.queue_max
            ));
        }
        let measured = end.saturating_since(self.measure_from);
        let (mut area, mut bytes, mut late) = (s.queue_area, s.measured_bytes, 0u64);
        if self.rate > 0 {
            self.release(end);
            // What is still waiting was booked to its departure, which lies beyond the end.
            for f in self
                .flying
                .iter()
                .skip((self.flying.len() - self.waiting) as usize)
            {
                let departs = f.arrives - self.spec.delay;
                area -= (departs - end.max(self.measure_from)).as_nanos();
                bytes -= u64::from(f.packet.size);
                late += u64::from(f.packet.size);
            }
        }
        let seconds = measured.as_secs_f64();
        let capacity = self.rate as f64 * seconds / 8.0;
        let utilization = if capacity > 0.0 {
            bytes as f64 / capacity
        } else {
            0.0
        };
        // One packet may have been under way when the measurement began.
        if capacity > 0.0 && bytes as f64 > capacity + 65_536.0 {
            return Err(format!(
                "link {name}: carried {bytes} B, more than its capacity {capacity} B"
            ));
        }
        Ok(LinkOutcome {
            name,
            offered: s.offered,
            delivered: accepted - self.waiting,
            delivered_bytes: s.accepted_bytes - late,
            measured_bytes: bytes,
            buffer_drops: s.buffer_drops,
            random_drops: s.random_drops,
            policer_drops: 0,
            early_drops: 0,
            marks: 0,
            queueing_delay: Histogram::default(),
            queue_max: s.queue_max,
            queue_mean: if seconds > 0.0 {
                area as f64 * 1e-9 / seconds
            } else {
                0.0
            },
            utilization: utilization.min(1.0),
            series: self.samples,
        })
    }
}
