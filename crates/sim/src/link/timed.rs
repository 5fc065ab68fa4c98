//! A first-in-first-out queue in closed form before a [`Transmitter`]: a packet's departure is
//! known when it enters, so nothing is scheduled for it. A discipline that decides at the entry
//! sees the queue as it is then.

use std::collections::VecDeque;

use fullpipe_run::{Buffer, ComponentRng, LinkSpec};
use fullpipe_units::{Span, Time};

use super::meter::Meter;
use super::transmitter::{Cursor, Transmitter};
use crate::aqm::{Backlog, EntryAqm, Verdict};
use crate::packet::Packet;
use crate::ring::Ring;

/// The queue, the packet in transmission included.
#[derive(Debug)]
pub struct Timed {
    transmitter: Transmitter,
    buffer: Buffer,
    /// Departure and size of each packet that has not left.
    waiting: Ring<(Time, u16)>,
    bytes: u64,
    /// Departure of the last packet that has left.
    left: Time,
    aqm: Option<EntryAqm>,
    /// Changes of the rate that the discipline is still to be told, the next one at the back.
    rates: Vec<(Time, u64)>,
    /// Under PIE before a trace.
    stamps: Option<Stamps>,
}

/// When packets came: of a trace PIE knows no rate, and the wait of the packet that left last
/// stands for the delay (RFC 8033, 4.3).
#[derive(Debug, Default)]
struct Stamps {
    /// Of those that wait, and of those that left since the last look.
    came: VecDeque<Time>,
    wait: Span,
}

impl Stamps {
    /// The wait of the last packet that left, when `waiting` are there and the last left at `left`.
    fn wait(&mut self, waiting: u64, left: Time) -> Span {
        while self.came.len() as u64 > waiting
            && let Some(came) = self.came.pop_front()
        {
            self.wait = left - came;
        }
        if waiting == 0 {
            self.wait = Span::ZERO;
        }
        self.wait
    }
}

impl Timed {
    /// An empty queue in the run with `seed`.
    pub fn new(spec: &LinkSpec, seed: u64, transmitter: Transmitter) -> Self {
        let rng = ComponentRng::new(seed, &format!("{} queue", spec.name));
        let mut rates = transmitter.rates();
        rates.reverse();
        let aqm = EntryAqm::new(&spec.discipline, transmitter.first_rate(), rng);
        let stamped = spec.trace.is_some() && matches!(aqm, Some(EntryAqm::Pie(_)));
        Self {
            aqm,
            rates,
            stamps: stamped.then(Stamps::default),
            transmitter,
            buffer: spec.buffer,
            waiting: Ring::new((Time::ZERO, 0)),
            bytes: 0,
            left: Time::ZERO,
        }
    }

    /// When a packet that comes now departs; `None`: it is dropped, which is counted. It may be
    /// marked.
    pub fn enter(&mut self, now: Time, packet: &mut Packet, meter: &mut Meter) -> Option<Time> {
        let verdict = self.judge(now, packet);
        if verdict == Verdict::Drop {
            meter.early_drops += 1;
            return None;
        }
        let start = self.transmitter.start(now);
        let done = self.transmitter.done(start, packet.size());
        if !self.fits(now, packet.size(), done) {
            meter.buffer_drops += 1;
            if let Some(stamps) = &mut self.stamps {
                stamps.came.pop_back();
            }
            return None;
        }
        if verdict == Verdict::Mark {
            packet.mark_ce();
            meter.marks += 1;
        }
        self.transmitter.set(done);
        self.waiting.push((done.at, packet.size()));
        self.bytes += u64::from(packet.size());
        meter.book(now, start.at, done.at, packet.size());
        meter.queue(now, self.waiting.len());
        Some(done.at)
    }

    /// Forgets packets that have left by `now`, and decides about this one.
    fn judge(&mut self, now: Time, packet: &Packet) -> Verdict {
        self.follow(now);
        let delay = match &self.aqm {
            None => return Verdict::Admit,
            Some(EntryAqm::Red(_)) => Span::ZERO,
            Some(EntryAqm::Pie(_)) => self.delay(now),
        };
        let backlog = Backlog {
            packets: self.waiting.len(),
            bytes: self.bytes,
            delay,
            idle_since: self.waiting.is_empty().then_some(self.left),
        };
        let Some(aqm) = &mut self.aqm else {
            return Verdict::Admit;
        };
        while let Some((_, rate)) = self.rates.pop_if(|r| r.0 <= now) {
            aqm.set_rate(rate);
        }
        let verdict = aqm.judge(now, &backlog, packet.is_ect());
        if let (Some(stamps), true) = (&mut self.stamps, verdict != Verdict::Drop) {
            stamps.came.push_back(now);
        }
        verdict
    }

    /// Forgets packets that have left by `now`; the discipline is told the delay at every time that
    /// is due on the way.
    fn follow(&mut self, now: Time) {
        while let Some(at) = self.aqm.as_ref().and_then(|aqm| aqm.due(now)) {
            self.release(at);
            let delay = self.delay(at);
            if let Some(aqm) = &mut self.aqm {
                aqm.update(delay);
            }
        }
        self.release(now);
    }

    /// Time that the packets take that wait at `at`, up to which those that left are forgotten: by
    /// what is known then, for nobody knows of an outage or a change before it comes.
    fn delay(&mut self, at: Time) -> Span {
        let waiting = self.waiting.len();
        if let Some(stamps) = &mut self.stamps {
            return stamps.wait(waiting, self.left);
        }
        let first = self.waiting.front();
        let delay = first.and_then(|first| self.transmitter.known_delay(at, *first, self.bytes));
        delay.unwrap_or(Span::ZERO)
    }

    /// See [`super::Link::room`].
    pub fn room(&mut self, now: Time, size: u16) -> Option<Time> {
        self.follow(now);
        let done = self.transmitter.done(self.transmitter.start(now), size);
        if self.fits(now, size, done) {
            None
        } else {
            self.waiting.front().map(|w| w.0)
        }
    }

    /// Packets that have not left at `now`. They are not forgotten: a discipline may still be to be
    /// told of the queue at a time before.
    pub fn packets(&self, now: Time) -> u64 {
        let left = self.waiting.iter().take_while(|w| w.0 <= now);
        self.waiting.len() - left.count() as u64
    }

    /// What the transmitter could have sent, see [`Transmitter::bytes_between`].
    pub fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// Forgets packets that have left by `now`.
    fn release(&mut self, now: Time) {
        while let Some(&(departs, size)) = self.waiting.front()
            && departs <= now
        {
            self.waiting.pop();
            self.bytes -= u64::from(size);
            self.left = departs;
        }
    }

    fn fits(&self, now: Time, size: u16, done: Cursor) -> bool {
        match self.buffer {
            Buffer::Packets(most) => self.waiting.len() < most,
            Buffer::Bytes(most) => self.bytes + u64::from(size) <= most,
            Buffer::Time(most) => done.at.saturating_since(now) <= most,
            Buffer::Unlimited => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::link::meter::Watch;
    use crate::packet::Kind;
    use fullpipe_run::{Change, DeliveryTrace, Discipline, Pie};
    use fullpipe_units::Rate;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    /// PIE before 12 Mbit/s, a packet per millisecond, with these changes in milliseconds and
    /// Mbit/s.
    fn pie(changes: &[(u64, u64)]) -> LinkSpec {
        let change = |&(ms, rate): &(u64, u64)| Change {
            at: at(ms * 1000),
            rate: Some(mbit(rate)),
            delay: None,
            loss: None,
        };
        LinkSpec {
            discipline: Discipline::Pie(Pie::default()),
            schedule: changes.iter().map(change).collect(),
            ..LinkSpec::new("x", Some(mbit(12)), Span::ZERO, Buffer::Unlimited)
        }
    }

    fn by_trace(opportunities: Vec<u32>) -> LinkSpec {
        LinkSpec {
            trace: Some(Arc::new(DeliveryTrace { opportunities })),
            ..pie(&[])
        }
    }

    fn queue(spec: &LinkSpec) -> (Timed, Meter) {
        let watch = Watch {
            measure_from: Time::ZERO,
            end: at(10_000_000),
            sample_step: Span::MAX,
        };
        let transmitter = Transmitter::new(spec).unwrap();
        (Timed::new(spec, 1, transmitter), Meter::new(spec, &watch))
    }

    /// Which packets are dropped of those that come every `gap` microseconds until `until`
    /// milliseconds.
    fn drops(spec: &LinkSpec, gap: u64, until: u64) -> Vec<u64> {
        let (mut queue, mut meter) = queue(spec);
        let n = 0..until * 1000 / gap;
        n.filter(|n| {
            let now = at(n * gap);
            let mut packet = Packet::cross(0, 1500, Kind::Datagram, *n, now);
            queue.enter(now, &mut packet, &mut meter).is_none()
        })
        .collect()
    }

    /// An outage, a change of the rate and a gap of the opportunities that lie after the last
    /// packet change nothing before it.
    #[test]
    fn pie_knows_nothing_of_what_is_to_come() {
        let steady = drops(&pie(&[]), 900, 1999);
        assert!(steady.len() > 20, "{}", steady.len());
        for changes in [&[(2000, 0), (4000, 12)][..], &[(2000, 1)], &[(2000, 0)]] {
            assert_eq!(drops(&pie(changes), 900, 1999), steady, "{changes:?}");
        }
        let trace = |gap: u32| by_trace((1..2000).chain(2000 + gap..9000).collect());
        let steady = drops(&trace(1), 900, 1999);
        assert!(steady.len() > 20, "{}", steady.len());
        assert_eq!(drops(&trace(2000), 900, 1999), steady);
    }

    /// Ten packets at 12 Mbit/s take 10 ms. In an outage the rate of before holds, after a change
    /// the new one.
    #[test]
    fn the_delay_is_the_backlog_at_the_present_rate() {
        let delays = |changes: &[(u64, u64)], times: &[u64]| {
            let (mut queue, mut meter) = queue(&pie(changes));
            for n in 0..10 {
                let mut packet = Packet::cross(0, 1500, Kind::Datagram, n, Time::ZERO);
                queue.enter(Time::ZERO, &mut packet, &mut meter).unwrap();
            }
            let delay = |micros: &u64| {
                queue.follow(at(*micros));
                queue.delay(at(*micros)).as_nanos() / 1000
            };
            times.iter().map(delay).collect::<Vec<_>>()
        };
        let times = [0, 2500, 4000, 9000, 12_000];
        assert_eq!(delays(&[], &times), [10_000, 7500, 6000, 1000, 0]);
        // An outage from 4 to 8 ms, and one that never ends.
        let outage = [10_000, 7500, 6000, 5000, 2000];
        assert_eq!(delays(&[(4, 0), (8, 12)], &times), outage);
        let end = [10_000, 7500, 6000, 6000, 6000];
        assert_eq!(delays(&[(4, 0)], &times), end);
        // A quarter of the rate from 4 ms on.
        let slow = [10_000, 7500, 24_000, 19_000, 16_000];
        assert_eq!(delays(&[(4, 3)], &times), slow);
    }

    /// An opportunity every 2 ms: the packet that left last waited so long; none where nothing
    /// waits.
    #[test]
    fn before_a_trace_the_delay_is_that_of_the_last_departure() {
        let (mut queue, mut meter) = queue(&by_trace(vec![2]));
        for n in 0..5 {
            let mut packet = Packet::cross(0, 1504, Kind::Datagram, n, at(n * 100));
            queue.enter(at(n * 100), &mut packet, &mut meter).unwrap();
        }
        let delays = [1000, 2000, 5000, 8000, 10_000].map(|micros| {
            queue.follow(at(micros));
            queue.delay(at(micros)).as_nanos() / 1000
        });
        assert_eq!(delays, [0, 2000, 3900, 7700, 0]);
    }
}
