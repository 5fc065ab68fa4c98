//! A flow at its receiver.

use fullpipe_flow::{Ack, Receiver, ReceiverCounts, Segment};
use fullpipe_sim::{ArrivalRecorder, FlowSpec};
use fullpipe_units::{Span, Time};

use super::outcome::ReceiverReport;
use super::port::Mark;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// Segments ahead of the one expected that are taken in at most, if the receiver's window has no bound of its own.
const MOST_AHEAD: u64 = 1 << 22;
/// Holes at most: what is kept of them is bounded whatever a sender does.
const MOST_HOLES: usize = 1 << 14;

/// See above.
#[derive(Debug)]
pub struct Receiving {
    /// Index of the flow.
    pub flow: u32,
    /// Its number on the wire.
    number: u16,
    receiver: Receiver,
    /// Bytes of a segment's datagram.
    size: usize,
    /// Its pending timer; [`Time::MAX`]: none.
    pub wakes: Time,
    last_arrival: Time,
    ce: u32,
    ect: u32,
    before: ReceiverCounts,
    arrivals: ArrivalRecorder,
}

/// What a receiver does with a segment.
#[derive(Debug)]
pub enum Taken {
    /// It is none of the flow's, or of the wrong length.
    Foreign,
    /// It lies beyond what may be sent.
    Beyond,
    /// It is in; the ACK is to be sent at once.
    In(Option<Ack>),
}

impl Receiving {
    /// Of flow `flow`, called `number` on the wire.
    pub fn new(flow: u32, number: u16, f: &FlowSpec, interval: Span) -> Self {
        Self {
            flow,
            number,
            receiver: Receiver::new(f.receiver.clone()),
            size: f.sender.mss as usize + DataDatagram::LEN,
            wakes: Time::MAX,
            last_arrival: Time::ZERO,
            ce: 0,
            ect: 0,
            before: ReceiverCounts::default(),
            arrivals: ArrivalRecorder::new(interval),
        }
    }

    /// A datagram of `len` bytes has brought `segment`, which gets its marks here.
    #[inline]
    pub fn take(
        &mut self,
        now: Time,
        segment: &mut Segment,
        mark: Option<Mark>,
        len: usize,
    ) -> Taken {
        let right = if segment.syn {
            DataDatagram::LEN
        } else {
            self.size
        };
        if len != right {
            return Taken::Foreign;
        }
        if !segment.syn && !self.admits(segment.seq) {
            return Taken::Beyond;
        }
        segment.ect = mark.is_some();
        segment.ce = mark == Some(Mark::Congestion);
        self.ect = self.ect.wrapping_add(u32::from(segment.ect));
        self.ce = self.ce.wrapping_add(u32::from(segment.ce));
        self.arrivals.on_arrival(now, self.receiver.counts());
        self.last_arrival = now;
        Taken::In(self.receiver.handle_segment(now, segment))
    }

    fn admits(&self, seq: u64) -> bool {
        let next = self.receiver.next_expected();
        seq < self
            .receiver
            .window_end()
            .min(next.saturating_add(MOST_AHEAD))
            && (seq <= next || self.receiver.holes() < MOST_HOLES)
    }

    /// When it wants to be woken.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.receiver.next_timeout()
    }

    /// Its timer is due.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Ack> {
        self.receiver.handle_timeout(now)
    }

    /// An ACK as it leaves now.
    #[inline]
    pub fn datagram(&self, now: Time, session: SessionId, ack: Ack) -> AckDatagram {
        AckDatagram {
            session,
            flow: self.number,
            ack,
            hold: now.saturating_since(self.last_arrival),
            ce: self.ce,
            ect: self.ect,
        }
    }

    /// The measured part begins.
    pub fn begin_measurement(&mut self) {
        self.before = *self.receiver.counts();
    }

    /// The run ends.
    pub fn report(self, end: Time) -> ReceiverReport {
        let counts = *self.receiver.counts();
        ReceiverReport {
            flow: self.flow,
            counts,
            before: self.before,
            arrivals: self.arrivals.finish(end, &counts),
        }
    }
}
