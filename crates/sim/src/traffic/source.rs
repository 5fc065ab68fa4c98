//! A source of datagrams: the n-th leaves when the integral of the rate reaches n datagrams, or the n-th point of a Poisson
//! process in that measure.

use fullpipe_run::{
    ComponentRng, Histogram, RunSpec, SourceOutcome, SourceSpec, Spacing,
    traffic::{Integral, PerInterval, amount},
};
use fullpipe_units::{Span, Time};

use crate::packet::Packet;

/// A running source.
#[derive(Debug)]
pub struct Source {
    name: String,
    index: u32,
    packet: u16,
    forward: Vec<u32>,
    start: Time,
    /// No datagram at or after this time.
    until: Time,
    integral: Integral,
    /// Draws the gaps of a Poisson process.
    gaps: Option<ComponentRng>,
    /// Amount at which the next datagram leaves.
    work: u128,
    measure_from: Time,
    sent: u64,
    arrived: u64,
    /// Datagrams dropped on the way.
    pub dropped: u64,
    sent_measured: u64,
    arrived_measured: u64,
    last_arrival: Time,
    delay: Histogram,
    sent_per_interval: PerInterval,
    arrived_per_interval: PerInterval,
}

impl Source {
    /// Number `index` of the run.
    pub fn new(index: usize, s: &SourceSpec, spec: &RunSpec) -> Self {
        let rng = |what: &str| ComponentRng::new(spec.seed, &format!("{} {what}", s.name));
        Self {
            name: s.name.clone(),
            index: index as u32,
            packet: s.packet,
            forward: s.forward.iter().map(|l| *l as u32).collect(),
            start: s.start,
            until: s.stop.unwrap_or(Time::MAX).min(spec.after_end()),
            integral: Integral::new(&s.waveform, rng("waveform")),
            gaps: (s.spacing == Spacing::Poisson).then(|| rng("gaps")),
            work: 0,
            measure_from: spec.measure_from,
            sent: 0,
            arrived: 0,
            dropped: 0,
            sent_measured: 0,
            arrived_measured: 0,
            last_arrival: Time::ZERO,
            delay: Histogram::default(),
            sent_per_interval: PerInterval::new(spec.interval),
            arrived_per_interval: PerInterval::new(spec.interval),
        }
    }

    /// Links that its datagrams cross.
    pub fn forward(&self) -> &[u32] {
        &self.forward
    }

    /// When the next datagram leaves; `None`: there is none.
    pub fn next_departure(&mut self) -> Option<Time> {
        let one = amount(u64::from(self.packet) * 8);
        self.work += match &mut self.gaps {
            None => one,
            Some(rng) => (one as f64 * rng.exponential()) as u128,
        };
        let limit = self.until.saturating_since(self.start).as_nanos();
        let after = self.integral.reaches(self.work, limit)?;
        Some(Time::from_nanos(self.start.as_nanos() + after))
    }

    /// A datagram leaves.
    pub(crate) fn send(&mut self, now: Time) -> Packet {
        Packet::datagram(self.index, self.packet, self.depart(now), now)
    }

    /// A datagram leaves; its number.
    pub fn depart(&mut self, now: Time) -> u64 {
        let number = self.sent;
        self.sent += 1;
        self.sent_measured += u64::from(now >= self.measure_from);
        self.sent_per_interval.add(now, 1);
        number
    }

    /// A datagram arrives, after `delay` if that is known.
    pub fn arrive(&mut self, now: Time, delay: Option<Span>) {
        self.arrived += 1;
        self.last_arrival = now;
        self.arrived_per_interval.add(now, 1);
        if now >= self.measure_from {
            self.arrived_measured += 1;
            if let Some(delay) = delay {
                self.delay.record(delay);
            }
        }
    }

    /// Checks conservation with `inside` datagrams in the network and returns the result.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub(crate) fn finish(self, end: Time, inside: u64) -> Result<SourceOutcome, String> {
        if self.sent != self.arrived + self.dropped + inside {
            return Err(format!(
                "source {}: sent {} is not arrived {} + dropped {} + in the network {inside}",
                self.name, self.sent, self.arrived, self.dropped
            ));
        }
        Ok(self.outcome(end))
    }

    /// What is counted here, where perhaps only one end of the path is.
    pub fn outcome(self, end: Time) -> SourceOutcome {
        SourceOutcome {
            name: self.name,
            packet: u32::from(self.packet),
            sent: self.sent,
            arrived: self.arrived,
            dropped: self.dropped,
            arrived_measured: self.arrived_measured,
            sent_measured: self.sent_measured,
            last_arrival: self.last_arrival,
            delay: self.delay,
            sent_per_interval: self.sent_per_interval.finish(end),
            arrived_per_interval: self.arrived_per_interval.finish(end),
        }
    }
}
