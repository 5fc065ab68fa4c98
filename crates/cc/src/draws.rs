//! What a controller draws at random: a generator of its own, seeded by the endpoint, so that the
//! controller stays a pure function of its events.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `0..below`, up to 2^-32.
    pub(crate) fn below(&mut self, below: u32) -> u32 {
        (((self.next() >> 32) * u64::from(below)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for the seed 1234567, as the generator's reference implementation has them.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut draws = Draws::new(1_234_567);
        let first = [draws.next(), draws.next(), draws.next()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn every_number_below_is_drawn_about_as_often() {
        let mut draws = Draws::new(1);
        let mut seen = [0; 7];
        for _ in 0..70_000 {
            seen[draws.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
    }
}
