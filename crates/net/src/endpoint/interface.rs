//! The interfaces of a host: links at which a full queue is a local stall and not a loss, so that
//! they belong to the host and not to the path.
//!
//! What they do is [`fullpipe_sim::Path`], as on the line: a segment enters when its sender lets it
//! go, and leaves the socket when the interface would have sent it.

use std::collections::{HashMap, VecDeque};

use fullpipe_flow::Segment;
use fullpipe_host::Waiting;
use fullpipe_run::{CrossSpec, FlowSpec, LinkOutcome, RunSpec};
use fullpipe_sim::{Datagram, Departure, PacketKind, PacketOutcome, Path, Route};
use fullpipe_units::Time;

use super::{EndpointError, Side};
use crate::wire::DataDatagram;

/// The interfaces of one host.
#[derive(Debug)]
pub struct Interfaces {
    path: Path,
    /// Time of the pending timer; [`Time::MAX`]: none.
    pub wakes: Time,
    inside: Vec<Leaving>,
    free: Vec<u32>,
    /// What has crossed its interface and is to leave the socket.
    pub out: VecDeque<Leaving>,
    /// Senders that were refused.
    pub waiting: HashMap<Route, Waiting>,
    /// Slots of senders of which a segment left: those that may send again, and those that have
    /// none left there. Empty between two looks.
    pub left: [Vec<u32>; 2],
}

/// A segment in an interface.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// Slot of the sender.
    pub slot: u32,
    /// The segment for the sender, should it come back.
    pub segment: Segment,
    /// The same as a datagram of the wire.
    pub datagram: DataDatagram,
    /// Bytes of the datagram with a full payload.
    pub len: usize,
}

/// Which links are interfaces, and of which host.
///
/// # Errors
/// [`EndpointError::Interface`] if one is crossed by what does not set out there.
pub fn interfaces(spec: &RunSpec) -> Result<Vec<Option<Side>>, EndpointError> {
    let mut of: Vec<Option<Side>> = vec![None; spec.links.len()];
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let flows = || spec.flows.iter().chain(templates.clone());
    let side = |f: &FlowSpec| if f.reverse { Side::Far } else { Side::Near };
    for f in flows().filter(|f| f.local_queue) {
        if let Some(of) = f.forward.first().and_then(|l| of.get_mut(*l)) {
            of.get_or_insert(side(f));
        }
    }
    let crossed = |links: &[usize], by: Option<Side>| {
        let mut links = links.iter().enumerate();
        let wrong = links.find(|(hop, l)| match of.get(**l) {
            Some(Some(host)) => *hop > 0 || by != Some(*host),
            _ => false,
        });
        match wrong {
            Some((_, l)) => Err(EndpointError::Interface(spec.links[*l].name.clone())),
            None => Ok(()),
        }
    };
    for f in flows() {
        crossed(&f.forward, f.local_queue.then(|| side(f)))?;
        crossed(&f.back, None)?;
    }
    for links in spec.cross.iter().flat_map(CrossSpec::routes) {
        crossed(links, None)?;
    }
    Ok(of)
}

impl Interfaces {
    /// Those of one host; `None`: it has none.
    ///
    /// # Errors
    /// See [`interfaces`].
    pub fn new(spec: &RunSpec, side: Side) -> Result<Option<Self>, EndpointError> {
        let of = interfaces(spec)?;
        let own = |link: usize| of[link] == Some(side);
        let any = (0..of.len()).any(own);
        Ok(any.then(|| Self {
            path: Path::with_links(spec, own),
            wakes: Time::MAX,
            inside: Vec::new(),
            free: Vec::new(),
            waiting: HashMap::new(),
            left: [Vec::new(), Vec::new()],
            out: VecDeque::new(),
        }))
    }

    /// The way of a flow's segments through its interface, if it has one.
    pub fn route(&mut self, f: &FlowSpec) -> Option<Route> {
        let first = f.forward.get(..1).filter(|_| f.local_queue)?;
        self.path.route(first)
    }

    /// Somebody waits for room there.
    pub fn is_crowded(&self, route: Route) -> bool {
        let waiting = self.waiting.get(&route);
        waiting.is_some_and(|waiting| !waiting.is_empty())
    }

    /// `None` if a packet of `size` bytes fits in now, else when to try again.
    pub fn room(&mut self, now: Time, route: Route, size: u16) -> Option<Time> {
        self.path.room(now, route, size)
    }

    /// A segment of a flow enters as a packet of `size` bytes.
    pub fn enter(&mut self, now: Time, route: Route, flow: u32, size: u16, leaving: Leaving) {
        let token = match self.free.pop() {
            Some(token) => {
                self.inside[token as usize] = leaving;
                token
            }
            None => {
                self.inside.push(leaving);
                self.inside.len() as u32 - 1
            }
        };
        let kind = if leaving.segment.syn {
            PacketKind::Syn
        } else {
            PacketKind::Data
        };
        let datagram = Datagram {
            token: u64::from(token),
            kind,
            flow,
            size,
            ect: leaving.segment.ect,
        };
        self.path.offer(now, route, &datagram);
    }

    /// When to look again; [`Time::MAX`]: not before something enters.
    pub fn next_event(&self) -> Time {
        self.path.next_event().unwrap_or(Time::MAX)
    }

    /// All that is due until `now` happens; `left` hears of every segment that left an interface,
    /// and whether it was lost there at random.
    pub fn advance(&mut self, now: Time, mut left: impl FnMut(&Leaving, bool)) {
        self.path.advance(now);
        for Departure { token, outcome, .. } in self.path.departures() {
            let token = token as u32;
            let leaving = self.inside[token as usize];
            self.free.push(token);
            let lost = outcome == PacketOutcome::Dropped;
            left(&leaving, lost);
            if !lost {
                self.out.push_back(leaving);
            }
        }
    }

    /// The run is over: the interfaces' outcomes with their indices among the links.
    pub fn finish(self) -> Result<Vec<(usize, LinkOutcome)>, EndpointError> {
        Ok(self.path.finish()?)
    }
}
