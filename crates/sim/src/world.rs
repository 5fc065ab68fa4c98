//! The event loop: links hand packets on, endpoints answer, timers fire; conservation is checked at the end.

use fullpipe_run::{CaptureEvent, Outcome, RunSpec, Violation};
use fullpipe_units::Time;

use crate::flow::Flow;
use crate::link::{Link, Watch};
use crate::net::{Inside, Net};
use crate::packet::{Owner, Packet};
use crate::queue::{EventQueue, Target};
use crate::target::{Layout, Wake};
use crate::traffic::{Class, ClassRecord, Ping, Short, Source};

/// A run in progress.
pub struct World {
    seed: u64,
    net: Net,
    /// Those of the specification, then slots of short flows.
    flows: Vec<Flow>,
    /// Slots of short flows that are over.
    free: Vec<u32>,
    classes: Vec<Class>,
    sources: Vec<Source>,
    pings: Vec<Ping>,
    /// The first fault found on the way.
    fault: Option<String>,
    events: u64,
    delivered_packets: u64,
}

impl World {
    /// Builds the run.
    pub fn new(spec: &RunSpec) -> Self {
        let watch = Watch::new(spec);
        let links: Vec<Link> = spec
            .links
            .iter()
            .map(|l| Link::new(l, spec.seed, &watch))
            .collect();
        let sources = (0..).zip(&spec.sources);
        let mut sources: Vec<Source> = sources.map(|(i, s)| Source::new(i, s, spec)).collect();
        let pings = (0..).zip(&spec.pings);
        let pings: Vec<Ping> = pings.map(|(i, p)| Ping::new(i, p, spec)).collect();
        let mut classes: Vec<Class> = spec.arrivals.iter().map(|a| Class::new(a, spec)).collect();
        let records = spec.arrivals.iter().map(|a| ClassRecord::new(a, spec));
        let flows = spec.flows.iter().enumerate();
        let flows: Vec<Flow> = flows.map(|(i, f)| Flow::lasting(i, f, spec)).collect();
        let mut net = Net {
            classes: records.collect(),
            lasting: flows.len() as u32,
            capture: spec.capture.then(Vec::new),
            ..Net::new(links, layout(spec))
        };
        net.schedule(spec.measure_from, Wake::Measure);
        for (i, f) in spec.flows.iter().enumerate() {
            net.schedule(flows[i].started, Wake::Start(i));
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
        for (i, class) in classes.iter_mut().enumerate() {
            if let Some(at) = class.next_arrival() {
                net.schedule(at, Wake::Class(i));
            }
        }
        Self {
            seed: spec.seed,
            net,
            flows,
            free: Vec::new(),
            classes,
            sources,
            pings,
            fault: None,
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
            if !self.net.dropped.is_empty() {
                self.lose_dropped(now);
            }
        }
    }

    /// A packet that was overtaken; apart, so that the frequent case stays in the loop.
    #[cold]
    #[inline(never)]
    fn arrive_late(&mut self, now: Time, packet: Packet) {
        self.arrive(now, packet);
    }

    #[inline(always)]
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
            flow.inside -= 1;
            self.net
                .see(now, packet.flow, || CaptureEvent::AckReceived(ack));
            flow.sender.handle_ack(now, &ack);
            flow.note_completion(now, &mut self.net);
            flow.pump(now, packet.flow, &mut self.net);
        } else {
            if let Some(&link) = flow.forward.get(packet.hop as usize) {
                self.pass_on(now, link, packet);
                return;
            }
            if flow.drops_arrival(now, &packet) {
                self.lose(now, packet);
                return;
            }
            self.delivered_packets += u64::from(packet.is_data());
            flow.inside -= 1;
            let segment = packet.to_segment();
            self.net
                .see(now, packet.flow, || CaptureEvent::SegmentReceived(segment));
            if let Some(ack) = flow.receive(now, &segment, &mut self.net) {
                flow.answer(now, packet.flow, &ack, &mut self.net);
            }
            // Also after an answer: a merged ACK may wait behind the one that left.
            flow.arm_receiver(packet.flow, &mut self.net);
        }
        if flow.is_over() {
            self.retire(now, packet.flow);
        }
    }

    /// A packet enters a link.
    #[cold]
    fn pass_on(&mut self, now: Time, link: u32, packet: Packet) {
        if !self.net.offer(now, link, packet) {
            self.lose(now, packet);
        }
    }

    /// Queues dropped packets that they had taken in.
    #[cold]
    fn lose_dropped(&mut self, now: Time) {
        for packet in std::mem::take(&mut self.net.dropped) {
            self.lose(now, packet);
        }
    }

    /// The network dropped a packet.
    #[cold]
    fn lose(&mut self, now: Time, packet: Packet) {
        let i = packet.flow as usize;
        match packet.owner() {
            Owner::Segment | Owner::Ack => {
                self.flows[i].lose(now, packet, &mut self.net);
                if self.flows[i].is_over() {
                    self.retire(now, packet.flow);
                }
            }
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
            Owner::Datagram => self.sources[i].arrive(now, Some(now - packet.stamp)),
            Owner::Request => self.carry(now, packet.into_reply()),
            _ => self.pings[i].answered(now, now - packet.stamp),
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
                if flow.is_over() {
                    self.retire(now, i as u32);
                }
            }
            Wake::Start(i) => {
                self.flows[i].sender.start(now);
                self.flows[i].pump(now, i as u32, net);
            }
            Wake::Stop(i) => {
                let flow = &mut self.flows[i];
                flow.sender.stop();
                // All it sent may be acknowledged already.
                flow.note_completion(now, net);
            }
            Wake::Resume(i) => {
                let flow = &mut self.flows[i];
                flow.resumes -= 1;
                flow.sender.resume();
                flow.pump(now, i as u32, net);
                if flow.is_over() {
                    self.retire(now, i as u32);
                }
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
                    self.arrive_late(now, packet);
                }
            }
            Wake::Class(i) => self.welcome(now, i),
            Wake::Departure(i) => net.transmit(now, i),
        }
    }

    /// The next short flow of a class arrives: into the slot of one that is over, or into a new one.
    fn welcome(&mut self, now: Time, class: usize) {
        let net = &mut self.net;
        let slots = self.flows.len() + usize::from(self.free.is_empty());
        if net.layout.targets(slots) > EventQueue::MAX_TARGETS {
            let what = format!("{slots} flows at once are more than fit");
            self.fault.get_or_insert(what);
            return;
        }
        let spec = self.classes[class].next_flow();
        let size = spec.sender.transfer.unwrap_or(0);
        let short = Short::new(class, net.classes[class].begin(now, size));
        let flow = Flow::short(spec, self.seed, now, short);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        if let Some(at) = self.classes[class].next_arrival() {
            net.schedule(at, Wake::Class(class));
        }
        let flow = &mut self.flows[slot as usize];
        flow.sender.start(now);
        flow.pump(now, slot, net);
    }

    /// A short flow is over: its slot is free. Timers of it that still wait find nobody, or a newcomer who expects none then.
    #[cold]
    fn retire(&mut self, now: Time, slot: u32) {
        if let Err(what) = self.close(now, slot as usize, 0, 0) {
            self.fault.get_or_insert(what);
        }
        self.flows[slot as usize].vacate();
        self.free.push(slot);
    }

    /// Books a short flow, if there is one in the slot, into its class; `data` of its data packets and `all` of its packets are
    /// in the network.
    fn close(&mut self, now: Time, slot: usize, data: u64, all: u64) -> Result<(), String> {
        let flow = &self.flows[slot];
        let Some(short) = &flow.short else {
            return Ok(());
        };
        let record = &mut self.net.classes[short.class as usize];
        record.leave(now, short.number, &flow.totals());
        flow.check(&record.flow_name(short.number), data, all)
    }

    /// Checks conservation and returns the result.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(mut self, spec: &RunSpec, end: Time) -> Result<Outcome, String> {
        if let Some(what) = self.fault {
            return Err(what);
        }
        let (flows, sources, pings) = (self.flows.len(), self.sources.len(), self.pings.len());
        let inside = Inside::count(&self.net.links, flows, sources, pings);
        for slot in spec.flows.len()..self.flows.len() {
            self.close(end, slot, inside.data[slot], inside.flows[slot])?;
        }
        let mut flows = Vec::with_capacity(spec.flows.len());
        for ((i, flow), fs) in self.flows.iter_mut().enumerate().zip(&spec.flows) {
            flow.check(&fs.name, inside.data[i], inside.flows[i])?;
            flows.push(flow.outcome(fs, end));
        }
        let links = self.net.links.into_iter().map(Link::finish);
        let sources = self.sources.into_iter().zip(inside.sources);
        let pings = self.pings.into_iter().zip(inside.pings);
        let classes = self.net.classes.into_iter();
        Ok(Outcome {
            duration: spec.duration,
            measure_from: spec.measure_from,
            interval: spec.interval,
            flows,
            links: links.collect::<Result<_, _>>()?,
            arrivals: classes.map(|c| c.finish(end)).collect(),
            sources: sources
                .map(|(s, inside)| s.finish(end, inside))
                .collect::<Result<_, _>>()?,
            pings: pings
                .map(|(p, inside)| p.finish(inside))
                .collect::<Result<_, _>>()?,
            capture: self.net.capture.unwrap_or_default(),
            events: self.events,
            delivered_packets: self.delivered_packets,
            fidelity: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{ArrivalSpec, Arrivals, Buffer, FlowSpec, LinkSpec, Loss, SizeLaw};
    use fullpipe_units::{Rate, Span};

    /// 100 flows a second, each there for some tenths of a second: dozens of slots serve 20 000 flows, with losses, timeouts and
    /// delayed ACKs that leave timers behind.
    #[test]
    fn slots_are_reused() {
        let rate = Rate::from_bits_per_sec(100_000_000);
        let delay = Span::from_millis(20);
        let mut bottleneck = LinkSpec::new("bottleneck", Some(rate), delay, Buffer::Packets(100));
        bottleneck.loss = Loss::Bernoulli { p: 0.02 };
        let spec = RunSpec {
            duration: Span::from_secs(200),
            links: vec![bottleneck, LinkSpec::pure_delay("return", delay)],
            arrivals: vec![ArrivalSpec {
                template: FlowSpec::new(
                    "mice",
                    StackSpec::parse("reno").unwrap(),
                    SenderConfig::preset(Preset::Y2026, 1500),
                    ReceiverConfig::preset(Preset::Y2026),
                    vec![0],
                    vec![1],
                ),
                arrivals: Arrivals::Poisson { per_second: 100.0 },
                sizes: SizeLaw::Uniform(1, 20),
            }],
            ..RunSpec::default()
        };
        let mut world = World::new(&spec);
        world.run(Time::ZERO + spec.duration);
        let slots = world.flows.len();
        assert!(slots < 120, "{slots}");
        assert!(world.net.queue.len() < 1000, "{}", world.net.queue.len());
        let busy = slots - world.free.len();
        let o = world.finish(&spec, Time::ZERO + spec.duration).unwrap();
        let transfers = &o.arrivals[0].transfers;
        assert!(transfers.len() > 19_000);
        let unfinished = transfers.iter().filter(|t| t.completion.is_none()).count();
        assert!(unfinished <= busy, "{unfinished} {busy}");
        assert!(o.arrivals[0].totals.timeouts > 10);
    }
}
