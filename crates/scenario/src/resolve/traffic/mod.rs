//! `[[traffic]]`: short flows, datagrams at a prescribed rate, probes.

mod datagrams;
mod ping;
mod short_flows;
mod waveform;

use fullpipe_run::RunSpec;
use fullpipe_units::{Rate, Time};

use super::flow::times;
use super::graph::Layout;
use super::tables::Input;
use crate::keys::{Direction, Traffic, TrafficKeys, TrafficWord};
use crate::value::{At, Findings, Key, Kinds, Table, Words};
use fullpipe_metrics::{TrafficGroup, TrafficKind};

/// Resolves the traffic of a case.
pub(super) fn traffic(
    input: Input<'_>,
    layout: &mut Layout,
    spec: &mut RunSpec,
    findings: &mut Findings,
) -> Vec<TrafficGroup> {
    let mut groups = Vec::new();
    for traffic in input
        .tables
        .traffic
        .iter()
        .filter(|traffic| traffic.at.own.enabled)
    {
        traffic.at.required(&TrafficKeys::kind, findings);
        let Some(kind) = traffic.at.own.kind else {
            continue;
        };
        let resolver = TrafficResolver {
            at: &traffic.at,
            name: traffic.name,
            kind,
            input,
        };
        resolver.own_keys(findings);
        groups.extend(resolver.resolve(layout, spec, findings));
    }
    // What is answered comes last; names are unique.
    spec.cross.sort_by_key(|cross| cross.answered);
    for group in &mut groups {
        let place = spec.cross.iter().position(|c| c.name == group.name);
        group.index = place.unwrap_or(group.index);
    }
    groups
}

/// Makes traffic of a table.
struct TrafficResolver<'a> {
    at: &'a At<'a, Traffic>,
    name: &'a str,
    kind: TrafficWord,
    input: Input<'a>,
}

impl TrafficResolver<'_> {
    fn resolve(
        &self,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let own = &self.at.own;
        let reverse = own.direction == Direction::Reverse;
        let leg = layout.leg(self.name, reverse)?;
        let (start, stop) = (own.start, own.stop);
        let duration = self.input.duration;
        let (start, stop) = times(self.at, (start, stop), "traffic", duration, findings);
        let group = TrafficGroup {
            name: self.name.to_owned(),
            kind: TrafficKind::Datagrams,
            word: self.kind.word().to_owned(),
            index: 0,
            stack: None,
            reverse,
            bottleneck: leg.bottleneck,
            capacity: leg.capacity,
            base_rtt: leg.rtt,
            packet: layout.mtu,
            mss: 0,
            mean_size: None,
            offered: None,
            start,
            stop,
        };
        match self.kind {
            TrafficWord::ShortFlows => self.short_flows(group, &leg, layout, spec, findings),
            TrafficWord::Ping => self.ping(group, &leg, layout, spec, findings),
            _ => self.datagrams(group, &leg, spec, findings),
        }
    }

    /// Refuses keys of other kinds.
    fn own_keys(&self, findings: &mut Findings) {
        let of_transport = |key: &Key| !TrafficKeys::KEYS.iter().any(|own| own.name == key.name);
        let transport = self.kind == TrafficWord::ShortFlows;
        let common = |key: &Key| {
            COMMON.iter().any(|common| common.name == key.name) || (transport && of_transport(key))
        };
        let what = format!("kind `{}`", self.kind.word());
        self.at
            .refuse_foreign(&what, self.kind.own(), common, findings);
    }

    fn end(&self, group: &TrafficGroup) -> Time {
        let end = Time::ZERO + self.input.duration;
        group
            .stop
            .map_or(end, |stop| stop.min(end))
            .max(group.start)
    }
}

fn rate_of(bits_per_sec: f64) -> Rate {
    Rate::from_bits_per_sec(bits_per_sec.round().min(1e18) as u64)
}

/// Keys of every kind.
const COMMON: &[Key] = &[
    TrafficKeys::name,
    TrafficKeys::kind,
    TrafficKeys::enabled,
    TrafficKeys::direction,
    TrafficKeys::start,
    TrafficKeys::stop,
];

/// Most short flows, or probes, of one table.
const MAX_ARRIVALS: f64 = 1e7;
