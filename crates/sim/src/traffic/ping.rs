//! Round-trip probes: a request every interval, answered at once.

use fullpipe_units::{Span, Time};

use crate::histogram::Histogram;
use crate::link::Link;
use crate::outcome::PingOutcome;
use crate::packet::Packet;
use crate::spec::{PingSpec, RunSpec};

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
    /// Number `index` of the run, over these links.
    pub fn new(index: usize, p: &PingSpec, spec: &RunSpec, links: &[Link]) -> Self {
        let unloaded = p
            .forward
            .iter()
            .chain(&p.back)
            .map(|l| links[*l].unloaded(p.size))
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
    pub fn send(&mut self, now: Time) -> Packet {
        let packet = Packet::request(self.index, self.size, self.sent, now);
        self.sent += 1;
        packet
    }

    /// An answer is back.
    pub fn answered(&mut self, now: Time, packet: &Packet) {
        let rtt = now - packet.stamp;
        self.series.push((now, rtt));
        if now >= self.measure_from {
            self.rtt.record(rtt);
        }
    }

    /// Checks conservation with `inside` requests and answers in the network and returns the result.
    ///
    /// # Errors
    /// A sentence about what does not add up.
    pub fn finish(self, inside: u64) -> Result<PingOutcome, String> {
        let answered = self.series.len() as u64;
        if self.sent != answered + self.lost + inside {
            return Err(format!(
                "ping {}: sent {} is not answered {answered} + lost {} + in the network {inside}",
                self.name, self.sent, self.lost
            ));
        }
        Ok(PingOutcome {
            name: self.name,
            sent: self.sent,
            lost: self.lost,
            rtt: self.rtt,
            unloaded: self.unloaded,
            series: self.series,
        })
    }
}
