//! Latency under load: the goodput of every flow and the pings beside them, one below the other.

use super::over_time::{GOODPUT, PING, lines, nothing, sender_names};
use super::view::View;
use super::window::{resolved, warmup};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};

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
        heads: ["panel", "curve", "time_s", "value"]
            .map(str::to_owned)
            .to_vec(),
        align: "llrr".to_owned(),
        ..Rows::default()
    };
    let scenario = resolved(view);
    let cases = part.members.iter().map(|member| member.case);
    let warmup = warmup(scenario.as_ref(), cases);
    let mut panels: Vec<Panel> = Vec::new();
    for quantity in [&GOODPUT, &PING] {
        for member in &part.members {
            let of_case = lines(view, asked, quantity, member.case)?;
            let groups = view.groups(member, of_case.iter().map(|(of, _)| of.as_str()));
            for ((of, points), group) in of_case.into_iter().zip(groups) {
                let title = format!("{of}: {}", quantity.label);
                let row = |(t, v): &(f64, f64)| {
                    let texts = [t.to_string(), v.to_string()];
                    [vec![title.clone(), member.name.clone()], texts.to_vec()].concat()
                };
                tidy.rows.extend(points.iter().map(row));
                let line = Line {
                    name: member.name.clone(),
                    // In a panel of its own a flow looks like its member, or else like itself.
                    group: match member.name.is_empty() {
                        true => group,
                        false => member.group,
                    },
                    points,
                    ..Line::default()
                };
                match panels.iter_mut().find(|p| p.y.label == title) {
                    Some(panel) => panel.lines.push(line),
                    None => panels.push(Panel {
                        x: linear(String::new()),
                        y: linear(title),
                        lines: vec![line],
                        warmup,
                        ..Panel::default()
                    }),
                }
            }
        }
    }
    let Some(last) = panels.last_mut() else {
        return Err(nothing(view, asked, &[&GOODPUT, &PING])?);
    };
    last.x.label = "time (s)".to_owned();
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            title: view.subtitle(),
            subtitle: String::new(),
            panels,
            stacked: true,
        }),
        tidy,
        printed: None,
        taken: None,
    })
}

fn linear(label: String) -> Axis {
    Axis {
        label,
        scale: Scale::Linear,
    }
}
