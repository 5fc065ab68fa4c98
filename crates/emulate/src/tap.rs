//! What passes the two devices, connection by connection: the packets that each host sent and got,
//! whatever its TCP thinks of them. Beside `TCP_INFO`, which is sampled, this is exact.

use std::collections::VecDeque;

use fullpipe_flow::{Range, RangeSet, ReceiverCounts};
use fullpipe_run::{
    ArrivalRecord, ArrivalRecorder, ComponentRng, DropRules, FlowSpec, FlowTotals, Histogram,
    RunSpec,
};
use fullpipe_units::Time;

use crate::packet::{Layout, TCP, flag};

/// One connection for each flow of a run: pair of hosts `k` carries flow `k`.
#[derive(Debug)]
pub struct Tap {
    connections: Vec<Connection>,
    measure_from: Time,
    end: Time,
}

/// Whose packet it is, and from which side.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// The side that it comes from: 0 near, 1 far.
    pub from: usize,
    /// Index of the pair of hosts: that of the flow.
    pub pair: usize,
}

/// What is known of a connection at the end.
#[derive(Clone, Debug)]
pub struct Passed {
    /// What packets show: segments sent, arrived, lost on the path.
    pub totals: FlowTotals,
    /// From a segment's departure until the ACK that first covered it, by the rule of Linux: the
    /// oldest of the segments that were newly acknowledged and sent only once. Of the measured
    /// part.
    pub rtt: Histogram,
    /// First ACK of each packet-timed round, and segments delivered by then.
    pub rounds: Vec<(Time, u64)>,
    /// Segments per interval.
    pub arrivals: ArrivalRecord,
    /// The ACK of the last byte of a finite transfer came.
    pub completed: Option<Time>,
    /// Segments that were sent again, when: the most that are remembered is [`MOST_RESENT`].
    pub resent: Vec<Time>,
}

/// Retransmissions of which the time is remembered.
pub const MOST_RESENT: usize = 100_000;

/// A connection so far. Numbers count bytes of data from zero.
#[derive(Debug)]
struct Connection {
    /// The side that the data come from: 0 near, 1 far.
    from: usize,
    mss: u64,
    transfer: Option<u64>,
    /// Sequence number of the first byte of data.
    first: Option<u32>,
    una: u64,
    nxt: u64,
    /// Sent and not acknowledged, in the order of their numbers.
    flying: VecDeque<Flying>,
    /// Acknowledged, in order or by SACK, as far as the sender knows.
    delivered: u64,
    /// A round ends with the ACK of a packet that left when so much was delivered.
    round_at: u64,
    drops: Option<DropRules>,
    arrival_drops: Option<DropRules>,
    got: RangeSet,
    /// Highest byte that arrived.
    highest: u64,
    new_bytes: u64,
    counts: ReceiverCounts,
    before_measuring: Option<ReceiverCounts>,
    intervals: ArrivalRecorder,
    passed: Passed,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    start: u64,
    end: u64,
    at: Time,
    /// What was delivered when it left, the last time.
    delivered: u64,
    /// Sent more than once: its ACK may be of either (Karn and Partridge 1987).
    again: bool,
    sacked: bool,
}

/// What the tap needs of TCP's header.
#[derive(Clone, Copy, Debug)]
struct Header<'a> {
    seq: u32,
    ack: u32,
    flags: u8,
    payload: u64,
    options: &'a [u8],
}

impl<'a> Header<'a> {
    fn of(packet: &'a [u8], layout: &Layout) -> Option<Self> {
        if layout.protocol != TCP || layout.fragment {
            return None;
        }
        let headers = layout.headers(packet)?;
        let tcp = packet.get(layout.transport..headers)?;
        let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
        Some(Self {
            seq: word(4)?,
            ack: word(8)?,
            flags: *tcp.get(13)?,
            payload: layout.len.saturating_sub(headers) as u64,
            options: tcp.get(20..)?,
        })
    }

    /// Blocks of the option SACK (RFC 2018).
    fn sacks(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let mut rest = self.options;
        let blocks = std::iter::from_fn(move || {
            loop {
                let length = match *rest.first()? {
                    0 => return None,
                    1 => 1,
                    _ => usize::from(*rest.get(1)?).max(2),
                };
                let option = rest.get(..length)?;
                rest = &rest[length..];
                if option[0] == SACK {
                    return Some(&option[2..]);
                }
            }
        });
        blocks.flat_map(|option| {
            option.chunks_exact(8).map(|b| {
                let word = |at| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
                (word(0), word(4))
            })
        })
    }
}

/// Kind of the option SACK.
const SACK: u8 = 5;

impl Tap {
    /// For the flows of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let connections = spec.flows.iter().map(|f| Connection::new(f, spec));
        Self {
            connections: connections.collect(),
            measure_from: spec.measure_from,
            end: Time::ZERO + spec.duration,
        }
    }

    /// A host sends a packet. True: the scenario prescribes that it is lost.
    pub fn sent(&mut self, now: Time, of: Passage, packet: &[u8], layout: &Layout) -> bool {
        let Some((c, header)) = self.connection(now, of, packet, layout) else {
            return false;
        };
        match (of.from == c.from, header.flags & flag::SYN != 0) {
            (true, true) => {
                c.first = Some(header.seq.wrapping_add(1));
                false
            }
            (true, false) if header.payload > 0 => c.segment(now, &header),
            _ => false,
        }
    }

    /// A packet has come to the other host. True: the scenario prescribes that it is lost there.
    pub fn got(&mut self, now: Time, of: Passage, packet: &[u8]) -> bool {
        let measure_from = self.measure_from;
        let Some(layout) = Layout::of(packet) else {
            return false;
        };
        let Some((c, header)) = self.connection(now, of, packet, &layout) else {
            return false;
        };
        if of.from != c.from {
            c.ack(now, &header, now >= measure_from);
            return false;
        }
        if header.payload == 0 || header.flags & flag::SYN != 0 {
            return false;
        }
        if now >= measure_from && c.before_measuring.is_none() {
            c.before_measuring = Some(c.counts);
        }
        c.arrival(now, &header)
    }

    /// The path has dropped a packet.
    pub fn dropped(&mut self, at: Time, of: Passage, packet: &[u8]) {
        if let Some(layout) = Layout::of(packet)
            && let Some((c, header)) = self.connection(at, of, packet, &layout)
            && of.from == c.from
            && header.payload > 0
        {
            c.passed.totals.dropped += 1;
        }
    }

    fn connection<'p>(
        &mut self,
        now: Time,
        of: Passage,
        packet: &'p [u8],
        layout: &Layout,
    ) -> Option<(&mut Connection, Header<'p>)> {
        if now > self.end {
            return None;
        }
        let header = Header::of(packet, layout)?;
        Some((self.connections.get_mut(of.pair)?, header))
    }

    /// The run is over.
    pub fn finish(self) -> Vec<Passed> {
        let end = self.end;
        let all = self.connections.into_iter();
        all.map(|c| c.finish(end)).collect()
    }
}

impl Connection {
    fn new(f: &FlowSpec, spec: &RunSpec) -> Self {
        let mss = u64::from(f.sender.mss.max(1));
        Self {
            from: usize::from(f.reverse),
            mss,
            transfer: f.sender.transfer.map(|segments| segments * mss),
            first: None,
            una: 0,
            nxt: 0,
            flying: VecDeque::new(),
            delivered: 0,
            round_at: 0,
            drops: DropRules::new(&f.drops, ComponentRng::new(spec.seed, &f.name)),
            arrival_drops: DropRules::at_receiver(f, spec.seed),
            got: RangeSet::default(),
            highest: 0,
            new_bytes: 0,
            counts: ReceiverCounts::default(),
            before_measuring: None,
            intervals: ArrivalRecorder::new(spec.interval),
            passed: Passed {
                totals: FlowTotals::default(),
                rtt: Histogram::default(),
                rounds: Vec::new(),
                arrivals: ArrivalRecord::default(),
                completed: None,
                resent: Vec::new(),
            },
        }
    }

    /// Number of a byte near `here`, from its sequence number of 32 bits.
    fn number(&self, seq: u32, here: u64) -> Option<u64> {
        let expected = self.first?.wrapping_add(here as u32);
        let away = i64::from(seq.wrapping_sub(expected) as i32);
        here.checked_add_signed(away)
    }

    fn segment(&mut self, now: Time, header: &Header<'_>) -> bool {
        let Some(start) = self.number(header.seq, self.nxt) else {
            return false;
        };
        let end = start + header.payload;
        let again = start < self.nxt;
        self.passed.totals.sent += 1;
        if again {
            self.passed.totals.retransmits += 1;
            if self.passed.resent.len() < MOST_RESENT {
                self.passed.resent.push(now);
            }
            let from = self.flying.partition_point(|f| f.end <= start);
            let same = self.flying.range_mut(from..);
            for f in same.take_while(|f| f.start < end) {
                f.again = true;
                f.delivered = self.delivered;
            }
        }
        if end > self.nxt {
            self.flying.push_back(Flying {
                start: start.max(self.nxt),
                end,
                at: now,
                delivered: self.delivered,
                again,
                sacked: false,
            });
            self.nxt = end;
        }
        let flight = (self.nxt - self.una) as f64 / self.mss as f64;
        let number = start / self.mss;
        let drops = self.drops.as_mut();
        let lost = drops.is_some_and(|d| d.drops(now, number, again, flight));
        self.passed.totals.dropped += u64::from(lost);
        lost
    }

    fn arrival(&mut self, now: Time, header: &Header<'_>) -> bool {
        let Some(start) = self.number(header.seq, self.highest) else {
            return false;
        };
        let (number, again) = (start / self.mss, start < self.highest);
        let drops = self.arrival_drops.as_mut();
        if drops.is_some_and(|d| d.drops(now, number, again, f64::INFINITY)) {
            self.passed.totals.dropped += 1;
            return true;
        }
        self.intervals.on_arrival(now, &self.counts);
        let end = start + header.payload;
        let mut new = 0;
        self.got
            .insert(Range { start, end }, |range| new += range.len());
        self.counts.arrived += 1;
        self.counts.duplicates += u64::from(new == 0);
        self.new_bytes += new;
        // The last segment of a transfer is shorter.
        self.counts.delivered = self.new_bytes.div_ceil(self.mss);
        self.highest = self.highest.max(end);
        false
    }

    /// `counts`: the round trip is of the measured part.
    fn ack(&mut self, now: Time, header: &Header<'_>, counts: bool) {
        if header.flags & flag::SYN != 0 || header.flags & ACK == 0 {
            return;
        }
        let Some(cum) = self.number(header.ack, self.una) else {
            return;
        };
        self.passed.totals.acks += 1;
        // FIN has a number, too.
        let cum = cum.min(self.nxt);
        let (mut sample, mut newest) = (None, None);
        while let Some(f) = self.flying.front()
            && f.end <= cum
        {
            if !f.sacked {
                self.delivered += f.end - f.start;
                newest = newest.max(Some(f.delivered));
                if !f.again && sample.is_none() {
                    sample = Some(f.at);
                }
            }
            self.flying.pop_front();
        }
        self.una = self.una.max(cum);
        let mut oldest: Option<Time> = None;
        for (start, end) in header.sacks() {
            let Some((start, end)) = self.block(start, end) else {
                continue;
            };
            let (at, left) = self.newly_sacked(start, end);
            newest = newest.max(left);
            oldest = [oldest, at].into_iter().flatten().min();
        }
        if let Some(at) = sample.or(oldest).filter(|_| counts) {
            self.passed.rtt.record(now - at);
        }
        if newest.is_some_and(|delivered| delivered >= self.round_at) {
            self.round_at = self.delivered;
            self.passed.rounds.push((now, self.delivered / self.mss));
        }
        if self.passed.completed.is_none() && self.transfer.is_some_and(|t| self.una >= t) {
            self.passed.completed = Some(now);
        }
    }

    /// A block of SACK above what is acknowledged, as numbers.
    fn block(&self, start: u32, end: u32) -> Option<(u64, u64)> {
        let start = self.number(start, self.una)?;
        let end = self.number(end, self.una)?;
        (start >= self.una && start < end && end <= self.nxt).then_some((start, end))
    }

    /// Marks what of a block was not marked, from its end down to what was: the earliest departure
    /// of those that were sent once, and what was delivered when the latest of all left.
    fn newly_sacked(&mut self, start: u64, end: u64) -> (Option<Time>, Option<u64>) {
        let until = self.flying.partition_point(|f| f.end <= end);
        let (mut oldest, mut newest) = (None, None);
        for f in self.flying.range_mut(..until).rev() {
            if f.start < start || f.sacked {
                break;
            }
            f.sacked = true;
            self.delivered += f.end - f.start;
            newest = newest.max(Some(f.delivered));
            if !f.again {
                oldest = Some(f.at);
            }
        }
        (oldest, newest)
    }

    fn finish(mut self, end: Time) -> Passed {
        let counts = self.counts;
        let before = self.before_measuring.unwrap_or(counts);
        let totals = &mut self.passed.totals;
        totals.delivered = counts.delivered;
        totals.duplicates = counts.duplicates;
        totals.out_of_order = counts.out_of_order;
        totals.delivered_measured = counts.delivered - before.delivered;
        totals.arrived_measured = counts.arrived - before.arrived;
        self.passed.arrivals = self.intervals.finish(end, &counts);
        self.passed
    }
}

/// Flag ACK of TCP.
const ACK: u8 = 0x10;
