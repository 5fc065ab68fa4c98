//! A host: its flows, short-flow classes and cross traffic, and what their timers do.

use std::fmt::Debug;

use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::Time;

use crate::configs::Configs;
use crate::report::HostOutcome;
use crate::traffic::{Class, ClassRecord, Cross, Short};
use crate::{FlowReceiver, FlowSender, Wake};

/// Where packets go, and when timers come back: what a host needs of its ground.
pub trait Network {
    /// What it keeps with a flow's sender.
    type Out: Debug;
    /// What it keeps with a flow's receiver.
    type In: Debug;
    /// Timers of its own.
    type Event;

    /// `wake` is to come back at `at`, through [`Host::wake`]. Entries of one time come back in the
    /// order in which they were made, and none is taken back: a timer that has moved ignores the
    /// entry of its earlier time.
    fn schedule(&mut self, at: Time, wake: Wake<Self::Event>);

    /// True if traffic sends from this host: that of the far one if `reverse`, else that of the
    /// near one.
    fn sends(&self, reverse: bool) -> bool;

    /// What to keep with the sender of a flow, which gets this slot; `None`: it stands on another
    /// host, or finds no room.
    fn outgoing(&mut self, flow: FlowId, slot: u32, f: &FlowSpec) -> Option<Self::Out>;

    /// What to keep with the receiver of a flow, which gets this slot; `None`: it stands on another
    /// host.
    fn incoming(&mut self, flow: FlowId, slot: u32, f: &FlowSpec) -> Option<Self::In>;

    /// A sender may have something to send.
    fn ready(
        &mut self,
        now: Time,
        slot: u32,
        sender: &mut FlowSender<Self::Out>,
        classes: &mut [ClassRecord],
    );

    /// The timer of a receiver is due.
    fn receiver_due(&mut self, now: Time, slot: u32, receiver: &mut FlowReceiver<Self::In>);

    /// A datagram of cross traffic is due. The network sets the timer of the next one.
    fn cross_due(&mut self, now: Time, index: u32, cross: &mut Cross);
}

/// Identifies a long flow or one short flow of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowId {
    /// By index of the specification.
    Lasting(u32),
    /// The flow with this number of a class.
    Short {
        /// Index of the class.
        class: u32,
        /// From zero, in the order of arrival.
        number: u64,
    },
}

/// The flows of a host, and its other traffic.
#[derive(Debug)]
pub struct Host<O, I> {
    seed: u64,
    /// Flows of the specification that send from here, then slots of short ones.
    pub senders: Vec<FlowSender<O>>,
    /// Flows that are received here, likewise.
    pub receivers: Vec<FlowReceiver<I>>,
    /// Slots of short flows that are over.
    free: Vec<u32>,
    arrivals: Vec<Class>,
    /// What is recorded of each class of short flows.
    pub classes: Vec<ClassRecord>,
    /// Datagrams without congestion control.
    pub cross: Vec<Cross>,
}

impl<O: Debug, I: Debug> Host<O, I> {
    /// The part of a run that `net` lets this host have.
    pub fn new<N: Network<Out = O, In = I>>(spec: &RunSpec, net: &mut N) -> Self {
        net.schedule(spec.measure_from, Wake::Measure);
        let mut host = Self {
            seed: spec.seed,
            senders: Vec::with_capacity(spec.flows.len()),
            receivers: Vec::with_capacity(spec.flows.len()),
            free: Vec::new(),
            arrivals: spec.arrivals.iter().map(|a| Class::new(a, spec)).collect(),
            classes: spec
                .arrivals
                .iter()
                .map(|a| ClassRecord::new(a, spec))
                .collect(),
            cross: spec.cross.iter().map(|c| Cross::new(c, spec)).collect(),
        };
        let mut configs = Configs::default();
        for (flow, f) in (0..).zip(&spec.flows) {
            host.add(flow, f, spec, &mut configs, net);
        }
        if net.sends(false) {
            for (i, cross) in (0..).zip(&mut host.cross) {
                if let Some(at) = cross.begin() {
                    net.schedule(at, Wake::Cross(i));
                }
            }
        }
        for (i, a) in (0..).zip(&spec.arrivals) {
            if net.sends(a.template.reverse) {
                host.expect_next(i, net);
            }
        }
        host
    }

    fn add<N>(
        &mut self,
        flow: u32,
        f: &FlowSpec,
        spec: &RunSpec,
        configs: &mut Configs,
        net: &mut N,
    ) where
        N: Network<Out = O, In = I>,
    {
        let id = FlowId::Lasting(flow);
        let slot = self.senders.len() as u32;
        if let Some(outlet) = net.outgoing(id, slot, f) {
            let sender = FlowSender::lasting(flow, f, spec, configs, outlet);
            net.schedule(sender.started(), Wake::Start(slot));
            if let Some(stop) = f.stop {
                net.schedule(stop, Wake::Stop(slot));
            }
            for change in &f.changes {
                net.schedule(change.at.max(sender.started()), Wake::Change(slot));
            }
            self.senders.push(sender);
        }
        let slot = self.receivers.len() as u32;
        if let Some(inlet) = net.incoming(id, slot, f) {
            self.receivers
                .push(FlowReceiver::lasting(flow, f, spec, configs, inlet));
        }
    }

    /// The timer entry that was set for `at` has come.
    pub fn wake<N>(&mut self, now: Time, at: Time, wake: Wake<N::Event>, net: &mut N)
    where
        N: Network<Out = O, In = I>,
    {
        let classes = &mut self.classes;
        match wake {
            Wake::Measure => {
                for sender in &mut self.senders {
                    sender.begin_measurement(now);
                }
                for receiver in &mut self.receivers {
                    receiver.begin_measurement();
                }
            }
            Wake::Start(slot) => {
                let sender = &mut self.senders[slot as usize];
                sender.start(now, classes);
                net.ready(now, slot, sender, classes);
            }
            Wake::Change(slot) => {
                let sender = &mut self.senders[slot as usize];
                sender.change_now(now, classes);
                net.ready(now, slot, sender, classes);
            }
            Wake::Stop(slot) => self.senders[slot as usize].stop(now, classes),
            Wake::Sender(slot) => {
                let sender = &mut self.senders[slot as usize];
                if sender.timer.take(at) {
                    sender.handle_timeout(now, classes);
                    net.ready(now, slot, sender, classes);
                }
            }
            Wake::Receiver(slot) => {
                let receiver = &mut self.receivers[slot as usize];
                if receiver.timer.take(at) {
                    net.receiver_due(now, slot, receiver);
                }
            }
            Wake::Cross(i) => net.cross_due(now, i, &mut self.cross[i as usize]),
            Wake::Class(class) => self.begin_short_flow(now, class, true, net),
            Wake::Session(class) => self.begin_short_flow(now, class, false, net),
            Wake::Resume(slot) => {
                let sender = &mut self.senders[slot as usize];
                sender.resume(now, classes);
                net.ready(now, slot, sender, classes);
            }
            Wake::Network(_) => {}
        }
    }

    /// The next short flow of a class arrives, or continues a session: into the slot of one that is
    /// over, or into a new one.
    #[cold]
    fn begin_short_flow<N: Network<Out = O, In = I>>(
        &mut self,
        now: Time,
        class: u32,
        arrives: bool,
        net: &mut N,
    ) {
        let arrivals = &mut self.arrivals[class as usize];
        let next = match arrives {
            true => Some(arrivals.next_flow()),
            false => arrivals.next_of_session(),
        };
        let Some((f, session)) = next else { return };
        let number = self.classes[class as usize].begin(now, f.sender.transfer.unwrap_or(0));
        let id = FlowId::Short {
            class,
            number: number as u64,
        };
        let slot = match self.free.last() {
            Some(slot) => *slot,
            None => self.senders.len() as u32,
        };
        // One that finds no room never completes: it ends its session.
        let Some(outlet) = net.outgoing(id, slot, f) else {
            if arrives {
                self.expect_next(class, net);
            }
            return;
        };
        let short = Short::new(class, number, session);
        put(
            &mut self.senders,
            slot,
            FlowSender::short(f, self.seed, now, short, outlet),
        );
        if let Some(inlet) = net.incoming(id, slot, f) {
            let receiver = FlowReceiver::short(class, f, self.seed, inlet);
            put(&mut self.receivers, slot, receiver);
        }
        self.free.pop();
        if arrives {
            self.expect_next(class, net);
        }
        let sender = &mut self.senders[slot as usize];
        sender.start(now, &mut self.classes);
        net.ready(now, slot, sender, &mut self.classes);
    }

    fn expect_next<N: Network<Out = O, In = I>>(&mut self, class: u32, net: &mut N) {
        if let Some(at) = self.arrivals[class as usize].next_arrival() {
            net.schedule(at, Wake::Class(class));
        }
    }

    /// A sender has processed an ACK: if that completed a short flow, its session goes on, or not.
    /// To be called before the sender retires; a second time it does nothing.
    #[cold]
    pub fn note_complete<N: Network<Out = O, In = I>>(
        &mut self,
        now: Time,
        slot: u32,
        net: &mut N,
    ) {
        let Some((class, session)) = self.senders[slot as usize].take_session() else {
            return;
        };
        if let Some(at) = self.arrivals[class as usize].go_on(now, session) {
            net.schedule(at, Wake::Session(class));
        }
    }

    /// The sender of a short flow is done: it is booked into its class, and its slot is free.
    pub fn retire_sender(&mut self, now: Time, slot: u32) {
        self.senders[slot as usize].leave(now, &mut self.classes);
        self.free.push(slot);
    }

    /// The receiver of a short flow is done: it is booked into its class.
    pub fn retire_receiver(&mut self, now: Time, slot: u32) {
        self.receivers[slot as usize].leave(now, &mut self.classes);
    }

    /// The run ends: everything that is counted here.
    pub fn finish(mut self, end: Time) -> HostOutcome {
        for sender in &mut self.senders {
            sender.leave(end, &mut self.classes);
        }
        for receiver in &mut self.receivers {
            receiver.leave(end, &mut self.classes);
        }
        let senders = self.senders.into_iter().filter_map(|s| s.report(end));
        let receivers = self.receivers.into_iter().filter_map(|r| r.report(end));
        HostOutcome {
            senders: senders.collect(),
            receivers: receivers.collect(),
            classes: self.classes.into_iter().map(|c| c.finish(end)).collect(),
            cross: self.cross.into_iter().map(|c| c.finish(end)).collect(),
            ended: end,
            ..HostOutcome::default()
        }
    }
}

/// Into its slot, which is one of those there are or the next one.
fn put<T>(all: &mut Vec<T>, slot: u32, one: T) {
    match all.get_mut(slot as usize) {
        Some(place) => *place = one,
        None => all.push(one),
    }
}
