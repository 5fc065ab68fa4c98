//! Two hosts, one result.

use fullpipe_sim::{Fidelity, FlowOutcome, FlowTotals, LinkOutcome, Outcome, RunSpec};

use super::outcome::{HostOutcome, ReceiverReport, SenderReport};

/// The result of a run from what its two hosts and its path leave behind. `path_fidelity`: what the path knows of itself.
///
/// # Errors
/// A sentence about what does not fit together: a remote host may send anything.
pub fn merge(
    spec: &RunSpec,
    near: HostOutcome,
    far: HostOutcome,
    links: Vec<LinkOutcome>,
    path_fidelity: Fidelity,
) -> Result<Outcome, String> {
    let counts = [near.counts, far.counts];
    let mut capture = near.capture;
    capture.extend(far.capture);
    capture.sort_by_key(|row| row.at);
    let mut senders: Vec<SenderReport> = near.senders.into_iter().chain(far.senders).collect();
    let mut receivers: Vec<ReceiverReport> =
        near.receivers.into_iter().chain(far.receivers).collect();
    senders.sort_by_key(|s| s.flow);
    receivers.sort_by_key(|r| r.flow);
    if senders.len() != spec.flows.len() || receivers.len() != spec.flows.len() {
        return Err(format!(
            "{} flows have {} senders and {} receivers",
            spec.flows.len(),
            senders.len(),
            receivers.len()
        ));
    }
    let mut flows = Vec::with_capacity(spec.flows.len());
    let mut delivered_packets = 0;
    for (((i, f), s), r) in (0..).zip(&spec.flows).zip(senders).zip(receivers) {
        if (s.flow, r.flow) != (i, i) {
            return Err(format!("flow {}: a host does not report it", f.name));
        }
        if s.offered < r.counts.arrived.saturating_add(s.dropped) {
            return Err(format!(
                "flow {}: sent {} is less than arrived {} + dropped {}",
                f.name, s.offered, r.counts.arrived, s.dropped
            ));
        }
        delivered_packets += r.counts.arrived;
        let timing = (s.started, s.completed);
        flows.push(FlowOutcome::new(
            f,
            totals(&s, &r),
            s.record,
            r.arrivals,
            timing,
        ));
    }
    Ok(Outcome {
        duration: spec.duration,
        measure_from: spec.measure_from,
        interval: spec.interval,
        flows,
        links,
        arrivals: Vec::new(),
        sources: Vec::new(),
        pings: Vec::new(),
        capture,
        events: counts.iter().map(|c| c.turns).sum(),
        delivered_packets,
        fidelity: Some(Fidelity {
            unplanned_drops: path_fidelity.unplanned_drops
                + counts
                    .iter()
                    .map(|c| c.socket_drops + c.refused)
                    .sum::<u64>(),
            local_stalls: path_fidelity.local_stalls
                + counts.iter().map(|c| c.local_stalls).sum::<u64>(),
            ..path_fidelity
        }),
    })
}

fn totals(s: &SenderReport, r: &ReceiverReport) -> FlowTotals {
    FlowTotals {
        sent: s.counts.sent,
        retransmits: s.counts.retransmits,
        delivered: r.counts.delivered,
        delivered_measured: r.counts.delivered.saturating_sub(r.before.delivered),
        arrived_measured: r.counts.arrived.saturating_sub(r.before.arrived),
        duplicates: r.counts.duplicates,
        out_of_order: r.counts.out_of_order,
        dropped: s.dropped,
        loss_events: s.counts.loss_events,
        loss_events_measured: s.counts.loss_events.saturating_sub(s.loss_events_before),
        timeouts: s.counts.timeouts,
        probes: s.counts.probes,
        undone: s.counts.undone,
        local_stalls: s.counts.local_stalls,
        acks: s.acks,
    }
}
