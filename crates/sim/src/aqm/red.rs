//! Random early detection.
//!
//! - Floyd and Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance" (in the text: FJ93): the average with
//!   its correction for idle time (section 4, figure 2), the uniform gaps between drops (section 7, method 2).
//! - Floyd 2000, "Recommendation on using the gentle variant of RED": between `max_th` and twice `max_th` the probability
//!   rises to one.
//! - Floyd, Gummadi, Shenker 2001, "Adaptive RED" (FGS01): `max_p` follows the average (figure 1), `w_q`, `min_th` and
//!   `max_th` from the link's rate (section 5).
//!
//! The queue is measured in packets, not in bytes. Figure 2 of FJ93 is one ahead of its section 7 after a drop (it counts the
//! arriving packet already); this follows section 7, where the gaps are uniform on 1 .. 1/p_b. Their mean is about half of
//! 1/p_b, so that the rate of drops at a constant average is about twice p_b, as in FJ93.

use fullpipe_units::{Span, Time};

use super::{Backlog, Verdict};
use crate::rng::ComponentRng;
use crate::spec::Red;

impl Red {
    /// RED for a buffer of `packets`: `max_th` a quarter of it and `min_th` a third of that (the defaults of `tc-red(8)`), but
    /// not less than 15 and 5 packets; `w_q` 0.002, `max_p` 0.1, gentle (Floyd, "RED: Discussions of Setting Parameters",
    /// 1997, and the note on gentle RED, 2000).
    pub fn classic(packets: u64) -> Self {
        let max = (packets as f64 / 4.0).max(15.0);
        Self {
            min: max / 3.0,
            max,
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            adaptive: false,
            ecn: false,
        }
    }

    /// Adaptive RED with everything automatic (FGS01, section 5): for `packets_per_second`, the link's capacity C, and an
    /// average queueing delay of `target` (the paper: 5 ms): `w_q` = 1 - exp(-1/C), `min_th` = max(5, target C / 2), `max_th`
    /// = 3 `min_th`. `max_p` starts at 0.1.
    pub fn adaptive(packets_per_second: f64, target: Span) -> Self {
        let min = (target.as_secs_f64() * packets_per_second / 2.0).max(5.0);
        Self {
            min,
            max: 3.0 * min,
            max_p: 0.1,
            weight: -libm::expm1(-1.0 / packets_per_second),
            gentle: true,
            adaptive: true,
            ecn: false,
        }
    }
}

/// A running RED.
#[derive(Debug)]
pub struct RedState {
    p: Red,
    /// Packets of typical size that the link transmits per nanosecond.
    per_nano: f64,
    packet_bits: f64,
    average: f64,
    max_p: f64,
    /// Packets admitted since the last drop or mark, or since the average rose above `min_th`.
    count: u64,
    next_adaptation: Time,
    rng: ComponentRng,
}

/// `p_b` at an average queue of `average`; `None`: every packet is dropped.
fn probability(p: &Red, max_p: f64, average: f64) -> Option<f64> {
    if average < p.min {
        Some(0.0)
    } else if average < p.max {
        Some(max_p * (average - p.min) / (p.max - p.min))
    } else if p.gentle && average < 2.0 * p.max {
        Some(max_p + (1.0 - max_p) * (average - p.max) / p.max)
    } else {
        None
    }
}

/// `p_a`: makes the gaps between drops uniform; `count` packets passed since the last one (FJ93, section 7, method 2).
fn spread(p_b: f64, count: u64) -> f64 {
    let left = 1.0 - count as f64 * p_b;
    if left <= p_b { 1.0 } else { p_b / left }
}

/// The average after an idle time in which `m` typical packets could have left (FJ93, section 4).
fn decayed(average: f64, weight: f64, m: f64) -> f64 {
    average * libm::pow(1.0 - weight, m)
}

/// One step of the adaptation (FGS01, figure 1).
fn adapted(max_p: f64, p: &Red, average: f64) -> f64 {
    let span = p.max - p.min;
    if average > p.min + TARGET_HIGH * span && max_p < MAX_P_MOST {
        (max_p + ALPHA.min(max_p / 4.0)).min(MAX_P_MOST)
    } else if average < p.min + TARGET_LOW * span && max_p > MAX_P_LEAST {
        (max_p * BETA).max(MAX_P_LEAST)
    } else {
        max_p
    }
}

impl RedState {
    /// At a link of `rate` bits per second and with a typical packet of `packet` bytes.
    pub fn new(p: Red, rate: u64, packet: u32, rng: ComponentRng) -> Self {
        let mut red = Self {
            p,
            per_nano: 0.0,
            packet_bits: f64::from(packet.max(1)) * 8.0,
            average: 0.0,
            max_p: p.max_p,
            count: 0,
            next_adaptation: Time::ZERO + ADAPT_EVERY,
            rng,
        };
        red.set_rate(rate);
        red
    }

    /// New rate of the link in bits per second.
    pub fn set_rate(&mut self, rate: u64) {
        self.per_nano = rate as f64 * 1e-9 / self.packet_bits;
    }

    /// Decides about an arriving packet.
    #[inline]
    pub fn judge(&mut self, now: Time, backlog: &Backlog, ect: bool) -> Verdict {
        if self.p.adaptive && now >= self.next_adaptation {
            self.adapt(now, backlog.idle_since);
        }
        self.average = match backlog.idle_since {
            None => self.average + self.p.weight * (backlog.packets as f64 - self.average),
            Some(since) => self.after_idle(since, now),
        };
        let Some(p_b) = probability(&self.p, self.max_p, self.average) else {
            self.count = 0;
            return Verdict::Drop;
        };
        if p_b <= 0.0 {
            self.count = 0;
            return Verdict::Admit;
        }
        if self.rng.uniform() < spread(p_b, self.count) {
            self.count = 0;
            if self.p.ecn && ect {
                Verdict::Mark
            } else {
                Verdict::Drop
            }
        } else {
            self.count += 1;
            Verdict::Admit
        }
    }

    fn after_idle(&self, since: Time, at: Time) -> f64 {
        let m = at.saturating_since(since).as_nanos() as f64 * self.per_nano;
        decayed(self.average, self.p.weight, m)
    }

    /// The adaptations due by `now`, with the average as it was then.
    #[cold]
    fn adapt(&mut self, now: Time, idle_since: Option<Time>) {
        let mut steps = 0;
        while self.next_adaptation <= now {
            let at = self.next_adaptation;
            let average = match idle_since {
                Some(since) if since < at => self.after_idle(since, at),
                _ => self.average,
            };
            self.max_p = adapted(self.max_p, &self.p, average);
            self.next_adaptation += ADAPT_EVERY;
            steps += 1;
            if steps == MOST_STEPS {
                let missed =
                    now.saturating_since(self.next_adaptation).as_nanos() / ADAPT_EVERY.as_nanos();
                self.next_adaptation += ADAPT_EVERY * missed;
                steps = 0;
                if missed == 0 {
                    continue;
                }
            }
        }
    }
}

/// Interval of the adaptation (FGS01, figure 1).
const ADAPT_EVERY: Span = Span::from_millis(500);
/// Largest increment of `max_p`; a quarter of `max_p` if that is less.
const ALPHA: f64 = 0.01;
/// Factor of its decrease.
const BETA: f64 = 0.9;
/// Range of `max_p`.
const MAX_P_LEAST: f64 = 0.01;
/// Range of `max_p`.
const MAX_P_MOST: f64 = 0.5;
/// The average should lie between these parts of the way from `min_th` to `max_th`.
const TARGET_LOW: f64 = 0.4;
/// See [`TARGET_LOW`].
const TARGET_HIGH: f64 = 0.6;
/// After this many steps without an arrival `max_p` has reached an end of its range.
const MOST_STEPS: u32 = 128;
