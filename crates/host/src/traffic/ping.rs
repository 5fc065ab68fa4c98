//! Round-trip probes: a request every interval, answered at once.

use fullpipe_run::{Histogram, PingOutcome, PingSpec, RunSpec};
use fullpipe_units::{Span, Time};

/// A running sequence of probes.
#[derive(Debug)]
pub struct Ping {
    name: String,
    /// Bytes of a packet on the wire.
    size: u16,
    interval: Span,
    /// No request at or after this time.
    until: Time,
    start: Time,
    /// When the next request leaves; [`Time::MAX`]: none does.
    next: Time,
    measure_from: Time,
    unloaded: Span,
    sent: u64,
    /// Requests and answers dropped on the way.
    pub lost: u64,
    rtt: Histogram,
    series: Vec<(Time, Span)>,
    seen: Seen,
}

impl Ping {
    /// A ping of the run, which sends nothing before [`Ping::begin`].
    pub(crate) fn new(p: &PingSpec, spec: &RunSpec) -> Self {
        let links = p.forward.iter().chain(&p.back);
        let unloaded = links
            .filter_map(|l| spec.links.get(*l))
            .map(|l| l.unloaded(p.size, spec.seed))
            .fold(Span::ZERO, |a, b| a + b);
        Self {
            name: p.name.clone(),
            size: p.size,
            interval: p.interval.max(Span::from_nanos(1)),
            until: p.stop.unwrap_or(Time::MAX).min(spec.after_end()),
            start: p.start,
            next: Time::MAX,
            measure_from: spec.measure_from,
            unloaded,
            sent: 0,
            lost: 0,
            rtt: Histogram::default(),
            series: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// It sends from this host: when the first request leaves.
    pub(crate) fn begin(&mut self) -> Option<Time> {
        let begins = self.start < self.until;
        self.next = if begins { self.start } else { Time::MAX };
        begins.then_some(self.start)
    }

    /// When the next request leaves; [`Time::MAX`]: none does.
    pub fn next_departure(&self) -> Time {
        self.next
    }

    /// A request leaves; its number. The next one is due an interval after this one was due, so
    /// that lateness does not add up.
    pub fn depart(&mut self) -> u64 {
        let at = self.next + self.interval;
        self.next = if at < self.until { at } else { Time::MAX };
        self.sent += 1;
        self.sent - 1
    }

    /// Bytes of a packet on the wire.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Requests so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// An answer is back.
    pub fn answered(&mut self, now: Time, rtt: Span) {
        self.series.push((now, rtt));
        if now >= self.measure_from {
            self.rtt.record(rtt);
        }
    }

    /// True for the answer to a request that was sent, the first time that it comes: for networks
    /// that make copies.
    pub fn is_news(&mut self, number: u64) -> bool {
        number < self.sent && self.seen.is_first(number)
    }

    /// Requests that were not answered, before the last one that was.
    pub fn missing(&self) -> u64 {
        self.seen.next.saturating_sub(self.series.len() as u64)
    }

    /// Checks conservation with `inside` requests and answers in the network.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub fn check(&self, inside: u64) -> Result<(), String> {
        let answered = self.series.len() as u64;
        if self.sent != answered + self.lost + inside {
            return Err(format!(
                "ping {}: sent {} is not answered {answered} + lost {} + in the network {inside}",
                self.name, self.sent, self.lost
            ));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> PingOutcome {
        PingOutcome {
            name: self.name,
            sent: self.sent,
            lost: self.lost,
            rtt: self.rtt,
            unloaded: self.unloaded,
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
