//! The newest run of a kind against those before it.

use fullpipe_metrics::{Better, METRICS, unit};
use schemars::JsonSchema;
use serde::Serialize;

use super::Record;
use crate::result::student_t;

/// A metric of the newest run of a kind, and what the runs before it let one expect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judged {
    /// Index of the kind.
    pub kind: usize,
    /// Flow or traffic; empty for a metric of the whole run.
    pub of: String,
    /// Metric.
    pub metric: String,
    /// Unit of the metric; `1` for a ratio, empty of an expression.
    pub unit: String,
    /// Number of earlier runs that have it.
    pub earlier: usize,
    /// Their mean; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Where one more run of the same kind is with a probability of 95 %, if runs are normally
    /// distributed: mean ± t s sqrt(1 + 1/n). Absent with fewer than [`FEWEST`] earlier ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<[f64; 2]>,
    /// Value of the newest run.
    pub newest: f64,
    /// Judgement.
    pub verdict: Verdict,
}

/// The newest run beside the 95 % range of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Too few earlier runs to tell.
    TooFew,
    /// Where it was expected, or within [`SMALL`] of the mean.
    AsBefore,
    /// Outside, to the good.
    Better,
    /// Outside, to the bad.
    Worse,
    /// Outside, of a metric that has neither.
    Different,
}

/// Earlier runs that it takes to expect anything.
pub const FEWEST: usize = 3;
/// Part of the mean that no difference has to exceed: where runs hardly vary, the interval is
/// narrower than anybody cares for.
pub const SMALL: f64 = 0.02;

/// The newest of `runs`, which are of one kind and in order.
pub(super) fn newest(kind: usize, runs: &[&Record], metrics: &[String]) -> Vec<Judged> {
    let Some((newest, earlier)) = runs.split_last() else {
        return Vec::new();
    };
    let mut judged = Vec::new();
    for metric in metrics {
        for (of, value) in newest.values(metric) {
            let samples = earlier.iter().filter_map(|run| {
                let values = run.values(metric);
                values.iter().find(|(name, _)| *name == of).map(|(_, x)| *x)
            });
            let samples: Vec<f64> = samples.collect();
            let expected = expected(&samples);
            let mean = mean(&samples);
            judged.push(Judged {
                kind,
                of: of.to_owned(),
                metric: metric.clone(),
                unit: unit(metric).to_owned(),
                earlier: samples.len(),
                mean,
                expected,
                newest: value,
                verdict: verdict(metric, value, mean, expected),
            });
        }
    }
    judged
}

fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// 95 % prediction interval for one more sample (Hahn and Meeker 1991, section 4.2).
fn expected(samples: &[f64]) -> Option<[f64; 2]> {
    let mean = mean(samples).filter(|_| samples.len() >= FEWEST)?;
    let n = samples.len() as f64;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    let half = student_t(n - 1.0) * deviation * (1.0 + 1.0 / n).sqrt();
    let low = mean - half;
    // What has never been negative will not be.
    let positive = samples.iter().all(|x| *x >= 0.0);
    Some([if positive { low.max(0.0) } else { low }, mean + half])
}

fn verdict(metric: &str, x: f64, mean: Option<f64>, expected: Option<[f64; 2]>) -> Verdict {
    let (Some(mean), Some([low, high])) = (mean, expected) else {
        return Verdict::TooFew;
    };
    if (low..=high).contains(&x) || (x - mean).abs() <= SMALL * mean.abs() {
        return Verdict::AsBefore;
    }
    match (better(metric), x > mean) {
        (Better::Neither, _) => Verdict::Different,
        (Better::Higher, true) | (Better::Lower, false) => Verdict::Better,
        _ => Verdict::Worse,
    }
}

fn better(metric: &str) -> Better {
    let found = METRICS.iter().find(|m| m.name == metric);
    found.map_or(Better::Neither, |m| m.better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_one_more_sample() {
        // n = 5, mean 10, s = sqrt(2.5), t(4) = 2.776: 10 ± 2.776 * 1.5811 * sqrt(1.2).
        let [low, high] = expected(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!(
            (low - 5.191).abs() < 1e-3 && (high - 14.809).abs() < 1e-3,
            "{low} {high}"
        );
        assert_eq!(expected(&[1.0, 2.0]), None);
        assert_eq!(expected(&[3.0; 3]), Some([3.0, 3.0]));
    }

    #[test]
    fn outside_is_better_or_worse_by_the_metric() {
        let earlier = [100.0, 101.0, 99.0, 100.0];
        let (mean, expected) = (mean(&earlier), expected(&earlier));
        let of = |metric, x| verdict(metric, x, mean, expected);
        assert_eq!(of("goodput_mbps", 80.0), Verdict::Worse);
        assert_eq!(of("goodput_mbps", 120.0), Verdict::Better);
        assert_eq!(of("rtt_ms.p95", 120.0), Verdict::Worse);
        assert_eq!(of("rtt_ms.p95", 80.0), Verdict::Better);
        assert_eq!(of("goodput_mbps", 101.5), Verdict::AsBefore);
        // Runs that never vary: two per cent are nothing, three are.
        let same = |x| verdict("goodput_mbps", x, Some(100.0), Some([100.0, 100.0]));
        assert_eq!(
            (same(98.5), same(97.0)),
            (Verdict::AsBefore, Verdict::Worse)
        );
        assert_eq!(verdict("goodput_mbps", 1.0, None, None), Verdict::TooFew);
    }
}
