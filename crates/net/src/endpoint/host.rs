//! The loop.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_flow::{Ack, Segment};
use fullpipe_sim::{CaptureEvent, CaptureRow};
use fullpipe_units::{Span, Time};

use super::outcome::{HostCounts, HostOutcome};
use super::port::{Mark, Port};
use super::receiving::{Receiving, Taken};
use super::sending::Sending;
use super::timers::{Timers, Wake};
use super::{EndpointError, Plan};
use crate::wire::{AckDatagram, DataDatagram, Header, Kind};

/// Segments that a sender may send before the next one has its turn.
const BURST: usize = 64;
/// The stop flag is looked at this often.
const PATIENCE: Span = Span::from_millis(50);
/// A socket that refused is tried again after this.
const RETRY: Span = Span::from_micros(50);
/// No flow of this number.
const NONE: u32 = u32::MAX;
/// Largest payload of a datagram over IPv4.
const LARGEST: usize = 65_507;

/// One side of a run.
pub struct Host<'a, P> {
    port: P,
    state: State<'a>,
}

/// All but the socket.
struct State<'a> {
    plan: &'a Plan,
    end: Time,
    senders: Vec<Sending>,
    receivers: Vec<Receiving>,
    /// Index among the senders by number on the wire.
    sender_of: Vec<u32>,
    receiver_of: Vec<u32>,
    timers: Timers,
    /// Senders that may send.
    ready: VecDeque<u32>,
    /// Senders that the operating system refused.
    stalled: Vec<u32>,
    /// It refuses; tried again then at the latest.
    retry: Option<Time>,
    /// ACKs of the batch.
    acks: Vec<(u32, Ack)>,
    /// What was pushed since the last flush, in order.
    pushed: Vec<Pushed>,
    capture: Option<Vec<CaptureRow>>,
    counts: HostCounts,
}

/// A datagram of the batch that is about to leave.
enum Pushed {
    /// Of a sender; `cut`: it is only counted.
    Segment {
        sender: u32,
        segment: Segment,
        cut: bool,
    },
    /// Anything that is not sent again.
    Other,
}

impl<'a, P: Port> Host<'a, P> {
    /// Before its first turn.
    pub fn new(plan: &'a Plan, port: P) -> Result<Self, EndpointError> {
        Ok(Self {
            port,
            state: State::new(plan)?,
        })
    }

    /// Until the end.
    pub fn run(mut self, stop: &AtomicBool) -> Result<HostOutcome, EndpointError> {
        let mut now = self.port.now();
        while now < self.state.end && !stop.load(Ordering::Relaxed) {
            self.turn(now)?;
            now = self.port.now();
        }
        self.state.counts.socket_drops = self.port.drops();
        let ended = now.min(self.state.end);
        Ok(self.state.finish(ended))
    }

    fn turn(&mut self, now: Time) -> io::Result<()> {
        self.state.counts.turns += 1;
        let arrived = self.port.receive()?;
        let now = if arrived > 0 {
            let now = self.port.now();
            self.state.counts.datagrams_in += arrived as u64;
            let state = &mut self.state;
            self.port
                .each(|from, mark, bytes| state.take(now, from, mark, bytes));
            now
        } else {
            now
        };
        self.state.fire(now);
        self.answer(now)?;
        self.transmit(now)?;
        self.flush(now)?;
        if arrived == 0 && self.state.is_idle() {
            self.wait(now)?;
        }
        Ok(())
    }

    /// Pushes the ACKs of the batch.
    fn answer(&mut self, now: Time) -> io::Result<()> {
        let mut acks = std::mem::take(&mut self.state.acks);
        for (slot, ack) in acks.drain(..) {
            if self.port.is_full() {
                self.flush(now)?;
            }
            let state = &mut self.state;
            let receiver = &state.receivers[slot as usize];
            let datagram = receiver.datagram(now, state.plan.session, ack);
            let flow = receiver.flow;
            self.port
                .push(state.plan.peer, None, datagram.bytes(), |out| {
                    datagram.encode(out);
                });
            state.pushed.push(Pushed::Other);
            state.see(now, flow, || CaptureEvent::AckSent(ack));
        }
        self.state.acks = acks;
        Ok(())
    }

    /// Lets every sender that may send do so, in turns.
    fn transmit(&mut self, now: Time) -> io::Result<()> {
        for _ in 0..self.state.ready.len() {
            if self.state.retry.is_some() {
                break;
            }
            let Some(slot) = self.state.ready.pop_front() else {
                break;
            };
            self.state.senders[slot as usize].queued = false;
            if self.pump(now, slot)? {
                self.state.make_ready(slot);
            }
            self.state.arm_sender(slot);
        }
        Ok(())
    }

    /// One turn of a sender; true if it may have more.
    fn pump(&mut self, now: Time, slot: u32) -> io::Result<bool> {
        for _ in 0..BURST {
            if self.port.is_full() {
                self.flush(now)?;
                if self.state.retry.is_some() {
                    return Ok(false);
                }
            }
            let state = &mut self.state;
            let sender = &mut state.senders[slot as usize];
            let Some((segment, cut)) = sender.poll(now) else {
                return Ok(false);
            };
            if !cut {
                let (datagram, len) = sender.datagram(state.plan.session, segment);
                let mark = segment.ect.then_some(Mark::Capable);
                self.port
                    .push(state.plan.peer, mark, len, |out| datagram.encode(out));
            }
            state.pushed.push(Pushed::Segment {
                sender: slot,
                segment,
                cut,
            });
        }
        Ok(true)
    }

    /// Sends what was pushed; gives back what is refused.
    fn flush(&mut self, now: Time) -> io::Result<()> {
        if self.state.pushed.is_empty() {
            return Ok(());
        }
        let flush = self.port.flush()?;
        self.state.counts.datagrams_out += flush.left as u64;
        if flush.refused {
            self.state.take_back(now, flush.left);
        }
        self.state.settle(now);
        Ok(())
    }

    fn wait(&mut self, now: Time) -> io::Result<()> {
        let state = &mut self.state;
        let until = state.timers.next().min(state.end).min(now + PATIENCE);
        let until = state.retry.map_or(until, |retry| until.min(retry));
        let room = self.port.wait(until, state.retry.is_some())?;
        if state.retry.is_some_and(|at| room || at <= self.port.now()) {
            state.resume();
        }
        Ok(())
    }
}

impl<'a> State<'a> {
    fn new(plan: &'a Plan) -> Result<Self, EndpointError> {
        let spec = &*plan.spec;
        if spec.flows.len() > 1 << 15 {
            return Err(EndpointError::TooManyFlows(spec.flows.len()));
        }
        let mut state = Self {
            plan,
            end: Time::ZERO + spec.duration,
            senders: Vec::new(),
            receivers: Vec::new(),
            sender_of: vec![NONE; spec.flows.len()],
            receiver_of: vec![NONE; spec.flows.len()],
            timers: Timers::default(),
            ready: VecDeque::new(),
            stalled: Vec::new(),
            retry: None,
            acks: Vec::new(),
            pushed: Vec::new(),
            capture: spec.capture.then(Vec::new),
            counts: HostCounts::default(),
        };
        state.timers.set(spec.measure_from, Wake::Measure);
        for (i, f) in spec.flows.iter().enumerate() {
            if f.sender.mss as usize + DataDatagram::LEN > LARGEST {
                return Err(EndpointError::TooLarge {
                    flow: f.name.clone(),
                    bytes: u64::from(f.sender.packet()),
                });
            }
            let (flow, number) = (i as u32, i as u16);
            if plan.sends(f.reverse) {
                let slot = state.senders.len() as u32;
                state.sender_of[i] = slot;
                let sender = Sending::new(flow, number, f, spec);
                state.timers.set(sender.started(), Wake::Start(slot));
                state
                    .timers
                    .set(f.stop.unwrap_or(Time::MAX), Wake::Stop(slot));
                state.senders.push(sender);
            } else {
                state.receiver_of[i] = state.receivers.len() as u32;
                let receiver = Receiving::new(flow, number, f, spec.interval);
                state.receivers.push(receiver);
            }
        }
        Ok(state)
    }

    /// Nothing may be sent now.
    fn is_idle(&self) -> bool {
        self.ready.is_empty() || self.retry.is_some()
    }

    fn make_ready(&mut self, slot: u32) {
        let sender = &mut self.senders[slot as usize];
        if !sender.queued {
            sender.queued = true;
            self.ready.push_back(slot);
        }
    }

    #[inline]
    fn arm_sender(&mut self, slot: u32) {
        let sender = &mut self.senders[slot as usize];
        let wants = sender.next_timeout();
        if wants < sender.wakes {
            sender.wakes = wants;
            self.timers.set(wants, Wake::Sender(slot));
        }
    }

    #[inline]
    fn arm_receiver(&mut self, slot: u32) {
        let receiver = &mut self.receivers[slot as usize];
        let wants = receiver.next_timeout();
        if wants < receiver.wakes {
            receiver.wakes = wants;
            self.timers.set(wants, Wake::Receiver(slot));
        }
    }

    #[inline]
    fn see(&mut self, at: Time, flow: u32, event: impl FnOnce() -> CaptureEvent) {
        if let Some(rows) = &mut self.capture {
            let event = event();
            rows.push(CaptureRow { at, flow, event });
        }
    }

    /// A datagram has arrived.
    fn take(&mut self, now: Time, from: SocketAddr, mark: Option<Mark>, bytes: &[u8]) {
        if self.understand(now, from, mark, bytes).is_none() {
            self.counts.ignored += 1;
        }
    }

    /// `None`: it is none of this run's.
    #[inline]
    fn understand(
        &mut self,
        now: Time,
        from: SocketAddr,
        mark: Option<Mark>,
        bytes: &[u8],
    ) -> Option<()> {
        let header = Header::decode(bytes).ok()?;
        if header.session != self.plan.session || from != self.plan.peer {
            return None;
        }
        match header.kind {
            Kind::Data => self.take_data(now, &header, mark, bytes),
            Kind::Ack => self.take_ack(now, &header, bytes),
            _ => None,
        }
    }

    #[inline]
    fn take_data(
        &mut self,
        now: Time,
        header: &Header,
        mark: Option<Mark>,
        bytes: &[u8],
    ) -> Option<()> {
        let mut segment = DataDatagram::decode(header, bytes).ok()?.segment;
        let slot = *self.receiver_of.get(usize::from(header.flow))?;
        let receiver = self.receivers.get_mut(slot as usize)?;
        let flow = receiver.flow;
        match receiver.take(now, &mut segment, mark, bytes.len()) {
            Taken::Foreign => return None,
            Taken::Beyond => {
                self.counts.beyond_window += 1;
                return Some(());
            }
            Taken::In(ack) => {
                if let Some(ack) = ack {
                    self.acks.push((slot, ack));
                }
                self.see(now, flow, || CaptureEvent::SegmentReceived(segment));
            }
        }
        self.arm_receiver(slot);
        Some(())
    }

    #[inline]
    fn take_ack(&mut self, now: Time, header: &Header, bytes: &[u8]) -> Option<()> {
        let datagram = AckDatagram::decode(header, bytes).ok()?;
        let slot = *self.sender_of.get(usize::from(header.flow))?;
        let sender = self.senders.get_mut(slot as usize)?;
        let ack = sender.ack(now, &datagram);
        let flow = sender.flow;
        if !sender.handle_ack(now, &ack) {
            return None;
        }
        self.see(now, flow, || CaptureEvent::AckReceived(ack));
        self.make_ready(slot);
        Some(())
    }

    /// Serves every timer that is due.
    fn fire(&mut self, now: Time) {
        while let Some((at, wake)) = self.timers.due(now) {
            match wake {
                Wake::Measure => {
                    self.senders
                        .iter_mut()
                        .for_each(|s| s.begin_measurement(now));
                    self.receivers
                        .iter_mut()
                        .for_each(Receiving::begin_measurement);
                }
                Wake::Start(slot) => {
                    self.senders[slot as usize].start(now);
                    self.make_ready(slot);
                }
                Wake::Stop(slot) => self.senders[slot as usize].stop(now),
                Wake::Sender(slot) => {
                    let sender = &mut self.senders[slot as usize];
                    if sender.wakes == at {
                        sender.wakes = Time::MAX;
                        sender.handle_timeout(now);
                        self.make_ready(slot);
                    }
                }
                Wake::Receiver(slot) => {
                    let receiver = &mut self.receivers[slot as usize];
                    if receiver.wakes == at {
                        receiver.wakes = Time::MAX;
                        if let Some(ack) = receiver.handle_timeout(now) {
                            self.acks.push((slot, ack));
                        }
                        self.arm_receiver(slot);
                    }
                }
            }
        }
    }

    /// The operating system took the first `left` datagrams of the batch: the others go back, newest first.
    #[cold]
    fn take_back(&mut self, now: Time, left: usize) {
        self.counts.local_stalls += 1;
        self.retry = Some(now + RETRY);
        let on_wire = |p: &Pushed| usize::from(!matches!(p, Pushed::Segment { cut: true, .. }));
        let mut index: usize = self.pushed.iter().map(on_wire).sum();
        while index > left
            && let Some(pushed) = self.pushed.pop()
        {
            index -= on_wire(&pushed);
            match pushed {
                Pushed::Segment {
                    sender,
                    segment,
                    cut,
                } => {
                    self.senders[sender as usize].refuse(now, &segment, cut);
                    self.arm_sender(sender);
                    if !self.stalled.contains(&sender) {
                        self.stalled.push(sender);
                    }
                }
                Pushed::Other => self.counts.refused += 1,
            }
        }
    }

    /// What is left of the batch has left.
    #[inline]
    fn settle(&mut self, now: Time) {
        if self.capture.is_some() {
            self.capture_sent(now);
        }
        self.pushed.clear();
    }

    #[cold]
    fn capture_sent(&mut self, now: Time) {
        for pushed in std::mem::take(&mut self.pushed) {
            if let Pushed::Segment {
                sender,
                segment,
                cut,
            } = pushed
            {
                let flow = self.senders[sender as usize].flow;
                self.see(now, flow, || CaptureEvent::SegmentSent(segment));
                if cut {
                    self.see(now, flow, || CaptureEvent::SegmentDropped(segment));
                }
            }
        }
    }

    /// There may be room again.
    #[cold]
    fn resume(&mut self) {
        self.retry = None;
        for slot in std::mem::take(&mut self.stalled) {
            self.senders[slot as usize].resume();
            self.make_ready(slot);
        }
    }

    fn finish(self, ended: Time) -> HostOutcome {
        HostOutcome {
            senders: self.senders.into_iter().map(|s| s.report(ended)).collect(),
            receivers: self
                .receivers
                .into_iter()
                .map(|r| r.report(ended))
                .collect(),
            capture: self.capture.unwrap_or_default(),
            counts: self.counts,
            ended,
        }
    }
}
