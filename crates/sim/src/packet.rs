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
    /// What is small, in one word for the same reason: bytes on the wire (16 bits), an ACK's own
    /// time stamp modulo 2^16 ms from [`STAMP_MS`] on, links crossed so far from [`HOP`] on (8
    /// bits), its kind from [`KIND`] on (8 bits), its flags from [`FLAGS`] on.
    word: u64,
}

const STAMP_MS: u32 = 16;
const HOP: u32 = 32;
const KIND: u32 = 40;

const FLAGS: u32 = 48;

/// Flags of a segment: sent before.
const RETRANSMISSION: u8 = 1;
/// ECN-capable, marked, and window reduced (RFC 3168).
const ECT: u8 = 2;
const CE: u8 = 4;
const CWR: u8 = 8;
/// To be acknowledged at once (RFC 9293).
const PUSH: u8 = 16;

/// Flags of an ACK: echo of a mark (RFC 3168).
const ECE: u8 = 1;
/// Its first block reports a duplicate (RFC 2883).
const DSACK: u8 = 2;

/// `flag`, or nothing.
#[inline(always)]
fn flag(is: bool, flag: u8) -> u8 {
    if is { flag } else { 0 }
}

/// The word of a packet that has crossed no link.
#[inline(always)]
fn word(size: u16, kind: Kind, flags: u8) -> u64 {
    u64::from(size) | (kind as u64) << KIND | u64::from(flags) << FLAGS
}

/// What a packet is: random loss drops data and datagrams, ECN marks data, flow queueing tells them
/// apart. Numbers of a handshake's packets are odd, and those of one [`Class`] follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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

/// Kinds by where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Segments, that of a flow's first word included: its sender sends them.
    Segment,
    /// Acknowledgements, that of the SYN included: its receiver sends them.
    Ack,
    /// Datagrams, probes and their answers: they have no flow.
    Cross,
}

/// Options of an ACK that is not plain.
#[derive(Clone, Copy, Debug)]
struct Options {
    sacks: SackBlocks,
    window_end: u64,
    one_way: Option<Span>,
}

impl Options {
    /// Options of an ACK without SACK blocks.
    const NONE: Self = Self {
        sacks: SackBlocks::NONE,
        window_end: u64::MAX,
        one_way: None,
    };
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
        word: 0,
    };

    /// Bytes on the wire.
    #[inline(always)]
    pub fn size(&self) -> u16 {
        self.word as u16
    }

    /// Links crossed so far.
    #[inline(always)]
    pub fn hop(&self) -> u8 {
        (self.word >> HOP) as u8
    }

    /// What it is to the links and to the host that it reaches.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        match (self.word >> KIND) as u8 {
            0 => Kind::Data,
            1 => Kind::Syn,
            2 => Kind::Ack,
            3 => Kind::SynAck,
            4 => Kind::Datagram,
            5 => Kind::Request,
            _ => Kind::Reply,
        }
    }

    /// Who sends and who takes such packets.
    #[inline(always)]
    pub fn class(&self) -> Class {
        match (self.word >> (KIND + 1)) as u8 & 0x7F {
            0 => Class::Segment,
            1 => Class::Ack,
            _ => Class::Cross,
        }
    }

    /// Of a flow's packet: it is one of the handshake.
    #[inline(always)]
    fn is_syn(&self) -> bool {
        self.word & (1 << KIND) != 0
    }

    #[inline(always)]
    fn is(&self, kind: Kind) -> bool {
        (self.word >> KIND) as u8 == kind as u8
    }

    #[inline(always)]
    fn has(&self, flag: u8) -> bool {
        self.word & (u64::from(flag) << FLAGS) != 0
    }

    /// A segment of the flow in a slot, `size` bytes on the wire.
    #[inline(always)]
    pub fn of_segment(flow: u32, size: u16, s: &Segment) -> Self {
        let kind = if s.syn { Kind::Syn } else { Kind::Data };
        let flags = flag(s.retransmission, RETRANSMISSION)
            | flag(s.ect, ECT)
            | flag(s.ce, CE)
            | flag(s.cwr, CWR)
            | flag(s.push, PUSH);
        Self {
            number: s.seq,
            stamp: s.stamp,
            flow,
            aside: 0,
            word: word(size, kind, flags),
        }
    }

    /// An ACK of the flow in a slot; what is not plain goes to `store`.
    #[inline(always)]
    pub fn of_ack(flow: u32, size: u16, a: &Ack, store: &mut OptionStore) -> Self {
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX && a.one_way.is_none();
        let kind = if a.syn { Kind::SynAck } else { Kind::Ack };
        let flags = flag(a.ece, ECE) | flag(a.dsack, DSACK);
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
            word: word(size, kind, flags) | u64::from(a.stamp_ms as u16) << STAMP_MS,
        }
    }

    /// Number `number` of the cross traffic `flow`, or the answer to it.
    pub fn cross(flow: u32, size: u16, kind: Kind, number: u64, sent: Time) -> Self {
        Self {
            number,
            stamp: sent,
            flow,
            aside: 0,
            word: word(size, kind, 0),
        }
    }

    /// The same on a route of a path, where the content stays with the host.
    pub fn routed(self, route: u32, ect: bool) -> Self {
        Self {
            aside: route,
            word: word(self.size(), self.kind(), flag(ect, ECT)),
            ..self
        }
    }

    /// The answer to a request sets out.
    pub fn answered(self) -> Self {
        Self {
            word: word(self.size(), Kind::Reply, 0),
            ..self
        }
    }

    /// The same after one more link.
    #[inline(always)]
    pub fn after_hop(self) -> Self {
        Self {
            word: self.word + (1 << HOP),
            ..self
        }
    }

    /// A segment as the receiver sees it.
    #[inline(always)]
    pub fn segment(&self) -> Segment {
        Segment {
            seq: self.number,
            syn: self.is_syn(),
            retransmission: self.has(RETRANSMISSION),
            stamp: self.stamp,
            ect: self.has(ECT),
            ce: self.is_ce(),
            cwr: self.has(CWR),
            push: self.has(PUSH),
        }
    }

    /// An ACK that says no more than a number and a window as the sender sees it `now`, less than a
    /// minute after it left; what it has in the store is freed.
    #[inline(always)]
    pub fn plain_ack(&self, now: Time, store: &mut OptionStore) -> Option<Ack> {
        let window_end = match self.aside {
            0 => u64::MAX,
            aside => store.take_window(aside)?,
        };
        let options = Options {
            window_end,
            ..Options::NONE
        };
        Some(self.ack_with(now, options))
    }

    /// The same of any ACK.
    #[inline]
    pub fn ack(&self, now: Time, store: &mut OptionStore) -> Ack {
        match self.aside {
            0 => self.ack_with(now, Options::NONE),
            aside => self.ack_with(now, store.take(aside)),
        }
    }

    #[inline(always)]
    fn ack_with(&self, now: Time, options: Options) -> Ack {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let age = (now_ms as u16).wrapping_sub((self.word >> STAMP_MS) as u16);
        Ack {
            cum: self.number,
            syn: self.is_syn(),
            echo: self.stamp,
            stamp_ms: now_ms.wrapping_sub(u32::from(age)),
            one_way: options.one_way,
            sacks: options.sacks,
            dsack: self.has(DSACK),
            ece: self.has(ECE),
            window_end: options.window_end,
        }
    }

    /// A copy for a call that is not inlined, so that the packet itself need not be in memory.
    #[inline(always)]
    pub fn apart(self) -> Self {
        black_box(self)
    }

    /// What tells flows apart in a link: equal for packets of one flow or of one cross traffic in
    /// one direction, and for the short flows that follow one another in a slot.
    pub fn key(&self) -> u64 {
        let direction = match self.kind() {
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
        self.is(Kind::Data) || self.is(Kind::Datagram)
    }

    /// True if a queue may mark it instead of dropping it: data whose sender uses ECN.
    #[inline]
    pub fn is_ect(&self) -> bool {
        self.is(Kind::Data) && self.has(ECT)
    }

    /// A queue has marked it.
    #[inline]
    pub fn is_ce(&self) -> bool {
        self.has(CE)
    }

    /// Marks it, if a queue may: congestion experienced.
    #[inline]
    pub fn mark_ce(&mut self) {
        debug_assert!(self.is_ect());
        self.word |= u64::from(CE) << FLAGS;
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

    /// The window's end, if these options are no more than that: then they are freed.
    #[inline]
    fn take_window(&mut self, i: u32) -> Option<u64> {
        let options = &self.slots[i as usize - 1];
        let window_end = options.window_end;
        if !options.sacks.is_empty() || options.one_way.is_some() {
            return None;
        }
        self.free.push(i - 1);
        Some(window_end)
    }

    #[inline(always)]
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

    /// A plain ACK says no more than a number and a window; any other one stays as it was. Either
    /// frees its place in the store.
    #[test]
    fn a_plain_ack_leaves_nothing_out() {
        let bare = Ack {
            cum: 7,
            syn: false,
            echo: Time::ZERO,
            stamp_ms: 3,
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: u64::MAX,
        };
        let (window_end, one_way) = (50, Some(Span::from_millis(4)));
        let mut sacks = SackBlocks::default();
        sacks.push(fullpipe_flow::Range { start: 9, end: 10 });
        let cases = [
            (bare, true),
            (Ack { window_end, ..bare }, true),
            (Ack { one_way, ..bare }, false),
            (Ack { sacks, ..bare }, false),
        ];
        let mut store = OptionStore::default();
        for (ack, plain) in cases {
            let packet = Packet::of_ack(0, 52, &ack, &mut store);
            assert!(packet.aside <= 1, "{ack:?}");
            let now = Time::from_nanos(5_000_000);
            let seen = packet.plain_ack(now, &mut store);
            assert_eq!(seen, plain.then_some(ack));
            if seen.is_none() {
                assert_eq!(packet.ack(now, &mut store), ack);
            }
        }
    }

    #[test]
    fn a_word_holds_all_that_is_small() {
        let kinds = [
            Kind::Data,
            Kind::Syn,
            Kind::Ack,
            Kind::SynAck,
            Kind::Datagram,
            Kind::Request,
            Kind::Reply,
        ];
        for kind in kinds {
            let packet = Packet::cross(7, u16::MAX, kind, 1, Time::ZERO).routed(9, true);
            let later = packet.after_hop().after_hop();
            assert_eq!(
                (later.size(), later.kind(), later.hop()),
                (u16::MAX, kind, 2)
            );
            assert_eq!((later.flow, later.aside, later.is_ce()), (7, 9, false));
            assert_eq!(later.is_ect(), kind == Kind::Data);
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
