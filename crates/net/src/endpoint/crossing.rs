//! Traffic that is not a flow: datagrams of sources, and round-trip probes, at the host where they leave and at the other.

use fullpipe_sim::RunSpec;
use fullpipe_sim::traffic::{Ping, Source};
use fullpipe_units::{Span, Time};

use super::{Plan, Side};
use crate::wire::{AckDatagram, CrossDatagram, ProbeDatagram};

/// IPv4 and UDP headers.
const HEADERS: usize = 28;

/// One end of a source of datagrams.
#[derive(Debug)]
pub struct Crossing {
    /// Where they are counted.
    pub source: Source,
    /// When the next one leaves, here; [`Time::MAX`]: none does.
    pub next: Time,
    /// Bytes of a datagram's payload.
    pub size: usize,
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
    /// Probes are answered in order, each once: the next number that may be.
    answered: u64,
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
                    .saturating_sub(HEADERS + overhead)
                    .max(CrossDatagram::LEN),
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
                    .saturating_sub(HEADERS + overhead)
                    .max(ProbeDatagram::LEN),
                answered: 0,
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
        Some(())
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
    pub fn answered(&mut self, now: Time, probe: &ProbeDatagram, len: usize) -> Option<()> {
        let expected = self.answered..self.ping.sent();
        if len != self.size || !expected.contains(&probe.number) {
            return None;
        }
        self.answered = probe.number + 1;
        self.ping.answered(now, age(now, probe.stamp));
        Some(())
    }
}

/// How old a time stamp of the wire is, by this host's clock.
fn age(now: Time, stamp: Time) -> Span {
    now.saturating_since(AckDatagram::unwrap_echo(now, stamp))
}
