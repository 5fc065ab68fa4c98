//! Plain-text tables for the terminal.

use std::fmt::Write as _;

use fullpipe_calibrate::causes::Causes;
use fullpipe_calibrate::cell::{Cell, Kind};
use fullpipe_calibrate::compare::{Comparison, Deviation, Metric, Verdict};
use fullpipe_calibrate::reference::Run;

/// The cells.
pub fn cells(cells: &[Cell]) -> String {
    let mut t = format!(
        "{:<36} {:<8} {:>6} {:>6} {:>7} {:>6} {:>6} {:>4}\n",
        "cell", "kind", "Mbit/s", "RTT ms", "BDP", "buffer", "loss", "runs"
    );
    for c in cells {
        line(
            &mut t,
            format_args!(
                "{:<36} {:<8} {:>6} {:>6} {:>7.1} {:>6} {:>6} {:>4}",
                c.id(),
                c.kind.to_string(),
                c.path.rate_mbit,
                c.path.rtt_ms,
                c.path.bdp(),
                c.buffer(),
                c.loss,
                c.repeats
            ),
        );
    }
    t
}

/// The metrics of runs.
pub fn runs(runs: &[Run]) -> String {
    let mut t = format!(
        "{:<40} {:>9} {:>9} {:>8} {:>8} {:>6} {:>7} {:>4} {:>8} {:>8}\n",
        "run and flow",
        "Mbit/s",
        "cwnd",
        "RTT ms",
        "p95 ms",
        "losses",
        "retrans",
        "RTOs",
        "first s",
        "at cwnd"
    );
    for run in runs {
        for (i, f) in run.flows.iter().enumerate() {
            let m = &f.measure;
            line(
                &mut t,
                format_args!(
                    "{:<40} {:>9.4} {:>9.2} {:>8.3} {:>8.3} {:>6} {:>7} {:>4} {:>8} {:>8}",
                    format!("{}.r{}.{i}", run.cell, run.repeat),
                    m.goodput_mbit,
                    m.cwnd_mean,
                    m.rtt_mean_ms,
                    m.rtt_p95_ms,
                    m.loss_events,
                    m.retransmits,
                    m.timeouts,
                    m.first_loss_s.map_or("-".into(), |v| format!("{v:.3}")),
                    m.first_loss_cwnd.map_or("-".into(), |v| format!("{v:.1}")),
                ),
            );
        }
    }
    t
}

/// The verdicts, and the fractions at the end.
pub fn comparison(c: &Comparison) -> String {
    let mut t = String::new();
    for kind in Kind::ALL {
        let verdicts: Vec<&Verdict> = c.verdicts.iter().filter(|v| v.kind == kind).collect();
        let Some(first) = verdicts.first() else {
            continue;
        };
        // Pairs have some sixteen metrics without a limit: too many for a line.
        let shown = |d: &&Deviation| d.limit.is_some() || kind != Kind::Pair;
        let mut head = format!("  {:<36}", kind.to_string());
        for d in first.deviations.iter().filter(shown) {
            let _ = write!(head, " {:>22}", title(d));
        }
        line(&mut t, format_args!("{head} {:>6}", "rmse"));
        for v in verdicts {
            let mark = if v.inside { ' ' } else { '!' };
            let mut row = format!("{mark} {:<36}", v.cell);
            for d in v.deviations.iter().filter(shown) {
                let _ = write!(row, " {:>22}", value(d));
            }
            let worst = v.rmse.iter().copied().fold(f64::NAN, f64::max);
            let worst = if worst.is_nan() {
                "-".to_owned()
            } else {
                format!("{worst:.3}")
            };
            line(&mut t, format_args!("{row} {worst:>6}"));
        }
        t.push('\n');
    }
    for (kind, metric, fraction) in &c.metrics {
        let name = format!("{kind} {}", name(*metric));
        line(
            &mut t,
            format_args!(
                "{name:<28} {:>3} of {:>3} cells inside",
                fraction.inside, fraction.of
            ),
        );
    }
    for (kind, f) in &c.cells {
        line(
            &mut t,
            format_args!(
                "{:<28} {:>3} of {:>3} cells inside, {:.1} %",
                format!("{kind}, all limits"),
                f.inside,
                f.of,
                100.0 * f.value()
            ),
        );
    }
    if !c.missing.is_empty() {
        line(
            &mut t,
            format_args!("{} cells have no result on one side", c.missing.len()),
        );
    }
    t
}

/// What is outside, with its causes.
pub fn causes(causes: &Causes, c: &Comparison) -> String {
    let mut t = String::new();
    let outside = causes.explain(c);
    if outside.is_empty() {
        return t;
    }
    let unexplained = outside.iter().filter(|o| o.causes.is_empty()).count();
    line(
        &mut t,
        format_args!(
            "\n{} deviations outside a limit, the causes of {unexplained} are open",
            outside.len()
        ),
    );
    for o in outside {
        let first = o.causes.first().and_then(|i| causes.0.get(*i));
        let cause = first.map_or("open", |c| c.cause.as_str());
        line(
            &mut t,
            format_args!(
                "  {:<36} {:<16} {cause}",
                o.verdict.cell,
                title(o.deviation)
            ),
        );
    }
    t
}

fn line(t: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(t, "{text}");
}

fn title(d: &Deviation) -> String {
    match d.flow {
        Some(flow) => format!("{} {flow}", name(d.metric)),
        None => name(d.metric).to_owned(),
    }
}

/// `linux simulator difference`, with a mark where a limit is broken.
fn value(d: &Deviation) -> String {
    let number = |v: Option<f64>| match v {
        None => "-".to_owned(),
        Some(v) if v == v.round() => format!("{v:.0}"),
        Some(v) if v.abs() < 10.0 => format!("{v:.3}"),
        Some(v) => format!("{v:.1}"),
    };
    let mark = if d.inside { "" } else { "!" };
    let change = d
        .relative()
        .map_or(String::new(), |r| format!(" {:+.1}%", 100.0 * r));
    format!("{} {}{change}{mark}", number(d.oracle), number(d.sim))
}

fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Goodput => "goodput",
        Metric::RttMean => "RTT",
        Metric::RttP95 => "RTT p95",
        Metric::CwndMean => "cwnd",
        Metric::FirstLossTime => "first loss s",
        Metric::FirstLossWindow => "first loss cwnd",
        Metric::LossEvents => "losses",
        Metric::Retransmits => "retransmits",
        Metric::Timeouts => "timeouts",
        Metric::Share => "share %",
        Metric::Winner => "winner",
        Metric::Completion => "completion s",
    }
}
