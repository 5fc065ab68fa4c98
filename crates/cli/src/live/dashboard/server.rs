//! Tests of a server: what comes and leaves, the tests that run, the end of the log.

use std::collections::HashMap;
use std::time::Duration;

use fullpipe_net::session::board::Board;
use fullpipe_units::{Span, Time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use super::super::prometheus::server::Tally;
use super::plot::{Plot, heading};
use crate::output;
use crate::table::number;

/// Tests of a server, and the last two minutes of its traffic.
pub struct Server {
    title: String,
    /// Time and bytes at the last look.
    looked: Duration,
    bytes: [u64; 2],
    received: Vec<(f64, f64)>,
    sent: Vec<(f64, f64)>,
    tests: Vec<Test>,
    /// Bytes of each test at the last look, by its number.
    before: HashMap<u64, [u64; 2]>,
    opened_and_refused: [u64; 2],
}

/// A test that runs.
struct Test {
    number: u64,
    peer: String,
    label: String,
    flows: usize,
    lasted: Span,
    /// What came and left, Mbit/s, since the last look.
    rates: [f64; 2],
    rtt: Option<f64>,
}

/// Seconds that the plot shows.
const SHOWN: f64 = 120.0;
/// Shortest time between two looks.
const STEP: Duration = Duration::from_millis(500);
/// Points of [`SHOWN`], no closer than [`STEP`].
const MOST_POINTS: usize = 300;

impl Server {
    /// Nothing yet.
    pub fn new(title: String) -> Self {
        Self {
            title,
            looked: Duration::ZERO,
            bytes: [0; 2],
            received: Vec::new(),
            sent: Vec::new(),
            tests: Vec::new(),
            before: HashMap::new(),
            opened_and_refused: [0; 2],
        }
    }

    /// The state at `now` since the beginning.
    pub fn take(&mut self, now: Duration, tally: &Tally, board: &Board) {
        if now < self.looked + STEP {
            return;
        }
        let seconds = (now - self.looked).as_secs_f64();
        let rate = |now: u64, before: u64| 8.0 * now.saturating_sub(before) as f64 / seconds / 1e6;
        let bytes = tally.bytes(board);
        let at = now.as_secs_f64();
        for (i, points) in [&mut self.received, &mut self.sent].into_iter().enumerate() {
            points.push((at, rate(bytes[i], self.bytes[i])));
            if points.len() > 2 * MOST_POINTS {
                points.drain(..MOST_POINTS);
            }
        }
        let mut seen = HashMap::new();
        self.tests = board
            .tests()
            .iter()
            .map(|test| {
                let traffic = test.traffic();
                let both = [traffic.received, traffic.sent];
                let before = self.before.get(&test.test).copied().unwrap_or_default();
                seen.insert(test.test, both);
                let live = test.live.latest();
                let rtts = live
                    .flows
                    .iter()
                    .filter_map(|f| f.srtt.map(Span::as_millis_f64));
                Test {
                    number: test.test,
                    peer: test.peer.to_string(),
                    label: test.label.clone(),
                    flows: live.run.flows.len(),
                    lasted: live.at - Time::ZERO,
                    rates: [0, 1].map(|i| rate(both[i], before[i])),
                    rtt: rtts.reduce(f64::max),
                }
            })
            .collect();
        self.before = seen;
        self.opened_and_refused = tally.opened_and_refused();
        (self.looked, self.bytes) = (now, bytes);
    }

    /// Draws it all.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let [head, plot, tests, log, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let [opened, refused] = self.opened_and_refused;
        let (running, up) = (self.tests.len(), number(self.looked.as_secs_f64(), 3));
        let headline = format!(
            "{}: {running} running, {opened} opened, {refused} refused, {up} s",
            self.title
        );
        frame.render_widget(Line::styled(headline, heading()), head);
        let to = self.looked.as_secs_f64().max(1.0);
        let both = Plot {
            title: "all tests, Mbit/s",
            window: [(to - SHOWN).max(0.0), to],
            lines: vec![
                ("received", self.received.as_slice()),
                ("sent", self.sent.as_slice()),
            ],
        };
        both.draw(frame, plot);
        self.draw_tests(frame, tests);
        let lines = usize::from(log.height.saturating_sub(2));
        let said = output::held(lines).join("\n");
        let block = Block::bordered().title(" log ");
        frame.render_widget(Paragraph::new(said).block(block), log);
        frame.render_widget(Paragraph::new(KEYS), foot);
    }

    fn draw_tests(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.tests.iter().map(|test| {
            Row::new([
                test.number.to_string(),
                test.peer.clone(),
                test.label.clone(),
                test.flows.to_string(),
                number(test.lasted.as_secs_f64(), 2),
                number(test.rates[0], 3),
                number(test.rates[1], 3),
                test.rtt.map_or("-".to_owned(), |ms| number(ms, 3)),
            ])
        });
        let heads = HEADS.iter().map(|(head, _)| Cell::from(*head));
        let table = Table::new(rows, HEADS.iter().map(|(_, width)| *width))
            .header(Row::new(heads).style(heading()))
            .block(Block::bordered().title(" tests "));
        frame.render_widget(table, area);
    }
}

/// The keys.
const KEYS: &str = "q: stop; tests that run may end, q again: at once";

const HEADS: [(&str, Constraint); 8] = [
    ("test", Constraint::Length(6)),
    ("client", Constraint::Min(21)),
    ("label", Constraint::Min(8)),
    ("flows", Constraint::Length(5)),
    ("s", Constraint::Length(7)),
    ("received", Constraint::Length(9)),
    ("sent", Constraint::Length(9)),
    ("RTT ms", Constraint::Length(8)),
];

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn a_server_without_tests_is_drawn_in_any_size() {
        let (tally, board) = (Tally::default(), Board::default());
        let mut server = Server::new("listening on UDP 127.0.0.1:6220".to_owned());
        for s in 0..3 {
            server.take(Duration::from_secs(s), &tally, &board);
        }
        for (width, height) in [(1, 1), (20, 8), (80, 24), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| server.draw(frame)).unwrap();
            let text = terminal.backend().to_string();
            assert_eq!(
                text.contains("0 running, 0 opened, 0 refused, 2.00 s"),
                width >= 80
            );
        }
    }
}
