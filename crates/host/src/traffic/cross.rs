//! Datagrams without congestion control, answered or not: when the next one leaves, and what became
//! of those that left.

use fullpipe_run::{
    ComponentRng, CrossOutcome, CrossSpec, Departures, Histogram, RunSpec, Spacing,
    traffic::{Integral, PerInterval, amount},
};
use fullpipe_units::{Span, Time};

/// Cross traffic of a run.
#[derive(Debug)]
pub struct Cross {
    name: String,
    /// Bytes of a datagram on the wire.
    packet: u16,
    answered: bool,
    start: Time,
    /// No datagram at or after this time.
    until: Time,
    law: Law,
    /// When the next datagram leaves; [`Time::MAX`]: never.
    next: Time,
    measure_from: Time,
    unloaded: Span,
    sent: u64,
    arrived: u64,
    /// Datagrams and answers dropped on the way.
    pub dropped: u64,
    sent_measured: u64,
    arrived_measured: u64,
    last_arrival: Time,
    /// One more than the highest number that arrived.
    highest: u64,
    delay: Histogram,
    sent_per_interval: PerInterval,
    arrived_per_interval: PerInterval,
    series: Vec<(Time, Span)>,
    seen: Seen,
}

/// The running form of [`Departures`].
#[derive(Debug)]
enum Law {
    /// The n-th when the integral of the rate reaches n datagrams, or the n-th point of a Poisson
    /// process in that measure.
    Rate {
        integral: Integral,
        /// Draws the gaps of a Poisson process.
        gaps: Option<ComponentRng>,
        /// Amount at which the next datagram leaves.
        work: u128,
    },
    /// Each so long after the one before was due: lateness does not add up.
    Every(Span),
}

impl Cross {
    /// Traffic of the run, which sends nothing before [`Cross::begin`].
    pub fn new(s: &CrossSpec, spec: &RunSpec) -> Self {
        let rng = |what: &str| ComponentRng::new(spec.seed, &format!("{} {what}", s.name));
        let links = s.routes().flatten();
        let unloaded = links
            .filter_map(|l| spec.links.get(*l))
            .map(|l| l.unloaded(s.packet, spec.seed))
            .fold(Span::ZERO, |a, b| a + b);
        Self {
            name: s.name.clone(),
            packet: s.packet,
            answered: s.answered,
            start: s.start,
            until: s.stop.unwrap_or(Time::MAX).min(spec.after_end()),
            law: match &s.departures {
                Departures::Rate(waveform, spacing) => Law::Rate {
                    integral: Integral::new(waveform, rng("waveform")),
                    gaps: (*spacing == Spacing::Poisson).then(|| rng("gaps")),
                    work: 0,
                },
                Departures::Every(interval) => Law::Every((*interval).max(Span::from_nanos(1))),
            },
            next: Time::MAX,
            measure_from: spec.measure_from,
            unloaded,
            sent: 0,
            arrived: 0,
            dropped: 0,
            sent_measured: 0,
            arrived_measured: 0,
            last_arrival: Time::ZERO,
            highest: 0,
            delay: Histogram::default(),
            sent_per_interval: PerInterval::new(spec.interval),
            arrived_per_interval: PerInterval::new(spec.interval),
            series: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// It sends from this host: when the first datagram leaves.
    pub fn begin(&mut self) -> Option<Time> {
        self.next = self.after(None);
        (self.next < Time::MAX).then_some(self.next)
    }

    /// When the next datagram leaves; [`Time::MAX`]: none does.
    #[inline]
    pub fn next_departure(&self) -> Time {
        self.next
    }

    /// When a datagram leaves after that which was due at `last`.
    fn after(&mut self, last: Option<Time>) -> Time {
        match &mut self.law {
            Law::Rate {
                integral,
                gaps,
                work,
            } => {
                let one = amount(u64::from(self.packet) * 8);
                *work += match gaps {
                    None => one,
                    Some(rng) => (one as f64 * rng.exponential()) as u128,
                };
                let limit = self.until.saturating_since(self.start).as_nanos();
                let after = integral.reaches(*work, limit);
                after.map_or(Time::MAX, |ns| self.start + Span::from_nanos(ns))
            }
            Law::Every(interval) => {
                let at = last.map_or(self.start, |last| last + *interval);
                if at < self.until { at } else { Time::MAX }
            }
        }
    }

    /// A datagram leaves; its number. The next one's time is known from now on.
    pub fn depart(&mut self, now: Time) -> u64 {
        let number = self.sent;
        self.sent += 1;
        self.sent_measured += u64::from(now >= self.measure_from);
        if !self.answered {
            self.sent_per_interval.add(now, 1);
        }
        self.next = self.after(Some(self.next));
        number
    }

    /// Bytes of a datagram on the wire.
    pub fn packet(&self) -> u16 {
        self.packet
    }

    /// The far host answers.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Datagrams that are missing before the last one that arrived (as RFC 3550 appendix A.3
    /// counts).
    pub fn missing(&self) -> u64 {
        self.highest.saturating_sub(self.arrived)
    }

    /// Checks conservation with `inside` datagrams and answers in the network.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub fn check(&self, inside: u64) -> Result<(), String> {
        if self.sent != self.arrived + self.dropped + inside {
            return Err(format!(
                "traffic {}: sent {} is not arrived {} + dropped {} + in the network {inside}",
                self.name, self.sent, self.arrived, self.dropped
            ));
        }
        Ok(())
    }

    /// Datagram `number` arrives, or its answer, after `delay` if that is known.
    pub fn arrive(&mut self, now: Time, number: u64, delay: Option<Span>) {
        self.arrived += 1;
        self.highest = self.highest.max(number.saturating_add(1));
        self.last_arrival = now;
        if self.answered {
            self.series.extend(delay.map(|rtt| (now, rtt)));
        } else {
            self.arrived_per_interval.add(now, 1);
        }
        if now >= self.measure_from {
            self.arrived_measured += 1;
            if let Some(delay) = delay {
                self.delay.record(delay);
            }
        }
    }

    /// True for the answer to a datagram that was sent, the first time that it comes: for networks
    /// that make copies.
    pub fn is_news(&mut self, number: u64) -> bool {
        number < self.sent && self.seen.is_first(number)
    }

    /// What became of it, at the end of the run.
    pub fn finish(self, end: Time) -> CrossOutcome {
        let counts = |per: PerInterval| match self.answered {
            true => Vec::new(),
            false => per.finish(end),
        };
        CrossOutcome {
            name: self.name,
            packet: u32::from(self.packet),
            answered: self.answered,
            sent: self.sent,
            arrived: self.arrived,
            dropped: self.dropped,
            arrived_measured: self.arrived_measured,
            sent_measured: self.sent_measured,
            last_arrival: self.last_arrival,
            delay: self.delay,
            unloaded: self.unloaded,
            sent_per_interval: counts(self.sent_per_interval),
            arrived_per_interval: counts(self.arrived_per_interval),
            series: self.series,
        }
    }
}

/// Numbers that have come, each of which counts once. One may overtake others: as many of them as
/// the window is long still count.
#[derive(Debug, Default)]
struct Seen {
    /// One more than the highest.
    next: u64,
    /// Bit i: number `next - 1 - i` has come.
    window: u128,
}

impl Seen {
    /// Whether `number` comes for the first time.
    fn is_first(&mut self, number: u64) -> bool {
        if number >= self.next {
            let shift = u32::try_from(number - self.next + 1).unwrap_or(u32::MAX);
            self.window = self.window.checked_shl(shift).unwrap_or(0) | 1;
            self.next = number + 1;
            return true;
        }
        let behind = u32::try_from(self.next - 1 - number).unwrap_or(u32::MAX);
        let bit = 1u128.checked_shl(behind).unwrap_or(0);
        let first = bit != 0 && self.window & bit == 0;
        self.window |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overtaken_counts_and_nothing_counts_twice() {
        let mut seen = Seen::default();
        let mut first = |number| seen.is_first(number);
        assert!(first(0) && !first(0));
        assert!(first(5) && first(2) && first(4) && !first(2) && !first(5));
        assert!(first(130) && first(3) && !first(5));
        // Too far behind to be known.
        assert!(!first(2));
        assert!(first(10_000) && !first(131) && first(9_999) && !first(9_999));
    }
}
