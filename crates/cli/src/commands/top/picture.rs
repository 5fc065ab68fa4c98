//! The table as it is drawn. Without colours: bold, dim and reverse are enough, and every terminal
//! has them.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};

use super::flows::{Flows, REMEMBERED, Row};
use crate::args::TopOrder;
use crate::table::number;

/// The latest look as it is drawn: rows in their order, and where the reader has scrolled to.
#[derive(Debug)]
pub struct Picture {
    pub order: TopOrder,
    /// Somebody holds it: it shows an earlier look.
    pub held: bool,
    interval: Duration,
    now: Duration,
    rows: Vec<Row>,
    /// Index of the first row that is shown.
    first: usize,
}

impl Picture {
    pub fn new(order: TopOrder, interval: Duration) -> Self {
        Self {
            order,
            held: false,
            interval,
            now: Duration::ZERO,
            rows: Vec::new(),
            first: 0,
        }
    }

    /// Shows these from now on.
    pub fn show(&mut self, flows: &Flows, now: Duration) {
        self.now = now;
        self.rows = flows.rows().cloned().collect();
        // Equals stay where they are from look to look.
        self.rows
            .sort_by(|a, b| (a.remote, &a.name).cmp(&(b.remote, &b.name)));
        let key = |row: &Row| match self.order {
            TopOrder::Rate => row.sent.unwrap_or(0.0),
            TopOrder::Window => row.windows.back().map_or(0.0, |w| *w as f64),
            TopOrder::Rtt => row.rtt.unwrap_or(0.0),
            TopOrder::Resent => row.resent_ever as f64,
            TopOrder::Peer => 0.0,
        };
        self.rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
        self.scroll(0);
    }

    pub fn scroll(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.first = self.first.saturating_add_signed(by).min(last);
    }
}

/// A column: head, unit, width, whether it is kept where there is little room (the lower the
/// longer), what it shows.
struct Column {
    head: &'static str,
    unit: &'static str,
    width: u16,
    rank: u8,
    right: bool,
    of: fn(&Row, u16) -> String,
}

const COLUMNS: [Column; 11] = [
    column("flow", "", 43, 0, false, |r, _| r.name.clone()),
    column("congestion", "control", 12, 5, false, |r, _| {
        r.algorithm.clone()
    }),
    column("policy", "", 14, 6, false, |r, _| or_none(&r.policy)),
    column("a", "segm.", 6, 8, true, |r, _| shown(r.law.0, 3)),
    column("b", "", 6, 8, true, |r, _| shown(r.law.1, 3)),
    column("window", "segments", 8, 1, true, |r, _| {
        r.windows.back().map_or_else(none, u64::to_string)
    }),
    column("history", "", 8, 4, false, sparkline),
    column("sent", "Mbit/s", 7, 1, true, |r, _| mbps(r.sent)),
    column("received", "Mbit/s", 8, 7, true, |r, _| mbps(r.received)),
    column("RTT", "ms", 7, 2, true, |r, _| shown(r.rtt, 4)),
    column("resent", "segments", 9, 3, true, |r, _| match r.resent {
        0 => r.resent_ever.to_string(),
        new => format!("+{new} {}", r.resent_ever),
    }),
];

/// Beside the others, in what is left of the line.
const LIMIT: Column = column("limited by", "", 14, 6, false, |r, _| r.limit.to_owned());

const fn column(
    head: &'static str,
    unit: &'static str,
    width: u16,
    rank: u8,
    right: bool,
    of: fn(&Row, u16) -> String,
) -> Column {
    Column {
        head,
        unit,
        width,
        rank,
        right,
        of,
    }
}

fn none() -> String {
    "-".to_owned()
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        none()
    } else {
        text.to_owned()
    }
}

fn shown(x: Option<f64>, digits: usize) -> String {
    x.map_or_else(none, |x| number(x, digits))
}

fn mbps(bits: Option<f64>) -> String {
    shown(bits.map(|bits| bits / 1e6), 4)
}

/// The last windows, the largest of them a whole block.
fn sparkline(row: &Row, width: u16) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = row.windows.len().saturating_sub(usize::from(width));
    let shown = row.windows.iter().skip(skipped);
    let most = shown.clone().copied().max().unwrap_or(0).max(1);
    shown
        .map(|w| BLOCKS[(w * 8).div_ceil(most).clamp(1, 8) as usize - 1])
        .collect()
}

/// The columns that fit, the dispensable ones left out; room that is left goes to the sparkline.
fn columns(width: u16, longest: usize) -> Vec<(&'static Column, u16)> {
    let mut all: Vec<(&Column, u16)> = COLUMNS
        .iter()
        .chain([&LIMIT])
        .map(|c| (c, c.width))
        .collect();
    // Both ends need as much as they need.
    all[0].1 = longest.clamp(20, usize::from(LONGEST)) as u16;
    let needs = |all: &[(&Column, u16)]| all.iter().map(|(_, w)| w + 1).sum::<u16>();
    while needs(&all) > width + 1 && all.len() > 1 {
        let rank = all.iter().map(|(c, _)| c.rank).max();
        let at = all.iter().rposition(|(c, _)| Some(c.rank) == rank);
        all.remove(at.unwrap_or(all.len() - 1));
    }
    let left = (width + 1).saturating_sub(needs(&all));
    for (c, w) in &mut all {
        if c.head == "history" {
            *w = (*w + left).min(REMEMBERED as u16);
        }
    }
    all
}

/// Two addresses of IPv6 in brackets, with ports.
const LONGEST: u16 = 98;

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, picture: &mut Picture) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let total = |of: fn(&Row) -> Option<f64>| picture.rows.iter().filter_map(of).sum::<f64>();
    let many = match picture.rows.len() {
        1 => "1 flow".to_owned(),
        n => format!("{n} flows"),
    };
    let summary = format!(
        "fullpipe top{}: {many}, sent {} Mbit/s, received {} Mbit/s, after {:.0} s, every {:?}",
        if picture.held { ", HELD" } else { "" },
        mbps(Some(total(|r| r.sent))),
        mbps(Some(total(|r| r.received))),
        picture.now.as_secs_f64(),
        picture.interval,
    );
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Span::styled(summary, bold)), head);

    let longest = picture.rows.iter().map(|r| r.name.len()).max();
    let columns = columns(body.width, longest.unwrap_or(0));
    // Two lines of heads.
    let fits = usize::from(body.height.saturating_sub(2)).max(1);
    picture.first = picture.first.min(picture.rows.len().saturating_sub(fits));
    let rows = picture
        .rows
        .iter()
        .skip(picture.first)
        .take(fits)
        .map(|row| {
            let cells = columns.iter().map(|(c, width)| {
                let text = Line::from((c.of)(row, *width));
                Cell::from(if c.right { text.right_aligned() } else { text })
            });
            let again = row.resent > 0;
            TableRow::new(cells).style(if again { bold } else { Style::new() })
        });
    let heads = columns.iter().map(|(c, _)| {
        let text = Text::from(vec![Line::from(c.head), Line::from(c.unit)]);
        Cell::from(if c.right { text.right_aligned() } else { text })
    });
    let reverse = Style::new().add_modifier(Modifier::REVERSED);
    let table = Table::new(rows, columns.iter().map(|(_, w)| Constraint::Length(*w)))
        .header(TableRow::new(heads).height(2).style(reverse))
        .column_spacing(1);
    frame.render_widget(table, body);

    let (from, to) = (
        picture.first + 1,
        picture.rows.len().min(picture.first + fits),
    );
    let place = match picture.rows.len() {
        n if n > fits => format!(", rows {from} to {to} of {n}"),
        _ => String::new(),
    };
    let keys = format!(
        "by {}{place}   q end   s sort   space hold   arrows scroll",
        word(picture.order)
    );
    let dim = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(Span::styled(keys, dim)), foot);
}

fn word(order: TopOrder) -> &'static str {
    match order {
        TopOrder::Rate => "rate",
        TopOrder::Window => "window",
        TopOrder::Rtt => "RTT",
        TopOrder::Resent => "segments sent again",
        TopOrder::Peer => "peer",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn row(k: u8) -> Row {
        let remote = format!("198.51.100.{k}:5001").parse().unwrap();
        Row {
            name: format!("192.0.2.1:4000{k} -> {remote}"),
            remote: Some(remote),
            algorithm: "fp_highspeed".to_owned(),
            policy: if k == 1 { "cern" } else { "" }.to_owned(),
            law: if k == 1 {
                (Some(6.0), Some(0.35))
            } else {
                (None, None)
            },
            windows: VecDeque::from([10, 20, 40, 80 * u64::from(k)]),
            sent: Some(94.2e6 / f64::from(k)),
            received: Some(0.0),
            rtt: Some(80.4),
            min_rtt: Some(80.0),
            resent: u64::from(k % 2),
            resent_ever: u64::from(k) * 3,
            limit: "network",
        }
    }

    fn drawn(picture: &mut Picture, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, picture)).unwrap();
        terminal.backend().to_string()
    }

    fn picture(n: u8) -> Picture {
        let mut picture = Picture::new(TopOrder::Rate, Duration::from_millis(500));
        picture.rows = (1..=n).map(row).collect();
        picture
    }

    #[test]
    fn a_wide_terminal_has_all_columns_and_a_narrow_one_the_main_ones() {
        insta::assert_snapshot!("wide", drawn(&mut picture(2), 170, 6));
        insta::assert_snapshot!("narrow", drawn(&mut picture(2), 80, 6));
        for (width, height) in [(1, 1), (7, 3), (43, 4), (500, 100)] {
            drawn(&mut picture(9), width, height);
        }
    }

    #[test]
    fn more_rows_than_lines_scroll() {
        let mut picture = picture(9);
        let text = drawn(&mut picture, 80, 7);
        assert!(
            text.contains("rows 1 to 3 of 9") && text.contains(".100.3:"),
            "{text}"
        );
        picture.scroll(2);
        assert!(drawn(&mut picture, 80, 7).contains("rows 3 to 5 of 9"));
        picture.scroll(isize::MAX);
        let text = drawn(&mut picture, 80, 7);
        assert!(
            text.contains("rows 7 to 9 of 9") && !text.contains(".100.6:"),
            "{text}"
        );
        picture.scroll(isize::MIN);
        assert!(drawn(&mut picture, 80, 7).contains("rows 1 to 3 of 9"));
    }

    #[test]
    fn a_sparkline_ends_with_the_latest_window() {
        let mut flow = row(1);
        flow.windows = VecDeque::from([0, 1, 50, 100]);
        assert_eq!(sparkline(&flow, 16), "▁▁▄█");
        assert_eq!(sparkline(&flow, 2), "▄█");
        flow.windows.clear();
        assert_eq!(sparkline(&flow, 2), "");
    }
}
