//! A flow inside a run: its endpoints, its place in the network, what is counted of it.

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Receiver, Segment, Sender};
use fullpipe_units::{Span, Time};

use crate::loss::DropRules;
use crate::net::Net;
use crate::outcome::{FlowOutcome, FlowTotals};
use crate::packet::Packet;
use crate::recorder::Recorder;
use crate::rng::{ComponentRng, derive_seed};
use crate::spec::{FlowSpec, RunSpec};
use crate::target::Wake;

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
    /// Pending entries of the event queue; [`Time::MAX`] for none.
    pub sender_wakes: Time,
    pub receiver_wakes: Time,
    pub recorder: Recorder,
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
    pub fn new(f: &FlowSpec, spec: &RunSpec) -> Self {
        let (cfg, setup) = f.sender.clone().with_stack(&f.stack);
        let (packet, ack) = (cfg.packet() as u16, cfg.header as u16);
        let sender = Sender::new(
            cfg,
            f.stack.controller(setup),
            derive_seed(spec.seed, &f.name),
        );
        Self {
            sender,
            receiver: Receiver::new(f.receiver.clone()),
            forward: f.forward.iter().map(|l| *l as u32).collect(),
            back: f.back.iter().map(|l| *l as u32).collect(),
            packet,
            ack,
            local_queue: f.local_queue,
            drops: DropRules::new(&f.drops, ComponentRng::new(spec.seed, &f.name)),
            sender_wakes: Time::MAX,
            receiver_wakes: Time::MAX,
            recorder: Recorder::new(spec.interval, spec.trace, f.start, f.sender.max_window),
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
        self.recorder.on_sender(now, &mut self.sender);
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

    /// Puts a segment on the path; false if the local queue refused it.
    #[inline]
    fn send(&mut self, now: Time, index: u32, segment: &Segment, net: &mut Net) -> bool {
        let size = if segment.syn { self.ack } else { self.packet };
        let packet = Packet::data(index, size, segment);
        if self.local_queue {
            return self.send_locally(now, segment, packet, net);
        }
        self.offered += u64::from(packet.is_data());
        let cut = match &mut self.drops {
            Some(drops) if packet.is_data() => {
                drops.strikes(now, segment.seq, segment.retransmission, self.sender.cwnd())
            }
            _ => false,
        };
        if cut || !net.offer(now, self.forward[0], packet) {
            self.lose(packet, net);
        }
        true
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
                self.offered += u64::from(packet.is_data());
                let cut = match &mut self.drops {
                    Some(drops) if packet.is_data() => {
                        drops.strikes(now, segment.seq, segment.retransmission, self.sender.cwnd())
                    }
                    _ => false,
                };
                if cut || !net.offer(now, link, packet) {
                    self.lose(packet, net);
                }
                return true;
            }
        };
        self.sender.refuse(now, segment);
        self.recorder.on_sender(now, &mut self.sender);
        net.schedule(
            stop.max(now + Span::from_nanos(1)),
            Wake::Resume(packet.flow as usize),
        );
        false
    }

    /// The receiver's ACK sets out.
    #[inline]
    pub fn answer(&mut self, now: Time, index: u32, ack: &Ack, net: &mut Net) {
        let packet = Packet::ack(index, self.ack, ack, &mut net.options);
        if !net.offer(now, self.back[0], packet) {
            self.lose(packet, net);
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

    #[cold]
    pub fn lose(&mut self, packet: Packet, net: &mut Net) {
        if packet.is_ack() {
            self.acks_dropped += 1;
        } else if packet.is_data() {
            self.dropped += 1;
        }
        packet.discard(&mut net.options);
    }

    pub fn begin_measurement(&mut self, now: Time) {
        self.at_measure = self.totals();
        self.at_arrived = self.receiver.counts().arrived;
        self.recorder.begin_measurement(now);
    }

    fn totals(&self) -> FlowTotals {
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

    pub fn outcome(&mut self, spec: &FlowSpec, end: Time) -> FlowOutcome {
        let totals = self.totals();
        let cwnd_mean = self.recorder.finish(end, self.receiver.counts());
        let r = &mut self.recorder;
        FlowOutcome {
            name: spec.name.clone(),
            mss: spec.sender.mss,
            packet: spec.sender.packet(),
            totals,
            rtt: std::mem::take(&mut r.rtt),
            cwnd_mean,
            cwnd_max: r.window_max,
            delivered_per_interval: std::mem::take(&mut r.delivered_per_interval),
            arrived_per_interval: std::mem::take(&mut r.arrived_per_interval),
            rounds: std::mem::take(&mut r.rounds),
            episodes: std::mem::take(&mut r.episodes),
            series: std::mem::take(&mut r.series),
            completed: self.completed,
            started: spec.start,
        }
    }
}
