//! `[[flow]]`: flows that last, with losses at exact places and the definition of their recovery.

use std::ops::Range;

use fullpipe_flow::{ArtificialLoss, SenderConfig};
use fullpipe_run::{Drops, FlowSpec};
use fullpipe_units::{Span, Time, WindowSize};

use super::super::value::{Record, Value, flow_path};
use super::super::{FlowGroup, RecoveredAt};
use super::graph::{Layout, is_enabled};
use super::transport::TransportJudge;
use super::{Findings, Input, MAX_FLOWS, segments};

/// Resolves the flows of a case.
pub(super) fn flows(
    input: Input<'_>,
    layout: &mut Layout,
    flows: &mut Vec<FlowSpec>,
    findings: &mut Findings,
) -> Vec<FlowGroup> {
    let mut groups = Vec::new();
    let all = input.config.flows.iter().zip(&input.names.flows);
    for (record, name) in all.filter(|(record, _)| is_enabled(record)) {
        let judge = FlowJudge {
            record,
            name,
            path: flow_path(name),
            duration: input.duration,
            recovered: input.config.measure.record("recovered_at"),
        };
        let Some(mut group) = judge.resolve(findings, layout, flows) else {
            continue;
        };
        group.recovered_at = judge.recovered_at(&group, findings);
        groups.push(group);
    }
    groups
}

/// Start and stop of something; both are checked against the run.
pub(super) fn times(
    record: &Record,
    path: &str,
    what: &str,
    duration: Span,
    findings: &mut Findings,
) -> (Time, Option<Time>) {
    let start = Time::ZERO + record.span("start").unwrap_or(Span::ZERO);
    let stop = record.span("stop").map(|stop| Time::ZERO + stop);
    if start >= Time::ZERO + duration {
        let message = format!("the {what} starts when the run of {duration} is over");
        let hint = "start it earlier or lengthen `duration`";
        findings.refuse(record, "start", path, message, hint);
    }
    if stop.is_some_and(|stop| stop <= start) {
        let start = record.span("start").unwrap_or(Span::ZERO);
        let message = format!("the {what} stops before it starts, at {start}");
        findings.refuse(record, "stop", path, message, "stop it later");
    }
    (start, stop)
}

/// A flow under examination.
struct FlowJudge<'a> {
    record: &'a Record,
    name: &'a str,
    /// Dotted key of its table.
    path: String,
    duration: Span,
    recovered: Option<&'a Record>,
}

impl FlowJudge<'_> {
    fn resolve(
        &self,
        findings: &mut Findings,
        layout: &mut Layout,
        flows: &mut Vec<FlowSpec>,
    ) -> Option<FlowGroup> {
        let r = self.record;
        let reverse = r.word("direction") == Some("reverse");
        let leg = layout.leg(self.name, reverse)?;
        let judge = TransportJudge::new(r, &self.path, layout, &leg, findings);
        let (start, stop) = times(r, &self.path, "flow", self.duration, findings);
        let end = Time::ZERO + self.duration;
        let start_spread = r.span("start_spread").unwrap_or(Span::ZERO);
        if start + start_spread >= stop.unwrap_or(end).min(end) && start_spread != Span::ZERO {
            let message = "the flow may start after its end";
            self.refuse(findings, "start_spread", message, "shorten it");
        }
        let (rtt, packet) = (judge.rtt, judge.packet);
        let transport = judge.read(findings)?;
        let mut sender = transport.sender;
        let mss = sender.mss;
        sender.transfer = r.window("size").map(|size| whole_segments(size, mss));
        let (drops, arrival_drops) = self.drops(
            &mut sender,
            start,
            stop.map_or(end, |s| s.min(end)),
            transport.cap,
            findings,
        );
        let nic = layout.interface(r, self.name, &leg);
        let spread = r.span("rtt_spread").filter(|spread| *spread != Span::ZERO);
        let streams = r.whole("streams").unwrap_or(1);
        let first = flows.len();
        let has_drops = drops != Drops::default()
            || arrival_drops != Drops::default()
            || !sender.artificial_loss.is_none();
        if flows.len() as u64 + streams > MAX_FLOWS {
            let message = format!("a run has at most {MAX_FLOWS} connections");
            self.refuse(findings, "streams", message, "lower `streams`");
            return None;
        }
        let members: Range<usize> = first..first + streams as usize;
        let group = FlowGroup {
            name: self.name.to_owned(),
            stack: transport.stack.to_string(),
            members,
            recovered_at: RecoveredAt::Rate(DEFAULT_RECOVERED),
            window_cap: transport.cap,
            base_rtt: rtt,
            capacity: leg.capacity,
            packet,
            mss,
            ack_every: transport.receiver.acks.every,
            start,
            stop,
            transfer: sender.transfer,
            has_drops,
            reverse,
            bottleneck: leg.bottleneck,
        };
        for i in 1..=streams {
            let name = if streams == 1 {
                self.name.to_owned()
            } else {
                format!("{}.{i}", self.name)
            };
            flows.push(FlowSpec {
                stack: transport.stack.clone(),
                sender: sender.clone(),
                receiver: transport.receiver.clone(),
                forward: nic.into_iter().chain(leg.forward.iter().copied()).collect(),
                back: layout.back(&leg, rtt, spread.map(|spread| (spread, name.as_str()))),
                local_queue: nic.is_some(),
                start,
                start_spread,
                stop,
                drops: drops.clone(),
                arrival_drops: arrival_drops.clone(),
                name,
                reverse,
            });
        }
        Some(group)
    }

    fn drops(
        &self,
        sender: &mut SenderConfig,
        start: Time,
        end: Time,
        cap: Option<f64>,
        findings: &mut Findings,
    ) -> (Drops, Drops) {
        let mut on_path = ArtificialLoss::default();
        let mut at_receiver = ArtificialLoss::default();
        let mut at_sender = ArtificialLoss::default();
        let tables = self.record.many("drop");
        for (i, table) in tables.iter().enumerate() {
            let Value::Record(table) = table else {
                continue;
            };
            let key = match tables.len() {
                1 => format!("{}.drop", self.path),
                _ => format!("{}.drop[{}]", self.path, i + 1),
            };
            let rules = ["segment", "at_cwnd", "every", "probability", "time"];
            if !rules.iter().any(|rule| table.is_attempted(rule)) {
                let hint = "give `segment`, `at_cwnd`, `every`, `probability` or `time`";
                findings.refuse_table(table.at, &key, "nothing says which segments are lost", hint);
            }
            let loss = match table.word("where") {
                Some("sender") => &mut at_sender,
                Some("receiver") => {
                    if table.is_given("at_cwnd") {
                        let message = "the receiver does not know the sender's window";
                        let hint = "drop it on the path: `where = \"path\"`";
                        findings.refuse(table, "at_cwnd", &key, message, hint);
                    }
                    &mut at_receiver
                }
                _ => &mut on_path,
            };
            for value in table.many("segment") {
                let Value::Whole(segment) = value else {
                    continue;
                };
                if sender.transfer.is_some_and(|size| *segment >= size) {
                    let message = format!(
                        "the transfer ends with segment {}",
                        sender.transfer.unwrap_or(1) - 1
                    );
                    findings.refuse(table, "segment", &key, message, "segments count from 0");
                }
                loss.segments.push(*segment);
            }
            for value in table.many("time") {
                let Value::Span(span) = value else { continue };
                let time = Time::ZERO + *span;
                if time < start || time >= end {
                    let message = "the flow does not send at this time";
                    let hint = format!(
                        "it sends from {} to {}",
                        Span::from_nanos(start.as_nanos()),
                        Span::from_nanos(end.as_nanos())
                    );
                    findings.refuse(table, "time", &key, message, &hint);
                }
                loss.times.push(time);
            }
            let twice = [
                ("every", loss.every.is_some()),
                ("at_cwnd", loss.at_window.is_some()),
                ("probability", loss.probability > 0.0),
            ];
            for (rule, _) in twice
                .into_iter()
                .filter(|(rule, set)| *set && table.is_given(rule))
            {
                let message = "another table of the list sets this already";
                findings.refuse(table, rule, &key, message, "keep one of them");
            }
            loss.every = table.whole("every").or(loss.every);
            loss.probability = table.real("probability").unwrap_or(loss.probability);
            if let Some(at) = table.real("at_cwnd") {
                if let Some(cap) = cap.filter(|cap| at > *cap) {
                    let message =
                        format!("the window never gets there: it is capped at {cap} segments");
                    findings.refuse(
                        table,
                        "at_cwnd",
                        &key,
                        message,
                        "lower it, or raise `window`",
                    );
                }
                loss.at_window = Some(at);
            }
        }
        for loss in [&mut on_path, &mut at_sender, &mut at_receiver] {
            loss.segments.sort_unstable();
            loss.segments.dedup();
            loss.times.sort_unstable();
            loss.times.dedup();
        }
        sender.artificial_loss = at_sender;
        let drops = |loss: ArtificialLoss| Drops {
            segments: loss.segments,
            times: loss.times,
            every: loss.every,
            at_window: loss.at_window,
            probability: loss.probability,
        };
        (drops(on_path), drops(at_receiver))
    }

    fn recovered_at(&self, group: &FlowGroup, findings: &mut Findings) -> RecoveredAt {
        let Some(table) = self.recovered else {
            return RecoveredAt::Rate(DEFAULT_RECOVERED);
        };
        let key = "measure.recovered_at";
        if table.is_given("rate") && table.is_given("window") {
            let hint = "keep `rate` or `window`";
            findings.refuse(table, "window", key, "two definitions of recovery", hint);
        }
        if let Some(size) = table.window("window") {
            let target = segments(
                size,
                group.capacity,
                group.base_rtt,
                group.packet,
                group.mss,
            );
            if let Some(cap) = group.window_cap.filter(|cap| target > *cap) {
                let message = format!(
                    "the window of flow `{}` never gets there: it is capped at {cap} segments",
                    self.name
                );
                findings.refuse(
                    table,
                    "window",
                    key,
                    message,
                    "write for example 1.0 for the cap itself",
                );
            }
            return RecoveredAt::Window(target.max(1.0));
        }
        if let Some(part) = table.real("window") {
            let Some(cap) = group.window_cap else {
                let message = format!(
                    "a part of the flow's `window`, and flow `{}` has none",
                    self.name
                );
                let hint = format!("write \"{part}BDP\", or set `flow.{}.window`", self.name);
                findings.refuse(table, "window", key, message, &hint);
                return RecoveredAt::Rate(DEFAULT_RECOVERED);
            };
            return RecoveredAt::Window((part * cap).max(1.0));
        }
        match table.real("rate") {
            Some(rate) if rate > 0.0 => RecoveredAt::Rate(rate),
            Some(_) => {
                findings.refuse(
                    table,
                    "rate",
                    key,
                    "the part must be above zero",
                    "write for example 0.95",
                );
                RecoveredAt::Rate(DEFAULT_RECOVERED)
            }
            None => RecoveredAt::Rate(DEFAULT_RECOVERED),
        }
    }

    fn refuse(&self, findings: &mut Findings, key: &str, message: impl Into<String>, hint: &str) {
        findings.refuse(self.record, key, &self.path, message, hint);
    }
}

/// Length of a transfer, at least one segment.
pub(super) fn whole_segments(size: WindowSize, mss: u32) -> u64 {
    match size {
        WindowSize::Bytes(bytes) => bytes.0.div_ceil(u64::from(mss)),
        WindowSize::Segments(n) | WindowSize::Bdp(n) => n.ceil() as u64,
    }
}

const DEFAULT_RECOVERED: f64 = 0.95;
