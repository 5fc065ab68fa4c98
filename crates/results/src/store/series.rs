//! The series of a run as tables: one for all flows, one for all links, one for what changed a
//! window downwards, one for the rates per interval; with traffic one for the short flows and one
//! for the probes; of a kernel's TCP one with all that it shows.

use std::collections::BTreeSet;

use fullpipe_cc::CongestionKind;
use fullpipe_flow::{Episode, EpisodeKind, Events, Proof, TraceRow};
use fullpipe_run::{FlowOutcome, LinkOutcome, Outcome, QueueSample, Series};
use fullpipe_trace::{FlowMeta, Meta, Numbers, Resolution, TraceError, TraceWriter};

use super::{Column, Manifest, SeriesKind, Table, Unit, looks, samples};
use crate::result::VERSION;
use fullpipe_metrics::RunMetrics;
use fullpipe_scenario::{FlowGroup, TraceMode};

/// The series of a run as files; `most`: rows of a flow in decimated ones, if they are fewer than
/// was recorded.
pub(super) fn files(
    groups: &[FlowGroup],
    meta: &Meta,
    metrics: &RunMetrics,
    outcome: &Outcome,
    (trace, most): (TraceMode, Option<usize>),
) -> Result<Vec<(SeriesKind, Vec<u8>)>, TraceError> {
    let mut files = of_flows(outcome, meta, trace, most)?;
    let origin = meta.origin();
    if trace != TraceMode::Off {
        let samples = samples::intervals(groups, metrics, outcome);
        files.push((SeriesKind::Samples, samples.to_parquet_from(&origin)?));
        if outcome.answered().next().is_some() {
            let answers = samples::answers(&outcome.cross).to_parquet_from(&origin)?;
            files.push((SeriesKind::Pings, answers));
        }
        let most = most.filter(|_| trace == TraceMode::Decimated);
        let looks = looks::table(&outcome.flows, &|f| looked(f, most), &origin)?;
        files.extend(looks.map(|bytes| (SeriesKind::TcpInfo, bytes)));
    }
    // Like the events they are results, not a trace.
    if !outcome.arrivals.is_empty() {
        let transfers = samples::transfers(&outcome.arrivals);
        files.push((SeriesKind::Transfers, transfers.to_parquet_from(&origin)?));
    }
    Ok(files)
}

/// What the traces of a run say of themselves.
pub(super) fn meta(manifest: &Manifest, unit: &Unit, flows: &[FlowOutcome]) -> Meta {
    Meta {
        version: VERSION.to_owned(),
        ground: manifest.ground.clone(),
        scenario: manifest.scenario.clone(),
        case: unit.case as u64,
        seed: unit.seed,
        engine: manifest.engine.clone(),
        run: unit.key.to_string(),
        flows: about(flows),
    }
}

fn about(flows: &[FlowOutcome]) -> Vec<FlowMeta> {
    let of = |f: &FlowOutcome| FlowMeta {
        name: f.name.clone(),
        stack: f.stack.clone(),
        mss: f.mss,
        packet: f.packet,
        variables: f.series.variables.iter().map(|v| v.0.to_owned()).collect(),
    };
    flows.iter().map(of).collect()
}

fn of_flows(
    outcome: &Outcome,
    meta: &Meta,
    trace: TraceMode,
    most: Option<usize>,
) -> Result<Vec<(SeriesKind, Vec<u8>)>, TraceError> {
    let origin = meta.origin();
    let events = events(&outcome.flows).to_parquet_from(&origin)?;
    let events = (SeriesKind::Events, events);
    let links = || links(&outcome.links).to_parquet_from(&origin);
    let series = |rows, numbers| flows(&outcome.flows, meta, rows, numbers);
    Ok(match trace {
        TraceMode::Off => vec![events],
        TraceMode::Decimated => vec![
            (SeriesKind::Flows, series(most, Numbers::Double)?),
            (SeriesKind::Links, links()?),
            events,
        ],
        TraceMode::Full => vec![
            (
                SeriesKind::Flows,
                series(Some(DECIMATED_ROWS), Numbers::Double)?,
            ),
            (SeriesKind::FlowsFull, series(None, Numbers::Decimal)?),
            (SeriesKind::Links, links()?),
            events,
        ],
    })
}

/// The rows of all flows as the file of a trace, one flow after the other, at most `rows` of each.
fn flows(
    flows: &[FlowOutcome],
    meta: &Meta,
    rows: Option<usize>,
    numbers: Numbers,
) -> Result<Vec<u8>, TraceError> {
    // Of every ground, so that equal runs are equal files.
    let mut writer = TraceWriter::new(Vec::new(), meta, Resolution::Nanoseconds, numbers)?;
    let mut variables = Vec::new();
    for (i, f) in flows.iter().enumerate() {
        for p in picks(&f.series, rows) {
            let row = TraceRow {
                cwnd_min: p.min,
                cwnd_max: p.max,
                events: p.events,
                flow: i as u32,
                ..f.series.rows[p.row]
            };
            variables.clear();
            let columns = f.series.variables.iter();
            variables.extend(columns.map(|(_, c)| c.get(p.row).copied().unwrap_or(f64::NAN)));
            writer.push(&row, &variables)?;
        }
    }
    Ok(writer.finish(0)?.1)
}

/// Of the looks at a flow those whose row is kept; `None`: all.
fn looked(f: &FlowOutcome, rows: Option<usize>) -> Option<BTreeSet<usize>> {
    // Where rows are those of ACKs they have no look.
    rows.filter(|_| f.looks.len() == f.series.rows.len())
        .map(|_| picks(&f.series, rows).iter().map(|p| p.row).collect())
}

/// A row of a series that is kept, with the extremes of those it stands for.
struct Pick {
    row: usize,
    min: f64,
    max: f64,
    events: Events,
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
            events: all[row].events,
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
                    events: p.events.with(r.events),
                };
            }
            _ => out.push(Pick {
                row,
                min,
                max,
                events: r.events,
            }),
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
        Column::Float(all().map(|(_, p)| Some(p.at.as_secs_f64())).collect()),
    );
    let packets = |of: fn(&QueueSample) -> u64| {
        let numbers = all().map(|(_, p)| of(p) as i64);
        Column::Int(numbers.collect())
    };
    table.push("queue_packets", packets(|p| p.packets));
    table.push("queue_packets_min", packets(|p| p.min));
    table.push("queue_packets_max", packets(|p| p.max));
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
    table.push(
        "proof",
        Column::Text(all().map(|(_, e)| proof(e.kind).to_owned()).collect()),
    );
    table.push("before", float(|e| e.before));
    table.push("after", float(|e| e.after));
    table
}

/// What an undo rests on; empty for everything else, and where nobody tells.
fn proof(kind: EpisodeKind) -> &'static str {
    match kind {
        EpisodeKind::Undo(Some(Proof::Stamp)) => "eifel",
        EpisodeKind::Undo(Some(Proof::Duplicates)) => "dsack",
        EpisodeKind::Undo(Some(Proof::Forward)) => "f-rto",
        _ => "",
    }
}

fn kind(kind: EpisodeKind) -> &'static str {
    match kind {
        EpisodeKind::Congestion(CongestionKind::Loss) => "loss",
        EpisodeKind::Congestion(CongestionKind::Ecn) => "mark",
        EpisodeKind::Congestion(CongestionKind::LocalDrop) => "local-stall",
        EpisodeKind::LostRetransmission => "again",
        EpisodeKind::Timeout => "timeout",
        EpisodeKind::Undo(_) => "undo",
        EpisodeKind::StartUpExit => "start-up-exit",
        EpisodeKind::Change => "change",
    }
}

/// Rows of a flow in the decimated table beside a full one; otherwise about as many are recorded.
pub(super) const DECIMATED_ROWS: usize = 2000;

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use fullpipe_metrics::testing::{flow, outcome};
    use fullpipe_run::{LookField, Looks};

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

    fn read(outcome: &Outcome, trace: TraceMode) -> Vec<(SeriesKind, Table)> {
        let meta = Meta {
            flows: about(&outcome.flows),
            ..Meta::default()
        };
        let files = of_flows(outcome, &meta, trace, None).unwrap().into_iter();
        files
            .map(|(kind, bytes)| (kind, Table::from_parquet(bytes).unwrap()))
            .collect()
    }

    #[test]
    fn decimation_keeps_the_extremes_and_the_last_row() {
        let o = outcome(vec![full(100_000)], 1, 0, 1);
        let t = &read(&o, TraceMode::Full);
        assert_eq!(
            t.iter().map(|t| t.0).collect::<Vec<_>>(),
            [
                SeriesKind::Flows,
                SeriesKind::FlowsFull,
                SeriesKind::Links,
                SeriesKind::Events
            ]
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
    fn looks_are_kept_with_their_rows() {
        let mut f = full(10_000);
        let name = LookField {
            name: "count",
            unit: "",
        };
        f.looks = Looks::new([name]);
        for (i, row) in (0..).zip(&f.series.rows) {
            f.looks.push(row.time, [Some(i)]);
        }
        assert_eq!(looked(&f, None), None);
        let kept = looked(&f, Some(500)).unwrap();
        let rows = picks(&f.series, Some(500));
        assert!(rows.len() > 250 && rows.len() <= 500);
        assert!(kept.into_iter().eq(rows.iter().map(|p| p.row)));
        // Of rows that are ACKs none is a look's.
        f.series.rows.pop();
        assert_eq!(looked(&f, Some(500)), None);
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
        let t = read(&outcome(vec![f], 1, 0, 1), TraceMode::Off);
        assert_eq!(t.len(), 1);
        assert_eq!(t[0].1.text("kind").unwrap(), ["timeout"]);
    }
}
