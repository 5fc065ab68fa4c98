//! `[path]`: one bottleneck, and a way back that is a link of its own if something can wait there.

use fullpipe_run::LinkSpec;
use fullpipe_units::{Rate, Span};

use super::super::path::{Entry, NO_ROUND_TRIP, mean_rate};
use super::super::tables::Tables;
use super::Layout;
use super::sender::Sender;
use crate::files::Files;
use crate::keys::{Back, Element, PathChange, PathChanges, PathKeys, RttChange, lasting};
use crate::value::{At, Findings, Table};

/// The network that `[path]` describes.
#[derive(Clone, Copy, Debug)]
pub(in crate::resolve) struct Dumbbell {
    pub rate: Rate,
    pub rtt: Span,
    /// The link named `return`, if it is more than a delay.
    pub(super) back: Option<usize>,
    pub(super) back_rate: Rate,
    /// Propagation over `bottleneck`, and over `return`.
    pub(super) delays: (Span, Span),
}

impl Layout {
    pub(super) fn dumbbell(
        &mut self,
        tables: &Tables<'_>,
        senders: &[Sender<'_>],
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let path = &tables.path;
        let element = self.element(path.record, "path");
        let trace = element.trace(files, findings);
        let has_rate = path.element.trace.is_some() || path.required(&PathKeys::rate, findings);
        let has_rtt = path.required(&PathKeys::rtt, findings);
        let loss_there = lasting(path, &Element::loss, &path.element.loss, findings);
        let rate = path.own.rate.or(trace.as_deref().map(mean_rate));
        let (Some(rate), Some(rtt), true) = (rate, path.own.rtt, has_rate && has_rtt) else {
            return;
        };
        if duration.is_some_and(|duration| rtt >= duration) {
            path.warn(findings, &PathKeys::rtt, NO_ROUND_TRIP);
        }
        let size = path.element.buffer;
        let room = element.buffer(size, &Element::buffer, rate, rtt, findings);
        let Some((buffer, room)) = room else {
            return;
        };
        element.warn_of_ties(room, rate, findings);
        // Half of the shortest RTT each way, unless the RTT is to become shorter than that.
        let of_path = senders.iter().any(Sender::takes_rtt_of_path).then_some(rtt);
        let own = senders.iter().filter_map(Sender::rtt);
        let shortest = own.chain(of_path).min().unwrap_or(rtt);
        let changes: Vec<At<'_, PathChange>> = (path.changes.schedule.iter().flatten().enumerate())
            .map(|(i, entry)| At::new(&entry.record, format!("path.schedule[{}]", i + 1)))
            .collect();
        let lowest = changes.iter().filter_map(|change| change.own.rtt);
        let lowest = lowest.min().unwrap_or(rtt).min(rtt);
        let forward = (shortest / 2).max(rtt - lowest);
        if forward > shortest {
            let message = "a flow's own `rtt` is too short for these changes";
            path.refuse(
                findings,
                &PathChanges::schedule,
                message,
                "raise the lowest `rtt`",
            );
            return;
        }
        let queue = &path.element.queue;
        let mut link = LinkSpec {
            loss: loss_there,
            discipline: element.queue(queue, &Element::queue, (rate, rtt), findings),
            trace,
            ..LinkSpec::new("bottleneck", Some(rate), forward, buffer)
        };
        element.disturb(&mut link, findings);
        let loss_of_acks = link.loss_of_acks;
        let entries = changes.into_iter().map(|change| Entry {
            delay: (change.own.rtt).map(|later| (forward + later).saturating_sub(rtt)),
            delay_key: RttChange::rtt,
            at: At::new(change.record, change.path),
        });
        link.schedule = element.schedule(entries.collect(), Some(rate), duration, findings);
        self.links.push(link);
        self.room += room;

        let given = Back::KEYS.iter().any(|key| path.is_given(key));
        let reverse = senders.iter().any(Sender::is_reverse);
        let back_rate = path.back.return_rate.or(path.own.rate).unwrap_or(rate);
        let mut back = None;
        if given || reverse {
            let loss = lasting(path, &Back::return_loss, &path.back.return_loss, findings);
            let size = path.back.return_buffer.unwrap_or(size);
            let room = element.buffer(size, &Back::return_buffer, back_rate, rtt, findings);
            let Some((buffer, room)) = room else {
                return;
            };
            if path.is_given(&Back::return_loss) && !loss_of_acks && !reverse {
                let message = "only ACKs cross the way back, and these are spared: \
                               `loss_of_acks = true` in [path] loses them too";
                path.warn(findings, &Back::return_loss, message);
            }
            let (queue, key) = match &path.back.return_queue {
                Some(queue) => (queue, &Back::return_queue),
                None => (queue, &Element::queue),
            };
            self.links.push(LinkSpec {
                loss,
                loss_of_acks,
                discipline: element.queue(queue, key, (back_rate, rtt), findings),
                ..LinkSpec::new("return", Some(back_rate), shortest - forward, buffer)
            });
            self.room += room;
            back = Some(self.links.len() - 1);
        }
        self.dumbbell = Some(Dumbbell {
            rate,
            rtt,
            back,
            back_rate,
            delays: (forward, shortest - forward),
        });
    }
}
