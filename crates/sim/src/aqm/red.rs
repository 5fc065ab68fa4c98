//! Random early detection.
//!
//! - Floyd and Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance" (in the
//!   text: FJ93): the average with its correction for idle time (section 4, figure 2), the uniform
//!   gaps between drops (section 7, method 2).
//! - Floyd 2000, "Recommendation on using the gentle variant of RED": between `max_th` and twice
//!   `max_th` the probability rises to one.
//! - Floyd, Gummadi, Shenker 2001, "Adaptive RED" (FGS01): `max_p` follows the average (figure 1),
//!   `w_q`, `min_th` and `max_th` from the link's rate.
//!
//! ns-2.35 (`queue/red.cc` with its default of `wait_`) is [`QueueRule::Ns2`]: gaps between drops
//! are uniform on 1/p_b .. 2/p_b, a third as many drops; the average is of the packets that wait,
//! so that the one in transmission is not counted, and no packet is dropped while one or none
//! waits.
//!
//! The queue is measured in packets, not in bytes. Figure 2 of FJ93 is one ahead of its section 7
//! after a drop (it counts the arriving packet already); this follows section 7, where the gaps are
//! uniform on 1 .. 1/p_b. Their mean is about half of 1/p_b, so that the rate of drops at a
//! constant average is about twice p_b, as in FJ93.

use fullpipe_run::{ComponentRng, QueueRule, Red};
use fullpipe_units::{Span, Time};

use super::{Backlog, Verdict};

/// A running RED.
#[derive(Debug)]
pub struct RedState {
    p: Red,
    /// Full packets that the link transmits per nanosecond.
    per_nano: f64,
    average: f64,
    max_p: f64,
    /// Packets admitted since the last drop or mark, or since the average rose above `min_th`.
    count: u64,
    /// ns-2: the last packet was judged by its probability, too.
    is_judging: bool,
    next_adaptation: Time,
    /// Idle time up to here is in the average.
    decayed_to: Time,
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

/// `p_a`: makes the gaps between drops uniform; `count` packets passed since the last one (FJ93,
/// section 7, method 2).
fn spread(p_b: f64, count: u64) -> f64 {
    let left = 1.0 - count as f64 * p_b;
    if left <= p_b { 1.0 } else { p_b / left }
}

/// The same as in ns-2: none of the first 1/p_b packets, this one being the `count`-th, and one of
/// the next as many.
fn spread_as_ns2(p_b: f64, count: u64) -> f64 {
    let passed = count as f64 * p_b;
    if passed < 1.0 {
        0.0
    } else if passed < 2.0 {
        (p_b / (2.0 - passed)).min(1.0)
    } else {
        1.0
    }
}

/// The average after an idle time in which `m` full packets could have left (FJ93, section 4).
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
    /// At a link of `rate` bits per second.
    pub fn new(p: Red, rate: u64, rng: ComponentRng) -> Self {
        let mut red = Self {
            p,
            per_nano: 0.0,
            average: 0.0,
            max_p: p.max_p,
            count: 0,
            is_judging: false,
            next_adaptation: Time::ZERO + ADAPT_EVERY,
            decayed_to: Time::ZERO,
            rng,
        };
        red.set_rate(rate);
        red
    }

    /// New rate of the link in bits per second.
    pub fn set_rate(&mut self, rate: u64) {
        self.per_nano = rate as f64 * 1e-9 / (f64::from(self.p.mtu) * 8.0);
    }

    /// Decides about an arriving packet.
    #[inline]
    pub fn judge(&mut self, now: Time, backlog: &Backlog, ect: bool) -> Verdict {
        if self.p.adaptive && now >= self.next_adaptation {
            self.adapt(now, backlog.idle_since);
        }
        if self.p.by == QueueRule::Ns2 {
            return self.judge_as_ns2(now, backlog, ect);
        }
        self.average = match backlog.idle_since {
            None => self.average + self.p.weight * (backlog.packets as f64 - self.average),
            Some(since) => self.after_idle(since, now),
        };
        self.decayed_to = now;
        let Some(p_b) = probability(&self.p, self.max_p, self.average) else {
            self.count = 0;
            return match self.p.ecn && ect && !self.p.harddrop {
                true => Verdict::Mark,
                false => Verdict::Drop,
            };
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

    fn judge_as_ns2(&mut self, now: Time, backlog: &Backlog, ect: bool) -> Verdict {
        let sending = u64::from(backlog.idle_since.is_none());
        let waiting = backlog.packets - sending;
        if let Some(since) = backlog.idle_since {
            // Whole packets could have left.
            let since = since.max(self.decayed_to);
            let m = now.saturating_since(since).as_nanos() as f64 * self.per_nano;
            self.average = decayed(self.average, self.p.weight, libm::floor(m));
        }
        self.average += self.p.weight * (waiting as f64 - self.average);
        self.decayed_to = now;
        self.count += 1;
        if self.average < self.p.min || waiting <= 1 {
            self.is_judging = false;
            return Verdict::Admit;
        }
        let Some(p_b) = probability(&self.p, self.max_p, self.average) else {
            return Verdict::Drop;
        };
        if !core::mem::replace(&mut self.is_judging, true) {
            self.count = 1;
            return Verdict::Admit;
        }
        if self.rng.uniform() > spread_as_ns2(p_b, self.count) {
            return Verdict::Admit;
        }
        self.count = 0;
        match self.p.ecn && ect {
            true => Verdict::Mark,
            false => Verdict::Drop,
        }
    }

    /// A packet that is dropped leaves the queue empty: the idle time goes on, and what the packet
    /// found of it is not counted again.
    fn after_idle(&self, since: Time, at: Time) -> f64 {
        let since = since.max(self.decayed_to);
        let m = at.saturating_since(since).as_nanos() as f64 * self.per_nano;
        decayed(self.average, self.p.weight, m)
    }

    /// The adaptations due by `now`, with the average as it was then.
    #[cold]
    fn adapt(&mut self, now: Time, idle_since: Option<Time>) {
        while self.next_adaptation <= now {
            let at = self.next_adaptation;
            let average = match idle_since {
                Some(since) if since < at => self.after_idle(since, at),
                _ => self.average,
            };
            self.max_p = adapted(self.max_p, &self.p, average);
            self.next_adaptation += ADAPT_EVERY;
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

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    const RED: Red = Red {
        min: 5.0,
        max: 15.0,
        max_p: 0.1,
        weight: 1.0,
        gentle: true,
        adaptive: false,
        ecn: true,
        harddrop: true,
        by: QueueRule::Rfc,
        mtu: 1500,
    };

    fn red(p: Red) -> RedState {
        // 12 Mbit/s and 1500 B: one packet per millisecond.
        RedState::new(p, 12_000_000, ComponentRng::new(1, "red"))
    }

    fn queue(packets: u64) -> Backlog {
        Backlog {
            packets,
            bytes: packets * 1500,
            delay: Span::from_millis(packets),
            idle_since: None,
        }
    }

    /// Packets from one drop to the next while the queue stands at `packets`.
    fn gaps(packets: u64, n: usize) -> Vec<u64> {
        gaps_of(RED, packets, n)
    }

    fn gaps_of(p: Red, packets: u64, n: usize) -> Vec<u64> {
        let mut r = red(p);
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() < n {
            gap += 1;
            if r.judge(ms(1), &queue(packets), false) == Verdict::Drop {
                gaps.push(gap);
                gap = 0;
            }
        }
        gaps
    }

    #[test]
    fn the_probability_rises_linearly_between_the_thresholds_and_gently_above() {
        for (average, expected) in [
            (4.9, Some(0.0)),
            (5.0, Some(0.0)),
            (7.5, Some(0.025)),
            (10.0, Some(0.05)),
            (15.0, Some(0.1)),
            (22.5, Some(0.55)),
            (30.0, None),
        ] {
            let p = probability(&RED, 0.1, average);
            assert!(p.zip(expected).is_none_or(|(a, b)| (a - b).abs() < 1e-12));
            assert_eq!(p.is_some(), expected.is_some(), "{average}");
        }
        let hard = Red {
            gentle: false,
            ..RED
        };
        assert_eq!(probability(&hard, 0.1, 15.0), None);
    }

    /// FJ93, section 7: gaps are uniform on 1 ..= 1/p_b, with mean (1 + 1/p_b) / 2. At an average
    /// of 10, p_b is 0.1 (10 - 5) / (15 - 5) = 1/20. 200 000 gaps: each frequency has a standard
    /// deviation of 1 %.
    #[test]
    fn gaps_between_drops_are_uniform() {
        let gaps = gaps(10, 200_000);
        let mut counts = [0u64; 21];
        gaps.iter().for_each(|g| counts[*g as usize] += 1);
        for (gap, count) in counts.iter().enumerate().skip(1) {
            let share = *count as f64 / gaps.len() as f64;
            assert!((share / 0.05 - 1.0).abs() < 0.05, "gap {gap}: {share}");
        }
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 0.05, "{mean}");
    }

    /// ns-2 waits for 1/p_b packets after each: gaps are uniform on 1/p_b .. 2/p_b. Of eleven
    /// packets ten wait, so that p_b is 1/20.
    #[test]
    fn ns2_waits_between_drops() {
        let ns2 = Red {
            by: QueueRule::Ns2,
            ..RED
        };
        let gaps = gaps_of(ns2, 11, 200_000);
        let mut counts = [0u64; 40];
        gaps.iter().for_each(|g| counts[*g as usize] += 1);
        for (gap, count) in counts.iter().enumerate() {
            let share = *count as f64 / gaps.len() as f64;
            let expected = if gap < 20 { 0.0 } else { 0.05 };
            assert!((share - expected).abs() < 0.0025, "gap {gap}: {share}");
        }
    }

    /// Nor does it drop a packet while one or none waits, however large the average, or the first
    /// one that it judges.
    #[test]
    fn ns2_spares_a_queue_of_one_packet() {
        let mut r = red(Red {
            by: QueueRule::Ns2,
            weight: 1e-9,
            ecn: false,
            ..RED
        });
        r.average = 29.9;
        let mut judge = |packets| r.judge(ms(1), &queue(packets), false);
        assert!((0..100).all(|_| judge(2) == Verdict::Admit));
        assert_eq!(judge(3), Verdict::Admit, "the first");
        // p_b is nearly one: every second packet.
        assert_eq!([judge(3), judge(3)], [Verdict::Drop, Verdict::Admit]);
        assert_eq!([judge(2), judge(3)], [Verdict::Admit, Verdict::Admit]);
    }

    /// The share of packets dropped at a constant average, over its whole range: 2 p_b / (1 + p_b),
    /// from the mean gap. Here 1/p_b is an integer, so that the gaps end exactly there.
    #[test]
    fn the_rate_of_drops_follows_the_average() {
        for (packets, inverse) in [(6, 100.0), (7, 50.0), (9, 25.0), (15, 10.0)] {
            let gaps = gaps(packets, 50_000);
            let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
            let expected = (inverse + 1.0) / 2.0;
            assert!(
                (mean / expected - 1.0).abs() < 0.02,
                "{packets}: {mean} {expected}"
            );
            assert_eq!(gaps.iter().max(), Some(&(inverse as u64)));
        }
    }

    #[test]
    fn marks_what_may_be_marked_until_the_average_is_too_high() {
        let mut r = red(RED);
        let verdicts: Vec<_> = (0..1000)
            .map(|_| r.judge(ms(1), &queue(14), true))
            .collect();
        assert!(verdicts.contains(&Verdict::Mark) && !verdicts.contains(&Verdict::Drop));
        assert_eq!(r.judge(ms(1), &queue(30), true), Verdict::Drop);
        assert_eq!(r.judge(ms(1), &queue(4), true), Verdict::Admit);
        let mut soft = red(Red {
            harddrop: false,
            ..RED
        });
        assert_eq!(soft.judge(ms(1), &queue(30), true), Verdict::Mark);
        assert_eq!(soft.judge(ms(1), &queue(30), false), Verdict::Drop);
    }

    /// A step of the queue to q: avg = q (1 - (1 - w)^n) after n packets; an idle time of m
    /// packets: (1 - w)^m.
    #[test]
    fn the_average_follows_its_closed_forms() {
        let w = 0.002;
        let mut r = red(Red {
            weight: w,
            max_p: 0.0,
            ..RED
        });
        for _ in 0..1000 {
            r.judge(ms(1), &queue(10), false);
        }
        let full = 10.0 * (1.0 - 0.998f64.powi(1000));
        assert!((r.average - full).abs() < 1e-9, "{}", r.average);
        // 300 ms at one packet per millisecond.
        let idle = Backlog {
            idle_since: Some(ms(100)),
            ..queue(0)
        };
        r.judge(ms(400), &idle, false);
        assert!(
            (r.average - full * 0.998f64.powi(300)).abs() < 1e-9,
            "{}",
            r.average
        );
    }

    /// Three packets that find the same idle time of 300 ms, all but the last dropped, decay the
    /// average as often as one does.
    #[test]
    fn an_idle_time_is_counted_once() {
        let after = |times: &[u64]| {
            let mut r = red(Red {
                weight: 0.002,
                gentle: false,
                max: 6.0,
                ..RED
            });
            r.average = 20.0;
            let idle = Backlog {
                idle_since: Some(ms(100)),
                ..queue(0)
            };
            let verdicts = times.iter().map(|t| r.judge(ms(*t), &idle, false));
            assert!(verdicts.into_iter().all(|v| v == Verdict::Drop));
            r.average
        };
        let once = 20.0 * 0.998f64.powi(300);
        for times in [&[400][..], &[200, 300, 400], &[400, 400, 400]] {
            assert!((after(times) - once).abs() < 1e-9, "{}", after(times));
        }
    }

    #[test]
    fn one_adaptation_adds_little_and_takes_a_tenth() {
        // Target band of min 5, max 15: 9 to 11.
        for (max_p, average, expected) in [
            (0.1, 11.1, 0.11),
            (0.02, 11.1, 0.025),
            (0.495, 20.0, 0.5),
            (0.1, 10.9, 0.1),
            (0.1, 9.1, 0.1),
            (0.1, 8.9, 0.09),
            (0.0105, 8.9, 0.01),
        ] {
            let got = adapted(max_p, &RED, average);
            assert!((got - expected).abs() < 1e-12, "{max_p} {average}: {got}");
        }
    }

    /// Sources that obey W = sqrt(1.5 / p) (Mathis and others 1997): ten of them over a path of 60
    /// packets leave a queue of 10 sqrt(1.5/p) - 60, p being the share of packets dropped lately.
    /// With a fixed `max_p` of 1 % or 20 % the average stands at one of the thresholds; the
    /// adaptation brings it into the target band from either side (FGS01).
    #[test]
    fn adaptive_red_brings_the_average_into_its_band() {
        let mean = |adaptive, max_p| {
            let mut r = red(Red {
                adaptive,
                weight: 0.002,
                max_p,
                ..RED
            });
            let (mut packets, mut p, mut sum) = (10u64, 0.03, 0.0);
            for half_second in 0..1000 {
                let dropped = (0..500)
                    .filter(|i| {
                        let now = ms(half_second * 500 + i);
                        r.judge(now, &queue(packets), false) == Verdict::Drop
                    })
                    .count();
                p = (0.9 * p + 0.1 * dropped as f64 / 500.0).max(1e-4);
                packets = (10.0 * (1.5 / p).sqrt() - 60.0).clamp(0.0, 100.0) as u64;
                if half_second >= 500 {
                    sum += r.average / 500.0;
                }
            }
            sum
        };
        for max_p in [0.01, 0.2] {
            let (adapted, fixed) = (mean(true, max_p), mean(false, max_p));
            assert!((9.0..=11.0).contains(&adapted), "{max_p}: {adapted}");
            assert!(!(8.0..=12.0).contains(&fixed), "{max_p}: {fixed}");
        }
    }

    /// Nobody arrives for ten seconds: twenty adaptations, the first ones with an average that is
    /// still high.
    #[test]
    fn adaptations_missed_while_idle_are_made_up_for() {
        let p = Red {
            adaptive: true,
            weight: 0.002,
            ..RED
        };
        let mut r = red(p);
        r.average = 14.0;
        let idle = Backlog {
            idle_since: Some(Time::ZERO),
            ..queue(0)
        };
        r.judge(ms(10_200), &idle, false);
        // After 500 ms the average is 14 * 0.998^500 = 5.1, below 9: twenty times 0.9.
        assert!(
            (r.max_p - 0.1 * 0.9f64.powi(20)).abs() < 1e-12,
            "{}",
            r.max_p
        );
    }

    /// FGS01: `w_q` = 0.002 is the automatic value of a link of about 500 packets per second; at 10
    /// 000 packets per second a delay of 5 ms asks for thresholds of 25 and 75 packets.
    #[test]
    fn automatic_parameters() {
        assert!((Red::adaptive(500.0, Span::from_millis(5)).weight - 0.002).abs() < 3e-6);
        let fast = Red::adaptive(10_000.0, Span::from_millis(5));
        assert!((fast.min - 25.0).abs() < 1e-9 && (fast.max - 75.0).abs() < 1e-9);
        let slow = Red::adaptive(100.0, Span::from_millis(5));
        assert_eq!((slow.min, slow.max), (5.0, 15.0));
        let classic = Red::classic(600);
        assert_eq!((classic.min, classic.max), (50.0, 150.0));
    }
}
