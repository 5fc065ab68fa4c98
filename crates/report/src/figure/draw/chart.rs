//! A [`Chart`] as SVG text.

use super::style::{AXIS_STROKE, GREY, INK, MARGIN_LEFT, MARGIN_RIGHT, look};
use super::svg::{PathText, Svg};
use super::text::{fit, text_width, thousands, wrap};
use crate::figure::chart::{Chart, Line, Panel};

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let lines = wrap(&self.subtitle, WIDTH - MARGIN_LEFT - MARGIN_RIGHT, 14.0);
        let under = 30.0 + 20.0 * lines.len() as f64;
        // Drawn once for its height, which the document's own depends on.
        let top = self.names(&mut Svg::new(0.0, 0.0, ""), under + 24.0) + 14.0;
        let rows = self.panels.len().div_ceil(COLUMNS).max(1);
        let height = top + rows as f64 * ROW;
        let mut out = Svg::new(WIDTH, height, &format!("{}: {}", self.title, self.subtitle));
        out.text(MARGIN_LEFT, 30.0, "start", 20.0, INK, &self.title);
        for (i, line) in lines.iter().enumerate() {
            let y = 50.0 + 20.0 * i as f64;
            out.text(MARGIN_LEFT, y, "start", 14.0, GREY, line);
        }
        self.names(&mut out, under + 24.0);
        let width = (WIDTH - MARGIN_RIGHT) / COLUMNS as f64 - MARGIN_LEFT;
        for (i, panel) in self.panels.iter().enumerate() {
            let column = (i % COLUMNS) as f64;
            let left = MARGIN_LEFT + column * (width + MARGIN_LEFT);
            panel.draw(&mut out, left, top + (i / COLUMNS) as f64 * ROW, width);
        }
        out.finish()
    }

    /// Names of the lines, and the lower end of the legend.
    fn names(&self, out: &mut Svg, mut y: f64) -> f64 {
        let right = WIDTH - MARGIN_RIGHT;
        let mut x = MARGIN_LEFT;
        let lines = self.panels.first().map_or(&[][..], |p| &p.lines);
        for (i, line) in lines.iter().enumerate() {
            let width = 52.0 + text_width(&line.name, 13.0);
            if x > MARGIN_LEFT && x + width - 22.0 > right {
                (x, y) = (MARGIN_LEFT, y + 20.0);
            }
            let look = look(i);
            let style = format!("stroke=\"{}\" {}", look.colour, look.line(false, 2.2));
            out.line(x, y - 4.5, x + 24.0, y - 4.5, &style);
            let name = fit(&line.name, right - x - 30.0, 13.0);
            out.text(x + 30.0, y, "start", 13.0, INK, &name);
            x += width;
        }
        y
    }
}

impl Panel {
    fn draw(&self, out: &mut Svg, left: f64, top: f64, width: f64) {
        out.text(left, top + 12.0, "start", 14.0, INK, &self.title);
        let (top, height) = (top + 22.0, ROW - 22.0 - FOOT);
        let bottom = top + height;
        let points = || self.lines.iter().flat_map(Line::positive);
        let x = Decades::around(points().map(|p| p.0));
        let y = Decades::around(points().map(|p| p.1));
        let place = |p: (f64, f64)| (left + width * x.part(p.0), bottom - height * y.part(p.1));
        for tick in y.ticks() {
            let at = bottom - height * y.part(tick);
            let light = "stroke=\"#e6e6e6\" stroke-width=\"1\"";
            out.line(left, at, left + width, at, light);
            out.text(left - 8.0, at + 4.0, "end", 12.0, GREY, &number(tick));
        }
        for tick in x.ticks() {
            let at = left + width * x.part(tick);
            out.line(at, bottom, at, bottom + 5.0, AXIS_STROKE);
            out.text(at, bottom + 19.0, "middle", 12.0, GREY, &number(tick));
        }
        out.line(left, bottom, left + width, bottom, AXIS_STROKE);
        out.line(left, top, left, bottom, AXIS_STROKE);
        let middle = left + width / 2.0;
        out.text(middle, bottom + 38.0, "middle", 13.0, INK, &self.x_label);
        out.rotated(left - 62.0, top + height / 2.0, 13.0, INK, &self.y_label);
        for (i, line) in self.lines.iter().enumerate() {
            let mut path = PathText::default();
            for p in line.positive() {
                let (px, py) = place(p);
                path.to(px, py);
            }
            if !path.text.is_empty() {
                let look = look(i);
                out.path(&path.text, look.colour, &look.line(false, 1.8));
            }
        }
    }
}

impl Line {
    fn positive(&self) -> impl Iterator<Item = (f64, f64)> {
        let drawn = |x: f64| x > 0.0 && x.is_finite();
        self.points
            .iter()
            .copied()
            .filter(move |p| drawn(p.0) && drawn(p.1))
    }
}

/// A logarithmic axis over whole powers of ten.
struct Decades {
    from: i32,
    to: i32,
}

impl Decades {
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
        if low > high {
            return Self { from: 0, to: 1 };
        }
        // A value that is a power of ten but for rounding needs no decade of its own.
        let from = (low.log10() + 1e-9).floor() as i32;
        let to = (high.log10() - 1e-9).ceil() as i32;
        Self {
            from,
            to: to.max(from + 1),
        }
    }

    /// Position on the axis, 0 to 1.
    fn part(&self, x: f64) -> f64 {
        (x.log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }

    /// At most eight powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let step = (self.to - self.from) / 8 + 1;
        (self.from..=self.to)
            .step_by(step as usize)
            .map(|e| 10_f64.powi(e))
    }
}

/// A power of ten: in digits where they are few.
fn number(x: f64) -> String {
    match (1e-3..1e7).contains(&x) {
        true => thousands(x),
        false => format!("1e{:.0}", x.log10()),
    }
}

const WIDTH: f64 = 1080.0;
const COLUMNS: usize = 2;
/// Height of a row of panels, with heading and labels.
const ROW: f64 = 350.0;
/// Height of the labels below an axis.
const FOOT: f64 = 62.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        let panel = Panel {
            title: "b(w) & more".to_owned(),
            x_label: "window (segments)".to_owned(),
            y_label: "fraction".to_owned(),
            lines: vec![Line {
                name: "reno".to_owned(),
                points,
            }],
        };
        Chart {
            title: "laws".to_owned(),
            subtitle: String::new(),
            panels: vec![panel.clone(), panel.clone(), panel],
        }
    }

    #[test]
    fn axes_cover_whole_decades() {
        let axis = Decades::around([12.0, 5_000.0].into_iter());
        assert_eq!((axis.from, axis.to), (1, 4));
        assert_eq!(
            axis.ticks().collect::<Vec<_>>(),
            [10.0, 100.0, 1_000.0, 10_000.0]
        );
        assert!((axis.part(100.0) - 1.0 / 3.0).abs() < 1e-12);
        // One value, a power of ten, has room.
        let one = Decades::around([0.5].into_iter());
        assert_eq!((one.from, one.to), (-1, 0));
        assert_eq!(Decades::around([1e-12, 1.0].into_iter()).ticks().count(), 7);
    }

    /// Two decades on each axis: the corners of the frame are the corners of the data.
    #[test]
    fn points_lie_where_the_axes_say() {
        let svg = chart(vec![(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]).svg();
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
        assert_eq!(x0, MARGIN_LEFT);
        assert!((x1 - x0 - (x2 - x1)).abs() < 0.2 && (y0 - y1 - (y1 - y2)).abs() < 0.2);
        assert!(y0 > y2);
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        let all = chart(vec![
            (1.0, 0.0),
            (-1.0, 2.0),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
        ]);
        for svg in [all.svg(), chart(vec![]).svg(), Chart::default().svg()] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert!(all.svg().contains("b(w) &amp; more"));
    }
}
