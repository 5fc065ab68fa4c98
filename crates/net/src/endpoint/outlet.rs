//! A flow's sender on the wire.

use fullpipe_flow::{Ack, PacketLengths, Segment};
use fullpipe_host::{ClassRecord, FlowSender};
use fullpipe_realtime::live::LiveFlow;
use fullpipe_run::FlowSpec;
use fullpipe_sim::Route;
use fullpipe_units::Time;

use super::numbers::Incarnation;
use crate::wire::reception::Proofs;
use crate::wire::{AckDatagram, DataDatagram, SessionId};

/// What the wire knows of a sender.
#[derive(Debug)]
pub struct Outlet {
    /// The flow's number on the wire.
    pub number: u16,
    /// Which of the short flows of this number it is; `None`: a flow of the specification.
    incarnation: Option<Incarnation>,
    /// Bytes of a segment's datagram.
    size: usize,
    /// Bytes of its packets on the path.
    pub lengths: PacketLengths,
    /// The way through the host's own interface, if it has one.
    pub interface: Option<Route>,
    /// It waits for room at its interface.
    pub waits: bool,
    /// Segments of the flow that the interface holds, those on its wire included.
    pub inside: u32,
    /// Sums of the segments' bits, which ACKs have to prove.
    proofs: Proofs,
    /// Segments that have arrived ECN-capable, as ACKs say.
    ect: u32,
    /// Segments delivered, timeouts, and whether the host refused segments, at the last look.
    pub watched: (u64, u64, bool),
}

/// A sender of this endpoint.
pub type Sending = FlowSender<Outlet>;

impl Outlet {
    /// Of a flow that is called `number`.
    pub fn new(
        number: u16,
        incarnation: Option<Incarnation>,
        f: &FlowSpec,
        interface: Option<Route>,
    ) -> Self {
        Self {
            number,
            incarnation,
            waits: false,
            inside: 0,
            size: f.sender.mss as usize + DataDatagram::LEN,
            lengths: f.sender.lengths(),
            interface,
            proofs: Proofs::default(),
            ect: 0,
            watched: (0, 0, false),
        }
    }

    /// Its interface knows nothing of the flow: the slot may be another's.
    pub fn is_free(&self) -> bool {
        !self.waits && self.inside == 0
    }

    /// Bytes of a full segment's datagram, before it is sealed.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A segment as it is on the wire, and the bytes of its datagram with a full payload.
    #[inline]
    pub fn datagram(&mut self, session: SessionId, segment: Segment) -> (DataDatagram, usize) {
        let len = if segment.syn {
            DataDatagram::LEN
        } else {
            self.size
        };
        let seq = match self.incarnation {
            None => segment.seq,
            Some(incarnation) => incarnation.mark(segment.seq),
        };
        let datagram = DataDatagram {
            session,
            flow: self.number,
            segment: Segment { seq, ..segment },
            nonce: match segment.syn {
                true => 0,
                false => self.proofs.bits(segment.seq),
            },
        };
        (datagram, len)
    }
}

/// Segments beyond those that were sent of which an ACK may speak: a number that was changed on the
/// way is at its receiver for good. No more than 16 kB of sums are kept for them.
const CHANGED: u64 = 1 << 12;

/// An ACK has arrived; `None` if it is of an earlier flow, acknowledges data that was never sent or
/// does not prove that it was received, else as the sender sees it.
#[inline]
pub fn handle_ack(
    sending: &mut Sending,
    now: Time,
    datagram: &AckDatagram,
    classes: &mut [ClassRecord],
) -> Option<Ack> {
    let ack = &datagram.ack;
    let mut ack = match sending.outlet.incarnation {
        None => *ack,
        Some(incarnation) => incarnation.strip_ack(ack)?,
    };
    ack.echo = AckDatagram::unwrap_echo(now, ack.echo);
    let nxt = sending.sender().nxt();
    let farthest = ack.sacks.iter().fold(ack.cum, |n, block| n.max(block.end));
    if ack.cum > nxt || farthest > nxt + CHANGED {
        return None;
    }
    if !sending.outlet.proofs.admits(&ack, datagram.proof) {
        return None;
    }
    sending.outlet.ect = datagram.ect;
    if farthest > nxt {
        forget_unsent(&mut ack, nxt);
    }
    // One that only opens the window was not held back: it had nothing to say before.
    if ack.cum > sending.sender().una() || !ack.sacks.is_empty() {
        sending.on_ack_delay(now, datagram.hold);
    }
    sending.handle_ack(now, &ack, classes);
    Some(ack)
}

/// Data of a flow of the specification was delivered, and nothing of it ECN-capable.
pub fn is_bleached(sending: &Sending) -> bool {
    let outlet = &sending.outlet;
    outlet.incarnation.is_none() && outlet.ect == 0 && sending.sender().delivered() > 0
}

/// The blocks of what was sent are left.
#[cold]
fn forget_unsent(ack: &mut Ack, nxt: u64) {
    let sacks = std::mem::take(&mut ack.sacks);
    ack.dsack &= sacks.iter().next().is_some_and(|first| first.end <= nxt);
    let sent = sacks.iter().filter(|block| block.end <= nxt);
    sent.for_each(|block| ack.sacks.push(block));
}

/// For whoever watches.
pub fn live(sending: &Sending) -> LiveFlow {
    let sender = sending.sender();
    LiveFlow {
        delivered: sender.delivered(),
        retransmits: Some(sender.counts().retransmits),
        cwnd: Some(sender.cwnd()),
        srtt: sender.rtt().has_sample().then(|| sender.rtt().srtt()),
    }
}
