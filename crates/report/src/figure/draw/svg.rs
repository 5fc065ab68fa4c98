//! The SVG document being written, and the text of its paths.

use std::fmt::Write as _;

use super::style::{Look, look};
use super::text::is_cut;
use crate::figure::Style;
use crate::figure::picture::MarkKind;

/// The document being written.
pub(super) struct Svg {
    text: String,
    clips: usize,
    grey: bool,
    /// The one size of letters on paper.
    letters: Option<f64>,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, label: &str, style: &Style) -> Self {
        let (w, h) = (px(width), px(height));
        let size = |units: f64, text: &str| match style.is_paper() {
            true => format!("{:.2}mm", units * style.unit_mm()),
            false => text.to_owned(),
        };
        let (wide, high) = (size(width, &w), size(height, &h));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
             aria-label=\"{}\" font-family=\"{}\">\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
            escape(label),
            escape(&families(style)),
        );
        Self {
            text,
            clips: 0,
            grey: style.grey,
            letters: style.is_paper().then_some(12.0),
        }
    }

    /// Colour and dashes of the curves of a group.
    pub(super) fn look(&self, group: usize) -> Look {
        look(group, self.grey)
    }

    /// True of a picture whose width is that of a journal's column or page.
    pub(super) fn is_paper(&self) -> bool {
        self.letters.is_some()
    }

    /// Size of letters: paper has one, and what is too long for it is smaller.
    pub(super) fn size(&self, size: f64) -> f64 {
        self.letters.map_or(size, |letters| letters.min(size))
    }

    fn put(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub(super) fn text(
        &mut self,
        x: f64,
        y: f64,
        anchor: &str,
        size: f64,
        colour: &str,
        words: &str,
    ) {
        let size = self.size(size);
        let (x, y, size, words) = (px(x), px(y), px(size), escape(words));
        self.put(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// What shows these lines of a name: where they lack a part of it, all of it is a title, which
    /// a browser shows under the pointer.
    pub(super) fn whole(&mut self, name: &str, lines: &[String], draw: impl FnOnce(&mut Self)) {
        let cut = is_cut(name, lines);
        if cut {
            self.put(&format!("<g><title>{}</title>", escape(name)));
        }
        draw(self);
        if cut {
            self.close_group();
        }
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let (x, y, w, h) = (px(x), px(y), px(width), px(height));
        self.put(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{colour}\"/>"
        ));
    }

    pub(super) fn rotated(&mut self, x: f64, y: f64, size: f64, colour: &str, words: &str) {
        let size = self.size(size);
        let (x, y, size, words) = (px(x), px(y), px(size), escape(words));
        self.put(&format!(
            "<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\" font-size=\"{size}\" \
             fill=\"{colour}\">{words}</text>"
        ));
    }

    /// Words that end here and rise to it.
    pub(super) fn rising(&mut self, x: f64, y: f64, size: f64, colour: &str, words: &str) {
        let size = self.size(size);
        let (x, y, size, words) = (px(x), px(y), px(size), escape(words));
        self.put(&format!(
            "<text transform=\"translate({x} {y}) rotate(-45)\" text-anchor=\"end\" font-size=\"{size}\" \
             fill=\"{colour}\">{words}</text>"
        ));
    }

    pub(super) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, style: &str) {
        let (x1, y1, x2, y2) = (px(x1), px(y1), px(x2), px(y2));
        self.put(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}/>"
        ));
    }

    pub(super) fn path(&mut self, d: &str, colour: &str, style: &str) {
        self.put(&format!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-linejoin=\"round\" {style}/>"
        ));
    }

    /// A closed shape in a pale colour, through which lines are seen.
    pub(super) fn area(&mut self, d: &str, colour: &str) {
        let pale = format!("fill=\"{colour}\" fill-opacity=\".25\"");
        self.put(&format!("<path d=\"{d}z\" {pale}/>"));
    }

    /// What follows is seen in this rectangle only, and on its lower edge.
    pub(super) fn open_clip(&mut self, (left, top): (f64, f64), (width, height): (f64, f64)) {
        self.clips += 1;
        let (n, x, y) = (self.clips, px(left), px(top));
        let (w, h) = (px(width), px(height + 1.0));
        self.put(&format!(
            "<clipPath id=\"c{n}\"><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/></clipPath><g clip-path=\"url(#c{n})\">"
        ));
    }

    pub(super) fn close_group(&mut self) {
        self.put("</g>");
    }

    /// A point of a group: its shape tells it from others without colour, and where shades are few
    /// it is hollow the second time.
    pub(super) fn dot(&mut self, x: f64, y: f64, group: usize) {
        let Look { colour, shape, .. } = self.look(group);
        let s = 3.4;
        let d = match shape % 4 {
            0 => format!(
                "M{} {}a{s} {s} 0 1 0 {} 0a{s} {s} 0 1 0 -{} 0z",
                px(x - s),
                px(y),
                px(2.0 * s),
                px(2.0 * s)
            ),
            1 => format!("M{} {}h6v6h-6z", px(x - 3.0), px(y - 3.0)),
            2 => format!("M{} {}l4 7h-8z", px(x), px(y - 4.4)),
            _ => format!("M{} {}l4.2 4.2l-4.2 4.2l-4.2 -4.2z", px(x), px(y - 4.2)),
        };
        let style = match shape < 4 {
            true => format!("fill=\"{colour}\""),
            false => format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.4\""),
        };
        self.put(&format!("<path d=\"{d}\" {style}/>"));
    }

    /// The shape of an event, its lower tip at the point.
    pub(super) fn mark(&mut self, x: f64, y: f64, kind: MarkKind, colour: &str, size: f64) {
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
            // A square: neither a loss nor an end.
            MarkKind::Change => (
                format!(
                    "M{} {}h{}v{}h{}z",
                    px(x - s),
                    px(y - s),
                    px(2.0 * s),
                    px(2.0 * s),
                    px(-2.0 * s)
                ),
                format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.5\""),
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

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// A drawing of this module that says where it comes from, as its PNG and PDF do then.
pub fn described(svg: &str, origin: &str) -> String {
    match svg.split_once('\n') {
        Some((head, rest)) => format!("{head}\n<desc>{}</desc>\n{rest}", escape(origin)),
        None => svg.to_owned(),
    }
}

/// What a drawing is called, and where it comes from: as far as it says so.
#[cfg(feature = "png")]
pub(super) fn named_and_described(svg: &str) -> [Option<String>; 2] {
    let between = |before: &str, after: &str| {
        let (_, rest) = svg.split_once(before)?;
        let (text, _) = rest.split_once(after)?;
        let plain = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&amp;", "&"),
        ];
        let text = plain
            .iter()
            .fold(text.to_owned(), |t, (name, c)| t.replace(name, c));
        Some(text).filter(|t| !t.is_empty())
    };
    [between("aria-label=\"", "\""), between("<desc>", "</desc>")]
}

/// Text of a path: absolute points to a tenth of a pixel, points on top of each other written once.
#[derive(Default)]
pub(super) struct PathText {
    pub(super) text: String,
    last: Option<(i64, i64)>,
}

impl PathText {
    pub(super) fn to(&mut self, x: f64, y: f64) {
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

    pub(super) fn lift(&mut self) {
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

/// The style's families, and what stands in for them.
fn families(style: &Style) -> String {
    if style.font.is_none() {
        return "Ubuntu, 'Helvetica Neue', Arial, sans-serif".to_owned();
    }
    let named = style.families();
    let quoted = named
        .iter()
        .map(|name| format!("'{}'", name.replace('\'', "")));
    quoted.collect::<Vec<_>>().join(", ")
}

/// A number of pixels as text.
fn px(x: f64) -> String {
    let mut text = String::new();
    tenths(&mut text, (x * 10.0).round() as i64);
    text
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
