//! Links, what waits to happen in them and around them, and the one step of every event loop.

use fullpipe_units::{Span, Time};

use crate::link::{Admission, Link, Watch};
use crate::packet::{OptionStore, Packet};
use crate::queue::{EventQueue, Target};
use crate::target::{Layout, LinkEvent, Wake};

const NANOSECOND: Span = Span::from_nanos(1);

/// Links and their events.
#[derive(Debug)]
pub struct Net {
    /// Pending events.
    pub queue: EventQueue,
    /// By index of the specification.
    pub links: Vec<Link>,
    /// Packets that queues dropped after they had taken them in, and that nobody was told of yet.
    pub dropped: Vec<Packet>,
    /// SACK blocks and the like of the ACKs in flight.
    pub options: OptionStore,
    /// Numbers of what events wake.
    pub layout: Layout,
    /// Links whose queues are sampled, and how often.
    sampled: Vec<u32>,
    sample_step: Span,
}

/// What stands around the links: hosts, or what hands packets in and takes them out.
pub trait Ends {
    /// A packet has crossed a link.
    fn arrive(&mut self, now: Time, packet: Packet, net: &mut Net);

    /// A queue dropped a packet that it had taken in.
    fn lose(&mut self, now: Time, packet: Packet, net: &mut Net);

    /// An event that is not one of a link.
    fn wake(&mut self, now: Time, wake: Wake, net: &mut Net);

    /// A packet that was overtaken; apart, so that the frequent case stays in the loop.
    #[cold]
    #[inline(never)]
    fn arrive_late(&mut self, now: Time, packet: Packet, net: &mut Net) {
        self.arrive(now, packet, net);
    }
}

impl Net {
    /// With these links and nobody around them.
    pub fn new(links: Vec<Link>, layout: Layout) -> Self {
        Self {
            queue: EventQueue::default(),
            links,
            dropped: Vec::new(),
            options: OptionStore::default(),
            layout,
            sampled: Vec::new(),
            sample_step: Span::MAX,
        }
    }

    /// From time zero on the queues of those links, by index, are sampled as `watch` says.
    pub fn sample_queues(&mut self, watch: &Watch, of: impl Fn(usize) -> bool) {
        if watch.sample_step < Span::MAX {
            let links = self.links.iter().enumerate();
            let queues = links.filter(|(i, link)| of(*i) && link.has_queue());
            self.sampled = queues.map(|(i, _)| i as u32).collect();
            self.sample_step = watch.sample_step;
            self.sample(Time::ZERO, Time::ZERO);
        }
    }

    /// A step ends at `at`, before all that happens then: with `now`, the nanosecond before.
    /// Traffic that comes at regular times may come at those of the steps.
    fn sample(&mut self, now: Time, at: Time) {
        for link in &self.sampled {
            self.links[*link as usize].sample(now, at);
        }
        if !self.sampled.is_empty() {
            let sample = self.layout.target(Wake::Network(LinkEvent::Sample));
            let next = at + self.sample_step;
            self.queue.push_behind(next - NANOSECOND, sample);
        }
    }

    /// The earliest event, which is due `now`, happens.
    #[inline(always)]
    pub fn step<E: Ends>(&mut self, now: Time, target: Target, ends: &mut E) {
        if self.layout.is_arrival(target) {
            let packet = self.take(target);
            ends.arrive(now, packet, self);
        } else {
            self.queue.pop();
            self.wake(now, target, ends);
        }
        if !self.dropped.is_empty() {
            self.lose_dropped(now, ends);
        }
    }

    #[cold]
    fn wake<E: Ends>(&mut self, now: Time, target: Target, ends: &mut E) {
        match self.layout.named(target) {
            Wake::Network(LinkEvent::Departure(link)) => self.transmit(now, link as usize),
            Wake::Network(LinkEvent::Reordered(link)) => {
                if let Some(packet) = self.take_reordered(link) {
                    ends.arrive_late(now, packet, self);
                }
            }
            Wake::Network(LinkEvent::Sample) => self.sample(now, now + NANOSECOND),
            wake => ends.wake(now, wake, self),
        }
    }

    /// Queues dropped packets that they had taken in.
    #[cold]
    pub fn lose_dropped<E: Ends>(&mut self, now: Time, ends: &mut E) {
        for packet in std::mem::take(&mut self.dropped) {
            ends.lose(now, packet, self);
        }
    }

    /// Adds an event that is not the arrival of a packet.
    #[inline]
    pub fn schedule(&mut self, at: Time, wake: Wake) {
        self.queue.push(at, self.layout.target(wake));
    }

    /// Offers a packet to a link; false if it is lost. A queue may drop packets later, or others
    /// now: see `dropped`.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, link: u32, packet: Packet) -> bool {
        match self.links[link as usize].offer(now, packet) {
            Admission::Accepted { arrives, first } => {
                if first {
                    self.queue.push(arrives, link);
                }
                true
            }
            Admission::Refused => false,
            _ => self.offer_apart(now, link, packet.apart()),
        }
    }

    /// The same for a link that is made of elements. An idle transmitter takes the packet before
    /// another one comes in the same instant (Linux `__dev_xmit_skb`: what is enqueued is sent at
    /// once).
    #[inline(never)]
    fn offer_apart(&mut self, now: Time, link: u32, packet: Packet) -> bool {
        let link = link as usize;
        let admission = self.links[link].offer_apart(now, packet, &mut self.dropped);
        match admission {
            Admission::Queued { begins: Some(at) } if at <= now => self.transmit(now, link),
            _ => self.admit(link, admission),
        }
        !matches!(admission, Admission::Refused)
    }

    /// Sets the events that an admission asks for.
    #[inline(always)]
    fn admit(&mut self, link: usize, admission: Admission) {
        match admission {
            Admission::Accepted { arrives, first } if first => {
                self.queue.push(arrives, link as Target);
            }
            Admission::Reordered { at, first } if first => {
                self.schedule(at, Wake::Network(LinkEvent::Reordered(link as u32)));
            }
            Admission::Queued { begins } => self.announce(link, begins),
            _ => {}
        }
    }

    /// Sets the event of a link's next transmission, if one is to begin.
    #[inline]
    fn announce(&mut self, link: usize, begins: Option<Time>) {
        if let Some(at) = begins {
            // Who arrives in the instant of a departure finds its place, as at other links.
            let departure = Wake::Network(LinkEvent::Departure(link as u32));
            self.queue.push_ahead(at, self.layout.target(departure));
        }
    }

    /// A transmission begins at a link whose discipline owns the queue.
    fn transmit(&mut self, now: Time, link: usize) {
        let (admission, begins) = self.links[link].transmit(now, &mut self.dropped);
        if let Some(admission) = admission {
            self.admit(link, admission);
        }
        self.announce(link, begins);
    }

    /// The oldest packet of a link arrives now at its far end; the link's pending event moves to
    /// the next one.
    #[inline(always)]
    fn take(&mut self, link: u32) -> Packet {
        let (packet, next) = self.links[link as usize].take();
        match next {
            Some(at) => self.queue.replace_top(at, link),
            None => self.queue.pop(),
        }
        packet
    }

    /// A reordered packet arrives now at the far end of its link.
    fn take_reordered(&mut self, link: u32) -> Option<Packet> {
        let (packet, next) = self.links[link as usize].take_reordered();
        if let Some(at) = next {
            self.schedule(at, Wake::Network(LinkEvent::Reordered(link)));
        }
        packet
    }
}
