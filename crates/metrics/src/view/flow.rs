//! One flow of a run: all its streams together.

use std::borrow::Cow;

use fullpipe_flow::{Episode, Limit, LimitTimes};
use fullpipe_run::Histogram;
use fullpipe_run::{FlowOutcome, Outcome};
use fullpipe_units::{Span, Time};

use super::CaseView;
use crate::FlowGroup;
use crate::number::{mean, ratio};
use crate::window_recovery::first_event;

/// One flow: what its metrics are computed of.
pub struct FlowView<'a> {
    /// The case it belongs to.
    pub case: &'a CaseView<'a>,
    /// Its place among the flows of the case.
    pub index: usize,
    /// The flow as the scenario declares it: name, stack, streams, window cap.
    pub group: &'a FlowGroup,
    /// The outcomes of its streams.
    pub members: &'a [FlowOutcome],
    /// RTT samples of all streams.
    pub rtt: Cow<'a, Histogram>,
    /// The streams that had a congestion event, with the first.
    hit: Vec<(&'a FlowOutcome, Episode)>,
}

impl<'a> FlowView<'a> {
    /// The flow at this place of the case.
    pub fn new(case: &'a CaseView<'a>, index: usize) -> FlowView<'a> {
        let group = &case.groups[index];
        let members = &case.outcome.flows[group.members.clone()];
        FlowView {
            case,
            index,
            group,
            members,
            rtt: pooled(members),
            hit: members
                .iter()
                .filter_map(|m| Some((m, first_event(m)?)))
                .collect(),
        }
    }

    /// Sum over the streams.
    pub fn sum(&self, of: fn(&FlowOutcome) -> f64) -> f64 {
        self.members.iter().map(of).sum()
    }

    /// Part of the time of all streams in which this held them back.
    pub fn limited(&self, limit: Limit) -> Option<f64> {
        let times = self.members.iter().map(|m| m.totals.limited);
        let times = times.fold(LimitTimes::default(), LimitTimes::plus);
        (times.total() > Span::ZERO).then(|| times.of(limit).ratio(times.total()))
    }

    /// Segments sent, retransmissions included.
    pub fn sent(&self) -> f64 {
        self.sum(|m| m.totals.sent as f64)
    }

    /// Segments sent again.
    pub fn retransmits(&self) -> f64 {
        self.sum(|m| m.totals.retransmits as f64)
    }

    /// Seconds from the start of the first stream.
    pub fn since_start(&self, at: Time) -> f64 {
        at.saturating_since(started(self.members)).as_secs_f64()
    }

    /// From the beginning of the measured part until all is delivered.
    pub fn seconds(&self) -> f64 {
        measured_seconds(self.group, self.members, self.case.outcome)
    }

    /// Goodput samples of the measured part, Mbit/s.
    pub fn samples(&self) -> Vec<f64> {
        let outcome = self.case.outcome;
        let (from, to) = measured_part(self.group, self.members, outcome);
        samples(self.members, outcome, from, to).1
    }

    /// The largest of a value that every stream must have.
    pub fn latest(&self, of: impl Fn(&FlowOutcome) -> Option<f64>) -> Option<f64> {
        let all = self.members.iter().map(of).collect::<Option<Vec<f64>>>()?;
        all.into_iter().reduce(f64::max)
    }

    /// The largest of a value that every stream with a congestion event must have. Streams without
    /// one say nothing about what follows it.
    pub fn longest(&self, of: impl Fn(&FlowOutcome, &Episode) -> Option<f64>) -> Option<f64> {
        let all = self.hit.iter().map(|(m, event)| of(m, event));
        let all = all.collect::<Option<Vec<f64>>>()?;
        all.into_iter().reduce(f64::max)
    }

    /// Mean over the streams with a congestion event that have the value.
    pub fn average(&self, of: impl Fn(&FlowOutcome, &Episode) -> Option<f64>) -> Option<f64> {
        let all = self.hit.iter().filter_map(|(m, event)| of(m, event));
        mean(&all.collect::<Vec<f64>>())
    }

    /// The earliest of some events, one of each stream, and its stream.
    pub fn earliest(
        &self,
        of: fn(&FlowOutcome) -> Option<Episode>,
    ) -> Option<(&'a FlowOutcome, Episode)> {
        let all = self.members.iter().filter_map(|m| Some((m, of(m)?)));
        all.min_by_key(|(_, event)| event.at)
    }
}

/// Payload that reached the receiver for the first time, Mbit/s over the measured part.
pub fn goodput(group: &FlowGroup, members: &[FlowOutcome], outcome: &Outcome) -> Option<f64> {
    let mbit = |m: &FlowOutcome| 8e-6 * f64::from(m.mss) * m.totals.delivered_measured as f64;
    let seconds = measured_seconds(group, members, outcome);
    ratio(members.iter().map(mbit).sum(), seconds)
}

fn measured_seconds(group: &FlowGroup, members: &[FlowOutcome], outcome: &Outcome) -> f64 {
    let (from, _) = measured_part(group, members, outcome);
    let until = delivered_until(group, members, outcome);
    until.saturating_since(from).as_secs_f64()
}

/// Beginning and end of the part of the run in which the group is measured.
pub fn measured_part(
    group: &FlowGroup,
    members: &[FlowOutcome],
    outcome: &Outcome,
) -> (Time, Time) {
    let started = started(members);
    let to = delivered_until(group, members, outcome);
    let to = to.min(group.stop.unwrap_or(to));
    (started.max(outcome.measure_from), to)
}

fn started(members: &[FlowOutcome]) -> Time {
    let starts = members.iter().map(|f| f.started);
    starts.min().unwrap_or(Time::ZERO)
}

/// Completion of the last member, or the end of the run. What a flow had sent before its stop
/// arrives after it, from a long queue much later: a rate counts it, so its time counts too.
/// Nothing comes of a member that has sent nothing by then.
fn delivered_until(group: &FlowGroup, members: &[FlowOutcome], outcome: &Outcome) -> Time {
    let end = Time::ZERO + outcome.duration;
    let over = |f: &FlowOutcome| f.completed.or(group.stop.filter(|_| f.totals.sent == 0));
    let completed = members.iter().map(over).collect::<Option<Vec<Time>>>();
    let completed = completed.and_then(|all| all.into_iter().max());
    end.min(completed.unwrap_or(end))
}

/// Goodput samples, Mbit/s, of the whole intervals between two times, all members together, and the
/// index of the first.
pub fn samples(
    members: &[FlowOutcome],
    outcome: &Outcome,
    from: Time,
    to: Time,
) -> (u64, Vec<f64>) {
    let width = outcome.interval.as_nanos().max(1);
    let first = from.as_nanos().div_ceil(width);
    let end = to.as_nanos() / width;
    let mbit = |i: u64| {
        let of = |f: &FlowOutcome| {
            let segments = f
                .delivered_per_interval
                .get(i as usize)
                .copied()
                .unwrap_or(0);
            8e-6 * f64::from(f.mss) * segments as f64
        };
        members.iter().map(of).sum::<f64>() / outcome.interval.as_secs_f64()
    };
    (first, (first..end).map(mbit).collect())
}

/// Population standard deviation over mean; `None` below two samples or without anything delivered.
pub fn stability(samples: &[f64]) -> Option<f64> {
    let m = mean(samples).filter(|_| samples.len() >= 2)?;
    let squares: f64 = samples.iter().map(|x| (x - m) * (x - m)).sum();
    ratio((squares / samples.len() as f64).sqrt(), m)
}

pub fn inflation(mean_rtt_s: f64, base_s: f64) -> Option<f64> {
    ratio(mean_rtt_s - base_s, base_s)
}

/// RTT samples of all members.
fn pooled(members: &[FlowOutcome]) -> Cow<'_, Histogram> {
    if let [one] = members {
        return Cow::Borrowed(&one.rtt);
    }
    let mut all = Histogram::default();
    members.iter().for_each(|f| all.merge(&f.rtt));
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, outcome};

    #[test]
    fn samples_are_whole_intervals_of_the_measured_part() {
        let mut f = flow("a");
        f.mss = 125_000; // 1 Mbit
        f.delivered_per_interval = vec![9, 1, 2, 3, 4, 99];
        let o = outcome(vec![f], 11, 1, 2);
        // Warm-up 1 s: the interval 0-2 s is cut, 10-11 s is not whole.
        let (first, s) = samples(&o.flows, &o, o.measure_from, Time::ZERO + o.duration);
        assert_eq!((first, s), (1, vec![0.5, 1.0, 1.5, 2.0]));
    }

    #[test]
    fn stability_of_the_ideal_sawtooth() {
        // Uniform between 1 - b and 1: deviation b / sqrt(12), mean 1 - b/2.
        for (b, expected) in [(0.5, 0.192450), (0.3, 0.101885), (0.125, 0.038490)] {
            let n = 100_000;
            let s: Vec<f64> = (0..n)
                .map(|i| 1.0 - b + b * (f64::from(i) + 0.5) / f64::from(n))
                .collect();
            let got = stability(&s).unwrap();
            assert!((got - expected).abs() < 1e-6, "{b}: {got}");
        }
        assert_eq!(stability(&[3.0]), None);
        assert_eq!(stability(&[0.0, 0.0]), None);
        assert_eq!(stability(&[2.0, 2.0]), Some(0.0));
        // Population, not sample deviation: std of (1, 3) is 1.
        assert_eq!(stability(&[1.0, 3.0]), Some(0.5));
    }

    #[test]
    fn pooled_quantiles_of_one_member_are_its_own() {
        let mut f = flow("a");
        for i in 0..5000u64 {
            f.rtt
                .record(Span::from_micros(80_000 + (i * 7919) % 40_000));
        }
        let pair = [f.clone(), flow("b")];
        let rtt = pooled(&pair);
        for q in [0.001, 0.05, 0.5, 0.95, 0.99, 1.0] {
            assert_eq!(rtt.quantile(q), f.rtt.quantile(q), "{q}");
        }
        assert_eq!(rtt.count(), 5000);
    }
}
