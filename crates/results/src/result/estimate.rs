//! Means over seeds, with the 95 % Student interval.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;

use statrs::distribution::{ContinuousCDF, StudentsT};

use fullpipe_metrics as metrics;
use fullpipe_metrics::{Names, Values};

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

/// Estimates by metric name, in the order of the names. Rows of a kind, as many as there are cases,
/// share one list of names.
#[derive(Clone, PartialEq)]
pub struct Estimates {
    names: Names,
    values: Vec<Estimate>,
}

impl Estimates {
    /// No estimates.
    pub fn new() -> Estimates {
        Estimates::from_iter(std::iter::empty::<(&str, Estimate)>())
    }

    /// The estimate of this name.
    pub fn get(&self, name: &str) -> Option<&Estimate> {
        self.names.place(name).map(|i| &self.values[i])
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Estimate> {
        self.names.place(name).map(|i| &mut self.values[i])
    }

    /// True if there is one of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.names.place(name).is_some()
    }

    /// Adds one, or puts it in the place of the one of its name.
    pub fn insert(&mut self, name: String, estimate: Estimate) {
        let all = self.iter().map(|(name, e)| (name.to_owned(), *e));
        *self = all.chain([(name, estimate)]).collect();
    }

    /// The names, in their order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter()
    }

    /// Names and estimates, in the order of the names.
    pub fn iter(&self) -> EachEstimate<'_> {
        EachEstimate { of: self, at: 0 }
    }

    /// Number of estimates.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True without estimates.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl Default for Estimates {
    fn default() -> Estimates {
        Estimates::new()
    }
}

impl fmt::Debug for Estimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Of estimates with one name the last one stays.
impl<N: Into<Cow<'static, str>>> FromIterator<(N, Estimate)> for Estimates {
    fn from_iter<I: IntoIterator<Item = (N, Estimate)>>(estimates: I) -> Estimates {
        let all = estimates.into_iter();
        let all: BTreeMap<Cow<'static, str>, Estimate> =
            all.map(|(name, e)| (name.into(), e)).collect();
        let values = all.values().copied().collect();
        let names = Names::new(all.into_keys());
        Estimates { names, values }
    }
}

impl<N: Into<Cow<'static, str>>, const K: usize> From<[(N, Estimate); K]> for Estimates {
    fn from(estimates: [(N, Estimate); K]) -> Estimates {
        estimates.into_iter().collect()
    }
}

/// # Panics
/// If there is none of this name.
impl Index<&str> for Estimates {
    type Output = Estimate;

    fn index(&self, name: &str) -> &Estimate {
        self.get(name).expect("an estimate of this name")
    }
}

impl<'a> IntoIterator for &'a Estimates {
    type Item = (&'a str, &'a Estimate);
    type IntoIter = EachEstimate<'a>;

    fn into_iter(self) -> EachEstimate<'a> {
        self.iter()
    }
}

/// See [`Estimates::iter`].
#[derive(Clone, Debug)]
pub struct EachEstimate<'a> {
    of: &'a Estimates,
    at: usize,
}

impl<'a> Iterator for EachEstimate<'a> {
    type Item = (&'a str, &'a Estimate);

    fn next(&mut self) -> Option<Self::Item> {
        let item = (self.of.names.name(self.at)?, self.of.values.get(self.at)?);
        self.at += 1;
        Some(item)
    }
}

impl Estimate {
    /// Mean and interval of the values of the seeds.
    pub fn of(samples: &[Option<f64>]) -> Estimate {
        let mut sums = Sums::default();
        samples.iter().for_each(|sample| sums.add(*sample));
        samples.iter().for_each(|sample| sums.add_square(*sample));
        sums.estimate(samples.len() as u64)
    }
}

/// Sums over samples that are seen twice, in the same order: first for the mean, then for the
/// squares around it.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    defined: u64,
    undefined: u64,
    first: f64,
    differ: bool,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, sample: Option<f64>) {
        let Some(x) = sample else {
            self.undefined += 1;
            return;
        };
        if self.defined == 0 {
            self.first = x;
        }
        self.differ |= x != self.first;
        self.defined += 1;
        self.sum += x;
    }

    fn add_square(&mut self, sample: Option<f64>) {
        if let Some(x) = sample {
            let off = x - self.mean();
            self.squares += off * off;
        }
    }

    fn mean(&self) -> f64 {
        // Equal values have that mean and no width, whatever rounding would leave of them.
        match self.differ {
            false => self.first,
            true => self.sum / self.defined as f64,
        }
    }

    /// Of this many samples; those that were not added are undefined.
    fn estimate(&self, samples: u64) -> Estimate {
        let undefined = samples - self.defined;
        if self.defined == 0 || undefined > 0 {
            return Estimate {
                undefined: if self.defined == 0 {
                    0
                } else {
                    undefined as u32
                },
                ..Estimate::default()
            };
        }
        let (n, mean) = (self.defined as f64, self.mean());
        let ci95 = (self.defined >= 2).then(|| {
            let half = student_t(n - 1.0) * (self.squares / (n - 1.0) / n).sqrt();
            [mean - half, mean + half]
        });
        Estimate {
            mean: Some(mean),
            ci95,
            undefined: 0,
        }
    }
}

/// Sums of every name that any of the rows of a flow, of traffic, of a link or of a case has. Rows
/// are seen twice, in the same order.
#[derive(Default)]
pub(super) struct RowSums {
    rows: u64,
    sums: Vec<(String, Sums)>,
    /// Where the names of a list are among the sums.
    lists: Vec<(Names, Vec<usize>)>,
}

impl RowSums {
    pub(super) fn add(&mut self, row: &Values) {
        self.rows += 1;
        let list = self.list(row.names());
        for (&place, (_, value)) in self.lists[list].1.iter().zip(row.iter()) {
            self.sums[place].1.add(value);
        }
    }

    pub(super) fn add_squares(&mut self, row: &Values) {
        let list = self.list(row.names());
        for (&place, (_, value)) in self.lists[list].1.iter().zip(row.iter()) {
            self.sums[place].1.add_square(value);
        }
    }

    fn list(&mut self, names: &Names) -> usize {
        if let Some(known) = self.lists.iter().position(|(n, _)| n == names) {
            return known;
        }
        let mut place = |name: &str| {
            let known = self.sums.iter().position(|(n, _)| n == name);
            known.unwrap_or_else(|| {
                self.sums.push((name.to_owned(), Sums::default()));
                self.sums.len() - 1
            })
        };
        let places = names.iter().map(&mut place).collect();
        self.lists.push((names.clone(), places));
        self.lists.len() - 1
    }

    /// True if every row had the same values.
    pub(super) fn repeat(&self) -> bool {
        let same = |sums: &Sums| !sums.differ && [0, self.rows].contains(&sums.defined);
        self.sums.iter().all(|(_, sums)| same(sums))
    }

    /// Means and intervals.
    pub(super) fn estimates(self) -> Estimates {
        // What a run leaves out (a gain without a partner) says nothing; what a controller does not
        // report is undefined.
        let samples = |name: &str, sums: &Sums| match metrics::is_variable(name) {
            true => self.rows,
            false => sums.defined + sums.undefined,
        };
        let all = self.sums.into_iter();
        all.map(|(name, sums)| {
            let estimate = sums.estimate(samples(&name, &sums));
            (name, estimate)
        })
        .collect()
    }
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

/// Two-sided probability of this value of Student's t or one further out.
pub(crate) fn student_p(t: f64, degrees: f64) -> f64 {
    let law = StudentsT::new(0.0, 1.0, degrees).expect("degrees of freedom are positive");
    2.0 * law.cdf(-t.abs())
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

    /// Whatever lies at the end of a 95 % interval has a probability of 5 %.
    #[test]
    fn probabilities_are_those_of_the_quantiles() {
        for n in [1.0, 2.0, 9.0, 29.0] {
            assert!((student_p(student_t(n), n) - 0.05).abs() < 1e-8, "{n}");
            assert!((student_p(-student_t(n), n) - 0.05).abs() < 1e-8, "{n}");
            assert!((student_p(0.0, n) - 1.0).abs() < 1e-12, "{n}");
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
