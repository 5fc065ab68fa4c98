//! What is to be done about each running flow, by the rules in force.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use fullpipe_policy::{Action, Flow, Side, Verdict};

use super::give_back::is_changed;
use super::records::ceiling_given;
use super::{ESTABLISHED, LISTEN, Tuner, ordered_ceiling};
use crate::image::{algorithm, buffer_option};
use crate::kernel::{Kernel, Seen};
use crate::layout::{Listing, Order, OrderAction};

/// What is to be done about a running flow, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The socket.
    pub seen: Seen,
    /// `None`: it is left alone.
    pub order: Option<Order>,
    /// It runs as its rule says, or was left as it was for comparison (`true`): the rule's index.
    pub arm: Option<(usize, bool)>,
    /// In words, for the log and for `plan`.
    pub why: String,
}

/// The parts of a [`Decision`].
type Verdicted = (Option<Order>, String, Option<(usize, bool)>);

impl<K: Kernel> Tuner<K> {
    fn is_ours(&self, algorithm: &str) -> bool {
        algorithm.starts_with(&self.prefix)
    }

    pub(super) fn decide(&self, seen: Vec<Seen>) -> Vec<Decision> {
        let listeners: BTreeSet<(u64, u16)> = seen
            .iter()
            .filter(|s| s.listing.state == LISTEN)
            .map(|s| (s.namespace, s.listing.local.1))
            .collect();
        // Both are looked for only where a rule asks.
        let rules = &self.compiled.rules;
        let owners = match rules.iter().any(|r| r.selector.process.is_some()) {
            true => self.kernel.owners(),
            false => BTreeMap::new(),
        };
        let groups = match rules.iter().any(|r| r.selector.cgroup.is_some()) {
            true => self.kernel.groups(),
            false => BTreeMap::new(),
        };
        // Those of ours may send for hours after their peer has closed its end.
        let is_flow =
            |l: &Listing| l.state == ESTABLISHED || (l.state != LISTEN && self.is_tuned(l));
        let flows = seen.into_iter().filter(|s| is_flow(&s.listing));
        flows
            .map(|seen| {
                let listing = &seen.listing;
                // Of one that ran before it is a guess, wrong where a server has ceased to listen.
                let guessed = match listeners.contains(&(seen.namespace, listing.local.1)) {
                    true => Side::Passive,
                    false => Side::Active,
                };
                // What its program has closed is nobody's, and still sends what was given to it.
                let orphan = listing.inode == 0 && listing.state != ESTABLISHED;
                let left = self.rule_of(listing).filter(|_| orphan);
                let left = left.and_then(|(_, rule)| rule.selector.process.as_ref());
                let flow = Flow {
                    local_port: listing.local.1,
                    remote: SocketAddr::from(listing.remote),
                    side: Some(listing.side.unwrap_or(guessed)),
                    cgroup: groups.get(&listing.cgroup).cloned(),
                    process: owners.get(&listing.inode).or(left).cloned(),
                    chose_algorithm: listing.chosen
                        && !self.is_tuned(listing)
                        && !self.journal.has_returned(&seen)
                        && !self.is_back(&seen),
                    cookie: listing.cookie,
                };
                let (order, why, arm) = self.decide_one(&seen, &flow);
                let arm = arm.filter(|_| order.is_none());
                Decision {
                    seen,
                    order,
                    why,
                    arm,
                }
            })
            .collect()
    }

    /// Whether it runs what a rule says, or did until its program changed it.
    pub(super) fn is_tuned(&self, listing: &Listing) -> bool {
        self.is_ours(&listing.algorithm) || listing.flow.as_ref().is_some_and(|f| !f.control)
    }

    /// Whether it was given back what it had, and a failure came before that was written down.
    fn is_back(&self, seen: &Seen) -> bool {
        let entry = self.journal.entry(seen.key());
        entry.is_some_and(|e| e.before.algorithm == seen.listing.algorithm)
    }

    /// A rule's flows get its algorithm, all others what they had before.
    fn decide_one(&self, seen: &Seen, flow: &Flow) -> Verdicted {
        let listing = &seen.listing;
        let leave = |why: &str| {
            if self.is_tuned(listing) {
                let order = Order {
                    action: OrderAction::Release,
                    ..Order::default()
                };
                return (Some(order), format!("released: {why}"), None);
            }
            (None, why.to_owned(), None)
        };
        let keep = |why: &str| (None, why.to_owned(), None);
        let verdict = match self.spared.contains(&listing.cookie) {
            true => Verdict::NoRule,
            false => self.compiled.verdict(flow),
        };
        let index = match verdict {
            Verdict::NeverTuned => return leave("its port is never tuned"),
            Verdict::NoRule => return leave("no rule"),
            Verdict::AppChose(_) => return leave("its program chose the algorithm"),
            Verdict::Control(index) => {
                let (order, why, _) = leave("kept as it was, for comparison");
                return (order, why, Some((index, true)));
            }
            Verdict::Rule(index) => index,
        };
        let path = &self.each[index];
        let own = self
            .own
            .get(&listing.cookie)
            .filter(|own| own.path == path.name);
        let rule = own.map_or(path, |own| {
            let part = self.each.iter().find(|rule| rule.name == own.rule.name);
            part.unwrap_or(&own.rule)
        });
        let is_kernels = matches!(rule.action, Action::Kernel { .. });
        if self.control.off && (is_kernels || !self.is_tuned(listing)) {
            // The programs switch off what is theirs.
            return leave("off");
        }
        let order = Order {
            action: OrderAction::Adopt,
            rule: self.numbers.of(&rule.name),
            algorithm: algorithm(rule, &self.prefix),
            send_buffer: buffer_option(rule.send_buffer),
            receive_buffer: buffer_option(rule.receive_buffer),
            ceiling: ordered_ceiling(rule),
            ..Order::default()
        };
        if let Some(record) = listing.flow.as_ref().filter(|f| !f.control) {
            if is_changed(seen) && !self.journal.has_returned(seen) {
                return keep("its program has changed the algorithm since");
            }
            let known = self.known.get(&listing.cookie);
            if known.is_some_and(|k| k.refused) {
                return keep("the kernel refuses its rule's algorithm");
            }
            let wanted = (order.send_buffer, order.receive_buffer, order.ceiling);
            let unknown = || {
                let ceiling = ceiling_given(order.ceiling, record);
                (order.send_buffer, order.receive_buffer, ceiling)
            };
            let same = known.map_or_else(unknown, |k| k.sizes) == wanted;
            if record.rule == order.rule && listing.algorithm == order.algorithm {
                if same {
                    // One with parameters of its own says nothing of its path's.
                    let arm = own.is_none().then_some((index, false));
                    return (None, "as its rule says".to_owned(), arm);
                }
                let why = format!("rule {}: other buffers or another rate", path.name);
                return (Some(order), why, None);
            }
        }
        let was = &listing.algorithm;
        let why = match own {
            Some(_) => format!(
                "rule {}, for this flow {}, was {was}",
                path.name, rule.stack
            ),
            None => format!("rule {} ({}), was {was}", path.name, rule.stack),
        };
        (Some(order), why, None)
    }
}

impl Decision {
    pub(super) fn is(&self, action: OrderAction) -> bool {
        self.order.as_ref().is_some_and(|o| o.action == action)
    }
}
