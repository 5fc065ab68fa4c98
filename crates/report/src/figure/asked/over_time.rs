//! Goodput, round-trip time and queue over time.

use fullpipe_results::result::CaseResult;
use fullpipe_results::store::{SeriesKind, Table};
use fullpipe_units::printed_text;

use super::view::{Member, Part, View};
use super::window::{flow_names, no_series, resolved, warmup};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::page::curves::{self, Grid};

/// A quantity with a series in a result, and its axis.
pub(super) struct Quantity {
    kind: SeriesKind,
    /// [`Curve::what`](crate::page::data::Curve::what) of the page's curves.
    what: &'static str,
    /// The same of traffic, which is drawn where it is asked for by its name.
    of_traffic: Option<&'static str>,
    /// Head of its column in CSV and series, with the unit.
    column: &'static str,
    /// What a point says of the values in its part of the time: their `mean`, or their `median`,
    /// beside which the smallest and the largest stand.
    pub stat: &'static str,
    name: &'static str,
    pub label: &'static str,
}

pub(super) const GOODPUT: Quantity = Quantity {
    kind: SeriesKind::Samples,
    what: "goodput",
    of_traffic: Some("rate"),
    column: "goodput_mbps",
    stat: "mean",
    name: "goodput",
    label: "goodput (Mbit/s)",
};
pub(super) const RTT: Quantity = Quantity {
    kind: SeriesKind::Flows,
    what: "rtt",
    of_traffic: None,
    column: "rtt_ms",
    stat: "median",
    name: "round-trip times",
    label: "round-trip time (ms)",
};
pub(super) const PING: Quantity = Quantity {
    kind: SeriesKind::Pings,
    what: "ping",
    of_traffic: None,
    column: "rtt_ms",
    stat: "median",
    name: "pings",
    label: "ping (ms)",
};
pub(super) const QUEUE: Quantity = Quantity {
    kind: SeriesKind::Links,
    what: "queue",
    of_traffic: None,
    column: "queue_packets",
    stat: "median",
    name: "queue lengths",
    label: "queue (packets)",
};

pub(super) fn draw(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
) -> Result<Drawn, AskedError> {
    let column = |stat: &str| format!("{}_{stat}", quantity.column);
    let mut heads = vec![
        "curve".to_owned(),
        "time_s".to_owned(),
        column(quantity.stat),
    ];
    if quantity.stat == "median" {
        heads.extend([column("min"), column("max")]);
    }
    let mut tidy = Rows {
        align: format!("l{}", "r".repeat(heads.len() - 1)),
        heads,
        ..Rows::default()
    };
    view.check_seed(asked)?;
    let (of, has): (&str, fn(&CaseResult) -> Vec<String>) = match quantity.kind {
        SeriesKind::Links => ("link", link_names),
        SeriesKind::Samples => ("flow or traffic", sender_names),
        _ => ("flow", flow_names),
    };
    view.check_of(asked, of, &has)?;
    let scenario = resolved(view);
    let parts = view.panels_over_time(asked)?;
    let of_member = |member: &Member| lines(view, asked, quantity, member.case);
    let of_part = |part: &Part| part.members.iter().map(of_member).collect();
    let of_parts: Result<Vec<Vec<Vec<Course>>>, _> = parts.iter().map(of_part).collect();
    let of_parts = of_parts?;
    let all = of_parts.iter().flatten().flatten();
    let places = view.places(all.map(|course| course.of.as_str()));
    let mut panels = Vec::new();
    for (part, of_members) in parts.into_iter().zip(of_parts) {
        let cases = part.members.iter().map(|member| member.case);
        let mut panel = Panel {
            title: part.title.clone(),
            warmup: warmup(scenario.as_ref(), cases),
            common: true,
            x: Axis {
                label: "time (s)".to_owned(),
                scale: Scale::Linear,
            },
            y: Axis {
                label: quantity.label.to_owned(),
                scale: Scale::Linear,
            },
            ..Panel::default()
        };
        for (member, of_case) in part.members.iter().zip(of_members) {
            let count = of_case.len();
            for course in of_case {
                let group = places.group(member, &course.of);
                let name = view.line_name(member, &course.of, count);
                let head = match part.title.as_str() {
                    "" => name.clone(),
                    title => format!("{title}, {name}"),
                };
                let row = |(i, (t, v)): (usize, &(f64, f64))| {
                    let range = course.band.get(i).into_iter().flatten();
                    let numbers = [t, v].into_iter().chain(range).map(|x| printed_text(*x));
                    std::iter::once(head.clone())
                        .chain(numbers)
                        .collect::<Vec<_>>()
                };
                tidy.rows.extend(course.known().map(row));
                panel.lines.push(Line {
                    name,
                    group,
                    points: course.points,
                    band: course.band,
                    ..Line::default()
                });
            }
        }
        panels.push(panel);
    }
    if panels.iter().all(|p| p.lines.is_empty()) {
        return Err(nothing(view, asked, &[quantity])?);
    }
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            stacked: false,
            title: view.subtitle(),
            subtitle: view.drawn_seed(asked),
            panels,
        }),
        tidy,
        printed: None,
        taken: None,
        left_out: None,
    })
}

fn link_names(case: &CaseResult) -> Vec<String> {
    case.links.iter().map(|link| link.name.clone()).collect()
}

/// Flows and traffic.
pub(super) fn sender_names(case: &CaseResult) -> Vec<String> {
    let traffic = case.traffic.iter().map(|traffic| traffic.name.clone());
    flow_names(case).into_iter().chain(traffic).collect()
}

/// Why there is not one line: the result holds none, or none of what is asked for.
pub(super) fn nothing(
    view: &View<'_>,
    asked: &Asked,
    quantities: &[&Quantity],
) -> Result<AskedError, AskedError> {
    let all: Vec<&str> = quantities.iter().map(|quantity| quantity.name).collect();
    let what = all.join(" or ");
    let mut having: Vec<String> = Vec::new();
    for (quantity, &case) in quantities
        .iter()
        .flat_map(|q| view.cases.iter().map(move |case| (q, case)))
    {
        for (_, course) in every_line(view, asked, quantity, case)? {
            if !having.contains(&course.of) {
                having.push(course.of);
            }
        }
    }
    Ok(match &asked.of {
        Some(of) if !having.is_empty() => AskedError::Nothing {
            what: format!("the result holds no {what} of `{of}` over time"),
            hint: format!("there are those of `{}`", having.join("`, `")),
        },
        _ => no_series(&what),
    })
}

/// A quantity of a flow, a traffic or a link over time.
pub(super) struct Course {
    /// Name of the flow, traffic or link.
    pub of: String,
    /// Times and values, of a part of the time each.
    pub points: Vec<(f64, f64)>,
    /// Smallest and largest value of the parts of which the points are medians; else none.
    pub band: Vec<[f64; 2]>,
    /// What a table has in the place of the points, which draw each of these as a step.
    told: Option<Vec<(f64, f64)>>,
}

impl Course {
    /// Places and values, without the gaps between them, which are NaN.
    pub(super) fn known(&self) -> impl Iterator<Item = (usize, &(f64, f64))> {
        let all = self.told.as_ref().unwrap_or(&self.points);
        let all = all.iter().enumerate();
        all.filter(|(_, p)| !p.1.is_nan())
    }
}

/// What a case has of the quantity: of flows, links or pings.
pub(super) fn lines(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
    index: usize,
) -> Result<Vec<Course>, AskedError> {
    let all = every_line(view, asked, quantity, index)?.into_iter();
    let wanted = |what: &str, name: &str| match &asked.of {
        Some(of) => of == name,
        None => what == quantity.what,
    };
    let lines = all.filter(|(what, course)| wanted(what, &course.of));
    Ok(lines.map(|(_, course)| course).collect())
}

/// The same of everyone, as the page's curves call it.
fn every_line(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
    index: usize,
) -> Result<Vec<(&'static str, Course)>, AskedError> {
    let case = view.case(index);
    let seed = asked.seed.or(case.seeds.first().copied());
    let series = match seed {
        Some(seed) if case.simulated_s > 0.0 => view.dir.series(index, seed, quantity.kind)?,
        _ => None,
    };
    let Some(series) = series else {
        return Ok(Vec::new());
    };
    let grid = Grid::new(case.simulated_s, COLUMNS);
    let sampled = match quantity.kind {
        SeriesKind::Samples => return Ok(means(quantity, grid, &series)),
        SeriesKind::Links => curves::queues(&series),
        SeriesKind::Pings => curves::probes(&series),
        _ => curves::rtts(&series),
    };
    // Few samples that are far from the others, as those of delayed ACKs, would fill a picture
    // through whose extremes a line goes.
    let medians = sampled.into_iter().map(|(of, samples)| {
        let most = match quantity.what == RTT.what {
            true => (samples.len() / ROWS).clamp(FEWEST, COLUMNS),
            false => COLUMNS,
        };
        let spans = Grid::new(case.simulated_s, most).spans(&samples);
        let course = Course {
            of,
            points: spans.iter().map(|s| (s.time, s.median)).collect(),
            band: spans.iter().map(|s| s.range).collect(),
            told: None,
        };
        (quantity.what, course)
    });
    Ok(medians.collect())
}

/// Rates, each over all of its interval, with the time of its end; of more than a picture has
/// columns those in their middles.
fn means(quantity: &Quantity, grid: Grid, series: &Table) -> Vec<(&'static str, Course)> {
    let wanted = |what: &str| what == quantity.what || Some(what) == quantity.of_traffic;
    let rates = curves::rates(series).into_iter();
    rates
        .filter(|(head, _)| wanted(head.what))
        .map(|(head, ends)| {
            let few = ends.len() <= COLUMNS;
            let begins = std::iter::once(0.0).chain(ends.iter().map(|(end, _)| *end));
            let step = |(from, (to, v)): (f64, &(f64, f64))| [(from, *v), (*to, *v)];
            let middle = |(row, v): (usize, &f64)| ((row as f64 + 0.5) * grid.step, *v);
            let points = match few {
                true => begins.zip(&ends).flat_map(step).collect(),
                false => grid.steps(&ends).iter().enumerate().map(middle).collect(),
            };
            let course = Course {
                of: head.of,
                points,
                band: Vec::new(),
                told: few.then_some(ends),
            };
            (head.what, course)
        })
        .collect()
}

/// Columns of a drawing.
const COLUMNS: usize = 400;

/// The same of round-trip times of which few rows are left.
const FEWEST: usize = 50;

/// Rows of round-trip times in a column: what is left of a trace holds the extremes between two
/// rows, so that the median of fewer is one of these.
const ROWS: usize = 10;
