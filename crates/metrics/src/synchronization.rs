//! Do flows lose together? The mean part of the streams that takes part in a congestion epoch,
//! `1/n` to 1.
//!
//! The idea is that of "Loss Synchronization of TCP Connections at a Shared Bottleneck Link"
//! (Washington University in St. Louis 2006): the fraction of the connections that lose a packet at
//! a congestion instant. When an instant ends is left open there; here an epoch takes in what
//! follows its first event within one base RTT, because that is how long a flow goes on sending
//! before it learns of a loss.

use fullpipe_flow::EpisodeKind;
use fullpipe_run::{FlowOutcome, Outcome};
use fullpipe_units::{Span, Time};

use crate::number::mean;

/// Over the epochs from the end of the warm-up; streams that have not started or have completed by
/// an epoch do not count in it. `None` with one stream or without an event.
pub fn synchronization<'a>(
    streams: impl Iterator<Item = &'a FlowOutcome>,
    base_rtt: Span,
    outcome: &Outcome,
) -> Option<f64> {
    let streams: Vec<&FlowOutcome> = streams.collect();
    if streams.len() < 2 {
        return None;
    }
    let mut events: Vec<(Time, usize)> = streams
        .iter()
        .enumerate()
        .flat_map(|(i, f)| reductions(f).map(move |at| (at, i)))
        .filter(|(at, _)| *at >= outcome.measure_from)
        .collect();
    events.sort_unstable();
    let mut parts = Vec::new();
    let mut rest = events.as_slice();
    while let Some(&(begin, _)) = rest.first() {
        let length = rest
            .iter()
            .take_while(|(at, _)| at.saturating_since(begin) <= base_rtt)
            .count();
        let (epoch, later) = rest.split_at(length);
        rest = later;
        let present = streams.iter().filter(|f| is_active(f, begin)).count();
        let mut hit: Vec<usize> = epoch.iter().map(|(_, i)| *i).collect();
        hit.sort_unstable();
        hit.dedup();
        // A flow that is alone cannot be in step with anyone.
        if present >= 2 {
            parts.push((hit.len() as f64 / present as f64).min(1.0));
        }
    }
    mean(&parts)
}

fn reductions(flow: &FlowOutcome) -> impl Iterator<Item = Time> {
    let counts = |k| matches!(k, EpisodeKind::Congestion(_) | EpisodeKind::Timeout);
    let counted = flow.episodes.iter().filter(move |e| counts(e.kind));
    counted.map(|e| e.at)
}

fn is_active(flow: &FlowOutcome, at: Time) -> bool {
    flow.started <= at && flow.completed.is_none_or(|end| end >= at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, outcome};
    use fullpipe_cc::CongestionKind;
    use fullpipe_flow::Episode;

    fn losing(name: &str, at: &[f64]) -> FlowOutcome {
        let mut f = flow(name);
        f.episodes = at
            .iter()
            .map(|&s| Episode {
                at: Time::from_secs_f64(s),
                kind: EpisodeKind::Congestion(CongestionKind::Loss),
                before: 2.0,
                after: 1.0,
            })
            .collect();
        f
    }

    fn of(streams: Vec<FlowOutcome>, warmup: u64) -> Option<f64> {
        let o = outcome(streams, 100, warmup, 1);
        synchronization(o.flows.iter(), Span::from_millis(100), &o)
    }

    #[test]
    fn in_step_out_of_step_and_between() {
        let all = [10.0, 20.0, 30.0];
        let shifted = |by: f64| all.map(|t| t + by);
        // All four within an RTT of one another.
        let together = (0..4).map(|i| losing("a", &shifted(0.03 * f64::from(i))));
        assert_eq!(of(together.collect(), 0), Some(1.0));
        // Each alone: 1/n.
        let apart = (0..4).map(|i| losing("a", &shifted(2.0 * f64::from(i))));
        assert_eq!(of(apart.collect(), 0), Some(0.25));
        // Two pairs: 1/2. The chain of 0.09 s steps does not make one epoch: 0.09 is in, 0.18 is
        // not.
        let pairs = [0.0, 0.09, 0.18, 0.27].map(|by| losing("a", &shifted(by)));
        assert_eq!(of(pairs.to_vec(), 0), Some(0.5));
    }

    #[test]
    fn epochs_are_averaged_and_a_stream_counts_once_in_each() {
        // First epoch: both; second: only one, twice.
        let o = vec![losing("a", &[10.0, 20.0, 20.05]), losing("b", &[10.05])];
        assert_eq!(of(o, 0), Some(0.75));
    }

    #[test]
    fn warm_up_absent_streams_and_single_ones() {
        let both = || vec![losing("a", &[1.0, 20.0]), losing("b", &[20.0])];
        assert_eq!(of(both(), 5), Some(1.0));
        assert_eq!(of(both(), 50), None);
        assert_eq!(of(vec![losing("a", &[1.0])], 0), None);
        let mut late = losing("c", &[]);
        late.started = Time::from_secs_f64(50.0);
        let mut three = both();
        three.push(late);
        assert_eq!(of(three, 5), Some(1.0));
    }
}
