//! The series of a run as tables: one for all flows, one for all links, one for what changed a window downwards, one for the
//! rates per interval; with traffic one for the short flows and one for the probes.

use fullpipe_cc::CongestionKind;
use fullpipe_sim::{Episode, EpisodeKind, FlowOutcome, LinkOutcome, Outcome, Series, TraceRow};

use super::{Column, Table, samples};
use crate::metrics::RunMetrics;
use crate::scenario::{FlowGroup, TraceMode};

/// Tables of a run with the suffix of their file's name.
pub(super) fn tables(
    groups: &[FlowGroup],
    metrics: &RunMetrics,
    outcome: &Outcome,
    trace: TraceMode,
) -> Vec<(&'static str, Table)> {
    let mut tables = of_flows(outcome, trace);
    if trace != TraceMode::Off {
        tables.push((".samples", samples::intervals(groups, metrics, outcome)));
        if !outcome.pings.is_empty() {
            tables.push((".pings", samples::pings(&outcome.pings)));
        }
    }
    // Like the events they are results, not a trace.
    if !outcome.arrivals.is_empty() {
        tables.push((".transfers", samples::transfers(&outcome.arrivals)));
    }
    tables
}

fn of_flows(outcome: &Outcome, trace: TraceMode) -> Vec<(&'static str, Table)> {
    let events = (".events", events(&outcome.flows));
    let links = || (".links", links(&outcome.links));
    match trace {
        TraceMode::Off => vec![events],
        TraceMode::Decimated => vec![("", flows(&outcome.flows, None)), links(), events],
        TraceMode::Full => vec![
            ("", flows(&outcome.flows, Some(DECIMATED_ROWS))),
            (".full", flows(&outcome.flows, None)),
            links(),
            events,
        ],
    }
}

/// Rows of all flows, one flow after the other, at most `rows` of each.
fn flows(flows: &[FlowOutcome], rows: Option<usize>) -> Table {
    let picks: Vec<Vec<Pick>> = flows.iter().map(|f| picks(&f.series, rows)).collect();
    let all = || {
        flows
            .iter()
            .zip(&picks)
            .flat_map(|(f, p)| p.iter().map(move |p| (f, p)))
    };
    let float = |of: &dyn Fn(&Series, &Pick) -> f64| {
        Column::Float(
            all()
                .map(|(f, p)| Some(of(&f.series, p)).filter(|v| v.is_finite()))
                .collect(),
        )
    };
    let of_row = |of: &dyn Fn(&TraceRow) -> f64| float(&|s, p| of(&s.rows[p.row]));
    let mut table = Table::default();
    table.push(
        "flow",
        Column::Text(all().map(|(f, _)| f.name.clone()).collect()),
    );
    table.push("time_s", of_row(&|r| r.time.as_secs_f64()));
    table.push("cwnd", of_row(&|r| r.cwnd));
    table.push("cwnd_min", float(&|_, p| p.min));
    table.push("cwnd_max", float(&|_, p| p.max));
    table.push("ssthresh", of_row(&|r| r.ssthresh));
    table.push("rtt_ms", of_row(&|r| r.rtt.as_millis_f64()));
    table.push("srtt_ms", of_row(&|r| r.srtt.as_millis_f64()));
    table.push("pacing_mbps", of_row(&|r| r.pacing_rate * 1e-6));
    let int = |of: &dyn Fn(&TraceRow) -> u64| {
        Column::Int(
            all()
                .map(|(f, p)| of(&f.series.rows[p.row]) as i64)
                .collect(),
        )
    };
    table.push("flight", int(&|r| r.flight));
    table.push("delivered_segments", int(&|r| r.delivered));

    let mut names: Vec<&str> = flows
        .iter()
        .flat_map(|f| f.series.variables.iter().map(|v| v.0))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of = |s: &Series, p: &Pick| {
            let column = s.variables.iter().find(|v| v.0 == name);
            column
                .and_then(|(_, c)| c.get(p.row))
                .copied()
                .unwrap_or(f64::NAN)
        };
        table.push(format!("var_{name}"), float(&of));
    }
    table
}

/// A row of a series that is kept, with the extremes of those it stands for.
struct Pick {
    row: usize,
    min: f64,
    max: f64,
}

/// All rows, or the last of each of `rows` equal spans of time.
fn picks(series: &Series, rows: Option<usize>) -> Vec<Pick> {
    let all = &series.rows;
    let n = all.len();
    let (Some(rows), Some(first), Some(last)) = (rows, all.first(), all.last()) else {
        let every = |row: usize| Pick {
            row,
            min: all[row].cwnd_min,
            max: all[row].cwnd_max,
        };
        return (0..n).map(every).collect();
    };
    let (first, last) = (first.time.as_nanos(), last.time.as_nanos());
    let step = (last - first) / rows as u64 + 1;
    let span = |row: usize| (all[row].time.as_nanos() - first) / step;
    let mut out: Vec<Pick> = Vec::new();
    for (row, r) in all.iter().enumerate() {
        let (min, max) = (r.cwnd_min, r.cwnd_max);
        match out.last_mut() {
            Some(p) if span(p.row) == span(row) => {
                *p = Pick {
                    row,
                    min: p.min.min(min),
                    max: p.max.max(max),
                };
            }
            _ => out.push(Pick { row, min, max }),
        }
    }
    out
}

fn links(links: &[LinkOutcome]) -> Table {
    let all = || {
        links
            .iter()
            .flat_map(|l| l.series.iter().map(move |p| (l, p)))
    };
    let mut table = Table::default();
    table.push(
        "link",
        Column::Text(all().map(|(l, _)| l.name.clone()).collect()),
    );
    table.push(
        "time_s",
        Column::Float(all().map(|(_, p)| Some(p.0.as_secs_f64())).collect()),
    );
    table.push(
        "queue_packets",
        Column::Int(all().map(|(_, p)| p.1 as i64).collect()),
    );
    table
}

fn events(flows: &[FlowOutcome]) -> Table {
    let all = || {
        flows
            .iter()
            .flat_map(|f| f.episodes.iter().map(move |e| (f, e)))
    };
    let float = |of: fn(&Episode) -> f64| {
        Column::Float(
            all()
                .map(|(_, e)| Some(of(e)).filter(|v| v.is_finite()))
                .collect(),
        )
    };
    let mut table = Table::default();
    table.push(
        "flow",
        Column::Text(all().map(|(f, _)| f.name.clone()).collect()),
    );
    table.push("time_s", float(|e| e.at.as_secs_f64()));
    table.push(
        "kind",
        Column::Text(all().map(|(_, e)| kind(e.kind).to_owned()).collect()),
    );
    table.push("before", float(|e| e.before));
    table.push("after", float(|e| e.after));
    table
}

fn kind(kind: EpisodeKind) -> &'static str {
    match kind {
        EpisodeKind::Congestion(CongestionKind::Loss) => "loss",
        EpisodeKind::Congestion(CongestionKind::Ecn) => "mark",
        EpisodeKind::Congestion(CongestionKind::LocalDrop) => "local-stall",
        EpisodeKind::Again => "again",
        EpisodeKind::Timeout => "timeout",
        EpisodeKind::Undo => "undo",
        EpisodeKind::StartUpExit => "start-up-exit",
    }
}

/// Rows of a flow in the decimated table beside a full one.
const DECIMATED_ROWS: usize = 2000;

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::metrics::testing::{flow, outcome};

    fn full(n: u64) -> FlowOutcome {
        let mut f = flow("a");
        let s = &mut f.series;
        for i in 0..n {
            let w = if i == n / 2 { 5000.0 } else { i as f64 };
            s.rows.push(TraceRow {
                time: Time::from_nanos(1_000 * i),
                cwnd: w,
                cwnd_min: w,
                cwnd_max: w,
                rtt: Span::from_millis(80),
                srtt: Span::from_millis(80),
                flight: i,
                delivered: i,
                ..TraceRow::default()
            });
        }
        s.variables.push(("k", vec![f64::NAN; n as usize]));
        f
    }

    #[test]
    fn decimation_keeps_the_extremes_and_the_last_row() {
        let o = outcome(vec![full(100_000)], 1, 0, 1);
        let t = &of_flows(&o, TraceMode::Full);
        assert_eq!(
            t.iter().map(|t| t.0).collect::<Vec<_>>(),
            ["", ".full", ".links", ".events"]
        );
        let (few, all) = (&t[0].1, &t[1].1);
        assert_eq!(all.rows(), 100_000);
        assert!(
            few.rows() <= DECIMATED_ROWS && few.rows() > DECIMATED_ROWS / 2,
            "{}",
            few.rows()
        );
        let max = few
            .float("cwnd_max")
            .unwrap()
            .iter()
            .flatten()
            .copied()
            .fold(0.0, f64::max);
        assert_eq!(max, 99_999.0);
        let spike = few.float("cwnd_min").unwrap()[few.rows() / 2];
        assert!(spike.unwrap() < 51_000.0);
        assert_eq!(few.int("delivered_segments").unwrap().last(), Some(&99_999));
        assert!(few.float("ssthresh").unwrap().iter().all(Option::is_none));
        assert!(few.float("var_k").unwrap().iter().all(Option::is_none));
    }

    #[test]
    fn without_a_trace_the_events_stay() {
        let mut f = full(0);
        f.episodes.push(Episode {
            at: Time::from_secs_f64(2.0),
            kind: EpisodeKind::Timeout,
            before: 10.0,
            after: 5.0,
        });
        let t = of_flows(&outcome(vec![f], 1, 0, 1), TraceMode::Off);
        assert_eq!(t.len(), 1);
        assert_eq!(t[0].1.text("kind").unwrap(), ["timeout"]);
    }
}
