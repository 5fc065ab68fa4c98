//! A panel of a chart: its axes, and the lines and dots between them.

use super::axes::{beside, middle_of_label, overhang};
use super::layout::{Layout, TICK};
use super::style::{AXIS_STROKE, GREY, INK, WARMUP};
use super::svg::{PathText, Svg};
use super::text::{fit, is_cut, shrunk, text_width, wrap};
use crate::figure::chart::{Line, Panel, Scale};
use crate::figure::{Ranges, Style};

/// What a panel has on its axes because other panels have it.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// On the horizontal one.
    pub(super) x: Vec<f64>,
    /// On the vertical one.
    pub(super) y: Vec<f64>,
}

impl Panel {
    /// Height of the heading.
    fn head(&self) -> f64 {
        if self.title.is_empty() { 6.0 } else { HEAD }
    }

    /// Height of the axes in a row.
    fn height(&self, row: f64, style: &Style) -> f64 {
        let foot = FOOT - if style.is_paper() { 12.0 } else { 0.0 };
        row - self.head() - foot
    }

    /// The horizontal axis, for these values beside its own.
    fn across(&self, width: f64, others: &Others) -> Layout {
        let all = self.places().chain(others.x.iter().copied());
        Layout::of(&self.x, all, width / TICK, self.ranges.x)
    }

    /// The vertical axis, for these values beside its own.
    fn up(&self, height: f64, others: &Others) -> Layout {
        let all = self.heights().into_iter().chain(others.y.iter().copied());
        Layout::of(&self.y, all, height / 36.0, self.ranges.y)
    }

    /// Values that have a place on the horizontal axis.
    pub(super) fn places(&self) -> impl Iterator<Item = f64> + '_ {
        self.drawn().map(|p| p.0)
    }

    /// Values that have a place on the vertical axis, of the part that is drawn.
    pub(super) fn heights(&self) -> Vec<f64> {
        // Of a line that crosses a part in which it has no point, all of it counts.
        let part = self.ranges.x;
        let is_empty = !self.drawn().any(|p| part.has(p.0));
        let seen = |x: f64| is_empty || part.has(x);
        let intervals = self
            .lines
            .iter()
            .flat_map(|l| l.points.iter().zip(&l.intervals));
        let intervals = intervals.filter(|(p, _)| part.is_all() || seen(p.0));
        let ends = intervals.filter_map(|(_, i)| *i).flatten();
        let ends = ends.map(|end| self.possible.nearest(end));
        let bands = self.lines.iter();
        let bands = bands.flat_map(|l| l.points.iter().zip(&l.band));
        let bands = bands.filter(|(p, _)| seen(p.0)).flat_map(|(_, b)| *b);
        let points = self.drawn().filter(|p| seen(p.0)).map(|p| p.1);
        points.chain(ends).chain(bands).collect()
    }

    /// How far left of its axis the vertical label stands.
    pub(super) fn beside(&self, row: f64, others: &Others, style: &Style) -> f64 {
        let ticks = self.up(self.height(row, style), others).ticks();
        beside(ticks.into_iter().map(|t| t.1), style.label_beside())
    }

    /// Height that names below the axis take beyond two lines each: where one does not fit, all are
    /// written aslant.
    pub(super) fn more(&self, width: f64) -> f64 {
        let Scale::Names(names) = &self.x.scale else {
            return 0.0;
        };
        let room = width / names.len().max(1) as f64;
        let fits = |name: &String| !is_cut(name, &wrap(name, room, 12.0, LINES_OF_A_NAME));
        if names.iter().all(fits) {
            return 0.0;
        }
        let widths = names.iter().map(|name| text_width(name, 12.0));
        let widest = widths.fold(0.0, f64::max).min(rising_room(room));
        (widest * SLOPE - 16.0).max(1.0)
    }

    /// How far the numbers below the axes reach beyond their right end; names have lines of their
    /// own width.
    pub(super) fn overhang(&self, width: f64, others: &Others) -> f64 {
        let x = self.across(width, others);
        let named = matches!(x, Layout::Names(_));
        let ticks = x.ticks().into_iter().filter(|_| !named);
        overhang(ticks.map(|(tick, text)| (x.part(tick), text)), width)
    }

    pub(super) fn draw(
        &self,
        out: &mut Svg,
        (left, top): (f64, f64),
        (width, row): (f64, f64),
        (beside, more): (f64, f64),
        (others, style): (&Others, &Style),
    ) {
        if !self.title.is_empty() {
            let (size, title) = shrunk(&self.title, width, out.size(14.0), 9.0);
            out.whole(&self.title, std::slice::from_ref(&title), |out| {
                out.text(left, top + 12.0, "start", size, INK, &title);
            });
        }
        let (top, height) = (top + self.head(), self.height(row, style));
        let bottom = top + height;
        let (x, y) = (self.across(width, others), self.up(height, others));
        let place = |p: (f64, f64)| (left + width * x.part(p.0), bottom - height * y.part(p.1));
        if self.warmup > 0.0 {
            let part = x.part(self.warmup).clamp(0.0, 1.0);
            out.rect(left, top, width * part, height, WARMUP);
        }
        for (tick, text) in y.ticks() {
            let at = bottom - height * y.part(tick);
            let light = "stroke=\"#e6e6e6\" stroke-width=\"1\"";
            out.line(left, at, left + width, at, light);
            out.text(left - 8.0, at + 4.0, "end", 12.0, GREY, &text);
        }
        for tick in y.minor() {
            let at = bottom - height * y.part(tick);
            out.line(left - 3.0, at, left, at, AXIS_STROKE);
        }
        for tick in x.minor() {
            let at = left + width * x.part(tick);
            out.line(at, bottom, at, bottom + 3.0, AXIS_STROKE);
        }
        let names = matches!(self.x.scale, Scale::Names(_));
        let room = width / x.ticks().len().max(1) as f64;
        for (tick, text) in x.ticks() {
            let at = left + width * x.part(tick);
            out.line(at, bottom, at, bottom + 5.0, AXIS_STROKE);
            let lines = match names {
                true if more > 0.0 => {
                    let name = [fit(&text, rising_room(room), 12.0)];
                    out.whole(&text, &name, |out| {
                        out.rising(at + 4.0, bottom + 14.0, 12.0, GREY, &name[0]);
                    });
                    continue;
                }
                true => wrap(&text, room, 12.0, LINES_OF_A_NAME),
                false => vec![text],
            };
            for (i, line) in lines.iter().enumerate() {
                let y = bottom + 18.0 + 13.0 * i as f64;
                out.text(at, y, "middle", 12.0, GREY, line);
            }
        }
        out.line(left, bottom, left + width, bottom, AXIS_STROKE);
        out.line(left, top, left, bottom, AXIS_STROKE);
        let middle = left + width / 2.0;
        let under = if names { 46.0 + more } else { 36.0 };
        let (size, label) = shrunk(&self.x.label, width + 20.0, out.size(13.0), 9.0);
        out.whole(&self.x.label, std::slice::from_ref(&label), |out| {
            out.text(middle, bottom + under, "middle", size, INK, &label);
        });
        let (size, label) = shrunk(&self.y.label, height + 40.0, out.size(13.0), 9.0);
        out.whole(&self.y.label, std::slice::from_ref(&label), |out| {
            let middle = middle_of_label((top, height), &label, size);
            out.rotated(left - beside, middle, size, INK, &label);
        });
        // Below every line, so that none is hidden by another's band.
        for line in self.lines.iter().filter(|l| l.has_band()) {
            let frame = ((left, top), (width, height));
            self.clipped(out, frame, |out| draw_band(out, line, (&x, &y), &place));
        }
        let closer = self.closer(&x, width);
        for line in &self.lines {
            let place = |p| {
                let (px, py) = place(p);
                (px + closer * line.shift, py)
            };
            let frame = ((left, top), (width, height));
            self.clipped(out, frame, |out| {
                self.draw_line(out, line, (&x, &y), &place);
            });
            self.draw_dots(out, line, (&x, &y), &place);
            let seen = |at: &&f64| x.shows(**at) && self.ranges.x.has(**at);
            for at in line.missing.iter().filter(seen) {
                let at = left + width * x.part(*at) + closer * line.shift;
                let colour = out.look(line.group).colour;
                out.text(at, bottom - 6.0, "middle", 12.0, colour, NO_VALUE);
            }
        }
    }

    /// Draws between the axes only: whole ones have room for all of it.
    fn clipped(
        &self,
        out: &mut Svg,
        (at, size): ((f64, f64), (f64, f64)),
        draw: impl FnOnce(&mut Svg),
    ) {
        let is_part = self.ranges != Ranges::default();
        if is_part {
            out.open_clip(at, size);
        }
        draw(out);
        if is_part {
            out.close_group();
        }
    }

    /// Part of their shifts by which lines are drawn apart, so that what belongs to one value stays
    /// nearer to it than to the next one.
    fn closer(&self, x: &Layout, width: f64) -> f64 {
        let most = self.lines.iter().map(|l| l.shift.abs()).fold(0.0, f64::max);
        let mut at: Vec<f64> = self.drawn().map(|p| width * x.part(p.0)).collect();
        at.sort_by(f64::total_cmp);
        at.dedup_by(|a, b| (*a - *b).abs() < APART);
        let between = at.windows(2).map(|pair| 0.4 * (pair[1] - pair[0]));
        let room = between.fold(f64::INFINITY, f64::min);
        if most > room { room / most } else { 1.0 }
    }

    fn draw_line(
        &self,
        out: &mut Svg,
        line: &Line,
        (x, y): (&Layout, &Layout),
        place: &dyn Fn((f64, f64)) -> (f64, f64),
    ) {
        let look = out.look(line.group);
        let drawn = |p: &(f64, f64)| x.shows(p.0) && y.shows(p.1);
        let mut path = PathText::default();
        for part in line.points.split(|p| p.1.is_nan()) {
            path.lift();
            for (px, py) in apart(part.iter().filter(|p| drawn(p)).map(|p| place(*p))) {
                path.to(px, py);
            }
        }
        if !path.text.is_empty() && !line.loose {
            out.path(&path.text, look.colour, &look.line(false, 1.8));
        }
        let stroke = format!("stroke=\"{}\" stroke-width=\"1.2\"", look.colour);
        let lowest = y.lowest();
        for (p, interval) in line.points.iter().zip(&line.intervals) {
            let Some([low, high]) = interval.filter(|i| drawn(p) && i.iter().all(|v| y.shows(*v)))
            else {
                continue;
            };
            let ends = [
                self.possible.nearest(low).max(lowest),
                self.possible.nearest(high),
            ];
            let [(at, from), (_, to)] = ends.map(|end| place((p.0, end)));
            out.line(at, from, at, to, &stroke);
            // What goes on has no end there.
            for (end, drawn, y) in [(low, ends[0], from), (high, ends[1], to)] {
                if end == drawn {
                    out.line(at - 3.0, y, at + 3.0, y, &stroke);
                }
            }
        }
    }

    /// Points that lie between the ends of the axes, whole.
    fn draw_dots(
        &self,
        out: &mut Svg,
        line: &Line,
        (x, y): (&Layout, &Layout),
        place: &dyn Fn((f64, f64)) -> (f64, f64),
    ) {
        let Ranges { x: across, y: up } = self.ranges;
        let shown = |p: &&(f64, f64)| x.shows(p.0) && y.shows(p.1);
        // No line begins and ends in one point.
        let alone = line.points.iter().filter(shown).count() == 1;
        let seen = |p: &&(f64, f64)| shown(p) && across.has(p.0) && up.has(p.1);
        let dots = line.points.iter().filter(|_| line.dots || alone);
        for p in dots.filter(seen) {
            let (px, py) = place(*p);
            out.dot(px, py, line.group);
        }
    }

    /// Points that both axes can show.
    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let shows = |scale: &Scale, v: f64| v.is_finite() && (v > 0.0 || *scale != Scale::Log);
        let both = move |p: &(f64, f64)| shows(&self.x.scale, p.0) && shows(&self.y.scale, p.1);
        let points = self.lines.iter().flat_map(|l| l.points.iter().copied());
        points.filter(both)
    }
}

/// From the smallest to the largest of what each point of a line stands for.
fn draw_band(
    out: &mut Svg,
    line: &Line,
    (x, y): (&Layout, &Layout),
    place: &dyn Fn((f64, f64)) -> (f64, f64),
) {
    let all: Vec<_> = line.points.iter().zip(&line.band).collect();
    let mut path = PathText::default();
    for part in all.split(|(p, _)| p.1.is_nan()) {
        let drawn = part.iter();
        let drawn = drawn.filter(|(p, ends)| x.shows(p.0) && ends.iter().all(|v| y.shows(*v)));
        let (low, high): (Vec<_>, Vec<_>) = drawn
            .map(|(p, [low, high])| (place((p.0, *low)), place((p.0, *high))))
            .unzip();
        path.lift();
        for (px, py) in high.into_iter().chain(low.into_iter().rev()) {
            path.to(px, py);
        }
    }
    if !path.text.is_empty() {
        out.area(&path.text, out.look(line.group).colour);
    }
}

/// The points of a line without those that would lie on the one before, as seen; the last stays.
fn apart(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut left_out = None;
    for (x, y) in points {
        let near = |(a, b): &(f64, f64)| (x - a).abs().max((y - b).abs()) < APART;
        match kept.last().is_some_and(near) {
            true => left_out = Some((x, y)),
            false => {
                kept.push((x, y));
                left_out = None;
            }
        }
    }
    kept.extend(left_out);
    kept
}

/// In the place of a value that is not defined.
pub(super) const NO_VALUE: &str = "–";

/// Units of the drawing below which two points are one.
const APART: f64 = 0.2;

/// Length of a name aslant that does not leave the picture on the left.
fn rising_room(room: f64) -> f64 {
    (room / 2.0 + 60.0) / SLOPE
}

/// Sine and cosine of the slope of names.
const SLOPE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Height of a heading.
pub(super) const HEAD: f64 = 22.0;
/// Height of the labels below an axis.
pub(super) const FOOT: f64 = 62.0;
/// Of a name below the horizontal axis.
const LINES_OF_A_NAME: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Range;
    use crate::figure::chart::Axis;

    #[test]
    fn an_interval_ends_where_the_quantity_does() {
        let mut panel = Panel {
            lines: vec![Line {
                points: vec![(1.0, 10.0), (2.0, 20.0)],
                intervals: vec![Some([-30.0, 50.0]), None],
                ..Line::default()
            }],
            ..Panel::default()
        };
        panel.y.scale = Scale::Linear;
        assert!(panel.up(300.0, &Others::default()).lowest() <= -30.0);
        panel.possible = Range {
            from: Some(0.0),
            to: Some(40.0),
        };
        assert_eq!(panel.up(300.0, &Others::default()).lowest(), 0.0);
        assert_eq!(panel.heights(), [10.0, 20.0, 0.0, 40.0]);
    }

    /// A band is part of the axis, and below the lines.
    #[test]
    fn a_band_lies_below_every_line() {
        let line = |group, median: f64, band: &[[f64; 2]]| Line {
            points: vec![(0.0, median), (1.0, median)],
            band: band.to_vec(),
            group,
            ..Line::default()
        };
        let mut panel = Panel {
            lines: vec![
                line(0, 80.0, &[[80.0, 200.0]; 2]),
                line(1, 90.0, &[[80.0, 160.0]; 2]),
                line(2, 70.0, &[[70.0, 70.0]; 2]),
            ],
            ..Panel::default()
        };
        panel.x.scale = Scale::Linear;
        panel.y.scale = Scale::Linear;
        assert!(panel.heights().contains(&200.0));
        let style = Style::default();
        let mut out = Svg::new(400.0, 300.0, "", &style);
        panel.draw(
            &mut out,
            (0.0, 0.0),
            (400.0, 300.0),
            (50.0, 0.0),
            (&Others::default(), &style),
        );
        let svg = out.finish();
        let bands: Vec<usize> = svg.match_indices("fill-opacity").map(|m| m.0).collect();
        let lines = svg.match_indices("stroke-width=\"1.8\"").map(|m| m.0);
        assert_eq!(bands.len(), 2, "{svg}");
        assert!(lines.clone().count() == 3 && lines.min() > bands.last().copied());
    }

    /// Nine lines over values that are near one another: those of one stay apart from the next's,
    /// and none leaves the axes.
    #[test]
    fn many_lines_stay_beside_their_value() {
        let line = |i: f64| Line {
            shift: 7.0 * (i - 4.0),
            loose: true,
            dots: true,
            ..Line::default()
        };
        let marks: Vec<(f64, String)> =
            [0.2, 0.5, 1.0, 4.0].map(|v| (v, format!("{v} BDP"))).into();
        let axis = Axis {
            label: String::new(),
            scale: Scale::Values {
                marks: marks.clone(),
                log: true,
            },
        };
        let points: Vec<_> = marks.iter().map(|m| (m.0, 1.0)).collect();
        let panel = Panel {
            lines: (0..9)
                .map(|i| Line {
                    points: points.clone(),
                    ..line(f64::from(i))
                })
                .collect(),
            x: axis,
            ..Panel::default()
        };
        for width in [110.0, 400.0] {
            let x = panel.across(width, &Others::default());
            let most = 28.0 * panel.closer(&x, width);
            let at: Vec<f64> = marks.iter().map(|m| width * x.part(m.0)).collect();
            assert!(at[0] - most > 0.0 && at[3] + most < width, "{at:?} {most}");
            assert!(
                at.windows(2).all(|p| p[0] + most < p[1] - most),
                "{at:?} {most}"
            );
        }
        let named = panel
            .across(320.0, &Others::default())
            .ticks()
            .into_iter()
            .filter(|t| !t.1.is_empty());
        assert_eq!(named.count(), 4);
    }

    /// What is thinned for one part of the axis would be missing in another.
    #[test]
    fn points_are_left_out_by_what_can_be_seen() {
        let many = (0..100_000).map(|i| (f64::from(i), f64::from(i)));
        let at = |(x, y): (f64, f64), scale: f64| (x * scale, y * scale);
        let whole = apart(many.clone().map(|p| at(p, 0.001)));
        assert!(whole.len() < 1000 && whole.last() == Some(&(99.999, 99.999)));
        let part = apart(many.skip(99_000).map(|p| at(p, 1.0)));
        assert_eq!(part.len(), 1000);
    }
}
