//! A transmitter whose capacity changes over time in a way known in advance: rates that hold piece
//! by piece, or the delivery opportunities of a trace. When a packet is done follows in closed form
//! from when it may begin.

use std::sync::Arc;

use fullpipe_run::{Change, DeliveryTrace, LinkSpec};
use fullpipe_units::{Span, Time};

/// Nanoseconds of a millisecond, the unit of a trace.
const MS: u64 = 1_000_000;
/// Bit-nanoseconds per second that a byte costs: a rate in bit/s does `rate` of them in a
/// nanosecond.
const WORK: u64 = 8_000_000_000;
/// A rate that takes no time.
const UNLIMITED: u64 = u64::MAX;

/// Position of a transmitter in its schedule or trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the last packet is done, or when the next one may begin.
    pub at: Time,
    /// Repetition of the trace.
    turn: u64,
    /// Piece of the rates, or opportunity within the trace.
    index: usize,
    /// Rates: work not done at `at`, less than a nanosecond's. Trace: bytes left of the
    /// opportunity.
    rest: u64,
}

#[derive(Clone, Debug)]
enum Capacity {
    /// Begin and rate of each piece, bits per second; the first begins at zero.
    Rates(Vec<(Time, u64)>),
    Trace(Opportunities),
}

/// The opportunities of a trace, in time.
#[derive(Clone, Debug)]
struct Opportunities(Arc<DeliveryTrace>);

/// A transmitter and its last packet.
#[derive(Clone, Debug)]
pub struct Transmitter {
    capacity: Capacity,
    last: Cursor,
}

impl Transmitter {
    /// The transmitter of a link; `None` if the link only delays.
    pub fn new(spec: &LinkSpec) -> Option<Self> {
        let capacity = match &spec.trace {
            Some(trace) => Capacity::Trace(Opportunities(Arc::clone(trace))),
            None => Capacity::Rates(pieces(spec)?),
        };
        let last = match &capacity {
            Capacity::Rates(_) => Cursor {
                at: Time::ZERO,
                turn: 0,
                index: 0,
                rest: 0,
            },
            Capacity::Trace(trace) => trace.at(0, 0),
        };
        Some(Self { capacity, last })
    }

    /// When a packet that comes now may begin; [`Time::MAX`]: never.
    pub fn start(&self, now: Time) -> Cursor {
        match &self.capacity {
            Capacity::Rates(pieces) => {
                let from = if self.last.at > now {
                    self.last
                } else {
                    // An idle transmitter keeps no fraction.
                    Cursor {
                        at: now,
                        rest: 0,
                        ..self.last
                    }
                };
                running(pieces, from)
            }
            Capacity::Trace(trace) => {
                let at = trace.time(self.last.turn, self.last.index);
                if at > now {
                    self.follow()
                } else {
                    trace.after(now)
                }
            }
        }
    }

    /// When a packet may begin that waited while the last one was sent.
    pub fn follow(&self) -> Cursor {
        match &self.capacity {
            Capacity::Rates(pieces) => running(pieces, self.last),
            Capacity::Trace(trace) if self.last.rest == 0 => trace.next(self.last),
            Capacity::Trace(_) => self.last,
        }
    }

    /// Where the transmitter stands when a packet that begins at `start` is done.
    pub fn done(&self, start: Cursor, size: u16) -> Cursor {
        match &self.capacity {
            Capacity::Rates(pieces) => done_by_rates(pieces, start, size),
            Capacity::Trace(trace) => done_by_trace(trace, start, size),
        }
    }

    /// The last packet is done there.
    pub fn set(&mut self, done: Cursor) {
        self.last = done;
    }

    /// The rate at time zero, bits per second; a trace's mean.
    pub fn first_rate(&self) -> u64 {
        match &self.capacity {
            Capacity::Rates(pieces) => pieces[0].1,
            Capacity::Trace(trace) => trace.0.mean_rate(),
        }
    }

    /// Later rates and when they begin.
    pub fn rates(&self) -> Vec<(Time, u64)> {
        match &self.capacity {
            Capacity::Rates(pieces) => pieces[1..].to_vec(),
            Capacity::Trace(_) => Vec::new(),
        }
    }

    /// Time that `bytes` take that wait at `at`, by the rate of that time; in an outage by the last
    /// one there was, and if there was none, no time (RFC 8033, 5.2). The first packet has `size`
    /// of them and departs at `first`. `None`: a trace, whose rate nobody knows.
    pub fn known_delay(&self, at: Time, (first, size): (Time, u16), bytes: u64) -> Option<Span> {
        let Capacity::Rates(pieces) = &self.capacity else {
            return None;
        };
        // The first one begins at zero.
        let present = pieces.partition_point(|p| p.0 <= at) - 1;
        if pieces[present].1 > 0 && self.last.at <= end_of(pieces, present) {
            return Some(self.last.at - at);
        }
        let known = pieces[..=present].iter().rev().map(|p| p.1);
        let Some(rate) = known.into_iter().find(|rate| *rate > 0) else {
            return Some(Span::ZERO);
        };
        let mut work = u128::from(bytes) * u128::from(WORK);
        if first < Time::MAX {
            // What is left of the first packet is what is done until it departs.
            work -= u128::from(size) * u128::from(WORK);
            for (i, (begin, rate)) in pieces.iter().enumerate().skip(present) {
                let part = end_of(pieces, i)
                    .min(first)
                    .saturating_since((*begin).max(at));
                work += u128::from(*rate) * u128::from(part.as_nanos());
            }
        }
        let nanos = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
        Some(Span::from_nanos(nanos))
    }

    /// Bytes that could be sent after `from` and up to `to`; `None` if nothing limits them.
    pub fn bytes_between(&self, from: Time, to: Time) -> Option<f64> {
        match &self.capacity {
            Capacity::Rates(pieces) => {
                let ends = pieces[1..].iter().map(|p| p.0).chain([Time::MAX]);
                let mut bits = 0.0;
                for ((begin, rate), end) in pieces.iter().zip(ends) {
                    let part = end.min(to).saturating_since((*begin).max(from));
                    if *rate == UNLIMITED && part > Span::ZERO {
                        return None;
                    }
                    bits += *rate as f64 * part.as_secs_f64();
                }
                Some(bits / 8.0)
            }
            Capacity::Trace(trace) => {
                Some(((trace.count(to) - trace.count(from)) * DeliveryTrace::OPPORTUNITY) as f64)
            }
        }
    }
}

/// The rates over time; `None` if there is never one.
fn pieces(spec: &LinkSpec) -> Option<Vec<(Time, u64)>> {
    let changes = || {
        let change = |c: &Change| c.rate.map(|rate| (c.at, rate.as_bits_per_sec()));
        spec.schedule.iter().filter_map(change)
    };
    if spec.rate.is_none() && changes().next().is_none() {
        return None;
    }
    let first = spec.rate.map_or(UNLIMITED, |r| r.as_bits_per_sec());
    Some([(Time::ZERO, first)].into_iter().chain(changes()).collect())
}

/// End of a piece of the rates.
fn end_of(pieces: &[(Time, u64)], index: usize) -> Time {
    pieces.get(index + 1).map_or(Time::MAX, |p| p.0)
}

/// The first time from `c` on with a rate above zero; the fraction is kept over an outage.
fn running(pieces: &[(Time, u64)], mut c: Cursor) -> Cursor {
    while c.at < Time::MAX && (end_of(pieces, c.index) <= c.at || pieces[c.index].1 == 0) {
        c.at = c.at.max(end_of(pieces, c.index));
        c.index = (c.index + 1).min(pieces.len() - 1);
    }
    c
}

/// Integrates the rate until the packet's work is done.
fn done_by_rates(pieces: &[(Time, u64)], mut c: Cursor, size: u16) -> Cursor {
    // Below 2^50 for the packet; the fraction is below one nanosecond of some rate.
    let mut work = u64::from(size) * WORK + c.rest;
    loop {
        c = running(pieces, c);
        let (rate, end) = (pieces[c.index].1, end_of(pieces, c.index));
        if c.at == Time::MAX || rate == UNLIMITED {
            c.rest = 0;
            return c;
        }
        let done_at = c.at + Span::from_nanos(work / rate);
        if done_at <= end {
            c.at = done_at;
            c.rest = work % rate;
            return c;
        }
        // Less than `work`, so it does not overflow.
        work -= rate * (end - c.at).as_nanos();
        c.at = end;
    }
}

/// Takes opportunities until the packet's bytes are sent.
fn done_by_trace(trace: &Opportunities, mut c: Cursor, size: u16) -> Cursor {
    let mut bytes = u64::from(size);
    while bytes > c.rest {
        bytes -= c.rest;
        c = trace.next(c);
    }
    c.rest -= bytes;
    c
}

impl Opportunities {
    fn period(&self) -> u64 {
        self.0
            .opportunities
            .last()
            .map_or(1, |ms| u64::from(*ms))
            .max(1)
            * MS
    }

    fn time(&self, turn: u64, index: usize) -> Time {
        let within = self
            .0
            .opportunities
            .get(index)
            .map_or(0, |ms| u64::from(*ms))
            * MS;
        Time::from_nanos(turn * self.period() + within)
    }

    fn at(&self, turn: u64, index: usize) -> Cursor {
        Cursor {
            at: self.time(turn, index),
            turn,
            index,
            rest: DeliveryTrace::OPPORTUNITY,
        }
    }

    /// The opportunity after this one, untouched.
    fn next(&self, c: Cursor) -> Cursor {
        if c.index + 1 < self.0.opportunities.len() {
            self.at(c.turn, c.index + 1)
        } else {
            self.at(c.turn + 1, 0)
        }
    }

    /// The first opportunity after `now`: one at the very time of a packet's arrival is gone, as in
    /// mahimahi.
    fn after(&self, now: Time) -> Cursor {
        let (turn, within) = (
            now.as_nanos() / self.period(),
            now.as_nanos() % self.period(),
        );
        let index = self.passed(within);
        // The last one lies at the end of the period, beyond `within`.
        self.at(
            turn,
            index.min(self.0.opportunities.len().saturating_sub(1)),
        )
    }

    /// Opportunities of one period up to a time within it.
    fn passed(&self, within: u64) -> usize {
        self.0
            .opportunities
            .partition_point(|ms| u64::from(*ms) * MS <= within)
    }

    /// Opportunities up to a time, those at zero included.
    fn count(&self, to: Time) -> u64 {
        let turns = to.as_nanos() / self.period();
        turns * self.0.opportunities.len() as u64
            + self.passed(to.as_nanos() % self.period()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_run::Buffer;
    use fullpipe_units::Rate;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn by_rates(first: Option<u64>, changes: &[(u64, u64)]) -> Transmitter {
        let rate = first.map(Rate::from_bits_per_sec);
        let mut spec = LinkSpec::new("x", rate, Span::ZERO, Buffer::Unlimited);
        let change = |&(at, rate)| Change {
            at: us(at),
            rate: Some(Rate::from_bits_per_sec(rate)),
            delay: None,
            loss: None,
        };
        spec.schedule = changes.iter().map(change).collect();
        Transmitter::new(&spec).unwrap()
    }

    fn by_trace(ms: &[u32]) -> Transmitter {
        let mut spec = LinkSpec::pure_delay("x", Span::ZERO);
        spec.trace = Some(Arc::new(DeliveryTrace {
            opportunities: ms.to_vec(),
        }));
        Transmitter::new(&spec).unwrap()
    }

    fn send(t: &mut Transmitter, now: Time, size: u16) -> (Time, Time) {
        let start = t.start(now);
        let done = t.done(start, size);
        t.set(done);
        (start.at, done.at)
    }

    /// 12 Mbit/s, then 3 Mbit/s from 0.5 ms: half of the packet took 0.5 ms, the other half takes 2
    /// ms.
    #[test]
    fn a_packet_goes_on_at_the_new_rate() {
        let mut t = by_rates(
            Some(12_000_000),
            &[(500, 3_000_000), (10_000, 0), (20_000, 12_000_000)],
        );
        assert_eq!(send(&mut t, us(0), 1500), (us(0), us(2500)));
        // 4 ms each: until 6.5 ms, then 3.5 of 4 ms before the outage and an eighth, at 12 Mbit/s,
        // after it.
        assert_eq!(send(&mut t, us(0), 1500), (us(2500), us(6500)));
        assert_eq!(send(&mut t, us(0), 1500), (us(6500), us(20_125)));
        assert_eq!(send(&mut t, us(30_000), 1500), (us(30_000), us(31_000)));
        let mut t = by_rates(Some(12_000_000), &[(500, 0)]);
        assert_eq!(send(&mut t, us(600), 1500), (Time::MAX, Time::MAX));
        assert_eq!(send(&mut t, us(700), 1500).1, Time::MAX);
    }

    #[test]
    fn packets_in_an_outage_begin_at_its_end() {
        let mut t = by_rates(Some(12_000_000), &[(1000, 0), (5000, 12_000_000)]);
        assert_eq!(send(&mut t, us(2000), 1500), (us(5000), us(6000)));
        assert_eq!(send(&mut t, us(2000), 1500), (us(6000), us(7000)));
    }

    #[test]
    fn before_the_first_rate_no_delay_is_known() {
        let mut t = by_rates(Some(0), &[(3000, 12_000_000)]);
        assert_eq!(send(&mut t, us(0), 1500), (us(3000), us(4000)));
        assert_eq!(send(&mut t, us(0), 1500), (us(4000), us(5000)));
        let known = |at| t.known_delay(us(at), (us(4000), 1500), 3000);
        assert_eq!(known(0), Some(Span::ZERO));
        assert_eq!(known(3500), Some(Span::from_micros(1500)));
    }

    #[test]
    fn no_rate_takes_no_time_until_there_is_one() {
        let mut t = by_rates(None, &[(1000, 12_000_000)]);
        assert_eq!(send(&mut t, us(10), 1500), (us(10), us(10)));
        assert_eq!(send(&mut t, us(1000), 1500), (us(1000), us(2000)));
        assert_eq!(t.bytes_between(us(0), us(3000)), None);
        assert_eq!(t.bytes_between(us(1000), us(3000)), Some(3000.0));
    }

    /// A million packets of 1 byte at 7 bit/ns and 3 bit/ns: the fractions add up, over a change
    /// too.
    #[test]
    fn no_fraction_is_lost() {
        let mut t = by_rates(Some(7_000_000_000), &[(1, 3_000_000_000)]);
        let last = (0..10_000).map(|_| send(&mut t, us(0), 1).1).last();
        // 80 000 bits: 7000 in the first microsecond, 73 000 at 3 bit/ns.
        assert_eq!(last, Some(Time::from_nanos(1000 + 73_000 / 3)));
    }

    #[test]
    fn opportunities_are_shared_spanned_and_lost() {
        let mut t = by_trace(&[2, 2, 10]);
        // Two at 2 ms; the third packet takes what the first two left and a part of the one at 10
        // ms.
        assert_eq!(send(&mut t, us(0), 1500), (us(2000), us(2000)));
        assert_eq!(send(&mut t, us(0), 1500), (us(2000), us(2000)));
        assert_eq!(send(&mut t, us(0), 1500), (us(2000), us(10_000)));
        // 12 B are left of it.
        assert_eq!(send(&mut t, us(0), 12), (us(10_000), us(10_000)));
        assert_eq!(send(&mut t, us(0), 1), (us(12_000), us(12_000)));
        // Those at 12 ms are gone for a packet that comes then; 9000 B take six.
        assert_eq!(send(&mut t, us(12_000), 9000), (us(20_000), us(32_000)));
        assert_eq!(t.bytes_between(us(0), us(2000)), Some(2.0 * 1504.0));
        assert_eq!(t.bytes_between(us(2000), us(22_000)), Some(6.0 * 1504.0));
    }

    /// Three million opportunities within a second.
    #[test]
    fn the_mean_rate_of_a_long_trace_fits() {
        let opportunities: Vec<u32> = (0..3_000_000).map(|i| i / 3000 + 1).collect();
        assert_eq!(by_trace(&opportunities).first_rate(), 3_000_000 * 1504 * 8);
    }

    #[test]
    fn an_opportunity_at_zero_repeats_with_the_period() {
        let mut t = by_trace(&[0, 5]);
        assert_eq!(send(&mut t, us(0), 1504).1, us(5000));
        assert_eq!(send(&mut t, us(0), 1504).1, us(5000));
        assert_eq!(send(&mut t, us(0), 1504).1, us(10_000));
    }
}
