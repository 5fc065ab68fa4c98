//! `fullpipe history`: the runs that `send --history` has kept.

use std::fmt::Write as _;

use fullpipe_metrics::{Expression, Metric, unit};
use fullpipe_report::figure::{Axis, Chart, Line, Panel, Scale};
use fullpipe_results::history::{History, Judged, Record, SMALL, Verdict};
use fullpipe_results::result::printed;
use fullpipe_units::printed_text;

use crate::args::{self, HistoryFormat};
use crate::commands::list::unknown_metric;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::picture::{Form, Picture};
use crate::table::{Align, Table, number};

/// Runs the command.
pub fn history(args: &args::History) -> Result<Exit, Failure> {
    let metrics = metrics(args)?;
    let fits = |form: Form| !form.is_table();
    let picture = args.figure.as_deref();
    let picture = picture.map(|file| Picture::named("--figure", file, "history.svg", fits));
    let picture = picture.transpose()?;
    let last = args.last.map_or(usize::MAX, usize::from);
    let open = History::open(&args.dir).map_err(Failure::from);
    let history = open.map_err(|failure| failure.hint(KEPT_BY))?;
    let all = history.runs.len() + history.unreadable.len();
    let history = history.only(
        |kind| {
            args.only
                .as_ref()
                .is_none_or(|text| kind.headline().contains(text))
        },
        last,
    );
    for why in &history.unreadable {
        output::error(&format!("left out: {why}"));
    }
    let lacking = unreadable(&history, all);
    if history.runs.is_empty() {
        return Err(match lacking {
            Some(failure) if history.kinds.is_empty() => failure,
            _ => empty(args, &history),
        });
    }
    let judged = args.compare.then(|| history.judged(&metrics.judged));
    if judged.is_some() {
        are_there(&history, &args.metrics)?;
    }
    match args.format {
        HistoryFormat::Table => {
            output::data(&text(&history, &metrics.shown, judged.as_deref()))?;
        }
        HistoryFormat::Json => {
            if judged.is_some() {
                kinds(&history)
                    .filter_map(|(_, headline, runs)| Some((headline, not_judged(&runs)?)))
                    .for_each(|(kind, what)| output::say(&format!("{kind}: {}", what.trim_end())));
            }
            output::data(&printed::pretty(&history.printed(judged.as_deref())))?;
        }
        HistoryFormat::Csv => output::data(&csv(&history, &metrics.shown))?,
    }
    if history.unfinished > 0 {
        output::say(&format!(
            "{} without a whole result: they go on, or were killed",
            super::check::counted(history.unfinished, "run")
        ));
    }
    if let Some(picture) = &picture {
        let style = args.print.style();
        let svg = chart(&history, &metrics.judged).svg(&style);
        picture.draw(&svg, &style, &format!("history in {}", args.dir.display()))?;
    }
    let worse = |j: &Judged| j.verdict == Verdict::Worse;
    let not_judged = || kinds(&history).any(|(_, _, runs)| not_judged(&runs).is_some());
    if let Some(failure) = lacking {
        return Err(failure);
    }
    Ok(match &judged {
        Some(judged) if judged.iter().any(worse) => Exit::Failed,
        Some(_) if not_judged() => Exit::NotValid,
        _ => Exit::Ok,
    })
}

/// What is shown of runs, and what is judged and drawn.
struct Metrics {
    shown: Vec<String>,
    judged: Vec<String>,
}

/// A number of things such as `retransmits` is shown, but it is a judgement's own business.
const SHOWN: [&Metric; 4] = [JUDGED[0], JUDGED[1], JUDGED[2], Metric::flow("retransmits")];
const JUDGED: [&Metric; 3] = [
    Metric::flow("goodput_mbps"),
    Metric::flow("rtt_ms.p50"),
    Metric::flow("rtt_ms.p95"),
];

fn metrics(args: &args::History) -> Result<Metrics, Failure> {
    for name in &args.metrics {
        if let Err(error) = Expression::parse(name) {
            return Err(match name.contains(|c: char| " +-*/()".contains(c)) {
                false => unknown_metric(name),
                true => {
                    let message = format!("--metric {name}: {error}");
                    let failure = Failure::new(Exit::Usage, message);
                    error.hint.into_iter().fold(failure, Failure::hint)
                }
            });
        }
    }
    let or = |default: &[&Metric]| match args.metrics.is_empty() {
        true => default.iter().map(|m| m.name.to_owned()).collect(),
        false => args.metrics.clone(),
    };
    Ok(Metrics {
        shown: or(&SHOWN),
        judged: or(&JUDGED),
    })
}

/// That some of `all` runs are not among those that are shown.
fn unreadable(history: &History, all: usize) -> Option<Failure> {
    let n = history.unreadable.len();
    let message = format!("{n} of {} left out", super::check::counted(all, "run"));
    // What was measured cannot be measured again.
    let hint = "bring these directories back from a copy, or remove them";
    (n > 0).then(|| Failure::new(Exit::Environment, message).hint(hint))
}

fn empty(args: &args::History, history: &History) -> Failure {
    let dir = args.dir.display();
    let failure = match history.kinds.as_slice() {
        [] => Failure::new(Exit::Usage, format!("no runs in `{dir}`")),
        kinds => {
            let kinds: Vec<String> = kinds
                .iter()
                .map(|k| format!("`{}`", k.headline()))
                .collect();
            Failure::new(Exit::Usage, format!("no runs of these in `{dir}`"))
                .hint(format!("there are {}", kinds.join(", ")))
        }
    };
    failure.hint(KEPT_BY)
}

const KEPT_BY: &str = "`fullpipe send HOST --history DIR` keeps each run in DIR";

/// Kinds that have runs, with their runs.
fn kinds(history: &History) -> impl Iterator<Item = (usize, String, Vec<&Record>)> {
    history.kinds.iter().enumerate().filter_map(|(i, kind)| {
        let runs: Vec<&Record> = history.of_kind(i).collect();
        (!runs.is_empty()).then(|| (i, kind.headline(), runs))
    })
}

fn text(history: &History, metrics: &[String], judged: Option<&[Judged]>) -> String {
    let mut out = String::new();
    for (kind, headline, runs) in kinds(history) {
        let gap = if out.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{gap}{headline}");
        out += &table(&runs, metrics).text();
        if let Some(judged) = judged {
            out.push('\n');
            let of_kind = || judged.iter().filter(|j| j.kind == kind);
            out += &not_judged(&runs).unwrap_or_default();
            if of_kind().next().is_none() {
                out += match runs.iter().any(|run| run.counts()) {
                    false => "nothing to compare: no run of these is whole and valid\n",
                    true => "nothing to compare: the newest whole run has no value of the metric\n",
                };
                continue;
            }
            out += &verdicts(of_kind()).text();
            if of_kind().any(|j| j.verdict != Verdict::TooFew) {
                let small = number(100.0 * SMALL, 2);
                let _ = writeln!(
                    out,
                    "as before: in the range, or within {small} % of the mean"
                );
            }
        }
    }
    out
}

/// A metric that no run has would be as before for ever.
fn are_there(history: &History, metrics: &[String]) -> Result<(), Failure> {
    let nowhere = |metric: &&String| history.runs.iter().all(|run| run.values(metric).is_empty());
    match metrics.iter().find(nowhere) {
        // Of what was cut short nothing is expected.
        Some(metric) if history.runs.iter().any(Record::counts) => {
            let message = format!("--metric {metric}: no run of these has a value of it");
            Err(Failure::new(Exit::Usage, message)
                .hint("`fullpipe list metrics` says what each is"))
        }
        _ => Ok(()),
    }
}

/// Says so if the newest run of a kind does not count, and which one is judged in its place.
fn not_judged(runs: &[&Record]) -> Option<String> {
    let newest = runs.last().filter(|run| !run.counts())?;
    let instead = runs.iter().rfind(|run| run.counts());
    Some(match instead {
        None => format!("the newest run, of {}, is not judged\n", newest.began),
        Some(run) => format!(
            "the newest run, of {}, is not judged; that of {} is\n",
            newest.began, run.began
        ),
    })
}

fn table(runs: &[&Record], metrics: &[String]) -> Table {
    let mut table = Table::new();
    table.column(Align::Left, &["began (UTC)"]);
    table.column(Align::Left, &["of"]);
    table.column(Align::Left, &["stack"]);
    for metric in metrics {
        table.column(Align::Right, &[metric]);
    }
    table.column(Align::Left, &["remark"]);
    for run in runs {
        for (i, (name, stack, values)) in rows(run, metrics).into_iter().enumerate() {
            let first = |text: String| if i == 0 { text } else { String::new() };
            let mut row = vec![first(run.began.to_string()), name, stack];
            row.extend(
                values
                    .iter()
                    .map(|x| x.map_or("-".to_owned(), |x| number(x, 4))),
            );
            let remark = match (run.result.partial(), run.result.untrue()) {
                (Some(why), _) => format!("partial: {why}"),
                (None, Some(_)) => "not valid: numbers of the test bed".to_owned(),
                (None, None) => String::new(),
            };
            row.push(first(remark));
            table.row(row);
        }
    }
    table
}

/// A row of a run: flow or traffic, its stack, the metrics.
type Values = (String, String, Vec<Option<f64>>);

/// What of a run has any of the metrics.
fn rows(run: &Record, metrics: &[String]) -> Vec<Values> {
    let of: Vec<Vec<(&str, f64)>> = metrics.iter().map(|m| run.values(m)).collect();
    let case = run.result.cases.first();
    let flows = case.into_iter().flat_map(|c| &c.flows);
    let flows = flows.map(|f| (f.name.as_str(), f.stack.as_str()));
    let traffic = case.into_iter().flat_map(|c| &c.traffic);
    let traffic = traffic.map(|t| (t.name.as_str(), t.stack.as_str()));
    let rows = flows.chain(traffic).chain([("", "")]).map(|(name, stack)| {
        let value = |all: &Vec<(&str, f64)>| all.iter().find(|(n, _)| *n == name).map(|v| v.1);
        let values: Vec<Option<f64>> = of.iter().map(value).collect();
        (name.to_owned(), stack.to_owned(), values)
    });
    rows.filter(|(_, _, values)| values.iter().any(Option::is_some))
        .collect()
}

fn verdicts<'a>(judged: impl Iterator<Item = &'a Judged>) -> Table {
    let mut table = Table::new();
    table.column(Align::Left, &["newest run"]);
    table.column(Align::Left, &["of"]);
    for head in ["value", "mean before", "95 % of runs"] {
        table.column(Align::Right, &[head]);
    }
    table.column(Align::Left, &["verdict"]);
    for j in judged {
        let expected = j
            .expected
            .map(|[low, high]| format!("{} to {}", number(low, 4), number(high, 4)));
        let none = || "-".to_owned();
        table.row(vec![
            j.metric.clone(),
            j.of.clone(),
            number(j.newest, 4),
            j.mean.map_or_else(none, |mean| number(mean, 4)),
            expected.unwrap_or_else(none),
            match j.verdict {
                Verdict::TooFew => format!("{} before, too few to tell", j.earlier),
                Verdict::AsBefore => "as before".to_owned(),
                Verdict::Better => "better".to_owned(),
                Verdict::Worse => "WORSE".to_owned(),
                Verdict::Different => "different".to_owned(),
            },
        ]);
    }
    table
}

/// A row per run, flow and metric.
fn csv(history: &History, metrics: &[String]) -> String {
    let mut table = Table::new();
    for head in [
        "began", "dir", "peer", "scenario", "settings", "of", "stack", "metric", "unit", "value",
    ] {
        table.column(Align::Left, &[head]);
    }
    for run in &history.runs {
        let kind = &history.kinds[run.kind];
        for (name, stack, values) in rows(run, metrics) {
            for (metric, value) in metrics.iter().zip(values) {
                let Some(value) = value else { continue };
                table.row(vec![
                    run.began.rfc3339(),
                    run.dir.display().to_string(),
                    kind.peer.clone().unwrap_or_default(),
                    kind.scenario.clone(),
                    kind.settings.join("; "),
                    name.clone(),
                    stack.clone(),
                    metric.clone(),
                    unit(metric).to_owned(),
                    printed_text(value),
                ]);
            }
        }
    }
    table.rows().csv()
}

/// A panel per metric, a line for every flow of every kind.
fn chart(history: &History, metrics: &[String]) -> Chart {
    let first = history.runs.first().map_or(0, |r| r.began.0);
    let last = history.runs.last().map_or(0, |r| r.began.0);
    let (word, ms) = scale(last - first);
    let label = match history.runs.first() {
        Some(run) => format!("{word} since {} UTC", run.began),
        None => word.to_owned(),
    };
    let several = kinds(history).count() > 1;
    let panel = |metric: &String| {
        let mut lines: Vec<Line> = Vec::new();
        for (_, headline, runs) in kinds(history) {
            for run in runs {
                let at = (run.began.0 - first) as f64 / ms;
                for (of, value) in run.values(metric) {
                    let name = match (several, of) {
                        (true, "") => headline.clone(),
                        (true, of) => format!("{of}, {headline}"),
                        (false, of) => of.to_owned(),
                    };
                    // The test bed's numbers, or those of a part: points beside the line.
                    let counts = run.counts();
                    let name = match counts {
                        true => name,
                        false => format!("{name}{}not valid, or partial", comma(&name)),
                    };
                    let known = lines.iter_mut().find(|l| l.name == name);
                    match known {
                        Some(line) => line.points.push((at, value)),
                        None => lines.push(Line {
                            name,
                            group: lines.len(),
                            points: vec![(at, value)],
                            dots: true,
                            loose: !counts,
                            ..Line::default()
                        }),
                    }
                }
            }
        }
        let axis = |label: String| Axis {
            label,
            scale: Scale::Linear,
        };
        Panel {
            title: metric.clone(),
            x: axis(label.clone()),
            y: axis(match unit(metric) {
                "" | "1" => metric.clone(),
                unit => format!("{metric} ({unit})"),
            }),
            lines,
            ..Panel::default()
        }
    };
    let headlines: Vec<String> = kinds(history).map(|(_, headline, _)| headline).collect();
    Chart {
        title: "history".to_owned(),
        subtitle: match headlines.as_slice() {
            [one] => one.clone(),
            several => format!("{} kinds of runs", several.len()),
        },
        panels: metrics
            .iter()
            .map(panel)
            .filter(|p| !p.lines.is_empty())
            .collect(),
        stacked: true,
    }
}

fn comma(before: &str) -> &'static str {
    match before {
        "" => "",
        _ => ", ",
    }
}

/// The unit in which this many milliseconds are a handy number, and its length in them.
fn scale(span_ms: u64) -> (&'static str, f64) {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    match span_ms {
        0..300_000 => ("seconds", 1000.0),
        300_000..10_800_000 => ("minutes", MINUTE as f64),
        10_800_000..345_600_000 => ("hours", HOUR as f64),
        _ => ("days", (24 * HOUR) as f64),
    }
}
