//! Proportional integral controller enhanced (RFC 8033).
//!
//! Here: the basic algorithm (section 4: random drop, periodic control with its auto-tuning, burst allowance), marking
//! (section 5.1) and the cap on an increase above 10 % (section 5.5). As in Linux' `sch_pie`, the probability also rises by 2 %
//! per update while the delay is above 250 ms. Not here: derandomisation (section 5.4) and turning the controller on and off
//! with the queue (section 5.3), both optional. The delay is the exact time until the arriving packet would be
//! transmitted, so no departure rate is estimated (section 5.2).
//!
//! The periodic update is made up for at the next arrival: while nobody arrives the queue only drains, so its delay at each
//! missed update is known from its delay now, or from when it ran empty (exactly, unless the link's rate changed in between).

use fullpipe_units::{Span, Time};

use super::{Backlog, Verdict};
use crate::rng::ComponentRng;
use crate::spec::Pie;

impl Default for Pie {
    /// The constants of RFC 8033, without marking.
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::from_millis(150),
            ecn: None,
        }
    }
}

/// A running PIE.
#[derive(Debug)]
pub struct PieState {
    p: Pie,
    /// Below or at this backlog nothing is dropped: two packets of typical size.
    floor: u64,
    probability: f64,
    delay_old: Span,
    burst_allowance: Span,
    next_update: Time,
    rng: ComponentRng,
}

/// The factor by which auto-tuning scales alpha and beta (RFC 8033, 4.2).
fn tuning(probability: f64) -> f64 {
    TUNING
        .iter()
        .find(|(below, _)| probability < *below)
        .map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

/// The probability after an update that sees `delay` (RFC 8033, 4.2 and 5.5).
fn updated(p: &Pie, probability: f64, delay: Span, old: Span) -> f64 {
    let (now, before) = (delay.as_secs_f64(), old.as_secs_f64());
    let error = p.alpha * (now - p.target.as_secs_f64()) + p.beta * (now - before);
    let mut step = error * tuning(probability);
    if probability >= CAP_FROM {
        step = step.min(CAP);
    }
    if delay > HIGH_DELAY {
        step += HIGH_DELAY_STEP;
    }
    let mut next = probability + step;
    if delay == Span::ZERO && old == Span::ZERO {
        next *= DECAY;
    }
    next.clamp(0.0, 1.0)
}

impl PieState {
    /// With a typical packet of `packet` bytes.
    pub fn new(p: Pie, packet: u32, rng: ComponentRng) -> Self {
        Self {
            p,
            floor: 2 * u64::from(packet),
            probability: 0.0,
            delay_old: Span::ZERO,
            burst_allowance: p.max_burst,
            next_update: Time::ZERO + p.update,
            rng,
        }
    }

    /// Decides about an arriving packet.
    #[inline]
    pub fn judge(&mut self, now: Time, backlog: &Backlog, ect: bool) -> Verdict {
        if now >= self.next_update {
            self.catch_up(now, backlog);
        }
        if self.probability == 0.0 && self.is_low(backlog.delay) && self.is_low(self.delay_old) {
            self.burst_allowance = self.p.max_burst;
        }
        if self.burst_allowance > Span::ZERO || self.is_safe(backlog) {
            return Verdict::Admit;
        }
        if self.rng.uniform() >= self.probability {
            return Verdict::Admit;
        }
        match self.p.ecn {
            Some(most) if ect && self.probability <= most => Verdict::Mark,
            _ => Verdict::Drop,
        }
    }

    fn is_low(&self, delay: Span) -> bool {
        delay < self.p.target / 2
    }

    /// The safeguards that keep PIE work-conserving (RFC 8033, 4.1).
    fn is_safe(&self, backlog: &Backlog) -> bool {
        (self.is_low(self.delay_old) && self.probability < SAFE_BELOW)
            || backlog.bytes <= self.floor
    }

    /// The updates due by `now`.
    #[cold]
    fn catch_up(&mut self, now: Time, backlog: &Backlog) {
        let empty_at = backlog.idle_since.unwrap_or(now + backlog.delay);
        while self.next_update <= now {
            self.update(empty_at.saturating_since(self.next_update));
            self.next_update += self.p.update;
            let quiet = self.probability == 0.0 && self.burst_allowance == Span::ZERO;
            if quiet
                && self.delay_old == Span::ZERO
                && empty_at <= self.next_update
                && self.next_update <= now
            {
                // Nothing changes any more until a packet arrives.
                let missed =
                    now.saturating_since(self.next_update).as_nanos() / self.p.update.as_nanos();
                self.next_update += self.p.update * (missed + 1);
            }
        }
    }

    fn update(&mut self, delay: Span) {
        self.probability = updated(&self.p, self.probability, delay, self.delay_old);
        self.delay_old = delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.p.update);
    }
}

/// Auto-tuning: below this probability alpha and beta are divided by this (RFC 8033, 4.2).
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 2048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];
/// From this probability on an update adds at most [`CAP`] (RFC 8033, 5.5).
const CAP_FROM: f64 = 0.1;
/// See [`CAP_FROM`].
const CAP: f64 = 0.02;
/// Above this delay each update adds [`HIGH_DELAY_STEP`].
const HIGH_DELAY: Span = Span::from_millis(250);
/// See [`HIGH_DELAY`].
const HIGH_DELAY_STEP: f64 = 0.02;
/// Factor per update of an idle queue (RFC 8033, 4.2).
const DECAY: f64 = 0.98;
/// A low delay is safe below this probability (RFC 8033, 4.1).
const SAFE_BELOW: f64 = 0.2;
