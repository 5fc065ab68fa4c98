//! Queues that are to mark packets instead of dropping them, and flows that ask for it: one without
//! the other does nothing.

use fullpipe_metrics::{FlowGroup, TrafficGroup, TrafficKind};
use fullpipe_run::{FlowSpec, RunSpec};

use super::tables::Tables;
use crate::keys::{Back, Element, QueueKind, QueueTable};
use crate::value::{At, Either, Findings, Key, Sub};

/// Warns of queues that mark over which no flow asks for it. `groups`: who sends in `spec`, whose
/// links are there.
pub(super) fn warn(
    tables: &Tables<'_>,
    groups: (&[FlowGroup], &[TrafficGroup]),
    spec: &RunSpec,
    findings: &mut Findings,
) {
    let senders = Senders { groups, spec };
    let path = &tables.path;
    let back = path.back.return_queue.as_ref();
    let of_path: &[&str] = match back {
        None => &["bottleneck", "return"],
        Some(_) => &["bottleneck"],
    };
    senders.warn(
        path,
        (&Element::queue, &path.element.queue),
        of_path,
        findings,
    );
    if let Some(queue) = back {
        senders.warn(path, (&Back::return_queue, queue), &["return"], findings);
    }
    for link in &tables.links {
        let queue = (&Element::queue, &link.at.element.queue);
        senders.warn(&link.at, queue, &[link.name], findings);
    }
}

struct Senders<'a> {
    groups: (&'a [FlowGroup], &'a [TrafficGroup]),
    spec: &'a RunSpec,
}

impl Senders<'_> {
    /// Warns of the queue that a table gives to these links.
    fn warn<T>(
        &self,
        table: &At<'_, T>,
        (key, queue): (&Key, &Either<QueueKind, Sub<QueueTable>>),
        links: &[&str],
        findings: &mut Findings,
    ) {
        let Either::Second(sub) = queue else {
            return;
        };
        let queue = table.inside(key, sub);
        let all = self.spec.links.iter().enumerate();
        let marking =
            all.filter(|(_, link)| links.contains(&link.name.as_str()) && link.discipline.marks());
        let marking: Vec<usize> = marking.map(|(i, _)| i).collect();
        let over: Vec<(String, &FlowSpec)> = (self.all())
            .filter(|(_, flow)| flow.forward.iter().any(|link| marking.contains(link)))
            .collect();
        if marking.is_empty() || over.iter().any(|(_, flow)| flow.sender.ecn) {
            return;
        }
        let message = match over.as_slice() {
            [] => "nothing is marked: no flow sends over this queue".to_owned(),
            [(first, _), ..] => {
                let names: Vec<String> = over.iter().map(|(key, _)| format!("`{key}`")).collect();
                let none = match names.as_slice() {
                    [one] => format!("{one}, alone over this queue, does not ask"),
                    [shown @ .., last] if shown.len() < MOST_NAMES => {
                        format!(
                            "over this queue neither {} nor {last} asks",
                            shown.join(", ")
                        )
                    }
                    all => format!(
                        "over this queue none of {} and {} more asks",
                        all[..MOST_NAMES].join(", "),
                        all.len() - MOST_NAMES
                    ),
                };
                format!("nothing is marked: {none} for ECN, as `{first}.ecn = true` does")
            }
        };
        let by_threshold = queue.is_given(&QueueTable::ce_threshold) && !queue.ecn;
        let key = match by_threshold {
            true => &QueueTable::ce_threshold,
            false => &QueueTable::ecn,
        };
        queue.warn(findings, key, &message);
    }

    /// Every connection's first, by the dotted key of its table.
    fn all(&self) -> impl Iterator<Item = (String, &FlowSpec)> {
        let flows = self.groups.0.iter().filter_map(|group| {
            let flow = self.spec.flows.get(group.members.start)?;
            Some((format!("flow.{}", group.name), flow))
        });
        let short = self.groups.1.iter();
        let short = short.filter(|group| group.kind == TrafficKind::ShortFlows);
        let short = short.filter_map(|group| {
            let class = self.spec.arrivals.get(group.index)?;
            Some((format!("traffic.{}", group.name), &class.template))
        });
        flows.chain(short)
    }
}

/// Flows that a message names.
const MOST_NAMES: usize = 4;
