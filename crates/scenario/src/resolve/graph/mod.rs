//! Links laid out: the dumbbell of `[path]`, the links of `[[link]]`, the interfaces of hosts, and
//! the ways over them.

mod dumbbell;
mod host;
mod link;
mod route;
mod sender;

use std::collections::{BTreeMap, HashSet};

use fullpipe_run::{Discipline, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::path::ElementResolver;
use super::tables::Tables;
use crate::document::Place;
use crate::files::Files;
use crate::keys::{Element, PathKeys, QueueKind};
use crate::value::{At, Findings, Key, Record, Words};
use dumbbell::Dumbbell;
use host::Host;
use sender::senders;

/// Links while they are being laid out.
#[derive(Debug)]
pub(super) struct Layout {
    pub links: Vec<LinkSpec>,
    /// Bytes of a full packet on the path.
    pub mtu: u32,
    pub dumbbell: Option<Dumbbell>,
    /// Packets that fit the buffers of all links.
    pub room: f64,
    pub at: Place,
    routes: BTreeMap<String, Leg>,
    hosts: BTreeMap<String, Host>,
}

/// The links of a flow as far as they are shared.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub forward: Vec<usize>,
    back: Vec<usize>,
    /// Propagation over these links.
    covered: Span,
    /// Round-trip propagation if the flow has none of its own.
    pub rtt: Span,
    pub capacity: Rate,
    /// The link that has it.
    pub bottleneck: usize,
    /// Runs over links of `[[route]]`.
    pub is_route: bool,
}

impl Layout {
    /// The links that are there whoever crosses them.
    pub fn new(
        tables: &Tables<'_>,
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) -> Option<Layout> {
        let before = findings.faults.len();
        let path = &tables.path;
        let mut layout = Layout {
            links: Vec::new(),
            mtu: path.own.mtu,
            dumbbell: None,
            room: 0.0,
            at: path.record.at,
            routes: BTreeMap::new(),
            hosts: BTreeMap::new(),
        };
        let senders = senders(tables);
        let routed = tables
            .routes
            .iter()
            .filter_map(|route| route.flow.as_deref());
        let routed: HashSet<&str> = routed.collect();
        // Links of their own for everyone: [path] is only about packets then.
        let all_routed =
            !tables.links.is_empty() && senders.iter().all(|s| routed.contains(s.name));
        let asked = [PathKeys::rate, PathKeys::rtt, Element::trace];
        let has_path = asked.iter().any(|key| path.is_attempted(key));
        if !tables.routes.is_empty() && !tables.links.is_empty() && !has_path {
            for sender in senders.iter().filter(|s| !routed.contains(s.name)) {
                let message = "no [[route]] says which links it crosses";
                let hint = format!(
                    "write [[route]] with flow = \"{}\" and `forward`, or [path] with `rate` and \
                     `rtt`",
                    sender.name
                );
                findings.refuse_table(sender.at.record.at, &sender.at.path, message, &hint);
            }
        } else if !all_routed || has_path {
            layout.dumbbell(tables, &senders, files, duration, findings);
        }
        if all_routed && !has_path {
            let useless = |key: &&Key| key.name != PathKeys::mtu.name;
            for key in path.record.given().filter(useless) {
                let message = "every flow has a route: nothing crosses [path]";
                path.warn(findings, key, message);
            }
        }
        layout.graph(tables, files, duration, findings);
        layout.hosts(&senders, findings);
        (findings.faults.len() == before).then_some(layout)
    }

    fn element<'a>(&self, record: &'a Record, path: &str) -> ElementResolver<'a> {
        ElementResolver {
            at: At::new(record, path),
            packet: self.mtu,
        }
    }

    /// Route of a flow or source in one direction.
    pub fn leg(&self, name: &str, reverse: bool) -> Option<Leg> {
        if let Some(leg) = self.routes.get(name) {
            return Some(leg.clone());
        }
        let d = self.dumbbell?;
        let (there, home) = if reverse {
            (d.back?, Some(BOTTLENECK))
        } else {
            (BOTTLENECK, d.back)
        };
        let covered = if home.is_some() {
            d.delays.0 + d.delays.1
        } else {
            d.delays.0
        };
        Some(Leg {
            forward: vec![there],
            back: home.into_iter().collect(),
            covered,
            rtt: d.rtt,
            capacity: if reverse { d.back_rate } else { d.rate },
            bottleneck: there,
            is_route: false,
        })
    }

    /// The links back of a flow with this RTT; flows with the same rest share the link that delays.
    /// A spread needs one for each stream, of this name.
    pub fn back(&mut self, leg: &Leg, rtt: Span, spread: Option<(Span, &str)>) -> Vec<usize> {
        let mut back = leg.back.clone();
        let rest = rtt.saturating_sub(leg.covered);
        if let Some((delay_spread, stream)) = spread {
            self.links.push(LinkSpec {
                delay_spread,
                ..LinkSpec::pure_delay(&format!("spread-{stream}"), rest)
            });
            back.push(self.links.len() - 1);
        } else if back.is_empty() || rest != Span::ZERO {
            let kind = if back.is_empty() { "return" } else { "extra" };
            let name = format!("{kind}-{rest}");
            let known = self.links.iter().position(|link| link.name == name);
            back.push(known.unwrap_or_else(|| {
                self.links.push(LinkSpec::pure_delay(&name, rest));
                self.links.len() - 1
            }));
        }
        back
    }

    /// Some queue on the way marks.
    pub fn marks(&self, leg: &Leg) -> bool {
        leg.forward
            .iter()
            .any(|i| self.links[*i].discipline.marks())
    }

    /// What a queue on the way that is to mark is called: as the first one that could, or CoDel
    /// where all are plain.
    pub fn could_mark(&self, leg: &Leg) -> &'static str {
        let kind = |i: &usize| match &self.links[*i].discipline {
            Discipline::DropTail => None,
            Discipline::Red(red) if red.adaptive => Some(QueueKind::AdaptiveRed),
            Discipline::Red(_) => Some(QueueKind::Red),
            Discipline::Pie(_) => Some(QueueKind::Pie),
            Discipline::Codel(_) => Some(QueueKind::Codel),
            Discipline::FqCodel(_) => Some(QueueKind::FqCodel),
        };
        let first = leg.forward.iter().find_map(kind);
        first.unwrap_or(QueueKind::Codel).word()
    }
}

const BOTTLENECK: usize = 0;
