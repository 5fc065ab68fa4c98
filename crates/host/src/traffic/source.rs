//! A source of datagrams: the n-th leaves when the integral of the rate reaches n datagrams, or the
//! n-th point of a Poisson process in that measure.

use fullpipe_run::{
    ComponentRng, Histogram, RunSpec, SourceOutcome, SourceSpec, Spacing,
    traffic::{Integral, PerInterval, amount},
};
use fullpipe_units::{Span, Time};

/// A running source.
#[derive(Debug)]
pub struct Source {
    name: String,
    /// Bytes of a datagram on the wire.
    packet: u16,
    start: Time,
    /// No datagram at or after this time.
    until: Time,
    integral: Integral,
    /// Draws the gaps of a Poisson process.
    gaps: Option<ComponentRng>,
    /// Amount at which the next datagram leaves.
    work: u128,
    /// When that is; [`Time::MAX`]: never.
    next: Time,
    measure_from: Time,
    sent: u64,
    arrived: u64,
    /// Datagrams dropped on the way.
    pub dropped: u64,
    sent_measured: u64,
    arrived_measured: u64,
    last_arrival: Time,
    /// One more than the highest number that arrived.
    highest: u64,
    delay: Histogram,
    sent_per_interval: PerInterval,
    arrived_per_interval: PerInterval,
}

impl Source {
    /// A source of the run, which sends nothing before [`Source::begin`].
    pub(crate) fn new(s: &SourceSpec, spec: &RunSpec) -> Self {
        let rng = |what: &str| ComponentRng::new(spec.seed, &format!("{} {what}", s.name));
        Self {
            name: s.name.clone(),
            packet: s.packet,
            start: s.start,
            until: s.stop.unwrap_or(Time::MAX).min(spec.after_end()),
            integral: Integral::new(&s.waveform, rng("waveform")),
            gaps: (s.spacing == Spacing::Poisson).then(|| rng("gaps")),
            work: 0,
            next: Time::MAX,
            measure_from: spec.measure_from,
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
        }
    }

    /// It sends from this host: when the first datagram leaves.
    pub(crate) fn begin(&mut self) -> Option<Time> {
        let at = self.after_next();
        self.next = at.unwrap_or(Time::MAX);
        at
    }

    /// When the next datagram leaves; [`Time::MAX`]: none does.
    #[inline]
    pub fn next_departure(&self) -> Time {
        self.next
    }

    fn after_next(&mut self) -> Option<Time> {
        let one = amount(u64::from(self.packet) * 8);
        self.work += match &mut self.gaps {
            None => one,
            Some(rng) => (one as f64 * rng.exponential()) as u128,
        };
        let limit = self.until.saturating_since(self.start).as_nanos();
        let after = self.integral.reaches(self.work, limit)?;
        Some(Time::from_nanos(self.start.as_nanos() + after))
    }

    /// A datagram leaves; its number. The next one's time is known from now on.
    pub fn depart(&mut self, now: Time) -> u64 {
        let number = self.sent;
        self.sent += 1;
        self.sent_measured += u64::from(now >= self.measure_from);
        self.sent_per_interval.add(now, 1);
        self.next = self.after_next().unwrap_or(Time::MAX);
        number
    }

    /// Bytes of a datagram on the wire.
    pub fn packet(&self) -> u16 {
        self.packet
    }

    /// Datagrams that are missing before the last one that arrived (as RFC 3550 appendix A.3
    /// counts).
    pub fn missing(&self) -> u64 {
        self.highest.saturating_sub(self.arrived)
    }

    /// Checks conservation with `inside` datagrams in the network.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub fn check(&self, inside: u64) -> Result<(), String> {
        if self.sent != self.arrived + self.dropped + inside {
            return Err(format!(
                "source {}: sent {} is not arrived {} + dropped {} + in the network {inside}",
                self.name, self.sent, self.arrived, self.dropped
            ));
        }
        Ok(())
    }

    /// Datagram `number` arrives, after `delay` if that is known.
    pub fn arrive(&mut self, now: Time, number: u64, delay: Option<Span>) {
        self.arrived += 1;
        self.highest = self.highest.max(number.saturating_add(1));
        self.last_arrival = now;
        self.arrived_per_interval.add(now, 1);
        if now >= self.measure_from {
            self.arrived_measured += 1;
            if let Some(delay) = delay {
                self.delay.record(delay);
            }
        }
    }

    pub(crate) fn finish(self, end: Time) -> SourceOutcome {
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
