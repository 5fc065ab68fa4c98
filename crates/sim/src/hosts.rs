//! All hosts of a run in virtual time: one [`Host`] with both ends of every flow, and links between
//! them.

use std::collections::BTreeMap;

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Allowance, PacketLengths, Segment, Sender, Taken};
use fullpipe_host::{
    Capture, ClassRecord, Cross, FlowId, FlowReceiver, FlowSender, Host, HostOutcome, Network,
    Waiting,
};
use fullpipe_run::{CaptureEvent, CrossNumbers, FlowSpec, RunSpec};
use fullpipe_units::{Span, Time};

use crate::net::{Ends, Net};
use crate::packet::{Class, Kind, OptionStore, Packet};
use crate::queue::EventQueue;
use crate::target::{LinkEvent, Wake};

/// What the network keeps with a flow's sender.
#[derive(Debug)]
pub struct Out {
    /// The first link of data.
    first: u32,
    /// Links that ACKs cross.
    back: Box<[u32]>,
    /// Bytes of its packets.
    lengths: PacketLengths,
    /// The first link is the host's own interface.
    local_queue: bool,
    /// Segments sent, less those lost and less ACKs that came back: with [`In::inside`] the packets
    /// of the flow that are in the network.
    inside: i64,
    /// It waits for room at its interface.
    waits: bool,
}

/// What the network keeps with a flow's receiver.
#[derive(Debug)]
pub struct In {
    /// The first link of ACKs.
    first: u32,
    /// Links that data crosses.
    forward: Box<[u32]>,
    /// Bytes of its packets.
    lengths: PacketLengths,
    /// The first link of data is an interface of the sender's host.
    local_queue: bool,
    /// ACKs sent, less those lost and less segments that arrived.
    inside: i64,
}

/// The hosts, and where their traffic goes.
#[derive(Debug)]
pub struct Hosts {
    pub host: Host<Out, In>,
    ways: Ways,
}

/// Where traffic goes, and what hosts see of it.
#[derive(Debug)]
struct Ways {
    /// Links of the datagrams of cross traffic, and of their answers.
    cross: Vec<[Box<[u32]>; 2]>,
    numbers: CrossNumbers,
    capture: Capture,
    /// Senders that were refused, by the link that is their interface.
    waiting: BTreeMap<u32, Waiting>,
    /// The first fault found on the way.
    fault: Option<String>,
}

/// The links, as a host sees them.
struct Attached<'a> {
    net: &'a mut Net,
    ways: &'a mut Ways,
}

fn links(list: &[usize]) -> Box<[u32]> {
    list.iter().map(|l| *l as u32).collect()
}

impl Hosts {
    /// Those of a run, whose first events wait in `net`.
    pub fn new(spec: &RunSpec, net: &mut Net) -> Self {
        let cross = spec.cross.iter();
        let mut ways = Ways {
            cross: cross.map(|c| [links(&c.forward), links(&c.back)]).collect(),
            numbers: spec.cross_numbers(),
            capture: Capture::new(spec),
            waiting: BTreeMap::new(),
            fault: None,
        };
        let host = Host::new(
            spec,
            &mut Attached {
                net,
                ways: &mut ways,
            },
        );
        Self { host, ways }
    }

    /// A packet enters another link than its first one.
    #[inline(never)]
    fn pass_on(&mut self, now: Time, link: u32, packet: Packet, net: &mut Net) {
        if !net.offer(now, link, packet) {
            self.lose(now, packet, net);
        }
    }

    /// A segment has crossed the interface of its host.
    fn leave_host(&mut self, now: Time, slot: u32, net: &mut Net) {
        let sender = &mut self.host.senders[slot as usize];
        if sender.left_queue() {
            let ways = &mut self.ways;
            let waiting = ways.waiting.get(&sender.outlet.first);
            let others_wait = waiting.is_some_and(|waiting| !waiting.is_empty());
            let mut attached = Attached { net, ways };
            if others_wait {
                // The place that its segment leaves is theirs.
                attached.wait_for_room(now, slot, &mut sender.outlet);
            } else {
                attached.ready(now, slot, sender, &mut self.host.classes);
            }
        }
    }

    /// A packet of cross traffic has crossed a link.
    #[cold]
    fn arrive_cross(&mut self, now: Time, packet: Packet, net: &mut Net) {
        if let Some(i) = self.ways.cross_of(&packet) {
            self.ways
                .carry(now, packet, i, &mut self.host.cross[i], net);
        }
    }

    /// Nothing is left of a short flow: it is complete, no packet is in the network, no answer held
    /// back, and no event waits that could reach who comes after it.
    #[inline]
    fn is_over(&self, slot: u32) -> bool {
        let sender = &self.host.senders[slot as usize];
        let receiver = &self.host.receivers[slot as usize];
        sender.is_short()
            && sender.is_complete()
            && sender.outlet.inside + receiver.inlet.inside == 0
            && !sender.outlet.waits
            && receiver.receiver().next_timeout() == Time::MAX
    }

    #[inline]
    fn retire_if_over(&mut self, now: Time, slot: u32) {
        if self.is_over(slot) {
            self.retire(now, slot);
        }
    }

    #[cold]
    fn retire(&mut self, now: Time, slot: u32) {
        if let Err(what) = self.check(slot as usize, None, 0, 0) {
            self.ways.fault.get_or_insert(what);
        }
        self.host.retire_sender(now, slot);
        self.host.retire_receiver(now, slot);
    }

    /// Checks conservation of the flow in a slot, called `name` or by its class, with `data` of its
    /// data packets and `all` of its packets in the network.
    fn check(&self, slot: usize, name: Option<&str>, data: u64, all: u64) -> Result<(), String> {
        let (sender, receiver) = (&self.host.senders[slot], &self.host.receivers[slot]);
        let short = sender.short_name(&self.host.classes);
        let Some(name) = name.or(short.as_deref()) else {
            return Ok(()); // a vacant slot
        };
        let (offered, counts) = (sender.offered(), receiver.receiver().counts());
        let dropped = sender.totals().dropped + receiver.totals().dropped;
        if offered != counts.arrived + dropped + data {
            return Err(format!(
                "flow {name}: sent {offered} is not arrived {} + dropped {dropped} \
                 + in the network {data}",
                counts.arrived
            ));
        }
        let inside = sender.outlet.inside + receiver.inlet.inside;
        if u64::try_from(inside) != Ok(all) {
            return Err(format!(
                "flow {name}: {inside} packets under way, the links hold {all}"
            ));
        }
        let sent = sender.sender().counts().sent;
        if offered != sent {
            return Err(format!(
                "flow {name}: put {offered} on the path, the sender counts {sent}"
            ));
        }
        if counts.arrived != counts.delivered + counts.duplicates + counts.discarded {
            return Err(format!(
                "flow {name}: arrived is not delivered + duplicates + discarded"
            ));
        }
        Ok(())
    }

    /// Checks conservation of everything with what is in the links, and returns what the hosts
    /// counted.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn finish(self, spec: &RunSpec, net: &Net, end: Time) -> Result<HostOutcome, String> {
        if let Some(what) = self.ways.fault {
            return Err(what);
        }
        let inside = self.inside(net);
        for slot in 0..self.host.senders.len() {
            let name = spec.flows.get(slot).map(|f| &*f.name);
            self.check(slot, name, inside.data[slot], inside.flows[slot])?;
        }
        for (cross, inside) in self.host.cross.iter().zip(&inside.cross) {
            cross.check(*inside)?;
        }
        Ok(HostOutcome {
            capture: self.ways.capture.finish(),
            ..self.host.finish(end)
        })
    }
}

impl Ends for Hosts {
    #[inline(always)]
    fn arrive(&mut self, now: Time, packet: Packet, net: &mut Net) {
        let packet = packet.after_hop();
        let hop = usize::from(packet.hop());
        let slot = packet.flow;
        let classes = &mut self.host.classes;
        let ways = &mut self.ways;
        let is_short = match packet.class() {
            Class::Ack => {
                let sender = &mut self.host.senders[slot as usize];
                if let Some(&link) = sender.outlet.back.get(hop) {
                    self.pass_on(now, link, packet.apart(), net);
                    return;
                }
                sender.outlet.inside -= 1;
                if let Some(ack) = packet.plain_ack(now, &mut net.options) {
                    ways.capture
                        .see(now, slot, || CaptureEvent::AckReceived(ack));
                    sender.begin_ack(now).handle_ack(now, &ack);
                } else {
                    let sender = sender.begin_ack(now);
                    ways.hand_over(now, &packet.apart(), sender, &mut net.options);
                }
                sender.end_ack(now, classes);
                let mut attached = Attached { net, ways };
                attached.ready(now, slot, sender, classes);
                let is_short = sender.is_short();
                if is_short && sender.is_complete() {
                    self.host.note_complete(now, slot, &mut attached);
                }
                is_short
            }
            Class::Segment => {
                let receiver = &mut self.host.receivers[slot as usize];
                if let Some(&link) = receiver.inlet.forward.get(hop) {
                    let leaves = hop == 1 && receiver.inlet.local_queue;
                    self.pass_on(now, link, packet.apart(), net);
                    if leaves {
                        self.leave_host(now, slot, net);
                    }
                    return;
                }
                receiver.inlet.inside -= 1;
                if receiver.has_drops() && receiver.drops_arrival(now, &packet.segment()) {
                    let lost = packet.segment();
                    ways.capture
                        .see(now, slot, || CaptureEvent::SegmentDropped(lost));
                    let sender = &mut self.host.senders[slot as usize];
                    sender.note_lost(lost.seq, lost.retransmission, classes);
                    self.retire_if_over(now, slot);
                    return;
                }
                ways.capture.see(now, slot, || {
                    CaptureEvent::SegmentReceived(packet.segment())
                });
                let segment = packet.segment();
                let mut attached = Attached { net, ways };
                match receiver.take_next(now, &segment, classes) {
                    Taken::Silently => {}
                    Taken::Due => {
                        let ack = receiver.plain_ack(now);
                        attached.answer(now, slot, receiver, &ack);
                    }
                    Taken::Not => attached.take_apart(now, packet.apart(), receiver, classes),
                }
                // Also after an answer: a merged ACK may wait behind the one that left.
                attached.arm(slot, receiver);
                receiver.is_short()
            }
            Class::Cross => {
                self.arrive_cross(now, packet.apart(), net);
                return;
            }
        };
        if is_short {
            self.retire_if_over(now, slot);
        }
    }

    #[cold]
    fn lose(&mut self, now: Time, packet: Packet, net: &mut Net) {
        let i = packet.flow as usize;
        match packet.kind() {
            Kind::Data | Kind::Syn => {
                let sender = &mut self.host.senders[i];
                let classes = &mut self.host.classes;
                self.ways.lose_segment(now, packet, sender, classes);
                self.retire_if_over(now, packet.flow);
            }
            Kind::Ack | Kind::SynAck => {
                let receiver = &mut self.host.receivers[i];
                self.ways
                    .lose_ack(now, packet.flow, packet.number, receiver);
                net.options.discard(packet.aside);
                self.retire_if_over(now, packet.flow);
            }
            Kind::Datagram | Kind::Request | Kind::Reply => {
                if let Some(i) = self.ways.cross_of(&packet) {
                    self.host.cross[i].dropped += 1;
                }
            }
        }
    }

    fn wake(&mut self, now: Time, wake: Wake, net: &mut Net) {
        if let Wake::Resume(slot) = wake {
            let out = &mut self.host.senders[slot as usize].outlet;
            out.waits = false;
            if let Some(waiting) = self.ways.waiting.get_mut(&out.first) {
                waiting.resumed();
            }
        }
        let mut attached = Attached {
            net,
            ways: &mut self.ways,
        };
        self.host.wake(now, now, wake, &mut attached);
        if let Wake::Resume(slot) = wake {
            let first = self.host.senders[slot as usize].outlet.first;
            let waiting = attached.ways.waiting.get_mut(&first);
            if let Some(next) = waiting.and_then(Waiting::wake) {
                let out = &self.host.senders[next as usize].outlet;
                let room = attached.room(now, out, ANY_SIZE);
                attached
                    .net
                    .schedule(room.unwrap_or(now), Wake::Resume(next));
            }
        }
        if let Wake::Receiver(slot) | Wake::Resume(slot) = wake {
            self.retire_if_over(now, slot);
        }
    }
}

impl Attached<'_> {
    /// A segment leaves its sender; false if the host's own interface has no room for it.
    #[inline(always)]
    fn send(
        &mut self,
        now: Time,
        slot: u32,
        segment: Segment,
        sender: &mut FlowSender<Out>,
        classes: &mut [ClassRecord],
    ) -> bool {
        let size = sender.outlet.lengths.segment(&segment);
        if let Some(retry) = self.room(now, &sender.outlet, size) {
            // A copy: what enters keeps out of its memory.
            sender.refuse(now, &Segment { ..segment }, classes);
            self.wait_for_room(retry, slot, &mut sender.outlet);
            return false;
        }
        let dropped = sender.depart(now, &segment, classes);
        let out = &mut sender.outlet;
        let packet = Packet::of_segment(slot, size, &segment);
        self.ways
            .capture
            .see(now, slot, || CaptureEvent::SegmentSent(segment));
        if dropped {
            self.ways
                .capture
                .see(now, slot, || CaptureEvent::SegmentDropped(segment));
            return true;
        }
        out.inside += 1;
        if !self.net.offer(now, out.first, packet) {
            let lost = packet.apart();
            self.ways.lose_segment(now, lost, sender, classes);
        } else if sender.outlet.local_queue {
            sender.entered_queue();
        }
        true
    }

    /// The same for any segment but a new one among others: of such a one it is known what it is
    /// not.
    #[inline(never)]
    fn send_apart(
        &mut self,
        now: Time,
        slot: u32,
        segment: Segment,
        sender: &mut FlowSender<Out>,
        classes: &mut [ClassRecord],
    ) -> bool {
        self.send(now, slot, segment, sender, classes)
    }

    /// If the host's own interface is full, when to try again.
    #[inline(always)]
    fn room(&mut self, now: Time, out: &Out, size: u16) -> Option<Time> {
        match out.local_queue {
            true => self.local_room(now, out, size),
            false => None,
        }
    }

    fn local_room(&mut self, now: Time, out: &Out, size: u16) -> Option<Time> {
        let room = self.net.links[out.first as usize].room(now, size)?;
        Some(room.max(now + Span::from_nanos(1)))
    }

    /// The host's own interface has no room before `retry`.
    #[cold]
    fn wait_for_room(&mut self, retry: Time, slot: u32, out: &mut Out) {
        if std::mem::replace(&mut out.waits, true) {
            return;
        }
        let waiting = self.ways.waiting.entry(out.first).or_default();
        if let Some(first) = waiting.refused(slot) {
            self.net.schedule(retry, Wake::Resume(first));
        }
    }

    /// The receiver's ACK sets out.
    #[inline(always)]
    fn answer(&mut self, now: Time, slot: u32, receiver: &mut FlowReceiver<In>, ack: &Ack) {
        let way = &mut receiver.inlet;
        let size = way.lengths.ack(ack);
        let packet = Packet::of_ack(slot, size, ack, &mut self.net.options);
        way.inside += 1;
        self.ways
            .capture
            .see(now, slot, || CaptureEvent::AckSent(*ack));
        if !self.net.offer(now, way.first, packet) {
            self.ways.lose_ack(now, slot, packet.number, receiver);
            self.net.options.discard(packet.aside);
        }
    }

    /// A segment that is not the next one reaches its receiver: its ACK has blocks or the like.
    #[cold]
    #[inline(never)]
    fn take_apart(
        &mut self,
        now: Time,
        packet: Packet,
        receiver: &mut FlowReceiver<In>,
        classes: &mut [ClassRecord],
    ) {
        let segment = packet.segment();
        let earlier = receiver.ack_before(now, &segment);
        let own = receiver.take_apart(now, &segment, classes);
        for ack in earlier.iter().chain(&own) {
            self.answer(now, packet.flow, receiver, ack);
        }
    }

    #[inline(always)]
    fn arm(&mut self, slot: u32, receiver: &mut FlowReceiver<In>) {
        if let Some(at) = receiver.arm(receiver.receiver().next_timeout()) {
            self.net.schedule(at, Wake::Receiver(slot));
        }
    }
}

impl Ways {
    /// An ACK with SACK blocks or the like reaches its sender: out of the way of plain ones.
    #[inline(never)]
    fn hand_over(
        &mut self,
        now: Time,
        packet: &Packet,
        sender: &mut Sender<Stack>,
        options: &mut OptionStore,
    ) {
        let ack = packet.ack(now, options);
        self.capture
            .see(now, packet.flow, || CaptureEvent::AckReceived(ack));
        sender.handle_ack_apart(now, &ack);
    }

    #[cold]
    fn lose_segment(
        &mut self,
        now: Time,
        packet: Packet,
        sender: &mut FlowSender<Out>,
        classes: &mut [ClassRecord],
    ) {
        let lost = packet.segment();
        sender.outlet.inside -= 1;
        self.capture
            .see(now, packet.flow, || CaptureEvent::SegmentDropped(lost));
        if !lost.syn {
            sender.lose(lost.seq, lost.retransmission, classes);
        }
    }

    /// The ACK for `cum` is lost.
    #[cold]
    fn lose_ack(&mut self, now: Time, slot: u32, cum: u64, receiver: &mut FlowReceiver<In>) {
        receiver.inlet.inside -= 1;
        self.capture
            .see(now, slot, || CaptureEvent::AckDropped(cum));
    }

    /// Index of the cross traffic that a packet belongs to.
    fn cross_of(&self, packet: &Packet) -> Option<usize> {
        let answered = packet.kind() != Kind::Datagram;
        self.numbers.index(answered, packet.flow as usize)
    }

    /// A datagram or an answer of the cross traffic with this index enters its next link, or is
    /// where it was sent to.
    fn carry(&self, now: Time, mut packet: Packet, i: usize, cross: &mut Cross, net: &mut Net) {
        let [forward, back] = &self.cross[i];
        if packet.kind() == Kind::Request && forward.len() == usize::from(packet.hop()) {
            packet = packet.answered();
        }
        let links = match packet.kind() {
            Kind::Reply => back,
            _ => forward,
        };
        match links.get(usize::from(packet.hop())) {
            Some(&link) => cross.dropped += u64::from(!net.offer(now, link, packet)),
            None => cross.arrive(now, packet.number, Some(now - packet.stamp)),
        }
    }
}

impl Network for Attached<'_> {
    type Out = Out;
    type In = In;
    type Event = LinkEvent;

    #[inline]
    fn schedule(&mut self, at: Time, wake: Wake) {
        self.net.schedule(at, wake);
    }

    /// All hosts are here.
    fn sends(&self, _: bool) -> bool {
        true
    }

    fn outgoing(&mut self, flow: FlowId, slot: u32, f: &FlowSpec) -> Option<Out> {
        let slots = slot as usize + 1;
        let is_short = matches!(flow, FlowId::Short { .. });
        if is_short && self.net.layout.targets(slots) > EventQueue::MAX_TARGETS {
            let what = format!("{slots} flows at once are more than fit");
            self.ways.fault.get_or_insert(what);
            return None;
        }
        Some(Out {
            first: f.forward[0] as u32,
            back: links(&f.back),
            lengths: f.sender.lengths(),
            local_queue: f.local_queue,
            inside: 0,
            waits: false,
        })
    }

    fn incoming(&mut self, _: FlowId, _: u32, f: &FlowSpec) -> Option<In> {
        Some(In {
            first: f.back[0] as u32,
            forward: links(&f.forward),
            lengths: f.sender.lengths(),
            local_queue: f.local_queue,
            inside: 0,
        })
    }

    /// Sends all that the sender has for now, then sets its timer.
    #[inline(always)]
    fn ready(
        &mut self,
        now: Time,
        slot: u32,
        sender: &mut FlowSender<Out>,
        classes: &mut [ClassRecord],
    ) {
        // New segments that need not be asked for.
        let mut more = 0;
        loop {
            if more == 0 {
                match sender.allowance() {
                    Allowance::New(segments) => more = segments,
                    Allowance::Full => {
                        sender.note_full_window(now);
                        break;
                    }
                    Allowance::Ask => {}
                }
            }
            let entered = if more > 0 {
                more -= 1;
                let segment = sender.send_more(now);
                self.send(now, slot, segment, sender, classes)
            } else if let Some(segment) = sender.poll_again(now) {
                self.send_apart(now, slot, segment, sender, classes)
            } else {
                break;
            };
            if !entered {
                break;
            }
        }
        if let Some(at) = sender.arm() {
            self.net.schedule(at, Wake::Sender(slot));
        }
    }

    fn receiver_due(&mut self, now: Time, slot: u32, receiver: &mut FlowReceiver<In>) {
        if let Some(ack) = receiver.parts().0.handle_timeout(now) {
            self.answer(now, slot, receiver, &ack);
        }
        self.arm(slot, receiver);
    }

    fn cross_due(&mut self, now: Time, index: u32, cross: &mut Cross) {
        let (size, n) = (cross.packet(), cross.depart(now));
        let number = self.ways.numbers.number(index as usize) as u32;
        let kind = match cross.is_answered() {
            false => Kind::Datagram,
            true => Kind::Request,
        };
        let packet = Packet::cross(number, size, kind, n, now);
        if cross.next_departure() < Time::MAX {
            self.net
                .schedule(cross.next_departure(), Wake::Cross(index));
        }
        self.ways
            .carry(now, packet, index as usize, cross, self.net);
    }
}

/// Bytes of a packet that asks an interface for room: its buffer counts packets.
const ANY_SIZE: u16 = 1;

/// Packets in the links at the end, by whose they are.
struct Inside {
    /// Segments and ACKs of each flow.
    flows: Vec<u64>,
    /// Data among them.
    data: Vec<u64>,
    /// Datagrams and answers of cross traffic.
    cross: Vec<u64>,
}

impl Hosts {
    fn inside(&self, net: &Net) -> Inside {
        let flows = self.host.senders.len();
        let mut inside = Inside {
            flows: vec![0; flows],
            data: vec![0; flows],
            cross: vec![0; self.host.cross.len()],
        };
        for packet in net.links.iter().flat_map(|link| link.inside()) {
            let i = packet.flow as usize;
            match packet.kind() {
                Kind::Data => {
                    inside.flows[i] += 1;
                    inside.data[i] += 1;
                }
                Kind::Syn | Kind::Ack | Kind::SynAck => inside.flows[i] += 1,
                Kind::Datagram | Kind::Request | Kind::Reply => {
                    if let Some(i) = self.ways.cross_of(packet) {
                        inside.cross[i] += 1;
                    }
                }
            }
        }
        inside
    }
}
