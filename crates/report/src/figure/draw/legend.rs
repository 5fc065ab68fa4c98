//! What the lines and shapes of a picture mean, below its headline.

use super::axes::Frame;
use super::curve::thinned;
use super::style::{Detail, INK, LOOKS, WARMUP, level_stroke};
use super::svg::Svg;
use super::text::{fit, text_width, thousands, told_apart};
use crate::figure::picture::{Curve, Figure, LevelKind, MarkKind};

/// Draws the legend of some figures below `y`, between `left` and `right`, and returns its lower
/// end.
pub(super) fn legend(
    out: &mut Svg,
    figures: &[&Figure],
    detail: &Detail,
    (left, right): (f64, f64),
    y: f64,
) -> f64 {
    let mut entries = Entries::new(out, (left, right), y);
    let curves = || figures.iter().flat_map(|f| &f.curves);
    let look = |curve: &Curve| (curve.group, curve.band);
    let mut groups: Vec<((usize, bool), &str)> = Vec::new();
    for curve in curves() {
        if !groups.iter().any(|(known, _)| *known == look(curve)) {
            groups.push((look(curve), &curve.name));
        }
    }
    // One curve per panel under the panel's own heading needs no name.
    let shown = if groups.len() == 1 && figures.len() > 1 {
        0
    } else {
        groups.len().min(LOOKS)
    };
    let groups_shown = &groups[..shown];
    let names = groups_shown.iter().map(|(known, name)| {
        // In several figures a flow's stack may differ.
        match curves().all(|c| look(c) != *known || c.name == *name) {
            true => *name,
            false => name.split(": ").next().unwrap_or(name),
        }
    });
    let mut names: Vec<&str> = names.collect();
    // Paper has little room, and a caption.
    if out.is_paper() {
        names = told_apart(&names);
    }
    for (((group, band), _), name) in groups_shown.iter().zip(names) {
        let look = out.look(*group);
        entries.place(out, name, |out, x, y| {
            let style = format!("stroke=\"{}\" {}", look.colour, look.line(*band, 2.2));
            out.line(x, y - 4.5, x + 24.0, y - 4.5, &style);
        });
    }
    entries.rest(out, groups.len());
    let finite = |c: &Curve| c.ssthresh.iter().any(|w| w.is_finite());
    if figures
        .iter()
        .any(|f| f.curves.len() <= detail.ssthresh_up_to && f.curves.iter().any(finite))
    {
        entries.place(out, "ssthresh", |out, x, y| {
            let style = "stroke=\"#555\" stroke-width=\"1\" stroke-dasharray=\"4 4\"";
            out.line(x, y - 4.5, x + 24.0, y - 4.5, style);
        });
    }
    if figures.iter().any(|f| f.warmup > 0.0) {
        entries.place(out, WARMUP_WORDS, |out, x, y| {
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
                entries.place(out, kind.name(), |out, x, y| {
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
        entries.place(out, &text, |out, x, y| {
            out.mark(x + 18.0, y - 4.5 + lower, kind, "#555", 4.5);
        });
    }
    entries.y
}

/// Entries of a legend, one beside the other as far as there is room.
pub(super) struct Entries {
    left: f64,
    right: f64,
    x: f64,
    /// Line on which the last one stands.
    pub(super) y: f64,
}

impl Entries {
    /// From a line on, between the ends of the axes; on paper from its edge.
    pub(super) fn new(out: &Svg, (left, right): (f64, f64), y: f64) -> Self {
        let left = if out.is_paper() { PAPER_EDGE } else { left };
        Self {
            left,
            right,
            x: left,
            y,
        }
    }

    /// Writes the next one, with the sample that is drawn in front of it.
    pub(super) fn place(
        &mut self,
        out: &mut Svg,
        text: &str,
        sample: impl FnOnce(&mut Svg, f64, f64),
    ) {
        let (gap, line) = match out.is_paper() {
            true => (12.0, 16.0),
            false => (22.0, 20.0),
        };
        let size = out.size(13.0);
        let width = SAMPLE + text_width(text, size);
        if self.x > self.left && self.x + width > self.right {
            self.x = self.left;
            self.y += line;
        }
        let (x, y) = (self.x, self.y);
        sample(out, x, y);
        let shown = [fit(text, self.right - x - SAMPLE, size)];
        out.whole(text, &shown, |out| {
            out.text(x + SAMPLE, y, "start", 13.0, INK, &shown[0]);
        });
        self.x += width + gap;
    }

    /// Says how many of so many names there was no look for.
    pub(super) fn rest(&mut self, out: &mut Svg, names: usize) {
        if names > LOOKS {
            self.place(out, &format!("and {} more", names - LOOKS), |_, _, _| {});
        }
    }
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

/// Room for the sample in front of a name.
const SAMPLE: f64 = 30.0;
const PAPER_EDGE: f64 = 8.0;

/// What the shade at the beginning of a picture is.
pub(super) const WARMUP_WORDS: &str = "warm-up: in counts, not in means";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Style;

    fn figure(names: &[&str]) -> Figure {
        let curve = |(group, name): (usize, &&str)| Curve {
            name: (*name).to_owned(),
            group,
            ..Curve::default()
        };
        Figure {
            curves: names.iter().enumerate().map(curve).collect(),
            warmup: 1.0,
            ..Figure::default()
        }
    }

    /// Six names on the column of a journal leave the room to the curves.
    #[test]
    fn a_legend_on_paper_is_short() {
        let names = [
            "main: reno",
            "main: cubic",
            "main: highspeed",
            "main: scalable",
            "main: westwood",
            "main: illinois",
        ];
        let paper = Style {
            width_mm: Some(84.0),
            ..Style::default()
        };
        let drawn = |style: &Style| {
            let mut out = Svg::new(317.0, 200.0, "", style);
            let ends = (66.0, 303.0);
            let low = legend(&mut out, &[&figure(&names)], &Detail::PAPER, ends, 16.0);
            (low, out.finish())
        };
        let (low, svg) = drawn(&paper);
        assert!(low <= 64.0, "{low}");
        assert!(svg.contains(">cubic<") && !svg.contains("main"), "{svg}");
        let (low, svg) = drawn(&Style::default());
        assert!(low > 64.0 && svg.contains(">main: cubic<"), "{svg}");
    }
}
