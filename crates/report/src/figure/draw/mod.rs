//! The drawing itself: a [`Figure`] as SVG text, an SVG as PNG bytes.

mod axes;
mod chart;
mod curve;
mod layout;
mod legend;
mod matrix;
mod overview;
mod panel;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(feature = "png")]
mod png;
mod style;
mod svg;
mod text;

use super::picture::{Figure, Level};
use super::{Range, Style};
use axes::{Axes, Frame, axes, beside, numbers, overhang, room_left, times};
use curve::{thinned, threshold_path, window_path};
use legend::legend;
use style::{Detail, GREY, INK, LEAST_AXES, WARMUP, level_stroke};
use svg::Svg;
use text::{named, text_width, wrap};

pub use matrix::{Matrix, MatrixCell};
pub use overview::{OVERVIEW_PANELS, overview_svg};
#[cfg(feature = "pdf")]
pub use pdf::pdf;
#[cfg(feature = "png")]
pub use png::{FontError, RasterError, png};
pub use svg::described;

pub(super) use axes::time_unit;
pub(super) use overview::on_one_axis;
pub(super) use text::thousands;

impl Figure {
    /// The picture of one case.
    pub fn svg(&self, style: &Style) -> String {
        let width = style.width(WIDTH);
        let detail = match style.is_paper() {
            true => Detail::PAPER,
            false => Detail::FULL,
        };
        // Drawn once for its lower end, on which the height of paper depends.
        let draft = &mut Svg::new(0.0, 0.0, "", style);
        let head = self.head(draft, width, &detail, style) + 6.0;
        let height = match (style.height(), style.is_paper()) {
            (Some(height), _) => height.max(head + LEAST_AXES + MARGIN_BOTTOM),
            (None, true) => head + PAPER_RATIO * width + MARGIN_BOTTOM,
            // A long legend leaves the axes their half.
            (None, false) => HEIGHT.max(head + HEIGHT / 2.0),
        };
        let label = named(&self.title, &self.subtitle);
        let mut out = Svg::new(width, height, &label, style);
        self.head(&mut out, width, &detail, style);
        let labels = self
            .levels
            .iter()
            .filter(|_| detail.level_labels)
            .map(|l| text_width(&l.label, 12.0) + 10.0);
        let right = labels.fold(style.margin_right(), f64::max).min(width / 4.0);
        let high = height - MARGIN_BOTTOM - head;
        let wide = width - style.margin_left() - right;
        let ticks = match style.is_paper() {
            true => ((wide / 50.0) as usize, (high / 32.0) as usize),
            false => (10, 7),
        };
        let (x, y) = (self.times(self.duration), self.windows(self.top()));
        let beside = beside(numbers(y, ticks.1), style.label_beside());
        let left = style.margin_left().max(room_left(beside));
        let right = right.max(overhang(times(x, self.duration, ticks.0), wide));
        let frame = Frame {
            left,
            top: head,
            width: width - left - right,
            height: high,
            x,
            y,
            duration: self.duration,
        };
        axes(
            &mut out,
            &frame,
            &Axes {
                x_label: true,
                y_label: Some(&self.window_unit),
                ticks,
                beside,
            },
        );
        self.draw(&mut out, &frame, &detail);
        out.finish()
    }

    /// Headline and legend, and their lower end.
    fn head(&self, out: &mut Svg, width: f64, detail: &Detail, style: &Style) -> f64 {
        let (left, right) = (style.margin_left(), style.margin_right());
        let y = headline(out, (&self.title, &self.subtitle), width, style);
        legend(out, &[self], detail, (left, width - right), y)
    }

    /// Ends of the axis of time of runs so long, seconds.
    fn times(&self, duration: f64) -> (f64, f64) {
        match self.ranges.x.is_all() {
            // A run of no length has an axis of none.
            true => (0.0, duration),
            false => self.ranges.x.ends(0.0, duration),
        }
    }

    /// Ends of the axis of windows of which the largest that is drawn is `top`.
    fn windows(&self, top: f64) -> (f64, f64) {
        self.ranges.y.ends(0.0, top)
    }

    /// Largest window of the axis, of the part of the time that is drawn.
    fn top(&self) -> f64 {
        let within = |part| self.curves.iter().map(move |c| c.highest(part));
        let highest = match within(self.ranges.x).fold(0.0, f64::max) {
            // A line crosses a part in which it has no row.
            0.0 => within(Range::default()).fold(0.0, f64::max),
            highest => highest,
        };
        // A level far above the curve would flatten it.
        let level = self
            .levels
            .iter()
            .map(|l| l.window)
            .filter(|l| *l < 1.3 * highest);
        match level.fold(highest, f64::max) * 1.08 {
            0.0 => 4.0,
            top => top,
        }
    }

    fn draw(&self, out: &mut Svg, frame: &Frame, detail: &Detail) {
        if self.warmup > 0.0 {
            let width = frame.x(self.warmup.min(frame.x.1)) - frame.left;
            out.rect(frame.left, frame.top, width, frame.height, WARMUP);
        }
        let crosses = |l: &&Level| frame.y.0 <= l.window && l.window < frame.y.1;
        for level in self.levels.iter().filter(crosses) {
            let y = frame.y(level.window);
            let (x1, x2) = (frame.left, frame.left + frame.width);
            out.line(x1, y, x2, y, level_stroke(level.kind));
            if detail.level_labels {
                out.text(x2 + 8.0, y + 4.0, "start", 12.0, GREY, &level.label);
            }
        }
        let curves = self.curves.len().max(1);
        // About 40 bytes per column and curve: many curves share the budget of the file.
        let columns = (frame.width / detail.column)
            .min(detail.budget / curves as f64)
            .max(24.0);
        let step = (frame.x.1 - frame.x.0) / columns;
        out.open_clip((frame.left, frame.top), (frame.width, frame.height));
        if curves <= detail.ssthresh_up_to {
            for curve in &self.curves {
                let d = threshold_path(curve, frame, step);
                if !d.is_empty() {
                    let look = out.look(curve.group);
                    out.path(
                        &d,
                        look.colour,
                        "stroke-width=\"1\" stroke-opacity=\".75\" stroke-dasharray=\"4 4\"",
                    );
                }
            }
        }
        for curve in &self.curves {
            let look = out.look(curve.group);
            let d = window_path(curve, frame, step);
            out.path(&d, look.colour, &look.line(curve.band, detail.stroke));
        }
        out.close_group();
        for curve in &self.curves {
            let look = out.look(curve.group);
            for mark in thinned(curve, frame, detail.distance(curves)) {
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

/// Title and subtitle, and the line on which a legend can begin.
fn headline(out: &mut Svg, (title, subtitle): (&str, &str), width: f64, style: &Style) -> f64 {
    if !style.title {
        return 16.0;
    }
    let left = style.margin_left();
    let mut y = 30.0;
    out.text(left, y, "start", 20.0, INK, title);
    let lines = wrap(subtitle, width - left - style.margin_right(), 14.0, 3);
    out.whole(subtitle, &lines, |out| {
        for line in &lines {
            y += 20.0;
            out.text(left, y, "start", 14.0, GREY, line);
        }
    });
    y + 24.0
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
/// Height of the axes on paper, by the picture's width.
const PAPER_RATIO: f64 = 0.52;
const MARGIN_BOTTOM: f64 = 56.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Ranges;
    use crate::figure::picture::{Curve, LevelKind, Mark, MarkKind};

    /// `teeth` cycles of a Reno-like sawtooth between `low` and `high`, `rows` rows.
    pub(super) fn sawtooth(rows: usize, seconds: f64, teeth: f64, low: f64, high: f64) -> Curve {
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
            warmup: 0.0,
            window_unit: "segments of 1448 B".to_owned(),
            mss: Some(1448.0),
            curves,
            levels: vec![Level {
                window: 800.0,
                kind: LevelKind::Bdp,
                label: "BDP 800".to_owned(),
            }],
            ranges: Ranges::default(),
        }
    }

    /// A cap is not the path's BDP, and nothing is named that is not drawn.
    #[test]
    fn the_legend_names_each_level_for_what_it_is() {
        let with = |kind, window| Figure {
            levels: vec![Level {
                window,
                kind,
                label: String::new(),
            }],
            ..figure(vec![sawtooth(500, 100.0, 3.0, 100.0, 900.0)])
        };
        let capped = [with(LevelKind::Cap, 690.0), with(LevelKind::Cap, 300.0)];
        let svg = overview_svg(("wincap", ""), &Style::default(), &capped);
        assert!(
            svg.contains("cap of the window") && !svg.contains("BDP"),
            "{svg}"
        );
        // Far above every curve it is not drawn.
        let far = [with(LevelKind::Cap, 690.0), with(LevelKind::Bdp, 8333.0)];
        assert!(!overview_svg(("wincap", ""), &Style::default(), &far).contains("BDP"));
        let near = [
            with(LevelKind::WithBuffer, 880.0),
            with(LevelKind::Bdp, 600.0),
        ];
        let svg = overview_svg(("wincap", ""), &Style::default(), &near);
        assert!(
            svg.contains(">BDP<") && svg.contains(">BDP + buffer<"),
            "{svg}"
        );
    }

    /// Of a hundred seconds the part has its own ticks and as many columns as the whole.
    #[test]
    fn a_part_of_the_time_is_drawn_in_full() {
        let whole = figure(vec![sawtooth(100_000, 100.0, 400.0, 100.0, 900.0)]);
        let mut part = whole.clone();
        part.ranges = Ranges {
            x: "50:51".parse().unwrap(),
            y: "200:600".parse().unwrap(),
        };
        let svg = part.svg(&Style::default());
        for text in [">50<", ">50.5<", ">51<", ">200<", ">600<"] {
            assert!(svg.contains(text), "{text} {svg}");
        }
        assert!(!svg.contains(">100<") && !svg.contains(">900<"), "{svg}");
        // The level of 800 is above it.
        assert!(!svg.contains("BDP 800"), "{svg}");
        let drawn = |svg: &str| {
            let path = svg
                .lines()
                .find(|l| l.starts_with("<path d=\"M") && l.contains("1.8"));
            path.unwrap().matches('L').count()
        };
        // A second has four teeth, and nearly every row is a column of its own.
        assert!(drawn(&svg) > 700, "{}", drawn(&svg));
    }

    #[test]
    fn long_runs_and_many_flows_stay_small() {
        let one =
            figure(vec![sawtooth(2_000_000, 100.0, 5_000.0, 100.0, 900.0)]).svg(&Style::default());
        assert!(one.len() < 200_000, "{}", one.len());
        let many: Vec<Curve> = (0..100)
            .map(|i| Curve {
                group: i,
                ..sawtooth(5_000, 100.0, 400.0 + i as f64, 100.0, 900.0)
            })
            .collect();
        let many = figure(many).svg(&Style::default());
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
        let all = overview_svg(("first-run", ""), &Style::default(), &cases);
        assert!(all.len() < 200_000, "{}", all.len());
        assert!(all.contains("first 16 of 20 cases"));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let draw =
            || figure(vec![sawtooth(10_000, 100.0, 7.0, 400.0, 800.0)]).svg(&Style::default());
        assert_eq!(draw(), draw());
        #[cfg(feature = "png")]
        assert_eq!(
            png(&draw(), 1.0, &Style::default()).unwrap(),
            png(&draw(), 1.0, &Style::default()).unwrap()
        );
    }

    /// A picture in a paper leads back to its result.
    #[test]
    fn every_form_says_where_it_comes_from() {
        let svg = figure(vec![]).svg(&Style::default());
        let svg = described(&svg, "result a<b, sha256 1f");
        assert!(
            svg.contains("\n<desc>result a&lt;b, sha256 1f</desc>\n"),
            "{svg}"
        );
        #[cfg(feature = "png")]
        {
            let png = png(&svg, 1.0, &Style::default()).unwrap();
            let text = String::from_utf8_lossy(&png);
            assert!(text.contains("Description\0\0\0\0\0result a<b, sha256 1f"));
            assert!(text.contains("Title\0\0\0\0\0first-run: flow.main.stack = reno"));
            // The chunks are whole: what reads them finds the same picture.
            resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
        }
        #[cfg(feature = "pdf")]
        {
            let pdf = pdf(&svg, &Style::default()).unwrap();
            let text = String::from_utf8_lossy(&pdf);
            assert!(
                text.contains("/Title (first-run: flow.main.stack = reno)"),
                "{text}"
            );
            assert!(text.contains("/Subject (result a<b, sha256 1f)"));
        }
    }

    #[test]
    fn text_is_text_and_escaped() {
        let mut f = figure(vec![sawtooth(100, 100.0, 3.0, 400.0, 800.0)]);
        f.title = "a<b & \"c\"\u{7}".to_owned();
        let svg = f.svg(&Style::default());
        assert!(svg.contains(">a&lt;b &amp; &quot;c&quot; </text>"), "{svg}");
        assert!(svg.contains("2 congestion events</text>"));
        f.curves = vec![sawtooth(9000, 100.0, 900.0, 400.0, 800.0)];
        let svg = f.svg(&Style::default());
        assert!(
            svg.contains(" congestion events, near ones as one</text>"),
            "{svg}"
        );
        #[cfg(feature = "png")]
        png(&svg, 1.0, &Style::default()).unwrap();
    }

    #[test]
    fn a_picture_without_data_is_still_one() {
        let empty = Figure {
            duration: 0.0,
            ..figure(vec![Curve::default()])
        };
        for svg in [
            empty.svg(&Style::default()),
            Figure::default().svg(&Style::default()),
            overview_svg(("", ""), &Style::default(), &[]),
        ] {
            assert!(
                svg.starts_with("<svg") && svg.ends_with("</svg>\n"),
                "{svg}"
            );
            #[cfg(feature = "png")]
            png(&svg, 1.0, &Style::default()).unwrap();
        }
    }

    #[cfg(feature = "png")]
    #[test]
    fn the_bundled_font_has_every_letter_that_the_axes_use() {
        // Without a font the text vanishes: a title must change the picture.
        let mut f = figure(vec![]);
        let with = png(&f.svg(&Style::default()), 1.0, &Style::default()).unwrap();
        f.title = String::new();
        assert_ne!(
            with,
            png(&f.svg(&Style::default()), 1.0, &Style::default()).unwrap()
        );
    }
}
