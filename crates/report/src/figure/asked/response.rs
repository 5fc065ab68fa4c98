//! Mean window of a stream over the rate of loss events, measured, beside the cycle that each law
//! has alone.

use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, cycle};
use fullpipe_metrics::Metric;
use fullpipe_scenario::Scenario;
use fullpipe_units::{Span, printed_text};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::view::View;
use super::window::read_again;
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let of_stack = view.stack_groups();
    let scenario = read_again(view);
    let mut seen: Vec<Point> = Vec::new();
    let mut lossless: Vec<String> = Vec::new();
    let mut most_streams = 1;
    let all = view.cases.iter().flat_map(|&c| {
        let flows = view.case(c).flows.iter();
        flows.map(move |flow| (c, flow))
    });
    for (case, flow) in all {
        if asked.of.as_ref().is_some_and(|of| *of != flow.name) {
            continue;
        }
        let both = flow
            .value(LOSSES)
            .filter(|p| *p > 0.0)
            .zip(flow.value(WINDOW));
        let Some((p, w)) = both else {
            lossless.push(match view.case_words(case).as_str() {
                "" => flow.name.clone(),
                words => format!("{} ({words})", flow.name),
            });
            continue;
        };
        let streams = streams(scenario.as_ref(), case, &flow.name);
        most_streams = most_streams.max(streams);
        seen.push(Point {
            stack: flow.stack.clone(),
            rtt_ms: flow.value(SHORTEST).unwrap_or(f64::INFINITY),
            at: (p, w / streams as f64),
        });
    }
    if seen.is_empty() {
        return Err(AskedError::Nothing {
            what: "no flow of the result lost anything after its warm-up".to_owned(),
            hint: "a path with `loss`, or flows with `drop.every`, as scenario `response` has"
                .to_owned(),
        });
    }
    let all = seen.len() + lossless.len();
    let highest = seen.iter().map(|point| point.at.1).fold(4.0, f64::max);
    let responses = responses(seen);
    let laws: Vec<Vec<(f64, f64)>> = (0..responses.len())
        .into_par_iter()
        .map(|i| law(&responses[i].stack, highest, responses[i].rtt_ms))
        .collect();
    let mut tidy = Rows {
        heads: [
            "stack",
            "rtt_ms",
            "kind",
            "loss_event_rate",
            "window_segments",
        ]
        .map(str::to_owned)
        .to_vec(),
        align: "lrlrr".to_owned(),
        ..Rows::default()
    };
    let one_each = |r: &Response| responses.iter().filter(|o| o.stack == r.stack).count() == 1;
    let by_stack = responses.iter().all(one_each);
    let mut lines = Vec::new();
    for (i, (response, law)) in responses.iter().zip(laws).enumerate() {
        let Response {
            stack,
            rtt_ms,
            points,
        } = response;
        let group = of_stack.iter().find(|(known, _)| known == stack);
        let group = group.map_or(0, |(_, group)| *group);
        let rtt = match rtt_ms.is_finite() {
            true => printed_text(*rtt_ms),
            false => String::new(),
        };
        for (kind, points) in [("measured", points), ("law alone", &law)] {
            let row = |p: &(f64, f64)| {
                let numbers = [printed_text(p.0), printed_text(p.1)];
                [
                    vec![stack.clone(), rtt.clone(), kind.to_owned()],
                    numbers.to_vec(),
                ]
                .concat()
            };
            tidy.rows.extend(points.iter().map(row));
        }
        let (name, group) = match by_stack {
            true => (stack.clone(), group),
            false => (format!("{stack}, {} ms", rtt_ms.round()), i),
        };
        let points = points.clone();
        lines.push(Line {
            name,
            group,
            points,
            dots: true,
            loose: true,
            ..Line::default()
        });
        lines.push(Line {
            group,
            points: law,
            ..Line::default()
        });
    }
    let panel = Panel {
        x: Axis {
            label: "loss events per segment".to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: match most_streams {
                1 => "mean window (segments)".to_owned(),
                _ => "mean window of a stream (segments)".to_owned(),
            },
            scale: Scale::Log,
        },
        lines,
        ..Panel::default()
    };
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            stacked: false,
            title: view.subtitle(),
            subtitle: "points: measured; lines: each law alone, one loss per cycle, no queue"
                .to_owned()
                + &match lossless.len() {
                    0 => String::new(),
                    n => format!("; not drawn: {n} of {all} flows, without a loss"),
                },
            panels: vec![panel],
        }),
        tidy,
        printed: None,
        taken: None,
        left_out: left_out(&lossless),
    })
}

/// Flows that a logarithm of their loss rate has no place for; of many the first.
fn left_out(flows: &[String]) -> Option<String> {
    let shown: Vec<&str> = flows.iter().take(SHOWN).map(String::as_str).collect();
    let more = match flows.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let words = format!(
        "not drawn, without a loss after the warm-up: {}{more}",
        shown.join(", ")
    );
    Some(words).filter(|_| !flows.is_empty())
}

/// Streams whose windows add up to that of a flow; a result of a version that did not keep what was
/// set tells of one.
fn streams(scenario: Option<&Scenario>, case: usize, flow: &str) -> usize {
    let case = scenario.and_then(|scenario| scenario.cases.get(case));
    let flows = case.into_iter().flat_map(|case| case.flows.iter());
    let mut own = flows.filter(|known| known.name == flow);
    own.next().map_or(1, |flow| flow.members.len().max(1))
}

/// A flow of a case.
struct Point {
    stack: String,
    rtt_ms: f64,
    /// Loss rate, and mean window of a stream.
    at: (f64, f64),
}

/// What was measured of a stack at one round-trip time, on which some laws depend.
struct Response {
    stack: String,
    /// The smallest.
    rtt_ms: f64,
    points: Vec<(f64, f64)>,
}

/// Flows of a stack whose smallest round-trip times are [`ALIKE`], in the order of the flows.
fn responses(seen: Vec<Point>) -> Vec<Response> {
    let mut all: Vec<Response> = Vec::new();
    for point in seen {
        let alike = |r: &&mut Response| {
            let (low, high) = (r.rtt_ms.min(point.rtt_ms), r.rtt_ms.max(point.rtt_ms));
            r.stack == point.stack && (high <= ALIKE * low || high == low)
        };
        match all.iter_mut().find(alike) {
            Some(known) => {
                known.rtt_ms = known.rtt_ms.min(point.rtt_ms);
                known.points.push(point.at);
            }
            None => all.push(Response {
                stack: point.stack,
                rtt_ms: point.rtt_ms,
                points: vec![point.at],
            }),
        }
    }
    all
}

/// Loss rate and mean window of the cycles of a stack up to a window; none of one that is not
/// driven by losses.
fn law(stack: &str, highest: f64, rtt_ms: f64) -> Vec<(f64, f64)> {
    let Ok(spec) = StackSpec::parse(stack) else {
        return Vec::new();
    };
    let conditions = Conditions {
        rtt: Span::from_nanos((rtt_ms.clamp(0.01, 1e4) * 1e6) as u64),
        mss: 1448,
        ..Conditions::default()
    };
    let (low, high) = (5.0_f64, (1.5 * highest).min(LARGEST));
    let step = |i: u32| low * (high / low).powf(f64::from(i) / f64::from(STEPS));
    let windows = (0..=STEPS).map(step);
    let cycles = windows.filter_map(|w| cycle(&spec, w, &conditions).ok());
    cycles.map(|c| (c.loss_rate(), c.mean_window)).collect()
}

/// Flows that are named where they are not drawn.
const SHOWN: usize = 6;
/// Quotient of two round-trip times that are one: a queue of some packets is none of its own.
const ALIKE: f64 = 1.2;
const LOSSES: &str = Metric::flow("loss_event_rate").name;
const WINDOW: &str = Metric::flow("cwnd_segments.mean").name;
const SHORTEST: &str = Metric::flow("rtt_ms.min").name;
/// Windows of a law's line.
const STEPS: u32 = 24;
/// A law takes seconds to drive at a larger window.
const LARGEST: f64 = 2e5;
