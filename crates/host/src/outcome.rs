//! From what hosts and the path between them leave behind to the outcome of a run: one way for
//! every ground.

use fullpipe_run::{
    ArrivalOutcome, CaptureEvent, CaptureRow, CrossOutcome, Fidelity, FlowOutcome, FlowSpec,
    FlowTotals, LinkOutcome, Outcome, RunSpec, Series, delivered_packets,
};
use fullpipe_units::{Span, Time};

use crate::report::{HostOutcome, ReceiverReport, SenderReport};

/// What the path between the hosts knows, if there is one that does.
#[derive(Clone, Debug, Default)]
pub struct PathReport {
    /// Its links, with their indices in the specification.
    pub links: Vec<(usize, LinkOutcome)>,
    /// How true it was; `None` in virtual time, which is exact, or if there is no path that knows.
    pub fidelity: Option<Fidelity>,
    /// What its links dropped, where the hosts do not learn of it.
    pub losses: Losses,
    /// It makes no copies of its own, as a network may: nothing arrives more often than it was
    /// sent.
    pub exact: bool,
}

/// Planned losses of a run that the path counts, and not the hosts.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Data packets of each flow.
    pub flows: Vec<u64>,
    /// Data packets of each class of short flows.
    pub classes: Vec<u64>,
    /// Datagrams and answers of all cross traffic.
    pub cross: Vec<u64>,
    /// First transmissions of short flows among their first 64 segments: class, number in the
    /// class, segment.
    pub first: Vec<(u32, u64, u32)>,
    /// Each packet of a lasting flow, if the run is captured.
    pub capture: Vec<CaptureRow>,
}

/// The result of a run from what its two hosts and its path leave behind.
///
/// # Errors
/// A sentence about what does not fit together: a remote host may send anything.
pub fn merge(
    spec: &RunSpec,
    near: HostOutcome,
    far: HostOutcome,
    mut path: PathReport,
) -> Result<Outcome, String> {
    let fidelity = path.fidelity.get_or_insert_default();
    (fidelity.near, fidelity.far) = (near.lateness, far.lateness);
    let both = join(spec, near, far, path.exact)?;
    outcome(spec, both, path)
}

/// Two hosts, as if they were one.
fn join(
    spec: &RunSpec,
    near: HostOutcome,
    far: HostOutcome,
    exact: bool,
) -> Result<HostOutcome, String> {
    for (what, near, far, specified) in [
        (
            "classes",
            near.classes.len(),
            far.classes.len(),
            spec.arrivals.len(),
        ),
        (
            "sources of cross traffic",
            near.cross.len(),
            far.cross.len(),
            spec.cross.len(),
        ),
    ] {
        same_number(what, near, specified)?;
        same_number(what, far, specified)?;
    }
    let ended = last_arrivals(&near, &far);
    let classes = spec.arrivals.iter().zip(near.classes).zip(far.classes);
    let classes = classes.map(|((a, near), far)| join_classes(&a.template, near, far));
    let cross = near.cross.into_iter().zip(far.cross);
    let cross = cross.map(|(near, far)| join_cross(near, far, exact));
    Ok(HostOutcome {
        senders: [near.senders, far.senders].concat(),
        receivers: [near.receivers, far.receivers].concat(),
        classes: classes.collect(),
        cross: cross.collect(),
        interfaces: [near.interfaces, far.interfaces].concat(),
        capture: [near.capture, far.capture].concat(),
        counts: near.counts.plus(far.counts),
        ended,
        lateness: near.lateness,
        bleached: near.bleached,
    })
}

/// Until when what the near host sent could arrive, and was counted. Of a run that is cut there, a
/// queue full is still on its way: it counts, so its time does. All of that arrives within a round
/// trip; if the other host went on for longer, the word of the end was late. Flows that are
/// received here have ended by then: their rates come out lower by as much.
fn last_arrivals(near: &HostOutcome, far: &HostOutcome) -> Time {
    let sending = near.senders.iter().filter(|s| s.completed.is_none());
    let round_trip = sending.filter_map(|s| s.record.rtt.max()).max();
    let latest = near.ended + round_trip.unwrap_or(Span::ZERO);
    near.ended.max(far.ended.min(latest))
}

fn join_classes(f: &FlowSpec, near: ArrivalOutcome, far: ArrivalOutcome) -> ArrivalOutcome {
    let (sending, receiving) = if f.reverse { (far, near) } else { (near, far) };
    ArrivalOutcome {
        name: f.name.clone(),
        mss: f.sender.mss,
        packet: f.sender.packet(),
        totals: sending.totals.plus(receiving.totals),
        delivered_per_interval: receiving.delivered_per_interval,
        ..sending
    }
}

fn join_cross(near: CrossOutcome, far: CrossOutcome, exact: bool) -> CrossOutcome {
    if near.answered {
        // The near host sees all of it; an exact path says itself what it lost.
        let dropped = if exact { 0 } else { near.dropped };
        return CrossOutcome { dropped, ..near };
    }
    let dropped = if exact {
        near.dropped
    } else {
        // What this host refused is missing there too.
        let absent = near.sent.saturating_sub(far.arrived);
        near.dropped.max(far.dropped).min(absent)
    };
    CrossOutcome {
        name: near.name,
        packet: near.packet,
        answered: near.answered,
        unloaded: near.unloaded,
        series: near.series,
        sent: near.sent,
        sent_measured: near.sent_measured,
        sent_per_interval: near.sent_per_interval,
        dropped,
        ..far
    }
}

/// The result of a run from what all its hosts together and its path leave behind.
///
/// # Errors
/// A sentence about what does not fit together.
pub fn outcome(spec: &RunSpec, hosts: HostOutcome, path: PathReport) -> Result<Outcome, String> {
    let losses = path.losses;
    let dropped = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(0);
    let mut capture = hosts.capture;
    capture.extend(losses.capture);
    for sender in &hosts.senders {
        capture.extend(sender.record.verdicts.iter().map(|&(at, seq)| CaptureRow {
            at,
            flow: sender.flow,
            event: CaptureEvent::SegmentLost(seq),
        }));
    }
    capture.retain(|row| (row.flow as usize) < spec.flows.len());
    capture.sort_by_key(|row| row.at);
    let mut links = path.links;
    links.extend(hosts.interfaces);
    links.sort_by_key(|(i, _)| *i);
    same_number("links", links.len(), spec.links.len())?;
    let flows = flows(
        spec,
        hosts.senders,
        hosts.receivers,
        &losses.flows,
        path.exact,
    )?;
    same_number("classes", hosts.classes.len(), spec.arrivals.len())?;
    let arrivals = hosts.classes.into_iter().enumerate();
    let arrivals: Vec<ArrivalOutcome> = arrivals
        .map(|(i, mut class)| {
            let first = losses.first.iter();
            for (_, flow, segment) in first.filter(|(class, ..)| *class as usize == i) {
                if let Some(transfer) = class.transfers.get_mut(*flow as usize) {
                    transfer.lost |= 1 << (segment % 64);
                }
            }
            let lost = dropped(&losses.classes, i);
            class.totals.dropped = class.totals.dropped.saturating_add(lost);
            if !path.exact {
                class.totals.dropped = missing(&class.totals);
            }
            class
        })
        .collect();
    same_number(
        "sources of cross traffic",
        hosts.cross.len(),
        spec.cross.len(),
    )?;
    let cross = hosts.cross.into_iter().enumerate();
    let cross = cross.map(|(i, mut cross)| {
        cross.dropped = cross.dropped.saturating_add(dropped(&losses.cross, i));
        if path.exact && !cross.answered {
            conserve(&cross.name, cross.sent, cross.arrived, cross.dropped)?;
        }
        Ok(cross)
    });
    let cross = cross.collect::<Result<_, String>>()?;
    Ok(Outcome {
        // Shorter if it was stopped because all was done.
        duration: spec.duration.min(hosts.ended.saturating_since(Time::ZERO)),
        measure_from: spec.measure_from,
        interval: spec.interval,
        delivered_packets: delivered_packets(&flows, &arrivals),
        flows,
        links: links.into_iter().map(|(_, link)| link).collect(),
        arrivals,
        cross,
        capture,
        events: hosts.counts.turns,
        fidelity: path.fidelity.map(|fidelity| Fidelity {
            // A short flow that found no number is lost whole.
            unplanned_drops: fidelity
                .unplanned_drops
                .saturating_add(hosts.counts.socket_drops)
                .saturating_add(hosts.counts.refused)
                .saturating_add(hosts.counts.unnumbered),
            local_stalls: fidelity
                .local_stalls
                .saturating_add(hosts.counts.local_stalls),
            ..fidelity
        }),
        partial: None,
    })
}

/// The flows of the specification, from their two ends and what the path dropped of each.
fn flows(
    spec: &RunSpec,
    mut senders: Vec<SenderReport>,
    mut receivers: Vec<ReceiverReport>,
    losses: &[u64],
    exact: bool,
) -> Result<Vec<FlowOutcome>, String> {
    senders.sort_by_key(|s| s.flow);
    receivers.sort_by_key(|r| r.flow);
    same_number("senders", senders.len(), spec.flows.len())?;
    same_number("receivers", receivers.len(), spec.flows.len())?;
    let mut flows = Vec::with_capacity(spec.flows.len());
    let ends = senders.into_iter().zip(receivers);
    for ((i, f), (s, r)) in spec.flows.iter().enumerate().zip(ends) {
        if (s.flow as usize, r.flow as usize) != (i, i) {
            return Err(format!("flow {}: a host does not report it", f.name));
        }
        if !is_square(&s.record.series) || r.arrivals.delivered.len() != r.arrivals.arrived.len() {
            return Err(format!("flow {}: columns of different lengths", f.name));
        }
        let mut totals = s.totals.plus(r.totals);
        let lost = losses.get(i).copied().unwrap_or(0);
        totals.dropped = totals.dropped.saturating_add(lost);
        if exact {
            let gone = totals.dropped.saturating_add(r.not_taken);
            conserve(&f.name, s.offered, r.arrived, gone)?;
        } else {
            conserve(&f.name, s.offered, r.totals.delivered, 0)?;
            totals.dropped = missing(&totals);
        }
        let timing = (s.started, s.completed);
        flows.push(FlowOutcome::new(f, totals, s.record, r.arrivals, timing));
    }
    Ok(flows)
}

/// What a network lost that does not say so: of what has been repaired, every transmission that did
/// not arrive, as each loss takes one retransmission, and each that was needless arrives as a
/// duplicate.
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

#[cfg(test)]
mod tests {
    use fullpipe_run::SenderRecord;

    use super::*;

    fn ends(completed: bool, far_ms: u64) -> u64 {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut record = SenderRecord::default();
        record.rtt.record(Span::from_millis(64));
        let near = HostOutcome {
            senders: vec![SenderReport {
                flow: 0,
                totals: FlowTotals::default(),
                offered: 0,
                record,
                started: Time::ZERO,
                completed: completed.then_some(at(1900)),
                acked: 0,
            }],
            ended: at(2000),
            ..HostOutcome::default()
        };
        let far = HostOutcome {
            ended: at(far_ms),
            ..HostOutcome::default()
        };
        last_arrivals(&near, &far).as_nanos() / 1_000_000
    }

    #[test]
    fn the_time_of_what_was_on_its_way_counts_with_it() {
        assert_eq!(ends(false, 2050), 2050);
        // Stopped by a word that was sent again; by a host whose clock began later, or that lies.
        assert_eq!(ends(false, 2500), 2064);
        assert_eq!(ends(false, 1990), 2000);
        assert_eq!(ends(false, u64::MAX / 2_000_000), ends(false, 2500));
        // Nothing was on its way.
        assert_eq!(ends(true, 2050), 2000);
    }
}
