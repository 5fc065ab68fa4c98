//! What a switch makes of the numbers and distances in which two grounds part.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Serialize;

use crate::agreement::Distance;
use crate::compare::{Comparison, Row, Verdict};
use crate::result::Params;

/// A known cause, switched.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tried {
    /// As `fullpipe agree` prints it: `offload`, `hystart`.
    pub cause: String,
    /// The switch in a sentence.
    pub about: String,
    /// On which ground; `both` where it is switched on the two.
    pub ground: String,
    /// Numbers and distances beyond their thresholds before.
    pub before: usize,
    /// And with the switch turned; `None`: the ground could not run it.
    pub after: Option<usize>,
    /// The furthest of those that are beyond, before; `null`: only numbers that have to be equal
    /// are.
    pub furthest_before: Option<Furthest>,
    /// And with the switch turned.
    pub furthest_after: Option<Furthest>,
    /// The ground's refusal, where `after` is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Whether the cause explains the distance.
    pub verdict: CauseVerdict,
    /// The same case by case; those are missing of which a switched run was flagged.
    pub cases: Vec<TriedCase>,
}

/// What is beyond its threshold by the largest multiple. Numbers that have to be equal, whose
/// threshold is zero, have none.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Furthest {
    /// Relative difference or distance as a multiple of its threshold; `null`: a number stands
    /// against none.
    pub times: Option<f64>,
    /// Metric or measure.
    pub metric: String,
    /// Flow, class of short flows or link.
    pub of: Option<String>,
    /// The case.
    pub params: Params,
}

impl Furthest {
    /// `goodput_mbps of main, path.rtt = 20ms`.
    pub fn place(&self) -> String {
        let of = self.of.iter().map(|of| format!(" of {of}"));
        let params = Some(self.params.to_string()).filter(|text| !text.is_empty());
        let params = params.iter().map(|text| format!(", {text}"));
        std::iter::once(self.metric.clone())
            .chain(of)
            .chain(params)
            .collect()
    }

    /// `2.7x`: so many times as large as its threshold; `-` where there is no such number.
    pub fn text(furthest: Option<&Furthest>) -> String {
        let times = furthest.and_then(|f| f.times);
        times.map_or("-".to_owned(), |times| format!("{times:.1}x"))
    }

    fn multiple(furthest: Option<&Furthest>) -> f64 {
        furthest.map_or(0.0, |f| f.times.unwrap_or(f64::INFINITY))
    }
}

/// A known cause, switched in one case that parts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriedCase {
    /// The case.
    pub params: Params,
    /// Numbers and distances beyond their thresholds before.
    pub before: usize,
    /// And with the switch turned.
    pub after: usize,
    /// What that says of the cause in this case.
    pub verdict: CauseVerdict,
}

/// Multiples of a threshold that differ by less are as far, ours.
const AS_FAR: f64 = 1.1;

impl CauseVerdict {
    /// Of how many are beyond their thresholds, before and after, and the furthest of them.
    pub(super) fn of(count: [usize; 2], furthest: [Option<&Furthest>; 2]) -> Self {
        let [before, after] = furthest.map(Furthest::multiple);
        let far = if after > before * AS_FAR {
            Ordering::Greater
        } else if after < before / AS_FAR {
            Ordering::Less
        } else {
            Ordering::Equal
        };
        match (count[1].cmp(&count[0]), far) {
            _ if count[1] == 0 => Self::Explains,
            (Ordering::Less, Ordering::Less | Ordering::Equal)
            | (Ordering::Equal, Ordering::Less) => Self::InPart,
            (Ordering::Greater, Ordering::Greater | Ordering::Equal)
            | (Ordering::Equal, Ordering::Greater) => Self::Worse,
            _ => Self::No,
        }
    }
}

/// What a switch says of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseVerdict {
    /// Nothing is beyond its threshold any more.
    Explains,
    /// Fewer numbers are, or the furthest is less far; neither has grown.
    InPart,
    /// As many are as far, or one of the two has grown and the other shrunk.
    No,
    /// More numbers are, or the furthest is further; neither has shrunk.
    Worse,
    /// It could not be switched here.
    Untried,
}

/// What was beyond its threshold before a switch, and is as far apart after it, is beyond it still:
/// seeds that differ more hide a distance and do not explain it.
pub(super) fn unhide(before: &Comparison, after: &mut Comparison) {
    let as_far = |was: f64, is: f64| is.abs() >= was.abs() / AS_FAR;
    let beyond = |verdict| verdict == Verdict::Beyond;
    for row in &mut after.rows {
        let same = |r: &&Row| {
            (&r.params, &r.flow, &r.link, &r.metric)
                == (&row.params, &row.flow, &row.link, &row.metric)
        };
        let was = before.rows.iter().find(same).filter(|r| beyond(r.verdict));
        let far = was.and_then(|was| was.difference.zip(row.difference));
        if row.verdict == Verdict::Indistinguishable && far.is_some_and(|(a, b)| as_far(a, b)) {
            row.verdict = Verdict::Beyond;
        }
    }
    for distance in &mut after.distances {
        let same = |d: &&Distance| {
            (&d.params, &d.flow, d.measure) == (&distance.params, &distance.flow, distance.measure)
        };
        let was = before
            .distances
            .iter()
            .find(same)
            .filter(|d| beyond(d.verdict));
        let far = was.is_some_and(|was| as_far(was.mean, distance.mean));
        if distance.verdict == Verdict::Indistinguishable && far {
            distance.verdict = Verdict::Beyond;
        }
    }
}

/// Cases in which something is beyond its threshold.
pub(super) fn apart(comparison: &Comparison) -> Vec<Params> {
    let mut cases: Vec<Params> = Vec::new();
    for params in all_beyond(comparison) {
        if !cases.contains(params) {
            cases.push(params.clone());
        }
    }
    cases
}

/// What is judged and beyond its threshold in these cases.
pub(super) fn beyond(comparison: &Comparison, cases: &[Params]) -> usize {
    all_beyond(comparison).filter(|p| cases.contains(p)).count()
}

/// The furthest of what is judged and beyond its threshold in these cases.
pub(super) fn furthest(comparison: &Comparison, cases: &[Params]) -> Option<Furthest> {
    let rows = comparison.rows.iter();
    let beyond = rows.filter(|r| r.judged && r.verdict == Verdict::Beyond && r.threshold > 0.0);
    let rows = beyond.map(|r| Furthest {
        times: r.relative.map(|relative| relative.abs() / r.threshold),
        metric: r.metric.clone(),
        of: r.flow.clone().or_else(|| r.link.clone()),
        params: r.params.clone(),
    });
    let distances = comparison.distances.iter();
    let beyond = distances.filter(|d| d.verdict == Verdict::Beyond && d.threshold > 0.0);
    let distances = beyond.map(|d| Furthest {
        times: Some(d.mean / d.threshold),
        metric: d.measure.to_owned(),
        of: Some(d.flow.clone()),
        params: d.params.clone(),
    });
    let all = rows.chain(distances).filter(|f| cases.contains(&f.params));
    let multiple = |f: &Furthest| Furthest::multiple(Some(f));
    all.max_by(|a, b| multiple(a).total_cmp(&multiple(b)))
}

fn all_beyond(comparison: &Comparison) -> impl Iterator<Item = &Params> {
    let rows = comparison.rows.iter();
    let rows = rows.filter(|r| r.judged && r.verdict == Verdict::Beyond);
    let distances = comparison.distances.iter();
    let distances = distances.filter(|d| d.verdict == Verdict::Beyond);
    rows.map(|r| &r.params).chain(distances.map(|d| &d.params))
}
