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
            rtt_ms: flow.value(RTT).unwrap_or(f64::INFINITY),
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
    let alike = alike(seen);
    let laws: Vec<Vec<(f64, f64)>> = (0..alike.len())
        .into_par_iter()
        .map(|i| law(&alike[i].stack, highest, alike[i].rtt_ms()))
        .collect();
    let responses = responses(alike.into_iter().zip(laws));
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
    let mut free = 1 + of_stack.iter().map(|(_, group)| *group).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (i, response) in responses.iter().enumerate() {
        let stack = &response.stack;
        let row = |rtt_ms: f64, kind: &str, (p, w): (f64, f64)| {
            let rtt = Some(rtt_ms).filter(|rtt| rtt.is_finite());
            let rtt = rtt.map_or_else(String::new, printed_text);
            let numbers = [printed_text(p), printed_text(w)];
            [vec![stack.clone(), rtt, kind.to_owned()], numbers.to_vec()].concat()
        };
        let measured = response.points.iter();
        let measured = measured.map(|point| row(point.rtt_ms, "measured", point.at));
        tidy.rows.extend(measured);
        let law = response.law.iter();
        tidy.rows
            .extend(law.map(|at| row(response.law_rtt_ms, "law alone", *at)));
        // The first of a stack looks as the stack does in other figures.
        let of_stack = of_stack.iter().find(|(known, _)| known == stack);
        let first = responses.iter().position(|r| r.stack == *stack) == Some(i);
        let group = match of_stack.filter(|_| first) {
            Some((_, group)) => *group,
            None => {
                free += 1;
                free - 1
            }
        };
        let alone = responses.iter().filter(|r| r.stack == *stack).count() == 1;
        lines.push(Line {
            name: match alone {
                true => stack.clone(),
                false => format!("{stack}, {}", response.rtts()),
            },
            group,
            points: response.points.iter().map(|point| point.at).collect(),
            dots: true,
            loose: true,
            ..Line::default()
        });
        // A single one would look like what was measured.
        if response.law.len() > 1 {
            lines.push(Line {
                group,
                points: response.law.clone(),
                ..Line::default()
            });
        }
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
            subtitle: "points: measured; lines: each law alone at the mean RTT, one loss per cycle"
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

/// Flows of a stack whose mean round-trip times, on which some laws depend, are [`ALIKE`]. A
/// standing queue is part of them: CUBIC behind one grows as slowly as on a longer path.
struct Alike {
    stack: String,
    /// Ascending in their round-trip times.
    points: Vec<Point>,
}

impl Alike {
    fn rtt_ms(&self) -> f64 {
        let sum: f64 = self.points.iter().map(|point| point.rtt_ms).sum();
        sum / self.points.len() as f64
    }
}

/// Stacks in the order of the flows, each with its round-trip times ascending.
fn alike(seen: Vec<Point>) -> Vec<Alike> {
    let mut stacks: Vec<String> = Vec::new();
    for point in &seen {
        if !stacks.contains(&point.stack) {
            stacks.push(point.stack.clone());
        }
    }
    let place = |point: &Point| stacks.iter().position(|stack| *stack == point.stack);
    let mut sorted = seen;
    sorted.sort_by(|a, b| (place(a).cmp(&place(b))).then(a.rtt_ms.total_cmp(&b.rtt_ms)));
    let mut all: Vec<Alike> = Vec::new();
    for point in sorted {
        let near = |known: &&mut Alike| {
            let least = known.points[0].rtt_ms;
            known.stack == point.stack && (point.rtt_ms <= ALIKE * least)
        };
        match all.last_mut().filter(near) {
            Some(known) => known.points.push(point),
            None => all.push(Alike {
                stack: point.stack.clone(),
                points: vec![point],
            }),
        }
    }
    all
}

/// What was measured of a stack where its law is one.
struct Response {
    stack: String,
    points: Vec<Point>,
    law: Vec<(f64, f64)>,
    /// Round-trip time of the law.
    law_rtt_ms: f64,
}

impl Response {
    /// `20 ms`, or from the shortest to the longest.
    fn rtts(&self) -> String {
        let rtts = || self.points.iter().map(|point| point.rtt_ms);
        let least = rtts().fold(f64::INFINITY, f64::min);
        let most = rtts().fold(0.0, f64::max);
        match most <= ALIKE * least {
            true => format!("{} ms", self.law_rtt_ms.round()),
            false => format!("{} to {} ms", least.round(), most.round()),
        }
    }
}

/// Round-trip times at which a law is the same, or there is none, are one.
fn responses(each: impl Iterator<Item = (Alike, Vec<(f64, f64)>)>) -> Vec<Response> {
    let mut all: Vec<Response> = Vec::new();
    for (of, law) in each {
        let same = |known: &&mut Response| known.stack == of.stack && one(&known.law, &law);
        match all.last_mut().filter(same) {
            Some(known) => known.points.extend(of.points),
            None => all.push(Response {
                law_rtt_ms: of.rtt_ms(),
                stack: of.stack,
                points: of.points,
                law,
            }),
        }
    }
    all
}

/// True of laws that nobody could tell apart: at every window the rates of losses are [`NEAR`].
fn one(a: &[(f64, f64)], b: &[(f64, f64)]) -> bool {
    let near = |x: f64, y: f64| (x / y).ln().abs() < NEAR.ln();
    let both = a.iter().zip(b);
    let mut both = both.map(|(a, b)| near(a.0, b.0) && near(a.1, b.1));
    a.len() == b.len() && both.all(|same| same)
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
/// Quotient of two round-trip times that are one: some packets more in a queue are no other path.
const ALIKE: f64 = 1.2;
const LOSSES: &str = Metric::flow("loss_event_rate").name;
const WINDOW: &str = Metric::flow("cwnd_segments.mean").name;
const RTT: &str = Metric::flow("rtt_ms.mean").name;
/// Quotient of two rates of losses at which a law is one.
const NEAR: f64 = 1.1;
/// Windows of a law's line.
const STEPS: u32 = 24;
/// A law takes seconds to drive at a larger window.
const LARGEST: f64 = 2e5;
