//! Classes of short flows, datagrams and probes.

use fullpipe_run::traffic::PerInterval;
use fullpipe_run::{
    ArrivalOutcome, ArrivalSpec, CrossOutcome, CrossSpec, FlowTotals, Histogram, RunSpec, Transfer,
};
use fullpipe_units::{Span, Time};

use super::flow::Flow;
use super::{histogram, wide};
use crate::records::{self, Record};

/// A class whose flows, with these starts and segments, are the next ones of `flows`.
pub(super) fn class(
    class: &ArrivalSpec,
    drawn: &[(Time, u64)],
    flows: impl Iterator<Item = Flow>,
    spec: &RunSpec,
) -> ArrivalOutcome {
    let template = &class.template;
    let mut outcome = ArrivalOutcome {
        name: template.name.clone(),
        mss: template.sender.mss,
        packet: template.sender.packet(),
        transfers: Vec::with_capacity(drawn.len()),
        rtt: Histogram::default(),
        totals: FlowTotals::default(),
        delivered_per_interval: PerInterval::new(spec.interval).finish(Time::ZERO + spec.duration),
    };
    for (i, (&(start, size), mut flow)) in drawn.iter().zip(flows).enumerate() {
        if i == 0 {
            outcome.rtt = flow.take_rtt();
            outcome.delivered_per_interval = std::mem::take(&mut flow.delivered);
        }
        outcome.transfers.push(Transfer {
            start,
            size,
            completion: flow.completed.map(|t| t - start),
            lost: flow.lost,
            retransmits: flow.totals.retransmits as u32,
            timeouts: flow.totals.timeouts as u32,
        });
        let early = flow.completed.is_some_and(|t| t < spec.measure_from);
        let totals = match early {
            true => flow.totals.unmeasured(),
            false => flow.totals,
        };
        outcome.totals = outcome.totals.plus(totals);
    }
    outcome
}

/// Datagrams or probes as far as they have been read.
#[derive(Default)]
pub(super) struct Cross {
    /// `struct fp_cross_counts`.
    counts: [u64; 4],
    arrived: Vec<u64>,
    delay: Histogram,
    answers: Vec<(Time, Span)>,
}

impl Cross {
    pub(super) fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        match record.kind {
            records::CROSS => self.counts = b.u64s()?,
            records::CROSS_ARRIVED => self.arrived = wide(b),
            records::CROSS_DELAY => self.delay = histogram(b, Span::from_nanos(100)),
            _ => self.answers.push((b.time()?, Span::from_nanos(b.u64()?))),
        }
        Some(())
    }

    /// `left`: when each of them departed.
    pub(super) fn finish(self, c: &CrossSpec, left: &[Time], spec: &RunSpec) -> CrossOutcome {
        let [arrived, dropped, arrived_measured, last_arrival] = self.counts;
        let mut sent_per_interval = PerInterval::new(spec.interval);
        left.iter().for_each(|t| sent_per_interval.add(*t, 1));
        let mut delay = self.delay;
        for (at, rtt) in &self.answers {
            if *at >= spec.measure_from {
                delay.record(*rtt);
            }
        }
        let (sent_per_interval, arrived_per_interval) = match c.answered {
            true => (Vec::new(), Vec::new()),
            false => {
                let end = Time::ZERO + spec.duration;
                (sent_per_interval.finish(end), self.arrived)
            }
        };
        let links = c.routes().flatten();
        let unloaded = links.map(|l| spec.links[*l].unloaded(c.packet, spec.seed));
        CrossOutcome {
            name: c.name.clone(),
            packet: u32::from(c.packet),
            answered: c.answered,
            sent: left.len() as u64,
            arrived,
            dropped,
            arrived_measured,
            sent_measured: left.iter().filter(|t| **t >= spec.measure_from).count() as u64,
            last_arrival: Time::from_nanos(last_arrival),
            delay,
            unloaded: unloaded.fold(Span::ZERO, |a, b| a + b),
            sent_per_interval,
            arrived_per_interval,
            series: self.answers,
        }
    }
}
