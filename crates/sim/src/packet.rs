//! A packet inside the simulator: 32 bytes, `Copy`. What does not fit a plain ACK waits in a side
//! store.

use fullpipe_flow::{Ack, SackBlocks, Segment};
use fullpipe_units::Time;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Segment number, or cumulative acknowledgement, or number of a datagram or probe.
    pub seq: u64,
    /// Time stamp, or its echo; departure of a datagram or probe.
    pub stamp: Time,
    /// Index among the flows, or the sources, or the pings.
    pub flow: u32,
    /// ACK: 0, or one plus the index of its options in the store. Data: 1 if the application pushed
    /// it. Of a path: its route.
    options: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Links crossed so far.
    pub hop: u8,
    kind: Kind,
    /// Data: [`RETRANSMISSION`], [`ECT`], [`CE`], [`CWR`]. ACK: its own time stamp modulo 2^16 ms,
    /// [`ECE`], [`DSACK`].
    marks: u32,
}

/// Data: sent before.
const RETRANSMISSION: u32 = 1;
/// Data: ECN-capable (RFC 3168).
const ECT: u32 = 1 << 8;
/// Data: marked by a queue on its way (RFC 3168).
const CE: u32 = 1 << 16;
/// Data: the sender has reduced its window (RFC 3168).
const CWR: u32 = 1 << 24;
/// ACK: a segment arrived with [`CE`].
const ECE: u32 = 1 << 16;
/// ACK: the first block reports a duplicate (RFC 2883).
const DSACK: u32 = 1 << 24;

/// What a packet is to the links: random loss strikes data and datagrams, ECN marks data, flow
/// queueing tells them apart.
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

/// Flow, source or ping that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flow's data or SYN.
    Segment,
    /// A flow's ACK.
    Ack,
    /// A source's datagram.
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
        seq: 0,
        stamp: Time::ZERO,
        flow: 0,
        options: 0,
        size: 0,
        hop: 0,
        kind: Kind::Data,
        marks: 0,
    };

    /// A data segment or SYN of `size` bytes.
    #[inline]
    pub fn data(flow: u32, size: u16, s: &Segment) -> Self {
        Self {
            seq: s.seq,
            stamp: s.stamp,
            flow,
            options: u32::from(s.push),
            size,
            hop: 0,
            kind: if s.syn { Kind::Syn } else { Kind::Data },
            // The bytes of RETRANSMISSION, ECT, CE and CWR.
            marks: u32::from_le_bytes([s.retransmission, s.ect, s.ce, s.cwr].map(u8::from)),
        }
    }

    /// An ACK of `size` bytes; what is not plain goes to `store`.
    #[inline]
    pub fn ack(flow: u32, size: u16, a: &Ack, store: &mut OptionStore) -> Self {
        let plain = a.sacks.is_empty() && a.window_end == u64::MAX;
        Self {
            seq: a.cum,
            stamp: a.echo,
            flow,
            options: if plain { 0 } else { store.put(a) },
            size,
            hop: 0,
            kind: if a.syn { Kind::SynAck } else { Kind::Ack },
            marks: u32::from(a.stamp_ms as u16)
                | u32::from(a.ece) * ECE
                | u32::from(a.dsack) * DSACK,
        }
    }

    /// Number `n` of source `source`.
    pub fn datagram(source: u32, size: u16, n: u64, now: Time) -> Self {
        Self {
            seq: n,
            stamp: now,
            flow: source,
            size,
            kind: Kind::Datagram,
            ..Self::NONE
        }
    }

    /// Probe number `n` of `ping`.
    pub fn request(ping: u32, size: u16, n: u64, now: Time) -> Self {
        Self {
            kind: Kind::Request,
            ..Self::datagram(ping, size, n, now)
        }
    }

    /// The answer to a probe, before its first link.
    pub fn into_reply(self) -> Self {
        Self {
            hop: 0,
            kind: Kind::Reply,
            ..self
        }
    }

    /// A packet whose content stays with the host, who knows it by `token`.
    pub fn of_path(token: u64, kind: Kind, flow: u32, size: u16, ect: bool, route: u32) -> Self {
        Self {
            seq: token,
            flow,
            options: route,
            size,
            kind,
            marks: if ect { ECT } else { 0 },
            ..Self::NONE
        }
    }

    /// Route of a packet of a path.
    pub fn route(&self) -> u32 {
        self.options
    }

    /// Owner of the packet.
    pub fn owner(&self) -> Owner {
        match self.kind {
            Kind::Data | Kind::Syn => Owner::Segment,
            Kind::Ack | Kind::SynAck => Owner::Ack,
            Kind::Datagram => Owner::Datagram,
            Kind::Request => Owner::Request,
            Kind::Reply => Owner::Reply,
        }
    }

    /// What tells flows apart in a link: equal for packets of one flow, source or ping in one
    /// direction, and for the short flows that follow one another in a slot.
    pub fn key(&self) -> u64 {
        u64::from(self.flow) << 3 | self.owner() as u64
    }

    /// True if it is no flow's.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.kind as u8 >= Kind::Datagram as u8
    }

    /// True for data and datagrams: what random loss strikes.
    #[inline]
    pub fn bears_data(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Datagram)
    }

    /// True for an ACK.
    #[inline]
    pub fn is_ack(&self) -> bool {
        matches!(self.kind, Kind::Ack | Kind::SynAck)
    }

    /// True for a segment of data, not a SYN.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.kind == Kind::Data
    }

    /// True if a queue may mark it instead of dropping it: data whose sender uses ECN.
    #[inline]
    pub fn is_ect(&self) -> bool {
        self.kind == Kind::Data && self.marks & ECT != 0
    }

    /// Marks it: congestion experienced.
    #[inline]
    pub fn mark_ce(&mut self) {
        debug_assert!(self.is_ect());
        self.marks |= CE;
    }

    /// True if it was marked on its way.
    pub fn is_ce(&self) -> bool {
        self.kind == Kind::Data && self.marks & CE != 0
    }

    /// As the receiver sees it.
    #[inline]
    pub fn to_segment(self) -> Segment {
        let plain = Segment {
            seq: self.seq,
            syn: self.kind == Kind::Syn,
            retransmission: false,
            stamp: self.stamp,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        };
        // Most segments bear no mark at all: one test instead of five.
        if self.marks | self.options == 0 {
            return plain;
        }
        Segment {
            retransmission: self.marks & RETRANSMISSION != 0,
            ect: self.marks & ECT != 0,
            ce: self.marks & CE != 0,
            cwr: self.marks & CWR != 0,
            push: self.options != 0,
            ..plain
        }
    }

    /// As the sender sees it `now`, less than a minute after it left; frees its options.
    #[inline]
    pub fn to_ack(self, now: Time, store: &mut OptionStore) -> Ack {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let age = (now_ms as u16).wrapping_sub(self.marks as u16);
        let mut ack = Ack {
            cum: self.seq,
            syn: self.kind == Kind::SynAck,
            echo: self.stamp,
            stamp_ms: now_ms.wrapping_sub(u32::from(age)),
            sacks: SackBlocks::default(),
            dsack: self.marks & DSACK != 0,
            ece: self.marks & ECE != 0,
            window_end: u64::MAX,
        };
        if self.options != 0 {
            (ack.sacks, ack.window_end) = store.take(self.options);
        }
        ack
    }

    /// The packet is lost: its options are freed.
    pub fn discard(self, store: &mut OptionStore) {
        if self.is_ack() && self.options != 0 {
            store.take(self.options);
        }
    }
}

impl OptionStore {
    fn put(&mut self, a: &Ack) -> u32 {
        let options = Options {
            sacks: a.sacks,
            window_end: a.window_end,
        };
        if let Some(i) = self.free.pop() {
            self.slots[i as usize] = options;
            return i + 1;
        }
        self.slots.push(options);
        self.slots.len() as u32
    }

    fn take(&mut self, i: u32) -> (SackBlocks, u64) {
        let options = self.slots[i as usize - 1];
        self.free.push(i - 1);
        (options.sacks, options.window_end)
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
                sacks: SackBlocks::default(),
                dsack: false,
                ece: true,
                window_end: u64::MAX,
            };
            let packet = Packet::ack(0, 52, &ack, &mut store);
            let now = Time::from_nanos(now_ms * 1_000_000 + 5);
            assert_eq!(packet.to_ack(now, &mut store), ack);
        }
    }

    #[test]
    fn a_packet_is_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
