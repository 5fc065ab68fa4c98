//! `[[traffic]]`: short flows, datagrams at a prescribed rate, probes.

use fullpipe_sim::{
    ArrivalSpec, Arrivals, FlowSpec, PingSpec, RunSpec, SizeLaw, SourceSpec, Spacing, Waveform,
};
use fullpipe_units::{Rate, Span, Time, WindowSize};

use super::super::keys::SIZE;
use super::super::value::{Record, Value, member_path};
use super::super::{TrafficGroup, TrafficKind};
use super::flow::{times, whole_segments};
use super::graph::{Layout, Leg, is_enabled};
use super::transport::TransportJudge;
use super::{Findings, Input, required};

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
        let Some(kind) = record.word("kind") else {
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
    kind: &'static str,
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
            word: self.kind.to_owned(),
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
            "short-flows" => self.short_flows(group, &leg, layout, spec, findings),
            "ping" => self.ping(group, &leg, layout, spec, findings),
            _ => self.datagrams(group, &leg, spec, findings),
        }
    }

    /// Keys of other kinds.
    fn own_keys(&self, findings: &mut Findings) {
        let own = own_keys(self.kind);
        let transport = self.kind == "short-flows";
        for key in self.record.keys {
            let mine = COMMON.contains(&key.name)
                || own.contains(&key.name)
                || (transport && !ANY_OWN.contains(&key.name));
            if mine || !self.record.is_given(key.name) {
                continue;
            }
            let message = format!("this key does not belong to the kind `{}`", self.kind);
            let hint = match own {
                [] => "leave it out".to_owned(),
                own => format!("its keys: {}", own.join(", ")),
            };
            self.refuse(findings, key.name, message, &hint);
        }
    }

    fn short_flows(
        &self,
        group: TrafficGroup,
        leg: &Leg,
        layout: &mut Layout,
        spec: &mut RunSpec,
        findings: &mut Findings,
    ) -> Option<TrafficGroup> {
        let r = self.record;
        let stack = required(findings, r, "stack", self.path, r#"stack = "cubic""#);
        let judge = TransportJudge::new(r, self.path, layout, leg, findings);
        let transport = if stack { judge.read(findings) } else { None };
        let (rtt, packet) = (judge.rtt, judge.packet);
        let mss = transport.as_ref().map_or(1, |t| t.sender.mss);
        let sizes = self.sizes(mss, findings);
        let (transport, sizes) = (transport?, sizes?);
        let mean = mean_size(&sizes);
        let bytes = mean * f64::from(packet);
        let arrivals = self.arrivals(&group, bytes, findings)?;
        let nic = layout.interface(r, self.name, leg);
        let template = FlowSpec {
            local_queue: nic.is_some(),
            start: group.start,
            stop: group.stop,
            ..FlowSpec::new(
                self.name,
                transport.stack.clone(),
                transport.sender,
                transport.receiver,
                nic.into_iter().chain(leg.forward.iter().copied()).collect(),
                layout.back(leg, rtt, None),
            )
        };
        let end = self.end(&group);
        let per_second = match arrivals {
            Arrivals::Poisson { per_second } => per_second,
            Arrivals::Every(gap) => 1.0 / gap.as_secs_f64(),
            Arrivals::Spread { count, within } => count as f64 / within.as_secs_f64(),
        };
        let flows = per_second * (end - group.start).as_secs_f64();
        if flows > MAX_ARRIVALS {
            let message = format!(
                "about {flows:.1e} flows would arrive, at most {MAX_ARRIVALS:.0e} are allowed"
            );
            findings.refuse_table(
                r.at,
                self.path,
                &message,
                "shorten the run, or lower their number",
            );
        }
        // What comes faster than it can be carried stays.
        let load = per_second * 8.0 * bytes / group.capacity.as_bits_per_sec() as f64;
        let open = flows * (1.0 - 1.0 / load);
        if flows <= MAX_ARRIVALS && open > MAX_OPEN {
            let message = format!(
                "the flows offer {load:.1} times the capacity: about {open:.1e} would be open at once, at most \
                 {MAX_OPEN:.0e} are allowed"
            );
            let hint = "lower their number or `size`, or raise the rate of the path";
            findings.refuse_table(r.at, self.path, &message, hint);
        }
        spec.arrivals.push(ArrivalSpec {
            template,
            arrivals,
            sizes,
        });
        Some(TrafficGroup {
            kind: TrafficKind::ShortFlows,
            index: spec.arrivals.len() - 1,
            stack: Some(transport.stack.to_string()),
            base_rtt: rtt,
            packet,
            mss,
            mean_size: Some(mean),
            offered: Some(rate_of(per_second * mean * f64::from(packet) * 8.0)),
            ..group
        })
    }

    /// One of `load`, `per_second`, `every`, `count`.
    fn arrivals(
        &self,
        group: &TrafficGroup,
        bytes: f64,
        findings: &mut Findings,
    ) -> Option<Arrivals> {
        let r = self.record;
        let forms = ["load", "per_second", "every", "count"];
        let given: Vec<&str> = forms.into_iter().filter(|form| r.is_given(form)).collect();
        if r.is_given("within") && !r.is_given("count") {
            let message = "a time in which how many arrive?";
            self.refuse(findings, "within", message, "write `count` beside it");
        }
        match given.as_slice() {
            ["load"] => {
                let load = r.real("load")?;
                if load <= 0.0 {
                    let message = "the load must be above zero";
                    self.refuse(findings, "load", message, "write for example \"60%\"");
                    return None;
                }
                let capacity = group.capacity.as_bits_per_sec() as f64;
                Some(Arrivals::Poisson {
                    per_second: load * capacity / (8.0 * bytes),
                })
            }
            ["per_second"] => Some(Arrivals::Poisson {
                per_second: r.real("per_second")?,
            }),
            ["every"] => r.span("every").map(Arrivals::Every),
            ["count"] => {
                let rest = self.end(group) - group.start;
                let within = r.span("within").unwrap_or(rest);
                if within > rest {
                    let message = format!("the traffic lasts only {rest}");
                    self.refuse(findings, "within", message, "shorten it");
                }
                let count = r.whole("count")?;
                Some(Arrivals::Spread { count, within })
            }
            [] => {
                let missing = !forms.iter().any(|form| r.is_attempted(form));
                if missing {
                    let hint = "give `load`, `per_second`, `every` or `count`";
                    let message = "nothing says how many flows arrive";
                    findings.refuse_table(r.at, self.path, message, hint);
                }
                None
            }
            [.., last] => {
                let message = format!("several numbers of flows: {}", given.join(", "));
                self.refuse(findings, last, message, "keep one of them");
                None
            }
        }
    }

    fn sizes(&self, mss: u32, findings: &mut Findings) -> Option<SizeLaw> {
        let r = self.record;
        if !required(findings, r, "size", self.path, r#"size = "10 segments""#) {
            return None;
        }
        if let Some(size) = r.window("size") {
            return Some(SizeLaw::Fixed(whole_segments(size, mss).max(1)));
        }
        let table = r.record("size")?;
        let path = format!("{}.size", self.path);
        let given: Vec<&str> = SIZE
            .iter()
            .map(|key| key.name)
            .filter(|name| table.is_given(name))
            .collect();
        match given.as_slice() {
            ["uniform"] => match table.field("uniform").map(|field| &field.value) {
                Some(Value::Bounds(low, high)) if whole_from_one(*low) && whole_from_one(*high) => {
                    Some(SizeLaw::Uniform(*low as u64, *high as u64))
                }
                Some(Value::Bounds(..)) => {
                    let message = "whole segments from 1 are expected";
                    findings.refuse(
                        table,
                        "uniform",
                        &path,
                        message,
                        "write for example [2, 30]",
                    );
                    None
                }
                _ => None,
            },
            ["pareto"] => {
                let law = table.record("pareto")?;
                let path = format!("{path}.pareto");
                let both = required(findings, law, "mean", &path, r#"mean = "10 segments""#)
                    & required(findings, law, "shape", &path, "shape = 1.2");
                if !both {
                    return None;
                }
                let mean = match law.window("mean")? {
                    WindowSize::Bytes(bytes) => bytes.0 as f64 / f64::from(mss),
                    WindowSize::Segments(n) | WindowSize::Bdp(n) => n,
                };
                let most = law
                    .window("most")
                    .map_or(MOST, |most| whole_segments(most, mss));
                if (most as f64) < mean {
                    let message = "larger transfers than the mean would all be cut";
                    findings.refuse(law, "most", &path, message, "raise it");
                }
                let shape = law.real("shape")?;
                Some(SizeLaw::Pareto { mean, shape, most })
            }
            ["file"] => {
                let files = self.input.files;
                let beside = table.place("file").is_in_file();
                match files.sizes(&table.text("file")?, beside) {
                    Ok(points) => Some(SizeLaw::Empirical(points.as_ref().clone())),
                    Err((message, hint)) => {
                        findings.refuse(table, "file", &path, message, &hint);
                        None
                    }
                }
            }
            [] => {
                let hint = "give `uniform`, `pareto` or `file`";
                findings.refuse_table(table.at, &path, "nothing says how long they are", hint);
                None
            }
            [.., last] => {
                let message = format!("several laws: {}", given.join(", "));
                findings.refuse(table, last, &path, message, "keep one of them");
                None
            }
        }
    }

    fn ping(
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

    fn datagrams(
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

    fn waveform(&self, findings: &mut Findings) -> Option<Waveform> {
        let r = self.record;
        let needed: &[(&str, &str)] = match self.kind {
            "udp" | "udp-blast" => &[("rate", r#"rate = "20Mbit/s""#)],
            "udp-on-off" => &[
                ("rate", r#"rate = "20Mbit/s""#),
                ("on", r#"on = "500ms""#),
                ("off", r#"off = "500ms""#),
            ],
            "udp-sine" => &[
                ("mean", r#"mean = "50Mbit/s""#),
                ("amplitude", r#"amplitude = "30Mbit/s""#),
                ("period", r#"period = "60s""#),
            ],
            "udp-staircase" => &[
                ("from", r#"from = "10Mbit/s""#),
                ("to", r#"to = "100Mbit/s""#),
                ("step", r#"step = "10Mbit/s""#),
                ("every", r#"every = "10s""#),
            ],
            _ => &[("file", r#"file = "rates.csv""#)],
        };
        let mut all = true;
        for (key, line) in needed {
            all &= required(findings, r, key, self.path, line);
        }
        if !all {
            return None;
        }
        let constant = |rate| Waveform::Steps {
            steps: vec![(Span::ZERO, rate)],
            period: None,
        };
        match self.kind {
            "udp" | "udp-blast" => r.rate("rate").map(constant),
            "udp-on-off" => Some(Waveform::OnOff {
                rate: r.rate("rate")?,
                on: r.span("on")?,
                off: r.span("off")?,
            }),
            "udp-sine" => {
                let (mean, amplitude) = (r.rate("mean")?, r.rate("amplitude")?);
                if amplitude > mean {
                    let message = format!("the rate would fall below zero: the mean is {mean}");
                    self.refuse(findings, "amplitude", message, "at most the mean");
                }
                let period = r.span("period")?;
                Some(Waveform::Sine {
                    mean,
                    amplitude,
                    period,
                })
            }
            "udp-staircase" => self.staircase(findings),
            _ => {
                let files = self.input.files;
                let beside = r.place("file").is_in_file();
                match files.rates(&r.text("file")?, beside) {
                    Ok(steps) => self.steps(steps.as_ref().clone(), false, findings),
                    Err((message, hint)) => {
                        self.refuse(findings, "file", message, &hint);
                        None
                    }
                }
            }
        }
    }

    fn staircase(&self, findings: &mut Findings) -> Option<Waveform> {
        let r = self.record;
        let bits = |key| r.rate(key).map(Rate::as_bits_per_sec);
        let (from, to, step) = (bits("from")?, bits("to")?, bits("step")?);
        let every = r.span("every")?;
        let stairs = from.abs_diff(to) / step;
        if stairs == 0 {
            let message = "there is no step between `from` and `to`";
            self.refuse(findings, "step", message, "lower it");
            return None;
        }
        if stairs > MAX_STEPS {
            let message = format!("{stairs} steps, at most {MAX_STEPS} are allowed");
            self.refuse(findings, "step", message, "raise it");
            return None;
        }
        let rate = |i: u64| {
            let bits = if to > from {
                from + i * step
            } else {
                from - i * step
            };
            Rate::from_bits_per_sec(bits)
        };
        let steps = (0..=stairs).map(|i| (every * i, rate(i))).collect();
        self.steps(steps, true, findings)
    }

    /// Steps with the `period` that the table gives; `with_end`: the last one lasts as long as the others.
    fn steps(
        &self,
        steps: Vec<(Span, Rate)>,
        with_end: bool,
        findings: &mut Findings,
    ) -> Option<Waveform> {
        let period = self.record.span("period");
        let last = steps.last().map_or(Span::ZERO, |(at, _)| *at);
        let every = self.record.span("every").filter(|_| with_end);
        let least = last + every.unwrap_or(Span::ZERO);
        let short = |period: &Span| *period <= last || *period < least;
        if period.as_ref().is_some_and(short) {
            let message = format!("the sequence lasts longer, {least}");
            self.refuse(findings, "period", message, "lengthen it");
            return None;
        }
        Some(Waveform::Steps { steps, period })
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

/// Mean of a law, whole segments: the sum of the probabilities of more than k segments.
pub(super) fn mean_size(law: &SizeLaw) -> f64 {
    match law {
        SizeLaw::Fixed(n) => *n as f64,
        SizeLaw::Uniform(low, high) => (*low as f64 + *high as f64) / 2.0,
        SizeLaw::Pareto { mean, shape, most } => {
            let least = mean * (shape - 1.0) / shape;
            let above = |k: f64| {
                if k < least {
                    1.0
                } else {
                    (least / k).powf(*shape)
                }
            };
            let exact = (*most).min(SUMMED);
            let sum: f64 = (0..exact).map(|k| above(k as f64)).sum();
            // The rest as an integral, from the middle of the last step.
            let tail = |k: f64| least.powf(*shape) * k.powf(1.0 - shape) / (shape - 1.0);
            let rest = if *most > SUMMED {
                tail(SUMMED as f64 - 0.5) - tail(*most as f64 - 0.5)
            } else {
                0.0
            };
            sum + rest
        }
        SizeLaw::Empirical(points) => {
            let first = points.first().map_or(0.0, |(size, part)| size * part);
            let between = points.windows(2).map(|pair| {
                let ((a, p), (b, q)) = (pair[0], pair[1]);
                (q - p) * (a + b) / 2.0
            });
            // Rounded up to whole segments: half a segment more.
            (first + between.sum::<f64>() + 0.5).max(1.0)
        }
    }
}

/// Mean rate while the source runs; `None` for steps that do not repeat.
fn mean_rate(waveform: &Waveform) -> Option<Rate> {
    match waveform {
        Waveform::Sine { mean, .. } => Some(*mean),
        Waveform::OnOff { rate, on, off } => {
            let part = on.as_secs_f64() / (*on + *off).as_secs_f64();
            Some(rate_of(rate.as_bits_per_sec() as f64 * part))
        }
        Waveform::Steps { steps, .. } if steps.len() == 1 => Some(steps[0].1),
        Waveform::Steps { period: None, .. } => None,
        Waveform::Steps {
            steps,
            period: Some(period),
        } => {
            let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([*period]);
            let bits = steps
                .iter()
                .zip(ends)
                .map(|((at, rate), end)| rate.as_bits_per_sec() as f64 * (end - *at).as_secs_f64());
            Some(rate_of(bits.sum::<f64>() / period.as_secs_f64()))
        }
    }
}

fn rate_of(bits_per_sec: f64) -> Rate {
    Rate::from_bits_per_sec(bits_per_sec.round().min(1e18) as u64)
}

fn whole_from_one(x: f64) -> bool {
    (1.0..=1e9).contains(&x) && x.fract() == 0.0
}

/// Keys of a kind beside those of all.
fn own_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "short-flows" => &["size", "load", "per_second", "every", "count", "within"],
        "udp" => &["rate", "packet", "spacing"],
        "udp-on-off" => &["rate", "on", "off", "packet", "spacing"],
        "udp-sine" => &["mean", "amplitude", "period", "packet", "spacing"],
        "udp-blast" => &["rate", "volume", "packet", "spacing"],
        "udp-staircase" => &["from", "to", "step", "every", "period", "packet", "spacing"],
        "udp-file" => &["file", "period", "packet", "spacing"],
        _ => &["interval", "size", "rtt"],
    }
}

const COMMON: &[&str] = &["name", "kind", "enabled", "direction", "start", "stop"];
/// Keys that are none of a transport's.
const ANY_OWN: &[&str] = &[
    "size",
    "load",
    "per_second",
    "every",
    "count",
    "within",
    "rate",
    "on",
    "off",
    "mean",
    "amplitude",
    "period",
    "volume",
    "from",
    "to",
    "step",
    "file",
    "packet",
    "spacing",
    "interval",
];

const PING_SIZE: u64 = 64;
/// IPv4 and ICMP.
const PING_HEADERS: u64 = 28;
const MOST: u64 = 1_000_000_000;
const SUMMED: u64 = 10_000;
const MAX_STEPS: u64 = 100_000;
const MAX_ARRIVALS: f64 = 1e7;
/// An open connection costs about 6 kB.
const MAX_OPEN: f64 = 1e5;
