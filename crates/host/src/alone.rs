//! A run of which one host alone is left: what the other one would have reported, as far as this
//! one can tell.

use fullpipe_run::{
    ArrivalOutcome, ArrivalRecord, CrossOutcome, FlowTotals, RunSpec, SenderRecord,
};
use fullpipe_units::{Span, Time};

use crate::report::{HostOutcome, ReceiverReport, SenderReport};

/// The other host's half, from this one's: deliveries are those that were acknowledged here, and
/// what nobody here can know is missing. This half loses what it recorded after its end, and the
/// counters of datagrams without an answer, for whether they arrived is not known.
pub fn other_half(spec: &RunSpec, near: &mut HostOutcome) -> HostOutcome {
    let samples = samples(spec.interval, near.ended);
    for receiver in &mut near.receivers {
        receiver.arrivals.delivered.truncate(samples);
        receiver.arrivals.arrived.truncate(samples);
    }
    let receivers = near.senders.iter();
    let receivers = receivers
        .map(|s| receiver_of(spec, s, near.ended))
        .collect();
    let senders = near.receivers.iter().map(|r| sender_of(spec, r)).collect();
    let classes = near.classes.iter().map(receiving).collect();
    for cross in near.cross.iter_mut().filter(|c| !c.answered) {
        (cross.sent, cross.sent_measured, cross.dropped) = (0, 0, 0);
        cross.sent_per_interval.clear();
    }
    let cross = near.cross.iter().map(|c| CrossOutcome {
        arrived: 0,
        arrived_measured: 0,
        arrived_per_interval: Vec::new(),
        ..c.clone()
    });
    HostOutcome {
        senders,
        receivers,
        classes,
        cross: cross.collect(),
        ended: near.ended,
        ..HostOutcome::default()
    }
}

/// When the other host was last there, by what it acknowledged and what came from it; not before
/// `heard`.
pub fn ends_at(spec: &RunSpec, near: &HostOutcome, heard: Time) -> Time {
    let mut last = heard;
    for sender in &near.senders {
        let acked = sender.acked;
        let rows = &sender.record.series.rows;
        if let Some(row) = rows.iter().find(|row| row.delivered == acked) {
            last = last.max(row.time);
        } else if let Some(round) = sender.record.rounds.last() {
            // Rows are samples. A host that was stopped took in at its end what had waited
            // meanwhile, which began a round.
            last = last.max(round.start);
        }
    }
    for receiver in &near.receivers {
        let samples = receiver.arrivals.arrived.iter();
        if let Some(sample) = samples.clone().rposition(|n| *n > 0) {
            last = last.max(Time::ZERO + spec.interval * (sample as u64));
        }
    }
    last.min(near.ended)
}

/// Samples until `end`, the last one perhaps shorter.
fn samples(interval: Span, end: Time) -> usize {
    let interval = interval.as_nanos().max(1);
    let lasted = end.saturating_since(Time::ZERO).as_nanos();
    usize::try_from(lasted.div_ceil(interval)).unwrap_or(usize::MAX)
}

fn receiver_of(spec: &RunSpec, sender: &SenderReport, end: Time) -> ReceiverReport {
    let known = Known::of(sender, end);
    let interval = spec.interval;
    let mut before = 0;
    let delivered: Vec<u64> = (1..=samples(interval, end) as u64)
        .map(|n| {
            let at = (Time::ZERO + interval * n).min(end);
            let now = known.at(at);
            now - std::mem::replace(&mut before, now)
        })
        .collect();
    let measured = sender.acked - known.at(spec.measure_from.min(end));
    ReceiverReport {
        flow: sender.flow,
        totals: FlowTotals {
            delivered: sender.acked,
            delivered_measured: measured,
            arrived_measured: measured,
            ..FlowTotals::default()
        },
        arrived: sender.acked,
        not_taken: 0,
        arrivals: ArrivalRecord {
            arrived: delivered.clone(),
            delivered,
        },
    }
}

/// Segments delivered at some times, as the sender knew.
struct Known(Vec<(Time, u64)>);

impl Known {
    fn of(sender: &SenderReport, end: Time) -> Self {
        let rounds = sender.record.rounds.iter().map(|r| (r.start, r.delivered));
        let rows = sender.record.series.rows.iter();
        let rows = rows.map(|row| (row.time, row.delivered));
        let mut known = vec![(sender.started.min(end), 0)];
        known.extend(rounds.chain(rows).filter(|(at, _)| *at <= end));
        known.push((end, sender.acked));
        known.sort_unstable();
        Self(known)
    }

    /// Between two known times as if delivery were even.
    fn at(&self, at: Time) -> u64 {
        let next = self.0.partition_point(|(t, _)| *t <= at);
        let (Some(before), Some(after)) = (self.0[..next].last(), self.0.get(next)) else {
            return self.0.get(next.saturating_sub(1)).map_or(0, |(_, n)| *n);
        };
        let span = (after.0 - before.0).as_nanos().max(1) as f64;
        let part = (at - before.0).as_nanos() as f64 / span;
        before.1 + (part * after.1.saturating_sub(before.1) as f64) as u64
    }
}

fn sender_of(spec: &RunSpec, receiver: &ReceiverReport) -> SenderReport {
    let flow = spec.flows.get(receiver.flow as usize);
    SenderReport {
        flow: receiver.flow,
        totals: FlowTotals {
            sent: receiver.arrived,
            retransmits: receiver.totals.duplicates,
            ..FlowTotals::default()
        },
        offered: receiver.arrived,
        record: SenderRecord {
            // Not known, which zero would not say.
            cwnd_mean: f64::NAN,
            cwnd_max: f64::NAN,
            ..SenderRecord::default()
        },
        started: flow.map_or(Time::ZERO, |f| f.start),
        completed: None,
        acked: 0,
    }
}

/// The other end of a class: of one that sends from here the flows that were acknowledged whole.
fn receiving(near: &ArrivalOutcome) -> ArrivalOutcome {
    let whole = near.transfers.iter().filter(|t| t.completion.is_some());
    ArrivalOutcome {
        transfers: Vec::new(),
        rtt: Default::default(),
        totals: FlowTotals {
            delivered: whole.map(|t| t.size).sum(),
            ..FlowTotals::default()
        },
        delivered_per_interval: Vec::new(),
        ..near.clone()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig, TraceRow};
    use fullpipe_run::{FlowSpec, Round};

    use super::*;
    use crate::{PathReport, merge};

    fn spec(reverse: bool) -> RunSpec {
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            Vec::new(),
            Vec::new(),
        );
        RunSpec {
            duration: Span::from_secs(60),
            interval: Span::from_secs(1),
            measure_from: Time::ZERO + Span::from_secs(1),
            flows: vec![FlowSpec { reverse, ..flow }],
            ..RunSpec::default()
        }
    }

    fn seconds(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    /// 100 segments in the first second, 300 in the next two, nothing after that.
    fn sender() -> SenderReport {
        let round = |s, delivered| Round {
            start: seconds(s),
            delivered,
            cwnd: 10.0,
        };
        SenderReport {
            flow: 0,
            totals: FlowTotals {
                sent: 450,
                ..FlowTotals::default()
            },
            offered: 450,
            record: SenderRecord {
                rounds: vec![round(1, 100), round(3, 400)],
                ..SenderRecord::default()
            },
            started: Time::ZERO,
            completed: None,
            acked: 400,
        }
    }

    #[test]
    fn what_was_acknowledged_was_delivered() {
        let spec = spec(false);
        let mut near = HostOutcome {
            senders: vec![sender()],
            ended: seconds(3),
            ..HostOutcome::default()
        };
        let far = other_half(&spec, &mut near);
        let outcome = merge(&spec, near, far, PathReport::default()).unwrap();
        assert_eq!(outcome.duration, Span::from_secs(3));
        let flow = &outcome.flows[0];
        assert_eq!(flow.delivered_per_interval, [100, 150, 150]);
        let totals = &flow.totals;
        assert_eq!((totals.delivered, totals.delivered_measured), (400, 300));
    }

    #[test]
    fn what_a_stopped_host_took_in_at_its_end_has_that_time() {
        let row = |s, delivered| TraceRow {
            time: seconds(s),
            delivered,
            ..TraceRow::default()
        };
        let mut near = HostOutcome {
            senders: vec![sender()],
            ended: seconds(15),
            ..HostOutcome::default()
        };
        let mut end = |rows: &[TraceRow], round: u64| {
            let record = &mut near.senders[0].record;
            record.series.rows = rows.to_vec();
            record.rounds[1].start = seconds(round);
            ends_at(&spec(false), &near, seconds(2))
        };
        let rows = [row(1, 100), row(2, 250), row(3, 400), row(4, 400)];
        assert_eq!(end(&rows, 3), seconds(3));
        assert_eq!(end(&rows[..2], 14), seconds(14));
        // A flow that was over long before, and whose last ACK is in no row, has no dead time.
        assert_eq!(end(&rows[..1], 1), seconds(2));
    }

    #[test]
    fn what_came_was_sent_and_dead_time_does_not_count() {
        let spec = spec(true);
        let mut near = HostOutcome {
            receivers: vec![ReceiverReport {
                flow: 0,
                totals: FlowTotals {
                    delivered: 400,
                    delivered_measured: 300,
                    ..FlowTotals::default()
                },
                arrived: 400,
                not_taken: 0,
                arrivals: ArrivalRecord {
                    delivered: vec![100, 150, 150, 0, 0, 0],
                    arrived: vec![100, 150, 150, 0, 0, 0],
                },
            }],
            ended: seconds(13),
            ..HostOutcome::default()
        };
        let end = ends_at(&spec, &near, seconds(1));
        assert_eq!(end, seconds(2));
        near.ended = ends_at(&spec, &near, seconds(3));
        let far = other_half(&spec, &mut near);
        let outcome = merge(&spec, near, far, PathReport::default()).unwrap();
        assert_eq!(outcome.duration, Span::from_secs(3));
        let flow = &outcome.flows[0];
        assert_eq!(flow.delivered_per_interval, [100, 150, 150]);
        assert!(flow.cwnd_mean.is_nan(), "nobody here knows it");
        assert_eq!(flow.totals.sent, 400);
    }
}
