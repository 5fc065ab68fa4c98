//! A number of two results, side by side.

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::Spread;
use crate::result::Params;

/// Probability up to which chance is not believed.
pub(super) const FALSE: f64 = 0.05;

/// How two numbers come apart by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Chance {
    /// Student's t.
    Spread(Spread),
    /// One is defined and the other is not: Fisher's exact test.
    Undefined(f64),
}

/// One metric of one case.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Parameters of the case.
    pub params: Params,
    /// Flow or traffic it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Metric.
    pub metric: String,
    /// Unit of the metric; `1` for a ratio.
    pub unit: &'static str,
    /// First value.
    pub a: Number,
    /// Second value.
    pub b: Number,
    /// `b - a`, in pairs the mean of the pairs' differences; `null` if either is undefined.
    pub difference: Option<f64>,
    /// 95 % interval of the difference; with two seeds or more on a side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ci95: Option<[f64; 2]>,
    /// Probability that chance sets two samples of the same apart as far or further (two-sided).
    /// Where the spread of the same metric elsewhere in the comparison would explain the difference
    /// it is no less than the part of the rows there in which it would, times the probability that
    /// as many seeds of two values fall apart cleanly: a small spread may be chance. Absent where
    /// nothing is left to chance, of what is not judged, and of two grounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same among all numbers that are judged (Benjamini and Hochberg 1995): above 0.05 the
    /// difference is not real. Absent of what is judged alone, or in all runs the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// What `p` is made of, where chance has a say.
    #[serde(skip)]
    pub(crate) chance: Option<Chance>,
    /// Samples that the interval is made from, and how.
    pub method: Method,
    /// Pairs, if it is paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Size of the difference against the spread of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// `difference / |a|`; `null` if undefined or `a` is zero.
    pub relative: Option<f64>,
    /// Largest accepted relative difference.
    pub threshold: f64,
    /// Judgement.
    pub verdict: Verdict,
    /// False if it is told, but the result is not judged by it.
    pub judged: bool,
}

impl Row {
    /// A number on one side, and on the other none, or not in all seeds.
    pub fn is_undefined_on_one_side(&self) -> bool {
        self.a.mean.is_some() != self.b.mean.is_some()
    }

    /// Beyond its threshold if it were judged alone, which among so many numbers chance does.
    pub fn is_lost_among_many(&self) -> bool {
        let real = |p: Option<f64>| p.is_some_and(|p| p <= FALSE);
        let small = self.relative.is_some_and(|r| r.abs() <= self.threshold);
        self.p_adjusted.is_some() && real(self.p) && !real(self.p_adjusted) && !small
    }
}

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// Mean over seeds; `null` if undefined.
    pub mean: Option<f64>,
    /// 95 % interval; with two seeds or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Seeds.
    pub seeds: usize,
}

/// How the interval of a difference is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Student's interval of the mean difference of runs with the same seed.
    Paired,
    /// Welch's interval of the difference of two means.
    Welch,
    /// A single seed on one side, against the interval in which another run of the other side would
    /// lie (Student's prediction interval).
    Prediction,
    /// No interval: a single seed on both sides, or nothing defined.
    Single,
}

/// Standardised size of a difference (Cohen 1988, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// `d_z`: mean difference of the pairs / their standard deviation; `d`: difference of the means
    /// / pooled standard deviation.
    pub measure: &'static str,
    /// Standard deviations.
    pub value: f64,
}

/// Judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Equal, but for rounding: to 1e-9 of the values.
    Same,
    /// Different, but the interval holds zero, or would not among so many numbers: the seeds there
    /// are do not tell the two apart. Or undefined in more of the seeds on one side than on the
    /// other, which chance may do.
    Indistinguishable,
    /// A difference (a real one, if there is an interval) within the threshold.
    Within,
    /// A difference (a real one, if there is an interval) beyond the threshold, from or to zero, or
    /// between a number and none, in all seeds or in more than chance explains (Fisher's exact
    /// test, 5 %).
    Beyond,
}

/// Something only one result has.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Missing {
    /// `a` or `b`.
    pub missing_in: &'static str,
    /// Parameters of the case.
    pub params: Params,
    /// Flow, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// False if it is told, but the result is not judged by it: a link that only delays, and of
    /// two grounds every link, since a network that is measured shows none of its own.
    pub judged: bool,
}
