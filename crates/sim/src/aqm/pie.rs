//! Proportional integral controller enhanced (RFC 8033).
//!
//! Here: the basic algorithm (section 4: random drop, periodic control with its auto-tuning, burst
//! allowance), marking (section 5.1) and the cap on an increase above 10 % (section 5.5). The
//! further 2 % per update above a delay of 250 ms are RFC 8034's and Linux's (`sch_pie`), not this
//! one's. Not here: derandomisation (section 5.4) and turning the controller on and off with the
//! queue (section 5.3), both optional. The delay is told by the link, which knows its present rate,
//! so no departure rate is estimated (section 5.2).
//!
//! The periodic update is made up for at the next arrival, with the queue as it was when the update
//! was due: while nobody arrives it only drains.

use fullpipe_run::{ComponentRng, Pie};
use fullpipe_units::{Span, Time};

use super::{Backlog, Verdict};

/// A running PIE.
#[derive(Debug)]
pub struct PieState {
    p: Pie,
    /// Below or at this backlog nothing is dropped: two full packets.
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
    let mut next = probability + step;
    if delay == Span::ZERO && old == Span::ZERO {
        next *= DECAY;
    }
    next.clamp(0.0, 1.0)
}

impl PieState {
    /// The burst allowance is whole: nothing has waited yet.
    pub fn new(p: Pie, rng: ComponentRng) -> Self {
        Self {
            p,
            floor: 2 * u64::from(p.mtu),
            probability: 0.0,
            delay_old: Span::ZERO,
            burst_allowance: p.max_burst,
            next_update: Time::ZERO + p.update,
            rng,
        }
    }

    /// Decides about an arriving packet, when no update is due.
    #[inline]
    pub fn judge(&mut self, backlog: &Backlog, ect: bool) -> Verdict {
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

    /// When an update is due, if one is by `now`.
    #[inline]
    pub fn due(&self, now: Time) -> Option<Time> {
        (self.next_update <= now).then_some(self.next_update)
    }

    /// The update that is due, at which the queue has this delay.
    pub fn update(&mut self, delay: Span) {
        self.probability = updated(&self.p, self.probability, delay, self.delay_old);
        self.delay_old = delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.p.update);
        self.next_update += self.p.update;
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
/// Factor per update of an idle queue (RFC 8033, 4.2).
const DECAY: f64 = 0.98;
/// A low delay is safe below this probability (RFC 8033, 4.1).
const SAFE_BELOW: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    fn span(t: u64) -> Span {
        Span::from_millis(t)
    }

    fn pie(ecn: Option<f64>) -> PieState {
        let p = Pie {
            ecn,
            ..Pie::default()
        };
        PieState::new(p, ComponentRng::new(1, "pie"))
    }

    /// A queue that takes `delay` ms to drain, at one packet per millisecond.
    fn queue(delay: u64) -> Backlog {
        Backlog {
            packets: delay,
            bytes: delay * 1500,
            delay: span(delay),
            idle_since: None,
        }
    }

    fn idle_since(t: u64) -> Backlog {
        Backlog {
            idle_since: Some(ms(t)),
            ..queue(0)
        }
    }

    /// The verdict on a packet that comes now, after the updates due by then.
    fn judge(p: &mut PieState, now: Time, backlog: &Backlog) -> Verdict {
        let empty_at = backlog.idle_since.unwrap_or(now + backlog.delay);
        while let Some(at) = p.due(now) {
            p.update(empty_at.saturating_since(at));
        }
        p.judge(backlog, false)
    }

    /// p += 0.125 (q - 0.015) + 1.25 (q - q_old), scaled; numbers by hand.
    #[test]
    fn the_probability_follows_its_formula() {
        let p = Pie::default();
        let check = |probability, delay, old, expected: f64| {
            let got = updated(&p, probability, span(delay), span(old));
            assert!(
                (got - expected).abs() < 1e-12,
                "{probability} {delay} {old}: {got}"
            );
        };
        // (0.000 625 + 0.025) / 2048.
        check(0.0, 20, 0, 0.025_625 / 2048.0);
        // Standing at 20 ms: only the integral part. Below 0.000 1: over 128.
        check(0.000_05, 20, 20, 0.000_05 + 0.000_625 / 128.0);
        // From 20 to 10 ms: -0.000 625 - 0.0125, over 8.
        check(0.005, 10, 20, 0.005 - 0.013_125 / 8.0);
        check(0.05, 25, 20, 0.05 + (0.001_25 + 0.006_25) / 2.0);
        check(0.3, 25, 20, 0.3 + 0.007_5);
        // A jump at a high probability adds 2 %, and so it does above 250 ms.
        check(0.3, 215, 15, 0.32);
        check(0.3, 315, 15, 0.32);
        // Standing at 300 ms: 0.035 625 is capped too.
        check(0.3, 300, 300, 0.32);
        check(0.05, 300, 300, 0.05 + 0.035_625 / 2.0);
        // Empty twice: -0.001 875, then 2 % less.
        check(0.5, 0, 0, 0.498_125 * 0.98);
        check(0.000_001, 0, 20, 0.0);
        check(0.999, 300, 200, 1.0);
    }

    #[test]
    fn auto_tuning_has_the_table_of_the_rfc() {
        for (probability, divisor) in [
            (0.000_000_9, 2048.0),
            (0.000_009, 512.0),
            (0.000_09, 128.0),
            (0.000_9, 32.0),
            (0.009, 8.0),
            (0.09, 2.0),
            (0.1, 1.0),
            (0.9, 1.0),
        ] {
            assert_eq!(tuning(probability), 1.0 / divisor, "{probability}");
        }
    }

    /// A queue that stands at 100 ms and a probability of one: everything passes for 150 ms,
    /// nothing after.
    #[test]
    fn a_burst_of_150_ms_passes() {
        let mut p = pie(None);
        p.probability = 1.0;
        for t in 0..300 {
            let verdict = judge(&mut p, ms(t), &queue(100));
            let expected = if t < 150 {
                Verdict::Admit
            } else {
                Verdict::Drop
            };
            assert_eq!(verdict, expected, "{t}");
        }
        // The allowance is back once the probability is zero and the delay low.
        p.probability = 0.0;
        p.delay_old = Span::ZERO;
        judge(&mut p, ms(300), &idle_since(300));
        assert_eq!(p.burst_allowance, span(150));
    }

    #[test]
    fn safeguards_admit_everything() {
        let mut p = pie(None);
        p.burst_allowance = Span::ZERO;
        p.delay_old = span(7);
        p.probability = 0.19;
        assert!((0..1000).all(|_| p.judge(&queue(50), false) == Verdict::Admit));
        p.probability = 1.0;
        assert_eq!(p.judge(&queue(50), false), Verdict::Drop);
        assert_eq!(p.judge(&queue(2), false), Verdict::Admit);
        assert_eq!(p.judge(&queue(3), false), Verdict::Drop);
    }

    /// RFC 8033, 4.1: `queue_.byte_length() <= 2 * MEAN_PKTSIZE` is two packets of the path.
    #[test]
    fn two_packets_of_the_path_are_safe() {
        for (mtu, most) in [(500, 1000), (9000, 18_000)] {
            let p = Pie {
                mtu,
                ..Pie::default()
            };
            let mut p = PieState::new(p, ComponentRng::new(1, "pie"));
            p.burst_allowance = Span::ZERO;
            p.probability = 1.0;
            for (bytes, verdict) in [(most, Verdict::Admit), (most + 1, Verdict::Drop)] {
                let backlog = Backlog { bytes, ..queue(50) };
                assert_eq!(p.judge(&backlog, false), verdict, "{mtu}");
            }
        }
    }

    /// RFC 8033, 5.1: mark up to 10 %, drop above.
    #[test]
    fn marks_only_at_low_probabilities() {
        let mut p = pie(Some(0.1));
        p.burst_allowance = Span::ZERO;
        p.delay_old = span(50);
        let mut verdicts = |probability, ect| {
            p.probability = probability;
            let v: Vec<_> = (0..10_000).map(|_| p.judge(&queue(50), ect)).collect();
            let share = |x| v.iter().filter(|y| **y == x).count() as f64 / 1e4;
            (share(Verdict::Mark), share(Verdict::Drop))
        };
        // Standard deviation 0.003.
        let (marks, drops) = verdicts(0.1, true);
        assert!(
            (marks - 0.1).abs() < 0.015 && drops == 0.0,
            "{marks} {drops}"
        );
        let (marks, drops) = verdicts(0.11, true);
        assert!(
            (drops - 0.11).abs() < 0.015 && marks == 0.0,
            "{marks} {drops}"
        );
        let (marks, drops) = verdicts(0.1, false);
        assert!(
            (drops - 0.1).abs() < 0.015 && marks == 0.0,
            "{marks} {drops}"
        );
    }
}
