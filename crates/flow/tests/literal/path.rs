//! The path: what becomes of each packet, a receiver, and the order in which all of it happens.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_flow::{Ack, Range, SackBlocks};
use fullpipe_units::{Span, Time};

/// What happens to one packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet never arrives.
    Drop,
    /// It arrives this many microseconds late, and others overtake it.
    Late(u64),
    /// A copy follows this many microseconds later.
    Twice(u64),
}

/// Fates that are not "arrives", by the number of the packet on its way: data and
/// retransmissions in the order of sending, ACKs in the order of theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    pub data: BTreeMap<u64, Fate>,
    pub acks: BTreeMap<u64, Fate>,
}

/// Time stamp that an ACK echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// One newer than everything, so that no ACK looks like an original's.
    Never,
    /// RFC 7323 section 4.3: the newest of a segment at or below the last ACK, duplicates too.
    Recent,
    /// That of the segment that last advanced the window (RFC 3522 section 3.3).
    InOrder,
}

/// The receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Acknowledge every n-th segment.
    pub every: u32,
    /// Longest wait of an ACK, microseconds.
    pub wait_us: u64,
    /// Report SACK blocks (RFC 2018).
    pub sack: bool,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    pub echo: Echo,
    /// Most segments beyond the cumulative ACK, if there is a limit.
    pub window: Option<u64>,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub seq: u64,
    pub stamp: Time,
}

/// A receiver: RFC 9293 in order, RFC 5681 section 4.2 delayed ACKs, RFC 2018 and 2883 blocks, RFC
/// 7323 section 4.3 echo.
#[derive(Clone, Debug)]
pub struct Receiver {
    host: Host,
    /// Next segment expected.
    next: u64,
    /// Segments that arrived above `next`, beyond a gap.
    above: BTreeSet<u64>,
    /// Blocks reported so far, the most recent first, by a segment in them.
    recent: Vec<u64>,
    /// RFC 7323 `TS.Recent` and `Last.ACK.sent`.
    recent_stamp: Time,
    last_ack_sent: u64,
    /// Segments that no ACK covers yet, and when it leaves at the latest.
    waiting: u32,
    pub due: Option<Time>,
}

impl Receiver {
    pub fn new(host: Host) -> Self {
        Self {
            host,
            next: 0,
            above: BTreeSet::new(),
            recent: Vec::new(),
            recent_stamp: Time::ZERO,
            last_ack_sent: 0,
            waiting: 0,
            due: None,
        }
    }

    pub fn arrives(&mut self, now: Time, p: Packet) -> Option<Ack> {
        // RFC 7323 section 4.3 rule 2.
        let old = self.host.echo == Echo::InOrder && p.seq < self.next;
        if p.seq <= self.last_ack_sent && p.stamp >= self.recent_stamp && !old {
            self.recent_stamp = p.stamp;
        }
        if p.seq < self.next || self.above.contains(&p.seq) {
            // A duplicate is acknowledged at once, with the block around it second (RFC 2883
            // section 4).
            if p.seq >= self.next {
                self.recent.retain(|&s| s != p.seq);
                self.recent.insert(0, p.seq);
            }
            return Some(self.ack(self.host.dsack.then_some(p.seq)));
        }
        let held = !self.above.is_empty();
        if p.seq > self.next {
            self.above.insert(p.seq);
            self.recent.retain(|&s| s != p.seq);
            self.recent.insert(0, p.seq);
            return Some(self.ack(None));
        }
        self.next += 1;
        while self.above.remove(&self.next) {
            self.next += 1;
        }
        let next = self.next;
        self.recent.retain(|&s| s >= next);
        self.waiting += 1;
        // RFC 5681 section 4.2: at once while a gap is or was open.
        if held || self.waiting >= self.host.every {
            return Some(self.ack(None));
        }
        self.due
            .get_or_insert(now + Span::from_micros(self.host.wait_us));
        None
    }

    pub fn timer(&mut self) -> Ack {
        self.ack(None)
    }

    fn ack(&mut self, duplicate: Option<u64>) -> Ack {
        self.waiting = 0;
        self.due = None;
        self.last_ack_sent = self.next;
        let mut sacks = SackBlocks::default();
        if let Some(seq) = duplicate {
            sacks.push(Range {
                start: seq,
                end: seq + 1,
            });
        }
        if self.host.sack {
            let mut reported = BTreeSet::new();
            for &s in &self.recent {
                let mut block = Range {
                    start: s,
                    end: s + 1,
                };
                while block.start > 0 && self.above.contains(&(block.start - 1)) {
                    block.start -= 1;
                }
                while self.above.contains(&block.end) {
                    block.end += 1;
                }
                if sacks.len() < 3 && reported.insert(block.start) {
                    sacks.push(block);
                }
            }
        }
        let echo = match self.host.echo {
            Echo::Never => Time::ZERO + Span::from_secs(1_000_000),
            Echo::Recent | Echo::InOrder => self.recent_stamp,
        };
        Ack {
            cum: self.next,
            syn: false,
            echo,
            stamp_ms: 0,
            one_way: None,
            sacks,
            dsack: duplicate.is_some(),
            ece: false,
            window_end: self.host.window.map_or(u64::MAX, |w| self.next + w),
        }
    }
}

/// An arrival: of data at the receiver, of an ACK at the senders.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Data(Packet),
    Ack(Ack),
}

/// One way: a FIFO of a rate, a delay, and the fates of its packets.
#[derive(Clone, Debug)]
pub struct Way {
    delay: Span,
    gap: Span,
    /// The last packet's departure.
    busy: Time,
    /// Packets so far.
    pub n: u64,
}

impl Way {
    pub fn new(delay_us: u64, gap_us: u64) -> Self {
        Self {
            delay: Span::from_micros(delay_us),
            gap: Span::from_micros(gap_us),
            busy: Time::ZERO,
            n: 0,
        }
    }

    /// Arrivals of the next packet.
    pub fn send(&mut self, now: Time, fate: Option<Fate>) -> Vec<Time> {
        self.n += 1;
        self.busy = self.busy.max(now) + self.gap;
        let at = self.busy + self.delay;
        match fate {
            None => vec![at],
            Some(Fate::Drop) => vec![],
            Some(Fate::Late(us)) => vec![at + Span::from_micros(us)],
            Some(Fate::Twice(us)) => vec![at, at + Span::from_micros(us)],
        }
    }
}
