//! One generator per component, derived from the run's seed and the component's name, so that
//! adding a component does not shift another one's randomness.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// Generator of one component.
#[derive(Clone, Debug)]
pub struct ComponentRng(Xoshiro256PlusPlus);

impl ComponentRng {
    /// For the component called `name` in the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(derive_seed(seed, name)))
    }

    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Trials up to and including the next success of a Bernoulli process; `u64::MAX` for p = 0.
    pub fn geometric(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            u64::MAX
        } else if p >= 1.0 {
            1
        } else {
            // Truncation to the floor is the inverse of the geometric distribution function; the
            // cast saturates.
            1u64.saturating_add((libm::log(self.uniform()) / libm::log1p(-p)) as u64)
        }
    }
}

/// Seed of the component called `name` (FNV-1a over the name, mixed with the run's seed).
pub fn derive_seed(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_right_mean_and_components_differ() {
        let mut a = ComponentRng::new(1, "bottleneck");
        let mean = (0..100_000).map(|_| a.geometric(0.01) as f64).sum::<f64>() / 1e5;
        assert!((mean - 100.0).abs() < 2.0, "{mean}");
        let first = |seed, name| ComponentRng::new(seed, name).uniform();
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
        assert_eq!(first(1, "a"), first(1, "a"));
    }
}
