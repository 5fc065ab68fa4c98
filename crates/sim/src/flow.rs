//! A flow inside a run: its endpoints, its place in the network, what is counted of it.

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Receiver, Segment, Sender};
use fullpipe_run::{
    ArrivalRecorder, CaptureEvent, ComponentRng, DropRules, FlowOutcome, FlowSpec, FlowTotals,
    RunSpec, SenderRecorder, Trace, derive_seed,
};
use fullpipe_units::{Span, Time};

use crate::net::Net;
use crate::packet::Packet;
use crate::target::Wake;
use crate::traffic::Short;

/// One flow's endpoints and bookkeeping.
#[derive(Debug)]
pub struct Flow {
    pub sender: Sender<Stack>,
    pub receiver: Receiver,
    pub forward: Vec<u32>,
    pub back: Vec<u32>,
    packet: u16,
    ack: u16,
    local_queue: bool,
    drops: Option<DropRules>,
    arrival_drops: Option<Box<DropRules>>,
    /// Pending entries of the event queue; [`Time::MAX`] for none.
    pub sender_wakes: Time,
    pub receiver_wakes: Time,
    recorder: SenderRecorder,
    arrivals: ArrivalRecorder,
    /// A short flow of a class; its recorder is idle.
    pub short: Option<Short>,
    /// Packets of either direction in the network.
    pub inside: u64,
    /// Pending events that make it try its interface again.
    pub resumes: u32,
    pub started: Time,
    pub dropped: u64,
    pub acks_in: u64,
    acks_dropped: u64,
    /// Data packets put on the path, drops included.
    pub offered: u64,
    /// It has a last segment.
    pub finite: bool,
    pub completed: Option<Time>,
    at_measure: FlowTotals,
    at_arrived: u64,
}

impl Flow {
    /// A flow of the specification.
    pub fn lasting(index: usize, f: &FlowSpec, spec: &RunSpec) -> Self {
        let started = f.started(spec.seed);
        let recorder =
            SenderRecorder::new(spec.trace, started, f.sender.window.max).with_flow(index);
        Self::new(f, spec.seed, started, recorder, spec.interval, None)
    }

    /// A flow of a class that starts now.
    pub fn short(f: &FlowSpec, seed: u64, now: Time, short: Short) -> Self {
        let idle = SenderRecorder::new(Trace::Off, now, f64::INFINITY);
        Self::new(f, seed, now, idle, Span::MAX, Some(short))
    }

    fn new(
        f: &FlowSpec,
        seed: u64,
        started: Time,
        recorder: SenderRecorder,
        interval: Span,
        short: Option<Short>,
    ) -> Self {
        let (cfg, setup) = f.sender.clone().with_stack(&f.stack);
        let (packet, ack) = (cfg.packet() as u16, cfg.header as u16);
        let sender = Sender::new(cfg, f.stack.controller(setup), derive_seed(seed, &f.name));
        Self {
            sender,
            receiver: Receiver::new(f.receiver.clone()),
            forward: f.forward.iter().map(|l| *l as u32).collect(),
            back: f.back.iter().map(|l| *l as u32).collect(),
            packet,
            ack,
            local_queue: f.local_queue,
            drops: DropRules::new(&f.drops, ComponentRng::new(seed, &f.name)),
            arrival_drops: DropRules::at_receiver(f, seed).map(Box::new),
            sender_wakes: Time::MAX,
            receiver_wakes: Time::MAX,
            recorder,
            arrivals: ArrivalRecorder::new(interval),
            short,
            inside: 0,
            resumes: 0,
            started,
            dropped: 0,
            acks_in: 0,
            acks_dropped: 0,
            offered: 0,
            finite: f.sender.transfer.is_some() || f.stop.is_some(),
            completed: None,
            at_measure: FlowTotals::default(),
            at_arrived: 0,
        }
    }

    /// Sends all that the sender has for now, then sets its timer.
    #[inline]
    pub fn pump(&mut self, now: Time, index: u32, net: &mut Net) {
        self.observe(now, net);
        while let Some(segment) = self.sender.poll_transmit(now) {
            if !self.send(now, index, &segment, net) {
                break;
            }
        }
        let wants = self.sender.next_timeout();
        if wants < self.sender_wakes {
            self.sender_wakes = wants;
            net.schedule(wants, Wake::Sender(index as usize));
        }
    }

    /// The sender has processed an ACK or a timeout.
    #[inline(always)]
    fn observe(&mut self, now: Time, net: &mut Net) {
        match &mut self.short {
            None => self.recorder.on_sender(now, &mut self.sender),
            Some(short) => {
                let record = &mut net.classes[short.class as usize];
                short.on_sender(now, &mut self.sender, record);
            }
        }
    }

    /// True if the receiver's host throws away a packet that arrives.
    #[inline]
    pub fn drops_arrival(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(drops) = &mut self.arrival_drops else {
            return false;
        };
        packet.is_data() && drops.strikes(now, packet.seq, packet.is_retransmission(), 0.0)
    }

    /// The receiver gets a segment.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, segment: &Segment, net: &mut Net) -> Option<Ack> {
        let before = self.receiver.counts();
        let delivered = before.delivered;
        if self.short.is_none() {
            self.arrivals.on_arrival(now, before);
        }
        let ack = self.receiver.handle_segment(now, segment);
        if self.short.is_some() {
            self.note_delivery(now, delivered, net);
        }
        ack
    }

    #[cold]
    fn note_delivery(&self, now: Time, before: u64, net: &mut Net) {
        if let Some(short) = &self.short {
            let new = self.receiver.counts().delivered - before;
            net.classes[short.class as usize].deliver(now, new);
        }
    }

    /// Notes the moment at which a finite transfer is acknowledged.
    #[inline]
    pub fn note_completion(&mut self, now: Time, net: &mut Net) {
        if self.finite && self.completed.is_none() && self.sender.is_done() {
            self.completed = Some(now);
            match &self.short {
                Some(short) => net.classes[short.class as usize].complete(now, short.number),
                None => self.recorder.complete(now),
            }
        }
    }

    /// True for a short flow of which nothing is left: complete, no packet in the network, no answer held back, no event that
    /// could reach who comes after it.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.short.is_some()
            && self.completed.is_some()
            && self.inside == 0
            && self.resumes == 0
            && self.receiver.next_timeout() == Time::MAX
    }

    /// It is over, its slot is free.
    pub fn vacate(&mut self) {
        self.short = None;
        self.sender_wakes = Time::MAX;
        self.receiver_wakes = Time::MAX;
    }

    /// Puts a segment on the path; false if the local queue refused it.
    #[inline]
    fn send(&mut self, now: Time, index: u32, segment: &Segment, net: &mut Net) -> bool {
        let size = if segment.syn { self.ack } else { self.packet };
        let packet = Packet::data(index, size, segment);
        if self.local_queue {
            return self.send_locally(now, segment, packet, net);
        }
        self.set_out(now, segment, packet, net);
        true
    }

    #[inline(always)]
    fn set_out(&mut self, now: Time, segment: &Segment, packet: Packet, net: &mut Net) {
        self.offered += u64::from(packet.is_data());
        self.inside += 1;
        net.see(now, packet.flow, || CaptureEvent::SegmentSent(*segment));
        let cut = match &mut self.drops {
            Some(drops) if packet.is_data() => {
                drops.strikes(now, segment.seq, segment.retransmission, self.sender.cwnd())
            }
            _ => false,
        };
        if cut || !net.offer(now, self.forward[0], packet) {
            self.lose(now, packet, net);
        }
    }

    /// The first link is the host's own interface: overflow is a stall. Exact drops strike what the interface accepted.
    #[cold]
    fn send_locally(
        &mut self,
        now: Time,
        segment: &Segment,
        packet: Packet,
        net: &mut Net,
    ) -> bool {
        let link = self.forward[0];
        let stop = match net.links[link as usize].room(now, packet.size) {
            Some(retry) => retry,
            None => {
                self.set_out(now, segment, packet, net);
                return true;
            }
        };
        self.sender.refuse(now, segment);
        self.observe(now, net);
        self.resumes += 1;
        net.schedule(
            stop.max(now + Span::from_nanos(1)),
            Wake::Resume(packet.flow as usize),
        );
        false
    }

    /// The receiver's ACK sets out.
    #[inline(always)]
    pub fn answer(&mut self, now: Time, index: u32, ack: &Ack, net: &mut Net) {
        let packet = Packet::ack(index, self.ack, ack, &mut net.options);
        self.inside += 1;
        net.see(now, index, || CaptureEvent::AckSent(*ack));
        if !net.offer(now, self.back[0], packet) {
            self.lose(now, packet, net);
        }
    }

    #[inline]
    pub fn arm_receiver(&mut self, index: u32, net: &mut Net) {
        let wants = self.receiver.next_timeout();
        if wants < self.receiver_wakes {
            self.receiver_wakes = wants;
            net.schedule(wants, Wake::Receiver(index as usize));
        }
    }

    /// The network dropped one of its packets.
    #[cold]
    pub fn lose(&mut self, now: Time, packet: Packet, net: &mut Net) {
        self.inside -= 1;
        if packet.is_ack() {
            self.acks_dropped += 1;
            net.see(now, packet.flow, || CaptureEvent::AckDropped(packet.seq));
        } else {
            self.dropped += u64::from(packet.is_data());
            net.see(now, packet.flow, || {
                CaptureEvent::SegmentDropped(packet.to_segment())
            });
        }
        if let Some(short) = &self.short
            && packet.is_data()
            && !packet.is_retransmission()
        {
            net.classes[short.class as usize].lost(short.number, packet.seq);
        }
        packet.discard(&mut net.options);
    }

    pub fn begin_measurement(&mut self, now: Time) {
        self.at_measure = self.totals();
        self.at_arrived = self.receiver.counts().arrived;
        self.recorder.begin_measurement(now);
    }

    pub fn totals(&self) -> FlowTotals {
        let (s, r) = (self.sender.counts(), self.receiver.counts());
        FlowTotals {
            sent: s.sent,
            retransmits: s.retransmits,
            delivered: r.delivered,
            delivered_measured: r.delivered - self.at_measure.delivered,
            arrived_measured: r.arrived - self.at_arrived,
            duplicates: r.duplicates,
            out_of_order: r.out_of_order,
            dropped: self.dropped,
            loss_events: s.loss_events,
            loss_events_measured: s.loss_events - self.at_measure.loss_events,
            timeouts: s.timeouts,
            probes: s.probes,
            undone: s.undone,
            local_stalls: s.local_stalls,
            acks: self.acks_in,
        }
    }

    /// Checks conservation with `data` of its data packets and `all` of its packets in the network.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn check(&self, name: &str, data: u64, all: u64) -> Result<(), String> {
        let counts = self.receiver.counts();
        if self.offered != counts.arrived + self.dropped + data {
            return Err(format!(
                "flow {name}: sent {} is not arrived {} + dropped {} + in the network {data}",
                self.offered, counts.arrived, self.dropped
            ));
        }
        if self.inside != all {
            return Err(format!(
                "flow {name}: {} packets under way, the links hold {all}",
                self.inside
            ));
        }
        if self.offered != self.sender.counts().sent {
            return Err(format!(
                "flow {name}: put {} on the path, the sender counts {}",
                self.offered,
                self.sender.counts().sent
            ));
        }
        if counts.arrived != counts.delivered + counts.duplicates {
            return Err(format!(
                "flow {name}: arrived is not delivered + duplicates"
            ));
        }
        Ok(())
    }

    pub fn outcome(&mut self, spec: &FlowSpec, end: Time) -> FlowOutcome {
        let arrivals = std::mem::replace(&mut self.arrivals, ArrivalRecorder::new(Span::MAX));
        let arrivals = arrivals.finish(end, self.receiver.counts());
        let timing = (self.started, self.completed);
        FlowOutcome::new(
            spec,
            self.totals(),
            self.recorder.finish(end),
            arrivals,
            timing,
        )
    }
}
