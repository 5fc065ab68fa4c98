//! Looks at the senders of a run: `TCP_INFO` over time.

use std::net::IpAddr;
use std::sync::Arc;

use fullpipe_emulate::namespace::Side;
use fullpipe_observe::tcp_info::{BYTES_ACKED, RTT, SND_CWND, TOTAL_RETRANS, TcpInfo};
use fullpipe_observe::{ObserveError, Sampled, SocketDiag};
use fullpipe_realtime::live::{EVERY, Live, LiveFlow};
use fullpipe_run::{RunSpec, Trace};
use fullpipe_units::{Span, Time};

/// Looks at the senders of a run.
#[derive(Debug)]
pub struct Sampler {
    diags: Vec<(Side, SocketDiag)>,
    flows: Vec<(Side, Sampled)>,
    step: Span,
    measure_from: Time,
    shown: Option<Shown>,
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
    /// `diags`: channels opened in the namespaces of these sides; `from`: the side of each flow's
    /// sender.
    pub fn new(
        spec: &RunSpec,
        diags: Vec<(Side, SocketDiag)>,
        from: impl Iterator<Item = Side>,
    ) -> Self {
        Self {
            diags,
            flows: from.map(|side| (side, Sampled::default())).collect(),
            step: match spec.trace {
                Trace::Off => Span::MAX,
                Trace::Every(step) => step,
                Trace::Full => Span::ZERO,
            },
            measure_from: spec.measure_from,
            shown: None,
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

    /// One look at `now`.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn look(&mut self, now: Time) -> Result<(), ObserveError> {
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
                    flow.take(now, pair, &socket.info, self.step, self.measure_from);
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

    /// All that was seen, in the order of the flows.
    pub fn finish(self) -> Vec<Sampled> {
        self.flows.into_iter().map(|(_, flow)| flow).collect()
    }
}
