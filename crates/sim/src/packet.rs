//! A packet inside the simulator: 32 bytes, `Copy`. What does not fit a plain ACK waits in a side
//! store.

use fullpipe_flow::{Ack, SackBlocks, Segment};
use fullpipe_units::{Span, Time};

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Content, by kind of packet.
    pub body: Body,
    /// Slot of its flow; number of its cross traffic, among what is answered or is not.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Links crossed so far.
    pub hop: u8,
}

/// What a packet carries: 24 bytes, because every variant's own fields leave room for the tag.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Data or the SYN of a flow: the fields of [`Segment`].
    Segment {
        seq: u64,
        stamp: Time,
        syn: bool,
        retransmission: bool,
        ect: bool,
        ce: bool,
        cwr: bool,
        push: bool,
    },
    /// An ACK of a flow.
    Ack {
        /// Cumulative acknowledgement.
        cum: u64,
        /// Echo of a time stamp.
        echo: Time,
        /// 0, or one plus the index of its options in the store.
        options: u32,
        /// Its own time stamp modulo 2^16 ms.
        stamp_ms: u16,
        /// [`SYN`], [`ECE`] and [`DSACK`].
        flags: u8,
    },
    /// Cross traffic.
    Cross {
        /// Its number, or that of the datagram that it answers.
        number: u64,
        /// When it left, or the datagram that it answers.
        sent: Time,
        /// There or back.
        way: Way,
    },
    /// A packet of a path, whose content stays with the host.
    Token {
        /// The host's name for it.
        token: u64,
        /// Index of its route in the path.
        route: u32,
        /// What it is to the links.
        kind: Kind,
        /// A queue may mark it (RFC 3168), if it is data.
        ect: bool,
        /// A queue has marked it.
        ce: bool,
    },
}

/// Ways of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// There; nobody answers.
    Unanswered,
    /// There, to be answered.
    Request,
    /// Back.
    Reply,
}

/// Bit of an ACK of the SYN (RFC 9293).
const SYN: u8 = 1;
/// Echo of a mark (RFC 3168).
const ECE: u8 = 2;
/// Its first block reports a duplicate (RFC 2883).
const DSACK: u8 = 4;

/// What a packet is to the links: random loss drops data and datagrams, ECN marks data, flow
/// queueing tells them apart.
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
        body: Body::Cross {
            number: 0,
            sent: Time::ZERO,
            way: Way::Unanswered,
        },
        flow: 0,
        size: 0,
        hop: 0,
    };

    /// A packet of `size` bytes before its first link.
    #[inline]
    pub fn new(flow: u32, size: u16, body: Body) -> Self {
        Self {
            body,
            flow,
            size,
            hop: 0,
        }
    }

    /// Number `number` of the cross traffic `flow`.
    pub fn cross(flow: u32, size: u16, way: Way, number: u64, sent: Time) -> Self {
        Self::new(flow, size, Body::Cross { number, sent, way })
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

    /// What it is to the links.
    #[inline]
    fn kind(&self) -> Kind {
        match self.body {
            Body::Segment { syn: true, .. } => Kind::Syn,
            Body::Segment { .. } => Kind::Data,
            Body::Ack { flags, .. } if flags & SYN != 0 => Kind::SynAck,
            Body::Ack { .. } => Kind::Ack,
            Body::Cross { way, .. } => match way {
                Way::Unanswered => Kind::Datagram,
                Way::Request => Kind::Request,
                Way::Reply => Kind::Reply,
            },
            Body::Token { kind, .. } => kind,
        }
    }

    /// True for data and datagrams: what random loss drops.
    #[inline]
    pub fn bears_data(&self) -> bool {
        matches!(self.kind(), Kind::Data | Kind::Datagram)
    }

    /// True if a queue may mark it instead of dropping it: data whose sender uses ECN.
    #[inline]
    pub fn is_ect(&self) -> bool {
        match self.body {
            Body::Segment { ect, syn, .. } => ect && !syn,
            Body::Token { kind, ect, .. } => ect && kind == Kind::Data,
            Body::Ack { .. } | Body::Cross { .. } => false,
        }
    }

    /// Marks it, if a queue may: congestion experienced.
    #[inline]
    pub fn mark_ce(&mut self) {
        debug_assert!(self.is_ect());
        match &mut self.body {
            Body::Segment { ce, .. } | Body::Token { ce, .. } => *ce = true,
            Body::Ack { .. } | Body::Cross { .. } => {}
        }
    }
}

impl From<Segment> for Body {
    #[inline]
    fn from(s: Segment) -> Self {
        Self::Segment {
            seq: s.seq,
            stamp: s.stamp,
            syn: s.syn,
            retransmission: s.retransmission,
            ect: s.ect,
            ce: s.ce,
            cwr: s.cwr,
            push: s.push,
        }
    }
}

impl Body {
    /// An ACK; what is not plain goes to `store`.
    #[inline]
    pub fn of_ack(a: &Ack, store: &mut OptionStore) -> Self {
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX && a.one_way.is_none();
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        Self::Ack {
            cum: a.cum,
            echo: a.echo,
            options: match plain {
                true => 0,
                false => store.put(Options {
                    sacks: a.sacks,
                    window_end: a.window_end,
                    one_way: a.one_way,
                }),
            },
            stamp_ms: a.stamp_ms as u16,
            flags: flag(a.syn, SYN) | flag(a.ece, ECE) | flag(a.dsack, DSACK),
        }
    }

    /// A segment as the receiver sees it.
    #[inline(always)]
    pub fn segment(self) -> Option<Segment> {
        match self {
            Self::Segment {
                seq,
                stamp,
                syn,
                retransmission,
                ect,
                ce,
                cwr,
                push,
            } => Some(Segment {
                seq,
                syn,
                retransmission,
                stamp,
                ect,
                ce,
                cwr,
                push,
            }),
            _ => None,
        }
    }

    /// An ACK as the sender sees it `now`, less than a minute after it left; frees its options.
    #[inline(always)]
    pub fn ack(self, now: Time, store: &mut OptionStore) -> Option<Ack> {
        let Self::Ack {
            cum,
            echo,
            options,
            stamp_ms,
            flags,
        } = self
        else {
            return None;
        };
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let age = (now_ms as u16).wrapping_sub(stamp_ms);
        let mut ack = Ack {
            cum,
            syn: flags & SYN != 0,
            echo,
            stamp_ms: now_ms.wrapping_sub(u32::from(age)),
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: flags & DSACK != 0,
            ece: flags & ECE != 0,
            window_end: u64::MAX,
        };
        if options != 0 {
            let options = store.take(options);
            (ack.sacks, ack.window_end) = (options.sacks, options.window_end);
            ack.one_way = options.one_way;
        }
        Some(ack)
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
            let body = Body::of_ack(&ack, &mut store);
            let now = Time::from_nanos(now_ms * 1_000_000 + 5);
            assert_eq!(body.ack(now, &mut store), Some(ack));
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
