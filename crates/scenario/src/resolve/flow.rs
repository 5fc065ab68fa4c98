//! `[[flow]]`: flows that last, with losses at exact places and the definition of their recovery.

use std::ops::Range;

use fullpipe_flow::{ArtificialLoss, SenderConfig};
use fullpipe_run::{Drops, FlowSpec};
use fullpipe_units::{Span, Time, WindowSize};

use super::change::Changes;
use super::graph::Layout;
use super::path::NO_ROUND_TRIP;
use super::sizes::segments;
use super::tables::Input;
use super::transport::TransportResolver;
use crate::keys::{
    Direction, DropPlace, DropTable, Flow, FlowKeys, Measures, RECOVERED, RecoveredTable,
    TXQUEUELEN, Transport,
};
use crate::value::{At, Either, Findings, Key, Lands};
use fullpipe_metrics::{FlowGroup, RecoveredAt};

/// Resolves the flows of a case.
pub(super) fn flows(
    input: Input<'_>,
    layout: &mut Layout,
    flows: &mut Vec<FlowSpec>,
    findings: &mut Findings,
) -> Vec<FlowGroup> {
    let present = || input.tables.flows.iter().filter(|flow| flow.at.own.enabled);
    let streams: u64 = present().map(|flow| flow.at.own.streams).sum();
    let most = present().max_by_key(|flow| flow.at.own.streams);
    if let Some(most) = most.filter(|_| streams > MAX_FLOWS) {
        let message = format!("the flows have {streams} connections, a run at most {MAX_FLOWS}");
        let hint = "lower `streams`";
        most.at.refuse(findings, &FlowKeys::streams, message, hint);
        return Vec::new();
    }
    let mut groups = Vec::new();
    for flow in present() {
        let resolver = FlowResolver {
            at: &flow.at,
            name: flow.name,
            duration: input.duration,
            measure: &input.tables.measure,
        };
        let Some(mut group) = resolver.resolve(findings, layout, flows) else {
            continue;
        };
        group.recovered_at = resolver.recovered_at(&group, findings);
        group.recovered_from = resolver.recovered_from(findings);
        groups.push(group);
    }
    groups
}

/// Start and stop of something; both are checked against the run.
pub(super) fn times<T>(
    at: &At<'_, T>,
    (start, stop): (Span, Option<Span>),
    what: &str,
    duration: Span,
    findings: &mut Findings,
) -> (Time, Option<Time>) {
    if start >= duration {
        let message = format!("the {what} starts when the run of {duration} is over");
        let hint = "start it earlier or lengthen `duration`";
        at.refuse(findings, &FlowKeys::start, message, hint);
    }
    if stop.is_some_and(|stop| stop <= start) {
        let message = format!("the {what} stops before it starts, at {start}");
        at.refuse(findings, &FlowKeys::stop, message, "stop it later");
    }
    (Time::ZERO + start, stop.map(|stop| Time::ZERO + stop))
}

/// Makes a group of flows of a table.
struct FlowResolver<'a> {
    at: &'a At<'a, Flow>,
    name: &'a str,
    duration: Span,
    measure: &'a At<'a, Measures>,
}

impl FlowResolver<'_> {
    fn resolve(
        &self,
        findings: &mut Findings,
        layout: &mut Layout,
        flows: &mut Vec<FlowSpec>,
    ) -> Option<FlowGroup> {
        let own = &self.at.own;
        let reverse = own.direction == Direction::Reverse;
        let leg = layout.leg(self.name, reverse)?;
        let (record, path) = (self.at.record, &self.at.path);
        let transport = TransportResolver::new(record, path, layout, &leg, findings);
        let (start, stop) = (own.start, own.stop);
        let (start, stop) = times(self.at, (start, stop), "flow", self.duration, findings);
        let end = Time::ZERO + self.duration;
        let end = stop.map_or(end, |stop| stop.min(end));
        let start_spread = own.start_spread;
        if start + start_spread >= end && start_spread != Span::ZERO {
            let message = "the flow may start after its end";
            self.at
                .refuse(findings, &FlowKeys::start_spread, message, "shorten it");
        }
        let (rtt, packet) = (transport.rtt, transport.packet);
        let late = [&Transport::rtt, &FlowKeys::start];
        if start + rtt >= Time::ZERO + self.duration
            && let Some(key) = late.into_iter().find(|key| self.at.is_given(key))
        {
            self.at.warn(findings, key, NO_ROUND_TRIP);
        }
        let mut connection = transport.read(findings)?;
        own.land(&mut connection.ends);
        let mut sender = connection.ends.sender;
        sender.pacing.max = own.rate;
        if own.rate.is_some() && self.at.transport.pacing == Some(false) {
            let hint = "leave out `pacing`";
            let message = "a flow with a ceiling is paced";
            self.at.refuse(findings, &FlowKeys::rate, message, hint);
        }
        let mss = sender.mss;
        sender.transfer = own.size.map(|size| whole_segments(size, mss));
        let fastest = layout.fastest(self.name, reverse).unwrap_or(leg.capacity);
        let bits = fastest.as_bits_per_sec() as f64 * end.saturating_since(start).as_secs_f64();
        let queued = self.at.transport.txqueuelen.unwrap_or(TXQUEUELEN) as f64;
        let most = (bits / (8.0 * f64::from(packet)) + layout.room + queued).ceil() as u64;
        let (drops, arrival_drops) =
            self.drops(&mut sender, (start, end, most), connection.cap, findings);
        let changes = Changes {
            key: self.at.key(&FlowKeys::change),
            tables: own.change.as_deref().unwrap_or_default(),
            sends: (start, end),
            stack: &connection.stack,
        };
        let to_segments = |size| segments(size, leg.capacity, rtt, packet, mss);
        let changes = changes.resolve(to_segments, findings);
        sender.changeable = !changes.is_empty();
        let host = self.at.transport.host.as_deref().unwrap_or(self.name);
        let nic = layout.interface(host, &leg);
        let spread = Some(own.rtt_spread).filter(|spread| *spread != Span::ZERO);
        let streams = own.streams;
        let first = flows.len();
        let has_drops = drops != Drops::default()
            || arrival_drops != Drops::default()
            || !sender.artificial_loss.is_none();
        let members: Range<usize> = first..first + streams as usize;
        let group = FlowGroup {
            name: self.name.to_owned(),
            stack: connection.stack.to_string(),
            members,
            recovered_at: RecoveredAt::Rate(RECOVERED),
            recovered_from: None,
            window_cap: connection.cap,
            base_rtt: rtt,
            capacity: leg.capacity,
            packet,
            mss,
            ack_every: connection.ends.receiver.acks.every,
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
                stack: connection.stack.clone(),
                sender: sender.clone(),
                receiver: connection.ends.receiver.clone(),
                forward: nic.into_iter().chain(leg.forward.iter().copied()).collect(),
                back: layout.back(&leg, rtt, spread.map(|spread| (spread, name.as_str()))),
                local_queue: nic.is_some(),
                start,
                start_spread,
                stop,
                drops: drops.clone(),
                arrival_drops: arrival_drops.clone(),
                changes: changes.clone(),
                name,
                reverse,
                preset: Some(connection.preset),
                written: connection.written.clone(),
            });
        }
        Some(group)
    }

    /// Losses on the path and at the receiver; those at the sender are set there. The flow sends
    /// from `start` to `end`, `most` segments at most.
    fn drops(
        &self,
        sender: &mut SenderConfig,
        (start, end, most): (Time, Time, u64),
        cap: Option<f64>,
        findings: &mut Findings,
    ) -> (Drops, Drops) {
        let mut on_path = ArtificialLoss::default();
        let mut at_receiver = ArtificialLoss::default();
        let mut at_sender = ArtificialLoss::default();
        let tables = self.at.own.drop.as_deref().unwrap_or_default();
        for (i, table) in tables.iter().enumerate() {
            let key = self.at.key(&FlowKeys::drop);
            let path = match tables.len() {
                1 => key,
                _ => format!("{key}[{}]", i + 1),
            };
            let drop = At::<DropTable>::new(&table.record, path);
            let is_rule = |key: &&Key| key.name != DropTable::r#where.name;
            if !drop
                .record
                .keys
                .iter()
                .filter(is_rule)
                .any(|key| drop.is_attempted(key))
            {
                let hint = "give `segment`, `at_cwnd`, `every`, `probability` or `time`";
                let message = "nothing says which segments are lost";
                findings.refuse_table(drop.record.at, &drop.path, message, hint);
            }
            let loss = match drop.r#where {
                DropPlace::Sender => &mut at_sender,
                DropPlace::Receiver => {
                    if drop.is_given(&DropTable::at_cwnd) {
                        let message = "the receiver does not know the sender's window";
                        let hint = "drop it on the path: `where = \"path\"`";
                        drop.refuse(findings, &DropTable::at_cwnd, message, hint);
                    }
                    &mut at_receiver
                }
                DropPlace::Path => &mut on_path,
            };
            for segment in drop.segment.iter().flatten() {
                if let Some(size) = sender.transfer.filter(|size| segment >= size) {
                    let message = format!("the transfer ends with segment {}", size - 1);
                    let hint = "segments count from 0";
                    drop.refuse(findings, &DropTable::segment, message, hint);
                } else if *segment >= most {
                    let message = format!(
                        "path and buffers take at most {most} segments while the flow lasts: \
                         segment {segment} is never sent"
                    );
                    drop.warn(findings, &DropTable::segment, &message);
                }
                loss.segments.push(*segment);
            }
            for span in drop.time.iter().flatten() {
                let time = Time::ZERO + *span;
                if time < start || time >= end {
                    let message = "the flow does not send at this time";
                    let hint = format!(
                        "it sends from {} to {}",
                        Span::from_nanos(start.as_nanos()),
                        Span::from_nanos(end.as_nanos())
                    );
                    drop.refuse(findings, &DropTable::time, message, hint);
                }
                loss.times.push(time);
            }
            let twice = [
                (DropTable::every, loss.every.is_some()),
                (DropTable::at_cwnd, loss.at_window.is_some()),
                (DropTable::probability, loss.probability > 0.0),
            ];
            for (rule, set) in &twice {
                if *set && drop.is_given(rule) {
                    let message = "another table of the list sets this already";
                    drop.refuse(findings, rule, message, "keep one of them");
                }
            }
            drop.land(loss);
            loss.every = drop.every.or(loss.every);
            if let (Some(at), Some(cap)) = (drop.at_cwnd, cap)
                && at > cap
            {
                let message =
                    format!("the window never gets there: it is capped at {cap} segments");
                let hint = "lower it, or raise `window`";
                drop.refuse(findings, &DropTable::at_cwnd, message, hint);
            }
            loss.at_window = drop.at_cwnd.or(loss.at_window);
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
        type Keys = RecoveredTable;
        let Some(table) = &self.measure.recovered_at else {
            return group.recovered_at;
        };
        let table = self.measure.inside(&Measures::recovered_at, table);
        if table.is_given(&Keys::rate) && table.is_given(&Keys::window) {
            let hint = "keep `rate` or `window`";
            table.refuse(findings, &Keys::window, "two definitions of recovery", hint);
        }
        match table.window {
            Some(Either::First(size)) => {
                let FlowGroup {
                    capacity,
                    base_rtt,
                    packet,
                    mss,
                    ..
                } = *group;
                let target = segments(size, capacity, base_rtt, packet, mss);
                if let Some(cap) = group.window_cap.filter(|cap| target > *cap) {
                    let message = format!(
                        "the window of flow `{}` never gets there: it is capped at {cap} segments",
                        self.name
                    );
                    let hint = "write for example 1.0 for the cap itself";
                    table.refuse(findings, &Keys::window, message, hint);
                }
                RecoveredAt::Window(target.max(1.0))
            }
            Some(Either::Second(part)) => match group.window_cap {
                Some(cap) => RecoveredAt::Window((part * cap).max(1.0)),
                None => {
                    let name = self.name;
                    let message =
                        format!("a part of the flow's `window`, and flow `{name}` has none");
                    let hint = format!("write \"{part}BDP\", or set `flow.{name}.window`");
                    table.refuse(findings, &Keys::window, message, hint);
                    group.recovered_at
                }
            },
            None => {
                if table.rate <= 0.0 {
                    let hint = "write for example 0.95";
                    table.refuse(findings, &Keys::rate, "the part must be above zero", hint);
                }
                RecoveredAt::Rate(table.rate)
            }
        }
    }

    fn recovered_from(&self, findings: &mut Findings) -> Option<Time> {
        let table = self.measure.recovered_at.as_ref()?;
        let table = self.measure.inside(&Measures::recovered_at, table);
        let from = table.from?;
        if from >= self.duration {
            let message = format!("the run of {} is over by then", self.duration);
            let hint = "write an earlier time or lengthen `duration`";
            table.refuse(findings, &RecoveredTable::from, message, hint);
        }
        Some(Time::ZERO + from)
    }
}

/// Length of a transfer, at least one segment.
pub(super) fn whole_segments(size: WindowSize, mss: u32) -> u64 {
    match size {
        WindowSize::Bytes(bytes) => bytes.0.div_ceil(u64::from(mss)),
        WindowSize::Segments(n) | WindowSize::Bdp(n) => n.ceil() as u64,
    }
}

/// Most connections of a run.
const MAX_FLOWS: u64 = 100_000;
