//! Cross traffic on the wire: datagrams that leave, and what those mean that arrive.

use fullpipe_host::Cross;
use fullpipe_run::{CrossNumbers, RunSpec};
use fullpipe_units::{Span, Time};

use super::{Plan, Side};
use crate::headers;
use crate::wire::{AckDatagram, CrossDatagram, Header, Kind};

/// Numbers of cross traffic, and how long its datagrams are.
#[derive(Debug)]
pub struct OnWire {
    numbers: CrossNumbers,
    /// Bytes of payload, by index.
    payload: Vec<usize>,
}

impl OnWire {
    /// Packets are as long as they are to be with the `overhead` that the port adds to each, bytes.
    pub fn new(spec: &RunSpec, overhead: usize) -> Self {
        let payload = |packet: u16| {
            let headers = headers::IPV4 + overhead;
            let payload = usize::from(packet).saturating_sub(headers);
            payload.max(CrossDatagram::LEN)
        };
        Self {
            numbers: spec.cross_numbers(),
            payload: spec.cross.iter().map(|c| payload(c.packet)).collect(),
        }
    }

    /// Index of the traffic that a datagram belongs to; `None`: there is none with such datagrams.
    pub fn index(&self, header: &Header, bytes: &[u8]) -> Option<usize> {
        let answered = header.kind != Kind::Datagram;
        let index = self.numbers.index(answered, usize::from(header.flow))?;
        (bytes.len() == self.payload[index]).then_some(index)
    }

    /// The datagram that is due now, if one is, and its bytes.
    pub fn next(
        &self,
        cross: &mut Cross,
        now: Time,
        plan: &Plan,
        index: usize,
    ) -> Option<(CrossDatagram, usize)> {
        let kind = match cross.is_answered() {
            true => Kind::Ping,
            false => Kind::Datagram,
        };
        (cross.next_departure() <= now).then(|| {
            let datagram = CrossDatagram {
                kind,
                session: plan.session,
                flow: self.numbers.number(index) as u16,
                number: cross.depart(now),
                stamp: now,
            };
            (datagram, self.payload[index])
        })
    }
}

/// A datagram has arrived at the far host. Its delay is known only if both hosts have one clock.
pub fn arrive(cross: &mut Cross, now: Time, datagram: &CrossDatagram, plan: &Plan) -> Option<()> {
    if plan.side == Side::Near {
        return None;
    }
    let delay = plan.shared_clock.then(|| age(now, datagram.stamp));
    cross.arrive(now, datagram.number, delay);
    Some(())
}

/// The answer to a request is back: its round-trip time, if it is news.
pub fn answered(cross: &mut Cross, now: Time, answer: &CrossDatagram) -> Option<Span> {
    cross.is_news(answer.number).then(|| {
        let rtt = age(now, answer.stamp);
        cross.arrive(now, answer.number, Some(rtt));
        rtt
    })
}

/// How old a time stamp of the wire is, by this host's clock.
fn age(now: Time, stamp: Time) -> Span {
    now.saturating_since(AckDatagram::unwrap_echo(now, stamp))
}
