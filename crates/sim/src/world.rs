//! The event loop: links hand packets on, endpoints answer, timers fire; conservation is checked at the end.

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Receiver, Segment, Sender};
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
    net: Net,
    flows: Vec<Flow>,
    events: u64,
    delivered_packets: u64,
}

/// The network between the endpoints: links, what waits to happen, options of the ACKs in flight.
struct Net {
    queue: EventQueue,
    links: Vec<Link>,
    options: OptionStore,
    /// First target of the senders' timers, then receivers', and so on.
    links_end: u32,
    flows: u32,
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

/// What a [`Target`] beyond the links names.
enum Wake {
    Sender(usize),
    Receiver(usize),
    Start(usize),
    Stop(usize),
    Resume(usize),
    Measure,
}

impl Net {
    fn target(&self, wake: &Wake) -> Target {
        let (kind, i) = match *wake {
            Wake::Sender(i) => (0, i),
            Wake::Receiver(i) => (1, i),
            Wake::Start(i) => (2, i),
            Wake::Stop(i) => (3, i),
            Wake::Resume(i) => (4, i),
            Wake::Measure => (5, 0),
        };
        self.links_end + kind * self.flows + i as Target
    }

    fn named(&self, target: Target) -> Wake {
        let at = target - self.links_end;
        let i = at.checked_rem(self.flows).unwrap_or(0) as usize;
        match at.checked_div(self.flows).unwrap_or(5) {
            0 => Wake::Sender(i),
            1 => Wake::Receiver(i),
            2 => Wake::Start(i),
            3 => Wake::Stop(i),
            4 => Wake::Resume(i),
            _ => Wake::Measure,
        }
    }

    fn schedule(&mut self, at: Time, wake: &Wake) {
        let target = self.target(wake);
        self.queue.push(at, target);
    }

    /// Offers a packet to a link; false if it is lost.
    #[inline(always)]
    fn offer(&mut self, now: Time, link: u32, packet: Packet) -> bool {
        match self.links[link as usize].offer(now, packet) {
            Admission::Accepted { arrives, first } => {
                if first {
                    self.queue.push(arrives, link);
                }
                true
            }
            Admission::Full | Admission::Lost => false,
        }
    }

    /// The oldest packet of a link arrives now at its far end; the link's pending event moves to the next one.
    #[inline]
    fn take(&mut self, link: u32) -> Packet {
        let l = &mut self.links[link as usize];
        let packet = l.take();
        match l.next_arrival() {
            Some(at) => self.queue.replace_top(at, link),
            None => self.queue.pop(),
        }
        packet
    }
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
        let mut net = Net {
            queue: EventQueue::default(),
            options: OptionStore::default(),
            links_end: links.len() as u32,
            flows: flows.len() as u32,
            links,
        };
        net.schedule(spec.measure_from, &Wake::Measure);
        for (i, f) in spec.flows.iter().enumerate() {
            net.schedule(f.start, &Wake::Start(i));
            if let Some(stop) = f.stop {
                net.schedule(stop, &Wake::Stop(i));
            }
        }
        Self {
            net,
            flows,
            events: 0,
            delivered_packets: 0,
        }
    }

    /// Runs to `end`.
    pub fn run(&mut self, end: Time) {
        while let Some((now, target)) = self.net.queue.peek() {
            if now > end {
                break;
            }
            self.events += 1;
            if target < self.net.links_end {
                let packet = self.net.take(target);
                self.arrive(now, packet);
            } else {
                self.net.queue.pop();
                self.wake(now, target);
            }
        }
    }

    #[inline]
    fn arrive(&mut self, now: Time, mut packet: Packet) {
        packet.hop += 1;
        let flow = &mut self.flows[packet.flow as usize];
        if packet.is_ack() {
            if let Some(&link) = flow.back.get(packet.hop as usize) {
                self.pass_on(now, link, packet);
                return;
            }
            let ack = packet.to_ack(now, &mut self.net.options);
            flow.acks_in += 1;
            flow.sender.handle_ack(now, &ack);
            if flow.finite && flow.completed.is_none() && flow.sender.is_done() {
                flow.completed = Some(now);
            }
            flow.pump(now, packet.flow, &mut self.net);
        } else {
            if let Some(&link) = flow.forward.get(packet.hop as usize) {
                self.pass_on(now, link, packet);
                return;
            }
            flow.recorder.on_arrival(now, flow.receiver.counts());
            self.delivered_packets += u64::from(packet.is_data());
            match flow.receiver.handle_segment(now, &packet.to_segment()) {
                Some(ack) => {
                    flow.answer(now, packet.flow, &ack, &mut self.net);
                    // A merged ACK may wait behind the one that left.
                    flow.arm_receiver(packet.flow, &mut self.net);
                }
                None => flow.arm_receiver(packet.flow, &mut self.net),
            }
        }
    }

    /// A packet enters its second or a later link.
    #[cold]
    fn pass_on(&mut self, now: Time, link: u32, packet: Packet) {
        if !self.net.offer(now, link, packet) {
            let flow = &mut self.flows[packet.flow as usize];
            flow.lose(packet, &mut self.net);
        }
    }

    #[cold]
    fn wake(&mut self, now: Time, target: Target) {
        let net = &mut self.net;
        match net.named(target) {
            Wake::Sender(i) => {
                let flow = &mut self.flows[i];
                if flow.sender_wakes != now {
                    return; // moved since
                }
                flow.sender_wakes = Time::MAX;
                if flow.sender.next_timeout() <= now {
                    flow.sender.handle_timeout(now);
                }
                flow.pump(now, i as u32, net);
            }
            Wake::Receiver(i) => {
                let flow = &mut self.flows[i];
                if flow.receiver_wakes != now {
                    return;
                }
                flow.receiver_wakes = Time::MAX;
                if let Some(ack) = flow.receiver.handle_timeout(now) {
                    flow.answer(now, i as u32, &ack, net);
                }
                flow.arm_receiver(i as u32, net);
            }
            Wake::Start(i) => {
                self.flows[i].sender.start(now);
                self.flows[i].pump(now, i as u32, net);
            }
            Wake::Stop(i) => self.flows[i].sender.stop(),
            Wake::Resume(i) => {
                self.flows[i].sender.resume();
                self.flows[i].pump(now, i as u32, net);
            }
            Wake::Measure => {
                for flow in &mut self.flows {
                    flow.begin_measurement(now);
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
        let mut links = Vec::with_capacity(self.net.links.len());
        for link in self.net.links {
            for flow in link.data_inside() {
                inside[flow as usize] += 1;
            }
            links.push(link.finish(end)?);
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
                return Err(format!(
                    "flow {name}: arrived is not delivered + duplicates"
                ));
            }
            flows.push(flow.outcome(fs, end));
        }
        Ok(Outcome {
            duration: spec.duration,
            measure_from: spec.measure_from,
            interval: spec.interval,
            flows,
            links,
            arrivals: Vec::new(),
            sources: Vec::new(),
            pings: Vec::new(),
            capture: Vec::new(),
            events: self.events,
            delivered_packets: self.delivered_packets,
        })
    }
}

impl Flow {
    fn new(f: &FlowSpec, spec: &RunSpec) -> Self {
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
    fn pump(&mut self, now: Time, index: u32, net: &mut Net) {
        self.recorder.on_sender(now, &mut self.sender);
        while let Some(segment) = self.sender.poll_transmit(now) {
            if !self.send(now, index, &segment, net) {
                break;
            }
        }
        let wants = self.sender.next_timeout();
        if wants < self.sender_wakes {
            self.sender_wakes = wants;
            net.schedule(wants, &Wake::Sender(index as usize));
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
            &Wake::Resume(packet.flow as usize),
        );
        false
    }

    /// The receiver's ACK sets out.
    #[inline]
    fn answer(&mut self, now: Time, index: u32, ack: &Ack, net: &mut Net) {
        let packet = Packet::ack(index, self.ack, ack, &mut net.options);
        if !net.offer(now, self.back[0], packet) {
            self.lose(packet, net);
        }
    }

    #[inline]
    fn arm_receiver(&mut self, index: u32, net: &mut Net) {
        let wants = self.receiver.next_timeout();
        if wants < self.receiver_wakes {
            self.receiver_wakes = wants;
            net.schedule(wants, &Wake::Receiver(index as usize));
        }
    }

    #[cold]
    fn lose(&mut self, packet: Packet, net: &mut Net) {
        if packet.is_ack() {
            self.acks_dropped += 1;
        } else if packet.is_data() {
            self.dropped += 1;
        }
        packet.discard(&mut net.options);
    }

    fn begin_measurement(&mut self, now: Time) {
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
    let violation = |what| Violation {
        seed: spec.seed,
        what,
    };
    let targets = spec.links.len() + 5 * spec.flows.len() + 1;
    if targets >= EventQueue::MAX_TARGETS {
        return Err(violation(format!(
            "{targets} event targets are more than fit"
        )));
    }
    let end = Time::ZERO + spec.duration;
    let mut world = World::new(spec);
    world.run(end);
    world.finish(spec, end).map_err(violation)
}
