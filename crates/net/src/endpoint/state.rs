//! The flows of a host, and what waits to happen to them: all but the socket.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use fullpipe_flow::{Ack, Segment};
use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_sim::traffic::{Class, ClassRecord};
use fullpipe_units::Time;

use super::backoff::BackOff;
use super::crossing::{self, Crossing, Probing};
use super::hooks::{self, Contents, Hooks};
use super::interface::Interfaces;
use super::lateness::Punctuality;
use super::numbers::{MOST_CLASSES, Numbers, SHORT};
use super::outcome::{HostCounts, HostOutcome};
use super::receiving::Receiving;
use super::sending::Sending;
use super::timers::{Timers, Wake};
use super::{EndpointError, Plan, Side};
use crate::live::{self, Live, LiveFlow};
use crate::wire::{DataDatagram, ProbeDatagram};

/// No flow of this number.
pub const NONE: u32 = u32::MAX;
/// Largest payload of a datagram over IPv4.
const LARGEST: usize = 65_507;

/// See above.
pub struct State<'p, 'h> {
    pub plan: &'p Plan,
    pub end: Time,
    /// Lasting flows, then slots of short ones.
    pub senders: Vec<Sending>,
    pub receivers: Vec<Receiving>,
    /// Index among the senders by number on the wire.
    pub sender_of: Vec<u32>,
    pub receiver_of: Vec<u32>,
    /// The same for short flows, by number from [`SHORT`].
    pub short_senders: Vec<u32>,
    pub short_receivers: Vec<u32>,
    pub numbers: Numbers,
    /// Slots of short flows that are over.
    pub free: Vec<u32>,
    pub arrivals: Vec<Class>,
    pub classes: Vec<ClassRecord>,
    pub sources: Vec<Crossing>,
    pub pings: Vec<Probing>,
    pub contents: Contents<'h>,
    pub interfaces: Option<Interfaces>,
    pub hooks: Watching<'h>,
    pub timers: Timers,
    /// Senders that may send.
    pub ready: VecDeque<u32>,
    /// Sources and probes with a datagram that is due.
    pub due: VecDeque<Wake>,
    /// Senders that the operating system refused.
    pub stalled: Vec<u32>,
    /// It refuses; tried again then at the latest.
    pub retry: Option<Time>,
    pub backoff: BackOff,
    /// ACKs and echoes of the batch.
    pub acks: Vec<(u32, Ack)>,
    pub echoes: Vec<(ProbeDatagram, usize)>,
    /// What was pushed since the last flush, in order.
    pub pushed: Vec<Pushed>,
    pub capture: Option<Vec<CaptureRow>>,
    pub counts: HostCounts,
    pub lateness: Punctuality,
}

/// Who is told.
pub struct Watching<'a> {
    pub live: Option<&'a Live>,
    complete: Option<&'a std::sync::atomic::AtomicBool>,
    /// Lasting flows that send from here: the first slots.
    lasting: usize,
}

/// A datagram of the batch that is about to leave.
pub enum Pushed {
    /// Of a sender; `cut`: it is only counted.
    Segment {
        sender: u32,
        segment: Segment,
        cut: bool,
    },
    /// Of a source.
    Datagram(u32),
    /// An ACK, a probe or its echo: not sent again.
    Other,
}

impl<'p, 'h> State<'p, 'h> {
    /// Before its first turn; to every datagram its port adds `overhead` bytes.
    pub fn new(plan: &'p Plan, hooks: Hooks<'h>, overhead: usize) -> Result<Self, EndpointError> {
        let spec = &*plan.spec;
        check(plan, overhead)?;
        let shorts = |sends| {
            let any = spec
                .arrivals
                .iter()
                .any(|a| plan.sends(a.template.reverse) == sends);
            vec![NONE; if any { usize::from(SHORT) } else { 0 }]
        };
        let mut state = Self {
            plan,
            end: Time::ZERO + spec.duration,
            senders: Vec::new(),
            receivers: Vec::new(),
            sender_of: vec![NONE; spec.flows.len()],
            receiver_of: vec![NONE; spec.flows.len()],
            short_senders: shorts(true),
            short_receivers: shorts(false),
            numbers: Numbers::new(spec.arrivals.len()),
            free: Vec::new(),
            arrivals: spec.arrivals.iter().map(|a| Class::new(a, spec)).collect(),
            classes: spec
                .arrivals
                .iter()
                .map(|a| ClassRecord::new(a, spec))
                .collect(),
            sources: crossing::sources(spec, plan.side, overhead),
            pings: crossing::pings(spec, plan.side, overhead),
            contents: Contents {
                sources: Vec::new(),
                sinks: Vec::new(),
                scratch: Vec::new(),
                fault: None,
            },
            interfaces: Interfaces::new(spec, plan.side)?,
            hooks: Watching {
                live: hooks.live,
                complete: hooks.complete,
                lasting: 0,
            },
            timers: Timers::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            stalled: Vec::new(),
            retry: None,
            backoff: BackOff::new(),
            acks: Vec::new(),
            echoes: Vec::new(),
            pushed: Vec::new(),
            capture: spec.capture.then(Vec::new),
            counts: HostCounts::default(),
            lateness: Punctuality::default(),
        };
        state.add_flows();
        state.connect(hooks);
        state.add_traffic();
        state.note_complete();
        Ok(state)
    }

    fn add_flows(&mut self) {
        let (plan, spec) = (self.plan, &*self.plan.spec);
        self.timers.set(spec.measure_from, Wake::Measure);
        for (i, f) in spec.flows.iter().enumerate() {
            let flow = i as u32;
            if plan.sends(f.reverse) {
                let slot = self.senders.len() as u32;
                self.sender_of[i] = slot;
                let mut sender = Sending::lasting(flow, f, spec);
                sender.interface = self.interfaces.as_mut().and_then(|i| i.route(f));
                self.timers.set(sender.started(), Wake::Start(slot));
                self.timers
                    .set(f.stop.unwrap_or(Time::MAX), Wake::Stop(slot));
                self.senders.push(sender);
            } else {
                self.receiver_of[i] = self.receivers.len() as u32;
                self.receivers.push(Receiving::lasting(flow, f, spec));
            }
        }
        self.hooks.lasting = self.senders.len();
        self.contents.sources = self.senders.iter().map(|_| None).collect();
        self.contents.sinks = self.receivers.iter().map(|_| None).collect();
    }

    /// Sources and sinks of data find their flows; those of flows of the other side have nothing to do.
    fn connect(&mut self, hooks: Hooks<'h>) {
        for (flow, source) in hooks.sources {
            let slot = self.sender_of.get(flow as usize).copied().unwrap_or(NONE);
            if let Some(place) = self.contents.sources.get_mut(slot as usize) {
                *place = Some(source);
                let mss = self.plan.spec.flows[flow as usize].sender.mss as usize;
                let most = self.contents.scratch.len().max(mss);
                self.contents.scratch.resize(most, 0);
            }
        }
        for (flow, sink, step) in hooks.traces {
            let slot = self.sender_of.get(flow as usize).copied().unwrap_or(NONE);
            if let Some(sender) = self.senders.get_mut(slot as usize) {
                sender.trace_to(sink, step);
            }
        }
        for (flow, sink) in hooks.sinks {
            let slot = self.receiver_of.get(flow as usize).copied().unwrap_or(NONE);
            if let Some(place) = self.contents.sinks.get_mut(slot as usize) {
                *place = Some(sink);
            }
        }
        if self.hooks.live.is_some() {
            self.timers.set(Time::ZERO + live::EVERY, Wake::Publish);
        }
    }

    fn add_traffic(&mut self) {
        for (i, source) in (0..).zip(&self.sources) {
            self.timers.set(source.next, Wake::Source(i));
        }
        for (i, probing) in (0..).zip(&self.pings) {
            self.timers.set(probing.next, Wake::Ping(i));
        }
        let sides = self.plan.spec.arrivals.iter();
        for ((i, a), class) in (0..).zip(sides).zip(&mut self.arrivals) {
            if self.plan.sends(a.template.reverse)
                && let Some(at) = class.next_arrival()
            {
                self.timers.set(at, Wake::Class(i));
            }
        }
    }

    /// Nothing may be sent now.
    pub fn is_idle(&self) -> bool {
        let crossed = self.interfaces.as_ref().is_some_and(|i| !i.out.is_empty());
        self.retry.is_some() || (self.ready.is_empty() && self.due.is_empty() && !crossed)
    }

    /// A sender may have something to send.
    #[inline]
    pub fn make_ready(&mut self, slot: u32) {
        let sender = &mut self.senders[slot as usize];
        if !sender.queued {
            sender.queued = true;
            self.ready.push_back(slot);
        }
    }

    #[inline]
    pub fn arm_sender(&mut self, slot: u32) {
        let sender = &mut self.senders[slot as usize];
        let wants = sender.next_timeout();
        if wants < sender.wakes {
            sender.wakes = wants;
            self.timers.set(wants, Wake::Sender(slot));
        }
    }

    #[inline]
    pub fn arm_receiver(&mut self, slot: u32) {
        let receiver = &mut self.receivers[slot as usize];
        let wants = receiver.next_timeout();
        if wants < receiver.wakes {
            receiver.wakes = wants;
            self.timers.set(wants, Wake::Receiver(slot));
        }
    }

    /// A packet of a lasting flow is seen here.
    #[inline]
    pub fn see(&mut self, at: Time, flow: u32, event: impl FnOnce() -> CaptureEvent) {
        if let Some(rows) = &mut self.capture
            && flow != NONE
        {
            let event = event();
            rows.push(CaptureRow { at, flow, event });
        }
    }

    /// Serves every timer that is due.
    pub fn fire(&mut self, now: Time) {
        while let Some((at, wake)) = self.timers.due(now) {
            self.lateness.timer(now, at);
            match wake {
                Wake::Measure => self.begin_measurement(now),
                Wake::Start(slot) => {
                    self.senders[slot as usize].start(now, &mut self.classes);
                    self.make_ready(slot);
                }
                Wake::Stop(slot) => {
                    self.senders[slot as usize].stop(now, &mut self.classes);
                    self.note_complete();
                }
                Wake::Sender(slot) => {
                    let sender = &mut self.senders[slot as usize];
                    if sender.wakes == at {
                        sender.wakes = Time::MAX;
                        sender.handle_timeout(now, &mut self.classes);
                        self.make_ready(slot);
                    }
                }
                Wake::Receiver(slot) => {
                    let receiver = &mut self.receivers[slot as usize];
                    if receiver.wakes == at {
                        receiver.wakes = Time::MAX;
                        self.time_receiver(now, slot);
                    }
                }
                Wake::Source(_) | Wake::Ping(_) => self.due.push_back(wake),
                Wake::Resume(slot) => {
                    self.senders[slot as usize].resume();
                    self.make_ready(slot);
                }
                Wake::Interface => self.cross_interface(now, at),
                Wake::Class(class) => self.welcome(now, class),
                Wake::Publish => {
                    self.publish(now);
                    self.timers.set(now + live::EVERY, Wake::Publish);
                }
            }
        }
        self.lateness.begin(now);
    }

    /// A delayed ACK is due, or a look at what the sink has room for.
    fn time_receiver(&mut self, now: Time, slot: u32) {
        let receiver = &mut self.receivers[slot as usize];
        let Some(sink) = self.contents.sinks.get_mut(slot as usize) else {
            return;
        };
        let mut sink = sink.as_deref_mut();
        let bounded = match hooks::room(&mut sink, receiver) {
            Ok(bounded) => bounded,
            Err(e) => {
                self.contents.fault.get_or_insert((receiver.flow, e));
                false
            }
        };
        if let Some(ack) = receiver.handle_timeout(now) {
            self.acks.push((slot, ack));
        }
        if bounded {
            receiver.watch_room(now);
        }
        self.arm_receiver(slot);
    }

    #[cold]
    fn begin_measurement(&mut self, now: Time) {
        for sender in &mut self.senders {
            sender.begin_measurement(now);
        }
        for receiver in &mut self.receivers {
            receiver.begin_measurement();
        }
    }

    #[cold]
    fn publish(&self, now: Time) {
        let Some(live) = self.hooks.live else { return };
        let flows = self.sender_of.iter().zip(&self.receiver_of);
        let flows = flows.map(|(s, r)| {
            match (
                self.senders.get(*s as usize),
                self.receivers.get(*r as usize),
            ) {
                (Some(sender), _) => sender.live(),
                (None, Some(receiver)) => receiver.live(),
                (None, None) => LiveFlow::default(),
            }
        });
        live.publish(now, flows);
    }

    /// Perhaps the last lasting flow of this side is complete.
    #[cold]
    pub fn note_complete(&self) {
        if let Some(complete) = self.hooks.complete
            && self.senders[..self.hooks.lasting]
                .iter()
                .all(Sending::is_complete)
        {
            complete.store(true, Ordering::Release);
        }
    }

    /// The run ends.
    pub fn finish(mut self, ended: Time, has_stamps: bool) -> Result<HostOutcome, EndpointError> {
        if self.hooks.live.is_some() {
            self.publish(ended);
        }
        let short_senders = self.short_senders.iter().filter(|slot| **slot != NONE);
        for slot in short_senders {
            self.senders[*slot as usize].leave(ended, &mut self.classes);
        }
        for receiver in &self.receivers {
            receiver.leave(ended, &mut self.classes);
        }
        let lasting = |flow: u32| flow != NONE;
        let senders = self.senders.into_iter().filter(|s| lasting(s.flow));
        let receivers = self.receivers.into_iter().filter(|r| lasting(r.flow));
        let sources = self.sources.into_iter();
        let near = self.plan.side == Side::Near;
        let pings = self.pings.into_iter().filter(|_| near);
        let interfaces = self.interfaces.map(Interfaces::finish).transpose()?;
        Ok(HostOutcome {
            interfaces: interfaces.unwrap_or_default(),
            senders: senders.map(|s| s.report(ended)).collect(),
            receivers: receivers.map(|r| r.report(ended)).collect(),
            classes: self.classes.into_iter().map(|c| c.finish(ended)).collect(),
            sources: sources.map(|s| s.outcome(ended)).collect(),
            pings: pings.map(Probing::outcome).collect(),
            capture: self.capture.unwrap_or_default(),
            lateness: self.lateness.finish(&self.counts, has_stamps),
            counts: self.counts,
            ended,
        })
    }
}

/// The wire has room for what the run asks for.
fn check(plan: &Plan, overhead: usize) -> Result<(), EndpointError> {
    let spec = &*plan.spec;
    let most = usize::from(SHORT);
    for (what, count, most) in [
        ("flows", spec.flows.len(), most),
        ("sources", spec.sources.len(), most),
        ("sequences of probes", spec.pings.len(), most),
        ("classes of short flows", spec.arrivals.len(), MOST_CLASSES),
    ] {
        if count > most {
            return Err(EndpointError::TooMany { what, count, most });
        }
    }
    let templates = spec.arrivals.iter().map(|a| &a.template);
    for f in spec.flows.iter().chain(templates) {
        let bytes = f.sender.mss as usize + DataDatagram::LEN + overhead;
        if bytes > LARGEST {
            let flow = f.name.clone();
            return Err(EndpointError::TooLarge { flow, bytes });
        }
    }
    Ok(())
}
