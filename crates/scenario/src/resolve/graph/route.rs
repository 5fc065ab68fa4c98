//! `[[route]]`: who crosses which links.

use fullpipe_units::Span;

use super::sender::direction_of;
use super::{Layout, Leg, required};
use crate::document::shorten;
use crate::matrix::{Config, Names};
use crate::resolve::Findings;
use crate::value::{Record, Value, did_you_mean, member_path};

impl Layout {
    pub(super) fn route(
        &mut self,
        route: &Record,
        path: &str,
        config: &Config,
        names: &Names,
        findings: &mut Findings,
    ) {
        let flow = required(findings, route, "flow", path, r#"flow = "main""#);
        let forward = required(findings, route, "forward", path, r#"forward = ["first"]"#);
        let (Some(name), true, true) = (route.text("flow"), flow, forward) else {
            return;
        };
        let all = || names.flows.iter().chain(&names.traffic).map(String::as_str);
        if !all().any(|known| known == name) {
            let hint = did_you_mean(&name, all());
            let message = format!("there is no flow or traffic `{}`", shorten(&name));
            findings.refuse(route, "flow", path, message, &hint);
            return;
        }
        if self.routes.contains_key(&name) {
            let message = "another route has this flow";
            findings.refuse(route, "flow", path, message, "keep one of them");
            return;
        }
        if let Some((record, section)) = direction_of(config, names, &name) {
            let message = "the route says where it goes";
            let hint = "leave `direction` out, and turn the lists of [[route]] round";
            findings.refuse(
                record,
                "direction",
                &member_path(section, &name),
                message,
                hint,
            );
        }
        let (Some(forward), Some(back)) = (
            self.listed(route, "forward", path, findings),
            self.listed(route, "back", path, findings),
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
            findings.refuse(route, "forward", path, message, "give one of them a `rate`");
            return;
        };
        let rtt = if back.is_empty() {
            there + there
        } else {
            there + home
        };
        if rtt == Span::ZERO {
            let message = "the round trip takes no time";
            findings.refuse(
                route,
                "forward",
                path,
                message,
                "give one of the links a `delay`",
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
        self.routes.insert(name, leg);
    }

    /// Indices of the links of a list.
    fn listed(
        &self,
        route: &Record,
        key: &str,
        path: &str,
        findings: &mut Findings,
    ) -> Option<Vec<usize>> {
        let mut links = Vec::new();
        for value in route.many(key) {
            let Value::Text(name) = value else {
                return None;
            };
            let Some(i) = self.links.iter().position(|link| link.name == *name) else {
                let known = || self.links.iter().map(|link| link.name.as_str());
                let hint = did_you_mean(name, known());
                let message = format!("there is no link `{}`", shorten(name));
                findings.refuse(route, key, path, message, &hint);
                return None;
            };
            if links.contains(&i) {
                let message = format!("link `{}` stands twice", shorten(name));
                findings.refuse(route, key, path, message, "a packet crosses a link once");
                return None;
            }
            links.push(i);
        }
        Some(links)
    }
}
