//! Changes of a link over time.

use fullpipe_run::Change;
use fullpipe_units::{Rate, Span, Time};

use super::ElementResolver;
use crate::keys;
use crate::value::{At, Findings, Key};

/// An entry of a schedule.
pub(in crate::resolve) struct Entry<'a> {
    pub at: At<'a, keys::Change>,
    /// The key that changes the delay.
    pub delay_key: Key,
    /// The link's delay from then on.
    pub delay: Option<Span>,
}

impl ElementResolver<'_> {
    /// Changes over time of a link with this rate and in a run of this duration, as far as they are
    /// known.
    pub fn schedule(
        &self,
        entries: Vec<Entry<'_>>,
        rate: Option<Rate>,
        duration: Option<Span>,
        findings: &mut Findings,
    ) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        // Rate after the last change, and the end of the last outage.
        let (mut current, mut dark) = (rate, Time::ZERO);
        let mut last: Option<Time> = None;
        for Entry {
            at: entry,
            delay_key,
            delay,
        } in entries
        {
            use keys::Change as Keys;
            entry.required_keys(findings);
            let Some(at) = entry.at.map(|at| Time::ZERO + at) else {
                continue;
            };
            if last.is_some_and(|last| at <= last) {
                let message = "this entry is not after the one before it";
                entry.refuse(findings, &Keys::at, message, "sort the entries by time");
            }
            last = Some(at);
            if duration.is_some_and(|duration| at >= Time::ZERO + duration) {
                let message = "the run is over by then: nothing changes";
                entry.warn(findings, &Keys::at, message);
            }
            let what = [Keys::rate, Keys::outage, Keys::loss, delay_key];
            if !what.iter().any(|key| entry.is_attempted(key)) {
                let names = what.map(|key| key.name).join(", ");
                let hint = format!("give one or more of {names}");
                findings.refuse_table(entry.record.at, &entry.path, "nothing changes here", &hint);
            }
            let timed = [Keys::rate, Keys::outage];
            for key in timed.iter().filter(|key| entry.is_given(key)) {
                if self.at.trace.is_some() {
                    let message = "the trace says when packets leave, not a rate";
                    let hint = "take it out of the schedule, or leave `trace` out";
                    entry.refuse(findings, key, message, hint);
                } else if at < dark {
                    let message = "the outage before it lasts beyond this";
                    let hint = "shorten `outage`, or put it later";
                    entry.refuse(findings, key, message, hint);
                } else if rate.is_none() {
                    let message = "the link has no rate that could change";
                    entry.refuse(findings, key, message, "set its `rate`");
                }
            }
            if timed.iter().all(|key| entry.is_given(key)) {
                let message = "an outage and a rate at once";
                let hint = "put the rate into an entry after the outage";
                entry.refuse(findings, &Keys::outage, message, hint);
            }
            let loss = entry.loss.as_ref();
            let mut change = Change {
                at,
                rate: entry.rate,
                delay,
                loss: loss.map(|value| keys::loss(&entry, &Keys::loss, value, findings)),
            };
            current = change.rate.or(current);
            // What ends an outage does not come before what happens in it.
            if let Some(outage) = entry.outage {
                change.rate = Some(Rate::from_bits_per_sec(0));
                dark = at + outage;
                let end = duration.map(|duration| Time::ZERO + duration);
                if end.is_some_and(|end| at < end && dark > end) {
                    let message = "the run ends before this does";
                    entry.warn(findings, &Keys::outage, message);
                }
                changes.push(change);
                changes.push(Change {
                    at: dark,
                    rate: current,
                    delay: None,
                    loss: None,
                });
                continue;
            }
            changes.push(change);
        }
        changes.sort_by_key(|change| change.at);
        changes
    }
}
