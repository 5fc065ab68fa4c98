//! A flow at the host of its receiver.

use fullpipe_cc::{Controller, Setup};
use fullpipe_flow::{Ack, Receiver, Segment, Taken};
use fullpipe_run::{ArrivalRecorder, DropRules, FlowSpec, FlowTotals, RunSpec};
use fullpipe_units::{Span, Time};

use crate::NO_FLOW;
use crate::configs::Configs;
use crate::report::ReceiverReport;
use crate::traffic::ClassRecord;
use crate::wake::Pending;

/// No class: a flow of the specification, or the slot of a short flow that is over.
const NO_CLASS: u32 = u32::MAX;

/// A receiver, what is recorded of it, and what the network keeps with it.
///
/// In memory as it stands here, for the same reason as [`FlowSender`](crate::FlowSender).
#[derive(Debug)]
#[repr(C)]
pub struct FlowReceiver<I> {
    /// What the network keeps with this end.
    pub inlet: I,
    drops: Option<Box<DropRules>>,
    pub(crate) timer: Pending,
    /// Class of a short flow, or [`NO_CLASS`].
    class: u32,
    /// Index of the flow in the specification; [`NO_FLOW`] for a short flow.
    flow: u32,
    arrivals: ArrivalRecorder,
    receiver: Receiver,
    dropped: u64,
    not_taken: u64,
    /// When the measured part began.
    delivered_before: u64,
    arrived_before: u64,
}

impl<I> FlowReceiver<I> {
    /// Flow `flow` of the specification.
    pub(crate) fn lasting(
        flow: u32,
        f: &FlowSpec,
        spec: &RunSpec,
        configs: &mut Configs,
        inlet: I,
    ) -> Self {
        let receiver = Receiver::new(configs.receiver(&f.receiver));
        Self::new(flow, NO_CLASS, f, receiver, spec.seed, spec.interval, inlet)
    }

    /// A flow of a class.
    pub fn short(class: u32, f: &FlowSpec, seed: u64, inlet: I) -> Self {
        let receiver = Receiver::new(f.receiver.clone());
        Self::new(NO_FLOW, class, f, receiver, seed, Span::MAX, inlet)
    }

    fn new(
        flow: u32,
        class: u32,
        f: &FlowSpec,
        mut receiver: Receiver,
        seed: u64,
        interval: Span,
        inlet: I,
    ) -> Self {
        if f.sender.timestamps && f.stack.controller(Setup::default()).reads_owd() {
            receiver.measure_one_way();
        }
        if !f.sender.ecn {
            receiver.ignore_ecn();
        }
        Self {
            flow,
            class,
            receiver,
            drops: DropRules::at_receiver(f, seed).map(Box::new),
            timer: Pending::NONE,
            dropped: 0,
            not_taken: 0,
            delivered_before: 0,
            arrived_before: 0,
            arrivals: ArrivalRecorder::new(interval),
            inlet,
        }
    }

    /// Index of the flow in the specification; [`NO_FLOW`] for a short flow.
    #[inline]
    pub fn flow(&self) -> u32 {
        self.flow
    }

    /// The receiver itself.
    #[inline]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The receiver itself, and what the network keeps with it.
    #[inline]
    pub fn parts(&mut self) -> (&mut Receiver, &mut I) {
        (&mut self.receiver, &mut self.inlet)
    }

    /// A flow of a class that is not over.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.class != NO_CLASS
    }

    /// This host has exact rules of what it drops.
    #[inline]
    pub fn has_drops(&self) -> bool {
        self.drops.is_some()
    }

    /// True if an exact rule of this host drops a segment that has arrived; it is counted here.
    #[inline]
    pub fn drops_arrival(&mut self, now: Time, segment: &Segment) -> bool {
        let Some(rules) = &mut self.drops else {
            return false;
        };
        let dropped = !segment.syn && rules.drops(now, segment.seq, segment.retransmission, 0.0);
        self.dropped += u64::from(dropped);
        dropped
    }

    /// See [`Receiver::ack_before`].
    #[inline(always)]
    pub fn ack_before(&mut self, now: Time, segment: &Segment) -> Option<Ack> {
        self.receiver.ack_before(now, segment)
    }

    /// A segment has arrived; the ACK that answers it at once, if one does. What
    /// [`FlowReceiver::ack_before`] gives leaves before it.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        segment: &Segment,
        classes: &mut [ClassRecord],
    ) -> Option<Ack> {
        match self.take_next(now, segment, classes) {
            Taken::Silently => None,
            Taken::Due => Some(self.plain_ack(now)),
            Taken::Not => self.take_apart(now, segment, classes),
        }
    }

    /// The same in parts: see [`Receiver::take_next`].
    #[inline(always)]
    pub fn take_next(
        &mut self,
        now: Time,
        segment: &Segment,
        classes: &mut [ClassRecord],
    ) -> Taken {
        let before = self.receiver.counts();
        let delivered = before.delivered;
        // Intervals of a short flow never end.
        self.arrivals.on_arrival(now, before);
        let taken = self.receiver.take_next(now, segment);
        if self.class != NO_CLASS && taken != Taken::Not {
            self.note_delivery(now, delivered, classes);
        }
        taken
    }

    /// See [`Receiver::take_apart`].
    #[inline]
    pub fn take_apart(
        &mut self,
        now: Time,
        segment: &Segment,
        classes: &mut [ClassRecord],
    ) -> Option<Ack> {
        let delivered = self.receiver.counts().delivered;
        let ack = self.receiver.take_apart(now, segment);
        if self.class != NO_CLASS {
            self.note_delivery(now, delivered, classes);
        }
        ack
    }

    /// See [`Receiver::plain_ack`].
    #[inline(always)]
    pub fn plain_ack(&mut self, now: Time) -> Ack {
        self.receiver.plain_ack(now)
    }

    #[cold]
    fn note_delivery(&self, now: Time, before: u64, classes: &mut [ClassRecord]) {
        let new = self.receiver.counts().delivered - before;
        classes[self.class as usize].deliver(now, new);
    }

    /// A segment came although the sink of the data had no room for it: as if the network had
    /// dropped it.
    pub fn decline(&mut self) {
        self.not_taken += 1;
    }

    /// When to set a timer for something that the receiver wants at `wants`, if the pending one is
    /// too late.
    #[inline]
    pub fn arm(&mut self, wants: Time) -> Option<Time> {
        self.timer.arm(wants)
    }

    pub(crate) fn begin_measurement(&mut self) {
        let counts = self.receiver.counts();
        self.delivered_before = counts.delivered;
        self.arrived_before = counts.arrived;
    }

    /// Books a short flow into its class: it is over, or the run is.
    pub(crate) fn leave(&mut self, now: Time, classes: &mut [ClassRecord]) {
        if self.class != NO_CLASS {
            classes[self.class as usize].add(now, &self.totals());
            self.class = NO_CLASS;
            self.timer = Pending::NONE;
        }
    }

    /// What this end of the flow counts.
    pub fn totals(&self) -> FlowTotals {
        let r = self.receiver.counts();
        FlowTotals {
            delivered: r.delivered,
            delivered_measured: r.delivered - self.delivered_before,
            arrived_measured: r.arrived - self.arrived_before,
            duplicates: r.duplicates + r.discarded,
            out_of_order: r.out_of_order,
            dropped: self.dropped,
            ..FlowTotals::default()
        }
    }

    pub(crate) fn report(self, end: Time) -> Option<ReceiverReport> {
        if self.flow == NO_FLOW {
            return None;
        }
        let counts = *self.receiver.counts();
        Some(ReceiverReport {
            flow: self.flow,
            totals: self.totals(),
            arrived: counts.arrived,
            not_taken: self.not_taken,
            arrivals: self.arrivals.finish(end, &counts),
        })
    }
}
