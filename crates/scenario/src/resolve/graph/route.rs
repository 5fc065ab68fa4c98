//! `[[route]]`: who crosses which links.

use std::collections::HashMap;

use fullpipe_units::Span;

use super::super::tables::Tables;
use super::sender::Sender;
use super::{Layout, Leg};
use crate::document::shorten;
use crate::keys::{FlowKeys, Route};
use crate::value::{At, Findings, Key, did_you_mean};

/// Who and what a route may name.
pub(super) struct Known<'a> {
    /// Flows and traffic.
    pub senders: HashMap<&'a str, Sender<'a>>,
    /// Indices of links.
    pub links: HashMap<String, usize>,
}

impl Layout {
    pub(super) fn route(
        &mut self,
        route: &At<'_, Route>,
        tables: &Tables<'_>,
        known: &Known<'_>,
        findings: &mut Findings,
    ) {
        let complete = route.required_keys(findings);
        let (Some(name), true) = (&route.flow, complete) else {
            return;
        };
        let Some(sender) = known.senders.get(name.as_str()) else {
            let flows = tables.flows.iter().map(|flow| flow.name);
            let all = flows.chain(tables.traffic.iter().map(|traffic| traffic.name));
            let hint = did_you_mean(name, all);
            let message = format!("there is no flow or traffic `{}`", shorten(name));
            route.refuse(findings, &Route::flow, message, hint);
            return;
        };
        if self.routes.contains_key(name) {
            let message = "another route has this flow";
            route.refuse(findings, &Route::flow, message, "keep one of them");
            return;
        }
        if sender.is_reverse() {
            let message = "the route says where it goes";
            let hint = "leave `direction` out, and turn the lists of [[route]] round";
            sender
                .at
                .refuse(findings, &FlowKeys::direction, message, hint);
        }
        let (there, home) = (route.forward.as_deref(), route.back.as_deref());
        let (Some(forward), Some(back)) = (
            self.listed(route, &Route::forward, there, &known.links, findings),
            self.listed(route, &Route::back, home, &known.links, findings),
        ) else {
            return;
        };
        let delay = |links: &[usize]| {
            links
                .iter()
                .fold(Span::ZERO, |sum, i| sum + self.links[*i].delay)
        };
        let (there, home) = (delay(&forward), delay(&back));
        let rated = forward
            .iter()
            .filter_map(|i| Some((self.links[*i].rate?, *i)));
        let Some((capacity, bottleneck)) = rated.min() else {
            let message = "no link of the route has a rate";
            route.refuse(
                findings,
                &Route::forward,
                message,
                "give one of them a `rate`",
            );
            return;
        };
        let rtt = there + if back.is_empty() { there } else { home };
        if rtt == Span::ZERO {
            let hint = "give one of the links a `delay`";
            route.refuse(
                findings,
                &Route::forward,
                "the round trip takes no time",
                hint,
            );
            return;
        }
        let leg = Leg {
            forward,
            covered: there + home,
            back,
            rtt,
            capacity,
            bottleneck,
            is_route: true,
        };
        self.routes.insert(name.clone(), leg);
    }

    /// Indices of the links of a list.
    fn listed(
        &self,
        route: &At<'_, Route>,
        key: &Key,
        names: Option<&[String]>,
        known: &HashMap<String, usize>,
        findings: &mut Findings,
    ) -> Option<Vec<usize>> {
        if names.is_none() && route.is_given(key) {
            return None;
        }
        let mut links = Vec::new();
        for name in names.unwrap_or_default() {
            let Some(&i) = known.get(name) else {
                let known = || self.links.iter().map(|link| link.name.as_str());
                let hint = did_you_mean(name, known());
                let message = format!("there is no link `{}`", shorten(name));
                route.refuse(findings, key, message, hint);
                return None;
            };
            if links.contains(&i) {
                let message = format!("link `{}` stands twice", shorten(name));
                route.refuse(findings, key, message, "a packet crosses a link once");
                return None;
            }
            links.push(i);
        }
        Some(links)
    }
}
