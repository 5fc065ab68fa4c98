//! Who sends over the links.

use fullpipe_units::Span;

use crate::matrix::{Config, Names};
use crate::value::Record;

/// Someone who sends over the links.
pub(super) struct Sender<'a> {
    pub(super) record: &'a Record,
    pub(super) name: &'a str,
    pub(super) section: &'static str,
}

impl Sender<'_> {
    /// Its data takes the way back.
    pub(super) fn is_reverse(&self) -> bool {
        self.record.word("direction") == Some("reverse")
    }

    /// The key is one of a transport's, or of a kind of traffic that has it.
    pub(super) fn has(&self, key: &str) -> bool {
        match self.record_kind() {
            None | Some("short-flows") => true,
            Some("ping") => key == "rtt",
            Some(_) => false,
        }
    }

    fn record_kind(&self) -> Option<&'static str> {
        (self.section == "traffic").then(|| self.record.word("kind").unwrap_or_default())
    }
}

/// True unless it is left out.
pub(in crate::resolve) fn is_enabled(record: &Record) -> bool {
    record.flag("enabled").unwrap_or(true)
}

/// All that are not left out, flows first.
pub(super) fn senders<'a>(config: &'a Config, names: &'a Names) -> Vec<Sender<'a>> {
    let of = |section: &'static str, records: &'a [Record], names: &'a [String]| {
        let pairs = records.iter().zip(names);
        pairs
            .filter(|(record, _)| is_enabled(record))
            .map(move |(record, name)| Sender {
                record,
                name,
                section,
            })
    };
    of("flow", &config.flows, &names.flows)
        .chain(of("traffic", &config.traffic, &names.traffic))
        .collect()
}

fn named<'a>(config: &'a Config, names: &Names, name: &str) -> Option<(&'a Record, &'static str)> {
    let flow = names.flows.iter().position(|known| known == name);
    let traffic = names.traffic.iter().position(|known| known == name);
    match (flow, traffic) {
        (Some(i), _) => Some((config.flows.get(i)?, "flow")),
        (None, Some(i)) => Some((config.traffic.get(i)?, "traffic")),
        (None, None) => None,
    }
}

/// The round trip that a flow or traffic has of its own.
pub(super) fn own_rtt(config: &Config, names: &Names, name: &str) -> Option<Span> {
    named(config, names, name)?.0.span("rtt")
}

/// Where it says that it sends the other way.
pub(super) fn direction_of<'a>(
    config: &'a Config,
    names: &Names,
    name: &str,
) -> Option<(&'a Record, &'static str)> {
    named(config, names, name).filter(|(record, _)| record.word("direction") == Some("reverse"))
}
