//! What the lines and shapes of a picture mean, below its headline.

use super::axes::Frame;
use super::curve::thinned;
use super::style::{Detail, INK, WARMUP, level_stroke};
use super::svg::Svg;
use super::text::{fit, text_width, thousands};
use crate::figure::picture::{Curve, Figure, LevelKind, MarkKind};

/// Draws the legend of some figures below `y`, between `left` and `right`, and returns its lower
/// end.
pub(super) fn legend(
    out: &mut Svg,
    figures: &[&Figure],
    detail: &Detail,
    (left, right): (f64, f64),
    mut y: f64,
) -> f64 {
    let mut x = left;
    let mut place = |out: &mut Svg, text: &str, sample: &mut dyn FnMut(&mut Svg, f64, f64)| {
        let width = 30.0 + text_width(text, 13.0) + 22.0;
        if x > left && x + width - 22.0 > right {
            x = left;
            y += 20.0;
        }
        sample(out, x, y);
        let shown = [fit(text, right - x - 30.0, 13.0)];
        out.whole(text, &shown, |out| {
            out.text(x + 30.0, y, "start", 13.0, INK, &shown[0]);
        });
        x += width;
    };
    let curves = || figures.iter().flat_map(|f| &f.curves);
    let mut groups: Vec<(usize, &str, bool)> = Vec::new();
    for curve in curves() {
        if !groups.iter().any(|(group, ..)| *group == curve.group) {
            groups.push((curve.group, &curve.name, curve.band));
        }
    }
    // One curve per panel under the panel's own heading needs no name.
    let shown = if groups.len() == 1 && figures.len() > 1 {
        0
    } else {
        groups.len().min(LEGEND_GROUPS)
    };
    for (group, name, band) in &groups[..shown] {
        let look = out.look(*group);
        // In several figures a flow's stack may differ.
        let same = curves().all(|c| c.group != *group || c.name == *name);
        let name = match same {
            true => name,
            false => name.split(": ").next().unwrap_or(name),
        };
        place(out, name, &mut |out, x, y| {
            let style = format!("stroke=\"{}\" {}", look.colour, look.line(*band, 2.2));
            out.line(x, y - 4.5, x + 24.0, y - 4.5, &style);
        });
    }
    if groups.len() > LEGEND_GROUPS {
        place(
            out,
            &format!("and {} more", groups.len() - LEGEND_GROUPS),
            &mut |_, _, _| {},
        );
    }
    let finite = |c: &Curve| c.ssthresh.iter().any(|w| w.is_finite());
    if figures
        .iter()
        .any(|f| f.curves.len() <= detail.ssthresh_up_to && f.curves.iter().any(finite))
    {
        place(out, "ssthresh", &mut |out, x, y| {
            let style = "stroke=\"#555\" stroke-width=\"1\" stroke-dasharray=\"4 4\"";
            out.line(x, y - 4.5, x + 24.0, y - 4.5, style);
        });
    }
    if figures.iter().any(|f| f.warmup > 0.0) {
        place(out, WARMUP_WORDS, &mut |out, x, y| {
            out.rect(x, y - 9.0, 24.0, 10.0, WARMUP);
        });
    }
    if !detail.level_labels {
        let top = figures.iter().map(|f| f.top()).fold(0.0, f64::max);
        let ends = |f: &&Figure| f.windows(top);
        let (bottom, top) = figures.first().map_or((0.0, top), ends);
        let levels = || figures.iter().flat_map(|f| &f.levels);
        for kind in LevelKind::ALL {
            if levels().any(|l| l.kind == kind && bottom <= l.window && l.window < top) {
                place(out, kind.name(), &mut |out, x, y| {
                    out.line(x, y - 4.5, x + 24.0, y - 4.5, level_stroke(kind));
                });
            }
        }
    }
    for (kind, one, many) in [
        (
            MarkKind::Congestion,
            "congestion event",
            "congestion events",
        ),
        (MarkKind::Timeout, "timeout", "timeouts"),
        (MarkKind::StartUpExit, "start-up exit", "start-up exits"),
        (
            MarkKind::Change,
            "change of parameters",
            "changes of parameters",
        ),
    ] {
        let in_one = |f: &&Figure| {
            f.curves
                .iter()
                .flat_map(|c| &c.marks)
                .filter(|m| m.kind == kind && m.time <= f.duration)
                .count()
        };
        let count: usize = figures.iter().map(in_one).sum();
        if count == 0 {
            continue;
        }
        let text = match figures {
            [figure] => format!(
                "{} {}{}",
                thousands(count as f64),
                if count == 1 { one } else { many },
                match shapes(figure, kind, detail, right - left) < count {
                    true => ", near ones as one",
                    false => "",
                }
            ),
            _ => one.to_owned(),
        };
        // The triangle stands on its tip, the others on their centre.
        let lower = if kind == MarkKind::Congestion {
            5.0
        } else {
            0.0
        };
        place(out, &text, &mut |out, x, y| {
            out.mark(x + 18.0, y - 4.5 + lower, kind, "#555", 4.5)
        });
    }
    y
}

/// How many marks of a kind are drawn of a figure that is about so wide.
fn shapes(figure: &Figure, kind: MarkKind, detail: &Detail, width: f64) -> usize {
    let frame = Frame {
        left: 0.0,
        top: 0.0,
        width,
        height: 1.0,
        x: figure.times(figure.duration),
        y: figure.windows(figure.top()),
        duration: figure.duration,
    };
    let distance = detail.distance(figure.curves.len());
    let of_curve = |c: &Curve| {
        let drawn = thinned(c, &frame, distance);
        drawn.iter().filter(|mark| mark.kind == kind).count()
    };
    figure.curves.iter().map(of_curve).sum()
}

const LEGEND_GROUPS: usize = 12;

/// What the shade at the beginning of a picture is.
pub(super) const WARMUP_WORDS: &str = "warm-up: in counts, not in means";
