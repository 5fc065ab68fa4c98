//! Losses: random ones at a link's entry, exact ones of a single flow.

use std::collections::VecDeque;

use fullpipe_units::Time;

use crate::rng::ComponentRng;
use crate::spec::{Drops, FlowSpec, Loss};

/// A random loss process, one step per packet.
#[derive(Debug)]
pub struct LossProcess {
    model: Loss,
    rng: ComponentRng,
    /// Bernoulli: packets until the next loss, that one included.
    gap: u64,
    bad: bool,
}

impl LossProcess {
    /// The process of the component that owns `rng`.
    pub fn new(model: Loss, rng: ComponentRng) -> Self {
        let mut process = Self {
            model,
            rng,
            gap: u64::MAX,
            bad: false,
        };
        process.change(model);
        process
    }

    /// Goes on with another model, in its good state.
    pub fn change(&mut self, model: Loss) {
        self.model = model;
        self.bad = false;
        if let Loss::Bernoulli { p } = model {
            self.gap = self.rng.geometric(p);
        }
    }

    /// True if this packet is lost.
    #[inline]
    pub fn drops(&mut self) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Bernoulli { p } => {
                self.gap -= 1;
                let hit = self.gap == 0;
                if hit {
                    self.gap = self.rng.geometric(p);
                }
                hit
            }
            Loss::GilbertElliott {
                to_bad,
                to_good,
                good,
                bad,
            } => {
                let flip = if self.bad { to_good } else { to_bad };
                if self.rng.uniform() < flip {
                    self.bad = !self.bad;
                }
                let p = if self.bad { bad } else { good };
                p > 0.0 && self.rng.uniform() < p
            }
        }
    }
}

/// Exact losses of one flow and its own random loss, in progress.
#[derive(Debug)]
pub struct DropRules {
    rules: Drops,
    random: LossProcess,
    packets: u64,
    window_done: bool,
    /// What was said of segments that the operating system then refused, the next to leave first:
    /// number, whether it was a retransmission, whether it is dropped.
    said: VecDeque<(u64, bool, bool)>,
}

impl DropRules {
    /// `None` if there is nothing to drop.
    pub fn new(rules: &Drops, rng: ComponentRng) -> Option<Self> {
        if *rules == Drops::default() {
            return None;
        }
        let mut rules = rules.clone();
        // Consumed from the back.
        rules.segments.sort_unstable_by(|a, b| b.cmp(a));
        rules.times.sort_unstable_by(|a, b| b.cmp(a));
        let random = LossProcess::new(
            Loss::Bernoulli {
                p: rules.probability,
            },
            rng,
        );
        Some(Self {
            rules,
            random,
            packets: 0,
            window_done: false,
            said: VecDeque::new(),
        })
    }

    /// Those of a flow at its receiver's host.
    pub fn at_receiver(flow: &FlowSpec, seed: u64) -> Option<Self> {
        let rng = ComponentRng::new(seed, &format!("{} arrival drops", flow.name));
        Self::new(&flow.arrival_drops, rng)
    }

    /// True if the data packet that leaves now, at window `w`, is lost.
    pub fn drops(&mut self, now: Time, seq: u64, again: bool, w: f64) -> bool {
        if !self.said.is_empty()
            && let Some(i) = self.said.iter().position(|v| (v.0, v.1) == (seq, again))
        {
            return self.said.remove(i).is_some_and(|v| v.2);
        }
        self.packets += 1;
        let mut hit = self.random.drops();
        if let Some(every) = self.rules.every {
            hit |= self.packets.is_multiple_of(every);
        }
        if !again {
            if self.rules.segments.last() == Some(&seq) {
                self.rules.segments.pop();
                hit = true;
            }
            if let Some(at) = self.rules.at_window
                && !self.window_done
                && w >= at
            {
                self.window_done = true;
                hit = true;
            }
        }
        if self.rules.times.last().is_some_and(|t| *t <= now) {
            self.rules.times.pop();
            hit = true;
        }
        hit
    }

    /// A data packet did not leave after all: what was said of it holds when it does.
    pub fn take_back(&mut self, seq: u64, again: bool, dropped: bool) {
        self.said.push_front((seq, again, dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequency(model: Loss, n: u64) -> f64 {
        let mut p = LossProcess::new(model, ComponentRng::new(3, "x"));
        (0..n).filter(|_| p.drops()).count() as f64 / n as f64
    }

    #[test]
    fn bernoulli_has_its_rate() {
        let f = frequency(Loss::Bernoulli { p: 1e-3 }, 1_000_000);
        assert!((f - 1e-3).abs() < 1e-4, "{f}");
    }

    /// Stationary share of the bad state: `to_bad / (to_bad + to_good)`.
    #[test]
    fn gilbert_elliott_has_its_stationary_loss_rate() {
        let model = Loss::GilbertElliott {
            to_bad: 0.001,
            to_good: 0.1,
            good: 0.0,
            bad: 0.5,
        };
        let f = frequency(model, 2_000_000);
        let expected = 0.5 * 0.001 / 0.101;
        assert!((f / expected - 1.0).abs() < 0.05, "{f} {expected}");
    }

    #[test]
    fn a_new_model_begins_in_its_good_state() {
        let model = |to_bad, to_good| Loss::GilbertElliott {
            to_bad,
            to_good,
            good: 0.0,
            bad: 1.0,
        };
        let mut p = LossProcess::new(model(1.0, 0.0), ComponentRng::new(3, "x"));
        assert!((0..10).all(|_| p.drops()));
        p.change(model(0.0, 0.0));
        assert!(!(0..10).any(|_| p.drops()));
        p.change(Loss::Bernoulli { p: 1.0 });
        assert!((0..10).all(|_| p.drops()));
    }

    #[test]
    fn exact_rules_hit_first_transmissions_once() {
        let rules = Drops {
            segments: vec![2],
            at_window: Some(4.0),
            ..Drops::default()
        };
        let mut d = DropRules::new(&rules, ComponentRng::new(0, "f")).unwrap();
        let t = Time::ZERO;
        let hits: Vec<u64> = (0..8)
            .filter(|s| d.drops(t, *s, false, *s as f64))
            .collect();
        assert_eq!(hits, [2, 4]);
        assert!(!d.drops(t, 2, true, 9.0));
    }
}
