//! Mean window over the rate of loss events, measured, beside the cycle that each law has alone.

use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, cycle};
use fullpipe_units::{Span, printed_text};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::view::View;
use super::{Asked, AskedError, Drawing, Drawn, Rows};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    let of_stack = view.stack_groups();
    let mut stacks: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut rtt: f64 = f64::INFINITY;
    for flow in view.cases.iter().flat_map(|&c| &view.case(c).flows) {
        if asked.of.as_ref().is_some_and(|of| *of != flow.name) {
            continue;
        }
        let (Some(p), Some(w)) = (flow.value(LOSSES), flow.value(WINDOW)) else {
            continue;
        };
        if p <= 0.0 {
            continue;
        }
        rtt = rtt.min(flow.value("rtt_ms.min").unwrap_or(f64::INFINITY));
        match stacks.iter_mut().find(|(s, _)| *s == flow.stack) {
            Some((_, points)) => points.push((p, w)),
            None => stacks.push((flow.stack.clone(), vec![(p, w)])),
        }
    }
    if stacks.is_empty() {
        return Err(AskedError::Nothing {
            what: "no flow of the result lost anything after its warm-up".to_owned(),
            hint: "a path with `loss`, or flows with `drop.every`, as scenario `response` has"
                .to_owned(),
        });
    }
    let highest = stacks.iter().flat_map(|(_, p)| p).map(|p| p.1);
    let highest = highest.fold(4.0, f64::max);
    let laws: Vec<Vec<(f64, f64)>> = (0..stacks.len())
        .into_par_iter()
        .map(|i| law(&stacks[i].0, highest, rtt))
        .collect();
    let mut tidy = Rows {
        heads: ["stack", "kind", "loss_event_rate", "window_segments"]
            .map(str::to_owned)
            .to_vec(),
        align: "llrr".to_owned(),
        ..Rows::default()
    };
    let mut lines = Vec::new();
    for ((stack, points), law) in stacks.into_iter().zip(laws) {
        let group = of_stack.iter().find(|(known, _)| *known == stack);
        let group = group.map_or(0, |(_, group)| *group);
        for (kind, points) in [("measured", &points), ("law alone", &law)] {
            let row = |p: &(f64, f64)| {
                let numbers = [printed_text(p.0), printed_text(p.1)];
                [vec![stack.clone(), kind.to_owned()], numbers.to_vec()].concat()
            };
            tidy.rows.extend(points.iter().map(row));
        }
        lines.push(Line {
            name: stack,
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
            label: "mean window (segments)".to_owned(),
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
                .to_owned(),
            panels: vec![panel],
        }),
        tidy,
        printed: None,
        taken: None,
    })
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

const LOSSES: &str = "loss_event_rate";
const WINDOW: &str = "cwnd_segments.mean";
/// Windows of a law's line.
const STEPS: u32 = 24;
/// A law takes seconds to drive at a larger window.
const LARGEST: f64 = 2e5;
