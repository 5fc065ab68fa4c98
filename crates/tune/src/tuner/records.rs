//! What the kernel side tells of flows, and what the journal and the tuner remember of it.

use std::collections::BTreeSet;
use std::time::Duration;

use fullpipe_policy::Rule;

use super::decide::Decision;
use super::give_back::is_changed;
use super::orders::refusal;
use super::{CLOSED, Known, TuneError, Tuner, ceiling, ends, label, ordered_ceiling};
use crate::image::buffer_option;
use crate::journal::{Before, Entry, Given, Key};
use crate::kernel::Kernel;
use crate::layout::{Event, FlowRecord, Kind, Opened, Record};

impl<K: Kernel> Tuner<K> {
    /// A sign of life, and everything that happened since the last one.
    ///
    /// New flows that cannot be written down are given back: they could not be after a crash.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn tick(&mut self, wait: Duration) -> Result<(), TuneError> {
        self.beat()?;
        let records = self.kernel.records(wait)?;
        let mut entries = Vec::new();
        for record in records {
            match record {
                Record::Opened(opened) => entries.extend(self.note_opened(*opened)),
                Record::Event(event) => self.note(event),
            }
        }
        // All of them by one sync.
        let cookies: BTreeSet<u64> = entries.iter().map(|((_, cookie), _)| *cookie).collect();
        if let Err(e) = self.journal.touch(entries) {
            let why = "given back, as it could not be written down";
            let decisions = self.releasing(|l| cookies.contains(&l.cookie), why)?;
            return match self.execute(&decisions) {
                Ok(()) | Err(TuneError::Journal(_)) => Err(e.into()),
                Err(worse) => Err(worse),
            };
        }
        self.divide()
    }

    /// A new flow, to which the kernel side has given its rule.
    fn note_opened(&mut self, o: Opened) -> Option<(Key, Entry)> {
        let rule = o.flow.rule.and_then(|n| self.numbers.name(n));
        let rule = self.each.iter().find(|r| Some(r.name.as_str()) == rule);
        let (name, stack) = rule.map_or(("?", "?"), |r| (&r.name, &r.stack));
        let label = ends(o.local, o.remote);
        self.log.push(match (o.flow.control, o.done) {
            (true, _) => format!("{label}: new, rule {name}: kept for comparison"),
            (_, 0) => format!("{label}: new, rule {name} ({stack}), was {}", o.flow.before),
            (_, e) => format!("{label}: new, rule {name}: {}", refusal(e)),
        });
        if o.flow.control {
            return None;
        }
        let key = (o.namespace, o.flow.cookie);
        if self.journal.knows(key) {
            // It comes late: the flow was looked at in the meantime.
            return None;
        }
        let entry = Entry::of_record(label.clone(), &o.flow, rule);
        let known = Known {
            label,
            key,
            rule: o.flow.rule,
            sizes: rule.map_or((0, 0, 0), |r| sizes_given(r, &o.flow)),
            refused: o.done != 0,
        };
        self.known.insert(o.flow.cookie, known);
        Some((key, entry))
    }

    fn note(&mut self, event: Event) {
        if event.kind == Kind::Release
            && event.value == CLOSED
            && let Some(known) = self.known.remove(&event.cookie)
        {
            self.log.push(format!("{}: ended", known.label));
        }
        self.watched.push(event);
    }

    /// Flows whose record was lost, and those about which the journal is wrong: an order was
    /// written down and failed.
    pub(super) fn learn(&mut self, decisions: &[Decision]) -> Result<(), TuneError> {
        let mut entries = Vec::new();
        for d in decisions.iter().filter(|d| d.order.is_none()) {
            let record = d.seen.listing.flow.as_ref();
            let record = record.filter(|f| !f.control && !f.given.is_empty());
            let Some(record) = record.filter(|_| !is_changed(&d.seen)) else {
                continue;
            };
            let (label, key) = (label(&d.seen.listing), d.seen.key());
            let name = record.rule.and_then(|number| self.numbers.name(number));
            let rule = self.each.iter().find(|r| Some(r.name.as_str()) == name);
            let entry = self.journal.entry(key);
            if entry.is_none_or(|e| e.given.algorithm != record.given) {
                entries.push((key, Entry::of_record(label.clone(), record, rule)));
            }
            self.known.entry(record.cookie).or_insert_with(|| Known {
                label,
                key,
                rule: record.rule,
                sizes: rule.map_or((0, 0, 0), |rule| sizes_given(rule, record)),
                refused: false,
            });
        }
        Ok(self.journal.touch(entries)?)
    }
}

impl Entry {
    /// Of a flow, as the kernel side remembers it.
    fn of_record(flow: String, record: &FlowRecord, rule: Option<&Rule>) -> Self {
        let sizes = rule.map_or((0, 0, 0), |r| sizes_given(r, record));
        let (send_buffer, receive_buffer, _) = sizes;
        Self {
            flow,
            before: Before::kept(record),
            given: Given {
                algorithm: record.given.clone(),
                ceiling: rule.map_or(0, ceiling),
                send_buffer,
                receive_buffer,
            },
            earlier: Vec::new(),
        }
    }
}

/// Options of the buffers that the kernel side has given a flow, and its ceiling, as orders have
/// them. A part of a path's may have become another one since.
fn sizes_given(rule: &Rule, record: &FlowRecord) -> (u32, u32, u32) {
    let ceiling = ceiling_given(ordered_ceiling(rule), record);
    match rule.divide {
        // The kernel keeps twice the option (socket(7)).
        true => (record.given_send / 2, record.given_receive / 2, ceiling),
        false => (
            buffer_option(rule.send_buffer),
            buffer_option(rule.receive_buffer),
            ceiling,
        ),
    }
}

/// The ceiling that a flow has been ordered to have, where that should be `wanted`. A program's own
/// that is lower stays, and none is given then.
pub(super) fn ceiling_given(wanted: u32, record: &FlowRecord) -> u32 {
    match (wanted, record.ceiling) {
        (0, _) | (_, 0) => wanted,
        (_, given) => given,
    }
}
