//! Two hosts, one result.

use fullpipe_run::{
    ArrivalOutcome, Fidelity, FlowOutcome, FlowTotals, LinkOutcome, Outcome, PingOutcome, RunSpec,
    Series, SourceOutcome,
};
use fullpipe_units::Time;

use crate::emulator::Losses;

use super::outcome::{HostOutcome, ReceiverReport, SenderReport};

/// What the path between the hosts knows, if there is one that does.
#[derive(Clone, Debug, Default)]
pub struct PathReport {
    /// Its links, with their indices in the specification.
    pub links: Vec<(usize, LinkOutcome)>,
    /// How true it was.
    pub fidelity: Fidelity,
    /// What its links dropped.
    pub losses: Losses,
    /// It makes no copies of its own, as a network may: nothing arrives more often than it was sent.
    pub exact: bool,
}

/// The result of a run from what its two hosts and its path leave behind.
///
/// # Errors
/// A sentence about what does not fit together: a remote host may send anything.
pub fn merge(
    spec: &RunSpec,
    near: HostOutcome,
    far: HostOutcome,
    path: PathReport,
) -> Result<Outcome, String> {
    let counts = [near.counts, far.counts];
    let ended = near.ended;
    let mut capture = near.capture;
    capture.extend(far.capture);
    capture.extend(path.losses.capture);
    capture.retain(|row| (row.flow as usize) < spec.flows.len());
    capture.sort_by_key(|row| row.at);
    let dropped = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(0);
    let mut links = path.links;
    links.extend(near.interfaces);
    links.extend(far.interfaces);
    links.sort_by_key(|(i, _)| *i);
    same_number("links", links.len(), spec.links.len())?;
    let mut senders: Vec<SenderReport> = near.senders.into_iter().chain(far.senders).collect();
    let mut receivers: Vec<ReceiverReport> =
        near.receivers.into_iter().chain(far.receivers).collect();
    senders.sort_by_key(|s| s.flow);
    receivers.sort_by_key(|r| r.flow);
    same_number("senders", senders.len(), spec.flows.len())?;
    same_number("receivers", receivers.len(), spec.flows.len())?;
    let mut flows = Vec::with_capacity(spec.flows.len());
    let mut delivered_packets = 0;
    let ends = senders.into_iter().zip(receivers);
    for ((i, f), (s, r)) in spec.flows.iter().enumerate().zip(ends) {
        if (s.flow as usize, r.flow as usize) != (i, i) {
            return Err(format!("flow {}: a host does not report it", f.name));
        }
        if !is_square(&s.record.series) || r.arrivals.delivered.len() != r.arrivals.arrived.len() {
            return Err(format!("flow {}: columns of different lengths", f.name));
        }
        let mut totals = sum(&s.totals, &r.totals);
        totals.dropped = totals
            .dropped
            .saturating_add(dropped(&path.losses.flows, i));
        if path.exact {
            let gone = totals.dropped.saturating_add(r.not_taken);
            conserve(&f.name, s.offered, r.arrived, gone)?;
        } else {
            conserve(&f.name, s.offered, r.totals.delivered, 0)?;
            totals.dropped = missing(&totals);
        }
        delivered_packets = r.arrived.saturating_add(delivered_packets);
        let timing = (s.started, s.completed);
        flows.push(FlowOutcome::new(f, totals, s.record, r.arrivals, timing));
    }
    same_number("classes", near.classes.len(), spec.arrivals.len())?;
    same_number("classes", far.classes.len(), spec.arrivals.len())?;
    let classes = spec.arrivals.iter().zip(near.classes).zip(far.classes);
    let arrivals = classes.enumerate().map(|(i, ((a, near), far))| {
        let (mut sending, receiving) = if a.template.reverse {
            (far, near)
        } else {
            (near, far)
        };
        let first = path.losses.first.iter();
        for (_, flow, segment) in first.filter(|(class, ..)| *class as usize == i) {
            if let Some(transfer) = sending.transfers.get_mut(*flow as usize) {
                transfer.lost |= 1 << (segment % 64);
            }
        }
        let mut totals = sum(&sending.totals, &receiving.totals);
        totals.dropped = totals
            .dropped
            .saturating_add(dropped(&path.losses.classes, i));
        if !path.exact {
            totals.dropped = missing(&totals);
        }
        ArrivalOutcome {
            name: a.template.name.clone(),
            mss: a.template.sender.mss,
            packet: a.template.sender.packet(),
            totals,
            delivered_per_interval: receiving.delivered_per_interval,
            ..sending
        }
    });
    same_number("sources", near.sources.len(), spec.sources.len())?;
    same_number("sources", far.sources.len(), spec.sources.len())?;
    let sources = near.sources.into_iter().zip(far.sources).enumerate();
    let sources = sources.map(|(i, (near, far))| {
        let dropped = if path.exact {
            let dropped = near.dropped + dropped(&path.losses.sources, i);
            conserve(&near.name, near.sent, far.arrived, dropped)?;
            dropped
        } else {
            // What this host refused is missing there too.
            let absent = near.sent.saturating_sub(far.arrived);
            near.dropped.max(far.dropped).min(absent)
        };
        Ok(SourceOutcome {
            name: near.name,
            packet: near.packet,
            sent: near.sent,
            sent_measured: near.sent_measured,
            sent_per_interval: near.sent_per_interval,
            dropped,
            ..far
        })
    });
    same_number("sequences of probes", near.pings.len(), spec.pings.len())?;
    let pings = near.pings.into_iter().enumerate();
    let pings = pings.map(|(i, ping)| PingOutcome {
        lost: match path.exact {
            true => dropped(&path.losses.pings, i),
            false => ping.lost,
        },
        ..ping
    });
    let total =
        |of: fn(&super::HostCounts) -> u64| counts.iter().map(of).fold(0, u64::saturating_add);
    Ok(Outcome {
        // Shorter if it was stopped because all was done.
        duration: spec.duration.min(ended.saturating_since(Time::ZERO)),
        measure_from: spec.measure_from,
        interval: spec.interval,
        flows,
        links: links.into_iter().map(|(_, link)| link).collect(),
        arrivals: arrivals.collect(),
        sources: sources.collect::<Result<_, String>>()?,
        pings: pings.collect(),
        capture,
        events: total(|c| c.turns),
        delivered_packets,
        fidelity: Some(Fidelity {
            // A short flow that found no number is lost whole.
            unplanned_drops: path
                .fidelity
                .unplanned_drops
                .saturating_add(total(|c| c.socket_drops))
                .saturating_add(total(|c| c.refused))
                .saturating_add(total(|c| c.unnumbered)),
            local_stalls: path
                .fidelity
                .local_stalls
                .saturating_add(total(|c| c.local_stalls)),
            near: near.lateness,
            far: far.lateness,
            ..path.fidelity
        }),
    })
}

/// What a network lost that does not say so: of what has been repaired, every transmission that did not arrive, as each loss takes one
/// retransmission, and each that was needless arrives as a duplicate.
fn missing(totals: &FlowTotals) -> u64 {
    let repaired = totals.retransmits.saturating_sub(totals.duplicates);
    totals.dropped.max(repaired).min(totals.sent)
}

fn same_number(what: &str, reported: usize, specified: usize) -> Result<(), String> {
    if reported == specified {
        return Ok(());
    }
    Err(format!(
        "a host reports {reported} {what}, the run has {specified}"
    ))
}

/// As many values of every variable as there are rows.
fn is_square(series: &Series) -> bool {
    let rows = series.rows.len();
    series
        .variables
        .iter()
        .all(|(_, column)| column.len() == rows)
}

/// Nothing arrives that was not sent. What is missing is in the network, or lost against the plan.
fn conserve(name: &str, sent: u64, arrived: u64, dropped: u64) -> Result<(), String> {
    if sent >= arrived.saturating_add(dropped) {
        return Ok(());
    }
    Err(format!(
        "{name}: sent {sent} is less than arrived {arrived} + dropped {dropped}"
    ))
}

/// Of the two ends of a flow, each of which leaves at zero what the other one counts.
fn sum(a: &FlowTotals, b: &FlowTotals) -> FlowTotals {
    FlowTotals {
        sent: a.sent.saturating_add(b.sent),
        retransmits: a.retransmits.saturating_add(b.retransmits),
        delivered: a.delivered.saturating_add(b.delivered),
        delivered_measured: a.delivered_measured.saturating_add(b.delivered_measured),
        arrived_measured: a.arrived_measured.saturating_add(b.arrived_measured),
        duplicates: a.duplicates.saturating_add(b.duplicates),
        out_of_order: a.out_of_order.saturating_add(b.out_of_order),
        dropped: a.dropped.saturating_add(b.dropped),
        loss_events: a.loss_events.saturating_add(b.loss_events),
        loss_events_measured: a
            .loss_events_measured
            .saturating_add(b.loss_events_measured),
        timeouts: a.timeouts.saturating_add(b.timeouts),
        probes: a.probes.saturating_add(b.probes),
        undone: a.undone.saturating_add(b.undone),
        local_stalls: a.local_stalls.saturating_add(b.local_stalls),
        acks: a.acks.saturating_add(b.acks),
    }
}
