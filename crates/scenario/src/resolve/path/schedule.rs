//! Changes of a link over time.

use fullpipe_run::Change;
use fullpipe_units::{Rate, Span, Time};

use super::Element;
use super::loss::loss;
use crate::resolve::{Findings, required};
use crate::value::{Record, Value};

impl Element<'_> {
    /// Changes over time. `delay` makes a link's delay of what an entry says about it.
    pub fn schedule(
        &self,
        rate: Option<Rate>,
        duration: Option<Span>,
        delay: impl Fn(&Record) -> Option<Span>,
        findings: &mut Findings,
    ) -> Vec<Change> {
        let entries = self.record.many("schedule");
        let mut changes: Vec<Change> = Vec::new();
        // Rate after the last change, and the end of the last outage.
        let (mut current, mut dark) = (rate, Time::ZERO);
        let mut last: Option<Time> = None;
        for (i, entry) in entries.iter().enumerate() {
            let Value::Record(entry) = entry else {
                continue;
            };
            let path = format!("{}.schedule[{}]", self.path, i + 1);
            if !required(findings, entry, "at", &path, r#"at = "10s""#) {
                continue;
            }
            let Some(at) = entry.span("at").map(|at| Time::ZERO + at) else {
                continue;
            };
            if last.is_some_and(|last| at <= last) {
                let message = "this entry is not after the one before it";
                findings.refuse(entry, "at", &path, message, "sort the entries by time");
            }
            last = Some(at);
            if duration.is_some_and(|duration| at >= Time::ZERO + duration) {
                findings.warn(
                    entry,
                    "at",
                    &path,
                    "the run is over by then: nothing changes",
                );
            }
            let what = ["rate", "outage", "loss", "rtt", "delay"];
            let known = |name: &&str| entry.keys.iter().any(|key| key.name == *name);
            if !what
                .iter()
                .filter(|name| known(name))
                .any(|name| entry.is_attempted(name))
            {
                let names: Vec<&str> = what.into_iter().filter(|name| known(name)).collect();
                let hint = format!("give one or more of {}", names.join(", "));
                findings.refuse_table(entry.at, &path, "nothing changes here", &hint);
            }
            for name in ["rate", "outage"]
                .iter()
                .filter(|name| entry.is_given(name))
            {
                if self.record.text("trace").is_some() {
                    let message = "the trace says when packets leave, not a rate";
                    let hint = "take it out of the schedule, or leave `trace` out";
                    findings.refuse(entry, name, &path, message, hint);
                } else if at < dark {
                    let message = "the outage before it lasts beyond this";
                    findings.refuse(
                        entry,
                        name,
                        &path,
                        message,
                        "shorten `outage`, or put it later",
                    );
                } else if rate.is_none() {
                    let message = "the link has no rate that could change";
                    findings.refuse(entry, name, &path, message, "set its `rate`");
                }
            }
            if entry.is_given("rate") && entry.is_given("outage") {
                let message = "an outage and a rate at once";
                let hint = "put the rate into an entry after the outage";
                findings.refuse(entry, "outage", &path, message, hint);
            }
            let loss = entry
                .is_given("loss")
                .then(|| loss(entry, "loss", &path, findings));
            let mut change = Change {
                at,
                rate: entry.rate("rate"),
                delay: delay(entry),
                loss,
            };
            current = change.rate.or(current);
            // What ends an outage does not come before what happens in it.
            if let Some(outage) = entry.span("outage") {
                change.rate = Some(Rate::from_bits_per_sec(0));
                dark = at + outage;
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
