//! Latency under load: the goodput of every flow and the pings beside them, one below the other.

use super::over_time::{GOODPUT, PING, lines, nothing, sender_names};
use super::view::View;
use super::window::{resolved, warmup};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use fullpipe_units::printed_text;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    view.check_seed(asked)?;
    view.check_of(asked, "flow or traffic", &sender_names)?;
    let parts = view.panels()?;
    let [part] = parts.as_slice() else {
        return Err(AskedError::TooMany {
            count: parts.len(),
            axes: "a picture of the load has room for what competes".to_owned(),
        });
    };
    let mut tidy = Rows {
        heads: ["panel", "curve", "time_s", "value", "stat", "min", "max"]
            .map(str::to_owned)
            .to_vec(),
        align: "llrrlrr".to_owned(),
        ..Rows::default()
    };
    let scenario = resolved(view);
    let cases = part.members.iter().map(|member| member.case);
    let warmup = warmup(scenario.as_ref(), cases);
    let mut panels: Vec<(String, Panel)> = Vec::new();
    for quantity in [&GOODPUT, &PING] {
        for member in &part.members {
            let of_case = lines(view, asked, quantity, member.case)?;
            let places = view.places(of_case.iter().map(|course| course.of.as_str()));
            for course in of_case {
                let title = format!("{}: {}", course.of, quantity.label);
                let name = view.name_in_own_panel(member, &course.of);
                let row = |(i, (t, v)): (usize, &(f64, f64))| {
                    let end = |k: usize| course.band.get(i).map(|band| printed_text(band[k]));
                    let stat = quantity.stat.to_owned();
                    let names = [title.clone(), name.clone()];
                    let ends = [0, 1].map(|k| end(k).unwrap_or_default());
                    let numbers = [printed_text(*t), printed_text(*v), stat];
                    [&names[..], &numbers[..], &ends[..]].concat()
                };
                tidy.rows.extend(course.known().map(row));
                let line = Line {
                    // In a panel of its own a flow looks like its member, or else like itself.
                    name: match member.name.is_empty() {
                        true => name,
                        false => view.name_of_member(member),
                    },
                    group: match member.name.is_empty() {
                        true => places.group(member, &course.of),
                        false => member.group,
                    },
                    points: course.points,
                    band: course.band,
                    ..Line::default()
                };
                match panels.iter_mut().find(|(known, _)| *known == title) {
                    Some((_, panel)) => panel.lines.push(line),
                    // On a scale of its own: a slow direction would lie flat beside a fast one.
                    None => {
                        let of = match view.stack_beside(part, &course.of) {
                            Some(stack) => format!("{}, {stack}", course.of),
                            None => course.of,
                        };
                        let panel = Panel {
                            x: linear(String::new()),
                            y: linear(format!("{of}: {}", quantity.label)),
                            lines: vec![line],
                            warmup,
                            ..Panel::default()
                        };
                        panels.push((title, panel));
                    }
                }
            }
        }
    }
    let mut panels: Vec<Panel> = panels.into_iter().map(|(_, panel)| panel).collect();
    let Some(last) = panels.last_mut() else {
        return Err(nothing(view, asked, &[&GOODPUT, &PING])?);
    };
    last.x.label = "time (s)".to_owned();
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            title: view.subtitle(),
            subtitle: view.drawn_seed(asked),
            panels,
            stacked: true,
        }),
        tidy,
        printed: None,
        taken: None,
        left_out: None,
    })
}

fn linear(label: String) -> Axis {
    Axis {
        label,
        scale: Scale::Linear,
    }
}
