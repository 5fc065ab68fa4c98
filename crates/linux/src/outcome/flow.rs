//! Flows: what their senders recorded and what arrived.

use fullpipe_flow::{Limit, LimitTimes};
use fullpipe_run::{
    ArrivalRecord, Extent, FlowOutcome, FlowSpec, FlowTotals, Histogram, Round, RunSpec,
    SenderRecord,
};
use fullpipe_units::{Span, Time};

use super::rows::{episode, model, row};
use super::{histogram, wide};
use crate::records::{self, Body, Record};

/// A flow as far as it has been read.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) totals: FlowTotals,
    record: SenderRecord,
    pub(super) delivered: Vec<u64>,
    arrivals: Vec<u64>,
    /// Data packets until the end of the run.
    pub(super) arrived: u64,
    pub(super) completed: Option<Time>,
    /// Bit `i`: the first transmission of segment `i` was lost.
    pub(super) lost: u64,
}

impl Flow {
    pub(super) fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        match record.kind {
            records::ROW => self.record.series.rows.push(row(&mut b, record.id)?),
            records::MODEL => model(&mut b, &mut self.record.series)?,
            records::EPISODE => self.record.episodes.push(episode(&mut b)?),
            records::ROUND => self.record.rounds.push(Round {
                start: b.time()?,
                delivered: b.u64()?,
                cwnd: b.u64()? as f64,
            }),
            records::DELIVERED => self.delivered = wide(b),
            records::ARRIVED => self.arrivals = wide(b),
            records::RTT => self.record.rtt = histogram(b, Span::from_micros(1)),
            records::FLOW => self.totals(&mut b)?,
            _ => return None,
        }
        Some(())
    }

    /// `struct fp_totals`.
    fn totals(&mut self, b: &mut Body<'_>) -> Option<()> {
        self.totals = FlowTotals {
            sent: b.u64()?,
            retransmits: b.u64()?,
            delivered: b.u64()?,
            delivered_measured: b.u64()?,
            arrived_measured: b.u64()?,
            duplicates: b.u64()?,
            out_of_order: b.u64()?,
            dropped: b.u64()?,
            loss_events: b.u64()?,
            loss_events_measured: b.u64()?,
            timeouts: b.u64()?,
            probes: b.u64()?,
            undone: b.u64()?,
            local_stalls: 0,
            acks: b.u64()?,
            limited: LimitTimes::default(),
        };
        let [arrived, area, since, until, max, completed, lost, stalls] = b.u64s()?;
        self.totals.local_stalls = stalls;
        for limit in Limit::ALL {
            let held = LimitTimes::one(limit, Span::from_nanos(b.u64()?));
            self.totals.limited = self.totals.limited.plus(held);
        }
        (self.arrived, self.lost) = (arrived, lost);
        self.record.cwnd_max = max as f64;
        self.record.cwnd_mean = match until.saturating_sub(since) {
            0 => max as f64,
            measured => area as f64 / measured as f64,
        };
        self.completed = (completed != u64::MAX).then(|| Time::from_nanos(completed));
        Some(())
    }

    /// RTT samples; those of a whole class are with its first flow.
    pub(super) fn take_rtt(&mut self) -> Histogram {
        std::mem::take(&mut self.record.rtt)
    }

    pub(super) fn finish(mut self, f: &FlowSpec, spec: &RunSpec) -> FlowOutcome {
        let series = &mut self.record.series;
        for (name, column) in &mut series.variables {
            let mut extent = Extent::default();
            column.iter().for_each(|value| extent.take(*value));
            self.record.variables.push((*name, extent));
            column.resize(series.rows.len(), f64::NAN);
        }
        let timing = (f.started(spec.seed), self.completed);
        let arrivals = ArrivalRecord {
            delivered: self.delivered,
            arrived: self.arrivals,
        };
        FlowOutcome::new(f, self.totals, self.record, arrivals, timing)
    }
}
