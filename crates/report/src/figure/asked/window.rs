//! Congestion windows over time: what competes laid over one another.

use fullpipe_results::result::{CaseResult, Params};
use fullpipe_results::store::{SeriesKind, Table};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::printed_text;

use super::view::{Part, Places, View};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::overlay::curve;
use crate::figure::stored::{ByFlow, drawn_until, levels, same_mss};
use crate::figure::{Curve, Figure};

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    view.check_seed(asked)?;
    view.check_of(asked, "flow", &flow_names)?;
    let scenario = resolved(view);
    let mut figures = Vec::new();
    let mut tidy = Rows {
        heads: ["curve", "time_s", "cwnd", "cwnd_min", "cwnd_max"]
            .map(str::to_owned)
            .to_vec(),
        align: "lrrrr".to_owned(),
        ..Rows::default()
    };
    let parts = view.panels_over_time(asked)?;
    let members = parts.iter().flat_map(|part| &part.members);
    let flows = members.flat_map(|member| &view.case(member.case).flows);
    let drawn = flows.filter(|flow| asked.of.as_ref().is_none_or(|of| *of == flow.name));
    let places = view.places(drawn.map(|flow| flow.name.as_str()));
    for part in parts {
        let figure = figure(view, asked, (&part, &places), scenario.as_ref())?;
        for c in &figure.curves {
            let name = match part.title.as_str() {
                "" => c.name.clone(),
                title => format!("{title}, {}", c.name),
            };
            for i in 0..c.time.len() {
                let row = [c.time[i], c.window[i], c.low[i], c.high[i]].map(printed_text);
                tidy.rows.push([vec![name.clone()], row.to_vec()].concat());
            }
        }
        figures.push(figure);
    }
    if figures.iter().all(|f| f.curves.is_empty()) {
        return Err(no_series("windows"));
    }
    if let [only] = figures.as_mut_slice() {
        // Of several the seed stands above all.
        let parts = [only.subtitle.clone(), view.drawn_seed(asked)];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        only.subtitle = parts.collect::<Vec<_>>().join("; ");
    }
    Ok(Drawn {
        drawing: Drawing::Windows {
            title: view.subtitle(),
            subtitle: view.drawn_seed(asked),
            figures,
        },
        tidy,
        printed: None,
        taken: None,
        left_out: None,
    })
}

fn figure(
    view: &View<'_>,
    asked: &Asked,
    (part, places): (&Part, &Places),
    scenario: Option<&Scenario>,
) -> Result<Figure, AskedError> {
    let mut figure = Figure {
        title: view.subtitle(),
        subtitle: part.title.clone(),
        window_unit: "segments".to_owned(),
        ..Figure::default()
    };
    let peer = view.dir.manifest().peer.as_deref();
    let mut of_each = Vec::new();
    for member in &part.members {
        let case = view.case(member.case);
        let Some(seed) = asked.seed.or(case.seeds.first().copied()) else {
            continue;
        };
        let Some(series) = view.dir.series(member.case, seed, SeriesKind::Flows)? else {
            continue;
        };
        let events = view.dir.series(member.case, seed, SeriesKind::Events)?;
        let events: Table = events.unwrap_or_default();
        let parts = (&series, &ByFlow::new(&series), &ByFlow::new(&events));
        let resolved = scenario.and_then(|s| s.cases.get(member.case));
        let mut curves: Vec<Curve> = Vec::new();
        for flow in &case.flows {
            if asked.of.as_ref().is_some_and(|of| *of != flow.name) {
                continue;
            }
            let curve = curve(parts, &flow.name);
            if curve.time.is_empty() {
                continue;
            }
            curves.push(Curve {
                name: view.line_name(member, &flow.name, case.flows.len()),
                group: places.group(member, &flow.name),
                ..curve
            });
        }
        let until = drawn_until(&curves, case.simulated_s);
        figure.duration = figure.duration.max(until);
        let mss = resolved.and_then(|c| same_mss(&c.flows));
        if let Some(case) = resolved {
            figure.warmup = figure.warmup.max(case.warmup.as_secs_f64());
        }
        let levels = resolved.map_or_else(Vec::new, |c| levels(c, seed, peer));
        of_each.push((curves, mss, levels));
    }
    // One axis: in segments where they are of one size, else in megabytes.
    let first = of_each.first().and_then(|(_, mss, _)| *mss);
    let same = of_each.iter().all(|(_, mss, _)| *mss == first);
    let sized = of_each.iter().all(|(_, mss, _)| mss.is_some());
    let first_levels = of_each.first().map_or_else(Vec::new, |(.., l)| l.clone());
    let same_path = of_each.iter().all(|(.., l)| *l == first_levels);
    for (curves, mss, _) in of_each {
        let alone = Figure {
            curves,
            mss,
            ..Figure::default()
        };
        let scaled = match !same && sized {
            true => alone.in_megabytes(),
            false => alone,
        };
        figure.curves.extend(scaled.curves);
    }
    match (same, first) {
        (true, Some(mss)) => {
            figure.window_unit = format!("segments of {mss} B");
            figure.mss = Some(mss);
        }
        (false, _) if sized => figure.window_unit = "MB".to_owned(),
        _ => {}
    }
    // What the path holds is drawn where it is one path and one unit.
    if same && same_path {
        figure.levels = first_levels;
    }
    Ok(figure)
}

pub(super) fn flow_names(case: &CaseResult) -> Vec<String> {
    case.flows.iter().map(|flow| flow.name.clone()).collect()
}

/// The scenario as it ran, if the manifest says all of it and the path was its own.
pub(super) fn resolved(view: &View<'_>) -> Option<Scenario> {
    match view.dir.manifest().peer {
        Some(_) => None,
        None => read_again(view),
    }
}

/// The scenario as it ran, whatever the path was, if the manifest says all of it.
pub(super) fn read_again(view: &View<'_>) -> Option<Scenario> {
    let manifest = view.dir.manifest();
    let overrides = Overrides {
        set: manifest.set.clone()?,
        quick: manifest.quick,
        ..Overrides::default()
    };
    let scenario = Scenario::parse(&manifest.scenario_text, &manifest.origin, &overrides).ok()?;
    let same = scenario.cases.iter().map(Params::of);
    same.eq(manifest.cases.iter().cloned()).then_some(scenario)
}

/// The refusal of a result without series.
pub(super) fn no_series(what: &str) -> AskedError {
    AskedError::Nothing {
        what: format!("the result holds no {what} over time"),
        hint: "`[measure] trace = \"decimated\"` keeps them".to_owned(),
    }
}

/// The latest end of a warm-up among cases, seconds; zero without the scenario.
pub(super) fn warmup(scenario: Option<&Scenario>, cases: impl Iterator<Item = usize>) -> f64 {
    let cases = cases.filter_map(|case| scenario?.cases.get(case));
    cases
        .map(|case| case.warmup.as_secs_f64())
        .fold(0.0, f64::max)
}
