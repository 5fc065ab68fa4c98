//! One case: from tables of typed values to the simulator's [`RunSpec`], with the checks between
//! keys.
//!
//! `path` makes links of what a table says about one, `graph` lays them out and finds the ways over
//! them, `flow` and `transport` make flows, `traffic` everything else that sends.

mod change;
mod flow;
mod graph;
mod inert;
mod marks;
mod path;
mod sizes;
mod tables;
mod traffic;
mod transport;

use fullpipe_metrics::{FlowGroup, TrafficGroup};
use fullpipe_run::{RunSpec, Trace};
use fullpipe_units::{Rate, Span, Time};

use super::files::Files;
use super::keys::{INTERVAL, INTERVALS, Measures, Top, Transport};
use super::matrix::{Config, Names};
use super::scenario::TraceMode;
use super::value::{At, Findings};
use graph::Layout;
use tables::{Input, Tables};

/// A resolved case.
#[derive(Debug)]
pub(super) struct Resolved {
    pub flows: Vec<FlowGroup>,
    pub traffic: Vec<TrafficGroup>,
    pub warmup: Span,
    pub interval: Span,
    pub spec: RunSpec,
}

/// Resolves one case; `None` if it cannot be run.
pub(super) fn resolve(
    config: &Config,
    names: &Names,
    files: &Files,
    findings: &mut Findings,
) -> Option<Resolved> {
    let before = findings.faults.len();
    let tables = Tables::new(config, names);
    let top = At::<Top>::new(&config.top, "");
    top.required(&Top::duration, findings);
    let nothing = tables.flows.is_empty() && tables.traffic.is_empty();
    if nothing && !top.is_attempted(&Top::flow) && !top.is_attempted(&Top::traffic) {
        let hint = "add [[flow]] with `stack = \"cubic\"`";
        findings.refuse_table(config.top.at, "flow", "there is no flow", hint);
    }
    for flow in &tables.flows {
        flow.at.required(&Transport::stack, findings);
    }
    let layout = Layout::new(&tables, files, top.duration, findings);
    let (duration, mut layout) = (top.duration?, layout?);
    let input = Input {
        tables: &tables,
        files,
        duration,
    };
    let measure = &tables.measure;
    let interval = interval(measure, duration, findings);

    let mut spec = RunSpec {
        seed: 0,
        duration,
        measure_from: Time::ZERO + measure.warmup,
        interval,
        trace: match measure.trace {
            TraceMode::Off => Trace::Off,
            TraceMode::Decimated => Trace::Every((duration / SERIES_ROWS).max(Span::from_nanos(1))),
            TraceMode::Full => Trace::Full,
        },
        ..RunSpec::default()
    };
    let flows = flow::flows(input, &mut layout, &mut spec.flows, findings);
    let traffic = traffic::traffic(input, &mut layout, &mut spec, findings);
    check_size(measure, &layout, &flows, &spec, findings);
    if findings.faults.len() > before {
        return None;
    }
    spec.links = layout.links;
    marks::warn(&tables, (&flows, &traffic), &spec, findings);
    Some(Resolved {
        flows,
        traffic,
        warmup: measure.warmup,
        interval,
        spec,
    })
}

fn interval(measure: &At<'_, Measures>, duration: Span, findings: &mut Findings) -> Span {
    let (interval, warmup) = (measure.interval, measure.warmup);
    let usual = || INTERVAL.min(duration / INTERVALS).max(Span::from_nanos(1));
    let interval = interval.unwrap_or_else(usual);
    if warmup >= duration {
        let message = format!("the warm-up is not shorter than the run of {duration}");
        let hint = "shorten `warmup` or lengthen `duration`";
        measure.refuse(findings, &Measures::warmup, message, hint);
    } else if interval > duration - warmup {
        let rest = duration - warmup;
        let message = format!("the interval is longer than the measured {rest}");
        measure.refuse(findings, &Measures::interval, message, "shorten `interval`");
    }
    if duration.ratio(interval) > MAX_INTERVALS {
        let message = format!("the run of {duration} has more than {MAX_INTERVALS} intervals");
        measure.refuse(
            findings,
            &Measures::interval,
            message,
            "lengthen `interval`",
        );
    }
    interval
}

/// Refuses runs that no machine holds.
fn check_size(
    measure: &At<'_, Measures>,
    layout: &Layout,
    groups: &[FlowGroup],
    spec: &RunSpec,
    findings: &mut Findings,
) {
    let mtu = f64::from(layout.mtu);
    let rated = layout.links.iter().filter(|link| !link.is_interface);
    let bits = |rate: Rate| rate.as_bits_per_sec() as f64;
    let rate: f64 = rated.filter_map(|link| link.rate).map(bits).sum();
    let packets = rate * spec.duration.as_secs_f64() / (8.0 * mtu);
    let default_rtt = layout.dumbbell.map(|d| d.rtt);
    let rtts = || groups.iter().map(|g| g.base_rtt).chain(default_rtt);
    let longest = rtts().max().unwrap_or(Span::ZERO);
    let open = !(spec.arrivals.is_empty() && spec.cross_numbers().one_way == 0);
    let windows: f64 = groups
        .iter()
        .map(|g| g.window_cap.unwrap_or(f64::INFINITY) * g.members.len() as f64)
        .chain(open.then_some(f64::INFINITY))
        .sum();
    let pipe = rate * longest.as_secs_f64() / (8.0 * mtu) + layout.room;
    let flight = packets.min(windows).min(pipe);
    if flight > MAX_FLIGHT {
        let message = format!(
            "about {flight:.1e} segments would be on the way at once, at most {MAX_FLIGHT:.0e} are \
             allowed"
        );
        let hint = "lower `rate`, `rtt` or `buffer`, or cap the flows with `window`";
        findings.refuse_table(layout.at, "path", &message, hint);
    }
    let round = rtts().min().unwrap_or(longest).max(Span::from_nanos(1));
    let rows = packets.min(windows * spec.duration.ratio(round));
    if measure.trace == TraceMode::Full && rows > MAX_ROWS {
        let message = format!("a full trace would have about {rows:.1e} rows");
        let hint = "write \"decimated\", or shorten the run";
        measure.refuse(findings, &Measures::trace, message, hint);
    }
}

const SERIES_ROWS: u64 = 2000;
const MAX_INTERVALS: f64 = 1e6;
/// A segment costs the sender's and the network's books together about 100 bytes.
const MAX_FLIGHT: f64 = 5e7;
const MAX_ROWS: f64 = 2e8;
