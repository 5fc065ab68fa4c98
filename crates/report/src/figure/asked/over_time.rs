//! Goodput, round-trip time and queue over time.

use fullpipe_results::result::CaseResult;
use fullpipe_results::store::SeriesKind;

use super::view::View;
use super::window::{flow_names, no_series, resolved, warmup};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::page::curves::{self, Grid};

/// A quantity with a series in a result, and its axis.
pub(super) struct Quantity {
    kind: SeriesKind,
    /// As the page's curves call it.
    what: &'static str,
    /// The same of traffic, which is drawn where it is asked for by its name.
    of_traffic: Option<&'static str>,
    name: &'static str,
    pub label: &'static str,
}

pub(super) const GOODPUT: Quantity = Quantity {
    kind: SeriesKind::Samples,
    what: "goodput",
    of_traffic: Some("rate"),
    name: "goodput",
    label: "goodput (Mbit/s)",
};
pub(super) const RTT: Quantity = Quantity {
    kind: SeriesKind::Flows,
    what: "rtt",
    of_traffic: None,
    name: "round-trip times",
    label: "round-trip time (ms)",
};
pub(super) const PING: Quantity = Quantity {
    kind: SeriesKind::Pings,
    what: "ping",
    of_traffic: None,
    name: "pings",
    label: "ping (ms)",
};
pub(super) const QUEUE: Quantity = Quantity {
    kind: SeriesKind::Links,
    what: "queue",
    of_traffic: None,
    name: "queue lengths",
    label: "queue (packets)",
};

pub(super) fn draw(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
) -> Result<Drawn, AskedError> {
    let mut tidy = Rows {
        heads: ["curve", "time_s", quantity.what]
            .map(str::to_owned)
            .to_vec(),
        align: "lrr".to_owned(),
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
    let mut panels = Vec::new();
    for part in view.panels_over_time(asked)? {
        let cases = part.members.iter().map(|member| member.case);
        let mut panel = Panel {
            title: part.title.clone(),
            warmup: warmup(scenario.as_ref(), cases),
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
        for member in &part.members {
            let of_case = lines(view, asked, quantity, member.case)?;
            let count = of_case.len();
            let groups = view.groups(member, of_case.iter().map(|(of, _)| of.as_str()));
            for ((of, points), group) in of_case.into_iter().zip(groups) {
                let name = view.line_name(member, &of, count);
                let head = match part.title.as_str() {
                    "" => name.clone(),
                    title => format!("{title}, {name}"),
                };
                let row = |(t, v): &(f64, f64)| vec![head.clone(), t.to_string(), v.to_string()];
                tidy.rows.extend(points.iter().map(row));
                panel.lines.push(Line {
                    name,
                    group,
                    points,
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
            subtitle: String::new(),
            panels,
        }),
        tidy,
        printed: None,
        taken: None,
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
        for (_, (of, _)) in every_line(view, asked, quantity, case)? {
            if !having.contains(&of) {
                having.push(of);
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

/// A name and its points, extremes kept.
type Named = (String, Vec<(f64, f64)>);

/// What a case has of the quantity: of flows, links or pings, by name.
pub(super) fn lines(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
    index: usize,
) -> Result<Vec<Named>, AskedError> {
    let all = every_line(view, asked, quantity, index)?.into_iter();
    let wanted = |what: &str, name: &str| match &asked.of {
        Some(of) => of == name,
        None => what == quantity.what,
    };
    let lines = all.filter(|(what, (name, _))| wanted(what, name));
    Ok(lines.map(|(_, named)| named).collect())
}

/// The same of everyone, as the page's curves call it.
fn every_line(
    view: &View<'_>,
    asked: &Asked,
    quantity: &Quantity,
    index: usize,
) -> Result<Vec<(&'static str, Named)>, AskedError> {
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
    let drawn = match quantity.kind {
        SeriesKind::Samples => curves::samples(grid, &series),
        SeriesKind::Links => curves::links(grid, &series),
        SeriesKind::Pings => curves::pings(grid, &series),
        _ => curves::flows(grid, &series),
    };
    let mut out: Vec<(&'static str, Named)> = Vec::new();
    for (head, values) in drawn {
        if head.what != quantity.what && Some(head.what) != quantity.of_traffic {
            continue;
        }
        let points = values.iter().enumerate().filter(|(_, v)| !v.is_nan());
        let points = points.map(|(row, v)| ((row as f64 + 0.5) * grid.step, *v));
        match out.iter_mut().find(|(_, (of, _))| *of == head.of) {
            // The largest value of a row stands beside the smallest.
            Some((_, (_, known))) => {
                known.extend(points);
                known.sort_by(|a, b| a.0.total_cmp(&b.0));
                known.dedup();
            }
            None => out.push((head.what, (head.of, points.collect()))),
        }
    }
    Ok(out)
}

/// Columns of a drawing.
const COLUMNS: usize = 400;
