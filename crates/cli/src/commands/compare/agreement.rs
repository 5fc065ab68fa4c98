//! The agreement of two grounds as tables: a line per case and flow, and one per class of short
//! flows.

use std::collections::{BTreeMap, HashMap};

use fullpipe_metrics::Metric;
use fullpipe_results::agreement::{COMPLETION_AREA, CWND_AREA, Distance, LOSS_TIME};
use fullpipe_results::compare::{Comparison, Number, Row, Verdict};
use fullpipe_results::label;
use fullpipe_results::result::Params;

use super::{percent, signed_percent};
use crate::table::{Align, Table, number};

/// What is judged of one flow in one case.
struct Line<'a> {
    params: &'a Params,
    flow: &'a str,
    rows: BTreeMap<&'a str, &'a Row>,
    distances: BTreeMap<&'a str, &'a Distance>,
}

impl Line<'_> {
    /// What is to be said of all that is judged: it was chance only where a difference would be
    /// beyond its threshold without.
    fn verdict(&self) -> Verdict {
        let of_row = |r: &&Row| match r.verdict {
            Verdict::Indistinguishable if r.relative.is_some_and(|d| d.abs() <= r.threshold) => {
                Verdict::Within
            }
            verdict => verdict,
        };
        let rows = self.rows.values().map(of_row);
        let all = rows.chain(self.distances.values().map(|d| d.verdict));
        let rank = |v: &Verdict| match v {
            Verdict::Same => 0,
            Verdict::Within => 1,
            Verdict::Indistinguishable => 2,
            Verdict::Beyond => 3,
        };
        all.max_by_key(rank).unwrap_or(Verdict::Same)
    }
}

/// The tables.
pub(super) fn tables(comparison: &Comparison) -> String {
    let lines = lines(comparison);
    let texts = label::texts(lines.iter().map(|l| l.params));
    let params = label::varying(&texts);
    let all = lines.iter().zip(&texts);
    let (short, long): (Vec<Shown<'_>>, Vec<Shown<'_>>) =
        all.partition(|(l, _)| l.distances.contains_key(COMPLETION_AREA) || is_traffic(l));
    let mut out = String::new();
    if !long.is_empty() {
        out += &table(&params, &long, &FLOW);
    }
    if !short.is_empty() {
        out += if long.is_empty() { "" } else { "\n" };
        out += &table(&params, &short, &SHORT);
    }
    out
}

/// The last line: how many agree, and how far apart the curves and events are at most.
pub(super) fn summary(comparison: &Comparison) -> String {
    let lines = lines(comparison);
    let beyond = |l: &&Line<'_>| l.verdict() == Verdict::Beyond;
    let apart = lines.iter().filter(beyond).count();
    let of = |measure: &str| {
        let all = comparison.distances.iter();
        let all: Vec<&Distance> = all.filter(|d| d.measure == measure).collect();
        let largest = |best: Option<f64>, d: &&Distance| Some(best.unwrap_or(0.0).max(d.mean));
        let mean = all.iter().fold(None, largest)?;
        Some((mean, all[0].threshold))
    };
    let mut parts = vec![match apart {
        0 => format!("all {} flows and classes", lines.len()),
        n => format!(
            "{n} of {} flows and classes differ beyond a threshold",
            lines.len()
        ),
    }];
    parts.push(match of(CWND_AREA) {
        Some((area, threshold)) => format!(
            "cwnd curves up to {} % apart (threshold {})",
            number(100.0 * area, 3),
            percent(threshold)
        ),
        None => "no cwnd curves to compare (`trace = \"off\"` keeps none)".to_owned(),
    });
    if let Some((rtts, threshold)) = of(LOSS_TIME) {
        parts.push(format!(
            "events up to {} RTT (threshold {})",
            number(rtts, 2),
            number(threshold, 2)
        ));
    }
    let missing = super::judged_missing(comparison);
    if missing > 0 {
        parts.push(format!("{missing} on one side only"));
    }
    let word = if comparison.agree {
        "agree"
    } else {
        "DISAGREE"
    };
    let mark = match apart {
        0 => "",
        _ => "!: beyond its threshold\n",
    };
    format!("{mark}{word}: {}\n", parts.join("; "))
}

fn is_traffic(line: &Line<'_>) -> bool {
    const OF_FLOWS: &Metric = Metric::flow("loss_events");
    !line.rows.contains_key(OF_FLOWS.name)
}

fn lines(comparison: &Comparison) -> Vec<Line<'_>> {
    let mut lines = Lines::default();
    for row in comparison.rows.iter().filter(|r| r.judged) {
        let Some(flow) = row.flow.as_deref() else {
            continue;
        };
        let line = lines.of(&row.params, flow);
        line.rows.insert(&row.metric, row);
    }
    for distance in &comparison.distances {
        let line = lines.of(&distance.params, &distance.flow);
        line.distances.insert(distance.measure, distance);
    }
    lines.all
}

/// In the order in which they were first asked for.
#[derive(Default)]
struct Lines<'a> {
    all: Vec<Line<'a>>,
    places: HashMap<(&'a Params, &'a str), usize>,
}

impl<'a> Lines<'a> {
    fn of(&mut self, params: &'a Params, flow: &'a str) -> &mut Line<'a> {
        let at = *self.places.entry((params, flow)).or_insert_with(|| {
            self.all.push(Line {
                params,
                flow,
                rows: BTreeMap::new(),
                distances: BTreeMap::new(),
            });
            self.all.len() - 1
        });
        &mut self.all[at]
    }
}

/// Content and alignment of one table cell.
enum Cell {
    /// A relative area.
    Area(&'static str),
    /// Milliseconds and round trips.
    Shift,
    /// Both values, and their relative difference where they differ.
    Both(&'static Metric),
    /// The same for counts: without the difference.
    Count(&'static Metric),
    /// Distance of two distributions, and what would be real.
    Ks,
}

type Columns = [(&'static [&'static str], Cell)];

const FLOW: [(&[&str], Cell); 8] = [
    (&["cwnd:", "area between"], Cell::Area(CWND_AREA)),
    (
        &["loss events", "A : B"],
        Cell::Count(Metric::flow("loss_events")),
    ),
    (
        &["timeouts", "A : B"],
        Cell::Count(Metric::flow("timeouts")),
    ),
    (&["events", "apart"], Cell::Shift),
    (
        &["retransmits", "A : B"],
        Cell::Count(Metric::flow("retransmits")),
    ),
    (
        &["goodput (Mbit/s)", "A : B"],
        Cell::Both(Metric::flow("goodput_mbps")),
    ),
    (
        &["mean RTT (ms)", "A : B"],
        Cell::Both(Metric::flow("rtt_ms.mean")),
    ),
    (
        &["completion (s)", "A : B"],
        Cell::Both(Metric::flow("completion_time_s")),
    ),
];

const SHORT: [(&[&str], Cell); 5] = [
    (
        &["completion, mean (s)", "A : B"],
        Cell::Both(Metric::traffic("completion_time_s.mean")),
    ),
    (
        &["completion:", "area between"],
        Cell::Area(COMPLETION_AREA),
    ),
    (&["largest step", "(real above)"], Cell::Ks),
    (
        &["mean RTT (ms)", "A : B"],
        Cell::Both(Metric::traffic("rtt_ms.mean")),
    ),
    (
        &["received (Mbit/s)", "A : B"],
        Cell::Both(Metric::traffic("received_mbps")),
    ),
];

/// A line and its parameters as text.
type Shown<'a> = (&'a Line<'a>, &'a Vec<(String, String)>);

fn table(params: &[(&str, &str)], lines: &[Shown<'_>], columns: &Columns) -> String {
    // A column that no line has is left out.
    let cells: Vec<(&[&str], Vec<Option<String>>)> = columns
        .iter()
        .map(|(head, cell)| (*head, lines.iter().map(|(l, _)| text(l, cell)).collect()))
        .filter(|(_, cells): &(_, Vec<Option<String>>)| cells.iter().any(Option::is_some))
        .collect();
    let mut table = Table::new();
    for (_, head) in params {
        table.column(Align::Left, &["", head]);
    }
    table.column(Align::Left, &["", "of"]);
    for (head, _) in &cells {
        table.column(Align::Right, head);
    }
    table.column(Align::Left, &["", "verdict"]);
    for (i, (line, of)) in lines.iter().enumerate() {
        let param = |(key, _): &(&str, &str)| label::find(of, key).unwrap_or_default().to_owned();
        let mut row: Vec<String> = params.iter().map(param).collect();
        row.push(line.flow.to_owned());
        let one = |(_, cells): &(_, Vec<Option<String>>)| cells[i].clone().unwrap_or("-".into());
        row.extend(cells.iter().map(one));
        row.push(
            match line.verdict() {
                Verdict::Same => "same",
                Verdict::Within => "agrees",
                Verdict::Indistinguishable => "within chance",
                Verdict::Beyond => "DISAGREES",
            }
            .to_owned(),
        );
        table.row(row);
    }
    table.text()
}

fn text(line: &Line<'_>, cell: &Cell) -> Option<String> {
    let distance = |name: &str| line.distances.get(name).copied();
    let row = |metric: &Metric| {
        let row: Option<&Row> = line.rows.get(metric.name).copied();
        row.filter(|r| r.a.mean.is_some() || r.b.mean.is_some())
    };
    Some(match cell {
        Cell::Area(name) => {
            let d = distance(name)?;
            let seeds = by_seeds(d, &|x| percent(round(100.0 * x) / 100.0));
            let area = format!("{} %", number(100.0 * d.mean, 3));
            format!("{area}{seeds}{}", mark(d.verdict))
        }
        Cell::Shift => {
            let d = distance(LOSS_TIME)?;
            let ms = d
                .mean_ms
                .map_or(String::new(), |ms| format!("{} ms = ", number(ms, 3)));
            let seeds = by_seeds(d, &|x| number(x, 2));
            format!("{ms}{} RTT{seeds}{}", number(d.mean, 2), mark(d.verdict))
        }
        Cell::Both(metric) => {
            let r = row(metric)?;
            let both = both(r);
            let difference = r.relative.filter(|d| *d != 0.0);
            let difference =
                difference.map_or(String::new(), |d| format!(" ({})", signed_percent(d)));
            format!("{both}{difference}{}", mark(r.verdict))
        }
        Cell::Count(metric) => {
            let r = row(metric)?;
            format!("{}{}", both(r), mark(r.verdict))
        }
        Cell::Ks => {
            let [step, real] = distance(COMPLETION_AREA)?.ks?;
            format!("{} ({})", number(step, 2), number(real, 2))
        }
    })
}

/// Means alone; the intervals are in the table of `--all` and in the JSON.
fn both(row: &Row) -> String {
    let of = |n: &Number| n.mean.map_or("undefined".to_owned(), brief);
    match row.verdict {
        Verdict::Same => of(&row.a),
        _ => format!("{} : {}", of(&row.a), of(&row.b)),
    }
}

fn brief(x: f64) -> String {
    // A whole number needs no decimals, and all of its digits.
    match x.fract() == 0.0 {
        true => number(x, format!("{}", x.abs()).len()),
        false => number(x, 4),
    }
}

fn by_seeds(d: &Distance, text: &dyn Fn(f64) -> String) -> String {
    let apart = d.between_seeds.filter(|_| d.mean > d.threshold);
    apart.map_or(String::new(), |s| format!(" (seeds {})", text(s)))
}

fn round(x: f64) -> f64 {
    (10.0 * x).round() / 10.0
}

fn mark(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Beyond { " !" } else { "" }
}
