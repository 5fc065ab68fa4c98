//! Which way a datagram goes: by its kind and number, from the side where it may come from.

use fullpipe_flow::PacketLengths;
use fullpipe_run::{CrossNumbers, RunSpec};
use fullpipe_sim::{PacketKind, Path, Route};

use crate::endpoint::numbers::{Numbers, SHORT};
use crate::headers;
use crate::wire::{AckDatagram, DataDatagram, Header, Kind, SessionId};

/// Ways of a run.
#[derive(Debug)]
pub struct Routes {
    session: SessionId,
    flows: Vec<FlowWays>,
    classes: Vec<FlowWays>,
    numbers: Numbers,
    cross: Vec<CrossWays>,
    cross_numbers: CrossNumbers,
}

/// Route of a datagram and its size on the links.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Links to cross, in order.
    pub route: Route,
    /// Kind of packet that the links take it for.
    pub kind: PacketKind,
    /// Number of the flow, source or ping that counts a drop.
    pub flow: u32,
    /// Bytes that it takes there.
    pub size: u16,
}

#[derive(Clone, Copy, Debug)]
struct FlowWays {
    /// Its sender is on the far side.
    reverse: bool,
    forward: Route,
    back: Route,
    lengths: PacketLengths,
}

#[derive(Clone, Copy, Debug)]
struct CrossWays {
    forward: Route,
    back: Route,
    size: u16,
}

impl Routes {
    /// Of a run over `path`; links that the path does not have are crossed elsewhere. `None` if a
    /// route is longer than a path allows.
    pub fn new(spec: &RunSpec, path: &mut Path, session: SessionId) -> Option<Self> {
        let mut route = |links: &[usize]| {
            let own: Vec<usize> = links.iter().copied().filter(|l| path.has(*l)).collect();
            path.route(&own)
        };
        let mut flow = |f: &fullpipe_run::FlowSpec| {
            Some(FlowWays {
                reverse: f.reverse,
                forward: route(&f.forward)?,
                back: route(&f.back)?,
                lengths: f.sender.lengths(),
            })
        };
        let flows = spec.flows.iter().map(&mut flow).collect::<Option<_>>()?;
        let classes = spec.arrivals.iter().map(|a| flow(&a.template));
        let classes = classes.collect::<Option<_>>()?;
        let cross = spec.cross.iter().map(|c| {
            Some(CrossWays {
                forward: route(&c.forward)?,
                back: route(&c.back)?,
                size: c.packet,
            })
        });
        Some(Self {
            session,
            flows,
            classes,
            numbers: Numbers::new(spec.arrivals.len()),
            cross: cross.collect::<Option<_>>()?,
            cross_numbers: spec.cross_numbers(),
        })
    }

    /// The way of a datagram from the near or the far side; `None` if it is none of this run's, or
    /// comes from the wrong side.
    #[inline]
    pub fn of(&self, from_near: bool, datagram: &[u8]) -> Option<Way> {
        let header = Header::decode(datagram).ok()?;
        if header.session != self.session {
            return None;
        }
        let (expected_near, route, kind, size) = match header.kind {
            Kind::Data => {
                let segment = DataDatagram::decode(&header, datagram).ok()?.segment;
                let flow = self.flow(header.flow)?;
                let (kind, size) = match segment.syn {
                    true => (PacketKind::Syn, flow.lengths.segment(&segment)),
                    false => (
                        PacketKind::Data,
                        u16::try_from(datagram.len() + headers::IPV4).ok()?,
                    ),
                };
                (!flow.reverse, flow.forward, kind, size)
            }
            Kind::Ack => {
                let ack = AckDatagram::decode(&header, datagram).ok()?.ack;
                let flow = self.flow(header.flow)?;
                (
                    flow.reverse,
                    flow.back,
                    PacketKind::Ack,
                    flow.lengths.ack(&ack),
                )
            }
            Kind::Datagram => {
                let cross = self.cross(false, header.flow)?;
                (true, cross.forward, PacketKind::Datagram, cross.size)
            }
            Kind::Ping => {
                let cross = self.cross(true, header.flow)?;
                (true, cross.forward, PacketKind::Request, cross.size)
            }
            Kind::Pong => {
                let cross = self.cross(true, header.flow)?;
                (false, cross.back, PacketKind::Reply, cross.size)
            }
            _ => return None,
        };
        (expected_near == from_near).then_some(Way {
            route,
            kind,
            flow: u32::from(header.flow),
            size,
        })
    }

    fn cross(&self, answered: bool, number: u16) -> Option<&CrossWays> {
        let index = self.cross_numbers.index(answered, usize::from(number))?;
        self.cross.get(index)
    }

    /// A lasting flow, or the class of a short one.
    #[inline]
    fn flow(&self, number: u16) -> Option<&FlowWays> {
        match number {
            SHORT.. => self.classes.get(self.numbers.class(number)?),
            _ => self.flows.get(usize::from(number)),
        }
    }
}
