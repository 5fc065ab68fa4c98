//! The network of a run without its endpoints: the same links, fed and driven by a host that passes
//! the time, so that a path in real time behaves as the simulated one does, down to every random
//! decision.
//!
//! A host offers datagrams and is told where they end. What happens inside happens at computed
//! times, however late the host asks: lateness of the host delays what it offers, not what the
//! links decide.
//!
//! At one instant a host offers all that it has before anything moves, as in the simulator a
//! sender's burst does: an offer waits for what is due before it, [`Path::advance`] for what is due
//! now, too.

use std::vec::Drain;

use fullpipe_run::{LinkOutcome, RunSpec, Violation};
use fullpipe_units::Time;

use crate::link::{Link, Watch};
use crate::net::{Ends, Net};
use crate::packet::{Kind, Packet};
use crate::target::{Layout, Wake};

/// Links of a run, and what is in them.
///
/// ```
/// use fullpipe_run::{Buffer, LinkSpec, RunSpec};
/// use fullpipe_sim::{PacketOutcome, PacketKind, Datagram, Path};
/// use fullpipe_units::{Rate, Span, Time};
///
/// let rate = Rate::from_bits_per_sec(12_000_000);
/// let link = LinkSpec::new("l", Some(rate), Span::from_millis(5), Buffer::Packets(1));
/// let mut path = Path::new(&RunSpec { links: vec![link], ..RunSpec::default() });
/// let route = path.route(&[0]).unwrap();
/// for token in 0..2 {
///     let kind = PacketKind::Data;
///     let datagram = Datagram { token, kind, flow: 0, size: 1500, ect: false };
///     path.offer(Time::ZERO, route, &datagram);
/// }
/// assert_eq!(path.next_event(), Some(Time::ZERO + Span::from_millis(6)));
/// path.advance(Time::ZERO + Span::from_millis(7));
/// let ends: Vec<_> = path.departures().map(|e| (e.token, e.at.as_nanos(), e.outcome)).collect();
/// let arrived = PacketOutcome::Arrived { ce: false };
/// assert_eq!(ends, [(1, 0, PacketOutcome::Dropped), (0, 6_000_000, arrived)]);
/// ```
#[derive(Debug)]
pub struct Path {
    seed: u64,
    end: Time,
    now: Time,
    net: Net,
    /// Links that this path has; the others belong to another host.
    hosted: Vec<bool>,
    ends: RouteEnds,
    offered: u64,
}

/// The ends of the routes.
#[derive(Debug, Default)]
struct RouteEnds {
    routes: Vec<Box<[u32]>>,
    departures: Vec<Departure>,
    /// Packets that ended, taken out or not.
    left: u64,
}

/// Links one after the other, of one [`Path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route(u32);

/// What a path needs to know of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The host's name for it, given back at its end.
    pub token: u64,
    /// Kind of the packet.
    pub kind: Kind,
    /// Index of its flow, source or sequence of probes: a queue may serve them apart.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// A queue may mark it instead of dropping it, if it is data.
    pub ect: bool,
}

/// The end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// See [`Datagram::token`].
    pub token: u64,
    /// When, as computed.
    pub at: Time,
    /// Delivered or dropped.
    pub outcome: PacketOutcome,
}

/// Outcome of a packet on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// At the far end of its route.
    Arrived {
        /// A queue marked it: congestion experienced.
        ce: bool,
    },
    /// Dropped by a link.
    Dropped,
}

impl Path {
    /// All links of `spec`, at time zero.
    pub fn new(spec: &RunSpec) -> Self {
        Self::with_links(spec, |_| true)
    }

    /// Those links of `spec`, by index, that the host has; each is as it would be among all.
    pub fn with_links(spec: &RunSpec, has: impl Fn(usize) -> bool) -> Self {
        let watch = Watch::new(spec);
        let links = spec.links.iter().map(|l| Link::new(l, spec.seed, &watch));
        let mut net = Net::new(links.collect(), Layout::new(spec.links.len(), 0, 0));
        net.sample_queues(&watch, &has);
        Self {
            seed: spec.seed,
            end: Time::ZERO + spec.duration,
            now: Time::ZERO,
            net,
            hosted: (0..spec.links.len()).map(has).collect(),
            ends: RouteEnds::default(),
            offered: 0,
        }
    }

    /// The route over these links, by index; none at all is the way of no delay. `None` if a link
    /// is not in this path, or there are more than 255.
    pub fn route(&mut self, links: &[usize]) -> Option<Route> {
        if links.len() > usize::from(u8::MAX) || !links.iter().all(|l| self.has(*l)) {
            return None;
        }
        let links: Box<[u32]> = links.iter().map(|l| *l as u32).collect();
        let known = self.ends.routes.iter().position(|r| *r == links);
        let at = known.unwrap_or_else(|| {
            self.ends.routes.push(links);
            self.ends.routes.len() - 1
        });
        u32::try_from(at).ok().map(Route)
    }

    /// True if the link is in this path.
    pub fn has(&self, link: usize) -> bool {
        self.hosted.get(link) == Some(&true)
    }

    /// A packet enters its route now, or at the latest time that the path was told of. After the
    /// end of the run nothing enters, and nothing is heard of it.
    pub fn offer(&mut self, now: Time, route: Route, datagram: &Datagram) {
        self.move_on(now, |at, now| at < now);
        if now > self.end {
            return;
        }
        self.offered += 1;
        let p = datagram;
        let packet = Packet::cross(p.flow, p.size, p.kind, p.token, Time::ZERO);
        let packet = packet.routed(route.0, p.ect);
        self.ends.carry(self.now, packet, &mut self.net);
        self.net.lose_dropped(self.now, &mut self.ends);
    }

    /// For an interface that refuses instead of losing: `None` if a packet of `size` bytes fits
    /// into the first link of the route now, else when to try again.
    pub fn room(&mut self, now: Time, route: Route, size: u16) -> Option<Time> {
        self.move_on(now, |at, now| at < now);
        let link = *self.ends.routes[route.0 as usize].first()?;
        self.net.links[link as usize].room(self.now, size)
    }

    /// When something happens inside next; `None`: nothing before the end of the run.
    pub fn next_event(&self) -> Option<Time> {
        let (at, _) = self.net.queue.peek()?;
        (at <= self.end).then_some(at)
    }

    /// All that is due until `now` happens; nothing happens after the end of the run.
    pub fn advance(&mut self, now: Time) {
        self.move_on(now, |at, now| at <= now);
    }

    #[inline(always)]
    fn move_on(&mut self, now: Time, is_due: impl Fn(Time, Time) -> bool) {
        self.now = self.now.max(now.min(self.end));
        while let Some((at, target)) = self.net.queue.next()
            && is_due(at, self.now)
        {
            self.net.step(at, target, &mut self.ends);
        }
    }

    /// Only the next event happens, whenever it is due: for a host that wants to see the order
    /// within an instant. False if there is none before the end of the run.
    pub fn advance_by_one(&mut self) -> bool {
        match self.net.queue.next() {
            Some((at, target)) if at <= self.end => {
                self.now = self.now.max(at);
                self.net.step(at, target, &mut self.ends);
                true
            }
            _ => false,
        }
    }

    /// Takes the packets that ended, in the order of time.
    pub fn departures(&mut self) -> Drain<'_, Departure> {
        self.ends.departures.drain(..)
    }

    /// Packets in the links.
    pub fn inside(&self) -> u64 {
        self.offered - self.ends.left
    }

    /// The run is over: the outcomes of the links of this path, with their indices.
    ///
    /// # Errors
    /// [`Violation`] if packets were made or lost on the way: a fault of the path, never of the
    /// host.
    pub fn finish(mut self) -> Result<Vec<(usize, LinkOutcome)>, Violation> {
        self.advance(self.end);
        let violation = |what| Violation {
            seed: self.seed,
            what,
        };
        let inside = self.net.links.iter().map(|l| l.inside().count() as u64);
        let inside: u64 = inside.sum();
        if self.offered != self.ends.left + inside {
            return Err(violation(format!(
                "path: offered {} is not left {} + in the links {inside}",
                self.offered, self.ends.left
            )));
        }
        let links = self.net.links.into_iter().enumerate();
        let links = links.filter(|(i, _)| self.hosted[*i]);
        links
            .map(|(i, link)| Ok((i, link.finish().map_err(violation)?)))
            .collect()
    }
}

impl Ends for RouteEnds {
    #[inline]
    fn arrive(&mut self, at: Time, packet: Packet, net: &mut Net) {
        self.carry(at, packet.after_hop(), net);
    }

    fn lose(&mut self, at: Time, packet: Packet, _: &mut Net) {
        self.depart(at, packet.number, PacketOutcome::Dropped);
    }

    /// Nobody else sets an event here.
    fn wake(&mut self, _: Time, _: Wake, _: &mut Net) {}
}

impl RouteEnds {
    /// A packet enters its next link, or is where it was sent to.
    fn carry(&mut self, at: Time, packet: Packet, net: &mut Net) {
        let (token, ce) = (packet.number, packet.is_ce());
        let route = &self.routes[packet.aside as usize];
        match route.get(usize::from(packet.hop())) {
            Some(&link) => {
                if !net.offer(at, link, packet) {
                    self.depart(at, token, PacketOutcome::Dropped);
                }
            }
            None => self.depart(at, token, PacketOutcome::Arrived { ce }),
        }
    }

    fn depart(&mut self, at: Time, token: u64, outcome: PacketOutcome) {
        self.left += 1;
        self.departures.push(Departure { token, at, outcome });
    }
}
