//! The network between the endpoints: links, what waits to happen, options of the ACKs in flight.

use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_units::Time;

use crate::link::{Admission, Link};
use crate::packet::{OptionStore, Owner, Packet};
use crate::queue::{EventQueue, Target};
use crate::target::{Layout, Wake};
use crate::traffic::ClassRecord;

/// See above.
#[derive(Debug)]
pub struct Net {
    /// What waits to happen.
    pub queue: EventQueue,
    /// By index of the specification.
    pub links: Vec<Link>,
    /// Packets that queues dropped and nobody was told of yet.
    pub dropped: Vec<Packet>,
    /// Of the ACKs in flight.
    pub options: OptionStore,
    /// Numbers of what events wake.
    pub layout: Layout,
    /// Of the short flows, by class.
    pub classes: Vec<ClassRecord>,
    /// Flows of the specification: those that a capture records.
    pub lasting: u32,
    /// What a capture saw.
    pub capture: Option<Vec<CaptureRow>>,
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
            classes: Vec::new(),
            lasting: 0,
            capture: None,
        }
    }

    /// A host of `flow` sees a packet.
    #[inline]
    pub fn see(&mut self, now: Time, flow: u32, event: impl FnOnce() -> CaptureEvent) {
        if self.capture.is_some() {
            self.record(now, flow, event());
        }
    }

    #[cold]
    fn record(&mut self, at: Time, flow: u32, event: CaptureEvent) {
        if let Some(rows) = &mut self.capture
            && flow < self.lasting
        {
            rows.push(CaptureRow { at, flow, event });
        }
    }

    /// Adds an event that is not the arrival of a packet.
    #[inline]
    pub fn schedule(&mut self, at: Time, wake: Wake) {
        self.queue.push(at, self.layout.target(wake));
    }

    /// Offers a packet to a link; false if it is lost. A queue may drop packets later, or others now: see `dropped`.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, link: u32, packet: Packet) -> bool {
        match self.links[link as usize].offer(now, packet, &mut self.dropped) {
            Admission::Accepted { arrives, first } => {
                if first {
                    self.queue.push(arrives, link);
                }
                true
            }
            Admission::Refused => false,
            rare => {
                self.admit(link as usize, rare);
                true
            }
        }
    }

    /// Sets the events that an admission asks for.
    #[cold]
    fn admit(&mut self, link: usize, admission: Admission) {
        match admission {
            Admission::Accepted { arrives, first } if first => {
                self.queue.push(arrives, link as Target);
            }
            Admission::Astray { at, first } if first => self.schedule(at, Wake::Stray(link)),
            Admission::Queued { begins: Some(at) } => self.schedule(at, Wake::Departure(link)),
            _ => {}
        }
    }

    /// A transmission begins at a link whose queue decides at the exit.
    pub fn transmit(&mut self, now: Time, link: usize) {
        let (admission, begins) = self.links[link].transmit(now, &mut self.dropped);
        if let Some(admission) = admission {
            self.admit(link, admission);
        }
        self.admit(link, Admission::Queued { begins });
    }

    /// The oldest packet of a link arrives now at its far end; the link's pending event moves to the next one.
    #[inline]
    pub fn take(&mut self, link: u32) -> Packet {
        let l = &mut self.links[link as usize];
        let packet = l.take();
        match l.next_arrival() {
            Some(at) => self.queue.replace_top(at, link),
            None => self.queue.pop(),
        }
        packet
    }

    /// A stray arrives now at the far end of its link.
    pub fn take_stray(&mut self, link: usize) -> Option<Packet> {
        let (packet, next) = self.links[link].take_stray();
        if let Some(at) = next {
            self.schedule(at, Wake::Stray(link));
        }
        packet
    }
}

/// Packets in the links at the end, by whose they are.
pub struct Inside {
    /// Segments and ACKs of each flow.
    pub flows: Vec<u64>,
    /// Data among them.
    pub data: Vec<u64>,
    /// Datagrams of each source.
    pub sources: Vec<u64>,
    /// Requests and answers of each sequence of probes.
    pub pings: Vec<u64>,
}

impl Inside {
    /// With so many of each.
    pub fn count(links: &[Link], flows: usize, sources: usize, pings: usize) -> Self {
        let mut inside = Self {
            flows: vec![0; flows],
            data: vec![0; flows],
            sources: vec![0; sources],
            pings: vec![0; pings],
        };
        for packet in links.iter().flat_map(|link| link.inside()) {
            let i = packet.flow as usize;
            match packet.owner() {
                Owner::Segment | Owner::Ack => {
                    inside.flows[i] += 1;
                    inside.data[i] += u64::from(packet.is_data());
                }
                Owner::Datagram => inside.sources[i] += 1,
                Owner::Request | Owner::Reply => inside.pings[i] += 1,
            }
        }
        inside
    }
}
