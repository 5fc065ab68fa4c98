//! The flows of a host, and what waits to happen to them: all but the socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullpipe_flow::{Ack, Segment};
use fullpipe_host::{Capture, FlowSender, Host, HostCounts, HostOutcome, Network};
use fullpipe_realtime::live::{self, Live, LiveFlow};
use fullpipe_run::Trace;
use fullpipe_units::{Span, Time};

use super::backoff::BackOff;
use super::cross_traffic::OnWire;
use super::hooks::{Contents, Hooks};
use super::inlet::{self, Inlet};
use super::interface::Interfaces;
use super::lateness::LoopLateness;
use super::leases::{LOOK, Leases, MOST_ROWS};
use super::numbers::{MOST_CLASSES, Numbers, SHORT};
use super::outlet::{self, Outlet};
use super::pieces::{BASE, PathLimit};
use super::timers::{Event, Timers, Wake};
use super::{EndpointError, Plan};
use crate::wire::{CrossDatagram, DataDatagram};

/// No flow of this number.
pub const NONE: u32 = u32::MAX;
/// Largest payload of a datagram over IPv4.
const LARGEST: usize = 65_507;
/// From one look at the flows to the next.
const WATCH: Span = Span::from_millis(100);
/// A host, and what surrounds it here.
pub struct State<'p, 'h> {
    pub plan: &'p Plan,
    pub end: Time,
    pub host: Host<Outlet, Inlet>,
    pub wires: Wires<'p, 'h>,
    pub hooks: Watching<'h>,
    /// Senders that the operating system refused.
    pub stalled: Vec<u32>,
    /// It refuses; tried again then at the latest.
    pub retry: Option<Time>,
    pub backoff: BackOff,
    /// Echoes of the batch.
    pub echoes: Vec<(CrossDatagram, usize)>,
    /// What was pushed since the last flush, in order.
    pub pushed: Vec<Pushed>,
    pub capture: Capture,
    pub counts: HostCounts,
    pub lateness: LoopLateness,
}

/// What leads from the host to the wire: numbers, timers, and what is to leave in the next batch.
pub struct Wires<'p, 'h> {
    pub plan: &'p Plan,
    /// Slot of the sender by number on the wire.
    pub sender_of: Vec<u32>,
    pub receiver_of: Vec<u32>,
    /// The same for short flows, by number from [`SHORT`].
    pub short_senders: Vec<u32>,
    pub short_receivers: Vec<u32>,
    pub numbers: Numbers,
    pub cross: OnWire,
    pub contents: Contents<'h>,
    pub interfaces: Option<Interfaces>,
    pub timers: Timers,
    /// Senders that may send, in turn.
    pub ready: VecDeque<u32>,
    /// By slot: it stands in that queue.
    pub queued: Vec<bool>,
    /// Cross traffic with a datagram that is due.
    pub due: VecDeque<u32>,
    /// ACKs of the batch, and what proves them.
    pub acks: Vec<(u32, Ack, u32)>,
    /// Short flows that found no free number.
    pub unnumbered: u64,
}

/// Observers of progress and completion.
pub struct Watching<'a> {
    pub live: Option<&'a Live>,
    complete: Option<&'a std::sync::atomic::AtomicBool>,
    path: Option<Arc<PathLimit>>,
    leases: Option<Leases>,
    /// Lasting flows that send from here: the first slots.
    lasting: usize,
}

/// A datagram of the batch that is about to leave.
pub enum Pushed {
    /// Of a sender; `dropped` by an exact rule: it is only counted.
    Segment {
        sender: u32,
        segment: Segment,
        dropped: bool,
    },
    /// A datagram of the cross traffic with this index, to which nobody answers.
    Datagram(u32),
    /// An ACK, a request or its echo: not sent again.
    Other,
}

impl<'p, 'h> State<'p, 'h> {
    /// Before its first turn; to every datagram its port adds `overhead` bytes.
    pub fn new(plan: &'p Plan, hooks: Hooks<'h>, overhead: usize) -> Result<Self, EndpointError> {
        let spec = &*plan.spec;
        check(plan, overhead)?;
        let mut wires = Wires::new(plan, overhead)?;
        let host = Host::new(spec, &mut wires);
        let mut state = Self {
            plan,
            end: Time::ZERO + spec.duration,
            hooks: Watching {
                live: hooks.live,
                complete: hooks.complete,
                path: hooks.path.clone(),
                leases: None,
                lasting: host.senders.len(),
            },
            host,
            wires,
            stalled: Vec::new(),
            retry: None,
            backoff: BackOff::new(),
            echoes: Vec::new(),
            pushed: Vec::new(),
            capture: Capture::new(spec),
            counts: HostCounts::default(),
            lateness: LoopLateness::default(),
        };
        if spec.trace != Trace::Full {
            let flows = state.host.senders.len().max(4);
            for sender in &mut state.host.senders {
                sender.limit_rows((4 * MOST_ROWS / flows).max(1 << 10));
            }
        }
        if let Some(lender) = &hooks.lender {
            let leases = Leases::new(plan, Arc::clone(lender), &mut state.host);
            state.hooks.leases = Some(leases);
            let lend = Wake::Network(Event::Lend);
            state.wires.timers.set(Time::ZERO + LOOK, lend);
        }
        state.connect(hooks);
        state.note_complete();
        Ok(state)
    }

    /// Sources and sinks of data find their flows; those of flows of the other side have nothing to
    /// do.
    fn connect(&mut self, hooks: Hooks<'h>) {
        let contents = &mut self.wires.contents;
        contents.sources = self.host.senders.iter().map(|_| None).collect();
        contents.sinks = self.host.receivers.iter().map(|_| None).collect();
        let slot = |of: &[u32], flow: u32| of.get(flow as usize).copied().unwrap_or(NONE) as usize;
        for (flow, source) in hooks.sources {
            if let Some(place) = contents.sources.get_mut(slot(&self.wires.sender_of, flow)) {
                *place = Some(source);
                let mss = self.plan.spec.flows[flow as usize].sender.mss as usize;
                let most = contents.scratch.len().max(mss);
                contents.scratch.resize(most, 0);
            }
        }
        for (flow, sink, step) in hooks.traces {
            let slot = slot(&self.wires.sender_of, flow);
            if let Some(sender) = self.host.senders.get_mut(slot) {
                sender.trace_to(sink, step);
            }
        }
        for (flow, sink) in hooks.sinks {
            if let Some(place) = contents.sinks.get_mut(slot(&self.wires.receiver_of, flow)) {
                *place = Some(sink);
            }
        }
        if self.hooks.path.is_some() {
            let watch = Wake::Network(Event::Watch);
            self.wires.timers.set(Time::ZERO + WATCH, watch);
        }
        if self.hooks.live.is_some() {
            let publish = Wake::Network(Event::Publish);
            self.wires.timers.set(Time::ZERO + live::EVERY, publish);
        }
    }

    /// Nothing may be sent now.
    pub fn is_idle(&self) -> bool {
        let wires = &self.wires;
        let interfaces = wires.interfaces.as_ref();
        let crossed = interfaces.is_some_and(|i| !i.out.is_empty());
        self.retry.is_some() || (wires.ready.is_empty() && wires.due.is_empty() && !crossed)
    }

    /// Serves every timer that is due.
    pub fn fire(&mut self, now: Time) {
        if self.hooks.live.is_some_and(Live::has_orders) {
            self.obey(now);
        }
        while let Some((at, wake)) = self.wires.timers.due(now) {
            self.lateness.timer(now, at);
            match wake {
                Wake::Network(Event::Interface) => self.cross_interface(now, at),
                Wake::Network(Event::Publish) => {
                    self.publish(now);
                    let next = (at + live::EVERY).max(now + live::EVERY / 2);
                    self.wires.timers.set(next, wake);
                }
                Wake::Network(Event::Watch) => {
                    self.watch();
                    self.wires.timers.set(now + WATCH, wake);
                }
                Wake::Network(Event::Lend) => {
                    if let Some(leases) = &mut self.hooks.leases
                        && let Some(pause) = leases.look(&mut self.host)
                    {
                        self.wires.timers.set(now + pause, wake);
                    }
                }
                Wake::Resume(slot) if !self.resume_at_interface(now, slot) => {}
                _ => self.host.wake(now, at, wake, &mut self.wires),
            }
            if let Wake::Stop(_) = wake {
                self.note_complete();
            }
        }
        self.lateness.begin(now);
    }

    /// Flows that send from here change as ordered.
    #[cold]
    fn obey(&mut self, now: Time) {
        let orders = self.hooks.live.map(Live::take_orders).unwrap_or_default();
        for (flow, change) in orders {
            let slot = self.wires.sender_of.get(flow as usize);
            let slot = slot.copied().unwrap_or(NONE);
            let host = &mut self.host;
            if let Some(sender) = host.senders.get_mut(slot as usize)
                && sender.change(now, &change, &mut host.classes)
            {
                Network::ready(&mut self.wires, now, slot, sender, &mut host.classes);
            }
        }
    }

    /// A flow of long segments that times out and gets nothing through makes one doubt their
    /// length.
    #[cold]
    fn watch(&mut self) {
        let Some(path) = &self.hooks.path else { return };
        // An interface may refuse what is too long for its other end, as if its queue was full
        // (Linux's veth does).
        let refused = self.retry.is_some();
        for sender in &mut self.host.senders {
            let (delivered, timeouts) = {
                let sender = sender.sender();
                (sender.delivered(), sender.counts().timeouts)
            };
            let outlet = &mut sender.outlet;
            let (before, earlier, refused_before) = outlet.watched;
            let still = timeouts > earlier || refused && refused_before;
            let stuck = delivered == before && still;
            outlet.watched = (delivered, timeouts, refused);
            if stuck && outlet.size() > BASE {
                path.doubt();
            }
        }
    }

    #[cold]
    fn publish(&self, now: Time) {
        let Some(live) = self.hooks.live else { return };
        let flows = self.wires.sender_of.iter().zip(&self.wires.receiver_of);
        let flows = flows.map(|(s, r)| {
            match (
                self.host.senders.get(*s as usize),
                self.host.receivers.get(*r as usize),
            ) {
                (Some(sender), _) => outlet::live(sender),
                (None, Some(receiver)) => inlet::live(receiver),
                (None, None) => LiveFlow::default(),
            }
        });
        live.publish(now, flows);
    }

    /// Perhaps the last lasting flow of this side is complete.
    #[cold]
    pub fn note_complete(&self) {
        if let Some(complete) = self.hooks.complete
            && self.host.senders[..self.hooks.lasting]
                .iter()
                .all(FlowSender::is_complete)
        {
            complete.store(true, Ordering::Release);
        }
    }

    /// A short flow is over: its slot and its number are free.
    #[cold]
    pub fn retire(&mut self, now: Time, slot: u32) {
        let number = self.host.senders[slot as usize].outlet.number;
        self.wires.short_senders[usize::from(number - SHORT)] = NONE;
        self.host.retire_sender(now, slot);
    }

    /// The run ends.
    pub fn finish(mut self, ended: Time, has_stamps: bool) -> Result<HostOutcome, EndpointError> {
        if self.hooks.live.is_some() {
            self.publish(ended);
        }
        for cross in &mut self.host.cross {
            cross.dropped = cross.dropped.max(cross.missing());
        }
        let bleached = self.bleached();
        let interfaces = self.wires.interfaces.map(Interfaces::finish).transpose()?;
        self.counts.unnumbered = self.wires.unnumbered;
        Ok(HostOutcome {
            interfaces: interfaces.unwrap_or_default(),
            capture: self.capture.finish(),
            lateness: self.lateness.finish(&self.counts, has_stamps),
            counts: self.counts,
            bleached,
            ..self.host.finish(ended)
        })
    }

    /// Flows that use ECN in vain: something on the way clears the field, and no queue can mark.
    fn bleached(&self) -> Vec<u32> {
        let senders = self.host.senders.iter().filter(|s| outlet::is_bleached(s));
        let receivers = self.host.receivers.iter().filter(|r| inlet::is_bleached(r));
        let flows = senders.map(|s| s.flow()).chain(receivers.map(|r| r.flow()));
        let uses_ecn = |flow: &u32| {
            let flow = self.plan.spec.flows.get(*flow as usize);
            flow.is_some_and(|f| f.sender.ecn && f.receiver.ecn)
        };
        flows.filter(uses_ecn).collect()
    }
}

/// The wire has room for what the run asks for.
fn check(plan: &Plan, overhead: usize) -> Result<(), EndpointError> {
    let spec = &*plan.spec;
    let most = usize::from(SHORT);
    for (what, count, most) in [
        ("flows", spec.flows.len(), most),
        ("sources of cross traffic", spec.cross.len(), most),
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
