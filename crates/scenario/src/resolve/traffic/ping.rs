//! Probes.

use fullpipe_run::{CrossSpec, RunSpec};
use fullpipe_units::WindowSize;

use super::super::graph::{Layout, Leg};
use super::{MAX_ARRIVALS, TrafficResolver};
use crate::keys::{PING_SIZE, TrafficKeys, Transport};
use crate::value::{Either, Findings};
use fullpipe_metrics::{TrafficGroup, TrafficKind};

impl TrafficResolver<'_> {
    pub(super) fn ping(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let rtt = self.at.transport.rtt.unwrap_or(leg.rtt);
        if rtt < leg.rtt {
            let message = format!("the RTT is below that of the path, {}", leg.rtt);
            let hint = "lower `path.rtt` to the shortest RTT";
            self.at.refuse(findings, &Transport::rtt, message, hint);
        }
        let mut refuse_size = |message: &str| {
            let hint = "write for example \"64B\"";
            self.at.refuse(findings, &TrafficKeys::size, message, hint);
        };
        let size = match &self.at.own.size {
            None => PING_SIZE,
            Some(Either::Second(_)) => {
                refuse_size("probes are of one size");
                PING_SIZE
            }
            Some(Either::First(WindowSize::Bytes(bytes))) => bytes.0,
            Some(Either::First(_)) => {
                refuse_size("a probe has bytes, not segments");
                return None;
            }
        };
        let Some(size) = u16::try_from(size + PING_HEADERS).ok() else {
            refuse_size(&format!("a packet has at most {} bytes", u16::MAX));
            return None;
        };
        if u32::from(size) > layout.mtu {
            refuse_size(&format!("the path takes packets of {} bytes", layout.mtu));
        }
        let interval = self.at.own.interval;
        let probes = self.input.duration.ratio(interval);
        if probes > MAX_ARRIVALS {
            let message =
                format!("about {probes:.1e} probes, at most {MAX_ARRIVALS:.0e} are allowed");
            self.at
                .refuse(findings, &TrafficKeys::interval, message, "lengthen it");
        }
        let (forward, back) = (leg.forward.clone(), layout.back(leg, rtt, None));
        spec.cross.push(CrossSpec {
            start: group.start,
            stop: group.stop,
            ..CrossSpec::probes(self.name, size, interval, forward, back)
        });
        Some(TrafficGroup {
            kind: TrafficKind::Ping,
            base_rtt: rtt,
            packet: u32::from(size),
            ..group
        })
    }
}

/// IPv4 and ICMP.
const PING_HEADERS: u64 = 28;
