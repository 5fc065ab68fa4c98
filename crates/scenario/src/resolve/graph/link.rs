//! `[[link]]`: links by name, laid out before and after the routes that cross them are known.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::Span;

use super::sender::own_rtt;
use super::{Layout, Leg};
use crate::files::Files;
use crate::matrix::{Config, Names};
use crate::resolve::Findings;
use crate::resolve::path::mean_rate;
use crate::value::{Record, member_path};

impl Layout {
    /// `[[link]]` and `[[route]]`.
    pub(super) fn graph(
        &mut self,
        config: &Config,
        names: &Names,
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let first = self.links.len();
        for (record, name) in config.links.iter().zip(&names.links) {
            let path = member_path("link", name);
            let element = self.element(record, &path);
            if self.links.iter().any(|link| link.name == *name) {
                let message = "[path] has a link of this name";
                findings.refuse(record, "name", &path, message, "choose another name");
            }
            let trace = element.trace(files, findings);
            let rate = record.rate("rate").or(trace.as_deref().map(mean_rate));
            for key in ["buffer", "queue"]
                .iter()
                .filter(|key| record.is_given(key))
            {
                if rate.is_none() {
                    let message = "the link has no rate: nothing waits";
                    findings.refuse(record, key, &path, message, "set its `rate`");
                }
            }
            let delay = record.span("delay").unwrap_or(Span::ZERO);
            let mut link = LinkSpec {
                loss: element.loss(findings),
                trace,
                ..LinkSpec::new(name, rate, delay, Buffer::Unlimited)
            };
            element.disturb(&mut link, findings);
            let later = |entry: &Record| entry.span("delay");
            link.schedule = element.schedule(rate, duration, later, findings);
            self.links.push(link);
        }
        for (i, route) in config.routes.iter().enumerate() {
            self.route(route, &format!("route[{}]", i + 1), config, names, findings);
        }
        // A BDP is that of the longest round trip over the link.
        for (i, (record, name)) in config.links.iter().zip(&names.links).enumerate() {
            let i = first + i;
            let own = |name: &String, leg: &Leg| own_rtt(config, names, name).unwrap_or(leg.rtt);
            let crossing = self.routes.iter().filter(|(_, leg)| leg.crosses(i));
            let longest = crossing
                .map(|(name, leg)| own(name, leg).max(leg.rtt))
                .max();
            let path = member_path("link", name);
            let Some(longest) = longest else {
                if i < self.links.len() && !config.routes.is_empty() {
                    findings.warn(record, "name", &path, "no route crosses this link");
                }
                continue;
            };
            let Some(rate) = self.links[i].rate else {
                continue;
            };
            let element = self.element(record, &path);
            if let Some((buffer, room)) = element.buffer(rate, longest, findings) {
                self.links[i].buffer = buffer;
                self.room += room;
            }
            self.links[i].discipline = element.queue(rate, longest, findings);
        }
        if let (Some(record), true) = (config.links.first(), config.routes.is_empty()) {
            let message = "no [[route]] says who crosses the links";
            let hint = "write [[route]] with `flow` and `forward`";
            findings.refuse_table(record.at, "link", message, hint);
        }
    }
}
