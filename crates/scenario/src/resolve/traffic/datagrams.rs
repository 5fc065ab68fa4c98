//! Datagrams at a prescribed rate.

use fullpipe_run::{RunSpec, SourceSpec, Spacing};
use fullpipe_units::Span;

use super::Judge;
use super::waveform::mean_rate;
use crate::TrafficGroup;
use crate::resolve::Findings;
use crate::resolve::graph::Leg;

impl Judge<'_> {
    pub(super) fn datagrams(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let r = self.record;
        let packet = r.whole("packet").map_or(group.packet, |n| n as u32);
        if packet > group.packet {
            let message = format!("the path takes packets of {} bytes", group.packet);
            self.refuse(findings, "packet", message, "raise `path.mtu`");
        }
        let waveform = self.waveform(findings)?;
        let mut stop = group.stop;
        if let (Some(volume), Some(rate)) = (r.bytes("volume"), r.rate("rate")) {
            let work = u128::from(volume.0) * 8_000_000_000;
            let lasts = work.div_ceil(u128::from(rate.as_bits_per_sec().max(1)));
            // Nothing leaves at the stop itself, but the last datagram is due when the volume is full.
            let lasts = u64::try_from(lasts + 1).unwrap_or(u64::MAX);
            let over = group.start + Span::from_nanos(lasts);
            stop = Some(stop.map_or(over, |stop| stop.min(over)));
        }
        let spacing = match r.word("spacing") {
            Some("poisson") => Spacing::Poisson,
            _ => Spacing::Even,
        };
        spec.sources.push(SourceSpec {
            name: self.name.to_owned(),
            // At most the mtu, which is a 16-bit number.
            packet: u16::try_from(packet).unwrap_or(u16::MAX),
            waveform: waveform.clone(),
            spacing,
            forward: leg.forward.clone(),
            start: group.start,
            stop,
        });
        Some(TrafficGroup {
            index: spec.sources.len() - 1,
            packet,
            offered: mean_rate(&waveform),
            stop,
            ..group
        })
    }
}
