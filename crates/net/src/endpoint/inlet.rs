//! A flow's receiver on the wire.

use fullpipe_flow::{Ack, Segment};
use fullpipe_host::{ClassRecord, FlowReceiver};
use fullpipe_realtime::live::LiveFlow;
use fullpipe_run::FlowSpec;
use fullpipe_units::Time;

use super::numbers::Incarnation;
use super::port::Mark;
use super::room::Room;
use crate::payload::Sink;
use crate::wire::reception::Heard;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// Segments ahead of the one expected that are taken in at most, if the receiver's window has no
/// bound of its own.
const MOST_AHEAD: u64 = 1 << 22;
/// Holes at most: what is kept of them is bounded whatever a sender does.
pub const MOST_HOLES: usize = 1 << 14;
/// The same for a short flow, of which there may be thousands at a time.
const MOST_HOLES_OF_SHORT: usize = 1 << 9;

/// What the wire knows of a receiver.
#[derive(Debug)]
pub struct Inlet {
    /// The flow's number on the wire.
    number: u16,
    /// Which of the short flows of this number it is; `None`: a flow of the specification.
    pub incarnation: Option<Incarnation>,
    /// Receive window of a sink that has bounds.
    room: Room,
    /// Bytes of a segment's datagram.
    size: usize,
    last_arrival: Time,
    ce: u32,
    ect: u32,
    /// Sums over the random bits of what has come.
    heard: Heard,
    /// Holes that may be kept.
    pub holes: usize,
}

/// A receiver of this endpoint.
pub type Receiving = FlowReceiver<Inlet>;

/// What a receiver does with a segment.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // looked at where it is returned, and kept nowhere
pub enum Taken {
    /// It lies beyond what may be sent.
    Beyond,
    /// It is dropped here on purpose.
    Dropped,
    /// It is in: the first copy of so many segments, and the ACKs to be sent at once, each with its
    /// proof: what was due before it ([`Receiver::ack_before`]), then its own.
    ///
    /// [`Receiver::ack_before`]: fullpipe_flow::Receiver::ack_before
    In(u64, [Option<(Ack, u32)>; 2]),
}

impl Inlet {
    /// Of a flow that is called `number`.
    pub fn new(number: u16, incarnation: Option<Incarnation>, f: &FlowSpec) -> Self {
        Self {
            number,
            incarnation,
            room: Room::new(f.sender.mss, f.sender.handshake),
            size: f.sender.mss as usize + DataDatagram::LEN,
            last_arrival: Time::ZERO,
            ce: 0,
            ect: 0,
            heard: Heard::default(),
            holes: match incarnation {
                None => MOST_HOLES,
                Some(_) => MOST_HOLES_OF_SHORT,
            },
        }
    }

    /// What proves an ACK of all that has come until now.
    #[inline]
    pub fn proof(&self, ack: &Ack) -> u32 {
        self.heard.proof(ack)
    }

    /// A datagram of `len` bytes is as long as this segment of the flow. Where data ends somewhere
    /// (`sink`) a short one may be the last of them; where the sink does not know its length, any.
    #[inline]
    pub fn fits(&self, segment: &Segment, len: usize, sink: Option<&dyn Sink>) -> bool {
        if segment.syn {
            return true;
        }
        match sink.map(|sink| sink.length(segment.seq)) {
            None => len == self.size,
            Some(None) => len <= self.size,
            Some(Some(payload)) => payload > 0 && len == DataDatagram::LEN + payload,
        }
    }

    /// Bytes that the sink of the data could do with.
    #[inline]
    pub fn wanted(&self) -> u64 {
        self.room.wanted()
    }

    /// An ACK, and what proves it, as it leaves now.
    #[inline]
    pub fn datagram(
        &self,
        now: Time,
        session: SessionId,
        (ack, proof): (&Ack, u32),
    ) -> AckDatagram {
        AckDatagram {
            session,
            flow: self.number,
            ack: match self.incarnation {
                None => *ack,
                Some(incarnation) => incarnation.mark_ack(ack),
            },
            hold: now.saturating_since(self.last_arrival),
            ce: self.ce,
            ect: self.ect,
            proof,
        }
    }
}

/// Data of a flow of the specification has come, and nothing of it ECN-capable.
pub fn is_bleached(receiving: &Receiving) -> bool {
    let inlet = &receiving.inlet;
    inlet.incarnation.is_none() && inlet.ect == 0 && receiving.receiver().counts().delivered > 0
}

/// A datagram has brought `segment`, which gets its marks here.
#[inline]
pub fn take(
    receiving: &mut Receiving,
    now: Time,
    (segment, nonce): (&mut Segment, u8),
    mark: Option<Mark>,
    classes: &mut [ClassRecord],
) -> Taken {
    segment.ect = mark.is_some();
    segment.ce = mark == Some(Mark::Congestion);
    if !segment.syn && !admits(receiving, segment.seq) {
        return Taken::Beyond;
    }
    if receiving.drops_arrival(now, segment) {
        return Taken::Dropped;
    }
    let inlet = &mut receiving.inlet;
    inlet.ect = inlet
        .ect
        .wrapping_add(u32::from(segment.ect && !segment.syn));
    inlet.ce = inlet.ce.wrapping_add(u32::from(segment.ce && !segment.syn));
    inlet.last_arrival = now;
    let before = receiving.receiver().counts().delivered;
    let earlier = receiving.ack_before(now, segment);
    let earlier = earlier.map(|ack| (ack, receiving.inlet.proof(&ack)));
    let ack = receiving.receive(now, segment, classes);
    let delivered = receiving.receiver().counts().delivered;
    if delivered > before {
        receiving.inlet.heard.take(segment.seq, nonce);
    }
    match segment.syn {
        true if segment.ends_handshake() => {}
        true => receiving.inlet.room.open(now),
        false => receiving.inlet.room.count(now, delivered),
    }
    let ack = ack.map(|ack| (ack, receiving.inlet.proof(&ack)));
    Taken::In(delivered - before, [earlier, ack])
}

#[inline]
fn admits(receiving: &Receiving, seq: u64) -> bool {
    let receiver = receiving.receiver();
    let next = receiver.next_expected();
    let ahead = next.saturating_add(MOST_AHEAD);
    let holes = receiving.inlet.holes;
    seq < receiver.window_end().min(ahead) && (seq <= next || receiver.holes() < holes)
}

/// The sink of the data has room for so many bytes.
#[inline]
pub fn set_room(receiving: &mut Receiving, bytes: u64) {
    let (receiver, inlet) = receiving.parts();
    inlet.room.set(receiver, bytes);
}

/// After everything that a segment or a timer has brought: is it to be looked whether the sink has
/// room again?
#[inline]
pub fn watch_room(receiving: &mut Receiving, now: Time) {
    let (receiver, inlet) = receiving.parts();
    inlet.room.arm(now, receiver);
}

/// When it wants to be woken: for a delayed ACK, or to look whether the sink has room.
#[inline]
pub fn next_timeout(receiving: &Receiving) -> Time {
    let timeout = receiving.receiver().next_timeout();
    timeout.min(receiving.inlet.room.look())
}

/// Its timer is due. If it is that of the room, [`set_room`] was called before.
pub fn handle_timeout(receiving: &mut Receiving, now: Time) -> Option<Ack> {
    let (receiver, inlet) = receiving.parts();
    let ack = receiver.handle_timeout(now);
    if ack.is_some() || now < inlet.room.look() {
        return ack;
    }
    inlet.room.looked();
    receiver.update_window(now, inlet.room.step())
}

/// For whoever watches.
pub fn live(receiving: &Receiving) -> LiveFlow {
    LiveFlow {
        delivered: receiving.receiver().counts().delivered,
        ..LiveFlow::default()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{ArrivalSpec, Arrivals, RunSpec, Session, SizeLaw};
    use fullpipe_units::Span;

    use super::*;

    fn class(flow: &FlowSpec) -> ClassRecord {
        let arrivals = ArrivalSpec {
            template: flow.clone(),
            arrivals: Arrivals::Every(Span::from_secs(1)),
            sizes: SizeLaw::Fixed(1),
            session: Session::default(),
            seeded_by: None,
        };
        ClassRecord::new(&arrivals, &RunSpec::default())
    }

    /// The delay of an ACK is not the network's: it is told apart, from the newest segment on.
    #[test]
    fn a_delayed_ack_says_how_long_it_was_held() {
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            Vec::new(),
            Vec::new(),
        );
        let mut receiving = FlowReceiver::short(0, &flow, 1, Inlet::new(0, None, &flow));
        let mut classes = [class(&flow)];
        let mut held = |at_ms: u64, seq: u64| {
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
            match take(&mut receiving, now, (&mut segment, 0), None, &mut classes) {
                Taken::In(_, [None, ack]) => ack.map(|(ack, proof)| {
                    let datagram = receiving.inlet.datagram(now, SessionId(1), (&ack, proof));
                    datagram.hold
                }),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(held(1000, 0), None);
        assert_eq!(
            held(1010, 1),
            Some(Span::ZERO),
            "the second one asks for it"
        );
        assert_eq!(held(1020, 2), None);
        let due = next_timeout(&receiving);
        assert_eq!(due, Time::ZERO + Span::from_millis(1060));
        let ack = handle_timeout(&mut receiving, due).unwrap();
        let held = receiving.inlet.datagram(due, SessionId(1), (&ack, 0)).hold;
        assert_eq!(held, Span::from_millis(40));
    }
}
