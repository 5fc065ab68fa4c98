//! Probes.

use fullpipe_run::{PingSpec, RunSpec};
use fullpipe_units::{Span, WindowSize};

use super::{Judge, MAX_ARRIVALS};
use crate::resolve::Findings;
use crate::resolve::graph::{Layout, Leg};
use crate::{TrafficGroup, TrafficKind};

impl Judge<'_> {
    pub(super) fn ping(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let r = self.record;
        let rtt = r.span("rtt").unwrap_or(leg.rtt);
        if rtt < leg.rtt {
            let message = format!("the RTT is below that of the path, {}", leg.rtt);
            self.refuse(
                findings,
                "rtt",
                message,
                "lower `path.rtt` to the shortest RTT",
            );
        }
        if r.record("size").is_some() {
            let message = "probes are of one size";
            self.refuse(findings, "size", message, "write for example \"64B\"");
        }
        let size = match r.window("size") {
            None => PING_SIZE,
            Some(WindowSize::Bytes(bytes)) => bytes.0,
            Some(_) => {
                let message = "a probe has bytes, not segments";
                self.refuse(findings, "size", message, "write for example \"64B\"");
                return None;
            }
        };
        let Some(size) = u16::try_from(size + PING_HEADERS).ok() else {
            let message = format!("a packet has at most {} bytes", u16::MAX);
            self.refuse(findings, "size", message, "write for example \"64B\"");
            return None;
        };
        if u32::from(size) > layout.mtu {
            let message = format!("the path takes packets of {} bytes", layout.mtu);
            self.refuse(findings, "size", message, "write for example \"64B\"");
        }
        let interval = r.span("interval").unwrap_or(Span::from_millis(100));
        let probes = self.input.duration.ratio(interval);
        if probes > MAX_ARRIVALS {
            let message =
                format!("about {probes:.1e} probes, at most {MAX_ARRIVALS:.0e} are allowed");
            self.refuse(findings, "interval", message, "lengthen it");
        }
        spec.pings.push(PingSpec {
            name: self.name.to_owned(),
            interval,
            size,
            forward: leg.forward.clone(),
            back: layout.back(leg, rtt, None),
            start: group.start,
            stop: group.stop,
        });
        Some(TrafficGroup {
            kind: TrafficKind::Ping,
            index: spec.pings.len() - 1,
            base_rtt: rtt,
            packet: u32::from(size),
            ..group
        })
    }
}

const PING_SIZE: u64 = 64;
/// IPv4 and ICMP.
const PING_HEADERS: u64 = 28;
