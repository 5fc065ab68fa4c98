//! Sender-side artificial loss: which deliveries the sender pretends to have lost (UCL 2003, un-ACK
//! facility).

use fullpipe_units::Time;

use crate::config::ArtificialLoss;

/// Progress through the rules of one connection.
#[derive(Clone, Debug)]
pub struct Artificial {
    rules: ArtificialLoss,
    /// Delivered counts at which a random loss is due next.
    gap: u64,
    state: u64,
    window_done: bool,
}

impl Artificial {
    /// `seed` makes the random rule repeatable. `None` if there is no rule, as in almost every
    /// flow: those pay a pointer.
    pub fn new(rules: ArtificialLoss, seed: u64) -> Option<Box<Self>> {
        if rules.is_none() {
            return None;
        }
        let mut rules = rules;
        rules.segments.sort_unstable_by(|a, b| b.cmp(a));
        rules.times.sort_unstable_by(|a, b| b.cmp(a));
        let mut new = Self {
            rules,
            gap: 0,
            state: seed,
            window_done: false,
        };
        new.gap = new.geometric();
        Some(Box::new(new))
    }

    /// `n` segments were just delivered after `before` others, the window is `w`: does one of them
    /// count as lost?
    pub fn drops(&mut self, now: Time, before: u64, n: u64, w: f64) -> bool {
        let after = before + n;
        let mut hit = false;
        while self.rules.segments.last().is_some_and(|s| *s < after) {
            self.rules.segments.pop();
            hit = true;
        }
        while self.rules.times.last().is_some_and(|t| *t <= now) {
            self.rules.times.pop();
            hit = true;
        }
        if let Some(every) = self.rules.every {
            hit |= before / every != after / every;
        }
        if let Some(at) = self.rules.at_window
            && !self.window_done
            && w >= at
        {
            self.window_done = true;
            hit = true;
        }
        if self.rules.probability > 0.0 {
            let mut left = n;
            while left >= self.gap {
                left -= self.gap;
                self.gap = self.geometric();
                hit = true;
            }
            self.gap -= left;
        }
        hit
    }

    /// Number of trials up to and including the next success.
    fn geometric(&mut self) -> u64 {
        let p = self.rules.probability;
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 1;
        }
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let u = ((z >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
        1 + (libm::log(u) / libm::log1p(-p)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_gaps_have_the_mean_that_was_asked_for() {
        let rules = ArtificialLoss {
            probability: 1e-3,
            ..ArtificialLoss::default()
        };
        let mut a = Artificial::new(rules, 7).unwrap();
        let hits = (0..1_000_000u64)
            .filter(|i| a.drops(Time::ZERO, *i, 1, 1.0))
            .count();
        assert!((900..1100).contains(&hits), "{hits}");
    }

    #[test]
    fn exact_rules_strike_once() {
        let rules = ArtificialLoss {
            segments: vec![40, 5],
            at_window: Some(3.0),
            ..ArtificialLoss::default()
        };
        let mut a = Artificial::new(rules, 0).unwrap();
        let hits: Vec<u64> = (0..60)
            .filter(|i| a.drops(Time::ZERO, *i, 1, *i as f64 / 10.0))
            .collect();
        assert_eq!(hits, [5, 30, 40]);
    }
}
