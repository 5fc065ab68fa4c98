//! Where Linux departs from the RFCs, with the numbers of the cell that shows it.

use super::{DocsError, both, line};
use crate::ablation;
use crate::causes::Surprise;
use crate::compare::{Comparison, Deviation, Metric};
use crate::wording;

pub(super) fn told(
    p: &mut String,
    s: &Surprise,
    c: &Comparison,
    without: &Comparison,
) -> Result<(), DocsError> {
    line(p, format_args!("### {}\n", s.title));
    line(p, format_args!("- Linux: {}", s.linux));
    line(p, format_args!("- RFC: {}", s.rfc));
    let other = match s.switch.as_deref() {
        None => "preset `2026`".to_owned(),
        Some(ablation::STACK) => "with the published algorithm".to_owned(),
        Some(switch) => format!("without `{switch}`"),
    };
    line(
        p,
        format_args!(
            "\n| `{}` | Linux | simulator | {other} |\n|---|---:|---:|---:|",
            s.cell
        ),
    );
    let mut differs = false;
    for metric in &s.shows {
        differs |= shown(p, s, *metric, c, without)?;
    }
    p.push('\n');
    if differs || without.verdicts.is_empty() {
        return Ok(());
    }
    Err(DocsError::ShowsNothing {
        title: s.title.clone(),
        cell: s.cell.clone(),
        switch: other,
    })
}

/// The rows of a metric; true if the simulator's number depends on the switch.
fn shown(
    p: &mut String,
    s: &Surprise,
    metric: Metric,
    c: &Comparison,
    without: &Comparison,
) -> Result<bool, DocsError> {
    let of = |c: &Comparison| -> Option<Vec<Deviation>> {
        let verdict = c.verdicts.iter().find(|v| v.cell == s.cell)?;
        let all = verdict.deviations.iter().filter(|d| d.metric == metric);
        Some(all.cloned().collect())
    };
    let Some(rows) = of(c) else {
        line(
            p,
            format_args!("| {} | not measured | | |", wording::name(metric)),
        );
        return Ok(false);
    };
    if rows.is_empty() {
        return Err(DocsError::Shows {
            title: s.title.clone(),
            cell: s.cell.clone(),
            metric: wording::key(metric),
        });
    }
    let others = of(without).unwrap_or_default();
    let mut differs = false;
    for (i, d) in rows.iter().enumerate() {
        let unit = match wording::unit(metric) {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let flow = d
            .flow
            .map_or(String::new(), |f| format!(" of flow {}", f + 1));
        let with = both(d, d.sim, 1);
        let other = others
            .get(i)
            .map_or_else(|| "-".to_owned(), |r| both(r, r.sim, 1));
        line(
            p,
            format_args!(
                "| {}{flow}{unit} | {} | {with} | {other} |",
                wording::name(metric),
                both(d, d.oracle, 0),
            ),
        );
        // Under random loss only a difference beyond both intervals is one.
        let chance = others.get(i).is_some_and(|r| {
            let half = |d: &Deviation| d.half_widths.map_or(0.0, |h| h.1);
            let apart = d
                .sim
                .zip(r.sim)
                .map_or(f64::INFINITY, |(a, b)| (a - b).abs());
            apart < half(d) + half(r)
        });
        differs |= with != other && !chance;
    }
    Ok(differs)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cell::{self, Cell, Kind};
    use crate::compare::compare;

    #[test]
    fn a_switch_that_changes_nothing_shows_nothing() {
        let cells: Vec<Cell> = cell::all()
            .into_iter()
            .filter(|c| c.id() == "reno-20x30-b1")
            .collect();
        let of = |goodput_mbit| crate::reference::Run {
            cell: "reno-20x30-b1".into(),
            repeat: 0,
            kernel: String::new(),
            hz: 100,
            command: String::new(),
            counters: Default::default(),
            flows: vec![crate::reference::FlowResult {
                module: "reno".into(),
                measure: crate::measure::Measure {
                    goodput_mbit,
                    ..Default::default()
                },
                curve: None,
            }],
        };
        let with = compare(&cells, &[of(9.0)], &[of(9.0)]);
        let without = |goodput| compare(&cells, &[of(9.0)], &[of(goodput)]);
        let surprise = Surprise {
            title: "t".into(),
            linux: "l".into(),
            rfc: "r".into(),
            cell: "reno-20x30-b1".into(),
            shows: vec![Metric::Goodput],
            switch: Some("sender.timers.grain".into()),
        };
        let mut p = String::new();
        told(&mut p, &surprise, &with, &without(8.0)).unwrap();
        assert!(
            p.contains("| goodput, Mbit/s | 9.0000 | 9.0000 | 8.0000 |"),
            "{p}"
        );
        let error = told(&mut p, &surprise, &with, &without(9.0))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the same without `sender.timers.grain`"),
            "{error}"
        );
    }

    #[test]
    fn a_surprise_needs_the_metric_in_its_cell() {
        let surprise = Surprise {
            title: "t".into(),
            linux: "l".into(),
            rfc: "r".into(),
            cell: "reno-20x30-b1".into(),
            shows: vec![Metric::Share],
            switch: None,
        };
        let one = crate::compare::Verdict {
            cell: surprise.cell.clone(),
            kind: Kind::Single,
            deviations: Vec::new(),
            rmse: Vec::new(),
            inside: true,
        };
        let c = Comparison {
            verdicts: vec![one],
            missing: Vec::new(),
            cells: BTreeMap::new(),
            metrics: Vec::new(),
        };
        let error = told(&mut String::new(), &surprise, &c, &c).unwrap_err();
        assert_eq!(
            error.to_string(),
            "surprises.toml: `t`: reno-20x30-b1 has no share"
        );
    }
}
