//! A packet inside the simulator: 32 bytes, `Copy`. What does not fit a plain ACK waits in a side
//! store.

use std::hint::black_box;

use fullpipe_flow::{Ack, SackBlocks, Segment};
use fullpipe_units::{Span, Time};

/// A packet on its way.
///
/// Plain fields, whatever it carries: an enum would be put together in memory by bytes and read
/// back by words, and each such read waits until the bytes have left the store buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Segment number, cumulative acknowledgement, number of a datagram (of an answer: that of the
    /// datagram), or the name that the host of a path gave it.
    pub number: u64,
    /// Time stamp of a segment, or the one that an ACK echoes; when a datagram left, or the
    /// datagram that is answered.
    pub stamp: Time,
    /// Slot of its flow; number of its cross traffic, among what is answered or is not.
    pub flow: u32,
    /// Of an ACK, 0, or one plus the index of its options in the store; of a packet of a path, the
    /// index of its route.
    pub aside: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// An ACK's own time stamp modulo 2^16 ms.
    stamp_ms: u16,
    /// Links crossed so far.
    pub hop: u8,
    /// What it is to the links and to the host that it reaches.
    pub kind: Kind,
    /// Of a segment [`RETRANSMISSION`] to [`PUSH`], of an ACK [`ECE`] and [`DSACK`].
    flags: u8,
}

/// Sent before.
const RETRANSMISSION: u8 = 1;
/// ECN-capable, marked, and window reduced (RFC 3168).
const ECT: u8 = 2;
const CE: u8 = 4;
const CWR: u8 = 8;
/// To be acknowledged at once (RFC 9293).
const PUSH: u8 = 16;

/// Echo of a mark (RFC 3168).
const ECE: u8 = 1;
/// Its first block reports a duplicate (RFC 2883).
const DSACK: u8 = 2;

/// `flag`, or nothing.
#[inline(always)]
fn flag(is: bool, flag: u8) -> u8 {
    if is { flag } else { 0 }
}

/// What a packet is: random loss drops data and datagrams, ECN marks data, flow queueing tells them
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A segment of data.
    Data,
    /// A flow's first word.
    Syn,
    /// An acknowledgement.
    Ack,
    /// Acknowledgement of the SYN.
    SynAck,
    /// Traffic without congestion control.
    Datagram,
    /// A probe on its way there.
    Request,
    /// A probe on its way back.
    Reply,
}

/// Options of an ACK that is not plain.
#[derive(Clone, Copy, Debug)]
struct Options {
    sacks: SackBlocks,
    window_end: u64,
    one_way: Option<Span>,
}

/// Options of the ACKs in flight.
#[derive(Debug, Default)]
pub struct OptionStore {
    slots: Vec<Options>,
    free: Vec<u32>,
}

impl Packet {
    /// Fills free slots.
    pub const NONE: Self = Self {
        number: 0,
        stamp: Time::ZERO,
        flow: 0,
        aside: 0,
        size: 0,
        stamp_ms: 0,
        hop: 0,
        kind: Kind::Datagram,
        flags: 0,
    };

    /// A segment of the flow in a slot, `size` bytes on the wire.
    #[inline(always)]
    pub fn of_segment(flow: u32, size: u16, s: &Segment) -> Self {
        Self {
            number: s.seq,
            stamp: s.stamp,
            flow,
            size,
            kind: if s.syn { Kind::Syn } else { Kind::Data },
            flags: flag(s.retransmission, RETRANSMISSION)
                | flag(s.ect, ECT)
                | flag(s.ce, CE)
                | flag(s.cwr, CWR)
                | flag(s.push, PUSH),
            ..Self::NONE
        }
    }

    /// An ACK of the flow in a slot; what is not plain goes to `store`.
    #[inline(always)]
    pub fn of_ack(flow: u32, size: u16, a: &Ack, store: &mut OptionStore) -> Self {
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX && a.one_way.is_none();
        Self {
            number: a.cum,
            stamp: a.echo,
            flow,
            aside: match plain {
                true => 0,
                false => store.put(Options {
                    sacks: a.sacks,
                    window_end: a.window_end,
                    one_way: a.one_way,
                }),
            },
            size,
            stamp_ms: a.stamp_ms as u16,
            kind: if a.syn { Kind::SynAck } else { Kind::Ack },
            flags: flag(a.ece, ECE) | flag(a.dsack, DSACK),
            ..Self::NONE
        }
    }

    /// Number `number` of the cross traffic `flow`, or the answer to it.
    pub fn cross(flow: u32, size: u16, kind: Kind, number: u64, sent: Time) -> Self {
        Self {
            number,
            stamp: sent,
            flow,
            size,
            kind,
            ..Self::NONE
        }
    }

    /// The same on a route of a path, where the content stays with the host.
    pub fn routed(self, route: u32, ect: bool) -> Self {
        Self {
            aside: route,
            flags: flag(ect, ECT),
            ..self
        }
    }

    /// A segment as the receiver sees it.
    #[inline(always)]
    pub fn segment(&self) -> Segment {
        Segment {
            seq: self.number,
            syn: self.kind == Kind::Syn,
            retransmission: self.flags & RETRANSMISSION != 0,
            stamp: self.stamp,
            ect: self.flags & ECT != 0,
            ce: self.is_ce(),
            cwr: self.flags & CWR != 0,
            push: self.flags & PUSH != 0,
        }
    }

    /// An ACK as the sender sees it `now`, less than a minute after it left; frees its options.
    #[inline(always)]
    pub fn ack(&self, now: Time, store: &mut OptionStore) -> Ack {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let age = (now_ms as u16).wrapping_sub(self.stamp_ms);
        let mut ack = Ack {
            cum: self.number,
            syn: self.kind == Kind::SynAck,
            echo: self.stamp,
            stamp_ms: now_ms.wrapping_sub(u32::from(age)),
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: self.flags & DSACK != 0,
            ece: self.flags & ECE != 0,
            window_end: u64::MAX,
        };
        if self.aside != 0 {
            let options = store.take(self.aside);
            (ack.sacks, ack.window_end) = (options.sacks, options.window_end);
            ack.one_way = options.one_way;
        }
        ack
    }

    /// A copy for a call that is not inlined, so that the packet itself need not be in memory.
    #[inline(always)]
    pub fn apart(self) -> Self {
        black_box(self)
    }

    /// The same after so many links.
    #[inline(always)]
    pub fn apart_after(self, hop: u8) -> Self {
        Self { hop, ..self }.apart()
    }

    /// What tells flows apart in a link: equal for packets of one flow or of one cross traffic in
    /// one direction, and for the short flows that follow one another in a slot.
    pub fn key(&self) -> u64 {
        let direction = match self.kind {
            Kind::Data | Kind::Syn => 0,
            Kind::Ack | Kind::SynAck => 1,
            Kind::Datagram => 2,
            Kind::Request => 3,
            Kind::Reply => 4,
        };
        u64::from(self.flow) << 3 | direction
    }

    /// True for data and datagrams: what random loss drops.
    #[inline]
    pub fn bears_data(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Datagram)
    }

    /// True if a queue may mark it instead of dropping it: data whose sender uses ECN.
    #[inline]
    pub fn is_ect(&self) -> bool {
        self.kind == Kind::Data && self.flags & ECT != 0
    }

    /// A queue has marked it.
    #[inline]
    pub fn is_ce(&self) -> bool {
        self.flags & CE != 0
    }

    /// Marks it, if a queue may: congestion experienced.
    #[inline]
    pub fn mark_ce(&mut self) {
        debug_assert!(self.is_ect());
        self.flags |= CE;
    }
}

impl OptionStore {
    /// Takes the options themselves, so that a caller need not have a plain ACK in memory.
    fn put(&mut self, options: Options) -> u32 {
        if let Some(i) = self.free.pop() {
            self.slots[i as usize] = options;
            return i + 1;
        }
        self.slots.push(options);
        self.slots.len() as u32
    }

    /// An ACK with these options is lost: they are freed.
    pub fn discard(&mut self, options: u32) {
        if options != 0 {
            self.take(options);
        }
    }

    fn take(&mut self, i: u32) -> Options {
        self.free.push(i - 1);
        self.slots[i as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_keeps_its_stamp_over_the_turn_of_its_counter() {
        let mut store = OptionStore::default();
        for (stamp_ms, now_ms) in [
            (0, 0),
            (65_535, 65_576),
            (70_000, 130_000),
            (131_071, 131_072),
        ] {
            let ack = Ack {
                cum: 7,
                syn: false,
                echo: Time::ZERO,
                stamp_ms,
                one_way: None,
                sacks: SackBlocks::default(),
                dsack: false,
                ece: true,
                window_end: u64::MAX,
            };
            let packet = Packet::of_ack(0, 52, &ack, &mut store);
            let now = Time::from_nanos(now_ms * 1_000_000 + 5);
            assert_eq!(packet.ack(now, &mut store), ack);
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
