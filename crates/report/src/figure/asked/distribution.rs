//! Distributions: completion times of short flows, or a metric over the seeds.

use fullpipe_results::store::SeriesKind;

use super::view::{Subject, View, metric_words};
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::page::transfers::times;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let (label, taken) = match &asked.metric {
        None => ("completion time (s)".to_owned(), None),
        Some(_) => {
            let Subject { metric, of, taken } = view.metric(asked, "")?;
            (metric_words(&metric, of.as_deref()), taken)
        }
    };
    let mut tidy = Rows {
        heads: ["panel", "curve", "value", "fraction"]
            .map(str::to_owned)
            .to_vec(),
        align: "llrr".to_owned(),
        ..Rows::default()
    };
    let mut panels = Vec::new();
    let mut ends: Option<(f64, f64)> = None;
    for part in view.panels()? {
        let mut lines = Vec::new();
        for member in &part.members {
            let samples = match asked.metric {
                None => completions(view, asked, member.case)?,
                Some(_) => of_seeds(view, asked, member.case)?,
            };
            let count = samples.len();
            for (i, (of, mut values, all)) in samples.into_iter().enumerate() {
                values.sort_by(f64::total_cmp);
                let name = view.line_name(member, &of, count);
                let points = steps(&values, all);
                for v in &values {
                    let (low, high) = ends.unwrap_or((*v, *v));
                    ends = Some((low.min(*v), high.max(*v)));
                }
                for (k, v) in values.iter().enumerate() {
                    let part_of_all = (k + 1) as f64 / all as f64;
                    let texts = [v.to_string(), part_of_all.to_string()];
                    let head = vec![part.title.clone(), name.clone()];
                    tidy.rows.push([head, texts.to_vec()].concat());
                }
                lines.push(Line {
                    name,
                    group: member.group * count + i,
                    points,
                    ..Line::default()
                });
            }
        }
        panels.push((part.title, lines));
    }
    let Some((low, high)) = ends else {
        return Err(AskedError::Nothing {
            what: "the result holds no short flows".to_owned(),
            hint: "`--metric NAME` draws a metric over the seeds, kind `cdf` round-trip times and \
                   pings"
                .to_owned(),
        });
    };
    let scale = match low > 0.0 && high / low > NEAR {
        true => Scale::Log,
        false => Scale::Linear,
    };
    let panel = |(title, lines): (String, Vec<Line>)| Panel {
        title,
        x: Axis {
            label: label.clone(),
            scale: scale.clone(),
        },
        y: Axis {
            label: match asked.metric {
                None => "part of the flows".to_owned(),
                Some(_) => "part of the seeds".to_owned(),
            },
            scale: Scale::Linear,
        },
        lines,
        ..Panel::default()
    };
    Ok(Drawn {
        drawing: Drawing::Chart(Chart {
            stacked: false,
            title: view.subtitle(),
            subtitle: String::new(),
            panels: panels.into_iter().map(panel).collect(),
        }),
        printed: None,
        taken,
        tidy,
    })
}

/// Name, values, and of how many they are: what did not finish has none.
type Sample = (String, Vec<f64>, usize);

fn completions(view: &View<'_>, asked: &Asked, case: usize) -> Result<Vec<Sample>, AskedError> {
    let mut tables = Vec::new();
    for &seed in &view.case(case).seeds {
        tables.extend(view.dir.series(case, seed, SeriesKind::Transfers)?);
    }
    let wanted = |name: &str| asked.of.as_deref().is_none_or(|of| of == name);
    let classes = times(&tables).into_iter().filter(|(name, ..)| wanted(name));
    let sample = |(name, times, unfinished): (String, Vec<f64>, u64)| {
        let all = times.len() + unfinished as usize;
        (name, times, all)
    };
    Ok(classes.map(sample).collect())
}

fn of_seeds(view: &View<'_>, asked: &Asked, case: usize) -> Result<Vec<Sample>, AskedError> {
    let Subject { metric, of, .. } = view.metric(asked, "")?;
    let values = view.of_seeds(case, &metric, of.as_deref())?;
    let all = values.len();
    let defined: Vec<f64> = values.into_iter().flatten().collect();
    Ok(match defined.is_empty() {
        true => Vec::new(),
        false => vec![(String::new(), defined, all)],
    })
}

/// Values whose ends are as far apart lie on an axis of logarithms.
pub(super) const NEAR: f64 = 8.0;

/// The distribution as steps, at most [`STEPS`] of them.
pub(super) fn steps(values: &[f64], all: usize) -> Vec<(f64, f64)> {
    let every = values.len().div_ceil(STEPS).max(1);
    let mut points = Vec::new();
    let mut below = 0.0;
    for (k, v) in values.iter().enumerate() {
        if k % every != 0 && k + 1 != values.len() {
            continue;
        }
        points.push((*v, below));
        below = (k + 1) as f64 / all as f64;
        points.push((*v, below));
    }
    points
}

const STEPS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_finish_keeps_the_curve_below_one() {
        assert_eq!(
            steps(&[1.0, 2.0], 4),
            [(1.0, 0.0), (1.0, 0.25), (2.0, 0.25), (2.0, 0.5)]
        );
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let drawn = steps(&many, 10_000);
        assert!(drawn.len() <= 2 * STEPS + 2);
        assert_eq!(drawn.last(), Some(&(9_999.0, 1.0)));
    }
}
