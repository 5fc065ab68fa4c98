//! Flows of runs in real time: goodput, window and round-trip time as they change, and a table.

use fullpipe_realtime::live::{LiveFlow, NamedFlow, Snapshot};
use fullpipe_units::{Span, Time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Table};

use super::plot::{Plot, colour, heading};
use crate::output;
use crate::table::number;

/// Flows of the latest run, and their last minute.
pub struct Runs {
    title: String,
    total: usize,
    now: Snapshot,
    /// History of each line of the plots, in their order.
    tracks: Vec<Track>,
    /// Goodput of each flow since the picture before, Mbit/s.
    goodput: Vec<f64>,
}

/// Points of a flow, or of all flows of a direction.
#[derive(Default)]
struct Track {
    name: String,
    /// Flows whose numbers it has, by index.
    flows: Vec<usize>,
    goodput: Vec<(f64, f64)>,
    window: Vec<(f64, f64)>,
    rtt: Vec<(f64, f64)>,
}

/// Flows that are drawn one by one; of more than that all of a direction together.
const FEW: usize = 6;
/// Seconds that plots show.
const SHOWN: f64 = 60.0;
/// Shortest time between two points, so that a rate has something to be taken of.
const STEP: Span = Span::from_millis(200);

impl Runs {
    /// Nothing yet.
    pub fn new(title: String, total: usize) -> Self {
        Self {
            title,
            total,
            now: Snapshot::default(),
            tracks: Vec::new(),
            goodput: Vec::new(),
        }
    }

    /// The state of a moment ago.
    pub fn take(&mut self, now: &Snapshot) {
        if now.run.number != self.now.run.number {
            self.tracks = tracks(&now.run.flows);
            self.goodput = vec![0.0; now.run.flows.len()];
            self.now = Snapshot {
                run: now.run.clone(),
                ..Snapshot::default()
            };
        }
        if now.at < self.now.at + STEP {
            return;
        }
        let seconds = (now.at - self.now.at).as_secs_f64();
        let at = (now.at - Time::ZERO).as_secs_f64();
        for (i, (state, flow)) in now.flows.iter().zip(&now.run.flows).enumerate() {
            let before = self.now.flows.get(i).map_or(0, |f| f.delivered);
            let bits = 8.0 * f64::from(flow.mss) * state.delivered.saturating_sub(before) as f64;
            self.goodput[i] = bits / seconds / 1e6;
        }
        for track in &mut self.tracks {
            let states = || track.flows.iter().filter_map(|i| now.flows.get(*i));
            let goodput = track.flows.iter().map(|i| self.goodput[*i]).sum();
            let windows = || states().filter_map(|f| f.cwnd);
            let window = windows().next().map(|_| windows().sum());
            let rtts: Vec<f64> = states()
                .filter_map(|f| f.srtt.map(Span::as_millis_f64))
                .collect();
            let rtt = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64);
            push(&mut track.goodput, at, Some(goodput));
            push(&mut track.window, at, window);
            push(&mut track.rtt, at, rtt);
        }
        self.now = now.clone();
    }

    /// Draws it all.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let flows = self.now.run.flows.len();
        let rows = (flows + 3).max(4).min(usize::from(frame.area().height) / 2);
        let [head, gauge, plots, table, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(6),
            Constraint::Length(u16::try_from(rows).unwrap_or(u16::MAX)),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::styled(self.headline(), heading()), head);
        self.draw_time(frame, gauge);
        self.draw_plots(frame, plots);
        self.draw_table(frame, table);
        frame.render_widget(Paragraph::new(footer()), foot);
    }

    fn headline(&self) -> String {
        let run = &self.now.run;
        match (run.number, self.total) {
            (0, _) => format!("{}: not begun", self.title),
            (_, 0 | 1) => self.title.clone(),
            (n, total) => format!("{}: run {n} of {total}, seed {}", self.title, run.seed),
        }
    }

    fn draw_time(&self, frame: &mut Frame<'_>, area: Rect) {
        let (at, lasts) = (self.now.at - Time::ZERO, self.now.run.lasts);
        let sizes: Option<u64> = self.now.run.flows.iter().map(|f| f.size).sum();
        let seconds = |span: Span| number(span.as_secs_f64(), 3);
        let (part, label) = match sizes.filter(|n| *n > 0) {
            Some(size) => {
                let flows = self.now.flows.iter().zip(&self.now.run.flows);
                let bytes: u64 = flows
                    .map(|(f, named)| f.delivered * u64::from(named.mss))
                    .sum();
                let part = bytes.min(size) as f64 / size as f64;
                (part, format!("{:.1} % in {} s", 100.0 * part, seconds(at)))
            }
            None if lasts == Span::ZERO => (0.0, String::new()),
            None => {
                let part = at.as_secs_f64() / lasts.as_secs_f64();
                (part, format!("{} of {} s", seconds(at), seconds(lasts)))
            }
        };
        let gauge = Gauge::default()
            .gauge_style(colour(0))
            .ratio(part.clamp(0.0, 1.0))
            .label(label);
        frame.render_widget(gauge, area);
    }

    fn draw_plots(&self, frame: &mut Frame<'_>, area: Rect) {
        let to = (self.now.at - Time::ZERO).as_secs_f64().max(1.0);
        let window = [(to - SHOWN).max(0.0), to];
        let [left, rest] = match area.width >= WIDE {
            true => Layout::horizontal([Constraint::Fill(1), Constraint::Fill(2)]).areas(area),
            false => Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area),
        };
        let [middle, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(rest);
        let plot = |title, of: fn(&Track) -> &Vec<(f64, f64)>| Plot {
            title,
            window,
            lines: self
                .tracks
                .iter()
                .map(|t| (t.name.as_str(), of(t).as_slice()))
                .collect(),
        };
        plot("goodput, Mbit/s", |t| &t.goodput).draw(frame, left);
        plot("window, segments", |t| &t.window).draw(frame, middle);
        plot("smoothed RTT, ms", |t| &t.rtt).draw(frame, right);
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(3));
        let flows = self.now.run.flows.iter().enumerate();
        let rows = flows.take(room).map(|(i, flow)| {
            let state = self.now.flows.get(i).copied().unwrap_or_default();
            let line = self.tracks.iter().position(|t| t.flows.contains(&i));
            self.row(i, flow, &state)
                .style(line.map_or(Style::default(), colour))
        });
        let rows: Vec<Row<'_>> = rows.collect();
        let heads = HEADS.iter().map(|(head, _)| Cell::from(*head));
        let more = match self.now.run.flows.len().saturating_sub(room) {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        let table = Table::new(rows, HEADS.iter().map(|(_, width)| *width))
            .header(Row::new(heads).style(heading()))
            .block(Block::bordered().title(format!(" flows{more} ")));
        frame.render_widget(table, area);
    }

    fn row(&self, i: usize, flow: &NamedFlow, state: &LiveFlow) -> Row<'static> {
        let at = (self.now.at - Time::ZERO).as_secs_f64();
        let bytes = state.delivered as f64 * f64::from(flow.mss);
        let mean = if at > 0.0 {
            8.0 * bytes / at / 1e6
        } else {
            0.0
        };
        let shown = |x: Option<f64>, digits| x.map_or("-".to_owned(), |x| number(x, digits));
        Row::new([
            flow.name.clone(),
            flow.stack.clone(),
            if flow.reverse { "reverse" } else { "forward" }.to_owned(),
            number(self.goodput.get(i).copied().unwrap_or(0.0), 3),
            number(mean, 3),
            shown(state.cwnd, 3),
            shown(state.srtt.map(Span::as_millis_f64), 3),
            shown(state.retransmits.map(|n| n as f64), 1),
        ])
    }
}

/// Columns of the table of flows, and their widths.
const HEADS: [(&str, Constraint); 8] = [
    ("flow", Constraint::Min(8)),
    ("stack", Constraint::Min(12)),
    ("direction", Constraint::Length(9)),
    ("Mbit/s", Constraint::Length(8)),
    ("mean", Constraint::Length(8)),
    ("window", Constraint::Length(9)),
    ("RTT ms", Constraint::Length(8)),
    ("retransmits", Constraint::Length(11)),
];
/// Columns from which the plots stand side by side.
const WIDE: u16 = 120;

/// The keys, and what was said last.
fn footer() -> String {
    let said = output::held(1).pop().unwrap_or_default();
    let gap = if said.is_empty() { "" } else { "   " };
    format!("q: stop{gap}{said}")
}

fn push(points: &mut Vec<(f64, f64)>, at: f64, value: Option<f64>) {
    if let Some(value) = value {
        points.push((at, value));
        // What has left the window is dropped in one go.
        if points.len() > 2 * MOST_POINTS {
            points.drain(..MOST_POINTS);
        }
    }
}

/// Points of [`SHOWN`], no closer than [`STEP`].
const MOST_POINTS: usize = 400;

/// A line per flow, or of many flows one per direction.
fn tracks(flows: &[NamedFlow]) -> Vec<Track> {
    let track = |name: &str, flows: Vec<usize>| Track {
        name: name.to_owned(),
        flows,
        ..Track::default()
    };
    if flows.len() <= FEW {
        let flows = flows.iter().enumerate();
        return flows.map(|(i, flow)| track(&flow.name, vec![i])).collect();
    }
    let going = |reverse: bool| {
        (0..flows.len())
            .filter(|i| flows[*i].reverse == reverse)
            .collect()
    };
    let both = [
        track("all forward", going(false)),
        track("all reverse", going(true)),
    ];
    both.into_iter().filter(|t| !t.flows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fullpipe_realtime::live::LiveRun;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn run(n: usize) -> Arc<LiveRun> {
        let flow = |i: usize| NamedFlow {
            name: format!("flow-{i}"),
            stack: "cubic".to_owned(),
            mss: 1250,
            size: None,
            reverse: i % 2 == 1,
        };
        Arc::new(LiveRun {
            number: 2,
            seed: 7,
            lasts: Span::from_secs(10),
            flows: (0..n).map(flow).collect(),
        })
    }

    /// Each flow at 8 Mbit/s x its number from 1, second by second.
    fn watched(n: usize) -> Runs {
        let mut runs = Runs::new("demo on ground udp".to_owned(), 3);
        let run = run(n);
        for s in 0..=4 {
            let flow = |i: usize| LiveFlow {
                delivered: s * 800 * (i as u64 + 1),
                retransmits: i.is_multiple_of(2).then_some(3),
                cwnd: i.is_multiple_of(2).then_some(100.0 + 10.0 * s as f64),
                srtt: i.is_multiple_of(2).then_some(Span::from_millis(40)),
            };
            runs.take(&Snapshot {
                run: Arc::clone(&run),
                at: Time::ZERO + Span::from_secs(s),
                flows: (0..n).map(flow).collect(),
            });
        }
        runs
    }

    fn drawn(runs: &Runs, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| runs.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn two_flows_as_they_are_drawn() {
        let text = drawn(&watched(2), 100, 30);
        for part in [
            "demo on ground udp: run 2 of 3, seed 7",
            "4.00 of 10.0 s",
            "goodput, Mbit/s",
            "window, segments",
            "smoothed RTT, ms",
            "q: stop",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let words = |name: &str| -> Vec<String> {
            let row = text.lines().rfind(|l| l.contains(name)).unwrap();
            let words = row.split(['│', '"', ' ']).filter(|w| !w.is_empty());
            words.map(str::to_owned).collect()
        };
        assert_eq!(
            words("flow-0"),
            [
                "flow-0", "cubic", "forward", "8.00", "8.00", "140", "40.0", "3"
            ]
        );
        assert_eq!(
            words("flow-1"),
            ["flow-1", "cubic", "reverse", "16.0", "16.0", "-", "-", "-"]
        );
    }

    #[test]
    fn any_terminal_is_large_enough() {
        for (width, height) in [(1, 1), (5, 3), (20, 8), (80, 24), (300, 100)] {
            for n in [0, 1, 2, 40] {
                drawn(&watched(n), width, height);
            }
        }
    }

    #[test]
    fn many_flows_are_drawn_by_direction_and_listed_as_far_as_there_is_room() {
        let runs = watched(40);
        let names: Vec<&str> = runs.tracks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["all forward", "all reverse"]);
        let all: f64 = (1..=40).step_by(2).map(|i| 8.0 * f64::from(i)).sum();
        assert!((runs.tracks[0].goodput.last().unwrap().1 - all).abs() < 1e-9);
        assert!(drawn(&runs, 100, 30).contains("28 more"));
    }

    #[test]
    fn another_run_begins_with_empty_plots() {
        let mut runs = watched(2);
        assert_eq!(runs.tracks[0].goodput.len(), 4);
        let mut next = LiveRun::clone(&run(2));
        next.number = 3;
        let run = Arc::new(next);
        runs.take(&Snapshot {
            run,
            ..Snapshot::default()
        });
        assert!(runs.tracks[0].goodput.is_empty());
    }
}
