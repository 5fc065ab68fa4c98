//! A flow at its sender.

use std::collections::VecDeque;

use fullpipe_cc::Stack;
use fullpipe_flow::{Ack, Segment, Sender};
use fullpipe_sim::loss::DropRules;
use fullpipe_sim::rng::{ComponentRng, derive_seed};
use fullpipe_sim::{FlowSpec, RunSpec, SenderRecorder, Trace};
use fullpipe_units::Time;

use super::outcome::SenderReport;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// Rounds and episodes on the record of a flow without a trace. At a round trip of 50 us rounds would take half a megabyte a
/// second; beyond this number every second row goes, again and again, so that they stay spread over the run.
const MOST_ROWS: usize = 1 << 18;

/// See above.
#[derive(Debug)]
pub struct Sending {
    /// Index of the flow.
    pub flow: u32,
    /// Its number on the wire.
    number: u16,
    sender: Sender<Stack>,
    /// Bytes of a segment's datagram.
    size: usize,
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
    /// Of flow `flow`, called `number` on the wire.
    pub fn new(flow: u32, number: u16, f: &FlowSpec, spec: &RunSpec) -> Self {
        let started = f.started(spec.seed);
        let (cfg, setup) = f.sender.clone().with_stack(&f.stack);
        let size = cfg.mss as usize + DataDatagram::LEN;
        let sender = Sender::new(
            cfg,
            f.stack.controller(setup),
            derive_seed(spec.seed, &f.name),
        );
        let recorder = SenderRecorder::new(spec.trace, started, f.sender.max_window);
        Self {
            flow,
            number,
            sender,
            size,
            drops: DropRules::new(&f.drops, ComponentRng::new(spec.seed, &f.name)),
            verdicts: VecDeque::new(),
            recorder: match spec.trace {
                Trace::Off => recorder.bounded(MOST_ROWS),
                _ => recorder,
            },
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
    pub fn start(&mut self, now: Time) {
        self.sender.start(now);
    }

    /// No new data from now on.
    pub fn stop(&mut self, now: Time) {
        self.sender.stop();
        // All it sent may be acknowledged already.
        self.note_completion(now);
    }

    /// When it wants to be woken.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.sender.next_timeout()
    }

    /// Its timer is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.sender.next_timeout() <= now {
            self.sender.handle_timeout(now);
        }
        self.recorder.on_sender(now, &mut self.sender);
    }

    /// An ACK has arrived, its echo unwrapped; false if it speaks of data that was never sent.
    #[inline]
    pub fn handle_ack(&mut self, now: Time, ack: &Ack) -> bool {
        let nxt = self.sender.nxt();
        if ack.cum > nxt || ack.sacks.iter().any(|block| block.end > nxt) {
            return false;
        }
        self.acks += 1;
        self.sender.handle_ack(now, ack);
        self.note_completion(now);
        self.recorder.on_sender(now, &mut self.sender);
        true
    }

    fn note_completion(&mut self, now: Time) {
        if self.finite && self.completed.is_none() && self.sender.is_done() {
            self.completed = Some(now);
            self.recorder.complete(now);
        }
    }

    /// The next segment to leave now, and whether it is dropped on purpose: counted as sent, not put on the wire.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<(Segment, bool)> {
        let segment = self.sender.poll_transmit(now)?;
        if segment.syn {
            return Some((segment, false));
        }
        self.offered += 1;
        let cut = match &mut self.drops {
            None => false,
            Some(rules) => {
                let known = (segment.seq, segment.retransmission);
                match self.verdicts.iter().position(|v| (v.0, v.1) == known) {
                    Some(i) => self.verdicts.remove(i).is_some_and(|v| v.2),
                    None => rules.strikes(now, known.0, known.1, self.sender.cwnd()),
                }
            }
        };
        self.dropped += u64::from(cut);
        Some((segment, cut))
    }

    /// The operating system refused a segment that was polled: the latest one, of those not refused yet.
    pub fn refuse(&mut self, now: Time, segment: &Segment, cut: bool) {
        self.sender.refuse(now, segment);
        self.recorder.on_sender(now, &mut self.sender);
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

    /// It may try again.
    pub fn resume(&mut self) {
        self.sender.resume();
    }

    /// A segment as it is on the wire, and the bytes of its datagram.
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
            segment,
        };
        (datagram, len)
    }

    /// The ACK of a datagram as the sender sees it.
    #[inline]
    pub fn ack(&self, now: Time, datagram: &AckDatagram) -> Ack {
        Ack {
            echo: AckDatagram::unwrap_echo(now, datagram.ack.echo),
            ..datagram.ack
        }
    }

    /// The measured part begins.
    pub fn begin_measurement(&mut self, now: Time) {
        self.loss_events_before = self.sender.counts().loss_events;
        self.recorder.begin_measurement(now);
    }

    /// The run ends.
    pub fn report(mut self, end: Time) -> SenderReport {
        SenderReport {
            flow: self.flow,
            counts: *self.sender.counts(),
            loss_events_before: self.loss_events_before,
            offered: self.offered,
            dropped: self.dropped,
            acks: self.acks,
            record: self.recorder.finish(end),
            started: self.started,
            completed: self.completed,
        }
    }
}
