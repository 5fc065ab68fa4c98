//! Hosts with an interface: a queue in front of the network, which the flows of a host share.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::sender::Sender;
use super::{Layout, Leg};
use crate::keys::{FlowKeys, Transport};
use crate::value::Findings;

/// A host with an interface.
#[derive(Debug)]
pub(super) struct Host {
    length: Option<u64>,
    rate: Option<Rate>,
    reverse: bool,
    link: Option<usize>,
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
            let Some(known) = self.hosts.get_mut(&host) else {
                let new = Host {
                    length,
                    rate,
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
        }
        for sender in transports() {
            let t = &sender.at;
            let host = t.host.as_deref().unwrap_or(sender.name);
            if self
                .hosts
                .get(host)
                .is_some_and(|host| host.length.is_some())
            {
                continue;
            }
            if t.is_given(&Transport::nic_rate) {
                let message = "there is no interface in front of the bottleneck";
                let hint = "set `txqueuelen`, for example 100";
                t.refuse(findings, &Transport::nic_rate, message, hint);
            }
            if t.is_given(&Transport::host) {
                let message =
                    "no flow of this host has `txqueuelen`: there is no interface to share";
                t.warn(findings, &Transport::host, message);
            }
            if t.is_given(&Transport::sendstall) {
                let message = "there is no interface queue that could refuse a segment";
                t.warn(findings, &Transport::sendstall, message);
            }
        }
    }

    /// The interface of a host, here of a sender over this leg.
    pub fn interface(&mut self, host: &str, leg: &Leg) -> Option<usize> {
        let entry = self.hosts.get_mut(host)?;
        let length = entry.length?;
        if entry.link.is_none() {
            entry.link = Some(self.links.len());
            self.links.push(LinkSpec::new(
                &format!("nic-{host}"),
                Some(entry.rate.unwrap_or(leg.capacity)),
                Span::ZERO,
                // The packet on the wire is out of the queue.
                Buffer::Packets(length + 1),
            ));
        }
        entry.link
    }
}
