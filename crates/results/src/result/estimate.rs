//! Means over seeds, with the 95 % Student interval.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, StudentsT};

use fullpipe_metrics as metrics;
use fullpipe_metrics::Values;

/// Mean over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean; the value itself with one seed. `None` if undefined in any seed.
    pub mean: Option<f64>,
    /// 95 % interval of the mean; with two seeds or more.
    pub ci95: Option<[f64; 2]>,
    /// Seeds in which it is undefined, if not in all.
    pub undefined: u32,
}

/// Estimates by metric name.
pub type Estimates = BTreeMap<String, Estimate>;

impl Estimate {
    /// Mean and interval of the values of the seeds.
    pub fn of(samples: &[Option<f64>]) -> Estimate {
        let defined: Vec<f64> = samples.iter().flatten().copied().collect();
        if defined.is_empty() {
            return Estimate::default();
        }
        let undefined = (samples.len() - defined.len()) as u32;
        if undefined > 0 {
            return Estimate {
                mean: None,
                ci95: None,
                undefined,
            };
        }
        let n = defined.len() as f64;
        // Equal values have that mean and no width, whatever rounding would leave of them.
        let all_equal = defined.iter().all(|x| *x == defined[0]);
        let mean = match all_equal {
            true => defined[0],
            false => defined.iter().sum::<f64>() / n,
        };
        let ci95 = (defined.len() >= 2).then(|| {
            let squares: f64 = defined.iter().map(|x| (x - mean) * (x - mean)).sum();
            let half = student_t(n - 1.0) * (squares / (n - 1.0) / n).sqrt();
            [mean - half, mean + half]
        });
        Estimate {
            mean: Some(mean),
            ci95,
            undefined,
        }
    }
}

/// Means and intervals of every name that any run has.
pub(super) fn aggregate(runs: &[&Values]) -> Estimates {
    let names: BTreeSet<&String> = runs.iter().flat_map(|v| v.keys()).collect();
    // What a run leaves out (a gain without a partner) says nothing; what a controller does not
    // report is undefined.
    let samples = |name: &str| {
        runs.iter()
            .filter(|v| metrics::is_variable(name) || v.contains_key(name))
            .map(|v| metrics::value(v, name))
            .collect::<Vec<_>>()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), Estimate::of(&samples(name))))
        .collect()
}

/// Two-sided 95 % quantile of Student's t. Rounded to nine digits, so that its last bits do not
/// depend on how a platform rounds a logarithm.
pub(crate) fn student_t(degrees: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees)
        .expect("degrees of freedom are positive")
        .inverse_cdf(0.975);
    let scale = 1e9;
    (t * scale).round() / scale
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The estimate of samples that are all defined.
    pub fn estimate(samples: &[f64]) -> Estimate {
        Estimate::of(&samples.iter().map(|&v| Some(v)).collect::<Vec<_>>())
    }

    #[test]
    fn student_quantiles() {
        for (n, t) in [
            (1.0, 12.706204736),
            (2.0, 4.302652730),
            (9.0, 2.262157163),
            (29.0, 2.045229642),
        ] {
            assert!((student_t(n) - t).abs() < 2e-9, "{n}: {}", student_t(n));
        }
    }

    /// 2.317 three times: sum and quotient round, and left 4.4e-16 and an interval.
    #[test]
    fn equal_values_have_no_interval_around_them() {
        for x in [2.317, 246.9, 0.1 + 0.2, 1e-9] {
            let e = estimate(&[x; 7]);
            assert_eq!((e.mean, e.ci95), (Some(x), Some([x, x])));
        }
        let e = estimate(&[2.317, 2.317, 2.317_000_001]);
        assert!(e.ci95.unwrap()[0] < e.ci95.unwrap()[1]);
    }

    #[test]
    fn interval_of_a_mean() {
        // Mean 3, sample deviation sqrt(2.5), t(4) = 2.776445.
        let e = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let half = 2.776_445_105 * (2.5f64 / 5.0).sqrt();
        assert_eq!(e.mean, Some(3.0));
        assert!(
            (e.ci95.unwrap()[0] - (3.0 - half)).abs() < 1e-8
                && (e.ci95.unwrap()[1] - (3.0 + half)).abs() < 1e-8
        );
        assert_eq!(
            estimate(&[7.5]),
            Estimate {
                mean: Some(7.5),
                ci95: None,
                undefined: 0
            }
        );
        assert_eq!(
            Estimate::of(&[Some(1.0), None]),
            Estimate {
                mean: None,
                ci95: None,
                undefined: 1
            }
        );
    }
}
