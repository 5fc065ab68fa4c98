//! A [`Chart`] as SVG text.

use super::axes::{beside, overhang, room_left, stepped, ticks, ticks_between};
use super::headline;
use super::legend::WARMUP_WORDS;
use super::style::{AXIS_STROKE, GREY, INK, WARMUP};
use super::svg::{PathText, Svg};
use super::text::{fit, is_cut, named, text_width, thousands, wrap};
use crate::figure::chart::{Axis, Chart, Line, Panel, Scale};
use crate::figure::{Range, Ranges, Style};

impl Chart {
    /// The picture.
    pub fn svg(&self, style: &Style) -> String {
        let total = style.width(WIDTH);
        let columns = match self.panels.len() {
            0 | 1 => 1,
            _ if self.stacked => 1,
            n => match style.columns {
                Some(columns) => columns.clamp(1, n),
                None => ((total / PANEL_WIDTH) as usize).clamp(1, COLUMNS),
            },
        };
        let rows = self.panels.len().div_ceil(columns).max(1);
        // Many rows of a narrow column would not fit on a page.
        let ratio = if rows > 2 { 0.42 } else { 0.62 };
        let height_of_row = match (style.is_paper(), self.stacked) {
            (true, true) => (0.3 * total).max(0.7 * PAPER_ROW) + FOOT,
            (true, false) => (ratio * total / columns as f64).max(PAPER_ROW) + FOOT,
            (false, true) => 0.72 * ROW,
            (false, false) => ROW,
        };
        let headed = self.panels.iter().any(|p| !p.title.is_empty());
        let heading = |out: &mut Svg| {
            let y = headline(out, (&self.title, &self.subtitle), total, style);
            self.names(out, (style.margin_left(), total - style.margin_right()), y)
        };
        // Drawn once for its height, which the document's own depends on.
        let top = heading(&mut Svg::new(0.0, 0.0, "", style)) + if headed { 14.0 } else { 0.0 };
        let draft = (total - style.margin_right()) / columns as f64 - style.margin_left();
        let more = self.panels.iter().map(|p| p.more(draft));
        let more = more.fold(0.0, f64::max);
        let height = top + rows as f64 * (height_of_row + more);
        let label = named(&self.title, &self.subtitle);
        let mut out = Svg::new(total, height, &label, style);
        heading(&mut out);
        let beside = self
            .panels
            .iter()
            .map(|p| p.beside(height_of_row, style))
            .fold(0.0, f64::max);
        let margin = style.margin_left().max(room_left(beside));
        let width_of = |right: f64| (total - right) / columns as f64 - margin;
        let over = self.panels.iter().map(|p| p.overhang(draft));
        let width = width_of(over.fold(style.margin_right(), f64::max));
        for (i, panel) in self.panels.iter().enumerate() {
            let left = margin + (i % columns) as f64 * (width + margin);
            let top = top + (i / columns) as f64 * (height_of_row + more);
            let size = (width, height_of_row);
            panel.draw(&mut out, (left, top), size, (beside, more), style);
        }
        out.finish()
    }

    /// Names of the lines, and the lower end of the legend.
    fn names(&self, out: &mut Svg, (left, right): (f64, f64), mut y: f64) -> f64 {
        let mut named: Vec<&Line> = Vec::new();
        for line in self.panels.iter().flat_map(|p| &p.lines) {
            let known = |l: &&Line| l.group == line.group && l.name == line.name;
            if !line.name.is_empty() && !named.iter().any(known) {
                named.push(line);
            }
        }
        let mut x = left;
        for line in named {
            let width = 52.0 + text_width(&line.name, 13.0);
            if x > left && x + width - 22.0 > right {
                (x, y) = (left, y + 20.0);
            }
            let look = out.look(line.group);
            if !line.loose {
                let style = format!("stroke=\"{}\" {}", look.colour, look.line(false, 2.2));
                out.line(x, y - 4.5, x + 24.0, y - 4.5, &style);
            }
            if line.dots {
                out.dot(x + 12.0, y - 4.5, line.group);
            }
            let name = [fit(&line.name, right - x - 30.0, 13.0)];
            out.whole(&line.name, &name, |out| {
                out.text(x + 30.0, y, "start", 13.0, INK, &name[0]);
            });
            x += width;
        }
        if self.panels.iter().any(|p| p.warmup > 0.0) {
            if x > left && x + 30.0 + text_width(WARMUP_WORDS, 13.0) > right {
                (x, y) = (left, y + 20.0);
            }
            out.rect(x, y - 9.0, 24.0, 10.0, WARMUP);
            out.text(x + 30.0, y, "start", 13.0, INK, WARMUP_WORDS);
        }
        y
    }
}

impl Panel {
    /// Height of the heading.
    fn head(&self) -> f64 {
        if self.title.is_empty() { 6.0 } else { 22.0 }
    }

    /// Height of the axes in a row.
    fn height(&self, row: f64, style: &Style) -> f64 {
        let foot = FOOT - if style.is_paper() { 12.0 } else { 0.0 };
        row - self.head() - foot
    }

    /// The horizontal axis.
    fn across(&self, width: f64) -> Layout {
        let all = self.drawn().map(|p| p.0);
        Layout::of(&self.x, all, width / TICK, self.ranges.x)
    }

    /// The vertical axis.
    fn up(&self, height: f64) -> Layout {
        // An interval of what is never negative ends at zero.
        let least = match self.drawn().all(|p| p.1 >= 0.0) {
            true => 0.0,
            false => f64::NEG_INFINITY,
        };
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
        let ends = ends.map(|end| end.max(least));
        let all = self.drawn().filter(|p| seen(p.0)).map(|p| p.1).chain(ends);
        Layout::of(&self.y, all, height / 36.0, self.ranges.y)
    }

    /// How far left of its axis the vertical label stands.
    fn beside(&self, row: f64, style: &Style) -> f64 {
        let ticks = self.up(self.height(row, style)).ticks();
        beside(ticks.into_iter().map(|t| t.1), style.label_beside())
    }

    /// Height that names below the axis take beyond two lines each: where one does not fit, all are
    /// written aslant.
    fn more(&self, width: f64) -> f64 {
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
    fn overhang(&self, width: f64) -> f64 {
        let x = self.across(width);
        let named = matches!(x, Layout::Names(_));
        let ticks = x.ticks().into_iter().filter(|_| !named);
        overhang(ticks.map(|(tick, text)| (x.part(tick), text)), width)
    }

    fn draw(
        &self,
        out: &mut Svg,
        (left, top): (f64, f64),
        (width, row): (f64, f64),
        (beside, more): (f64, f64),
        style: &Style,
    ) {
        if !self.title.is_empty() {
            let title = [fit(&self.title, width, 14.0)];
            out.whole(&self.title, &title, |out| {
                out.text(left, top + 12.0, "start", 14.0, INK, &title[0]);
            });
        }
        let (top, height) = (top + self.head(), self.height(row, style));
        let bottom = top + height;
        let (x, y) = (self.across(width), self.up(height));
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
        out.text(middle, bottom + under, "middle", 13.0, INK, &self.x.label);
        let label = [fit(&self.y.label, height + 40.0, 13.0)];
        out.whole(&self.y.label, &label, |out| {
            out.rotated(left - beside, top + height / 2.0, 13.0, INK, &label[0]);
        });
        let closer = self.closer(&x, width);
        for line in &self.lines {
            let place = |p| {
                let (px, py) = place(p);
                (px + closer * line.shift, py)
            };
            // Whole axes have room for all of it.
            let is_part = self.ranges != Ranges::default();
            if is_part {
                out.open_clip((left, top), (width, height));
            }
            self.draw_line(out, line, (&x, &y), &place);
            if is_part {
                out.close_group();
            }
            self.draw_dots(out, line, (&x, &y), &place);
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
        for (px, py) in apart(line.points.iter().filter(|p| drawn(p)).map(|p| place(*p))) {
            path.to(px, py);
        }
        if !path.text.is_empty() && !line.loose {
            out.path(&path.text, look.colour, &look.line(false, 1.8));
        }
        let stroke = format!("stroke=\"{}\" stroke-width=\"1.2\"", look.colour);
        for (p, interval) in line.points.iter().zip(&line.intervals) {
            let Some([low, high]) = interval.filter(|i| drawn(p) && i.iter().all(|v| y.shows(*v)))
            else {
                continue;
            };
            // What goes on below the axis has no end there.
            let lowest = y.lowest();
            let ((at, from), (_, to)) = (place((p.0, low.max(lowest))), place((p.0, high)));
            out.line(at, from, at, to, &stroke);
            if low >= lowest {
                out.line(at - 3.0, from, at + 3.0, from, &stroke);
            }
            out.line(at - 3.0, to, at + 3.0, to, &stroke);
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
        let seen = |p: &&(f64, f64)| x.shows(p.0) && y.shows(p.1) && across.has(p.0) && up.has(p.1);
        for p in line.points.iter().filter(|p| line.dots && seen(p)) {
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

/// Width for a number below an axis.
const TICK: f64 = 66.0;

/// Units of the drawing below which two points are one.
const APART: f64 = 0.2;

/// An axis with its ends.
enum Layout {
    /// Whole powers of ten.
    Decades { from: i32, to: i32 },
    /// Between two positive numbers, laid out by their logarithms, which these are.
    Powers { from: f64, to: f64, wanted: f64 },
    /// Between two numbers, with a tick at every step.
    Even { from: f64, to: f64, step: f64 },
    /// Names, each in the middle of its part.
    Names(Vec<String>),
    /// Numbers with names, the outermost away from the edges.
    Values {
        marks: Vec<(f64, String)>,
        log: bool,
        from: f64,
        to: f64,
    },
}

impl Layout {
    /// Around all values of a part of the axis, with about `wanted` ticks.
    fn of(axis: &Axis, values: impl Iterator<Item = f64>, wanted: f64, part: Range) -> Self {
        let finite = values.filter(|x| x.is_finite() && part.has(*x));
        match &axis.scale {
            Scale::Names(names) => Self::Names(names.clone()),
            Scale::Values { marks, log } => Self::values(marks, *log, wanted, part),
            Scale::Log => {
                let decades = Self::decades(finite.filter(|x| *x > 0.0));
                match decades {
                    Self::Decades { from, to } if !part.is_all() => {
                        let (from, to) = part.log10().ends(f64::from(from), f64::from(to));
                        Self::Powers { from, to, wanted }
                    }
                    whole => whole,
                }
            }
            Scale::Linear => Self::even(finite, wanted, part),
        }
    }

    fn even(values: impl Iterator<Item = f64>, wanted: f64, part: Range) -> Self {
        // Zero belongs to an axis that nobody cut.
        let zero = part.has(0.0).then_some(0.0);
        let (low, high) = zero
            .into_iter()
            .chain(values)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
                (l.min(x), h.max(x))
            });
        let (low, high) = part.ends(low, high);
        let marks = ticks(high - low, wanted.max(2.0) as usize);
        let step = marks.get(1).copied().unwrap_or(high - low);
        let from = part.from.unwrap_or((low / step + 1e-9).floor() * step);
        // The highest point does not touch the edge.
        let beyond = || (high + 0.03 * (high - from)).max(from + step);
        Self::Even {
            from,
            to: part.to.unwrap_or_else(beyond),
            step,
        }
    }

    /// Names that would cover the one before are left out, their marks stay.
    fn values(marks: &[(f64, String)], log: bool, wanted: f64, part: Range) -> Self {
        let at = |x: f64| if log { x.log10() } else { x };
        let (all, marks) = (marks, marks.iter().filter(|m| part.has(m.0)));
        let marks: Vec<_> = marks.cloned().collect();
        let (first, last) = match all {
            [first, .., last] => (at(first.0), at(last.0)),
            [only] => (at(only.0) - 0.5, at(only.0) + 0.5),
            [] => (0.0, 1.0),
        };
        let gaps = all.windows(2).map(|pair| at(pair[1].0) - at(pair[0].0));
        // What is set beside an outermost value stays within the axis.
        let edge =
            (0.5 * gaps.fold(f64::INFINITY, f64::min)).clamp(0.05 * (last - first), last - first);
        let scaled = if log { part.log10() } else { part };
        let (from, to) = scaled.ends(first - edge, last + edge);
        let unit = wanted.max(1.0) * TICK / (to - from);
        let mut free = f64::NEG_INFINITY;
        let mut shown = marks;
        for (x, name) in &mut shown {
            let (middle, half) = (at(*x) * unit, text_width(name, 12.0) / 2.0);
            match middle - half >= free {
                true => free = middle + half + 8.0,
                false => name.clear(),
            }
        }
        Self::Values {
            marks: shown,
            log,
            from,
            to,
        }
    }

    fn decades(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
        if low > high {
            return Self::Decades { from: 0, to: 1 };
        }
        // A value that is a power of ten but for rounding needs no decade of its own.
        let from = (low.log10() + 1e-9).floor() as i32;
        let to = (high.log10() - 1e-9).ceil() as i32;
        Self::Decades {
            from,
            to: to.max(from + 1),
        }
    }

    /// True for what has a place on the axis.
    fn shows(&self, x: f64) -> bool {
        let by_logarithm = match self {
            Self::Decades { .. } | Self::Powers { .. } => true,
            Self::Values { log, .. } => *log,
            Self::Even { .. } | Self::Names(_) => false,
        };
        x.is_finite() && (x > 0.0 || !by_logarithm)
    }

    /// Value at the beginning of the axis.
    fn lowest(&self) -> f64 {
        match self {
            Self::Even { from, .. } => *from,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Position on the axis, 0 to 1.
    fn part(&self, x: f64) -> f64 {
        match self {
            Self::Decades { from, to } => (x.log10() - f64::from(*from)) / f64::from(to - from),
            Self::Powers { from, to, .. } => (x.log10() - from) / (to - from),
            Self::Even { from, to, .. } => (x - from) / (to - from),
            Self::Names(names) => (x + 0.5) / names.len().max(1) as f64,
            Self::Values { log, from, to, .. } => {
                let at = if *log { x.log10() } else { x };
                (at - from) / (to - from)
            }
        }
    }

    /// Values with a mark, and what stands at them; at most eight powers of ten.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Decades { from, to } => {
                let step = (to - from) / 8 + 1;
                let powers = (*from..=*to).step_by(step as usize);
                powers
                    .map(|e| 10_f64.powi(e))
                    .map(|x| (x, number(x)))
                    .collect()
            }
            Self::Powers { from, to, wanted } => powers((*from, *to), *wanted),
            Self::Even { from, to, step } => stepped((*from, *to), *step),
            Self::Names(names) => {
                let ticks = names.iter().enumerate();
                ticks.map(|(i, name)| (i as f64, name.clone())).collect()
            }
            Self::Values { marks, .. } => marks.clone(),
        }
    }
}

/// Powers of ten between two, given by their logarithms; where there are fewer than three, twos and
/// fives between them, and where these are too few, even steps.
fn powers((from, to): (f64, f64), wanted: f64) -> Vec<(f64, String)> {
    let within = |x: f64| (from - 1e-9..=to + 1e-9).contains(&x.log10());
    let all = |of_a_decade: &[f64]| -> Vec<(f64, String)> {
        let decades = from.floor() as i32..=to.ceil() as i32;
        let marks = decades.flat_map(|e| of_a_decade.iter().map(move |m| m * 10_f64.powi(e)));
        let marks = marks.filter(|x| within(*x));
        marks.map(|x| (x, number(x))).collect()
    };
    let tens = all(&[1.0]);
    if tens.len() >= 3 {
        let step = tens.len().div_ceil(8);
        return tens.into_iter().step_by(step).collect();
    }
    match all(&[1.0, 2.0, 5.0]) {
        marks if marks.len() >= 3 => marks,
        _ => ticks_between(
            (10_f64.powf(from), 10_f64.powf(to)),
            wanted.max(2.0) as usize,
        ),
    }
}

/// Length of a name aslant that does not leave the picture on the left.
fn rising_room(room: f64) -> f64 {
    (room / 2.0 + 60.0) / SLOPE
}

/// Sine and cosine of the slope of names.
const SLOPE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// One, two or five times a power of ten: in digits where they are few.
fn number(x: f64) -> String {
    match (1e-3..1e7).contains(&x) {
        true => thousands(x),
        false => format!("{x:.0e}"),
    }
}

const WIDTH: f64 = 1080.0;
const COLUMNS: usize = 2;
/// Least room for a panel.
const PANEL_WIDTH: f64 = 330.0;
/// Height of a row of panels, with heading and labels.
const ROW: f64 = 350.0;
/// Least height of one on paper, without labels.
const PAPER_ROW: f64 = 150.0;
/// Height of the labels below an axis.
const FOOT: f64 = 62.0;
/// Of a name below the horizontal axis.
const LINES_OF_A_NAME: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        let panel = Panel {
            title: "b(w) & more".to_owned(),
            x: Axis {
                label: "window (segments)".to_owned(),
                scale: Scale::Log,
            },
            y: Axis {
                label: "fraction".to_owned(),
                scale: Scale::Log,
            },
            lines: vec![Line {
                name: "reno".to_owned(),
                points,
                ..Line::default()
            }],
            ..Panel::default()
        };
        Chart {
            title: "laws".to_owned(),
            subtitle: String::new(),
            panels: vec![panel.clone(), panel.clone(), panel],
            stacked: false,
        }
    }

    #[test]
    fn values_are_marks_between_the_edges() {
        let marks = [10.0, 20.0, 50.0, 100.0, 200.0].map(|x| (x, format!("{x} ms")));
        let axis = Layout::values(&marks, true, 16.0, Range::default());
        let parts: Vec<f64> = axis.ticks().iter().map(|t| axis.part(t.0)).collect();
        assert!(parts[0] > 0.04 && parts[4] < 0.96, "{parts:?}");
        // A factor of two is as wide everywhere.
        assert!((parts[1] - parts[0] - (parts[4] - parts[3])).abs() < 1e-12);
        assert!(axis.ticks().iter().all(|t| !t.1.is_empty()));
        // Names that do not fit are left out, their marks are not.
        let few = Layout::values(&marks, false, 5.0, Range::default()).ticks();
        let names: Vec<&str> = few.iter().map(|t| t.1.as_str()).collect();
        assert_eq!(names, ["10 ms", "", "50 ms", "100 ms", "200 ms"]);
        let only = Layout::values(&marks[..1], true, 16.0, Range::default());
        assert!((only.part(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_interval_of_what_is_never_negative_ends_at_zero() {
        let mut chart = chart(vec![(1.0, 10.0), (2.0, 20.0)]);
        let panel = &mut chart.panels[0];
        panel.y.scale = Scale::Linear;
        panel.lines[0].intervals = vec![Some([-30.0, 50.0]), None];
        assert_eq!(panel.up(300.0).lowest(), 0.0);
        panel.lines[0].points[1].1 = -20.0;
        assert!(panel.up(300.0).lowest() <= -30.0);
    }

    #[test]
    fn axes_cover_whole_decades() {
        let axis = Layout::decades([12.0, 5_000.0].into_iter());
        let at: Vec<f64> = axis.ticks().iter().map(|t| t.0).collect();
        assert_eq!(at, [10.0, 100.0, 1_000.0, 10_000.0]);
        assert!((axis.part(100.0) - 1.0 / 3.0).abs() < 1e-12);
        // One value, a power of ten, has room.
        let one = Layout::decades([0.5].into_iter());
        assert_eq!(one.ticks().len(), 2);
        assert_eq!(Layout::decades([1e-12, 1.0].into_iter()).ticks().len(), 7);
    }

    #[test]
    fn a_linear_axis_begins_at_zero_or_below() {
        let axis = |values: &[f64]| {
            let axis = Axis {
                scale: Scale::Linear,
                ..Axis::default()
            };
            let layout = Layout::of(&axis, values.iter().copied(), 5.0, Range::default());
            layout.ticks().into_iter().map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(axis(&[3.0, 97.0]), ["0", "20", "40", "60", "80"]);
        assert_eq!(
            axis(&[-0.5, 0.5]),
            ["-0.6", "-0.4", "-0.2", "0", "0.2", "0.4"]
        );
        assert_eq!(axis(&[]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    /// Two decades on each axis: the corners of the frame are the corners of the data.
    #[test]
    fn points_lie_where_the_axes_say() {
        let svg = chart(vec![(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]).svg(&Style::default());
        let path = svg.lines().find(|l| l.starts_with("<path")).unwrap();
        let numbers: Vec<f64> = path
            .split('"')
            .nth(1)
            .unwrap()
            .split(['M', 'L', ' '])
            .filter_map(|n| n.parse().ok())
            .collect();
        let [x0, y0, x1, y1, x2, y2] = numbers[..] else {
            panic!("{path}")
        };
        assert_eq!(x0, Style::default().margin_left());
        assert!((x1 - x0 - (x2 - x1)).abs() < 0.2 && (y0 - y1 - (y1 - y2)).abs() < 0.2);
        assert!(y0 > y2);
    }

    /// On a column of a journal every number is on the paper, and the label beside its numbers.
    #[test]
    fn no_number_is_cut_off() {
        let paper = Style {
            width_mm: Some(84.0),
            size_pt: 8.0,
            title: false,
            ..Style::default()
        };
        let mut wide = chart(vec![(10.0, 1e6), (100_000.0, 20.0)]);
        wide.panels.truncate(1);
        let svg = wide.svg(&paper);
        let part = |line: &str, before: &str| {
            let (_, rest) = line.split_once(before)?;
            Some(rest.split(['"', ' ', '<']).next()?.to_owned())
        };
        let number = |line: &str, before: &str| part(line, before)?.parse::<f64>().ok();
        let rotated = svg.lines().find_map(|l| number(l, "translate(")).unwrap();
        let mut seen = 0;
        for line in svg.lines().filter(|l| l.starts_with("<text x=")) {
            let (x, words) = (number(line, " x=\"").unwrap(), part(line, ">").unwrap());
            let width = text_width(&words, 12.0);
            match part(line, "anchor=\"").unwrap().as_str() {
                "middle" => assert!(x + width / 2.0 <= paper.width(0.0), "{line}"),
                "end" => assert!(x - width > rotated + 3.0, "{line}: {rotated}"),
                _ => continue,
            }
            seen += 1;
        }
        assert_eq!(seen, 5 + 6 + 1, "{svg}");
    }

    /// Names that do not fit side by side are written aslant and whole.
    #[test]
    fn no_name_is_cut_where_there_is_room_below() {
        let names = |names: &[&str]| {
            let mut all = chart(vec![(0.0, 1.0)]);
            all.panels.truncate(1);
            let names = names.iter().map(|n| (*n).to_owned());
            all.panels[0].x.scale = Scale::Names(names.collect());
            let width_mm = Some(84.0);
            all.svg(&Style {
                width_mm,
                ..Style::default()
            })
        };
        let many = [
            "scalable",
            "highspeed",
            "westwood",
            "illinois",
            "hybla",
            "cubic",
        ];
        let svg = names(&many);
        assert!(
            many.iter().all(|n| svg.contains(&format!(">{n}<"))),
            "{svg}"
        );
        assert!(svg.contains("rotate(-45)"));
        assert!(!names(&many[..2]).contains("rotate(-45)"));
    }

    #[test]
    fn a_name_that_is_cut_is_whole_in_a_title() {
        let mut all = chart(vec![(1.0, 1.0), (10.0, 10.0)]);
        all.panels.truncate(1);
        let plain = all.svg(&Style::default());
        assert!(!plain.contains("<title>"), "{plain}");
        let long = "highspeed(low_window=31)+limited(max_ssthresh=100), ".repeat(4);
        all.panels[0].lines[0].name.clone_from(&long);
        all.panels[0].title = format!("buffer {long}");
        let svg = all.svg(&Style::default());
        for whole in [&long, &all.panels[0].title] {
            assert!(
                svg.contains(&format!("<g><title>{whole}</title>\n<text")),
                "{svg}"
            );
        }
        assert_eq!(svg.matches("…</text>\n</g>").count(), 2, "{svg}");
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }

    /// Several lines of error bars stand beside one another.
    #[test]
    fn a_shifted_line_lies_beside_the_others() {
        let mut both = chart(vec![(1.0, 1.0), (10.0, 10.0)]);
        both.panels.truncate(1);
        let shifted = Line {
            group: 1,
            shift: 7.0,
            ..both.panels[0].lines[0].clone()
        };
        both.panels[0].lines.push(shifted);
        let svg = both.svg(&Style::default());
        let starts: Vec<f64> = svg
            .lines()
            .filter_map(|l| {
                l.strip_prefix("<path d=\"M")?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(starts.len(), 2);
        assert!((starts[1] - starts[0] - 7.0).abs() < 0.01, "{starts:?}");
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
            let x = panel.across(width);
            let most = 28.0 * panel.closer(&x, width);
            let at: Vec<f64> = marks.iter().map(|m| width * x.part(m.0)).collect();
            assert!(at[0] - most > 0.0 && at[3] + most < width, "{at:?} {most}");
            assert!(
                at.windows(2).all(|p| p[0] + most < p[1] - most),
                "{at:?} {most}"
            );
        }
        let named = panel
            .across(320.0)
            .ticks()
            .into_iter()
            .filter(|t| !t.1.is_empty());
        assert_eq!(named.count(), 4);
    }

    /// Ticks are those of the part, and an end that is open is that of what is seen.
    #[test]
    fn a_part_of_an_axis_has_its_own_ticks() {
        let part = |text: &str| text.parse::<Range>().unwrap();
        let ticks = |scale: Scale, values: &[f64], text: &str| -> Vec<String> {
            let axis = Axis {
                label: String::new(),
                scale,
            };
            let layout = Layout::of(&axis, values.iter().copied(), 5.0, part(text));
            let parts = layout.ticks();
            for (tick, text) in &parts {
                let at = layout.part(*tick);
                assert!((-1e-6..=1.0 + 1e-6).contains(&at), "{text} at {at}");
            }
            parts.into_iter().map(|(_, text)| text).collect()
        };
        let values = [0.5, 3.0, 60.0];
        assert_eq!(
            ticks(Scale::Linear, &values, "10:20"),
            ["10", "12", "14", "16", "18", "20"]
        );
        assert_eq!(
            ticks(Scale::Linear, &values, ":4"),
            ["0", "1", "2", "3", "4"]
        );
        assert_eq!(
            ticks(Scale::Linear, &values, "2:"),
            ["10", "20", "30", "40", "50", "60"]
        );
        assert_eq!(ticks(Scale::Linear, &values, "-3:-1")[0], "-3");
        assert_eq!(
            ticks(Scale::Linear, &values, "0.0001:0.0003"),
            ["0.00010", "0.00015", "0.00020", "0.00025", "0.00030"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "0.1:1000"),
            ["0.1", "1", "10", "100", "1,000"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "2e-5:2e-4"),
            ["2e-5", "5e-5", "1e-4", "2e-4"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "20:30"),
            ["20", "22", "24", "26", "28", "30"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "2:"),
            ["2", "5", "10", "20", "50", "100"]
        );
    }

    /// Lines end at the axes by a clip; a point is drawn whole or not at all.
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

    #[test]
    fn a_part_of_a_panel_is_clipped() {
        let mut one = chart(vec![(1.0, 1.0), (10.0, 2.0), (100.0, 4.0)]);
        one.panels.truncate(1);
        one.panels[0].lines[0].dots = true;
        let dots = |svg: &str| svg.matches("fill=\"#0072B2\"/>").count();
        let whole = one.svg(&Style::default());
        assert!(!whole.contains("clipPath"), "{whole}");
        one.panels[0].ranges.x = "5:".parse().unwrap();
        let part = one.svg(&Style::default());
        assert_eq!(part.matches("<clipPath").count(), 1, "{part}");
        // One of the dots is the legend's.
        assert_eq!((dots(&whole), dots(&part)), (4, 3), "{part}");
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        let all = chart(vec![
            (1.0, 0.0),
            (-1.0, 2.0),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
        ]);
        for svg in [
            all.svg(&Style::default()),
            chart(vec![]).svg(&Style::default()),
            Chart::default().svg(&Style::default()),
        ] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert!(all.svg(&Style::default()).contains("b(w) &amp; more"));
    }
}
