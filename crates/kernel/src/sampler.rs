//! Looks at the senders of a run: `TCP_INFO` over time.

use std::net::IpAddr;

use fullpipe_emulate::namespace::Side;
use fullpipe_observe::{ObserveError, Sampled, SocketDiag};
use fullpipe_run::{RunSpec, Trace};
use fullpipe_units::{Span, Time};

/// Looks at the senders of a run.
#[derive(Debug)]
pub struct Sampler {
    diags: Vec<(Side, SocketDiag)>,
    flows: Vec<(Side, Sampled)>,
    step: Span,
    measure_from: Time,
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
                }
            }
        }
        Ok(())
    }

    /// All that was seen, in the order of the flows.
    pub fn finish(self) -> Vec<Sampled> {
        self.flows.into_iter().map(|(_, flow)| flow).collect()
    }
}
