//! Traffic that is not a flow: datagrams of sources, and round-trip probes, at the host where they leave and at the other.

use fullpipe_run::{PingOutcome, RunSpec, SourceOutcome};
use fullpipe_sim::traffic::{Ping, Source};
use fullpipe_units::{Span, Time};

use super::{Plan, Side};
use crate::headers;
use crate::wire::{AckDatagram, CrossDatagram, ProbeDatagram};

/// One end of a source of datagrams.
#[derive(Debug)]
pub struct Crossing {
    /// Where they are counted.
    pub source: Source,
    /// When the next one leaves, here; [`Time::MAX`]: none does.
    pub next: Time,
    /// Bytes of a datagram's payload.
    pub size: usize,
    /// One more than the highest number that arrived here.
    highest: u64,
}

/// One end of a sequence of probes.
#[derive(Debug)]
pub struct Probing {
    /// Where they are counted.
    pub ping: Ping,
    /// When the next one leaves, here; [`Time::MAX`]: none does.
    pub next: Time,
    /// Bytes of a probe's payload.
    pub size: usize,
    /// Which probes are answered.
    answered: Answered,
}

/// Of all sources of the run; they leave from the near side. Packets are as long as they are to be with what the port adds.
pub fn sources(spec: &RunSpec, side: Side, overhead: usize) -> Vec<Crossing> {
    let numbered = spec.sources.iter().enumerate();
    numbered
        .map(|(i, s)| {
            let mut source = Source::new(i, s, spec);
            let next = match side {
                Side::Near => source.next_departure(),
                Side::Far => None,
            };
            Crossing {
                source,
                next: next.unwrap_or(Time::MAX),
                size: usize::from(s.packet)
                    .saturating_sub(headers::IPV4 + overhead)
                    .max(CrossDatagram::LEN),
                highest: 0,
            }
        })
        .collect()
}

/// Of all sequences of probes; they leave from the near side.
pub fn pings(spec: &RunSpec, side: Side, overhead: usize) -> Vec<Probing> {
    let numbered = spec.pings.iter().enumerate();
    numbered
        .map(|(i, p)| {
            let ping = Ping::new(i, p, spec);
            let leaves = side == Side::Near && ping.allows(p.start);
            Probing {
                ping,
                next: if leaves { p.start } else { Time::MAX },
                size: usize::from(p.size)
                    .saturating_sub(headers::IPV4 + overhead)
                    .max(ProbeDatagram::LEN),
                answered: Answered::default(),
            }
        })
        .collect()
}

impl Crossing {
    /// The datagram that is due now, if one is; the next one's time is set.
    pub fn depart(&mut self, now: Time, plan: &Plan, index: usize) -> Option<CrossDatagram> {
        if self.next > now {
            return None;
        }
        self.next = self.source.next_departure().unwrap_or(Time::MAX);
        Some(CrossDatagram {
            session: plan.session,
            source: index as u16,
            number: self.source.depart(now),
            stamp: now,
        })
    }

    /// A datagram of `len` bytes has arrived. Its delay is known only if both hosts have one clock.
    pub fn arrive(
        &mut self,
        now: Time,
        datagram: &CrossDatagram,
        len: usize,
        plan: &Plan,
    ) -> Option<()> {
        if plan.side == Side::Near || len != self.size {
            return None;
        }
        let delay = plan.shared_clock.then(|| age(now, datagram.stamp));
        self.source.arrive(now, delay);
        self.highest = self.highest.max(datagram.number.saturating_add(1));
        Some(())
    }

    /// What is known at this end: where datagrams arrive, those that are missing before the last one are dropped (as RFC 3550
    /// appendix A.3 counts).
    pub fn outcome(self, ended: Time) -> SourceOutcome {
        let mut outcome = self.source.outcome(ended);
        outcome.dropped = outcome
            .dropped
            .max(self.highest.saturating_sub(outcome.arrived));
        outcome
    }
}

impl Probing {
    /// The probe that is due now, if one is; the next one's time is set.
    pub fn depart(&mut self, now: Time, plan: &Plan, index: usize) -> Option<ProbeDatagram> {
        if self.next > now {
            return None;
        }
        // From when it was due, so that lateness does not add up.
        self.next = self.ping.next_departure(self.next).unwrap_or(Time::MAX);
        Some(ProbeDatagram {
            session: plan.session,
            probe: index as u16,
            number: self.ping.depart(),
            stamp: now,
            echo: false,
        })
    }

    /// An answer of `len` bytes is back.
    pub fn answered(&mut self, now: Time, probe: &ProbeDatagram, len: usize) -> Option<Span> {
        let known = len == self.size && probe.number < self.ping.sent();
        if !known || !self.answered.is_first(probe.number) {
            return None;
        }
        let rtt = age(now, probe.stamp);
        self.ping.answered(now, rtt);
        Some(rtt)
    }

    /// What is known here: probes before the last that was answered are lost if they were not.
    pub fn outcome(self) -> PingOutcome {
        let mut outcome = self.ping.outcome();
        outcome.lost = self
            .answered
            .next
            .saturating_sub(outcome.series.len() as u64);
        outcome
    }
}

/// Numbers that have come, each of which counts once. One may overtake others: as many of them as the window is long still count.
#[derive(Debug, Default)]
struct Answered {
    /// One more than the highest.
    next: u64,
    /// Bit i: number `next - 1 - i` has come.
    window: u128,
}

impl Answered {
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

/// How old a time stamp of the wire is, by this host's clock.
fn age(now: Time, stamp: Time) -> Span {
    now.saturating_since(AckDatagram::unwrap_echo(now, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overtaken_counts_and_nothing_counts_twice() {
        let mut answered = Answered::default();
        let mut first = |number| answered.is_first(number);
        assert!(first(0) && !first(0));
        assert!(first(5) && first(2) && first(4) && !first(2) && !first(5));
        assert!(first(130) && first(3) && !first(5));
        // Too far behind to be known.
        assert!(!first(2));
        assert!(first(10_000) && !first(131) && first(9_999) && !first(9_999));
    }
}
