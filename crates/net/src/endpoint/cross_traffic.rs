//! Cross traffic and pings on the wire: datagrams of sources, and round-trip probes.

use fullpipe_host::{Ping, Source};
use fullpipe_run::RunSpec;
use fullpipe_units::{Span, Time};

use super::{Plan, Side};
use crate::headers;
use crate::wire::{AckDatagram, CrossDatagram, ProbeDatagram};

/// Bytes of the payload of datagrams that are not a flow's.
#[derive(Debug)]
pub struct Lengths {
    /// Payload per source, bytes.
    pub sources: Vec<usize>,
    /// Payload per ping, bytes.
    pub pings: Vec<usize>,
}

impl Lengths {
    /// Packets are as long as they are to be with the `overhead` that the port adds to each, bytes.
    pub fn new(spec: &RunSpec, overhead: usize) -> Self {
        let payload = |packet: u16, least: usize| {
            let headers = headers::IPV4 + overhead;
            usize::from(packet).saturating_sub(headers).max(least)
        };
        let sources = spec.sources.iter();
        let pings = spec.pings.iter();
        Self {
            sources: sources
                .map(|s| payload(s.packet, CrossDatagram::LEN))
                .collect(),
            pings: pings.map(|p| payload(p.size, ProbeDatagram::LEN)).collect(),
        }
    }
}

/// The datagram of a source that is due now, if one is.
pub fn next_datagram(
    source: &mut Source,
    now: Time,
    plan: &Plan,
    index: u32,
) -> Option<CrossDatagram> {
    (source.next_departure() <= now).then(|| CrossDatagram {
        session: plan.session,
        source: index as u16,
        number: source.depart(now),
        stamp: now,
    })
}

/// The request of a ping that is due now, if one is.
pub fn next_request(ping: &mut Ping, now: Time, plan: &Plan, index: u32) -> Option<ProbeDatagram> {
    (ping.next_departure() <= now).then(|| ProbeDatagram {
        session: plan.session,
        probe: index as u16,
        number: ping.depart(),
        stamp: now,
        echo: false,
    })
}

/// A datagram of a source has arrived at the far host. Its delay is known only if both hosts have
/// one clock.
pub fn arrive(source: &mut Source, now: Time, datagram: &CrossDatagram, plan: &Plan) -> Option<()> {
    if plan.side == Side::Near {
        return None;
    }
    let delay = plan.shared_clock.then(|| age(now, datagram.stamp));
    source.arrive(now, datagram.number, delay);
    Some(())
}

/// The answer to a request is back: its round-trip time, if it is news.
pub fn answered(ping: &mut Ping, now: Time, probe: &ProbeDatagram) -> Option<Span> {
    ping.is_news(probe.number).then(|| {
        let rtt = age(now, probe.stamp);
        ping.answered(now, rtt);
        rtt
    })
}

/// How old a time stamp of the wire is, by this host's clock.
fn age(now: Time, stamp: Time) -> Span {
    now.saturating_since(AckDatagram::unwrap_echo(now, stamp))
}
