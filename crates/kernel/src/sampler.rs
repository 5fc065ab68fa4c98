//! Looks at the senders of a run: `TCP_INFO` over time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fullpipe_emulate::emulation::since;
use fullpipe_emulate::namespace::Side;
use fullpipe_observe::tcp_info::{BYTES_ACKED, RTT, SND_CWND, TOTAL_RETRANS, TcpInfo};
use fullpipe_observe::{FIELDS, ObserveError, Sampled, SocketDiag};
use fullpipe_realtime::live::{EVERY, Live, LiveFlow};
use fullpipe_run::{Histogram, LookField, Looks, RunSpec, Trace};
use fullpipe_units::{Span, Time};

use crate::acks::Record;
use crate::plan::FlowPlan;

/// Samples of one sender.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `TCP_INFO` over time, or every ACK where those are recorded.
    pub sampled: Sampled,
    /// Every field of `TCP_INFO` at every look that the specification wants a row of, whatever the
    /// rows are made of.
    pub looks: Looks,
    /// Its smoothed round-trip times, one for each look in the measured part, if its host has an
    /// interface: packets wait there before the path sees them.
    pub rtt: Option<Histogram>,
}

/// Times in which nobody looked for longer than a round trip, and than two looks are apart: a
/// reduction may have begun and ended there.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    longest: Span,
    latest: Time,
    sum: Span,
}

impl Gaps {
    fn look(&mut self, now: Time) {
        let gap = now.saturating_since(self.latest);
        self.latest = now;
        if gap > self.longest {
            self.sum += gap;
        }
    }
}

/// Looks at the senders of a run.
#[derive(Debug)]
pub struct Sampler {
    diags: Vec<(Side, SocketDiag)>,
    flows: Vec<(Side, Seen)>,
    step: Span,
    measure_from: Time,
    end: Time,
    gaps: Gaps,
    shown: Option<Shown>,
    recorded: Option<Recorded>,
}

/// Every ACK of the flows, in place of samples.
#[derive(Debug)]
struct Recorded {
    by: Box<dyn Record>,
    flows: Vec<Sampled>,
    failed: Option<String>,
}

impl Recorded {
    fn take(&mut self, epoch: Instant, measure_from: Time, end: Time) {
        let acks = match self.by.acks() {
            Ok(acks) => acks,
            Err(why) => {
                self.failed.get_or_insert(why);
                return;
            }
        };
        for ack in acks {
            let at = ack.at.saturating_duration_since(epoch);
            let at = Time::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
            let Some(flow) = self.flows.get_mut(ack.flow).filter(|_| at <= end) else {
                continue;
            };
            let rows = flow.rows.len();
            flow.take(at, ack.flow, &ack.info, Span::ZERO, measure_from);
            if let Some(row) = flow.rows.get_mut(rows) {
                row.cwnd += ack.fraction;
                row.rtt = ack.rtt;
            }
        }
    }
}

/// The latest sample of every flow, for whoever watches the run.
#[derive(Debug)]
struct Shown {
    live: Arc<Live>,
    /// Payload of a segment and latest state, by flow.
    flows: Vec<(u32, LiveFlow)>,
    next: Time,
}

impl Shown {
    fn take(&mut self, pair: usize, info: &TcpInfo) {
        if let Some((mss, flow)) = self.flows.get_mut(pair) {
            let rtt = info.get(&RTT).filter(|us| *us > 0);
            *flow = LiveFlow {
                delivered: info.count(&BYTES_ACKED) / u64::from((*mss).max(1)),
                retransmits: Some(info.count(&TOTAL_RETRANS)),
                cwnd: Some(info.count(&SND_CWND) as f64),
                srtt: rtt.map(Span::from_micros),
            };
        }
    }

    fn publish_if_due(&mut self, now: Time) {
        if now >= self.next {
            self.next = now + EVERY;
            self.live
                .publish(now, self.flows.iter().map(|(_, flow)| *flow));
        }
    }
}

/// Shortest and longest time between two looks, and how many looks a round trip has.
const SHORTEST: Span = Span::from_millis(1);
const LONGEST: Span = Span::from_millis(10);
const LOOKS: u64 = 20;

/// How often to look: [`LOOKS`] times per round trip, 100 to 1000 times a second.
pub fn interval(rtt: Span) -> Span {
    (rtt / LOOKS).clamp(SHORTEST, LONGEST)
}

impl Sampler {
    /// `diags`: channels opened in the namespaces of these sides; `of`: the plan of each flow;
    /// `longest`: time without a look that is not counted as missed.
    pub fn new(
        spec: &RunSpec,
        diags: Vec<(Side, SocketDiag)>,
        of: &[FlowPlan],
        longest: Span,
    ) -> Self {
        let flows = of.iter().map(|flow| {
            let seen = Seen {
                sampled: Sampled::since_handshake(),
                looks: Looks::new(FIELDS.iter().map(|f| LookField {
                    name: f.name,
                    unit: f.unit,
                })),
                rtt: flow.interface.map(|_| Histogram::default()),
            };
            (flow.from, seen)
        });
        Self {
            diags,
            flows: flows.collect(),
            step: match spec.trace {
                Trace::Off => Span::MAX,
                Trace::Every(step) => step,
                Trace::Full => Span::ZERO,
            },
            measure_from: spec.measure_from,
            end: Time::ZERO + spec.duration,
            gaps: Gaps {
                longest,
                latest: Time::ZERO,
                sum: Span::ZERO,
            },
            shown: None,
            recorded: None,
        }
    }

    /// Rows, windows and events are those of every ACK.
    pub fn with_record(self, by: Box<dyn Record>) -> Self {
        let recorded = Recorded {
            by,
            flows: self
                .flows
                .iter()
                .map(|_| Sampled::since_handshake())
                .collect(),
            failed: None,
        };
        Self {
            recorded: Some(recorded),
            ..self
        }
    }

    /// Tells `live` ten times a second; `mss`: the payload of a segment of each flow, bytes.
    pub fn with_live(self, live: &Arc<Live>, mss: impl Iterator<Item = u32>) -> Self {
        let flows = mss.map(|mss| (mss, LiveFlow::default()));
        let shown = Shown {
            live: Arc::clone(live),
            flows: flows.collect(),
            next: Time::ZERO,
        };
        Self {
            shown: Some(shown),
            ..self
        }
    }

    /// One look, in a run that began at `epoch`.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn look(&mut self, epoch: Instant) -> Result<(), ObserveError> {
        let now = since(epoch);
        self.gaps.look(now);
        self.take_acks(epoch);
        for (side, diag) in &mut self.diags {
            for socket in diag.connections()? {
                // The third byte of an address, or its fourth word, is the pair of hosts.
                let pair = match socket.local.ip() {
                    IpAddr::V4(own) => usize::from(own.octets()[2]),
                    IpAddr::V6(own) => usize::from(own.segments()[3]),
                };
                let Some((from, flow)) = self.flows.get_mut(pair) else {
                    continue;
                };
                if from == side {
                    let sampled = &mut flow.sampled;
                    let rows = sampled.rows.len();
                    sampled.take(now, pair, &socket.info, self.step, self.measure_from);
                    if sampled.rows.len() > rows {
                        flow.looks.push(now, socket.info.all());
                    }
                    let rtt = socket.info.get(&RTT).filter(|us| *us > 0);
                    if let (Some(rtts), Some(us)) = (&mut flow.rtt, rtt)
                        && now >= self.measure_from
                    {
                        rtts.record(Span::from_micros(us));
                    }
                    if let Some(shown) = &mut self.shown {
                        shown.take(pair, &socket.info);
                    }
                }
            }
        }
        if let Some(shown) = &mut self.shown {
            shown.publish_if_due(now);
        }
        Ok(())
    }

    /// Part of the time until `now` in which nobody looked for so long.
    pub fn blind(&mut self, now: Time) -> f64 {
        self.gaps.look(now);
        let life = now.saturating_since(Time::ZERO).as_secs_f64();
        self.gaps.sum.as_secs_f64() / life.max(1e-9)
    }

    /// What has been recorded since the last look.
    pub fn take_acks(&mut self, epoch: Instant) {
        if let Some(recorded) = &mut self.recorded {
            recorded.take(epoch, self.measure_from, self.end);
        }
    }

    /// Why rows of ACKs are missing, if some are.
    pub fn missed(&self) -> Option<String> {
        let recorded = self.recorded.as_ref()?;
        match (&recorded.failed, recorded.by.missed()) {
            (Some(why), _) => Some(format!("not every ACK is recorded: {why}")),
            (None, 0) => None,
            (None, n) => Some(format!("{n} ACKs found no room and are not recorded")),
        }
    }

    /// All that was seen, in the order of the flows.
    pub fn finish(self) -> Vec<Seen> {
        let recorded = self.recorded.filter(|recorded| recorded.failed.is_none());
        let mut recorded = recorded.map_or_else(Vec::new, |r| r.flows).into_iter();
        let seen = self.flows.into_iter().map(|(_, mut seen)| {
            // Rows alone: no ACK comes in an outage, in which samples see timeouts and windows, and
            // a trace changes no metric.
            if let Some(acks) = recorded.next().filter(|acks| !acks.rows.is_empty()) {
                seen.sampled.rows = acks.rows;
            }
            seen
        });
        seen.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_further_apart_than_a_round_trip_are_a_gap() {
        let ms = Span::from_millis;
        let mut gaps = Gaps {
            longest: ms(40),
            latest: Time::ZERO,
            sum: Span::ZERO,
        };
        for at in [2, 40, 80, 121, 123] {
            gaps.look(Time::ZERO + ms(at));
        }
        assert_eq!(gaps.sum, ms(41));
    }
}
