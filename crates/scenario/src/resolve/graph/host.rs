//! Hosts with an interface: a queue in front of the network, which the flows of a host share.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::sender::Sender;
use super::{Layout, Leg};
use crate::keys::{FlowKeys, TXQUEUELEN, Transport};
use crate::value::Findings;

/// A host with an interface.
#[derive(Debug)]
pub(super) struct Host {
    length: Option<u64>,
    rate: Option<Rate>,
    /// Of the links that its flows cross.
    fastest: Option<Rate>,
    reverse: bool,
    link: Option<usize>,
}

impl Host {
    /// It is described; a host that is not is faster than any link.
    fn has_interface(&self) -> bool {
        self.rate.is_some() || self.length.is_some()
    }
}

impl Layout {
    /// Groups senders by the interface that they share.
    pub(super) fn hosts(&mut self, senders: &[Sender<'_>], findings: &mut Findings) {
        let transports = || senders.iter().filter(|sender| sender.transport);
        for sender in transports() {
            let t = &sender.at;
            let host = t.host.clone().unwrap_or_else(|| sender.name.to_owned());
            let (length, rate) = (t.txqueuelen, t.nic_rate);
            let reverse = sender.is_reverse();
            let fastest = self.fastest(sender.name, reverse);
            let Some(known) = self.hosts.get_mut(&host) else {
                let new = Host {
                    length,
                    rate,
                    fastest,
                    reverse,
                    link: None,
                };
                self.hosts.insert(host, new);
                continue;
            };
            if known.reverse != reverse {
                let message = format!("host `{host}` sends the other way in another flow");
                let key = match t.is_given(&Transport::host) {
                    true => &Transport::host,
                    false => &FlowKeys::direction,
                };
                t.refuse(findings, key, message, "a host sits on one side: name two");
            }
            if length.is_some() && known.length.is_some() && length != known.length {
                let message = format!("another flow of host `{host}` sets this otherwise");
                t.refuse(findings, &Transport::txqueuelen, message, "set it once");
            }
            if rate.is_some() && known.rate.is_some() && rate != known.rate {
                let message = format!("another flow of host `{host}` sets this otherwise");
                t.refuse(findings, &Transport::nic_rate, message, "set it once");
            }
            known.length = known.length.or(length);
            known.rate = known.rate.or(rate);
            known.fastest = known.fastest.max(fastest);
        }
        for sender in transports() {
            let t = &sender.at;
            let host = t.host.as_deref().unwrap_or(sender.name);
            if self.hosts.get(host).is_some_and(Host::has_interface) {
                continue;
            }
            if t.is_given(&Transport::host) {
                let message = "no flow of this host has `nic_rate` or `txqueuelen`: there is no \
                               interface to share";
                t.warn(findings, &Transport::host, message);
            }
            let of_interface = [Transport::sendstall, Transport::tsq];
            for key in of_interface.iter().filter(|key| t.is_given(key)) {
                t.warn(findings, key, NO_INTERFACE);
            }
        }
    }

    /// The highest rate that a link on the way of a sender ever has.
    pub fn fastest(&self, name: &str, reverse: bool) -> Option<Rate> {
        let leg = self.leg(name, reverse)?;
        let rates = leg.forward.iter().flat_map(|link| {
            let link = &self.links[*link];
            let later = link.schedule.iter().filter_map(|change| change.rate);
            link.rate.into_iter().chain(later)
        });
        rates.max()
    }

    /// The interface of a host, here of a sender over this leg.
    pub fn interface(&mut self, host: &str, leg: &Leg) -> Option<usize> {
        let entry = self.hosts.get_mut(host)?;
        if !entry.has_interface() {
            return None;
        }
        if entry.link.is_none() {
            entry.link = Some(self.links.len());
            let rate = entry.rate.or(entry.fastest).unwrap_or(leg.capacity);
            // The packet on the wire is out of the queue.
            let buffer = Buffer::Packets(entry.length.unwrap_or(TXQUEUELEN) + 1);
            self.links.push(LinkSpec {
                is_interface: true,
                ..LinkSpec::new(&format!("nic-{host}"), Some(rate), Span::ZERO, buffer)
            });
        }
        entry.link
    }
}

/// Names no rate of the path: a matrix may vary it, and the warning holds for all cases alike.
const NO_INTERFACE: &str = "the host has no interface that could be full: `txqueuelen = 1000` \
                            gives it one as fast as the path, `nic_rate` one of another rate";
