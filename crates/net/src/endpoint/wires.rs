//! How a host meets the wire: numbers of its flows, senders in turn, batches of ACKs.

use std::collections::VecDeque;

use fullpipe_host::{ClassRecord, Cross, FlowId, FlowReceiver, FlowSender, Network};
use fullpipe_run::FlowSpec;
use fullpipe_units::Time;

use super::cross_traffic::OnWire;
use super::hooks::{self, Contents};
use super::inlet::{self, Inlet, Receiving};
use super::interface::Interfaces;
use super::numbers::{Incarnation, Numbers, SHORT};
use super::outlet::Outlet;
use super::state::{NONE, State, Wires};
use super::timers::{Event, Timers, Wake};
use super::{EndpointError, Plan};

impl<'p> Wires<'p, '_> {
    /// Of a host that has no flows yet; to every datagram its port adds `overhead` bytes.
    pub fn new(plan: &'p Plan, overhead: usize) -> Result<Self, EndpointError> {
        let spec = &*plan.spec;
        let shorts = |sends| {
            let any = spec
                .arrivals
                .iter()
                .any(|a| plan.sends(a.template.reverse) == sends);
            vec![NONE; if any { usize::from(SHORT) } else { 0 }]
        };
        Ok(Self {
            plan,
            sender_of: vec![NONE; spec.flows.len()],
            receiver_of: vec![NONE; spec.flows.len()],
            short_senders: shorts(true),
            short_receivers: shorts(false),
            numbers: Numbers::new(spec.arrivals.len()),
            cross: OnWire::new(spec, overhead),
            contents: Contents {
                sources: Vec::new(),
                sinks: Vec::new(),
                scratch: Vec::new(),
                fault: None,
            },
            interfaces: Interfaces::new(spec, plan.side)?,
            timers: Timers::default(),
            ready: VecDeque::new(),
            queued: Vec::new(),
            due: VecDeque::new(),
            acks: Vec::new(),
            unnumbered: 0,
        })
    }

    /// A sender may have something to send.
    #[inline]
    pub fn make_ready(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.queued[slot as usize], true) {
            self.ready.push_back(slot);
        }
    }

    #[inline]
    pub fn arm_sender(&mut self, slot: u32, sender: &mut FlowSender<Outlet>) {
        if let Some(at) = sender.arm() {
            self.timers.set(at, Wake::Sender(slot));
        }
    }

    #[inline]
    pub fn arm_receiver(&mut self, slot: u32, receiver: &mut Receiving) {
        if let Some(at) = receiver.arm(inlet::next_timeout(receiver)) {
            self.timers.set(at, Wake::Receiver(slot));
        }
    }
}

impl Network for Wires<'_, '_> {
    type Out = Outlet;
    type In = Inlet;
    type Event = Event;

    fn schedule(&mut self, at: Time, wake: Wake) {
        self.timers.set(at, wake);
    }

    fn sends(&self, reverse: bool) -> bool {
        self.plan.sends(reverse)
    }

    fn outgoing(&mut self, flow: FlowId, slot: u32, f: &FlowSpec) -> Option<Outlet> {
        if !self.plan.sends(f.reverse) {
            return None;
        }
        let (number, incarnation) = match flow {
            FlowId::Lasting(i) => {
                self.sender_of[i as usize] = slot;
                (i as u16, None)
            }
            FlowId::Short { class, number } => {
                let (on_wire, incarnation) = self.numbers.of(class, number);
                let place = &mut self.short_senders[usize::from(on_wire - SHORT)];
                if *place != NONE {
                    // The flow of the same number a whole round before is still there.
                    self.unnumbered += 1;
                    return None;
                }
                *place = slot;
                (on_wire, Some(incarnation))
            }
        };
        if slot as usize >= self.queued.len() {
            self.queued.resize(slot as usize + 1, false);
        }
        let interface = self.interfaces.as_mut().and_then(|i| i.route(f));
        Some(Outlet::new(number, incarnation, f, interface))
    }

    /// Receivers of short flows are made when their first segment comes.
    fn incoming(&mut self, flow: FlowId, slot: u32, f: &FlowSpec) -> Option<Inlet> {
        let FlowId::Lasting(i) = flow else {
            return None;
        };
        (!self.plan.sends(f.reverse)).then(|| {
            self.receiver_of[i as usize] = slot;
            Inlet::new(i as u16, None, f)
        })
    }

    fn ready(&mut self, _: Time, slot: u32, _: &mut FlowSender<Outlet>, _: &mut [ClassRecord]) {
        self.make_ready(slot);
    }

    /// A delayed ACK is due, or a look at what the sink has room for.
    fn receiver_due(&mut self, now: Time, slot: u32, receiver: &mut FlowReceiver<Inlet>) {
        let sink = self.contents.sinks.get_mut(slot as usize);
        let mut sink = sink.and_then(|sink| sink.as_deref_mut());
        let bounded = match hooks::room(&mut sink, receiver) {
            Ok(bounded) => bounded,
            Err(e) => {
                self.contents.fault.get_or_insert((receiver.flow(), e));
                false
            }
        };
        if let Some(ack) = inlet::handle_timeout(receiver, now) {
            let proof = receiver.inlet.proof(&ack);
            self.acks.push((slot, ack, proof));
        }
        if bounded {
            inlet::watch_room(receiver, now);
        }
        self.arm_receiver(slot, receiver);
    }

    fn cross_due(&mut self, _: Time, index: u32, _: &mut Cross) {
        self.due.push_back(index);
    }
}

impl State<'_, '_> {
    /// The receiver of a short flow, made if there is none yet; that of an earlier flow of its
    /// number has done its work.
    pub fn short_receiver(
        &mut self,
        now: Time,
        number: u16,
        incarnation: Incarnation,
    ) -> Option<u32> {
        let wires = &mut self.wires;
        let class = wires.numbers.class(number)?;
        let template = &self.plan.spec.arrivals.get(class)?.template;
        if self.plan.sends(template.reverse) {
            return None;
        }
        let place = wires.short_receivers.get_mut(usize::from(number - SHORT))?;
        let known = self.host.receivers.get(*place as usize);
        match known.and_then(|known| known.inlet.incarnation) {
            Some(present) if present == incarnation => return Some(*place),
            Some(present) if !incarnation.is_after(present) => return None,
            _ => {}
        }
        let mut f = template.clone();
        f.name = format!("{}#{}", f.name, wires.numbers.index(number, incarnation));
        let inlet = Inlet::new(number, Some(incarnation), &f);
        let receiver = FlowReceiver::short(class as u32, &f, self.plan.spec.seed, inlet);
        if *place == NONE {
            *place = self.host.receivers.len() as u32;
            self.host.receivers.push(receiver);
        } else {
            self.host.retire_receiver(now, *place);
            self.host.receivers[*place as usize] = receiver;
        }
        Some(*place)
    }
}
