//! One case: from tables of typed values to the simulator's [`RunSpec`], with the checks between keys.
//!
//! `path` makes links of what a table says about one, `graph` lays them out and finds the ways over them, `flow` and
//! `transport` make flows, `traffic` everything else that sends.

mod flow;
mod graph;
mod path;
mod traffic;
mod transport;

use fullpipe_run::{RunSpec, Trace};
use fullpipe_units::{Rate, Span, Time, WindowSize};

use super::document::{Fault, Place};
use super::files::Files;
use super::matrix::{Config, Names};
use super::value::{Record, Value, flow_path};
use super::{FlowGroup, TraceMode, TrafficGroup, bdp_packets};
use graph::Layout;

/// A resolved case.
#[derive(Debug)]
pub(super) struct Resolved {
    pub flows: Vec<FlowGroup>,
    pub traffic: Vec<TrafficGroup>,
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

/// What a case is resolved from.
#[derive(Clone, Copy)]
struct Input<'a> {
    config: &'a Config,
    names: &'a Names,
    files: &'a Files,
    duration: Span,
}

/// Resolves one case; `None` if it cannot be run.
pub(super) fn resolve(
    config: &Config,
    names: &Names,
    files: &Files,
    findings: &mut Findings,
) -> Option<Resolved> {
    let before = findings.faults.len();
    let duration = required(findings, &config.top, "duration", "", r#"duration = "60s""#)
        .then(|| config.top.span("duration"))
        .flatten();
    let nothing = ["flow", "traffic"]
        .iter()
        .all(|list| !config.top.is_attempted(list));
    if config.flows.is_empty() && config.traffic.is_empty() && nothing {
        let hint = "add [[flow]] with `stack = \"cubic\"`";
        findings.refuse_table(config.top.at, "flow", "there is no flow", hint);
    }
    for (flow, name) in config.flows.iter().zip(&names.flows) {
        required(
            findings,
            flow,
            "stack",
            &flow_key(name, ""),
            r#"stack = "cubic""#,
        );
    }
    let layout = Layout::new(config, names, files, duration, findings);
    let (duration, mut layout) = (duration?, layout?);
    let input = Input {
        config,
        names,
        files,
        duration,
    };
    let warmup = config.measure.span("warmup").unwrap_or(Span::ZERO);
    let interval = interval(&config.measure, duration, warmup, findings);

    let mut spec = RunSpec {
        seed: 0,
        duration,
        measure_from: Time::ZERO + warmup,
        interval,
        trace: match trace_mode(&config.measure) {
            TraceMode::Off => Trace::Off,
            TraceMode::Decimated => Trace::Every((duration / SERIES_ROWS).max(Span::from_nanos(1))),
            TraceMode::Full => Trace::Full,
        },
        ..RunSpec::default()
    };
    let flows = flow::flows(input, &mut layout, &mut spec.flows, findings);
    let traffic = traffic::traffic(input, &mut layout, &mut spec, findings);
    check_size(config, &layout, &flows, &spec, findings);
    if findings.faults.len() > before {
        return None;
    }
    spec.links = layout.links;
    Some(Resolved {
        flows,
        traffic,
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

/// Refuses runs that no machine holds.
fn check_size(
    config: &Config,
    layout: &Layout,
    groups: &[FlowGroup],
    spec: &RunSpec,
    findings: &mut Findings,
) {
    let mtu = layout.mtu;
    let rated = || {
        layout
            .links
            .iter()
            .filter(|link| !link.name.starts_with("nic-"))
    };
    let rate = rated()
        .filter_map(|link| link.rate)
        .map(|rate| rate.as_bits_per_sec() as f64);
    let rate: f64 = rate.sum();
    let packets = rate * spec.duration.as_secs_f64() / (8.0 * f64::from(mtu));
    let default_rtt = layout.dumbbell.map(|d| d.rtt);
    let rtts = || groups.iter().map(|g| g.base_rtt).chain(default_rtt);
    let longest = rtts().max().unwrap_or(Span::ZERO);
    let open = !(spec.arrivals.is_empty() && spec.sources.is_empty());
    let windows: f64 = groups
        .iter()
        .map(|g| g.window_cap.unwrap_or(f64::INFINITY) * g.members.len() as f64)
        .chain(open.then_some(f64::INFINITY))
        .sum();
    let pipe = rate * longest.as_secs_f64() / (8.0 * f64::from(mtu)) + layout.room;
    let flight = packets.min(windows).min(pipe);
    if flight > MAX_FLIGHT {
        let message = format!(
            "about {flight:.1e} segments would be on the way at once, at most {MAX_FLIGHT:.0e} are allowed"
        );
        let hint = "lower `rate`, `rtt` or `buffer`, or cap the flows with `window`";
        findings.refuse_table(layout.at, "path", &message, hint);
    }
    let round = rtts().min().unwrap_or(longest).max(Span::from_nanos(1));
    let rows = packets.min(windows * spec.duration.ratio(round));
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

const DEFAULT_MTU: u32 = 1500;
const DEFAULT_INTERVAL: Span = Span::from_secs(5);
const SERIES_ROWS: u64 = 2000;
const MAX_FLOWS: u64 = 100_000;
const MAX_INTERVALS: f64 = 1e6;
/// A segment costs the sender's and the network's books together about 100 bytes.
const MAX_FLIGHT: f64 = 5e7;
const MAX_ROWS: f64 = 2e8;
