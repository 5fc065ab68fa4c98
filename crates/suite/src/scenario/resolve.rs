//! One case: from tables of typed values to the simulator's [`RunSpec`], with the checks between keys.

use fullpipe_cc::{Base, Count, PacingGains, StackSpec};
use fullpipe_flow::{
    AckCompression, ArtificialLoss, Detector, LocalDrop, LossWindow, Preset, ReceiverConfig,
    Reduction, RtoRule, RttSample, SenderConfig, TimerGrain, Validation,
};
use fullpipe_sim::{Buffer, Drops, FlowSpec, LinkSpec, Loss, RunSpec, Trace};
use fullpipe_units::{BufferSize, Bytes, Rate, Span, Time, WindowSize};

use super::document::{Fault, Place};
use super::matrix::Config;
use super::value::{Record, Value, flow_path};
use super::{FlowGroup, RecoveredAt, TraceMode, bdp_packets};

/// A resolved case.
#[derive(Debug)]
pub(super) struct Resolved {
    pub flows: Vec<FlowGroup>,
    pub warmup: Span,
    pub interval: Span,
    pub spec: RunSpec,
}

/// What was found wrong, or strange, in a case.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// The bottleneck.
#[derive(Clone, Copy, Debug)]
struct Path {
    rate: Rate,
    rtt: Span,
    packet: u32,
    /// Packets in the buffer; infinite if unlimited.
    room: f64,
    at: Place,
}

/// Links while they are being laid out.
#[derive(Debug)]
struct Layout {
    links: Vec<LinkSpec>,
    forward: Span,
}

/// Resolves one case; `None` if it cannot be run.
pub(super) fn resolve(
    config: &Config,
    names: &[String],
    findings: &mut Findings,
) -> Option<Resolved> {
    let before = findings.faults.len();
    let duration = required(findings, &config.top, "duration", "", r#"duration = "60s""#)
        .then(|| config.top.span("duration"))
        .flatten();
    let path = path(&config.path, findings);
    if config.flows.is_empty() && !config.top.is_attempted("flow") {
        let hint = "add [[flow]] with `stack = \"cubic\"`";
        findings.refuse_table(config.top.at, "flow", "there is no flow", hint);
    }
    for (flow, name) in config.flows.iter().zip(names) {
        required(
            findings,
            flow,
            "stack",
            &flow_key(name, ""),
            r#"stack = "cubic""#,
        );
    }
    let (duration, (path, bottleneck)) = (duration?, path?);
    let warmup = config.measure.span("warmup").unwrap_or(Span::ZERO);
    let interval = interval(&config.measure, duration, warmup, findings);

    let mut layout = Layout {
        links: vec![bottleneck],
        forward: forward_delay(config, path),
    };
    layout.links[BOTTLENECK].delay = layout.forward;
    let mut flows = Vec::new();
    let mut groups = Vec::new();
    for (record, name) in config.flows.iter().zip(names) {
        let judge = FlowJudge {
            record,
            name,
            path,
            duration,
            recovered: config.measure.record("recovered_at"),
        };
        let Some(mut group) = judge.resolve(findings, &mut layout, &mut flows) else {
            continue;
        };
        group.recovered_at = judge.recovered_at(&group, findings);
        groups.push(group);
    }
    check_size(config, path, duration, &groups, findings);
    if findings.faults.len() > before {
        return None;
    }
    let trace = match trace_mode(&config.measure) {
        TraceMode::Off => Trace::Off,
        TraceMode::Decimated => Trace::Every((duration / SERIES_ROWS).max(Span::from_nanos(1))),
        TraceMode::Full => Trace::Full,
    };
    let spec = RunSpec {
        seed: 0,
        duration,
        measure_from: Time::ZERO + warmup,
        interval,
        links: layout.links,
        flows,
        trace,
        ..RunSpec::default()
    };
    Some(Resolved {
        flows: groups,
        warmup,
        interval,
        spec,
    })
}

/// Time series asked for.
pub(super) fn trace_mode(measure: &Record) -> TraceMode {
    match measure.word("trace") {
        Some("off") => TraceMode::Off,
        Some("full") => TraceMode::Full,
        _ => TraceMode::Decimated,
    }
}

fn path(record: &Record, findings: &mut Findings) -> Option<(Path, LinkSpec)> {
    let has_rate = required(findings, record, "rate", "path", r#"rate = "100Mbit/s""#);
    let has_rtt = required(findings, record, "rtt", "path", r#"rtt = "80ms""#);
    let loss = loss(record, findings);
    if !(has_rate && has_rtt) {
        return None;
    }
    let (rate, rtt) = record.rate("rate").zip(record.span("rtt"))?;
    let packet = record
        .whole("mtu")
        .map_or(DEFAULT_MTU, |mtu| u32::try_from(mtu).unwrap_or(DEFAULT_MTU));
    let size = record.buffer("buffer").unwrap_or(BufferSize::Bdp(1.0));
    let transmit = rate.transmit(Bytes(u64::from(packet)));
    let (buffer, room) = match size {
        BufferSize::Packets(n) => (Buffer::Packets(n), n as f64),
        BufferSize::Bytes(bytes) => (Buffer::Bytes(bytes.0), bytes.0 as f64 / f64::from(packet)),
        BufferSize::Time(span) => (Buffer::Time(span), span.ratio(transmit)),
        BufferSize::Bdp(factor) => {
            let n = whole(factor * bdp_packets(rate, rtt, packet));
            (Buffer::Packets(n as u64), n)
        }
        BufferSize::Unlimited => (Buffer::Unlimited, f64::INFINITY),
    };
    if room < 1.0 {
        let message = match size {
            BufferSize::Bdp(_) => format!(
                "the buffer holds less than one packet of {packet} bytes: 1BDP is {} packets here",
                significant(bdp_packets(rate, rtt, packet))
            ),
            _ => format!("the buffer holds less than one packet of {packet} bytes"),
        };
        findings.refuse(
            record,
            "buffer",
            "path",
            message,
            "write at least \"1 packet\"",
        );
        return None;
    }
    let link = LinkSpec {
        loss,
        ..LinkSpec::new("bottleneck", Some(rate), Span::ZERO, buffer)
    };
    Some((
        Path {
            rate,
            rtt,
            packet,
            room,
            at: record.at,
        },
        link,
    ))
}

fn loss(path: &Record, findings: &mut Findings) -> Loss {
    if let Some(p) = path.real("loss") {
        return if p > 0.0 {
            Loss::Bernoulli { p }
        } else {
            Loss::None
        };
    }
    let Some(table) = path.record("loss") else {
        return Loss::None;
    };
    let key = "path.loss";
    let bernoulli: &[&str] = &["probability"];
    let gilbert: &[&str] = &["to_bad", "to_good", "good", "bad"];
    let (own, foreign, loss) = match table.word("model") {
        Some("bernoulli") => {
            let p = table.real("probability").unwrap_or(0.0);
            (bernoulli, gilbert, Loss::Bernoulli { p })
        }
        Some(_) => {
            let get = |name, default| table.real(name).unwrap_or(default);
            let (to_bad, to_good) = (get("to_bad", 0.0), get("to_good", 0.0));
            let (good, bad) = (get("good", 0.0), get("bad", 1.0));
            (
                gilbert,
                bernoulli,
                Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    good,
                    bad,
                },
            )
        }
        None => {
            required(
                findings,
                table,
                "model",
                key,
                r#"model = "gilbert-elliott""#,
            );
            return Loss::None;
        }
    };
    for name in own.iter().filter(|name| !matches!(**name, "good" | "bad")) {
        required(findings, table, name, key, &format!("{name} = 1e-4"));
    }
    for name in foreign.iter().filter(|name| table.is_given(name)) {
        let message = format!(
            "this key does not belong to the model `{}`",
            table.word("model").unwrap_or_default()
        );
        findings.refuse(
            table,
            name,
            key,
            message,
            &format!("its keys: {}", own.join(", ")),
        );
    }
    loss
}

fn interval(measure: &Record, duration: Span, warmup: Span, findings: &mut Findings) -> Span {
    let interval = measure
        .span("interval")
        .unwrap_or_else(|| DEFAULT_INTERVAL.min(duration / 20).max(Span::from_nanos(1)));
    if warmup >= duration {
        let message = format!("the warm-up is not shorter than the run of {duration}");
        findings.refuse(
            measure,
            "warmup",
            "measure",
            message,
            "shorten `warmup` or lengthen `duration`",
        );
    } else if interval > duration - warmup {
        let message = format!(
            "the interval is longer than the measured {}",
            duration - warmup
        );
        findings.refuse(
            measure,
            "interval",
            "measure",
            message,
            "shorten `interval`",
        );
    }
    if duration.ratio(interval) > MAX_INTERVALS {
        let message = format!("the run of {duration} has more than {MAX_INTERVALS} intervals");
        findings.refuse(
            measure,
            "interval",
            "measure",
            message,
            "lengthen `interval`",
        );
    }
    interval
}

/// Propagation from the bottleneck's entry to the receivers: half of the shortest RTT.
fn forward_delay(config: &Config, path: Path) -> Span {
    let shortest = config
        .flows
        .iter()
        .map(|flow| flow.span("rtt").unwrap_or(path.rtt))
        .min();
    shortest.unwrap_or(path.rtt) / 2
}

/// A flow under examination.
struct FlowJudge<'a> {
    record: &'a Record,
    name: &'a str,
    path: Path,
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
        let packet = self.path.packet;
        let preset = match r.word("preset") {
            Some("2003") => Preset::Y2003,
            Some("linux") => Preset::Linux,
            _ => Preset::Y2026,
        };
        let rtt = r.span("rtt").unwrap_or(self.path.rtt);
        if rtt < self.path.rtt {
            let message = format!(
                "the flow's RTT is below that of the path, {}",
                self.path.rtt
            );
            self.refuse(
                findings,
                "rtt",
                message,
                "lower `path.rtt` to the shortest RTT",
            );
        }
        let mut sender = SenderConfig::preset(preset, packet);
        let mut receiver = ReceiverConfig::preset(preset);
        if r.flag("timestamps") == Some(false) {
            sender.header = 40;
            sender.mss = packet.saturating_sub(40).max(1);
            receiver.sack_blocks = 4;
        }
        let mss = sender.mss;

        let start = Time::ZERO + r.span("start").unwrap_or(Span::ZERO);
        let stop = r.span("stop").map(|stop| Time::ZERO + stop);
        let end = Time::ZERO + self.duration;
        if start >= end {
            let message = format!("the flow starts when the run of {} is over", self.duration);
            self.refuse(
                findings,
                "start",
                message,
                "start it earlier or lengthen `duration`",
            );
        }
        if stop.is_some_and(|stop| stop <= start) {
            let message = format!(
                "the flow stops before it starts, at {}",
                r.span("start").unwrap_or(Span::ZERO)
            );
            self.refuse(findings, "stop", message, "stop it later");
        }

        let window = self.window("window", rtt, mss, findings);
        let advertised = self.window("receive_window", rtt, mss, findings);
        sender.max_window = window.unwrap_or(f64::INFINITY);
        receiver.window = advertised.map(|w| w as u64);
        let cap = match (window, advertised) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        sender.transfer = r.window("size").map(|size| match size {
            WindowSize::Bytes(bytes) => bytes.0.div_ceil(u64::from(mss)),
            WindowSize::Segments(n) | WindowSize::Bdp(n) => n.ceil() as u64,
        });

        self.receiver(&mut sender, &mut receiver, findings);
        self.switches(&mut sender, &mut receiver);
        let stack = r.stack("stack");
        if let Some(stack) = &stack {
            self.stack(stack, &mut sender, findings);
        }
        let drops = self.drops(
            &mut sender,
            start,
            stop.map_or(end, |s| s.min(end)),
            cap,
            findings,
        );
        let stack = *stack?;

        let nic = self.interface(layout, findings);
        let back = layout.return_link(rtt);
        let streams = r.whole("streams").unwrap_or(1);
        let first = flows.len();
        let has_drops = drops != Drops::default() || !sender.artificial_loss.is_none();
        let group = FlowGroup {
            name: self.name.to_owned(),
            stack: stack.to_string(),
            members: first..first + streams as usize,
            recovered_at: RecoveredAt::Rate(DEFAULT_RECOVERED),
            window_cap: cap,
            base_rtt: rtt,
            capacity: self.path.rate,
            packet,
            mss,
            ack_every: receiver.ack_every,
            start,
            stop,
            transfer: sender.transfer,
            has_drops,
        };
        if flows.len() as u64 + streams > MAX_FLOWS {
            let message = format!("a run has at most {MAX_FLOWS} connections");
            self.refuse(findings, "streams", message, "lower `streams`");
            return None;
        }
        for i in 1..=streams {
            let name = if streams == 1 {
                self.name.to_owned()
            } else {
                format!("{}.{i}", self.name)
            };
            flows.push(FlowSpec {
                name,
                stack: stack.clone(),
                sender: sender.clone(),
                receiver: receiver.clone(),
                forward: nic.into_iter().chain([BOTTLENECK]).collect(),
                back: vec![back],
                local_queue: nic.is_some(),
                start,
                start_spread: Span::ZERO,
                stop,
                drops: drops.clone(),
            });
        }
        Some(group)
    }

    /// A window in whole segments.
    fn window(&self, key: &str, rtt: Span, mss: u32, findings: &mut Findings) -> Option<f64> {
        let size = self.record.window(key)?;
        let segments = segments(size, self.path.rate, rtt, self.path.packet, mss);
        if segments < 1.0 {
            let message = match size {
                WindowSize::Bdp(_) => format!(
                    "the window is below one segment: 1BDP is {} packets here",
                    significant(bdp_packets(self.path.rate, rtt, self.path.packet))
                ),
                _ => format!("the window is below one segment of {mss} bytes"),
            };
            self.refuse(findings, key, message, "write at least \"1 segment\"");
        }
        Some(segments)
    }

    fn receiver(
        &self,
        sender: &mut SenderConfig,
        receiver: &mut ReceiverConfig,
        findings: &mut Findings,
    ) {
        let r = self.record;
        let every = r.whole("ack_every").map(|n| u32::try_from(n).unwrap_or(1));
        match (r.flag("delayed_ack"), every) {
            (Some(false), Some(2..)) | (Some(true), Some(1)) => {
                let message = "contradicts `delayed_ack`";
                self.refuse(findings, "ack_every", message, "leave one of them out");
            }
            (Some(false), _) => receiver.ack_every = 1,
            (_, Some(n)) => receiver.ack_every = n,
            (_, None) => {}
        }
        if let Some(delay) = r.span("ack_delay") {
            receiver.ack_delay = delay;
            sender.max_ack_delay = sender.max_ack_delay.max(delay);
        }
    }

    fn switches(&self, sender: &mut SenderConfig, receiver: &mut ReceiverConfig) {
        let r = self.record;
        match r.word("recovery") {
            Some("rack") => sender.detector = Detector::Rack,
            Some("sack") => sender.detector = Detector::Sack,
            Some("newreno") => sender.detector = Detector::NewReno,
            _ => {}
        }
        receiver.sack = sender.detector != Detector::NewReno;
        for (key, switch) in [
            ("tlp", &mut sender.tlp),
            ("frto", &mut sender.frto),
            ("undo", &mut sender.undo),
            ("ecn", &mut sender.ecn),
            ("handshake", &mut sender.handshake),
            ("recover_from_loss", &mut sender.recover_from_loss),
            (
                "timeout_reduces_in_recovery",
                &mut sender.timeout_reduces_in_recovery,
            ),
            ("head_restarts_timer", &mut sender.head_restarts_timer),
        ] {
            *switch = r.flag(key).unwrap_or(*switch);
        }
        sender.reduction = match (r.flag("prr"), sender.reduction) {
            (Some(false), _) => Reduction::Immediate,
            (Some(true), Reduction::Immediate) => Reduction::Prr,
            (_, preset) => preset,
        };
        if let Some(min) = r.span("min_rto") {
            sender.rto.min = min;
            sender.rto.max = sender.rto.max.max(min);
        }
        if let Some(hz) = r.whole("hz").and_then(|n| u32::try_from(n).ok()) {
            sender.hz = hz;
            receiver.hz = receiver.hz.map(|_| hz);
        }
        match r.word("timers") {
            Some("exact") => (sender.timers, receiver.hz) = (TimerGrain::Exact, None),
            Some("wheel") => (sender.timers, receiver.hz) = (TimerGrain::Wheel, Some(sender.hz)),
            _ => {}
        }
        match r.word("rto_formula") {
            Some("rfc6298") => sender.rto.rule = RtoRule::Rfc6298,
            Some("linux") => sender.rto.rule = RtoRule::Linux,
            _ => {}
        }
        match r.word("rtt_sample") {
            Some("newest") => sender.rto.sample = RttSample::Newest,
            Some("oldest") => sender.rto.sample = RttSample::Oldest,
            _ => {}
        }
        match r.word("loss_window") {
            Some("one") => sender.loss_window = LossWindow::One,
            Some("flight") => sender.loss_window = LossWindow::FlightPlusOne,
            _ => {}
        }
        match r.flag("push") {
            Some(false) => sender.refill = None,
            Some(true) => sender.refill = SenderConfig::preset(Preset::Linux, 1500).refill,
            None => {}
        }
        if let Some(n) = r.real("first_window") {
            receiver.first_window = Some(n as u64);
        }
        if let Some(n) = r.whole("quick_acks").and_then(|n| u32::try_from(n).ok()) {
            receiver.quick_acks = n;
        }
        receiver.compression = match (r.flag("merge_acks"), receiver.compression) {
            (Some(false), _) => None,
            (Some(true), None) => Some(AckCompression::LINUX),
            (_, preset) => preset,
        };
        match r.word("count") {
            Some("segments") => sender.count = Count::Segments,
            Some("acks") => sender.count = Count::Acks,
            _ => {}
        }
        match r.word("validation") {
            Some("none") => sender.validation = Validation::None,
            Some("rfc5681") => sender.validation = Validation::Rfc5681,
            Some("rfc2861") => sender.validation = Validation::Rfc2861,
            Some("rfc7661") => sender.validation = Validation::Rfc7661,
            _ => {}
        }
        match r.word("sendstall") {
            Some("react") => sender.local_drop = LocalDrop::React,
            Some("ignore") => sender.local_drop = LocalDrop::Ignore,
            Some("exit-slow-start") => sender.local_drop = LocalDrop::ExitSlowStart,
            _ => {}
        }
        match r.word("lost_retransmission") {
            Some("reduce") => sender.reduce_on_lost_retransmission = true,
            Some("ignore") => sender.reduce_on_lost_retransmission = false,
            _ => {}
        }
        match r.word("decrease_base") {
            Some("flight") => sender.base = Base::MinFlight,
            Some("cwnd") => sender.base = Base::Cwnd,
            _ => {}
        }
        if let Some(limit) = r.real("slow_start_limit") {
            sender.slow_start_limit = Some(limit);
        }
    }

    /// What the stack's spelling says about sending, and what the keys beside it say.
    fn stack(&self, stack: &StackSpec, sender: &mut SenderConfig, findings: &mut Findings) {
        let r = self.record;
        sender.sending = stack.sending().unwrap_or(sender.sending);
        let wanted = r.real("initial_window");
        if let (Some(spelled), Some(wanted)) = (stack.initial_window(), wanted)
            && spelled != wanted
        {
            let message = format!("the stack sets an initial window of {spelled} segments");
            self.refuse(
                findings,
                "initial_window",
                message,
                "keep `iw` or `initial_window`",
            );
        }
        if let Some(iw) = wanted.or(stack.initial_window()) {
            sender.initial_window = iw;
        }
        sender.pacing = stack.pacing();
        match r.flag("pacing") {
            Some(false) if sender.pacing.is_some() => {
                let message = "the stack paces";
                self.refuse(
                    findings,
                    "pacing",
                    message,
                    "take the pacing out of `stack`",
                );
            }
            Some(true) if sender.pacing.is_none() => sender.pacing = Some(PacingGains::default()),
            _ => {}
        }
        if sender.ecn {
            let message = "no queue of this version marks packets: `ecn` changes nothing";
            findings.warn(r, "ecn", &flow_key(self.name, ""), message);
        }
        if r.is_given("sendstall") && !r.is_given("txqueuelen") {
            let message = "there is no interface queue that could refuse a segment";
            findings.warn(r, "sendstall", &flow_key(self.name, ""), message);
        }
    }

    fn interface(&self, layout: &mut Layout, findings: &mut Findings) -> Option<usize> {
        let r = self.record;
        let Some(length) = r.whole("txqueuelen") else {
            if r.is_given("nic_rate") {
                let message = "there is no interface in front of the bottleneck";
                self.refuse(
                    findings,
                    "nic_rate",
                    message,
                    "set `txqueuelen`, for example 100",
                );
            }
            return None;
        };
        layout.links.push(LinkSpec::new(
            &format!("nic-{}", self.name),
            Some(r.rate("nic_rate").unwrap_or(self.path.rate)),
            Span::ZERO,
            // The packet on the wire is out of the queue.
            Buffer::Packets(length + 1),
        ));
        Some(layout.links.len() - 1)
    }

    fn drops(
        &self,
        sender: &mut SenderConfig,
        start: Time,
        end: Time,
        cap: Option<f64>,
        findings: &mut Findings,
    ) -> Drops {
        let mut on_path = ArtificialLoss::default();
        let mut at_sender = ArtificialLoss::default();
        let tables = self.record.many("drop");
        for (i, table) in tables.iter().enumerate() {
            let Value::Record(table) = table else {
                continue;
            };
            let key = match tables.len() {
                1 => flow_key(self.name, "drop"),
                _ => format!("{}[{}]", flow_key(self.name, "drop"), i + 1),
            };
            let rules = ["segment", "at_cwnd", "every", "probability", "time"];
            if !rules.iter().any(|rule| table.is_attempted(rule)) {
                let hint = "give `segment`, `at_cwnd`, `every`, `probability` or `time`";
                findings.refuse_table(table.at, &key, "nothing says which segments are lost", hint);
            }
            let loss = match table.word("where") {
                Some("sender") => &mut at_sender,
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
        for loss in [&mut on_path, &mut at_sender] {
            loss.segments.sort_unstable();
            loss.segments.dedup();
            loss.times.sort_unstable();
            loss.times.dedup();
        }
        sender.artificial_loss = at_sender;
        Drops {
            segments: on_path.segments,
            times: on_path.times,
            every: on_path.every,
            at_window: on_path.at_window,
            probability: on_path.probability,
        }
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
        findings.refuse(self.record, key, &flow_key(self.name, ""), message, hint);
    }
}

impl Layout {
    /// The way back of flows with this RTT, one link for all of them.
    fn return_link(&mut self, rtt: Span) -> usize {
        let delay = rtt.saturating_sub(self.forward);
        let name = format!("return-{delay}");
        if let Some(i) = self.links.iter().position(|link| link.name == name) {
            return i;
        }
        self.links.push(LinkSpec::pure_delay(&name, delay));
        self.links.len() - 1
    }
}

/// Refuses runs that no machine holds, and warns of those that take days.
fn check_size(
    config: &Config,
    path: Path,
    duration: Span,
    groups: &[FlowGroup],
    findings: &mut Findings,
) {
    let packets = path.rate.as_bits_per_sec() as f64 * duration.as_secs_f64()
        / (8.0 * f64::from(path.packet));
    let longest = groups.iter().map(|g| g.base_rtt).max().unwrap_or(path.rtt);
    let windows: f64 = groups
        .iter()
        .map(|g| g.window_cap.unwrap_or(f64::INFINITY) * g.members.len() as f64)
        .sum();
    let pipe = bdp_packets(path.rate, longest, path.packet) + path.room;
    let flight = packets.min(windows).min(pipe);
    if flight > MAX_FLIGHT {
        let message = format!(
            "about {flight:.1e} segments would be on the way at once, at most {MAX_FLIGHT:.0e} are allowed"
        );
        let hint = "lower `rate`, `rtt` or `buffer`, or cap the flows with `window`";
        findings.refuse_table(path.at, "path", &message, hint);
    }
    let rows = packets.min(windows * duration.ratio(path.rtt));
    if trace_mode(&config.measure) == TraceMode::Full && rows > MAX_ROWS {
        let message = format!("a full trace would have about {rows:.1e} rows");
        findings.refuse(
            &config.measure,
            "trace",
            "measure",
            message,
            "write \"decimated\", or shorten the run",
        );
    }
}

impl Findings {
    fn refuse(
        &mut self,
        table: &Record,
        key: &str,
        path: &str,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.faults.push(fault(
            table,
            key,
            path,
            message.into(),
            Some(hint.to_owned()),
        ));
    }

    fn refuse_table(&mut self, at: Place, key: &str, message: &str, hint: &str) {
        self.faults.push(Fault {
            at,
            key: key.to_owned(),
            shows_value: false,
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
        });
    }

    fn warn(&mut self, table: &Record, key: &str, path: &str, message: &str) {
        self.warnings
            .push(fault(table, key, path, message.to_owned(), None));
    }
}

fn fault(table: &Record, key: &str, path: &str, message: String, hint: Option<String>) -> Fault {
    let given = table
        .field(key)
        .is_some_and(|field| !matches!(field.value, Value::Record(_)));
    Fault {
        at: table.place(key),
        key: format!("{path}.{key}"),
        shows_value: given,
        message,
        hint,
    }
}

/// True if the key is given, be it wrong.
fn required(findings: &mut Findings, table: &Record, key: &str, path: &str, line: &str) -> bool {
    if table.is_given(key) {
        return true;
    }
    if table.is_attempted(key) {
        return false;
    }
    let full = if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    };
    findings.refuse_table(
        table.at,
        &full,
        "this key is missing",
        &format!("write for example {line}"),
    );
    false
}

fn flow_key(name: &str, key: &str) -> String {
    if key.is_empty() {
        flow_path(name)
    } else {
        format!("{}.{key}", flow_path(name))
    }
}

/// Whole segments of a window: bytes are payload, a BDP is counted in packets.
fn segments(size: WindowSize, rate: Rate, rtt: Span, packet: u32, mss: u32) -> f64 {
    match size {
        WindowSize::Bytes(bytes) => (bytes.0 / u64::from(mss.max(1))) as f64,
        WindowSize::Segments(n) => n.floor(),
        WindowSize::Bdp(factor) => whole(factor * bdp_packets(rate, rtt, packet)),
    }
}

/// A small number as people read it.
fn significant(x: f64) -> String {
    if x >= 0.01 {
        format!("{x:.3}")
    } else {
        format!("{x:.1e}")
    }
}

/// Rounds down, but lets 3499.9999999999995 be 3500.
fn whole(x: f64) -> f64 {
    (x * (1.0 + 1e-12)).floor()
}

const BOTTLENECK: usize = 0;
const DEFAULT_MTU: u32 = 1500;
const DEFAULT_INTERVAL: Span = Span::from_secs(5);
const DEFAULT_RECOVERED: f64 = 0.95;
const SERIES_ROWS: u64 = 2000;
const MAX_FLOWS: u64 = 100_000;
const MAX_INTERVALS: f64 = 1e6;
/// A segment costs the sender's and the network's books together about 100 bytes.
const MAX_FLIGHT: f64 = 5e7;
const MAX_ROWS: f64 = 2e8;
