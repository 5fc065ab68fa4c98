//! Datagrams at a prescribed rate.

use fullpipe_run::{CrossSpec, RunSpec};
use fullpipe_units::Span;

use super::super::graph::Leg;
use super::TrafficResolver;
use crate::keys::{TrafficKeys, TrafficKinds};
use crate::value::{Findings, Kinds};
use fullpipe_metrics::TrafficGroup;

impl TrafficResolver<'_> {
    pub(super) fn datagrams(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let packet = self.at.own.packet.unwrap_or(group.packet);
        if packet > group.packet {
            let message = format!("the path takes packets of {} bytes", group.packet);
            self.at
                .refuse(findings, &TrafficKeys::packet, message, "raise `path.mtu`");
        }
        self.at.required_of(self.kind.own(), findings);
        let kind = self.kind.with(&self.at.own)?;
        let departures = self.departures(&kind, findings)?;
        let mut stop = group.stop;
        if let TrafficKinds::Blast {
            rate,
            volume: Some(volume),
        } = kind
        {
            let work = u128::from(volume.0) * 8_000_000_000;
            let lasts = work.div_ceil(u128::from(rate.as_bits_per_sec().max(1)));
            // Nothing leaves at the stop itself, but the last datagram is due when the volume is
            // full.
            let lasts = u64::try_from(lasts + 1).unwrap_or(u64::MAX);
            let over = group.start + Span::from_nanos(lasts);
            stop = Some(stop.map_or(over, |stop| stop.min(over)));
        }
        let offered = departures.mean();
        spec.cross.push(CrossSpec {
            name: self.name.to_owned(),
            // At most the mtu, which is a 16-bit number.
            packet: u16::try_from(packet).unwrap_or(u16::MAX),
            departures,
            answered: false,
            forward: leg.forward.clone(),
            back: Vec::new(),
            start: group.start,
            stop,
        });
        Some(TrafficGroup {
            packet,
            offered,
            stop,
            ..group
        })
    }
}
