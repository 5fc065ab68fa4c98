//! A number over time, a line each of what is compared.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};

use crate::output;
use crate::table::number;

/// A picture of a number over time.
pub struct Plot<'a> {
    /// Quantity and unit.
    pub title: &'a str,
    /// From when to when, seconds.
    pub window: [f64; 2],
    /// Lines, from the first colour on.
    pub lines: Vec<(&'a str, &'a [(f64, f64)])>,
}

impl Plot<'_> {
    /// Draws it into the area.
    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let block = Block::bordered().title(format!(" {} ", self.title));
        let [from, to] = self.window;
        let seen = self.lines.iter().flat_map(|(_, points)| *points);
        let seen = seen
            .filter(|(t, _)| (from..=to).contains(t))
            .map(|(_, y)| *y);
        let most = seen.fold(0.0, f64::max);
        if most <= 0.0 {
            let nothing = Paragraph::new("nothing yet").block(block);
            return frame.render_widget(nothing, area);
        }
        let top = ceiling(most);
        let lines = self.lines.iter().enumerate();
        let lines =
            lines
                .filter(|(_, (_, points))| !points.is_empty())
                .map(|(i, (name, points))| {
                    Dataset::default()
                        .name(*name)
                        .marker(marker(i))
                        .graph_type(GraphType::Line)
                        .style(colour(i))
                        .data(points)
                });
        let label = |x: f64| Line::from(number(x, 3));
        let time = |x: f64| Line::from(format!("{} s", number(x, 3)));
        let x = Axis::default()
            .bounds([from, to])
            .labels([time(from), time(to)]);
        let y =
            Axis::default()
                .bounds([0.0, top])
                .labels([label(0.0), label(top / 2.0), label(top)]);
        let mut chart = Chart::new(lines.collect()).block(block).x_axis(x).y_axis(y);
        if self.lines.len() == 1 {
            chart = chart.legend_position(None);
        }
        let chart =
            chart.hidden_legend_constraints((Constraint::Ratio(1, 2), Constraint::Ratio(2, 3)));
        frame.render_widget(chart, area);
    }
}

/// The colour of a line.
pub fn colour(line: usize) -> Style {
    match output::colour() {
        true => Style::default().fg(COLOURS[line % COLOURS.len()]),
        false => Style::default(),
    }
}

/// Style of headlines and column heads.
pub fn heading() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

/// Lines are told apart without colours, too.
fn marker(line: usize) -> Marker {
    match line % 2 {
        0 => Marker::Braille,
        _ => Marker::Dot,
    }
}

const COLOURS: [Color; 6] = [
    Color::Cyan,
    Color::Yellow,
    Color::Green,
    Color::Magenta,
    Color::Blue,
    Color::Red,
];

/// The next of 1, 2, 5, 10, 20, ... that is not smaller.
fn ceiling(most: f64) -> f64 {
    let decade = 10f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = steps
        .into_iter()
        .map(|s| s * decade)
        .find(|top| *top >= most);
    fits.unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, top) in [
            (1.0, 1.0),
            (1.2, 1.5),
            (950.0, 1000.0),
            (0.031, 0.04),
            (4.5, 5.0),
        ] {
            assert!((ceiling(most) - top).abs() < 1e-12, "{most}");
        }
    }
}
