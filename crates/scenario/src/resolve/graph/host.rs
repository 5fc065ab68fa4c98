//! Hosts with an interface: a queue in front of the network, which the flows of a host share.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::sender::Sender;
use super::{Layout, Leg};
use crate::resolve::Findings;
use crate::value::{Record, member_path};

/// A host with an interface.
#[derive(Debug)]
pub(super) struct Host {
    length: Option<u64>,
    rate: Option<Rate>,
    reverse: bool,
    link: Option<usize>,
}

impl Layout {
    /// Who shares an interface.
    pub(super) fn hosts(&mut self, senders: &[Sender<'_>], findings: &mut Findings) {
        let transports = || senders.iter().filter(|s| s.has("txqueuelen"));
        for sender in transports() {
            let r = sender.record;
            let path = member_path(sender.section, sender.name);
            let host = r.text("host").unwrap_or_else(|| sender.name.to_owned());
            let (length, rate) = (r.whole("txqueuelen"), r.rate("nic_rate"));
            let reverse = sender.is_reverse();
            let Some(known) = self.hosts.get_mut(&host) else {
                let link = None;
                self.hosts.insert(
                    host,
                    Host {
                        length,
                        rate,
                        reverse,
                        link,
                    },
                );
                continue;
            };
            if known.reverse != reverse {
                let message = format!("host `{host}` sends the other way in another flow");
                let key = if r.is_given("host") {
                    "host"
                } else {
                    "direction"
                };
                findings.refuse(r, key, &path, message, "a host sits on one side: name two");
            }
            if length.is_some() && known.length.is_some() && length != known.length {
                let message = format!("another flow of host `{host}` sets this otherwise");
                findings.refuse(r, "txqueuelen", &path, message, "set it once");
            }
            if rate.is_some() && known.rate.is_some() && rate != known.rate {
                let message = format!("another flow of host `{host}` sets this otherwise");
                findings.refuse(r, "nic_rate", &path, message, "set it once");
            }
            known.length = known.length.or(length);
            known.rate = known.rate.or(rate);
        }
        for sender in transports() {
            let r = sender.record;
            let path = member_path(sender.section, sender.name);
            let host = r.text("host").unwrap_or_else(|| sender.name.to_owned());
            if self
                .hosts
                .get(&host)
                .is_some_and(|host| host.length.is_some())
            {
                continue;
            }
            if r.is_given("nic_rate") {
                let message = "there is no interface in front of the bottleneck";
                findings.refuse(
                    r,
                    "nic_rate",
                    &path,
                    message,
                    "set `txqueuelen`, for example 100",
                );
            }
            if r.is_given("host") {
                let message =
                    "no flow of this host has `txqueuelen`: there is no interface to share";
                findings.warn(r, "host", &path, message);
            }
            if r.is_given("sendstall") {
                let message = "there is no interface queue that could refuse a segment";
                findings.warn(r, "sendstall", &path, message);
            }
        }
    }

    /// The interface of a flow's host.
    pub fn interface(&mut self, record: &Record, name: &str, leg: &Leg) -> Option<usize> {
        let host = record.text("host").unwrap_or_else(|| name.to_owned());
        let entry = self.hosts.get_mut(&host)?;
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
