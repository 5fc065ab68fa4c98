//! All cases of a scenario in one picture.

use super::axes::{Axes, Frame, axes};
use super::legend::legend;
use super::style::{Detail, GREY, INK, MARGIN_LEFT};
use super::svg::Svg;
use super::text::wrap;
use crate::figure::picture::Figure;

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

/// Cases that fit into one overview.
pub const OVERVIEW_PANELS: usize = 16;

const OVERVIEW_WIDTH: f64 = 1200.0;

/// Columns of reduced curve in a whole overview, which keep its file below 200 kB.
const OVERVIEW_COLUMNS: f64 = 3500.0;
