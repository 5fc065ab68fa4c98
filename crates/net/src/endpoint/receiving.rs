//! A flow at its receiver.

use fullpipe_flow::{Ack, Receiver, ReceiverCounts, Segment};
use fullpipe_run::{ArrivalRecorder, DropRules, FlowSpec, FlowTotals, RunSpec};
use fullpipe_sim::traffic::ClassRecord;
use fullpipe_units::{Span, Time};

use super::numbers::Incarnation;
use super::outcome::ReceiverReport;
use super::port::Mark;
use super::room::Room;
use crate::live::LiveFlow;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// Segments ahead of the one expected that are taken in at most, if the receiver's window has no bound of its own.
const MOST_AHEAD: u64 = 1 << 22;
/// Holes at most: what is kept of them is bounded whatever a sender does.
const MOST_HOLES: usize = 1 << 14;
/// The same for a short flow, of which there may be thousands at a time.
const MOST_HOLES_OF_SHORT: usize = 1 << 9;

/// See above.
#[derive(Debug)]
pub struct Receiving {
    /// Index of the flow; [`u32::MAX`] for a short one.
    pub flow: u32,
    /// Its number on the wire.
    number: u16,
    /// Class of a short flow, and which of those that share its number it is.
    short: Option<(u32, Incarnation)>,
    receiver: Receiver,
    /// Of a sink that has bounds.
    room: Room,
    /// Bytes of a segment's datagram.
    size: usize,
    drops: Option<DropRules>,
    /// Its pending timer; [`Time::MAX`]: none.
    pub wakes: Time,
    last_arrival: Time,
    ce: u32,
    ect: u32,
    dropped: u64,
    not_taken: u64,
    before: ReceiverCounts,
    arrivals: ArrivalRecorder,
}

/// What a receiver does with a segment.
#[derive(Debug)]
pub enum Taken {
    /// It lies beyond what may be sent.
    Beyond,
    /// It is dropped here on purpose.
    Dropped,
    /// It is in: the first copy of so many segments, and an ACK to be sent at once.
    In(u64, Option<Ack>),
}

impl Receiving {
    /// Flow `flow` of the specification, called by its index on the wire.
    pub fn lasting(flow: u32, f: &FlowSpec, spec: &RunSpec) -> Self {
        Self::new(flow, flow as u16, None, f, spec.seed, spec.interval)
    }

    /// A flow of a class, called `number` on the wire.
    pub fn short(
        number: u16,
        incarnation: Incarnation,
        class: u32,
        f: &FlowSpec,
        seed: u64,
    ) -> Self {
        let short = Some((class, incarnation));
        Self::new(u32::MAX, number, short, f, seed, Span::MAX)
    }

    fn new(
        flow: u32,
        number: u16,
        short: Option<(u32, Incarnation)>,
        f: &FlowSpec,
        seed: u64,
        interval: Span,
    ) -> Self {
        Self {
            flow,
            number,
            short,
            receiver: Receiver::new(f.receiver.clone()),
            room: Room::new(f.sender.mss, f.sender.handshake),
            size: f.sender.mss as usize + DataDatagram::LEN,
            drops: DropRules::at_receiver(f, seed),
            wakes: Time::MAX,
            last_arrival: Time::ZERO,
            ce: 0,
            ect: 0,
            dropped: 0,
            not_taken: 0,
            before: ReceiverCounts::default(),
            arrivals: ArrivalRecorder::new(interval),
        }
    }

    /// Which of those that share its number a short flow is.
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.short.map(|(_, incarnation)| incarnation)
    }

    /// A datagram of `len` bytes is as long as one of this flow; a short one may be the last of data that ends there.
    #[inline]
    pub fn fits(&self, segment: &Segment, len: usize, ends: bool) -> bool {
        segment.syn || len == self.size || (ends && len < self.size)
    }

    /// A datagram has brought `segment`, which gets its marks here.
    #[inline]
    pub fn take(&mut self, now: Time, segment: &mut Segment, mark: Option<Mark>) -> Taken {
        segment.ect = mark.is_some();
        segment.ce = mark == Some(Mark::Congestion);
        if !segment.syn {
            if !self.admits(segment.seq) {
                return Taken::Beyond;
            }
            if let Some(rules) = &mut self.drops
                && rules.strikes(now, segment.seq, segment.retransmission, 0.0)
            {
                self.dropped += 1;
                return Taken::Dropped;
            }
        }
        self.ect = self
            .ect
            .wrapping_add(u32::from(segment.ect && !segment.syn));
        self.ce = self.ce.wrapping_add(u32::from(segment.ce && !segment.syn));
        let before = self.receiver.counts();
        let delivered = before.delivered;
        self.arrivals.on_arrival(now, before);
        self.last_arrival = now;
        let ack = self.receiver.handle_segment(now, segment);
        let new = self.receiver.counts().delivered - delivered;
        match segment.syn {
            true => self.room.open(now),
            false => self.room.count(now, delivered + new),
        }
        Taken::In(new, ack)
    }

    /// Bytes that the sink of the data could do with.
    #[inline]
    pub fn wanted(&self) -> u64 {
        self.room.wanted()
    }

    /// The sink of the data has room for so many bytes.
    #[inline]
    pub fn set_room(&mut self, bytes: u64) {
        self.room.set(&mut self.receiver, bytes);
    }

    /// After everything that a segment or a timer has brought: is it to be looked whether the sink has room again?
    #[inline]
    pub fn watch_room(&mut self, now: Time) {
        self.room.arm(now, &self.receiver);
    }

    #[inline]
    fn admits(&self, seq: u64) -> bool {
        let next = self.receiver.next_expected();
        let ahead = next.saturating_add(MOST_AHEAD);
        let holes = match self.short {
            None => MOST_HOLES,
            Some(_) => MOST_HOLES_OF_SHORT,
        };
        seq < self.receiver.window_end().min(ahead)
            && (seq <= next || self.receiver.holes() < holes)
    }

    /// It came although the sink of the data had said that it has no room: as if the network had dropped it.
    pub fn decline(&mut self) {
        self.not_taken += 1;
    }

    /// When it wants to be woken.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.receiver.next_timeout().min(self.room.look())
    }

    /// Its timer is due. If it is that of the room, [`Receiving::set_room`] was called before.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Ack> {
        let ack = self.receiver.handle_timeout(now);
        if ack.is_some() || now < self.room.look() {
            return ack;
        }
        self.room.looked();
        self.receiver.update_window(now, self.room.step())
    }

    /// An ACK as it leaves now.
    #[inline]
    pub fn datagram(&self, now: Time, session: SessionId, ack: &Ack) -> AckDatagram {
        AckDatagram {
            session,
            flow: self.number,
            ack: match self.short {
                None => *ack,
                Some((_, incarnation)) => incarnation.mark_ack(ack),
            },
            hold: now.saturating_since(self.last_arrival),
            ce: self.ce,
            ect: self.ect,
        }
    }

    /// The measured part begins.
    pub fn begin_measurement(&mut self) {
        self.before = *self.receiver.counts();
    }

    /// For whoever watches.
    pub fn live(&self) -> LiveFlow {
        LiveFlow {
            delivered: self.receiver.counts().delivered,
            ..LiveFlow::default()
        }
    }

    /// Books what its receiver counts into its class, if it is a short flow.
    pub fn leave(&self, now: Time, classes: &mut [ClassRecord]) {
        if let Some((class, _)) = self.short {
            classes[class as usize].add(now, &self.totals());
        }
    }

    /// What this end of the flow counts.
    fn totals(&self) -> FlowTotals {
        let r = self.receiver.counts();
        FlowTotals {
            delivered: r.delivered,
            delivered_measured: r.delivered - self.before.delivered,
            arrived_measured: r.arrived - self.before.arrived,
            duplicates: r.duplicates,
            out_of_order: r.out_of_order,
            dropped: self.dropped,
            ..FlowTotals::default()
        }
    }

    /// The run ends.
    pub fn report(self, end: Time) -> ReceiverReport {
        let counts = *self.receiver.counts();
        ReceiverReport {
            flow: self.flow,
            totals: self.totals(),
            arrived: counts.arrived,
            not_taken: self.not_taken,
            arrivals: self.arrivals.finish(end, &counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};

    use super::*;

    /// The delay of an ACK is not the network's: it is told apart, from the newest segment on.
    #[test]
    fn a_delayed_ack_says_how_long_it_was_held() {
        let spec = RunSpec::default();
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            Vec::new(),
            Vec::new(),
        );
        let mut receiving = Receiving::lasting(0, &flow, &spec);
        let mut take = |at_ms: u64, seq: u64| {
            let now = Time::ZERO + Span::from_millis(at_ms);
            let mut segment = Segment {
                seq,
                syn: false,
                retransmission: false,
                stamp: now,
                ect: false,
                ce: false,
                cwr: false,
                push: false,
            };
            match receiving.take(now, &mut segment, None) {
                Taken::In(_, ack) => {
                    ack.map(|ack| receiving.datagram(now, SessionId(1), &ack).hold)
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(take(1000, 0), None);
        assert_eq!(
            take(1010, 1),
            Some(Span::ZERO),
            "the second one asks for it"
        );
        assert_eq!(take(1020, 2), None);
        let due = receiving.next_timeout();
        assert_eq!(due, Time::ZERO + Span::from_millis(1060));
        let ack = receiving.handle_timeout(due).unwrap();
        let held = receiving.datagram(due, SessionId(1), &ack).hold;
        assert_eq!(held, Span::from_millis(40));
    }
}
