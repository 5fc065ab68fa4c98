//! A flow at its sender.

use std::collections::VecDeque;

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Segment, Sender, TraceSink};
use fullpipe_run::{
    ComponentRng, DropRules, FlowSpec, FlowTotals, RunSpec, SenderRecorder, Trace, derive_seed,
};
use fullpipe_sim::{
    Route,
    traffic::{ClassRecord, Short},
};
use fullpipe_units::{Span, Time};

use super::numbers::Incarnation;
use super::outcome::SenderReport;
use crate::live::LiveFlow;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// Rounds and episodes on the record of a flow without a full trace; of more than four flows, together four times as many. At a
/// round trip of 50 us rounds would take half a megabyte a second, and a peer that acknowledges what it has not got makes them
/// shorter still; beyond this number every second row goes, again and again, so that they stay spread over the run.
const MOST_ROWS: usize = 1 << 18;

/// See above.
#[derive(Debug)]
pub struct Sending {
    /// Index of the flow.
    pub flow: u32,
    /// Its number on the wire.
    pub number: u16,
    incarnation: Incarnation,
    sender: Sender<Stack>,
    /// A short flow of a class; its recorder is idle.
    short: Option<Short>,
    /// Bytes of a segment's datagram.
    size: usize,
    /// Bytes of the packet of a segment and of a SYN, and the way through the host's own interface, if it has one.
    pub packet: [u16; 2],
    pub interface: Option<Route>,
    drops: Option<DropRules>,
    /// Verdicts over segments that the operating system then refused: they hold when the segment leaves after all.
    verdicts: VecDeque<(u64, bool, bool)>,
    recorder: SenderRecorder,
    /// Its pending timer; [`Time::MAX`]: none.
    pub wakes: Time,
    /// It stands in the queue of those that may send.
    pub queued: bool,
    started: Time,
    finite: bool,
    completed: Option<Time>,
    loss_events_before: u64,
    offered: u64,
    dropped: u64,
    acks: u64,
}

impl Sending {
    /// Flow `flow` of the specification, called by its index on the wire.
    pub fn lasting(flow: u32, f: &FlowSpec, spec: &RunSpec) -> Self {
        let started = f.started(spec.seed);
        let recorder =
            SenderRecorder::new(spec.trace, started, f.sender.window.max).with_flow(flow as usize);
        let senders = spec.flows.iter().filter(|other| other.reverse == f.reverse);
        let recorder = match spec.trace {
            Trace::Full => recorder,
            _ => recorder.bounded((4 * MOST_ROWS / senders.count().max(4)).max(1 << 10)),
        };
        Self::new(flow, f, spec.seed, started, recorder)
    }

    /// Rows of its trace go to `sink` at once, one per `step`.
    pub fn trace_to(&mut self, sink: Box<dyn TraceSink>, step: Span) {
        self.recorder.stream_to(sink, step);
    }

    /// A flow of a class that starts now, called `number` on the wire.
    pub fn short(
        (number, incarnation): (u16, Incarnation),
        f: &FlowSpec,
        seed: u64,
        now: Time,
        short: Short,
    ) -> Self {
        let idle = SenderRecorder::new(Trace::Off, now, f64::INFINITY);
        Self {
            number,
            incarnation,
            short: Some(short),
            ..Self::new(u32::MAX, f, seed, now, idle)
        }
    }

    fn new(flow: u32, f: &FlowSpec, seed: u64, started: Time, recorder: SenderRecorder) -> Self {
        let (cfg, setup) = f.sender.clone().with_stack(&f.stack);
        let size = cfg.mss as usize + DataDatagram::LEN;
        let packet = [cfg.packet() as u16, cfg.header as u16];
        let sender = Sender::new(cfg, f.stack.controller(setup), derive_seed(seed, &f.name));
        Self {
            flow,
            number: flow as u16,
            incarnation: Incarnation::default(),
            sender,
            short: None,
            size,
            packet,
            interface: None,
            drops: DropRules::new(&f.drops, ComponentRng::new(seed, &f.name)),
            verdicts: VecDeque::new(),
            recorder,
            wakes: Time::MAX,
            queued: false,
            started,
            finite: f.sender.transfer.is_some() || f.stop.is_some(),
            completed: None,
            loss_events_before: 0,
            offered: 0,
            dropped: 0,
            acks: 0,
        }
    }

    /// When it starts.
    pub fn started(&self) -> Time {
        self.started
    }

    /// It starts.
    pub fn start(&mut self, now: Time, classes: &mut [ClassRecord]) {
        self.sender.start(now);
        self.observe(now, classes);
    }

    /// No new data from now on.
    pub fn stop(&mut self, now: Time, classes: &mut [ClassRecord]) {
        self.sender.stop();
        // All it sent may be acknowledged already.
        self.note_completion(now, classes);
    }

    /// When it wants to be woken.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.sender.next_timeout()
    }

    /// Its timer is due.
    pub fn handle_timeout(&mut self, now: Time, classes: &mut [ClassRecord]) {
        if self.sender.next_timeout() <= now {
            self.sender.handle_timeout(now);
        }
        self.observe(now, classes);
    }

    /// An ACK has arrived; `None` if it is of an earlier flow or speaks of data that was never sent, else as the sender sees it.
    #[inline]
    pub fn handle_ack(
        &mut self,
        now: Time,
        datagram: &AckDatagram,
        classes: &mut [ClassRecord],
    ) -> Option<Ack> {
        let ack = &datagram.ack;
        let mut ack = match self.short {
            None => *ack,
            Some(_) => self.incarnation.strip_ack(ack)?,
        };
        ack.echo = AckDatagram::unwrap_echo(now, ack.echo);
        let nxt = self.sender.nxt();
        if ack.cum > nxt || ack.sacks.iter().any(|block| block.end > nxt) {
            return None;
        }
        self.acks += 1;
        // One that only opens the window was not held back: it had nothing to say before.
        if ack.cum > self.sender.una() || !ack.sacks.is_empty() {
            self.recorder.on_ack_delay(datagram.hold);
        }
        self.sender.handle_ack(now, &ack);
        self.note_completion(now, classes);
        self.observe(now, classes);
        Some(ack)
    }

    /// The sender has processed an ACK, a timeout or a refusal.
    #[inline]
    fn observe(&mut self, now: Time, classes: &mut [ClassRecord]) {
        match &mut self.short {
            None => self.recorder.on_sender(now, &mut self.sender),
            Some(short) => {
                let record = &mut classes[short.class as usize];
                short.on_sender(now, &mut self.sender, record);
            }
        }
    }

    #[inline]
    fn note_completion(&mut self, now: Time, classes: &mut [ClassRecord]) {
        if self.finite && self.completed.is_none() && self.sender.is_done() {
            self.completed = Some(now);
            match &self.short {
                Some(short) => classes[short.class as usize].complete(now, short.number),
                None => self.recorder.complete(now),
            }
        }
    }

    /// It has a last segment, and that is acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.completed.is_some()
    }

    /// It is one of a class.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// The next segment to leave now, and whether it is dropped on purpose: counted as sent, not put on the wire.
    #[inline]
    pub fn poll(&mut self, now: Time, classes: &mut [ClassRecord]) -> Option<(Segment, bool)> {
        let segment = self.sender.poll_transmit(now)?;
        if segment.syn {
            return Some((segment, false));
        }
        self.offered += 1;
        let cut = self.drops.is_some() && self.strikes(now, &segment, classes);
        Some((segment, cut))
    }

    #[cold]
    fn strikes(&mut self, now: Time, segment: &Segment, classes: &mut [ClassRecord]) -> bool {
        let Some(rules) = &mut self.drops else {
            return false;
        };
        let known = (segment.seq, segment.retransmission);
        let cut = match self.verdicts.iter().position(|v| (v.0, v.1) == known) {
            Some(i) => self.verdicts.remove(i).is_some_and(|v| v.2),
            None => rules.strikes(now, known.0, known.1, self.sender.cwnd()),
        };
        self.dropped += u64::from(cut);
        if let Some(short) = &self.short
            && cut
            && !segment.retransmission
        {
            classes[short.class as usize].lost(short.number, segment.seq);
        }
        cut
    }

    /// The host's own interface lost a segment at random.
    #[cold]
    pub fn lose(&mut self, segment: &Segment, classes: &mut [ClassRecord]) {
        if segment.syn {
            return;
        }
        self.dropped += 1;
        if let Some(short) = &self.short
            && !segment.retransmission
        {
            classes[short.class as usize].lost(short.number, segment.seq);
        }
    }

    /// The operating system, or the host's own interface, refused a segment that was polled: the latest one, of those not refused yet.
    pub fn refuse(&mut self, now: Time, segment: &Segment, cut: bool, classes: &mut [ClassRecord]) {
        self.sender.refuse(now, segment);
        self.observe(now, classes);
        if segment.syn {
            return;
        }
        self.offered -= 1;
        self.dropped -= u64::from(cut);
        if self.drops.is_some() {
            self.verdicts
                .push_front((segment.seq, segment.retransmission, cut));
        }
    }

    /// The host serves others first.
    pub fn yielded(&mut self) {
        self.sender.yielded();
    }

    /// It may try again.
    pub fn resume(&mut self) {
        self.sender.resume();
    }

    /// A segment as it is on the wire, and the bytes of its datagram with a full payload.
    #[inline]
    pub fn datagram(&self, session: SessionId, segment: Segment) -> (DataDatagram, usize) {
        let len = if segment.syn {
            DataDatagram::LEN
        } else {
            self.size
        };
        let datagram = DataDatagram {
            session,
            flow: self.number,
            segment: Segment {
                seq: self.incarnation.mark(segment.seq),
                ..segment
            },
        };
        (datagram, len)
    }

    /// The measured part begins.
    pub fn begin_measurement(&mut self, now: Time) {
        self.loss_events_before = self.sender.counts().loss_events;
        self.recorder.begin_measurement(now);
    }

    /// For whoever watches.
    pub fn live(&self) -> LiveFlow {
        LiveFlow {
            delivered: self.sender.delivered(),
            retransmits: Some(self.sender.counts().retransmits),
            cwnd: Some(self.sender.cwnd()),
            srtt: self
                .sender
                .rtt()
                .has_sample()
                .then(|| self.sender.rtt().srtt()),
        }
    }

    /// Books what its sender counts into its class, if it is a short flow.
    pub fn leave(&self, now: Time, classes: &mut [ClassRecord]) {
        let Some(short) = &self.short else {
            return;
        };
        let totals = self.totals();
        classes[short.class as usize].leave(now, short.number, &totals);
    }

    /// What this end of the flow counts.
    fn totals(&self) -> FlowTotals {
        let s = self.sender.counts();
        FlowTotals {
            sent: s.sent,
            // A question at a closed window is a segment sent again, and arrives as a duplicate.
            retransmits: s.retransmits + s.window_probes,
            dropped: self.dropped,
            loss_events: s.loss_events,
            loss_events_measured: s.loss_events - self.loss_events_before,
            timeouts: s.timeouts,
            probes: s.probes,
            undone: s.undone,
            local_stalls: s.local_stalls,
            acks: self.acks,
            ..FlowTotals::default()
        }
    }

    /// The run ends.
    pub fn report(mut self, end: Time) -> SenderReport {
        SenderReport {
            flow: self.flow,
            totals: self.totals(),
            offered: self.offered,
            record: self.recorder.finish(end),
            started: self.started,
            completed: self.completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SackBlocks, SenderConfig};

    use super::*;

    /// Every transmission is a first one or not: else what is missing at the receiver is not what the network lost.
    #[test]
    fn a_question_at_a_closed_window_counts_as_sent_again() {
        let sender = SenderConfig::preset(Preset::Y2026, 1500);
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            sender,
            ReceiverConfig::preset(Preset::Y2026),
            Vec::new(),
            Vec::new(),
        );
        let mut sending = Sending::lasting(0, &flow, &RunSpec::default());
        let mut now = Time::ZERO + Span::from_millis(1);
        let ack = |at: Time, cum: u64, syn: bool| AckDatagram {
            session: SessionId(1),
            flow: 0,
            ack: Ack {
                cum,
                syn,
                echo: at,
                stamp_ms: 0,
                sacks: SackBlocks::default(),
                dsack: false,
                ece: false,
                window_end: 4,
            },
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
        };
        sending.start(now, &mut []);
        while let Some((segment, _)) = sending.poll(now, &mut []) {
            now += Span::from_millis(1);
            let cum = if segment.syn { 0 } else { segment.seq + 1 };
            let answer = ack(segment.stamp, cum, segment.syn);
            sending.handle_ack(now, &answer, &mut []).unwrap();
        }
        for _ in 0..2 {
            now = sending.next_timeout();
            sending.handle_timeout(now, &mut []);
            assert_eq!(sending.poll(now, &mut []).unwrap().0.seq, 3);
        }
        let totals = sending.totals();
        assert_eq!((totals.sent, totals.retransmits), (6, 2));
        assert_eq!((totals.loss_events, totals.timeouts), (0, 0));
    }
}
