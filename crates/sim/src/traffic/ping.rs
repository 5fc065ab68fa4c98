//! Round-trip probes: a request every interval, answered at once.

use fullpipe_run::{Histogram, PingOutcome, PingSpec, RunSpec};
use fullpipe_units::{Span, Time};

use crate::link::{Link, Watch};
use crate::packet::Packet;

/// A running sequence of probes.
#[derive(Debug)]
pub struct Ping {
    name: String,
    index: u32,
    size: u16,
    interval: Span,
    /// No request at or after this time.
    until: Time,
    forward: Vec<u32>,
    back: Vec<u32>,
    measure_from: Time,
    unloaded: Span,
    sent: u64,
    /// Requests and answers dropped on the way.
    pub lost: u64,
    rtt: Histogram,
    series: Vec<(Time, Span)>,
}

impl Ping {
    /// Number `index` of the run.
    pub fn new(index: usize, p: &PingSpec, spec: &RunSpec) -> Self {
        let links = p.forward.iter().chain(&p.back);
        let watch = Watch {
            measure_from: spec.measure_from,
            end: Time::ZERO + spec.duration,
            sample_step: Span::MAX,
        };
        let unloaded = links
            .filter_map(|l| spec.links.get(*l))
            .map(|l| Link::new(l, spec.seed, &watch).unloaded(p.size))
            .fold(Span::ZERO, |a, b| a + b);
        Self {
            name: p.name.clone(),
            index: index as u32,
            size: p.size,
            interval: p.interval.max(Span::from_nanos(1)),
            until: p.stop.unwrap_or(Time::MAX).min(spec.after_end()),
            forward: p.forward.iter().map(|l| *l as u32).collect(),
            back: p.back.iter().map(|l| *l as u32).collect(),
            measure_from: spec.measure_from,
            unloaded,
            sent: 0,
            lost: 0,
            rtt: Histogram::default(),
            series: Vec::new(),
        }
    }

    /// Links of the request.
    pub fn forward(&self) -> &[u32] {
        &self.forward
    }

    /// Links of the answer.
    pub fn back(&self) -> &[u32] {
        &self.back
    }

    /// A probe may leave at this time.
    pub fn allows(&self, at: Time) -> bool {
        at < self.until
    }

    /// When the probe after the one of `now` leaves; `None`: there is none.
    pub fn next_departure(&self, now: Time) -> Option<Time> {
        let at = now + self.interval;
        self.allows(at).then_some(at)
    }

    /// A request leaves.
    pub(crate) fn send(&mut self, now: Time) -> Packet {
        Packet::request(self.index, self.size, self.depart(), now)
    }

    /// A request leaves; its number.
    pub fn depart(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
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

    /// Checks conservation with `inside` requests and answers in the network and returns the result.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub(crate) fn finish(self, inside: u64) -> Result<PingOutcome, String> {
        let answered = self.series.len() as u64;
        if self.sent != answered + self.lost + inside {
            return Err(format!(
                "ping {}: sent {} is not answered {answered} + lost {} + in the network {inside}",
                self.name, self.sent, self.lost
            ));
        }
        Ok(self.outcome())
    }

    /// What is counted here, where perhaps only one end of the path is.
    pub fn outcome(self) -> PingOutcome {
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
