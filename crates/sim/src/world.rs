//! The event loop: links hand packets on, endpoints answer, timers fire; conservation is checked at the end.

use fullpipe_cc::Stack;
use fullpipe_flow::{Receiver, Segment, Sender};
use fullpipe_units::{Span, Time};

use crate::Violation;
use crate::link::{Admission, Link};
use crate::loss::DropRules;
use crate::outcome::{FlowOutcome, FlowTotals, Outcome};
use crate::packet::{OptionStore, Packet};
use crate::queue::{EventQueue, Target};
use crate::recorder::Recorder;
use crate::rng::{ComponentRng, derive_seed};
use crate::spec::{FlowSpec, RunSpec, Trace};

/// A run in progress.
pub struct World {
    queue: EventQueue,
    links: Vec<Link>,
    /// Packets that each link has handed on.
    handed_on: Vec<u64>,
    flows: Vec<Flow>,
    options: OptionStore,
    events: u64,
    delivered_packets: u64,
}

/// One flow's endpoints and bookkeeping.
struct Flow {
    sender: Sender<Stack>,
    receiver: Receiver,
    forward: Vec<u32>,
    back: Vec<u32>,
    packet: u16,
    ack: u16,
    local_queue: bool,
    drops: Option<DropRules>,
    /// Pending entries of the event queue; [`Time::MAX`] for none.
    sender_wakes: Time,
    receiver_wakes: Time,
    recorder: Recorder,
    dropped: u64,
    acks_in: u64,
    acks_dropped: u64,
    /// Data packets put on the path, drops included.
    offered: u64,
    /// It has a last segment.
    finite: bool,
    completed: Option<Time>,
    at_measure: FlowTotals,
    at_arrived: u64,
}

/// What a [`Target`] names.
enum Wake {
    Link(usize),
    Sender(usize),
    Receiver(usize),
    Start(usize),
    Stop(usize),
    Resume(usize),
    Measure,
}

impl World {
    /// Builds the run.
    pub fn new(spec: &RunSpec) -> Self {
        let links: Vec<Link> = spec
            .links
            .iter()
            .map(|l| Link::new(l, spec.seed, spec.measure_from, sample_step(spec)))
            .collect();
        let flows: Vec<Flow> = spec.flows.iter().map(|f| Flow::new(f, spec)).collect();
        let handed_on = vec![0; links.len()];
        let mut world = Self {
            queue: EventQueue::default(),
            links,
            handed_on,
            flows,
            options: OptionStore::default(),
            events: 0,
            delivered_packets: 0,
        };
        world.queue.push(spec.measure_from, world.target(&Wake::Measure));
        for (i, f) in spec.flows.iter().enumerate() {
            world.queue.push(f.start, world.target(&Wake::Start(i)));
            if let Some(stop) = f.stop {
                world.queue.push(stop, world.target(&Wake::Stop(i)));
            }
        }
        world
    }

    /// Runs to `end`.
    pub fn run(&mut self, end: Time) {
        let links = self.links.len() as Target;
        while let Some((now, target)) = self.queue.peek() {
            if now > end {
                break;
            }
            self.events += 1;
            if target < links {
                self.link_event(now, target);
            } else {
                self.queue.pop();
                self.wake(now, target);
            }
        }
    }

    fn target(&self, wake: &Wake) -> Target {
        let (links, flows) = (self.links.len(), self.flows.len());
        let at = match *wake {
            Wake::Link(i) => i,
            Wake::Sender(i) => links + i,
            Wake::Receiver(i) => links + flows + i,
            Wake::Start(i) => links + 2 * flows + i,
            Wake::Stop(i) => links + 3 * flows + i,
            Wake::Resume(i) => links + 4 * flows + i,
            Wake::Measure => links + 5 * flows,
        };
        at as Target
    }

    fn named(&self, target: Target) -> Wake {
        let (links, flows) = (self.links.len(), self.flows.len());
        let at = target as usize;
        if at < links {
            return Wake::Link(at);
        }
        let (kind, i) = ((at - links) / flows.max(1), (at - links) % flows.max(1));
        match kind {
            0 => Wake::Sender(i),
            1 => Wake::Receiver(i),
            2 => Wake::Start(i),
            3 => Wake::Stop(i),
            4 => Wake::Resume(i),
            _ => Wake::Measure,
        }
    }

    /// The oldest packet of a link arrives at its far end.
    #[inline]
    fn link_event(&mut self, now: Time, target: Target) {
        let l = target as usize;
        let Some((packet, next)) = self.links[l].take() else {
            self.queue.pop();
            return;
        };
        self.handed_on[l] += 1;
        match next {
            Some(at) => self.queue.replace_top(at, target),
            None => self.queue.pop(),
        }
        self.arrive(now, packet);
    }

    #[inline]
    fn arrive(&mut self, now: Time, mut packet: Packet) {
        packet.hop += 1;
        let i = packet.flow as usize;
        let flow = &mut self.flows[i];
        if packet.is_ack() {
            if let Some(&link) = flow.back.get(packet.hop as usize) {
                self.forward(now, link, packet);
                return;
            }
            let ack = packet.to_ack(&mut self.options);
            flow.acks_in += 1;
            flow.sender.handle_ack(now, &ack);
            if flow.finite && flow.completed.is_none() && flow.sender.is_done() {
                flow.completed = Some(now);
            }
            self.pump(now, i);
        } else {
            if let Some(&link) = flow.forward.get(packet.hop as usize) {
                self.forward(now, link, packet);
                return;
            }
            flow.recorder.on_arrival(now, flow.receiver.counts());
            if packet.is_data() {
                self.delivered_packets += 1;
            }
            if let Some(ack) = flow.receiver.handle_segment(now, &packet.to_segment()) {
                let packet = Packet::ack(packet.flow, flow.ack, &ack, &mut self.options);
                let link = flow.back[0];
                self.forward(now, link, packet);
            } else {
                self.arm_receiver(i);
            }
        }
    }

    /// Offers a packet to a link that is not a local queue.
    #[inline]
    fn forward(&mut self, now: Time, link: u32, packet: Packet) {
        match self.links[link as usize].offer(now, packet) {
            Admission::Accepted { arrives, first } => {
                if first {
                    self.queue.push(arrives, link);
                }
            }
            Admission::Full { .. } | Admission::Lost => self.lose(packet),
        }
    }

    fn lose(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        if packet.is_ack() {
            flow.acks_dropped += 1;
        } else if packet.is_data() {
            flow.dropped += 1;
        }
        packet.discard(&mut self.options);
    }

    /// Sends all that the sender has for now, then sets its timer.
    #[inline]
    fn pump(&mut self, now: Time, i: usize) {
        let flow = &mut self.flows[i];
        flow.recorder.on_sender(now, &mut flow.sender);
        while let Some(segment) = self.flows[i].sender.poll_transmit(now) {
            if !self.send(now, i, &segment) {
                break;
            }
        }
        let flow = &mut self.flows[i];
        let wants = flow.sender.next_timeout();
        if wants < flow.sender_wakes {
            flow.sender_wakes = wants;
            let target = self.target(&Wake::Sender(i));
            self.queue.push(wants, target);
        }
    }

    /// Puts a segment on the path; false if the local queue refused it.
    #[inline]
    fn send(&mut self, now: Time, i: usize, segment: &Segment) -> bool {
        let flow = &mut self.flows[i];
        let packet = Packet::data(i as u32, flow.packet, segment);
        let link = flow.forward[0];
        if flow.local_queue {
            return self.send_locally(now, i, segment, packet);
        }
        if packet.is_data() {
            flow.offered += 1;
            if let Some(drops) = &mut flow.drops
                && drops.strikes(now, segment.seq, segment.retransmission, flow.sender.cwnd())
            {
                self.lose(packet);
                return true;
            }
        }
        self.forward(now, link, packet);
        true
    }

    /// The first link is the host's own interface: overflow is a stall, and exact drops happen behind it.
    fn send_locally(&mut self, now: Time, i: usize, segment: &Segment, packet: Packet) -> bool {
        let link = self.flows[i].forward[0];
        match self.links[link as usize].offer(now, packet) {
            Admission::Accepted { arrives, first } => {
                if packet.is_data() {
                    self.flows[i].offered += 1;
                }
                if first {
                    self.queue.push(arrives, link);
                }
                true
            }
            Admission::Lost => {
                self.flows[i].offered += 1;
                self.lose(packet);
                true
            }
            Admission::Full { retry } => {
                let flow = &mut self.flows[i];
                flow.sender.refuse(now, segment);
                flow.recorder.on_sender(now, &mut flow.sender);
                let target = self.target(&Wake::Resume(i));
                self.queue.push(retry.max(now + Span::from_nanos(1)), target);
                false
            }
        }
    }

    #[inline]
    fn arm_receiver(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        let wants = flow.receiver.next_timeout();
        if wants < flow.receiver_wakes {
            flow.receiver_wakes = wants;
            let target = self.target(&Wake::Receiver(i));
            self.queue.push(wants, target);
        }
    }

    #[cold]
    fn wake(&mut self, now: Time, target: Target) {
        match self.named(target) {
            Wake::Link(_) => {}
            Wake::Sender(i) => {
                let flow = &mut self.flows[i];
                if flow.sender_wakes != now {
                    return; // moved since
                }
                flow.sender_wakes = Time::MAX;
                if flow.sender.next_timeout() <= now {
                    flow.sender.handle_timeout(now);
                }
                self.pump(now, i);
            }
            Wake::Receiver(i) => {
                let flow = &mut self.flows[i];
                if flow.receiver_wakes != now {
                    return;
                }
                flow.receiver_wakes = Time::MAX;
                if let Some(ack) = flow.receiver.handle_timeout(now) {
                    let packet = Packet::ack(i as u32, flow.ack, &ack, &mut self.options);
                    let link = flow.back[0];
                    self.forward(now, link, packet);
                }
                self.arm_receiver(i);
            }
            Wake::Start(i) => {
                self.flows[i].sender.start(now);
                self.pump(now, i);
            }
            Wake::Stop(i) => self.flows[i].sender.stop(),
            Wake::Resume(i) => {
                self.flows[i].sender.resume();
                self.pump(now, i);
            }
            Wake::Measure => {
                for flow in &mut self.flows {
                    flow.at_measure = flow.totals();
                    flow.at_arrived = flow.receiver.counts().arrived;
                    flow.recorder.begin_measurement(now);
                }
            }
        }
    }

    /// Checks conservation and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(mut self, spec: &RunSpec, end: Time) -> Result<Outcome, String> {
        let mut inside = vec![0u64; self.flows.len()];
        let mut links = Vec::with_capacity(self.links.len());
        for (i, link) in self.links.into_iter().enumerate() {
            for flow in link.data_inside() {
                inside[flow as usize] += 1;
            }
            links.push(link.finish(end, self.handed_on[i])?);
        }
        let mut flows = Vec::with_capacity(self.flows.len());
        for ((i, flow), fs) in self.flows.iter_mut().enumerate().zip(&spec.flows) {
            let counts = *flow.receiver.counts();
            let name = &fs.name;
            if flow.offered != counts.arrived + flow.dropped + inside[i] {
                return Err(format!(
                    "flow {name}: sent {} is not arrived {} + dropped {} + in the network {}",
                    flow.offered, counts.arrived, flow.dropped, inside[i]
                ));
            }
            if flow.offered != flow.sender.counts().sent {
                return Err(format!(
                    "flow {name}: put {} on the path, the sender counts {}",
                    flow.offered,
                    flow.sender.counts().sent
                ));
            }
            if counts.arrived != counts.delivered + counts.duplicates {
                return Err(format!("flow {name}: arrived is not delivered + duplicates"));
            }
            flows.push(flow.outcome(fs, end));
        }
        Ok(Outcome {
            duration: spec.duration,
            measure_from: spec.measure_from,
            interval: spec.interval,
            flows,
            links,
            events: self.events,
            delivered_packets: self.delivered_packets,
        })
    }
}

impl Flow {
    fn new(f: &FlowSpec, spec: &RunSpec) -> Self {
        let (cfg, setup) = f.sender.clone().with_stack(&f.stack);
        let (packet, ack) = (cfg.packet() as u16, cfg.header as u16);
        let sender = Sender::new(cfg, f.stack.controller(setup), derive_seed(spec.seed, &f.name));
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
            recorder: Recorder::new(spec.interval, spec.trace, f.start),
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

    fn outcome(&mut self, spec: &FlowSpec, end: Time) -> FlowOutcome {
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

/// Queue samples follow the trace's grain, at least a thousandth of the run.
fn sample_step(spec: &RunSpec) -> Span {
    match spec.trace {
        Trace::Off => Span::MAX,
        Trace::Every(step) => step,
        Trace::Full => spec.duration / 10_000,
    }
}

/// Runs one specification to its end.
///
/// # Errors
/// [`Violation`] if a conservation check fails: a fault of the simulator, never of the scenario.
pub fn run(spec: &RunSpec) -> Result<Outcome, Violation> {
    let violation = |what| Violation { seed: spec.seed, what };
    let targets = spec.links.len() + 5 * spec.flows.len() + 1;
    if targets >= EventQueue::MAX_TARGETS {
        return Err(violation(format!("{targets} event targets are more than fit")));
    }
    let end = Time::ZERO + spec.duration;
    let mut world = World::new(spec);
    world.run(end);
    world.finish(spec, end).map_err(violation)
}
