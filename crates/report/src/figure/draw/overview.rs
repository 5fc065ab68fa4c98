//! All cases of a scenario in one picture.

use super::axes::{Axes, Frame, axes, beside, numbers, overhang, room_left, times};
use super::headline;
use super::legend::legend;
use super::style::{Detail, GREY, INK, LEAST_AXES};
use super::svg::Svg;
use super::text::wrap;
use crate::figure::Style;
use crate::figure::picture::Figure;

/// All cases of a scenario in one picture, on common axes; at most [`OVERVIEW_PANELS`] of them.
pub fn overview_svg((title, subtitle): (&str, &str), style: &Style, figures: &[Figure]) -> String {
    let shown = on_one_axis(&figures[..figures.len().min(OVERVIEW_PANELS)]);
    let total = style.width(OVERVIEW_WIDTH);
    let columns = match shown.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        3 | 5..=9 => 3,
        _ => 4,
    };
    let columns = match style.columns {
        Some(asked) => asked.clamp(1, shown.len().max(1)),
        None => columns.min((total / PANEL_WIDTH) as usize).max(1),
    };
    let rows = shown.len().div_ceil(columns).max(1);
    let x_end = shown.iter().map(|f| f.duration).fold(0.0, f64::max);
    let y_end = shown.iter().map(Figure::top).fold(0.0, f64::max);
    let ends = |f: &Figure| (f.times(x_end), f.windows(y_end));
    let (x, y) = shown.first().map_or(((0.0, x_end), (0.0, y_end)), ends);
    let (gap_x, foot) = (32.0, 10.0);
    let of_panels = |room: f64| (room - gap_x * (columns as f64 - 1.0)) / columns as f64;
    // Of a prescribed height the panels' share, with their names: near enough for the numbers.
    let share = style
        .height()
        .map(|h| (h / rows as f64 - 60.0).max(LEAST_AXES));
    let height_of = |width: f64| share.unwrap_or((width * 0.62).clamp(130.0, 300.0));
    let ticks_of = |width: f64| ((width / 70.0) as usize, (height_of(width) / 36.0) as usize);
    // The numbers beside the axes are known once these are nearly as large as they will be.
    let draft = of_panels(total - style.margin_left() - 24.0);
    let beside = beside(numbers(y, ticks_of(draft).1), style.label_beside());
    let left = style.margin_left().max(room_left(beside));
    let right = overhang(times(x, x_end, ticks_of(draft).0), draft).max(24.0);
    let panel_width = of_panels(total - left - right);
    let names: Vec<Vec<String>> = shown
        .iter()
        .map(|f| wrap(&f.subtitle, panel_width, 13.0, 2))
        .collect();
    let head = 17.0 + 17.0 * names.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let detail = Detail {
        budget: OVERVIEW_COLUMNS / shown.len().max(1) as f64,
        level_labels: false,
        ..Detail::PANEL
    };
    let all: Vec<&Figure> = shown.iter().collect();
    let heading = |out: &mut Svg| {
        let y = headline(out, (title, subtitle), total, style);
        legend(out, &all, &detail, (left, total - right), y)
    };
    // Drawn once for its height, which the document's own depends on.
    let top = heading(&mut Svg::new(0.0, 0.0, "", style)) + 6.0;
    let panel_height = match style.height() {
        Some(height) => ((height - top - 46.0) / rows as f64 - head - foot).max(LEAST_AXES),
        None => height_of(panel_width),
    };
    let height = top + rows as f64 * (head + panel_height + foot) + 46.0;
    let mut out = Svg::new(total, height, title, style);
    heading(&mut out);
    let unit = match shown.as_slice() {
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
            x,
            y,
            duration: x_end,
        };
        let axes_of = Axes {
            x_label: last_row,
            y_label: (column == 0).then_some(unit),
            ticks: ticks_of(panel_width),
            beside,
        };
        axes(&mut out, &frame, &axes_of);
        out.whole(&figure.subtitle, &names[i], |out| {
            for (line, up) in names[i].iter().rev().zip(0..) {
                let y = frame.top - 9.0 - 16.0 * f64::from(up);
                out.text(frame.left, y, "start", 13.0, INK, line);
            }
        });
        figure.draw(&mut out, &frame, &detail);
    }
    if figures.len() > shown.len() {
        let note = format!("first {} of {} cases", shown.len(), figures.len());
        out.text(total - right, 30.0, "end", 14.0, GREY, &note);
    }
    out.finish()
}

/// Windows of segments of different sizes are drawn in megabytes.
pub(in crate::figure) fn on_one_axis(figures: &[Figure]) -> Vec<Figure> {
    let first = figures.first().and_then(|f| f.mss);
    let mixed = figures.iter().any(|f| f.mss != first);
    let sized = figures.iter().all(|f| f.mss.is_some());
    let drawn = figures.iter().cloned();
    match mixed && sized {
        true => drawn.map(Figure::in_megabytes).collect(),
        false => drawn.collect(),
    }
}

/// Cases that fit into one overview.
pub const OVERVIEW_PANELS: usize = 16;

const OVERVIEW_WIDTH: f64 = 1200.0;
/// Least room for a panel.
const PANEL_WIDTH: f64 = 260.0;

/// Columns of reduced curve in a whole overview, which keep its file below 200 kB.
const OVERVIEW_COLUMNS: f64 = 3500.0;
