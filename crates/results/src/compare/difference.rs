//! A difference of means with its 95 % interval: of pairs, or of two independent samples.

use std::collections::BTreeMap;

use super::row::{Effect, Method};
use crate::result::{Estimate, student_t};

/// `b - a` with its interval.
pub(crate) struct Difference {
    pub(crate) mean: Option<f64>,
    pub(crate) interval: Option<[f64; 2]>,
    /// `None` without an interval.
    pub(super) spread: Option<Spread>,
    pub(super) effect: Option<Effect>,
    pub(super) method: Method,
}

/// How far chance sets two samples apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Standard error of the difference.
    pub(super) error: f64,
    /// Degrees of freedom.
    pub(super) freedom: f64,
}

impl Spread {
    /// 95 % interval of a difference.
    fn around(self, difference: f64) -> [f64; 2] {
        let half = student_t(self.freedom) * self.error;
        [difference - half, difference + half]
    }
}

impl Difference {
    /// Of two runs or more with their partners: Student's interval of the mean of `b - a`.
    pub(crate) fn paired(pairs: &[[f64; 2]]) -> Difference {
        let differences: Vec<Option<f64>> = pairs.iter().map(|[a, b]| Some(b - a)).collect();
        let e = Estimate::of(&differences);
        let error = error_variance(&e, pairs.len()).map(f64::sqrt);
        let deviation = error.map(|e| e * (pairs.len() as f64).sqrt());
        let freedom = pairs.len() as f64 - 1.0;
        Difference {
            mean: e.mean,
            interval: e.ci95,
            spread: error.map(|error| Spread { error, freedom }),
            effect: effect("d_z", e.mean, deviation, size(pairs.iter().flatten())),
            method: Method::Paired,
        }
    }

    /// The difference of two samples: Welch's interval, or where a side has one seed alone the
    /// interval in which a run of the other side would lie.
    pub(crate) fn of_samples(a: &Estimate, na: usize, b: &Estimate, nb: usize) -> Difference {
        let mean = a.mean.zip(b.mean).map(|(a, b)| b - a);
        let spread = match (na, nb) {
            (1, 2..) => error_variance(b, nb).zip(Some(nb)),
            (2.., 1) => error_variance(a, na).zip(Some(na)),
            _ => None,
        };
        let (Some(difference), Some((variance, n))) = (mean, spread) else {
            return Self::welch(a, na, b, nb);
        };
        // `s^2 (1 + 1/n)`, of the squared standard error `s^2 / n`.
        let spread = Spread {
            error: (variance * (n as f64 + 1.0)).sqrt(),
            freedom: n as f64 - 1.0,
        };
        Difference {
            mean,
            interval: Some(spread.around(difference)),
            spread: Some(spread),
            effect: None,
            method: Method::Prediction,
        }
    }

    /// The same for counts of runs that chance tells apart. Where whole numbers happen to be equal
    /// in all of `na` and `nb` seeds their spread is unknown, not zero: it is taken as that of what
    /// was rounded to them, a variance of 1/12 (Sheppard 1898).
    pub(crate) fn of_counts(self, na: usize, nb: usize) -> Difference {
        let point = |[low, high]: &[f64; 2]| low == high;
        let Some(difference) = self
            .mean
            .filter(|_| self.interval.as_ref().is_some_and(point))
        else {
            return self;
        };
        let (na, nb) = (na as f64, nb as f64);
        let freedom = match self.method {
            // Equal in all pairs: which runs belong together says nothing.
            Method::Paired => na + nb - 2.0,
            // Of the side that has several.
            Method::Prediction => na.max(nb) - 1.0,
            Method::Welch | Method::Single => na + nb - 2.0,
        };
        let spread = Spread {
            error: (ROUNDING * (1.0 / na + 1.0 / nb)).sqrt(),
            freedom,
        };
        Difference {
            interval: Some(spread.around(difference)),
            spread: Some(spread),
            ..self
        }
    }

    /// For unequal variances (Welch 1947), degrees of freedom after Satterthwaite.
    pub(crate) fn welch(a: &Estimate, na: usize, b: &Estimate, nb: usize) -> Difference {
        let mean = a.mean.zip(b.mean).map(|(a, b)| b - a);
        let errors = error_variance(a, na).zip(error_variance(b, nb));
        let (Some(difference), Some((va, vb))) = (mean, errors) else {
            return Difference {
                mean,
                interval: None,
                spread: None,
                effect: None,
                method: Method::Single,
            };
        };
        let (fa, fb) = (na as f64 - 1.0, nb as f64 - 1.0);
        let sum = va + vb;
        let (error, freedom) = match sum {
            0.0 => (0.0, fa + fb),
            _ => (sum.sqrt(), sum * sum / (va * va / fa + vb * vb / fb)),
        };
        let pooled = (fa * va * na as f64 + fb * vb * nb as f64) / (fa + fb);
        let spread = Spread { error, freedom };
        Difference {
            mean,
            interval: Some(spread.around(difference)),
            spread: Some(spread),
            effect: effect(
                "d",
                mean,
                Some(pooled.sqrt()),
                size(a.mean.iter().chain(&b.mean)),
            ),
            method: Method::Welch,
        }
    }
}

/// Values of the two sides with the same seed; `None` unless all seeds of a side have a partner and
/// there are two.
pub(crate) fn pairs(a: &[(i64, Option<f64>)], b: &[(i64, Option<f64>)]) -> Option<Vec<[f64; 2]>> {
    let of_b: BTreeMap<i64, Option<f64>> = b.iter().copied().collect();
    let common: Vec<_> = a
        .iter()
        .filter_map(|(seed, x)| Some((*x, *of_b.get(seed)?)))
        .collect();
    if common.len() < 2 || (common.len() < a.len() && common.len() < b.len()) {
        return None;
    }
    common.into_iter().map(|(x, y)| Some([x?, y?])).collect()
}

/// Variance of what is rounded to whole numbers.
const ROUNDING: f64 = 1.0 / 12.0;

/// Part of the values below which a difference is one of rounding.
pub(crate) const NOISE: f64 = 1e-9;

/// The largest of them.
pub(crate) fn size<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    values.fold(0.0, |most: f64, x| most.max(x.abs()))
}

/// In standard deviations, unless these are rounding of values of this size.
fn effect(
    measure: &'static str,
    mean: Option<f64>,
    deviation: Option<f64>,
    size: f64,
) -> Option<Effect> {
    let value = mean? / deviation.filter(|d| *d > NOISE * size)?;
    value.is_finite().then_some(Effect { measure, value })
}

/// Squared standard error of a mean, read back from its interval.
fn error_variance(e: &Estimate, n: usize) -> Option<f64> {
    let [low, high] = e.ci95?;
    let error = 0.5 * (high - low) / student_t(n as f64 - 1.0);
    Some(error * error)
}
