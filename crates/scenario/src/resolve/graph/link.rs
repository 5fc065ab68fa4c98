//! `[[link]]`: links by name, laid out before and after the routes that cross them are known.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::super::path::{Entry, mean_rate};
use super::super::tables::Tables;
use super::Layout;
use super::route::Known;
use super::sender::everyone;
use crate::files::Files;
use crate::keys::{DelayChange, Element, LinkKeys, lasting};
use crate::value::{At, Findings};

/// How the names of links begin that hosts and ways back have beside those of `[[link]]`.
const MADE: [&str; 4] = ["nic-", "return-", "extra-", "spread-"];

impl Layout {
    /// `[[link]]` and `[[route]]`.
    pub(super) fn graph(
        &mut self,
        tables: &Tables<'_>,
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let first = self.links.len();
        for link in &tables.links {
            let (table, name) = (&link.at, link.name);
            let element = self.element(table.record, &table.path);
            if self.links.iter().any(|link| link.name == *name) {
                let message = "[path] has a link of this name";
                table.refuse(findings, &LinkKeys::name, message, "choose another name");
            } else if let Some(prefix) = MADE.iter().find(|prefix| name.starts_with(**prefix)) {
                let message =
                    format!("links whose names begin with `{prefix}` are made by fullpipe");
                table.refuse(findings, &LinkKeys::name, message, "choose another name");
            }
            let trace = element.trace(files, findings);
            let rate = table.own.rate.or(trace.as_deref().map(mean_rate));
            // One that cannot be read is a fault already; what follows from its absence is none.
            let tried = [LinkKeys::rate, Element::trace];
            let is_wrong = tried.iter().any(|key| table.is_attempted(key));
            let rate = rate.or(is_wrong.then_some(Rate::from_bits_per_sec(1_000_000_000)));
            let queueing = [Element::buffer, Element::queue];
            for key in queueing.iter().filter(|key| table.is_given(key)) {
                if rate.is_none() {
                    let message = "the link has no rate: nothing waits";
                    table.refuse(findings, key, message, "set its `rate`");
                }
            }
            let mut link = LinkSpec {
                loss: lasting(table, &Element::loss, &table.element.loss, findings),
                trace,
                ..LinkSpec::new(name, rate, table.own.delay, Buffer::Unlimited)
            };
            element.disturb(&mut link, findings);
            let entries = table.changes.schedule.iter().flatten().enumerate();
            let entries = entries.map(|(i, entry)| {
                let path = format!("{}.schedule[{}]", table.path, i + 1);
                Entry {
                    delay: At::<DelayChange>::new(&entry.record, "").delay,
                    delay_key: DelayChange::delay,
                    at: At::new(&entry.record, path),
                }
            });
            link.schedule = element.schedule(entries.collect(), rate, duration, findings);
            self.links.push(link);
        }
        // The first of a name that is there twice, which is refused.
        let links = self.links.iter().enumerate().rev();
        let known = Known {
            senders: everyone(tables)
                .into_iter()
                .rev()
                .map(|s| (s.name, s))
                .collect(),
            links: links.map(|(i, link)| (link.name.clone(), i)).collect(),
        };
        for route in &tables.routes {
            self.route(route, tables, &known, findings);
        }
        // A BDP is that of the longest round trip over the link.
        let mut longest: Vec<Option<Span>> = vec![None; self.links.len()];
        for (name, leg) in &self.routes {
            let own = known.senders.get(name.as_str()).and_then(|s| s.at.rtt);
            let rtt = own.map_or(leg.rtt, |own| own.max(leg.rtt));
            for &i in leg.forward.iter().chain(&leg.back) {
                longest[i] = longest[i].max(Some(rtt));
            }
        }
        for (i, link) in tables.links.iter().enumerate() {
            let (table, i) = (&link.at, first + i);
            let Some(longest) = longest[i] else {
                if !tables.routes.is_empty() {
                    table.warn(findings, &LinkKeys::name, "no route crosses this link");
                }
                continue;
            };
            let Some(rate) = self.links[i].rate else {
                continue;
            };
            let element = self.element(table.record, &table.path);
            let (size, key) = (table.element.buffer, &Element::buffer);
            if let Some((buffer, room)) = element.buffer(size, key, rate, longest, findings) {
                self.links[i].buffer = buffer;
                self.room += room;
            }
            let (queue, key) = (&table.element.queue, &Element::queue);
            self.links[i].discipline = element.queue(queue, key, (rate, longest), findings);
        }
        if let (Some(link), true) = (tables.links.first(), tables.routes.is_empty()) {
            let message = "no [[route]] says who crosses the links";
            let hint = "write [[route]] with `flow` and `forward`";
            findings.refuse_table(link.at.record.at, "link", message, hint);
        }
    }
}
