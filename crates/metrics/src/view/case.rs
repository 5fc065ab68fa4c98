//! One run as a whole.

use fullpipe_run::{FlowOutcome, Outcome, RunSpec};
use fullpipe_units::Span;

use super::flow::{goodput, measured_part};
use super::path::added_s;
use crate::FlowGroup;
use crate::number::ratio;

/// A run of a case: what the metrics of the case are computed of.
pub struct CaseView<'a> {
    /// The flows of the scenario; their members index the flows of the outcome.
    pub groups: &'a [FlowGroup],
    /// Counters, samples and series of the run.
    pub outcome: &'a Outcome,
    /// Goodput of every flow, Mbit/s; undefined for one that is over before the measured part.
    pub goodput: Vec<Option<f64>>,
    run: &'a RunSpec,
}

impl<'a> CaseView<'a> {
    /// `run` is what was run.
    ///
    /// # Panics
    /// If a group's members are not in the outcome.
    pub fn new(groups: &'a [FlowGroup], run: &'a RunSpec, outcome: &'a Outcome) -> CaseView<'a> {
        let of = |g: &FlowGroup| goodput(g, &outcome.flows[g.members.clone()], outcome);
        CaseView {
            groups,
            outcome,
            goodput: groups.iter().map(of).collect(),
            run,
        }
    }

    /// Whether the path was the scenario's, with its rate and delays.
    pub fn path_is_known(&self) -> bool {
        !super::over_a_network(self.outcome)
    }

    /// Goodput of the flows that were there, Mbit/s.
    pub fn goodputs(&self) -> Vec<f64> {
        self.goodput.iter().copied().flatten().collect()
    }

    /// Round-trip propagation delay of a flow in the measured part, seconds: that of its streams,
    /// weighed by their samples.
    pub fn base_rtt_s(&self, group: &FlowGroup) -> f64 {
        let (mut sum, mut weights, mut plain) = (0.0, 0.0, 0.0);
        for (stream, added) in self.added(group) {
            let samples = stream.rtt.count() as f64;
            sum += added * samples;
            weights += samples;
            plain += added;
        }
        let added = match weights > 0.0 {
            true => sum / weights,
            false => plain / group.members.len() as f64,
        };
        group.base_rtt.as_secs_f64() + added
    }

    /// The longest of one stream among some flows.
    pub fn longest_base_rtt(&self, groups: &[FlowGroup]) -> Option<Span> {
        let of = |g: &FlowGroup| {
            let added = self
                .added(g)
                .map(|(_, added)| (added * 1e9).round() as i128);
            let ns = i128::from(g.base_rtt.as_nanos()) + added.max().unwrap_or(0);
            Span::from_nanos(ns.max(0) as u64)
        };
        groups.iter().map(of).max()
    }

    /// What chance and the schedule add to the base RTT of each stream in the measured part,
    /// seconds.
    fn added(&self, group: &FlowGroup) -> impl Iterator<Item = (&'a FlowOutcome, f64)> {
        let (run, outcome) = (self.run, self.outcome);
        let members = group.members.clone();
        let part = measured_part(group, &outcome.flows[members.clone()], outcome);
        members.map(move |i| {
            let ways = run.flows.get(i).map(|f| (&f.forward, &f.back));
            let added = ways.map_or(0.0, |(out, back)| {
                added_s(run, out.iter().chain(back), part)
            });
            (&outcome.flows[i], added)
        })
    }

    /// Payload delivered in the second half of the measured part against the first, of flows and
    /// short flows.
    pub fn second_half_against_first(&self) -> Option<f64> {
        let o = self.outcome;
        let width = o.interval.as_nanos().max(1);
        let begin = (o.measure_from.as_nanos().div_ceil(width)) as usize;
        let end = (o.duration.as_nanos() / width) as usize;
        let half = end.checked_sub(begin)? / 2;
        let flows = o.flows.iter().map(|f| (&f.delivered_per_interval, f.mss));
        let short = o
            .arrivals
            .iter()
            .map(|a| (&a.delivered_per_interval, a.mss));
        let [mut first, mut second] = [0.0; 2];
        for (counts, mss) in flows.chain(short) {
            let bytes = |part: std::ops::Range<usize>| {
                let counts = counts.iter().take(part.end).skip(part.start);
                f64::from(mss) * counts.sum::<u64>() as f64
            };
            first += bytes(begin..begin + half);
            second += bytes(end - half..end);
        }
        ratio(second, first)
    }

    /// The streams of all flows.
    pub fn streams(&self) -> impl Iterator<Item = &'a FlowOutcome> {
        let flows = &self.outcome.flows;
        let groups = self.groups.iter();
        groups.flat_map(|g| &flows[g.members.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{arrivals, flow, outcome};

    #[test]
    fn halves_of_the_measured_part() {
        let mut f = flow("a");
        f.delivered_per_interval = vec![99, 10, 10, 50, 15, 15];
        let mut o = outcome(vec![f], 6, 1, 1);
        let run = RunSpec::default();
        let ratio = |o: &Outcome| CaseView::new(&[], &run, o).second_half_against_first();
        assert_eq!(ratio(&o), Some(1.5), "the middle of five is left out");
        // Short flows are of it, and one that came late has fewer intervals.
        let mut mice = arrivals("mice");
        mice.delivered_per_interval = vec![0, 10, 10];
        o.arrivals = vec![mice];
        assert_eq!(ratio(&o), Some(0.75));
        o.flows.clear();
        o.arrivals.clear();
        assert_eq!(ratio(&o), None);
    }
}
