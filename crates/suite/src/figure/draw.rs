//! The drawing itself: a [`Figure`] as SVG text, an SVG as PNG bytes.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb;

use super::{Curve, Figure, Mark, MarkKind, RasterError};

impl Curve {
    fn highest(&self) -> f64 {
        self.high
            .iter()
            .copied()
            .filter(|w| w.is_finite())
            .fold(0.0, f64::max)
    }
}

impl Figure {
    /// The picture of one case.
    pub fn svg(&self) -> String {
        let mut out = Svg::new(WIDTH, HEIGHT, &format!("{}: {}", self.title, self.subtitle));
        let mut y = 30.0;
        out.text(MARGIN_LEFT, y, "start", 20.0, INK, &self.title);
        for line in wrap(&self.subtitle, WIDTH - MARGIN_LEFT - MARGIN_RIGHT, 14.0) {
            y += 20.0;
            out.text(MARGIN_LEFT, y, "start", 14.0, GREY, &line);
        }
        y = legend(
            &mut out,
            &[self],
            &Detail::FULL,
            WIDTH - MARGIN_RIGHT,
            y + 24.0,
        );
        let labels = self
            .levels
            .iter()
            .map(|l| text_width(&l.label, 12.0) + 10.0);
        let right = labels.fold(MARGIN_RIGHT, f64::max).min(WIDTH / 4.0);
        let frame = Frame {
            left: MARGIN_LEFT,
            top: y + 6.0,
            width: WIDTH - MARGIN_LEFT - right,
            height: HEIGHT - MARGIN_BOTTOM - y - 6.0,
            x_end: self.duration,
            y_end: self.top(),
        };
        axes(
            &mut out,
            &frame,
            &Axes {
                x_label: true,
                y_label: Some(&self.window_unit),
                ticks: (10, 7),
            },
        );
        self.draw(&mut out, &frame, &Detail::FULL);
        out.finish()
    }

    /// Largest window of the axis.
    fn top(&self) -> f64 {
        let highest = self.curves.iter().map(Curve::highest).fold(0.0, f64::max);
        // A level far above the curve would flatten it.
        let level = self
            .levels
            .iter()
            .map(|l| l.window)
            .filter(|l| *l < 1.3 * highest);
        (level.fold(highest, f64::max) * 1.08).max(4.0)
    }

    fn draw(&self, out: &mut Svg, frame: &Frame, detail: &Detail) {
        for level in self.levels.iter().filter(|l| l.window < frame.y_end) {
            let y = frame.y(level.window);
            let (x1, x2) = (frame.left, frame.left + frame.width);
            out.line(x1, y, x2, y, LEVEL_STROKE);
            if detail.level_labels {
                out.text(x2 + 8.0, y + 4.0, "start", 12.0, GREY, &level.label);
            }
        }
        let curves = self.curves.len().max(1);
        // About 40 bytes per column and curve: many curves share the budget of the file.
        let columns = (frame.width / detail.column)
            .min(detail.budget / curves as f64)
            .max(24.0);
        let step = frame.x_end / columns;
        out.open_clip(frame);
        if curves <= detail.ssthresh_up_to {
            for curve in &self.curves {
                let d = threshold_path(curve, frame, step);
                if !d.is_empty() {
                    let look = look(curve.group);
                    out.path(
                        &d,
                        look.colour,
                        "stroke-width=\"1\" stroke-opacity=\".75\" stroke-dasharray=\"4 4\"",
                    );
                }
            }
        }
        for curve in &self.curves {
            let look = look(curve.group);
            let d = window_path(curve, frame, step);
            let dash = if look.dash.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{}\"", look.dash)
            };
            let (width, pale) = stroke(curve.band, detail.stroke);
            out.path(
                &d,
                look.colour,
                &format!("stroke-width=\"{width}\"{pale}{dash}"),
            );
        }
        out.close_group();
        for curve in &self.curves {
            let look = look(curve.group);
            let distance = detail.mark_distance * (curves as f64 / 6.0).max(1.0);
            for mark in thinned(curve, frame, distance) {
                out.mark(
                    frame.x(mark.time),
                    frame.y(mark.window),
                    mark.kind,
                    look.colour,
                    detail.mark_size,
                );
            }
        }
    }
}

/// All cases of a scenario in one picture, on common axes; at most [`OVERVIEW_PANELS`] of them.
pub fn overview_svg(title: &str, subtitle: &str, figures: &[Figure]) -> String {
    let shown = &figures[..figures.len().min(OVERVIEW_PANELS)];
    let columns = match shown.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        3 | 5..=9 => 3,
        _ => 4,
    };
    let rows = shown.len().div_ceil(columns).max(1);
    let (left, right, gap_x, foot) = (MARGIN_LEFT, 24.0, 32.0, 10.0);
    let panel_width =
        (OVERVIEW_WIDTH - left - right - gap_x * (columns as f64 - 1.0)) / columns as f64;
    let names: Vec<Vec<String>> = shown
        .iter()
        .map(|f| {
            wrap(&f.subtitle, panel_width, 13.0)
                .into_iter()
                .take(2)
                .collect()
        })
        .collect();
    let head = 17.0 + 17.0 * names.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let panel_height = (panel_width * 0.62).clamp(130.0, 300.0);
    let subtitle_lines = wrap(subtitle, OVERVIEW_WIDTH - left - right, 14.0);
    let detail = Detail {
        budget: OVERVIEW_COLUMNS / shown.len().max(1) as f64,
        level_labels: false,
        ..Detail::PANEL
    };
    let legend_top = 54.0 + 20.0 * subtitle_lines.len() as f64;
    let all: Vec<&Figure> = shown.iter().collect();
    let legend = |out: &mut Svg| legend(out, &all, &detail, OVERVIEW_WIDTH - right, legend_top);
    // Drawn once for its height, which the document's own depends on.
    let top = legend(&mut Svg::new(0.0, 0.0, "")) + 6.0;
    let height = top + rows as f64 * (head + panel_height + foot) + 46.0;
    let mut out = Svg::new(OVERVIEW_WIDTH, height, title);
    out.text(left, 30.0, "start", 20.0, INK, title);
    for (i, line) in subtitle_lines.iter().enumerate() {
        out.text(left, 50.0 + 20.0 * i as f64, "start", 14.0, GREY, line);
    }
    legend(&mut out);
    let x_end = shown.iter().map(|f| f.duration).fold(0.0, f64::max);
    let y_end = shown.iter().map(Figure::top).fold(4.0, f64::max);
    let unit = match shown {
        [first, rest @ ..] if rest.iter().all(|f| f.window_unit == first.window_unit) => {
            first.window_unit.as_str()
        }
        _ => "segments",
    };
    for (i, figure) in shown.iter().enumerate() {
        let (column, row) = (i % columns, i / columns);
        let last_row = i + columns >= shown.len();
        let frame = Frame {
            left: left + column as f64 * (panel_width + gap_x),
            top: top + row as f64 * (head + panel_height + foot) + head,
            width: panel_width,
            height: panel_height,
            x_end,
            y_end,
        };
        let axes_of = Axes {
            x_label: last_row,
            y_label: (column == 0).then_some(unit),
            ticks: (
                (panel_width / 70.0) as usize,
                (panel_height / 36.0) as usize,
            ),
        };
        axes(&mut out, &frame, &axes_of);
        for (line, up) in names[i].iter().rev().zip(0..) {
            let y = frame.top - 9.0 - 16.0 * f64::from(up);
            out.text(frame.left, y, "start", 13.0, INK, line);
        }
        figure.draw(&mut out, &frame, &detail);
    }
    if figures.len() > shown.len() {
        let note = format!("first {} of {} cases", shown.len(), figures.len());
        out.text(OVERVIEW_WIDTH - right, 30.0, "end", 14.0, GREY, &note);
    }
    out.finish()
}

/// The PNG of an SVG that this module drew, `scale` pixels per unit.
///
/// # Errors
/// [`RasterError`] if the text is no SVG or the picture is too large.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    use resvg::{tiny_skia, usvg};
    let options = usvg::Options {
        font_family: FONT_FAMILY.to_owned(),
        fontdb: fonts(),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| RasterError(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale);
    let mut pixels = size
        .and_then(|s| tiny_skia::Pixmap::new(s.width(), s.height()))
        .ok_or_else(|| RasterError(format!("no picture of {:?} x {scale}", tree.size())))?;
    resvg::render(
        &tree,
        tiny_skia::Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().map_err(|e| RasterError(e.to_string()))
}

/// The one bundled font, whatever is installed on the machine.
fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        fonts.set_sans_serif_family(FONT_FAMILY);
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

/// Where data is drawn, and what its corners mean.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x_end: f64,
    y_end: f64,
}

impl Frame {
    fn x(&self, seconds: f64) -> f64 {
        self.left + self.width * (seconds / self.x_end.max(f64::MIN_POSITIVE))
    }

    fn y(&self, window: f64) -> f64 {
        self.top + self.height * (1.0 - window / self.y_end)
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// How much is drawn.
struct Detail {
    /// Pixels per column of the reduced curve.
    column: f64,
    /// Columns of all curves together.
    budget: f64,
    stroke: f64,
    ssthresh_up_to: usize,
    level_labels: bool,
    mark_distance: f64,
    mark_size: f64,
}

impl Detail {
    const FULL: Self = Self {
        column: 1.0,
        budget: 3000.0,
        stroke: 1.8,
        ssthresh_up_to: 4,
        level_labels: true,
        mark_distance: 7.0,
        mark_size: 4.5,
    };
    const PANEL: Self = Self {
        stroke: 1.4,
        ssthresh_up_to: 0,
        mark_distance: 6.0,
        mark_size: 3.0,
        ..Self::FULL
    };
}

struct Axes<'a> {
    x_label: bool,
    y_label: Option<&'a str>,
    /// Wanted number of ticks, horizontally and vertically.
    ticks: (usize, usize),
}

fn axes(out: &mut Svg, frame: &Frame, axes: &Axes<'_>) {
    let (scale, unit) = time_unit(frame.x_end);
    let bottom = frame.bottom();
    let right = frame.left + frame.width;
    for tick in ticks(frame.y_end, axes.ticks.1) {
        let y = frame.y(tick);
        if tick > 0.0 {
            out.line(
                frame.left,
                y,
                right,
                y,
                "stroke=\"#e6e6e6\" stroke-width=\"1\"",
            );
        }
        if axes.y_label.is_some() {
            out.text(
                frame.left - 8.0,
                y + 4.0,
                "end",
                12.0,
                GREY,
                &thousands(tick),
            );
        }
    }
    for tick in ticks(frame.x_end * scale, axes.ticks.0) {
        let x = frame.x(tick / scale);
        out.line(x, bottom, x, bottom + 5.0, AXIS_STROKE);
        if axes.x_label {
            out.text(x, bottom + 19.0, "middle", 12.0, GREY, &thousands(tick));
        }
    }
    out.line(frame.left, bottom, right, bottom, AXIS_STROKE);
    out.line(frame.left, frame.top, frame.left, bottom, AXIS_STROKE);
    if axes.x_label {
        let x = frame.left + frame.width / 2.0;
        out.text(
            x,
            bottom + 40.0,
            "middle",
            13.0,
            INK,
            &format!("time ({unit})"),
        );
    }
    if let Some(words) = axes.y_label {
        let label = format!("congestion window ({words})");
        // A small panel has room for the short form only.
        let label = if text_width(&label, 13.0) > frame.height + 30.0 {
            "cwnd (segments)".to_owned()
        } else {
            label
        };
        out.rotated(
            frame.left - 58.0,
            frame.top + frame.height / 2.0,
            13.0,
            INK,
            &label,
        );
    }
}

/// Draws the legend of some figures below `y`, at most `right` wide, and returns its lower end.
fn legend(out: &mut Svg, figures: &[&Figure], detail: &Detail, right: f64, mut y: f64) -> f64 {
    let mut x = MARGIN_LEFT;
    let mut place = |out: &mut Svg, text: &str, sample: &mut dyn FnMut(&mut Svg, f64, f64)| {
        let width = 30.0 + text_width(text, 13.0) + 22.0;
        if x > MARGIN_LEFT && x + width - 22.0 > right {
            x = MARGIN_LEFT;
            y += 20.0;
        }
        sample(out, x, y);
        out.text(
            x + 30.0,
            y,
            "start",
            13.0,
            INK,
            &fit(text, right - x - 30.0, 13.0),
        );
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
        let look = look(*group);
        // In several figures a flow's stack may differ.
        let name = if figures.len() > 1 {
            name.split(": ").next().unwrap_or(name)
        } else {
            name
        };
        place(out, name, &mut |out, x, y| {
            let dash = if look.dash.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{}\"", look.dash)
            };
            let (width, pale) = stroke(*band, 2.2);
            let style = format!(
                "stroke=\"{}\" stroke-width=\"{width}\"{pale}{dash}",
                look.colour
            );
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
    if !detail.level_labels && figures.iter().any(|f| !f.levels.is_empty()) {
        place(out, "BDP, and BDP + buffer", &mut |out, x, y| {
            out.line(x, y - 4.5, x + 24.0, y - 4.5, LEVEL_STROKE);
        });
    }
    for (kind, one, many) in [
        (
            MarkKind::Congestion,
            "congestion event",
            "congestion events",
        ),
        (MarkKind::Timeout, "timeout", "timeouts"),
        (MarkKind::StartUpExit, "start-up exit", "start-up exits"),
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
        let text = match figures.len() {
            1 => format!(
                "{} {}",
                thousands(count as f64),
                if count == 1 { one } else { many }
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

/// The window, reduced to first, smallest, largest and last value per `step` seconds.
fn window_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let rows = curve
        .time
        .iter()
        .take_while(|t| **t <= frame.x_end * (1.0 + 1e-9))
        .count();
    let mut i = 0;
    while i < rows {
        let column = (curve.time[i] / step).floor();
        let first = i;
        let (mut lowest, mut highest) = (i, i);
        while i < rows && (curve.time[i] / step).floor() == column {
            if curve.low[i] < curve.low[lowest] {
                lowest = i;
            }
            if curve.high[i] > curve.high[highest] {
                highest = i;
            }
            i += 1;
        }
        let last = i - 1;
        if first == 0 {
            path.to(frame.x(curve.time[0]), frame.y(curve.window[0]));
        }
        let low = (lowest, curve.low[lowest]);
        let high = (highest, curve.high[highest]);
        // Extremes of one row: a row that ends near its smallest value peaked first.
        let fell =
            curve.window[lowest] - curve.low[lowest] < curve.high[highest] - curve.window[highest];
        let peak_first = highest < lowest || highest == lowest && fell;
        let (a, b) = if peak_first { (high, low) } else { (low, high) };
        for (row, w) in [a, b, (last, curve.window[last])] {
            path.to(frame.x(curve.time[row]), frame.y(w));
        }
    }
    path.text
}

/// The threshold as steps; parts where it is not finite are left out.
fn threshold_path(curve: &Curve, frame: &Frame, step: f64) -> String {
    let mut path = PathText::default();
    let mut before: Option<(f64, f64)> = None;
    let mut column = -1.0;
    for (&t, &w) in curve.time.iter().zip(&curve.ssthresh) {
        if t > frame.x_end {
            break;
        }
        if !w.is_finite() {
            before = None;
            path.lift();
            continue;
        }
        let here = (t / step).floor();
        match before {
            Some((_, v)) if v == w || here == column => {}
            _ => {
                // A threshold far above the frame is cut off by the clip, not by the number format.
                let y = frame.y(w.min(4.0 * frame.y_end));
                if let Some((_, v)) = before {
                    path.to(frame.x(t), frame.y(v.min(4.0 * frame.y_end)));
                }
                path.to(frame.x(t), y);
                before = Some((t, w));
                column = here;
            }
        }
    }
    if let (Some((_, v)), Some(&end)) = (before, curve.time.last()) {
        path.to(
            frame.x(end.min(frame.x_end)),
            frame.y(v.min(4.0 * frame.y_end)),
        );
    }
    path.text
}

/// Marks far enough from the one before of their kind to be told apart.
fn thinned(curve: &Curve, frame: &Frame, distance: f64) -> Vec<Mark> {
    let mut kept: Vec<Mark> = Vec::new();
    for mark in curve.marks.iter().filter(|m| m.time <= frame.x_end) {
        let near = kept
            .iter()
            .rev()
            .find(|k| k.kind == mark.kind)
            .is_some_and(|k| (frame.x(mark.time) - frame.x(k.time)) < distance);
        if !near {
            kept.push(*mark);
        }
    }
    kept
}

/// Text of a path: absolute points to a tenth of a pixel, points on top of each other written once.
#[derive(Default)]
struct PathText {
    text: String,
    last: Option<(i64, i64)>,
}

impl PathText {
    fn to(&mut self, x: f64, y: f64) {
        let point = ((x * 10.0).round() as i64, (y * 10.0).round() as i64);
        match self.last {
            None => self.text.push('M'),
            Some(last) if last == point => return,
            Some((lx, _)) if lx == point.0 => {
                self.text.push('V');
                tenths(&mut self.text, point.1);
                self.last = Some(point);
                return;
            }
            Some(_) => self.text.push('L'),
        }
        tenths(&mut self.text, point.0);
        self.text.push(' ');
        tenths(&mut self.text, point.1);
        self.last = Some(point);
    }

    fn lift(&mut self) {
        self.last = None;
    }
}

fn tenths(text: &mut String, n: i64) {
    let (sign, n) = if n < 0 { ("-", -n) } else { ("", n) };
    // Writing to a string cannot fail.
    let _ = if n % 10 == 0 {
        write!(text, "{sign}{}", n / 10)
    } else {
        write!(text, "{sign}{}.{}", n / 10, n % 10)
    };
}

/// A number of pixels as text.
fn px(x: f64) -> String {
    let mut text = String::new();
    tenths(&mut text, (x * 10.0).round() as i64);
    text
}

/// The document being written.
struct Svg {
    text: String,
    clips: usize,
}

impl Svg {
    fn new(width: f64, height: f64, label: &str) -> Self {
        let (w, h) = (px(width), px(height));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
             aria-label=\"{}\" font-family=\"Ubuntu, 'Helvetica Neue', Arial, sans-serif\">\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
            escape(label),
        );
        Self { text, clips: 0 }
    }

    fn put(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, size: f64, colour: &str, words: &str) {
        let (x, y, size, words) = (px(x), px(y), px(size), escape(words));
        self.put(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    fn rotated(&mut self, x: f64, y: f64, size: f64, colour: &str, words: &str) {
        let (x, y, size, words) = (px(x), px(y), px(size), escape(words));
        self.put(&format!(
            "<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\" font-size=\"{size}\" \
             fill=\"{colour}\">{words}</text>"
        ));
    }

    fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, style: &str) {
        let (x1, y1, x2, y2) = (px(x1), px(y1), px(x2), px(y2));
        self.put(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}/>"
        ));
    }

    fn path(&mut self, d: &str, colour: &str, style: &str) {
        self.put(&format!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-linejoin=\"round\" {style}/>"
        ));
    }

    fn open_clip(&mut self, frame: &Frame) {
        self.clips += 1;
        let (n, x, y) = (self.clips, px(frame.left), px(frame.top));
        let (w, h) = (px(frame.width), px(frame.height + 1.0));
        self.put(&format!(
            "<clipPath id=\"c{n}\"><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/></clipPath><g clip-path=\"url(#c{n})\">"
        ));
    }

    fn close_group(&mut self) {
        self.put("</g>");
    }

    /// The shape of an event, its lower tip at the point.
    fn mark(&mut self, x: f64, y: f64, kind: MarkKind, colour: &str, size: f64) {
        let s = size;
        let (d, style) = match kind {
            MarkKind::Congestion => (
                format!(
                    "M{} {}h{}L{} {}z",
                    px(x - s),
                    px(y - 2.0 * s),
                    px(2.0 * s),
                    px(x),
                    px(y - 1.0)
                ),
                format!("fill=\"{colour}\" stroke=\"#fff\" stroke-width=\".8\""),
            ),
            MarkKind::Timeout => (
                format!(
                    "M{} {}L{} {}M{} {}L{} {}",
                    px(x - s),
                    px(y - s),
                    px(x + s),
                    px(y + s),
                    px(x - s),
                    px(y + s),
                    px(x + s),
                    px(y - s)
                ),
                format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\""),
            ),
            MarkKind::StartUpExit => (
                format!(
                    "M{} {}L{} {}L{} {}L{} {}z",
                    px(x),
                    px(y - s),
                    px(x + s),
                    px(y),
                    px(x),
                    px(y + s),
                    px(x - s),
                    px(y)
                ),
                format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.5\""),
            ),
        };
        self.put(&format!("<path d=\"{d}\" {style}/>"));
    }

    fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// How a group of curves is drawn.
struct Look {
    colour: &'static str,
    dash: &'static str,
}

/// Colour by group; a second round through the palette is dashed, so that colour is not the only difference.
fn look(group: usize) -> Look {
    const DASHES: [&str; 3] = ["", "7 3", "2 3"];
    Look {
        colour: PALETTE[group % PALETTE.len()],
        dash: DASHES[group / PALETTE.len() % DASHES.len()],
    }
}

/// Width of a curve's line, and what makes that of a band pale.
fn stroke(band: bool, width: f64) -> (f64, &'static str) {
    if band {
        (4.0 * width, " stroke-opacity=\".35\"")
    } else {
        (width, "")
    }
}

/// Factor from seconds, and the unit's name, so that an axis of this length has short numbers.
fn time_unit(seconds: f64) -> (f64, &'static str) {
    if seconds <= 1.0 {
        (1e3, "ms")
    } else {
        (1.0, "s")
    }
}

/// Round numbers from 0 to `end`: 1, 2 or 5 times a power of ten apart, about `wanted` of them.
fn ticks(end: f64, wanted: usize) -> Vec<f64> {
    if !(end > 0.0 && end.is_finite()) {
        return vec![0.0];
    }
    let wanted = wanted.max(1) as f64;
    let mut power = 1.0;
    while power > end / wanted {
        power /= 10.0;
    }
    while power * 10.0 <= end / wanted {
        power *= 10.0;
    }
    let off = |step: f64| (end / step - wanted).abs();
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = steps
        .into_iter()
        .min_by(|a, b| off(*a).total_cmp(&off(*b)))
        .unwrap_or(power);
    let count = (end / step * (1.0 + 1e-9)).floor() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

/// A number with a separator every three digits, and no more decimals than it has.
pub(super) fn thousands(x: f64) -> String {
    let text = format!("{:.3}", x.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let sign = if x < 0.0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Control characters are not allowed in XML.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Width of text in the bundled font, close enough to place a legend.
fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | 'I' => 0.26,
            'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.37,
            'm' | 'w' | 'M' | 'W' => 0.82,
            'A'..='Z' => 0.65,
            _ => 0.56,
        })
        .sum();
    ems * size
}

/// `text` cut to a width, with an ellipsis where something is missing.
fn fit(text: &str, width: f64, size: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if text_width(&kept, size) + text_width("…", size) + size * 0.8 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// `text` in lines of a width, broken at spaces; at most three lines.
fn wrap(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size * 0.3 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.truncate(3);
    lines.iter().map(|l| fit(l, width, size)).collect()
}

/// Cases that fit into one overview.
pub const OVERVIEW_PANELS: usize = 16;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const OVERVIEW_WIDTH: f64 = 1200.0;
/// Columns of reduced curve in a whole overview, which keep its file below 200 kB.
const OVERVIEW_COLUMNS: f64 = 3500.0;
const MARGIN_LEFT: f64 = 84.0;
const MARGIN_RIGHT: f64 = 28.0;
const MARGIN_BOTTOM: f64 = 56.0;
const LEVEL_STROKE: &str = "stroke=\"#8a8a8a\" stroke-width=\"1\" stroke-dasharray=\"1 3\"";
const LEGEND_GROUPS: usize = 12;
const INK: &str = "#1a1a1a";
const GREY: &str = "#444";
const AXIS_STROKE: &str = "stroke=\"#1a1a1a\" stroke-width=\"1\"";
const FONT_FAMILY: &str = "Ubuntu";

/// Okabe and Ito (2008), told apart with every kind of colour vision; without the yellow, too pale on white.
const PALETTE: [&str; 7] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
];

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    /// `teeth` cycles of a Reno-like sawtooth between `low` and `high`, `rows` rows.
    fn sawtooth(rows: usize, seconds: f64, teeth: f64, low: f64, high: f64) -> Curve {
        let mut curve = Curve {
            name: "main: reno".to_owned(),
            ..Curve::default()
        };
        let mut before = low;
        for i in 0..rows {
            let t = seconds * i as f64 / rows as f64;
            let phase = (t / seconds * teeth).fract();
            let w = low + (high - low) * phase;
            curve.time.push(t);
            curve.window.push(w);
            curve.low.push(w.min(before));
            curve.high.push(w.max(before));
            curve.ssthresh.push(if (t / seconds * teeth) < 1.0 {
                f64::INFINITY
            } else {
                low
            });
            if w < before {
                curve.marks.push(Mark {
                    time: t,
                    window: before,
                    kind: MarkKind::Congestion,
                });
            }
            before = w;
        }
        curve
    }

    fn figure(curves: Vec<Curve>) -> Figure {
        Figure {
            title: "first-run".to_owned(),
            subtitle: "flow.main.stack = reno".to_owned(),
            duration: 100.0,
            window_unit: "segments of 1448 B".to_owned(),
            curves,
            levels: vec![Level {
                window: 800.0,
                label: "BDP 800".to_owned(),
            }],
        }
    }

    /// Smallest and largest y of the drawn points, in windows again.
    fn drawn_range(d: &str, frame: &Frame) -> (f64, f64) {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for part in d.split(['M', 'L', 'V']).filter(|p| !p.is_empty()) {
            let y: f64 = part.split(' ').next_back().unwrap().parse().unwrap();
            let w = frame.y_end * (1.0 - (y - frame.top) / frame.height);
            range = (range.0.min(w), range.1.max(w));
        }
        range
    }

    #[test]
    fn one_tooth_of_a_million_rows_keeps_its_peak() {
        let mut curve = sawtooth(1_000_000, 100.0, 1.0, 500.0, 500.0);
        curve.high[123_456] = 1000.0;
        curve.low[654_321] = 10.0;
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 800.0,
            height: 400.0,
            x_end: 100.0,
            y_end: 1100.0,
        };
        let (low, high) = drawn_range(&window_path(&curve, &frame, 100.0 / 800.0), &frame);
        assert!(
            (high - 1000.0).abs() < 1.0 && (low - 10.0).abs() < 1.0,
            "{low} {high}"
        );
    }

    #[test]
    fn long_runs_and_many_flows_stay_small() {
        let one = figure(vec![sawtooth(2_000_000, 100.0, 5_000.0, 100.0, 900.0)]).svg();
        assert!(one.len() < 200_000, "{}", one.len());
        let many: Vec<Curve> = (0..100)
            .map(|i| Curve {
                group: i,
                ..sawtooth(5_000, 100.0, 400.0 + i as f64, 100.0, 900.0)
            })
            .collect();
        let many = figure(many).svg();
        assert!(many.len() < 200_000, "{}", many.len());
        let cases: Vec<Figure> = (0..20)
            .map(|i| {
                figure(vec![sawtooth(
                    20_000,
                    100.0,
                    300.0 + i as f64,
                    100.0,
                    900.0,
                )])
            })
            .collect();
        let all = overview_svg("first-run", "", &cases);
        assert!(all.len() < 200_000, "{}", all.len());
        assert!(all.contains("first 16 of 20 cases"));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let draw = || figure(vec![sawtooth(10_000, 100.0, 7.0, 400.0, 800.0)]).svg();
        assert_eq!(draw(), draw());
        assert_eq!(png(&draw(), 1.0).unwrap(), png(&draw(), 1.0).unwrap());
    }

    #[test]
    fn text_is_text_and_escaped() {
        let mut f = figure(vec![sawtooth(100, 100.0, 3.0, 400.0, 800.0)]);
        f.title = "a<b & \"c\"\u{7}".to_owned();
        let svg = f.svg();
        assert!(svg.contains(">a&lt;b &amp; &quot;c&quot; </text>"), "{svg}");
        assert!(svg.contains("2 congestion events</text>"));
        png(&svg, 1.0).unwrap();
    }

    #[test]
    fn a_picture_without_data_is_still_one() {
        let empty = Figure {
            duration: 0.0,
            ..figure(vec![Curve::default()])
        };
        png(&empty.svg(), 1.0).unwrap();
        png(&Figure::default().svg(), 1.0).unwrap();
        png(&overview_svg("", "", &[]), 1.0).unwrap();
    }

    #[test]
    fn the_bundled_font_has_every_letter_that_the_axes_use() {
        // Without a font the text vanishes: a title must change the picture.
        let mut f = figure(vec![]);
        let with = png(&f.svg(), 1.0).unwrap();
        f.title = String::new();
        assert_ne!(with, png(&f.svg(), 1.0).unwrap());
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(100.0, 10),
            (0..=10).map(|i| f64::from(i) * 10.0).collect::<Vec<_>>()
        );
        assert_eq!(ticks(7.0, 7), vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(
            ticks(2590.0, 7),
            vec![0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]
        );
        assert_eq!(ticks(700.0, 4), vec![0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(f64::NAN, 7), vec![0.0]);
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(0.25), "0.25");
    }

    #[test]
    fn marks_that_would_cover_each_other_are_thinned() {
        let curve = sawtooth(100_000, 100.0, 2_000.0, 400.0, 800.0);
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 840.0,
            height: 400.0,
            x_end: 100.0,
            y_end: 1000.0,
        };
        let kept = thinned(&curve, &frame, 7.0);
        assert!(kept.len() <= 121 && kept.len() > 60, "{}", kept.len());
    }
}
