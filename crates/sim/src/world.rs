//! The event loop: links hand packets on, endpoints answer, timers fire; conservation is checked at the end.

use fullpipe_units::{Span, Time};

use crate::Violation;
use crate::flow::Flow;
use crate::link::{Link, Watch};
use crate::net::Net;
use crate::outcome::Outcome;
use crate::packet::{OptionStore, Owner, Packet};
use crate::queue::{EventQueue, Target};
use crate::spec::{RunSpec, Trace};
use crate::target::{Layout, Wake};
use crate::traffic::{Ping, Source};

/// A run in progress.
pub struct World {
    net: Net,
    flows: Vec<Flow>,
    sources: Vec<Source>,
    pings: Vec<Ping>,
    events: u64,
    delivered_packets: u64,
}

impl World {
    /// Builds the run.
    pub fn new(spec: &RunSpec) -> Self {
        let watch = Watch {
            measure_from: spec.measure_from,
            end: Time::ZERO + spec.duration,
            sample_step: sample_step(spec),
        };
        let links: Vec<Link> = spec
            .links
            .iter()
            .map(|l| Link::new(l, spec.seed, &watch))
            .collect();
        let sources = (0..).zip(&spec.sources);
        let mut sources: Vec<Source> = sources.map(|(i, s)| Source::new(i, s, spec)).collect();
        let pings = (0..).zip(&spec.pings);
        let pings: Vec<Ping> = pings.map(|(i, p)| Ping::new(i, p, spec, &links)).collect();
        let flows: Vec<Flow> = spec.flows.iter().map(|f| Flow::new(f, spec)).collect();
        let mut net = Net {
            queue: EventQueue::default(),
            options: OptionStore::default(),
            layout: layout(spec),
            links,
        };
        net.schedule(spec.measure_from, Wake::Measure);
        for (i, f) in spec.flows.iter().enumerate() {
            net.schedule(f.start, Wake::Start(i));
            if let Some(stop) = f.stop {
                net.schedule(stop, Wake::Stop(i));
            }
        }
        for (i, source) in sources.iter_mut().enumerate() {
            if let Some(at) = source.next_departure() {
                net.schedule(at, Wake::Source(i));
            }
        }
        for (i, p) in spec.pings.iter().enumerate() {
            if pings[i].allows(p.start) {
                net.schedule(p.start, Wake::Ping(i));
            }
        }
        Self {
            net,
            flows,
            sources,
            pings,
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
            if self.net.layout.is_arrival(target) {
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
        if packet.is_foreign() {
            self.carry(now, packet);
            return;
        }
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

    /// A packet enters a link.
    #[cold]
    fn pass_on(&mut self, now: Time, link: u32, packet: Packet) {
        if !self.net.offer(now, link, packet) {
            self.lose(packet);
        }
    }

    /// The network dropped a packet.
    #[cold]
    fn lose(&mut self, packet: Packet) {
        let i = packet.flow as usize;
        match packet.owner() {
            Owner::Segment | Owner::Ack => self.flows[i].lose(packet, &mut self.net),
            Owner::Datagram => self.sources[i].dropped += 1,
            Owner::Request | Owner::Reply => self.pings[i].lost += 1,
        }
    }

    /// A datagram or probe enters its next link, or is where it was sent to.
    fn carry(&mut self, now: Time, packet: Packet) {
        let i = packet.flow as usize;
        let route = match packet.owner() {
            Owner::Datagram => self.sources[i].forward(),
            Owner::Request => self.pings[i].forward(),
            _ => self.pings[i].back(),
        };
        if let Some(&link) = route.get(packet.hop as usize) {
            self.pass_on(now, link, packet);
            return;
        }
        match packet.owner() {
            Owner::Datagram => self.sources[i].arrive(now, &packet),
            Owner::Request => self.carry(now, packet.into_reply()),
            _ => self.pings[i].answered(now, &packet),
        }
    }

    #[cold]
    fn wake(&mut self, now: Time, target: Target) {
        let net = &mut self.net;
        match net.layout.named(target) {
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
            Wake::Source(i) => {
                let source = &mut self.sources[i];
                let packet = source.send(now);
                if let Some(at) = source.next_departure() {
                    net.schedule(at, Wake::Source(i));
                }
                self.carry(now, packet);
            }
            Wake::Ping(i) => {
                let ping = &mut self.pings[i];
                let packet = ping.send(now);
                if let Some(at) = ping.next_departure(now) {
                    net.schedule(at, Wake::Ping(i));
                }
                self.carry(now, packet);
            }
            Wake::Stray(i) => {
                if let Some(packet) = net.take_stray(i) {
                    self.arrive(now, packet);
                }
            }
            Wake::Departure(_) | Wake::Class(_) => {}
        }
    }

    /// Checks conservation and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(mut self, spec: &RunSpec, end: Time) -> Result<Outcome, String> {
        let mut inside = vec![0u64; self.flows.len()];
        let mut datagrams = vec![0u64; self.sources.len()];
        let mut probes = vec![0u64; self.pings.len()];
        let mut links = Vec::with_capacity(self.net.links.len());
        for link in self.net.links {
            for packet in link.inside() {
                let i = packet.flow as usize;
                match packet.owner() {
                    Owner::Segment => inside[i] += u64::from(packet.is_data()),
                    Owner::Ack => {}
                    Owner::Datagram => datagrams[i] += 1,
                    Owner::Request | Owner::Reply => probes[i] += 1,
                }
            }
            links.push(link.finish()?);
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
        let sources = self.sources.into_iter().zip(datagrams);
        let pings = self.pings.into_iter().zip(probes);
        Ok(Outcome {
            duration: spec.duration,
            measure_from: spec.measure_from,
            interval: spec.interval,
            flows,
            links,
            arrivals: Vec::new(),
            sources: sources
                .map(|(s, inside)| s.finish(end, inside))
                .collect::<Result<_, _>>()?,
            pings: pings
                .map(|(p, inside)| p.finish(inside))
                .collect::<Result<_, _>>()?,
            capture: Vec::new(),
            events: self.events,
            delivered_packets: self.delivered_packets,
        })
    }
}

fn layout(spec: &RunSpec) -> Layout {
    Layout::new(
        spec.links.len(),
        spec.sources.len(),
        spec.pings.len(),
        spec.arrivals.len(),
    )
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
    let targets = layout(spec).targets(spec.flows.len());
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
