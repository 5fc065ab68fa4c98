//! How many times as large one sample is as another.

use super::difference::Difference;
use crate::result::Estimate;

/// The ratio of two geometric means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Its 95 % interval, Welch's of the difference of mean logarithms; with two values or more in
    /// each sample.
    pub interval: Option<[f64; 2]>,
}

impl Ratio {
    /// Of positive values, whose ratios and not whose differences are alike: rates. `None` where a
    /// sample has none.
    pub fn of(values: &[f64], to: &[f64]) -> Option<Ratio> {
        let logarithms = |sample: &[f64]| {
            let positive = sample.iter().filter(|x| **x > 0.0);
            positive.map(|x| Some(libm::log(*x))).collect::<Vec<_>>()
        };
        let (values, to) = (logarithms(values), logarithms(to));
        let (a, b) = (Estimate::of(&to), Estimate::of(&values));
        let difference = Difference::welch(&a, to.len(), &b, values.len());
        Some(Ratio {
            value: libm::exp(difference.mean?),
            interval: difference.interval.map(|ends| ends.map(libm::exp)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both have the same deviation, so that Welch's degrees of freedom are 4: ln 2 ± 2.776445
    /// ln 1.25 sqrt(2 / 3).
    #[test]
    fn a_ratio_has_the_interval_of_its_logarithm() {
        let ratio = Ratio::of(&[8.0, 10.0, 12.5], &[4.0, 5.0, 6.25]).unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-12);
        let half = 2.776_445_105 * 1.25f64.ln() * (2.0f64 / 3.0).sqrt();
        let [low, high] = ratio.interval.unwrap();
        assert!((low - 2.0 * (-half).exp()).abs() < 1e-8, "{low}");
        assert!((high - 2.0 * half.exp()).abs() < 1e-8, "{high}");
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_ratio() {
        let single = Ratio::of(&[3.0], &[1.0, 2.0]).unwrap();
        assert!((single.value - 3.0 / 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(single.interval, None);
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        assert_eq!(Ratio::of(&[0.0], &[1.0]), None);
    }
}
