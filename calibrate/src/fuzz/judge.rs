//! Do two grounds agree about a scenario, as far as chance lets one see?
//!
//! Chance is what other random numbers, a start elsewhere in a tick and a round trip some
//! microseconds longer move on either ground ([`perturbed`](super::run::perturbed)). Both
//! grounds are given such runs, the simulator many and the kernel few. If they agree, all runs are
//! draws from one law, and the difference of their means has Student's distribution with the pooled
//! variance: what exceeds its quantile, and the bound of the class, is a disagreement.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::draw::Class;
use super::run::Seen;

/// A number of both grounds that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Goodput of a flow; of several flows, of all together.
    Goodput,
    /// Of several flows: goodput of one as a part of all.
    Share,
    /// Time of a finite transfer.
    Completion,
    /// Mean RTT of a flow.
    Rtt,
    /// Retransmissions of a flow.
    Retransmits,
    /// Reductions of a flow.
    Events,
    /// Timeouts of a flow.
    Timeouts,
}

impl Metric {
    /// Counts show why two grounds differ; they do not decide whether they do.
    pub fn decides(self) -> bool {
        !matches!(self, Self::Retransmits | Self::Events | Self::Timeouts)
    }

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Share => "share",
            Self::Completion => "completion",
            Self::Rtt => "rtt",
            Self::Retransmits => "retransmits",
            Self::Events => "events",
            Self::Timeouts => "timeouts",
        }
    }

    /// Largest deviation that counts as agreement, a part of Linux's value.
    fn bound(self, class: Class) -> f64 {
        match (self, class) {
            // What the calibration cells allow a single flow.
            (Self::Goodput, Class::DropTail) => 0.02,
            (Self::Rtt, Class::DropTail) => 0.04,
            (Self::Goodput | Self::Share | Self::Completion | Self::Rtt, _) => 0.05,
            (Self::Retransmits | Self::Events | Self::Timeouts, _) => 0.15,
        }
    }

    /// Smallest scale of its deviations: counts may be two apart, whatever they are.
    fn floor(self) -> f64 {
        if self.decides() { 1e-9 } else { 2.0 / 0.15 }
    }
}

/// What comes of a comparison, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the bound.
    Agrees,
    /// Beyond it, but no further than chance goes.
    Chance,
    /// Beyond both.
    Disagrees,
}

impl Verdict {
    /// The words of tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Chance => "within chance",
            Self::Disagrees => "disagrees",
        }
    }
}

/// One metric of both grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The number that differs.
    pub metric: Metric,
    /// Whose: a place among the flows; of all of them together, 0.
    pub flow: usize,
    /// Mean in Linux.
    pub linux: f64,
    /// Mean in the simulator.
    pub sim: f64,
    /// (simulator - Linux) / Linux; of a share, their plain difference.
    pub size: f64,
    /// What chance allows, on the scale of [`Self::size`]; infinite with one run on each side.
    #[serde(with = "finite")]
    pub chance: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// Infinity is `null` in JSON.
mod finite {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_some(&x.is_finite().then_some(*x))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(d: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
    }
}

/// Probability that chance alone exceeds what is granted to it, of all metrics that decide about a
/// scenario together.
const RISK: f64 = 0.01;

/// Compares the runs of both grounds, metric by metric.
pub fn judge(class: Class, linux: &[Seen], sim: &[Seen]) -> Vec<Difference> {
    let Some(first) = linux.first() else {
        return Vec::new();
    };
    let quantities = quantities(first);
    let deciding = quantities.iter().filter(|(m, _)| m.decides()).count();
    let risk = RISK / deciding.max(1) as f64;
    let compare = |(metric, flow): (Metric, usize)| {
        let values =
            |runs: &[Seen]| -> Vec<f64> { runs.iter().map(|r| value(r, metric, flow)).collect() };
        compare(metric, flow, class, &values(linux), &values(sim), risk)
    };
    quantities.into_iter().map(compare).collect()
}

/// The worst of the metrics that decide.
pub fn verdict(differences: &[Difference]) -> Verdict {
    let deciding = differences.iter().filter(|d| d.metric.decides());
    deciding.map(|d| d.verdict).max().unwrap_or(Verdict::Agrees)
}

/// The largest disagreement, in bounds of its metric.
pub fn worst(class: Class, differences: &[Difference]) -> Option<&Difference> {
    let weight = |d: &Difference| d.size.abs() / d.metric.bound(class);
    let wrong = |d: &&Difference| d.metric.decides() && d.verdict == Verdict::Disagrees;
    let wrong = differences.iter().filter(wrong);
    wrong.max_by(|a, b| weight(a).total_cmp(&weight(b)))
}

/// What is compared of such a run.
fn quantities(seen: &Seen) -> Vec<(Metric, usize)> {
    let mut all = Vec::new();
    let several = seen.flows.len() > 1;
    if several {
        all.push((Metric::Goodput, 0));
    }
    for (i, f) in seen.flows.iter().enumerate() {
        all.push(match (f.completion, several) {
            (Some(_), _) => (Metric::Completion, i),
            (None, true) => (Metric::Share, i),
            (None, false) => (Metric::Goodput, i),
        });
        all.push((Metric::Rtt, i));
        all.push((Metric::Retransmits, i));
        all.push((Metric::Events, i));
        all.push((Metric::Timeouts, i));
    }
    all
}

fn value(seen: &Seen, metric: Metric, flow: usize) -> f64 {
    let all = || seen.flows.iter().map(|f| f.goodput).sum::<f64>();
    let Some(f) = seen.flows.get(flow) else {
        return 0.0;
    };
    match metric {
        Metric::Goodput => all(),
        Metric::Share => f.goodput / all().max(1e-9),
        Metric::Completion => f.completion.unwrap_or(0.0),
        Metric::Rtt => f.rtt,
        Metric::Retransmits => f.retransmits as f64,
        Metric::Events => f64::from(f.events),
        Metric::Timeouts => f64::from(f.timeouts),
    }
}

fn compare(
    metric: Metric,
    flow: usize,
    class: Class,
    linux: &[f64],
    sim: &[f64],
    risk: f64,
) -> Difference {
    let (a, b) = (mean(linux), mean(sim));
    let scale = match metric {
        Metric::Share => 1.0,
        _ => a.abs().max(metric.floor()),
    };
    let size = (b - a) / scale;
    let chance = allowance(linux, sim, risk) / scale;
    let bound = metric.bound(class);
    // The run of the scenario as it stands, or the means.
    let first = sim.first().zip(linux.first());
    let first = first.map_or(0.0, |(s, l)| (s - l).abs() / scale);
    let verdict = if size.abs() <= bound || first <= bound {
        Verdict::Agrees
    } else if size.abs() <= chance {
        Verdict::Chance
    } else {
        Verdict::Disagrees
    };
    Difference {
        metric,
        flow,
        linux: a,
        sim: b,
        size,
        chance,
        verdict,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How far two means of one law are apart at most, but for `risk`: Student's t with the pooled
/// variance.
fn allowance(a: &[f64], b: &[f64], risk: f64) -> f64 {
    let squares = |v: &[f64]| {
        let m = mean(v);
        v.iter().map(|x| (x - m).powi(2)).sum::<f64>()
    };
    let freedom = (a.len() + b.len()) as f64 - 2.0;
    if freedom < 1.0 {
        return f64::INFINITY;
    }
    let Ok(law) = StudentsT::new(0.0, 1.0, freedom) else {
        return f64::INFINITY;
    };
    let variance = (squares(a) + squares(b)) / freedom;
    let part = 1.0 / a.len() as f64 + 1.0 / b.len() as f64;
    law.inverse_cdf(1.0 - risk / 2.0) * (variance * part).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::run::FlowSeen;
    use super::*;

    fn seen(goodput: f64) -> Seen {
        let flow = FlowSeen {
            goodput,
            rtt: 40.0,
            rtt_min: 40.0,
            completion: None,
            sent: 1000,
            retransmits: 10,
            dropped: 10,
            duplicates: 0,
            events: 5,
            timeouts: 0,
            undone: 0,
            cwnd: 30.0,
            cwnd_max: 60.0,
        };
        Seen { flows: vec![flow] }
    }

    fn of(linux: &[f64], sim: &[f64], class: Class) -> Difference {
        let runs = |v: &[f64]| v.iter().map(|g| seen(*g)).collect::<Vec<_>>();
        let differences = judge(class, &runs(linux), &runs(sim));
        assert_eq!(differences[0].metric, Metric::Goodput);
        differences[0].clone()
    }

    #[test]
    fn a_difference_within_the_bound_agrees() {
        let d = of(&[10.0], &[10.19], Class::DropTail);
        assert_eq!(d.verdict, Verdict::Agrees);
        assert_eq!(of(&[10.0], &[10.4], Class::Aqm).verdict, Verdict::Agrees);
    }

    #[test]
    fn what_repeats_beyond_the_bound_disagrees() {
        let d = of(&[10.0; 3], &[10.3; 16], Class::DropTail);
        assert_eq!(d.verdict, Verdict::Disagrees);
        assert!((d.size - 0.03).abs() < 1e-9, "{d:?}");
    }

    #[test]
    fn what_seeds_move_is_chance() {
        let spread: Vec<f64> = (0..16).map(|i| 8.0 + f64::from(i) * 0.3).collect();
        let d = of(&[9.0, 9.6, 9.3], &spread, Class::DropTail);
        assert_eq!(d.verdict, Verdict::Chance, "{d:?}");
        // The same spread does not excuse any distance.
        let d = of(&[4.0, 4.6, 4.3], &spread, Class::DropTail);
        assert_eq!(d.verdict, Verdict::Disagrees, "{d:?}");
    }

    #[test]
    fn the_allowance_is_students() {
        // Pooled variance 1 (sums of squares 2 and 4, 6 degrees of freedom), t(0.995, 6) = 3.7074
        // (any table), times sqrt(1/3 + 1/5).
        let (a, b) = ([0.0, 1.0, 2.0], [-1.0, 0.0, 0.0, 1.0, 0.0]);
        let squares: f64 = 2.0 + 2.0;
        let wanted = 3.7074 * (squares / 6.0 * (1.0 / 3.0 + 1.0 / 5.0_f64)).sqrt();
        assert!((allowance(&a, &b, 0.01) - wanted).abs() < 1e-3);
    }

    #[test]
    fn counts_may_be_two_apart_and_do_not_decide() {
        let (mut a, mut b) = (seen(10.0), seen(10.0));
        a.flows[0].timeouts = 1;
        b.flows[0].timeouts = 3;
        b.flows[0].retransmits = 300;
        let differences = judge(Class::DropTail, &vec![a; 3], &vec![b; 16]);
        let of = |m| differences.iter().find(|d| d.metric == m).unwrap().verdict;
        assert_eq!(of(Metric::Timeouts), Verdict::Agrees);
        assert_eq!(of(Metric::Retransmits), Verdict::Disagrees);
        assert_eq!(verdict(&differences), Verdict::Agrees);
    }
}
