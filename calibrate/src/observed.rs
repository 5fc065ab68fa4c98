//! From the outcome of a run, on either ground, to records and results: one way for both.

use fullpipe_flow::EpisodeKind;
use fullpipe_run::{FlowOutcome, Outcome};
use fullpipe_units::{Span, Time};

use crate::cell::{Cell, guest};
use crate::measure::{Curve, Event, Record, Row, measure};
use crate::reference::FlowResult;

/// The record of a flow.
pub fn record(flow: &FlowOutcome) -> Record {
    let ms = |t: Time| {
        t.saturating_since(Time::ZERO + guest::AFTER_TICK)
            .as_millis_f64()
    };
    // Without a sample of the RTT the handshake is not over.
    let rows = flow.series.rows.iter();
    let rows = rows
        .filter(|r| r.srtt > Span::ZERO)
        .map(|r| Row {
            ms: ms(r.time),
            cwnd: r.cwnd,
            srtt_ms: r.srtt.as_millis_f64(),
            acked: r.delivered * u64::from(flow.mss),
        })
        .collect();
    let (mut recoveries, mut timeouts) = (0, 0);
    let mut events = Vec::new();
    for e in &flow.episodes {
        match e.kind {
            EpisodeKind::Congestion(_) => recoveries += 1,
            EpisodeKind::Timeout => timeouts += 1,
            _ => continue,
        }
        events.push(Event {
            ms: ms(e.at),
            cwnd: e.before,
        });
    }
    Record {
        rows,
        events,
        retransmits: flow.totals.retransmits,
        recoveries,
        timeouts,
        completed_ms: flow.completed.map(ms),
    }
}

/// The flows of a run, reduced; `cell` as the run had it. Windows are kept every `step_ms`, or not
/// at all.
pub fn flows(cell: &Cell, outcome: &Outcome, step_ms: Option<u64>) -> Vec<FlowResult> {
    let flows = cell.flows.iter().zip(&outcome.flows);
    let flows = flows.map(|(module, flow)| {
        let record = record(flow);
        FlowResult {
            module: (*module).to_owned(),
            measure: measure(&record, cell.from_ms(), cell.end_ms()),
            curve: step_ms.map(|step| Curve::of(&record, cell.end_ms(), step)),
        }
    });
    flows.collect()
}
