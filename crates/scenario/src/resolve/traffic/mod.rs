//! `[[traffic]]`: short flows, datagrams at a prescribed rate, probes.

mod datagrams;
mod kind;
mod ping;
mod short_flows;
mod waveform;

use fullpipe_run::RunSpec;
use fullpipe_units::{Rate, Time};

use super::flow::times;
use super::graph::{Layout, is_enabled};
use super::{Findings, Input, required};
use crate::keys::TRAFFIC_OWN;
use crate::value::{Record, member_path};
use crate::{TrafficGroup, TrafficKind};
use kind::Kind;

/// Resolves the traffic of a case.
pub(super) fn traffic(
    input: Input<'_>,
    layout: &mut Layout,
    spec: &mut RunSpec,
    findings: &mut Findings,
) -> Vec<TrafficGroup> {
    let all = input.config.traffic.iter().zip(&input.names.traffic);
    let mut groups = Vec::new();
    for (record, name) in all.filter(|(record, _)| is_enabled(record)) {
        let path = member_path("traffic", name);
        if !required(findings, record, "kind", &path, r#"kind = "udp""#) {
            continue;
        }
        let Some(kind) = record.word("kind").and_then(Kind::of) else {
            continue;
        };
        let judge = Judge {
            record,
            name,
            path: &path,
            kind,
            input,
        };
        judge.own_keys(findings);
        groups.extend(judge.resolve(layout, spec, findings));
    }
    groups
}

/// Traffic under examination.
struct Judge<'a> {
    record: &'a Record,
    name: &'a str,
    path: &'a str,
    kind: &'static Kind,
    input: Input<'a>,
}

impl Judge<'_> {
    fn resolve(
        &self,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let r = self.record;
        let reverse = r.word("direction") == Some("reverse");
        let leg = layout.leg(self.name, reverse)?;
        let (start, stop) = times(r, self.path, "traffic", self.input.duration, findings);
        let group = TrafficGroup {
            name: self.name.to_owned(),
            kind: TrafficKind::Datagrams,
            word: self.kind.word.to_owned(),
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
        match self.kind.word {
            "short-flows" => self.short_flows(group, &leg, layout, spec, findings),
            "ping" => self.ping(group, &leg, layout, spec, findings),
            _ => self.datagrams(group, &leg, spec, findings),
        }
    }

    /// Keys of other kinds.
    fn own_keys(&self, findings: &mut Findings) {
        let own: Vec<&str> = self.kind.keys().collect();
        let is_own = |name: &str| TRAFFIC_OWN.iter().any(|key| key.name == name);
        for key in self.record.keys {
            let mine = COMMON.contains(&key.name)
                || own.contains(&key.name)
                || (self.kind.transport && !is_own(key.name));
            if mine || !self.record.is_given(key.name) {
                continue;
            }
            let message = format!("this key does not belong to the kind `{}`", self.kind.word);
            let hint = match own.as_slice() {
                [] => "leave it out".to_owned(),
                own => format!("its keys: {}", own.join(", ")),
            };
            self.refuse(findings, key.name, message, &hint);
        }
    }

    fn end(&self, group: &TrafficGroup) -> Time {
        let end = Time::ZERO + self.input.duration;
        group
            .stop
            .map_or(end, |stop| stop.min(end))
            .max(group.start)
    }

    fn refuse(&self, findings: &mut Findings, key: &str, message: impl Into<String>, hint: &str) {
        findings.refuse(self.record, key, self.path, message, hint);
    }
}

fn rate_of(bits_per_sec: f64) -> Rate {
    Rate::from_bits_per_sec(bits_per_sec.round().min(1e18) as u64)
}

const COMMON: &[&str] = &["name", "kind", "enabled", "direction", "start", "stop"];

/// Most short flows, or probes, of one table.
const MAX_ARRIVALS: f64 = 1e7;
