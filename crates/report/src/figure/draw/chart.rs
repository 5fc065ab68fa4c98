//! A [`Chart`] as SVG text.

use super::axes::room_left;
use super::headline;
use super::legend::{Entries, WARMUP_WORDS};
use super::panel::{FOOT, HEAD, NO_VALUE, Others};
use super::style::{INK, LEAST_AXES, LOOKS, WARMUP};
use super::svg::Svg;
use super::text::named;
use crate::figure::Style;
use crate::figure::chart::{Chart, Line, Panel};

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
        let natural = match (style.is_paper(), self.stacked) {
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
        let height_of_row = match style.height() {
            Some(height) => ((height - top) / rows as f64 - more).max(LEAST_ROW),
            None => natural,
        };
        let height = top + rows as f64 * (height_of_row + more);
        let label = named(&self.title, &self.subtitle);
        let mut out = Svg::new(total, height, &label, style);
        heading(&mut out);
        let others: Vec<Others> = self.panels.iter().map(|p| self.others(p)).collect();
        let beside = self.panels.iter().zip(&others);
        let beside = beside
            .map(|(p, others)| p.beside(height_of_row, others, style))
            .fold(0.0, f64::max);
        let margin = style.margin_left().max(room_left(beside));
        let width_of = |right: f64| (total - right) / columns as f64 - margin;
        let over = self.panels.iter().zip(&others);
        let over = over.map(|(p, others)| p.overhang(draft, others));
        let width = width_of(over.fold(style.margin_right(), f64::max));
        for (i, panel) in self.panels.iter().enumerate() {
            let left = margin + (i % columns) as f64 * (width + margin);
            let top = top + (i / columns) as f64 * (height_of_row + more);
            let size = (width, height_of_row);
            panel.draw(
                &mut out,
                (left, top),
                size,
                (beside, more),
                (&others[i], style),
            );
        }
        out.finish()
    }

    /// What a panel has on its axes because others have it.
    fn others(&self, panel: &Panel) -> Others {
        let common = || self.panels.iter().filter(|p| panel.common && p.common);
        let across = common().filter(|p| p.x.label == panel.x.label);
        let up = common().filter(|p| p.y.label == panel.y.label);
        Others {
            x: across.flat_map(Panel::places).collect(),
            y: up.flat_map(Panel::heights).collect(),
        }
    }

    /// The names in the legend, each with a line of its look. Lines of one look in several panels
    /// whose names begin alike have one: `b against reno` of those whose stack a heading says.
    fn named(&self) -> Vec<(&str, &Line)> {
        let lines = self.panels.iter().flat_map(|p| &p.lines);
        let lines = lines.filter(|line| !line.name.is_empty());
        let mut named: Vec<(&str, &Line)> = Vec::new();
        for line in lines.clone() {
            let of_look = lines.clone().filter(|l| l.group == line.group);
            let same = of_look.clone().all(|l| l.name == line.name);
            let head = line.name.split(": ").next().unwrap_or_default();
            let begin = of_look
                .clone()
                .all(|l| l.name.split(": ").next() == Some(head));
            let name = if begin && !same { head } else { &line.name };
            let known = |(known, l): &(&str, &Line)| l.group == line.group && *known == name;
            if !named.iter().any(known) {
                named.push((name, line));
            }
        }
        named
    }

    /// Names of the lines, and the lower end of the legend.
    fn names(&self, out: &mut Svg, ends: (f64, f64), y: f64) -> f64 {
        let lines = || self.panels.iter().flat_map(|p| &p.lines);
        let named = self.named();
        let mut entries = Entries::new(out, ends, y);
        for (name, line) in named.iter().take(LOOKS) {
            let look = out.look(line.group);
            // Points that a line without a name belongs to have its dashes, too: those alone tell
            // groups of one colour apart.
            let is_line = |l: &Line| l.group == line.group && !l.loose && !l.points.is_empty();
            entries.place(out, name, |out, x, y| {
                if !line.loose || lines().any(is_line) {
                    let style = format!("stroke=\"{}\" {}", look.colour, look.line(false, 2.2));
                    out.line(x, y - 4.5, x + 24.0, y - 4.5, &style);
                }
                if line.dots {
                    out.dot(x + 12.0, y - 4.5, line.group);
                }
            });
        }
        entries.rest(out, named.len());
        if lines().any(|l| !l.missing.is_empty()) {
            entries.place(out, "no value", |out, x, y| {
                out.text(x + 12.0, y, "middle", 13.0, INK, NO_VALUE);
            });
        }
        if lines().any(Line::has_band) {
            entries.place(out, BAND_WORDS, |out, x, y| {
                let style = "stroke=\"#555\" stroke-width=\"1.8\"";
                out.rect(x, y - 9.0, 24.0, 9.0, "#ddd");
                out.line(x, y - 4.5, x + 24.0, y - 4.5, style);
            });
        }
        if self.panels.iter().any(|p| p.warmup > 0.0) {
            entries.place(out, WARMUP_WORDS, |out, x, y| {
                out.rect(x, y - 9.0, 24.0, 10.0, WARMUP);
            });
        }
        entries.y
    }
}

/// What a line in its band is.
const BAND_WORDS: &str = "median and range";
const WIDTH: f64 = 1080.0;
const COLUMNS: usize = 2;
/// Least room for a panel.
const PANEL_WIDTH: f64 = 330.0;
/// Height of a row of panels, with heading and labels.
const ROW: f64 = 350.0;
/// Least height of one on paper, without labels.
const PAPER_ROW: f64 = 150.0;
/// Least height of one where the picture's is prescribed, with all that is above and below.
const LEAST_ROW: f64 = LEAST_AXES + HEAD + FOOT;

#[cfg(test)]
mod tests {
    use super::super::text::text_width;
    use super::*;
    use crate::figure::chart::{Axis, Scale};

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

    /// One that is longer than its axis hangs down from the upper end.
    #[test]
    fn no_label_reaches_up_into_the_legend() {
        let mut low = chart(vec![(10.0, 1e6), (100_000.0, 20.0)]);
        low.panels.truncate(1);
        low.panels[0].title.clear();
        low.panels[0].y.label = "mean window (segments)".to_owned();
        for height in [30.0, 40.0, 60.0] {
            let svg = low.svg(&Style {
                width_mm: Some(84.0),
                height_mm: Some(height),
                title: false,
                ..Style::default()
            });
            let after = |line: &str, before: &str| -> Option<f64> {
                let (_, rest) = line.split_once(before)?;
                rest.split(['"', ' ', ')']).next()?.parse().ok()
            };
            let label = svg.lines().find(|l| l.contains("rotate(-90)")).unwrap();
            let (_, place) = label.split_once("translate(").unwrap();
            let middle = after(place, " ").unwrap();
            let size = after(label, "font-size=\"").unwrap();
            let top = middle - text_width("mean window (segments)", size) / 2.0;
            let name = svg.lines().find(|l| l.contains(">reno<")).unwrap();
            assert!(top > after(name, " y=\"").unwrap(), "{height}: {svg}");
        }
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

    /// Paper has one size of letters; a title that is too long for its panel has smaller ones.
    #[test]
    fn a_long_title_is_smaller_on_paper() {
        let mut all = chart(vec![(1.0, 1.0), (10.0, 10.0)]);
        all.panels.truncate(1);
        let style = Style {
            width_mm: Some(84.0),
            size_pt: 8.0,
            ..Style::default()
        };
        let size = |chart: &Chart| {
            let svg = chart.svg(&style);
            let (before, _) = svg
                .split_once(&format!(">{}<", chart.panels[0].title))
                .unwrap();
            let (_, size) = before.rsplit_once("font-size=\"").unwrap();
            size.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        all.panels[0].title = "queue codel".to_owned();
        assert_eq!(size(&all), 12.0);
        all.panels[0].title = "queue red with ecn and max 90 packets and min 30 packets".to_owned();
        assert!((9.0..12.0).contains(&size(&all)), "{}", size(&all));
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

    /// Panels of one quantity are compared; another label is another axis.
    #[test]
    fn panels_may_have_common_axes() {
        let mut all = chart(vec![(0.0, 1.0), (10.0, 80.0)]);
        for panel in &mut all.panels {
            panel.y.scale = Scale::Linear;
            panel.common = true;
        }
        all.panels[1].lines[0].points[1].1 = 300.0;
        all.panels[2].y.label = "another".to_owned();
        let count = |chart: &Chart| chart.svg(&Style::default()).matches(">300<").count();
        assert_eq!(count(&all), 2);
        all.panels[0].common = false;
        assert_eq!(count(&all), 1);
        all.panels[0].common = true;
        for panel in &mut all.panels {
            panel.x.scale = Scale::Linear;
        }
        all.panels[2].lines[0].points[1].0 = 4000.0;
        let end = |chart: &Chart| chart.svg(&Style::default()).matches(">4,000<").count();
        assert_eq!(end(&all), 3);
        all.panels[2].x.label = "another".to_owned();
        assert_eq!(end(&all), 1);
    }

    #[test]
    fn a_line_is_interrupted_where_it_has_no_value() {
        let pieces = |middle: f64| {
            let points = vec![
                (1.0, 5.0),
                (2.0, 5.0),
                (3.0, middle),
                (4.0, 9.0),
                (5.0, 5.0),
            ];
            let one = Chart {
                panels: chart(points).panels.drain(..1).collect(),
                ..Chart::default()
            };
            let svg = one.svg(&Style::default());
            let path = svg.split("<path d=\"").nth(1).unwrap();
            path.split('"').next().unwrap().matches('M').count()
        };
        assert_eq!([pieces(7.0), pieces(f64::NAN)], [1, 2]);
    }

    /// The eighth group has the first one's colour: points and their law are told by the dashes.
    #[test]
    fn points_and_their_line_are_one_entry_of_the_legend() {
        let mut one = chart(vec![(1.0, 1.0), (10.0, 10.0)]);
        one.panels.truncate(1);
        let law = &mut one.panels[0].lines[0];
        (law.name, law.group) = (String::new(), 7);
        let points = Line {
            name: "reno, 10 ms".to_owned(),
            loose: true,
            dots: true,
            ..law.clone()
        };
        one.panels[0].lines.push(points);
        let svg = one.svg(&Style::default());
        let dashes = svg.matches("stroke=\"#0072B2\" stroke-width=\"2.2\" stroke-dasharray=");
        assert_eq!(dashes.count(), 1, "{svg}");
    }

    /// Lines end at the axes by a clip; a point is drawn whole or not at all.
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
