//! Whether a run that came from elsewhere can be run at all: every number in its range.
//!
//! The ranges are wide: what an experiment could want is in, what would divide by zero, never end,
//! or need memory without measure is not. What a server is willing to do is another question
//! ([`limits`](super::limits)).

use std::fmt::Display;

use fullpipe_cc::InitialSending;
use fullpipe_flow::{ArtificialLoss, Change, ReceiverConfig, SenderConfig};
use fullpipe_run::{
    ArrivalSpec, Arrivals, CrossSpec, Departures, Drops, FlowSpec, RunSpec, SizeLaw, TimedChange,
    Trace, Waveform,
};
use fullpipe_units::{Rate, Span, Time};

use super::request::Options;
use crate::content::Content;
use crate::file::name;

/// Longest run.
const LONGEST: Span = Span::from_secs(7 * 86_400);
/// Shortest width of a sample, and most of them.
const NARROWEST: Span = Span::from_micros(100);
const MOST_SAMPLES: u64 = 10_000_000;
/// Most flows, classes, sources and probes, each.
const MOST: usize = 4096;
/// Characters of a name.
const LONGEST_NAME: usize = 200;
/// Largest packet.
const LARGEST: u32 = 65_535;
/// Most short flows of a class.
const MOST_SHORT: f64 = 1e6;
/// Largest number of segments of anything.
const MOST_SEGMENTS: u64 = 1 << 48;
/// Most times, segments, steps or points of a list.
const MOST_POINTS: usize = 1 << 16;

/// Slow enough for the longest run to have a datagram, and faster than any host.
const SLOWEST: Rate = Rate::from_bits_per_sec(1000);
const FASTEST: Rate = Rate::from_bits_per_sec(10_000_000_000_000);
/// Shortest time between two probes.
const SHORTEST_GAP: Span = Span::from_micros(10);

type Checked = Result<(), String>;

/// Bounds of a request's options.
///
/// # Errors
/// The first option that is out of bounds, with its range.
pub fn options(options: &Options) -> Checked {
    if options.label.len() > LONGEST_NAME || options.label.contains(char::is_control) {
        return bad("the label", "too long or not text");
    }
    let names: Vec<&String> = match &options.content {
        Content::Put { name, .. } | Content::Get { name } => vec![name],
        Content::Store { items, .. } => items.iter().map(|item| &item.name).collect(),
        Content::Fetch { names } => names.iter().collect(),
        Content::Nothing | Content::Pattern { .. } => Vec::new(),
    };
    if names.iter().any(|name| name.len() > name::MOST) {
        return bad("the name of a file", "too long");
    }
    Ok(())
}

/// Bounds of a run specification that another host wrote. A client asks for nothing beyond them.
///
/// # Errors
/// What is out of its range, and the range.
pub fn run(spec: &RunSpec) -> Checked {
    let end = Time::ZERO + spec.duration;
    span("duration", spec.duration, Span::from_millis(1), LONGEST)?;
    within("measure_from", spec.measure_from, end)?;
    span("interval", spec.interval, NARROWEST, LONGEST)?;
    if spec.duration.as_nanos() / spec.interval.as_nanos() > MOST_SAMPLES {
        return bad("interval", "too many samples");
    }
    if let Trace::Every(step) = spec.trace {
        span("trace", step, Span::from_micros(1), LONGEST)?;
    }
    for (what, count) in [
        ("flows", spec.flows.len()),
        ("classes of short flows", spec.arrivals.len()),
        ("sources of cross traffic", spec.cross.len()),
    ] {
        if count > MOST {
            return bad(what, "too many");
        }
    }
    for f in &spec.flows {
        flow(f, end).map_err(|why| format!("flow {}: {why}", shown(&f.name)))?;
    }
    for a in &spec.arrivals {
        class(a, spec).map_err(|why| format!("short flows {}: {why}", shown(&a.template.name)))?;
    }
    for c in &spec.cross {
        cross(c, end).map_err(|why| format!("cross traffic {}: {why}", shown(&c.name)))?;
    }
    match spec.cross.is_sorted_by_key(|c| c.answered) {
        true => Ok(()),
        false => bad("cross traffic", "out of order"),
    }
}

fn flow(f: &FlowSpec, end: Time) -> Checked {
    name(&f.name)?;
    if f.stack.to_string().len() > 1000 {
        return bad("stack", "its spelling is too long");
    }
    sender(&f.sender)?;
    receiver(&f.receiver)?;
    within("start", f.start, end)?;
    span("spread of the start", f.start_spread, Span::ZERO, LONGEST)?;
    drops(&f.drops)?;
    drops(&f.arrival_drops)?;
    list("changes", f.changes.len())?;
    f.changes.iter().try_for_each(|timed| change(timed, end))
}

fn change(timed: &TimedChange, end: Time) -> Checked {
    within("change", timed.at, end)?;
    let Change { stack, window, .. } = &timed.change;
    if stack.as_ref().is_some_and(|s| s.to_string().len() > 1000) {
        return bad("changed stack", "its spelling is too long");
    }
    range("changed window", window.unwrap_or(1.0), 1.0, f64::INFINITY)
}

fn sender(s: &SenderConfig) -> Checked {
    range("segment size", f64::from(s.mss), 32.0, 65_000.0)?;
    range("header", f64::from(s.header), 0.0, 500.0)?;
    range("initial window", s.window.initial, 1.0, 1e7)?;
    // Infinite: no clamp.
    range("window", s.window.max, 1.0, f64::INFINITY)?;
    count("transfer", s.transfer.unwrap_or(1), 1, MOST_SEGMENTS)?;
    let rto = &s.rto;
    let minute = Span::from_secs(60);
    span("shortest timeout", rto.min, Span::from_micros(1), minute)?;
    span("longest timeout", rto.max, rto.min, minute * 60)?;
    span("first timeout", rto.initial, Span::from_micros(1), minute)?;
    span("clock grain", rto.granularity, Span::ZERO, minute)?;
    if let Some(limit) = s.window.slow_start_limit {
        range("slow-start limit", limit, 0.0, f64::INFINITY)?;
    }
    count("offload", u64::from(s.host.tso_segments), 1, 64)?;
    if let Some(gains) = s.pacing.gains {
        range("pacing gain", gains.slow_start, 0.01, 100.0)?;
        range("pacing gain", gains.avoidance, 0.01, 100.0)?;
    }
    if let InitialSending::Spread { t_max, jiffy } = s.pacing.initial {
        span("jiffy", jiffy, Span::from_nanos(1), minute)?;
        span(
            "t_max",
            t_max.unwrap_or(minute),
            Span::from_nanos(1),
            minute,
        )?;
    }
    span("ACK delay", s.timers.max_ack_delay, Span::ZERO, minute)?;
    span("probe margin", s.timers.probe_margin, Span::ZERO, minute)?;
    count("hz", u64::from(s.timers.hz), 1, 1_000_000)?;
    artificial_loss(&s.artificial_loss)
}

fn artificial_loss(a: &ArtificialLoss) -> Checked {
    list("artificial loss", a.segments.len().max(a.times.len()))?;
    count("artificial loss", a.every.unwrap_or(1), 1, u64::MAX)?;
    range("artificial loss", a.probability, 0.0, 1.0)?;
    range("artificial loss", a.at_window.unwrap_or(1.0), 0.0, 1e12)
}

fn drops(d: &Drops) -> Checked {
    list("drops", d.segments.len().max(d.times.len()))?;
    count("drops", d.every.unwrap_or(1), 1, u64::MAX)?;
    range("drops", d.probability, 0.0, 1.0)?;
    range("drops", d.at_window.unwrap_or(1.0), 0.0, 1e12)
}

fn receiver(r: &ReceiverConfig) -> Checked {
    count("ACK rule", u64::from(r.acks.every), 1, 1_000_000)?;
    span("ACK delay", r.acks.delay, Span::ZERO, Span::from_secs(60))?;
    count("SACK blocks", r.sack.blocks as u64, 0, 4)?;
    let most = u64::from(u32::MAX) - 1;
    count("advertised window", r.window.max.unwrap_or(1), 1, most)?;
    count("first window", r.window.first.unwrap_or(1), 1, most)?;
    count("widest window", r.window.widest.unwrap_or(1), 1, most)?;
    count("receive buffer", r.window.buffer.unwrap_or(1), 1, most)?;
    if r.window.first > r.window.max && r.window.max.is_some() {
        return bad("first window", "larger than the window");
    }
    if let Some(c) = r.acks.compression {
        span("ACK compression", c.delay, Span::ZERO, Span::from_secs(60))?;
        count("ACK compression", c.rtt_part, 1, 1_000_000)?;
        count("ACK compression", u64::from(c.most), 1, 1_000_000)?;
    }
    count("hz", u64::from(r.acks.hz.unwrap_or(1)), 1, 1_000_000)
}

fn class(a: &ArrivalSpec, spec: &RunSpec) -> Checked {
    flow(&a.template, Time::ZERO + spec.duration)?;
    if let Some(seed) = &a.seeded_by {
        name(seed)?;
    }
    range("exchanges", a.session.exchanges, 1.0, 1e6)?;
    span("think time", a.session.think, Span::ZERO, LONGEST)?;
    let seconds = spec.duration.as_secs_f64();
    match a.arrivals {
        Arrivals::Poisson { per_second } => {
            range("arrivals", per_second, 0.0, 1e6)?;
            range("arrivals in all", per_second * seconds, 0.0, MOST_SHORT)?;
        }
        Arrivals::Every(gap) => {
            span("gap", gap, Span::from_micros(1), LONGEST)?;
            range(
                "arrivals in all",
                seconds / gap.as_secs_f64(),
                0.0,
                MOST_SHORT,
            )?;
        }
        Arrivals::Spread { count: n, within } => {
            count("arrivals", n, 0, MOST_SHORT as u64)?;
            span("arrivals", within, Span::ZERO, LONGEST)?;
        }
    }
    match &a.sizes {
        SizeLaw::Fixed(n) => count("size", *n, 0, MOST_SEGMENTS),
        SizeLaw::Uniform(low, high) if low > high => bad("size", "upside down"),
        SizeLaw::Uniform(_, high) => count("size", *high, 0, MOST_SEGMENTS),
        SizeLaw::Pareto { mean, shape, most } => {
            range("mean size", *mean, 0.001, MOST_SEGMENTS as f64)?;
            range("shape", *shape, 1.0001, 1e6)?;
            count("largest size", *most, 1, MOST_SEGMENTS)
        }
        SizeLaw::Empirical(points) => {
            list("sizes", points.len())?;
            for (size, p) in points {
                range("size", *size, 0.0, MOST_SEGMENTS as f64)?;
                range("probability", *p, 0.0, 1.0)?;
            }
            let rises = points
                .windows(2)
                .all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1);
            match points.last() {
                Some((_, p)) if rises && *p == 1.0 => Ok(()),
                _ => bad("sizes", "not a distribution"),
            }
        }
    }
}

fn cross(c: &CrossSpec, end: Time) -> Checked {
    name(&c.name)?;
    count("packet", u64::from(c.packet), 64, u64::from(LARGEST))?;
    within("start", c.start, end)?;
    match &c.departures {
        Departures::Rate(law, _) => waveform(law),
        Departures::Every(gap) => span("interval", *gap, SHORTEST_GAP, LONGEST),
    }
}

fn waveform(waveform: &Waveform) -> Checked {
    let shortest = Span::from_micros(100);
    match waveform {
        Waveform::Steps { steps, period } => {
            list("steps", steps.len())?;
            let ascending = steps.windows(2).all(|w| w[0].0 < w[1].0);
            if steps.first().is_none_or(|s| s.0 != Span::ZERO) || !ascending {
                return bad("steps", "not ascending from zero");
            }
            for (at, r) in steps {
                span("step", *at, Span::ZERO, LONGEST)?;
                rate(*r)?;
            }
            span("period", period.unwrap_or(LONGEST), shortest, LONGEST)
        }
        Waveform::Sine {
            mean,
            amplitude,
            period,
        } => {
            rate(*mean)?;
            if amplitude > mean {
                return bad("amplitude", "larger than the mean");
            }
            span("period", *period, shortest, LONGEST)
        }
        Waveform::OnOff { rate: r, on, off } => {
            rate(*r)?;
            span("time on", *on, shortest, LONGEST)?;
            span("time off", *off, Span::ZERO, LONGEST)
        }
    }
}

fn name(name: &str) -> Checked {
    match name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control) {
        true => bad("name", "empty, too long or not text"),
        false => Ok(()),
    }
}

/// A rate of zero is silence.
fn rate(r: Rate) -> Checked {
    match r.as_bits_per_sec() {
        0 => Ok(()),
        _ => range("rate", r, SLOWEST, FASTEST),
    }
}

/// Fails for NaN.
fn range<T: PartialOrd + Display>(what: &str, x: T, least: T, most: T) -> Checked {
    match x >= least && x <= most {
        true => Ok(()),
        false => bad(what, &format!("{x} is out of range ({least} to {most})")),
    }
}

fn count(what: &str, n: u64, least: u64, most: u64) -> Checked {
    range(what, n, least, most)
}

fn span(what: &str, s: Span, least: Span, most: Span) -> Checked {
    range(what, s, least, most)
}

fn within(what: &str, t: Time, end: Time) -> Checked {
    match t <= end {
        true => Ok(()),
        false => bad(what, "after the end of the run"),
    }
}

fn list(what: &str, n: usize) -> Checked {
    match n <= MOST_POINTS {
        true => Ok(()),
        false => bad(what, "too many"),
    }
}

fn bad(what: &str, why: &str) -> Checked {
    Err(format!("{what}: {why}"))
}

/// The name may be anything yet.
fn shown(name: &str) -> String {
    crate::shown::shown(name).chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of datagrams on the wire count on it.
    #[test]
    fn what_is_answered_comes_last() {
        let silence = Waveform::Steps {
            steps: vec![(Span::ZERO, Rate::default())],
            period: None,
        };
        let source = CrossSpec::source("source", 100, silence, vec![]);
        let probes = CrossSpec::probes("probes", 100, Span::from_millis(1), vec![], vec![]);
        let mut spec = RunSpec {
            cross: vec![source, probes],
            ..RunSpec::default()
        };
        assert_eq!(run(&spec), Ok(()));
        spec.cross.reverse();
        assert_eq!(run(&spec), Err("cross traffic: out of order".to_owned()));
    }
}
