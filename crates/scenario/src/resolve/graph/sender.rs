//! Senders over the links, flows and traffic alike.

use fullpipe_units::Span;

use super::super::tables::Tables;
use crate::keys::{Direction, TrafficWord, Transport};
use crate::value::{At, Record};

/// Someone who sends over the links.
pub(super) struct Sender<'a> {
    pub(super) name: &'a str,
    pub(super) at: At<'a, Transport>,
    pub(super) direction: Direction,
    enabled: bool,
    /// A flow, or short flows: the keys of a transport are about it.
    pub(super) transport: bool,
    /// It may have a round trip of its own.
    own_rtt: bool,
}

impl<'a> Sender<'a> {
    fn new(name: &'a str, record: &'a Record, path: &str) -> Self {
        Self {
            name,
            at: At::new(record, path),
            direction: Direction::Forward,
            enabled: true,
            transport: true,
            own_rtt: true,
        }
    }

    /// True if data flows from the far host to the near one.
    pub(super) fn is_reverse(&self) -> bool {
        self.direction == Direction::Reverse
    }

    /// The round trip of its own, if it may have one and has.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.at.rtt.filter(|_| self.own_rtt)
    }

    /// It has the round trip of the path.
    pub(super) fn takes_rtt_of_path(&self) -> bool {
        !self.own_rtt || !self.at.is_given(&Transport::rtt)
    }
}

/// Everyone in the file, left out or not, flows first.
pub(super) fn everyone<'a>(tables: &Tables<'a>) -> Vec<Sender<'a>> {
    let flows = tables.flows.iter().map(|flow| Sender {
        direction: flow.at.own.direction,
        enabled: flow.at.own.enabled,
        ..Sender::new(flow.name, flow.at.record, &flow.at.path)
    });
    let traffic = tables.traffic.iter().map(|traffic| Sender {
        direction: traffic.at.own.direction,
        enabled: traffic.at.own.enabled,
        transport: traffic.at.own.kind == Some(TrafficWord::ShortFlows),
        own_rtt: matches!(
            traffic.at.own.kind,
            Some(TrafficWord::ShortFlows | TrafficWord::Ping)
        ),
        ..Sender::new(traffic.name, traffic.at.record, &traffic.at.path)
    });
    flows.chain(traffic).collect()
}

/// All that are not left out.
pub(super) fn senders<'a>(tables: &Tables<'a>) -> Vec<Sender<'a>> {
    let mut all = everyone(tables);
    all.retain(|sender| sender.enabled);
    all
}
