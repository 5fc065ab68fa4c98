//! A coloured table: the number is exact, the colour only helps to find it.

use super::panel::NO_VALUE;
use super::style::{GREY, INK};
use super::svg::Svg;
use super::text::{fit, text_width, wrap};
use crate::digits::mean_and_half;
use crate::figure::{Rows, Style};

/// A table of one metric.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// The metric in words.
    pub title: String,
    /// Heading of the rows.
    pub row_head: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells by row and column.
    pub cells: Vec<Vec<Option<MatrixCell>>>,
    /// The metric counts things.
    pub count: bool,
}

/// A value of a [`Matrix`].
#[derive(Clone, Copy, Debug)]
pub struct MatrixCell {
    /// Mean.
    pub mean: f64,
    /// Half width of its 95 % interval.
    pub half: Option<f64>,
}

impl Matrix {
    /// The picture; the width it needs in millimetres if it has not got that.
    pub fn svg(&self, style: &Style) -> Result<String, f64> {
        let texts: Vec<Vec<_>> = self.texts();
        let sized = |text: &str| text_width(text, LETTER);
        let heads = self.rows.iter().chain([&self.row_head]);
        let row_width = heads.map(|t| sized(t)).fold(0.0, f64::max) + 14.0;
        let in_cells = texts.iter().flatten().flatten();
        let mut needed = 34.0_f64;
        for (value, half) in in_cells {
            needed = needed.max(sized(value).max(sized(half)) + 10.0);
        }
        // A heading may have several lines, but no word is broken.
        let words = self.columns.iter().flat_map(|c| c.split(' '));
        let needed = words.map(|w| sized(w) + 10.0).fold(needed, f64::max);
        let columns = self.columns.len().max(1) as f64;
        let least = 2.0 * EDGE + row_width + needed * columns;
        let (total, cell_width) = match style.is_paper() {
            true => {
                let total = style.width(0.0);
                if least > total + 0.5 {
                    return Err(least * style.unit_mm());
                }
                (total, (total - 2.0 * EDGE - row_width) / columns)
            }
            false => {
                let wide = needed.max(56.0);
                (2.0 * EDGE + row_width + wide * columns, wide)
            }
        };
        let heads: Vec<Vec<String>> = self
            .columns
            .iter()
            .map(|c| wrap(c, cell_width - 6.0, LETTER, LINES_OF_A_HEAD))
            .collect();
        let lines = heads.iter().map(Vec::len).max().unwrap_or(0) as f64;
        let tall = texts
            .iter()
            .flatten()
            .flatten()
            .any(|(_, half)| !half.is_empty());
        let cell_height = if tall { 34.0 } else { 22.0 };
        let top = if style.title { 30.0 } else { 8.0 };
        let body = top + 14.0 * lines + 8.0;
        let rows = self.rows.len().max(1) as f64;
        let asked = style.height().map(|height| (height - body - EDGE) / rows);
        let cell_height = asked.map_or(cell_height, |asked| asked.max(cell_height));
        let height = body + cell_height * self.rows.len() as f64 + EDGE;
        let mut out = Svg::new(total, height, &self.title, style);
        if style.title {
            let title = [fit(&self.title, total - 2.0 * EDGE, 14.0)];
            out.whole(&self.title, &title, |out| {
                out.text(EDGE, 20.0, "start", 14.0, INK, &title[0]);
            });
        }
        out.text(EDGE, body - 8.0, "start", LETTER, GREY, &self.row_head);
        let left = EDGE + row_width;
        for (c, head) in heads.iter().enumerate() {
            let x = left + cell_width * (c as f64 + 0.5);
            out.whole(&self.columns[c], head, |out| {
                for (line, up) in head.iter().rev().zip(0..) {
                    let y = body - 8.0 - 14.0 * f64::from(up);
                    out.text(x, y, "middle", LETTER, INK, line);
                }
            });
        }
        let ramp = Ramp::of(self.values(), style.grey);
        for (r, row) in self.rows.iter().enumerate() {
            let y = body + cell_height * r as f64;
            let middle = y + cell_height / 2.0 + 4.0;
            out.text(EDGE, middle, "start", LETTER, INK, row);
            for (c, cell) in self.cells[r].iter().enumerate() {
                let x = left + cell_width * c as f64;
                let centre = x + cell_width / 2.0;
                let (Some(cell), Some((value, half))) = (cell, &texts[r][c]) else {
                    out.text(centre, middle, "middle", LETTER, GREY, NO_VALUE);
                    continue;
                };
                let (colour, ink) = ramp.colour(cell.mean);
                out.rect(
                    x + 0.5,
                    y + 0.5,
                    cell_width - 1.0,
                    cell_height - 1.0,
                    &colour,
                );
                if half.is_empty() {
                    out.text(centre, middle, "middle", LETTER, ink, value);
                } else {
                    out.text(centre, middle - 6.5, "middle", LETTER, ink, value);
                    out.text(centre, middle + 7.5, "middle", LETTER, ink, half);
                }
            }
        }
        Ok(out.finish())
    }

    /// The same as rows of text.
    pub fn printed(&self) -> Rows {
        let cell = |t: &Option<(String, String)>| match t {
            None => NO_VALUE.to_owned(),
            Some((value, half)) if half.is_empty() => value.clone(),
            Some((value, half)) => format!("{value} {half}"),
        };
        let texts = self.texts();
        let rows = self.rows.iter().zip(&texts).map(|(row, cells)| {
            let cells = cells.iter().map(cell);
            std::iter::once(row.clone()).chain(cells).collect()
        });
        // The only column has the metric's name.
        let named = self.columns.contains(&self.title);
        let head = match (named, self.row_head.as_str()) {
            (true, row_head) => row_head.to_owned(),
            (false, "") => self.title.clone(),
            (false, row_head) => format!("{} by {row_head}", self.title),
        };
        Rows {
            heads: std::iter::once(head)
                .chain(self.columns.iter().cloned())
                .collect(),
            rows: rows.collect(),
            align: format!("l{}", "r".repeat(self.columns.len())),
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().flatten().flatten().map(|c| c.mean)
    }

    /// Value and `± half` of every cell.
    fn texts(&self) -> Vec<Vec<Option<(String, String)>>> {
        let text = |cell: &MatrixCell| {
            let whole = self.count && cell.mean.fract() == 0.0;
            let digits = if whole { 1 } else { DIGITS };
            let (value, half) = mean_and_half(cell.mean, cell.half, digits);
            (
                value,
                half.map_or_else(String::new, |half| format!("± {half}")),
            )
        };
        let row =
            |cells: &Vec<Option<MatrixCell>>| cells.iter().map(|c| c.as_ref().map(text)).collect();
        self.cells.iter().map(row).collect()
    }
}

/// Colours of values: amounts from pale to dark, signed ones to either side of pale.
struct Ramp {
    low: f64,
    high: f64,
    grey: bool,
}

impl Ramp {
    fn of(values: impl Iterator<Item = f64>, grey: bool) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
            (l.min(x), h.max(x))
        });
        Self { low, high, grey }
    }

    /// The cell's colour, and that of the letters on it.
    fn colour(&self, x: f64) -> (String, &'static str) {
        let most = self.low.abs().max(self.high.abs());
        let signed = self.low < 0.0 && self.high > 0.0;
        let part = match (signed, self.high - self.low) {
            (true, _) => x / most,
            // A table of equal values has no light and dark.
            (false, span) if span <= 1e-12 * most => 0.25,
            (false, span) => (x - self.low) / span,
        };
        let dark = match (self.grey, part < 0.0) {
            (true, true) => [0x9a, 0x9a, 0x9a],
            (true, false) => [0x3c, 0x3c, 0x3c],
            (false, true) => [0xb4, 0x54, 0x0a],
            (false, false) => [0x0a, 0x4a, 0x8f],
        };
        let mix = |i: usize| {
            let (from, to) = (f64::from(PALE[i]), f64::from(dark[i]));
            (from + (to - from) * part.abs()).round() as u8
        };
        let [r, g, b] = [0, 1, 2].map(mix);
        // Black and white are equally far from 0.18, each by 4.58.
        let ink = if luminance([r, g, b]) > 0.18 {
            "#000000"
        } else {
            "#ffffff"
        };
        (format!("#{r:02x}{g:02x}{b:02x}"), ink)
    }
}

/// Relative luminance (WCAG 2.2).
fn luminance(rgb: [u8; 3]) -> f64 {
    let linear = rgb.map(|c| match f64::from(c) / 255.0 {
        c if c <= 0.04045 => c / 12.92,
        c => libm::pow((c + 0.055) / 1.055, 2.4),
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

/// Significant digits of a mean that has no interval.
const DIGITS: usize = 3;
const PALE: [u8; 3] = [0xf4, 0xf6, 0xf8];
const LETTER: f64 = 12.0;
const LINES_OF_A_HEAD: usize = 6;
const EDGE: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(columns: usize) -> Matrix {
        let cell = |mean: f64| {
            Some(MatrixCell {
                mean,
                half: Some(0.04),
            })
        };
        Matrix {
            title: "goodput (Mbit/s)".to_owned(),
            row_head: "stack".to_owned(),
            rows: vec!["reno".to_owned(), "cubic".to_owned()],
            columns: (0..columns).map(|i| format!("rtt {i}ms")).collect(),
            cells: vec![vec![cell(17.0); columns], vec![None; columns]],
            count: false,
        }
    }

    #[test]
    fn a_table_that_does_not_fit_says_how_wide_it_is() {
        let paper = Style {
            width_mm: Some(84.0),
            size_pt: 8.0,
            title: false,
            ..Style::default()
        };
        let svg = matrix(3).svg(&paper).unwrap();
        assert!(
            svg.contains("width=\"84.00mm\"") && svg.contains(">± 0.040<"),
            "{svg}"
        );
        assert!(!svg.contains("goodput (Mbit/s)<"));
        let needed = matrix(12).svg(&paper).unwrap_err();
        assert!((120.0..260.0).contains(&needed), "{needed}");
        let wide = Style {
            width_mm: Some(needed + 0.1),
            ..paper
        };
        assert!(matrix(12).svg(&wide).is_ok());
    }

    #[test]
    fn letters_read_on_every_colour() {
        for grey in [false, true] {
            let ramp = Ramp::of([-1.0, 1.0].into_iter(), grey);
            for i in -10..=10 {
                let (colour, ink) = ramp.colour(f64::from(i) / 10.0);
                let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
                let back = luminance([part(1), part(3), part(5)]);
                let fore = if ink == "#000000" { 0.0 } else { 1.0 };
                let contrast = (back.max(fore) + 0.05) / (back.min(fore) + 0.05);
                assert!(contrast > 4.5, "{colour} {ink} {contrast}");
            }
        }
    }

    #[test]
    fn a_mean_stops_where_its_interval_begins() {
        let printed = |mean: f64, half: f64| {
            let half = Some(half);
            let cells = vec![vec![Some(MatrixCell { mean, half })]];
            let one = Matrix { cells, ..matrix(1) };
            one.printed().rows[0][1].clone()
        };
        assert_eq!(printed(344.58, 0.35), "344.58 ± 0.35");
        assert_eq!(printed(352.1, 0.59), "352.10 ± 0.59");
        assert_eq!(printed(8.014, 2.1), "8.0 ± 2.1");
        assert_eq!(printed(0.2907, 0.12), "0.29 ± 0.12");
        assert_eq!(printed(17.0, 1e-9), "17.0");
        assert_eq!(printed(32_261.0, 24_000.0), "32,261 ± 24,000");
        assert_eq!(printed(0.000_123_4, 0.000_01), "0.000123 ± 0.000010");
        // Rates of loss on fast paths are no zeros.
        assert_eq!(printed(2.01e-7, 0.0), "2.01e-7");
        assert_eq!(printed(2.01e-7, 3e-8), "2.01e-7 ± 3.0e-8");
        assert_eq!(printed(-5.5e-5, 1e-5), "-0.000055 ± 0.000010");
    }

    #[test]
    fn what_is_missing_is_a_dash() {
        let printed = matrix(1).printed();
        assert_eq!(printed.heads, ["goodput (Mbit/s) by stack", "rtt 0ms"]);
        assert_eq!(printed.rows[0], ["reno", "17.000 ± 0.040"]);
        assert_eq!(printed.rows[1], ["cubic", "–"]);
    }
}
