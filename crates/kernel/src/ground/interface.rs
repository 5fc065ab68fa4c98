//! What the interfaces of hosts send back to their senders.

use fullpipe_emulate::namespace::{DEVICE, Side};
use fullpipe_emulate::netlink::Links;
use fullpipe_emulate::stage::Stage as Hosts;
use fullpipe_run::{FlowTotals, GroundError, Outcome};

use super::errors::lacks;
use crate::plan::{HANDLE, Plan};

/// Packets that each interface has sent back to its senders so far.
pub(super) fn sent_back(hosts: &Hosts, plan: &Plan) -> Result<Vec<u64>, GroundError> {
    let of = |side: Side| {
        if !plan.interfaces.iter().any(|i| i.side == side) {
            return Ok(Vec::new());
        }
        let counted = hosts
            .host(side)
            .enter(|| Links::open()?.refused(DEVICE, HANDLE));
        counted.map_err(|e| lacks("counters of an interface", &e))
    };
    let (near, far) = (of(Side::Near)?, of(Side::Far)?);
    let all = plan.interfaces.iter().map(|i| {
        let of = if i.side == Side::Near { &near } else { &far };
        let counted = of.iter().find(|(class, _)| *class == i.class);
        counted.map_or(0, |(_, n)| *n)
    });
    Ok(all.collect())
}

/// What interfaces have sent back, as stalls of their flows: an interface does not tell them apart,
/// so those that share it have equal parts.
pub(super) fn stalls(outcome: &mut Outcome, plan: &Plan, stalled: Vec<u64>) {
    let flows = outcome.flows.iter_mut().map(|f| &mut f.totals);
    let classes = outcome.arrivals.iter_mut().map(|a| &mut a.totals);
    let plans = plan
        .flows
        .iter()
        .chain(plan.classes.iter().map(|c| &c.flow));
    let mut of: Vec<Vec<&mut FlowTotals>> = stalled.iter().map(|_| Vec::new()).collect();
    for (totals, flow) in flows.chain(classes).zip(plans) {
        if let Some(sharing) = flow.interface.and_then(|i| of.get_mut(i)) {
            sharing.push(totals);
        }
    }
    for (sharing, n) in of.into_iter().zip(stalled) {
        let many = sharing.len() as u64;
        for (k, totals) in sharing.into_iter().enumerate() {
            totals.local_stalls = n / many + u64::from((k as u64) < n % many);
        }
    }
}
